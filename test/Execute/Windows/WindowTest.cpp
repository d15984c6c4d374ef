//===- WindowTest.cpp - windows whose edges lie anywhere in a block -------===//
//
// Which blocks are seen in whole is counted in rows and keys, and a count that
// is wrong by one shows where an edge meets that of a block, and nowhere else.
// So both edges are moved through a block, key by key.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// Keys of a block, to which the kernels are compiled.
constexpr int64_t kBlock = 32;

/// More keys than queries and fewer, and which end moves.
struct Row {
  int64_t seqQ, seqK;
  bool isRight;
};
constexpr Row kRows[] = {
    {140, 170, true}, {140, 170, false}, {170, 140, true}, {170, 140, false}};

class WindowTest : public GroupKernelTest {
protected:
  void
  expectEveryEdge(llvm::function_ref<void(const run::ForwardCase &)> expect) {
    for (const Row &row : kRows)
      for (int64_t edge = 0; edge != kBlock; ++edge) {
        Window window = {Window::kInfinite, Window::kInfinite,
                         Alignment::TopLeft, Alignment::TopLeft};
        (row.isRight ? window.right : window.left) = edge;
        run::ForwardCase c = makeCase(1, row.seqQ, row.seqK, window);
        c.heads = c.headsK = 1;
        expect(c);
      }
  }
};
class ForwardWindows : public WindowTest {};
class BackwardWindows : public WindowTest {};

} // namespace

TEST_P(ForwardWindows, AgreeWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (!HasFatalFailure())
    expectEveryEdge([&](const run::ForwardCase &c) { expectPass(c); });
}

TEST_P(BackwardWindows, AgreeWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (!HasFatalFailure())
    expectEveryEdge([&](const run::ForwardCase &c) {
      run::BackwardCase backward;
      backward.forward = c;
      expectPass(backward);
    });
}

namespace {

const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 32, {{"block-n", "32"}}},
    {"gfx1100", "gfx1100", "f16", 32, {{"block-n", "32"}}},
};
const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "f16", 32, {{"block-n", "32"}}},
    {"gfx1201", "gfx1201", "bf16", 32, {{"block-n", "32"}}},
};
INSTANTIATE_TEST_SUITE_P(All, ForwardWindows, testing::ValuesIn(kForward),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardWindows, testing::ValuesIn(kBackward),
                         nameOf);

} // namespace
