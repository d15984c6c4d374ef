//===- Errors.cpp - names and texts of HIP's status codes -----------------===//
//
// One row a code: every code of HIP 6, since a program may ask for any.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

namespace {

struct ErrorRow {
  int code;
  const char *name;
  const char *text;
};

constexpr ErrorRow kErrors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {4, "hipErrorDeinitialized", "the runtime is shutting down"},
    {5, "hipErrorProfilerDisabled", "profiler disabled"},
    {6, "hipErrorProfilerNotInitialized", "profiler not initialized"},
    {7, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {8, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "hipErrorInvalidPitchValue", "invalid pitch"},
    {13, "hipErrorInvalidSymbol", "invalid device symbol"},
    {17, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "hipErrorInvalidMemcpyDirection", "invalid direction of a copy"},
    {35, "hipErrorInsufficientDriver", "the driver is too old for the runtime"},
    {52, "hipErrorMissingConfiguration", "launch without a configuration"},
    {53, "hipErrorPriorLaunchFailure", "a prior launch failed"},
    {98, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {100, "hipErrorNoDevice", "no device was found"},
    {101, "hipErrorInvalidDevice", "invalid device number"},
    {200, "hipErrorInvalidImage", "invalid code object"},
    {201, "hipErrorInvalidContext", "invalid context"},
    {202, "hipErrorContextAlreadyCurrent", "context is current already"},
    {205, "hipErrorMapFailed", "mapping failed"},
    {206, "hipErrorUnmapFailed", "unmapping failed"},
    {207, "hipErrorArrayIsMapped", "array is mapped"},
    {208, "hipErrorAlreadyMapped", "already mapped"},
    {209, "hipErrorNoBinaryForGpu", "no code object for this device"},
    {210, "hipErrorAlreadyAcquired", "already acquired"},
    {211, "hipErrorNotMapped", "not mapped"},
    {212, "hipErrorNotMappedAsArray", "not mapped as an array"},
    {213, "hipErrorNotMappedAsPointer", "not mapped as a pointer"},
    {214, "hipErrorECCNotCorrectable", "uncorrectable ECC error"},
    {215, "hipErrorUnsupportedLimit", "limit not supported"},
    {216, "hipErrorContextAlreadyInUse", "context in use by another thread"},
    {217, "hipErrorPeerAccessUnsupported", "peer access not supported"},
    {218, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {219, "hipErrorInvalidGraphicsContext", "invalid graphics context"},
    {300, "hipErrorInvalidSource", "invalid source"},
    {301, "hipErrorFileNotFound", "file not found"},
    {302, "hipErrorSharedObjectSymbolNotFound",
     "symbol not found in a shared object"},
    {303, "hipErrorSharedObjectInitFailed",
     "a shared object failed to initialize"},
    {304, "hipErrorOperatingSystem", "a call of the operating system failed"},
    {400, "hipErrorInvalidHandle", "invalid handle"},
    {401, "hipErrorIllegalState", "not possible in this state"},
    {500, "hipErrorNotFound", "name not found"},
    {600, "hipErrorNotReady", "not ready yet"},
    {700, "hipErrorIllegalAddress", "illegal memory access"},
    {701, "hipErrorLaunchOutOfResources", "launch asks for too many resources"},
    {702, "hipErrorLaunchTimeOut", "the launch timed out and was stopped"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "peer access is enabled already"},
    {705, "hipErrorPeerAccessNotEnabled", "peer access is not enabled"},
    {708, "hipErrorSetOnActiveProcess",
     "not possible while the device is active"},
    {709, "hipErrorContextIsDestroyed", "context or stream is destroyed"},
    {710, "hipErrorAssert", "a kernel's assertion failed"},
    {712, "hipErrorHostMemoryAlreadyRegistered",
     "host memory is registered already"},
    {713, "hipErrorHostMemoryNotRegistered", "host memory is not registered"},
    {719, "hipErrorLaunchFailure", "a kernel failed while it ran"},
    {720, "hipErrorCooperativeLaunchTooLarge",
     "cooperative launch has too many blocks"},
    {801, "hipErrorNotSupported", "not supported"},
    {900, "hipErrorStreamCaptureUnsupported",
     "not permitted while a stream is captured"},
    {901, "hipErrorStreamCaptureInvalidated", "the capture failed before"},
    {902, "hipErrorStreamCaptureMerge", "would merge two captures"},
    {903, "hipErrorStreamCaptureUnmatched", "capture ended in another stream"},
    {904, "hipErrorStreamCaptureUnjoined", "captured work was not joined"},
    {905, "hipErrorStreamCaptureIsolation",
     "would depend on work outside the capture"},
    {906, "hipErrorStreamCaptureImplicit",
     "would make the null stream depend on a capture"},
    {907, "hipErrorCapturedEvent", "event was recorded in a capture"},
    {908, "hipErrorStreamCaptureWrongThread",
     "capture belongs to another thread"},
    {910, "hipErrorGraphExecUpdateFailure", "graph could not be updated"},
    {999, "hipErrorUnknown", "unknown error"},
    {1052, "hipErrorRuntimeMemory", "a memory call of the runtime failed"},
    {1053, "hipErrorRuntimeOther", "a call of the runtime failed"},
};

const ErrorRow *find(hipError_t code) {
  for (const ErrorRow &row : kErrors)
    if (row.code == int(code))
      return &row;
  return nullptr;
}

} // namespace

HIP_ENTRY const char *hipGetErrorName(hipError_t code) {
  const ErrorRow *row = find(code);
  return row ? row->name : "hipErrorUnknown";
}

HIP_ENTRY const char *hipGetErrorString(hipError_t code) {
  const ErrorRow *row = find(code);
  return row ? row->text : "unknown error";
}

HIP_ENTRY hipError_t hipDrvGetErrorName(hipError_t code, const char **name) {
  const ErrorRow *row = find(code);
  if (!row || !name)
    return hipErrorInvalidValue;
  *name = row->name;
  return hipSuccess;
}

HIP_ENTRY hipError_t hipDrvGetErrorString(hipError_t code, const char **text) {
  const ErrorRow *row = find(code);
  if (!row || !text)
    return hipErrorInvalidValue;
  *text = row->text;
  return hipSuccess;
}
