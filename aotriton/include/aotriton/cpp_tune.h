//===- cpp_tune.h - control of kernels while tuning -------------*- C++ -*-===//
//
// Builds of AOTriton for its tuning tools have fields here by which a caller
// picks kernels. Others, and this library, have none.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_CPP_TUNE_H
#define FOVEA_AOTRITON_CPP_TUNE_H

#include <aotriton/config.h>

#if AOTRITON_VERSION_MINOR < 13

namespace AOTRITON_NS::v2 {

struct AOTRITON_API CppTune {};

enum AOTRITON_API CppTuneSpecialKernelIndex : int {
  kDefault = -1,
  kSkipGPUCall = -2,
};

} // namespace AOTRITON_NS::v2

#endif

#endif // FOVEA_AOTRITON_CPP_TUNE_H
