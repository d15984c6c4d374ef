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
/// Rows of a head: their shares' sums, each times the power of two by which its
/// reference is below the largest, added up. Of few shares lanes have a row and
/// some of its columns in all of them, and nothing is exchanged; of many, which
/// are of few rows, a workgroup has one row and lanes some of its shares, so
/// far in runs. All that an iteration reads is on its way at once, since of
/// most launches there is one and little else.
class Combine : public ShareBuilder {
public:
  Combine(ForwardOp op, gpu::GPUFuncOp kernel, const target::TargetInfo &target,
          const KernelArguments &arguments, ScheduleAttr schedule)
      : ShareBuilder(op, kernel, target, arguments), most(schedule.getBlockN()),
        blockM(schedule.getBlockM()), columns(llvm::alignTo(headDimV, 32)),
        waves(schedule.getWaves()), lanes(waves * target.waveSize),
        fewShares(op.getAlgorithm().launches[1].sharesOfBlock),
        raised(raisesSums()
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

  /// [1, count]: a term of shares, or of rows.
  /// \param column  of the terms' first
  Value load(ShareTerm term, Value terms, int64_t count, int64_t column = 0) {
    return transpose(LoadOp::create(b, f32Tile(count, 1), terms,
                                    uint32_t(column + int64_t(term))));
  }
  Value load(ShareTerm term, Value terms) { return load(term, terms, shares); }
  /// The same of what has a maximum: the lowest number past the last share.
  /// \param first  of `terms`
  Value loadBounded(ShareTerm term, Value terms, Value first);
  /// [1, 1]: of [1, shares].
  Value reduce(ReduceKind kind, Value row) {
    return ReduceOp::create(b, f32Tile(1, 1), kind, transpose(row));
  }
  /// [rows, count]: of [1, rows].
  Value spread(Value row, int64_t count) {
    auto type = cast<RankedTensorType>(row.getType());
    return transpose(broadcast(row, type.clone({count, type.getDimSize(1)})));
  }
  Value isLarge(Value reference) {
    auto type = cast<RankedTensorType>(reference.getType());
    return arith::CmpFOp::create(
        b, arith::CmpFPredicate::OEQ, reference,
        splat(type, std::numeric_limits<float>::infinity()));
  }
  Value weights(Relative of, Relative all);
  Value areAtMost(int64_t shares) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, arg("splits"),
                                 i32(int32_t(shares)));
  }
  /// Whether there is a share of this number.
  Value isThere(int64_t share) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, arg("splits"),
                                 i32(int32_t(share)));
  }
  void addRows(int64_t least, int64_t count);
  /// What shares from `first` on add to carried values, in their order; none
  /// are carried to the first.
  SmallVector<Value> addShares(Value first, ValueRange carried);
  /// Addresses of the row in the output and of its log-sum-exp.
  SmallVector<Value> addressesOfRow();
  /// Kernels of four waves take many shares at once.
  bool hasManyShares() const { return waves > 2; }
  int64_t partOf(int64_t parts) const {
    return std::max<int64_t>(most / parts, 1);
  }
  /// All shares, in the first of these ways that has room for them.
  /// \param parts  of an iteration, at once; the last is kInRuns
  SmallVector<Value> addAll(ValueRange inits, ArrayRef<int64_t> parts);
  void combineRows(int64_t least, int64_t most);
  void combineRow();
  void storeRows(ValueRange sums, ValueRange addresses);
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
      if (partOf(count) * unit >= lanes * kElementsOfLane &&
          (blockM == 1 || partOf(count) > fewShares))
        parts.push_back(count);
    return parts;
  }
  static constexpr int64_t kElementsOfLane = 4;
  static constexpr int64_t kStepOfRows = 4; ///< shares from way to way
  static constexpr int64_t kInRuns = 0; ///< as many iterations as it takes
  /// What is carried before these: what they are relative to.
  static constexpr size_t kSums = 2;
  static constexpr size_t kAddresses = 2; ///< addressesOfRow(), behind all sums
  int64_t most;                           ///< shares of an iteration
  int64_t shares = 0;                     ///< of what is being emitted
  int64_t blockM;                         ///< rows where shares are few
  int64_t columns;                        ///< head_dim_v, padded
  int64_t waves;                          ///< of the workgroup
  int64_t lanes;                          ///< likewise
  int64_t fewShares;                      ///< most of them
  int raised; ///< as in the kernel that takes the shares
  bool hasSinks;
  bool hasTotals; ///< other than the sums of weights
  Value factor;
  Relative all;                 ///< [1, rows] of all shares
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
/// [1, 1] or of the same rows, which is not below.
Value Combine::weights(Relative of, Relative all) {
  auto row = cast<RankedTensorType>(of.max.getType());
  auto spreadAll = [&](Value one) {
    return cast<RankedTensorType>(one.getType()).getShape() == row.getShape()
               ? one
               : spread(one, row.getDimSize(1));
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
    SmallVector<Type> types = llvm::to_vector(inits.getTypes());
    types.append(kAddresses, arg("out").getType());
    auto either = scf::IfOp::create(b, types, areAtMost(most),
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
  auto row = cast<RankedTensorType>(total.getType());
  Value log2 = math::Log2Op::create(b, total); // -inf: no key was seen
  Value ln2 = splat(row, 0.693147180559945309417f);
  Value usual = fmul(fadd(all.reference, log2), ln2);
  Value scale = softmaxScale();
  Value large =
      math::FmaOp::create(b, all.max, splat(row, scale),
                          fmul(fadd(log2, splat(row, float(-raised))), ln2));
  Value natural = select(isLarge(all.reference), large, usual);
  if (sink)
    natural = lseWithSink(natural, log2, *sink);
  StoreOp::create(b, transpose(natural), view(lse, i32(0), 1, b.getF32Type()));
}

/// All rows of the block, of more shares than `least` and at most `count`.
void Combine::addRows(int64_t least, int64_t count) {
  // Shares of a row follow one another as columns. Behind the last are those of
  // the next row, which are loaded and dropped: looking at each column of them
  // takes longer.
  auto viewOf = [&](Rows rows, int64_t width, Type type) {
    settle(rows, firstRow, type);
    rows.columns = mul(arg("splits"), i32(int32_t(width)));
    rows.isLoose = true;
    rows.width = count * width;
    return view(rows, i32(0), rows.width, type);
  };
  auto ifThere = [&](int64_t share, Value loaded, Value none) {
    return share <= least ? loaded : select(isThere(share), loaded, none);
  };
  Value terms = viewOf(termsOfShare(i32(0)), kShareTerms, b.getF32Type());
  Value ofSums = viewOf(sumsOfShare(i32(0)), headDimV, sumsType);
  SmallVector<Relative> own;
  SmallVector<SmallVector<Value>> summed;
  Value lowest =
      splat(f32Tile(1, blockM), std::numeric_limits<float>::lowest());
  Value zero = splat(f32Tile(1, blockM), 0.0f);
  for (int64_t share = 0; share != count; ++share) {
    auto term = [&](ShareTerm of, Value none) {
      return ifThere(share, load(of, terms, blockM, share * kShareTerms), none);
    };
    own.push_back(
        {term(ShareTerm::Max, lowest), term(ShareTerm::Reference, lowest)});
    SmallVector<Value> &sums = summed.emplace_back();
    sums.push_back(term(ShareTerm::Sum, zero));
    if (hasTotals)
      sums.push_back(term(ShareTerm::Total, zero));
  }
  RankedTensorType rowsType = tile(blockM, columns, sumsType);
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(rowsType));
  SmallVector<Value> values;
  for (int64_t share = 0; share != count; ++share) {
    Value loaded =
        LoadOp::create(b, rowsType, ofSums, uint32_t(share * headDimV));
    values.push_back(ifThere(share, loaded, zeros));
  }
  SmallVector<Value> addresses = addressesOfRow();
  all = own.front();
  for (const Relative &of : ArrayRef(own).drop_front())
    all = {fmax(all.max, of.max), fmax(all.reference, of.reference)};
  SmallVector<Value> ofShares;
  for (const Relative &of : own)
    ofShares.push_back(weights(of, all));
  if (sumsAreRounded())
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  SmallVector<Value> sums(1 + summed.front().size());
  auto add = [&](Value &sum, Value weight, Value value) {
    sum = sum ? math::FmaOp::create(b, weight, value, sum).getResult()
              : fmul(weight, value);
  };
  for (auto [weight, of, value] : llvm::zip_equal(ofShares, summed, values)) {
    Value turned =
        spread(sumsAreRounded() ? fmul(weight, of.front()) : weight, columns);
    if (sumsAreRounded())
      value = arith::ExtFOp::create(b, f32Tile(blockM, columns), value);
    add(sums[0], turned, value);
    for (auto [sum, term] : llvm::zip_equal(llvm::drop_begin(sums), of))
      add(sum, weight, term);
  }
  storeRows(sums, addresses);
}

/// Divides by the sums and stores the rows.
/// \param sums       [rows, columns], and [1, rows] of the weights
/// \param addresses  addressesOfRow()
void Combine::storeRows(ValueRange sums, ValueRange addresses) {
  auto type = cast<RankedTensorType>(sums[1].getType());
  Value zero = splat(type, 0.0f);
  Value sum = sums[1], factorOfSums = splat(type, 1.0f);
  std::optional<Sink> sink;
  if (hasSinks) {
    sink = sinkBeside(sum, all.max, all.reference, isLarge(all.reference),
                      f32(float(-raised)));
    sum = withSink(sum, *sink);
    factorOfSums = sink->factor;
  }
  if (dropout.isThere())
    factorOfSums = fmul(factorOfSums, splat(type, dropout.scale));
  Value positive =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value inverse =
      select(positive, arith::DivFOp::create(b, factorOfSums, sum), zero);
  Value result = fmul(sums[0], spread(inverse, columns));
  auto settled = [&](Rows rows, Value address) {
    settleAt(rows, firstRow, address);
    return rows;
  };
  StoreOp::create(b, narrow(result),
                  view(settled(rowsOf("out", headQ), addresses[0]), i32(0)));

  Value lse = arg("lse");
  auto store = scf::IfOp::create(b, isGiven(b, lse), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(store.thenBlock());
  Value total = sums.back();
  storeLse(sink ? withSink(total, *sink) : total, sink,
           settled(rowValues("lse", headQ), addresses[1]));
}

/// All rows of the block, of more shares than `least` and at most `most`: by
/// the first of the ways, of a few shares more each, that has room for them.
void Combine::combineRows(int64_t least, int64_t most) {
  if (most - least <= kStepOfRows) {
    addRows(least, most);
    return;
  }
  const int64_t middle = least + (most - least) / kStepOfRows / 2 * kStepOfRows;
  auto either = scf::IfOp::create(b, areAtMost(middle),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(either.thenBlock());
  combineRows(least, middle);
  b.setInsertionPointToStart(either.elseBlock());
  combineRows(middle, most);
}

/// One row, of any number of shares.
void Combine::combineRow() {
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
  storeRows(ArrayRef(sums).drop_front(kSums).drop_back(kAddresses),
            ArrayRef(sums).take_back(kAddresses));
}

void Combine::build() {
  placeWorkgroup(/*blockM=*/1, /*fromTheEnd=*/false, /*schedule=*/nullptr,
                 /*sharesKeys=*/true);
  Value areFew;
  if (blockM > 1) {
    areFew = areAtMost(fewShares);
    firstRow = mul(firstRow, select(areFew, i32(int32_t(blockM)), i32(1)));
  }
  enterSequence(firstRow, /*ownsKeys=*/false);
  factor = softmaxFactor();
  if (areFew) {
    auto either = scf::IfOp::create(b, areFew, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(either.thenBlock());
    combineRows(0, fewShares);
    b.setInsertionPointToStart(either.elseBlock());
    combineRow();
  } else {
    combineRow();
  }
  finish();
}

void fovea::attn::buildCombine(ForwardOp op, gpu::GPUFuncOp kernel,
                               const target::TargetInfo &target,
                               const KernelArguments &arguments) {
  Combine(op, kernel, target, arguments, *op.getCombine()).build();
}
