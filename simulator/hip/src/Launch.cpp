//===- Launch.cpp - kernel launches, their limits and counters
//-------------===//
//
// Checks a launch when it is called, copies its arguments, and runs it in its
// stream. A kernel's fault is kept on the device until it is reset.
//
//===----------------------------------------------------------------------===//

#include "Module.h"

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
  if (!buffer || !size)
    return {hipErrorInvalidValue, "extra gives no buffer or no size of it"};
  if (*size < kernel.explicitKernargSize())
    return {hipErrorInvalidValue,
            "extra passes " + std::to_string(*size) +
                " bytes of arguments; the kernel takes " +
                std::to_string(kernel.explicitKernargSize())};
  // Hidden arguments are ours to fill, whatever the buffer holds there.
  const uint8_t *bytes = static_cast<const uint8_t *>(buffer);
  segment.assign(bytes,
                 bytes + std::min<size_t>(*size, kernel.explicitKernargSize()));
  return hipSuccess;
}

Result checkGeometry(const Function &function, const sim::ChipInfo &chip,
                     const Dim3 &grid, const Dim3 &block, uint64_t lds) {
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
  for (unsigned d = 0; d < 3; ++d)
    if (block[d] > chip.maxWorkgroupSize || grid[d] > UINT32_MAX)
      return {hipErrorInvalidValue, who + "grid " + text(grid) +
                                        " or workgroup " + text(block) +
                                        " is beyond the device's limits"};
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

/// Runs in the stream.
void run(DeviceState &device, const Function &function,
         sim::LaunchConfig config, const std::vector<uint8_t> &segment) {
  config.kernarg = segment.data();
  config.kernargBytes = segment.size();
  sim::Counters counters;
  const sim::Status status =
      sim::launch(*function.code, *function.kernel, config, &counters);
  {
    std::lock_guard<std::mutex> lock(device.countersMutex);
    device.counters += counters;
    ++device.launches;
  }
  if (status)
    return;
  hipError_t none = hipSuccess;
  if (device.fault.compare_exchange_strong(none, toHip(status.code())))
    Runtime::get().report(status.message(), /*loud=*/true);
}

Result launch(hipFunction_t handle, sim::LaunchConfig config, const Dim3 &grid,
              const Dim3 &block, uint64_t lds, hipStream_t streamHandle,
              void **params, void **extra) {
  std::shared_ptr<Function> function;
  if (Result found = findFunction(handle, function); !found.ok())
    return found;
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(streamHandle, device, stream); !found.ok())
    return found;
  if (device->index != function->device)
    return {hipErrorInvalidDevice, describe(*function) +
                                       " on a stream of device " +
                                       std::to_string(device->index)};
  if (device->fault != hipSuccess)
    return faultOf(*device);
  if (Result ok =
          checkGeometry(*function, device->device->chip(), grid, block, lds);
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
  config.block = {uint32_t(block[0]), uint32_t(block[1]), uint32_t(block[2])};
  config.dynamicLdsBytes = uint32_t(lds);
  config.options = Runtime::get().settings().launch;
  submit(*device, *stream,
         [device, function, config, segment = std::move(segment)] {
           run(*device, *function, config, segment);
         });
  return hipSuccess;
}

/// Workgroups of `threads` work-items that fit one CU at a time.
int blocksPerCU(const Function &function, const sim::ChipInfo &chip,
                uint64_t threads, uint64_t dynamicLds) {
  const sim::KernelInfo &kernel = *function.kernel;
  auto roundUp = [](uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
  };
  if (threads == 0 || threads > kernel.maxWorkgroupSize)
    return 0;
  const uint64_t lds = roundUp(kernel.staticLdsBytes + dynamicLds, 512);
  if (lds > chip.ldsPerWorkgroup)
    return 0;
  // Registers are given in granules; where the file
  // is unified the count includes AGPRs already.
  const uint64_t granule = chip.vgprGranule;
  const uint64_t registers =
      std::max<uint64_t>(granule, roundUp(kernel.vgprs, granule));
  const uint64_t perSimd = std::min<uint64_t>(
      chip.maxWavesPerSimd, chip.vgprsPerSimdLane / registers);
  const uint64_t waves = (threads + kernel.waveSize - 1) / kernel.waveSize;
  uint64_t blocks = perSimd * chip.simdsPerCU / waves;
  if (lds)
    blocks = std::min(blocks, chip.ldsPerCU / lds);
  return int(blocks);
}

/// Runs `body(function, chip)` for a function handle.
template <typename Body>
hipError_t onFunction(const char *name, hipFunction_t handle, Body body) {
  return enter(name, [&]() -> Result {
    std::shared_ptr<Function> function;
    if (Result found = findFunction(handle, function); !found.ok())
      return found;
    return body(*function, deviceAt(function->device)->device->chip());
  });
}

} // namespace

HIP_ENTRY hipError_t hipModuleLaunchKernel(
    hipFunction_t function, unsigned gridX, unsigned gridY, unsigned gridZ,
    unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
    hipStream_t stream, void **params, void **extra) {
  return enter("hipModuleLaunchKernel", [&] {
    sim::LaunchConfig config;
    config.grid = {gridX, gridY, gridZ};
    return launch(function, config, {gridX, gridY, gridZ},
                  {blockX, blockY, blockZ}, sharedBytes, stream, params, extra);
  });
}

// The grid in work-items, so that the last workgroup may be partial.
HIP_ENTRY hipError_t hipExtModuleLaunchKernel(
    hipFunction_t function, uint32_t globalX, uint32_t globalY,
    uint32_t globalZ, uint32_t localX, uint32_t localY, uint32_t localZ,
    size_t sharedBytes, hipStream_t stream, void **params, void **extra,
    hipEvent_t start, hipEvent_t stop, uint32_t) {
  return enter("hipExtModuleLaunchKernel", [&]() -> Result {
    if (start || stop)
      return {hipErrorNotSupported,
              "start and stop events; record them with hipEventRecord"};
    if (sharedBytes > UINT32_MAX)
      return {hipErrorInvalidValue, "too much LDS"};
    sim::LaunchConfig config;
    config.gridWorkItems = {globalX, globalY, globalZ};
    return launch(function, config, {globalX, globalY, globalZ},
                  {localX, localY, localZ}, sharedBytes, stream, params, extra);
  });
}

HIP_ENTRY hipError_t hipFuncGetAttribute(int *value, int attribute,
                                         hipFunction_t handle) {
  return onFunction(
      "hipFuncGetAttribute", handle,
      [&](Function &function, const sim::ChipInfo &chip) -> Result {
        if (!value)
          return {hipErrorInvalidValue, "the result pointer is null"};
        const sim::KernelInfo &kernel = *function.kernel;
        switch (attribute) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
          *value = int(kernel.maxWorkgroupSize);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
          *value = int(kernel.staticLdsBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
          *value = int(kernel.privateBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_NUM_REGS:
          *value = int(kernel.vgprs);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
          *value = int(chip.ldsPerWorkgroup - kernel.staticLdsBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
        case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
          *value = 0;
          return hipSuccess;
        }
        return {hipErrorInvalidValue,
                "attribute " + std::to_string(attribute) + " is not known"};
      });
}

HIP_ENTRY hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes,
                                          const void *handle) {
  auto function = reinterpret_cast<hipFunction_t>(const_cast<void *>(handle));
  return onFunction(
      "hipFuncGetAttributes", function,
      [&](Function &found, const sim::ChipInfo &chip) -> Result {
        if (!attributes)
          return {hipErrorInvalidValue, "the result pointer is null"};
        const sim::KernelInfo &kernel = *found.kernel;
        *attributes = {};
        attributes->localSizeBytes = kernel.privateBytes;
        attributes->maxDynamicSharedSizeBytes =
            int(chip.ldsPerWorkgroup - kernel.staticLdsBytes);
        attributes->maxThreadsPerBlock = int(kernel.maxWorkgroupSize);
        attributes->numRegs = int(kernel.vgprs);
        attributes->sharedSizeBytes = kernel.staticLdsBytes;
        return hipSuccess;
      });
}

// All of the LDS can be had without asking; the call checks the amount.
HIP_ENTRY hipError_t hipFuncSetAttribute(const void *handle, int attribute,
                                         int value) {
  auto function = reinterpret_cast<hipFunction_t>(const_cast<void *>(handle));
  return onFunction(
      "hipFuncSetAttribute", function,
      [&](Function &found, const sim::ChipInfo &chip) -> Result {
        if (attribute != hipFuncAttributeMaxDynamicSharedMemorySize &&
            attribute != hipFuncAttributePreferredSharedMemoryCarveout)
          return {hipErrorInvalidValue,
                  "attribute " + std::to_string(attribute) + " is not known"};
        if (attribute == hipFuncAttributeMaxDynamicSharedMemorySize &&
            (value < 0 || uint64_t(value) + found.kernel->staticLdsBytes >
                              chip.ldsPerWorkgroup))
          return {hipErrorInvalidValue,
                  std::to_string(value) + " bytes of LDS; the device has " +
                      std::to_string(chip.ldsPerWorkgroup)};
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, hipFunction_t handle, int threads, size_t dynamicLds) {
  return onFunction(
      "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", handle,
      [&](Function &function, const sim::ChipInfo &chip) -> Result {
        if (!blocks || threads <= 0)
          return {hipErrorInvalidValue,
                  "the result is null or the workgroup empty"};
        *blocks = blocksPerCU(function, chip, uint64_t(threads), dynamicLds);
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipModuleOccupancyMaxPotentialBlockSize(
    int *gridSize, int *blockSize, hipFunction_t handle, size_t dynamicLds,
    int limit) {
  return onFunction(
      "hipModuleOccupancyMaxPotentialBlockSize", handle,
      [&](Function &function, const sim::ChipInfo &chip) -> Result {
        if (!gridSize || !blockSize || limit < 0)
          return {hipErrorInvalidValue, "a result is null"};
        uint64_t most = function.kernel->maxWorkgroupSize;
        if (limit)
          most = std::min<uint64_t>(most, uint64_t(limit));
        uint64_t best = 0;
        const uint64_t wave = function.kernel->waveSize;
        for (uint64_t threads = most / wave * wave; threads; threads -= wave) {
          const uint64_t blocks =
              uint64_t(blocksPerCU(function, chip, threads, dynamicLds));
          if (blocks * threads <= best)
            continue;
          best = blocks * threads;
          *blockSize = int(threads);
          *gridSize = int(blocks * chip.computeUnits);
        }
        if (!best)
          return {hipErrorInvalidValue, "no workgroup of it fits the device"};
        return hipSuccess;
      });
}

int fovea_sim_counters(int index, fovea_sim_counters_t *result) {
  return enter("fovea_sim_counters", [&]() -> Result {
    if (!result || result->struct_size < sizeof(size_t))
      return {hipErrorInvalidValue, "null, or struct_size is not set"};
    DeviceState *device = deviceAt(index);
    if (!device)
      return hipErrorInvalidDevice;
    drain(*device);
    fovea_sim_counters_t all = {};
    {
      using sim::InstClass;
      std::lock_guard<std::mutex> lock(device->countersMutex);
      const sim::Counters &c = device->counters;
      all.launches = device->launches;
      all.instructions = c.instructions;
      all.valu = c[InstClass::Valu];
      all.trans = c[InstClass::Trans];
      all.mfma = c[InstClass::Mfma];
      all.salu = c[InstClass::Salu];
      all.smem = c[InstClass::Smem];
      all.vmem = c[InstClass::Vmem];
      all.lds = c[InstClass::Lds];
      all.branch = c[InstClass::Branch];
      all.sync = c[InstClass::Sync];
      all.other = c[InstClass::Other];
      all.workgroups = c.workgroups;
      all.waves = c.waves;
      all.barriers = c.barriers;
      all.bytes_loaded = c.bytesLoaded;
      all.bytes_stored = c.bytesStored;
      all.seconds = c.seconds;
    }
    all.struct_size = result->struct_size;
    std::memcpy(result, &all, std::min(sizeof(all), result->struct_size));
    return hipSuccess;
  });
}

int fovea_sim_reset_counters(int index) {
  return enter("fovea_sim_reset_counters", [&]() -> Result {
    DeviceState *device = deviceAt(index);
    if (!device)
      return hipErrorInvalidDevice;
    drain(*device);
    std::lock_guard<std::mutex> lock(device->countersMutex);
    device->counters = {};
    device->launches = 0;
    return hipSuccess;
  });
}
