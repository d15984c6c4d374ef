//===- TrueLibrary.h - what a stand-in for AOTriton answers -----*- C++ -*-===//

#ifndef FOVEA_TEST_AOTRITON_TRUELIBRARY_H
#define FOVEA_TEST_AOTRITON_TRUELIBRARY_H

#include <aotriton/flash.h>

namespace aotriton {

constexpr Gpu kTrueGpu = GPU_AMD_ARCH_GFX950_MOD0; // the tests' device is none
constexpr int kTrueUnits = 77;
constexpr hipError_t kTrueStatus = hipErrorLaunchFailure;
constexpr float kFailingDropout = 0.25f;

} // namespace aotriton

#endif // FOVEA_TEST_AOTRITON_TRUELIBRARY_H
