//===- CountingTest.cpp - Exact counts of what executes -------------------===//
//
// Small kernels whose counts are plain from their text.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"
#include "fovea/Simulator/Counting.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class CountingTest : public KernelTest {
protected:
  ExecutionCounts countBody(const std::string &body, unsigned block = 64,
                            unsigned groups = 1, unsigned ldsBytes = 0) {
    AsmKernel kernel{"k", body};
    kernel.ldsBytes = ldsBytes;
    load(assemble(asmModule({kernel})));
    LaunchConfig config;
    config.grid = {groups, 1, 1};
    config.block = {block, 1, 1};
    Args args;
    args.Bytes.resize(64);
    ExecutionCounts counts;
    Status status =
        count(*Code, *Code->findKernel("k"), withArgs(config, args), counts);
    EXPECT_TRUE(status.ok()) << status.message();
    return counts;
  }
};

TEST_F(CountingTest, SumsOverWavesAndWorkgroups) {
  ExecutionCounts counts = countBody("  v_add_f32 v1, v2, v3\n", 256, 5);
  EXPECT_EQ(counts.workgroups, 5u);
  EXPECT_EQ(counts.waves, 20u);
  EXPECT_EQ(counts[InstClass::Valu], 20u);
  EXPECT_EQ(counts.byMnemonic.at("v_add_f32"), 20u);
  EXPECT_DOUBLE_EQ(counts.vectorClocks, 20 * 4);
  uint64_t sum = 0;
  for (const auto &[name, n] : counts.byMnemonic)
    sum += n;
  EXPECT_EQ(sum, counts.instructions());
}

TEST_F(CountingTest, TellsMovesBetweenLanes) {
  ExecutionCounts counts = countBody(
      "  v_mov_b32 v1, 0\n"
      "  ds_bpermute_b32 v2, v1, v0\n"
      "  ds_swizzle_b32 v3, v0 offset:swizzle(SWAP,16)\n"
      "  v_add_f32_dpp v4, v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf\n"
      "  s_nop 4\n"
      "  v_readfirstlane_b32 s10, v0\n"
      "  s_waitcnt lgkmcnt(0)\n");
  EXPECT_EQ(counts.laneMoves, 3u);
  EXPECT_EQ(counts.ldsClocks, 0u) << "lanes change places without memory";
  EXPECT_EQ(counts.waits, 1u);
}

TEST_F(CountingTest, TellsMatrixWork) {
  ExecutionCounts counts = countBody(
      "  v_accvgpr_write_b32 a16, v0\n"
      "  v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15]\n"
      "  v_exp_f32 v1, v0\n"
      "  v_pk_mul_f32 v[2:3], v[2:3], v[4:5]\n");
  EXPECT_EQ(counts[InstClass::Mfma], 1u);
  EXPECT_DOUBLE_EQ(counts.matrixFlops, 2.0 * 32 * 32 * 8);
  EXPECT_DOUBLE_EQ(counts.matrixClocks, 32);
  EXPECT_DOUBLE_EQ(counts.vectorClocks, 4 + 16 + 4);
  EXPECT_EQ(counts.accumulatorMoves, 1u);
  EXPECT_EQ(counts.exponentials, 1u);
  EXPECT_EQ(counts.packedFloats, 1u);
}

TEST_F(CountingTest, CountsConflictsByInstruction) {
  ExecutionCounts counts = countBody("  v_lshlrev_b32 v1, 2, v0\n"
                                     "  v_lshlrev_b32 v2, 7, v0\n"
                                     "  ds_write_b32 v1, v0\n"
                                     "  ds_write_b32 v2, v0\n"
                                     "  s_waitcnt lgkmcnt(0)\n"
                                     "  ds_read_b32 v3, v1\n"
                                     "  s_waitcnt lgkmcnt(0)\n",
                                     64, 1, 8192);
  EXPECT_EQ(counts.ldsConflicts, 62u);
  EXPECT_EQ(counts.ldsClocks, 3 * 2 + 62u);
  EXPECT_EQ(counts.conflictsByMnemonic.size(), 1u);
  EXPECT_EQ(counts.conflictsByMnemonic.at("ds_write_b32"), 62u);
  EXPECT_EQ(counts.ldsBytesStored, 512u);
  EXPECT_EQ(counts.ldsBytesLoaded, 256u);
}

TEST_F(CountingTest, TheDifferenceIsWhatWasAdded) {
  const std::string add = "  v_add_f32 v1, v2, v3\n";
  ExecutionCounts less = countBody(add), more = countBody(add + add + "  s_nop 0\n");
  EXPECT_TRUE(more.contains(less));
  EXPECT_FALSE(less.contains(more));
  more -= less;
  EXPECT_EQ(more.instructions(), 2u);
  EXPECT_EQ(more.byMnemonic.size(), 2u) << "what did not change is not listed";
  EXPECT_EQ(more.byMnemonic.at("v_add_f32"), 1u);
  EXPECT_EQ(more.waves, 0u);
}

} // namespace
