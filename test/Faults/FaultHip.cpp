//===- FaultHip.cpp - a HIP library whose calls fail on request -----------===//

#include "FaultHip.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <utility>

using fovea::test::FaultHipState;
using fovea::test::HipFault;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FaultHipState *fovea_fault_hip_state() {
  static FaultHipState instance;
  return &instance;
}

namespace {

/// Calls the library underneath.
template <typename Result = int, typename... Args>
Result handOn(const char *name, Args... args) {
  void *library = fovea_fault_hip_state()->library;
  void *address = library ? dlsym(library, name) : nullptr;
  if (!address) {
    std::fprintf(stderr, "faulthip: nobody to hand %s on to\n", name);
    std::abort();
  }
  return reinterpret_cast<Result (*)(Args...)>(address)(args...);
}

/// One call that came in.
class Call {
public:
  explicit Call(const char *name) : state(fovea_fault_hip_state()) {
    if (state->inside)
      state->inside(true);
    std::lock_guard<std::mutex> lock(state->mutex);
    state->calls.push_back(name);
    for (HipFault &fault : state->faults) {
      if (!fault.function.empty() && fault.function != name)
        continue;
      if (fault.nth > 1) {
        --fault.nth;
        continue;
      }
      if (fault.nth < 1)
        continue;
      if (!fault.forEver)
        fault.nth = 0;
      this->fault = fault;
      fails = true;
      state->failed.push_back(name);
      return;
    }
  }
  ~Call() {
    if (state->inside)
      state->inside(false);
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  FaultHipState *state;
  HipFault fault;
  bool fails = false;
};

/// A function that gives a number.
template <typename... Args>
int number(const char *name, int *result, Args... args) {
  Call call(name);
  if (!call.fails)
    return handOn(name, result, args...);
  if (call.fault.error == 0)
    *result = call.fault.value;
  return call.fault.error;
}

/// One that gives a handle.
template <typename... Args>
int handle(const char *name, void **result, Args... args) {
  Call call(name);
  if (!call.fails)
    return handOn(name, result, args...);
  if (call.fault.error == 0)
    *result = nullptr;
  return call.fault.error;
}

/// One that gives nothing that can be looked at.
template <typename... Args>
int other(const char *name, Args... args) {
  Call call(name);
  return call.fails ? call.fault.error : handOn(name, args...);
}

const char *text(const char *name, int error) {
  Call call(name);
  return call.fails ? nullptr : handOn<const char *>(name, error);
}

} // namespace

EXPORT int hipGetDeviceCount(int *count) { return number(__func__, count); }
EXPORT int hipGetDevice(int *device) { return number(__func__, device); }
EXPORT int hipSetDevice(int device) { return other(__func__, device); }
EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device) {
  return number(__func__, value, attribute, device);
}
EXPORT int hipRuntimeGetVersion(int *version) {
  return number(__func__, version);
}
EXPORT int hipGetDevicePropertiesR0600(void *properties, int device) {
  return other(__func__, properties, device);
}
EXPORT int hipGetDeviceProperties(void *properties, int device) {
  return other(__func__, properties, device);
}
EXPORT int hipStreamIsCapturing(void *stream, int *status) {
  Call call(__func__);
  if (!call.fails)
    return handOn(__func__, stream, status);
  if (call.fault.error == 0)
    *status = call.fault.value;
  return call.fault.error;
}
// What libfovea_aotriton calls itself.
EXPORT int hipStreamGetDevice(void *stream, int *device) {
  return other(__func__, stream, device);
}
EXPORT int hipMallocAsync(void **memory, size_t bytes, void *stream) {
  return handle(__func__, memory, bytes, stream);
}
EXPORT int hipFreeAsync(void *memory, void *stream) {
  return other(__func__, memory, stream);
}
EXPORT int hipMemset2DAsync(void *memory, size_t pitch, int value, size_t width,
                            size_t height, void *stream) {
  return other(__func__, memory, pitch, value, width, height, stream);
}
EXPORT int hipThreadExchangeStreamCaptureMode(int *mode) {
  // The simulated library has no such function, since it forbids nothing that
  // the mode could allow.
  static thread_local int current = 0;
  Call call(__func__);
  if (!call.fails)
    std::swap(*mode, current);
  return call.fault.error;
}
EXPORT int hipModuleLoadData(void **module, const void *image) {
  Call call(__func__);
  if (call.fails) {
    if (call.fault.error == 0)
      *module = nullptr;
    return call.fault.error;
  }
  const int error = handOn(__func__, module, image);
  int device = 0;
  if (error == 0 && handOn("hipGetDevice", &device) == 0) {
    std::lock_guard<std::mutex> lock(call.state->mutex);
    call.state->modules[*module] = device;
    call.state->everLoaded.insert(*module);
  }
  return error;
}
EXPORT int hipModuleUnload(void *module) {
  Call call(__func__);
  {
    FaultHipState &state = *call.state;
    std::lock_guard<std::mutex> lock(state.mutex);
    if (!call.fails)
      state.modules.erase(module);
    state.badUnloads += !state.everLoaded.count(module);
  }
  return call.fails ? call.fault.error : handOn(__func__, module);
}
EXPORT int hipModuleGetFunction(void **function, void *module,
                                const char *name) {
  return handle(__func__, function, module, name);
}
EXPORT int hipModuleLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX,
                                 unsigned blockY, unsigned blockZ,
                                 unsigned sharedBytes, void *stream,
                                 void **kernelParams, void **extra) {
  return other(__func__, function, gridX, gridY, gridZ, blockX, blockY, blockZ,
               sharedBytes, stream, kernelParams, extra);
}
EXPORT const char *hipGetErrorName(int error) { return text(__func__, error); }
EXPORT const char *hipGetErrorString(int error) {
  return text(__func__, error);
}
