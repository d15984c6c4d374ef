//===- DropoutTest.cpp - kernels that drop weights ------------------------===//
//
// Kernels of the group `dropout` on simulated devices, against the oracle,
// which draws the mask from the documented map of counters. Every kernel takes
// any window besides, some other groups and a score program.
//
//===----------------------------------------------------------------------===//

#include "DeviceCopies.h"
#include "GroupKernel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// Hides every third key.
constexpr const char *kProgram = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %three = arith.constant 3 : i32
    %one = arith.constant 1 : i32
    %rest = arith.remsi %key, %three : i32
    %seen = arith.cmpi ne, %rest, %one : i32
    attn.yield %x, %seen : f32, i1
  })";

const Window kAll = reference::Mask::None;
const Window kCausal = reference::Mask::CausalBottomRight;
/// Whose first keys are no multiples of 4.
const Window kLast = {1, 0, Alignment::BottomRight, Alignment::BottomRight};
const Window kNarrow = {61, 18, Alignment::BottomRight, Alignment::TopLeft};

/// No numbers in keys that no query sees.
constexpr auto kHidesNan = reference::InputKind::Masked;

struct Row {
  int64_t batch, seqQ, seqK;
  Window mask;
  float p;
  uint64_t seed, offset;
  bool swapsWords = false;
  const char *sequences = nullptr; ///< in place of batch and lengths
  std::optional<reference::InputKind> input = std::nullopt;
};
const Row kRows[] = {
    {2, 150, 203, kCausal, 0.3f, 0x1bf52, 0x1d4b42},
    {1, 70, 130, kNarrow, 0.9f, 42, 0, /*swapsWords=*/true},
    // The counter passes 2^32, and 2^64.
    {1, 64, 64, kAll, 0.5f, 0xdeadbeefcafe1234, 0xfffffff0},
    {2, 33, 31, kAll, 0.1f, ~uint64_t(0), ~uint64_t(99)},
    {1, 20, 40, kAll, 1, 1, 0, false, nullptr, reference::InputKind::OnesV},
    {1, 16, 70, kCausal, 1 - 0x1p-24f, 1, 0},
    // Groups of four keys whose first ones are seen by no query.
    {1, 1, 131, kLast, 0.3f, 3, 0, false, nullptr, kHidesNan},
    {1, 70, 133, kNarrow, 0.3f, 5, 8, false, nullptr, kHidesNan},
    // The call's lengths count, not the sequence's.
    {0, 0, 0, kCausal, 0.4f, 7, 1000, true, "packed:30x41,0,65x20,3x3"},
};

class DropoutTest : public GroupKernelTest {
protected:
  run::ForwardCase caseOf(const Row &row, bool isBackward = false) {
    run::ForwardCase c = makeCase(row.batch, row.seqQ, row.seqK, row.mask);
    fill(c, row.sequences, isBackward);
    // Which keys those are lists and programs have a say in.
    if (row.input && !kernel().has("blocks") && !*kernel().score)
      c.input = *row.input;
    c.dropout = dropoutOf(c, row.p, row.seed, row.offset, row.swapsWords);
    return c;
  }
};

class ForwardDropout : public DropoutTest {};
class BackwardDropout : public DropoutTest {};
class DropoutCall : public DropoutTest {};

} // namespace

TEST_P(ForwardDropout, AgreesWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows)
    if (!row.sequences || kernel().has("varlen"))
      expectPass(caseOf(row));
}

TEST_P(BackwardDropout, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows)
    if (!row.sequences || kernel().has("varlen")) {
      run::BackwardCase c;
      c.forward = caseOf(row, /*isBackward=*/true);
      expectPass(c);
    }
}

/// The log-sum-exp knows nothing of it; without it all are kept.
TEST_P(DropoutCall, LeavesTheLogSumExp) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  run::ForwardCase c = caseOf(kRows[0]);
  const run::RunReport dropped = expectPass(c);
  c.dropout.reset();
  const run::RunReport whole = expectPass(c);
  EXPECT_EQ(dropped.lse, whole.lse);
  EXPECT_NE(dropped.out, whole.out);
}

/// Seeds on the device are read when the kernel runs, and what was used is
/// written there, even if nothing else is.
TEST_P(DropoutCall, HasItsSeedsOnTheDevice) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  for (const Row &row : {kRows[0], kRows[std::size(kRows) - 1]}) {
    run::ForwardCase c = caseOf(row);
    run::DeviceCopies copies("seeds");
    ASSERT_EQ(copies.open(session->context()), "");
    constexpr uint64_t ofSeed = 0x123456789abcdef0, ofOffset = ~uint64_t(4);
    uint64_t numbers[] = {row.seed - ofSeed, row.offset - ofOffset, 0, 0};
    void *places[4];
    for (int i = 0; i != 4; ++i)
      ASSERT_EQ(copies.put(&numbers[i], sizeof(numbers[i]), places[i]), "");
    fovea_dropout_t group = {};
    group.header = {sizeof(group), FOVEA_GROUP_DROPOUT, nullptr};
    group.p = row.p;
    group.word_order = row.swapsWords ? FOVEA_PHILOX_0213 : FOVEA_PHILOX_0123;
    group.seed_value = ofSeed;
    group.offset_value = ofOffset;
    group.seed = static_cast<const uint64_t *>(places[0]);
    group.offset = static_cast<const uint64_t *>(places[1]);
    group.seed_out = static_cast<uint64_t *>(places[2]);
    group.offset_out = static_cast<uint64_t *>(places[3]);
    c.dropoutGroup = group;
    expectPass(c);
    uint64_t used[2];
    for (int i = 0; i != 2; ++i)
      ASSERT_EQ(copies.read(&used[i], places[2 + i], sizeof(used[i])), "");
    EXPECT_EQ(used[0], row.seed);
    EXPECT_EQ(used[1], row.offset);
  }
}

namespace {

const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"varlen"}},
    {"gfx942_all",
     "gfx942",
     "f16",
     32,
     {},
     {"varlen", "sinks", "blocks"},
     kProgram},
    {"gfx942_split", "gfx942", "bf16", 64, {{"algorithm", "split"}}, {"sinks"}},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx908", "gfx908", "bf16", 32, {}},
    {"gfx90a", "gfx90a", "f16", 32, {}},
    {"gfx1100", "gfx1100", "bf16", 32, {}, {"varlen"}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
};
const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"varlen", "dlse", "dsinks"}},
    {"gfx942_atomic", "gfx942", "bf16", 32, {{"algorithm", "atomic"}}},
    {"gfx942_atomic16", "gfx942", "bf16", 32, {{"algorithm", "atomic16"}}},
    {"gfx942_lists", "gfx942", "bf16", 32, {}, {"blocks"}, kProgram},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx90a", "gfx90a", "f16", 32, {}},
    {"gfx908_atomic", "gfx908", "f16", 32, {{"algorithm", "atomic"}}},
    {"gfx1100", "gfx1100", "bf16", 32, {}, {"varlen"}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
};
INSTANTIATE_TEST_SUITE_P(All, ForwardDropout,
                         testing::ValuesIn(withGroup("dropout", kForward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardDropout,
                         testing::ValuesIn(withGroup("dropout", kBackward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, DropoutCall,
                         testing::ValuesIn(withGroup("dropout", kForward[0])),
                         nameOf);

} // namespace
