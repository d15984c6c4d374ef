//===- EmptyHip.cpp - a HIP library that does nothing ---------------------===//

#include "EmptyHip.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <string>

using namespace fovea::test;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum {
  kInvalidValue = 1,
  kInvalidDevice = 101,
  kInvalidHandle = 400,
  kMultiprocessorCount = 63
};
// HIP 6's hipDeviceProp_t: its size, and where multiProcessorCount and
// gcnArchName are in it.
constexpr size_t kPropertiesBytes = 1472, kUnits = 388, kArchName = 1160;

struct Module;
struct Function {
  const Module *module;
  std::string name;
};
struct Module {
  int device;
  uint32_t epoch;
  std::deque<Function> functions;
};

/// Counts each device's resets, which end its modules.
std::atomic<uint32_t> epochs[kEmptyHipDevices];
std::mutex modulesMutex; // guards all modules
/// What a reset has ended stays, as handles that are known to be of no use.
std::list<Module> &modules() {
  static auto *list = new std::list<Module>;
  return *list;
}

thread_local int currentDevice = 0;
thread_local EmptyHipThread note;

bool isDevice(int device) { return device >= 0 && device < kEmptyHipDevices; }

} // namespace

EXPORT EmptyHipThread *fovea_empty_hip_thread() { return &note; }

EXPORT int hipGetDeviceCount(int *count) {
  *count = kEmptyHipDevices;
  return 0;
}
EXPORT int hipGetDevice(int *device) {
  *device = currentDevice;
  return 0;
}
EXPORT int hipSetDevice(int device) {
  if (!isDevice(device))
    return kInvalidDevice;
  currentDevice = device;
  return 0;
}
EXPORT int hipDeviceReset() {
  epochs[currentDevice].fetch_add(1);
  return 0;
}
EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device) {
  if (attribute != kMultiprocessorCount || !isDevice(device))
    return kInvalidValue;
  *value = kEmptyHipUnits;
  return 0;
}
EXPORT int hipRuntimeGetVersion(int *version) {
  *version = 60000000;
  return 0;
}
EXPORT int hipGetDevicePropertiesR0600(void *properties, int device) {
  if (!isDevice(device))
    return kInvalidDevice;
  auto *bytes = static_cast<char *>(properties);
  std::memset(bytes, 0, kPropertiesBytes);
  std::memcpy(bytes + kUnits, &kEmptyHipUnits, sizeof(kEmptyHipUnits));
  std::strcpy(bytes + kArchName, kEmptyHipArch);
  return 0;
}
EXPORT int hipStreamIsCapturing(void *, int *status) {
  *status = 0;
  return 0;
}
// No launch touches it.
EXPORT int hipMallocAsync(void **memory, size_t, void *) {
  static char anywhere alignas(256);
  *memory = &anywhere;
  return 0;
}
EXPORT int hipFreeAsync(void *, void *) { return 0; }
EXPORT int hipModuleLoadData(void **module, const void *) {
  std::lock_guard<std::mutex> lock(modulesMutex);
  *module = &modules().emplace_back(
      Module{currentDevice, epochs[currentDevice].load(), {}});
  return 0;
}
EXPORT int hipModuleUnload(void *module) {
  std::lock_guard<std::mutex> lock(modulesMutex);
  auto *m = static_cast<Module *>(module);
  if (m->epoch != epochs[m->device].load())
    return kInvalidHandle; // other threads may still try its functions
  modules().remove_if([&](const Module &m) { return &m == module; });
  return 0;
}
EXPORT int hipModuleGetFunction(void **function, void *module,
                                const char *name) {
  std::lock_guard<std::mutex> lock(modulesMutex);
  auto *m = static_cast<Module *>(module);
  if (m->epoch != epochs[m->device].load())
    return kInvalidHandle;
  *function = &m->functions.emplace_back(Function{m, name});
  return 0;
}
EXPORT int hipModuleLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX,
                                 unsigned blockY, unsigned blockZ,
                                 unsigned sharedBytes, void *stream, void **,
                                 void **extra) {
  const auto *f = static_cast<const Function *>(function);
  if (f->module->device != currentDevice ||
      f->module->epoch != epochs[currentDevice].load(std::memory_order_relaxed))
    return kInvalidHandle;
  // {1: buffer, its address, 2: size, its address, 3: end}
  const size_t bytes = *static_cast<const size_t *>(extra[3]);
  if (bytes > sizeof(note.arguments))
    return kInvalidValue;
  note.device = currentDevice;
  note.grid[0] = gridX;
  note.grid[1] = gridY;
  note.grid[2] = gridZ;
  note.block[0] = blockX;
  note.block[1] = blockY;
  note.block[2] = blockZ;
  note.sharedBytes = sharedBytes;
  note.stream = stream;
  note.function = f->name.c_str();
  note.argumentBytes = bytes;
  std::memcpy(note.arguments, extra[1], bytes);
  ++note.launches;
  return 0;
}
EXPORT const char *hipGetErrorName(int error) {
  return error == 0 ? "hipSuccess" : "hipErrorOfNothing";
}
EXPORT const char *hipGetErrorString(int) { return ""; }
