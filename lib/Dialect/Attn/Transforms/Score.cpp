//===- Score.cpp - score programs on tiles --------------------------------===//

#include "Score.h"
#include "ConstantMemory.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNDIFFERENTIATESCORES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

/// Whether the scale has to come before the program. A derivative for what is
/// captured has a degree of its own.
static bool needsScale(AttentionOpInterface op) {
  if (op.getScore().empty())
    return false;
  auto backward = dyn_cast<BackwardOp>(op.getOperation());
  return (backward && !backward.getGradients().empty()) ||
         !commutesWithScaling(op.getScore());
}

/// The ops of a program that a value is made of, and the arguments.
static llvm::SmallDenseSet<Value> sourcesOf(ValueRange values) {
  llvm::SmallDenseSet<Value> seen(values.begin(), values.end());
  SmallVector<Value> open(values);
  while (!open.empty())
    if (Operation *op = open.pop_back_val().getDefiningOp())
      for (Value operand : op->getOperands())
        if (seen.insert(operand).second)
          open.push_back(operand);
  return seen;
}

/// Whether a program's score is made of the product.
static bool isOfProduct(Region &program) {
  return program.empty() ||
         sourcesOf(yieldOf(program).getScore())
             .contains(program.getArgument(unsigned(ScoreArgument::Score)));
}

Score::Score(AttentionOpInterface op, ImplicitLocOpBuilder &b,
             llvm::function_ref<Value(StringRef)> argument)
    : program(op.getScore()), scaled(needsScale(op)),
      ofProduct(isOfProduct(op.getScore())), b(b) {
  for (auto [number, capture] : llvm::enumerate(capturesOf(program))) {
    const std::string name = "capture" + std::to_string(number);
    Captured &passed = captured.emplace_back();
    passed.value = argument(name);
    for (size_t dim = 0; dim != capture.dims.size(); ++dim) {
      passed.strides.push_back(
          capture.dims[dim].isUnit
              ? arith::ConstantIntOp::create(b, 1, 64).getResult()
              : argument(name + "_stride" + std::to_string(dim)));
      passed.extents.push_back(
          argument(name + "_extent" + std::to_string(dim)));
    }
  }
  if (auto backward = dyn_cast<BackwardOp>(op.getOperation()))
    findGradients(backward, argument);
}

void Score::findGradients(BackwardOp op,
                          llvm::function_ref<Value(StringRef)> argument) {
  if (op.getGradientsOf().empty())
    return;
  OperandRange derivatives = yieldOf(program).getDerivatives();
  if (derivatives.empty())
    return;
  for (auto [number, derivative, to] : llvm::zip_equal(
           op.getGradientsOf(), derivatives.drop_front(), op.getGradients())) {
    const bool isStored = isStoredGradient(to);
    if (!isStored && matchPattern(derivative, m_AnyZeroFloat()))
      continue;
    BlockArgument capture =
        program.getArgument(kScoreArguments + unsigned(number));
    Gradient gradient = {nullptr, {}, derivative, Owner::Tile, nullptr};
    if (isStored)
      gradient.stored = cast<MemRefType>(to.getType()).getElementType();
    const std::string name = "dcapture" + std::to_string(number);
    gradient.to.value = argument(name);
    gradient.to.extents = captured[number].extents;
    // Nothing of a gradient that is not wanted is within bounds: cheaper than a
    // branch in the loop, and than a condition that it holds.
    if (isStored)
      for (Value &extent : gradient.to.extents)
        extent = arith::SelectOp::create(
            b, isNull(b, gradient.to.value),
            arith::ConstantIntOp::create(b, 0, 32), extent);
    for (size_t dim = 0; dim != gradient.to.extents.size(); ++dim)
      gradient.to.strides.push_back(
          argument(name + "_stride" + std::to_string(dim)));
    if (isa<MemRefType>(capture.getType())) {
      gradient.at = readOf(capture);
      gradient.owner = ownerOf(gradient.at);
    }
    gradients.push_back(gradient);
  }
}

/// Whether places that differ in an argument may read different elements: the
/// score differs in all.
static bool variesWith(AtOp at, ScoreArgument argument) {
  const llvm::SmallDenseSet<Value> sources = sourcesOf(at.getIndices());
  auto knows = [&](ScoreArgument number) {
    return sources.contains(at->getBlock()->getArgument(unsigned(number)));
  };
  return knows(ScoreArgument::Score) || knows(argument);
}

llvm::SmallDenseSet<Value> Score::neededBy(const ScorePlace &place) const {
  YieldOp yield = yieldOf(program);
  SmallVector<Value> values = {yield.getScore()};
  llvm::append_range(values, yield.getDerivatives());
  if (Value seen = seenOf(program); seen && !place.isSeen)
    values.push_back(seen);
  for (const Gradient &gradient : gradients)
    if (AtOp at = gradient.at)
      llvm::append_range(values, at.getIndices());
  return sourcesOf(values);
}

Score::Owner Score::ownerOf(AtOp at) const {
  const bool row = variesWith(at, ScoreArgument::Query);
  const bool column = variesWith(at, ScoreArgument::Key);
  return row ? (column ? Owner::Place : Owner::Row)
             : (column ? Owner::Column : Owner::Tile);
}

bool Score::storesGradients() const {
  return llvm::any_of(gradients,
                      [](const Gradient &gradient) { return gradient.stored; });
}

size_t Score::countSums() const {
  return llvm::count_if(
      gradients, [](const Gradient &gradient) { return gradient.isSummed(); });
}

/// Emits a program's ops on tiles: scalars stay scalars, what is one a column
/// becomes tiles [1, columns], everything else whole tiles. What is no whole
/// tile is made ahead of the loops that it does not depend on.
class Score::Tiles {
  /// Elements of a byte that are a word.
  static constexpr int64_t kRun = 4;

public:
  Tiles(Score &score, RankedTensorType whole, const ScorePlace &place)
      : score(score), b(score.b), whole(whole), place(place) {}

  void set(ScoreArgument argument, Value value) {
    values[score.program.getArgument(unsigned(argument))] = value;
  }
  /// All arguments but the score.
  /// \param row  rows(); null: not needed
  void setPlace(Value row);
  Value get(Value value) { return values.lookup(value); }
  /// The numbers of the rows in their sequence.
  Value rows();
  /// The same of the columns, [1, columns].
  Value columns();
  void take(Operation &op);
  /// An element, or tile of elements, of a captured tensor, as it is in memory.
  Value gather(AtOp at) { return gather(at, inMemory(at)); }
  /// The same of 16 bits in a word each: LLVM would put two of what loops carry
  /// into a register, by an instruction that waits for the load.
  Value gatherWords(AtOp at) {
    Value narrow = gather(at, b.getI16Type());
    return arith::ExtUIOp::create(
        b, cast<RankedTensorType>(narrow.getType()).clone(b.getI32Type()),
        narrow);
  }
  /// What is on its way already.
  Fetched fetched;
  /// As a whole tile.
  Value spread(Value value) { return promote(value, Kind::Whole); }

  /// Adds a tile to what an element of the gradient is for.
  /// \param hidden  what is left out where places have elements of their own;
  ///   null: nothing
  void add(const Gradient &gradient, Value tile, Value hidden);
  /// Stores a tile to places that there are.
  /// \param outside  i32 tile, -1 of others and 0 of these; null: there are
  /// none
  void store(const Gradient &gradient, Value tile, Value outside);
  /// i32 tile, -1 of places behind the last query, or from key `end` on, and
  /// else 0: comparisons would hold a pair of scalar registers each.
  Value isOutside(Value end);

private:
  enum class Kind { Scalar, Columns, Whole };

  Kind kindOf(Value value) const {
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    if (!tile)
      return Kind::Scalar;
    return tile.getDimSize(0) == 1 && whole.getDimSize(0) != 1 ? Kind::Columns
                                                               : Kind::Whole;
  }
  Type typeOf(Kind kind, Type element) const {
    if (kind == Kind::Scalar)
      return element;
    return RankedTensorType::get(
        {kind == Kind::Columns ? 1 : whole.getDimSize(0), whole.getDimSize(1)},
        element);
  }
  Value promote(Value value, Kind kind) {
    if (kindOf(value) == kind)
      return value;
    Type type = typeOf(kind, getElementTypeOrSelf(value));
    if (kindOf(value) == Kind::Columns)
      return BroadcastOp::create(b, type, value);
    return tensor::SplatOp::create(b, value, cast<RankedTensorType>(type));
  }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32).getResult();
  }
  Value wide(Value value) {
    return arith::ExtSIOp::create(b, b.getI64Type(), value);
  }
  Value both(Value x, Value y) {
    return x ? Value(arith::AndIOp::create(b, x, y)) : y;
  }
  Value sum(Value x, Value y) {
    return x ? Value(arith::AddIOp::create(b, x, y)) : y;
  }
  Value isInside(Value index, Value extent) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, extent);
  }

  /// Goes in front of all loops and branches in which `values` do not change.
  void hoist(ValueRange values);
  static Type inMemory(AtOp at) {
    Type type = at.getTensor().getType().getElementType();
    return type.isInteger(1) ? IntegerType::get(at.getContext(), 8) : type;
  }
  Value gather(AtOp at, Type element);
  /// What is gathered as the program has it.
  Value elements(AtOp at, Value gathered);
  /// Where an element, or a tile of elements, lies.
  struct Address {
    Kind kind;
    Value offset, size; ///< i64 and i32 elements
    Value index;        ///< behind the offset; null: 0
    bool isDown;        ///< as in attn.gather
    bool isUnaligned;
  };
  Address addressOf(AtOp at, const Captured &from, bool isUnit);
  /// Whether it is batch or head as they are, which lie within any extent.
  bool isOwn(Value index) const {
    return llvm::is_contained(
        {score.program.getArgument(unsigned(ScoreArgument::Batch)),
         score.program.getArgument(unsigned(ScoreArgument::Head))},
        index);
  }
  /// The tile's part of query or key, which `index` is; null: neither.
  Value placeOf(Value index);
  Value localOf(Value index, Kind kind);
  bool isRow(Value index) const {
    ScoreArgument row =
        place.hasKeyRows ? ScoreArgument::Key : ScoreArgument::Query;
    return index == score.program.getArgument(unsigned(row));
  }

  Score &score;
  ImplicitLocOpBuilder &b;
  RankedTensorType whole;
  const ScorePlace place;
  DenseMap<Value, Value> values;
};

void Score::Tiles::hoist(ValueRange values) {
  auto changesIn = [&](Operation *parent) {
    return llvm::any_of(values, [&](Value value) {
      return parent->isAncestor(value.getParentBlock()->getParentOp());
    });
  };
  for (Operation *parent = b.getInsertionBlock()->getParentOp();
       parent && !isa<FunctionOpInterface>(parent) && !changesIn(parent);
       parent = parent->getParentOp())
    b.setInsertionPoint(parent);
}

Value Score::Tiles::columns() {
  OpBuilder::InsertionGuard guard(b);
  hoist(place.column);
  auto type = cast<RankedTensorType>(typeOf(Kind::Columns, b.getI32Type()));
  return arith::AddIOp::create(b, ColumnIndexOp::create(b, type),
                               tensor::SplatOp::create(b, place.column, type));
}

Value Score::Tiles::rows() {
  auto type = whole.clone(b.getI32Type());
  return arith::AddIOp::create(b, RowIndexOp::create(b, type),
                               tensor::SplatOp::create(b, place.row, type));
}

void Score::Tiles::setPlace(Value row) {
  Value column = columns();
  set(ScoreArgument::Batch, place.batch);
  set(ScoreArgument::Head, place.head);
  set(ScoreArgument::Query, place.hasKeyRows ? column : row);
  set(ScoreArgument::Key, place.hasKeyRows ? row : column);
  set(ScoreArgument::SeqlenQ, score.seqlenQ);
  set(ScoreArgument::SeqlenK, score.seqlenK);
  for (auto [number, passed] : llvm::enumerate(score.captured))
    set(ScoreArgument(kScoreArguments + number), passed.value);
}

Value Score::Tiles::placeOf(Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument)
    return nullptr;
  auto number = ScoreArgument(argument.getArgNumber());
  if (number != ScoreArgument::Query && number != ScoreArgument::Key)
    return nullptr;
  return isRow(index) ? place.row : place.column;
}

Value Score::Tiles::localOf(Value index, Kind kind) {
  auto type = cast<RankedTensorType>(typeOf(kind, b.getI32Type()));
  if (isRow(index))
    return RowIndexOp::create(b, type);
  return promote(
      ColumnIndexOp::create(b, typeOf(Kind::Columns, b.getI32Type())), kind);
}

/// What queries and keys as they are add to the address of an element is in
/// that of the tile, in 64 bits, but for their places in the tile; they need no
/// check. Leaves the builder where what the address is made of does not change.
Score::Tiles::Address Score::Tiles::addressOf(AtOp at, const Captured &from,
                                              bool isUnit) {
  Kind kind = Kind::Scalar;
  SmallVector<Value> inputs;
  bool isDown = false, dependsOnRow = false;
  for (Value index : at.getIndices()) {
    kind = std::max(kind, kindOf(get(index)));
    inputs.push_back(get(index));
    dependsOnRow |= kindOf(get(index)) == Kind::Whole && !isRow(index);
  }
  for (Value index : {place.row, place.column})
    if (llvm::any_of(at.getIndices(),
                     [&](Value used) { return placeOf(used) == index; }))
      inputs.push_back(index);
  if (kind != Kind::Whole)
    hoist(inputs);

  Value zero = i32(0), one = arith::ConstantIntOp::create(b, 1, 64).getResult();
  Value offset = wide(zero), span = one, inside, index, isBeyond;
  auto isSome = [&](Value extent) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, extent, zero);
  };
  auto addSpan = [&](Value extent, Value stride, bool isKnown = false) {
    if (!isKnown)
      inside = both(inside, isSome(extent));
    Value last = wide(arith::SubIOp::create(b, extent, i32(1)));
    span = sum(span, arith::MulIOp::create(b, last, stride));
  };
  // What holds for all rows is in their number in the kernels that own keys,
  // whose loops have no registers for conditions.
  Value hasColumns;
  if (!place.hasKeyRows && llvm::any_of(at.getIndices(), [&](Value used) {
        return placeOf(used) == place.row;
      }))
    for (auto [extent, used] : llvm::zip_equal(from.extents, at.getIndices()))
      if (Value first = placeOf(used); first && !isRow(used))
        hasColumns = both(hasColumns,
                          isSome(arith::SubIOp::create(b, extent, first)));
  bool isUnaligned = false;
  for (auto [dim, used] : llvm::enumerate(at.getIndices())) {
    Value stride = from.strides[dim], extent = from.extents[dim];
    if (hasColumns && isRow(used))
      extent = arith::SelectOp::create(b, hasColumns, extent, zero);
    Value value = get(used);
    const bool isLast = dim + 1 == at.getIndices().size();
    auto scaled = [&](Value tile) -> Value {
      if (isLast && isUnit)
        return tile;
      Value narrow = arith::TruncIOp::create(b, b.getI32Type(), stride);
      return arith::MulIOp::create(b, tile, promote(narrow, kind));
    };
    if (kindOf(value) == Kind::Scalar) {
      offset = sum(offset, arith::MulIOp::create(b, wide(value), stride));
      if (!isOwn(used))
        inside = both(inside, isInside(value, extent));
      continue;
    }
    if (Value first = placeOf(used)) {
      int64_t size = whole.getDimSize(isRow(used) ? 0 : 1);
      Value local = localOf(used, kind);
      if (place.isUnaligned && isRow(used) && isLast && isUnit) {
        // Words of memory begin at multiples of 4 elements.
        Value aligned = arith::AndIOp::create(b, first, i32(-kRun));
        local = arith::AddIOp::create(
            b, local, promote(arith::SubIOp::create(b, first, aligned), kind));
        first = aligned;
        size += kRun;
        isUnaligned = true;
      }
      offset = sum(offset, arith::MulIOp::create(b, wide(first), stride));
      Value rest = arith::SubIOp::create(b, extent, first);
      addSpan(arith::MinSIOp::create(b, rest, i32(size)), stride,
              /*isKnown=*/hasColumns && !isRow(used));
      index = sum(index, scaled(local));
      if (isRow(used)) {
        isDown = isLast && isUnit;
        dependsOnRow |= !isLast;
      }
      continue;
    }
    value = promote(value, kind);
    addSpan(extent, stride);
    index = sum(index, scaled(value));
    Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, value,
                                          promote(extent, kind));
    isBeyond =
        isBeyond ? Value(arith::OrIOp::create(b, isBeyond, outside)) : outside;
  }
  if (isBeyond)
    index = arith::SelectOp::create(b, isBeyond, promote(i32(-1), kind), index);
  Value size = arith::TruncIOp::create(b, b.getI32Type(), span);
  if (inside)
    size = arith::SelectOp::create(b, inside, size, zero);
  isDown = isDown && !dependsOnRow && kind == Kind::Whole;
  return {kind, offset, size, index, isDown, isDown && isUnaligned};
}

Value Score::Tiles::gather(AtOp at, Type element) {
  const Captured &from =
      score.captured[cast<BlockArgument>(at.getTensor()).getArgNumber() -
                     kScoreArguments];
  MemRefType type = at.getTensor().getType();
  OpBuilder::InsertionGuard guard(b);
  const auto [kind, offset, size, index, isDown, isUnaligned] =
      addressOf(at, from, type.getStridesAndOffset().first.back() == 1);
  return GatherOp::create(b, typeOf(kind, element), from.value, offset, size,
                          index, isDown, isUnaligned);
}

Value Score::Tiles::elements(AtOp at, Value gathered) {
  const Kind kind = kindOf(gathered);
  Type type = inMemory(at);
  OpBuilder::InsertionGuard guard(b);
  if (kind != Kind::Whole)
    b.setInsertionPointAfterValue(gathered);
  if (type != getElementTypeOrSelf(gathered)) // from a word each
    gathered = arith::BitcastOp::create(
        b, typeOf(kind, type),
        arith::TruncIOp::create(b, typeOf(kind, b.getI16Type()), gathered));
  if (type.isInteger(8))
    return arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, gathered,
        promote(arith::ConstantIntOp::create(b, 0, 8).getResult(), kind));
  if (type.isF16() || type.isBF16())
    return arith::ExtFOp::create(b, typeOf(kind, b.getF32Type()), gathered);
  return gathered;
}

/// Bounds that nothing is in, if the gradient is not wanted: cheaper than a
/// branch in the loop.
static Value sizeIfWanted(ImplicitLocOpBuilder &b, Value base, Value size) {
  Value isLeftOut = isNull(b, base);
  Value none = arith::ConstantIntOp::create(b, 0, 32).getResult();
  return arith::SelectOp::create(b, isLeftOut, none, size);
}

void Score::Tiles::add(const Gradient &gradient, Value tile, Value hidden) {
  Address address = {Kind::Scalar, nullptr, nullptr, nullptr, false, false};
  if (gradient.at) {
    OpBuilder::InsertionGuard guard(b);
    address = addressOf(gradient.at, gradient.to, /*isUnit=*/false);
  } else {
    address.offset = wide(i32(0));
    address.size = i32(1);
  }
  Value base = gradient.to.value;
  Value size = sizeIfWanted(b, base, address.size);
  Value index = address.index ? spread(address.index) : Value();
  if (gradient.owner == Owner::Place && hidden)
    index = arith::SelectOp::create(b, hidden, spread(i32(-1)), index);
  ScatterAddOp::create(b, tile, base, address.offset, size, index,
                       /*by_row=*/gradient.owner == Owner::Row,
                       /*by_column=*/gradient.owner == Owner::Column);
}

Value Score::Tiles::isOutside(Value end) {
  auto isBehind = [&](ScoreArgument number, Value end) -> Value {
    Value place = get(score.program.getArgument(unsigned(number)));
    const Kind kind = kindOf(place);
    Value last = arith::SubIOp::create(b, end, i32(1));
    Value rest = arith::SubIOp::create(b, promote(last, kind), place);
    return spread(arith::ShRSIOp::create(b, rest, promote(i32(31), kind)));
  };
  return arith::OrIOp::create(b, isBehind(ScoreArgument::Query, score.seqlenQ),
                              isBehind(ScoreArgument::Key, end));
}

void Score::Tiles::store(const Gradient &gradient, Value tile, Value outside) {
  Address address = {Kind::Scalar, nullptr, nullptr, nullptr, false, false};
  {
    OpBuilder::InsertionGuard guard(b);
    address = addressOf(gradient.at, gradient.to, /*isUnit=*/false);
  }
  Value index = spread(address.index);
  if (outside)
    index = arith::OrIOp::create(b, index, outside);
  if (getElementTypeOrSelf(tile) != gradient.stored)
    tile = arith::TruncFOp::create(b, whole.clone(gradient.stored), tile);
  Value base = gradient.to.value;
  ScatterOp::create(b, tile, base, address.offset, address.size, index);
}

void Score::Tiles::take(Operation &op) {
  if (auto at = dyn_cast<AtOp>(op)) {
    Value gathered = fetched.lookup(at);
    values[at.getElement()] = elements(at, gathered ? gathered : gather(at));
    return;
  }
  Value &result = values[op.getResult(0)];
  if (op.hasTrait<OpTrait::ConstantLike>()) {
    OpBuilder::InsertionGuard guard(b);
    hoist({});
    result = b.clone(op)->getResult(0);
    return;
  }
  // Functions are lowered on tiles.
  bool isFunction = isa<math::MathDialect>(op.getDialect());
  Kind kind = isFunction ? Kind::Columns : Kind::Scalar;
  for (Value operand : op.getOperands())
    kind = std::max(kind, kindOf(get(operand)));
  SmallVector<Value> operands = llvm::map_to_vector(
      op.getOperands(), [&](Value operand) { return get(operand); });
  OpBuilder::InsertionGuard guard(b);
  if (kind != Kind::Whole)
    hoist(operands);
  for (Value &operand : operands)
    operand = promote(operand, kind);
  OperationState state(op.getLoc(), op.getName(), operands,
                       typeOf(kind, op.getResult(0).getType()), op.getAttrs());
  Operation *made = b.create(state);
  // Products and sums may be one instruction, quotients go by way of the chip's
  // reciprocal: an instruction or two, and not ten.
  if (auto number = dyn_cast<arith::ArithFastMathInterface>(made)) {
    arith::FastMathFlags flags = arith::FastMathFlags::contract;
    if (auto given = number.getFastMathFlagsAttr())
      flags = flags | given.getValue();
    if (isa<arith::DivFOp>(made))
      flags = flags | arith::FastMathFlags::arcp | arith::FastMathFlags::afn;
    made->setAttr(number.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(b.getContext(), flags));
  }
  result = made->getResult(0);
}

/// The reads whose tiles are worth the registers in which they wait for scores:
/// of 16 bits, two to a register. (LLVM takes bytes apart as soon as they are
/// there.) Their indices do not depend on the score.
/// \param along   the argument along which elements are neighbours: of rows
///   several are one load
/// \param needed  values that the tile needs
static SmallVector<AtOp> earlyReads(Region &program, ScoreArgument along,
                                    const llvm::SmallDenseSet<Value> &needed) {
  llvm::SmallDenseSet<Value> late = {
      program.getArgument(unsigned(ScoreArgument::Score))};
  SmallVector<AtOp> reads;
  for (Operation &op : program.front().without_terminator()) {
    const bool isLate = llvm::any_of(op.getOperands(), [&](Value operand) {
      return late.contains(operand);
    });
    auto at = dyn_cast<AtOp>(op);
    if (isLate || at)
      late.insert(op.getResult(0));
    if (isLate || !at || !needed.contains(at.getElement()))
      continue;
    MemRefType type = at.getTensor().getType();
    if ((type.getElementType().isF16() || type.getElementType().isBF16()) &&
        type.getStridesAndOffset().first.back() == 1 &&
        at.getIndices().back() == program.getArgument(unsigned(along)))
      reads.push_back(at);
  }
  return reads;
}

bool fovea::attn::readsTiles(Region &program) {
  if (program.empty())
    return false;
  SmallVector<AtOp> early =
      earlyReads(program, ScoreArgument::Key,
                 sourcesOf(program.front().getTerminator()->getOperands()));
  return llvm::any_of(program.getOps<AtOp>(), [&](AtOp at) {
    return variesWith(at, ScoreArgument::Key) && !llvm::is_contained(early, at);
  });
}

Score::Fetched Score::fetch(RankedTensorType whole, const ScorePlace &place,
                            bool elementwise) {
  const llvm::SmallDenseSet<Value> needed = neededBy(place);
  ScoreArgument row = ScoreArgument::Query, column = ScoreArgument::Key;
  if (place.hasKeyRows)
    std::swap(row, column);
  SmallVector<AtOp> reads, ofWords;
  // Or the words around would wait too.
  if (!place.isUnaligned)
    reads = earlyReads(program, row, needed);
  if (elementwise)
    llvm::copy_if(earlyReads(program, column, needed),
                  std::back_inserter(ofWords), [&](AtOp at) {
                    return llvm::is_contained(
                        at.getIndices(), program.getArgument(unsigned(row)));
                  });
  if (reads.empty() && ofWords.empty())
    return Fetched();
  SmallVector<Value> indices;
  for (AtOp at : llvm::concat<AtOp>(reads, ofWords))
    llvm::append_range(indices, at.getIndices());
  const llvm::SmallDenseSet<Value> sources = sourcesOf(indices);
  Tiles tiles(*this, whole, place);
  tiles.setPlace(tiles.rows());
  Fetched fetched;
  for (Operation &op : program.front().without_terminator()) {
    if (auto at = dyn_cast<AtOp>(op); at && llvm::is_contained(reads, at))
      fetched[at] = tiles.gather(at);
    else if (at && llvm::is_contained(ofWords, at))
      fetched[at] = tiles.gatherWords(at);
    else if (sources.contains(op.getResult(0)))
      tiles.take(op);
  }
  return fetched;
}

Score::Result Score::apply(Value products, Value scale, const ScorePlace &place,
                           const Fetched &fetched) {
  auto whole = cast<RankedTensorType>(products.getType());
  auto shared = std::make_shared<Tiles>(*this, whole, place);
  Tiles &tiles = *shared;
  tiles.fetched = fetched;
  tiles.setPlace(tiles.rows());
  Value score = products;
  if (isScaled()) {
    auto product = arith::MulFOp::create(
        b, products, tensor::SplatOp::create(b, scale, whole));
    product.setFastmath(arith::FastMathFlags::contract);
    score = product;
  }
  tiles.set(ScoreArgument::Score, score);
  const llvm::SmallDenseSet<Value> needed = neededBy(place);
  for (Operation &op : program.front().without_terminator())
    if (needed.contains(op.getResult(0)))
      tiles.take(op);
  YieldOp yield = yieldOf(program);
  Result result = {tiles.spread(tiles.get(yield.getScore()))};
  if (Value seen = seenOf(program); seen && !place.isSeen) {
    result.seen = tiles.spread(tiles.get(seen));
    auto none = arith::ConstantOp::create(
        b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    result.score = arith::SelectOp::create(b, result.seen, result.score,
                                           tiles.spread(none));
  }
  // Layouts come from products. Of a program without them LLVM drops these,
  // which knows that no batch is negative.
  if (!ofProduct) {
    Value zero = arith::ConstantIntOp::create(b, 0, 32);
    Value always = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                         place.batch, zero);
    result.score = arith::SelectOp::create(b, tiles.spread(always),
                                           result.score, products);
  }
  if (OperandRange derivatives = yield.getDerivatives();
      !derivatives.empty() && !matchPattern(derivatives[0], m_OneFloat()))
    result.slope = tiles.spread(tiles.get(derivatives[0]));
  if (hasGradients())
    result.tiles = shared;
  return result;
}

void Score::addGradients(const Result &result, Value ds, Value hidden,
                         MutableArrayRef<Value> sums) {
  Tiles &tiles = *result.tiles;
  for (const Gradient &gradient : gradients) {
    Value part = ds;
    if (!matchPattern(gradient.derivative, m_OneFloat()))
      part = arith::MulFOp::create(
          b, ds, tiles.spread(tiles.get(gradient.derivative)));
    if (gradient.owner == Owner::Place && !gradient.stored) {
      tiles.add(gradient, part, hidden);
      continue;
    }
    if (hidden) {
      auto none = arith::ConstantOp::create(
          b, b.getZeroAttr(cast<RankedTensorType>(part.getType())));
      part = arith::SelectOp::create(b, hidden, none, part);
    }
    if (gradient.stored) {
      tiles.store(gradient, part, hidden ? tiles.isOutside(seqlenK) : Value());
      continue;
    }
    if (!gradient.isSummed()) {
      tiles.add(gradient, part, nullptr);
      continue;
    }
    Value &sum = sums.front();
    sums = sums.drop_front();
    sum = arith::AddFOp::create(
        b, sum, ReduceOp::create(b, sum.getType(), ReduceKind::Sum, part));
  }
}

void Score::addSums(ArrayRef<Value> sums, ScorePlace place) {
  for (const Gradient &gradient : gradients) {
    if (!gradient.isSummed())
      continue;
    Value sum = sums.front();
    sums = sums.drop_front();
    place.row = arith::ConstantIntOp::create(b, 0, 32);
    Tiles tiles(*this, cast<RankedTensorType>(sum.getType()), place);
    tiles.setPlace(nullptr);
    if (AtOp at = gradient.at) {
      llvm::SmallDenseSet<Value> sources = sourcesOf(at.getIndices());
      for (Operation &op : program.front().without_terminator())
        if (sources.contains(op.getResult(0)))
          tiles.take(op);
    }
    tiles.add(gradient, sum, nullptr);
  }
}

void Score::storeZeros(RankedTensorType tile, const ScorePlace &place,
                       Value end) {
  for (const Gradient &gradient : gradients) {
    if (!gradient.stored)
      continue;
    Tiles tiles(*this, tile, place);
    tiles.setPlace(tiles.rows());
    Value zeros = arith::ConstantOp::create(
        b, cast<TypedAttr>(b.getZeroAttr(tile.clone(gradient.stored))));
    tiles.store(gradient, zeros, tiles.isOutside(end));
  }
}

//===----------------------------------------------------------------------===//
// attn-differentiate-scores
//===----------------------------------------------------------------------===//

namespace {
struct DifferentiateScores
    : public fovea::attn::impl::AttnDifferentiateScoresBase<
          DifferentiateScores> {
  void runOnOperation() override {
    getOperation().walk([&](BackwardOp op) {
      if (!op.getScore().empty() &&
          failed(differentiate(op.getScore(), op.getGradientsOf())))
        signalPassFailure();
    });
  }
};
} // namespace
