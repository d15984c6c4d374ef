//===- Context.cpp - packages, devices and modules ------------------------===//

#include "Context.h"

#include "Versioned.h"

#include <cstdlib>
#include <cstring>

namespace fovea::rt {
namespace {

/// The option's text, or the variable's, or the default.
std::string settingOf(const char *option, const char *variable,
                      const char *fallback) {
  if (option)
    return option;
  const char *value = std::getenv(variable);
  return value && *value ? value : fallback;
}

} // namespace

Result Context::configure(const fovea_context_options_t *given) {
  fovea_context_options_t options{};
  if (given) {
    constexpr uint32_t kFirstSize = sizeof(fovea_context_options_t);
    if (Result result = readVersioned("options", given, kFirstSize, options);
        !result.ok())
      return result;
  }
  hipChoice = settingOf(options.hip_library, "FOVEA_HIP_LIBRARY", "auto");
  if (hipChoice.empty())
    return invalid("options.hip_library is empty, not rocm, sim, auto or a "
                   "path");
  log.function = options.log_fn;
  log.user = options.log_user;
  const std::string level = settingOf(options.log, "FOVEA_LOG", "off");
  const std::pair<const char *, LogLevel> levels[] = {
      {"off", LogLevel::Off},
      {"info", LogLevel::Info},
      {"dispatch", LogLevel::Dispatch}};
  bool known = false;
  for (const auto &[name, value] : levels)
    if (level == name) {
      log.level = value;
      known = true;
    }
  if (!known)
    return invalid(std::string(options.log ? "options.log" : "FOVEA_LOG") +
                   " is '" + level + "', not off, info or dispatch");
  return Result();
}

Context::~Context() {
  if (!hipOwner)
    return;
  for (Device &device : hipOwner->devices)
    for (Device::Module &module : device.modules)
      if (HipError error = hipOwner->api.hipModuleUnload(module.handle))
        log.line(LogLevel::Info, hipOwner->api
                                     .failure("image " + toString(module.hash),
                                              "hipModuleUnload", error)
                                     .message);
}

//===----------------------------------------------------------------------===//
// HIP library and devices
//===----------------------------------------------------------------------===//

Result Context::openLibrary() {
  auto library = std::make_unique<Hip>();
  if (Result result = openHip(hipChoice, library->api); !result.ok())
    return result;
  const HipApi &api = library->api;
  log.line(LogLevel::Info, "HIP library " + api.path + " (" + api.reason +
                               "), version " +
                               std::to_string(api.runtimeVersion) + ", " +
                               std::to_string(api.deviceCount) + " devices");
  for (int number = 0; number < api.deviceCount; ++number) {
    Device &device = library->devices.emplace_back();
    device.status = api.readTarget(number, device.traits.target);
    if (device.status.ok())
      if (HipError error = api.hipDeviceGetAttribute(
              &device.traits.computeUnits, kHipAttributeMultiprocessorCount,
              number))
        device.status = api.failure("device " + std::to_string(number),
                                    "hipDeviceGetAttribute", error);
    device.arch = device.traits.target.str();
    log.line(LogLevel::Info,
             "device " + std::to_string(number) + ": " +
                 (device.status.ok()
                      ? device.arch + ", " +
                            std::to_string(device.traits.computeUnits) +
                            " compute units"
                      : device.status.message));
  }
  hipOwner = std::move(library);
  hipReady.store(hipOwner.get(), std::memory_order_release);
  return Result();
}

Result Context::hip(Hip *&library) {
  library = hipReady.load(std::memory_order_acquire);
  if (library)
    return Result();
  std::lock_guard<std::mutex> lock(hipMutex);
  if (!hipOwner)
    if (Result result = openLibrary(); !result.ok())
      return result;
  library = hipOwner.get();
  return Result();
}

Result Context::device(int32_t number, Hip *&library, Device *&found) {
  if (Result result = hip(library); !result.ok())
    return result;
  const HipApi &api = library->api;
  if (library->devices.empty())
    return Result(FOVEA_STATUS_NO_DEVICE,
                  "the HIP library " + api.path +
                      " has no device; set FOVEA_HIP_LIBRARY to sim to use "
                      "the simulated one");
  if (number == -1)
    if (HipError error = api.hipGetDevice(&number))
      return api.failure("the current device", "hipGetDevice", error);
  if (number < 0 || size_t(number) >= library->devices.size())
    return invalid("device is " + std::to_string(number) + ", not in 0 to " +
                   std::to_string(library->devices.size() - 1));
  found = &library->devices[size_t(number)];
  return found->status;
}

//===----------------------------------------------------------------------===//
// Packages
//===----------------------------------------------------------------------===//

Result Context::openPackage(const std::string &path) {
  std::vector<std::shared_ptr<const PackageReader>> opened;
  if (Result result = openPackages(path, opened); !result.ok())
    return result;
  for (const auto &package : opened)
    log.line(LogLevel::Info, "package " + package->path() + ": " +
                                 package->target().str() + ", " +
                                 std::to_string(package->kernels().size()) +
                                 " kernels, by " + package->creator());
  std::lock_guard<std::mutex> lock(catalogMutex);
  current = current->with(std::move(opened));
  return Result();
}

std::shared_ptr<const Catalog> Context::catalog() const {
  std::lock_guard<std::mutex> lock(catalogMutex);
  return current;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

std::string describe(const ForwardPlan &plan) {
  const char *by = plan.chosenBy == FOVEA_CHOSEN_BY_CALLER ? "the caller"
                   : plan.chosenBy == FOVEA_CHOSEN_BY_TUNING
                       ? "the tuning table"
                       : "the rule";
  return plan.kernel->name() + ", chosen by " + by + ", grid " +
         std::to_string(plan.grid[0]) + "x" + std::to_string(plan.grid[1]) +
         "x" + std::to_string(plan.grid[2]) + " of " +
         std::to_string(plan.kernel->record->threads) + " work-items";
}

Result Context::select(const ForwardProblem &problem, int32_t number,
                       std::shared_ptr<const Catalog> &kernels,
                       ForwardPlan &plan) {
  Hip *library;
  Device *found;
  if (Result result = device(number, library, found); !result.ok())
    return result;
  kernels = catalog();
  return chooseForward(*kernels, problem, found->traits, plan);
}

Result Context::loadFunction(const Hip &library, Device &device,
                             const Kernel &kernel, HipFunction &function) {
  const HipApi &api = library.api;
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
    HipModule handle = nullptr;
    if (HipError error = api.hipModuleLoadData(&handle, image->data()))
      return api.failure(kernel.name(), "hipModuleLoadData", error);
    device.modules.push_back(
        {kernel.record->imageHash, handle, std::move(*image)});
    module = &device.modules.back();
    log.line(LogLevel::Dispatch,
             "loaded " + kernel.name() + " on " + device.arch);
  }
  if (HipError error = api.hipModuleGetFunction(&function, module->handle,
                                                kernel.record->symbol.c_str()))
    return api.failure(kernel.name(), "hipModuleGetFunction", error);
  std::unique_lock<std::shared_mutex> lock(device.functionsMutex);
  device.functions.emplace(kernel.id, function);
  return Result();
}

Result Context::functionOf(const Hip &library, Device &device,
                           const Kernel &kernel, HipFunction &function) {
  auto lookUp = [&] {
    std::shared_lock<std::shared_mutex> lock(device.functionsMutex);
    auto found = device.functions.find(kernel.id);
    if (found == device.functions.end())
      return false;
    function = found->second;
    return true;
  };
  if (lookUp())
    return Result();
  std::lock_guard<std::mutex> lock(device.loadMutex);
  if (lookUp()) // another thread has loaded it meanwhile
    return Result();
  return loadFunction(library, device, kernel, function);
}

Result Context::launch(const ForwardProblem &problem, HipStream stream) {
  if (problem.empty)
    return Result();
  if (Result result = checkAddresses(problem); !result.ok())
    return result;
  Hip *library;
  Device *found;
  if (Result result = device(-1, library, found); !result.ok())
    return result;
  const std::shared_ptr<const Catalog> kernels = catalog();
  ForwardPlan plan;
  if (Result result = chooseForward(*kernels, problem, found->traits, plan);
      !result.ok())
    return result;
  if (log.wants(LogLevel::Dispatch))
    log.line(LogLevel::Dispatch,
             describe(problem) + " on " + found->arch + ": " + describe(plan));
  abi::ForwardArgs args = makeForwardArgs(problem);
  size_t bytes = sizeof(args);
  void *extra[] = {reinterpret_cast<void *>(kHipLaunchParamBufferPointer),
                   &args, reinterpret_cast<void *>(kHipLaunchParamBufferSize),
                   &bytes, reinterpret_cast<void *>(kHipLaunchParamEnd)};
  for (bool mayReload = true;; mayReload = false) {
    HipFunction function = nullptr;
    if (Result result = functionOf(*library, *found, *plan.kernel, function);
        !result.ok())
      return result;
    HipError error = library->api.hipModuleLaunchKernel(
        function, plan.grid[0], plan.grid[1], plan.grid[2],
        uint32_t(plan.kernel->record->threads), 1, 1, 0, stream, nullptr,
        extra);
    if (error == 0)
      return Result();
    if (error != kHipErrorInvalidHandle || !mayReload)
      return library->api.failure(plan.kernel->name() + " for " +
                                      describe(problem),
                                  "hipModuleLaunchKernel", error);
    // hipDeviceReset, the way out of a fault, takes the modules with it.
    log.line(LogLevel::Dispatch,
             found->arch + " no longer knows its modules; loading again");
    forgetModules(*found);
  }
}

void Context::forgetModules(Device &device) {
  std::lock_guard<std::mutex> load(device.loadMutex);
  std::unique_lock<std::shared_mutex> lock(device.functionsMutex);
  device.functions.clear();
  device.modules.clear();
}

} // namespace fovea::rt
