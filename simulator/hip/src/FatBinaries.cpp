//===- FatBinaries.cpp - programs that clang built from HIP ---------------===//
//
// Clang puts a program's code objects into the executable as a fat binary and
// registers it, its kernels and its device variables before main(), each under
// the address of a host object. A device's code is loaded when something of it
// is first used on that device. Source of the interface: clang's CGCUDANV.cpp.
//
//===----------------------------------------------------------------------===//

#include "FatBinaries.h"
#include "Memory.h"
#include "Module.h"

#include <cstring>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

/// A variable of a fat binary.
struct Variable {
  std::string name;
  uint64_t size = 0;
  /// Of a managed variable: its memory, which all devices share.
  uint64_t managed = 0;
};

/// What one call of __hipRegisterFatBinary brought.
struct FatBinary {
  const void *image = nullptr;
  std::string refusal; ///< why nothing of it can be used; empty: it can

  std::mutex mutex;                              ///< guards what follows
  std::map<int, std::shared_ptr<Module>> loaded; ///< by device
  std::vector<Variable> managed;
};

/// Where a registered host object leads.
template <typename Thing>
struct Registered {
  std::shared_ptr<FatBinary> owner;
  Thing thing;
};

struct Registry {
  std::mutex mutex;
  std::map<void **, std::shared_ptr<FatBinary>> binaries;
  std::map<const void *, Registered<std::string>> kernels; // by host function
  std::map<const void *, Registered<Variable>> variables;  // by host variable
};
Registry &registry() {
  static auto *instance = new Registry;
  return *instance;
}

std::shared_ptr<FatBinary> findBinary(void **handle) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto it = registry().binaries.find(handle);
  return it == registry().binaries.end() ? nullptr : it->second;
}

/// Tells a freshly loaded module where the managed variables live: the symbol
/// of each holds a pointer.
Result linkManaged(const Module &module, const std::vector<Variable> &managed) {
  for (const Variable &variable : managed) {
    const sim::GlobalVariable *symbol = module.code->findGlobal(variable.name);
    if (!symbol)
      continue; // no kernel uses it
    if (symbol->size < sizeof(variable.managed))
      return {hipErrorInvalidImage,
              "the symbol of managed variable " + variable.name + " has " +
                  std::to_string(symbol->size) + " bytes; a pointer needs 8"};
    std::memcpy(reinterpret_cast<void *>(symbol->address), &variable.managed,
                sizeof(variable.managed));
  }
  return hipSuccess;
}

/// The binary's module on a device, loaded if need be.
Result moduleOn(FatBinary &binary, DeviceState &device,
                std::shared_ptr<Module> &module) {
  if (!binary.refusal.empty())
    return {hipErrorInvalidImage, binary.refusal};
  std::lock_guard<std::mutex> lock(binary.mutex);
  std::shared_ptr<Module> &slot = binary.loaded[device.index];
  if (!slot) {
    std::shared_ptr<Module> fresh;
    if (Result loaded =
            loadModule(device, sim::ImageBytes::unsized(binary.image), fresh);
        !loaded.ok())
      return loaded;
    if (Result linked = linkManaged(*fresh, binary.managed); !linked.ok())
      return linked;
    slot = std::move(fresh);
  }
  module = slot;
  return hipSuccess;
}

} // namespace

Result fovea::hipsim::kernelOf(const void *hostFunction, DeviceState &device,
                               std::shared_ptr<Function> &function) {
  if (!hostFunction)
    return {hipErrorInvalidDeviceFunction, "the function is null"};
  Registered<std::string> found;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    auto it = registry().kernels.find(hostFunction);
    if (it != registry().kernels.end())
      found = it->second;
  }
  if (!found.owner) {
    auto handle =
        reinterpret_cast<hipFunction_t>(const_cast<void *>(hostFunction));
    if (findFunction(handle, function).ok())
      return hipSuccess;
    return {hipErrorInvalidDeviceFunction,
            "no kernel is registered for that host function"};
  }
  std::shared_ptr<Module> module;
  if (Result loaded = moduleOn(*found.owner, device, module); !loaded.ok())
    return loaded;
  auto it = module->functions.find(found.thing);
  if (it == module->functions.end())
    return {hipErrorInvalidDeviceFunction,
            "kernel " + found.thing + " is not in the fat binary's code for " +
                std::string(device.device->chip().target) + ", which has " +
                namesOf(module->code->kernels())};
  function = it->second;
  return hipSuccess;
}

Result fovea::hipsim::symbolOf(const void *hostVariable, DeviceState &device,
                               void *&address, uint64_t &size) {
  if (!hostVariable)
    return {hipErrorInvalidSymbol, "the symbol is null"};
  Registered<Variable> found;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    auto it = registry().variables.find(hostVariable);
    if (it != registry().variables.end()) {
      found = it->second;
    } else {
      // Clang gives the memory of a managed variable where its address is
      // taken.
      for (const auto &[place, entry] : registry().variables)
        if (entry.thing.managed &&
            entry.thing.managed == reinterpret_cast<uint64_t>(hostVariable))
          found = entry;
    }
  }
  if (!found.owner)
    return {hipErrorInvalidSymbol,
            "no device variable is registered at that address"};
  const Variable &variable = found.thing;
  size = variable.size;
  if (variable.managed) {
    address = reinterpret_cast<void *>(variable.managed);
    return hipSuccess;
  }
  std::shared_ptr<Module> module;
  if (Result loaded = moduleOn(*found.owner, device, module); !loaded.ok())
    return loaded;
  const sim::GlobalVariable *symbol = module->code->findGlobal(variable.name);
  if (!symbol)
    return {hipErrorInvalidSymbol, "variable " + variable.name +
                                       " is not in the fat binary's code, "
                                       "which has " +
                                       namesOf(module->code->globals())};
  address = reinterpret_cast<void *>(symbol->address);
  size = symbol->size;
  return hipSuccess;
}

void fovea::hipsim::unloadFatBinariesOf(int device) {
  std::vector<std::shared_ptr<FatBinary>> all;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    for (auto &[handle, binary] : registry().binaries)
      all.push_back(binary);
  }
  for (auto &binary : all) {
    std::lock_guard<std::mutex> lock(binary->mutex);
    binary->loaded.erase(device);
  }
}

//===----------------------------------------------------------------------===//
// What clang's constructors call. They cannot fail: what is wrong shows when it
// is first used.
//===----------------------------------------------------------------------===//

HIP_ENTRY void **__hipRegisterFatBinary(const void *data) {
  auto binary = std::make_shared<FatBinary>();
  if (!data) {
    binary->refusal = "__hipRegisterFatBinary: null";
  } else {
    hipFatBinaryWrapper wrapper;
    std::memcpy(&wrapper, data, sizeof(wrapper));
    if (wrapper.magic != hipFatBinaryMagic ||
        wrapper.version != hipFatBinaryVersion || !wrapper.binary)
      binary->refusal = "__hipRegisterFatBinary: magic " +
                        std::to_string(wrapper.magic) + ", version " +
                        std::to_string(wrapper.version) +
                        "; only HIP's version 1 is known";
    binary->image = wrapper.binary;
  }
  auto handle = reinterpret_cast<void **>(binary.get());
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().binaries[handle] = std::move(binary);
  return handle;
}

HIP_ENTRY void __hipUnregisterFatBinary(void **handle) {
  std::shared_ptr<FatBinary> ended = findBinary(handle);
  if (!ended)
    return;
  // Kernels in flight may still use its variables.
  for (auto &state : Runtime::get().devices())
    drain(*state);
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto forget = [&](auto &map) {
    for (auto it = map.begin(); it != map.end();)
      it = it->second.owner == ended ? map.erase(it) : std::next(it);
  };
  forget(registry().kernels);
  forget(registry().variables);
  registry().binaries.erase(handle);
  for (const Variable &variable : ended->managed)
    releaseManagedVariable(variable.managed);
}

HIP_ENTRY int __hipRegisterFunction(void **handle, const void *hostFunction,
                                    const char *, const char *deviceName,
                                    unsigned, void *, void *, void *, void *,
                                    int *) {
  if (auto binary = findBinary(handle); binary && deviceName) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().kernels[hostFunction] = {std::move(binary), deviceName};
  }
  return 0;
}

HIP_ENTRY void __hipRegisterVar(void **handle, void *hostVariable, char *,
                                const char *deviceName, int, size_t size, int,
                                int) {
  if (auto binary = findBinary(handle); binary && deviceName) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().variables[hostVariable] = {std::move(binary),
                                          {deviceName, size, 0}};
  }
}

// The host reads a managed variable through `*place`, from the start of the
// program on; without a device it keeps the initial value's own memory.
HIP_ENTRY void __hipRegisterManagedVar(void **handle, void **place,
                                       void *initial, const char *name,
                                       size_t size, unsigned align) {
  auto binary = findBinary(handle);
  if (!binary || !place || !name)
    return;
  Variable variable = {name, size, 0};
  if (Result made =
          allocateManagedVariable(size, align, initial, variable.managed);
      !made.ok()) {
    *place = initial;
    binary->refusal = "managed variable " + variable.name + ": " + made.why;
    return;
  }
  *place = reinterpret_cast<void *>(variable.managed);
  {
    std::lock_guard<std::mutex> lock(binary->mutex);
    binary->managed.push_back(variable);
  }
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().variables[place] = {std::move(binary), variable};
}

// Textures and surfaces: the simulated devices have no images, so a program
// that has one is refused when it is first used.
HIP_ENTRY void __hipRegisterTexture(void **handle, void *, char *,
                                    const char *name, int, int, int) {
  if (auto binary = findBinary(handle))
    binary->refusal = std::string("texture ") + (name ? name : "?") +
                      ": images are not simulated";
}

HIP_ENTRY void __hipRegisterSurface(void **handle, void *, char *,
                                    const char *name, int, int) {
  if (auto binary = findBinary(handle))
    binary->refusal = std::string("surface ") + (name ? name : "?") +
                      ": images are not simulated";
}

//===----------------------------------------------------------------------===//
// The configuration between `<<<...>>>` and the kernel's host function.
//===----------------------------------------------------------------------===//

namespace {
struct CallConfiguration {
  hipDim3 grid, block;
  size_t sharedBytes;
  hipStream_t stream;
};
thread_local std::vector<CallConfiguration> configurations;
} // namespace

HIP_ENTRY hipError_t __hipPushCallConfiguration(hipDim3 grid, hipDim3 block,
                                                size_t sharedBytes,
                                                hipStream_t stream) {
  return enter("__hipPushCallConfiguration", [&]() -> Result {
    configurations.push_back({grid, block, sharedBytes, stream});
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t __hipPopCallConfiguration(hipDim3 *grid, hipDim3 *block,
                                               size_t *sharedBytes,
                                               hipStream_t *stream) {
  return enter("__hipPopCallConfiguration", [&]() -> Result {
    if (configurations.empty())
      return {hipErrorMissingConfiguration,
              "a kernel is called without <<<>>>"};
    const CallConfiguration top = configurations.back();
    configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *sharedBytes = top.sharedBytes;
    *stream = top.stream;
    return hipSuccess;
  });
}

//===----------------------------------------------------------------------===//
// Symbols.
//===----------------------------------------------------------------------===//

namespace {

/// Copies to or from a symbol of the stream's device.
Result copySymbol(bool toSymbol, const void *symbol, void *other, size_t bytes,
                  size_t offset, int kind, hipStream_t stream, bool wait) {
  const int apart = toSymbol ? hipMemcpyDeviceToHost : hipMemcpyHostToDevice;
  if (kind == apart || kind == hipMemcpyHostToHost)
    return {hipErrorInvalidMemcpyDirection,
            "kind " + std::to_string(kind) +
                (toSymbol ? " does not copy to a symbol"
                          : " does not copy from a symbol")};
  DeviceState *device;
  Stream *queue;
  if (Result found = findStream(stream, device, queue); !found.ok())
    return found;
  void *address = nullptr;
  uint64_t size = 0;
  if (Result found = symbolOf(symbol, *device, address, size); !found.ok())
    return found;
  if (offset > size || bytes > size - offset)
    return {hipErrorInvalidValue, std::to_string(bytes) + " bytes at offset " +
                                      std::to_string(offset) +
                                      " of a symbol of " +
                                      std::to_string(size) + " bytes"};
  char *place = static_cast<char *>(address) + offset;
  return toSymbol ? copyMemory(place, other, bytes, kind, stream, wait)
                  : copyMemory(other, place, bytes, kind, stream, wait);
}

} // namespace

HIP_ENTRY hipError_t hipGetSymbolAddress(void **address, const void *symbol) {
  return enter("hipGetSymbolAddress", [&]() -> Result {
    uint64_t size;
    if (!address)
      return {hipErrorInvalidValue, "the result pointer is null"};
    return symbolOf(symbol, thisDevice(), *address, size);
  });
}

HIP_ENTRY hipError_t hipGetSymbolSize(size_t *size, const void *symbol) {
  return enter("hipGetSymbolSize", [&]() -> Result {
    if (!size)
      return {hipErrorInvalidValue, "the result pointer is null"};
    void *address;
    return symbolOf(symbol, thisDevice(), address, *size);
  });
}

HIP_ENTRY hipError_t hipMemcpyToSymbol(const void *symbol, const void *from,
                                       size_t bytes, size_t offset, int kind) {
  return enter("hipMemcpyToSymbol", [&] {
    return copySymbol(true, symbol, const_cast<void *>(from), bytes, offset,
                      kind, nullptr, /*wait=*/true);
  });
}

HIP_ENTRY hipError_t hipMemcpyToSymbolAsync(const void *symbol,
                                            const void *from, size_t bytes,
                                            size_t offset, int kind,
                                            hipStream_t stream) {
  return enter("hipMemcpyToSymbolAsync", [&] {
    return copySymbol(true, symbol, const_cast<void *>(from), bytes, offset,
                      kind, stream, /*wait=*/false);
  });
}

HIP_ENTRY hipError_t hipMemcpyFromSymbol(void *to, const void *symbol,
                                         size_t bytes, size_t offset,
                                         int kind) {
  return enter("hipMemcpyFromSymbol", [&] {
    return copySymbol(false, symbol, to, bytes, offset, kind, nullptr,
                      /*wait=*/true);
  });
}

HIP_ENTRY hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol,
                                              size_t bytes, size_t offset,
                                              int kind, hipStream_t stream) {
  return enter("hipMemcpyFromSymbolAsync", [&] {
    return copySymbol(false, symbol, to, bytes, offset, kind, stream,
                      /*wait=*/false);
  });
}
