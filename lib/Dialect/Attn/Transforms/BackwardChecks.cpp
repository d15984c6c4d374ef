//===- BackwardChecks.cpp - what schedules of gradients must be -----------===//

#include "GradientPipeline.h"
#include "ScheduleTable.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Layout/DotLayouts.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <tuple>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

std::optional<QueryProduct>
fovea::attn::queryProduct(const target::TargetInfo &target, Type elementType,
                          HeadDims dims, ScheduleAttr schedule) {
  // The schedule's own comes first, and so wins where others are as good.
  SmallVector<const target::MatrixInstr *> instructions;
  if (const target::MatrixInstr *own =
          lookupMatrixInstr(target, schedule.getInst(), elementType))
    instructions.push_back(own);
  for (const target::MatrixInstr &row : target::allMatrixInstrs())
    if (lookupMatrixInstr(target, row.name, elementType) == &row)
      instructions.push_back(&row);
  int64_t headDim = dims.qk;
  if (int64_t chunk = schedule.getColumnChunk(); chunk && chunk < dims.most())
    headDim = chunk;
  // A tile in LDS has no columns past its own.
  int64_t most = std::numeric_limits<int64_t>::max();
  if (schedule.keepsQueriesInLds())
    most = llvm::alignTo(headDim, kLdsRowBytes / bytesOf(elementType));
  std::optional<QueryProduct> best;
  for (const target::MatrixInstr *inst : instructions)
    for (int waves = schedule.getWaves(); waves > 0; waves /= 2) {
      int64_t columns = llvm::alignTo(headDim, int64_t(waves) * inst->n);
      int rows = schedule.getWaves() / waves;
      bool divides =
          columns <= most &&
          schedule.getBlockN() % (int64_t(rows) * inst->m) == 0 &&
          schedule.getBlockM() % layout::contractionUnit(inst->layouts()) == 0;
      if (!divides)
        continue;
      // One sum would have each product wait for the one before.
      auto cost = [&](const QueryProduct &product) {
        int64_t sums = product.columns / product.columnWaves / product.inst->n *
                       schedule.getBlockN() * product.columnWaves /
                       schedule.getWaves() / product.inst->m;
        return std::tuple(product.columns, -product.columnWaves, sums == 1);
      };
      QueryProduct product = {inst, waves, columns};
      if (!best || cost(product) < cost(*best))
        best = product;
    }
  return best;
}

namespace {
/// What a kernel with matrix products holds at once, in tiles.
struct Holds {
  StringRef kernel;
  GradientKernel role;
  // Tiles of block_n rows in LDS, and accumulators of value_dim by block_m: of
  // q and k, and of v and out.
  int moving, movingV;
  int accumulators, accumulatorsV;
  int rowTerms; ///< f32 values in LDS for each row of block_n
  /// Of the kernel of all gradients: the keys once more, and dS in LDS.
  std::optional<QueryProduct> query = {};
};
} // namespace

/// The part that the layouts of Q, K and V alone do not decide.
static LogicalResult
checkHolds(llvm::function_ref<InFlightDiagnostic()> emitError,
           const target::TargetInfo &target, Type elementType, HeadDims dims,
           ScheduleAttr schedule, const Holds &holds) {
  const target::MatrixInstr &inst =
      *lookupMatrixInstr(target, schedule.getInst(), elementType);
  const ForwardTiles tiles = gradientTiles(dims, /*ofV=*/false, schedule, inst),
                     tilesV = gradientTiles(dims, /*ofV=*/true, schedule, inst);
  const int64_t bytes = tiles.elementBytes;
  const GradientPipeline &pipeline =
      gradientPipeline(holds.role, schedule, tiles.chunks);
  const int64_t buffers = pipeline.buffers;
  if (pipeline.goesInTurns && buffers * tiles.blockN > kMostViewedRows)
    return emitError() << "blocks that go in turns are rows of one view, which "
                          "has at most "
                       << kMostViewedRows
                       << ": with stages = " << schedule.getStages()
                       << " block_n must be at most "
                       << kMostViewedRows / buffers << ", found "
                       << tiles.blockN;
  if (schedule.getQueriesInLds() == 2 && tiles.chunks == 1)
    return emitError() << "queries_in_lds = 2 reads operands of the "
                       << holds.kernel
                       << " kernel in chunks: column_chunk must be less than "
                          "the head dimension, found "
                       << schedule.getColumnChunk();
  int64_t lds =
      buffers * tiles.blockN *
      (bytes * (tiles.ldsDim * holds.moving + tilesV.ldsDim * holds.movingV) +
       4 * holds.rowTerms);
  const int64_t columns = tiles.chunks * tiles.scoreDim,
                columnsV = tiles.chunks * tilesV.scoreDim;
  // The keys lie there once for both of their products.
  const bool sharesKeys = holds.query && schedule.keepsQueriesInLds() &&
                          turnsReads(target, elementType);
  if (schedule.keepsQueriesInLds())
    lds += bytes * tiles.blockM *
           (sharesKeys ? tiles.chunks * tiles.ldsDim : columns);
  if (schedule.keepsOtherInLds())
    lds += bytes * tiles.blockM * columnsV;
  if (holds.query) {
    lds += buffers * bytes * tiles.blockN * tiles.blockM;
    if (schedule.keepsQueriesInLds() && !sharesKeys)
      lds += bytes * tiles.blockM * tiles.chunks * tiles.ldsDim;
  }
  if (lds > target.ldsBytes)
    return emitError() << "the tiles of the " << holds.kernel << " kernel take "
                       << lds << " bytes of LDS, but " << target.name << " has "
                       << target.ldsBytes
                       << "; a smaller block_n, block_m or column_chunk fits";
  int64_t other = 0;
  if (holds.query && schedule.keepsQueriesInRegisters())
    other = tiles.blockM * tiles.chunks * holds.query->columns *
            (int64_t(schedule.getWaves() / holds.query->columnWaves)
             << llvm::popcount(
                    holds.query->inst->b.replicatedBits(layout::Space::Lane))) *
            bytes / (int64_t(schedule.getWaves()) * inst.waveSize) /
            kRegisterBytes;
  std::string what = ("what the " + holds.kernel + " kernel keeps takes").str();
  const int64_t accumulators =
      tiles.chunks * (holds.accumulators * tiles.valueDim +
                      holds.accumulatorsV * tilesV.valueDim);
  int64_t factors = 0;
  if (schedule.getQueriesInLds() != 2)
    factors = (schedule.keepsQueriesInLds() ? 0 : columns) +
              (schedule.keepsOtherInLds() ? 0 : columnsV);
  return checkResidents(emitError, target, inst, schedule,
                        {what, accumulators, factors, other});
}

LogicalResult fovea::attn::checkGradientLaunch(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, Type elementType, HeadDims dims,
    const spec::AlgorithmSpec &algorithm, const spec::LaunchSpec &launch,
    ScheduleAttr kernel) {
  if (failed(checkProducts(emitError, target, elementType, dims, kernel)))
    return failure();
  if (kernel.getStages() == 3)
    return emitError() << "stages = 3 is of forward kernels; gradients take 1, "
                          "2, 4 or 5";
  if (kernel.getStages() == 5 && !launch.feeds)
    return emitError() << "stages = 5 has dK a block late in kernels of all "
                          "gradients; the "
                       << launch.suffix << " kernel takes 1, 2 or 4";
  const target::MatrixInstr &inst =
      *lookupMatrixInstr(target, kernel.getInst(), elementType);
  const ForwardTiles tiles = forwardTiles(dims, kernel, inst);
  const int64_t chunks = tiles.chunks;
  if (chunks > 1 && kernel.getStages() > 2)
    return emitError() << "columns come in " << chunks
                       << " chunks with 1 or 2 stages, found stages = "
                       << kernel.getStages() << "; column_chunk = 0 has all";
  // Of what moves: Q and dO as they are and turned, or K, V and K turned.
  GradientKernel role = launch.feeds      ? GradientKernel::All
                        : launch.ownsKeys ? GradientKernel::Keys
                                          : GradientKernel::Queries;
  const int turned = turnsReads(target, elementType) ? 0 : 1;
  Holds holds = {launch.suffix,
                 role,
                 1 + turned,
                 launch.ownsKeys ? 1 + turned : 1,
                 1,
                 launch.ownsKeys ? 1 : 0,
                 launch.ownsKeys ? 2 : 0};
  if (launch.feeds) {
    const spec::WorkspaceSpec &workspace = algorithm.workspace;
    if (workspace.pairStep && elementType.isF32())
      return emitError() << "algorithm '" << algorithm.name
                         << "' adds up dQ in types of 16 bits, found "
                         << elementType << "; use 'atomic'";
    if (workspace.pairStep && !target.addsPairs(elementType.isBF16()))
      return emitError() << "algorithm '" << algorithm.name
                         << "' adds pairs of " << elementType
                         << " in memory, for which " << target.name
                         << " has no instruction; use 'atomic'";
    if (workspace.pairStep && workspace.rowStep % kernel.getBlockN() != 0)
      return emitError() << "algorithm '" << algorithm.name
                         << "' takes blocks of queries that divide "
                         << workspace.rowStep
                         << ", found block_n = " << kernel.getBlockN();
    if (!workspace.pairStep && !target.has(target::kBufferAtomicAddF32))
      return emitError() << "algorithm '" << algorithm.name
                         << "' adds f32 in memory, for which " << target.name
                         << " has no instruction; use 'deterministic'";
    holds.query = queryProduct(target, elementType, dims, kernel);
    if (!holds.query)
      return emitError() << "dQ of " << kernel.getBlockN() << " queries by "
                         << dims.qk << " columns does not divide over "
                         << kernel.getWaves()
                         << " waves; a larger block_n or fewer waves fit";
    if (chunks > 1 && holds.query->columns != tiles.columns)
      return emitError() << "waves share out " << holds.query->columns
                         << " columns of dQ, but a chunk has " << tiles.columns
                         << "; a larger column_chunk or fewer waves fit";
    const int64_t columns = chunks * holds.query->columns;
    if (workspace.pairStep && columns > workspace.pairColumns(dims.qk))
      return emitError() << "algorithm '" << algorithm.name << "' has room for "
                         << workspace.pairColumns(dims.qk)
                         << " columns of dQ, but waves share out " << columns
                         << "; fewer waves fit";
  }
  return checkHolds(emitError, target, elementType, dims, kernel, holds);
}

LogicalResult fovea::attn::checkBackwardSchedule(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, Type elementType, HeadDims dims,
    BackwardScheduleAttr schedule) {
  // What only streams rows uses no matrix instruction, but shares what looks
  // one up.
  for (ScheduleAttr kernel : schedule.getKernels()) {
    if (!lookupMatrixInstr(target, kernel.getInst(), elementType))
      return emitNoMatrixInstr(emitError, target, kernel.getInst(),
                               elementType);
    if (kernel.getDirectCopy())
      return emitError() << "kernels of gradients load their tiles by way of "
                            "registers: direct_copy must be 0, found "
                         << kernel.getDirectCopy();
  }
  const spec::AlgorithmSpec &algorithm = specOf(schedule.getAlgorithm());
  for (auto [launch, kernel] :
       llvm::zip_equal(algorithm.launches, schedule.getKernels())) {
    if (launch.products == 0 && algorithm.workspace.pairStep &&
        kernel.getBlockM() % 2 != 0)
      return emitError() << "sums of algorithm '" << algorithm.name
                         << "' are of two rows each: block_m of '"
                         << launch.suffix << "' must be even, found "
                         << kernel.getBlockM();
    if (launch.products > 0 &&
        failed(checkGradientLaunch(emitError, target, elementType, dims,
                                   algorithm, launch, kernel)))
      return failure();
  }
  return success();
}

LogicalResult fovea::attn::checkScoreGradients(BackwardOp op,
                                               const target::TargetInfo &target,
                                               BackwardAlgorithm algorithm) {
  if (llvm::all_of(op.getGradients(), isStoredGradient))
    return success();
  if (!target.has(target::kBufferAtomicAddF32))
    return op.emitOpError("adds gradients of captures in memory, for which ")
           << target.name << " has no instruction";
  if (!specOf(algorithm).deterministic)
    return success();
  const std::vector<spec::CaptureSpec> captures = capturesOf(op.getScore());
  for (int32_t number : op.getGradientsOf())
    if (!captures[number].hasElementOfEach()) // nor is it stored
      return op.emitOpError("adds up the gradient of capture ")
             << number << ", " << captures[number].str()
             << ", in any order, and algorithm '" << specOf(algorithm).name
             << "' gives the same bits in every run; use 'atomic' "
                "(--algorithm=atomic). Captures that batch, head, query and "
                "key "
                "index as they are can be had of both";
  return success();
}
