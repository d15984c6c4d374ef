//===- ScalarPhis.h - carry vectors of one element as scalars ---*- C++ -*-===//
//
// A row's maximum or sum is a vector of one element where a lane has one row.
// Loops that carry it take the element out in their body and behind them, and
// LLVM's elimination of partial redundancies makes a block for it on the way
// past the loop. The branch around the loop then no longer skips one region,
// and the backend holds the accumulators twice.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_SCALARPHIS_H
#define FOVEA_LIB_TARGET_HSACO_SCALARPHIS_H

#include "llvm/IR/PassManager.h"

namespace fovea::hsaco {

/// Makes phis of vectors of one element phis of the element. Comes before the
/// passes that fold extracting what has just been inserted.
void addScalarPhis(llvm::FunctionPassManager &passes);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_SCALARPHIS_H
