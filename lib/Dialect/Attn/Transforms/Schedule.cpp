//===- Schedule.cpp - choosing and checking schedules ---------------------===//

#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {
/// A row holds up to its head dimension; the first that fits is taken.
struct ForwardRow {
  int64_t maxHeadDim;
  int32_t blockM, blockN, waves;
  const char *inst;
  int32_t stages, wavesPerSimd, rescaleThreshold;
};
} // namespace

// CDNA with 512 registers a lane and 64 KiB of LDS. Four waves of 32 queries;
// two workgroups a compute unit, so that one's exponentials run under the
// other's matrix instructions. Keys of an iteration shrink with the head
// dimension to stay within 256 registers; at more than 192 the accumulator
// alone takes 128 and one wave a SIMD has to do.
static const ForwardRow kForwardRows[] = {
    {128, 128, 64, 4, "mfma_32x32x8", 2, 2, 8},
    {192, 128, 32, 4, "mfma_32x32x8", 2, 2, 8},
    {256, 128, 32, 4, "mfma_32x32x8", 2, 1, 8},
};

ForwardTiles fovea::attn::forwardTiles(int64_t headDim, ScheduleAttr schedule,
                                       const target::MatrixInstr &inst) {
  ForwardTiles tiles;
  tiles.headDim = headDim;
  // Two instructions' worth of the contraction are read from LDS at once, 16
  // bytes a lane.
  tiles.scoreDim = llvm::alignTo(headDim, 2 * inst.k);
  tiles.valueDim = llvm::alignTo(headDim, inst.m);
  tiles.ldsDim = llvm::alignTo(headDim, 32);
  tiles.blockM = schedule.getBlockM();
  tiles.blockN = schedule.getBlockN();
  tiles.rowGroups = inst.waveSize / inst.n;
  return tiles;
}

ScheduleAttr fovea::attn::chooseForwardSchedule(
    MLIRContext *context, const target::TargetInfo &target, int64_t headDim) {
  for (const ForwardRow &row : kForwardRows)
    if (headDim <= row.maxHeadDim)
      return ScheduleAttr::get(context, row.blockM, row.blockN, row.waves,
                               StringAttr::get(context, row.inst), row.stages,
                               row.wavesPerSimd, row.rescaleThreshold);
  llvm_unreachable("(C5) bounds the head dimension");
}

LogicalResult fovea::attn::checkForwardSchedule(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, Type elementType, int64_t headDim,
    ScheduleAttr schedule) {
  target::FactorType type = factorType(elementType);
  const target::MatrixInstr *inst =
      target::lookupMatrixInstr(target, schedule.getInst(), type);
  if (!inst)
    return emitError() << target.name << " has no matrix instruction '"
                       << schedule.getInst().getValue() << "' for "
                       << elementType << "; it has "
                       << target::matrixInstrNames(target, type);
  int64_t rows = int64_t(schedule.getWaves()) * inst->n;
  if (schedule.getBlockM() % rows != 0)
    return emitError() << "block_m must be a multiple of " << rows
                       << " (waves times the " << inst->n << " columns of "
                       << inst->name << "), found " << schedule.getBlockM();
  if (schedule.getBlockN() % 32 != 0)
    return emitError() << "block_n must be a multiple of 32, found "
                       << schedule.getBlockN();
  ForwardTiles tiles = forwardTiles(headDim, schedule, *inst);
  if (tiles.ldsBytes() > target.ldsBytes)
    return emitError() << "K and V tiles of " << tiles.blockN << " keys by "
                       << tiles.ldsDim << " take " << tiles.ldsBytes()
                       << " bytes of LDS, but " << target.name << " has "
                       << target.ldsBytes << "; a smaller block_n fits";
  // The accumulator must stay in registers.
  int64_t accumulator = tiles.valueDim * tiles.blockM /
                        (int64_t(schedule.getWaves()) * inst->waveSize);
  // A workgroup's waves share the SIMDs whatever occupancy is asked for.
  int64_t wavesPerSimd = std::max<int64_t>(
      schedule.getWavesPerSimd(),
      llvm::divideCeil(schedule.getWaves(), target.simdsPerCu));
  int64_t registers = target.registersPerSimdLane / wavesPerSimd;
  // Q takes half of what the output does, in 16 bits.
  if (accumulator + accumulator / 2 > registers)
    return emitError() << "the output and Q take "
                       << accumulator + accumulator / 2
                       << " registers a lane, but " << wavesPerSimd
                       << " waves a SIMD leave each " << registers
                       << "; a smaller block_m fits";
  return success();
}
