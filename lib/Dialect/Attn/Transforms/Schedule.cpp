//===- Schedule.cpp - choosing and checking schedules ---------------------===//

#include "ForwardPipeline.h"
#include "ScheduleTable.h"
#include "fovea/Layout/DotLayouts.h"
#include "fovea/Package/OperationSpec.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <array>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// By how much, in powers of two, a maximum may outgrow the reference before
/// the output is rescaled.
static constexpr int32_t kRescaleThreshold = 8;
/// The same where matrix instructions lose what is 2^-14 and less: what it
/// leaves of the range of f16 goes to small probabilities.
static constexpr int32_t kFlushingRescaleThreshold = 2;

/// What schedules with `direct_copy` use.
static constexpr uint32_t kDirectCopyFeatures =
    target::kLoadToLds128 | target::kLdsTransposedRead;

// docs/Rationale.md, "Schedules", says why for each group of rows.
static const ScheduleRow kForwardRows[] = {
    // Of kernels that drop weights, for the same reason.
    {target::kMfmaBf16, 32, "mfma_32x32x8", {128, 32, 4, 2, 4}, kDropsWeights},
    {target::kMfmaBf16, 96, "mfma_32x32x8", {128, 32, 4, 2, 2}, kDropsWeights},
    {target::kMfmaBf16, 32, "mfma_32x32x4", {128, 32, 4, 2, 4}, kDropsWeights},
    {target::kMfmaBf16, 96, "mfma_32x32x4", {128, 32, 4, 2, 2}, kDropsWeights},
    // Where keys are split, on all CDNA: few queries a wave, so that little is
    // computed of rows that are not there, and four waves and 64 keys, which
    // keep memory busy with one workgroup a compute unit.
    {target::kMfmaBf16, 128, "mfma_16x16x16", {64, 64, 4, 2, 2}, kSplitsKeys},
    {target::kMfmaBf16, 128, "mfma_16x16x8", {64, 64, 4, 2, 2}, kSplitsKeys},
    // CDNA 1: half of the registers hold sums and nothing else, so 128 are left
    // for the rest at two waves a SIMD. Fewer keys an iteration first, then
    // instructions of 16 x 16, which need few registers at a time; matrix
    // instructions take so long that LDS keeps up with 16 queries a wave.
    {target::kMfmaBf16, 32, "mfma_32x32x8", {128, 32, 4, 4, 4}},
    {target::kMfmaBf16, 96, "mfma_32x32x8", {128, 32, 4, 4, 2}},
    {target::kMfmaBf16, 128, "mfma_16x16x16", {128, 32, 4, 2, 2}},
    {target::kMfmaBf16, 256, "mfma_16x16x16", {64, 32, 4, 2, 2}},
    {target::kMfmaBf16, 32, "mfma_32x32x4", {128, 32, 4, 4, 4}},
    {target::kMfmaBf16, 96, "mfma_32x32x4", {128, 32, 4, 4, 2}},
    {target::kMfmaBf16, 128, "mfma_16x16x8", {128, 32, 4, 2, 2}},
    {target::kMfmaBf16, 256, "mfma_16x16x8", {64, 32, 4, 2, 2}},
    {target::kMfmaBf16, 512, "mfma_16x16x8", {64, 32, 4, 2, 1}},
    {target::kMfmaBf16, 576, "mfma_16x16x8", {64, 16, 4, 2, 1}},
    // CDNA with loads of 16 bytes to LDS and transposing reads: two buffers
    // each of K and V, one barrier an iteration, two workgroups of up to 80 KiB
    // a compute unit; or segments, and a workgroup whose halves alternate.
    // Where a score program waits for what it reads, segments would wait for
    // one another; and random numbers take longer than all that they would
    // hide, and their registers.
    {kDirectCopyFeatures,
     128,
     "mfma_32x32x16",
     {128, 64, 4, 2, 2, 1, 0, 1},
     kReadsTiles | kDropsWeights},
    // Keys that are split are one workgroup's alone, and come by registers.
    {kDirectCopyFeatures, 128, "mfma_16x16x32", {64, 64, 4, 4, 2}, kSplitsKeys},
    {kDirectCopyFeatures, 32, "mfma_32x32x16", {128, 64, 4, 2, 2, 1, 0, 1}},
    {kDirectCopyFeatures, 64, "mfma_32x32x16", {256, 128, 8, 4, 2, 1, 0, 1}},
    {kDirectCopyFeatures, 128, "mfma_32x32x16", {256, 64, 8, 4, 2, 1, 0, 1}},
    {kDirectCopyFeatures,
     192,
     "mfma_32x32x16",
     {128, 32, 4, 2, 2, 1, 0, 1},
     kReadsTiles | kDropsWeights | kReadsLists},
    {kDirectCopyFeatures,
     256,
     "mfma_32x32x16",
     {128, 32, 4, 2, 1, 1, 0, 1},
     kReadsTiles | kDropsWeights | kReadsLists},
    {kDirectCopyFeatures, 256, "mfma_32x32x16", {128, 64, 4, 4, 1, 1, 0, 1}},
    {kDirectCopyFeatures, 512, "mfma_16x16x32", {64, 32, 4, 2, 1, 1, 0, 1}},
    // CDNA: 512 registers a lane. Four waves of 32 queries; two workgroups a
    // compute unit, so that one moves data while the other computes: in
    // segments while registers hold the tiles of both. Keys of an iteration
    // shrink with the head dimension to stay within 256 registers; at more than
    // 192 the accumulator alone takes 128 and one wave a SIMD has to do; at
    // more than 256, 16 queries a wave.
    {0, 128, "mfma_32x32x8", {128, 32, 4, 2, 2}, kDropsWeights},
    {0, 128, "mfma_16x16x16", {64, 64, 4, 4, 1}, kSplitsKeys},
    {0, 64, "mfma_32x32x8", {128, 64, 4, 4, 2}},
    {0, 80, "mfma_32x32x8", {128, 32, 4, 4, 2}, kCutsColumns},
    {0, 80, "mfma_32x32x8", {128, 64, 4, 4, 2}},
    {0, 128, "mfma_32x32x8", {128, 32, 4, 4, 2}},
    {target::kMfmaEightPass,
     160,
     "mfma_32x32x8",
     {128, 32, 4, 1, 2},
     kDropsWeights | kCutsColumns},
    {target::kMfmaEightPass,
     192,
     "mfma_32x32x8",
     {256, 32, 8, 1, 2},
     kCutsColumns},
    {target::kMfmaEightPass,
     192,
     "mfma_32x32x8",
     {128, 32, 4, 1, 2},
     kDropsWeights},
    {target::kMfmaEightPass, 192, "mfma_32x32x8", {128, 32, 4, 2, 2}},
    // Longer matrix instructions keep more registers busy: 3 too many past 160,
    // unless eight waves load a key block, half as much each.
    {0, 160, "mfma_32x32x8", {128, 32, 4, 2, 2}},
    {0, 192, "mfma_32x32x8", {256, 32, 8, 2, 2}},
    {0, 256, "mfma_32x32x8", {128, 32, 4, 2, 1}},
    {0, 512, "mfma_16x16x16", {64, 32, 4, 2, 1}},
    // Copies past the registers would take 2048 bytes for a row of 1152.
    {kDirectCopyFeatures, 576, "mfma_16x16x32", {64, 32, 4, 2, 1}},
    {0, 576, "mfma_16x16x16", {64, 16, 4, 2, 1}},
    // fp32: tiles take twice the registers and the LDS, and products so long
    // that nothing beside them counts: 16 queries a wave leave registers for
    // score programs, and are predicted within 2 % of 32.
    {target::kMfmaBf16, 64, "mfma_32x32x2", {128, 32, 4, 2, 2}},
    {0, 64, "mfma_32x32x2", {128, 64, 4, 2, 2}},
    {0, 128, "mfma_16x16x4", {64, 32, 4, 2, 2}},
    {target::kMfmaBf16, 256, "mfma_16x16x4", {64, 16, 4, 2, 1}},
    {0, 256, "mfma_32x32x2", {128, 32, 4, 2, 1}},
    {0, 512, "mfma_16x16x4", {64, 16, 4, 2, 1}},
    // RDNA: 256 registers a lane, so 16 queries a wave; compute-unit mode.
    // Where operands repeat, queries take twice the registers and go to LDS
    // earlier, which then holds one workgroup and 16 keys. Past 256 two waves
    // share the output of their queries.
    // Where V has other columns than Q, LLVM reads all of a block ahead of its
    // products until it spills: fewer keys, and queries in LDS.
    {target::kWmmaRepeated,
     128,
     "wmma_16x16x16",
     {64, 16, 4, 2, 2, 1, 1},
     kColumnsDiffer},
    {target::kWmmaRepeated,
     192,
     "wmma_16x16x16",
     {64, 32, 4, 1, 2, 1, 1},
     kColumnsDiffer},
    {target::kWmmaRepeated,
     256,
     "wmma_16x16x16",
     {64, 16, 4, 1, 2, 1, 1},
     kColumnsDiffer},
    // What a program reads of 64 keys has no registers beside eight waves.
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     64,
     "wmma_16x16x16",
     {128, 32, 8, 2, 8},
     kReadsTiles},
    // Nor have places that are cut.
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     48,
     "wmma_16x16x16",
     {128, 64, 8, 2, 8},
     kCutsColumns},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     64,
     "wmma_16x16x16",
     {128, 64, 8, 1, 8},
     kCutsColumns},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     80,
     "wmma_16x16x16",
     {64, 32, 4, 1, 5},
     kCutsColumns},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     96,
     "wmma_16x16x16",
     {64, 16, 4, 2, 6},
     kCutsColumns},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     128,
     "wmma_16x16x16",
     {64, 32, 4, 2, 6},
     kCutsColumns},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     160,
     "wmma_16x16x16",
     {64, 32, 4, 1, 5, 1, 1},
     kCutsColumns},
    // Two tiles of queries a wave, so that a read of LDS serves two products.
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     64,
     "wmma_16x16x16",
     {128, 16, 4, 2, 6},
     0,
     kReadsTiles | kDropsWeights | kSplitsKeys | kHasProgram | kColumnsDiffer,
     64},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     64,
     "wmma_16x16x16",
     {128, 64, 8, 2, 8}},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     80,
     "wmma_16x16x16",
     {64, 32, 4, 2, 5}},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     128,
     "wmma_16x16x16",
     {64, 32, 4, 2, 6}},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     160,
     "wmma_16x16x16",
     {64, 32, 4, 1, 5}},
    {target::kWmmaRepeated, 128, "wmma_16x16x16", {128, 32, 8, 2, 4}},
    {target::kWmmaRepeated, 160, "wmma_16x16x16", {128, 16, 8, 2, 4, 1, 1}},
    {target::kWmmaRepeated, 176, "wmma_16x16x16", {128, 16, 8, 1, 4, 1, 1}},
    {target::kWmmaRepeated, 192, "wmma_16x16x16", {128, 16, 8, 2, 4, 1, 1}},
    {target::kWmmaRepeated, 224, "wmma_16x16x16", {64, 16, 4, 2, 2, 1, 1}},
    {target::kWmmaRepeated, 240, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}},
    {target::kWmmaRepeated,
     256,
     "wmma_16x16x16",
     {64, 16, 8, 2, 2, 2, 1},
     kDropsWeights | kCutsColumns},
    // Places of packed rows are in registers beside all that a wave has of O.
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     256,
     "wmma_16x16x16",
     {64, 16, 8, 2, 2, 2, 1},
     kSplitsKeys},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     256,
     "wmma_16x16x16",
     {64, 16, 4, 1, 2, 1, 1}},
    // LLVM allocates a few registers too many to fp16 on these chips.
    {target::kWmmaRepeated | target::kScalarFloat,
     256,
     "wmma_16x16x16",
     {64, 16, 8, 2, 2, 2, 1}},
    {target::kWmmaRepeated, 256, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}},
    {target::kWmmaRepeated, 288, "wmma_16x16x16", {32, 16, 4, 1, 2, 2, 1}},
    {target::kWmmaRepeated, 408, "wmma_16x16x16", {32, 16, 4, 2, 2, 2, 1}},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     448,
     "wmma_16x16x16",
     {32, 16, 4, 2, 2, 2, 1}},
    {target::kWmmaRepeated | target::kLargeRegisterFile,
     464,
     "wmma_16x16x16",
     {32, 16, 4, 1, 2, 2, 1}},
    {target::kWmmaRepeated, 432, "wmma_16x16x16", {32, 16, 8, 1, 4, 4, 1}},
    {target::kWmmaRepeated, 448, "wmma_16x16x16", {32, 16, 4, 1, 2, 2, 1}},
    {target::kWmmaRepeated, 480, "wmma_16x16x16", {32, 16, 8, 1, 4, 4, 1}},
    // fp32 by lanes: a lane has a query, or two, whose sums it holds; what all
    // lanes read of keys and values LDS gives once for both.
    {0, 16, "lanes_8x32x4", {128, 8, 4, 1, 2, 1, 1}, kReadsTiles},
    {0, 64, "lanes_8x32x4", {128, 16, 4, 1, 2, 1, 1}},
    {0, 128, "lanes_8x32x4", {64, 8, 2, 1, 1, 1, 1}, kReadsTiles},
    {0, 128, "lanes_8x32x4", {64, 16, 2, 1, 1, 1, 1}},
    {0, 256, "lanes_8x32x4", {32, 8, 4, 1, 2, 4, 1}, kReadsTiles},
    {0, 256, "lanes_8x32x4", {32, 8, 2, 1, 1, 2, 1}},
    {0, 512, "lanes_8x32x4", {32, 8, 8, 1, 2, 8, 2, 0, 32}, kCutsColumns},
    {0, 512, "lanes_8x32x4", {32, 8, 8, 1, 2, 8, 2, 0, 64}},
    {target::kWmma,
     64,
     "wmma_16x16x16",
     {128, 32, 4, 2, 6},
     0,
     kReadsTiles | kDropsWeights | kSplitsKeys | kHasProgram | kColumnsDiffer,
     64},
    {target::kWmma, 64, "wmma_16x16x16", {128, 64, 8, 2, 8}},
    {target::kWmma,
     128,
     "wmma_16x16x16",
     {256, 16, 8, 2, 4},
     0,
     kReadsTiles | kDropsWeights | kSplitsKeys | kHasProgram | kColumnsDiffer |
         kCutsColumns,
     128},
    {target::kWmma, 112, "wmma_16x16x16", {128, 32, 8, 2, 8}},
    // What looks at columns past the last has no registers beside eight waves.
    {target::kWmma, 120, "wmma_16x16x16", {64, 32, 4, 2, 8}},
    {target::kWmma, 128, "wmma_16x16x16", {64, 32, 4, 2, 8}, kSplitsKeys},
    {target::kWmma, 160, "wmma_16x16x16", {128, 32, 8, 2, 8}},
    {target::kWmma, 192, "wmma_16x16x16", {128, 16, 8, 2, 4}},
    {target::kWmma, 208, "wmma_16x16x16", {64, 16, 4, 2, 4}},
    {target::kWmma, 240, "wmma_16x16x16", {128, 16, 8, 2, 4}},
    {target::kWmma, 256, "wmma_16x16x16", {128, 32, 8, 1, 5}},
    {target::kWmma, 320, "wmma_16x16x16", {64, 16, 8, 2, 4, 2}},
    {target::kWmma, 336, "wmma_16x16x16", {64, 16, 8, 1, 4, 2}},
    {target::kWmma, 384, "wmma_16x16x16", {64, 16, 8, 2, 4, 2}},
    {target::kWmmaRepeated,
     512,
     "wmma_16x16x16",
     {32, 16, 8, 1, 4, 4, 1},
     kCutsColumns},
    {0, 512, "wmma_16x16x16", {32, 16, 4, 1, 2, 2, 1}},
    {target::kWmmaRepeated, 576, "wmma_16x16x16", {16, 16, 8, 1, 4, 8, 1}},
    {0, 576, "wmma_16x16x16", {16, 16, 4, 1, 2, 4, 1}},
    // 1024 registers a lane.
    {0, 96, "wmma_16x16x32", {128, 64, 8, 2, 4}},
    {0, 128, "wmma_16x16x32", {128, 64, 8, 2, 3}},
    {0, 256, "wmma_16x16x32", {64, 32, 4, 2, 2}},
    {0, 576, "wmma_16x16x32", {64, 32, 4, 2, 1}},
};

bool fovea::attn::turnsReads(const target::TargetInfo &target,
                             Type elementType) {
  int64_t bytes = bytesOf(elementType);
  return bytes == kRegisterBytes || target::ldsTransposedRead(target, bytes);
}

std::string HeadDims::str() const {
  return std::to_string(qk) + (v == qk ? "" : "/" + std::to_string(v));
}

/// \param most  columns of any tensor, which say into how many chunks all go
static ForwardTiles tilesOf(HeadDims dims, int64_t most, ScheduleAttr schedule,
                            const target::MatrixInstr &inst) {
  ForwardTiles tiles;
  const int64_t chunk = schedule.getColumnChunk();
  tiles.chunks = chunk ? llvm::divideCeil(most, chunk) : 1;
  if (tiles.chunks > 1)
    dims = chunk;
  tiles.columns = dims.qk;
  tiles.elementBytes = target::elementTypeInfo(inst.type).bytes();
  auto contracted = [&](int64_t columns) -> int64_t {
    return llvm::alignTo(columns, layout::contractionUnit(inst.layouts()));
  };
  auto asRows = [&](int64_t columns) -> int64_t {
    return llvm::alignTo(columns, inst.m * schedule.getValueSplit());
  };
  tiles.scoreDim = contracted(dims.qk);
  tiles.valueDim = asRows(dims.v);
  // Copies past the registers fill LDS in the order of lanes, which divides
  // into whole rows of powers of two, and each lane copies something of the
  // narrower ones too.
  auto inLds = [&](int64_t columns) -> int64_t {
    const int64_t padded =
        llvm::alignTo(std::max(contracted(columns), asRows(columns)),
                      kLdsRowBytes / tiles.elementBytes);
    if (!schedule.getDirectCopy())
      return padded;
    if (dims.qk == dims.v)
      return llvm::PowerOf2Ceil(padded);
    const int64_t rows =
        schedule.getBlockN() / ForwardPipeline::of(schedule).parts;
    return llvm::PowerOf2Ceil(
        std::max(padded, int64_t(schedule.getWaves()) * inst.waveSize *
                             kCopyBytes / (rows * tiles.elementBytes)));
  };
  tiles.ldsDim = inLds(dims.qk);
  tiles.ldsDimV = inLds(dims.v);
  tiles.ldsBuffers =
      schedule.getDirectCopy() && schedule.getStages() != 1 ? 2 : 1;
  tiles.blockM = schedule.getBlockM();
  tiles.blockN = schedule.getBlockN();
  tiles.rowGroups = inst.waveSize / inst.n;
  tiles.ldsBytes = tiles.elementBytes * tiles.ldsBuffers * tiles.blockN *
                   (tiles.ldsDim + tiles.ldsDimV);
  if (schedule.keepsQueriesInLds())
    tiles.ldsBytes +=
        tiles.elementBytes * tiles.blockM * tiles.chunks * tiles.scoreDim;
  return tiles;
}

llvm::StringRef fovea::attn::nameOf(RowMaxima maxima) {
  static constexpr llvm::StringLiteral kNames[] = {"exchanged", "own_keys",
                                                   "begun_below"};
  return kNames[int(maxima)];
}

RowMaxima fovea::attn::rowMaximaOf(ForwardOp op,
                                   const target::TargetInfo &target) {
  const ScheduleAttr schedule = *op.getSchedule();
  // Programs want scores as they are.
  if (op.getHeadDim() <= target.columnsBegunBelow &&
      !op.getElementType().isF32() && op.getScore().empty() &&
      schedule.getStages() <= 2 && !schedule.getColumnChunk())
    return RowMaxima::BegunBelow;
  // Where lanes meet in one instruction, or registers are short, the row's
  // maximum comes first.
  return target.has(target::kPermlaneX16) ||
                 target.registerFile == target::RegisterFile::Separate
             ? RowMaxima::Exchanged
             : RowMaxima::OwnKeys;
}

ForwardTiles fovea::attn::forwardTiles(HeadDims dims, ScheduleAttr schedule,
                                       const target::MatrixInstr &inst) {
  return tilesOf(dims, dims.most(), schedule, inst);
}

ForwardTiles fovea::attn::gradientTiles(HeadDims dims, bool ofV,
                                        ScheduleAttr schedule,
                                        const target::MatrixInstr &inst) {
  return tilesOf(ofV ? dims.v : dims.qk, dims.most(), schedule, inst);
}

ScheduleAttr fovea::attn::withAllColumns(ScheduleAttr schedule) {
  return ScheduleAttr::get(
      schedule.getContext(), schedule.getBlockM(), schedule.getBlockN(),
      schedule.getWaves(), schedule.getInst(), schedule.getStages(),
      schedule.getWavesPerSimd(), schedule.getRescaleThreshold(),
      schedule.getValueSplit(), schedule.getQueriesInLds(),
      schedule.getDirectCopy(), /*columnChunk=*/0);
}

ScheduleAttr fovea::attn::makeSchedule(MLIRContext *context, StringRef inst,
                                       const KernelRow &kernel,
                                       int32_t rescaleThreshold) {
  return ScheduleAttr::get(context, kernel.blockM, kernel.blockN, kernel.waves,
                           InstAttr::get(context, inst), kernel.stages,
                           kernel.wavesPerSimd, rescaleThreshold,
                           kernel.valueSplit, kernel.queriesInLds,
                           kernel.directCopy, kernel.columnChunk);
}

/// How unlike two schedules are: first by the rows of a workgroup, which decide
/// how often the others pass through memory, then by the number of parameters.
static std::pair<double, int> difference(ScheduleAttr a, ScheduleAttr b) {
  auto parameters = [](ScheduleAttr s) {
    return std::array<int64_t, 9>{
        s.getBlockM(),       s.getBlockN(),       s.getWaves(),
        s.getStages(),       s.getWavesPerSimd(), s.getValueSplit(),
        s.getQueriesInLds(), s.getDirectCopy(),   s.getColumnChunk()};
  };
  int count = a.getInst() != b.getInst();
  for (auto [x, y] : llvm::zip_equal(parameters(a), parameters(b)))
    count += x != y;
  auto [less, more] =
      std::minmax<double>({double(a.getBlockM()), double(b.getBlockM())});
  return {more / less, count};
}

ScheduleAttr fovea::attn::pickSchedule(ArrayRef<ScheduleAttr> schedules,
                                       int32_t passedOver,
                                       ScheduleCheck check) {
  const ScheduleAttr first = schedules.front();
  if (passedOver == 0)
    return first;
  // What a check says is for nobody.
  MLIRContext *context = first.getContext();
  const Location nowhere =
      NameLoc::get(StringAttr::get(context, "other schedules"));
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    return success(diagnostic.getLocation() == nowhere);
  });
  auto silently = [&] { return emitError(nowhere); };
  SmallVector<ScheduleAttr> others;
  for (ScheduleAttr schedule : schedules.drop_front())
    if (schedule != first && !llvm::is_contained(others, schedule) &&
        succeeded(check(silently, schedule)))
      others.push_back(schedule);
  llvm::stable_sort(others, [&](ScheduleAttr a, ScheduleAttr b) {
    return difference(first, a) < difference(first, b);
  });
  return size_t(passedOver) <= others.size() ? others[size_t(passedOver) - 1]
                                             : ScheduleAttr();
}

ScheduleAttr fovea::attn::chooseForwardSchedule(
    MLIRContext *context, const target::TargetInfo &target, Type elementType,
    HeadDims dims, KernelNeeds needs, int32_t passedOver) {
  bool flushes =
      elementType.isF16() && target.has(target::kMfmaFlushesSubnormals);
  auto make = [&](const ScheduleRow *row) {
    return makeSchedule(context, row->inst, row->kernel,
                        flushes ? kFlushingRescaleThreshold
                                : kRescaleThreshold);
  };
  const auto schedules = llvm::map_to_vector(
      findRows<ScheduleRow>(kForwardRows, target, elementType, dims.most(),
                            needs),
      make);
  if (schedules.empty())
    return {};
  return pickSchedule(schedules, passedOver,
                      [&](auto emitError, ScheduleAttr schedule) {
                        return checkForwardSchedule(
                            emitError, target, elementType, dims, schedule);
                      });
}

int64_t fovea::attn::largestForwardHeadDim(const target::TargetInfo &target,
                                           Type elementType) {
  return largestHeadDim<ScheduleRow>(kForwardRows, target, elementType);
}

LogicalResult
fovea::attn::checkResidents(llvm::function_ref<InFlightDiagnostic()> emitError,
                            const target::TargetInfo &target,
                            const target::MatrixInstr &inst,
                            ScheduleAttr schedule, const Residents &residents) {
  int64_t lanes = int64_t(schedule.getWaves()) * inst.waveSize;
  int64_t takes =
      residents.other + residents.accumulators * schedule.getBlockM() / lanes;
  // Waves that share queries hold them all, as do lanes over which the
  // instruction repeats its operand.
  int64_t repeated =
      int64_t(schedule.getValueSplit())
      << llvm::popcount(inst.b.replicatedBits(layout::Space::Lane));
  takes += residents.factors * schedule.getBlockM() * repeated *
           target::elementTypeInfo(inst.type).bytes() / lanes / kRegisterBytes;
  // A workgroup's waves share the SIMDs whatever occupancy is asked for.
  int64_t waves = std::max<int64_t>(
      schedule.getWavesPerSimd(),
      llvm::divideCeil(schedule.getWaves(), target.simdsPerCu));
  int64_t registers = target::registersPerWave(target, int(waves));
  if (takes > registers)
    return emitError() << residents.what << " " << takes
                       << " registers a lane, but " << waves
                       << " waves a SIMD leave each " << registers
                       << "; a smaller block_m, a larger value_split or "
                          "queries_in_lds fit";
  return success();
}

LogicalResult fovea::attn::checkForwardSchedule(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, Type elementType, HeadDims dims,
    ScheduleAttr schedule) {
  const int64_t chunk = schedule.getColumnChunk();
  if (schedule.getStages() == 5)
    return emitError() << "stages = 5 has dK a block late in kernels of all "
                          "gradients; forward kernels take 1 to 4";
  if (schedule.getQueriesInLds() == 3)
    return emitError() << "of forward kernels queries_in_lds must be 0, 1 or "
                          "2, found 3";
  const bool readsQueriesAnew = schedule.getQueriesInLds() == 2;
  if ((chunk != 0) != readsQueriesAnew)
    return emitError() << "of forward kernels queries_in_lds = 2 and "
                          "column_chunk go together, found "
                       << schedule.getQueriesInLds() << " and " << chunk;
  if (chunk && (schedule.getStages() != 1 || schedule.getDirectCopy()))
    return emitError() << "column_chunk takes stages = 1 and direct_copy = 0 "
                          "in forward kernels, found "
                       << schedule.getStages() << " and "
                       << schedule.getDirectCopy();
  return checkProducts(emitError, target, elementType, dims,
                       withAllColumns(schedule));
}

LogicalResult
fovea::attn::checkProducts(llvm::function_ref<InFlightDiagnostic()> emitError,
                           const target::TargetInfo &target, Type elementType,
                           HeadDims dims, ScheduleAttr schedule) {
  const target::MatrixInstr *inst =
      lookupMatrixInstr(target, schedule.getInst(), elementType);
  if (!inst)
    return emitNoMatrixInstr(emitError, target, schedule.getInst(),
                             elementType);
  int64_t rows =
      int64_t(schedule.getWaves()) / schedule.getValueSplit() * inst->n;
  if (schedule.getBlockM() % rows != 0)
    return emitError() << "block_m must be a multiple of " << rows
                       << " (waves / value_split times the " << inst->n
                       << " columns of " << inst->name << "), found "
                       << schedule.getBlockM();
  // Scores are the contraction of the second product.
  const ForwardPipeline &pipeline = ForwardPipeline::of(schedule);
  int64_t keys = std::max<int64_t>(inst->m, inst->k) * pipeline.parts;
  if (schedule.getBlockN() % keys != 0)
    return emitError() << "block_n must be a multiple of " << keys << ", found "
                       << schedule.getBlockN();
  if (schedule.getDirectCopy() && !target.has(kDirectCopyFeatures))
    return emitError() << "direct_copy needs loads of 16 bytes a lane to LDS "
                          "and transposing reads from there, which "
                       << target.name << " does not have; use 0";
  ForwardTiles tiles = forwardTiles(dims, schedule, *inst);
  if (tiles.chunks > 1 &&
      (tiles.scoreDim != tiles.columns || tiles.valueDim != tiles.columns ||
       tiles.ldsDim != tiles.columns))
    return emitError() << "column_chunk must be a multiple of "
                       << layout::contractionUnit(inst->layouts())
                       << " (the contraction of " << inst->name << "), of "
                       << inst->m * schedule.getValueSplit()
                       << " (its rows times value_split) and of "
                       << kLdsRowBytes << " bytes, found " << tiles.columns;
  auto columnsInLds = [&] {
    return HeadDims(tiles.ldsDim, tiles.ldsDimV).str();
  };
  if (tiles.ldsBytes > target.ldsBytes)
    return emitError() << "K and V tiles of " << tiles.blockN << " keys by "
                       << columnsInLds()
                       << (schedule.keepsQueriesInLds() ? ", and the queries,"
                                                        : "")
                       << " take " << tiles.ldsBytes << " bytes of LDS, but "
                       << target.name << " has " << target.ldsBytes
                       << "; a smaller block_n fits";
  if (pipeline.countsCopies()) {
    int64_t bytes = tiles.elementBytes * tiles.blockN / pipeline.parts *
                    std::min(tiles.ldsDim, tiles.ldsDimV);
    int64_t lanes = int64_t(schedule.getWaves()) * inst->waveSize;
    if (bytes % (lanes * kCopyBytes) != 0)
      return emitError() << "stages = 4 with direct_copy = 1 counts what each "
                            "wave copies of "
                         << tiles.blockN / pipeline.parts << " keys by "
                         << columnsInLds() << ", which are no multiple of "
                         << kCopyBytes << " bytes for each of " << lanes
                         << " lanes; a larger block_n or fewer waves divide";
  }
  return checkResidents(
      emitError, target, *inst, schedule,
      {"the output and Q take", tiles.chunks * tiles.valueDim,
       schedule.keepsQueriesInRegisters() ? tiles.chunks * tiles.scoreDim : 0});
}

/// Registers a lane for the sums of an iteration's shares in f32. They are on
/// their way all at once, and of most launches they are all there is: few
/// waves, each of which waits once.
static constexpr int64_t kCombineRegisters = 128;

/// Waves among which the columns of a row are shared out: what each runs is
/// shorter, most of it code that no wave has run before.
static constexpr int32_t kMostCombineWaves = 4;

bool fovea::attn::hasFewRows(ScheduleAttr forward) {
  constexpr int64_t kFewRows = 16;
  return forward.getBlockM() <= kFewRows;
}

/// Registers a lane for the sums of `shares` shares in f32.
static int64_t combineRegisters(const target::TargetInfo &target,
                                int64_t headDim, int64_t shares,
                                int64_t waves) {
  return llvm::divideCeil(shares * int64_t(llvm::alignTo(headDim, 32)),
                          target.waveSize * waves);
}

/// Shares that rows combined by blocks have at most.
static int64_t sharesOfBlocks() {
  return spec::specOf(OpKind::Forward)
      .findAlgorithm("split")
      ->launches[1]
      .sharesOfBlock;
}

/// Registers of a lane that has 4 columns of each unit of a row in all of
/// these: of each the sums, of 16 bits, four terms and the weight.
static int64_t registersOfRows(int64_t units) {
  return sharesOfBlocks() * (2 * units + 4 + 1);
}

/// Rows of a workgroup where shares are few: as many as its lanes hold at 4
/// columns each. Where all rows are few, so would be workgroups; and of rows
/// that are wide no lane has registers for that.
static int32_t combinedRows(const target::TargetInfo &target, int64_t headDim,
                            ScheduleAttr forward, int32_t waves) {
  constexpr int64_t kMostOfLane = 256;
  const int64_t columns = llvm::alignTo(headDim, 32), unit = columns & -columns;
  if (hasFewRows(forward) || registersOfRows(columns / unit) > kMostOfLane)
    return 1;
  return std::clamp<int32_t>(4 * target.waveSize * waves / unit, 1,
                             kMostCombinedRows);
}

ScheduleAttr
fovea::attn::chooseCombineSchedule(MLIRContext *context,
                                   const target::TargetInfo &target,
                                   ScheduleAttr forward, int64_t headDim) {
  // Halves that are narrow or no power of two are stored by other lanes than
  // hold them.
  const int64_t columns = llvm::alignTo(headDim, 32);
  const bool hasFew = hasFewRows(forward);
  const int32_t ofRow = llvm::isPowerOf2_64(columns)
                            ? std::min<int32_t>(kMostCombineWaves, columns / 32)
                            : 1;
  // Those of 16 bits, of which a register holds two, are of rows that are
  // many: waves that wait for memory are to have others beside them.
  const int32_t most = hasFew ? 256 : 2 * target.waveSize;
  int32_t shares = ofRow == kMostCombineWaves ? most : 64, waves = 4;
  while (combineRegisters(target, headDim, shares, ofRow) > kCombineRegisters)
    shares /= 2;
  // Lanes hold 8 columns of each unit, of which rows have one for a power of
  // two, as sums and while they meet; addresses and weights take some 40 more.
  int64_t units = columns >> llvm::countr_zero(uint64_t(columns));
  int64_t takes =
      combineRegisters(target, headDim, shares, ofRow) / (hasFew ? 1 : 2) +
      2 * 8 * units + 40;
  // 15 is the most that was seen beside what rows of blocks take; what lies
  // further than an instruction's own offset (4 KiB) takes an address each
  // time.
  const int32_t rows = combinedRows(target, headDim, forward, ofRow);
  constexpr int64_t kBeside = 15, kOffset = 4096;
  if (rows > 1)
    takes = std::max(takes, registersOfRows(units) + kBeside +
                                sharesOfBlocks() * columns * 2 / kOffset);
  // Without matrix products there is no use for a file of sums alone.
  const int files =
      target.registerFile == target::RegisterFile::Separate ? 2 : 1;
  while (waves > 1 && target::registersPerWave(target, waves) / files < takes)
    waves /= 2;
  return makeSchedule(context, forward.getInst().getName(),
                      {rows, shares,
                       /*waves=*/ofRow, /*stages=*/1, waves,
                       /*valueSplit=*/ofRow},
                      /*rescaleThreshold=*/0);
}

LogicalResult fovea::attn::checkMaskSchedule(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, ScheduleAttr schedule) {
  constexpr int64_t kFewest = 8, kMost = 128, kFewestKeys = 32;
  const int64_t lanes = int64_t(schedule.getWaves()) * target.waveSize;
  const int64_t elements = int64_t(schedule.getBlockM()) * schedule.getBlockN();
  if (!llvm::isPowerOf2_64(elements) || schedule.getBlockN() < kFewestKeys ||
      elements < kFewest * lanes || elements > kMost * lanes)
    return emitError() << "block_m and block_n of a mask's kernel must be "
                          "powers of two with block_n at least "
                       << kFewestKeys << " and " << kFewest << " to " << kMost
                       << " elements for each of " << lanes << " lanes, found "
                       << schedule.getBlockM() << " and "
                       << schedule.getBlockN();
  return success();
}

ScheduleAttr fovea::attn::chooseMaskSchedule(MLIRContext *context,
                                             const target::TargetInfo &target,
                                             Type elementType) {
  ScheduleAttr forward =
      chooseForwardSchedule(context, target, elementType, kMinHeadDim, 0);
  if (!forward)
    return {};
  return makeSchedule(context, forward.getInst().getName(),
                      {/*blockM=*/16, /*blockN=*/256, /*waves=*/4,
                       /*stages=*/1, /*wavesPerSimd=*/4},
                      /*rescaleThreshold=*/0);
}

LogicalResult fovea::attn::checkCombineSchedule(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, Type elementType, int64_t headDim,
    ScheduleAttr schedule) {
  if (!lookupMatrixInstr(target, schedule.getInst(), elementType))
    return emitNoMatrixInstr(emitError, target, schedule.getInst(),
                             elementType);
  if (!llvm::isPowerOf2_64(schedule.getBlockM()) ||
      schedule.getBlockM() > kMostCombinedRows ||
      schedule.getWaves() != schedule.getValueSplit())
    return emitError() << "waves of the kernel that combines share the columns "
                          "of few rows: block_m must be a power of two to "
                       << kMostCombinedRows << " and value_split waves, found "
                       << schedule.getBlockM() << ", and "
                       << schedule.getValueSplit() << " of "
                       << schedule.getWaves();
  int64_t takes = combineRegisters(target, headDim, schedule.getBlockN(),
                                   schedule.getWaves());
  if (takes > kCombineRegisters)
    return emitError() << "sums of " << schedule.getBlockN() << " shares take "
                       << takes << " registers a lane, more "
                       << "than " << kCombineRegisters
                       << "; a smaller block_n fits";
  return success();
}
