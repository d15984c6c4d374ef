//===- RecomputeLanes.h - what a lane knows of itself -----------*- C++ -*-===//
//
// Rows and columns that a lane has are worked out once, where a kernel begins,
// and LLVM holds those that come after a loop in vector registers through it.
// They follow from the lane's number in a few instructions: where a kernel's
// loops take all registers, they are worked out again behind the loop, and in
// loops that mask, which take a small part of the time.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_RECOMPUTELANES_H
#define FOVEA_LIB_TARGET_HSACO_RECOMPUTELANES_H

#include "llvm/IR/PassManager.h"

namespace fovea::hsaco {

/// Of functions with fovea::kRecomputedLanesAttrName.
void addRecomputeLanes(llvm::FunctionPassManager &passes);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_RECOMPUTELANES_H
