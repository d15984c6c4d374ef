//===- Launch.cpp - loads kernels and launches them -----------------------===//
//
// The calls of a context that choose a kernel for a problem. A launch of a
// kernel that is loaded makes no text, allocates nothing and takes no lock.
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "Scores.h"

#include <algorithm>

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
  RelaxedCapture(const HipApi &api, const Log &log) : api(api), log(log) {
    if (api.hipThreadExchangeStreamCaptureMode)
      error = api.hipThreadExchangeStreamCaptureMode(&mode);
  }
  ~RelaxedCapture() {
    if (error != 0 || !api.hipThreadExchangeStreamCaptureMode)
      return;
    if (HipError failed = api.hipThreadExchangeStreamCaptureMode(&mode))
      try {
        log.line(LogLevel::Info,
                 api.failure("going back to the thread's mode", kCall, failed)
                     .message);
      } catch (...) { // no memory for the line
      }
  }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

  static constexpr const char *kCall = "hipThreadExchangeStreamCaptureMode";
  HipError error = 0; ///< why the mode is not relaxed

private:
  const HipApi &api;
  const Log &log;
  int mode = kHipStreamCaptureModeRelaxed;
};

/// Asks HIP whether it still knows a module: 0 if so, InvalidHandle or NotFound
/// if not (NotFound when the handle has become another module's), and any other
/// error if it does not tell.
HipError ask(const HipApi &api, const Device::Module &module) {
  HipFunction function = nullptr;
  const HipError error =
      api.hipModuleGetFunction(&function, module.handle, module.symbol.c_str());
  if (error == kHipErrorInvalidHandle)
    // Should it be there all the same, nobody would unload it later.
    (void)api.hipModuleUnload(module.handle);
  return error == 0 && !function ? kHipErrorUnknown : error;
}
bool isForgotten(HipError answer) {
  return answer == kHipErrorInvalidHandle || answer == kHipErrorNotFound;
}

std::deque<Device::Module>::iterator moduleOf(Device &device,
                                              const Kernel &kernel) {
  return std::find_if(device.modules.begin(), device.modules.end(),
                      [&](const Device::Module &module) {
                        return module.hash == kernel.record->imageHash;
                      });
}

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
  return checkWorkspaceApart(problem, plan.workspaceBytes);
}

/// Why there is no kernel, and why none was compiled.
Result notServed(const DeviceView &view, const Query &query,
                 const Result &compiled) {
  if (compiled.code == FOVEA_STATUS_OUT_OF_MEMORY)
    return compiled;
  Result result = whyNone(view, query);
  if (!compiled.ok() && !compiled.message.empty())
    result.message += "; " + compiled.message;
  return because(compiled.cause, std::move(result));
}

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Result Context::loadModule(const Hip &library, Device &device,
                           const Kernel &kernel) {
  const HipApi &api = library.api;
  Expected<std::vector<uint8_t>> image =
      kernel.package->loadImage(*kernel.record);
  if (!image) {
    Result result(image.status());
    // There was a kernel for the problem: programs go another way where not.
    if (result.code == FOVEA_STATUS_NOT_FOUND)
      result.code = FOVEA_STATUS_IO;
    return result;
  }
  // HIP trusts what it loads; what is no code object, or for another chip, must
  // not get that far.
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
  const RelaxedCapture relaxed(api, log);
  if (relaxed.error)
    return api.failure(kernel.name(), RelaxedCapture::kCall, relaxed.error);
  // The entry comes first: were there no memory for it afterwards, nobody would
  // know the module.
  device.modules.push_back({kernel.record->imageHash, nullptr,
                            std::move(*image), kernel.launches.front().symbol});
  Device::Module &module = device.modules.back();
  const HipError error =
      api.hipModuleLoadData(&module.handle, module.image.data());
  if (error == 0 && module.handle)
    return Result();
  device.modules.pop_back();
  return error ? api.failure(kernel.name(), "hipModuleLoadData", error)
               : api.nonsense(kernel.name(), "hipModuleLoadData", "no module");
}

Result Context::loadLocked(const Hip &library, Device &device,
                           const Candidate &candidate, bool again) {
  const HipApi &api = library.api;
  const Kernel &kernel = *candidate.kernel;
  auto module = moduleOf(device, kernel);
  const bool isNew = module == device.modules.end();
  if (isNew) {
    if (Result result = loadModule(library, device, kernel); !result.ok())
      return result;
    module = std::prev(device.modules.end());
  }
  LoadedKernel functions;
  for (size_t i = 0; i != kernel.launches.size(); ++i) {
    const KernelLaunch &launch = kernel.launches[i];
    HipFunction &function = functions.functions[i];
    const HipError error = api.hipModuleGetFunction(&function, module->handle,
                                                    launch.symbol.c_str());
    if (error == 0 && function)
      continue;
    if (!isNew && isForgotten(error)) {
      const HipError answer = ask(api, *module);
      if (isForgotten(answer)) {
        device.modules.erase(module);
        return loadLocked(library, device, candidate, again);
      }
      if (answer)
        return api.failure(kernel.name(), "hipModuleGetFunction", answer);
    }
    // Modules that stay have the kernel by which they are asked for.
    if (isNew) {
      (void)api.hipModuleUnload(module->handle);
      device.modules.erase(module);
      // Another thread has reset the device since it was loaded.
      if (error == kHipErrorInvalidHandle && !again)
        return loadLocked(library, device, candidate, /*again=*/true);
    }
    const std::string what = kernel.name() + launchName(launch);
    return error ? api.failure(what, "hipModuleGetFunction", error)
                 : api.nonsense(what, "hipModuleGetFunction", "no function");
  }
  device.loaded.push_back(functions);
  candidate.slot->loaded.store(&device.loaded.back(),
                               std::memory_order_release);
  if (isNew)
    log.line(LogLevel::Dispatch,
             "loaded " + kernel.name() + " on " + device.arch);
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

Result Context::loadElsewhere(const Hip &library, Device &device,
                              const Candidate &candidate) {
  const HipApi &api = library.api;
  auto loadHere = [&]() -> Result {
    // A reset would be noticed by the launch, which may be too late for it.
    const LoadedKernel *functions =
        candidate.slot->loaded.load(std::memory_order_acquire);
    if (functions)
      if (Result result = forgetModule(library, device, candidate, functions);
          !result.ok())
        return result;
    return load(library, device, candidate, functions);
  };
  int32_t current;
  if (Result got = api.currentDevice(current); !got.ok())
    return got;
  if (current == device.number)
    return loadHere();
  const std::string name = "device " + std::to_string(device.number);
  if (HipError error = api.hipSetDevice(device.number))
    return api.failure(name, "hipSetDevice", error);
  // Once more if need be: the caller's next calls are for this device.
  auto goBack = [&] {
    const HipError error = api.hipSetDevice(current);
    return error ? api.hipSetDevice(current) : error;
  };
  Result result;
  try {
    result = loadHere();
  } catch (...) { // no memory
    (void)goBack();
    throw;
  }
  const HipError error = goBack();
  if (!error)
    return result;
  Result back = api.failure("device " + std::to_string(current) +
                                ", the current one before " + name,
                            "hipSetDevice", error);
  if (!result.ok())
    back.message = result.message + "; and " + back.message;
  return back;
}

Result Context::forgetModule(const Hip &library, Device &device,
                             const Candidate &candidate,
                             const LoadedKernel *stale) {
  std::lock_guard<std::mutex> load(device.loadMutex);
  if (candidate.slot->loaded.load(std::memory_order_acquire) != stale)
    return Result();
  const Kernel &kernel = *candidate.kernel;
  const auto module = moduleOf(device, kernel);
  if (module != device.modules.end()) {
    const HipError answer = ask(library.api, *module);
    if (answer == 0)
      return Result();
    if (!isForgotten(answer))
      return library.api.failure(kernel.name(), "hipModuleGetFunction", answer);
    device.modules.erase(module);
  }
  {
    std::lock_guard<std::mutex> lock(device.viewMutex);
    for (FunctionSlot &slot : device.slots)
      slot.loaded.store(nullptr, std::memory_order_release);
  }
  // The others will have gone with it; now, before a handle of theirs becomes
  // that of a module that is loaded again.
  device.modules.erase(
      std::remove_if(device.modules.begin(), device.modules.end(),
                     [&](const Device::Module &other) {
                       return isForgotten(ask(library.api, other));
                     }),
      device.modules.end());
  log.line(LogLevel::Dispatch, device.arch + " no longer knows the module of " +
                                   kernel.name() + "; loading again");
  return Result();
}

//===----------------------------------------------------------------------===//
// Choosing and launching
//===----------------------------------------------------------------------===//

template <typename Choose>
Result Context::chooseCompiling(const Hip &library, Device &device,
                                Query &query, const HipStream *stream,
                                Choose choose, Chosen &chosen) {
  const Problem &problem = query.problem;
  const Plan *&plan = chosen.plan;
  auto chooseNow = [&] {
    chosen.view = &viewOf(device);
    plan = choose(*chosen.view);
  };
  chooseNow();
  const bool misses = !plan || plan->missing != Missing::Nothing;
  bool compiles = misses && problem.compiles;
  if (plan && compiles)
    if (const NotMade *failed = notMadeOf(*chosen.view, query, plan->missing))
      compiles = failed->isDue();
  if (const bool loads = plan && !plan->candidate->isLoaded();
      stream && (compiles || loads)) {
    int status = kHipStreamCaptureStatusNone;
    if (HipError error = library.api.hipStreamIsCapturing(*stream, &status))
      return library.api.failure(compiles ? "compiling on demand"
                                          : plan->kernel().name(),
                                 "hipStreamIsCapturing", error);
    // What HIP does of its own for a module may wait for the device, or use the
    // null stream: both would end the capture, or never end.
    if (status != kHipStreamCaptureStatusNone) {
      if (!plan)
        chosen.compiled =
            because(FOVEA_CAUSE_CAPTURED,
                    {FOVEA_STATUS_NOT_FOUND,
                     std::string("the stream is being captured, and so none is "
                                 "compiled on demand; call fovea_") +
                         toString(problem.key.op) +
                         "_prepare with the same parameters before the capture "
                         "begins"});
      query.onlyLoaded = true;
      chooseNow();
      return Result();
    }
  }
  if (!compiles) {
    if (misses && problem.kernel == 0)
      chosen.compiled = Result(FOVEA_STATUS_NOT_FOUND,
                               "FOVEA_COMPILE=auto compiles what is missing");
    return Result();
  }
  // One that splits keys, then one that does not, at most.
  unsigned tried = 0;
  Missing failed = Missing::Nothing;
  Failure failure = Failure::Passing;
  for (Missing missing; (missing = missingOf(*chosen.view, query, plan,
                                             tried)) != Missing::Nothing;) {
    tried |= 1u << int(missing);
    Failure why;
    if (Result result = compileFor(device, problem, missing, why);
        !result.ok()) {
      failed = missing;
      failure = why;
      chosen.compiled = std::move(result);
    }
    chooseNow();
  }
  if (plan && failed == Missing::Nothing && plan->missing != Missing::Nothing) {
    failed = plan->missing;
    failure = Failure::Refused;
    chosen.compiled.message =
        "it was compiled on demand and does not serve here";
  }
  if (plan && failed != Missing::Nothing) {
    doWithout(device, problem, failed, chosen.compiled.message, failure);
    chooseNow();
  }
  return Result();
}

Result Context::choosePlan(const Hip &library, Device &device, Query &query,
                           Plan &plan, Chosen &chosen) {
  return chooseCompiling(
      library, device, query,
      query.problem.stream ? &query.problem.stream : nullptr,
      [&](const DeviceView &view) {
        return choose(view, query, plan) ? &plan : nullptr;
      },
      chosen);
}

Result Context::select(Problem &problem, int32_t number, bool loads, Plan &plan,
                       std::string &text) {
  Hip *library;
  Device *found;
  if (Result result = device(number, library, found); !result.ok())
    return result;
  if (problem.score.program)
    if (Result result = bindProgram(*found, problem, /*isLaunch=*/false);
        !result.ok())
      return result;
  auto loadFor = [&](const Query &query, const Chosen &chosen) {
    if (log.wants(LogLevel::Dispatch))
      logChoice(*chosen.view, *found, query, *chosen.plan);
    return loadElsewhere(*library, *found, *chosen.plan->candidate);
  };
  Query query(problem, found->traits);
  Chosen chosen;
  if (Result result = choosePlan(*library, *found, query, plan, chosen);
      !result.ok())
    return result;
  if (!chosen.plan)
    return notServed(*chosen.view, query, chosen.compiled);
  text = describe(*chosen.view, query, plan);
  // What is taken while the stream is captured is loaded.
  if (!loads || query.onlyLoaded)
    return Result();
  if (Result result = loadFor(query, chosen); !result.ok())
    return result;
  // A launch of these very parameters takes the one that does not split, if
  // they have no room for shares, and must find it when it is captured.
  if (problem.splits != 0 || problem.kernel ||
      !plan.candidate->algorithm->splitsKeys())
    return Result();
  Problem launched = problem;
  launched.mostWorkspace = problem.workspace.data ? problem.workspace.bytes : 0;
  if (plan.workspaceBytes <= launched.mostWorkspace)
    return Result();
  Query ofLaunch(launched, found->traits);
  Plan unsplit;
  if (Result result = choosePlan(*library, *found, ofLaunch, unsplit, chosen);
      !result.ok())
    return result;
  return chosen.plan && !ofLaunch.onlyLoaded ? loadFor(ofLaunch, chosen)
                                             : Result();
}

Result Context::explain(Problem &problem, int32_t number,
                        const std::function<void(const Step &)> &visit) {
  Hip *library;
  Device *found;
  if (Result result = device(number, library, found); !result.ok())
    return result;
  if (problem.score.program)
    if (Result result = bindProgram(*found, problem, /*isLaunch=*/false);
        !result.ok())
      return result;
  Query query(problem, found->traits);
  Plan plan;
  Chosen chosen;
  if (Result result = choosePlan(*library, *found, query, plan, chosen);
      !result.ok())
    return result;
  for (const Step &step : rt::explain(*chosen.view, query))
    visit(step);
  return chosen.plan
             ? Result(FOVEA_STATUS_OK, describe(*chosen.view, query, plan))
             : notServed(*chosen.view, query, chosen.compiled);
}

FailedLaunch Context::enqueue(const HipApi &api, const Plan &plan,
                              const LoadedKernel &functions, void *arguments,
                              size_t argumentBytes, HipStream stream) {
  void *extra[] = {
      reinterpret_cast<void *>(kHipLaunchParamBufferPointer), arguments,
      reinterpret_cast<void *>(kHipLaunchParamBufferSize), &argumentBytes,
      reinterpret_cast<void *>(kHipLaunchParamEnd)};
  for (uint32_t i = 0; i != plan.launchCount; ++i) {
    const PlannedLaunch &launch = plan.launches[i];
    if (HipError error = api.hipModuleLaunchKernel(
            functions.functions[launch.number], launch.grid[0], launch.grid[1],
            launch.grid[2], launch.threads, 1, 1, 0, stream, nullptr, extra))
      return {error, &plan, &functions, &launch};
  }
  return {};
}

bool Context::launchAgain(const Call &call, HipStream stream,
                          Attempt &attempt) {
  Hip *library = hipReady.load(std::memory_order_acquire);
  LaunchCache *cache = LaunchCache::ofThread();
  if (!call.isKnown() || !library || !cache)
    return false;
  CachedLaunch *launch = cache->find(call, [&]() -> const DeviceView * {
    attempt.hasDevice = true;
    attempt.deviceError = library->api.hipGetDevice(&attempt.device);
    if (attempt.deviceError != 0 ||
        uint32_t(attempt.device) >= library->devices.size())
      return nullptr;
    return newestView(library->devices[size_t(attempt.device)]);
  });
  if (!launch)
    return false;
  const LoadedKernel *functions =
      launch->plan.candidate->slot->loaded.load(std::memory_order_acquire);
  if (!functions || !LaunchCache::fill(*launch, call))
    return false;
  attempt.failed = enqueue(library->api, launch->plan, *functions,
                           launch->arguments, launch->argumentBytes, stream);
  return attempt.failed.error == 0;
}

Result Context::launch(Problem &problem, const Call &call, HipStream stream,
                       const Attempt &before) {
  Hip *library;
  Device *found;
  int32_t number = -1;
  if (before.hasDevice) {
    number = before.device;
    if (Result result = hipReady.load(std::memory_order_acquire)
                            ->api.checkCurrent(before.deviceError, number);
        !result.ok())
      return result;
  }
  if (Result result = device(number, library, found); !result.ok())
    return result;
  if (problem.score.program)
    if (Result result = bindProgram(*found, problem, /*isLaunch=*/true);
        !result.ok())
      return result;
  bool wasReset = false;
  Result result =
      before.failed.error
          ? explainFailure(*library, *found, problem, before.failed, &wasReset)
          : launchOn(*library, *found, problem, call, stream, &wasReset);
  if (wasReset)
    return launchOn(*library, *found, problem, call, stream, nullptr);
  return result;
}

Result Context::launchOn(const Hip &library, Device &device,
                         const Problem &problem, const Call &call,
                         HipStream stream, bool *wasReset) {
  Query query(problem, device.traits);
  std::optional<Plan> ofLoaded;
  Chosen chosen;
  if (Result result = chooseCompiling(
          library, device, query, &stream,
          [&](const DeviceView &view) -> const Plan * {
            if (!query.onlyLoaded) // a choice to be remembered
              return chooseAgain(view, query);
            return choose(view, query, ofLoaded.emplace()) ? &*ofLoaded
                                                           : nullptr;
          },
          chosen);
      !result.ok())
    return result;
  if (!chosen.plan)
    return notServed(*chosen.view, query, chosen.compiled);
  const Plan &plan = *chosen.plan;
  if (plan.workspaceBytes > 0)
    if (Result result = checkWorkspace(problem, plan); !result.ok())
      return result;
  const bool isLogged = log.wants(LogLevel::Dispatch);
  if (isLogged)
    logChoice(*chosen.view, device, query, plan);
  const Candidate &candidate = *plan.candidate;
  alignas(8) unsigned char arguments[spec::kMaxArgumentBytes] = {};
  fillArguments(problem, plan.splits, plan.packsHeads, candidate.arguments,
                arguments);
  const LoadedKernel *functions =
      candidate.slot->loaded.load(std::memory_order_acquire);
  if (!functions)
    if (Result result = load(library, device, candidate, functions);
        !result.ok())
      return result;
  const FailedLaunch failed = enqueue(library.api, plan, *functions, arguments,
                                      candidate.argumentBytes, stream);
  if (failed.error)
    return explainFailure(library, device, problem, failed, wasReset);
  // What is chosen anew or logged each time is none to be remembered.
  if (!isLogged && !plan.provisional && plan.missing == Missing::Nothing)
    if (LaunchCache *cache = LaunchCache::makeOfThread())
      cache->keep(call, *chosen.view, problem, plan, arguments);
  return Result();
}

Result Context::explainFailure(const Hip &library, Device &device,
                               const Problem &problem,
                               const FailedLaunch &failed, bool *wasReset) {
  const Plan &plan = *failed.plan;
  // hipDeviceReset, the way out of a fault, takes the modules with it, and what
  // was launched before: all begins again.
  if (failed.error == kHipErrorInvalidHandle && wasReset) {
    Result result =
        forgetModule(library, device, *plan.candidate, failed.functions);
    *wasReset = result.ok();
    return result;
  }
  return library.api.failure(plan.kernel().name() +
                                 launchName(plan.launch(*failed.launch)) +
                                 " for " + rt::describe(problem),
                             "hipModuleLaunchKernel", failed.error);
}

void Context::logChoice(const DeviceView &view, const Device &device,
                        const Query &query, const Plan &plan) {
  const Problem &problem = query.problem;
  {
    const std::string key =
        std::to_string(device.number) + ";" + std::to_string(plan.kernel().id) +
        ";" + std::to_string(plan.chosenBy) + ";" +
        std::to_string(problem.wanted) + ";" +
        std::to_string(problem.deterministic) +
        std::to_string(problem.narrowSums) + ";" + problem.key.str();
    std::lock_guard<std::mutex> lock(loggedMutex);
    if (!logged.insert(key).second)
      return;
  }
  log.line(LogLevel::Dispatch, rt::describe(problem) + " on " + device.arch +
                                   ": " + rt::describe(view, query, plan));
  for (const Step &step : rt::explain(view, query)) {
    const char *states[] = {"", "chosen", "accepted", "refused", "missed"};
    log.line(LogLevel::Dispatch, std::string("  ") + states[step.state] + " " +
                                     step.name + ": " + step.reason);
  }
}

} // namespace fovea::rt
