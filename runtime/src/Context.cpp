//===- Context.cpp - packages, devices and modules ------------------------===//

#include "Context.h"

#include "Scores.h"
#include "Versioned.h"
#include "fovea/Package/Counted.h"

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
    if (Result result =
            readVersioned("options", given, kContextOptionsFirstSize, options);
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
  return onDemand.configure(options.compile);
}

Context::~Context() {
  if (!hipOwner)
    return;
  for (Device &device : hipOwner->devices)
    for (Device::Module &module : device.modules)
      if (HipError error = hipOwner->api.hipModuleUnload(module.handle))
        try {
          log.line(LogLevel::Info,
                   hipOwner->api
                       .failure("image " + toString(module.hash),
                                "hipModuleUnload", error)
                       .message);
        } catch (...) {
          // No memory for the line, or the log function threw: the rest is
          // unloaded all the same.
        }
}

//===----------------------------------------------------------------------===//
// HIP library and devices
//===----------------------------------------------------------------------===//

Result Context::openLibrary() {
  auto library = std::make_unique<Hip>();
  if (Result result = openHip(hipChoice, library->api); !result.ok())
    return result;
  const HipApi &api = library->api;
  log.line(LogLevel::Info, "HIP library " + api.name() + ": " + api.reason +
                               "; " +
                               counted(uint64_t(api.deviceCount), "device"));
  for (int number = 0; number < api.deviceCount; ++number) {
    Device &device = library->devices.emplace_back();
    device.number = number;
    readDevice(*library, device);
  }
  // That a library was there before and had no device changes nothing until
  // it has one; what was told of it stays valid.
  if (hipOwner && library->devices.empty())
    return Result();
  hipFormer = std::move(hipOwner);
  hipOwner = std::move(library);
  if (!hipOwner->devices.empty())
    hipReady.store(hipOwner.get(), std::memory_order_release);
  return Result();
}

void Context::readDevice(const Hip &library, Device &device) {
  device.status = library.api.readDevice(device.number, device.traits.target,
                                         device.traits.computeUnits);
  if (device.status.ok()) {
    device.traits.additionCost = additionCostOf(device.traits.target.arch);
    device.traits.shares = shareCostsOf(device.traits.target.arch);
    device.arch = device.traits.target.str();
    device.usable.store(true, std::memory_order_release);
  }
  log.line(LogLevel::Info,
           "device " + std::to_string(device.number) + ": " +
               (device.status.ok()
                    ? device.arch + ", " +
                          std::to_string(device.traits.computeUnits) +
                          " compute units"
                    : device.status.message));
}

Result Context::hip(Hip *&library, bool *opened) {
  library = hipReady.load(std::memory_order_acquire);
  if (library)
    return Result();
  std::lock_guard<std::mutex> lock(hipMutex);
  if (!hipReady.load(std::memory_order_relaxed))
    if (Result result = openLibrary(); !result.ok())
      return result;
  if (opened)
    *opened = true;
  library = hipOwner.get();
  return Result();
}

Result Context::device(int32_t number, Hip *&library, Device *&found) {
  bool opened = false;
  if (Result result = hip(library, &opened); !result.ok())
    return result;
  const HipApi &api = library->api;
  if (library->devices.empty())
    return Result(FOVEA_STATUS_NO_DEVICE, "the HIP library " + api.whyNoDevice);
  if (number == -1)
    if (Result result = api.currentDevice(number); !result.ok())
      return result;
  if (number < 0 || size_t(number) >= library->devices.size())
    return invalid("device is " + std::to_string(number) + ", not in 0 to " +
                   std::to_string(library->devices.size() - 1));
  found = &library->devices[size_t(number)];
  if (found->usable.load(std::memory_order_acquire))
    return Result();
  // What went wrong may have passed, unless it was in this very call.
  std::lock_guard<std::mutex> lock(hipMutex);
  if (!opened && !found->usable.load(std::memory_order_relaxed))
    readDevice(*library, *found);
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
                                 counted(package->kernels().size(), "kernel") +
                                 ", by " + package->creator());
  std::lock_guard<std::mutex> lock(catalogMutex);
  current = current->with(std::move(opened));
  // A launch that begins after this call sees the change.
  generation.fetch_add(1, std::memory_order_release);
  return Result();
}

Result Context::bindProgram(Device &device, Problem &problem, bool isLaunch) {
  const fovea_score_t &score = problem.score;
  // Digits name no program that could be compiled. The compiler tells which one
  // is meant, also for a kernel that is named: its package may have another name.
  const bool compiles = onDemand.mode() != OnDemand::Mode::Never &&
                        (score.text || !parseScoreDigits(score.program));
  if (!compiles || !score.text) {
    bool missing = false;
    Result result = bindScore(viewOf(device), problem, isLaunch, missing);
    if (!missing || !compiles) {
      if (missing && result.code == FOVEA_STATUS_NOT_FOUND &&
          onDemand.mode() == OnDemand::Mode::Never)
        result.message += "; FOVEA_COMPILE=auto compiles those of the library";
      return result;
    }
  }
  OnDemand::FoundScore found;
  if (Result result = onDemand.findScore(problem, log, found); !result.ok()) {
    result.message = "the score program '" + std::string(score.program) +
                     "' could not be compiled on demand: " + result.message;
    return result;
  }
  problem.key.score = found.digits;
  problem.key.scoreGradients = gradientsOf(score);
  problem.key.storedGradients = storedGradientsOf(score);
  for (size_t i = 0; i != found.captures.size(); ++i) {
    if (!(problem.key.scoreGradients >> i & 1) ||
        found.captures[i].hasElementOfEach())
      continue;
    if (problem.deterministic)
      return ofDeterminism(
          invalid("score.captures[" + std::to_string(i) +
                  "].gradient adds up over places, in any order, and "
                  "deterministic is 1; set it to 0, or the gradient to "
                  "NULL"));
    problem.sumsCaptures = true;
  }
  return checkCaptures(problem, found.captures, isLaunch);
}

Result Context::scoreText(int32_t dtype, const char *program, const char *text,
                          const char *&canonical) {
  if (onDemand.mode() == OnDemand::Mode::Never)
    return Result(FOVEA_STATUS_NOT_FOUND,
                  "FOVEA_COMPILE is never, and so the compiler is not asked; "
                  "set it to auto");
  KernelOrder order;
  order.problem.headDim = kMinHeadDim;
  for (const DataTypeInfo &info : kDataTypes)
    if (info.number == dtype) {
      order.problem.dtype = info.type;
      order.score.program = program;
      if (text)
        order.score.text = text;
    }
  if (order.score.program.empty())
    return invalid(program && *program ? "dtype is " + std::to_string(dtype) +
                                             ", not a FOVEA_DTYPE_ value"
                                       : std::string("program is empty"));
  OnDemand::FoundScore found;
  if (Result result = onDemand.findScore(order, log, found); !result.ok())
    return result;
  std::lock_guard<std::mutex> lock(textMutex);
  canonical = texts.insert(found.text).first->c_str();
  return Result();
}

Result Context::compileFor(const Device &device, const Problem &problem,
                           Missing missing, Failure &failure) {
  const bool splits = missing == Missing::Split;
  Result result = onDemand.get(
      orderFor(problem, device.traits.target.arch, splits), log,
      [&](OnDemand::Made made) {
        std::lock_guard<std::mutex> lock(catalogMutex);
        current = current->with({std::move(made.package)}, made.origin);
        generation.fetch_add(1, std::memory_order_release);
      },
      failure);
  if (!result.ok())
    result.message = "it could not be compiled on demand: " + result.message;
  return because(FOVEA_CAUSE_NOT_COMPILED, std::move(result),
                 !result.ok() && (failure == Failure::Passing ||
                                  failure == Failure::NoCompiler));
}

void Context::doWithout(const Device &device, const Problem &problem,
                        Missing missing, const std::string &why,
                        Failure failure) {
  const bool splits = missing == Missing::Split;
  const ProblemKey key = compiledKeyOf(problem);
  const std::string &chip = device.traits.target.arch;
  const bool passes = failure == Failure::Passing;
  {
    std::lock_guard<std::mutex> lock(catalogMutex);
    const NotMade *known = current->findNotMade(chip, key, splits);
    if (known && !known->passes) // another thread has told it meanwhile
      return;
    if (known && passes) {
      known->putOff();
    } else {
      current = failure == Failure::NoCompiler
                    ? current->withoutCompiler(why)
                    : current->without(std::make_shared<const NotMade>(
                          chip, key, splits,
                          why + (passes ? "; some calls later it is tried again"
                                        : ""),
                          passes));
      generation.fetch_add(1, std::memory_order_release);
    }
  }
  log.line(LogLevel::Info, "kernel '" + key.str() + "' for " + chip + " that " +
                               (splits ? "splits" : "does not split") +
                               " keys: " + why + "; another serves");
}

std::shared_ptr<const Catalog> Context::catalog() const {
  std::lock_guard<std::mutex> lock(catalogMutex);
  return current;
}

const DeviceView *Context::newestView(const Device &device) const {
  const DeviceView *view = device.view.load(std::memory_order_acquire);
  return view && view->generation() ==
                     generation.load(std::memory_order_acquire)
             ? view
             : nullptr;
}

const DeviceView &Context::viewOf(Device &device) {
  const DeviceView *view = newestView(device);
  return view ? *view : makeView(device);
}

const DeviceView &Context::makeView(Device &device) {
  std::lock_guard<std::mutex> lock(device.viewMutex);
  std::shared_ptr<const Catalog> catalog;
  uint64_t number;
  {
    std::lock_guard<std::mutex> catalogLock(catalogMutex);
    catalog = current;
    number = generation.load(std::memory_order_relaxed);
  }
  // Another thread may have made it meanwhile.
  if (!device.views.empty() && device.views.back()->generation() == number)
    return *device.views.back();
  while (device.slots.size() < catalog->kernels().size())
    device.slots.emplace_back();
  device.views.push_back(std::make_unique<DeviceView>(
      std::move(catalog), number, device.traits, device.slots));
  device.view.store(device.views.back().get(), std::memory_order_release);
  return *device.views.back();
}

} // namespace fovea::rt
