//===- BackwardSchedule.cpp - schedules of the backward kernels -----------===//

#include "ScheduleTable.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// Schedules of the two gradient kernels.
struct BackwardRow {
  uint32_t features; ///< that the chip must have, beside the instruction
  int64_t maxHeadDim;
  const char *inst;
  KernelRow dkdv, dq;
};
} // namespace

static const BackwardRow kBackwardRows[] = {
    // CDNA. Two accumulators and two resident operands in the kernel of dK and
    // dV: from head dimension 72 on they want one wave a SIMD, from 136 on 16
    // rows a wave.
    {0, 64, "mfma_32x32x8", {128, 32, 4, 2, 2}, {128, 32, 4, 2, 2}},
    {target::kMfmaDoubleK,
     80,
     "mfma_32x32x8",
     {128, 32, 4, 2, 1},
     {128, 32, 4, 2, 2}},
    {target::kMfmaBf16_1k,
     80,
     "mfma_32x32x8",
     {128, 32, 4, 2, 2},
     {128, 32, 4, 2, 2}},
    {0, 128, "mfma_32x32x8", {128, 32, 4, 2, 1}, {128, 32, 4, 2, 2}},
    {0, 256, "mfma_16x16x16", {64, 16, 4, 2, 1}, {64, 32, 4, 2, 1}},
    // 512 registers a wave hold both accumulators up to 448; then two waves
    // share
    // them. Four tiles of 16 queries fill 64 KiB at 480.
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
    {0, 64, "mfma_32x32x4", {128, 32, 4, 2, 2}, {128, 32, 4, 2, 2}},
    {0, 128, "mfma_32x32x4", {128, 32, 4, 2, 1}, {128, 32, 4, 2, 1}},
    {0, 256, "mfma_16x16x8", {64, 16, 4, 2, 1}, {64, 32, 4, 2, 1}},
    // RDNA: 256 registers a lane.
    {target::kWmmaRepeated,
     64,
     "wmma_16x16x16",
     {64, 16, 4, 1, 2, 1, 1},
     {64, 16, 4, 1, 2, 1, 1}},
    {0, 64, "wmma_16x16x16", {64, 32, 4, 2, 4}, {64, 32, 4, 2, 4}},
    {0, 128, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}, {64, 16, 4, 1, 2, 1, 1}},
    {0, 256, "wmma_16x16x16", {16, 16, 4, 1, 2, 4, 1}, {32, 16, 8, 1, 4, 4, 1}},
    {0, 128, "wmma_16x16x32", {64, 32, 4, 2, 2}, {64, 32, 4, 2, 2}},
    {0, 256, "wmma_16x16x32", {64, 32, 4, 1, 1}, {64, 32, 4, 1, 1}},
};

/// Rows that a workgroup of the row sums takes, so that they fit its registers,
/// and its waves.
static int32_t deltaRows(int64_t headDim) {
  return headDim > 256 ? 16 : headDim > 128 ? 32 : 64;
}
static constexpr int32_t kDeltaWaves = 4;

int64_t fovea::attn::largestBackwardHeadDim(const target::TargetInfo &target,
                                            Type elementType) {
  int64_t largest = 0;
  for (const BackwardRow &row : kBackwardRows)
    if (findRow<BackwardRow>(row, target, elementType, /*headDim=*/0))
      largest = std::max(largest, row.maxHeadDim);
  return largest;
}

BackwardScheduleAttr
fovea::attn::chooseBackwardSchedule(MLIRContext *context,
                                    const target::TargetInfo &target,
                                    Type elementType, int64_t headDim) {
  const BackwardRow *row =
      findRow<BackwardRow>(kBackwardRows, target, elementType, headDim);
  if (!row)
    return {};
  auto make = [&](const KernelRow &kernel) {
    return makeSchedule(context, row->inst, kernel, /*rescaleThreshold=*/0);
  };
  ScheduleAttr delta = make({deltaRows(headDim), row->dq.blockN, kDeltaWaves,
                             /*stages=*/1, /*wavesPerSimd=*/4});
  return BackwardScheduleAttr::get(context, BackwardAlgorithm::Deterministic,
                                   delta, make(row->dkdv), make(row->dq));
}

namespace {
/// What one of the two kernels holds at once, in tiles.
struct Holds {
  StringLiteral kernel;
  int moving;       ///< tiles of block_n rows in LDS
  int accumulators; ///< of value_dim by block_m
  int rowTerms;     ///< f32 values in LDS for each row of block_n
};
} // namespace

/// The part that the layouts of Q, K and V alone do not decide.
static LogicalResult
checkHolds(llvm::function_ref<InFlightDiagnostic()> emitError,
           const target::TargetInfo &target, Type elementType, int64_t headDim,
           ScheduleAttr schedule, const Holds &holds) {
  const target::MatrixInstr &inst = *target::lookupMatrixInstr(
      target, schedule.getInst(), factorType(elementType));
  ForwardTiles tiles = forwardTiles(headDim, schedule, inst);
  constexpr int residents = 2;
  int64_t resident = 2 * tiles.blockM * tiles.scoreDim;
  int64_t lds =
      tiles.blockN * (2 * tiles.ldsDim * holds.moving + 4 * holds.rowTerms);
  if (schedule.getQueriesInLds())
    lds += residents * resident;
  if (lds > target.ldsBytes)
    return emitError() << "the tiles of the " << holds.kernel << " kernel take "
                       << lds << " bytes of LDS, but " << target.name << " has "
                       << target.ldsBytes << "; a smaller block_n or block_m "
                       << "fits";
  std::string what = ("what the " + holds.kernel + " kernel keeps takes").str();
  return checkResidents(emitError, target, inst, tiles, schedule,
                        {what, holds.accumulators, residents});
}

LogicalResult fovea::attn::checkBackwardSchedule(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, Type elementType, int64_t headDim,
    BackwardScheduleAttr schedule) {
  // The row sums use no matrix instruction, but share what looks one up.
  target::FactorType type = factorType(elementType);
  if (!target::lookupMatrixInstr(target, schedule.getDelta().getInst(), type))
    return emitError() << target.name << " has no matrix instruction '"
                       << schedule.getDelta().getInst().getValue() << "' for "
                       << elementType << "; it has "
                       << target::matrixInstrNames(target, type);
  for (ScheduleAttr kernel :
       {schedule.getDelta(), schedule.getDkdv(), schedule.getDq()})
    if (kernel.getDirectCopy())
      return emitError() << "kernels of gradients load their tiles by way of "
                            "registers: direct_copy must be 0, found "
                         << kernel.getDirectCopy();
  for (ScheduleAttr kernel : {schedule.getDkdv(), schedule.getDq()})
    if (failed(checkForwardSchedule(emitError, target, elementType, headDim,
                                    kernel)))
      return failure();
  // Q and dO, K and V: as they are and, but for V, turned.
  if (failed(checkHolds(emitError, target, elementType, headDim,
                        schedule.getDkdv(), {"dkdv", 4, 2, 2})))
    return failure();
  return checkHolds(emitError, target, elementType, headDim, schedule.getDq(),
                    {"dq", 3, 1, 0});
}
