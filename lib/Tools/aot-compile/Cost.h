//===- Cost.h - what a kernel will cost to compile --------------*- C++ -*-===//
//
// An estimate from the problem alone, for the order of a build, its remaining
// time and --dry-run. Nothing depends on it but that.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_COST_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_COST_H

#include "Request.h"
#include "llvm/Support/Error.h"

namespace fovea::tools {

/// The estimate for a job whose algorithm is known. Fails for an operation or
/// an algorithm that was never measured.
llvm::Expected<Cost> estimateCost(const Job &job);

/// Memory of a build that compiles `workers` kernels at a time, bytes: no more.
uint64_t memoryBound(unsigned workers);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_COST_H
