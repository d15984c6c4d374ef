//===- ForwardSoftmax.cpp - weights from scores, block by block -----------===//
//
// The references that exponents are relative to, the sums that follow them, and
// the weights.
//
//===----------------------------------------------------------------------===//

#include "ForwardTiler.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The largest magnitude of a reference that is rounded: by at most 2^-9 there.
static constexpr float kLargestReference = 1 << 15;

/// The largest one that products begin at minus: each of them rounds what
/// scores come out as by at most 2^-14 there.
static constexpr float kLargestStart = 1 << 10;

/// The maximum of no scores. Finite, so that differences of maxima are never
/// NaN; but scores of a program may themselves be the lowest finite number, as
/// masks in f32 hold it, and be all that a row has.
float ForwardTiler::noMaximum() const {
  return score.isScaled() ? -std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::lowest();
}

/// What makes any growth of a maximum rescale.
int32_t ForwardTiler::largeThreshold() const {
  return score.isScaled() ? llvm::bit_cast<int32_t>(-1.0f) : -1;
}

/// A maximum that others may be subtracted from.
Value ForwardTiler::bounded(Value max) {
  if (!score.isScaled())
    return max;
  return fmax(max, splat(cast<RankedTensorType>(max.getType()),
                         std::numeric_limits<float>::lowest()));
}

/// Whether maxima have grown by more than the threshold.
Value ForwardTiler::outgrows(Value growth) {
  auto held = cast<RankedTensorType>(growth.getType());
  // From no score to none it is NaN, and no growth.
  if (score.isScaled())
    return arith::CmpFOp::create(
        b, arith::CmpFPredicate::OGT, growth,
        splat(held, arith::BitcastOp::create(b, b.getF32Type(), sums.threshold)
                        .getResult()));
  // It is never negative, so its bits are in its order; a number that all
  // lanes share is kept in a scalar register if it is an integer.
  auto bits = held.clone(b.getI32Type());
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                               arith::BitcastOp::create(b, bits, growth),
                               splat(bits, sums.threshold));
}

/// What exponents are relative to, in base 2: factor * max, less the power of
/// two that P is multiplied with. Bounded, so that a row without a visible key
/// gives exp2(-inf), not NaN.
Value ForwardTiler::referenceOf(Value max) {
  auto row = cast<RankedTensorType>(max.getType());
  Value factors = splat(row, factor);
  Value reference = raised == 0 ? fmul(max, factors)
                                : math::FmaOp::create(b, max, factors,
                                                      splat(row, zeroReference))
                                      .getResult();
  return fmax(reference, splat(row, std::numeric_limits<float>::lowest()));
}

/// Within the branch that few blocks take: the reference for the new maximum,
/// and the scores that go with it.
///
/// All exponents of a row share the rounding of factor * max, which cancels in
/// the division as long as it leaves P in the range of its type. Beyond
/// kLargestReference the wave goes on with the other order, which rounds
/// nothing twice: the maximum is subtracted from the scores here, in the
/// branch, and what is left for the usual instructions is to multiply. A
/// threshold that any growth exceeds then brings every block here.
void ForwardTiler::chooseReference(Value newMax) {
  SmallVector<Value *> scores = allScores();
  auto row = cast<RankedTensorType>(newMax.getType());
  Value reference = referenceOf(newMax);
  Value beyond = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                       math::AbsFOp::create(b, reference),
                                       splat(row, kLargestReference));
  // A row that has seen no key has no say.
  Value seen = arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, newMax,
                                     splat(row, noMaximum()));
  Value large = arith::OrIOp::create(
      b, isLarge(),
      WaveAnyOp::create(b, b.getI1Type(),
                        arith::AndIOp::create(b, beyond, seen)));
  sums.rowMax = newMax;
  slot(Slot::Reference) = reference;
  scores.append({&slot(Slot::Reference), &sums.threshold});
  branchIf(large, scores, [&] {
    for (Value *part : allScores()) {
      auto full = cast<RankedTensorType>(part->getType());
      *part = fsub(*part, broadcast(bounded(newMax), full));
    }
    slot(Slot::Reference) = splat(row, zeroReference);
    sums.threshold = i32(largeThreshold());
  });
}

/// [1, block_m] in base 2: the factor by which sums follow the reference of the
/// block of `Refer`.
Value ForwardTiler::exponentOfOldSums() {
  auto row = cast<RankedTensorType>(oldMax.getType());
  // What sums are relative to is rounded, and so is what they will be.
  return select(
      isLarge(),
      fmul(fsub(bounded(oldMax), bounded(sums.rowMax)), splat(row, factor)),
      fsub(oldReference, slot(Slot::Reference)));
}

/// i1, the same in all lanes: whether the sums are relative to the maximum
/// itself.
Value ForwardTiler::isLarge() {
  if (beginsBelow)
    return arith::ConstantIntOp::create(b, 1, 1);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, sums.threshold,
                               i32(0));
}

/// The reference of a block, and the maximum that it follows from.
/// \param rescales  whether sums follow at once; otherwise rescale() will
void ForwardTiler::refer(bool rescales) {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  // Where each lane asks for the keys that it holds, only the branch asks for
  // the row's maximum.
  const bool isWhole = maxima == RowMaxima::Exchanged;
  RankedTensorType held =
      isWhole ? row : f32Tile(tiles.rowGroups, tiles.blockM);
  SmallVector<Value *> scores = allScores();
  // The branch that may change them would have them read twice.
  if (target.registerFile == target::RegisterFile::Separate)
    for (Value *part : scores)
      *part = ToVectorsOp::create(b, *part);

  // Any reference not far below the true maximum will do, so the accumulator is
  // rescaled only when the maximum outgrew it by the threshold.
  Value before = isWhole ? sums.rowMax : broadcast(sums.rowMax, held);
  Value newMax = before;
  for (Value *part : scores)
    newMax = fmax(newMax, ReduceOp::create(b, held, ReduceKind::Max, *part));
  Value growth = fmul(fsub(newMax, before), splat(held, factor));
  Value any = WaveAnyOp::create(b, b.getI1Type(), outgrows(growth));
  slot(Slot::Reference) = referenceOf(sums.rowMax);
  oldMax = sums.rowMax;
  oldReference = slot(Slot::Reference);
  SmallVector<Value *> changing = scores;
  changing.append({&slot(Slot::Reference), &sums.threshold, &sums.rowMax});
  if (rescales) {
    changing.append(sums.relative());
  } else {
    outgrown = i32(0);
    changing.push_back(&outgrown);
  }
  // Here maxima are beside products.
  if (pipeline.parts > 1)
    InterleaveOp::create(b);
  branchIf(any, changing, [&] {
    chooseReference(
        isWhole ? newMax : ReduceOp::create(b, row, ReduceKind::Max, newMax));
    if (rescales)
      scaleSums();
    else
      outgrown = opaque(i32(1));
  });
}

/// The same where scores are relative to the reference already. Whether any has
/// outgrown it is all that most blocks ask, lane by lane: the sign of their
/// bits is that of their number, and above 0 so is their order.
void ForwardTiler::referBelow() {
  RankedTensorType held = f32Tile(tiles.rowGroups, tiles.blockM);
  Value &scores = slot(Slot::Scores);
  Value most = ReduceOp::create(b, held, ReduceKind::Max, scores);
  auto bits = held.clone(b.getI32Type());
  Value any = WaveAnyOp::create(
      b, b.getI1Type(),
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                            arith::BitcastOp::create(b, bits, most),
                            splat(bits, sums.threshold)));
  slot(Slot::Reference) = splat(f32Tile(1, tiles.blockM), zeroReference);
  oldReference = slot(Slot::Reference);
  oldMax = sums.rowMax;
  SmallVector<Value *> changing = {&scores, &sums.threshold, &sums.rowMax,
                                   &sums.start};
  changing.append(sums.relative());
  branchIf(any, changing, [&] {
    lower(most);
    scaleSums();
  });
}

/// Within the branch: what products begin at follows the maximum, and so do the
/// scores at hand. A row that has seen no key begins at 0, and while there is
/// one every block comes here. So does all that follows a reference beyond
/// kLargestStart: products then begin at 0, and what differences of scores and
/// maxima are is exact. The block that first gets there has scores that began
/// at the reference before, and so the rounding of a sum of their size.
void ForwardTiler::lower(Value most) {
  auto row = cast<RankedTensorType>(sums.rowMax.getType());
  auto full = cast<RankedTensorType>(sums.start.getType());
  Value none = splat(row, noMaximum()), zero = splat(row, 0.0f);
  auto compare = [&](arith::CmpFPredicate predicate, Value x,
                     Value y) -> Value {
    return arith::CmpFOp::create(b, predicate, x, y);
  };
  auto isUnseen = [&](Value max) {
    return compare(arith::CmpFPredicate::OEQ, max, none);
  };
  Value wasLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                         sums.threshold, i32(kLargeStart));
  Value wasUnseen = isUnseen(oldMax);
  Value before = select(wasLarge, zero, select(wasUnseen, zero, oldMax));
  Value grown = ReduceOp::create(b, row, ReduceKind::Max, most);
  sums.rowMax = fmax(oldMax, fadd(grown, before));
  Value unseen = isUnseen(sums.rowMax);
  Value now = select(unseen, zero, sums.rowMax);
  // Not the difference of maxima, which are rounded.
  Value shift =
      select(wasLarge, now,
             select(unseen, zero, select(wasUnseen, grown, fmax(grown, zero))));
  slot(Slot::Scores) = fsub(slot(Slot::Scores), broadcast(shift, full));
  Value large = arith::OrIOp::create(
      b, wasLarge,
      WaveAnyOp::create(
          b, b.getI1Type(),
          compare(arith::CmpFPredicate::OGT,
                  math::AbsFOp::create(b, fmul(now, splat(row, factor))),
                  splat(row, kLargestStart))));
  sums.start = PinOp::create(
      b, broadcast(select(large, zero, arith::NegFOp::create(b, now)), full));
  Value all =
      arith::SelectOp::create(b, WaveAnyOp::create(b, b.getI1Type(), unseen),
                              i32(kAnyGrowth), growthThatRescales);
  sums.threshold = arith::SelectOp::create(b, large, i32(kLargeStart), all);
}

/// Sums to what is their reference since `Refer`.
void ForwardTiler::rescale() {
  // A condition that lives past a branch would be kept as one of each lane, and
  // both ways as if a wave could take them at once.
  Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                    opaque(outgrown), i32(0));
  branchIf(any, sums.relative(), [&] {
    scaleSums();
    // Behind a product that the other way has as it is, LLVM would take the
    // vectors of both apart and keep them twice.
    sums.acc = PinOp::create(b, sums.acc);
  });
}

/// Within a branch: what is relative to the reference follows it.
void ForwardTiler::scaleSums() {
  Value alpha = exp2(exponentOfOldSums());
  for (Value *value : sums.relative()) {
    bool isAcc = value == &sums.acc;
    Value old = isAcc ? toAccumulators(*value) : *value;
    Value scaled =
        fmul(old, broadcast(alpha, cast<RankedTensorType>(old.getType())));
    *value = isAcc ? toAccumulators(scaled) : scaled;
  }
}

/// A branch in which `change` alters `changing`.
void ForwardTiler::branchIf(Value condition, ArrayRef<Value *> changing,
                            llvm::function_ref<void()> change) {
  auto valuesOf = [&] {
    return llvm::map_to_vector(changing, [](Value *value) { return *value; });
  };
  SmallVector<Value> kept = valuesOf();
  // Out of the way of a segment that is counted out, which would jump over it.
  if (pipeline.countsCopies())
    condition = LLVM::ExpectOp::create(
        b, condition, arith::ConstantIntOp::create(b, 0, 1).getResult());
  auto branch = scf::IfOp::create(b, ValueRange(kept).getTypes(), condition,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    change();
    scf::YieldOp::create(b, valuesOf());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, kept);
  }
  for (auto [value, result] : llvm::zip_equal(changing, branch.getResults()))
    *value = result;
}

/// P^T before rounding.
Value ForwardTiler::weigh(Value scores, Value reference) {
  auto full = cast<RankedTensorType>(scores.getType());
  Value negated = arith::NegFOp::create(b, reference);
  return exp2(math::FmaOp::create(b, scores, splat(full, factor),
                                  broadcast(negated, full)));
}

/// Adds to the row sums; returns P^T in the input type.
Value ForwardTiler::sumAndRound(Value weights, KeyBlock block) {
  Value rounded = round(weights);
  auto addSum = [&](Value &sum, Value values) {
    Value partial = ReduceOp::create(b, sum.getType(), ReduceKind::Sum, values);
    sum = arith::AddFOp::create(b, sum, partial);
  };
  // The divisor sums what is multiplied in f16, so that the weights add up to 1
  // exactly; that is one instruction a pair. In bf16 the output is as coarse as
  // the weights, and rounding it hides the difference.
  addSum(sums.rowSum, elementType.isF16() ? rounded : weights);
  if (sums.rowTotal)
    addSum(sums.rowTotal, weights);
  // Sums are of all weights.
  if (dropout.isThere())
    rounded = round(dropout.apply(weights,
                                  {batch, headQ, firstRow,
                                   keyOf(block.number, part * partRows()),
                                   /*queriesAreRows=*/false},
                                  /*negates=*/false));
  return rounded;
}
