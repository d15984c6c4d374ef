//===- TileBackward.cpp - attn-tile-backward ------------------------------===//
//
// Writes the tile programs of the backward kernels (docs/Backward.md). In each
// the scores are oriented so that their rows are what the products after them
// sum over: keys in the kernel of dQ, queries in that of dK and dV. P and dS
// are then the right operands of those products as they stand.
//
//===----------------------------------------------------------------------===//

#include "GradientPipeline.h"
#include "TileBuilder.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fovea;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEBACKWARD
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

/// Views of the two tensors of which a block is visited: one each for all its
/// chunks of columns, so that these have one address.
class BlockViews {
public:
  /// Loads a chunk of the block that is visited as `number`: [block_n,
  /// lds_dim].
  Value load(ImplicitLocOpBuilder &b, Value number, bool ofOther,
             const ForwardTiles &tiles, int64_t chunk,
             llvm::function_ref<Value(bool ofOther)> makeView) {
    Known &known = ofBoth[ofOther];
    if (known.number != number)
      known = {number, makeView(ofOther)};
    auto view = cast<TypedValue<ViewType>>(known.view);
    auto type = RankedTensorType::get({tiles.blockN, tiles.ldsDim},
                                      view.getType().getElementType());
    return LoadOp::create(b, type, view, /*from=*/nullptr,
                          chunk * tiles.columns);
  }

private:
  struct Known {
    Value number, view;
  };
  Known ofBoth[2];
};

/// What all kernels of a pass share.
template <typename Base>
class GradientBuilder : public Base {
public:
  GradientBuilder(BackwardOp op, gpu::GPUFuncOp kernel,
                  const target::TargetInfo &target,
                  const KernelArguments &arguments, ScheduleAttr schedule)
      : Base(op, kernel, target, arguments), op(op), schedule(schedule),
        inst(*lookupMatrixInstr(target, schedule.getInst(),
                                op.getElementType())),
        tiles(forwardTiles(op.getHeadDim(), schedule, inst)) {}

protected:
  using Base::b;

  Value factorTile(Value lds, int64_t rows, int64_t columns) {
    return LoadLdsOp::create(b, this->tile(rows, columns, this->elementType),
                             lds);
  }

  /// The columns of the head dimension that a chunk has.
  Columns columnsOf(int64_t chunk) const {
    int64_t first = chunk * tiles.columns;
    return {first, std::min(tiles.columns, this->headDim - first)};
  }

  /// A right operand that lasts through the loop: [score_dim, block_m], rows of
  /// a tensor as columns. In LDS if the schedule says so.
  struct Resident {
    Value tile, lds;
  };
  /// One for each chunk of columns.
  using Residents = SmallVector<Resident>;
  /// \param load  the rows from a column on, [block_m, score_dim]
  Residents makeResidents(llvm::function_ref<Value(int64_t column)> load) {
    Residents residents;
    for (int64_t chunk = 0; chunk != tiles.chunks; ++chunk) {
      Value rows = load(columnsOf(chunk).first);
      if (!schedule.getQueriesInLds()) {
        residents.push_back({this->transpose(rows), nullptr});
        continue;
      }
      Value lds =
          this->ldsTile(tiles.blockM, tiles.scoreDim, this->elementType);
      StoreLdsOp::create(b, rows, lds);
      residents.push_back({nullptr, lds});
    }
    return residents;
  }
  Value get(const Resident &resident) {
    if (!resident.lds)
      return resident.tile;
    return this->transpose(
        factorTile(resident.lds, tiles.blockM, tiles.scoreDim));
  }

  /// What is visited, in LDS. Read as it is and turned: it lies there both
  /// ways, or only as it is where reads turn it.
  struct Visited {
    Value rows, turned;
  };
  /// In this order, that of their LDS.
  void allocVisited(ArrayRef<Value *> rows, ArrayRef<Value *> turned,
                    int buffers) {
    for (Value *tile : rows)
      *tile =
          this->ldsTile(tiles.blockN, tiles.ldsDim, this->elementType, buffers);
    if (turnsReads(this->target, this->elementType))
      return;
    for (Value *tile : turned)
      *tile =
          this->ldsTile(tiles.ldsDim, tiles.blockN, this->elementType, buffers);
  }
  template <typename In>
  void storeVisited(Value rows, const Visited &tile, In in) {
    // Chunks come once more, to be turned.
    if (tile.turned && tiles.chunks == 1)
      StoreLdsOp::create(b, this->transpose(rows), in(tile.turned));
    StoreLdsOp::create(b, rows, in(tile.rows));
  }
  template <typename In>
  void storeTurned(Value rows, const Visited &tile, In in) {
    if (tile.turned)
      StoreLdsOp::create(b, this->transpose(rows), in(tile.turned));
    else
      StoreLdsOp::create(b, rows, in(tile.rows));
  }
  Value readRows(Value lds) {
    return factorTile(lds, tiles.blockN, tiles.scoreDim);
  }
  template <typename In>
  Value readTurned(const Visited &tile, In in) {
    if (tile.turned)
      return factorTile(in(tile.turned), tiles.valueDim, tiles.blockN);
    return this->transpose(
        factorTile(in(tile.rows), tiles.blockN, tiles.valueDim));
  }

  /// What holds a block in LDS: with two buffers, blocks take turns.
  Value bufferOf(Value lds, Value number, int buffers) {
    if (buffers == 1)
      return lds;
    return LdsBufferOp::create(
        b, lds, arith::AndIOp::create(b, number, this->i32(buffers - 1)));
  }

  /// What is left of a block that is none: zeros, which add nothing.
  Value noBlock(GradientSlot slot) {
    switch (slot) {
    case GradientSlot::Turned:
      return this->splat(
          this->tile(tiles.valueDim, tiles.blockN, this->elementType), 0.0f);
    case GradientSlot::ScoreGradients:
      return this->splat(
          this->tile(tiles.blockN, tiles.blockM, this->elementType), 0.0f);
    default:
      llvm_unreachable("no pipeline leaves that behind");
    }
  }

  /// [block_n, block_m]: rows that are visited times a resident operand.
  /// \param acc  the product of the chunks before; null: none
  Value product(Value rows, const Resident &right, Value acc) {
    RankedTensorType type = this->f32Tile(tiles.blockN, tiles.blockM);
    return DotOp::create(b, rows, get(right),
                         acc ? acc : this->splat(type, 0.0f),
                         schedule.getInst(), /*split_rows=*/false);
  }

  /// Where residents are read from LDS again and again, LLVM would read those
  /// of all products at once: what is below reads LDS after what is above.
  void separateLdsReads() {
    if (!schedule.getQueriesInLds())
      return;
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  }
  /// The same of chunks, whose products are short.
  void separateChunks() {
    if (tiles.chunks > 1)
      separateLdsReads();
  }

  /// acc + left, [value_dim, block_n], times P or dS.
  Value accumulate(Value left, Value right, Value acc) {
    return DotOp::create(b, left, right, acc, schedule.getInst(),
                         /*split_rows=*/schedule.getValueSplit() > 1);
  }

  /// exp2(factor * scores + negated lse), at most 1: where scores are large,
  /// the digits that the log-sum-exp lacks would make it more.
  Value probabilities(Value scores, Value negatedLse) {
    auto type = cast<RankedTensorType>(scores.getType());
    return SaturateOp::create(
        b, this->exp2(math::FmaOp::create(b, scores, this->splat(type, factor),
                                          negatedLse)));
  }

  //===--- dropout --------------------------------------------------------===//
  // Weights that are dropped have a sign in the kernels, since dS is of all of
  // them and dV of those that are kept.

  /// A tile where weights are kept, and zeros. By their signs: comparisons
  /// would hold a pair of scalar registers each.
  Value whereKept(Value p, Value values) {
    auto type = cast<RankedTensorType>(p.getType());
    auto bits = type.clone(b.getI32Type());
    auto bitsOf = [&](Value values) {
      return arith::BitcastOp::create(b, bits, values);
    };
    Value dropped = arith::ShRSIOp::create(b, bitsOf(p), this->splat(bits, 31));
    Value kept = arith::XOrIOp::create(b, dropped, this->splat(bits, -1));
    return arith::BitcastOp::create(
        b, type, arith::AndIOp::create(b, bitsOf(values), kept));
  }
  /// Those that count for dV.
  Value keptProbabilities(Value p) {
    return this->dropout.isThere() ? whereKept(p, p) : p;
  }
  /// p * (dp - delta), of dp's part that is kept.
  Value scoreGradients(Value p, Value dp, Value delta) {
    if (!this->dropout.isThere())
      return this->fmul(p, this->fsub(dp, delta));
    auto type = cast<RankedTensorType>(p.getType());
    Value difference = math::FmaOp::create(
        b, whereKept(p, dp), this->splat(type, this->dropout.scale),
        arith::NegFOp::create(b, delta));
    return this->fmul(math::AbsFOp::create(b, p), difference);
  }

  /// dS times slopes, where there are some.
  Value timesSlopes(Value ds, Value slopes) {
    return slopes ? this->fmul(ds, slopes) : ds;
  }
  /// Which weights are 0.
  Value isZero(Value p) {
    auto type = cast<RankedTensorType>(p.getType());
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, p,
                                 this->splat(type, 0.0f));
  }
  /// The slopes of scores: 0 where nothing is seen, whatever the program made
  /// of what is not there.
  /// \param masked  the scores, if visibility has masked them
  Value slopesOfSeen(const Score::Result &result, Value masked) {
    if (!result.slope || (!masked && !result.seen))
      return result.slope;
    auto type = cast<RankedTensorType>(result.slope.getType());
    Value zeros = this->splat(type, 0.0f);
    if (!masked)
      return this->select(result.seen, result.slope, zeros);
    // What the predicate hides is -infinity too.
    Value none = this->splat(type, -std::numeric_limits<float>::infinity());
    Value hidden =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, masked, none);
    return this->select(hidden, zeros, result.slope);
  }

  //===--- subnormal operands ---------------------------------------------===//
  // Where matrix instructions take them for zeros, P and dS are multiplied by a
  // power of two first, and the sums of products divided by it in the end.

  /// P is at most 1, so that its power is a constant.
  Value roundProbabilities(Value p) {
    p = keptProbabilities(p);
    if (this->raisesProbabilities()) {
      Value power = this->splat(this->f32Tile(1, tiles.blockM),
                                powerOfTwo(Base::kLargestExponent));
      if (isAtomic()) // has no scalar register left for the loop
        power = ToVectorsOp::create(b, power);
      p = this->fmul(
          p, this->broadcast(power, cast<RankedTensorType>(p.getType())));
    }
    return this->round(p);
  }
  /// What undoes this in sums over P, and makes up for what is dropped; null:
  /// nothing.
  Value loweredProbabilities() {
    Value factor = this->dropout.scale;
    if (!this->raisesProbabilities())
      return factor;
    Value power = this->f32(powerOfTwo(-Base::kLargestExponent));
    return factor ? this->fmul(power, factor) : power;
  }

  /// dS has no range of its own. Each column has the power that brings the
  /// largest dS seen in it so far just below what f16 holds: [1, block_m]. In
  /// sums of dQ in memory the columns of many workgroups meet, which have no
  /// power in common: with that algorithm dS stays as it is, and null stands
  /// for the power.
  Value initialDsPower() {
    if (!this->raisesProbabilities() || isAtomic())
      return nullptr;
    return this->splat(this->f32Tile(1, tiles.blockM), powerOfTwo(120));
  }
  /// Rounds dS. The power shrinks, and with it the sums over dS so far, when a
  /// larger element comes.
  Value roundScoreGradients(Value ds, Value &power,
                            MutableArrayRef<Value> sums) {
    if (!power)
      return this->round(ds);
    auto full = cast<RankedTensorType>(ds.getType());
    RankedTensorType partial = this->f32Tile(tiles.rowGroups, tiles.blockM);
    Value largest = ReduceOp::create(b, partial, ReduceKind::Max,
                                     math::AbsFOp::create(b, ds));
    Value outgrown = arith::CmpFOp::create(
        b, arith::CmpFPredicate::OGT,
        this->fmul(largest, this->broadcast(power, partial)),
        this->splat(partial, powerOfTwo(Base::kLargestExponent)));
    Value any = WaveAnyOp::create(b, b.getI1Type(), outgrown);
    SmallVector<Value> same = {power};
    llvm::append_range(same, sums);
    auto change = scf::IfOp::create(b, TypeRange(ValueRange(same)), any,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(change.thenBlock());
      Value smaller = powerFor(largest, power);
      Value alpha = arith::DivFOp::create(b, smaller, power);
      SmallVector<Value> changed = {smaller};
      for (Value sum : sums)
        changed.push_back(this->fmul(
            sum,
            this->broadcast(alpha, cast<RankedTensorType>(sum.getType()))));
      scf::YieldOp::create(b, changed);
      b.setInsertionPointToStart(change.elseBlock());
      scf::YieldOp::create(b, same);
    }
    power = change.getResult(0);
    llvm::copy(change.getResults().drop_front(), sums.begin());
    return this->round(this->fmul(ds, this->broadcast(power, full)));
  }
  /// `factor` over the power, if there is one, for sums over dS.
  Value loweredScoreGradients(Value factor, Value power) {
    if (!power)
      return factor;
    auto row = cast<RankedTensorType>(power.getType());
    return arith::DivFOp::create(b, this->splat(row, factor), power);
  }

  const spec::AlgorithmSpec &algorithm() {
    return specOf(op.getSchedule()->getAlgorithm());
  }
  /// Whether dQ is added up in memory.
  bool isAtomic() {
    return op.getSchedule()->getAlgorithm() != BackwardAlgorithm::Deterministic;
  }
  /// Whether that is in the type of the inputs, two rows an addition.
  bool sumsPairs() { return algorithm().sumsNarrowly(); }

  /// The rows of a query head in the workspace, which has the batch's at
  /// `offset` elements, dense, with `columns` f32 each.
  Rows workspaceRows(Value offset, int64_t columns, Value head) {
    Value before = this->mul(this->i64(head), workspaceRowsOfHead());
    if (Value start = this->sequences.workspaceStart)
      before = this->add(before, start);
    return {this->arg("workspace"),
            this->add(offset, this->mul(before, i64Constant(columns))),
            this->i32(columns), this->seqlenQ()};
  }
  /// i64 rows of a head, and of a batch, in the workspace; the algorithm's
  /// table describes it.
  Value workspaceRowsOfHead() {
    if (Value rows = this->sequences.workspaceRows)
      return rows;
    Value seqlen = this->i64(this->arg("seqlen_q"));
    const spec::WorkspaceSpec &workspace = algorithm().workspace;
    if (!workspace.pairStep)
      return seqlen;
    return this->add(padded(seqlen, workspace.rowStep),
                     i64Constant(workspace.spareRows));
  }
  /// i64: by how many batches of the workspace this one is behind the first.
  Value workspaceBatch() {
    Value batch = this->sequences.workspaceBatch;
    return batch ? batch : this->i64(this->batch);
  }
  Value workspaceRowsOfBatch() {
    const spec::WorkspaceSpec &workspace = algorithm().workspace;
    Value rows =
        this->mul(this->i64(this->arg("heads_q")), workspaceRowsOfHead());
    return workspace.pairStep ? rows : padded(rows, workspace.rowStep);
  }
  Value padded(Value rows, int64_t step) {
    if (step == 1)
      return rows;
    Value size = i64Constant(step), last = i64Constant(step - 1);
    return this->mul(this->div(this->add(rows, last), size), size);
  }
  /// f32 of a row's sums in the workspace; of pairs of rows half of them.
  int64_t sumColumns() {
    return (algorithm().workspace.bytesOfRow(this->headDim) - 4) / 4;
  }
  /// Rows of one f32: delta.
  Rows deltaRows(Value head) {
    Value before = workspaceBatch();
    if (isAtomic()) // behind the batch's sums
      before = this->add(this->mul(before, i64Constant(sumColumns() + 1)),
                         i64Constant(sumColumns()));
    return workspaceRows(this->mul(before, workspaceRowsOfBatch()), 1, head);
  }
  /// Sums of dQ: rows of f32, or of i32 with two rows each, all that there is
  /// memory for.
  Rows sumsRows(Value head) {
    Value before = this->mul(workspaceBatch(), i64Constant(sumColumns() + 1));
    Rows rows = workspaceRows(this->mul(before, workspaceRowsOfBatch()),
                              sumColumns(), head);
    if (!sumsPairs())
      return rows;
    Value all =
        arith::TruncIOp::create(b, b.getI32Type(), workspaceRowsOfHead());
    return {rows.base, rows.offset, this->i32(2 * sumColumns()),
            this->div(all, this->i32(2))};
  }
  /// \param first  row of the head, of pairs an even one
  Value sumsView(const Rows &sums, Value first, Columns columns) {
    if (!sumsPairs())
      return this->view(sums, first, columns, b.getF32Type());
    // To the end there is memory past the head dimension.
    if (columns.first + columns.count == this->headDim)
      columns.count = 2 * sumColumns() - columns.first;
    return this->view(sums, this->div(first, this->i32(2)), columns,
                      b.getI32Type());
  }

  /// A value of each of the rows [first, first + count): [1, count].
  Value loadValues(const Rows &rows, Value first, int64_t count) {
    Value view = this->view(rows, first, 1, b.getF32Type());
    return this->transpose(LoadOp::create(b, this->f32Tile(count, 1), view));
  }

  /// -lse * log2(e). A row that saw no key, for which others also write the
  /// lowest number, gets -inf, and so P = 0.
  Value negated(Value lse) {
    auto type = cast<RankedTensorType>(lse.getType());
    float infinity = std::numeric_limits<float>::infinity();
    Value negated =
        this->fmul(lse, this->splat(type, -1.44269504088896340736f));
    Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, negated,
                                       this->splat(type, infinity));
    return this->select(none, this->splat(type, -infinity), negated);
  }

  /// An accumulator [value_dim, block_m] for each chunk of columns.
  SmallVector<Value> noSumsOfChunks() {
    return SmallVector<Value>(
        tiles.chunks,
        this->splat(this->f32Tile(tiles.valueDim, tiles.blockM), 0.0f));
  }
  /// Stores accumulators times `scale` (if any; a scalar or one for each
  /// column) as rows.
  void storeGradient(ArrayRef<Value> sums, Value scale, const Rows &rows,
                     Value first) {
    for (auto [chunk, acc] : llvm::enumerate(sums))
      StoreOp::create(b, this->transpose(scaledAndNarrow(acc, scale)),
                      this->view(rows, first, columnsOf(chunk)));
  }
  Value scaledAndNarrow(Value sums, Value scale) {
    auto type = cast<RankedTensorType>(sums.getType());
    if (scale)
      sums = this->fmul(sums, isa<RankedTensorType>(scale.getType())
                                  ? this->broadcast(scale, type)
                                  : this->splat(type, scale));
    return this->narrow(sums);
  }
  void storeRows(Value tile, const Rows &rows, Value first) {
    StoreOp::create(b, tile, this->view(rows, first, this->headDim));
  }

  BackwardOp op;
  ScheduleAttr schedule;
  const target::MatrixInstr &inst;
  ForwardTiles tiles;
  Value factor; ///< |scale| * log2(e), at least the least normal number

private:
  Value i64Constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 64).getResult();
  }
  static float powerOfTwo(int exponent) { return std::ldexp(1.0f, exponent); }

  /// The power, at most `power`, that takes the largest of each column to
  /// [2^13, 2^14): room for it to grow fourfold.
  Value powerFor(Value partial, Value power) {
    auto row = cast<RankedTensorType>(power.getType());
    auto bits = row.clone(b.getI32Type());
    // The exponent is taken as it lies in the number. What is smaller than this
    // bound has a power beyond any that is in use.
    Value largest =
        this->fmax(ReduceOp::create(b, row, ReduceKind::Max, partial),
                   this->splat(row, powerOfTwo(-100)));
    Value exponent =
        arith::AndIOp::create(b, arith::BitcastOp::create(b, bits, largest),
                              this->splat(bits, 0x7f800000));
    constexpr int bias = 127;
    constexpr auto both = int32_t(uint32_t(2 * bias + 13) << 23);
    Value wanted = arith::BitcastOp::create(
        b, row, this->sub(this->splat(bits, both), exponent));
    return arith::MinNumFOp::create(b, wanted, power);
  }
};

//===----------------------------------------------------------------------===//
// dQ
//===----------------------------------------------------------------------===//

/// One block of queries; S^T = K Q^T, dP^T = V dO^T, dQ^T += K^T dS^T.
class QueryGradient : public GradientBuilder<QueryBlockBuilder>,
                      PipelineRunner<GradientStep, GradientSlot> {
public:
  QueryGradient(BackwardOp op, gpu::GPUFuncOp kernel,
                const target::TargetInfo &target,
                const KernelArguments &arguments, ScheduleAttr schedule)
      : GradientBuilder(op, kernel, target, arguments, schedule),
        PipelineRunner(b, gradientPipeline(GradientKernel::Queries, schedule,
                                           tiles.chunks)) {}
  void build();

private:
  void take(GradientStep step, Value number) override;
  SmallVector<Value *> sums() override;
  Value nothing(GradientSlot slot) override { return noBlock(slot); }

  Value loadChunk(bool values, Value number);
  /// What was loaded so, without columns that are not there.
  Value cutChunk(bool values, Value tile) {
    return cutKeys(values, tile, chunk * tiles.columns);
  }

  Residents queries, douts;
  BlockViews views;
  /// Of the rows, as [1, block_m]: -lse * log2(e), -inf where no key is seen;
  /// and delta.
  Value negatedLse, delta;
  Visited ldsK;
  Value ldsV;
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
  return views.load(b, number, values, tiles, chunk,
                    [&](bool values) { return viewKeys(values, number); });
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
                       in(ldsV));
    return;
  case Step::LoadAgain:
    slot(Slot::ScoredRows) = loadChunk(/*values=*/false, number);
    return;
  case Step::StoreTurned:
    storeTurned(cutChunk(/*values=*/false, slot(Slot::ScoredRows)), ldsK, in);
    return;
  case Step::ReadScored:
    separateChunks();
    slot(Slot::Scored) = readRows(in(ldsK.rows));
    return;
  case Step::Scores:
    slot(Slot::Scores) = product(slot(Slot::Scored), queries[chunk],
                                 chunk ? slot(Slot::Scores) : Value());
    return;
  case Step::Mask: {
    separateChunks();
    Score::Result result = scoresOf(slot(Slot::Scores), number);
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
    slot(Slot::Other) = readRows(in(ldsV));
    return;
  case Step::WeightGradients:
    slot(Slot::WeightGradients) =
        product(slot(Slot::Other), douts[chunk],
                chunk ? slot(Slot::WeightGradients) : Value());
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
  allocVisited({&ldsK.rows, &ldsV}, {&ldsK.turned}, pipeline.buffers);
  placeWorkgroup(tiles.blockM, /*fromTheEnd=*/isUneven());
  dropout.prepare();
  enterSequence(firstRow, /*ownsKeys=*/false);
  Rows q = rowsOf("q", headQ), dout = rowsOf("dout", headQ),
       dq = rowsOf("dq", headQ);
  visitKeys(tiles.blockM, tiles.blockN, pipeline.ahead());
  factor = softmaxFactor();
  queries = makeResidents([&](int64_t column) {
    return NegateIfOp::create(b,
                              loadTile(q, firstRow, tiles.blockM,
                                       tiles.scoreDim, /*hidden=*/nullptr,
                                       column),
                              scaleIsNegative());
  });
  douts = makeResidents([&](int64_t column) {
    return loadTile(dout, firstRow, tiles.blockM, tiles.scoreDim,
                    /*hidden=*/nullptr, column);
  });
  negatedLse =
      negated(loadValues(rowValues("lse", headQ), firstRow, tiles.blockM));
  delta = loadValues(deltaRows(headQ), firstRow, tiles.blockM);
  acc = noSumsOfChunks();
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

//===----------------------------------------------------------------------===//
// dK and dV
//===----------------------------------------------------------------------===//

/// One block of keys; S = Q K^T, dP = dO V^T, dV^T += dO^T P, dK^T += Q^T dS,
/// over the queries of all heads of the group. With the algorithm that adds dQ
/// up in memory also dQ += dS K: there dS sums over keys, which are spread over
/// lanes and waves, so it goes through LDS to be a left operand.
class KeyGradients : public GradientBuilder<TileBuilder>,
                     PipelineRunner<GradientStep, GradientSlot> {
public:
  KeyGradients(BackwardOp op, gpu::GPUFuncOp kernel,
               const target::TargetInfo &target,
               const KernelArguments &arguments, ScheduleAttr schedule)
      : GradientBuilder(op, kernel, target, arguments, schedule),
        PipelineRunner(b, gradientPipeline(isAtomic() ? GradientKernel::All
                                                      : GradientKernel::Keys,
                                           schedule, tiles.chunks)) {}
  void build();

private:
  struct Head {
    Value number;
    Rows q, dout, lse, delta;
    Rows sums; ///< of dQ, where they are taken
  };
  void take(GradientStep step, Value number) override;
  SmallVector<Value *> sums() override;
  Value nothing(GradientSlot slot) override;
  void load(Value number, Value block, bool isAgain);
  /// What was loaded so, without columns that are not there.
  Value cutChunk(const Rows &rows, Value tile) {
    return cut(rows, tile, chunk * tiles.columns);
  }
  Score::Result scoresOf(Value products, Value block);
  Value maskedScores(Value scores, Value block);
  Value ofEachQuery(Value lds);
  void prepareQuerySums(const Rows &k);
  Value queryGradients(Value ds, const Resident &own);
  Value maskedBlock(Value number);
  Value fullBlock(Value number);
  /// Whether what keys past the last have of dS counts: in sums of dQ, and in
  /// gradients of captures.
  bool sumsOverKeys() const { return query || score.hasGradients(); }
  bool isCounted() const { return queries.hasTail && pipeline.buffers > 1; }
  Bounds seenByKeys();
  Rows sumsOf(Value head);
  Value loadOwn(const Rows &rows, int64_t columns, int64_t column);
  void findListed();
  void visitQueries();

  SmallVector<Value> accV, accK; ///< dV^T, dK^T
  Value power;                   ///< of two, that is in the latter; null: none
  /// Of gradients of captures, over the queries of a head; none between heads.
  SmallVector<Value> captureSums;
  Value firstKey;
  Value firstSeen;  ///< key that any query sees; null: the first of all
  Segments queries; ///< that see these keys
  BlockList list;   ///< of a kernel that reads lists: likewise, of the head
  Value isTail;     ///< i1: some keys are past the last; where it matters
  Value spareBlock; ///< behind all of the head, for sums in pairs
  Value tailBlocks, maskedBlocks; ///< the latter with the head
  Residents keys, values;
  BlockViews views;
  Visited ldsQ, ldsDout;
  Value ldsLse, ldsDelta;
  // Of the sums of dQ; nothing where they are not taken.
  std::optional<QueryProduct> query;
  Residents queryKeys; ///< [block_m, columns]
  Value ldsDs;
  Value scale; ///< of sums in pairs
  // Of the loop that is being emitted.
  Head head;
  bool isMasked = false;
  Score::Result scored; ///< of the block whose scores were last made
};

SmallVector<Value *> KeyGradients::sums() {
  SmallVector<Value *> sums;
  for (SmallVector<Value> *ofChunks : {&accV, &accK})
    for (Value &ofChunk : *ofChunks)
      sums.push_back(&ofChunk);
  if (power)
    sums.push_back(&power);
  for (Value &sum : captureSums)
    sums.push_back(&sum);
  return sums;
}

Value KeyGradients::nothing(GradientSlot slot) {
  if (slot == GradientSlot::Number) // past the last, where nothing is added
    return spareBlock ? spareBlock
                      : i32(std::numeric_limits<int32_t>::max() / tiles.blockN);
  return noBlock(slot);
}

/// The keys once more, as the right operand of a sum over keys.
void KeyGradients::prepareQuerySums(const Rows &k) {
  query = queryProduct(target, elementType, headDim, schedule);
  ldsDs = ldsTile(tiles.blockN, tiles.blockM, elementType, pipeline.buffers);
  for (int64_t number = 0; number != tiles.chunks; ++number) {
    const int64_t column = columnsOf(number).first;
    if (!schedule.getQueriesInLds()) {
      queryKeys.push_back({loadOwn(k, query->columns, column), nullptr});
      continue;
    }
    Value lds = ldsTile(tiles.ldsDim, tiles.blockM, elementType);
    StoreLdsOp::create(b, transpose(loadOwn(k, tiles.ldsDim, column)), lds);
    queryKeys.push_back({nullptr, lds});
  }
}

/// dS [block_n, block_m] times the keys: [block_n, columns].
Value KeyGradients::queryGradients(Value ds, const Resident &own) {
  Value right =
      own.lds ? transpose(factorTile(own.lds, query->columns, tiles.blockM))
              : own.tile;
  Value zero = splat(f32Tile(tiles.blockN, query->columns), 0.0f);
  auto inst = InstAttr::get(b.getContext(), query->inst->name);
  return DotOp::create(b, ds, right, zero, inst, /*split_rows=*/false,
                       b.getI32IntegerAttr(query->columnWaves));
}

void KeyGradients::load(Value number, Value block, bool isAgain) {
  using Slot = GradientSlot;
  Value first;
  auto firstRow = [&] {
    // LLVM would carry the address of each tensor through both loops.
    if (!first)
      first = mul(opaque(block), i32(tiles.blockN));
    return first;
  };
  auto view = [&](bool ofDout) {
    return TileBuilder::view(ofDout ? head.dout : head.q, firstRow(), headDim);
  };
  slot(Slot::ScoredRows) = views.load(b, number, false, tiles, chunk, view);
  slot(Slot::OtherRows) = views.load(b, number, true, tiles, chunk, view);
  if (isAgain || chunk != 0)
    return;
  slot(Slot::LogSumRows) = loadValues(head.lse, first, tiles.blockN);
  slot(Slot::DeltaRows) = loadValues(head.delta, first, tiles.blockN);
}

/// Of products of Q and K, [block_n, block_m].
Score::Result KeyGradients::scoresOf(Value products, Value block) {
  if (!score.isProgram())
    return {products};
  Value scale = math::AbsFOp::create(b, arg("scale"));
  Value row = add(queries.origin, mul(block, i32(tiles.blockN)));
  return score.apply(products, scale,
                     {batch, head.number, row, firstKey, /*hasKeyRows=*/false,
                      /*isSeen=*/lists.isThere() && !isMasked,
                      /*isUnaligned=*/queries.hasHead && isMasked});
}

Value KeyGradients::maskedScores(Value scores, Value block) {
  if (!isMasked)
    return scores;
  // Comparisons ahead of the scores would hold a pair of SGPRs each.
  if (target.waveSize == 64)
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  // Here, so that bounds take no registers while they are not needed.
  return visibility.apply(scores, seenByKeys(), mul(block, i32(tiles.blockN)));
}

/// [block_n, block_m]: a value of each query that is visited.
Value KeyGradients::ofEachQuery(Value lds) {
  Value row = LoadLdsOp::create(b, f32Tile(1, tiles.blockN), lds);
  return transpose(broadcast(row, f32Tile(tiles.blockM, tiles.blockN)));
}

void KeyGradients::take(GradientStep step, Value number) {
  using Step = GradientStep;
  using Slot = GradientSlot;
  auto block = [&] {
    return isMasked ? maskedBlock(number) : fullBlock(number);
  };
  auto in = [&](Value lds) { return bufferOf(lds, number, pipeline.buffers); };
  switch (step) {
  case Step::Load:
    return load(number, block(), /*isAgain=*/false);
  case Step::LoadAgain:
    return load(number, block(), /*isAgain=*/true);
  case Step::StoreTurned:
    storeTurned(cutChunk(head.q, slot(Slot::ScoredRows)), ldsQ, in);
    storeTurned(cutChunk(head.dout, slot(Slot::OtherRows)), ldsDout, in);
    return;
  case Step::Store: {
    Value logSums = chunk ? Value() : negated(slot(Slot::LogSumRows));
    storeVisited(cutChunk(head.q, slot(Slot::ScoredRows)), ldsQ, in);
    storeVisited(cutChunk(head.dout, slot(Slot::OtherRows)), ldsDout, in);
    if (!logSums)
      return;
    StoreLdsOp::create(b, logSums, in(ldsLse));
    StoreLdsOp::create(b, slot(Slot::DeltaRows), in(ldsDelta));
    return;
  }
  case Step::ReadScored:
    separateChunks();
    slot(Slot::Scored) = readRows(in(ldsQ.rows));
    return;
  case Step::Scores:
    if (chunk == 0)
      slot(Slot::Number) = block();
    slot(Slot::Scores) = product(slot(Slot::Scored), keys[chunk],
                                 chunk ? slot(Slot::Scores) : Value());
    return;
  case Step::Mask: {
    separateChunks();
    scored = scoresOf(slot(Slot::Scores), slot(Slot::Number));
    slot(Slot::Scores) = maskedScores(scored.score, slot(Slot::Number));
    slot(Slot::Slopes) =
        slopesOfSeen(scored, isMasked ? slot(Slot::Scores) : Value());
    return;
  }
  case Step::ReadLogSums:
    slot(Slot::LogSums) = ofEachQuery(in(ldsLse));
    return;
  case Step::Weigh:
    slot(Slot::Weights) =
        probabilities(slot(Slot::Scores), slot(Slot::LogSums));
    if (dropout.isThere()) {
      Value row =
          add(queries.origin, mul(slot(Slot::Number), i32(tiles.blockN)));
      slot(Slot::Weights) = dropout.apply(
          slot(Slot::Weights),
          {batch, head.number, row, firstKey, /*queriesAreRows=*/true},
          /*negates=*/true);
    }
    return;
  case Step::Round:
    slot(Slot::Rounded) = roundProbabilities(slot(Slot::Weights));
    return;
  case Step::ReadTurnedOther:
    separateChunks();
    slot(Slot::TurnedOther) = readTurned(ldsDout, in);
    return;
  case Step::AccumulateValues:
    accV[chunk] =
        accumulate(slot(Slot::TurnedOther), slot(Slot::Rounded), accV[chunk]);
    return;
  case Step::ReadOther:
    separateLdsReads();
    slot(Slot::Other) = readRows(in(ldsDout.rows));
    return;
  case Step::WeightGradients:
    slot(Slot::WeightGradients) =
        product(slot(Slot::Other), values[chunk],
                chunk ? slot(Slot::WeightGradients) : Value());
    return;
  case Step::ReadDeltas:
    slot(Slot::Deltas) = ofEachQuery(in(ldsDelta));
    return;
  case Step::ScoreGradients: {
    Value p = slot(Slot::Weights);
    Value ds =
        scoreGradients(p, slot(Slot::WeightGradients), slot(Slot::Deltas));
    if (score.hasGradients())
      score.addGradients(scored, ds,
                         isMasked || scored.seen ? isZero(p) : Value(),
                         captureSums);
    ds = timesSlopes(ds, slot(Slot::Slopes));
    slot(Slot::ScoreGradients) = roundScoreGradients(ds, power, accK);
    return;
  }
  case Step::ReadTurned:
    separateChunks();
    slot(Slot::Turned) = readTurned(ldsQ, in);
    return;
  case Step::Accumulate:
    accK[chunk] =
        accumulate(slot(Slot::Turned), slot(Slot::ScoreGradients), accK[chunk]);
    return;
  case Step::StoreScoreGradients:
    StoreLdsOp::create(b, slot(Slot::ScoreGradients), in(ldsDs));
    return;
  case Step::ReadScoreGradients:
    slot(Slot::ScoreGradientRows) =
        factorTile(in(ldsDs), tiles.blockN, tiles.blockM);
    return;
  case Step::QueryGradients:
    slot(Slot::QueryGradients) =
        queryGradients(slot(Slot::ScoreGradientRows), queryKeys[chunk]);
    return;
  case Step::AddQueryGradients: {
    Value parts = slot(Slot::QueryGradients);
    // Its range is that of dQ only when it is scaled.
    if (sumsPairs())
      parts = round(
          fmul(parts, splat(cast<RankedTensorType>(parts.getType()), scale)));
    AtomicAddOp::create(
        b, parts,
        sumsView(head.sums, mul(opaque(slot(Slot::Number)), i32(tiles.blockN)),
                 columnsOf(chunk)));
    return;
  }
  }
  llvm_unreachable("all steps are listed");
}

/// The block that is masked as the one of a number: those of the tail come
/// first, then those of the head, then, as one that is fetched ahead, the first
/// full one.
Value KeyGradients::maskedBlock(Value number) {
  if (lists.isThere())
    return lists.blockOf(list, number);
  if (!queries.hasTail)
    return number;
  Value isTail =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number, tailBlocks);
  return select(isTail, add(number, queries.full), sub(number, tailBlocks));
}

/// The block that is not masked as the one of a number. Where buffers take
/// turns numbers follow those of maskedBlock(); elsewhere they are the blocks',
/// which takes no register for the difference.
Value KeyGradients::fullBlock(Value number) {
  if (lists.isThere())
    return lists.blockOf(list, number);
  return isCounted() ? sub(number, tailBlocks) : number;
}

/// The sums of dQ of a query head from the segment's origin on.
Rows KeyGradients::sumsOf(Value head) {
  Rows rows = sumsRows(head);
  if (!sumsPairs())
    return within(rows, queries);
  Segments pairs = queries;
  pairs.origin = div(queries.origin, i32(2));
  pairs.count = sub(rows.count, pairs.origin);
  return within(rows, pairs);
}

/// The rows of this workgroup's keys, zeros where no query sees them.
Value KeyGradients::loadOwn(const Rows &rows, int64_t columns, int64_t column) {
  return loadTile(rows, firstKey, tiles.blockM, columns,
                  firstSeen ? sub(firstSeen, firstKey) : Value(), column);
}

/// The queries that see each key: none one past the last, where that matters.
Bounds KeyGradients::seenByKeys() {
  // Or LLVM would make them ahead of the loops.
  Bounds seen =
      visibility.rowsOfEachKey(queries, opaque(firstKey), tiles.blockM);
  if (score.isProgram()) {
    RankedTensorType row = tile(1, tiles.blockM, b.getI32Type());
    Value count = splat(row, queries.count);
    seen.end = seen.end ? min(seen.end, count) : count;
  }
  if (!sumsOverKeys())
    return seen;
  RankedTensorType row = tile(1, tiles.blockM, b.getI32Type());
  Value count = splat(row, sub(seqlenK(), firstKey));
  Value isKey = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                      ColumnIndexOp::create(b, row), count);
  Value none = splat(row, 0);
  // By the end, or by a beginning behind the last query: whichever there is.
  if (seen.end || !seen.begin)
    seen.end =
        select(isKey, seen.end ? seen.end : splat(row, queries.count), none);
  else
    seen.begin = select(isKey, seen.begin, splat(row, queries.count));
  return seen;
}

void KeyGradients::build() {
  allocVisited({&ldsQ.rows, &ldsDout.rows}, {&ldsQ.turned, &ldsDout.turned},
               pipeline.buffers);
  ldsLse = ldsTile(1, tiles.blockN, b.getF32Type(), pipeline.buffers);
  ldsDelta = ldsTile(1, tiles.blockN, b.getF32Type(), pipeline.buffers);

  batch = blockId(gpu::Dimension::z);
  Value group = arg("group_size"), headsQ = arg("heads_q");
  Value headK = headOf(blockId(gpu::Dimension::x), div(headsQ, group));
  Value zero = i32(0);
  Value block = blockId(gpu::Dimension::y);
  if (sequences.differ())
    std::tie(batch, block) = blockOf({batch, block}, tiles.blockM,
                                     /*ofKeys=*/true, /*fromTheEnd=*/false);
  firstKey = mul(block, i32(tiles.blockM));
  dropout.prepare();
  enterSequence(firstKey, /*ownsKeys=*/true);
  Value seqlenK = this->seqlenK();
  factor = softmaxFactor();
  Rows k = rowsOf("k", headK), v = rowsOf("v", headK);
  // Keys that no query sees are zeros, so that nothing that they hold can meet
  // a weight of 0: those past the last one that is seen are out of bounds.
  Bounds seen = visibility.seenKeys();
  k.count = v.count = seen.end;
  firstSeen = seen.begin;
  keys = makeResidents([&](int64_t column) {
    return NegateIfOp::create(b, loadOwn(k, tiles.scoreDim, column),
                              scaleIsNegative());
  });
  values = makeResidents(
      [&](int64_t column) { return loadOwn(v, tiles.scoreDim, column); });

  if (isAtomic())
    prepareQuerySums(k);

  Value last = sub(min(add(firstKey, i32(tiles.blockM)), seqlenK), i32(1));
  // Of sums in pairs a block is one of the workspace's.
  if (lists.isThere()) // of each head its own; places are counted from query 0
    queries = {zero,
               seqlenQ(),
               zero,
               zero,
               zero,
               /*hasHead=*/false,
               /*hasTail=*/true};
  else
    queries = visibility.rowsOfKeys(firstKey, last, tiles.blockN,
                                    sumsPairs() ? tiles.blockN : 1);
  if (sumsPairs()) {
    spareBlock = sub(blocksOf(seqlenQ(), tiles.blockN),
                     div(queries.origin, i32(tiles.blockN)));
    scale = arg("scale");
  }
  if (sumsOverKeys()) {
    // A block of keys with some past the last is masked throughout: their
    // columns of dS are summed over, whatever exp2 made of them.
    isTail = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                   add(firstKey, i32(tiles.blockM)), seqlenK);
    queries.head = select(isTail, queries.end, queries.head);
    queries.full = select(isTail, queries.end, queries.full);
    queries.hasHead = true;
  }

  // Queries past the last one are zeros, which add nothing: where no key is
  // seen too early, the block that ends with them is as good as full. Unless a
  // program makes something of zeros.
  queries.hasTail |= score.isProgram();
  if (!queries.hasTail)
    queries.full = queries.end;
  tailBlocks = sub(queries.end, queries.full);
  maskedBlocks = add(tailBlocks, queries.head);
  if (query && pipeline.behind() > 0) // nothing lies there yet
    StoreLdsOp::create(
        b, splat(tile(tiles.blockN, tiles.blockM, elementType), 0.0f),
        bufferOf(ldsDs, i32(-1), pipeline.buffers));

  accV = noSumsOfChunks();
  accK = noSumsOfChunks();
  power = initialDsPower();
  auto heads = scf::ForOp::create(b, zero, group, i32(1), sumValues());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(heads.getBody());
    setSums(heads.getRegionIterArgs());
    head.number = add(mul(headK, group), heads.getInductionVar());
    head.q = within(rowsOf("q", head.number), queries);
    head.dout = within(rowsOf("dout", head.number), queries);
    head.lse = within(rowValues("lse", head.number), queries);
    head.delta = within(deltaRows(head.number), queries);
    if (query)
      head.sums = sumsOf(head.number);
    captureSums.assign(score.countSums(),
                       splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f));
    if (lists.isThere())
      findListed();
    visitQueries();
    score.addSums(captureSums, {batch, head.number, /*row=*/nullptr, firstKey,
                                /*hasKeyRows=*/false});
    captureSums.clear();
    scf::YieldOp::create(b, sumValues());
  }
  setSums(heads.getResults());
  // What is compared with the length here is not to live through the loops.
  Value count = opaque(seqlenK);
  storeGradient(accV, loweredProbabilities(), rowsOf("dv", headK, count),
                firstKey);
  storeGradient(accK, loweredScoreGradients(arg("scale"), power),
                rowsOf("dk", headK, count), firstKey);
  finish();
}

/// The blocks of queries of a head that are listed to see these keys.
void KeyGradients::findListed() {
  list = lists.queriesOf(batch, head.number, firstKey, tiles.blockN);
  queries.full = maskedBlocks =
      isTail ? select(isTail, list.end, list.first) : list.first;
  queries.end = list.end;
}

/// All blocks of queries of a head. Tail and head are one loop: a third would
/// take more registers than gfx908 has. It comes first, since the head leads to
/// the full blocks.
void KeyGradients::visitQueries() {
  isMasked = queries.hasHead || queries.hasTail;
  if (pipeline.buffers > 1) // others may still read what the prologue fills
    barrier();
  prologue();
  if (isMasked)
    loop(i32(0), maskedBlocks);
  isMasked = false;
  Value from = isCounted() ? maskedBlocks : queries.head;
  Value end = isCounted() ? add(queries.full, tailBlocks) : queries.full;
  if (lists.isThere()) { // whose numbers go on
    from = maskedBlocks;
    end = queries.end;
  }
  loop(from, end);
  drain(end);
}

//===----------------------------------------------------------------------===//
// delta
//===----------------------------------------------------------------------===//

/// delta = rowsum(out * dout) - dlse of one block of queries; where dQ is added
/// up in memory, its sums begin as zeros.
class RowSums : public GradientBuilder<QueryBlockBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build() {
    placeWorkgroup(tiles.blockM, /*fromTheEnd=*/false);
    enterSequence(firstRow, /*ownsKeys=*/false);
    auto load = [&](StringRef name) -> Value {
      Value rows =
          loadTile(rowsOf(name, headQ), firstRow, tiles.blockM, tiles.ldsDim);
      if (elementType.isF32())
        return rows;
      return arith::ExtFOp::create(b, f32Tile(tiles.blockM, tiles.ldsDim),
                                   rows);
    };
    Value products = fmul(load("out"), load("dout"));
    Value sums = ReduceOp::create(b, f32Tile(1, tiles.blockM), ReduceKind::Sum,
                                  transpose(products));
    if (op.getDlse())
      sums = fsub(sums, gradientOfLse());
    StoreOp::create(b, transpose(sums),
                    view(deltaRows(headQ), firstRow, 1, b.getF32Type()));
    if (isAtomic())
      StoreOp::create(b, noSums(),
                      sumsView(sumsRows(headQ), firstRow, allColumns()));
    if (score.storesGradients() && (visibility.isPartial() || lists.isThere()))
      storeHiddenGradients();
    finish();
  }

private:
  /// Zeros where the kernel of dK and dV may not come by: what not all of these
  /// queries see.
  void storeHiddenGradients() {
    Value last = sub(min(add(firstRow, i32(tiles.blockM)), seqlenQ()), i32(1));
    Value zero = i32(0), count = seqlenK(), begin = zero, end = count;
    if (lists.isThere()) { // and it comes by what is listed alone
      end = zero;
    } else {
      const Bounds all = visibility.keysOfAll(firstRow, last);
      if (all.begin)
        begin = min(max(all.begin, zero), count);
      if (all.end)
        end = max(min(all.end, count), begin);
    }
    constexpr int64_t columns = 64;
    for (auto [from, to] : {std::pair(zero, begin), {end, count}}) {
      auto keys = scf::ForOp::create(b, from, to, i32(columns));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(keys.getBody());
      score.storeZeros(f32Tile(tiles.blockM, columns),
                       {batch, headQ, firstRow, keys.getInductionVar(),
                        /*hasKeyRows=*/false},
                       to);
    }
  }
  /// dlse, [1, block_m]: zeros where there is none, and of rows that saw no
  /// key, whose weights of 0 must not meet whatever is there.
  Value gradientOfLse() {
    Rows rows = rowValues("dlse", headQ);
    rows.count = select(isNull(rows.base), firstRow, rows.count);
    Value given = loadValues(rows, firstRow, tiles.blockM);
    auto type = cast<RankedTensorType>(given.getType());
    Value lse =
        negated(loadValues(rowValues("lse", headQ), firstRow, tiles.blockM));
    Value none = arith::CmpFOp::create(
        b, arith::CmpFPredicate::OEQ, lse,
        splat(type, -std::numeric_limits<float>::infinity()));
    return select(none, splat(type, 0.0f), given);
  }
  Value noSums() {
    if (!sumsPairs())
      return splat(f32Tile(tiles.blockM, tiles.ldsDim), 0.0f);
    RankedTensorType pairs =
        tile(tiles.blockM / 2, tiles.ldsDim, b.getI32Type());
    return splat(pairs, 0);
  }
};

//===----------------------------------------------------------------------===//
// convert
//===----------------------------------------------------------------------===//

/// dQ of one block of queries from its sums.
class Convert : public GradientBuilder<QueryBlockBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build() {
    placeWorkgroup(tiles.blockM, /*fromTheEnd=*/false);
    enterSequence(firstRow, /*ownsKeys=*/false);
    Rows dq = rowsOf("dq", headQ);
    Value from = sumsView(sumsRows(headQ), firstRow, allColumns());
    if (sumsPairs()) {
      takeApart(from, dq);
    } else {
      Value sums = LoadOp::create(b, f32Tile(tiles.blockM, tiles.ldsDim), from);
      storeRows(scaledAndNarrow(sums, arg("scale")), dq, firstRow);
    }
    finish();
  }

private:
  /// Stores the halves of pairs to even and odd rows.
  void takeApart(Value from, const Rows &dq) {
    auto type = tile(tiles.blockM / 2, tiles.ldsDim, b.getI32Type());
    Value pairs = LoadOp::create(b, type, from), pair = div(firstRow, i32(2));
    auto store = [&](Value words, Value offset, Value count) {
      Value bits =
          arith::TruncIOp::create(b, type.clone(b.getI16Type()), words);
      Value halves = arith::BitcastOp::create(b, type.clone(elementType), bits);
      Rows rows = dq;
      rows.offset = offset;
      rows.stride = mul(dq.stride, i32(2));
      rows.count = count;
      storeRows(halves, rows, pair);
    };
    Value one = i32(1), two = i32(2);
    store(pairs, dq.offset, div(add(dq.count, one), two));
    store(arith::ShRUIOp::create(b, pairs, splat(type, 16)),
          add(dq.offset, i64(dq.stride)), div(dq.count, two));
  }
};

//===----------------------------------------------------------------------===//
// The gradient of the sinks
//===----------------------------------------------------------------------===//

/// dsink = - sum of exp(sink - lse) delta over all batches and rows of a head.
/// Lanes take rows in turn, and their sums are added in the order of lanes: the
/// same bits in every run, and errors that do not grow with the rows.
class SinkGradient : public GradientBuilder<QueryBlockBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build() {
    headQ = blockId(gpu::Dimension::x);
    lanes = int64_t(schedule.getWaves()) * target.waveSize;
    row = f32Tile(1, lanes);
    Value address = arg("dsinks");
    Value lds = ldsTile(1, lanes, b.getF32Type());
    auto wanted = scf::IfOp::create(
        b,
        arith::XOrIOp::create(
            b, isNull(address),
            arith::ConstantIntOp::create(b, 1, 1).getResult()),
        /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(wanted.thenBlock());
      StoreLdsOp::create(b, sumsOfLanes(), lds);
      barrier();
      Value sums = LoadLdsOp::create(b, row, lds);
      RankedTensorType one = f32Tile(1, 1);
      Value sum = ReduceOp::create(b, one, ReduceKind::Sum, transpose(sums));
      Value offset = mul(i64(headQ), arg("dsinks_stride_head"));
      StoreOp::create(
          b, fsub(splat(one, 0.0f), sum),
          view({address, offset, i32(1), i32(1)}, i32(0), 1, b.getF32Type()));
    }
    finish();
  }

private:
  /// A sum of so many terms, and what its roundings have added to it.
  struct Sum {
    Value sum, excess;
  };

  /// [1, lanes]
  Value sumsOfLanes() {
    sink = sinkOf(headQ);
    Value isNone =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink,
                              f32(-std::numeric_limits<float>::infinity()));
    Value batches = select(isNone, i32(0), arg("batches"));
    Value zero = i32(0), nothing = splat(row, 0.0f);
    auto all = scf::ForOp::create(b, zero, batches, i32(1),
                                  ValueRange{nothing, nothing});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(all.getBody());
    batch = all.getInductionVar();
    sequences.enter(batch);
    const Rows lse = rowValues("lse", headQ), delta = deltaRows(headQ);
    const int64_t perLane = schedule.getBlockN(), step = lanes * perLane;
    auto ofBatch = scf::ForOp::create(b, zero, blocksOf(seqlenQ(), step),
                                      i32(1), all.getRegionIterArgs());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ofBatch.getBody());
      Value before = mul(ofBatch.getInductionVar(), i32(step));
      SmallVector<std::pair<Value, Value>> loaded;
      for (int64_t i = 0; i != perLane; ++i) {
        Value first = add(before, i32(i * lanes));
        loaded.push_back({load(lse, first), load(delta, first)});
      }
      Sum sum = {ofBatch.getRegionIterArgs()[0],
                 ofBatch.getRegionIterArgs()[1]};
      for (auto [logSum, product] : loaded)
        sum = plus(sum, term(logSum, product));
      scf::YieldOp::create(b, ValueRange{sum.sum, sum.excess});
    }
    scf::YieldOp::create(b, ofBatch.getResults());
    return all.getResult(0);
  }

  /// [1, lanes]: of the rows from `first` on, zeros past the last.
  Value load(const Rows &rows, Value first) {
    const bool isDense = !sequences.differ();
    auto elements = [&](Value rowCount) {
      return isDense ? rowCount : mul(rowCount, rows.stride);
    };
    Value offset = isDense
                       ? add(rows.offset, i64(first))
                       : add(rows.offset, mul(i64(first), i64(rows.stride)));
    // Unsigned, since `first` may be past 2^31, and in scalar registers, which
    // a clamp of signed numbers would not be.
    Value behind = sub(arith::MaxUIOp::create(b, rows.count, first), first);
    Value size = elements(arith::MinUIOp::create(b, behind, i32(lanes)));
    Value index = ColumnIndexOp::create(b, row.clone(b.getI32Type()));
    if (!isDense)
      index = mul(index, splat(row.clone(b.getI32Type()), rows.stride));
    return GatherOp::create(b, row, rows.base, offset, size, index,
                            /*down=*/false);
  }

  /// exp(sink - lse) delta; 0 of a row that saw nothing, not even a sink, for
  /// which others also write the lowest number.
  Value term(Value lse, Value delta) {
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, lse,
                              splat(row, std::numeric_limits<float>::lowest()));
    Value exponent =
        fmul(fsub(splat(row, sink), lse), splat(row, 1.44269504088896340736f));
    // Past the last row it may be anything, and meets a delta of 0.
    Value weight = SaturateOp::create(b, exp2(exponent));
    return select(none, splat(row, 0.0f), fmul(weight, delta));
  }

  /// Compensated (Kahan 1965, "Further remarks on reducing truncation errors").
  Sum plus(const Sum &sum, Value term) {
    Value corrected = fsub(term, sum.excess);
    Value next = fadd(sum.sum, corrected);
    return {next, fsub(fsub(next, sum.sum), corrected)};
  }

  int64_t lanes; ///< of the workgroup
  RankedTensorType row;
  Value sink; ///< f32
};

struct TileBackward
    : public fovea::attn::impl::AttnTileBackwardBase<TileBackward> {
  void runOnOperation() override {
    if (failed(tileFunctions<BackwardOp>(getOperation(), tileFunction)))
      signalPassFailure();
  }

private:
  template <typename Builder>
  static void build(BackwardOp op, gpu::GPUFuncOp kernel,
                    const target::TargetInfo &target,
                    const KernelArguments &arguments, ScheduleAttr schedule) {
    Builder(op, kernel, target, arguments, schedule).build();
  }
  using Build = decltype(&build<RowSums>);
  /// What writes each of an algorithm's kernels, in the order of their launch.
  static ArrayRef<Build> buildersOf(BackwardAlgorithm algorithm) {
    static constexpr Build deterministic[] = {
        build<RowSums>, build<KeyGradients>, build<QueryGradient>};
    static constexpr Build atomic[] = {build<RowSums>, build<KeyGradients>,
                                       build<Convert>};
    switch (algorithm) {
    case BackwardAlgorithm::Deterministic:
      return deterministic;
    case BackwardAlgorithm::Atomic:
    case BackwardAlgorithm::Atomic16:
      return atomic;
    }
    llvm_unreachable("all algorithms are listed");
  }

  static LogicalResult tileFunction(func::FuncOp func, BackwardOp op,
                                    const target::TargetInfo &target) {
    BackwardScheduleAttr schedule = *op.getSchedule();
    if (failed(checkBackwardSchedule([&] { return op.emitOpError(); }, target,
                                     op.getElementType(), op.getHeadDim(),
                                     schedule)) ||
        failed(checkScoreGradients(op, target, schedule.getAlgorithm())))
      return failure();
    if (!op.getGradients().empty() &&
        yieldOf(op.getScore()).getDerivatives().empty())
      return op.emitOpError("has gradients of captures and no derivatives in "
                            "its score program; run attn-differentiate-scores "
                            "first");
    FailureOr<KernelArguments> arguments = argumentsOf(op);
    if (failed(arguments))
      return failure();
    gpu::GPUModuleOp module = makeKernelModule(func);
    BackwardAlgorithm algorithm = schedule.getAlgorithm();
    for (auto [build, launch, part] :
         llvm::zip_equal(buildersOf(algorithm), specOf(algorithm).launches,
                         schedule.getKernels())) {
      std::string name = (module.getName() + "_" + launch.suffix).str();
      build(op, makeKernel(module, name, *arguments, part), target, *arguments,
            part);
    }
    if (op.getDsinks()) {
      ScheduleAttr part = sinkSumSchedule(schedule);
      SinkGradient(op,
                   makeKernel(module, (module.getName() + "_dsinks").str(),
                              *arguments, part),
                   target, *arguments, part)
          .build();
    }
    return success();
  }
};
} // namespace
