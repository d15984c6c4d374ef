//===- BackwardSchedule.cpp - schedules of the backward kernels -----------===//

#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// Schedules of the two gradient kernels; the first row that the chip can do,
/// and that holds the head dimension, is taken.
struct BackwardRow {
  uint32_t features; ///< that the chip must have, beside the instruction
  int64_t maxHeadDim;
  const char *inst;
  struct Kernel {
    int32_t blockM, blockN, waves, stages, wavesPerSimd, valueSplit,
        queriesInLds;
  } dkdv, dq;
};
} // namespace

static const BackwardRow kBackwardRows[] = {
    // CDNA. Two accumulators and two resident operands in the kernel of dK and
    // dV: from head dimension 72 on they want one wave a SIMD, from 136 on 16
    // rows a wave.
    {0, 64, "mfma_32x32x8", {128, 32, 4, 2, 2, 1, 0}, {128, 32, 4, 2, 2, 1, 0}},
    {0,
     128,
     "mfma_32x32x8",
     {128, 32, 4, 2, 1, 1, 0},
     {128, 32, 4, 2, 2, 1, 0}},
    {0, 256, "mfma_16x16x16", {64, 16, 4, 2, 1, 1, 0}, {64, 32, 4, 2, 1, 1, 0}},
    {0, 64, "mfma_32x32x4", {128, 32, 4, 2, 2, 1, 0}, {128, 32, 4, 2, 2, 1, 0}},
    {0,
     128,
     "mfma_32x32x4",
     {128, 32, 4, 2, 1, 1, 0},
     {128, 32, 4, 2, 1, 1, 0}},
    {0, 256, "mfma_16x16x8", {64, 16, 4, 2, 1, 1, 0}, {64, 32, 4, 2, 1, 1, 0}},
    // RDNA: 256 registers a lane.
    {target::kWmmaRepeated,
     64,
     "wmma_16x16x16",
     {64, 16, 4, 1, 2, 1, 1},
     {64, 16, 4, 1, 2, 1, 1}},
    {0, 64, "wmma_16x16x16", {64, 32, 4, 2, 4, 1, 0}, {64, 32, 4, 2, 4, 1, 0}},
    {0, 128, "wmma_16x16x16", {64, 16, 4, 1, 2, 1, 1}, {64, 16, 4, 1, 2, 1, 1}},
    {0, 256, "wmma_16x16x16", {16, 16, 4, 1, 2, 4, 1}, {32, 16, 8, 1, 4, 4, 1}},
    {0, 128, "wmma_16x16x32", {64, 32, 4, 2, 2, 1, 0}, {64, 32, 4, 2, 2, 1, 0}},
    {0, 256, "wmma_16x16x32", {64, 32, 4, 1, 1, 1, 0}, {64, 32, 4, 1, 1, 1, 0}},
};

/// Rows that a workgroup of the row sums takes, so that they fit its registers,
/// and its waves.
static int32_t deltaRows(int64_t headDim) { return headDim > 128 ? 32 : 64; }
static constexpr int32_t kDeltaWaves = 4;

BackwardScheduleAttr
fovea::attn::chooseBackwardSchedule(MLIRContext *context,
                                    const target::TargetInfo &target,
                                    Type elementType, int64_t headDim) {
  for (const BackwardRow &row : kBackwardRows) {
    if (headDim > row.maxHeadDim || !target.has(row.features) ||
        !target::lookupMatrixInstr(target, row.inst, factorType(elementType)))
      continue;
    auto make = [&](const BackwardRow::Kernel &kernel) {
      return ScheduleAttr::get(context, kernel.blockM, kernel.blockN,
                               kernel.waves, StringAttr::get(context, row.inst),
                               kernel.stages, kernel.wavesPerSimd,
                               /*rescaleThreshold=*/0, kernel.valueSplit,
                               kernel.queriesInLds, /*directCopy=*/0);
    };
    ScheduleAttr delta =
        make({deltaRows(headDim), row.dq.blockN, kDeltaWaves, /*stages=*/1,
              /*wavesPerSimd=*/4, /*valueSplit=*/1, /*queriesInLds=*/0});
    return BackwardScheduleAttr::get(context, BackwardAlgorithm::Deterministic,
                                     delta, make(row.dkdv), make(row.dq));
  }
  return {};
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
  int64_t lanes = int64_t(schedule.getWaves()) * inst.waveSize;
  int64_t registers =
      holds.accumulators * tiles.valueDim * tiles.blockM / lanes;
  if (!schedule.getQueriesInLds())
    registers +=
        residents * resident *
        (int64_t(schedule.getValueSplit())
         << llvm::popcount(inst.b.replicatedBits(layout::Space::Lane))) /
        lanes / 4;
  int64_t waves = std::max<int64_t>(
      schedule.getWavesPerSimd(),
      llvm::divideCeil(schedule.getWaves(), target.simdsPerCu));
  int64_t most = target::registersPerWave(target, int(waves));
  if (registers > most)
    return emitError() << "what the " << holds.kernel << " kernel keeps takes "
                       << registers << " registers a lane, but " << waves
                       << " waves a SIMD leave each " << most
                       << "; a smaller block_m, a larger value_split or "
                          "queries_in_lds fit";
  return success();
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
