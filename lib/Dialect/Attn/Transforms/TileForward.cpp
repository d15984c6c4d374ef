//===- TileForward.cpp - attn-tile-forward --------------------------------===//
//
// Writes the tile program of the forward kernel: FlashAttention-2 (Dao 2023,
// algorithm 1) in transposed form. docs/Rationale.md says why each part is as
// it is.
//
//===----------------------------------------------------------------------===//

#include "ForwardPipeline.h"
#include "ForwardShares.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace fovea;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEFORWARD
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

/// What all key blocks so far come to.
struct Sums {
  Value rowMax; ///< [1, block_m] reference that exponents are taken relative to
  Value rowSum; ///< [row groups, block_m] partial sums of the weights
  Value acc;    ///< [value_dim, block_m] O^T, not yet divided by the sum
  /// [row groups, block_m] partial sums of the exponentials before rounding,
  /// for the log-sum-exp; null where rowSum is just that.
  Value rowTotal;
  /// i32, the same in all lanes: the bits of the growth of a maximum that
  /// rescales, as f32. Negative once a maximum of the wave is too large to be
  /// multiplied before it is subtracted; see chooseReference().
  Value threshold;

  SmallVector<Value *> fields() {
    SmallVector<Value *> result;
    for (Value *field : {&rowMax, &rowSum, &acc, &rowTotal, &threshold})
      if (*field)
        result.push_back(field);
    return result;
  }
  /// What is relative to the reference.
  SmallVector<Value *> relative() {
    SmallVector<Value *> result = {&rowSum, &acc};
    if (rowTotal)
      result.push_back(&rowTotal);
    return result;
  }
  SmallVector<Value> pack() {
    return llvm::map_to_vector(fields(), [](Value *field) { return *field; });
  }
  /// The same fields with other values, the first ones of a range; returns the
  /// others.
  ValueRange unpack(ValueRange values) {
    auto all = fields();
    for (auto [field, value] : llvm::zip(all, values))
      *field = value;
    return values.drop_front(all.size());
  }
};

/// The largest magnitude of a reference that is rounded: by at most 2^-9 there.
constexpr float kLargestReference = 1 << 15;

/// A block of keys.
struct KeyBlock {
  Value number;              ///< i32
  std::optional<int> parity; ///< of the number, where it is known
};

class ForwardTiler : public ShareBuilder {
public:
  ForwardTiler(ForwardOp op, gpu::GPUFuncOp kernel,
               const target::TargetInfo &target,
               const KernelArguments &arguments)
      : ShareBuilder(op, kernel, target, arguments), op(op),
        schedule(*op.getSchedule()),
        inst(*lookupMatrixInstr(target, schedule.getInst(),
                                op.getElementType())),
        tiles(forwardTiles(op.getHeadDim(), schedule, inst)),
        pipeline(ForwardPipeline::of(schedule)),
        raised(raisesProbabilities()
                   ? kLargestExponent - schedule.getRescaleThreshold()
                   : 0) {}

  void build();

private:
  /// Where sums have registers of their own, a loop that carries them must see
  /// them come from and go to matrix instructions alone, or the backend copies
  /// all of them to VGPRs in every iteration for the sake of a rare rescale.
  Value toAccumulators(Value value) {
    if (target.registerFile != target::RegisterFile::Separate)
      return value;
    return ToAccumulatorsOp::create(b, value, schedule.getInst(),
                                    TypeAttr::get(elementType));
  }

  //===--- parts of the kernel --------------------------------------------===//
  KeyBlock after(KeyBlock block, int distance);
  void copy(bool values, KeyBlock block);
  Value bufferOf(Value lds, KeyBlock block);
  int64_t copiesOfBlock() const;
  void waitForCopies(int64_t underWay = 0);
  void meet();
  bool isStaggered() const;
  void barrierOf(bool late);
  Value readK(KeyBlock block);
  Value readV(KeyBlock block);
  /// V lies in LDS as it does in memory: without registers on its way nothing
  /// turns it.
  bool turnsValues() const {
    return schedule.getDirectCopy() || elementType.isF32();
  }
  Value scores(Value keys);
  SmallVector<Value *> allScores();
  Value referenceOf(Value max);
  float noMaximum() const;
  int32_t largeThreshold() const;
  Value bounded(Value max);
  Value outgrows(Value growth);
  void chooseReference(Value newMax);
  Value exponentOfOldSums();
  Value isLarge();
  void refer(bool rescales);
  void branchIf(Value condition, ArrayRef<Value *> changing,
                llvm::function_ref<void()> change);
  void scaleSums();
  void rescale();
  Value weigh(Value scores, Value reference);
  Value sumAndRound(Value weights, KeyBlock block);

  //===--- the pipeline ---------------------------------------------------===//
  using Mask = QueryBlockBuilder::Mask;
  /// What steps have left for others, by the block's distance from the first
  /// one of the iteration.
  using Slots = std::map<ForwardPipeline::Key, Value>;
  Value &slot(Slot slot) { return slotOf(slot, part); }
  Value &slotOf(Slot slot, int part) {
    return slots[{slot, pipeline.partsOf(slot) > 1 ? part : 0, current}];
  }
  /// Keys of a part.
  int64_t partRows() const { return tiles.blockN / pipeline.parts; }
  void take(Step step, KeyBlock block, Mask mask);
  void takePlaces(int iteration, KeyBlock first, Mask mask,
                  llvm::function_ref<bool(int ahead)> includes = nullptr);
  void pin();
  Value nothing(Slot slot);
  SmallVector<Value> packSlots(int iterations);
  void unpackSlots(ValueRange values);
  void keyLoop(Value from, Value to, int64_t perIteration, Mask mask);
  void prologue();
  void drain(Value to);
  void epilogue();
  void storeShare();

  ForwardOp op;
  ScheduleAttr schedule;
  const target::MatrixInstr &inst;
  ForwardTiles tiles;
  const ForwardPipeline &pipeline;
  /// P is 2^raised times what it stands for, and so are the sums of it.
  int raised;
  Value zeroReference; ///< f32, of a maximum of 0: -raised

  Rows q, out;
  Value factor;  ///< |scale| * log2(e), at least the least normal number
  Value queries; ///< Q^T [score_dim, block_m]; null: they are in LDS
  Value ldsQ;    ///< holds the queries; null: they stay in registers
  Value ldsK, ldsV;

  Sums sums;
  Slots slots;
  int current = 0; ///< block that a step is about, as slots count
  std::array<Score::Fetched, 2> fetched; ///< of each part of a block
  int part = 0;               ///< of it, unless the step is about all of it
  Value outgrown;             ///< i32: whether the block of `Refer` rescales
  Value oldMax, oldReference; ///< [1, block_m] before that block
  SmallVector<Value *> made;  ///< by vector instructions of this segment
  bool isLdsTouched = false;  ///< since the last barrier
  bool isApart = false;       ///< half of the waves are a barrier behind
};

Value ForwardTiler::readK(KeyBlock block) {
  return LoadLdsOp::create(b, tile(partRows(), tiles.scoreDim, elementType),
                           bufferOf(ldsK, block));
}

Value ForwardTiler::readV(KeyBlock block) {
  int64_t rows = tiles.valueDim, columns = partRows();
  if (turnsValues())
    std::swap(rows, columns);
  Value values = LoadLdsOp::create(b, tile(rows, columns, elementType),
                                   bufferOf(ldsV, block));
  return turnsValues() ? transpose(values) : values;
}

/// S^T = K Q^T, unscaled: [block_n, block_m].
Value ForwardTiler::scores(Value keys) {
  Value q = queries;
  if (ldsQ)
    q = transpose(LoadLdsOp::create(
        b, tile(tiles.blockM, tiles.scoreDim, elementType), ldsQ));
  RankedTensorType type = f32Tile(partRows(), tiles.blockM);
  return DotOp::create(b, keys, q, splat(type, 0.0f), schedule.getInst());
}

/// Those of all parts of the block.
SmallVector<Value *> ForwardTiler::allScores() {
  return llvm::map_to_vector(llvm::seq(0, pipeline.parts), [&](int part) {
    return &slotOf(Slot::Scores, part);
  });
}

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
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, sums.threshold,
                               i32(0));
}

/// The reference of a block, and the maximum that it follows from.
/// \param rescales  whether sums follow at once; otherwise rescale() will
void ForwardTiler::refer(bool rescales) {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  // Each lane asks for the keys that it holds, and only the branch for the
  // row's maximum. Where lanes meet in one instruction, or registers are short,
  // that comes first.
  bool isWhole = target.has(target::kPermlaneX16) ||
                 target.registerFile == target::RegisterFile::Separate;
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

KeyBlock ForwardTiler::after(KeyBlock block, int distance) {
  KeyBlock result = {add(block.number, i32(distance)), std::nullopt};
  if (block.parity)
    result.parity = (*block.parity + distance) & 1;
  return result;
}

/// Starts to copy the rows of a block of K or V to LDS, past the registers.
void ForwardTiler::copy(bool values, KeyBlock block) {
  CopyLdsOp::create(b, viewKeys(values, block.number, part * partRows()),
                    bufferOf(values ? ldsV : ldsK, block),
                    /*layout=*/nullptr);
}

/// The buffer that holds this part of a block: with two, blocks take turns.
Value ForwardTiler::bufferOf(Value lds, KeyBlock block) {
  if (tiles.ldsBuffers == 1)
    return lds;
  int parts = pipeline.parts;
  if (block.parity)
    return LdsBufferOp::create(b, lds, i32(*block.parity * parts + part));
  Value number = arith::AndIOp::create(b, block.number, i32(1));
  if (parts > 1)
    number = add(mul(number, i32(parts)), i32(part));
  return LdsBufferOp::create(b, lds, number);
}

/// Loads of a wave that copy a block of K or V.
int64_t ForwardTiler::copiesOfBlock() const {
  int64_t bytes = int64_t(tiles.blockN) * tiles.ldsDim * tiles.elementBytes;
  return bytes / (int64_t(schedule.getWaves()) * inst.waveSize * kCopyBytes);
}

/// \param underWay  loads of this wave that may be
void ForwardTiler::waitForCopies(int64_t underWay) {
  amdgpu::MemoryCounterWaitOp::create(b, /*load=*/b.getI32IntegerAttr(underWay),
                                      /*store=*/nullptr, /*ds=*/nullptr,
                                      /*exp=*/nullptr, /*tensor=*/nullptr);
}

/// A barrier. Where copies are counted, none that waits for those under way.
void ForwardTiler::meet() {
  if (!pipeline.countsCopies())
    return barrier();
  auto fence = [&] {
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  };
  fence();
  amdgpu::MemoryCounterWaitOp::create(b, /*load=*/nullptr, /*store=*/nullptr,
                                      /*ds=*/b.getI32IntegerAttr(0),
                                      /*exp=*/nullptr, /*tensor=*/nullptr);
  LLVM::InlineAsmOp::create(b, TypeRange{}, ValueRange{}, "s_barrier",
                            "~{memory}", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
  fence();
}

/// Half of the waves go a segment behind the others, which share their SIMDs:
/// one half moves data while the other computes.
bool ForwardTiler::isStaggered() const {
  return pipeline.countsCopies() && schedule.getWaves() > target.simdsPerCu;
}

/// A barrier that half of the waves take: the others find it in their next one.
void ForwardTiler::barrierOf(bool late) {
  Value takes = IsLateWaveOp::create(b, b.getI1Type());
  if (!late)
    takes = arith::XOrIOp::create(
        b, takes, arith::ConstantIntOp::create(b, 1, 1).getResult());
  auto branch = scf::IfOp::create(b, takes, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  meet();
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

void ForwardTiler::take(Step step, KeyBlock block, Mask mask) {
  switch (step) {
  case Step::LoadK:
  case Step::LoadV: {
    bool values = step == Step::LoadV;
    slot(values ? Slot::VRows : Slot::KRows) =
        loadKeys(values, block.number, tiles.ldsDim);
    return;
  }
  case Step::StoreK:
    StoreLdsOp::create(b, cutKeys(/*values=*/false, slot(Slot::KRows)),
                       bufferOf(ldsK, block));
    return;
  case Step::StoreV:
    StoreLdsOp::create(
        b, turnsValues() ? slot(Slot::VRows) : transpose(slot(Slot::VRows)),
        bufferOf(ldsV, block));
    return;
  case Step::CopyK:
  case Step::CopyV:
    return copy(step == Step::CopyV, block);
  case Step::ReadK:
    slot(Slot::Keys) = readK(block);
    return;
  case Step::ReadV:
    slot(Slot::Values) = readV(block);
    return;
  case Step::Scores:
    slot(Slot::Scores) = scores(slot(Slot::Keys));
    return;
  case Step::Fetch:
    fetched[part] = fetchScore(block.number, partRows(), part * partRows());
    return;
  case Step::Mask:
    slot(Slot::Scores) = mask(scoresOf(slot(Slot::Scores), block.number,
                                       part * partRows(), fetched[part])
                                  .score,
                              block.number, part * partRows());
    return;
  case Step::Refer:
    return refer(/*rescales=*/false);
  case Step::ReferAll:
    return refer(/*rescales=*/true);
  case Step::Rescale:
    return rescale();
  case Step::Weigh:
    slot(Slot::Weights) = weigh(slot(Slot::Scores), slot(Slot::Reference));
    made.push_back(&slot(Slot::Weights));
    // For the other part LLVM would negate it in advance, on ways past loops
    // too, and keep the sums twice for the sake of these.
    if (pipeline.parts > 1 && part == 0)
      made.push_back(&slot(Slot::Reference));
    return;
  case Step::Round:
    slot(Slot::Rounded) = sumAndRound(slot(Slot::Weights), block);
    made.append({&slot(Slot::Rounded), &sums.rowSum});
    if (sums.rowTotal)
      made.push_back(&sums.rowTotal);
    return;
  case Step::Accumulate:
    sums.acc = DotOp::create(b, slot(Slot::Values), slot(Slot::Rounded),
                             sums.acc, schedule.getInst(),
                             /*split_rows=*/schedule.getValueSplit() > 1);
    return;
  case Step::AwaitK:
  case Step::AwaitV:
    llvm_unreachable("takePlaces() knows how many copies are behind");
  case Step::Barrier:
    return meet();
  case Step::AwaitCopies:
    return waitForCopies();
  case Step::Urgent:
    made.clear();
    ROCDL::SetPrioOp::create(b, 1);
    return;
  case Step::Usual:
    pin();
    ROCDL::SetPrioOp::create(b, 0);
    return;
  case Step::Pin:
    return pin();
  case Step::Fence:
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
    return;
  case Step::Mix:
    InterleaveOp::create(b);
    return;
  }
  llvm_unreachable("all steps are listed");
}

/// One iteration.
/// \param iteration  of those that the loop's body holds, for slots
/// \param first      the block that is 0 ahead in it
/// \param includes   whether to do what is so far ahead; null: all of it.
///   Otherwise what orders work is left out where nothing has touched LDS.
void ForwardTiler::takePlaces(int iteration, KeyBlock first, Mask mask,
                              llvm::function_ref<bool(int ahead)> includes) {
  bool isLoop = !includes;
  for (auto [i, place] : llvm::enumerate(pipeline.places)) {
    if (!isOfBlock(place.step)) {
      if (isLoop || (isLdsTouched && !isOfLoop(place.step)))
        take(place.step, first, mask);
      // Who is behind counts on each of them.
      if (place.step == Step::Barrier && !isApart)
        isLdsTouched = false;
      continue;
    }
    if (!isLoop && !includes(place.ahead))
      continue;
    // Of what is copied nothing is there before the wait.
    isLdsTouched |=
        pipeline.countsCopies() ? isAwait(place.step) : touchesLds(place.step);
    current = iteration + place.ahead;
    if (isAwait(place.step)) {
      // Beside what is on its way.
      if (!isLoop && !isApart && queries)
        queries = PinOp::create(b, queries);
      waitForCopies(isLoop ? pipeline.copiesBehind(i) * copiesOfBlock() : 0);
      continue;
    }
    int from = std::max(place.part, 0);
    int to = place.part >= 0 || isWhole(place.step) ? from + 1 : pipeline.parts;
    for (part = from; part < to; ++part)
      take(place.step, place.ahead ? after(first, place.ahead) : first, mask);
    part = 0;
  }
}

/// What a slot holds of a block before the first.
Value ForwardTiler::nothing(Slot slot) {
  switch (slot) {
  case Slot::VRows:
    return splat(tile(tiles.blockN, tiles.ldsDim, elementType), 0.0f);
  case Slot::Weights:
    return splat(f32Tile(partRows(), tiles.blockM), 0.0f);
  case Slot::Scores: // whose weights are 0
    return splat(f32Tile(partRows(), tiles.blockM),
                 -std::numeric_limits<float>::infinity());
  case Slot::Reference:
    return splat(f32Tile(1, tiles.blockM), 0.0f);
  default:
    llvm_unreachable("no pipeline has that behind");
  }
}

/// What is carried on from `iterations` of a loop's body.
SmallVector<Value> ForwardTiler::packSlots(int iterations) {
  return llvm::map_to_vector(pipeline.carried(), [&](auto key) {
    auto found = slots.find({key.slot, key.part, key.block + iterations});
    return found == slots.end() ? nothing(key.slot) : found->second;
  });
}

void ForwardTiler::unpackSlots(ValueRange values) {
  slots.clear();
  for (auto [key, value] : llvm::zip_equal(pipeline.carried(), values))
    slots[key] = value;
}

/// What the segment that ends here has made for later ones is made in it.
void ForwardTiler::pin() {
  for (Value *value : made)
    *value = PinOp::create(b, *value);
  made.clear();
}

/// What is ahead of the first iteration: blocks from 0 on.
void ForwardTiler::prologue() {
  // Values of the block before the first are read from LDS.
  if (pipeline.countsCopies()) {
    for (part = 0; part < pipeline.parts; ++part)
      StoreLdsOp::create(
          b, splat(tile(partRows(), tiles.ldsDim, elementType), 0.0f),
          bufferOf(ldsV, {i32(-1), 1}));
    part = 0;
  }
  for (int iteration = -pipeline.ahead(); iteration < 0; ++iteration)
    takePlaces(iteration, {i32(iteration), iteration & 1}, /*mask=*/nullptr,
               [&](int ahead) { return iteration + ahead >= 0; });
  if (isStaggered()) {
    barrierOf(/*late=*/true);
    isApart = true;
  }
}

/// Blocks [from, to), so many an iteration.
void ForwardTiler::keyLoop(Value from, Value to, int64_t perIteration,
                           Mask mask) {
  SmallVector<Value> inits = sums.pack();
  llvm::append_range(inits, packSlots(0));
  auto loop = scf::ForOp::create(b, from, to, i32(perIteration), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  unpackSlots(sums.unpack(loop.getRegionIterArgs()));
  for (int which = 0; which < perIteration; ++which) {
    KeyBlock block = {loop.getInductionVar(), std::nullopt};
    // Where all go in pairs, a last one alone has an even number too.
    if (perIteration == 2 || pipeline.countsCopies())
      block.parity = 0;
    if (which > 0)
      block = after(block, which);
    takePlaces(which, block, mask);
  }
  SmallVector<Value> results = sums.pack();
  llvm::append_range(results, packSlots(perIteration));
  scf::YieldOp::create(b, results);
  unpackSlots(sums.unpack(loop.getResults()));
}

/// What is behind the last iteration.
void ForwardTiler::drain(Value to) {
  isLdsTouched = true;
  KeyBlock first = {to, std::nullopt};
  for (int iteration = 0; iteration < pipeline.behind(); ++iteration)
    takePlaces(iteration, after(first, iteration),
               /*mask=*/nullptr,
               [&](int ahead) { return iteration + ahead < 0; });
  if (isStaggered())
    barrierOf(/*late=*/false);
}

/// Leaves the sums to the kernel that combines them, and what they are relative
/// to.
void ForwardTiler::storeShare() {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  StoreOp::create(
      b, transpose(sums.acc),
      view(sumsOfShare(share), firstRow, tiles.headDim, b.getF32Type()));
  Value sum = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowSum);
  Value total = sum;
  if (sums.rowTotal)
    total = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowTotal);
  Value exact = splat(row, std::numeric_limits<float>::infinity());
  Value reference = select(isLarge(), exact, referenceOf(sums.rowMax));
  for (auto [term, value] : {std::pair(ShareTerm::Max, sums.rowMax),
                             {ShareTerm::Reference, reference},
                             {ShareTerm::Sum, sum},
                             {ShareTerm::Total, total}})
    StoreOp::create(
        b, transpose(value),
        view(termsOfShare(term, share), firstRow, 1, b.getF32Type()));
}

/// Divides by the sums and stores the output and the log-sum-exp.
void ForwardTiler::epilogue() {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  Value sum = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowSum);
  Value zero = splat(row, 0.0f), factorOfSums = splat(row, 1.0f);
  std::optional<Sink> sink;
  if (op.getSinks()) {
    sink = sinkBeside(sum, sums.rowMax, referenceOf(sums.rowMax), isLarge(),
                      zeroReference);
    sum = withSink(sum, *sink);
    factorOfSums = sink->factor;
  }
  if (dropout.isThere())
    factorOfSums = fmul(factorOfSums, splat(row, dropout.scale));
  Value positive =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value inverse = arith::SelectOp::create(
      b, positive, arith::DivFOp::create(b, factorOfSums, sum), zero);

  auto full = cast<RankedTensorType>(sums.acc.getType());
  Value result = fmul(sums.acc, broadcast(inverse, full));
  StoreOp::create(b, transpose(narrow(result)),
                  view(out, firstRow, tiles.headDim));

  Value lse = arg("lse");
  auto store = scf::IfOp::create(b, isGiven(b, lse), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(store.thenBlock());
  Value total = sum;
  if (sums.rowTotal) {
    total = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowTotal);
    if (sink)
      total = withSink(total, *sink);
  }
  // log2(0) = -inf covers rows without a visible key.
  Value log2 = math::Log2Op::create(b, total);
  Value ln2 = splat(row, 0.693147180559945309417f);
  Value usual = fmul(fadd(referenceOf(sums.rowMax), log2), ln2);
  // What log2(e) * max would round, or make infinite.
  Value scale = softmaxScale();
  Value large =
      math::FmaOp::create(b, sums.rowMax, splat(row, scale),
                          fmul(fadd(log2, splat(row, zeroReference)), ln2));
  Value natural = select(isLarge(), large, usual);
  if (sink)
    natural = lseWithSink(natural, log2, *sink);
  StoreOp::create(b, transpose(natural),
                  view(rowValues("lse", headQ), firstRow, 1, b.getF32Type()));
}

void ForwardTiler::build() {
  int32_t buffers = tiles.ldsBuffers * pipeline.parts;
  ldsK = ldsTile(partRows(), tiles.ldsDim, elementType, buffers);
  ldsV = turnsValues()
             ? ldsTile(partRows(), tiles.ldsDim, elementType, buffers)
             : ldsTile(tiles.ldsDim, partRows(), elementType, buffers);
  placeWorkgroup(tiles.blockM, /*fromTheEnd=*/isUneven(),
                 /*acrossBatches=*/isUneven() && isStaggered() &&
                     !op.getCombine(),
                 /*sharesKeys=*/op.getCombine().has_value());
  if (op.getCombine())
    placeShare();
  dropout.prepare();
  dropout.store();
  enterSequence(firstRow, /*ownsKeys=*/false);
  q = rowsOf("q", headQ);
  out = rowsOf("out", headQ);
  sumsColumnsOfV = false;
  visitKeys(tiles.blockM, tiles.blockN, pipeline.ahead(),
            /*group=*/pipeline.unroll, /*all=*/pipeline.countsCopies());
  factor = softmaxFactor();
  zeroReference = f32(float(-raised));
  if (raised != 0) // a constant would take a vector register
    zeroReference = opaque(zeroReference);

  Value rows = loadTile(q, firstRow, tiles.blockM, tiles.scoreDim);
  Value signedRows = NegateIfOp::create(b, rows, scaleIsNegative());
  if (schedule.getQueriesInLds()) {
    // The loop's first barrier comes before the first read.
    ldsQ = ldsTile(tiles.blockM, tiles.scoreDim, elementType);
    StoreLdsOp::create(b, signedRows, ldsQ);
  } else {
    queries = transpose(signedRows);
  }

  sums.rowMax = splat(f32Tile(1, tiles.blockM), noMaximum());
  sums.rowSum = splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f);
  sums.threshold =
      i32(llvm::bit_cast<int32_t>(float(schedule.getRescaleThreshold())));
  if (elementType.isF16())
    sums.rowTotal = splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f);
  sums.acc = splat(f32Tile(tiles.valueDim, tiles.blockM), 0.0f);
  prologue();
  Value end;
  walkKeys([&](Value from, Value to, int64_t perIteration, Mask mask) {
    keyLoop(from, to, perIteration, mask);
    end = to;
  });
  drain(end);
  // LDS may belong to another workgroup as soon as this one ends.
  if (schedule.getDirectCopy())
    waitForCopies();
  if (share)
    storeShare();
  else
    epilogue();
  finish();
}

struct TileForward
    : public fovea::attn::impl::AttnTileForwardBase<TileForward> {
  void runOnOperation() override {
    if (failed(tileFunctions<ForwardOp>(getOperation(), tileFunction)))
      signalPassFailure();
  }

private:
  static LogicalResult tileFunction(func::FuncOp func, ForwardOp op,
                                    const target::TargetInfo &target) {
    if (failed(checkForwardSchedule([&] { return op.emitOpError(); }, target,
                                    op.getElementType(), op.getHeadDim(),
                                    *op.getSchedule())))
      return failure();
    FailureOr<KernelArguments> arguments = argumentsOf(op);
    if (failed(arguments))
      return failure();
    std::optional<ScheduleAttr> combine = op.getCombine();
    if (combine && failed(checkCombineSchedule([&] { return op.emitOpError(); },
                                               target, op.getElementType(),
                                               op.getHeadDim(), *combine)))
      return failure();
    gpu::GPUModuleOp module = makeKernelModule(func);
    auto make = [&](const spec::LaunchSpec &launch, ScheduleAttr schedule) {
      StringRef suffix = launch.suffix;
      std::string name =
          (module.getName() + (suffix.empty() ? "" : "_") + suffix).str();
      return makeKernel(module, name, *arguments, schedule);
    };
    const spec::Rows<spec::LaunchSpec> launches = op.getAlgorithm().launches;
    ForwardTiler(op, make(launches[0], *op.getSchedule()), target, *arguments)
        .build();
    if (combine)
      buildCombine(op, make(launches[1], *combine), target, *arguments);
    return success();
  }
};
} // namespace
