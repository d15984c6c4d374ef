//===- Cost.cpp - what a kernel will cost to compile ----------------------===//

#include "Cost.h"
#include "fovea/Package/OperationSpec.h"

using namespace fovea;
using namespace fovea::tools;

namespace {
/// A straight line over the head dimension.
struct Line {
  double at0, slope;
  double operator()(int32_t headDim) const { return at0 + slope * headDim; }
};

/// Of kernels without what follows.
struct CostRow {
  OpKind op;
  llvm::StringLiteral algorithm;
  Line cpuMs, imageBytes;
};

/// By how much it is more with something.
struct MoreRow {
  bool (*isOf)(const ProblemKey &);
  struct {
    double cpuMs, imageBytes;
  } forward, backward;
};
} // namespace

/// Least squares of logarithms over kernels of sdpa.json for gfx942, of all
/// groups, their compile_ms and images, so that the sums are right
/// (docs/KernelLibraries.md has the machine). Chips differ by less than the
/// lines are off: by a fifth in forward passes, by a third in backward ones.
static constexpr CostRow kCosts[] = {
    {OpKind::Forward, "flash", {287, 0.95}, {17000, 21}},
    {OpKind::Forward, "split", {340, 1.1}, {20000, 25}},
    {OpKind::Backward, "deterministic", {360, 1.82}, {33600, 51}},
    {OpKind::Backward, "atomic", {370, 0.8}, {27600, 31}},
    {OpKind::DropoutMask, "philox", {72, 0}, {8150, 0}},
    {OpKind::Backward, "atomic16", {370, 0.8}, {27600, 31}},
};

/// Where scalars lack, code is generated several times, of those that cut
/// columns above all.
static constexpr MoreRow kMore[] = {
    {[](const ProblemKey &problem) { return problem.dtype == DataType::F32; },
     {1.23, 1.08},
     {1.09, 1.07}},
    {[](const ProblemKey &problem) {
       return problem.groups[spec::findGroup("dropout")] != 0;
     },
     {1.16, 1.24},
     {1.5, 1.22}},
    {[](const ProblemKey &problem) { return problem.cutsColumns(); },
     {1.43, 1.26},
     {2.14, 1.28}},
    {[](const ProblemKey &problem) { return problem.score != 0; },
     {1.11, 1.06},
     {1.24, 1.09}},
    {[](const ProblemKey &problem) { return problem.scoreGradients != 0; },
     {1, 1},
     {1.35, 1.08}},
};

/// Of an image, with its row, as packed beside the others of a library; of a
/// few kernels alone it is twice that.
static constexpr double kStoredShare = 0.21;

llvm::Expected<Cost> fovea::tools::estimateCost(const Job &job) {
  const llvm::StringRef algorithm = job.algorithm ? job.algorithm->name : "";
  for (const CostRow &row : kCosts) {
    if (row.op != job.problem.op || row.algorithm != algorithm)
      continue;
    const int32_t headDim = (job.problem.headDim + job.problem.dimOfV()) / 2;
    double cpuMs = row.cpuMs(headDim), imageBytes = row.imageBytes(headDim);
    for (const MoreRow &more : kMore) {
      if (!more.isOf(job.problem))
        continue;
      const auto &times =
          row.op == OpKind::Backward ? more.backward : more.forward;
      cpuMs *= times.cpuMs;
      imageBytes *= times.imageBytes;
    }
    return Cost{cpuMs, imageBytes * kStoredShare, imageBytes};
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
