//===- HeadDimsTest.cpp - rows of fewer elements than columns -------------===//
//
// Kernels of the group `head_dims` on simulated devices, against the oracle.
// What lies between rows is NaN, so that a column too many is seen, outputs
// have canaries there, and nothing lies behind the last row of a tensor. Every
// kernel takes any window besides, some other groups. And kernels whose rows of
// V have other numbers of columns than those of Q, with the group or without.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

struct Row {
  int64_t dim, dimV; ///< 0: as the kernel's
  reference::Layout layout = reference::Layout::BHSD;
  int64_t padding = 0;
  const char *sequences = nullptr;
};
const Row kRows[] = {
    {0, 0},
    {37, 24, reference::Layout::BSHD},
    {1, 1, reference::Layout::BHSD, 1},
    {5, 0, reference::Layout::BHSD, 1},
    {37, 29},
    {9, 39, reference::Layout::BHSD, 2},
    // Of which a word may be no row's alone.
    {7, 7},
    {3, 11, reference::Layout::BSHD, 2},
    {15, 1},
    {0, 3, reference::Layout::BHSD, 5},
    {40, 12, reference::Layout::BSHD, 2},
    {67, 89},
    {89, 67, reference::Layout::BSHD},
    {203, 179},
    {24, 0, reference::Layout::BHSD, 0, "packed:30x41,0,65x20,3x3"},
};

class HeadDimsTest : public GroupKernelTest {
protected:
  run::ForwardCase caseOf(const Row &row, bool isBackward = false) {
    run::ForwardCase c =
        makeCase(2, 70, 133, reference::Mask::CausalBottomRight);
    c.headDim = row.dim ? row.dim : kernel().headDim;
    c.headDimV = row.dimV ? row.dimV : kernel().dimOfV();
    c.layout = row.layout;
    c.rowPadding = row.padding;
    fill(c, row.sequences, isBackward);
    if (kernel().has("dropout"))
      c.dropout = dropoutOf(c, 0.3f, 3, 1000);
    return c;
  }
  bool takes(const Row &row) const {
    auto reads = [&](int64_t dim, int64_t columns) {
      const bool lacksWords = dim < 8 && dim % 2 && row.padding % 2 == 0;
      return dim <= columns && (!lacksWords || columns <= 16);
    };
    return reads(row.dim, kernel().headDim) &&
           reads(row.dimV, kernel().dimOfV()) &&
           (!row.sequences || kernel().has("varlen"));
  }
};

class ForwardHeadDims : public HeadDimsTest {};
class BackwardHeadDims : public HeadDimsTest {};
class ForwardDimsOfV : public HeadDimsTest {};
class BackwardDimsOfV : public HeadDimsTest {};

} // namespace

TEST_P(ForwardHeadDims, AgreeWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows)
    if (takes(row))
      expectPass(caseOf(row));
}

TEST_P(BackwardHeadDims, AgreeWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows)
    if (takes(row)) {
      run::BackwardCase c;
      c.forward = caseOf(row, /*isBackward=*/true);
      expectPass(c);
    }
}

/// V's columns are others than Q's, without the group too.
TEST_P(ForwardDimsOfV, AgreeWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  expectPass(caseOf({0, 0}));
  expectPass(caseOf({0, 0, reference::Layout::BSHD, 3}));
}

TEST_P(BackwardDimsOfV, AgreeWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : {Row{0, 0}, Row{0, 0, reference::Layout::BSHD, 3}}) {
    run::BackwardCase c;
    c.forward = caseOf(row, /*isBackward=*/true);
    expectPass(c);
  }
}

/// More than the kernel has columns.
TEST_P(ForwardHeadDims, AreRefused) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  run::ForwardCase c = caseOf(kRows[0]);
  c.headDimV = kernel().dimOfV() + 1;
  const run::RunReport report = session->run(c, options);
  EXPECT_EQ(report.outcome, run::Outcome::Refused) << report.message;
  EXPECT_NE(report.message.find("rows of " + std::to_string(c.headDim) +
                                " and, of V, " + std::to_string(c.headDimV)),
            std::string::npos)
      << report.message;
}

static const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"head_dims"}},
    {"gfx1100Wide", "gfx1100", "bf16", 80, {}, {"head_dims"}},
    {"gfx908Fp16", "gfx908", "f16", 40, {}, {"head_dims", "varlen"}},
    {"gfx950", "gfx950", "f16", 128, {}, {"head_dims", "varlen", "dropout"}},
    {"gfx90aSplit",
     "gfx90a",
     "bf16",
     64,
     {{"algorithm", "split"}},
     {"head_dims"}},
    {"gfx942Few", "gfx942", "f16", 16, {}, {"head_dims", "varlen"}},
    {"gfx1201Wide", "gfx1201", "bf16", 192, {}, {"head_dims", "sinks"}},
};
static const GroupKernel kForwardInFull[] = {
    {"gfx942Wide", "gfx942", "bf16", 96, {}, {"head_dims"}},
    {"gfx90aWide", "gfx90a", "f16", 224, {}, {"head_dims"}},
    {"gfx1100", "gfx1100", "f16", 64, {}, {"head_dims", "varlen"}},
    {"gfx1201", "gfx1201", "bf16", 8, {}, {"head_dims"}},
    {"gfx1100Few", "gfx1100", "bf16", 16, {}, {"head_dims"}},
    {"gfx1201Fp32", "gfx1201", "f32", 264, {}, {"head_dims"}},
    {"gfx942OfV", "gfx942", "f16", 128, {}, {"head_dims"}, "", 64},
};
static const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"head_dims", "varlen", "dropout"}},
    {"gfx942Atomic",
     "gfx942",
     "f16",
     128,
     {{"algorithm", "atomic"}},
     {"head_dims"}},
    {"gfx1201Few", "gfx1201", "f16", 16, {}, {"head_dims", "varlen"}},
    {"gfx1100", "gfx1100", "bf16", 40, {}, {"head_dims"}},
    {"gfx90aOfV", "gfx90a", "bf16", 40, {}, {"head_dims"}, "", 96},
};
static const GroupKernel kBackwardInFull[] = {
    {"gfx950Atomic16",
     "gfx950",
     "bf16",
     64,
     {{"algorithm", "atomic16"}},
     {"head_dims"}},
    {"gfx942Fp32", "gfx942", "f32", 264, {}, {"head_dims", "varlen"}},
    {"gfx908", "gfx908", "bf16", 96, {}, {"head_dims"}},
    {"gfx942Few", "gfx942", "bf16", 16, {}, {"head_dims"}},
    {"gfx1201", "gfx1201", "f16", 64, {}, {"head_dims", "dlse"}},
};

/// A kernel for rows of just so many elements.
static GroupKernel exact(const char *name, const char *chip, const char *dtype,
                         int headDim, int headDimV,
                         std::map<std::string, std::string> schedule = {}) {
  return {name, chip, dtype, headDim, std::move(schedule), {}, "", headDimV};
}
static const GroupKernel kForwardOfV[] = {
    exact("gfx942", "gfx942", "bf16", 192, 128),
    exact("gfx942Split", "gfx942", "bf16", 192, 128, {{"algorithm", "split"}}),
    exact("gfx950SegmentsWider", "gfx950", "bf16", 40, 128),
    exact("gfx1100", "gfx1100", "bf16", 192, 128),
    exact("gfx1201Wider", "gfx1201", "bf16", 32, 88),
    // Of multi-head latent attention.
    exact("gfx942Latent", "gfx942", "bf16", 576, 512),
};
static const GroupKernel kForwardOfVInFull[] = {
    exact("gfx942Wider", "gfx942", "f16", 64, 128),
    exact("gfx908", "gfx908", "f16", 72, 40),
    exact("gfx90aFp32", "gfx90a", "f32", 64, 24),
    exact("gfx950", "gfx950", "bf16", 192, 128),
    exact("gfx950Segments", "gfx950", "f16", 128, 64),
    exact("gfx950Alone", "gfx950", "bf16", 256, 128, {{"algorithm", "split"}}),
    exact("gfx1201", "gfx1201", "f16", 192, 128),
    exact("gfx1201Fp32", "gfx1201", "f32", 40, 64),
    exact("gfx950LatentSplit", "gfx950", "bf16", 576, 512,
          {{"algorithm", "split"}}),
    exact("gfx1201Latent", "gfx1201", "f16", 576, 512),
};
static const GroupKernel kBackwardOfV[] = {
    exact("gfx942", "gfx942", "bf16", 192, 128),
    exact("gfx942Atomic16", "gfx942", "bf16", 64, 128,
          {{"algorithm", "atomic16"}}),
    exact("gfx950KeysInLds", "gfx950", "bf16", 128, 64,
          {{"algorithm", "atomic16"}}),
    exact("gfx1100Wider", "gfx1100", "bf16", 64, 320),
    exact("gfx1201", "gfx1201", "bf16", 192, 128),
};
static const GroupKernel kBackwardOfVInFull[] = {
    exact("gfx942Wider", "gfx942", "f16", 40, 88),
    exact("gfx942Atomic", "gfx942", "f16", 192, 128, {{"algorithm", "atomic"}}),
    exact("gfx908", "gfx908", "bf16", 72, 40),
    exact("gfx950", "gfx950", "bf16", 96, 64),
    exact("gfx1100", "gfx1100", "f16", 192, 128),
    exact("gfx1201Fp32", "gfx1201", "f32", 64, 40),
    exact("gfx942Latent", "gfx942", "bf16", 576, 512),
};

/// The kernels of a suite, and those that CI has no time for where all is run.
static std::vector<GroupKernel> with(llvm::ArrayRef<GroupKernel> kernels,
                                     llvm::ArrayRef<GroupKernel> inFull) {
  std::vector<GroupKernel> all(kernels.begin(), kernels.end());
  if (runsFullGrids())
    all.insert(all.end(), inFull.begin(), inFull.end());
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kernels, ForwardDimsOfV,
                         testing::ValuesIn(with(kForwardOfV,
                                                kForwardOfVInFull)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Kernels, BackwardDimsOfV,
                         testing::ValuesIn(with(kBackwardOfV,
                                                kBackwardOfVInFull)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Kernels, ForwardHeadDims,
                         testing::ValuesIn(with(kForward, kForwardInFull)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Kernels, BackwardHeadDims,
                         testing::ValuesIn(with(kBackward, kBackwardInFull)),
                         nameOf);
