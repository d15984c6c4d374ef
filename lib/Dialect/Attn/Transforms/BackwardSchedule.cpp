//===- BackwardSchedule.cpp - schedules of the backward kernels -----------===//

#include "ScheduleTable.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// What takes registers that fused kernels which fill theirs do not have.
static constexpr KernelNeeds kTakesMore =
    kDropsWeights | kCutsColumns | kHasProgram;
/// All that takes some.
static constexpr KernelNeeds kTakesAny =
    kTakesMore | kReadsTiles | kColumnsDiffer;

/// Schedules of the deterministic gradient kernels.
struct BackwardRow {
  uint32_t features; ///< that the chip must have, beside the instruction
  int64_t maxHeadDim;
  const char *inst;
  KernelRow dkdv, dq;
  KernelNeeds onlyFor = 0; ///< kernels with one of these; 0: for all
  KernelNeeds notFor = 0;  ///< kernels with one of these
  int64_t minHeadDim = 0;

  bool serves(KernelNeeds needs) const {
    return dkdv.serves(needs) && dq.serves(needs);
  }
};
} // namespace

static const BackwardRow kBackwardRows[] = {
    // CDNA. Two accumulators and two resident operands in the kernel of dK and
    // dV. What was fastest for docs/Timing.md's model of gfx942 and gfx950:
    // two waves a SIMD, or one with more keys in segments.
    {target::kMfmaDoubleK,
     32,
     "mfma_16x16x32",
     {128, 32, 4, 2, 4},
     {128, 32, 4, 2, 4}},
    {target::kMfmaDoubleK,
     96,
     "mfma_32x32x16",
     {128, 32, 4, 4, 1},
     {128, 32, 4, 4, 1}},
    {target::kMfmaDoubleK,
     128,
     "mfma_32x32x16",
     {128, 32, 4, 4, 1},
     {256, 32, 4, 4, 1}},
    // Of kernels that read lists of blocks.
    {target::kMfmaDoubleK,
     128,
     "mfma_32x32x16",
     {128, 32, 4, 4, 1},
     {128, 32, 4, 4, 1}},
    {target::kMfmaBf16_1k,
     64,
     "mfma_16x16x16",
     {128, 32, 4, 2, 2},
     {128, 32, 4, 2, 2}},
    // Of kernels that drop weights: no segments, whose registers the random
    // numbers take.
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     128,
     "mfma_16x16x16",
     {128, 16, 4, 1, 1},
     {128, 32, 4, 1, 2},
     kDropsWeights},
    {target::kMfmaBf16_1k,
     128,
     "mfma_16x16x16",
     {192, 16, 4, 2, 1},
     {128, 16, 4, 2, 2},
     kDropsWeights},
    {target::kMfmaDoubleK,
     256,
     "mfma_16x16x16",
     {64, 16, 4, 2, 1},
     {64, 32, 4, 2, 1},
     kDropsWeights},
    // gfx90a: in f16 dS has powers of two beside it, for which segments leave
    // no registers.
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     96,
     "mfma_16x16x16",
     {128, 32, 4, 1, 2},
     {128, 32, 4, 2, 2}},
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     128,
     "mfma_16x16x16",
     {128, 16, 4, 1, 2},
     {128, 32, 4, 2, 2}},
    {target::kMfmaBf16_1k,
     96,
     "mfma_16x16x16",
     {192, 16, 4, 4, 1},
     {128, 32, 4, 2, 2}},
    {target::kMfmaBf16_1k,
     128,
     "mfma_16x16x16",
     {192, 16, 4, 4, 1},
     {128, 16, 4, 4, 2}},
    {0, 64, "mfma_32x32x8", {128, 32, 4, 2, 2}, {128, 32, 4, 2, 2}},
    {0,
     128,
     "mfma_32x32x8",
     {128, 32, 4, 2, 1},
     {128, 32, 4, 1, 2},
     kDropsWeights},
    {0, 128, "mfma_32x32x8", {128, 32, 4, 2, 1}, {128, 32, 4, 2, 2}},
    // A second block on its way to LDS takes the registers of a second wave a
    // SIMD: on gfx950 past 128, elsewhere in the kernel of dK and dV past 208.
    {target::kMfmaDoubleK,
     256,
     "mfma_16x16x16",
     {64, 16, 4, 1, 2},
     {64, 32, 4, 1, 2}},
    {0, 208, "mfma_16x16x16", {64, 16, 4, 2, 1}, {64, 32, 4, 2, 1}},
    {0, 256, "mfma_16x16x16", {64, 16, 4, 1, 1}, {64, 32, 4, 2, 1}},
    // 512 registers a wave hold both accumulators up to 448; then two waves
    // share them. Four tiles of 16 queries fill 64 KiB at 480.
    {target::kMfmaBf16_1k,
     448,
     "mfma_16x16x16",
     {64, 16, 4, 1, 1},
     {64, 16, 4, 1, 1}},
    {target::kMfmaDoubleK,
     512,
     "mfma_16x16x16",
     {32, 16, 4, 1, 1, 2},
     {64, 16, 4, 1, 1}},
    {target::kMfmaBf16_1k,
     480,
     "mfma_16x16x16",
     {32, 16, 4, 1, 1, 2},
     {64, 16, 4, 1, 1}},
    // More come through LDS in chunks of columns, and all where they are cut.
    {target::kMfmaBf16_1k,
     512,
     "mfma_16x16x16",
     {32, 16, 4, 1, 1, 2, 0, 0, 256},
     {64, 16, 4, 1, 1},
     kCutsColumns},
    {target::kMfmaBf16_1k,
     512,
     "mfma_16x16x16",
     {32, 16, 4, 2, 1, 2, 0, 0, 256},
     {64, 16, 4, 1, 1}},
    {0,
     384,
     "mfma_16x16x16",
     {64, 16, 4, 2, 1, 1, 0, 0, 128},
     {64, 16, 4, 1, 1, 1, 0, 0, 256}},
    {0,
     512,
     "mfma_16x16x16",
     {32, 16, 4, 1, 1, 2, 0, 0, 256},
     {64, 16, 4, 1, 1, 1, 0, 0, 256},
     kCutsColumns},
    {0,
     512,
     "mfma_16x16x16",
     {32, 16, 4, 2, 1, 2, 0, 0, 256},
     {64, 16, 4, 1, 1, 1, 0, 0, 256}},
    // 576 columns are three chunks.
    {0,
     576,
     "mfma_16x16x16",
     {32, 16, 4, 1, 1, 2, 0, 0, 192},
     {64, 16, 4, 1, 1, 1, 0, 0, 192}},
    {0,
     32,
     "mfma_32x32x4",
     {128, 32, 4, 2, 2},
     {128, 32, 4, 2, 2},
     kDropsWeights},
    {0, 32, "mfma_32x32x4", {128, 32, 4, 2, 3}, {128, 32, 4, 2, 4}},
    {0, 64, "mfma_32x32x4", {128, 32, 4, 2, 2}, {128, 32, 4, 2, 2}},
    {0, 128, "mfma_32x32x4", {128, 32, 4, 2, 1}, {128, 32, 4, 2, 1}},
    {0, 208, "mfma_16x16x8", {64, 16, 4, 2, 1}, {64, 32, 4, 2, 1}},
    {0, 256, "mfma_16x16x8", {64, 16, 4, 1, 1}, {64, 32, 4, 2, 1}},
    {0,
     384,
     "mfma_16x16x8",
     {64, 16, 4, 2, 1, 1, 0, 0, 128},
     {64, 16, 4, 1, 1, 1, 0, 0, 256}},
    {0,
     512,
     "mfma_16x16x8",
     {32, 16, 4, 2, 1, 2, 0, 0, 256},
     {64, 16, 4, 1, 1, 1, 0, 0, 256}},
    {0,
     576,
     "mfma_16x16x8",
     {32, 16, 4, 1, 1, 2, 0, 0, 192},
     {64, 16, 4, 1, 1, 1, 0, 0, 192}},
    // fp32: tiles take twice the registers and the LDS, and products so long
    // that nothing beside them counts.
    {target::kMfmaBf16,
     64,
     "mfma_32x32x2",
     {128, 32, 4, 2, 1},
     {128, 32, 4, 2, 1}},
    {0,
     64,
     "mfma_32x32x2",
     {128, 32, 4, 2, 1},
     {128, 32, 4, 2, 1},
     kDropsWeights},
    {0, 64, "mfma_32x32x2", {128, 32, 4, 2, 2}, {128, 32, 4, 2, 2}},
    {0, 128, "mfma_16x16x4", {64, 16, 4, 2, 2}, {64, 16, 4, 2, 2}},
    {0, 256, "mfma_16x16x4", {64, 16, 4, 1, 1}, {64, 16, 4, 1, 1}},
    {0,
     512,
     "mfma_16x16x4",
     {64, 16, 4, 2, 1, 1, 2, 0, 64},
     {64, 16, 4, 2, 1, 1, 2, 0, 64}},
    // fp32 by lanes: of keys, or queries, each has one.
    {0, 48, "lanes_8x32x4", {64, 16, 2, 1, 2, 1, 1}, {64, 16, 2, 1, 2, 1, 1}},
    {0, 96, "lanes_8x32x4", {32, 8, 2, 1, 1, 2, 1}, {32, 8, 2, 1, 1, 2, 1}},
    {0, 192, "lanes_8x32x4", {32, 8, 4, 1, 2, 4, 1}, {32, 8, 4, 1, 2, 4, 1}},
    {0,
     512,
     "lanes_8x32x4",
     {32, 8, 8, 1, 2, 8, 2, 0, 64},
     {32, 8, 8, 1, 2, 8, 2, 0, 64}},
    // RDNA: 256 registers a lane. What the next rows have is loaded an
    // iteration ahead, and of two operands that stay the one of the scores is
    // in LDS: it is read beside products that have no other operand there.
    {target::kWmmaRepeated,
     64,
     "wmma_16x16x16",
     {64, 32, 4, 2, 2, 1, 3},
     {64, 32, 4, 2, 2, 1, 3},
     /*onlyFor=*/0,
     kCutsColumns | kColumnsDiffer,
     /*minHeadDim=*/64},
    {target::kWmma,
     128,
     "wmma_16x16x16",
     {64, 32, 4, 2, 2, 1, 3},
     {64, 32, 4, 2, 2, 1, 3},
     /*onlyFor=*/0,
     kTakesAny | kReadsLists,
     /*minHeadDim=*/128},
    // Programs, lists and dropout have registers for it, too, with blocks
    // of 16.
    {0,
     128,
     "wmma_16x16x16",
     {64, 16, 4, 2, 2, 1, 1},
     {64, 16, 4, 2, 2, 1, 1},
     /*onlyFor=*/0,
     kCutsColumns | kColumnsDiffer,
     /*minHeadDim=*/128},
    {target::kWmmaRepeated,
     64,
     "wmma_16x16x16",
     {64, 16, 4, 1, 2, 1, 1},
     {64, 16, 4, 1, 2, 1, 1}},
    {0, 32, "wmma_16x16x16", {64, 32, 4, 2, 4}, {64, 32, 4, 2, 4}},
    {0, 48, "wmma_16x16x16", {64, 32, 4, 2, 6}, {64, 32, 4, 2, 4}},
    {0, 64, "wmma_16x16x16", {64, 32, 4, 2, 4}, {64, 32, 4, 2, 4}},
    {0, 96, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}, {64, 16, 4, 1, 2, 1, 1}},
    {0, 112, "wmma_16x16x16", {64, 32, 4, 1, 2, 1, 1}, {64, 16, 4, 1, 2, 1, 1}},
    {0, 128, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}, {64, 16, 4, 1, 2, 1, 1}},
    {target::kWmmaRepeated,
     256,
     "wmma_16x16x16",
     {32, 16, 8, 2, 4, 4, 1, 0, 64},
     {32, 16, 8, 2, 4, 4, 1, 0, 64},
     kColumnsDiffer},
    {0, 256, "wmma_16x16x16", {16, 16, 4, 1, 2, 4, 1}, {32, 16, 8, 1, 4, 4, 1}},
    {target::kWmma,
     384,
     "wmma_16x16x16",
     {16, 16, 4, 2, 2, 4, 1, 0, 64},
     {32, 16, 8, 2, 4, 4, 1, 0, 64},
     kDropsWeights},
    {0,
     384,
     "wmma_16x16x16",
     {32, 16, 8, 2, 4, 4, 1, 0, 64},
     {32, 16, 8, 2, 4, 4, 1, 0, 64}},
    // Operands that repeat leave no registers for sums that four waves share.
    {target::kWmmaRepeated,
     448,
     "wmma_16x16x16",
     {16, 16, 8, 2, 4, 8, 1, 0, 128},
     {32, 16, 8, 2, 4, 4, 1, 0, 64}},
    {target::kWmmaRepeated,
     512,
     "wmma_16x16x16",
     {16, 16, 8, 2, 4, 8, 1, 0, 128},
     {16, 16, 4, 2, 2, 4, 1, 0, 128}},
    {0,
     448,
     "wmma_16x16x16",
     {16, 16, 4, 2, 2, 4, 1, 0, 64},
     {32, 16, 8, 2, 4, 4, 1, 0, 64}},
    {0,
     512,
     "wmma_16x16x16",
     {16, 16, 4, 2, 2, 4, 1, 0, 64},
     {16, 16, 4, 2, 2, 4, 1, 0, 128}},
    // For what gradients of a bias leave no registers.
    {0,
     512,
     "wmma_16x16x16",
     {16, 16, 8, 2, 4, 8, 1, 0, 128},
     {16, 16, 4, 2, 2, 4, 1, 0, 128}},
    {target::kWmmaRepeated,
     576,
     "wmma_16x16x16",
     {16, 16, 8, 2, 4, 8, 1, 0, 128},
     {16, 16, 4, 2, 2, 4, 1, 0, 64}},
    {0,
     576,
     "wmma_16x16x16",
     {16, 16, 4, 2, 2, 4, 1, 0, 64},
     {16, 16, 4, 2, 2, 4, 1, 0, 64}},
    {0, 128, "wmma_16x16x32", {64, 32, 4, 2, 2}, {64, 32, 4, 2, 2}},
    {0, 384, "wmma_16x16x32", {64, 32, 4, 1, 1}, {64, 32, 4, 1, 1}},
    {0, 576, "wmma_16x16x32", {32, 32, 4, 1, 1, 2}, {64, 32, 4, 1, 1}},
};

/// Of the kernel of all three gradients.
static const ScheduleRow kAtomicRows[] = {
    // CDNA: as the kernel of dK and dV, with a third resident operand. From
    // CDNA 2 on as many keys as the registers of a wave that has its SIMD to
    // itself hold: each visit adds a dQ of its own in memory, and L2 adds up
    // only so many.
    {target::kMfmaDoubleK, 32, "mfma_32x32x16", {128, 32, 4, 2, 2}},
    {target::kMfmaDoubleK, 64, "mfma_32x32x16", {256, 32, 8, 4, 2}},
    // Random numbers leave no registers for segments, as above.
    {target::kMfmaDoubleK,
     96,
     "mfma_16x16x32",
     {128, 32, 8, 2, 2},
     kDropsWeights},
    {target::kMfmaDoubleK, 96, "mfma_16x16x32", {192, 32, 4, 4, 1}},
    // Sums of 256 keys take all accumulation registers, so that the keys are in
    // LDS.
    {target::kMfmaDoubleK,
     128,
     "mfma_32x32x16",
     {256, 32, 4, 4, 1, 1, 3},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/121},
    {target::kMfmaDoubleK, 128, "mfma_16x16x32", {128, 32, 4, 4, 1}},
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     32,
     "mfma_16x16x16",
     {256, 32, 4, 5, 1},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/25},
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     32,
     "mfma_16x16x16",
     {256, 32, 4, 4, 1}},
    {target::kMfmaBf16,
     32,
     "mfma_16x16x16",
     {256, 32, 4, 5, 1},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/25},
    {target::kMfmaBf16, 32, "mfma_16x16x16", {256, 32, 4, 4, 1}},
    // On gfx908 columns past the last take the last scalar registers.
    {target::kMfmaBf16, 48, "mfma_32x32x8", {128, 32, 4, 2, 2}},
    {target::kMfmaBf16_1k,
     32,
     "mfma_16x16x16",
     {256, 16, 4, 2, 1},
     kDropsWeights},
    {target::kMfmaBf16_1k | target::kMfmaEightPass,
     64,
     "mfma_16x16x16",
     {256, 16, 4, 5, 1},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/57},
    {0, 64, "mfma_16x16x16", {256, 16, 4, 4, 1}},
    {0, 112, "mfma_16x16x16", {192, 16, 4, 4, 1}},
    {target::kMfmaBf16_1k,
     128,
     "mfma_16x16x16",
     {128, 32, 8, 2, 2},
     kDropsWeights},
    // Its last columns are no whole instruction, which takes two registers.
    {target::kMfmaBf16_1k, 120, "mfma_16x16x16", {128, 32, 8, 2, 2}},
    // On gfx90a masks that are compiled in leave no registers.
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     128,
     "mfma_16x16x16",
     {192, 16, 4, 4, 1},
     kTakesWindow},
    {target::kMfmaBf16_1k | target::kMfmaFlushesSubnormals,
     128,
     "mfma_16x16x16",
     {128, 32, 8, 2, 2}},
    {0, 128, "mfma_16x16x16", {192, 16, 4, 4, 1}},
    {0, 192, "mfma_16x16x16", {64, 32, 4, 2, 1}},
    {0, 256, "mfma_16x16x16", {64, 16, 4, 2, 1}},
    {0, 384, "mfma_16x16x16", {64, 16, 4, 2, 1, 1, 0, 0, 128}},
    {0, 512, "mfma_16x16x16", {32, 16, 4, 2, 1, 2, 0, 0, 256}},
    // Of sums in pairs, where those chunks would end behind their memory.
    {0, 512, "mfma_16x16x16", {32, 16, 4, 2, 1, 2, 0, 0, 64}},
    {0,
     32,
     "mfma_16x16x8",
     {256, 32, 4, 5, 1},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/25},
    {0, 32, "mfma_16x16x8", {256, 32, 4, 4, 1}},
    {0, 48, "mfma_32x32x4", {128, 32, 4, 2, 2}},
    {0, 64, "mfma_16x16x8", {256, 16, 4, 4, 1}},
    {0, 128, "mfma_16x16x8", {192, 16, 4, 4, 1}},
    {0, 192, "mfma_16x16x8", {64, 32, 4, 2, 1}},
    {0, 256, "mfma_16x16x8", {64, 16, 4, 2, 1}},
    {0, 384, "mfma_16x16x8", {64, 16, 4, 2, 1, 1, 0, 0, 128}},
    {0, 512, "mfma_16x16x8", {32, 16, 4, 2, 1, 2, 0, 0, 256}},
    // fp32; by lanes no schedule has been found that keeps all in registers.
    {0, 64, "mfma_32x32x2", {128, 32, 4, 2, 1}},
    {0, 128, "mfma_16x16x4", {64, 16, 4, 2, 1}},
    {0, 256, "mfma_16x16x4", {64, 16, 4, 1, 1}},
    {0, 512, "mfma_16x16x4", {64, 16, 4, 2, 1, 1, 2, 0, 64}},
    // RDNA: as above.
    {target::kWmmaRepeated,
     64,
     "wmma_16x16x16",
     {64, 32, 4, 2, 2, 1, 3},
     /*onlyFor=*/0,
     kTakesAny,
     /*minHeadDim=*/64},
    {target::kWmmaRepeated,
     128,
     "wmma_16x16x16",
     {64, 16, 8, 2, 4, 2, 3},
     /*onlyFor=*/0,
     kTakesAny,
     /*minHeadDim=*/128},
    {target::kWmma,
     128,
     "wmma_16x16x16",
     {64, 16, 4, 2, 2, 1, 3},
     /*onlyFor=*/0,
     kTakesAny | kReadsLists,
     /*minHeadDim=*/128},
    // Waves that share columns of dQ split its queries, of which there
    // must then be more, or the waves fewer. Where operands repeat there is no
    // schedule without scratch past 384.
    {target::kWmmaRepeated, 32, "wmma_16x16x16", {64, 32, 4, 1, 2, 1, 1}},
    {target::kWmmaRepeated, 64, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}},
    {target::kWmma, 32, "wmma_16x16x16", {64, 32, 4, 2, 7}},
    {target::kWmma, 48, "wmma_16x16x16", {64, 32, 4, 1, 4}},
    {target::kWmma, 64, "wmma_16x16x16", {64, 32, 4, 2, 4}},
    {target::kWmma, 96, "wmma_16x16x16", {32, 16, 2, 1, 1, 1, 1}},
    // Chunks of 64 columns divide over the waves whatever the head dimension.
    {target::kWmmaRepeated,
     80,
     "wmma_16x16x16",
     {64, 16, 4, 2, 2, 1, 1, 0, 64}},
    {target::kWmmaRepeated,
     160,
     "wmma_16x16x16",
     {32, 16, 4, 2, 2, 2, 1, 0, 64}},
    {target::kWmmaRepeated,
     320,
     "wmma_16x16x16",
     {16, 16, 4, 2, 2, 4, 1, 0, 64}},
    {target::kWmmaRepeated,
     384,
     "wmma_16x16x16",
     {16, 16, 4, 1, 2, 4, 1, 0, 64}},
    {target::kWmma, 128, "wmma_16x16x16", {64, 16, 4, 2, 2, 1, 1, 0, 64}},
    {target::kWmma, 256, "wmma_16x16x16", {32, 16, 4, 2, 2, 2, 1, 0, 64}},
    {target::kWmma, 512, "wmma_16x16x16", {16, 16, 4, 2, 2, 4, 1, 0, 64}},
    {0, 128, "wmma_16x16x32", {64, 32, 4, 2, 2}},
    {0, 384, "wmma_16x16x32", {64, 32, 4, 1, 1}},
    {0, 512, "wmma_16x16x32", {32, 32, 4, 1, 1, 2}},
};

// Where additions of pairs take half the time of L2, and with it the reason for
// more keys; others are as above.
static const ScheduleRow kAtomic16Rows[] = {
    {target::kMfmaDoubleK, 32, "mfma_32x32x16", {128, 32, 4, 2, 2}},
    // Between 32 and 64 a wave has columns past the last, and segments with a
    // window then take more scalar registers than there are.
    {target::kMfmaDoubleK, 56, "mfma_16x16x32", {128, 32, 4, 2, 2}},
    {target::kMfmaDoubleK, 64, "mfma_16x16x32", {256, 32, 8, 4, 2}},
    {target::kMfmaDoubleK, 72, "mfma_16x16x32", {192, 32, 4, 4, 1}},
    // As above.
    {target::kMfmaDoubleK,
     128,
     "mfma_32x32x16",
     {256, 32, 4, 4, 1, 1, 3},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/121},
    {target::kMfmaDoubleK, 128, "mfma_32x32x16", {128, 32, 4, 4, 1}},
    // dK a block late takes registers for what goes round the loop.
    {target::kMfmaBf16_1k | target::kMfmaEightPass,
     64,
     "mfma_16x16x16",
     {192, 32, 4, 5, 1},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/57},
    {target::kMfmaBf16_1k, 64, "mfma_16x16x16", {192, 32, 4, 4, 1}},
    {target::kMfmaBf16_1k, 112, "mfma_16x16x16", {192, 16, 4, 4, 1}},
    {target::kMfmaBf16_1k,
     128,
     "mfma_16x16x16",
     {128, 32, 8, 2, 2},
     kDropsWeights},
    {target::kMfmaBf16_1k, 120, "mfma_16x16x16", {128, 32, 8, 2, 2}},
    {target::kMfmaBf16_1k | target::kMfmaEightPass,
     128,
     "mfma_16x16x16",
     {192, 16, 4, 5, 1},
     /*onlyFor=*/0,
     kTakesMore,
     /*minHeadDim=*/121},
    {target::kMfmaBf16_1k | target::kMfmaEightPass,
     128,
     "mfma_16x16x16",
     {192, 16, 4, 4, 1}},
};

/// Rows that a workgroup takes which only streams rows, so that they fit its
/// registers, and its waves.
static int32_t streamedRows(int64_t headDim) {
  return headDim > 256 ? 16 : headDim > 128 ? 32 : 64;
}
static constexpr int32_t kStreamWaves = 4;

ScheduleAttr fovea::attn::sinkSumSchedule(BackwardScheduleAttr schedule) {
  // As many waves as a workgroup may have, and loads that wait together: heads
  // are few, and what it takes is the way to memory.
  return makeSchedule(schedule.getContext(),
                      schedule.getKernels()[0].getInst().getName(),
                      {/*blockM=*/1, /*blockN=*/4, /*waves=*/16, /*stages=*/1,
                       /*wavesPerSimd=*/4},
                      /*rescaleThreshold=*/0);
}

int64_t fovea::attn::largestBackwardHeadDim(BackwardAlgorithm algorithm,
                                            const target::TargetInfo &target,
                                            Type elementType) {
  switch (algorithm) {
  case BackwardAlgorithm::Deterministic:
    return largestHeadDim<BackwardRow>(kBackwardRows, target, elementType);
  case BackwardAlgorithm::Atomic:
  case BackwardAlgorithm::Atomic16:
    return largestHeadDim<ScheduleRow>(kAtomicRows, target, elementType);
  }
  llvm_unreachable("all algorithms are listed");
}

static SmallVector<const ScheduleRow *>
findAtomicRows(BackwardAlgorithm algorithm, const target::TargetInfo &target,
               Type elementType, HeadDims dims, KernelNeeds needs) {
  const spec::WorkspaceSpec &workspace = specOf(algorithm).workspace;
  // Sums in pairs have no bounds: chunks may end only where their memory does.
  auto hasRoom = [&](const ScheduleRow &row) {
    const int64_t chunk = row.kernel.columnChunk;
    return !workspace.pairStep || !chunk ||
           int64_t(llvm::alignTo(dims.most(), chunk)) <=
               workspace.pairColumns(dims.qk);
  };
  SmallVector<const ScheduleRow *> rows;
  auto add = [&](ArrayRef<ScheduleRow> table) {
    llvm::append_range(rows,
                       findRows<ScheduleRow>(table, target, elementType,
                                             dims.most(), needs, hasRoom));
  };
  if (algorithm == BackwardAlgorithm::Atomic16)
    add(kAtomic16Rows);
  add(kAtomicRows);
  return rows;
}

BackwardScheduleAttr fovea::attn::chooseBackwardSchedule(
    MLIRContext *context, BackwardAlgorithm algorithm,
    const target::TargetInfo &target, Type elementType, HeadDims dims,
    KernelNeeds needs, ArrayRef<int32_t> passedOver) {
  // The rows' schedules of each kernel with products, and what those that only
  // stream rows take after.
  struct Choice {
    const char *inst;
    KernelRow kernel;
  };
  SmallVector<Choice> keys, queries;
  switch (algorithm) {
  case BackwardAlgorithm::Deterministic:
    for (const BackwardRow *row : findRows<BackwardRow>(
             kBackwardRows, target, elementType, dims.most(), needs)) {
      keys.push_back({row->inst, row->dkdv});
      queries.push_back({row->inst, row->dq});
    }
    break;
  case BackwardAlgorithm::Atomic:
  case BackwardAlgorithm::Atomic16:
    for (const ScheduleRow *row :
         findAtomicRows(algorithm, target, elementType, dims, needs))
      keys.push_back({row->inst, row->kernel});
    queries = keys;
    break;
  }
  if (keys.empty())
    return {};
  const spec::AlgorithmSpec &spec = specOf(algorithm);
  SmallVector<ScheduleAttr> kernels;
  for (auto [index, launch] : llvm::enumerate(spec.launches)) {
    auto make = [&](const Choice &choice) {
      return makeSchedule(context, choice.inst, choice.kernel,
                          /*rescaleThreshold=*/0);
    };
    if (launch.products == 0) {
      const Choice &first = queries.front();
      kernels.push_back(make({first.inst,
                              {streamedRows(dims.most()), first.kernel.blockN,
                               kStreamWaves, /*stages=*/1,
                               /*wavesPerSimd=*/4}}));
      continue;
    }
    auto check = [&, &launch = launch](auto emitError, ScheduleAttr schedule) {
      return checkGradientLaunch(emitError, target, elementType, dims, spec,
                                 launch, schedule);
    };
    kernels.push_back(pickSchedule(
        llvm::map_to_vector(launch.ownsKeys ? keys : queries, make),
        index < passedOver.size() ? passedOver[index] : 0, check));
    if (!kernels.back())
      return {};
  }
  return BackwardScheduleAttr::get(context, algorithm, kernels);
}
