//===- Cost.cpp - what a kernel will cost to compile ----------------------===//

#include "Cost.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/STLExtras.h"

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
  bool (*isOf)(const Job &);
  struct {
    double cpuMs, imageBytes;
  } forward, backward;
};
} // namespace

/// Least squares of logarithms over half of sdpa.json's kernels for gfx942, as
/// many of each head dimension, their compile_ms and images, so that the sums
/// are right (docs/KernelLibraries.md has the machine). Of a kernel the lines
/// are off by a third. Other chips are taken to cost as much, but for fp32
/// without matrix instructions, which is fitted to sdpa.json's on gfx1100 and
/// gfx1201.
static constexpr CostRow kCosts[] = {
    {OpKind::Forward, "flash", {225, 1.47}, {16200, 33}},
    {OpKind::Forward, "split", {270, 1.75}, {19400, 40}},
    {OpKind::Backward, "deterministic", {421, 1.34}, {39300, 35}},
    {OpKind::Backward, "atomic", {480, 0.1}, {35000, 5}},
    {OpKind::DropoutMask, "philox", {72, 0}, {8100, 0}},
    {OpKind::Backward, "atomic16", {480, 0.1}, {35000, 5}},
};

/// Whether products are of vector instructions, one for each of their terms.
static bool multipliesByLanes(const Job &job) {
  return job.problem.dtype == DataType::F32 &&
         llvm::none_of(target::allMatrixInstrs(),
                       [&](const target::MatrixInstr &inst) {
                         return inst.type == target::ElementType::F32 &&
                                inst.family != target::MatrixFamily::Lanes &&
                                job.target->has(inst.feature);
                       });
}

/// Where scalars lack, code is generated several times, of those with dropout
/// or columns to cut above all.
static constexpr MoreRow kMore[] = {
    {[](const Job &job) { return job.problem.dtype == DataType::F32; },
     {1.11, 1.03},
     {0.92, 0.95}},
    {multipliesByLanes, {2.75, 2.52}, {2.94, 2.34}},
    {[](const Job &job) {
       return job.problem.groups[spec::findGroup("dropout")] != 0;
     },
     {1.17, 1.21},
     {1.64, 1.23}},
    {[](const Job &job) { return job.problem.cutsColumns(); },
     {1.39, 1.23},
     {1.54, 1.18}},
    {[](const Job &job) { return job.problem.score != 0; },
     {1.12, 1.11},
     {1.17, 1.09}},
    {[](const Job &job) { return job.problem.scoreGradients != 0; },
     {1, 1},
     {1.4, 1.09}},
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
      if (!more.isOf(job))
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
