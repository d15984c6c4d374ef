//===- ForwardShares.cpp - keys that workgroups share out -----------------===//

#include "ForwardShares.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include <limits>
#include <map>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Of few rows the launches are short, and what it takes to round and to widen
/// sums is more than there is to read and write less. Of many that is a part of
/// their time.
ShareBuilder::ShareBuilder(ForwardOp op, gpu::GPUFuncOp kernel,
                           const target::TargetInfo &target,
                           const KernelArguments &arguments)
    : QueryBlockBuilder(op, kernel, target, arguments),
      sumsType(hasFewRows(*op.getSchedule()) ? b.getF32Type() : elementType) {}

//===----------------------------------------------------------------------===//
// The workspace
//===----------------------------------------------------------------------===//
// Of each batch, in words of 32 bits: [heads_q, seqlen_q, splits, head_dim_v]
// sums, which those of 16 bits take the first half of, then [heads_q, seqlen_q,
// splits, kShareTerms], a place of 16 bytes each, so that a lane has all terms
// of a share by one access. Rows of all batches are less
// than 2^32, since no device has memory for as many: 32 bits hold their number,
// and products of 64 bits, which take several scalar instructions each ahead of
// the first load, are few.

/// i64: shares of so many rows (i32).
Value ShareBuilder::cells(Value rows) {
  return mul(i64(rows), i64(arg("splits")));
}

/// i64 words before this batch.
Value ShareBuilder::batchOffset() {
  Value rows = mul(batch, mul(arg("heads_q"), arg("seqlen_q")));
  assert(
      spec::specOf(OpKind::Forward).findAlgorithm("split")->workspace.columns ==
          kShareTerms &&
      "the workspace has room for the terms");
  return mul(cells(rows), i64Constant(headDimV + kShareTerms));
}

/// i32 rows of this batch before this head's.
Value ShareBuilder::rowsBefore() { return mul(headQ, arg("seqlen_q")); }

/// i64 words before the terms of this batch.
Value ShareBuilder::termsOffset() {
  Value all = cells(mul(arg("heads_q"), arg("seqlen_q")));
  return add(batchOffset(), mul(all, i64Constant(headDimV)));
}

/// i64 sums before this batch.
Value ShareBuilder::sumsOffset() {
  Value words = batchOffset();
  return sumsAreRounded() ? add(words, words) : words;
}

Rows ShareBuilder::sumsOfShare(Value share) {
  Value before =
      mul(add(cells(rowsBefore()), i64(share)), i64Constant(headDimV));
  return {arg("workspace"), add(sumsOffset(), before),
          mul(arg("splits"), i32(headDimV)), rowsOfHeads()};
}

Rows ShareBuilder::termsOfShare(Value share) {
  Value before =
      mul(add(cells(rowsBefore()), i64(share)), i64Constant(kShareTerms));
  return {arg("workspace"), add(termsOffset(), before),
          mul(arg("splits"), i32(kShareTerms)), rowsOfHeads()};
}

Rows ShareBuilder::sumsOfRow(Value row) {
  Value before = mul(cells(add(rowsBefore(), row)), i64Constant(headDimV));
  return {arg("workspace"), add(sumsOffset(), before), i32(headDimV),
          arg("splits")};
}

Rows ShareBuilder::termsOfRow(Value row) {
  Value before = mul(cells(add(rowsBefore(), row)), i64Constant(kShareTerms));
  return {arg("workspace"), add(termsOffset(), before), i32(kShareTerms),
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
/// its reference is below the largest, added up; of many shares so far, in
/// runs. All that an iteration reads is on its way at once, since of most
/// launches there is one and little else.
class Combine : public ShareBuilder {
public:
  Combine(ForwardOp op, gpu::GPUFuncOp kernel, const target::TargetInfo &target,
          const KernelArguments &arguments, ScheduleAttr schedule)
      : ShareBuilder(op, kernel, target, arguments), most(schedule.getBlockN()),
        columns(llvm::alignTo(headDimV, 32)), waves(schedule.getWaves()),
        lanes(waves * target.waveSize),
        raised(raisesProbabilities()
                   ? kLargestExponent - op.getSchedule()->getRescaleThreshold()
                   : 0),
        hasSinks(op.getSinks() != nullptr), hasTotals(elementType.isF16()) {}

  void build();

private:
  /// What sums are relative to: a maximum and what it came to as a reference,
  /// +infinity where exponents are relative to the maximum itself.
  struct Relative {
    Value max, reference;
  };

  /// [1, shares]: a term.
  Value load(ShareTerm term, Value terms) {
    return transpose(LoadOp::create(b, f32Tile(shares, 1), terms,
                                    /*from=*/nullptr, uint32_t(term)));
  }
  /// The same of what has a maximum: the lowest number past the last share.
  /// \param first  of `terms`
  Value loadBounded(ShareTerm term, Value terms, Value first);
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
  /// What shares from `first` on add to carried values, in their order; none
  /// are carried to the first.
  SmallVector<Value> addShares(Value first, ValueRange carried);
  /// Addresses of the row in the output and of its log-sum-exp.
  SmallVector<Value> addressesOfRow();
  /// Kernels of few rows are given four waves, and many shares.
  bool hasManyShares() const { return waves > 2; }
  int64_t partOf(int64_t parts) const {
    return std::max<int64_t>(most / parts, 1);
  }
  /// All shares, in the first of these ways that has room for them.
  /// \param parts  of an iteration, at once; the last is kInRuns
  SmallVector<Value> addAll(ValueRange inits, ArrayRef<int64_t> parts);
  void storeLse(Value total, const std::optional<Sink> &sink, const Rows &lse);

  /// Of so many parts of `most` shares the first are done at once, without what
  /// a loop carries, where there are no more: what is read of shares that are
  /// not there takes time, and so do their sums.
  /// Of less than 16 bytes a lane, sums would lie in other lanes than those of
  /// all shares: rows have a unit of lanes for a power of two of columns.
  SmallVector<int64_t> parts() const {
    const int64_t unit = columns & -columns;
    SmallVector<int64_t> parts;
    for (int64_t count = hasManyShares() ? 16 : 8; count > 0; count /= 2)
      if (partOf(count) * unit >= lanes * kElementsOfLane)
        parts.push_back(count);
    return parts;
  }
  static constexpr int64_t kElementsOfLane = 4;
  static constexpr int64_t kInRuns = 0; ///< as many iterations as it takes
  /// What is carried before these: what they are relative to.
  static constexpr size_t kSums = 2;
  static constexpr size_t kAddresses = 2; ///< addressesOfRow(), behind all sums
  int64_t most;                           ///< shares of an iteration
  int64_t shares = 0;                     ///< of what is being emitted
  int64_t columns;                        ///< head_dim_v, padded
  int64_t waves;                          ///< of the workgroup
  int64_t lanes;                          ///< likewise
  int raised; ///< as in the kernel that takes the shares
  bool hasSinks;
  bool hasTotals; ///< other than the sums of weights
  Value factor;
  Relative all;                 ///< [1, 1] of all shares
  std::map<int64_t, Value> lds; ///< weights of so many shares
};
} // namespace

Value Combine::loadBounded(ShareTerm term, Value terms, Value first) {
  auto row = RankedTensorType::get({1, shares}, b.getI32Type());
  Value count = splat(row, sub(arg("splits"), first));
  Value isShare = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                        ColumnIndexOp::create(b, row), count);
  return select(
      isShare, load(term, terms),
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

SmallVector<Value> Combine::addressesOfRow() {
  Rows result = rowsOf("out", headQ), lse = rowValues("lse", headQ);
  settle(result, firstRow, elementType);
  settle(lse, firstRow);
  return {result.base, lse.base};
}

SmallVector<Value> Combine::addShares(Value first, ValueRange carried) {
  // What is worked out of the terms takes its time while the sums come, and
  // loads end in their order.
  Value terms = view(termsOfRow(firstRow), first, kShareTerms, b.getF32Type());
  Relative own = {loadBounded(ShareTerm::Max, terms, first),
                  loadBounded(ShareTerm::Reference, terms, first)};
  SmallVector<Value> summed = {load(ShareTerm::Sum, terms)};
  if (hasTotals)
    summed.push_back(load(ShareTerm::Total, terms));
  Value values =
      LoadOp::create(b, tile(shares, columns, sumsType),
                     view(sumsOfRow(firstRow), first, headDimV, sumsType));
  SmallVector<Value> addresses;
  if (carried.empty()) // while they come
    addresses = addressesOfRow();
  Relative now = {reduce(ReduceKind::Max, own.max),
                  reduce(ReduceKind::Max, own.reference)};
  Value old;
  if (!carried.empty()) {
    Relative before = {carried[0], carried[1]};
    now = {fmax(before.max, now.max), fmax(before.reference, now.reference)};
    old = weights(before, now);
  }
  Value weight = weights(own, now);
  // Hands weights from the lanes that make them, one a share, to those that
  // hold the shares' sums.
  Value ldsWeights = lds[shares];
  if (!carried.empty()) // others may read those of the shares before
    barrier();
  StoreLdsOp::create(
      b, sumsAreRounded() ? fmul(weight, summed.front()) : weight, ldsWeights);
  barrier();
  // Sums are widened behind it, or the terms ahead of it would wait for them.
  if (sumsAreRounded())
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  Value handed = LoadLdsOp::create(b, f32Tile(1, shares), ldsWeights);
  Value turned = transpose(broadcast(handed, f32Tile(columns, shares)));
  if (sumsAreRounded())
    values = arith::ExtFOp::create(b, f32Tile(shares, columns), values);
  Value products =
      arith::MulFOp::create(b, values, turned, arith::FastMathFlags::contract);
  SmallVector<Value> result = {
      now.max, now.reference,
      ReduceOp::create(b, f32Tile(1, columns), ReduceKind::Sum, products)};
  for (Value of : summed)
    result.push_back(reduce(ReduceKind::Sum, fmul(weight, of)));
  if (old)
    for (size_t i = kSums; i != result.size(); ++i) {
      Value factor = i == kSums ? spread(old, columns) : old;
      result[i] = fadd(fmul(carried[i], factor), result[i]);
    }
  llvm::append_range(result, addresses);
  return result;
}

SmallVector<Value> Combine::addAll(ValueRange inits, ArrayRef<int64_t> parts) {
  // The way out of a chain passes the code of all that are ahead in it, which
  // no wave has run: halves where shares are many.
  if (parts.size() > 1) {
    const size_t half = hasManyShares() ? parts.size() / 2 : 1;
    const int64_t most = partOf(parts[half - 1]);
    Value areFew = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                         arg("splits"), i32(int32_t(most)));
    SmallVector<Type> types = llvm::to_vector(inits.getTypes());
    types.append(kAddresses, arg("out").getType());
    auto either = scf::IfOp::create(b, types, areFew,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(either.thenBlock());
    scf::YieldOp::create(b, addAll(inits, parts.take_front(half)));
    b.setInsertionPointToStart(either.elseBlock());
    scf::YieldOp::create(b, addAll(inits, parts.drop_front(half)));
    return llvm::to_vector_of<Value>(either.getResults());
  }
  if (parts.front() != kInRuns) {
    shares = partOf(parts.front());
    return addShares(i32(0), /*carried=*/{});
  }
  SmallVector<Value> addresses = addressesOfRow();
  auto loop =
      scf::ForOp::create(b, i32(0), arg("splits"), i32(int32_t(most)), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  shares = most;
  scf::YieldOp::create(
      b, addShares(loop.getInductionVar(), loop.getRegionIterArgs()));
  SmallVector<Value> results = llvm::to_vector_of<Value>(loop.getResults());
  llvm::append_range(results, addresses);
  return results;
}

void Combine::storeLse(Value total, const std::optional<Sink> &sink,
                       const Rows &lse) {
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
  StoreOp::create(b, natural, view(lse, i32(0), 1, b.getF32Type()));
}

void Combine::build() {
  placeWorkgroup(/*blockM=*/1, /*fromTheEnd=*/false, /*schedule=*/nullptr,
                 /*sharesKeys=*/true);
  enterSequence(firstRow, /*ownsKeys=*/false);
  factor = softmaxFactor();
  RankedTensorType one = f32Tile(1, 1);
  Value none = splat(one, std::numeric_limits<float>::lowest());
  Value zero = splat(one, 0.0f);
  SmallVector<Value> inits = {none, none, splat(f32Tile(1, columns), 0.0f),
                              zero};
  if (hasTotals)
    inits.push_back(zero);
  SmallVector<int64_t> parts = this->parts();
  for (int64_t part : parts)
    lds[partOf(part)] = ldsTile(1, partOf(part), b.getF32Type());
  lds[most] = ldsTile(1, most, b.getF32Type());
  parts.push_back(kInRuns);
  SmallVector<Value> sums = addAll(inits, parts);
  all = {sums[0], sums[1]};
  Value sum = sums[3], factorOfSums = splat(one, 1.0f);
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
  Value result = fmul(sums[2], spread(inverse, columns));
  const auto addresses = ArrayRef(sums).take_back(kAddresses);
  auto row = [&](Rows rows, Value address) {
    settleAt(rows, firstRow, address);
    return rows;
  };
  StoreOp::create(b, narrow(result),
                  view(row(rowsOf("out", headQ), addresses[0]), i32(0)));

  Value lse = arg("lse");
  auto store = scf::IfOp::create(b, isGiven(b, lse), /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(store.thenBlock());
    Value total = hasTotals ? sums[4] : sums[3];
    storeLse(sink ? withSink(total, *sink) : total, sink,
             row(rowValues("lse", headQ), addresses[1]));
  }
  finish();
}

void fovea::attn::buildCombine(ForwardOp op, gpu::GPUFuncOp kernel,
                               const target::TargetInfo &target,
                               const KernelArguments &arguments) {
  Combine(op, kernel, target, arguments, *op.getCombine()).build();
}
