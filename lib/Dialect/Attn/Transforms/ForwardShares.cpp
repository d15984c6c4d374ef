//===- ForwardShares.cpp - keys that workgroups share out -----------------===//

#include "ForwardShares.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// The workspace
//===----------------------------------------------------------------------===//
// Of each batch: [heads_q, seqlen_q, splits, head_dim] sums, then of each term
// [heads_q, seqlen_q, splits].

/// i64: rows and shares before a row of this batch.
Value ShareBuilder::cells(Value rows) { return mul(rows, i64(arg("splits"))); }

/// i64 elements before this batch.
Value ShareBuilder::batchOffset() {
  Value rows = mul(i64(arg("heads_q")), i64(arg("seqlen_q")));
  int64_t columns =
      spec::specOf(OpKind::Forward).findAlgorithm("split")->workspace.columns;
  return mul(mul(i64(batch), cells(rows)), i64Constant(headDim + columns));
}

/// i64 elements before a term of this head.
Value ShareBuilder::termOffset(ShareTerm term) {
  Value seqlen = i64(arg("seqlen_q"));
  Value all = cells(mul(i64(arg("heads_q")), seqlen));
  Value before = mul(all, i64Constant(headDim + int64_t(term)));
  return add(add(batchOffset(), before), cells(mul(i64(headQ), seqlen)));
}

Rows ShareBuilder::sumsOfShare(Value share) {
  Value rows = mul(i64(headQ), i64(arg("seqlen_q")));
  Value before = mul(add(cells(rows), i64(share)), i64Constant(headDim));
  return {arg("workspace"), add(batchOffset(), before),
          mul(arg("splits"), i32(headDim)), seqlenQ()};
}

Rows ShareBuilder::termsOfShare(ShareTerm term, Value share) {
  return {arg("workspace"), add(termOffset(term), i64(share)), arg("splits"),
          seqlenQ()};
}

Rows ShareBuilder::sumsOfRow(Value row) {
  Value rows = add(mul(i64(headQ), i64(arg("seqlen_q"))), i64(row));
  Value before = mul(cells(rows), i64Constant(headDim));
  return {arg("workspace"), add(batchOffset(), before), i32(headDim),
          arg("splits")};
}

Rows ShareBuilder::termsOfRow(ShareTerm term, Value row) {
  return {arg("workspace"), add(termOffset(term), cells(i64(row))), i32(1),
          arg("splits")};
}

//===----------------------------------------------------------------------===//
// Sinks
//===----------------------------------------------------------------------===//
// Only what ends a row knows of them, so that loops over keys are as without.

ShareBuilder::Sink ShareBuilder::sinkBeside(Value sum, Value max,
                                            Value reference, Value isLarge,
                                            Value zeroReference) {
  auto row = cast<RankedTensorType>(max.getType());
  Sink sink;
  sink.logit = sinkOf(headQ);
  Value logits = splat(row, sink.logit);
  Value log2e = splat(row, 1.44269504088896340736f), zero = splat(row, 0.0f);
  auto negated = [&](Value value) -> Value {
    return arith::NegFOp::create(b, value);
  };
  Value usual = math::FmaOp::create(b, logits, log2e, negated(reference));
  Value above =
      math::FmaOp::create(b, negated(max), splat(row, softmaxScale()), logits);
  Value large =
      math::FmaOp::create(b, above, log2e, negated(splat(row, zeroReference)));
  // Where no key is seen, the sink is all there is.
  Value isAlone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
  Value exponent =
      select(isAlone, splat(row, std::numeric_limits<float>::infinity()),
             select(isLarge, large, usual));
  sink.isAbove =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, exponent, zero);
  sink.factor = exp2(select(sink.isAbove, negated(exponent), zero));
  sink.weight = exp2(select(sink.isAbove, zero, exponent));
  return sink;
}

Value ShareBuilder::lseWithSink(Value natural, Value log2, const Sink &sink) {
  auto row = cast<RankedTensorType>(log2.getType());
  Value above = math::FmaOp::create(
      b, log2, splat(row, 0.693147180559945309417f), splat(row, sink.logit));
  return select(sink.isAbove, above, natural);
}

//===----------------------------------------------------------------------===//
// Combining
//===----------------------------------------------------------------------===//

namespace {
/// One row of a head: its shares' sums, each times the power of two by which
/// its reference is below the largest, added up in the order of the shares.
class Combine : public ShareBuilder {
public:
  Combine(ForwardOp op, gpu::GPUFuncOp kernel, const target::TargetInfo &target,
          const KernelArguments &arguments, ScheduleAttr schedule)
      : ShareBuilder(op, kernel, target, arguments),
        shares(schedule.getBlockN()), columns(llvm::alignTo(headDim, 32)),
        raised(raisesProbabilities()
                   ? kLargestExponent - op.getSchedule()->getRescaleThreshold()
                   : 0),
        hasSinks(op.getSinks() != nullptr) {}

  void build();

private:
  /// [1, shares]: a term of shares from `first` on.
  Value load(ShareTerm term, Value first) {
    Value terms = view(termsOfRow(term, firstRow), first, 1, b.getF32Type());
    return transpose(LoadOp::create(b, f32Tile(shares, 1), terms));
  }
  /// The same of what has a maximum: the lowest number past the last share.
  Value loadBounded(ShareTerm term, Value first);
  /// [1, 1]: of [1, shares].
  Value reduce(ReduceKind kind, Value row) {
    return ReduceOp::create(b, f32Tile(1, 1), kind, transpose(row));
  }
  /// [1, count]: of [1, 1].
  Value spread(Value one, int64_t count) {
    auto type = cast<RankedTensorType>(one.getType());
    return transpose(broadcast(one, type.clone({count, 1})));
  }
  /// Emits a loop over the shares: `body(first, carried)` gives what is
  /// carried on.
  SmallVector<Value>
  forShares(ArrayRef<Value> inits,
            llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  Value weights(Value first);
  void storeLse(Value total, const std::optional<Sink> &sink);

  int64_t shares;  ///< of an iteration
  int64_t columns; ///< head_dim, padded
  int raised;      ///< as in the kernel that takes the shares
  bool hasSinks;
  Value factor;
  Value rowMax, reference, isLarge; ///< [1, 1] of all shares
  /// Hands weights from the lanes that make them, one a share, to those that
  /// hold the shares' sums.
  Value ldsWeights;
};
} // namespace

Value Combine::loadBounded(ShareTerm term, Value first) {
  auto row = RankedTensorType::get({1, shares}, b.getI32Type());
  Value count = splat(row, sub(arg("splits"), first));
  Value isShare = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                        ColumnIndexOp::create(b, row), count);
  return select(
      isShare, load(term, first),
      splat(f32Tile(1, shares), std::numeric_limits<float>::lowest()));
}

SmallVector<Value> Combine::forShares(
    ArrayRef<Value> inits,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, i32(0), arg("splits"), i32(shares), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b,
                       body(loop.getInductionVar(), loop.getRegionIterArgs()));
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// [1, shares]: by what sums of shares from `first` on are multiplied.
Value Combine::weights(Value first) {
  Value max = loadBounded(ShareTerm::Max, first);
  Value own = loadBounded(ShareTerm::Reference, first);
  RankedTensorType row = f32Tile(1, shares);
  // A reference that was rounded cancels against itself, one that was not
  // against the maximum.
  Value large = fmul(fsub(max, spread(rowMax, shares)), splat(row, factor));
  Value usual = fsub(own, spread(reference, shares));
  return exp2(select(spread(isLarge, shares), large, usual));
}

void Combine::storeLse(Value total, const std::optional<Sink> &sink) {
  RankedTensorType one = f32Tile(1, 1);
  Value log2 = math::Log2Op::create(b, total); // -inf: no key was seen
  Value ln2 = splat(one, 0.693147180559945309417f);
  Value usual = fmul(fadd(reference, log2), ln2);
  Value scale = softmaxScale();
  Value large =
      math::FmaOp::create(b, rowMax, splat(one, scale),
                          fmul(fadd(log2, splat(one, float(-raised))), ln2));
  Value natural = select(isLarge, large, usual);
  if (sink)
    natural = lseWithSink(natural, log2, *sink);
  StoreOp::create(b, natural,
                  view(rowValues("lse", headQ), firstRow, 1, b.getF32Type()));
}

void Combine::build() {
  placeWorkgroup(/*blockM=*/1, /*fromTheEnd=*/false, /*acrossBatches=*/false,
                 /*sharesKeys=*/true);
  enterSequence(firstRow, /*ownsKeys=*/false);
  factor = softmaxFactor();
  RankedTensorType one = f32Tile(1, 1), row = f32Tile(1, columns),
                   all = f32Tile(shares, columns);

  Value none = splat(f32Tile(1, shares), std::numeric_limits<float>::lowest());
  SmallVector<Value> largest =
      forShares({none, none}, [&](Value first, ValueRange carried) {
        auto larger = [&](ShareTerm term, Value than) {
          return fmax(than, loadBounded(term, first));
        };
        return SmallVector<Value>{larger(ShareTerm::Max, carried[0]),
                                  larger(ShareTerm::Reference, carried[1])};
      });
  rowMax = reduce(ReduceKind::Max, largest[0]);
  reference = reduce(ReduceKind::Max, largest[1]);

  isLarge =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, reference,
                            splat(one, std::numeric_limits<float>::infinity()));

  ldsWeights = ldsTile(1, shares, b.getF32Type());
  Value zero = splat(one, 0.0f), nothing = splat(f32Tile(1, shares), 0.0f);
  SmallVector<Value> sums =
      forShares({splat(row, 0.0f), nothing, nothing}, [&](Value first,
                                                          ValueRange carried) {
        Value values = LoadOp::create(
            b, all, view(sumsOfRow(firstRow), first, headDim, b.getF32Type()));
        Value weight = weights(first);
        barrier();
        StoreLdsOp::create(b, weight, ldsWeights);
        barrier();
        Value handed = LoadLdsOp::create(b, f32Tile(1, shares), ldsWeights);
        Value turned = transpose(broadcast(handed, f32Tile(columns, shares)));

        Value weighted =
            ReduceOp::create(b, row, ReduceKind::Sum, fmul(values, turned));
        auto add = [&](ShareTerm term, Value to) {
          return fadd(to, fmul(weight, load(term, first)));
        };
        return SmallVector<Value>{fadd(carried[0], weighted),
                                  add(ShareTerm::Sum, carried[1]),
                                  add(ShareTerm::Total, carried[2])};
      });
  Value sum = reduce(ReduceKind::Sum, sums[1]), factorOfSums = splat(one, 1.0f);
  std::optional<Sink> sink;
  if (hasSinks) {
    sink = sinkBeside(sum, rowMax, reference, isLarge, f32(float(-raised)));
    sum = withSink(sum, *sink);
    factorOfSums = sink->factor;
  }
  if (dropout.isThere())
    factorOfSums = fmul(factorOfSums, splat(one, dropout.scale));
  Value positive =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value inverse =
      select(positive, arith::DivFOp::create(b, factorOfSums, sum), zero);
  Value result = fmul(sums[0], spread(inverse, columns));
  StoreOp::create(b, narrow(result),
                  view(rowsOf("out", headQ), firstRow, headDim));

  Value lse = arg("lse");
  auto store = scf::IfOp::create(b, isGiven(b, lse), /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(store.thenBlock());
    Value total = reduce(ReduceKind::Sum, sums[2]);
    storeLse(sink ? withSink(total, *sink) : total, sink);
  }
  finish();
}

void fovea::attn::buildCombine(ForwardOp op, gpu::GPUFuncOp kernel,
                               const target::TargetInfo &target,
                               const KernelArguments &arguments) {
  Combine(op, kernel, target, arguments, *op.getCombine()).build();
}
