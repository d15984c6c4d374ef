//===- GradientRows.cpp - kernels that go through rows once ---------------===//
//
// What comes before the products of a backward pass and behind them: delta, dQ
// from its sums in memory, and the gradient of the sinks.
//
//===----------------------------------------------------------------------===//

#include "GradientBuilder.h"
#include "GradientKernels.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

//===----------------------------------------------------------------------===//
// delta
//===----------------------------------------------------------------------===//

/// delta = rowsum(out * dout) - dlse of one block of queries, as
/// whetherSeen() says; where dQ is added up in memory, its sums begin as zeros.
class RowSums : public GradientBuilder<QueryBlockBuilder> {
public:
  using GradientBuilder::GradientBuilder;
  void build() {
    placeWorkgroup(tiles.blockM, /*fromTheEnd=*/false);
    enterSequence(firstRow, /*ownsKeys=*/false);
    auto load = [&](StringRef name) -> Value {
      Value rows =
          loadTile(rowsOf(name, headQ), firstRow, tiles.blockM, tilesV.ldsDim);
      if (elementType.isF32())
        return rows;
      return arith::ExtFOp::create(b, f32Tile(tiles.blockM, tilesV.ldsDim),
                                   rows);
    };
    Value products = fmul(load("out"), load("dout"));
    Value sums = ReduceOp::create(b, f32Tile(1, tiles.blockM), ReduceKind::Sum,
                                  transpose(products));
    if (op.getDlse())
      sums = fsub(sums, gradientOfLse());
    StoreOp::create(b, transpose(whetherSeen(sums)),
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
  /// dlse, [1, block_m]: zeros where there is none.
  Value gradientOfLse() {
    Rows rows = rowValues("dlse", headQ);
    rows.count = select(isNull(rows.base), firstRow, rows.count);
    return loadValues(rows, firstRow, tiles.blockM);
  }
  /// Deltas, [1, block_m]: those that are zero as -0, and +0 where a row saw no
  /// key, whose weights of 0 are not to meet whatever is there. So the kernel
  /// of dK and dV, for which loads past the last row are +0, needs one
  /// comparison to know whose weights are 0 for certain.
  Value whetherSeen(Value deltas) {
    auto type = cast<RankedTensorType>(deltas.getType());
    Value lse =
        negated(loadValues(rowValues("lse", headQ), firstRow, tiles.blockM));
    Value none = arith::CmpFOp::create(
        b, arith::CmpFPredicate::OEQ, lse,
        splat(type, -std::numeric_limits<float>::infinity()));
    return select(none, splat(type, 0.0f),
                  select(isPositiveZero(deltas), splat(type, -0.0f), deltas));
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

} // namespace

void fovea::attn::buildRowSums(BackwardOp op, gpu::GPUFuncOp kernel,
                               const target::TargetInfo &target,
                               const KernelArguments &arguments,
                               ScheduleAttr schedule) {
  RowSums(op, kernel, target, arguments, schedule).build();
}

void fovea::attn::buildConvert(BackwardOp op, gpu::GPUFuncOp kernel,
                               const target::TargetInfo &target,
                               const KernelArguments &arguments,
                               ScheduleAttr schedule) {
  Convert(op, kernel, target, arguments, schedule).build();
}

void fovea::attn::buildSinkGradient(BackwardOp op, gpu::GPUFuncOp kernel,
                                    const target::TargetInfo &target,
                                    const KernelArguments &arguments,
                                    ScheduleAttr schedule) {
  SinkGradient(op, kernel, target, arguments, schedule).build();
}
