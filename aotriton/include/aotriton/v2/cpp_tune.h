//===- cpp_tune.h - where 0.12 keeps CppTune --------------------*- C++ -*-===//

#ifndef FOVEA_AOTRITON_V2_CPP_TUNE_H
#define FOVEA_AOTRITON_V2_CPP_TUNE_H

#include <aotriton/cpp_tune.h>

#endif // FOVEA_AOTRITON_V2_CPP_TUNE_H
