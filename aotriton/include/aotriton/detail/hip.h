//===- hip.h - the two types of HIP that the interface needs ----*- C++ -*-===//
//
// hipStream_t and hipError_t: from HIP's own headers where the program has them
// (it then defines __HIP_PLATFORM_AMD__, as they demand), else declared here,
// with the names and numbers of HIP 5 to 7, so that either kind of object file
// links with the library.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_DETAIL_HIP_H
#define FOVEA_AOTRITON_DETAIL_HIP_H

#if !defined(HIP_INCLUDE_HIP_HIP_RUNTIME_API_H) &&                             \
    defined(__HIP_PLATFORM_AMD__) && defined(__has_include)
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#endif
#endif

#ifndef HIP_INCLUDE_HIP_HIP_RUNTIME_API_H

struct ihipStream_t;
typedef struct ihipStream_t *hipStream_t;

// The statuses that the library returns. Source: AMD, "HIP API reference",
// Error codes.
typedef enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidSymbol = 13,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200,
  hipErrorNoBinaryForGpu = 209,
  hipErrorPeerAccessUnsupported = 217,
  hipErrorFileNotFound = 301,
  hipErrorSharedObjectSymbolNotFound = 302,
  hipErrorIllegalAddress = 700,
  hipErrorLaunchFailure = 719,
  hipErrorNotSupported = 801,
  hipErrorStreamCaptureUnsupported = 900,
  hipErrorUnknown = 999,
  hipErrorTbd =
      1054 // HIP's last: what HIP returns is in the enumeration's range
} hipError_t;

#endif

#endif // FOVEA_AOTRITON_DETAIL_HIP_H
