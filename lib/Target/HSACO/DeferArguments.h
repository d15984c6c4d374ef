//===- DeferArguments.h - read arguments where they are used ----*- C++ -*-===//
//
// LLVM's backend reads all arguments of a kernel where it begins, so that what
// the last store alone needs, addresses and strides of the outputs, is held in
// scalar registers through the loops. Here it is read behind them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_DEFERARGUMENTS_H
#define FOVEA_LIB_TARGET_HSACO_DEFERARGUMENTS_H

#include "llvm/IR/PassManager.h"

namespace fovea::hsaco {

/// Moves what no loop needs behind the loops, and the reading of arguments with
/// it; with many scalars, what follows from arguments too (RecomputeScalars.h).
/// Comes after all passes that move code.
void addDeferArguments(llvm::FunctionPassManager &passes);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_DEFERARGUMENTS_H
