//===- Cost.cpp - what a kernel will cost to compile ----------------------===//

#include "Cost.h"

using namespace fovea;
using namespace fovea::tools;

namespace {
/// A straight line over the head dimension.
struct Line {
  double at0, slope;
  double operator()(int32_t headDim) const { return at0 + slope * headDim; }
};

struct CostRow {
  OpKind op;
  llvm::StringLiteral algorithm;
  Line cpuMs, storedBytes, imageBytes;
};
} // namespace

/// Least squares over the kernels of sdpa.json for gfx942 and gfx1100, their
/// compile_ms and images (docs/KernelLibraries.md has the machine). Chips and
/// masks differ by less than the lines are off. What a package stores is a
/// tenth of the image and the row; of a few kernels alone it is three times
/// that.
static constexpr CostRow kCosts[] = {
    {OpKind::Forward, "flash", {92, 0.70}, {1800, 1.6}, {13300, 15}},
    {OpKind::Backward, "deterministic", {178, 1.3}, {3500, 3.6}, {26900, 34}},
    {OpKind::Backward, "atomic", {209, 0.98}, {3300, 3.3}, {24900, 32}},
};

llvm::Expected<Cost> fovea::tools::estimateCost(const Job &job) {
  const llvm::StringRef algorithm = job.algorithm ? job.algorithm->name : "";
  for (const CostRow &row : kCosts) {
    if (row.op != job.problem.op || row.algorithm != algorithm)
      continue;
    const int32_t headDim = job.problem.headDim;
    return Cost{row.cpuMs(headDim), row.storedBytes(headDim),
                row.imageBytes(headDim)};
  }
  return llvm::createStringError(
      job.str() + ": no estimate of what it costs to compile operation " +
      llvm::Twine(static_cast<int>(job.problem.op)) + " by algorithm '" +
      algorithm + "'; measure it and add a row to Cost.cpp");
}

uint64_t fovea::tools::memoryBound(unsigned workers) {
  // Measured over whole chips (docs/KernelLibraries.md): below 250 MiB with one
  // or two at a time, of which 100 are the libraries of LLVM and MLIR, and more
  // while a package is packed than while it is filled.
  constexpr uint64_t kMiB = 1 << 20;
  return (200 + 60 * uint64_t(workers)) * kMiB;
}
