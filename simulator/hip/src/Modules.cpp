//===- Modules.cpp - loading code objects
//----------------------------------===//
//
// A module is a code object on the device that was current when it was loaded:
// an ELF file, or clang's offload bundle of several, of which the one for this
// device is taken.
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

struct Module {
  std::shared_ptr<sim::CodeObject> code;
  std::map<std::string, std::shared_ptr<Function>> functions;
};

std::mutex modulesMutex;
std::map<hipModule_t, std::shared_ptr<Module>> &modules() {
  static auto *map = new std::map<hipModule_t, std::shared_ptr<Module>>;
  return *map;
}
std::map<hipFunction_t, std::weak_ptr<Function>> &functions() {
  static auto *map = new std::map<hipFunction_t, std::weak_ptr<Function>>;
  return *map;
}

/// Start of a clang offload bundle. Source: LLVM's clang-offload-bundler page.
constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kBundleMagicSize = sizeof(kBundleMagic) - 1;
constexpr uint64_t kMaxBundleEntries = 1024, kMaxBundleId = 4096;

uint64_t readU64(const char *from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Finds the code object in `data`: itself, or the bundle's one for `target`.
/// `size` is SIZE_MAX when the caller gave none.
Result selectImage(const std::string &target, const char *&data, size_t &size) {
  if (size < 4 || (size == SIZE_MAX && std::memcmp(data,
                                                   "\x7f"
                                                   "ELF",
                                                   4) == 0))
    return hipSuccess; // the loader says what is wrong with it
  if (std::memcmp(data, "CCOB", 4) == 0)
    return {hipErrorInvalidImage,
            "a compressed offload bundle; build without --offload-compress"};
  if (size < kBundleMagicSize + 8 ||
      std::memcmp(data, kBundleMagic, kBundleMagicSize) != 0)
    return hipSuccess;
  const uint64_t count = readU64(data + kBundleMagicSize);
  if (count > kMaxBundleEntries)
    return {hipErrorInvalidImage,
            "an offload bundle of " + std::to_string(count) + " entries"};
  size_t at = kBundleMagicSize + 8;
  std::string seen;
  for (uint64_t i = 0; i < count; ++i) {
    if (size - at < 24)
      return {hipErrorInvalidImage, "the offload bundle is truncated"};
    const uint64_t offset = readU64(data + at), bytes = readU64(data + at + 8),
                   idSize = readU64(data + at + 16);
    at += 24;
    if (idSize > kMaxBundleId || size - at < idSize)
      return {hipErrorInvalidImage, "the offload bundle is truncated"};
    const std::string id(data + at, idSize);
    at += idSize;
    // "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-"
    const std::string chip = id.substr(id.rfind('-') + 1);
    if (id.compare(0, 3, "hip") == 0 &&
        chip.substr(0, chip.find(':')) == target) {
      if (offset > size || bytes > size - offset)
        return {hipErrorInvalidImage, "the offload bundle is truncated"};
      data += offset;
      size = bytes;
      return hipSuccess;
    }
    seen += (seen.empty() ? "" : ", ") + id;
  }
  return {hipErrorNoBinaryForGpu,
          "the offload bundle has " + seen + "; the device is " + target};
}

Result load(hipModule_t *result, const char *data, size_t size) {
  DeviceState &device = thisDevice();
  if (device.fault != hipSuccess)
    return faultOf(device);
  const std::string target(device.device->chip().target);
  if (Result selected = selectImage(target, data, size); !selected.ok())
    return selected;
  if (size == SIZE_MAX) {
    size = sim::CodeObject::imageSize(data);
    if (size == 0)
      return {hipErrorInvalidImage,
              "the image is neither an ELF file nor an offload bundle"};
  }
  auto module = std::make_shared<Module>();
  if (sim::Status loaded =
          sim::CodeObject::load(device.device, data, size, module->code);
      !loaded)
    return {toHip(loaded.code()), loaded.message()};
  std::lock_guard<std::mutex> lock(modulesMutex);
  for (const sim::KernelInfo &kernel : module->code->kernels()) {
    auto function = std::make_shared<Function>();
    function->code = module->code;
    function->kernel = &kernel;
    function->device = device.index;
    functions()[reinterpret_cast<hipFunction_t>(function.get())] = function;
    module->functions[kernel.name] = std::move(function);
  }
  auto handle = reinterpret_cast<hipModule_t>(module.get());
  modules()[handle] = std::move(module);
  *result = handle;
  return hipSuccess;
}

/// Takes the module and its functions out of the tables; launches in flight
/// hold the code object themselves.
void forget(std::map<hipModule_t, std::shared_ptr<Module>>::iterator it) {
  for (auto &[name, function] : it->second->functions)
    functions().erase(reinterpret_cast<hipFunction_t>(function.get()));
}

Result findModule(hipModule_t handle, std::shared_ptr<Module> &module) {
  std::lock_guard<std::mutex> lock(modulesMutex);
  auto it = modules().find(handle);
  if (it == modules().end())
    return {hipErrorInvalidHandle,
            handle ? "not a module, or an unloaded one" : "the module is null"};
  module = it->second;
  return hipSuccess;
}

/// "a, b, c": for messages about a name that is not there.
template <typename List>
std::string namesOf(const List &list) {
  std::string names;
  for (const auto &entry : list)
    names += (names.empty() ? "" : ", ") + entry.name;
  return names.empty() ? "none" : names;
}

} // namespace

Result fovea::hipsim::findFunction(hipFunction_t handle,
                                   std::shared_ptr<Function> &function) {
  std::lock_guard<std::mutex> lock(modulesMutex);
  auto it = functions().find(handle);
  if (it != functions().end())
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
  std::vector<std::shared_ptr<Module>> ended;
  std::lock_guard<std::mutex> lock(modulesMutex);
  for (auto it = modules().begin(); it != modules().end();) {
    if (it->second->code->device() != deviceAt(device)->device) {
      ++it;
      continue;
    }
    forget(it);
    ended.push_back(std::move(it->second));
    it = modules().erase(it);
  }
}

HIP_ENTRY hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
  return enter("hipModuleLoad", [&]() -> Result {
    if (!module || !path)
      return {hipErrorInvalidValue, "module or path is null"};
    std::ifstream file(path, std::ios::binary);
    if (!file)
      return {hipErrorFileNotFound,
              std::string(path) + ": " + std::strerror(errno)};
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (file.bad())
      return {hipErrorFileNotFound, std::string(path) + ": cannot be read"};
    Result loaded = load(module, bytes.data(), bytes.size());
    if (!loaded.why.empty())
      loaded.why = std::string(path) + ": " + loaded.why;
    return loaded;
  });
}

HIP_ENTRY hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return enter("hipModuleLoadData", [&]() -> Result {
    if (!module || !image)
      return {hipErrorInvalidValue, "module or image is null"};
    return load(module, static_cast<const char *>(image), SIZE_MAX);
  });
}

// The options speak of just-in-time compilation, of which there is none.
HIP_ENTRY hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image,
                                         unsigned, int *, void **) {
  return hipModuleLoadData(module, image);
}

HIP_ENTRY hipError_t hipModuleUnload(hipModule_t handle) {
  return enter("hipModuleUnload", [&]() -> Result {
    std::shared_ptr<Module> ended;
    std::lock_guard<std::mutex> lock(modulesMutex);
    auto it = modules().find(handle);
    if (it == modules().end())
      return {hipErrorInvalidHandle, "not a module, or an unloaded one"};
    forget(it);
    ended = std::move(it->second);
    modules().erase(it);
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
    *function = reinterpret_cast<hipFunction_t>(it->second.get());
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
