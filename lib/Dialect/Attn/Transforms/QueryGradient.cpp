//===- QueryGradient.cpp - the kernel of dQ -------------------------------===//

#include "GradientBuilder.h"
#include "GradientKernels.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

/// One block of queries; S^T = K Q^T, dP^T = V dO^T, dQ^T += K^T dS^T.
class QueryGradient : public GradientBuilder<QueryBlockBuilder>,
                      PipelineRunner<GradientStep, GradientSlot> {
public:
  QueryGradient(BackwardOp op, gpu::GPUFuncOp kernel,
                const target::TargetInfo &target,
                const KernelArguments &arguments, ScheduleAttr schedule)
      : GradientBuilder(op, kernel, target, arguments, schedule),
        PipelineRunner(b, gradientPipeline(GradientKernel::Queries, schedule,
                                           tiles.chunks, loopsOverChunks())) {}
  void build();

private:
  using Value = mlir::Value; // both bases have one
  using Values = llvm::SmallVector<Value, 1>;

  void take(GradientStep step, Value number) override;
  SmallVector<Value *> sums() override;
  Value nothing(GradientSlot slot) override { return noBlock(slot); }
  Values nothingsOf(GradientSlot slot) override {
    return slot == GradientSlot::Fetched ? nothingFetched()
                                         : Values{nothing(slot)};
  }

  Value loadChunk(bool values, Value number);
  /// What was loaded so, without columns that are not there.
  Value cutChunk(bool values, Value tile) {
    const Rows &ofKeys = rowsOfKeys(values);
    return cut(fromColumn(tiles.chunks > 1 ? anew(ofKeys) : ofKeys,
                          columnOfLoop(chunkOfLoop)),
               tile,
               chunk * tiles.columns);
  }

  Residents queries, douts;
  BlockViews views;
  /// Of the rows, as [1, block_m]: -lse * log2(e), -inf where no key is seen;
  /// and delta.
  Value negatedLse, delta;
  Visited ldsK{tiles}, ldsV{tilesV};
  SmallVector<Value> acc; ///< dQ^T
  Value power;            ///< of two, that is in it; null: none
  // Of the loop that is being emitted.
  Mask mask;
  bool isMasked = false;
};

SmallVector<Value *> QueryGradient::sums() {
  SmallVector<Value *> sums;
  for (Value &ofChunk : acc)
    sums.push_back(&ofChunk);
  if (power)
    sums.push_back(&power);
  return sums;
}

Value QueryGradient::loadChunk(bool values, Value number) {
  if (loopsOverChunks())
    views = {}; // of some in the loop, or behind it
  return views.load(b, number, values, values ? tilesV : tiles, chunk,
                    /*behind=*/0, [&](bool values) {
                      return viewKeys(values, number, /*row=*/0,
                                      columnOfLoop(chunkOfLoop));
                    });
}

void QueryGradient::take(GradientStep step, Value number) {
  using Step = GradientStep;
  using Slot = GradientSlot;
  auto in = [&](Value lds) { return bufferOf(lds, number, pipeline.buffers); };
  switch (step) {
  case Step::Load:
    slot(Slot::ScoredRows) = loadChunk(/*values=*/false, number);
    slot(Slot::OtherRows) = loadChunk(/*values=*/true, number);
    return;
  case Step::Store:
    storeVisited(cutChunk(/*values=*/false, slot(Slot::ScoredRows)), ldsK, in);
    StoreLdsOp::create(b, cutChunk(/*values=*/true, slot(Slot::OtherRows)),
                       in(ldsV.rows));
    return;
  case Step::LoadAgain:
    slot(Slot::ScoredRows) = loadChunk(/*values=*/false, number);
    return;
  case Step::StoreTurned:
    storeTurned(cutChunk(/*values=*/false, slot(Slot::ScoredRows)), ldsK, in);
    return;
  case Step::ReadScored:
    separateChunks();
    slot(Slot::Scored) =
        readRows(in(ldsK.rows), queries[chunk], columnOfLoop(chunkOfLoop));
    return;
  case Step::Scores:
    slot(Slot::Scores) = product(slot(Slot::Scored), queries[chunk],
                                 isFirstChunk() ? Value() : slot(Slot::Scores));
    return;
  case Step::Fetch: {
    // Ahead of the loops it is the first full one, if there is any.
    llvm::SaveAndRestore<bool> ofLoop(isFull, isFull || !mask);
    valuesOf(Slot::Fetched) = toCarry(fetchScoreAhead(number));
    return;
  }
  case Step::Mask: {
    separateChunks();
    Score::Fetched fetched;
    if (!isUnaligned())
      fetched = fetchedIn(valuesOf(Slot::Fetched));
    // What makes f32 of them would wait ahead of the products.
    if (!fetched.empty()) {
      using Crossing = amdgpu::sched_barrier_opt_enum;
      amdgpu::SchedBarrierOp::create(b, Crossing::salu | Crossing::all_ds |
                                            Crossing::mfma_wmma);
    }
    Score::Result result =
        scoresOf(slot(Slot::Scores), number, /*row=*/0, fetched);
    slot(Slot::Scores) = mask(result.score, number, /*row=*/0);
    slot(Slot::Slopes) =
        slopesOfSeen(result, isMasked ? slot(Slot::Scores) : Value());
    return;
  }
  case Step::Weigh: {
    Value scores = slot(Slot::Scores);
    slot(Slot::Weights) = probabilities(
        scores,
        broadcast(negatedLse, cast<RankedTensorType>(scores.getType())));
    if (dropout.isThere())
      slot(Slot::Weights) =
          dropout.apply(slot(Slot::Weights),
                        {batch, headQ, firstRow, keyOf(number),
                         /*queriesAreRows=*/false},
                        /*negates=*/true);
    return;
  }
  case Step::ReadOther:
    separateLdsReads();
    slot(Slot::Other) =
        readRows(in(ldsV.rows), douts[chunk], columnOfLoop(chunkOfLoop));
    return;
  case Step::WeightGradients:
    slot(Slot::WeightGradients) =
        product(slot(Slot::Other), douts[chunk],
                isFirstChunk() ? Value() : slot(Slot::WeightGradients));
    return;
  case Step::ScoreGradients: {
    Value dp = slot(Slot::WeightGradients);
    auto full = cast<RankedTensorType>(dp.getType());
    Value ds = timesSlopes(
        scoreGradients(slot(Slot::Weights), dp, broadcast(delta, full)),
        slot(Slot::Slopes));
    slot(Slot::ScoreGradients) = roundScoreGradients(ds, power, acc);
    return;
  }
  case Step::ReadTurned:
    separateChunks();
    slot(Slot::Turned) = readTurned(ldsK, in);
    return;
  case Step::Accumulate:
    acc[chunk] =
        accumulate(slot(Slot::Turned), slot(Slot::ScoreGradients), acc[chunk]);
    return;
  default:
    llvm_unreachable("of the kernels of dK and dV");
  }
}

void QueryGradient::build() {
  allocVisited({&ldsK, &ldsV}, {&ldsK}, pipeline.buffers);
  placeWorkgroup(tiles.blockM, /*fromTheEnd=*/isUneven(), schedule);
  dropout.prepare();
  enterSequence(firstRow, /*ownsKeys=*/false);
  Rows q = rowsOf("q", headQ), dout = rowsOf("dout", headQ),
       dq = rowsOf("dq", headQ);
  visitKeys(tiles.blockM, tiles.blockN, pipeline.ahead());
  factor = softmaxFactor();
  queries = makeResidents(
      q, firstRow, schedule.keepsQueriesInLds(),
      [=](const Rows &rows, Value first, int64_t columns,
          int64_t column) -> Value {
        return NegateIfOp::create(
            b, loadTile(rows, first, tiles.blockM, columns, column),
            scaleIsNegative());
      });
  douts = makeResidents(
      dout, firstRow, schedule.keepsOtherInLds(),
      [=](const Rows &rows, Value first, int64_t columns, int64_t column) {
        return loadTile(rows, first, tiles.blockM, columns, column);
      });
  negatedLse =
      negated(loadValues(rowValues("lse", headQ), firstRow, tiles.blockM));
  delta = loadValues(deltaRows(headQ), firstRow, tiles.blockM);
  acc = noSumsOfChunks(tiles);
  power = initialDsPower();
  prologue();
  Value end;
  walkKeys([&](Value from, Value to, int64_t, Mask maskOfLoop) {
    mask = maskOfLoop;
    isMasked = !isFull;
    loop(from, to);
    end = to;
  });
  drain(end);
  storeGradient(acc, loweredScoreGradients(arg("scale"), power), dq, firstRow);
  finish();
}

} // namespace

void fovea::attn::buildQueryGradient(BackwardOp op, gpu::GPUFuncOp kernel,
                                     const target::TargetInfo &target,
                                     const KernelArguments &arguments,
                                     ScheduleAttr schedule) {
  QueryGradient(op, kernel, target, arguments, schedule).build();
}
