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

/// Behind a kernel's name: which of its launches, if there are several.
std::string launchName(const KernelLaunch &launch) {
  return launch.suffix.empty() ? "" : ", its kernel '" + launch.symbol + "'";
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
// Launches
//===----------------------------------------------------------------------===//

Result Context::select(const Problem &problem, int32_t number,
                       std::shared_ptr<const Catalog> &kernels, Plan &plan) {
  Hip *library;
  Device *found;
  if (Result result = device(number, library, found); !result.ok())
    return result;
  kernels = catalog();
  return chooseKernel(*kernels, problem, found->traits, plan);
}

Result Context::loadFunctions(const Hip &library, Device &device,
                              const Kernel &kernel,
                              std::vector<HipFunction> &functions) {
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
  functions.resize(kernel.launches.size());
  for (size_t i = 0; i != functions.size(); ++i)
    if (HipError error = api.hipModuleGetFunction(
            &functions[i], module->handle, kernel.launches[i].symbol.c_str()))
      return api.failure(kernel.name() + launchName(kernel.launches[i]),
                         "hipModuleGetFunction", error);
  std::unique_lock<std::shared_mutex> lock(device.functionsMutex);
  device.functions.emplace(kernel.id, functions);
  return Result();
}

Result Context::functionsOf(const Hip &library, Device &device,
                            const Kernel &kernel,
                            std::vector<HipFunction> &functions) {
  auto lookUp = [&] {
    std::shared_lock<std::shared_mutex> lock(device.functionsMutex);
    auto found = device.functions.find(kernel.id);
    if (found == device.functions.end())
      return false;
    functions = found->second;
    return true;
  };
  if (lookUp())
    return Result();
  std::lock_guard<std::mutex> lock(device.loadMutex);
  if (lookUp()) // another thread has loaded it meanwhile
    return Result();
  return loadFunctions(library, device, kernel, functions);
}

Result Context::launch(const Problem &problem, void *arguments,
                       size_t argumentBytes, HipStream stream) {
  Hip *library;
  Device *found;
  if (Result result = device(-1, library, found); !result.ok())
    return result;
  const std::shared_ptr<const Catalog> kernels = catalog();
  Plan plan;
  if (Result result = chooseKernel(*kernels, problem, found->traits, plan);
      !result.ok())
    return result;
  if (plan.workspaceBytes > problem.workspace.bytes)
    return invalid(
        "workspace_bytes is " + std::to_string(problem.workspace.bytes) + "; " +
        plan.kernel->name() + " needs " + std::to_string(plan.workspaceBytes) +
        " for " + describe(problem));
  if (plan.workspaceBytes > 0 && !problem.workspace.data)
    return invalid("workspace is NULL; " + plan.kernel->name() + " needs " +
                   std::to_string(plan.workspaceBytes) + " bytes for " +
                   describe(problem));
  if (log.wants(LogLevel::Dispatch))
    log.line(LogLevel::Dispatch,
             describe(problem) + " on " + found->arch + ": " + describe(plan));
  void *extra[] = {
      reinterpret_cast<void *>(kHipLaunchParamBufferPointer), arguments,
      reinterpret_cast<void *>(kHipLaunchParamBufferSize), &argumentBytes,
      reinterpret_cast<void *>(kHipLaunchParamEnd)};
  std::vector<HipFunction> functions;
  bool reloaded = false;
  if (Result result = functionsOf(*library, *found, *plan.kernel, functions);
      !result.ok())
    return result;
  for (size_t i = 0; i < plan.launches.size();) {
    const PlannedLaunch &launch = plan.launches[i];
    const KernelLaunch &kernel = *launch.kernel;
    const HipError error = library->api.hipModuleLaunchKernel(
        functions[size_t(&kernel - plan.kernel->launches.data())],
        launch.grid[0], launch.grid[1], launch.grid[2],
        uint32_t(kernel.threads), 1, 1, 0, stream, nullptr, extra);
    if (error == 0) {
      ++i;
      continue;
    }
    if (error != kHipErrorInvalidHandle || reloaded)
      return library->api.failure(plan.kernel->name() + launchName(kernel) +
                                      " for " + describe(problem),
                                  "hipModuleLaunchKernel", error);
    // hipDeviceReset, the way out of a fault, takes the modules with it, and
    // what was launched before: all begins again.
    log.line(LogLevel::Dispatch,
             found->arch + " no longer knows its modules; loading again");
    forgetModules(*found);
    if (Result result = functionsOf(*library, *found, *plan.kernel, functions);
        !result.ok())
      return result;
    reloaded = true;
    i = 0;
  }
  return Result();
}

void Context::forgetModules(Device &device) {
  std::lock_guard<std::mutex> load(device.loadMutex);
  std::unique_lock<std::shared_mutex> lock(device.functionsMutex);
  device.functions.clear();
  device.modules.clear();
}

} // namespace fovea::rt
