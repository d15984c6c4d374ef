//===- Cost.cpp - what a kernel will cost to compile ----------------------===//

#include "Cost.h"
#include <algorithm>

using namespace fovea;
using namespace fovea::tools;

namespace {
/// A straight line over the head dimension.
struct Line {
  double at0, slope;
  double operator()(int32_t headDim) const { return at0 + slope * headDim; }
};

struct CostRow {
  Operation op;
  llvm::StringLiteral algorithm; ///< of backward
  Line cpuMs, storedBytes, imageBytes;
};
} // namespace

/// Least squares over the kernels of sdpa.json for gfx942 and gfx1100, their
/// compile_ms and images (docs/KernelLibraries.md has the machine). Chips and
/// masks differ by less than the lines are off.
static constexpr CostRow kCosts[] = {
    {Operation::Forward, "", {130, 0.64}, {7300, 7}, {13300, 15}},
    {Operation::Backward,
     "deterministic",
     {165, 1.5},
     {11400, 12},
     {26900, 34}},
    {Operation::Backward, "atomic", {235, 0.8}, {9700, 14}, {24900, 32}},
};

Cost fovea::tools::estimateCost(const Job &job) {
  const CostRow *row = std::find_if(
      std::begin(kCosts), std::end(kCosts), [&](const CostRow &row) {
        return row.op == job.problem.op &&
               (!job.algorithm || row.algorithm == job.algorithm->name);
      });
  const int32_t headDim = job.problem.headDim;
  return {row->cpuMs(headDim), row->storedBytes(headDim),
          row->imageBytes(headDim)};
}

uint64_t fovea::tools::memoryBound(unsigned workers) {
  // Measured over whole chips (docs/KernelLibraries.md): 170 MiB with one at a
  // time and 205 with two; most of it are the libraries of LLVM and MLIR.
  constexpr uint64_t kMiB = 1 << 20;
  return (140 + 60 * uint64_t(workers)) * kMiB;
}
