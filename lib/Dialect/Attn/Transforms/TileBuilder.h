//===- TileBuilder.h - vocabulary of tile programs --------------*- C++ -*-===//
//
// What the kernels of attention share on the level of tiles: names for the ops
// they are written in, the rows of a tensor that a (batch, head) owns, and
// which key blocks a block of queries visits.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILEBUILDER_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILEBUILDER_H

#include "BlockLists.h"
#include "ConstantMemory.h"
#include "Dropout.h"
#include "Score.h"
#include "Sequences.h"
#include "Visibility.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Target/TargetInfo.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace fovea::attn {

/// Puts a gpu.module of the function's name, with its target, before it.
mlir::gpu::GPUModuleOp makeKernelModule(mlir::func::FuncOp func);

/// The arguments of an op's kernels: tensors in the order of the function's
/// arguments that they are, then what follows from the operation's table.
struct KernelArguments {
  spec::Signature signature;
  /// Tensors that are the operand of another name too, and that one.
  llvm::StringMap<std::string> sameAs;

  /// The name under which a tensor is passed: its own, or that of an operand
  /// which is the same.
  llvm::StringRef passedAs(llvm::StringRef tensor) const;
  /// Number of an argument by its name, of an address also by that of an
  /// operand which is the same tensor.
  std::optional<unsigned> find(llvm::StringRef name) const;
};
/// Fails, with an error on the op, if it has no such kernels.
mlir::FailureOr<KernelArguments> argumentsOf(AttentionOpInterface op);

/// An empty kernel of a module with these arguments.
/// \param schedule  gives the size of a workgroup; kept on the kernel
mlir::gpu::GPUFuncOp makeKernel(mlir::gpu::GPUModuleOp module,
                                llvm::StringRef name,
                                const KernelArguments &arguments,
                                ScheduleAttr schedule);

/// The op named `name` of a function: the one problem-level op that becomes its
/// kernels, on the function's arguments and with a target and a schedule. Null
/// if the function has none.
/// Fails with an error if it has a second, or anything else besides.
mlir::FailureOr<mlir::Operation *> findProblem(mlir::func::FuncOp func,
                                               llvm::StringRef name);

/// Replaces each function of a module that holds an `Op` by what
/// `tile(func, op, target)` puts before it.
template <typename Op, typename Tile>
mlir::LogicalResult tileFunctions(mlir::ModuleOp module, Tile tile) {
  for (auto func :
       llvm::make_early_inc_range(module.getOps<mlir::func::FuncOp>())) {
    mlir::FailureOr<mlir::Operation *> op =
        findProblem(func, Op::getOperationName());
    if (failed(op))
      return mlir::failure();
    if (!*op)
      continue;
    auto target = func->getAttrOfType<TargetAttr>(kTargetAttrName);
    if (failed(tile(func, llvm::cast<Op>(*op), target.getInfo())))
      return mlir::failure();
    func.erase();
  }
  return mlir::success();
}

/// A tensor in global memory: the rows of one (batch, head).
struct Rows {
  mlir::Value base;   ///< address of the tensor
  mlir::Value offset; ///< i64 elements to row 0
  mlir::Value stride; ///< i64 elements between rows
  mlir::Value count;  ///< i32 rows
  /// i32 elements of a row that there are; null: as many as its type has.
  mlir::Value columns = nullptr;
  /// i32: with these, by how much the first elements lie behind their place, so
  /// that one is seen again (`attn.view`); null: 0.
  mlir::Value again = nullptr;
  /// What is loaded may hold anything in the place of columns that are not
  /// there.
  bool isLoose = false;
  int64_t width = 0; ///< columns of the tensor; 0: no tensor's
  /// i32: rows before this one are never read; null: 0.
  mlir::Value from = nullptr;
  /// i32: rows are those of so many heads, one head after the other, each of
  /// `headRows` and `headStride` elements behind the one before; null: of one.
  mlir::Value heads = nullptr, headRows = nullptr, headStride = nullptr;
};

/// A run of the columns of rows.
struct Columns {
  int64_t first, count;
};

/// Writes into one kernel. Names of arguments are those of its ABI.
class TileBuilder {
protected:
  using Value = mlir::Value;
  using StringRef = llvm::StringRef;

  TileBuilder(AttentionOpInterface op, mlir::gpu::GPUFuncOp kernel,
              const target::TargetInfo &target,
              const KernelArguments &arguments)
      : b(mlir::ImplicitLocOpBuilder::atBlockBegin(kernel.getLoc(),
                                                   &kernel.getBody().front())),
        kernel(kernel), target(target), arguments(arguments),
        elementType(op.getElementType()), headDim(op.getHeadDim()),
        headDimV(op.getHeadDimV()),
        visibility(op, b, [&](StringRef name) { return arg(name); }),
        score(op, b, [&](StringRef name) { return arg(name); }),
        lists(op, b, [&](StringRef name) { return arg(name); }),
        sequences(op, b, [&](StringRef name) { return arg(name); }),
        dropout(op, b, [&](StringRef name) { return arg(name); }) {
    setLengths();
    setHeadDims(op);
  }

  //===--- ops ------------------------------------------------------------===//
  Value arg(const llvm::Twine &name);
  Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 32).getResult();
  }
  Value f32(float value) {
    return mlir::arith::ConstantFloatOp::create(b, b.getF32Type(),
                                                llvm::APFloat(value))
        .getResult();
  }
  /// Whether later queries may see more keys than earlier ones.
  bool isUneven() const { return visibility.isPartial(); }
  /// Of numbers that are never negative, so that their products need no sign.
  Value i64(Value value) {
    return mlir::arith::ExtUIOp::create(b, b.getI64Type(), value).getResult();
  }
  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulIOp::create(b, x, y); }
  Value div(Value x, Value y) { return mlir::arith::DivUIOp::create(b, x, y); }
  /// The same of numbers up to spec::kMostOfSplitLaunch that are the same in
  /// all lanes, in 7 instructions in place of 20, ahead of the first load of a
  /// short kernel. A half more than such a number, divided by another, is
  /// further from a whole number than f32 rounds.
  Value divOfLaunch(Value x, Value y);
  Value min(Value x, Value y) { return mlir::arith::MinSIOp::create(b, x, y); }
  Value max(Value x, Value y) { return mlir::arith::MaxSIOp::create(b, x, y); }
  Value fadd(Value x, Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  Value fsub(Value x, Value y) { return mlir::arith::SubFOp::create(b, x, y); }
  Value fmul(Value x, Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  /// Maximum of numbers. A NaN score is not kept here: it comes back through
  /// its own exponential.
  Value fmax(Value x, Value y) {
    return mlir::arith::MaxNumFOp::create(b, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return mlir::arith::SelectOp::create(b, condition, x, y);
  }
  /// Blocks of `size` that `count` rows make, the last one possibly not whole.
  Value blocksOf(Value count, int64_t size) {
    return div(add(count, i32(size - 1)), i32(size));
  }
  Value blockId(mlir::gpu::Dimension dim) {
    Value id = mlir::gpu::BlockIdOp::create(b, dim);
    return mlir::arith::IndexCastOp::create(b, b.getI32Type(), id);
  }
  mlir::RankedTensorType tile(int64_t rows, int64_t columns, mlir::Type type) {
    return mlir::RankedTensorType::get({rows, columns}, type);
  }
  mlir::RankedTensorType f32Tile(int64_t rows, int64_t columns) {
    return tile(rows, columns, b.getF32Type());
  }
  Value splat(mlir::RankedTensorType type, Value scalar) {
    return mlir::tensor::SplatOp::create(b, scalar, type);
  }
  Value splat(mlir::RankedTensorType type, float value) {
    return mlir::arith::ConstantOp::create(
        b, mlir::DenseElementsAttr::get(type,
                                        b.getF32FloatAttr(value).getValue()));
  }
  /// Of i32.
  Value splat(mlir::RankedTensorType type, int32_t value) {
    return mlir::arith::ConstantOp::create(
        b, mlir::DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
  }
  Value broadcast(Value row, mlir::RankedTensorType type) {
    return BroadcastOp::create(b, type, row);
  }
  Value transpose(Value value) { return TransposeOp::create(b, value); }
  Value exp2(Value value) { return mlir::math::Exp2Op::create(b, value); }
  Value ldsTile(int64_t rows, int64_t columns, mlir::Type type,
                int32_t buffers = 1) {
    return AllocLdsOp::create(
        b, LdsType::get(b.getContext(), rows, columns, type, nullptr), buffers);
  }
  /// i1: whether a tensor was left out.
  Value isNull(Value address) { return attn::isNull(b, address); }
  Value opaque(Value scalar) { return makeOpaque(b, b.getLoc(), scalar); }
  void barrier() { mlir::amdgpu::LDSBarrierOp::create(b); }

  //===--- sequences ------------------------------------------------------===//
  /// The lengths of the sequence that this workgroup is about.
  Value seqlenQ() const { return sequences.q.length; }
  Value seqlenK() const { return sequences.k.length; }
  /// Makes that the one of `batch`, before anything of it is asked for. Where
  /// lengths differ, what is emitted from here on, up to finish(), is done only
  /// by workgroups whose first query, or key, there is.
  void enterSequence(Value first, bool ownsKeys);
  /// The rows of a workgroup's head, or heads, which it numbers in one.
  Value rowsOfHeads() {
    return packedHeads ? mul(seqlenQ(), packedHeads) : seqlenQ();
  }
  /// i32 heads that the workgroup takes as one; null: it takes one.
  Value packedHeads;
  /// The head of a workgroup, and its block of rows in the order of the grid.
  struct GridPlace {
    Value head, block;
  };
  /// The batch and block of this workgroup, as Sequences::find() says.
  std::pair<Value, Value> blockOf(const GridPlace &place,
                                  Sequences::Block ofGrid, int64_t rows,
                                  bool ofKeys, bool fromTheEnd);
  /// Ends the kernel.
  void finish();

  //===--- tensors --------------------------------------------------------===//
  /// The rows of tensor `name` that belong to `batch` and `head`.
  /// \param count  of them; null: as long as the sequence is
  Rows rowsOf(StringRef name, Value head, Value count = nullptr);
  /// The same rows, of whose columns LLVM knows nothing. Else it would make all
  /// addresses of what a loop loads, and what is cut of each column, ahead of
  /// the loop.
  Rows anew(Rows rows);
  /// The same rows from a column on, i32; null: all of them.
  Rows fromColumn(Rows rows, Value column);
  /// The rows of a segment's blocks: its origin becomes row 0.
  Rows within(const Rows &rows, const Segments &segments);
  /// Rows from `first` on; of the element type unless another is given.
  Value view(const Rows &rows, Value first, int64_t columns,
             mlir::Type type = nullptr);
  /// The same of a run of their columns, which then begin at 0.
  Value view(const Rows &rows, Value first, Columns columns,
             mlir::Type type = nullptr);
  /// All columns of rows of a tensor.
  Value view(const Rows &rows, Value first) {
    return view(rows, first, rows.width);
  }
  /// A tile of such rows, whose columns from `column` on have been loaded as
  /// they are, with zeros in the place of those that are not there.
  Value cut(const Rows &rows, Value tile, int64_t column = 0);
  /// Rows [first, first + count), and columns from `column` on; those past the
  /// head dimension are zeros.
  Value loadTile(const Rows &rows, Value first, int64_t count, int64_t columns,
                 int64_t column = 0);
  /// The f32 of tensor `name`, one a query of this (batch, head).
  Rows rowValues(StringRef name, Value head);
  /// f32: the head's element of tensor `sinks`, -infinity without one.
  Value sinkOf(Value head);

  //===--- attention ------------------------------------------------------===//
  /// The head, of `heads`, that workgroup `x` takes.
  /// Workgroups are dealt to the XCDs in turn, so x mod XCDs is an XCD: each
  /// gets a run of heads, and those that share keys then share an L2.
  Value headOf(Value x, Value heads);

  /// i32: workgroups of the launch in a dimension of which a workgroup has one
  /// work-item.
  Value gridSize(mlir::gpu::Dimension dimension);
  /// Where this workgroup is. On chips with kFewHeadsAtOnce a head's blocks
  /// start one after the other, not one of each head: what runs at once then
  /// reads the keys of few heads, in caches that do not hold those of many. Of
  /// blocks that say how much there is to do, so many heads take turns as make
  /// a few rounds of the chip: the longest of the last would start last, and
  /// end alone.
  /// \param heads     that the grid has
  /// \param rows      of a head, in blocks of so many
  /// \param schedule  null: x is the head and y the block
  GridPlace placeInGrid(Value heads, Value rows, int64_t rowsOfBlock,
                        ScheduleAttr schedule);

  /// Has several batches' blocks start by their place in a batch, where that
  /// says how much they have to do: as many batches as fill the chip a few
  /// times. On chips of several dies, which deal workgroups in order.
  /// \param block  of `blocks` of a head, in the order of the grid
  /// \param heads  that the grid has of a batch
  void orderBatches(Value &block, Value blocks, Value heads,
                    ScheduleAttr schedule);

  /// What takes scores to exponents of 2: |scale| * log2(e), at least the least
  /// normal number, or, of scores that a program has made of scaled ones,
  /// log2(e). The softmax is done
  /// in base 2 on unscaled scores: exp2(factor * s - factor * max) is one fused
  /// multiply-add a score, so scaling costs nothing and nothing is rounded a
  /// second time. A negative scale is moved, exactly, into the sign of one
  /// factor of the scores; a scale of 0 becomes the least normal number, so
  /// that -inf times the factor stays -inf.
  Value softmaxFactor();
  /// |scale|, which that has beside log2(e); 1 with a program.
  Value softmaxScale();
  /// i1: whether the scale is negative.
  Value scaleIsNegative();

  /// P or dS in the type of the inputs, for a product. Ties go to even where
  /// the chip converts, away from zero where that is cheaper; neither is
  /// infinite or NaN unless the result is. As they are where that is f32.
  Value round(Value values);
  /// Results in the type of the inputs.
  Value narrow(Value values);
  /// The largest power of two that f16 holds, with room for a factor of almost
  /// two.
  static constexpr int kLargestExponent = 15;
  /// Whether P is multiplied by a power of two, so that matrix instructions
  /// that take subnormal operands for zeros see all of it that counts. The sums
  /// are divided by the same power, which is exact.
  bool raisesProbabilities() const {
    return elementType.isF16() && target.has(target::kMfmaFlushesSubnormals);
  }
  /// The same of forward kernels, whose sums of P are by dot products: those
  /// take subnormal operands for zeros by the manuals of all chips with MFMA,
  /// and P that is summed has to be what is multiplied.
  bool raisesSums() const {
    return elementType.isF16() && target.has(target::kMfmaF16);
  }

  mlir::ImplicitLocOpBuilder b;
  mlir::gpu::GPUFuncOp kernel;
  const target::TargetInfo &target;
  const KernelArguments &arguments;
  mlir::Type elementType;
  int64_t headDim, headDimV;
  Visibility visibility;
  Score score;
  BlockLists lists;
  Sequences sequences;
  Dropout dropout;
  Value batch; ///< i32; set by what places the workgroup

private:
  /// i32 columns of rows that there are from a column on; null: as many as
  /// their type has.
  Value columnsFrom(const Rows &rows, int64_t column);
  void setLengths() {
    visibility.setLengths(seqlenQ(), seqlenK());
    score.setLengths(seqlenQ(), seqlenK());
    lists.setLengths(seqlenQ(), seqlenK());
  }
  void setHeadDims(AttentionOpInterface op);
  mlir::scf::IfOp entered; ///< null: every workgroup does all
  /// What is i32 in `Rows`, of q and k, and of v and out; null: head_dim.
  struct RowEnd {
    Value columns = nullptr, again = nullptr;
  };
  RowEnd rowEnd(StringRef dim, int64_t width);
  /// Whether rows of so many columns, if they are cut, are loaded an element at
  /// a time.
  bool isElementwise(int64_t width) const;
  RowEnd ofQk, ofV;
};

/// A kernel whose workgroups own `blockM` queries of one head each and visit
/// blocks of `blockN` keys.
class QueryBlockBuilder : public TileBuilder {
protected:
  using TileBuilder::TileBuilder;

  /// Which batch, head and query rows this workgroup owns.
  /// \param fromTheEnd  blocks go from the last one to the first: later rows
  ///   may see more keys, and the longest start first
  /// \param schedule  of those whose batches take turns (orderBatches); null:
  ///   batches one after the other
  /// \param sharesKeys  of the algorithm whose workgroups do: the grid is by
  ///   batches
  /// \param packs  rows are those of `packed_heads` heads, of which headQ is
  ///   the first
  void placeWorkgroup(int64_t blockM, bool fromTheEnd,
                      ScheduleAttr schedule = nullptr, bool sharesKeys = false,
                      bool packs = false);
  /// The rows of Q.
  Rows queryRows();

  /// Makes this workgroup, of those that z counts for a batch, one that takes a
  /// share of the keys; before visitKeys().
  void placeShare();
  /// Has row `first` of rows be row 0, and its address in registers from here
  /// on; null: row 0.
  void settle(Rows &rows, Value first, mlir::Type type = nullptr);
  /// The same where that address is known.
  void settleAt(Rows &rows, Value first, Value address);
  /// As settle(), of K's and V's rows, which loops and what is ahead of them
  /// load.
  void settleKeys();

  /// Finds the key blocks to visit, in this order: full ones, the tail, the
  /// head. Loops number them so, from 0 on: full ones come first, so that the
  /// loop that counts needs nothing of the others. K and V are what lies in the
  /// blocks; keys that no row of this workgroup sees are out of bounds, and so
  /// read as zeros: nothing that they hold can meet a weight of 0.
  /// \param ahead  blocks that a full one may fetch ahead
  /// \param group  full ones go in groups of so many, 1 or 2; the last one of
  ///   an odd number is left to the tail
  /// \param all    others too, so that each loop begins with an even number:
  ///   the last block of the tail may be left to the head, and the last of all
  ///   to a loop of its own
  void visitKeys(int64_t blockM, int64_t blockN, int64_t ahead,
                 int64_t group = 1, bool all = false);
  /// Emits the loops: `loop(from, to, group, mask)` of blocks [from, to), so
  /// many an iteration, whose scores go through mask(scores, number, row),
  /// where `row` of the block is their first. No bounds of rows live from one
  /// loop to the next.
  using Mask =
      llvm::function_ref<Value(Value scores, Value number, int64_t row)>;
  void walkKeys(
      llvm::function_ref<void(Value from, Value to, int64_t group, Mask mask)>
          loop);
  /// Rows of K or V in a block by its number: in the loop over full blocks, of
  /// these and what is fetched ahead of them. To be cut where they are used,
  /// which waits for them.
  Value loadKeys(bool values, Value number, int64_t columns);
  Value cutKeys(bool values, Value tile) {
    return cut(rowsOfKeys(values), tile);
  }
  const Rows &rowsOfKeys(bool values) const { return rows[values]; }
  /// Number of the key that is row `row` of a block.
  Value keyOf(Value number, int64_t row = 0);
  /// Scores from products of K and Q, [keys, block_m]; of a block's from row
  /// `row` on.
  Score::Result scoresOf(Value products, Value number, int64_t row = 0,
                         const Score::Fetched &fetched = Score::Fetched());
  /// What the score program of the block's part [rows, block_m] reads.
  Score::Fetched fetchScore(Value number, int64_t rows, int64_t row = 0);
  /// The same for a later iteration, whose loop may be another one; nothing
  /// where first keys of blocks may be any.
  Score::Fetched fetchScoreAhead(Value number);
  /// Whether they may.
  bool isUnaligned() const { return keys.hasHead && !isFull; }
  /// \param row  of the block that is the view's first
  /// \param column  of the rows that is the view's first, i32; null: 0
  Value viewKeys(bool values, Value number, int64_t row = 0,
                 Value column = nullptr);

  /// Products go over the columns of V. Else each is a column of the output,
  /// and those that are not there are not stored.
  bool sumsColumnsOfV = true;
  bool isFull = false; ///< of the loop over blocks that is being emitted
  Value headQ, headK, firstRow;
  Value share; ///< i32 number of it; null: all keys
  int64_t blockM, blockN;

private:
  /// Of what a block of rows sees, this workgroup's share.
  Segments shareOf(const Segments &all, int64_t group);
  /// Where the scores of a block lie, or of its part from a row on.
  ScorePlace placeOf(Value number, int64_t row);
  /// The row of a block that another than a full one may be.
  Value rowOf(Value number);
  /// i1: whether rows are those of several heads.
  Value isPacked();
  /// Which keys each of the block's rows sees.
  Bounds keysOfRows();
  /// What `apply` makes of the scores of a block that is not full; those of
  /// one that is.
  Value unlessWhole(Value scores, Value number,
                    llvm::function_ref<Value()> apply);
  /// As many of so many blocks as make whole groups.
  Value inGroups(Value blocks);

  Segments keys;
  BlockList list;  ///< of a kernel that reads lists: of the keys to visit
  Value listStart; ///< number in it of the share's first block; null: 0
  /// Blocks: those of the loop over full ones, full ones (where there may be a
  /// head), and with the tail.
  Value full, seenWhole, masked;
  int64_t groupsOfFull, groupsOfAll; ///< blocks an iteration
  /// The loop over full blocks looks where what it fetches ahead lies.
  bool looksOn;
  Rows rows[2], fullRows[2]; ///< of K and V, from the origin and the first full
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILEBUILDER_H
