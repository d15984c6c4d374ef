//===- TileBackward.cpp - attn-tile-backward ------------------------------===//
//
// Writes the tile programs of the backward kernels (docs/Backward.md). In each
// the scores are oriented so that their rows are what the products after them
// sum over: keys in the kernel of dQ, queries in that of dK and dV. P and dS
// are then the right operands of those products as they stand.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
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

/// The values of one row of scores that gradients need, as [1, rows].
struct RowTerms {
  Value negatedLse; ///< -lse * log2(e); -inf where no key is seen
  Value delta;
};

/// What both gradient kernels do with scores.
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

  /// A right operand that lasts through the loop: [score_dim, block_m], the
  /// rows of `rows` as columns. In LDS if the schedule says so.
  struct Resident {
    Value tile, lds;
  };
  Resident makeResident(Value rows) {
    if (!schedule.getQueriesInLds())
      return {this->transpose(rows), nullptr};
    Value lds = this->ldsTile(tiles.blockM, tiles.scoreDim, this->elementType);
    StoreLdsOp::create(b, rows, lds);
    return {nullptr, lds};
  }
  Value get(const Resident &resident) {
    if (!resident.lds)
      return resident.tile;
    return this->transpose(
        factorTile(resident.lds, tiles.blockM, tiles.scoreDim));
  }

  /// [block_n, block_m]: the tile in `lds` times a resident operand.
  Value product(Value lds, const Resident &right) {
    Value rows = factorTile(lds, tiles.blockN, tiles.scoreDim);
    RankedTensorType type = this->f32Tile(tiles.blockN, tiles.blockM);
    return DotOp::create(b, rows, get(right), this->splat(type, 0.0f),
                         schedule.getInst(), /*split_rows=*/false);
  }

  /// Where residents are read from LDS again and again, LLVM would read those
  /// of all products at once: what is below reads LDS after what is above.
  void separateLdsReads() {
    if (!schedule.getQueriesInLds())
      return;
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  }

  /// acc + the tile in `lds`, [value_dim, block_n], times P or dS.
  Value accumulate(Value lds, Value right, Value acc) {
    Value left = factorTile(lds, tiles.valueDim, tiles.blockN);
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

  //===--- subnormal operands ---------------------------------------------===//
  // Where matrix instructions take them for zeros, P and dS are multiplied by a
  // power of two first, and the sums of products divided by it in the end.

  /// P is at most 1, so that its power is a constant.
  Value roundProbabilities(Value p) {
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
  /// What undoes this in sums over P; null: nothing.
  Value loweredProbabilities() {
    return this->raisesProbabilities()
               ? this->f32(powerOfTwo(-Base::kLargestExponent))
               : Value();
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
  Value roundScoreGradients(Value ds, Value &power, Value &acc) {
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
    auto change =
        scf::IfOp::create(b, TypeRange{power.getType(), acc.getType()}, any,
                          /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(change.thenBlock());
      Value smaller = powerFor(largest, power);
      Value alpha = arith::DivFOp::create(b, smaller, power);
      auto sums = cast<RankedTensorType>(acc.getType());
      scf::YieldOp::create(
          b,
          ValueRange{smaller, this->fmul(acc, this->broadcast(alpha, sums))});
      b.setInsertionPointToStart(change.elseBlock());
      scf::YieldOp::create(b, ValueRange{power, acc});
    }
    power = change.getResult(0);
    acc = change.getResult(1);
    return this->round(this->fmul(ds, this->broadcast(power, full)));
  }
  /// `factor` over the power, if there is one, for sums over dS.
  Value loweredScoreGradients(Value factor, Value power) {
    if (!power)
      return factor;
    auto row = cast<RankedTensorType>(power.getType());
    return arith::DivFOp::create(b, this->splat(row, factor), power);
  }

  bool isAtomic() {
    return op.getSchedule()->getAlgorithm() == BackwardAlgorithm::Atomic;
  }

  /// The rows of a query head in the workspace, which has the batch's at
  /// `offset` elements, dense, with `columns` f32 each.
  Rows workspaceRows(Value offset, int64_t columns, Value head) {
    Value seqlen = this->arg("seqlen_q");
    Value before = this->mul(this->i64(head), this->i64(seqlen));
    return {this->arg("workspace"),
            this->add(offset, this->mul(before, i64Constant(columns))),
            this->i32(columns), seqlen};
  }
  /// i64 rows of a batch in the workspace; the algorithm's table describes it.
  Value workspaceRowsOfBatch() {
    Value rows = this->mul(this->i64(this->arg("heads_q")),
                           this->i64(this->arg("seqlen_q")));
    int64_t rowStep =
        specOf(op.getSchedule()->getAlgorithm()).workspace.rowStep;
    if (rowStep == 1)
      return rows;
    Value step = i64Constant(rowStep), last = i64Constant(rowStep - 1);
    return this->mul(this->div(this->add(rows, last), step), step);
  }
  /// Rows of one f32: delta.
  Rows deltaRows(Value head) {
    Value before = this->i64(this->batch);
    if (isAtomic()) // behind the batch's sums
      before = this->add(this->mul(before, i64Constant(this->headDim + 1)),
                         i64Constant(this->headDim));
    return workspaceRows(this->mul(before, workspaceRowsOfBatch()), 1, head);
  }
  /// Rows of f32: sums of dQ.
  Rows sumsRows(Value head) {
    Value before =
        this->mul(this->i64(this->batch), i64Constant(this->headDim + 1));
    return workspaceRows(this->mul(before, workspaceRowsOfBatch()),
                         this->headDim, head);
  }
  Value sumsView(const Rows &sums, Value first) {
    return this->view(sums, first, this->headDim, b.getF32Type());
  }

  /// The terms of rows [first, first + count) of a query head, as loaded.
  RowTerms loadTerms(const Rows &lse, const Rows &delta, Value first,
                     int64_t count) {
    auto load = [&](const Rows &rows) {
      Value view = this->view(rows, first, 1, b.getF32Type());
      return this->transpose(LoadOp::create(b, this->f32Tile(count, 1), view));
    };
    return {negate(load(lse)), load(delta)};
  }

  /// Stores an accumulator [value_dim, block_m] times `scale` (if any; a scalar
  /// or one for each column) as rows.
  void storeGradient(Value acc, Value scale, const Rows &rows, Value first) {
    storeRows(this->transpose(scaledAndNarrow(acc, scale)), rows, first);
  }
  Value scaledAndNarrow(Value sums, Value scale) {
    auto type = cast<RankedTensorType>(sums.getType());
    if (scale)
      sums = this->fmul(sums, isa<RankedTensorType>(scale.getType())
                                  ? this->broadcast(scale, type)
                                  : this->splat(type, scale));
    return arith::TruncFOp::create(b, type.clone(this->elementType), sums);
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
    auto constant = [&](int64_t value) {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(bits, b.getI32IntegerAttr(value)));
    };
    // The exponent is taken as it lies in the number. What is smaller than this
    // bound has a power beyond any that is in use.
    Value largest =
        this->fmax(ReduceOp::create(b, row, ReduceKind::Max, partial),
                   this->splat(row, powerOfTwo(-100)));
    Value exponent = arith::AndIOp::create(
        b, arith::BitcastOp::create(b, bits, largest), constant(0x7f800000));
    constexpr int bias = 127;
    Value wanted = arith::BitcastOp::create(
        b, row, this->sub(constant(int64_t(2 * bias + 13) << 23), exponent));
    return arith::MinNumFOp::create(b, wanted, power);
  }

  /// -lse * log2(e). A row that saw no key, for which others also write the
  /// lowest number, gets -inf, and so P = 0.
  Value negate(Value lse) {
    auto type = cast<RankedTensorType>(lse.getType());
    float infinity = std::numeric_limits<float>::infinity();
    Value negated =
        this->fmul(lse, this->splat(type, -1.44269504088896340736f));
    Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, negated,
                                       this->splat(type, infinity));
    return this->select(none, this->splat(type, -infinity), negated);
  }
};

//===----------------------------------------------------------------------===//
// dQ
//===----------------------------------------------------------------------===//

/// One block of queries; S^T = K Q^T, dP^T = V dO^T, dQ^T += K^T dS^T.
class QueryGradient : public GradientBuilder<QueryBlockBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build();

private:
  struct Carried {
    Value acc;
    Value power;        ///< of two, that is in acc; null: none
    Value nextK, nextV; ///< in flight; null with one stage
    SmallVector<Value *> fields() {
      SmallVector<Value *> result;
      for (Value *field : {&acc, &power, &nextK, &nextV})
        if (*field)
          result.push_back(field);
      return result;
    }
    SmallVector<Value> pack() {
      return llvm::map_to_vector(fields(), [](Value *field) { return *field; });
    }
    void unpack(ValueRange values) {
      for (auto [field, value] : llvm::zip_equal(fields(), values))
        *field = value;
    }
  };
  Value loadK(Value block) {
    return loadKeys(/*values=*/false, block, tiles.ldsDim);
  }
  Value loadV(Value block) {
    return loadKeys(/*values=*/true, block, tiles.ldsDim);
  }
  Carried keyLoop(Value from, Value to, Mask mask, Carried state);

  Resident queries, douts;
  RowTerms terms;
  Value ldsK, ldsV, ldsKt;
};

QueryGradient::Carried QueryGradient::keyLoop(Value from, Value to, Mask mask,
                                              Carried state) {
  auto loop = scf::ForOp::create(b, from, to, i32(1), state.pack());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value block = loop.getInductionVar();
  Carried now = state;
  now.unpack(loop.getRegionIterArgs());
  bool prefetch = bool(now.nextK);
  barrier();
  Value keys = prefetch ? now.nextK : loadK(block);
  Value values = prefetch ? now.nextV : loadV(block);
  StoreLdsOp::create(b, transpose(keys), ldsKt);
  StoreLdsOp::create(b, keys, ldsK);
  StoreLdsOp::create(b, values, ldsV);
  barrier();
  if (prefetch) {
    Value next = add(block, i32(1));
    now.nextK = loadK(next);
    now.nextV = loadV(next);
  }
  Value s = mask(product(ldsK, queries), block, /*row=*/0);
  auto full = cast<RankedTensorType>(s.getType());
  Value p = probabilities(s, broadcast(terms.negatedLse, full));
  separateLdsReads();
  Value dp = product(ldsV, douts);
  Value ds = fmul(p, fsub(dp, broadcast(terms.delta, full)));
  Value rounded = roundScoreGradients(ds, now.power, now.acc);
  now.acc = accumulate(ldsKt, rounded, now.acc);
  scf::YieldOp::create(b, now.pack());
  state.unpack(loop.getResults());
  return state;
}

void QueryGradient::build() {
  ldsK = ldsTile(tiles.blockN, tiles.ldsDim, elementType);
  ldsV = ldsTile(tiles.blockN, tiles.ldsDim, elementType);
  ldsKt = ldsTile(tiles.ldsDim, tiles.blockN, elementType);
  placeWorkgroup(tiles.blockM, /*fromTheEnd=*/isUneven());
  Rows q = rowsOf("q", headQ, "seqlen_q"),
       dout = rowsOf("dout", headQ, "seqlen_q"),
       dq = rowsOf("dq", headQ, "seqlen_q");
  visitKeys(tiles.blockM, tiles.blockN, /*ahead=*/schedule.getStages() - 1);
  factor = softmaxFactor();
  queries = makeResident(
      NegateIfOp::create(b, loadTile(q, firstRow, tiles.blockM, tiles.scoreDim),
                         scaleIsNegative()));
  douts = makeResident(loadTile(dout, firstRow, tiles.blockM, tiles.scoreDim));
  terms = loadTerms(rowValues("lse", headQ), deltaRows(headQ), firstRow,
                    tiles.blockM);

  Value zero = i32(0);
  Carried state;
  state.acc = splat(f32Tile(tiles.valueDim, tiles.blockM), 0.0f);
  state.power = initialDsPower();
  if (schedule.getStages() == 2) {
    state.nextK = loadK(zero);
    state.nextV = loadV(zero);
  }
  walkKeys([&](Value from, Value to, bool, Mask mask) {
    state = keyLoop(from, to, mask, state);
  });
  storeGradient(state.acc, loweredScoreGradients(arg("scale"), state.power), dq,
                firstRow);
  gpu::ReturnOp::create(b);
}

//===----------------------------------------------------------------------===//
// dK and dV
//===----------------------------------------------------------------------===//

/// One block of keys; S = Q K^T, dP = dO V^T, dV^T += dO^T P, dK^T += Q^T dS,
/// over the queries of all heads of the group. With the algorithm that adds dQ
/// up in memory also dQ += dS K: there dS sums over keys, which are spread over
/// lanes and waves, so it goes through LDS to be a left operand.
class KeyGradients : public GradientBuilder<TileBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build();

private:
  /// Queries in flight, of one block.
  struct Block {
    Value q, dout;
    RowTerms terms;
    SmallVector<Value> pack() const {
      return {q, dout, terms.negatedLse, terms.delta};
    }
    static Block unpack(ValueRange values) {
      return {values[0], values[1], {values[2], values[3]}};
    }
  };
  struct Head {
    Value number;
    Rows q, dout, lse, delta;
    Rows sums; ///< of dQ, where they are taken
  };
  Block load(const Head &head, Value block);
  void prepareQuerySums(const Rows &k);
  void addQuerySums(const Head &head, Value block);
  SmallVector<Value> queryLoop(const Head &head, Value from, Value to,
                               bool masked, SmallVector<Value> state);
  Value maskedBlock(Value number);
  Bounds seenByKeys();
  Value loadOwn(const Rows &rows, int64_t columns);

  size_t sums; ///< values that loops carry, without a block in flight
  Value firstKey;
  Value firstSeen;  ///< key that any query sees; null: the first of all
  Segments queries; ///< that see these keys
  Value tailBlocks, maskedBlocks; ///< the latter with the head
  Resident keys, values;
  Value ldsQ, ldsDout, ldsQt, ldsDoutT, ldsLse, ldsDelta;
  // Of the sums of dQ; nothing where they are not taken.
  std::optional<QueryProduct> query;
  Resident queryKeys; ///< [block_m, columns]
  Value ldsDs;
};

/// The keys once more, as the right operand of a sum over keys.
void KeyGradients::prepareQuerySums(const Rows &k) {
  query = queryProduct(target, elementType, headDim, schedule);
  ldsDs = ldsTile(tiles.blockN, tiles.blockM, elementType);
  if (!schedule.getQueriesInLds()) {
    queryKeys.tile = loadOwn(k, query->columns);
    return;
  }
  queryKeys.lds = ldsTile(tiles.ldsDim, tiles.blockM, elementType);
  StoreLdsOp::create(b, transpose(loadOwn(k, tiles.ldsDim)), queryKeys.lds);
}

/// Adds dS of a block, which is in LDS, times the keys to the sums of dQ.
void KeyGradients::addQuerySums(const Head &head, Value block) {
  Value ds = factorTile(ldsDs, tiles.blockN, tiles.blockM);
  Value right =
      queryKeys.lds
          ? transpose(factorTile(queryKeys.lds, query->columns, tiles.blockM))
          : queryKeys.tile;
  Value zero = splat(f32Tile(tiles.blockN, query->columns), 0.0f);
  auto inst = InstAttr::get(b.getContext(), query->inst->name);
  Value sums = DotOp::create(b, ds, right, zero, inst, /*split_rows=*/false,
                             b.getI32IntegerAttr(query->columnWaves));
  AtomicAddOp::create(
      b, sums, sumsView(head.sums, mul(opaque(block), i32(tiles.blockN))));
}

KeyGradients::Block KeyGradients::load(const Head &head, Value block) {
  // LLVM would carry the address of each tensor through both loops.
  Value first = mul(opaque(block), i32(tiles.blockN));
  return {loadTile(head.q, first, tiles.blockN, tiles.ldsDim),
          loadTile(head.dout, first, tiles.blockN, tiles.ldsDim),
          loadTerms(head.lse, head.delta, first, tiles.blockN)};
}

/// Blocks [from, to), by the numbers of maskedBlock() where they are masked.
/// `state`: dV^T, dK^T, the power of two in the latter (if
/// any) and, with two stages, the next block.
SmallVector<Value> KeyGradients::queryLoop(const Head &head, Value from,
                                           Value to, bool masked,
                                           SmallVector<Value> state) {
  auto loop = scf::ForOp::create(b, from, to, i32(1), state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto blockOf = [&](Value number) {
    return masked ? maskedBlock(number) : number;
  };
  Value block = blockOf(loop.getInductionVar());
  ValueRange carried = loop.getRegionIterArgs();
  Value accV = carried[0], accK = carried[1];
  Value power = sums > 2 ? carried[2] : Value();
  bool prefetch = schedule.getStages() == 2;
  barrier();
  Block now =
      prefetch ? Block::unpack(carried.drop_front(sums)) : load(head, block);
  StoreLdsOp::create(b, transpose(now.q), ldsQt);
  StoreLdsOp::create(b, now.q, ldsQ);
  StoreLdsOp::create(b, transpose(now.dout), ldsDoutT);
  StoreLdsOp::create(b, now.dout, ldsDout);
  StoreLdsOp::create(b, now.terms.negatedLse, ldsLse);
  StoreLdsOp::create(b, now.terms.delta, ldsDelta);
  barrier();
  SmallVector<Value> next;
  if (prefetch)
    next = load(head, blockOf(add(loop.getInductionVar(), i32(1)))).pack();

  RankedTensorType turned = f32Tile(tiles.blockM, tiles.blockN),
                   row = f32Tile(1, tiles.blockN);
  auto byRow = [&](Value lds) {
    return transpose(broadcast(LoadLdsOp::create(b, row, lds), turned));
  };
  Value s = product(ldsQ, keys);
  if (masked) {
    // Comparisons ahead of the scores would hold a pair of SGPRs each.
    if (target.waveSize == 64)
      amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
    // Here, so that bounds take no registers while they are not needed.
    s = visibility.apply(s, seenByKeys(), mul(block, i32(tiles.blockN)));
  }
  Value p = probabilities(s, byRow(ldsLse));
  accV = accumulate(ldsDoutT, roundProbabilities(p), accV);
  separateLdsReads();
  Value dp = product(ldsDout, values);
  Value ds = fmul(p, fsub(dp, byRow(ldsDelta)));
  Value dsRounded = roundScoreGradients(ds, power, accK);
  if (query)
    StoreLdsOp::create(b, dsRounded, ldsDs);
  accK = accumulate(ldsQt, dsRounded, accK);
  if (query) {
    barrier();
    addQuerySums(head, block);
  }
  SmallVector<Value> yielded = {accV, accK};
  if (power)
    yielded.push_back(power);
  yielded.append(next);
  scf::YieldOp::create(b, yielded);
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// The block that is masked as the one of a number: those of the tail come
/// first, then those of the head, then, as one that is fetched ahead, the first
/// full one.
Value KeyGradients::maskedBlock(Value number) {
  if (!queries.hasTail)
    return number;
  Value isTail =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number, tailBlocks);
  return select(isTail, add(number, queries.full), sub(number, tailBlocks));
}

/// The rows of this workgroup's keys, zeros where no query sees them.
Value KeyGradients::loadOwn(const Rows &rows, int64_t columns) {
  return loadTile(rows, firstKey, tiles.blockM, columns,
                  firstSeen ? sub(firstSeen, firstKey) : Value());
}

/// The queries that see each key: none one past the last, where that matters.
Bounds KeyGradients::seenByKeys() {
  // Or LLVM would make them ahead of the loops.
  Bounds seen =
      visibility.rowsOfEachKey(queries, opaque(firstKey), tiles.blockM);
  if (!query)
    return seen;
  RankedTensorType row = tile(1, tiles.blockM, b.getI32Type());
  Value count = splat(row, sub(arg("seqlen_k"), firstKey));
  Value isKey = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                      ColumnIndexOp::create(b, row), count);
  auto none = arith::ConstantOp::create(
      b, DenseElementsAttr::get(row, b.getI32IntegerAttr(0)));
  // By the end, or by a beginning behind the last query: whichever there is.
  if (seen.end || !seen.begin)
    seen.end =
        select(isKey, seen.end ? seen.end : splat(row, queries.count), none);
  else
    seen.begin = select(isKey, seen.begin, splat(row, queries.count));
  return seen;
}

void KeyGradients::build() {
  ldsQ = ldsTile(tiles.blockN, tiles.ldsDim, elementType);
  ldsDout = ldsTile(tiles.blockN, tiles.ldsDim, elementType);
  ldsQt = ldsTile(tiles.ldsDim, tiles.blockN, elementType);
  ldsDoutT = ldsTile(tiles.ldsDim, tiles.blockN, elementType);
  ldsLse = ldsTile(1, tiles.blockN, b.getF32Type());
  ldsDelta = ldsTile(1, tiles.blockN, b.getF32Type());

  batch = blockId(gpu::Dimension::z);
  Value group = arg("group_size"), headsQ = arg("heads_q");
  Value headK = headOf(blockId(gpu::Dimension::x), div(headsQ, group));
  Value zero = i32(0);
  firstKey = mul(blockId(gpu::Dimension::y), i32(tiles.blockM));
  Value seqlenK = arg("seqlen_k");
  factor = softmaxFactor();
  Rows k = rowsOf("k", headK, "seqlen_k"), v = rowsOf("v", headK, "seqlen_k");
  // Keys that no query sees are zeros, so that nothing that they hold can meet
  // a weight of 0: those past the last one that is seen are out of bounds.
  Bounds seen = visibility.seenKeys();
  k.count = v.count = seen.end;
  firstSeen = seen.begin;
  keys = makeResident(
      NegateIfOp::create(b, loadOwn(k, tiles.scoreDim), scaleIsNegative()));
  values = makeResident(loadOwn(v, tiles.scoreDim));

  if (isAtomic())
    prepareQuerySums(k);

  Value last = sub(min(add(firstKey, i32(tiles.blockM)), seqlenK), i32(1));
  queries = visibility.rowsOfKeys(firstKey, last, tiles.blockN);
  if (query) {
    // A block of keys with some past the last is masked throughout: their
    // columns of dS are summed over, whatever exp2 made of them.
    Value isTail =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                              add(firstKey, i32(tiles.blockM)), seqlenK);
    queries.head = select(isTail, queries.end, queries.head);
    queries.full = select(isTail, queries.end, queries.full);
    queries.hasHead = true;
  }

  // Queries past the last one are zeros, which add nothing: where no key is
  // seen too early, the block that ends with them is as good as full.
  if (!queries.hasTail)
    queries.full = queries.end;
  tailBlocks = sub(queries.end, queries.full);
  maskedBlocks = add(tailBlocks, queries.head);

  RankedTensorType acc = f32Tile(tiles.valueDim, tiles.blockM);
  SmallVector<Value> state = {splat(acc, 0.0f), splat(acc, 0.0f)};
  if (Value power = initialDsPower())
    state.push_back(power);
  sums = state.size();
  auto heads = scf::ForOp::create(b, zero, group, i32(1), state);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(heads.getBody());
    Head head;
    head.number = add(mul(headK, group), heads.getInductionVar());
    head.q = within(rowsOf("q", head.number, "seqlen_q"), queries);
    head.dout = within(rowsOf("dout", head.number, "seqlen_q"), queries);
    head.lse = within(rowValues("lse", head.number), queries);
    head.delta = within(deltaRows(head.number), queries);
    if (query)
      head.sums = within(sumsRows(head.number), queries);
    SmallVector<Value> now =
        llvm::to_vector_of<Value>(heads.getRegionIterArgs());
    // Tail and head are one loop: a third would take more registers than
    // gfx908 has. It comes first, since the head leads to the full blocks.
    bool isPartial = queries.hasHead || queries.hasTail;
    Value first = isPartial ? maskedBlock(zero) : zero;
    if (schedule.getStages() == 2)
      now.append(load(head, first).pack());
    if (isPartial)
      now = queryLoop(head, zero, maskedBlocks, /*masked=*/true, now);
    now = queryLoop(head, queries.head, queries.full, /*masked=*/false, now);
    scf::YieldOp::create(b, ArrayRef<Value>(now).take_front(sums));
  }
  // What is compared with the length here is not to live through the loops.
  Value count = opaque(seqlenK);
  storeGradient(heads.getResult(0), loweredProbabilities(),
                rowsOf("dv", headK, count), firstKey);
  storeGradient(heads.getResult(1),
                loweredScoreGradients(arg("scale"),
                                      sums > 2 ? heads.getResult(2) : Value()),
                rowsOf("dk", headK, count), firstKey);
  gpu::ReturnOp::create(b);
}

//===----------------------------------------------------------------------===//
// delta
//===----------------------------------------------------------------------===//

/// delta = rowsum(out * dout) of one block of queries; where dQ is added up in
/// memory, its sums begin as zeros.
class RowSums : public GradientBuilder<QueryBlockBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build() {
    placeWorkgroup(tiles.blockM, /*fromTheEnd=*/false);
    auto load = [&](StringRef name) -> Value {
      Value rows = loadTile(rowsOf(name, headQ, "seqlen_q"), firstRow,
                            tiles.blockM, tiles.ldsDim);
      return arith::ExtFOp::create(b, f32Tile(tiles.blockM, tiles.ldsDim),
                                   rows);
    };
    Value products = fmul(load("out"), load("dout"));
    Value sums = ReduceOp::create(b, f32Tile(1, tiles.blockM), ReduceKind::Sum,
                                  transpose(products));
    StoreOp::create(b, transpose(sums),
                    view(deltaRows(headQ), firstRow, 1, b.getF32Type()));
    if (isAtomic())
      StoreOp::create(b, splat(f32Tile(tiles.blockM, tiles.ldsDim), 0.0f),
                      sumsView(sumsRows(headQ), firstRow));
    gpu::ReturnOp::create(b);
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
    Value sums = LoadOp::create(b, f32Tile(tiles.blockM, tiles.ldsDim),
                                sumsView(sumsRows(headQ), firstRow));
    storeRows(scaledAndNarrow(sums, arg("scale")),
              rowsOf("dq", headQ, "seqlen_q"), firstRow);
    gpu::ReturnOp::create(b);
  }
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
      return atomic;
    }
    llvm_unreachable("all algorithms are listed");
  }

  static LogicalResult tileFunction(func::FuncOp func, BackwardOp op,
                                    const target::TargetInfo &target) {
    BackwardScheduleAttr schedule = *op.getSchedule();
    if (failed(checkBackwardSchedule([&] { return op.emitOpError(); }, target,
                                     op.getElementType(), op.getHeadDim(),
                                     schedule)))
      return failure();
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
    return success();
  }
};
} // namespace
