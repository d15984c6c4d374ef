//===- AnalysisTest.cpp - arithmetic on predictions -----------------------===//
//
// Reports made by hand, so that every expected figure can be worked out on
// paper.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "Reports.h"

#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::timing;
using sim::InstClass;
using sim::InstTiming;
using sim::Stall;
using sim::TimingReport;

namespace {

InstTiming inst(uint32_t offset, const char *text, uint64_t issues,
                InstClass cls = InstClass::Salu, uint64_t busy = 0) {
  InstTiming result;
  result.offset = offset;
  result.text = text;
  result.issues = issues;
  result.cls = cls;
  result.busyClocks = busy;
  return result;
}

uint64_t &stall(InstTiming &inst, Stall why) {
  return inst.stalls[unsigned(why)];
}

/// Two waves that go five times round a loop of four instructions.
TimingReport looped() {
  TimingReport report;
  report.simds = 4;
  report.slotClocks = 4;
  report.instructions = {
      inst(0, "s_mov_b32 s0, 5", 2),
      inst(4, "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 10,
           InstClass::Mfma, 320),
      inst(12, "v_exp_f32_e32 v0, v1", 10, InstClass::Trans, 160),
      inst(16, "s_barrier", 10, InstClass::Sync),
      inst(20, "s_cbranch_scc1 65531", 10, InstClass::Branch),
      inst(24, "s_endpgm", 2),
  };
  stall(report.instructions[1], Stall::MatrixPipe) = 60;
  stall(report.instructions[1], Stall::Port) = 20;
  stall(report.instructions[4], Stall::Barrier) = 100;
  return report;
}

sim::TimelineEvent event(uint64_t clock, uint32_t index, uint16_t wave,
                         InstClass cls, uint32_t clocks, uint16_t simd = 0) {
  sim::TimelineEvent result;
  result.clock = clock;
  result.inst = index;
  result.wave = wave;
  result.cls = cls;
  result.clocks = clocks;
  result.simd = simd;
  return result;
}

} // namespace

TEST(AnalysisTest, SharesAreOfWaitingAndIssuing) {
  const TimingReport report = looped();
  const Analysis analysis(report);
  // 44 issues of 4 clocks, and 180 clocks of waiting.
  EXPECT_DOUBLE_EQ(analysis.waveClocks, 44 * 4 + 180);
  EXPECT_DOUBLE_EQ(analysis.share[1], (40 + 80) / 356.0);
  EXPECT_DOUBLE_EQ(analysis.waves, 2);
  const std::vector<size_t> costliest = analysis.costliest(2);
  EXPECT_EQ(costliest, (std::vector<size_t>{4, 1}));
}

TEST(AnalysisTest, LoopsAreBackwardBranches) {
  const TimingReport report = looped();
  const Analysis analysis(report);
  ASSERT_EQ(analysis.loops.size(), 1u);
  ASSERT_EQ(analysis.hot, 0);
  const Loop &loop = analysis.loops[0];
  EXPECT_EQ(loop.first, 1u);
  EXPECT_EQ(loop.last, 4u);
  EXPECT_DOUBLE_EQ(loop.iterations, 5);
  EXPECT_DOUBLE_EQ(loop.clocks, (40 * 4 + 180) / 10.0);
  EXPECT_DOUBLE_EQ(loop.matrix, 32);
  EXPECT_DOUBLE_EQ(loop.valu, 16);
}

TEST(AnalysisTest, InnermostLoopWithMostTimeIsHot) {
  TimingReport report;
  report.slotClocks = 4;
  report.instructions = {
      inst(0, "v_mov_b32_e32 v0, v1", 10),
      inst(4, "v_mov_b32_e32 v0, v1", 50),
      inst(8, "s_cbranch_scc1 -2", 50), // to 4
      inst(12, "v_mov_b32_e32 v0, v1", 100),
      inst(16, "s_cbranch_scc1 0xfffe", 100), // to 12
      inst(20, "s_branch 65530", 10),         // to 0
      inst(24, "s_endpgm", 1),
  };
  const Analysis analysis(report);
  ASSERT_EQ(analysis.loops.size(), 3u);
  EXPECT_FALSE(analysis.loops[0].innermost);
  EXPECT_TRUE(analysis.loops[1].innermost);
  EXPECT_EQ(analysis.hot, 2);
  EXPECT_EQ(analysis.loops[2].first, 3u);
}

TEST(AnalysisTest, JumpOutOfALoopToABlockAboveIsNoLoop) {
  TimingReport report;
  report.slotClocks = 4;
  report.instructions = {
      inst(0, "s_nop 0", 4), // where the loop's end jumps to in the end
      inst(4, "s_nop 0", 40),
      inst(8, "s_cbranch_scc0 65533", 40), // to 0
      inst(12, "s_branch 65533", 38),      // to 4
      inst(16, "s_endpgm", 2),
  };
  const Analysis analysis(report);
  ASSERT_EQ(analysis.loops.size(), 1u);
  EXPECT_EQ(analysis.loops[0].first, 1u);
  EXPECT_EQ(analysis.loops[0].last, 3u);
}

TEST(AnalysisTest, BranchTargets) {
  int64_t target = 0;
  EXPECT_TRUE(branchTarget(inst(20, "s_cbranch_scc1 65531", 1), target));
  EXPECT_EQ(target, 4);
  EXPECT_TRUE(branchTarget(inst(20, "s_branch 3", 1), target));
  EXPECT_EQ(target, 36);
  // A function before the kernel's entry.
  EXPECT_TRUE(branchTarget(inst(uint32_t(-8), "s_branch 65535", 1), target));
  EXPECT_EQ(target, -8);
  EXPECT_FALSE(branchTarget(inst(0, "s_setpc_b64 s[0:1]", 1), target));
  EXPECT_FALSE(branchTarget(inst(0, "s_branch label", 1), target));
}

TEST(AnalysisTest, BarrierWaitsStandAtTheBarrier) {
  TimingReport report = looped();
  stall(report.instructions[1], Stall::Barrier) = 7; // behind no barrier
  moveBarrierWaits(report);
  EXPECT_EQ(stall(report.instructions[3], Stall::Barrier), 100u);
  EXPECT_EQ(stall(report.instructions[4], Stall::Barrier), 0u);
  EXPECT_EQ(stall(report.instructions[1], Stall::Barrier), 7u);
}

TEST(AnalysisTest, EmptyReport) {
  TimingReport report;
  const Analysis analysis(report);
  EXPECT_EQ(analysis.hot, -1);
  EXPECT_TRUE(analysis.costliest(5).empty());
  const timing::Window window = steadyWindow(report, analysis, 2, 100);
  EXPECT_EQ(window.begin, window.end);
}

TEST(AnalysisTest, EveryReasonHasAdvice) {
  for (unsigned s = 0; s < sim::kStalls; ++s)
    EXPECT_FALSE(adviceFor(Stall(s)).means.empty()) << sim::name(Stall(s));
}

TEST(AnalysisTest, WindowIsTheMiddleOfTheLongestWorkgroup) {
  TimingReport report = looped();
  // Wave 0 serves a workgroup of two iterations, then one of five.
  for (uint64_t clock : {10, 20})
    report.timeline.push_back(event(clock, 1, 0, InstClass::Mfma, 32));
  report.timeline.push_back(event(30, 5, 0, InstClass::Salu, 4));
  for (uint64_t clock : {100, 200, 300, 400, 500})
    report.timeline.push_back(event(clock, 1, 0, InstClass::Mfma, 32));
  const Analysis analysis(report);
  const timing::Window window = steadyWindow(report, analysis, 2, 50);
  EXPECT_EQ(window.begin, 200u);
  EXPECT_EQ(window.end, 400u);
  // More iterations than there are: the middle of all.
  const timing::Window wide = steadyWindow(report, analysis, 9, 50);
  EXPECT_EQ(wide.end - wide.begin, 50u);
  EXPECT_EQ(wide.begin, 10u + (532 - 10 - 50) / 2);
}

TEST(AnalysisTest, LanesDoNotOverlap) {
  TimingReport report = looped();
  report.instructions[2].cls = InstClass::Lds;
  report.instructions[2].busyClocks = 160; // 16 an issue
  report.timeline = {event(0, 2, 0, InstClass::Lds, 4),
                     event(4, 2, 1, InstClass::Lds, 4),
                     event(8, 1, 0, InstClass::Mfma, 32, 3)};
  // The wait behind a barrier that issued at 0 is drawn from 4 on.
  report.timeline[2].stallClocks = 8;
  const Lanes lanes = lanesOf(report, {0, 100});
  ASSERT_EQ(lanes.simds.size(), 4u);
  const Track &lds = lanes.simds[0].units[3];
  ASSERT_EQ(lds.spans.size(), 2u);
  EXPECT_EQ(lds.spans[0].clocks, 16u);
  EXPECT_EQ(lds.spans[1].clock, 16u);
  EXPECT_EQ(lanes.simds[3].units[0].spans.size(), 1u);
  EXPECT_EQ(lanes.simds[0].waves, (std::vector<unsigned>{0, 1}));
  EXPECT_EQ(lanes.events[2].stallClocks, 4u);
  // Nothing of it reaches into a later window.
  EXPECT_TRUE(lanesOf(report, {500, 600}).events.empty());
}

TEST(AnalysisTest, RatioIsOfRates) {
  SubjectTime one, other;
  one.launches.resize(1);
  other.launches.resize(1);
  one.launches[0].report.seconds = 1;
  other.launches[0].report.seconds = 2;
  EXPECT_DOUBLE_EQ(speedRatio(other, one), 0.5);
  one.launches[0].launch.flops = 10;
  other.launches[0].launch.flops = 30;
  EXPECT_DOUBLE_EQ(speedRatio(other, one), 1.5);
  EXPECT_DOUBLE_EQ(speedRatio(other, SubjectTime()), 0);
}

TEST(AnalysisTest, CreditForMoreThanWasDoneIsDoubtful) {
  LaunchTime launch;
  launch.report.peakFlops = 1000;
  launch.report.seconds = 1;
  launch.launch.flops = 500;
  launch.report.flops = 500;
  EXPECT_FALSE(creditIsDoubtful(launch));
  launch.report.flops = 300;
  EXPECT_TRUE(creditIsDoubtful(launch));
  launch.report.flops = 0; // vector instructions may do them
  EXPECT_FALSE(creditIsDoubtful(launch));
  launch.launch.flops = 2000;
  EXPECT_TRUE(creditIsDoubtful(launch));
}
