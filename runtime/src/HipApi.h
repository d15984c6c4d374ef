//===- HipApi.h - the functions used of a HIP library -----------*- C++ -*-===//
//
// The runtime's whole contact with HIP: one table of functions, filled at run
// time, and the few constants of HIP's ABI that go with them. HIP's headers are
// not used, so that one binary serves ROCm 5, 6 and 7 and the simulated device.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_HIPAPI_H
#define FOVEA_RUNTIME_SRC_HIPAPI_H

#include "fovea/Package/Keys.h"

#include "Result.h"

#include <string>
#include <vector>

namespace fovea::rt {

using HipError = int; ///< hipError_t; 0 is success
inline constexpr HipError kHipErrorInvalidValue = 1;
inline constexpr HipError kHipErrorNoDevice = 100;
/// A module or function that the device does not know: hipErrorInvalidHandle.
inline constexpr HipError kHipErrorInvalidHandle = 400;
inline constexpr HipError kHipErrorNotFound = 500;
inline constexpr HipError kHipErrorUnknown = 999;
using HipModule = void *;
using HipFunction = void *;
using HipStream = void *;

// Values of HIP's ABI, the same in HIP 5, 6 and 7. In HIP 4 the attributes had
// other numbers (this one 14), which is why HIP 4 is refused.
inline constexpr int kHipAttributeMultiprocessorCount = 63;
inline constexpr int kHipAttributePhysicalMultiProcessorCount = 10015;
inline constexpr int kHipStreamCaptureStatusNone = 0;
inline constexpr int kHipStreamCaptureModeRelaxed = 2;
inline constexpr uintptr_t kHipLaunchParamBufferPointer = 1;
inline constexpr uintptr_t kHipLaunchParamBufferSize = 2;
inline constexpr uintptr_t kHipLaunchParamEnd = 3;

/// The functions that every HIP library must have: name, parameters.
#define FOVEA_HIP_FUNCTIONS(X)                                                 \
  X(hipGetDeviceCount, (int *count))                                           \
  X(hipGetDevice, (int *device))                                               \
  X(hipSetDevice, (int device))                                                \
  X(hipDeviceGetAttribute, (int *value, int attribute, int device))            \
  X(hipRuntimeGetVersion, (int *version))                                      \
  X(hipModuleLoadData, (HipModule * module, const void *image))                \
  X(hipModuleUnload, (HipModule module))                                       \
  X(hipModuleGetFunction,                                                      \
    (HipFunction * function, HipModule module, const char *name))              \
  X(hipStreamIsCapturing, (HipStream stream, int *status))                     \
  X(hipModuleLaunchKernel,                                                     \
    (HipFunction function, unsigned gridX, unsigned gridY, unsigned gridZ,     \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     HipStream stream, void **kernelParams, void **extra))

/// Where a hipDeviceProp_t holds what is read of it, in bytes, and the function
/// that fills one so.
struct PropertiesLayout {
  const char *symbol;
  size_t archName;            ///< gcnArchName, 256 characters
  size_t multiProcessorCount; ///< int; what the attribute says, too
};

/// An opened HIP library.
struct HipApi {
#define FOVEA_HIP_MEMBER(name, parameters) HipError(*name) parameters = nullptr;
  FOVEA_HIP_FUNCTIONS(FOVEA_HIP_MEMBER)
#undef FOVEA_HIP_MEMBER
  /// Lets the calling thread make calls that a capture in another stream or
  /// thread forbids; `mode` receives the mode before. Null where a library
  /// lacks it, which then forbids nothing of what is done here.
  HipError (*hipThreadExchangeStreamCaptureMode)(int *mode) = nullptr;
  const char *(*hipGetErrorName)(HipError) = nullptr;
  const char *(*hipGetErrorString)(HipError) = nullptr;

  /// What the simulated library has to say of itself: why it has no device.
  /// Null in every other.
  const char *(*fovea_sim_describe)() = nullptr;

  /// HIP 6 gave hipDeviceProp_t a new layout under a new symbol; the old symbol
  /// keeps the old layout for ever. Whichever is there is used.
  HipError (*getProperties)(void *properties, int device) = nullptr;
  const PropertiesLayout *layout = nullptr; ///< of what it writes

  void *handle = nullptr; ///< of dlopen; never closed
  int32_t kind = 0;       ///< FOVEA_HIP_...
  std::string path;
  std::string reason;
  int32_t runtimeVersion = 0; ///< 0: the library does not tell
  int32_t deviceCount = 0;
  /// "<name()> has no device: <why>"; empty when there is one.
  std::string whyNoDevice;

  /// "/opt/rocm/lib/libamdhip64.so.6 (HIP 6.3.42131)", for messages.
  std::string name() const;

  /// HIP_ERROR "<what>: <call> failed: hipErrorX (n): text; <what to do>".
  Result failure(const std::string &what, const char *call,
                 HipError error) const;
  /// HIP_ERROR for a call that succeeded and gave what can't be:
  /// "<what>: <call> returned hipSuccess and <gave>; <what to do>".
  Result nonsense(const std::string &what, const char *call,
                  const std::string &gave) const;

  /// The calling thread's current device, which is one of the library's.
  Result currentDevice(int32_t &number) const;
  /// The same of what hipGetDevice has returned and given.
  Result checkCurrent(HipError error, int32_t number) const;

  /// Chip and number of compute units of a device. HIP_ERROR, or INCOMPATIBLE
  /// where the library's hipDeviceProp_t is none that is known.
  Result readDevice(int device, TargetId &target, int &computeUnits) const;
};

/// "HIP 5.2.21153" of what hipRuntimeGetVersion says.
std::string hipVersionText(int32_t version);

/// Opens the HIP library that `choice` asks for ("rocm", "sim", "auto" or a
/// path). NO_DEVICE, INCOMPATIBLE or HIP_ERROR with everything that was tried.
/// A library without devices is no failure where it was asked for.
Result openHip(const std::string &choice, HipApi &api);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_HIPAPI_H
