//===- SequencesTest.cpp - sequences of different lengths -----------------===//
//
// Kernels of the group `varlen` on simulated devices, against the oracle and
// against the same kernel given each sequence alone. Every kernel takes any
// window, some other groups and a score program besides.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// Reads the batch and both lengths, and hides keys by them.
constexpr const char *kProgram = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %some = arith.constant 0.03125 : f32
    %least = arith.constant 5 : i32
    %two = arith.constant 2 : i32
    %all = arith.addi %seqlen_q, %seqlen_k : i32
    %mine = arith.addi %all, %batch : i32
    %size = arith.sitofp %mine : i32 to f32
    %more = arith.mulf %size, %some : f32
    %left = arith.subi %seqlen_k, %key : i32
    %near = arith.cmpi sgt, %left, %least : i32
    %bias = arith.select %near, %more, %some : f32
    %y = arith.addf %x, %bias : f32
    %half = arith.divsi %seqlen_k, %two : i32
    %is_late = arith.cmpi sge, %key, %half : i32
    %is_odd = arith.cmpi slt, %query, %seqlen_k : i32
    %is_seen = arith.ori %is_late, %is_odd : i1
    attn.yield %y, %is_seen : f32, i1
  })";

const Window kAll = reference::Mask::None;
const Window kTopLeft = reference::Mask::CausalTopLeft;
const Window kCausal = reference::Mask::CausalBottomRight;
const Window kNarrow = {40, 10, Alignment::BottomRight, Alignment::TopLeft};

/// Sequences and what their queries see.
struct Row {
  const char *sequences;
  Window mask;
  bool isUneven = false; ///< the grid counts the blocks of all sequences
};
// Blocks have 16 to 128 rows, the list kernels' 128.
const Row kRows[] = {
    // None first, in the middle and last; a row; a row more and less than a
    // block, both ways, so that rows see nothing.
    {"packed:0,1,65x130,0,129x64,128x127,0", kCausal},
    // Keys without queries and the other way round.
    {"packed:0x40,30x0,33x70,5x3", kAll},
    {"packed:130x75", kNarrow},
    {"sliced:70x40,20x150,127", kNarrow},
    // Two that are much longer than the others.
    {"packed:0,3,130x300,0,2x5,300x40,7,0,1,1,0", kCausal, /*isUneven=*/true},
    {"sliced:2,0,0,70x300,1,2x5,300x40,0,0,1,5,1", kNarrow, /*isUneven=*/true},
    {"padded:100x30,0x50,64", kTopLeft},
    {"strided:40x64,33x100:th", kNarrow},
    {"used:64x33,20x90,1:batched", kCausal},
    {"cached:50x130,1x64,0x7", kCausal},
    {"shifted:31x65,66x20", kAll},
    {"shifted:17x65,66x20:th:batched", kCausal},
    {"keys:3x70,3x0,3x129", kCausal},
    {"queries:30x70,0x70,90x70", kTopLeft},
};

class SequencesTest : public GroupKernelTest {
protected:
  /// With sequences.
  run::ForwardCase caseOf(const char *text, const Window &mask,
                          bool isBackward = false) {
    run::ForwardCase c = makeCase(0, 0, 0, mask);
    fill(c, text, isBackward, /*part=*/0.6);
    if (kernel().has("blocks"))
      c.input = reference::InputKind::Masked; // what no list has is NaN
    return c;
  }

  /// One sequence of a case for the same kernel, without the group.
  static run::ForwardCase alone(const run::ForwardCase &c, size_t number) {
    run::ForwardCase part = run::partOf(c, number);
    part.given.clear();
    return part;
  }
};

class ForwardSequences : public SequencesTest {};
class BackwardSequences : public SequencesTest {};
class ForwardAlone : public SequencesTest {};
class BackwardAlone : public SequencesTest {};
class StrangeSequences : public SequencesTest {};
class LooseSequences : public SequencesTest {};

/// The bits of values, so that -inf and zeros of either sign count.
std::vector<uint32_t> bitsOf(ArrayRef<float> values) {
  std::vector<uint32_t> bits;
  for (float value : values)
    bits.push_back(llvm::bit_cast<uint32_t>(value));
  return bits;
}

/// Takes what a part has from the values of all.
std::vector<uint32_t> take(ArrayRef<float> &values, size_t count) {
  const std::vector<uint32_t> bits = bitsOf(values.take_front(count));
  values = values.drop_front(count);
  return bits;
}

} // namespace

TEST_P(ForwardSequences, AgreeWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows) {
    run::ForwardCase c = caseOf(row.sequences, row.mask);
    const run::RunReport report = expectPass(c);
    EXPECT_EQ(StringRef(report.kernel).contains("x1 of "),
              c.batch == 1 || (row.isUneven && kernel().algorithm() != "split"))
        << row.sequences << ": " << report.kernel;
  }
  run::ForwardCase none = caseOf("packed:0,0,0", kCausal);
  const run::RunReport report = expectPass(none);
  ASSERT_TRUE(report.executed);
  EXPECT_EQ(report.executed->waves, 0u);
}

TEST_P(BackwardSequences, AgreeWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows) {
    run::BackwardCase c;
    c.forward = caseOf(row.sequences, row.mask, /*isBackward=*/true);
    expectPass(c);
  }
  if (kernel().has("blocks")) // of no queries there are none to list
    return;
  run::BackwardCase keys;
  keys.forward = caseOf("packed:0x40,0x1", kCausal, /*isBackward=*/true);
  const run::RunReport report = expectPass(keys);
  for (const run::GradientReport &gradient : report.gradients)
    if (gradient.name == "dk" || gradient.name == "dv")
      EXPECT_EQ(bitsOf(gradient.values),
                std::vector<uint32_t>(gradient.values.size(), 0));
}

TEST_P(ForwardAlone, HaveTheSameBits) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows) {
    run::ForwardCase c = caseOf(row.sequences, row.mask);
    options.check = false;
    const run::RunReport all = expectPass(c);
    ArrayRef<float> out = all.out, lse = all.lse;
    for (size_t i = 0; i != run::countParts(c); ++i) {
      const run::ForwardCase part = alone(c, i);
      const run::RunReport report =
          expectPass(part, /*isLaunched=*/part.seqQ != 0);
      EXPECT_EQ(take(out, report.out.size()), bitsOf(report.out))
          << row.sequences << ", sequence " << i;
      EXPECT_EQ(take(lse, report.lse.size()), bitsOf(report.lse))
          << row.sequences << ", sequence " << i;
    }
    EXPECT_TRUE(out.empty() && lse.empty());
  }
}

TEST_P(BackwardAlone, HaveTheSameBits) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : kRows) {
    run::BackwardCase c;
    c.forward = caseOf(row.sequences, row.mask, /*isBackward=*/true);
    options.check = false;
    const run::RunReport all = expectPass(c);
    std::vector<ArrayRef<float>> rest;
    for (const run::GradientReport &gradient : all.gradients)
      rest.push_back(gradient.values);
    for (size_t i = 0; i != run::countParts(c.forward); ++i) {
      run::BackwardCase part = c;
      part.forward = alone(c.forward, i);
      const run::RunReport report = expectPass(
          part,
          /*isLaunched=*/part.forward.seqQ != 0 || part.forward.seqK != 0);
      ASSERT_EQ(report.gradients.size(), rest.size());
      for (size_t n = 0; n != rest.size(); ++n)
        EXPECT_EQ(take(rest[n], report.gradients[n].values.size()),
                  bitsOf(report.gradients[n].values))
            << row.sequences << ", sequence " << i << ", "
            << report.gradients[n].name;
    }
    for (ArrayRef<float> values : rest)
      EXPECT_TRUE(values.empty());
  }
}

/// Lengths that are none are cut to what the call says, whatever comes of it.
TEST_P(StrangeSequences, AreCutToTheCall) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  run::DeviceCopies copies("lengths");
  ASSERT_EQ(copies.open(session->context()), "");
  const int32_t least = std::numeric_limits<int32_t>::min(),
                most = std::numeric_limits<int32_t>::max();
  const struct {
    const char *sequences;
    std::vector<int32_t> queries, keys; ///< lengths in the place of those
  } rows[] = {
      {"keys:30x40,30x0,30x33,30x0,30x40", {}, {41, -1, 33, least, most}},
      // Sums that begin anywhere, and fall.
      {"padded:30x40,20x0,10x33,7x40", {}, {100, 141, 140, 173, 1000}},
      {"padded:0x40,30x33,0x20", {141, 140, 171, -5}, {}},
  };
  for (const auto &row : rows) {
    run::BackwardCase c;
    c.forward = caseOf(row.sequences, kCausal);
    auto replace = [&](const std::vector<int32_t> &lengths,
                       const int32_t *&given) {
      void *address = nullptr;
      if (lengths.empty())
        return;
      ASSERT_EQ(
          copies.put(lengths.data(), lengths.size() * sizeof(int32_t), address),
          "");
      given = static_cast<const int32_t *>(address);
    };
    replace(row.queries, memory.sequences->varlen.q.lengths);
    replace(row.keys, memory.sequences->varlen.k.lengths);
    expectPass(c);
  }
}

/// What the most is that a sequence may have costs workgroups that leave, or,
/// where the grid counts the blocks that there are, finding one's sequence; and
/// changes no bit.
TEST_P(LooseSequences, LeaveAtTheirEnd) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  auto runWith = [&](const char *text, int64_t most) {
    run::ForwardCase c = caseOf(text, kCausal);
    if (most != 0)
      c.seqQ = c.seqK = most;
    return expectPass(c);
  };
  for (const char *text :
       {"packed:16x20,5x70,0,33", "padded:16x20,5x70,0,33"}) {
    const run::RunReport tight = runWith(text, 0), loose = runWith(text, 4096);
    EXPECT_EQ(bitsOf(tight.out), bitsOf(loose.out)) << text;
    EXPECT_EQ(bitsOf(tight.lse), bitsOf(loose.lse)) << text;
    ASSERT_TRUE(tight.executed && loose.executed);
    const run::Executed &few = *tight.executed, &many = *loose.executed;
    EXPECT_EQ(few.mfma, many.mfma) << text;
    EXPECT_EQ(few.vmem, many.vmem) << text;
    const bool isPacked = StringRef(text).starts_with("packed");
    if (isPacked)
      EXPECT_EQ(few.waves, many.waves);
    else
      EXPECT_GT(many.waves, 10 * few.waves);
    EXPECT_LT(many.instructions,
              few.instructions +
                  (isPacked ? 300 * few.waves : 150 * (many.waves - few.waves)))
        << text;
  }
}

namespace {

const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_all", "gfx942", "bf16", 32, {}, {"sinks", "blocks"}, kProgram},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx908", "gfx908", "f16", 32, {}},
    {"gfx90a_split", "gfx90a", "f16", 32, {{"algorithm", "split"}}},
    {"gfx942_split", "gfx942", "bf16", 64, {{"algorithm", "split"}}, {"sinks"}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
    {"gfx1201_split", "gfx1201", "bf16", 32, {{"algorithm", "split"}}},
};
const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}, {"dlse", "dsinks"}},
    {"gfx942_lists", "gfx942", "bf16", 32, {}, {"dlse", "blocks"}},
    {"gfx942_atomic",
     "gfx942",
     "bf16",
     32,
     {{"algorithm", "atomic"}},
     {"dsinks"}},
    {"gfx942_atomic16",
     "gfx942",
     "bf16",
     64,
     {{"algorithm", "atomic16"}},
     {"dlse"}},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx90a", "gfx90a", "f16", 32, {}},
    {"gfx908_atomic", "gfx908", "f16", 32, {{"algorithm", "atomic"}}},
    {"gfx1100", "gfx1100", "bf16", 32, {}, {"dsinks"}},
    {"gfx1201_program", "gfx1201", "f16", 32, {}, {}, kProgram},
};
const GroupKernel kForwardAlone[] = {
    {"gfx942_sinks", "gfx942", "bf16", 64, {}, {"sinks"}},
    {"gfx1100", "gfx1100", "f16", 32, {}},
};
const GroupKernel kBackwardAlone[] = {
    {"gfx942_dlse", "gfx942", "bf16", 32, {}, {"dlse"}},
    {"gfx1201", "gfx1201", "bf16", 32, {}},
};
INSTANTIATE_TEST_SUITE_P(All, ForwardSequences,
                         testing::ValuesIn(withGroup("varlen", kForward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardSequences,
                         testing::ValuesIn(withGroup("varlen", kBackward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, ForwardAlone,
                         testing::ValuesIn(withGroup("varlen", kForwardAlone)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardAlone,
                         testing::ValuesIn(withGroup("varlen", kBackwardAlone)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, StrangeSequences,
                         testing::ValuesIn(withGroup("varlen",
                                                     kBackwardAlone[0])),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, LooseSequences,
                         testing::ValuesIn(withGroup("varlen",
                                                     kForwardAlone[1])),
                         nameOf);

} // namespace
