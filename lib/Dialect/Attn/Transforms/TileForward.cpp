//===- TileForward.cpp - attn-tile-forward --------------------------------===//
//
// Writes the tile program of the forward kernel: FlashAttention-2 (Dao 2023,
// algorithm 1) in transposed form. docs/Rationale.md says why each part is as
// it is.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
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

/// What a loop over key blocks carries.
struct Carried {
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
  /// [block_n, lds_dim] V in flight; null with one stage or direct copies
  Value nextV;
  /// [block_n, block_m] scores of the block to come; null unless there are
  /// three stages
  Value nextScores;

  SmallVector<Value *> fields() {
    SmallVector<Value *> result;
    for (Value *field :
         {&rowMax, &rowSum, &acc, &rowTotal, &threshold, &nextV, &nextScores})
      if (*field)
        result.push_back(field);
    return result;
  }
  SmallVector<Value> pack() {
    return llvm::map_to_vector(fields(), [](Value *field) { return *field; });
  }
  /// The same fields with other values.
  void unpack(ValueRange values) {
    for (auto [field, value] : llvm::zip_equal(fields(), values))
      *field = value;
  }
};

/// The largest magnitude of a reference that is rounded: by at most 2^-9 there.
constexpr float kLargestReference = 1 << 15;

/// A block of keys.
struct KeyBlock {
  Value number;              ///< i32
  std::optional<int> parity; ///< of the number, where it is known
};

class ForwardTiler : public QueryBlockBuilder {
public:
  ForwardTiler(ForwardOp op, gpu::GPUFuncOp kernel,
               const target::TargetInfo &target,
               const KernelArguments &arguments)
      : QueryBlockBuilder(op, kernel, target, arguments), op(op),
        schedule(*op.getSchedule()),
        inst(*lookupMatrixInstr(target, schedule.getInst(),
                                op.getElementType())),
        tiles(forwardTiles(op.getHeadDim(), schedule, inst)),
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
  Value loadK(Value block) {
    return loadKeys(/*values=*/false, block, tiles.ldsDim);
  }
  Value loadV(Value block) {
    return loadKeys(/*values=*/true, block, tiles.ldsDim);
  }
  KeyBlock after(KeyBlock block, int distance);
  void copy(bool values, KeyBlock block);
  void copyK(KeyBlock block) { copy(/*values=*/false, block); }
  void copyV(KeyBlock block) { copy(/*values=*/true, block); }
  Value bufferOf(Value lds, KeyBlock block);
  void waitForCopies();
  void storeK(Value tile) { StoreLdsOp::create(b, tile, ldsK); }
  void storeV(Value tile) { StoreLdsOp::create(b, transpose(tile), ldsV); }
  Value scores(Value ldsK);
  /// What a rescale gives.
  struct Reference {
    Value scores;    ///< less the maximum, if this is subtracted first
    Value value;     ///< [1, block_m] that exponents are relative to
    Value threshold; ///< as Carried has it
    Value exponent;  ///< [1, block_m] in base 2, of the factor for old sums
  };
  Value referenceOf(Value max);
  Reference chooseReference(Value scores, const Carried &state, Value newMax,
                            Value growth, Value oldReference);
  Value isLarge(const Carried &state);
  Value softmax(Value scores, Carried &state,
                llvm::function_ref<void()> beside = nullptr);
  void accumulate(Value ldsV, Value probabilities, Carried &state);
  void blockStep(Value block, llvm::function_ref<Value(Value)> mask,
                 Carried &now);
  void directBlockStep(KeyBlock block, llvm::function_ref<Value(Value)> mask,
                       Carried &now);
  void startPipeline(Carried &state);
  Carried keyLoop(Value from, Value to, bool isFull, Mask mask, Carried state);
  void epilogue(Carried state);

  ForwardOp op;
  ScheduleAttr schedule;
  const target::MatrixInstr &inst;
  ForwardTiles tiles;
  /// P is 2^raised times what it stands for, and so are the sums of it.
  int raised;
  Value zeroReference; ///< f32, of a maximum of 0: -raised

  Rows q, out;
  Value factor;  ///< |scale| * log2(e), at least the least normal number
  Value queries; ///< Q^T [score_dim, block_m]; null: they are in LDS
  Value ldsQ;    ///< holds the queries; null: they stay in registers
  Value ldsK, ldsV;
};

/// S^T = K Q^T of the block in LDS, unscaled: [block_n, block_m].
Value ForwardTiler::scores(Value ldsK) {
  Value keys = LoadLdsOp::create(
      b, tile(tiles.blockN, tiles.scoreDim, elementType), ldsK);
  Value q = queries;
  if (ldsQ)
    q = transpose(LoadLdsOp::create(
        b, tile(tiles.blockM, tiles.scoreDim, elementType), ldsQ));
  RankedTensorType type = f32Tile(tiles.blockN, tiles.blockM);
  return DotOp::create(b, keys, q, splat(type, 0.0f), schedule.getInst());
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

/// Within the branch that rescales: the reference for the new maximum, which
/// grew by `growth` in base 2.
///
/// All exponents of a row share the rounding of factor * max, which cancels in
/// the division as long as it leaves P in the range of its type. Beyond
/// kLargestReference the wave goes on with the other order, which rounds
/// nothing twice: the maximum is subtracted from the scores here, in the
/// branch, and what is left for the usual instructions is to multiply. A
/// threshold that any growth exceeds then brings every block here.
ForwardTiler::Reference
ForwardTiler::chooseReference(Value scores, const Carried &state, Value newMax,
                              Value growth, Value oldReference) {
  auto row = cast<RankedTensorType>(newMax.getType());
  auto full = cast<RankedTensorType>(scores.getType());
  Value reference = referenceOf(newMax);
  Value beyond = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                       math::AbsFOp::create(b, reference),
                                       splat(row, kLargestReference));
  // A row that has seen no key has no say.
  Value seen =
      arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, newMax,
                            splat(row, std::numeric_limits<float>::lowest()));
  Value large = arith::OrIOp::create(
      b, isLarge(state),
      WaveAnyOp::create(b, b.getI1Type(),
                        arith::AndIOp::create(b, beyond, seen)));
  auto choice =
      scf::IfOp::create(b, TypeRange{full, row, b.getI32Type(), row}, large,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(
      b, ValueRange{fsub(scores, broadcast(newMax, full)),
                    splat(row, zeroReference), i32(-1),
                    fmul(fsub(state.rowMax, newMax), splat(row, factor))});
  b.setInsertionPointToStart(choice.elseBlock());
  // What sums are relative to is rounded, and so is what they will be.
  scf::YieldOp::create(b, ValueRange{scores, reference, state.threshold,
                                     fsub(oldReference, reference)});
  return {choice.getResult(0), choice.getResult(1), choice.getResult(2),
          choice.getResult(3)};
}

/// i1, the same in all lanes: whether the sums are relative to the maximum
/// itself.
Value ForwardTiler::isLarge(const Carried &state) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, state.threshold,
                               i32(0));
}

/// Updates the running maximum and sum; returns P^T in the input type.
/// \param beside  adds work that should run beside the exponentials: behind the
///                branch that rescales, so that it is in their basic block
Value ForwardTiler::softmax(Value scores, Carried &state,
                            llvm::function_ref<void()> beside) {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  auto full = cast<RankedTensorType>(scores.getType());
  // The branch that may change them would have them read twice.
  if (target.registerFile == target::RegisterFile::Separate)
    scores = ToVectorsOp::create(b, scores);
  Value newMax =
      fmax(state.rowMax, ReduceOp::create(b, row, ReduceKind::Max, scores));
  Value factors = splat(row, factor);

  // Any reference not far below the true maximum will do, so the accumulator is
  // rescaled only when the maximum outgrew it by the threshold.
  Value growth = fmul(fsub(newMax, state.rowMax), factors);
  // A growth is never negative, so its bits are in its order; a number that all
  // lanes share is kept in a scalar register if it is an integer.
  auto bits = row.clone(b.getI32Type());
  Value outgrown = arith::CmpIOp::create(
      b, arith::CmpIPredicate::sgt, arith::BitcastOp::create(b, bits, growth),
      splat(bits, state.threshold));
  Value any = WaveAnyOp::create(b, b.getI1Type(), outgrown);
  Value reference = referenceOf(state.rowMax);
  // What is relative to the reference, and the reference itself.
  SmallVector<Value *> changing = {&scores, &reference, &state.threshold,
                                   &state.rowMax};
  SmallVector<Value *> relative = {&state.rowSum, &state.acc};
  if (state.rowTotal)
    relative.push_back(&state.rowTotal);
  changing.append(relative);
  SmallVector<Value> kept =
      llvm::map_to_vector(changing, [](Value *value) { return *value; });
  auto rescale = scf::IfOp::create(b, ValueRange(kept).getTypes(), any,
                                   /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rescale.thenBlock());
    Reference now = chooseReference(scores, state, newMax, growth, reference);
    Value alpha = exp2(now.exponent);
    SmallVector<Value> rescaled = {now.scores, now.value, now.threshold,
                                   newMax};
    for (Value *value : relative) {
      bool sums = value == &state.acc;
      Value old = sums ? toAccumulators(*value) : *value;
      Value scaled =
          fmul(old, broadcast(alpha, cast<RankedTensorType>(old.getType())));
      rescaled.push_back(sums ? toAccumulators(scaled) : scaled);
    }
    scf::YieldOp::create(b, rescaled);
    b.setInsertionPointToStart(rescale.elseBlock());
    scf::YieldOp::create(b, kept);
  }
  for (auto [value, result] : llvm::zip_equal(changing, rescale.getResults()))
    *value = result;

  if (beside)
    beside();
  Value negated = arith::NegFOp::create(b, reference);
  Value exponent = math::FmaOp::create(b, scores, splat(full, factor),
                                       broadcast(negated, full));
  Value p = exp2(exponent);
  Value rounded = round(p);
  auto addSum = [&](Value &sum, Value values) {
    Value partial = ReduceOp::create(b, sum.getType(), ReduceKind::Sum, values);
    sum = arith::AddFOp::create(b, sum, partial);
  };
  // The divisor sums what is multiplied in f16, so that the weights add up to 1
  // exactly; that is one instruction a pair. In bf16 the output is as coarse as
  // the weights, and rounding it hides the difference.
  addSum(state.rowSum, elementType.isF16() ? rounded : p);
  if (state.rowTotal)
    addSum(state.rowTotal, p);
  return rounded;
}

/// O^T += V^T P^T with the block in LDS.
void ForwardTiler::accumulate(Value ldsV, Value probabilities, Carried &state) {
  // Without registers on its way V lies in LDS as it does in memory.
  bool asInMemory = schedule.getDirectCopy();
  int64_t rows = tiles.valueDim, columns = tiles.blockN;
  if (asInMemory)
    std::swap(rows, columns);
  Value values = LoadLdsOp::create(b, tile(rows, columns, elementType), ldsV);
  if (asInMemory)
    values = transpose(values);
  state.acc =
      DotOp::create(b, values, probabilities, state.acc, schedule.getInst(),
                    /*split_rows=*/schedule.getValueSplit() > 1);
}

KeyBlock ForwardTiler::after(KeyBlock block, int distance) {
  KeyBlock result = {add(block.number, i32(distance)), std::nullopt};
  if (block.parity)
    result.parity = (*block.parity + distance) % 2;
  return result;
}

/// Starts to copy the rows of a block of K or V to LDS, past the registers.
void ForwardTiler::copy(bool values, KeyBlock block) {
  CopyLdsOp::create(b, viewKeys(values, block.number),
                    bufferOf(values ? ldsV : ldsK, block),
                    /*layout=*/nullptr);
}

/// The buffer that holds a block: with two, blocks take turns.
Value ForwardTiler::bufferOf(Value lds, KeyBlock block) {
  if (tiles.ldsBuffers == 1)
    return lds;
  Value number =
      block.parity ? i32(*block.parity)
                   : arith::AndIOp::create(b, block.number, i32(1)).getResult();
  return LdsBufferOp::create(b, lds, number);
}

void ForwardTiler::waitForCopies() {
  amdgpu::MemoryCounterWaitOp::create(b, /*load=*/b.getI32IntegerAttr(0),
                                      /*store=*/nullptr, /*ds=*/nullptr,
                                      /*exp=*/nullptr, /*tensor=*/nullptr);
}

/// One key block, K and V by way of registers.
void ForwardTiler::blockStep(Value block, llvm::function_ref<Value(Value)> mask,
                             Carried &now) {
  if (schedule.getStages() == 2) {
    // On entry K of this block is in LDS or on its way there, V in registers.
    // Between the first and the second barrier LDS holds K and takes V, from
    // the second to the next first it holds V and takes the next K; the loads
    // issued in one half have the other half to arrive.
    Value next = add(block, i32(1));
    barrier();
    Value nextK = loadK(next);
    Value s = mask(scores(ldsK));
    storeV(now.nextV);
    Value p = softmax(s, now);
    barrier();
    now.nextV = loadV(next);
    accumulate(ldsV, p, now);
    storeK(nextK);
  } else {
    barrier();
    Value keys = loadK(block), values = loadV(block);
    storeK(keys);
    storeV(values);
    barrier();
    Value p = softmax(mask(scores(ldsK)), now);
    accumulate(ldsV, p, now);
  }
}

/// One key block, K and V copied to LDS past the registers.
void ForwardTiler::directBlockStep(KeyBlock block,
                                   llvm::function_ref<Value(Value)> mask,
                                   Carried &now) {
  auto multiply = [&](Value scores) {
    Value p = softmax(mask(scores), now);
    accumulate(bufferOf(ldsV, block), p, now);
  };
  if (schedule.getStages() == 1) {
    barrier();
    copyK(block);
    copyV(block);
    waitForCopies();
    barrier();
    return multiply(scores(ldsK));
  }
  // What this iteration reads has been on its way for an iteration. Behind the
  // barrier it is there, and nobody reads the other buffers any more.
  waitForCopies();
  barrier();
  KeyBlock next = after(block, 1);
  if (schedule.getStages() == 2) {
    copyK(next);
    copyV(next);
    return multiply(scores(bufferOf(ldsK, block)));
  }
  // The scores of the next block do not depend on anything that follows: matrix
  // work beside the exponentials of this one.
  copyK(after(block, 2));
  copyV(next);
  Value p = softmax(mask(now.nextScores), now,
                    [&] { now.nextScores = scores(bufferOf(ldsK, next)); });
  accumulate(bufferOf(ldsV, block), p, now);
  InterleaveOp::create(b);
}

/// Brings the first block's K and V on their way, and what else the first
/// iteration expects.
void ForwardTiler::startPipeline(Carried &state) {
  KeyBlock first = {i32(0), 0};
  if (schedule.getStages() == 1)
    return;
  if (!schedule.getDirectCopy()) {
    Value keys = loadK(first.number);
    state.nextV = loadV(first.number);
    storeK(keys);
    return;
  }
  copyK(first);
  if (schedule.getStages() == 3) {
    waitForCopies();
    barrier();
    copyK(after(first, 1));
    state.nextScores = scores(bufferOf(ldsK, first));
  }
  copyV(first);
}

/// Blocks [from, to).
Carried ForwardTiler::keyLoop(Value from, Value to, bool isFull, Mask mask,
                              Carried state) {
  // With three stages blocks without a mask go in pairs: the buffer is then
  // known, and an LDS address needs no instruction for it.
  int perIteration = isFull && schedule.getStages() == 3 ? 2 : 1;
  auto loop = scf::ForOp::create(b, from, to, i32(perIteration), state.pack());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Carried now = state;
  now.unpack(loop.getRegionIterArgs());
  for (int which = 0; which < perIteration; ++which) {
    KeyBlock block = {loop.getInductionVar(), std::nullopt};
    if (perIteration == 2)
      block.parity = 0;
    if (which > 0)
      block = after(block, which);
    auto masked = [&](Value scores) { return mask(scores, block.number); };
    if (schedule.getDirectCopy())
      directBlockStep(block, masked, now);
    else
      blockStep(block.number, masked, now);
  }
  scf::YieldOp::create(b, now.pack());
  state.unpack(loop.getResults());
  return state;
}

/// Divides by the sums and stores the output and the log-sum-exp.
void ForwardTiler::epilogue(Carried state) {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  Value sum = ReduceOp::create(b, row, ReduceKind::Sum, state.rowSum);
  Value zero = splat(row, 0.0f);
  Value positive =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value inverse = arith::SelectOp::create(
      b, positive, arith::DivFOp::create(b, splat(row, 1.0f), sum), zero);

  auto full = cast<RankedTensorType>(state.acc.getType());
  Value result = fmul(state.acc, broadcast(inverse, full));
  Value narrow = arith::TruncFOp::create(
      b, tile(tiles.valueDim, tiles.blockM, elementType), result);
  StoreOp::create(b, transpose(narrow), view(out, firstRow, tiles.headDim));

  Value lse = arg("lse");
  Value null = LLVM::ZeroOp::create(b, lse.getType());
  Value wanted = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, lse, null);
  auto store = scf::IfOp::create(b, wanted, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(store.thenBlock());
  Value total = sum;
  if (state.rowTotal)
    total = ReduceOp::create(b, row, ReduceKind::Sum, state.rowTotal);
  // log2(0) = -inf covers rows without a visible key.
  Value log2 = math::Log2Op::create(b, total);
  Value ln2 = splat(row, 0.693147180559945309417f);
  Value usual = fmul(fadd(referenceOf(state.rowMax), log2), ln2);
  // What log2(e) * max would round, or make infinite.
  Value scale = math::AbsFOp::create(b, arg("scale"));
  Value large =
      math::FmaOp::create(b, state.rowMax, splat(row, scale),
                          fmul(fadd(log2, splat(row, zeroReference)), ln2));
  Value natural = select(isLarge(state), large, usual);
  StoreOp::create(b, transpose(natural),
                  view(rowValues("lse", headQ), firstRow, 1, b.getF32Type()));
}

void ForwardTiler::build() {
  ldsK = ldsTile(tiles.blockN, tiles.ldsDim, elementType, tiles.ldsBuffers);
  ldsV =
      schedule.getDirectCopy()
          ? ldsTile(tiles.blockN, tiles.ldsDim, elementType, tiles.ldsBuffers)
          : ldsTile(tiles.ldsDim, tiles.blockN, elementType, tiles.ldsBuffers);
  placeWorkgroup(tiles.blockM, /*fromTheEnd=*/isUneven());
  q = rowsOf("q", headQ, "seqlen_q");
  out = rowsOf("out", headQ, "seqlen_q");
  // With three stages full blocks go in pairs.
  visitKeys(tiles.blockM, tiles.blockN, /*ahead=*/schedule.getStages() - 1,
            /*group=*/schedule.getStages() == 3 ? 2 : 1);
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

  Carried state;
  // Finite, so that differences of maxima are never NaN.
  state.rowMax =
      splat(f32Tile(1, tiles.blockM), std::numeric_limits<float>::lowest());
  state.rowSum = splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f);
  state.threshold =
      i32(llvm::bit_cast<int32_t>(float(schedule.getRescaleThreshold())));
  if (elementType.isF16())
    state.rowTotal = splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f);
  state.acc = splat(f32Tile(tiles.valueDim, tiles.blockM), 0.0f);
  startPipeline(state);
  walkKeys([&](Value from, Value to, bool isFull, Mask mask) {
    state = keyLoop(from, to, isFull, mask, state);
  });
  // LDS may belong to another workgroup as soon as this one ends.
  if (schedule.getDirectCopy())
    waitForCopies();
  epilogue(state);
  gpu::ReturnOp::create(b);
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
    gpu::GPUFuncOp kernel = makeKernel(makeKernelModule(func), func.getName(),
                                       *arguments, *op.getSchedule());
    ForwardTiler(op, kernel, target, *arguments).build();
    return success();
  }
};
} // namespace
