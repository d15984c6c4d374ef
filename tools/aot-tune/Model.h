//===- Model.h - which timing model this is ---------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTTUNE_MODEL_H
#define FOVEA_TOOLS_AOTTUNE_MODEL_H

#include <string>

namespace fovea::tune {

/// Names the code that decides a prediction. Equal texts, equal predictions of
/// equal kernels.
std::string modelBuildId();

/// Empty, or why times of the chip can't be predicted.
std::string noModelOf(const std::string &target);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_MODEL_H
