//===- RdnaTimingTest.cpp - The timing model's RDNA on what is known ------===//
//
// Clocks between instructions that users of RDNA published (docs/Timing.md), and
// what must not become faster or slower.
//
//===----------------------------------------------------------------------===//
#include "RdnaAsm.h"
#include "TimedKernelTest.h"
#include "timing/Constants.h"
#include "timing/Memory.h"
#include "timing/Uncertainty.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class RdnaTimingTest : public TimedKernelTest {
protected:
  /// One workgroup of \p block work-items that runs \p body over and over.
  TimingReport time(const std::string &body, const RdnaTarget &target = {},
                    unsigned block = 32, unsigned ldsBytes = 0,
                    const std::string &mode = "0", unsigned scratchBytes = 0,
                    unsigned groups = 1) {
    AsmKernel kernel{"k", "  s_movk_i32 s20, 64\nloop:\n" + body +
                              "  s_sub_i32 s20, s20, 1\n"
                              "  s_cmp_lg_u32 s20, 0\n"
                              "  s_cbranch_scc1 loop\n"};
    kernel.ldsBytes = ldsBytes;
    use(target.chip);
    std::string text = rdnaModule(target, {kernel});
    const std::string lanes = "  .amdhsa_wavefront_size32";
    text.insert(text.find(lanes),
                "  .amdhsa_workgroup_processor_mode " + mode +
                    "\n  .amdhsa_private_segment_fixed_size " +
                    std::to_string(scratchBytes) + "\n");
    const std::string none = ".private_segment_fixed_size: 0";
    text.replace(text.find("    " + none) + 4, none.size(),
                 none.substr(0, none.size() - 1) +
                     std::to_string(scratchBytes));
    load(assemble(text, target.chip + (target.lanes == 64 ? " -mwavefrontsize64"
                                                          : "")));
    LaunchConfig config;
    config.grid = {groups, 1, 1};
    config.block = {block, 1, 1};
    Args args;
    args.Bytes.resize(128);
    TimingOptions options;
    options.clockHz = 1e9;
    return predicted(config, args, options);
  }
};

/// v[0:7] += v[...] * v[...], each operand with its first register.
std::string wmma(const RdnaTarget &target, unsigned a, unsigned b,
                 unsigned c = 0) {
  const unsigned words = target.gfx12() ? 4 : 8;
  const auto range = [](unsigned first, unsigned n) {
    return "v[" + std::to_string(first) + ":" + std::to_string(first + n - 1) +
           "]";
  };
  return "  v_wmma_f32_16x16x16_f16 " + range(c, 8) + ", " + range(a, words) +
         ", " + range(b, words) + ", " + range(c, 8);
}

const RdnaTarget kRdna3{"gfx1151", 32}, kRdna4{"gfx1201", 32};

// 256 products on one accumulator: 32 clocks each, and 34 where operands begin in
// one bank (llvm/llvm-project#204254, Radeon 8060S); 16 on RDNA4 (AMD's matrix
// instruction calculator; 200 TFLOPS of a RX 9070 XT).
TEST_F(RdnaTimingTest, MatrixChains) {
  EXPECT_NEAR(interval(time(repeat(wmma(kRdna3, 17, 26), 64), kRdna3), "v_wmma"),
              32, 0.2);
  EXPECT_NEAR(interval(time(repeat(wmma(kRdna3, 16, 26), 64), kRdna3), "v_wmma"),
              34, 0.2);
  EXPECT_NEAR(interval(time(repeat(wmma(kRdna3, 17, 25), 64), kRdna3), "v_wmma"),
              34, 0.2);
  const TimingReport report = time(repeat(wmma(kRdna4, 17, 26), 64), kRdna4);
  EXPECT_NEAR(interval(report, "v_wmma"), 16, 0.2);
  // gfx1201, all three in one bank: 16.8 at most (carlushuang/gcnasm)
  EXPECT_NEAR(
      interval(time(repeat(wmma(kRdna4, 16, 28), 64), kRdna4), "v_wmma"), 16,
      0.8);
  EXPECT_NEAR(report.peakFlops / report.peakClockHz, 64 * 1024, 1);
}

// Eight bits: as fast as sixteen on RDNA3, twice on RDNA4; four bits twice.
TEST_F(RdnaTimingTest, MatrixClocksFollowTheType) {
  const std::string iu8 = "  v_wmma_i32_16x16x16_iu8 v[0:7], ";
  const std::string iu4 = "  v_wmma_i32_16x16x16_iu4 v[0:7], ";
  EXPECT_NEAR(interval(time(repeat(iu8 + "v[17:20], v[26:29], v[0:7]", 64), kRdna3),
                       "v_wmma"), 32, 0.2);
  EXPECT_NEAR(interval(time(repeat(iu4 + "v[17:18], v[26:27], v[0:7]", 64), kRdna3),
                       "v_wmma"), 16, 0.2);
  EXPECT_NEAR(interval(time(repeat(iu8 + "v[17:18], v[26:27], v[0:7]", 64), kRdna4),
                       "v_wmma"), 8, 0.2);
  EXPECT_NEAR(interval(time(repeat(iu4 + "v17, v26, v[0:7]", 64), kRdna4),
                       "v_wmma"), 8, 0.2);
}

// Vector work of another wave and matrix work take turns; scalar and LDS work
// runs beside it.
TEST_F(RdnaTimingTest, MatrixAndVectorWorkExcludeEachOther) {
  const auto clocks = [&](const std::string &beside) {
    // Waves 0 and 2 share a SIMD: one multiplies, the other does something else.
    return time("  v_readfirstlane_b32 s21, v0\n  s_cmp_lt_u32 s21, 64\n"
                "  s_cbranch_scc0 other\n" +
                    repeat(wmma(kRdna4, 17, 26, 8), 16) + "  s_branch done\nother:\n" +
                    repeat(beside, 128) + "done:\n",
                kRdna4, 128, 1024)
        .clocks;
  };
  const double alone = clocks("  s_nop 0");
  EXPECT_NEAR(clocks("  s_add_i32 s22, s23, s24") / alone, 1, 0.06);
  EXPECT_GT(clocks("  v_add_f32 v30, v31, v32") / alone, 1.3);
}

// One exponential a product costs 3.5 of its 4 clocks (carlushuang/gcnasm: 200
// TFLOPS become 164).
TEST_F(RdnaTimingTest, ExponentialsDelayProducts) {
  const TimingReport report =
      time(repeat(wmma(kRdna4, 17, 26) + "\n  v_exp_f32 v40, v41", 128), kRdna4, 64);
  EXPECT_NEAR(16 * 64 * 128 / double(report.clocks), 164.0 / 200, 0.04);
}

TEST_F(RdnaTimingTest, VectorLatencies) {
  // Hardware traces of gfx1100: a clock, five where one needs the other.
  EXPECT_NEAR(interval(time(repeat("  v_add_f32 v1, v2, v3", 400)), "v_add"), 1,
              0.1);
  EXPECT_NEAR(interval(time(repeat("  v_add_f32 v1, v1, v3", 400)), "v_add"), 5,
              0.1);
  // Waves of 64 go through twice.
  EXPECT_NEAR(interval(time(repeat("  v_add_f32 v1, v2, v3", 400),
                            {"gfx1100", 64}, 64), "v_add"), 2, 0.1);
  EXPECT_NEAR(interval(time(repeat("  v_exp_f32 v1, v2", 400)), "v_exp"), 4, 0.1);
  // Other vector work goes on in the clock after a transcendental's.
  const TimingReport mixed =
      time(repeat("  v_exp_f32 v1, v2\n" + repeat("  v_add_f32 v3, v4, v5", 3), 100));
  EXPECT_NEAR(interval(mixed, "v_exp") + 3 * interval(mixed, "v_add"), 4, 0.4);
}

// Pairs take a clock, and four behind one that reads what it writes.
TEST_F(RdnaTimingTest, DualIssue) {
  const std::string apart =
      "  v_dual_mul_f32 v4, v8, v9 :: v_dual_mul_f32 v5, v10, v11";
  const std::string own =
      "  v_dual_mul_f32 v4, v4, v9 :: v_dual_mul_f32 v5, v10, v11\n"
      "  v_dual_mul_f32 v6, v6, v9 :: v_dual_mul_f32 v7, v11, v12";
  EXPECT_NEAR(interval(time(repeat(apart, 400)), "v_dual"), 1, 0.2);
  EXPECT_GT(interval(time(repeat(own, 50)), "v_dual"), 3.9);
}

// 31 to 33 clocks from a read of four bytes to the end of the wait for it, 36 or 37
// of sixteen.
TEST_F(RdnaTimingTest, LdsLatency) {
  for (const RdnaTarget &target : {RdnaTarget{}, kRdna4}) {
    const std::string wait =
        target.gfx12() ? "  s_wait_dscnt 0x0" : "  s_waitcnt lgkmcnt(0)";
    const auto latency = [&](const std::string &read) {
      const TimingReport report = time(
          "  v_lshlrev_b32 v1, 4, v0\n  v_lshlrev_b32 v2, 2, v0\n" +
              repeat("  " + read + "\n" + wait, 200),
          target, 32, 1024);
      return interval(report, read.substr(0, 9)) +
             interval(report, wait.substr(2, 9));
    };
    EXPECT_NEAR(latency("ds_load_b32 v4, v2"), 33, 1) << target.chip;
    EXPECT_NEAR(latency("ds_load_b128 v[4:7], v1"), 37, 1.5) << target.chip;
  }
}

// Reads get 128 bytes a clock, of a compute unit or, in WGP mode, of both: four
// waves read 512 bytes each.
TEST_F(RdnaTimingTest, LdsInBothModes) {
  const auto clocks = [&](const std::string &mode) {
    return time("  v_lshlrev_b32 v1, 4, v0\n  v_and_b32 v1, 0x3ff, v1\n" +
                    repeat("  ds_load_b128 v[4:7], v1", 200) +
                    "  s_waitcnt lgkmcnt(0)\n",
                {}, 128, 2048, mode)
        .clocks;
  };
  EXPECT_NEAR(clocks("0") / (64 * 200), 16, 0.5);
  EXPECT_NEAR(clocks("1") / (64 * 200), 16, 0.5);
}

/// Clocks until the LDS has served reads of 16 bytes a lane, in turn by compute
/// units of a WGP, of workgroups that begin at \p bytes.
double ldsClocksAt(const std::vector<uint64_t> &bytes) {
  const TimingConstants chip = asWgp(*timingConstants("gfx1201"));
  Sharing sharing;
  sharing.ldsBytes = 1024;
  sharing.misses.resize(chip.levels.size() - 1);
  MemoryModel memory(chip, sharing);
  MemoryUse read{};
  read.ldsClocks = 4;
  read.ldsBytes = 512;
  uint64_t end = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    end = std::max(end, memory.lds(read, i % 2 ? 3 : 0, false, 0, bytes[i]));
  return double(end) - chip.ldsLatency;
}

// In WGP mode the halves of the LDS serve side by side (RDNA ISA documents:
// space anywhere, near and far alike, "but performance may be lower in some
// cases"), and a compute unit's accesses go in order.
TEST_F(RdnaTimingTest, LdsOfWgpsHasTwoHalves) {
  constexpr uint64_t half = 64 << 10;
  EXPECT_EQ(ldsClocksAt({0, 0, 0, 0}), 16);
  EXPECT_EQ(ldsClocksAt({0, half, 0, half}), 8);
  EXPECT_EQ(ldsClocksAt({0, 0, half, half}), 12);
  EXPECT_EQ(ldsClocksAt({half - 1024, half}), 4);
}

// The lines of an L0 are gone with an invalidation ("invalidate the shader L0
// cache", ISA documents), those of the L2 are not.
TEST_F(RdnaTimingTest, InvalidationsEmptyL0) {
  for (const RdnaTarget &target : {RdnaTarget{}, kRdna4}) {
    const std::string load = "  v_mov_b32 v2, 0\n"
                             "  global_load_b32 v1, v2, s[0:1]\n" +
                             rdnaWait(target) + "\n";
    const std::string empty =
        target.gfx12() ? "  global_inv scope:SCOPE_SE\n" : "  buffer_gl0_inv\n";
    const double kept = time(load, target).clocks;
    const double lost = time(empty + load, target).clocks;
    const TimingConstants &chip = *timingConstants(target.chip);
    EXPECT_LT(kept, 64 * (chip.l1Latency + 60)) << target.chip;
    EXPECT_NEAR(lost - kept, 64 * (chip.levels[1].clocks - chip.l1Latency),
                64 * 10)
        << target.chip;
  }
}

// One takes 1.2 clocks of those back to back (braidinfer, RX 7900 XTX). gfx12
// counts them as loads (LLVM), so that a wait for loads is for them, too.
TEST_F(RdnaTimingTest, InvalidationsThemselvesAreCheap) {
  const double many = time(repeat("  buffer_gl0_inv", 200)).clocks;
  EXPECT_LT(many, 1.5 * 64 * 200);
  const auto waits = [&](const RdnaTarget &target, const std::string &one) {
    return time("  " + one + "\n" + rdnaWait(target) + "\n", target).clocks;
  };
  EXPECT_LT(waits({}, "buffer_gl0_inv"), 64 * 60);
  EXPECT_GT(waits(kRdna4, "global_inv scope:SCOPE_SE"),
            64 * timingConstants("gfx1201")->l1Latency);
}

// A neighbour's lines are in an L0 as far as it was filled since, otherwise in
// the cache behind it.
TEST_F(RdnaTimingTest, InvalidationsLoseNeighboursLines) {
  const TimingConstants chip = asWgp(*timingConstants("gfx1100"));
  Sharing sharing;
  sharing.misses.resize(chip.levels.size() - 1);
  sharing.misses.front().mean = 0; // all that this one touches is there
  const auto counted = [&](bool invalidated) {
    MemoryModel memory(chip, sharing);
    GroupTrace trace;
    MemoryUse use{};
    use.lines = 256;
    use.bytes = 128;
    use.lanes = 32;
    for (unsigned i = 0; i < use.lines; ++i)
      trace.lines.push_back(i);
    if (invalidated)
      memory.invalidate(0, 0);
    memory.vector(trace, use, 0, 0, 0);
    return memory.counters();
  };
  EXPECT_EQ(counted(false).l1Hits, 256u);
  EXPECT_LT(counted(true).l1Hits, 128u);
  EXPECT_GT(counted(true).l1Hits, 16u);
  EXPECT_EQ(counted(true).memoryBytes, 0u);
}

// A wave's scratch begins on a line, wherever this process has it: 16 bytes of
// 32 lanes are eight lines of 64. No other workgroup has them.
TEST_F(RdnaTimingTest, ScratchIsAlignedAndOwn) {
  const std::string body =
      repeat("  scratch_store_b128 off, v[4:7], off offset:16", 100);
  EXPECT_EQ(time(body, {}, 32, 0, "0", 8192).l1Bytes, 64 * 100 * 512);
  const TimingReport many = time(body, {}, 32, 0, "0", 64, 256);
  ASSERT_FALSE(many.notes.empty());
  EXPECT_NE(many.notes[0].find("the L0 fetches 100 % of the lines"),
            std::string::npos)
      << many.notes[0];
}

// A WGP has two compute units' SIMDs and L0s.
TEST_F(RdnaTimingTest, WorkgroupProcessors) {
  const TimingReport one = time("  s_nop 0\n", {}, 256, 1 << 15, "0");
  const TimingReport both = time("  s_nop 0\n", {}, 256, 1 << 15, "1");
  EXPECT_EQ(one.simds, 2u);
  EXPECT_EQ(both.simds, 4u);
  const TimingConstants &unit = *timingConstants("gfx1100");
  const TimingConstants pair = asWgp(unit);
  EXPECT_EQ(pair.l1s, 2u);
  EXPECT_EQ(pair.ldsPairs, 2u);
  EXPECT_EQ(pair.ldsSides, 2u);
  EXPECT_EQ(pair.matrixFlopsPerClock, 2 * unit.matrixFlopsPerClock);
}

// Waves that signal go on to the wait, and only there need the others.
TEST_F(RdnaTimingTest, SplitBarriers) {
  const auto clocks = [&](const std::string &between) {
    return time("  v_readfirstlane_b32 s21, v0\n  s_cmp_eq_u32 s21, 0\n"
                "  s_cbranch_scc0 fast\n" +
                    repeat("  v_exp_f32 v1, v2", 50) +
                    "fast:\n  s_barrier_signal -1\n" + between +
                    "  s_barrier_wait 0xffff\n",
                kRdna4, 64)
        .clocks;
  };
  const std::string work = repeat("  s_add_i32 s22, s22, 1", 40);
  EXPECT_GT(clocks(""), 64 * 200);
  // Wave 1 has done it by the time wave 0 signals.
  EXPECT_LT(clocks(work) - clocks(""), 64 * 100);
}

TEST_F(RdnaTimingTest, MoreWorkTakesLonger) {
  double last = 0;
  for (int n : {1, 2, 4, 8}) {
    const double clocks = time(repeat(wmma(kRdna4, 17, 26), n), kRdna4, 256).clocks;
    EXPECT_GT(clocks, last);
    last = clocks;
  }
}

// Every RDNA chip has constants, with a board, and none is told to be better known
// than the worst of what its figures were fitted to.
TEST(Rdna, EveryChipHasABoard) {
  for (const ChipInfo &chip : knownChips()) {
    if (chip.waveSize != 32 || !hasTiming(chip))
      continue;
    const Board *board = timedBoard(chip.target);
    ASSERT_NE(board, nullptr) << chip.target;
    EXPECT_EQ(board->computeUnits, chip.computeUnits) << chip.target;
    EXPECT_EQ(noTimingOf(chip.target, board->name), "");
    const TimingConstants &row = *timingConstants(chip.target);
    EXPECT_GE(row.peakHz, row.loadHz) << chip.target;
    EXPECT_GT(row.levels.back().totalSecond, 0) << chip.target;
    EXPECT_EQ(row.levels.back().bytes, 0u) << chip.target;
    EXPECT_TRUE(uncertaintyOf(chip.target, {1e-3, false}).isEstimate)
        << chip.target;
  }
  EXPECT_TRUE(timedBoard("gfx1201", "rx9070xt")->published);
  EXPECT_FALSE(timedBoard("gfx1201", "r9700")->published);
  const Uncertainty known = uncertaintyOf("gfx1201", {1e-3, false}),
                    other = uncertaintyOf("gfx1201", {1e-3, false, false});
  EXPECT_GT(other.time, known.time);
  EXPECT_EQ(other.ratio, known.ratio); // clock and memory are of one board
  EXPECT_GT(timingConstants("gfx1151", "strix-halo-120w")->loadHz,
            timingConstants("gfx1151", "strix-halo-55w")->loadHz);
}

TEST(Rdna, WhatHasNoModelIsNamed) {
  const std::string chip = noTimingOf("gfx1250");
  EXPECT_NE(chip.find("no timing model of gfx1250"), chip.npos) << chip;
  EXPECT_NE(chip.find("gfx942, gfx950, gfx1100"), chip.npos) << chip;
  const std::string board = noTimingOf("gfx1201", "w7900");
  EXPECT_NE(board.find("no board 'w7900' of gfx1201"), board.npos) << board;
  EXPECT_NE(board.find("rx9070xt, r9700"), board.npos) << board;
  EXPECT_NE(noTimingOf("gfx942", "mi300a").find("none to choose"), board.npos);
}

} // namespace
