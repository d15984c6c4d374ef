//===- Launch.cpp - loads kernels and launches them -----------------------===//
//
// The calls of a context that choose a kernel for a problem. A launch of a
// kernel that is loaded makes no text, allocates nothing and takes no lock.
//
//===----------------------------------------------------------------------===//

#include "Context.h"

namespace fovea::rt {
namespace {

/// Behind a kernel's name: which of its launches, if there are several.
std::string launchName(const KernelLaunch &launch) {
  return launch.suffix.empty() ? "" : ", its kernel '" + launch.symbol + "'";
}

/// Lets this thread load modules while streams are being captured, which the
/// captures' modes may forbid it (and end the captures if it tries).
class RelaxedCapture {
public:
  explicit RelaxedCapture(const HipApi &api)
      : exchange(api.hipThreadExchangeStreamCaptureMode) {
    if (exchange && exchange(&mode) != 0)
      exchange = nullptr;
  }
  ~RelaxedCapture() {
    if (exchange)
      (void)exchange(&mode);
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  HipError (*exchange)(int *mode);
  int mode = kHipStreamCaptureModeRelaxed;
};

Result checkWorkspace(const Problem &problem, const Plan &plan) {
  if (plan.workspaceBytes > problem.workspace.bytes)
    return invalid(
        "workspace_bytes is " + std::to_string(problem.workspace.bytes) + "; " +
        plan.kernel().name() + " needs " + std::to_string(plan.workspaceBytes) +
        " for " + describe(problem));
  if (plan.workspaceBytes > 0 && !problem.workspace.data)
    return invalid("workspace is NULL; " + plan.kernel().name() + " needs " +
                   std::to_string(plan.workspaceBytes) + " bytes for " +
                   describe(problem));
  return Result();
}

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Result Context::loadLocked(const Hip &library, Device &device,
                           const Candidate &candidate) {
  const HipApi &api = library.api;
  const Kernel &kernel = *candidate.kernel;
  Device::Module *module = nullptr;
  for (Device::Module &loaded : device.modules)
    if (loaded.hash == kernel.record->imageHash)
      module = &loaded;
  if (!module) {
    Expected<std::vector<uint8_t>> image =
        kernel.package->loadImage(*kernel.record);
    if (!image)
      return Result(image.status());
    // HIP trusts what it loads; what is no code object, or for another chip,
    // must not get that far.
    Expected<CodeObjectInfo> info =
        inspectCodeObject(image->data(), image->size());
    Status status = info.status();
    if (status.ok())
      status = checkTargetRunsOn(info->target, device.traits.target);
    if (!status.ok()) {
      Result result(status);
      result.message =
          kernel.name() + ": its image was refused: " + status.message();
      return result;
    }
    const RelaxedCapture relaxed(api);
    HipModule handle = nullptr;
    if (HipError error = api.hipModuleLoadData(&handle, image->data()))
      return api.failure(kernel.name(), "hipModuleLoadData", error);
    device.modules.push_back(
        {kernel.record->imageHash, handle, std::move(*image)});
    module = &device.modules.back();
    log.line(LogLevel::Dispatch,
             "loaded " + kernel.name() + " on " + device.arch);
  }
  LoadedKernel functions;
  for (size_t i = 0; i != kernel.launches.size(); ++i)
    if (HipError error =
            api.hipModuleGetFunction(&functions.functions[i], module->handle,
                                     kernel.launches[i].symbol.c_str()))
      return api.failure(kernel.name() + launchName(kernel.launches[i]),
                         "hipModuleGetFunction", error);
  device.loaded.push_back(functions);
  candidate.slot->loaded.store(&device.loaded.back(),
                               std::memory_order_release);
  return Result();
}

Result Context::load(const Hip &library, Device &device,
                     const Candidate &candidate,
                     const LoadedKernel *&functions) {
  std::lock_guard<std::mutex> lock(device.loadMutex);
  const std::atomic<const LoadedKernel *> &slot = candidate.slot->loaded;
  if (!slot.load(std::memory_order_acquire)) // or another thread has meanwhile
    if (Result result = loadLocked(library, device, candidate); !result.ok())
      return result;
  functions = slot.load(std::memory_order_acquire);
  return Result();
}

Result Context::loadForLaunch(const Hip &library, Device &device,
                              const Problem &problem,
                              const Candidate &candidate, HipStream stream,
                              const LoadedKernel *&functions) {
  int status = kHipStreamCaptureStatusNone;
  if (HipError error = library.api.hipStreamIsCapturing(stream, &status))
    return library.api.failure(candidate.kernel->name(), "hipStreamIsCapturing",
                               error);
  // What HIP does of its own for a module may wait for the device, or use the
  // null stream: both would end the capture, or never end.
  if (status != kHipStreamCaptureStatusNone)
    return invalid(
        "the stream is being captured, and " + candidate.kernel->name() +
        " is not loaded on " + device.arch + "; call fovea_" +
        toString(problem.key.op) +
        "_prepare with the same parameters before the capture begins");
  return load(library, device, candidate, functions);
}

Result Context::loadElsewhere(const Hip &library, Device &device,
                              const Candidate &candidate) {
  const HipApi &api = library.api;
  const LoadedKernel *functions;
  int current;
  if (HipError error = api.hipGetDevice(&current))
    return api.failure("the current device", "hipGetDevice", error);
  if (current == device.number)
    return load(library, device, candidate, functions);
  const std::string name = "device " + std::to_string(device.number);
  if (HipError error = api.hipSetDevice(device.number))
    return api.failure(name, "hipSetDevice", error);
  Result result = load(library, device, candidate, functions);
  if (HipError error = api.hipSetDevice(current); error && result.ok())
    return api.failure("device " + std::to_string(current) +
                           ", the current one before " + name,
                       "hipSetDevice", error);
  return result;
}

void Context::forgetModules(Device &device, const Candidate &candidate,
                            const LoadedKernel *stale) {
  std::lock_guard<std::mutex> load(device.loadMutex);
  if (candidate.slot->loaded.load(std::memory_order_acquire) != stale)
    return;
  std::lock_guard<std::mutex> lock(device.viewMutex);
  for (FunctionSlot &slot : device.slots)
    slot.loaded.store(nullptr, std::memory_order_release);
  device.modules.clear();
}

//===----------------------------------------------------------------------===//
// Choosing and launching
//===----------------------------------------------------------------------===//

Result Context::select(const Problem &problem, int32_t number, bool loads,
                       Plan &plan, std::string &text) {
  Hip *library;
  Device *found;
  if (Result result = device(number, library, found); !result.ok())
    return result;
  const DeviceView &view = viewOf(*found);
  if (!choose(view, problem, plan))
    return whyNone(view, problem);
  text = describe(view, problem, plan);
  if (!loads)
    return Result();
  if (log.wants(LogLevel::Dispatch))
    logChoice(view, *found, problem, plan);
  return loadElsewhere(*library, *found, *plan.candidate);
}

Result Context::explain(const Problem &problem, int32_t number,
                        const std::function<void(const Step &)> &visit) {
  Hip *library;
  Device *found;
  if (Result result = device(number, library, found); !result.ok())
    return result;
  const DeviceView &view = viewOf(*found);
  Plan plan;
  const bool chosen = choose(view, problem, plan);
  for (const Step &step : rt::explain(view, problem))
    visit(step);
  return chosen ? Result(FOVEA_STATUS_OK, describe(view, problem, plan))
                : whyNone(view, problem);
}

Result Context::launch(const Problem &problem, void *arguments,
                       size_t argumentBytes, HipStream stream) {
  Hip *library;
  Device *found;
  if (Result result = device(-1, library, found); !result.ok())
    return result;
  const DeviceView &view = viewOf(*found);
  Plan plan;
  if (!choose(view, problem, plan))
    return whyNone(view, problem);
  if (plan.workspaceBytes > 0)
    if (Result result = checkWorkspace(problem, plan); !result.ok())
      return result;
  if (log.wants(LogLevel::Dispatch))
    logChoice(view, *found, problem, plan);
  void *extra[] = {
      reinterpret_cast<void *>(kHipLaunchParamBufferPointer), arguments,
      reinterpret_cast<void *>(kHipLaunchParamBufferSize), &argumentBytes,
      reinterpret_cast<void *>(kHipLaunchParamEnd)};
  const Candidate &candidate = *plan.candidate;
  const LoadedKernel *functions =
      candidate.slot->loaded.load(std::memory_order_acquire);
  if (!functions)
    if (Result result = loadForLaunch(*library, *found, problem, candidate,
                                      stream, functions);
        !result.ok())
      return result;
  bool reloaded = false;
  for (uint32_t i = 0; i < plan.launchCount;) {
    const PlannedLaunch &launch = plan.launches[i];
    const HipError error = library->api.hipModuleLaunchKernel(
        functions->functions[launch.number], launch.grid[0], launch.grid[1],
        launch.grid[2], launch.threads, 1, 1, 0, stream, nullptr, extra);
    if (error == 0) {
      ++i;
      continue;
    }
    if (error != kHipErrorInvalidHandle || reloaded)
      return library->api.failure(plan.kernel().name() +
                                      launchName(plan.launch(launch)) +
                                      " for " + rt::describe(problem),
                                  "hipModuleLaunchKernel", error);
    // hipDeviceReset, the way out of a fault, takes the modules with it, and
    // what was launched before: all begins again.
    log.line(LogLevel::Dispatch,
             found->arch + " no longer knows its modules; loading again");
    forgetModules(*found, candidate, functions);
    if (Result result = loadForLaunch(*library, *found, problem, candidate,
                                      stream, functions);
        !result.ok())
      return result;
    reloaded = true;
    i = 0;
  }
  return Result();
}

void Context::logChoice(const DeviceView &view, const Device &device,
                        const Problem &problem, const Plan &plan) {
  {
    const std::string key =
        std::to_string(device.number) + ";" + std::to_string(plan.kernel().id) +
        ";" + std::to_string(plan.chosenBy) + ";" +
        std::to_string(problem.wanted) + ";" +
        std::to_string(problem.deterministic) + ";" + problem.key.str();
    std::lock_guard<std::mutex> lock(loggedMutex);
    if (!logged.insert(key).second)
      return;
  }
  log.line(LogLevel::Dispatch, rt::describe(problem) + " on " + device.arch +
                                   ": " + rt::describe(view, problem, plan));
  for (const Step &step : rt::explain(view, problem)) {
    const char *states[] = {"", "chosen", "accepted", "refused", "missed"};
    log.line(LogLevel::Dispatch, std::string("  ") + states[step.state] + " " +
                                     step.name + ": " + step.reason);
  }
}

} // namespace fovea::rt
