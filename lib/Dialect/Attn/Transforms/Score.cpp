//===- Score.cpp - score programs on tiles --------------------------------===//

#include "Score.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNDIFFERENTIATESCORES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

Score::Score(AttentionOpInterface op, ImplicitLocOpBuilder &b,
             llvm::function_ref<Value(StringRef)> argument)
    : program(op.getScore()),
      scaled(!program.empty() && !commutesWithScaling(program)), b(b),
      seqlenQ(argument("seqlen_q")), seqlenK(argument("seqlen_k")) {
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
}

/// Emits a program's ops on tiles: scalars stay scalars, what is one a column
/// becomes tiles [1, columns], everything else whole tiles. What is no whole
/// tile is made ahead of the loops that it does not depend on.
class Score::Tiles {
public:
  Tiles(Score &score, RankedTensorType whole, const ScorePlace &place)
      : score(score), b(score.b), whole(whole), place(place) {}

  void set(ScoreArgument argument, Value value) {
    values[score.program.getArgument(unsigned(argument))] = value;
  }
  Value get(Value value) { return values.lookup(value); }
  /// The numbers of the columns in their sequence.
  Value columns();
  void take(Operation &op);
  /// As a whole tile.
  Value spread(Value value) { return promote(value, Kind::Whole); }

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
  Value read(AtOp at);
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
  const ScorePlace &place;
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

/// An element, or tile of elements, of a captured tensor. What queries and keys
/// as they are add to its address is in the address of the tile, in 64 bits,
/// but for their places in the tile; they need no check.
Value Score::Tiles::read(AtOp at) {
  const Captured &from =
      score.captured[cast<BlockArgument>(at.getTensor()).getArgNumber() -
                     kScoreArguments];
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
  OpBuilder::InsertionGuard guard(b);
  if (kind != Kind::Whole)
    hoist(inputs);

  MemRefType type = at.getTensor().getType();
  const bool isUnit = type.getStridesAndOffset().first.back() == 1;
  Value zero = i32(0), one = arith::ConstantIntOp::create(b, 1, 64).getResult();
  Value offset = wide(zero), span = one, inside, index, isBeyond;
  auto addSpan = [&](Value extent, Value stride) {
    inside = both(inside, arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                                extent, zero));
    Value last = wide(arith::SubIOp::create(b, extent, i32(1)));
    span = sum(span, arith::MulIOp::create(b, last, stride));
  };
  for (auto [dim, used] : llvm::enumerate(at.getIndices())) {
    Value stride = from.strides[dim], extent = from.extents[dim];
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
      offset = sum(offset, arith::MulIOp::create(b, wide(first), stride));
      Value rest = arith::SubIOp::create(b, extent, first);
      addSpan(arith::MinSIOp::create(
                  b, rest, i32(whole.getDimSize(isRow(used) ? 0 : 1))),
              stride);
      index = sum(index, scaled(localOf(used, kind)));
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
  Type inMemory = type.getElementType();
  if (inMemory.isInteger(1))
    inMemory = b.getI8Type();
  const bool down = isDown && !dependsOnRow && kind == Kind::Whole;
  Value element = GatherOp::create(b, typeOf(kind, inMemory), from.value,
                                   offset, size, index, down);
  if (inMemory.isInteger(8))
    return arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, element,
        promote(arith::ConstantIntOp::create(b, 0, 8).getResult(), kind));
  if (inMemory.isF16() || inMemory.isBF16())
    return arith::ExtFOp::create(b, typeOf(kind, b.getF32Type()), element);
  return element;
}

void Score::Tiles::take(Operation &op) {
  if (auto at = dyn_cast<AtOp>(op)) {
    values[at.getElement()] = read(at);
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

Score::Result Score::apply(Value products, Value scale,
                           const ScorePlace &place) {
  auto whole = cast<RankedTensorType>(products.getType());
  auto integers = whole.clone(b.getI32Type());
  Tiles tiles(*this, whole, place);
  Value row =
      arith::AddIOp::create(b, RowIndexOp::create(b, integers),
                            tensor::SplatOp::create(b, place.row, integers));
  Value column = tiles.columns();
  Value score = products;
  if (isScaled()) {
    auto product = arith::MulFOp::create(
        b, products, tensor::SplatOp::create(b, scale, whole));
    product.setFastmath(arith::FastMathFlags::contract);
    score = product;
  }
  tiles.set(ScoreArgument::Score, score);
  tiles.set(ScoreArgument::Batch, place.batch);
  tiles.set(ScoreArgument::Head, place.head);
  tiles.set(ScoreArgument::Query, place.hasKeyRows ? column : row);
  tiles.set(ScoreArgument::Key, place.hasKeyRows ? row : column);
  tiles.set(ScoreArgument::SeqlenQ, seqlenQ);
  tiles.set(ScoreArgument::SeqlenK, seqlenK);
  for (auto [number, passed] : llvm::enumerate(captured))
    tiles.set(ScoreArgument(kScoreArguments + number), passed.value);
  Block &block = program.front();
  for (Operation &op : block.without_terminator())
    tiles.take(op);
  OperandRange yielded = block.getTerminator()->getOperands();
  Result result = {tiles.spread(tiles.get(yielded[0])), nullptr};
  if (yielded.size() > 1 && !matchPattern(yielded[1], m_OneFloat()))
    result.slope = tiles.spread(tiles.get(yielded[1]));
  return result;
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
      if (!op.getScore().empty() && failed(differentiate(op.getScore())))
        signalPassFailure();
    });
  }
};
} // namespace
