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
// Of each batch: [heads_q, seqlen_q, splits, head_dim_v] sums, then of each
// term [heads_q, seqlen_q, splits].

/// i64: rows and shares before a row of this batch.
Value ShareBuilder::cells(Value rows) { return mul(rows, i64(arg("splits"))); }

/// i64 elements before this batch.
Value ShareBuilder::batchOffset() {
  Value rows = mul(i64(arg("heads_q")), i64(arg("seqlen_q")));
  int64_t columns =
      spec::specOf(OpKind::Forward).findAlgorithm("split")->workspace.columns;
  return mul(mul(i64(batch), cells(rows)), i64Constant(headDimV + columns));
}

/// i64 elements before a term of this head.
Value ShareBuilder::termOffset(ShareTerm term) {
  Value seqlen = i64(arg("seqlen_q"));
  Value all = cells(mul(i64(arg("heads_q")), seqlen));
  Value before = mul(all, i64Constant(headDimV + int64_t(term)));
  return add(add(batchOffset(), before), cells(mul(i64(headQ), seqlen)));
}

Rows ShareBuilder::sumsOfShare(Value share) {
  Value rows = mul(i64(headQ), i64(arg("seqlen_q")));
  Value before = mul(add(cells(rows), i64(share)), i64Constant(headDimV));
  return {arg("workspace"), add(batchOffset(), before),
          mul(arg("splits"), i32(headDimV)), rowsOfHeads()};
}

Rows ShareBuilder::termsOfShare(ShareTerm term, Value share) {
  return {arg("workspace"), add(termOffset(term), i64(share)), arg("splits"),
          rowsOfHeads()};
}

Rows ShareBuilder::sumsOfRow(Value row) {
  Value rows = add(mul(i64(headQ), i64(arg("seqlen_q"))), i64(row));
  Value before = mul(cells(rows), i64Constant(headDimV));
  return {arg("workspace"), add(batchOffset(), before), i32(headDimV),
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
/// its reference is below the largest so far, added up in the order of the
/// shares. All that an iteration reads is on its way at once, since of most
/// launches there is one and little else.
class Combine : public ShareBuilder {
public:
  Combine(ForwardOp op, gpu::GPUFuncOp kernel, const target::TargetInfo &target,
          const KernelArguments &arguments, ScheduleAttr schedule)
      : ShareBuilder(op, kernel, target, arguments),
        most(schedule.getBlockN()), few(std::max<int64_t>(most / kFewest, 1)),
        columns(llvm::alignTo(headDimV, 32)),
        raised(raisesProbabilities()
                   ? kLargestExponent - op.getSchedule()->getRescaleThreshold()
                   : 0),
        hasSinks(op.getSinks() != nullptr) {}

  void build();

private:
  /// What sums are relative to: a maximum and what it came to as a reference,
  /// +infinity where exponents are relative to the maximum itself.
  struct Relative {
    Value max, reference;
  };

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
  Value isLarge(Value reference) {
    auto type = cast<RankedTensorType>(reference.getType());
    return arith::CmpFOp::create(
        b, arith::CmpFPredicate::OEQ, reference,
        splat(type, std::numeric_limits<float>::infinity()));
  }
  Value weights(Relative of, Relative all);
  /// What shares from `first` on add to carried values, in their order.
  SmallVector<Value> addShares(Value first, ValueRange carried);
  void storeLse(Value total, const std::optional<Sink> &sink);

  static constexpr int64_t kFewest = 4;
  int64_t most;       ///< shares of an iteration
  int64_t few;        ///< that are done at once
  int64_t shares = 0; ///< of what is being emitted
  int64_t columns; ///< head_dim_v, padded
  int raised;      ///< as in the kernel that takes the shares
  bool hasSinks;
  Value factor;
  Relative all; ///< [1, 1] of all shares
  Value ldsOfFew, ldsOfMost;
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

/// By what sums that are relative to `of` are multiplied to be so to `all`,
/// [1, 1], which is not below.
Value Combine::weights(Relative of, Relative all) {
  auto row = cast<RankedTensorType>(of.max.getType());
  const int64_t count = row.getDimSize(1);
  auto spreadAll = [&](Value one) {
    return count == 1 ? one : spread(one, count);
  };
  // A reference that was rounded cancels against itself, one that was not
  // against the maximum.
  Value large = fmul(fsub(of.max, spreadAll(all.max)), splat(row, factor));
  Value usual = fsub(of.reference, spreadAll(all.reference));
  return exp2(select(spreadAll(isLarge(all.reference)), large, usual));
}

SmallVector<Value> Combine::addShares(Value first, ValueRange carried) {
  Value values = LoadOp::create(
      b, f32Tile(shares, columns),
      view(sumsOfRow(firstRow), first, headDimV, b.getF32Type()));
  Relative own = {loadBounded(ShareTerm::Max, first),
                  loadBounded(ShareTerm::Reference, first)};
  Value sum = load(ShareTerm::Sum, first),
        total = load(ShareTerm::Total, first);
  Relative before = {carried[0], carried[1]};
  Relative now = {fmax(before.max, reduce(ReduceKind::Max, own.max)),
                  fmax(before.reference,
                       reduce(ReduceKind::Max, own.reference))};
  Value weight = weights(own, now), old = weights(before, now);
  // Hands weights from the lanes that make them, one a share, to those that hold
  // the shares' sums.
  Value ldsWeights = shares == few ? ldsOfFew : ldsOfMost;
  barrier();
  StoreLdsOp::create(b, weight, ldsWeights);
  barrier();
  Value handed = LoadLdsOp::create(b, f32Tile(1, shares), ldsWeights);
  Value turned = transpose(broadcast(handed, f32Tile(columns, shares)));
  Value products = arith::MulFOp::create(b, values, turned,
                                         arith::FastMathFlags::contract);
  Value weighted = ReduceOp::create(b, f32Tile(1, columns), ReduceKind::Sum,
                                    products);
  auto added = [&](Value to, Value of) {
    return fadd(fmul(to, old), reduce(ReduceKind::Sum, fmul(weight, of)));
  };
  return {now.max, now.reference,
          fadd(fmul(carried[2], spread(old, columns)), weighted),
          added(carried[3], sum), added(carried[4], total)};
}

void Combine::storeLse(Value total, const std::optional<Sink> &sink) {
  RankedTensorType one = f32Tile(1, 1);
  Value log2 = math::Log2Op::create(b, total); // -inf: no key was seen
  Value ln2 = splat(one, 0.693147180559945309417f);
  Value usual = fmul(fadd(all.reference, log2), ln2);
  Value scale = softmaxScale();
  Value large =
      math::FmaOp::create(b, all.max, splat(one, scale),
                          fmul(fadd(log2, splat(one, float(-raised))), ln2));
  Value natural = select(isLarge(all.reference), large, usual);
  if (sink)
    natural = lseWithSink(natural, log2, *sink);
  StoreOp::create(b, natural,
                  view(rowValues("lse", headQ), firstRow, 1, b.getF32Type()));
}

void Combine::build() {
  placeWorkgroup(/*blockM=*/1, /*fromTheEnd=*/false, /*schedule=*/nullptr,
                 /*sharesKeys=*/true);
  enterSequence(firstRow, /*ownsKeys=*/false);
  factor = softmaxFactor();
  RankedTensorType one = f32Tile(1, 1);
  ldsOfFew = ldsTile(1, few, b.getF32Type());
  ldsOfMost = ldsTile(1, most, b.getF32Type());

  Value none = splat(one, std::numeric_limits<float>::lowest());
  Value zero = splat(one, 0.0f);
  SmallVector<Value> inits = {none, none, splat(f32Tile(1, columns), 0.0f),
                              zero, zero};
  Value areFew = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                       arg("splits"), i32(int32_t(few)));
  auto sums = scf::IfOp::create(b, ValueRange(inits).getTypes(), areFew,
                                /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(sums.thenBlock());
    shares = few;
    scf::YieldOp::create(b, addShares(i32(0), inits));
    b.setInsertionPointToStart(sums.elseBlock());
    shares = most;
    auto loop = scf::ForOp::create(b, i32(0), arg("splits"),
                                   i32(int32_t(most)), inits);
    scf::YieldOp::create(b, loop.getResults());
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        b, addShares(loop.getInductionVar(), loop.getRegionIterArgs()));
  }
  all = {sums.getResult(0), sums.getResult(1)};
  Value sum = sums.getResult(3), factorOfSums = splat(one, 1.0f);
  std::optional<Sink> sink;
  if (hasSinks) {
    sink = sinkBeside(sum, all.max, all.reference, isLarge(all.reference),
                      f32(float(-raised)));
    sum = withSink(sum, *sink);
    factorOfSums = sink->factor;
  }
  if (dropout.isThere())
    factorOfSums = fmul(factorOfSums, splat(one, dropout.scale));
  Value positive =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value inverse =
      select(positive, arith::DivFOp::create(b, factorOfSums, sum), zero);
  Value result = fmul(sums.getResult(2), spread(inverse, columns));
  StoreOp::create(b, narrow(result),
                  view(rowsOf("out", headQ), firstRow));

  Value lse = arg("lse");
  auto store = scf::IfOp::create(b, isGiven(b, lse), /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(store.thenBlock());
    Value total = sums.getResult(4);
    storeLse(sink ? withSink(total, *sink) : total, sink);
  }
  finish();
}

void fovea::attn::buildCombine(ForwardOp op, gpu::GPUFuncOp kernel,
                               const target::TargetInfo &target,
                               const KernelArguments &arguments) {
  Combine(op, kernel, target, arguments, *op.getCombine()).build();
}
