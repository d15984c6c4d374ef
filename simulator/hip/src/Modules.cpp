//===- Modules.cpp - loading code objects ---------------------------------===//
//
// A module is a code object on the device that was current when it was loaded:
// an ELF file, or the one for this device out of a fat binary.
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "Module.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

auto &modules() {
  static auto &handles = Handles<hipModule_t, Module>::make();
  return handles;
}

/// A handle that no module or function has had before, so that one of the past
/// is never taken for another's. Nothing lies at the address.
template <typename Handle>
Handle freshHandle() {
  static std::atomic<uintptr_t> last{0};
  return reinterpret_cast<Handle>((last += 16) | uintptr_t(1) << 62);
}

std::mutex functionsMutex;
std::map<hipFunction_t, std::weak_ptr<Function>> &liveFunctions() {
  static auto *map = new std::map<hipFunction_t, std::weak_ptr<Function>>;
  return *map;
}

Result load(hipModule_t *result, const sim::ImageBytes &image) {
  std::shared_ptr<Module> module;
  if (Result loaded = loadModule(thisDevice(), image, module); !loaded.ok())
    return loaded;
  const auto handle = freshHandle<hipModule_t>();
  modules().add(handle, std::move(module));
  *result = handle;
  return hipSuccess;
}

Result findModule(hipModule_t handle, std::shared_ptr<Module> &module) {
  module = modules().find(handle);
  if (!module)
    return {hipErrorInvalidHandle,
            handle ? "not a module, or an unloaded one" : "the module is null"};
  return hipSuccess;
}

} // namespace

Module::~Module() {
  // Launches in flight hold the code object themselves.
  std::lock_guard<std::mutex> lock(functionsMutex);
  for (auto &[name, function] : functions)
    liveFunctions().erase(function->handle);
}

Result fovea::hipsim::loadModule(DeviceState &device,
                                 const sim::ImageBytes &image,
                                 std::shared_ptr<Module> &module) {
  if (device.fault != hipSuccess)
    return faultOf(device);
  std::vector<uint8_t> elf;
  if (sim::Status found =
          sim::extractCodeObject(image, device.device->chip(), elf);
      !found)
    return {toHip(found.code()), found.message()};
  auto fresh = std::make_shared<Module>();
  if (sim::Status loaded = sim::CodeObject::load(device.device, elf.data(),
                                                 elf.size(), fresh->code);
      !loaded)
    return {toHip(loaded.code()), loaded.message()};
  std::lock_guard<std::mutex> lock(functionsMutex);
  for (const sim::KernelInfo &kernel : fresh->code->kernels()) {
    auto function = std::make_shared<Function>();
    function->code = fresh->code;
    function->kernel = &kernel;
    function->device = device.index;
    function->handle = freshHandle<hipFunction_t>();
    liveFunctions()[function->handle] = function;
    fresh->functions[kernel.name] = std::move(function);
  }
  module = std::move(fresh);
  return hipSuccess;
}

Result fovea::hipsim::findFunction(hipFunction_t handle,
                                   std::shared_ptr<Function> &function) {
  std::lock_guard<std::mutex> lock(functionsMutex);
  auto it = liveFunctions().find(handle);
  if (it != liveFunctions().end())
    function = it->second.lock();
  if (!function)
    return {hipErrorInvalidHandle,
            handle ? "not a function, or one of an unloaded module"
                   : "the function is null"};
  return hipSuccess;
}

std::string fovea::hipsim::describe(const Function &function) {
  return "kernel " + function.kernel->name + " of device " +
         std::to_string(function.device);
}

void fovea::hipsim::unloadModulesOf(int device) {
  modules().takeIf([&](const Module &module) {
    return module.code->device() == deviceAt(device)->device;
  });
}

HIP_ENTRY hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
  return enter("hipModuleLoad", [&]() -> Result {
    if (!module || !path)
      return {hipErrorInvalidValue, "module or path is null"};
    // A device or a pipe may have no end.
    std::error_code none;
    if (std::filesystem::exists(path, none) &&
        !std::filesystem::is_regular_file(path, none))
      return {hipErrorFileNotFound,
              std::string(path) + ": it is no file of bytes"};
    std::ifstream file(path, std::ios::binary);
    if (!file)
      return {hipErrorFileNotFound,
              std::string(path) + ": " + std::strerror(errno)};
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (file.bad())
      return {hipErrorFileNotFound, std::string(path) + ": cannot be read"};
    Result loaded =
        load(module, sim::ImageBytes::sized(bytes.data(), bytes.size()));
    if (!loaded.why.empty())
      loaded.why = std::string(path) + ": " + loaded.why;
    return loaded;
  });
}

HIP_ENTRY hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return enter("hipModuleLoadData", [&]() -> Result {
    if (!module || !image)
      return {hipErrorInvalidValue, "module or image is null"};
    return load(module, sim::ImageBytes::unsized(image));
  });
}

// The options speak of just-in-time compilation, of which there is none.
HIP_ENTRY hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image,
                                         unsigned, int *, void **) {
  return hipModuleLoadData(module, image);
}

HIP_ENTRY hipError_t hipModuleUnload(hipModule_t handle) {
  return enter("hipModuleUnload", [&]() -> Result {
    if (!modules().take(handle))
      return {hipErrorInvalidHandle, "not a module, or an unloaded one"};
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipModuleGetFunction(hipFunction_t *function,
                                          hipModule_t handle,
                                          const char *name) {
  return enter("hipModuleGetFunction", [&]() -> Result {
    if (!function || !name)
      return {hipErrorInvalidValue, "function or name is null"};
    std::shared_ptr<Module> module;
    if (Result found = findModule(handle, module); !found.ok())
      return found;
    auto it = module->functions.find(name);
    if (it == module->functions.end())
      return {hipErrorNotFound, std::string("no kernel is named '") + name +
                                    "'; the module has " +
                                    namesOf(module->code->kernels())};
    *function = it->second->handle;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipModuleGetGlobal(hipDeviceptr_t *address, size_t *bytes,
                                        hipModule_t handle, const char *name) {
  return enter("hipModuleGetGlobal", [&]() -> Result {
    if (!name || (!address && !bytes))
      return {hipErrorInvalidValue, "name or both results are null"};
    std::shared_ptr<Module> module;
    if (Result found = findModule(handle, module); !found.ok())
      return found;
    const sim::GlobalVariable *variable = module->code->findGlobal(name);
    if (!variable)
      return {hipErrorNotFound, std::string("no variable is named '") + name +
                                    "'; the module has " +
                                    namesOf(module->code->globals())};
    if (address)
      *address = reinterpret_cast<void *>(variable->address);
    if (bytes)
      *bytes = variable->size;
    return hipSuccess;
  });
}
