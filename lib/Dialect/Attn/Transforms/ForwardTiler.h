//===- ForwardTiler.h - the kernel that takes key blocks --------*- C++ -*-===//
//
// The forward kernel, or of split keys the first one: FlashAttention-2 (Dao
// 2023, algorithm 1) in transposed form. docs/Rationale.md says why each part
// is as it is. ForwardSoftmax.cpp has what is done to the scores of a block,
// TileForward.cpp the rest.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDTILER_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDTILER_H

#include "ForwardPipeline.h"
#include "ForwardShares.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include <array>
#include <limits>
#include <map>
#include <optional>

namespace fovea::attn {

/// What all key blocks so far come to.
struct Sums {
  using Value = mlir::Value;
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
  /// [part of block_n, block_m] what products of scores begin at: minus the
  /// reference, in each row. Null where they begin at 0.
  Value start;

  llvm::SmallVector<Value *> fields() {
    llvm::SmallVector<Value *> result;
    for (Value *field : {&rowMax, &rowSum, &acc, &rowTotal, &threshold, &start})
      if (*field)
        result.push_back(field);
    return result;
  }
  /// What is relative to the reference.
  llvm::SmallVector<Value *> relative() {
    llvm::SmallVector<Value *> result = {&rowSum, &acc};
    if (rowTotal)
      result.push_back(&rowTotal);
    return result;
  }
  llvm::SmallVector<Value> pack() {
    return llvm::map_to_vector(fields(), [](Value *field) { return *field; });
  }
  /// The same fields with other values, the first ones of a range; returns the
  /// others.
  mlir::ValueRange unpack(mlir::ValueRange values) {
    auto all = fields();
    for (auto [field, value] : llvm::zip(all, values))
      *field = value;
    return values.drop_front(all.size());
  }
};

/// Bits of a threshold that all numbers reach.
constexpr int32_t kAnyGrowth = std::numeric_limits<int32_t>::min();
/// The same but for -0, which no sum that begins at +0 is: where references are
/// too large for products to begin at.
constexpr int32_t kLargeStart = kAnyGrowth + 1;

/// A block of keys.
struct KeyBlock {
  mlir::Value number;        ///< i32
  std::optional<int> parity; ///< of the number, where it is known
};

class ForwardTiler : public ShareBuilder {
public:
  ForwardTiler(ForwardOp op, mlir::gpu::GPUFuncOp kernel,
               const target::TargetInfo &target,
               const KernelArguments &arguments)
      : ShareBuilder(op, kernel, target, arguments), op(op),
        schedule(*op.getSchedule()),
        inst(*lookupMatrixInstr(target, schedule.getInst(),
                                op.getElementType())),
        tiles(forwardTiles(HeadDims(op), withAllColumns(schedule), inst)),
        pipeline(ForwardPipeline::of(schedule)),
        raised(raisesSums() ? kLargestExponent - schedule.getRescaleThreshold()
                            : 0),
        maxima(rowMaximaOf(op, target)),
        beginsBelow(maxima == RowMaxima::BegunBelow) {}

  void build();

private:
  /// Where sums have registers of their own, a loop that carries them must see
  /// them come from and go to matrix instructions alone, or the backend copies
  /// all of them to VGPRs in every iteration for the sake of a rare rescale.
  Value toAccumulators(Value value) {
    if (target.registerFile != target::RegisterFile::Separate)
      return value;
    return ToAccumulatorsOp::create(b, value, schedule.getInst(),
                                    mlir::TypeAttr::get(elementType));
  }

  //===--- keys and values ------------------------------------------------===//
  KeyBlock after(KeyBlock block, int distance);
  void copy(bool values, KeyBlock block);
  Value bufferOf(Value lds, KeyBlock block);
  int64_t ldsDim(bool values) const {
    return values ? tiles.ldsDimV : tiles.ldsDim;
  }
  int64_t copiesOfBlock(bool values) const;
  void waitForCopies(int64_t underWay = 0, bool withLds = false);
  void meet();
  bool isStaggered() const;
  void barrierOf(bool late);
  Value readK(KeyBlock block);
  void storeChunksOfK(KeyBlock block);
  Value scoresOfChunks();
  int64_t chunksOfScores() const {
    return llvm::divideCeil(headDim, schedule.getColumnChunk());
  }
  Value readV(KeyBlock block);
  /// V lies in LDS as it does in memory: without registers on its way nothing
  /// turns it.
  bool turnsValues() const {
    return schedule.getDirectCopy() || elementType.isF32();
  }
  Value scores(Value keys);
  llvm::SmallVector<Value *> allScores();

  //===--- weights --------------------------------------------------------===//
  Value referenceOf(Value max);
  float noMaximum() const;
  int32_t largeThreshold() const;
  Value bounded(Value max);
  Value outgrows(Value growth);
  void chooseReference(Value newMax);
  Value exponentOfOldSums();
  Value isLarge();
  void refer(bool rescales);
  void referBelow();
  void lower(Value most);
  void branchIf(Value condition, llvm::ArrayRef<Value *> changing,
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
  void takePlace(const Place &place, int iteration, KeyBlock first, Mask mask);
  /// Where a share has few blocks, the wait for the first keys counts; queries
  /// come behind them.
  bool beginsAtOnce() const { return share && pipeline.ahead() > 0; }
  void beginShare();
  bool isBegun(Step step, int iteration) const;
  void loadQueries();
  void receiveQueries();
  void prepareShare();
  void pin();
  Value nothing(Slot slot);
  llvm::SmallVector<Value> packSlots(int iterations);
  void unpackSlots(mlir::ValueRange values);
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
  RowMaxima maxima;
  /// Products of scores begin at minus the reference of their row, so that what
  /// they give is relative to it, and vector instructions that would make it so
  /// are saved.
  bool beginsBelow;
  Value growthThatRescales; ///< i32, then: bits of the threshold over `factor`
  Value zeroReference; ///< f32, of a maximum of 0: -raised

  Rows q, out;
  Rows sumsRows, termsRows; ///< of the workspace, once they are settled
  Value factor;  ///< |scale| * log2(e), at least the least normal number
  Value queries; ///< Q^T [score_dim, block_m]; null: they are in LDS
  Value arriving; ///< rows of Q whose signs are to be set before the loops
  Value ldsQ;    ///< holds the queries; null: they stay in registers
  Value ldsK, ldsV;

  Sums sums;
  Slots slots;
  int current = 0; ///< block that a step is about, as slots count
  std::array<Score::Fetched, 2> fetched; ///< of each part of a block
  int part = 0;               ///< of it, unless the step is about all of it
  Value outgrown;             ///< i32: whether the block of `Refer` rescales
  Value oldMax, oldReference; ///< [1, block_m] before that block
  llvm::SmallVector<Value *> made; ///< by vector instructions of this segment
  bool isLdsTouched = false;       ///< since the last barrier
  bool isApart = false;            ///< half of the waves are a barrier behind
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDTILER_H
