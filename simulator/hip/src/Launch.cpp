//===- Launch.cpp - kernel launches, their limits and counters ------------===//
//
// Checks a launch when it is called, copies its arguments, and runs it in its
// stream. A kernel's fault is kept on the device until it is reset.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"
#include "Events.h"
#include "Module.h"

#include "fovea/Simulator/Timing.h"

#include <algorithm>
#include <cstring>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

using Dim3 = std::array<uint64_t, 3>;

std::string text(const Dim3 &d) {
  return "(" + std::to_string(d[0]) + ", " + std::to_string(d[1]) + ", " +
         std::to_string(d[2]) + ")";
}

/// The kernel argument segment from a list of pointers, one an argument.
Result packParams(const sim::KernelInfo &kernel, void *const *params,
                  std::vector<uint8_t> &segment) {
  segment.assign(kernel.explicitKernargSize(), 0);
  size_t index = 0;
  for (const sim::KernelArg &arg : kernel.args) {
    if (arg.hidden())
      continue;
    if (!params[index])
      return {hipErrorInvalidValue,
              "kernelParams[" + std::to_string(index) + "] (" +
                  (arg.name.empty() ? arg.kind : arg.name) + ", " +
                  std::to_string(arg.size) + " bytes) is null"};
    std::memcpy(segment.data() + arg.offset, params[index++], arg.size);
  }
  return hipSuccess;
}

/// The same from the list of HIP_LAUNCH_PARAM_... entries.
Result packExtra(const sim::KernelInfo &kernel, void *const *extra,
                 std::vector<uint8_t> &segment) {
  const void *buffer = nullptr;
  const size_t *size = nullptr;
  for (size_t i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[i + 1];
    else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE)
      size = static_cast<const size_t *>(extra[i + 1]);
    else
      return {hipErrorInvalidValue,
              "extra[" + std::to_string(i) + "] is no HIP_LAUNCH_PARAM"};
  }
  if (!size || (!buffer && *size != 0)) // a kernel without arguments needs none
    return {hipErrorInvalidValue, "extra gives no buffer or no size of it"};
  if (*size < kernel.explicitKernargSize())
    return {hipErrorInvalidValue,
            "extra passes " + std::to_string(*size) +
                " bytes of arguments; the kernel takes " +
                std::to_string(kernel.explicitKernargSize())};
  // Hidden arguments are ours to fill, whatever the buffer holds there.
  // Code objects without a list of arguments say only how many bytes there are.
  const uint8_t *bytes = static_cast<const uint8_t *>(buffer);
  size_t most =
      kernel.args.empty() ? kernel.kernargSize : kernel.explicitKernargSize();
  segment.assign(bytes, bytes + std::min<size_t>(*size, most));
  return hipSuccess;
}

Result checkGeometry(const Function &function, const sim::ChipInfo &chip,
                     const Dim3 &grid, const Dim3 &block, uint64_t lds,
                     bool gridIsWorkItems) {
  const sim::KernelInfo &kernel = *function.kernel;
  const std::string who = describe(function) + ": ";
  for (unsigned d = 0; d < 3; ++d) {
    if (grid[d] == 0)
      return {hipErrorInvalidValue,
              who + "the grid " + text(grid) + " is empty"};
    if (block[d] == 0)
      return {hipErrorInvalidConfiguration,
              who + "the workgroup " + text(block) + " is empty"};
  }
  for (unsigned d = 0; d < 3; ++d) {
    if (block[d] > chip.maxWorkgroupSize)
      return {hipErrorInvalidValue, who + "the workgroup " + text(block) +
                                        " is beyond the device's limit of " +
                                        std::to_string(chip.maxWorkgroupSize)};
    const uint64_t groups =
        gridIsWorkItems ? (grid[d] + block[d] - 1) / block[d] : grid[d];
    const uint64_t items = gridIsWorkItems ? grid[d] : grid[d] * block[d];
    if (groups > maxGridSize(d))
      return {hipErrorInvalidConfiguration, who + std::to_string(groups) +
                                                " workgroups in dimension " +
                                                "xyz"[d] + "; maxGridSize is " +
                                                std::to_string(maxGridSize(d))};
    // The dispatch packet counts work-items in 32 bits.
    if (items > UINT32_MAX)
      return {hipErrorInvalidConfiguration,
              who + std::to_string(items) + " work-items in dimension " +
                  "xyz"[d] + "; HIP's limit is 4294967295"};
  }
  const uint64_t threads = block[0] * block[1] * block[2];
  if (threads > chip.maxWorkgroupSize)
    return {hipErrorInvalidValue,
            who + std::to_string(threads) +
                " work-items in a workgroup; the device allows " +
                std::to_string(chip.maxWorkgroupSize)};
  if (threads > kernel.maxWorkgroupSize)
    return {hipErrorLaunchFailure,
            who + std::to_string(threads) +
                " work-items in a workgroup; it was compiled for " +
                std::to_string(kernel.maxWorkgroupSize)};
  for (unsigned d = 0; d < 3; ++d)
    if (kernel.requiredWorkgroupSize[0] != 0 &&
        block[d] != kernel.requiredWorkgroupSize[d])
      return {hipErrorInvalidValue,
              who + "it requires workgroups of " +
                  text({kernel.requiredWorkgroupSize[0],
                        kernel.requiredWorkgroupSize[1],
                        kernel.requiredWorkgroupSize[2]}) +
                  ", not " + text(block)};
  if (kernel.staticLdsBytes + lds > chip.ldsPerWorkgroup)
    return {hipErrorInvalidValue,
            who + std::to_string(kernel.staticLdsBytes) + " bytes of LDS and " +
                std::to_string(lds) + " dynamic ones exceed the device's " +
                std::to_string(chip.ldsPerWorkgroup)};
  return hipSuccess;
}

/// What a launch's time is taken to depend on: all but pointers. Code objects
/// without a list of arguments do not say which are.
std::string timeKey(const sim::KernelInfo &kernel,
                    const sim::LaunchConfig &config,
                    const std::vector<uint8_t> &segment) {
  std::string key = std::to_string(config.dynamicLdsBytes);
  for (size_t d = 0; d < 3; ++d)
    for (const uint64_t extent :
         {uint64_t(config.grid[d]), config.gridWorkItems[d],
          uint64_t(config.block[d])})
      key += " " + std::to_string(extent);
  key += "\n";
  const auto *bytes = reinterpret_cast<const char *>(segment.data());
  if (kernel.args.empty())
    key.append(bytes, segment.size());
  for (const sim::KernelArg &arg : kernel.args)
    if (arg.kind == "by_value" && arg.offset + arg.size <= segment.size())
      key.append(bytes + arg.offset, arg.size);
  return key;
}

/// The time of a launch that is about to run, which memory does not show.
PredictedTime predictTime(const Function &function, sim::LaunchConfig config,
                          const std::vector<uint8_t> &segment) {
  const std::string key = timeKey(*function.kernel, config, segment);
  std::lock_guard<std::mutex> lock(function.timesMutex);
  if (auto known = function.times.find(key); known != function.times.end())
    return known->second;
  config.options.checks = sim::kAlwaysChecked;
  sim::TimingOptions options;
  options.takeBack = true;
  sim::TimingReport report;
  PredictedTime time;
  if (const sim::Status status = sim::predict(
          *function.code, *function.kernel, config, options, report);
      !status)
    time.why = status.message();
  else
    time = {"", report.seconds, report.timeError, report.errorIsEstimate};
  return function.times[key] = time;
}

/// Runs in the stream.
void run(DeviceState &device, const Function &function,
         sim::LaunchConfig config, const std::vector<uint8_t> &segment,
         LaunchLog *log, bool time) {
  config.kernarg = segment.data();
  config.kernargBytes = segment.size();
  // Before the launch: what it leaves may be another problem, as a counter of
  // tiles that is used up.
  PredictedTime predicted;
  if (time)
    predicted = predictTime(function, config, segment);
  sim::Counters counters;
  const sim::Status status =
      sim::launch(*function.code, *function.kernel, config, &counters);
  {
    std::lock_guard<std::mutex> lock(device.countersMutex);
    device.counters += counters;
    ++device.launches;
  }
  if (log)
    log->launch(device.index, *function.kernel, config, counters, status,
                time ? &predicted : nullptr);
  if (status)
    return;
  hipError_t none = hipSuccess;
  if (device.fault.compare_exchange_strong(none, toHip(status.code())))
    Runtime::get().report(status.message(), /*loud=*/true);
}

/// Where a launch goes and what goes with it.
struct Order {
  hipStream_t stream = nullptr;
  void **params = nullptr, **extra = nullptr;
  hipEvent_t start = nullptr, stop = nullptr;
  /// `grid` counts work-items; the last workgroup may be partial.
  bool gridIsWorkItems = false;
};

/// Launches the kernel that `find(device, function)` names.
template <typename Find>
Result launch(Find find, const Dim3 &grid, const Dim3 &block, uint64_t lds,
              const Order &order) {
  void **params = order.params, **extra = order.extra;
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(order.stream, device, stream); !found.ok())
    return found;
  std::shared_ptr<Function> function;
  if (Result found = find(*device, function); !found.ok())
    return found;
  for (hipEvent_t event : {order.start, order.stop})
    if (event)
      if (Result alive = checkEvent(event); !alive.ok())
        return alive;
  if (device->index != function->device)
    return {hipErrorInvalidDevice, describe(*function) +
                                       " on a stream of device " +
                                       std::to_string(device->index)};
  if (Result ok = checkReady(*device, *stream, true); !ok.ok())
    return ok;
  if (Result ok = checkGeometry(*function, device->device->chip(), grid, block,
                                lds, order.gridIsWorkItems);
      !ok.ok())
    return ok;
  const sim::KernelInfo &kernel = *function->kernel;
  if (params && extra)
    return {hipErrorInvalidValue,
            describe(*function) + ": both kernelParams and extra are given"};
  if (!params && !extra && kernel.explicitKernargSize() != 0)
    return {hipErrorInvalidValue,
            describe(*function) + " takes " +
                std::to_string(kernel.explicitKernargSize()) +
                " bytes of arguments; neither kernelParams nor extra is given"};
  std::vector<uint8_t> segment;
  Result packed = params  ? packParams(kernel, params, segment)
                  : extra ? packExtra(kernel, extra, segment)
                          : Result();
  if (!packed.ok()) {
    packed.why = describe(*function) + ": " + packed.why;
    return packed;
  }
  sim::LaunchConfig config;
  if (order.gridIsWorkItems)
    config.gridWorkItems = grid;
  else
    config.grid = {uint32_t(grid[0]), uint32_t(grid[1]), uint32_t(grid[2])};
  config.block = {uint32_t(block[0]), uint32_t(block[1]), uint32_t(block[2])};
  config.dynamicLdsBytes = uint32_t(lds);
  Settings settings = Runtime::get().settings();
  config.options = settings.launch;
  if (order.start)
    if (Result ok = recordEvent(order.start, *device, *stream); !ok.ok())
      return ok;
  submit(*device, *stream,
         [device, function, config, segment = std::move(segment),
          log = std::move(settings.log), time = settings.time] {
           run(*device, *function, config, segment, log.get(), time);
         });
  return order.stop ? recordEvent(order.stop, *device, *stream)
                    : Result(hipSuccess);
}

/// For launches by handle, and by registered host function.
auto byHandle(hipFunction_t handle) {
  return [handle](DeviceState &, std::shared_ptr<Function> &function) {
    return findFunction(handle, function);
  };
}
auto byHostFunction(const void *host) {
  return [host](DeviceState &device, std::shared_ptr<Function> &function) {
    return kernelOf(host, device, function);
  };
}

Dim3 wide(const hipDim3 &d) { return {d.x, d.y, d.z}; }

} // namespace

HIP_ENTRY hipError_t hipModuleLaunchKernel(
    hipFunction_t function, unsigned gridX, unsigned gridY, unsigned gridZ,
    unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
    hipStream_t stream, void **params, void **extra) {
  return enter("hipModuleLaunchKernel", [&] {
    Order order;
    order.stream = stream;
    order.params = params;
    order.extra = extra;
    return launch(byHandle(function), {gridX, gridY, gridZ},
                  {blockX, blockY, blockZ}, sharedBytes, order);
  });
}

// The grid in work-items, so that the last workgroup may be partial.
HIP_ENTRY hipError_t hipExtModuleLaunchKernel(
    hipFunction_t function, uint32_t globalX, uint32_t globalY,
    uint32_t globalZ, uint32_t localX, uint32_t localY, uint32_t localZ,
    size_t sharedBytes, hipStream_t stream, void **params, void **extra,
    hipEvent_t start, hipEvent_t stop, uint32_t) {
  return enter("hipExtModuleLaunchKernel", [&] {
    Order order;
    order.stream = stream;
    order.params = params;
    order.extra = extra;
    order.start = start;
    order.stop = stop;
    order.gridIsWorkItems = true;
    return launch(byHandle(function), {globalX, globalY, globalZ},
                  {localX, localY, localZ}, sharedBytes, order);
  });
}

HIP_ENTRY hipError_t hipLaunchKernel(const void *function, hipDim3 grid,
                                     hipDim3 block, void **params,
                                     size_t sharedBytes, hipStream_t stream) {
  return enter("hipLaunchKernel", [&] {
    Order order;
    order.stream = stream;
    order.params = params;
    return launch(byHostFunction(function), wide(grid), wide(block),
                  sharedBytes, order);
  });
}

HIP_ENTRY hipError_t hipExtLaunchKernel(const void *function, hipDim3 grid,
                                        hipDim3 block, void **params,
                                        size_t sharedBytes, hipStream_t stream,
                                        hipEvent_t start, hipEvent_t stop,
                                        int) {
  return enter("hipExtLaunchKernel", [&] {
    Order order;
    order.stream = stream;
    order.params = params;
    order.start = start;
    order.stop = stop;
    return launch(byHostFunction(function), wide(grid), wide(block),
                  sharedBytes, order);
  });
}

// Workgroups run as host threads come free, not all at a time, so a kernel that
// waits for its whole grid would wait for ever. The device's attributes say so.
namespace {
Result noCooperation() {
  return {hipErrorNotSupported,
          "cooperative launches are not simulated (cooperativeLaunch is 0): "
          "split the kernel where it synchronises its grid"};
}
} // namespace

HIP_ENTRY hipError_t hipLaunchCooperativeKernel(const void *, hipDim3, hipDim3,
                                                void **, unsigned,
                                                hipStream_t) {
  return enter("hipLaunchCooperativeKernel", noCooperation);
}

HIP_ENTRY hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t, unsigned,
                                                      unsigned, unsigned,
                                                      unsigned, unsigned,
                                                      unsigned, unsigned,
                                                      hipStream_t, void **) {
  return enter("hipModuleLaunchCooperativeKernel", noCooperation);
}
