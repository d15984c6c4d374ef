//===- RecomputeAtUses.h - scalars where they are used ----------*- C++ -*-===//
//
// LLVM's register allocator knows one remedy for scalars that do not fit the
// registers: lanes of vector registers. Most of them are a few instructions
// away from others that are there anyway, or from a kernel's arguments. Here
// they are worked out again where they are used, when the order of all
// instructions is known, so that nothing moves them back.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_RECOMPUTEATUSES_H
#define FOVEA_LIB_TARGET_HSACO_RECOMPUTEATUSES_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Of functions with kRecomputedAtUsesAttrName, whose value is how many scalar
/// registers are to be left: where more are alive than the others, what costs
/// least is worked out again behind that place, until they fit.
void addRecomputeAtUses(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_RECOMPUTEATUSES_H
