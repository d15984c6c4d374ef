//===- Fp32Test.cpp - kernels of fp32 -------------------------------------===//
//
// Kernels on fp32 tensors on simulated devices, against the oracle and the
// budget of fp32 (docs/Accuracy.md): on matrix instructions and by lanes, and
// with what else kernels can have.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;
using reference::InputKind;

namespace {

const Window kAll = reference::Mask::None;
const Window kCausal = reference::Mask::CausalBottomRight;
const Window kNarrow = {61, 18, Alignment::BottomRight, Alignment::TopLeft};

struct Row {
  int64_t batch, seqQ, seqK;
  Window mask;
  InputKind input = InputKind::Normal;
  int64_t rowPadding = 0, offset = 0;
  const char *sequences = nullptr; ///< in place of batch and lengths
};
const Row kRows[] = {
    {1, 130, 150, kCausal},
    {1, 45, 203, kNarrow, InputKind::Masked, /*rowPadding=*/3, /*offset=*/1},
    {1, 20, 70, kAll, InputKind::Large},
    {1, 3, 33, kAll, InputKind::Spike},
    {1, 1, 1, kAll},
    {1, 5, 2, kCausal},
    {0, 0, 0, kCausal, InputKind::Normal, 0, 0, "packed:30x41,0,65x20,3x3"},
};

class Fp32Test : public GroupKernelTest {
protected:
  run::ForwardCase caseOf(const Row &row, bool isBackward = false) {
    run::ForwardCase c = makeCase(row.batch, row.seqQ, row.seqK, row.mask);
    c.input = row.input;
    c.rowPadding = row.rowPadding;
    c.offset = row.offset;
    fill(c, row.sequences, isBackward);
    if (kernel().has("dropout"))
      c.dropout = dropoutOf(c, 0.3f, 0x1bf52, 42);
    return c;
  }

  /// Runs all rows that the kernel has the groups for.
  template <typename Case>
  void expectAll(llvm::function_ref<Case(const Row &)> make) {
    for (const Row &row : kRows)
      if (!row.sequences || kernel().has("varlen"))
        expectPass(make(row));
  }
};

class ForwardFp32 : public Fp32Test {};
class BackwardFp32 : public Fp32Test {};

} // namespace

TEST_P(ForwardFp32, AgreesWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (!HasFatalFailure())
    expectAll<run::ForwardCase>([&](const Row &row) { return caseOf(row); });
}

TEST_P(BackwardFp32, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (!HasFatalFailure())
    expectAll<run::BackwardCase>([&](const Row &row) {
      run::BackwardCase c;
      c.forward = caseOf(row, /*isBackward=*/true);
      return c;
    });
}

namespace {

const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "f32", 64, {}, {"varlen"}},
    {"gfx942_wide", "gfx942", "f32", 264, {}},
    {"gfx942_split", "gfx942", "f32", 40, {{"algorithm", "split"}}, {"sinks"}},
    {"gfx908", "gfx908", "f32", 128, {}},
    {"gfx90a_dropout", "gfx90a", "f32", 16, {}, {"dropout"}},
    {"gfx950", "gfx950", "f32", 96, {}, {"varlen"}},
    {"gfx1100", "gfx1100", "f32", 40, {}},
    {"gfx1201", "gfx1201", "f32", 32, {}, {"varlen"}},
    {"gfx1201_anew", "gfx1201", "f32", 264, {}, {"varlen"}},
};
const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "f32", 64, {}, {"varlen", "dlse", "dsinks"}},
    {"gfx942_atomic", "gfx942", "f32", 128, {{"algorithm", "atomic"}}},
    {"gfx908", "gfx908", "f32", 40, {}},
    {"gfx908_atomic", "gfx908", "f32", 64, {{"algorithm", "atomic"}}},
    {"gfx90a_dropout", "gfx90a", "f32", 96, {}, {"dropout"}},
    {"gfx950", "gfx950", "f32", 256, {}},
    {"gfx1100", "gfx1100", "f32", 24, {}},
    {"gfx1201", "gfx1201", "f32", 56, {}},
    {"gfx942_anew", "gfx942", "f32", 264, {}, {"varlen"}},
    {"gfx942_atomic_anew", "gfx942", "f32", 264, {{"algorithm", "atomic"}}},
    {"gfx1100_anew", "gfx1100", "f32", 200, {}},
};
/// All of them, or where there is no time all but the last one, whose ladder of
/// schedules is the longest.
std::vector<GroupKernel> backwardKernels() {
  return {std::begin(kBackward), std::end(kBackward) - !runsFullGrids()};
}
INSTANTIATE_TEST_SUITE_P(All, ForwardFp32, testing::ValuesIn(kForward), nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardFp32,
                         testing::ValuesIn(backwardKernels()), nameOf);

} // namespace
