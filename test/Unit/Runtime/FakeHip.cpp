//===- FakeHip.cpp - a HIP library that records and fails -----------------===//
//
// Exports the HIP functions that the runtime uses, as HIP FAKE_HIP_VERSION
// does: to 5 with the first layout of the device properties only, from 6 on
// with both; 4 has other numbers of attributes. FAKE_HIP_NO_LAUNCH leaves a
// function out. An image's payload (behind its headers) lists the kernels that
// are in it, separated by spaces.
//
//===----------------------------------------------------------------------===//

#include "FakeHip.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

using namespace fovea::test;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

FakeHipState &state() {
  static FakeHipState instance;
  return instance;
}

/// Counts a call; its error if it is the one to fail, else 0.
int enter(const char *function) {
  FakeHipState &s = state();
  ++s.calls[function];
  if (s.failFunction == function && s.failCountdown > 0 &&
      --s.failCountdown == 0)
    return s.failError;
  return 0;
}
#define ENTER(function)                                                        \
  std::lock_guard<std::mutex> lock(state().mutex);                             \
  if (int error = enter(#function))                                            \
  return error

struct Module {
  std::string payload;
  int generation; ///< resets before it was loaded
};
struct Function {
  std::string name, payload;
  int generation;
};

enum {
  kInvalidValue = 1,
  kInvalidDevice = 101,
  kInvalidHandle = 400,
  kNotFound = 500,
  kCaptureUnsupported = 900,
  kCaptureModeRelaxed = 2
};

// ROCm's two layouts of hipDeviceProp_t, up to the name of the chip.
struct PropertiesR0000 {
  char name[256];
  size_t globalBytes, sharedBytes;
  int registers, warp, maxThreads, maxDim[3], maxGrid[3];
  int clock, memoryClock, busWidth;
  size_t constBytes;
  int major, minor, units, l2, threadsOfUnit, computeMode, instructionRate;
  unsigned archFlags;
  int concurrent, pciDomain, pciBus, pciDevice;
  size_t sharedOfUnit;
  int multiBoard, mapHost, gcnArch;
  char gcnArchName[256];
};
struct PropertiesR0600 {
  char name[256];
  char uuid[16], luid[8];
  unsigned luidMask;
  size_t globalBytes, sharedBytes;
  int registers, warp;
  size_t pitch;
  int maxThreads, maxDim[3], maxGrid[3], clock;
  size_t constBytes;
  int major, minor;
  size_t textureAlignment, texturePitch;
  int overlap, units, timeout, integrated, mapHost, computeMode;
  int textures1D[3], textures2D[2 + 2 + 3 + 2], textures3D[3 + 3];
  int cubemap, layered[2 + 3 + 2], surfaces[1 + 2 + 3 + 2 + 3 + 1 + 2];
  size_t surfaceAlignment;
  int concurrent, ecc, pci[3], tcc, engines, unified, memoryClock, busWidth;
  int l2, persistingL2, threadsOfUnit, priorities, globalL1, localL1;
  size_t sharedOfUnit;
  int registersOfUnit, managed, multiBoard, boardGroup, atomics, ratio;
  int pageable, concurrentManaged, preemption, hostPointer, cooperative[2];
  size_t sharedOptin;
  int pageTables, directManaged, blocksOfUnit, accessWindow;
  size_t reservedShared;
  int hostRegister, sparse, readOnly, timeline, pools, rdma;
  unsigned rdmaFlush;
  int rdmaOrdering;
  unsigned poolHandles;
  int deferred, ipcEvents, cluster, functionPointers;
  int reserved[63], hipReserved[32];
  char gcnArchName[256];
};
// ROCm's structure has 1472 bytes, 56 of them behind the name.
static_assert(sizeof(PropertiesR0600) == 1472 - 56);

template <typename Properties>
int fill(Properties *properties, int device) {
  FakeHipState &s = state();
  if (device < 0 || size_t(device) >= s.archs.size())
    return kInvalidDevice;
  Properties filled;
  std::memset(static_cast<void *>(&filled), 0xee, sizeof(filled));
  filled.units = s.propertiesUnits.value_or(s.computeUnits);
  std::strncpy(filled.gcnArchName, s.archs[size_t(device)].c_str(), 255);
  filled.gcnArchName[255] = 0;
  auto *to = reinterpret_cast<char *>(properties);
  const auto *from = reinterpret_cast<const char *>(&filled);
  if (!s.propertiesWritten)
    return 0;
  // Up to the new field, and what comes behind it.
  const size_t grown = std::min(s.newFieldAt, sizeof(filled));
  std::memcpy(to, from, grown);
  std::memcpy(to + grown + s.newFieldBytes, from + grown,
              sizeof(filled) - grown);
  return 0;
}

} // namespace

EXPORT FakeHipState *fovea_fake_hip_state() { return &state(); }

EXPORT int hipGetDeviceCount(int *count) {
  ENTER(hipGetDeviceCount);
  *count = int(state().archs.size());
  return 0;
}
EXPORT int hipGetDevice(int *device) {
  ENTER(hipGetDevice);
  *device = state().currentDevice;
  return 0;
}
EXPORT int hipSetDevice(int device) {
  ENTER(hipSetDevice);
  if (device < 0 || size_t(device) >= state().archs.size())
    return kInvalidDevice;
  state().currentDevice = device;
  return 0;
}
EXPORT int hipStreamIsCapturing(void *stream, int *status) {
  ENTER(hipStreamIsCapturing);
  *status = stream && stream == state().capturing;
  return 0;
}
EXPORT int hipThreadExchangeStreamCaptureMode(int *mode) {
  ENTER(hipThreadExchangeStreamCaptureMode);
  std::swap(*mode, state().captureMode);
  return 0;
}
EXPORT int hipDeviceGetAttribute(int *value, int attribute, int) {
  ENTER(hipDeviceGetAttribute);
  constexpr int kCounted = FAKE_HIP_VERSION >= 5 ? 63 : 14, kPhysical = 10015;
  const int physical = state().physicalUnits;
  if (attribute != kCounted && (attribute != kPhysical || physical == 0))
    return kInvalidValue;
  *value = attribute == kCounted ? state().computeUnits : physical;
  return 0;
}
EXPORT int hipRuntimeGetVersion(int *version) {
  ENTER(hipRuntimeGetVersion);
  *version =
      state().runtimeVersion.value_or(FAKE_HIP_VERSION * 10000000 + 234567);
  return 0;
}
EXPORT int hipGetDeviceProperties(PropertiesR0000 *properties, int device) {
  ENTER(hipGetDeviceProperties);
  return fill(properties, device);
}
#if FAKE_HIP_VERSION >= 6
EXPORT int hipGetDevicePropertiesR0600(PropertiesR0600 *properties,
                                       int device) {
  ENTER(hipGetDeviceProperties);
  return fill(properties, device);
}
#endif
EXPORT int hipModuleLoadData(void **module, const void *image) {
  ENTER(hipModuleLoadData);
  if (state().capturing && state().captureMode != kCaptureModeRelaxed)
    return kCaptureUnsupported;
  const char *bytes = static_cast<const char *>(image);
  uint64_t offset, size;
  std::memcpy(&offset, bytes + 64 + 8, 8);
  std::memcpy(&size, bytes + 64 + 32, 8);
  *module = new Module{std::string(bytes + offset, size), state().resets};
  ++state().liveModules;
  if (state().resetsAfterLoads > 0) {
    --state().resetsAfterLoads;
    state().reset();
  }
  return 0;
}
EXPORT int hipModuleUnload(void *module) {
  std::lock_guard<std::mutex> lock(state().mutex);
  // Freed even when it is to say otherwise, so that leak checkers see only the
  // runtime's leaks.
  auto *known = static_cast<Module *>(module);
  const bool live = known->generation == state().resets;
  delete known;
  if (!live)
    return kInvalidHandle;
  --state().liveModules;
  return enter("hipModuleUnload");
}
EXPORT int hipModuleGetFunction(void **function, void *module,
                                const char *name) {
  ENTER(hipModuleGetFunction);
  if (static_cast<Module *>(module)->generation != state().resets)
    return kInvalidHandle;
  const std::string &payload = static_cast<Module *>(module)->payload;
  if ((" " + payload + " ").find(" " + std::string(name) + " ") ==
      std::string::npos)
    return kNotFound;
  // Kept until the process ends, as handles into a module are.
  static std::map<std::pair<void *, std::string>, Function> functions;
  Function &found = functions[{module, name}];
  found = {name, payload, state().resets};
  *function = &found;
  return 0;
}
#ifndef FAKE_HIP_NO_LAUNCH
EXPORT int hipModuleLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX,
                                 unsigned blockY, unsigned blockZ,
                                 unsigned sharedBytes, void *stream,
                                 void **kernelParams, void **extra) {
  ENTER(hipModuleLaunchKernel);
  if (state().resetCountdown > 0 && --state().resetCountdown == 0)
    state().reset();
  if (static_cast<Function *>(function)->generation != state().resets)
    return kInvalidHandle;
  if (kernelParams || !extra)
    return kInvalidValue;
  FakeLaunch launch{};
  const void *buffer = nullptr;
  for (; *extra != reinterpret_cast<void *>(3); extra += 2) {
    if (*extra == reinterpret_cast<void *>(1))
      buffer = extra[1];
    else if (*extra == reinterpret_cast<void *>(2))
      launch.argumentBytes = *static_cast<size_t *>(extra[1]);
    else
      return kInvalidValue;
  }
  if (buffer)
    launch.argumentSegment.assign(static_cast<const unsigned char *>(buffer),
                                  static_cast<const unsigned char *>(buffer) +
                                      launch.argumentBytes);
  if (buffer && launch.argumentBytes == sizeof(launch.args))
    std::memcpy(&launch.args, buffer, sizeof(launch.args));
  else if (buffer && launch.argumentBytes == sizeof(launch.backwardArgs))
    std::memcpy(&launch.backwardArgs, buffer, sizeof(launch.backwardArgs));
  else if (launch.argumentSegment.size() < sizeof(launch.args))
    return kInvalidValue;
  const auto *f = static_cast<Function *>(function);
  launch.function = f->name;
  launch.payload = f->payload;
  const unsigned sizes[] = {gridX, gridY, gridZ, blockX, blockY, blockZ};
  std::memcpy(launch.grid, sizes, sizeof(launch.grid));
  std::memcpy(launch.block, sizes + 3, sizeof(launch.block));
  launch.sharedBytes = sharedBytes;
  launch.stream = stream;
  state().launches.push_back(launch);
  return 0;
}
#endif
EXPORT const char *hipGetErrorName(int error) {
  return error == kNotFound ? "hipErrorNotFound" : "hipErrorFake";
}
EXPORT const char *hipGetErrorString(int) { return "the fake says no"; }
