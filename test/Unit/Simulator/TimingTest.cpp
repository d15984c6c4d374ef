//===- TimingTest.cpp - The timing model on what is known -----------------===//
//
// Small kernels whose clocks are known: from measurements that docs/Timing.md
// names, or because a unit can do no better. And that the grid adds up.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "TimedKernelTest.h"
#include "isa/Table.h"
#include "timing/Constants.h"
#include "timing/Ensemble.h"
#include "timing/Grid.h"
#include "timing/Lds.h"
#include "timing/Memory.h"
#include "timing/Neighbours.h"
#include "timing/Ops.h"
#include "timing/Uncertainty.h"

#include <functional>
#include <map>
#include <set>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class TimingTest : public TimedKernelTest {
protected:
  /// One workgroup of \p block work-items that runs \p body over and over.
  TimingReport time(const std::string &body, unsigned block = 64,
                    unsigned ldsBytes = 0, const std::string &target = "gfx942",
                    bool ensemble = false) {
    AsmKernel kernel{"k", "  s_movk_i32 s20, 64\nloop:\n" + body +
                              "  s_sub_u32 s20, s20, 1\n"
                              "  s_cmp_lg_u32 s20, 0\n"
                              "  s_cbranch_scc1 loop\n"};
    kernel.ldsBytes = ldsBytes;
    load(assemble(asmModule({kernel}, 64, target), target));
    LaunchConfig config;
    config.block = {block, 1, 1};
    Args args;
    args.Bytes.resize(64);
    TimingOptions options;
    options.clockHz = 1e9;
    options.ensemble = ensemble;
    return predicted(config, args, options);
  }
};

// MFMAs on one accumulator follow each other without a gap (measured on MI250X);
// the passes of gfx942 are half of its.
TEST_F(TimingTest, MatrixChainsRunWithoutGaps) {
  TimingReport report = time(
      repeat("  v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", 64));
  EXPECT_NEAR(interval(report, "v_mfma"), 32, 1);
  // One wave keeps one of four matrix cores at work.
  EXPECT_NEAR(report.matrix, 0.25, 0.01);
  EXPECT_DOUBLE_EQ(report.flops, 64.0 * 64 * 2 * 32 * 32 * 8);
}

// A reader other than the accumulator waits for three slots more than passes.
TEST_F(TimingTest, MatrixResultsTakeTheirPasses) {
  TimingReport report = time(repeat(
      "  v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], 0\n"
      "  v_add_f32 v20, v0, v1", 32));
  EXPECT_NEAR(interval(report, "v_mfma") + interval(report, "v_add"), 4 + 28, 1);
}

// 5 PFLOPS of fp8 on MI355X, 10 of fp4: eight bits on either side are half as
// fast.
TEST_F(TimingTest, PassesFollowTheFormats) {
  use("gfx950");
  struct Case {
    const char *operands;
    double clocks, petaflops;
  };
  for (Case c : {Case{"v[16:23], v[24:31], v[0:15]", 64, 5.0},
                 Case{"v[16:19], v[20:23], v[0:15] cbsz:4 blgp:4", 32, 10.1},
                 Case{"v[16:21], v[24:29], v[0:15] cbsz:2 blgp:3", 32, 10.1},
                 Case{"v[16:19], v[24:31], v[0:15] cbsz:4", 64, 5.0}}) {
    TimingReport report =
        time(repeat(std::string("  v_mfma_f32_32x32x64_f8f6f4 v[0:15], ") +
                        c.operands,
                    64),
             64, 0, "gfx950");
    EXPECT_NEAR(interval(report, "v_mfma"), c.clocks, 1) << c.operands;
    EXPECT_NEAR(report.peakFlops / 1e15, c.petaflops, 0.1) << c.operands;
  }
}

TEST_F(TimingTest, VectorWorkHidesBehindMatrixWork) {
  std::string add = repeat("  v_add_f32 v30, v31, v32", 7);
  TimingReport both = time(repeat(
      "  v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]\n" + add, 32));
  EXPECT_GT(both.matrix, 0.23); // 7 of 7 free slots
  std::string packed = repeat("  v_pk_add_f32 v[30:31], v[32:33], v[34:35]", 7);
  TimingReport serial = time(repeat(
      "  v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]\n" + packed, 32));
  EXPECT_LT(serial.matrix, 0.14); // packed fp32 does not run beside it
}

TEST_F(TimingTest, VectorAluIsFull) {
  TimingReport one = time(repeat("  v_add_f32 v1, v2, v3", 100), 64);
  EXPECT_NEAR(interval(one, "v_add_f32"), 4, 0.5);
  TimingReport four = time(repeat("  v_add_f32 v1, v2, v3", 100), 256);
  EXPECT_GT(four.valu, 0.85);
  TimingReport exp = time(repeat("  v_exp_f32 v1, v2\n", 100), 256);
  EXPECT_NEAR(interval(exp, "v_exp_f32"), 16, 0.5);
}

// Conflict clocks of strides that put all lanes on one bank, as counted by
// SQ_LDS_BANK_CONFLICT on MI300X: 62, 60 and 56.
TEST_F(TimingTest, LdsConflicts) {
  const LdsShape &chip = ldsShape(*findChip("gfx942"));
  uint64_t same[64], dense[64];
  struct Case {
    unsigned bytes, clocks, conflicts;
  };
  for (Case c : {Case{4, 2, 62}, Case{8, 4, 60}, Case{16, 8, 56}}) {
    for (unsigned l = 0; l < 64; ++l) {
      same[l] = uint64_t(l) * 128;
      dense[l] = uint64_t(l) * c.bytes;
    }
    unsigned conflicts = 0;
    EXPECT_EQ(ldsClocks(chip, dense, ~0ull, 64, c.bytes, false, conflicts), c.clocks);
    EXPECT_EQ(conflicts, 0u);
    EXPECT_EQ(ldsClocks(chip, same, ~0ull, 64, c.bytes, false, conflicts),
              c.clocks + c.conflicts);
    EXPECT_EQ(conflicts, c.conflicts);
    for (uint64_t &a : same)
      a = 64;
    EXPECT_EQ(ldsClocks(chip, same, ~0ull, 64, c.bytes, false, conflicts), c.clocks);
  }
}

// RDNA3 serves reads of 16 bytes in phases of two groups of four lanes; RDNA4 and
// writes in order. Lanes 16 words apart share banks with every second lane.
TEST(Lds, PhasesFollowTheChip) {
  uint64_t near[64], far[64];
  for (unsigned l = 0; l < 64; ++l) {
    near[l] = l / 8 * 128 + l % 8 * 16; // eight lanes fill the banks
    far[l] = l % 4 * 16 + (l / 4 % 8 == 5 || l / 4 % 8 == 4 ? 64 : 0) +
             l / 4 * 128; // lanes 0 to 3 and 20 to 23 fill them
  }
  auto conflicts = [](const char *chip, const uint64_t *address, bool store,
                      unsigned lanes) {
    unsigned result = 0;
    ldsClocks(ldsShape(*findChip(chip)), address, ~0ull >> (64 - lanes), lanes, 16,
              store, result);
    return result;
  };
  EXPECT_EQ(conflicts("gfx1201", near, false, 32), 0u);
  EXPECT_EQ(conflicts("gfx1201", near, true, 32), 0u);
  EXPECT_EQ(conflicts("gfx1100", near, true, 32), 0u);
  EXPECT_GT(conflicts("gfx1201", far, false, 32), 0u);
  EXPECT_LT(conflicts("gfx1100", far, false, 32),
            conflicts("gfx1100", far, true, 32));
  // Every chip has a row of its own kind, and dense accesses are free.
  for (const ChipInfo &chip : knownChips()) {
    EXPECT_EQ(ldsShape(chip).kind, chip.ldsKind) << chip.target;
    EXPECT_EQ(conflicts(std::string(chip.target).c_str(), near, true,
                        chip.waveSize), 0u) << chip.target;
  }
}

TEST_F(TimingTest, LdsBandwidth) {
  // Four waves read 16 bytes a lane: 1024 bytes each at 128 a clock.
  TimingReport report = time("  v_lshlrev_b32 v1, 4, v0\n  v_and_b32 v1, 0x3ff, v1\n" + repeat("  ds_read_b128 v[4:7], v1", 200) +
                                 "  s_waitcnt lgkmcnt(0)\n",
                             256, 1024);
  // 32, the slowest XCD, and the ends of the loop.
  EXPECT_NEAR(report.clocks / (64 * 200), 34, 2);
  EXPECT_GT(report.lds, 0.85);
}

TEST_F(TimingTest, BarriersWaitForTheSlowest) {
  // Wave 0 works before the barrier; the others wait there.
  TimingReport report =
      time("  v_readfirstlane_b32 s21, v0\n  s_cmp_eq_u32 s21, 0\n"
           "  s_cbranch_scc0 done\n" +
               repeat("  v_exp_f32 v1, v2", 50) + "done:\n  s_barrier\n",
           256);
  EXPECT_GT(report.stalls[unsigned(Stall::Barrier)], 0.4);
}

TEST_F(TimingTest, OccupancyFollowsFromResources) {
  // 512 registers: one wave a SIMD.
  EXPECT_EQ(time("  s_nop 0\n", 256).resident, 1u);
  load(compileOpenCL("__kernel void k(__global int *p) {"
                     "__local int x[9000]; x[LID] = p[GID]; BARRIER();"
                     "p[GID] = x[LID ^ 1]; }"));
  LaunchConfig config;
  config.grid = {10000, 1, 1};
  config.block = {64, 1, 1};
  int *data = buffer<int>(size_t(64) * 10000);
  Args args;
  args.add(data);
  TimingReport report = predicted(config, args);
  EXPECT_EQ(report.resident, 1u);
  EXPECT_EQ(report.residentLimit, "LDS");
  EXPECT_EQ(report.workgroups, 10000u);
  EXPECT_GT(report.memoryBytes, 0);
}

/// Predicted matrix work of a grid against what a launch executes.
const char *const kTriangle = R"(
__kernel void k(__global float *out) {
  int id = __builtin_amdgcn_workgroup_id_x();
  f4 c = 0;
  h4 a = 1;
  for (int i = 0; i < 10 + 3 * id; ++i)
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(a, a, c, 0, 0, 0);
  out[LID] = c.x;
})";

TEST_F(TimingTest, WorkThatGrowsAlongTheGridAddsUp) {
  load(compileOpenCL(kTriangle));
  float *out = buffer<float>(64);
  Args args;
  args.add(out);
  LaunchConfig config;
  config.grid = {700, 2, 1};
  config.block = {64, 1, 1};
  TimingReport report = predicted(config, args);
  double flops = 0;
  for (int i = 0; i < 700; ++i)
    flops += 2 * (10 + 3 * i) * 2.0 * 16 * 16 * 16;
  EXPECT_NEAR(report.flops / flops, 1, 0.02);
  EXPECT_GT(report.samples.size(), 2u);
  EXPECT_LT(report.busyShare, 0.99);
}

// Workgroups that take tiles from a counter: one that runs alone must not be
// taken for one that has all of them.
const char *const kPersistent = R"(
__kernel void k(__global float *out, __global unsigned *counter, unsigned tiles) {
  __local unsigned next;
  f4 c = 0;
  h4 a = 1;
  while (1) {
    if (LID == 0)
      next = __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
    BARRIER();
    unsigned tile = next;
    BARRIER();
    if (tile >= tiles)
      break;
    for (unsigned i = 0; i < 10 + tile % 64; ++i)
      c = __builtin_amdgcn_mfma_f32_16x16x16f16(a, a, c, 0, 0, 0);
  }
  out[LID] = c.x;
})";

TEST_F(TimingTest, PersistentWorkgroupsShareTheirTiles) {
  load(compileOpenCL(kPersistent));
  float *out = buffer<float>(256);
  unsigned *counter = buffer<unsigned>(std::vector<unsigned>(1, 0));
  const unsigned tiles = 20000;
  Args args;
  args.add(out).add(counter).add(tiles);
  LaunchConfig config;
  config.grid = {304, 1, 1};
  config.block = {256, 1, 1};
  TimingReport report = predicted(config, args);
  double flops = 0;
  for (unsigned i = 0; i < tiles; ++i)
    flops += 4 * (10 + i % 64) * 2.0 * 16 * 16 * 16;
  EXPECT_NEAR(report.flops / flops, 1, 0.08);
  EXPECT_EQ(*counter, 0u); // it is left as it was
  ASSERT_FALSE(report.notes.empty());
}

// A launch whose time was predicted first finds memory as it was, whatever its
// samples did to it, and how often.
TEST_F(TimingTest, CanLeaveNoTrace) {
  load(compileOpenCL(R"(
__kernel void k(__global unsigned *count, __global unsigned char *bytes) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + LID;
  __atomic_fetch_add(count, 1u, __ATOMIC_RELAXED);
  bytes[3 * i] = 7;
  bytes[3 * i] += 1;
})"));
  const unsigned groups = 64;
  unsigned *count = buffer<unsigned>(std::vector<unsigned>(1, 5));
  auto *bytes =
      buffer<unsigned char>(std::vector<unsigned char>(groups * 64 * 3, 9));
  Args args;
  args.add(count).add(bytes);
  LaunchConfig config;
  config.grid = {groups, 1, 1};
  config.block = {64, 1, 1};
  // Memory of which it is known what was written stays known.
  WrittenMap &written = Code->device()->memory().written();
  written.follow(reinterpret_cast<uint64_t>(bytes), groups * 64 * 3);
  TimingOptions options;
  options.takeBack = true;
  const TimingReport trial = predicted(config, args, options);
  EXPECT_EQ(*count, 5u);
  for (unsigned i = 0; i < groups * 64 * 3; ++i)
    ASSERT_EQ(bytes[i], 9) << i;
  EXPECT_FALSE(written.empty());
  // The same time as of one that leaves it.
  const TimingReport plain = predicted(config, args);
  EXPECT_EQ(trial.seconds, plain.seconds);
  EXPECT_GT(*count, 5u);
  EXPECT_EQ(bytes[groups / 2 * 64 * 3], 8);
  EXPECT_TRUE(written.empty());
}

// Workgroups of one die that read the same lines in sixteens, of a grid that the
// chip holds: of the sample's sixteen all follow it, all precede it, or some do
// either. An L2 has a line once in each case.
const char *const kSharers = R"(
__kernel void k(__global float *in, __global float *out, unsigned first) {
  unsigned ofDie = __builtin_amdgcn_workgroup_id_x() / 8;
  __global float *mine = in + (ofDie + first) / 16 * 65536;
  float sum = 0;
  for (unsigned i = 0; i < 256; ++i)
    sum += mine[i * 256 + LID];
  out[LID] = sum;
})";

TEST_F(TimingTest, SharersAreFoundOnEitherSide) {
  load(compileOpenCL(kSharers));
  float *in = buffer<float>(4 * 65536), *out = buffer<float>(256);
  for (unsigned first : {0u, 5u, 15u}) {
    SCOPED_TRACE(first);
    Args args;
    args.add(in).add(out).add(first);
    LaunchConfig config;
    config.grid = {8 * 32, 1, 1};
    config.block = {256, 1, 1};
    TimingReport report = predicted(config, args);
    // A sixteenth, and what no other reads. The rate of hits is drawn by it, line
    // by line, and differs with addresses.
    EXPECT_TRUE(std::any_of(report.notes.begin(), report.notes.end(),
                            [](const std::string &note) {
                              return note.find("the L2 fetches 7 % of ") !=
                                     note.npos;
                            }))
        << ::testing::PrintToString(report.notes);
  }
}

TEST_F(TimingTest, ReportsAddUp) {
  TimingReport report = time("  v_and_b32 v1, 0x3f, v0\n" + repeat("  ds_read_b32 v4, v1\n  v_exp_f32 v3, v2\n"
                                    "  s_waitcnt lgkmcnt(0)", 20), 512, 1024);
  double sum = report.issuedShare;
  for (double share : report.stalls)
    sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
  // What waves waited and issued is what they lived.
  double lived = 0, clocks = 0;
  for (const InstTiming &inst : report.instructions) {
    clocks += 4.0 * double(inst.issues);
    for (uint64_t s : inst.stalls)
      clocks += double(s);
  }
  for (const TimingSample &sample : report.samples)
    lived += sample.clocks * 8;
  EXPECT_NEAR(clocks / lived, 1, 0.12); // but for the start of the workgroup
}

/// Every instruction of the table has a unit, and those that are not full rate
/// say so.
TEST(Costs, EveryInstructionHasThem) {
  const TimingConstants &chip = *timingConstants("gfx908");
  const unsigned full = vectorCost(chip, Rate::Full).clocks;
  for (const Row &row : IsaTable::get()->rows()) {
    const Unit unit = unitOf(row);
    const std::string name(row.mnemonic);
    const unsigned clocks = vectorCost(chip, row.rate).clocks;
    if (row.cls == InstClass::Mfma && row.form != Form::Custom) {
      EXPECT_EQ(unit, Unit::Matrix) << name;
      EXPECT_GT(row.count, 1u) << name << " has no operations";
    }
    if (row.cls == InstClass::Valu || row.cls == InstClass::Trans)
      EXPECT_EQ(unit, Unit::Valu) << name;
    if (row.cls == InstClass::Trans)
      EXPECT_EQ(row.rate, Rate::Transcendental) << name;
    for (const char *slow : {"v_fma_f64", "v_mul_lo_u32", "v_mad_u64_u32",
                             "v_pk_fma_f32", "v_permlane32_swap_b32"})
      if (name == slow)
        EXPECT_GT(clocks, full) << name;
    if (name.substr(0, 4) == "v_mo")
      EXPECT_EQ(clocks, full) << name;
  }
}

TEST(Uncertainty, IsLargerWhereLessIsPublished) {
  for (bool adds : {false, true}) {
    const double large = uncertaintyOf("gfx908", {1, adds}).time;
    for (const char *target : {"gfx942", "gfx950"})
      for (double seconds : {1e-5, 1e-2}) {
        const Uncertainty found = uncertaintyOf(target, {seconds, adds});
        EXPECT_GT(found.time, 0) << target;
        EXPECT_LE(found.ratio, found.time) << target;
        EXPECT_LT(found.time, large) << target;
      }
  }
}

/// What one constant explains does not hold where that is another; what rests
/// on the work does.
TEST_F(TimingTest, RatiosHoldInMembersOrDoNot) {
  const auto members = [&](const std::string &body) {
    return time(body, 64, 1024, "gfx942", true).members;
  };
  const std::string read = "  ds_read_b32 v1, v0\n  s_waitcnt lgkmcnt(0)\n";
  const std::string wait = "  s_barrier\n";
  const auto reads = members(repeat(read, 16)),
             fewer = members(repeat(read, 4)),
             barriers = members(repeat(wait, 58));
  ASSERT_EQ(reads.size(), ensembleOf(*timingConstants("gfx942")).size());
  const RatioRange same = ratioOverMembers(reads, reads);
  EXPECT_EQ(same.least, 1);
  EXPECT_EQ(same.greatest, 1);
  EXPECT_GT(ratioOverMembers(reads, fewer).least, 2.5);
  // Barriers alone, whose latency nobody knows, are as long by the model.
  const RatioRange range = ratioOverMembers(reads, barriers);
  EXPECT_LT(range.least, 0.6);
  EXPECT_GT(range.greatest, 1.2);
  std::map<std::string, double> byName;
  for (size_t i = 0; i != reads.size(); ++i) {
    EXPECT_EQ(reads[i].name, barriers[i].name);
    byName[reads[i].name] = reads[i].seconds / barriers[i].seconds;
  }
  EXPECT_LT(byName["barriers x 3"], 0.6 * byName["atomics x 1.25"]);
  EXPECT_GT(byName["LDS latency x 1.25"], 1.05 * byName["atomics x 1.25"]);
}

TEST(Ensemble, MembersAreToldApartAndLeaveTheModelAlone) {
  for (const char *target :
       {"gfx908", "gfx942", "gfx950", "gfx1151", "gfx1201"}) {
    const TimingConstants chip = *timingConstants(target);
    std::set<std::string> names;
    for (const Member &member : ensembleOf(chip)) {
      EXPECT_TRUE(names.insert(member.name).second) << member.name;
      EXPECT_EQ(member.constants.lineBytes, chip.lineBytes); // traces have it
      EXPECT_GT(member.constants.loadHz, 0) << member.name;
      if (member.name == "clash of banks x 2")
        EXPECT_GT(member.constants.matrixClash, chip.matrixClash) << target;
      for (const MemoryLevel &level : member.constants.levels)
        EXPECT_GT(level.totalClock + level.totalSecond, 0) << member.name;
    }
    EXPECT_GT(names.size(), 40u) << target;
    for (const char *name : {"clash of banks x 0", "clash of banks x 2"})
      EXPECT_EQ(names.count(name), target[3] == '1') << target << name;
  }
}

/// Additions in memory take what the chip's atomic units need for their words.
TEST_F(TimingTest, AtomicsTakeTheirTime) {
  const auto clocks = [&](const std::string &mnemonic) {
    AsmKernel kernel{"k", "  s_load_dwordx2 s[0:1], s[0:1], 0x0\n"
                          "  v_lshlrev_b32 v1, 2, v0\n"
                          "  s_waitcnt lgkmcnt(0)\n" +
                              repeat("  " + mnemonic + " v1, v2, s[0:1]", 256)};
    load(assemble(asmModule({kernel})));
    float *words = buffer(std::vector<float>(64));
    LaunchConfig config;
    config.grid = {304 * 8, 1, 1};
    config.block = {64, 1, 1};
    Args args;
    args.add(words);
    TimingOptions options;
    options.clockHz = 1e9;
    return predicted(config, args, options).clocks;
  };
  const double chip = timingConstants("gfx942")->atomicWordsPerSecond;
  const double least = 304 * 8 * 256 * 64.0 / (chip / 1e9);
  EXPECT_GT(clocks("global_atomic_add_f32"), least);
  EXPECT_LT(clocks("global_atomic_add_f32"), 1.5 * least);
}

/// When the `count`th of lines that miss everything arrives.
double arrival(const char *target, unsigned count, double unitsShare) {
  const TimingConstants &chip = *timingConstants(target);
  Sharing sharing;
  sharing.unitsShare = unitsShare;
  sharing.clockHz = 2e9;
  sharing.misses.resize(chip.levels.size() - 1);
  MemoryModel memory(chip, sharing);
  GroupTrace group;
  for (unsigned line = 0; line < count; ++line)
    group.lines.push_back(1000 + 977 * line);
  MemoryUse use{};
  use.lines = count;
  use.bytes = count * chip.lineBytes;
  use.lanes = 64;
  return double(memory.vector(group, use, /*op=*/0, /*salt=*/0, /*now=*/0));
}

TEST(Memory, LatencyGrowsWithLoad) {
  // The last of 300 lines of 44 KiB finds 299 under way: 550 ns times their
  // share, at 2 GHz.
  const double loaded = 1100 * 299 * 128 / double(44 << 10);
  EXPECT_NEAR(arrival("gfx950", 300, 1) - arrival("gfx950", 300, 0.5),
              loaded / 2, 1);
  EXPECT_NEAR(arrival("gfx950", 1, 1), arrival("gfx950", 1, 0), 1);
  EXPECT_EQ(arrival("gfx942", 300, 1), arrival("gfx942", 300, 0));
}

/// Clocks that a load of 16 bytes a lane from \p rows lines holds L1, which has
/// them.
double lineClocks(const char *target, unsigned rows) {
  const TimingConstants &chip = *timingConstants(target);
  Sharing sharing;
  sharing.misses.resize(chip.levels.size() - 1);
  MemoryModel memory(chip, sharing);
  GroupTrace group;
  for (unsigned line = 0; line < rows; ++line)
    group.lines.push_back(1000 + line);
  MemoryUse use{};
  use.lines = rows;
  use.bytes = 512;
  use.lanes = 32;
  constexpr uint64_t kWarm = 1 << 20;
  memory.vector(group, use, /*op=*/0, /*salt=*/0, /*now=*/0);
  const uint64_t first = memory.vector(group, use, 0, 0, kWarm);
  return double(memory.vector(group, use, 0, 0, kWarm) - first);
}

// Copies of a trace, apart in high bits, have a cache that is large enough.
TEST(Memory, CopiesOfLinesSpreadOverSets) {
  TagStore tags(2 << 20, 64, 16, true);
  const auto hits = [&] {
    unsigned count = 0;
    for (uint64_t copy = 0; copy != 36; ++copy)
      for (uint64_t line = 0; line != 256; ++line)
        count += tags.touch(((uint64_t(1) << 42) + line) ^ (copy << 44));
    return count;
  };
  EXPECT_EQ(hits(), 0u);
  EXPECT_GT(hits(), 36u * 256 * 99 / 100);
}

TEST(Memory, LinesOfALoad) {
  // Sixteen rows of an operand: two lines a clock on RDNA, as many bytes as L0
  // gives.
  EXPECT_EQ(lineClocks("gfx1201", 16), 8);
  EXPECT_EQ(lineClocks("gfx1100", 8), 8);
  EXPECT_EQ(lineClocks("gfx1100", 32), 16);
  EXPECT_EQ(lineClocks("gfx942", 16), 16);
}

TEST_F(TimingTest, UnknownChipsAreRefused) {
  for (const ChipInfo &chip : knownChips())
    if (!hasTiming(chip)) {
      std::shared_ptr<Device> device;
      ASSERT_TRUE(Device::create(chip.target, device).ok());
      EXPECT_EQ(timingConstants(chip.target), nullptr);
    }
  EXPECT_NE(timingConstants("gfx942"), nullptr);
}

/// What a map asked for until it wanted no more.
std::map<uint64_t, uint64_t>
finish(WorkMap &map, const std::function<uint64_t(uint64_t)> &workOf) {
  std::map<uint64_t, uint64_t> counts;
  for (std::vector<uint64_t> next = map.wanted(counts); !next.empty();
       next = map.wanted(counts))
    for (uint64_t group : next)
      counts[group] = workOf(group);
  map.finish(counts);
  return counts;
}

// Longest first over batches that take turns: work falls with the place in the
// grid and follows none of its dimensions. Each run of groups has the work of one
// of its own, or else what comes first is taken to be longer than it is.
TEST(WorkMapTest, SampledGroupsStandForTheirOwnRuns) {
  const uint32_t grid[3] = {16, 32, 4};
  constexpr uint64_t kTotal = 16 * 32 * 4, kPerBlock = 16 * 4;
  auto workOf = [](uint64_t group) { return 100 + 1000 * (31 - group / kPerBlock); };
  WorkMap map(grid, kTotal);
  finish(map, workOf);
  EXPECT_NE(map.note(), "");
  double predicted = 0, exact = 0;
  for (uint64_t group = 0; group < kTotal; ++group) {
    predicted += map.work(group);
    exact += double(workOf(group));
  }
  EXPECT_NEAR(predicted / exact, 1, 0.005);
}

// All blocks of some heads, then of the next ones: work goes up and down with
// y. Where it does so but once, in the middle, points and chance can miss it.
TEST(WorkMapTest, FindsHowManyHeadsTakeTurns) {
  struct Case {
    uint32_t heads, blocks, together;
  };
  for (auto [heads, blocks, together] : {Case{24, 100, 4}, Case{16, 64, 8}}) {
    const uint32_t grid[3] = {heads, blocks, 2};
    const uint64_t total = uint64_t(heads) * blocks * 2;
    auto workOf = [&](uint64_t group) {
      return 100 + 7 * (blocks - 1 - group / together % blocks);
    };
    WorkMap map(grid, total);
    const std::map<uint64_t, uint64_t> counts = finish(map, workOf);
    EXPECT_EQ(map.note(), "");
    EXPECT_LT(counts.size(), 64u);
    for (uint64_t group = 0; group < total; ++group)
      ASSERT_NEAR(map.work(group), double(workOf(group)), 1)
          << group << " of " << heads << " heads";
  }
}

// Of 128 workgroups that take the blocks of 8 heads in turns every eighth has
// the head of the first. Those that are asked are to have their share of these.
TEST(NeighboursTest, StepsPassByNoHead) {
  for (uint64_t neighbours : {128, 192, 256, 512, 1000})
    for (uint64_t heads : {2, 4, 8, 16}) {
      constexpr uint64_t kMost = 48;
      const std::vector<uint64_t> steps = stepsToNeighbours(neighbours, kMost);
      ASSERT_EQ(steps.size(), kMost);
      uint64_t ofHead = 0, last = 0;
      for (uint64_t step : steps) {
        EXPECT_GT(step, last);
        EXPECT_LT(step, neighbours);
        last = step;
        ofHead += step % heads == 0;
      }
      EXPECT_GE(ofHead * heads * 3, kMost) << neighbours << ", " << heads;
      EXPECT_LE(ofHead * heads, kMost * 3) << neighbours << ", " << heads;
    }
  EXPECT_EQ(stepsToNeighbours(4, 48), (std::vector<uint64_t>{1, 2, 3}));
}

} // namespace
