//===- SumRegisters.h - sums of products in accumulators --------*- C++ -*-===//
//
// LLVM selects one form of the matrix instructions for all of a function: of
// those with results in vector registers or in accumulation registers. A kernel
// whose sums fill the latter wants both: sums that a loop carries there, and
// results that vector instructions use where these find them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_SUMREGISTERS_H
#define FOVEA_LIB_TARGET_HSACO_SUMREGISTERS_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Of functions with fovea::kCarriedSumsAttrName, which have the matrix
/// instructions with results in vector registers.
void addSumRegisters(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_SUMREGISTERS_H
