//===- GradientBuilder.h - what gradient kernels share ----------*- C++ -*-===//
//
// Vocabulary of the kernels of a backward pass (docs/Backward.md): tiles that
// stay and tiles that are visited, with their LDS; weights and their gradients;
// and the workspace.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTBUILDER_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTBUILDER_H

#include "GradientPipeline.h"
#include "TileBuilder.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include <functional>

namespace fovea::attn {

/// Views of the two tensors of which a block is visited: one each for all its
/// chunks of columns, so that these have one address.
class BlockViews {
public:
  /// Loads a chunk of the block that is visited as `number`: [block_n,
  /// lds_dim].
  /// \param behind  of the block whose view was last made: so many blocks
  mlir::Value load(mlir::ImplicitLocOpBuilder &b, mlir::Value number,
                   bool ofOther, const ForwardTiles &tiles, int64_t chunk,
                   int64_t behind,
                   llvm::function_ref<mlir::Value(bool ofOther)> makeView);

private:
  struct Known {
    mlir::Value number, view;
  };
  Known ofBoth[2];
};

/// Writes into one kernel of a backward pass.
/// \tparam Base  TileBuilder, or, of kernels whose workgroups own queries,
///   QueryBlockBuilder
template <typename Base>
class GradientBuilder : public Base {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value, 1>;

  GradientBuilder(BackwardOp op, mlir::gpu::GPUFuncOp kernel,
                  const target::TargetInfo &target,
                  const KernelArguments &arguments, ScheduleAttr schedule)
      : Base(op, kernel, target, arguments), op(op), schedule(schedule),
        inst(*lookupMatrixInstr(target, schedule.getInst(),
                                op.getElementType())),
        tiles(gradientTiles(HeadDims(op), /*ofV=*/false, schedule, inst)),
        tilesV(gradientTiles(HeadDims(op), /*ofV=*/true, schedule, inst)) {}

protected:
  using Base::b;

  Value factorTile(Value lds, int64_t rows, int64_t columns);
  /// The columns that a chunk has of tensors with so many; none where others
  /// have more.
  Columns columnsOf(int64_t chunk, int64_t width) const;
  /// Those of q and k.
  Columns columnsOf(int64_t chunk) const {
    return columnsOf(chunk, this->headDim);
  }
  Columns allColumns() const { return {0, this->headDim}; }

  //===--- what stays -----------------------------------------------------===//
  /// A right operand that lasts through the loop: [score_dim, block_m], rows of
  /// a tensor as columns. Where the schedule says: in LDS, or read from memory
  /// each time.
  struct Resident {
    Value tile, lds;
    /// Rows from its first column on, or i32 so many further.
    std::function<Value(Value further)> load;
    int64_t columns; ///< score_dim
  };
  /// One for each chunk of columns.
  using Residents = llvm::SmallVector<Resident>;
  /// \param first  of the rows
  /// \param isInLds  whether they stay there, where they stay at all
  /// \param load  [block_m, columns], or more columns for LDS, from a row and a
  ///   column on
  Residents makeResidents(
      const Rows &rows, Value first, bool isInLds,
      std::function<Value(const Rows &rows, Value first, int64_t columns,
                          int64_t column)>
          load);
  Value get(const Resident &resident);
  bool readsAnew() const {
    return !schedule.keepsQueriesInRegisters() && !schedule.keepsQueriesInLds();
  }
  /// Whether the chunks of scores are a loop: nothing of them is in registers
  /// or LDS of its own, and all are whole, or where they end is known at run
  /// time.
  bool loopsOverChunks() {
    const int64_t columns = tiles.chunks * tiles.columns;
    return readsAnew() && schedule.getStages() == 1 && tiles.chunks > 2 &&
           (!op.getHeadDims().empty() ||
            (columns == this->headDim && columns == this->headDimV));
  }
  /// The first column of a chunk, i32; null: of none that a loop is on.
  Value columnOfLoop(Value chunk) {
    return chunk ? this->mul(chunk, this->i32(tiles.columns)) : Value();
  }

  //===--- what is visited ------------------------------------------------===//
  /// A block in LDS. Read as it is and turned: it lies there both ways, or only
  /// as it is where reads turn it.
  struct Visited {
    const ForwardTiles &tiles; ///< of the tensor
    Value rows = nullptr, turned = nullptr;
  };
  /// The buffer of an LDS tile that the block at hand is in.
  using In = llvm::function_ref<Value(Value lds)>;
  /// In this order, that of their LDS.
  void allocVisited(llvm::ArrayRef<Visited *> all,
                    llvm::ArrayRef<Visited *> turned, int buffers);
  void storeVisited(Value rows, const Visited &tile, In in);
  void storeTurned(Value rows, const Visited &tile, In in);
  /// Rows that a product with the resident operand takes. What is read from
  /// memory for it is in registers before.
  /// \param further  than the resident's columns, i32; null: none
  Value readRows(Value lds, const Resident &right, Value further);
  Value readTurned(const Visited &tile, In in);
  /// What holds a block in LDS: with two buffers, blocks take turns.
  Value bufferOf(Value lds, Value number, int buffers);
  /// What is left of a block that is none: zeros, which add nothing.
  Value noBlock(GradientSlot slot);

  //===--- products -------------------------------------------------------===//
  /// [block_n, block_m]: rows that are visited times a resident operand.
  /// \param acc  the product of the chunks before; null: none
  Value product(Value rows, const Resident &right, Value acc);
  /// acc + left, [value_dim, block_n], times P or dS.
  Value accumulate(Value left, Value right, Value acc);
  /// Where residents are read again and again, LLVM would read those of all
  /// products at once: what is below reads after what is above.
  void separateLdsReads();
  /// The same of chunks, whose products are short.
  void separateChunks();

  //===--- weights and their gradients ------------------------------------===//
  // Weights that are dropped have a sign in the kernels, since dS is of all of
  // them and dV of those that are kept.

  /// -lse * log2(e). A row that saw no key, for which others also write the
  /// lowest number, gets -inf, and so P = 0.
  Value negated(Value lse);
  /// The same of rows with the deltas that RowSums writes: -inf, too, past the
  /// last row, where loads are +0.
  Value negatedWhereSeen(Value lse, Value delta);
  /// By its bits.
  Value isPositiveZero(Value values);
  /// exp2(factor * scores + negated lse), at most 1: where scores are large,
  /// the digits that the log-sum-exp lacks would make it more.
  Value probabilities(Value scores, Value negatedLse);
  /// p * (dp - delta), of dp's part that is kept.
  Value scoreGradients(Value p, Value dp, Value delta);
  /// dS times slopes, where there are some.
  Value timesSlopes(Value ds, Value slopes) {
    return slopes ? this->fmul(ds, slopes) : ds;
  }
  /// The slopes of scores: 0 where nothing is seen, whatever the program made
  /// of what is not there.
  /// \param masked  the scores, if visibility has masked them
  Value slopesOfSeen(const Score::Result &result, Value masked);
  /// Which weights are 0.
  Value isZero(Value p);

  //===--- what score programs read ---------------------------------------===//
  /// The tiles that were fetched, as values of a slot: of all blocks as many,
  /// or of some none.
  Values toCarry(const Score::Fetched &tiles);
  /// What such values are.
  Score::Fetched fetchedIn(llvm::ArrayRef<Value> tiles) const;
  /// Values in their place.
  Values nothingFetched();

  //===--- subnormal operands ---------------------------------------------===//
  // Where matrix instructions take them for zeros, P and dS are multiplied by a
  // power of two first, and the sums of products divided by it in the end.

  /// P, of what is kept. It is at most 1, so that its power is a constant.
  Value roundProbabilities(Value p);
  /// What undoes this in sums over P, and makes up for what is dropped; null:
  /// nothing.
  Value loweredProbabilities();
  /// dS has no range of its own. Each column has the power that brings the
  /// largest dS seen in it so far just below what f16 holds: [1, block_m]. In
  /// sums of dQ in memory the columns of many workgroups meet, which have no
  /// power in common: with that algorithm dS stays as it is, and null stands
  /// for the power.
  Value initialDsPower();
  /// Rounds dS. The power shrinks, and with it the sums over dS so far, when a
  /// larger element comes.
  Value roundScoreGradients(Value ds, Value &power,
                            llvm::MutableArrayRef<Value> sums);
  /// `factor` over the power, if there is one, for sums over dS.
  Value loweredScoreGradients(Value factor, Value power);

  //===--- the workspace --------------------------------------------------===//
  /// Whether dQ is added up in memory.
  bool isAtomic() {
    return op.getSchedule()->getAlgorithm() != BackwardAlgorithm::Deterministic;
  }
  /// Whether that is in the type of the inputs, two rows an addition.
  bool sumsPairs() { return algorithm().sumsNarrowly(); }
  /// Rows of one f32: delta.
  Rows deltaRows(Value head);
  /// Sums of dQ: rows of f32, or of i32 with two rows each, all that there is
  /// memory for.
  Rows sumsRows(Value head);
  /// \param first  row of the head, of pairs an even one
  Value sumsView(const Rows &sums, Value first, Columns columns);

  //===--- tensors --------------------------------------------------------===//
  /// A value of each of the rows [first, first + count): [1, count].
  Value loadValues(const Rows &rows, Value first, int64_t count) {
    return loadValues(viewValues(rows, first), 0, count);
  }
  Value viewValues(const Rows &rows, Value first) {
    return this->view(rows, first, 1, b.getF32Type());
  }
  /// Of those from a row of such a view on.
  Value loadValues(Value view, int64_t row, int64_t count);
  /// An accumulator [value_dim, block_m] for each chunk of columns.
  llvm::SmallVector<Value> noSumsOfChunks(const ForwardTiles &tiles);
  /// Stores accumulators times `scale` (if any; a scalar or one for each
  /// column) as rows.
  void storeGradient(llvm::ArrayRef<Value> sums, Value scale, const Rows &rows,
                     Value first);
  Value scaledAndNarrow(Value sums, Value scale);
  void storeRows(Value tile, const Rows &rows, Value first);

  BackwardOp op;
  ScheduleAttr schedule;
  const target::MatrixInstr &inst;
  ForwardTiles tiles, tilesV; ///< of q and k, and of v and out
  Value factor; ///< |scale| * log2(e), at least the least normal number

private:
  const ForwardTiles &tilesOf(const Rows &rows) const;
  Value fetched; ///< of the resident operand that was last read from memory
  Score::Fetched tilesOfScore; ///< that were last fetched

  Value i64Constant(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 64).getResult();
  }
  Value whereKept(Value p, Value values);
  Value keptProbabilities(Value p);
  Value powerFor(Value partial, Value power);

  const spec::AlgorithmSpec &algorithm() {
    return specOf(op.getSchedule()->getAlgorithm());
  }
  Rows workspaceRows(Value offset, int64_t columns, Value head);
  Value workspaceRowsOfHead();
  Value workspaceBatch();
  Value workspaceRowsOfBatch();
  Value padded(Value rows, int64_t step);
  int64_t sumColumns();
};

extern template class GradientBuilder<TileBuilder>;
extern template class GradientBuilder<QueryBlockBuilder>;

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTBUILDER_H
