//===- Cost.h - what a kernel will cost to compile --------------*- C++ -*-===//
//
// An estimate from the problem alone, for the order of a build, its remaining
// time and --dry-run. Nothing depends on it but that.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_COST_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_COST_H

#include "Request.h"

namespace fovea::tools {

struct Cost {
  double cpuMs;       ///< CPU time of the compilation, milliseconds
  double storedBytes; ///< that a package grows by
  double imageBytes;  ///< of the code object
};

/// The estimate for a planned job.
Cost estimateCost(const Job &job);

/// Memory of a build that compiles `workers` kernels at a time, bytes: no more.
uint64_t memoryBound(unsigned workers);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_COST_H
