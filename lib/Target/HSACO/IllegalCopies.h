//===- IllegalCopies.h - copies that no instruction does --------*- C++ -*-===//
//
// LLVM reports a copy of a vector register to a scalar one where it expands
// copies, leaves a mark in its place and goes on; the printer of objects then
// ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_ILLEGALCOPIES_H
#define FOVEA_LIB_TARGET_HSACO_ILLEGALCOPIES_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Code that has such copies is reported and printed without them: what was
/// reported makes it an error (BackendMessages::check), and nobody gets it.
void addIllegalCopies(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_ILLEGALCOPIES_H
