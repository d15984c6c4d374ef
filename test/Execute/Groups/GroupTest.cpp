//===- GroupTest.cpp - kernels with tensors of feature groups -------------===//
//
// Attention sinks, their gradient and that of the log-sum-exp, on simulated
// devices and against the oracle. Every kernel takes any window, one of each
// pass a score program besides.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include "Groups.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

constexpr const char *kSoftcap = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %cap = arith.constant 5.0 : f32
    %small = arith.divf %x, %cap : f32
    %bounded = math.tanh %small : f32
    %s = arith.mulf %bounded, %cap : f32
    attn.yield %s : f32
  })";

constexpr reference::InputKind kNormal = reference::InputKind::Normal;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// A group as a command line would give it.
run::CaseGroup group(const char *name, std::vector<double> values) {
  return {run::findOption(name), std::move(values)};
}

class GroupTest : public GroupKernelTest {
protected:
  run::ForwardCase forwardCase(int64_t seqQ, int64_t seqK, Window mask) {
    run::ForwardCase c = makeCase(2, seqQ, seqK, mask);
    fillScore(c);
    return c;
  }
};

class SinkTest : public GroupTest {};
class DlseTest : public GroupTest {};
class SinkGradientTest : public GroupTest {};

const Window kCausal = reference::Mask::CausalBottomRight;
const Window kAll = reference::Mask::None;
const Window kNarrow = {20, 3, Alignment::BottomRight, Alignment::BottomRight};

} // namespace

TEST_P(SinkTest, AgreesWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  struct {
    int64_t seqQ, seqK;
    Window mask;
    std::vector<double> sinks;
    reference::InputKind input = kNormal;
    float scale = 0.125f;
  } cases[] = {
      {70, 133, kAll, {-kInf, 0.5, 3, -2}},
      {1, 90, kAll, {30, -30, 1, 0}},
      // The first 71 rows see nothing.
      {141, 70, kCausal, {0.25, -kInf, -40, 4}, kNormal, -0.3f},
      {100, 64, kNarrow, {-1, 2, 0, 8}},
      {5, 0, kAll, {-2.5, -kInf, 1e30, -1e30}},
      {5, 33, kAll, {0.5, 1, -10, 2}, kNormal, 0},
      // Maxima too large to be rounded, some below their sink and some above.
      {40, 70, kAll, {1.5e5, 2e5, 1e5, -kInf}, kNormal, 1e4f},
      {33, 70, kCausal, {2e4, -2e4, 0, -kInf}, reference::InputKind::Huge, 1},
      // Maxima that become too large for products to begin at.
      {40, 500, kAll, {900, 1e3, 0, -kInf}, reference::InputKind::Rising},
  };
  for (const auto &row : cases) {
    run::ForwardCase c = forwardCase(row.seqQ, row.seqK, row.mask);
    c.input = row.input;
    c.scale = row.scale;
    c.groups = {group("sinks", row.sinks)};
    const run::RunReport report = expectPass(c);
    // Rows without a key have just the sink.
    if (row.seqK == 0)
      for (size_t i = 0; i != report.lse.size(); ++i)
        EXPECT_EQ(report.lse[i], float(row.sinks[i / 5 % 4]));
  }
  // Sinks of -infinity are none, to the last bit.
  for (auto [seqQ, seqK, input] :
       {std::tuple(141, 70, kNormal), {33, 70, reference::InputKind::Huge}}) {
    run::ForwardCase c = forwardCase(seqQ, seqK, kCausal);
    c.input = input;
    const run::RunReport without = expectPass(c);
    c.groups = {group("sinks", {-kInf})};
    const run::RunReport report = expectPass(c);
    EXPECT_EQ(report.out, without.out);
    EXPECT_EQ(report.lse, without.lse);
  }
}

TEST_P(DlseTest, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (auto [seqQ, seqK, mask, size, hasSinks] :
       {std::tuple(70, 133, kAll, 1.0, true),
        {141, 70, kCausal, 0.5, false},
        {141, 70, kCausal, 4.0, true},
        {1, 40, kNarrow, 2.0, false}}) {
    run::BackwardCase c;
    c.forward = forwardCase(seqQ, seqK, mask);
    c.forward.groups = {group("dlse", {size})};
    if (hasSinks) // which are in the log-sum-exp
      c.forward.groups.push_back(group("sinks", {1, -kInf, 6, -3}));
    expectPass(c);
  }
  // None are zeros.
  run::BackwardCase c;
  c.forward = forwardCase(90, 70, kCausal);
  const run::RunReport without = expectPass(c);
  c.forward.groups = {group("dlse", {0})};
  const run::RunReport report = expectPass(c);
  ASSERT_EQ(without.gradients.size(), 3u);
  ASSERT_EQ(report.gradients.size(), 3u);
  // Sums of dQ in memory have other bits in each run.
  for (size_t i = options.deterministic ? 0 : 1; i != 3; ++i)
    EXPECT_EQ(report.gradients[i].values, without.gradients[i].values)
        << report.gradients[i].name;
}

TEST_P(SinkGradientTest, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  struct {
    int64_t batch, seqQ, seqK;
    Window mask;
    std::vector<double> sinks;
    double dlse = 0; ///< 0: none
  } cases[] = {
      {3, 70, 133, kAll, {-kInf, 0.5, 3, -2}},
      // The first 71 rows see nothing, and have their sink for a log-sum-exp.
      {2, 141, 70, kCausal, {1, -kInf, 6, -3}, 0.5},
      {5, 1, 40, kNarrow, {60, -30, 0, 59.5}, 2},
      {2, 5, 0, kAll, {-2.5, -kInf, 1e30, -1e30}, 1},
      // Nothing to sum.
      {2, 0, 33, kAll, {1, 2, 3, 4}},
      {0, 20, 33, kAll, {1, 2, 3, 4}},
  };
  for (const auto &row : cases) {
    run::BackwardCase c;
    c.forward = forwardCase(row.seqQ, row.seqK, row.mask);
    c.forward.batch = row.batch;
    c.forward.groups = {group("sinks", row.sinks)};
    if (row.dlse)
      c.forward.groups.push_back(group("dlse", {row.dlse}));
    const run::RunReport report = expectPass(c);
    ASSERT_EQ(report.gradients.size(), 4u) << c.str();
    for (size_t h = 0; h != row.sinks.size(); ++h)
      if (row.sinks[h] == -kInf || row.batch * row.seqQ == 0)
        EXPECT_EQ(report.gradients[3].values[h], 0) << c.str() << " " << h;
  }
  // More rows than a workgroup takes at a time, and the same bits again,
  // whatever adds up dQ.
  const bool isLong = kernel().schedule.empty() && !*kernel().score;
  run::BackwardCase c;
  c.forward = forwardCase(isLong ? 4500 : 300, 3, kAll);
  c.forward.heads = c.forward.headsK = 1;
  c.forward.groups = {group("sinks", {0.5}), group("dlse", {1})};
  const run::RunReport first = expectPass(c), again = expectPass(c);
  ASSERT_EQ(first.gradients.size(), 4u);
  EXPECT_EQ(first.gradients[3].values, again.gradients[3].values);
  // Without sinks the kernel is one of gradients alone.
  c.forward = forwardCase(60, 40, kCausal);
  EXPECT_EQ(expectPass(c).gradients.size(), 3u);
}

namespace {

const GroupKernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_softcap", "gfx942", "bf16", 32, {}, {}, kSoftcap},
    {"gfx90a_split", "gfx90a", "f16", 32, {{"algorithm", "split"}}},
    {"gfx90a", "gfx90a", "f16", 64, {}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1100_split", "gfx1100", "f16", 32, {{"algorithm", "split"}}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
};
const GroupKernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_atomic", "gfx942", "f16", 32, {{"algorithm", "atomic"}}},
    {"gfx942_atomic16", "gfx942", "bf16", 32, {{"algorithm", "atomic16"}}},
    {"gfx90a", "gfx90a", "f16", 32, {}},
    {"gfx1100_softcap", "gfx1100", "bf16", 32, {}, {}, kSoftcap},
    {"gfx1201", "gfx1201", "f16", 32, {}},
};
const GroupKernel kSinkGradients[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_atomic", "gfx942", "f16", 32, {{"algorithm", "atomic"}}},
    {"gfx942_atomic16", "gfx942", "bf16", 32, {{"algorithm", "atomic16"}}},
    {"gfx90a_softcap", "gfx90a", "f16", 32, {}, {}, kSoftcap},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
};
INSTANTIATE_TEST_SUITE_P(All, SinkTest,
                         testing::ValuesIn(withGroup("sinks", kForward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, DlseTest,
                         testing::ValuesIn(withGroup("dlse", kBackward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    All, SinkGradientTest,
    testing::ValuesIn(withGroup("dsinks", withGroup("dlse", kSinkGradients))),
    nameOf);

} // namespace
