//===- HeadDimsTest.cpp - rows of fewer elements than columns -------------===//
//
// Kernels of the group `head_dims` on simulated devices, against the oracle.
// What lies between rows is NaN, so that a column too many is seen, outputs
// have canaries there, and nothing lies behind the last row of a tensor. Every
// kernel takes any window besides, some other groups.
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
    {1, 1},
    {5, 0},
    {37, 29},
    {9, 39, reference::Layout::BHSD, 2},
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
    const int64_t dim = kernel().headDim;
    c.headDim = row.dim ? row.dim : dim;
    c.headDimV = row.dimV ? row.dimV : dim;
    c.layout = row.layout;
    c.rowPadding = row.padding;
    fill(c, row.sequences, isBackward);
    if (kernel().has("dropout"))
      c.dropout = dropoutOf(c, 0.3f, 3, 1000);
    return c;
  }
  bool takes(const Row &row) const {
    return std::max(row.dim, row.dimV) <= kernel().headDim &&
           (!row.sequences || kernel().has("varlen"));
  }
};

class ForwardHeadDims : public HeadDimsTest {};
class BackwardHeadDims : public HeadDimsTest {};

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

/// More than the kernel has columns.
TEST_P(ForwardHeadDims, AreRefused) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  run::ForwardCase c = caseOf(kRows[0]);
  c.headDimV = kernel().headDim + 1;
  const run::RunReport report = session->run(c, options);
  EXPECT_EQ(report.outcome, run::Outcome::Refused) << report.message;
  EXPECT_NE(report.message.find("rows of " + std::to_string(c.headDim) +
                                " and, of V, " + std::to_string(c.headDimV)),
            std::string::npos)
      << report.message;
}

static const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"head_dims"}},
    {"gfx942Wide", "gfx942", "bf16", 96, {}, {"head_dims"}},
    {"gfx90aWide", "gfx90a", "f16", 224, {}, {"head_dims"}},
    {"gfx1100Wide", "gfx1100", "bf16", 80, {}, {"head_dims"}},
    {"gfx908Fp16", "gfx908", "f16", 40, {}, {"head_dims", "varlen"}},
    {"gfx950", "gfx950", "f16", 128, {}, {"head_dims", "varlen", "dropout"}},
    {"gfx90aSplit",
     "gfx90a",
     "bf16",
     64,
     {{"algorithm", "split"}},
     {"head_dims"}},
    {"gfx1100", "gfx1100", "f16", 64, {}, {"head_dims", "varlen"}},
    {"gfx1201", "gfx1201", "bf16", 8, {}, {"head_dims"}},
    {"gfx1201Wide", "gfx1201", "bf16", 192, {}, {"head_dims", "sinks"}},
    {"gfx1201Fp32", "gfx1201", "f32", 264, {}, {"head_dims"}},
};
static const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"head_dims", "varlen", "dropout"}},
    {"gfx942Atomic",
     "gfx942",
     "f16",
     128,
     {{"algorithm", "atomic"}},
     {"head_dims"}},
    {"gfx950Atomic16",
     "gfx950",
     "bf16",
     64,
     {{"algorithm", "atomic16"}},
     {"head_dims"}},
    {"gfx942Fp32", "gfx942", "f32", 264, {}, {"head_dims", "varlen"}},
    {"gfx908", "gfx908", "bf16", 96, {}, {"head_dims"}},
    {"gfx1100", "gfx1100", "bf16", 40, {}, {"head_dims"}},
    {"gfx1201", "gfx1201", "f16", 64, {}, {"head_dims", "dlse"}},
};

INSTANTIATE_TEST_SUITE_P(Kernels, ForwardHeadDims, testing::ValuesIn(kForward),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Kernels, BackwardHeadDims,
                         testing::ValuesIn(kBackward), nameOf);
