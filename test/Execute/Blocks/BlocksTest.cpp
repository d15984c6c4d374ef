//===- BlocksTest.cpp - kernels that read lists of blocks -----------------===//
//
// Lists of blocks on simulated devices, against the oracle. Every kernel takes
// any window besides, some a score program.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// Keeps documents of 200 tokens apart, and doubles what is left.
constexpr const char *kDocuments = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %two = arith.constant 2.0 : f32
    %tokens = arith.constant 200 : i32
    %mine = arith.divsi %query, %tokens : i32
    %its = arith.divsi %key, %tokens : i32
    %same = arith.cmpi eq, %mine, %its : i32
    %y = arith.mulf %x, %two : f32
    attn.yield %y, %same : f32, i1
  })";

const Window kAll = reference::Mask::None;
const Window kCausal = reference::Mask::CausalBottomRight;
const Window kNarrow = {200, 30, Alignment::BottomRight,
                        Alignment::BottomRight};

/// A problem and its lists.
struct Row {
  int64_t batch, seqQ, seqK;
  Window mask;
  int64_t qBlock, kvBlock;
  double part; ///< as BlocksFill has it
  bool isShared = false, hasStrays = false, isAllFull = false;
};

class BlocksTest : public GroupKernelTest {
protected:
  /// The problems that the kernel is run on.
  ArrayRef<Row> rows() const;

  run::ForwardCase caseOf(int64_t batch, int64_t seqQ, int64_t seqK,
                          Window mask) {
    run::ForwardCase c = makeCase(batch, seqQ, seqK, mask);
    c.heads = 2;
    c.headsK = 1;
    fillScore(c);
    return c;
  }

  void list(run::ForwardCase &c, const run::BlocksFill &fill) {
    memory.addBlocks(*session, fill, c);
  }
};

class ForwardBlocks : public BlocksTest {};
class BackwardBlocks : public BlocksTest {};
class VisitedBlocks : public BlocksTest {};

run::BlocksFill fillOf(const Row &row) {
  run::BlocksFill fill;
  fill.qBlock = row.qBlock;
  fill.kvBlock = row.kvBlock;
  fill.part = row.part;
  fill.isShared = row.isShared;
  fill.hasStrays = row.hasStrays;
  fill.isAllFull = row.isAllFull;
  return fill;
}

/// What no list has is NaN. Where a number is no block's, its queries meet what
/// is masked.
void poison(run::ForwardCase &c, const Row &row) {
  if (!row.hasStrays)
    c.input = reference::InputKind::Masked;
}

constexpr size_t kScoredRows = 3; // which the oracle takes longer for
const Row kRows[] = {
    // Of a program: what it hides is seen in blocks that are listed as whole.
    {1, 256, 300, kAll, 128, 128, -0.8, false, false, /*isAllFull=*/true},
    {1, 256, 384, kAll, 128, 128, -0.5},       // blocks that are seen in whole
    {2, 200, 330, kCausal, 128, 128, -0.6},    // others, and tails
    {1, 140, 900, kNarrow, 256, 384, 1, true}, // of the mask, for all heads
    {1, 500, 130, kAll, 384, 512, -0.4, false, /*hasStrays=*/true},
};

ArrayRef<Row> BlocksTest::rows() const {
  ArrayRef<Row> all = kRows;
  return *kernel().score ? all.take_front(kScoredRows) : all.drop_front();
}

} // namespace

TEST_P(ForwardBlocks, AgreesWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  int64_t pairs = 0, full = 0;
  for (const Row &row : rows()) {
    run::ForwardCase c = caseOf(row.batch, row.seqQ, row.seqK, row.mask);
    poison(c, row);
    list(c, fillOf(row));
    expectPass(c);
    pairs += memory.blocks->pairs();
    full += memory.blocks->fullPairs();
  }
  EXPECT_GT(full, 0);
  EXPECT_GT(pairs, full);
  // Without lists all blocks are.
  run::ForwardCase c = caseOf(1, 150, 140, kCausal);
  expectPass(c);
}

TEST_P(BackwardBlocks, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : rows()) {
    run::BackwardCase c;
    c.forward = caseOf(row.batch, row.seqQ, row.seqK, row.mask);
    poison(c.forward, row);
    list(c.forward, fillOf(row));
    expectPass(c);
  }
  run::BackwardCase c;
  c.forward = caseOf(1, 150, 140, kCausal);
  expectPass(c);
}

/// Matrix instructions are those of listed blocks, and no others.
TEST_P(VisitedBlocks, AreTheListed) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  options.check = false;
  using Lists = decltype(run::BlocksFill::lists);
  auto matrixOf = [&](Window mask, Lists lists, bool isCut = false) -> int64_t {
    run::ForwardCase c = caseOf(1, 256, 512, mask);
    run::BlocksFill fill;
    fill.lists = std::move(lists);
    list(c, fill);
    if (isCut) // a count of more entries than there are
      for (fovea_block_lists_t *cut :
           {&memory.blocks->blocks.kv, &memory.blocks->blocks.full_kv})
        cut->entries = 0;
    c.given.back() = memory.blocks->group();
    const run::RunReport report = expectPass(c);
    return report.executed ? int64_t(report.executed->mfma) : -1;
  };
  auto none = [](int64_t, int64_t, int64_t, int64_t) { return false; };
  auto one = [](int64_t, int64_t head, int64_t q, int64_t kv) {
    return head == 1 && q == 0 && kv == 2;
  };
  auto some = [](int64_t, int64_t head, int64_t q, int64_t kv) {
    return (5 * head + 3 * q + kv) % 3 == 0;
  };
  const int64_t least = matrixOf(kAll, none);
  for (Window mask : {kAll, kCausal}) {
    const int64_t each = matrixOf(mask, one) - least;
    EXPECT_GT(each, 0);
    EXPECT_EQ(matrixOf(mask, some) - least, memory.blocks->pairs() * each);
  }
  EXPECT_EQ(matrixOf(kAll, some, /*isCut=*/true), least);
}

namespace {

const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_documents", "gfx942", "bf16", 32, {}, {}, kDocuments},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx950_documents", "gfx950", "bf16", 64, {}, {}, kDocuments},
    {"gfx908", "gfx908", "f16", 32, {}},
    {"gfx90a_split", "gfx90a", "f16", 32, {{"algorithm", "split"}}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
    {"gfx1201_documents", "gfx1201", "f16", 32, {}, {}, kDocuments},
};
const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_documents", "gfx942", "bf16", 32, {}, {}, kDocuments},
    {"gfx942_atomic", "gfx942", "f16", 64, {{"algorithm", "atomic"}}},
    {"gfx942_atomic_documents",
     "gfx942",
     "bf16",
     32,
     {{"algorithm", "atomic"}},
     {},
     kDocuments},
    {"gfx942_atomic16", "gfx942", "bf16", 32, {{"algorithm", "atomic16"}}},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx90a", "gfx90a", "f16", 32, {}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
    {"gfx1201_documents", "gfx1201", "f16", 32, {}, {}, kDocuments},
};
INSTANTIATE_TEST_SUITE_P(All, ForwardBlocks,
                         testing::ValuesIn(withGroup("blocks", kForward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, VisitedBlocks,
                         testing::ValuesIn(withGroup("blocks", kForward[0])),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardBlocks,
                         testing::ValuesIn(withGroup("blocks", kBackward)),
                         nameOf);

} // namespace
