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
/// compile_ms and images (docs/KernelLibraries.md has the machine). Chips
/// differ by less than the lines are off. What a package stores is a sixth of
/// the image and the row; of a few kernels alone it is twice that.
static constexpr CostRow kCosts[] = {
    {OpKind::Forward, "flash", {210, 1.7}, {2900, 2.5}, {17800, 14}},
    {OpKind::Forward, "split", {250, 1.8}, {3300, 3.1}, {20800, 17}},
    {OpKind::Backward, "deterministic", {480, 1.9}, {5600, 5.7}, {30500, 39}},
    {OpKind::Backward, "atomic", {270, 1.7}, {5200, 5.2}, {26200, 30}},
    {OpKind::DropoutMask, "philox", {100, 0}, {1800, 0}, {7000, 0}},
    {OpKind::Backward, "atomic16", {270, 1.7}, {5200, 5.2}, {26200, 30}},
};

llvm::Expected<Cost> fovea::tools::estimateCost(const Job &job) {
  const llvm::StringRef algorithm = job.algorithm ? job.algorithm->name : "";
  for (const CostRow &row : kCosts) {
    if (row.op != job.problem.op || row.algorithm != algorithm)
      continue;
    const int32_t headDim =
        (job.problem.headDim + job.problem.dimOfV()) / 2;
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
