//===- Score.cpp - score programs on tiles --------------------------------===//

#include "Score.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNDIFFERENTIATESCORES
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

Score::Score(AttentionOpInterface op, ImplicitLocOpBuilder &b,
             llvm::function_ref<Value(StringRef)> argument)
    : program(op.getScore()), b(b), seqlenQ(argument("seqlen_q")),
      seqlenK(argument("seqlen_k")) {}

namespace {
/// Emits a program's ops on tiles: scalars stay scalars, what is one a column
/// becomes tiles [1, columns], everything else whole tiles.
class TileProgram {
public:
  TileProgram(ImplicitLocOpBuilder &b, RankedTensorType whole)
      : b(b), whole(whole) {}

  void set(Value argument, Value value) { values[argument] = value; }
  Value get(Value value) { return values.lookup(value); }
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

  ImplicitLocOpBuilder &b;
  RankedTensorType whole;
  DenseMap<Value, Value> values;
};
} // namespace

void TileProgram::take(Operation &op) {
  if (op.hasTrait<OpTrait::ConstantLike>()) {
    set(op.getResult(0), b.clone(op)->getResult(0));
    return;
  }
  // Functions are lowered on tiles.
  bool isFunction = isa<math::MathDialect>(op.getDialect());
  Kind kind = isFunction ? Kind::Columns : Kind::Scalar;
  for (Value operand : op.getOperands())
    kind = std::max(kind, kindOf(get(operand)));
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(promote(get(operand), kind));
  OperationState state(op.getLoc(), op.getName(), operands,
                       typeOf(kind, op.getResult(0).getType()), op.getAttrs());
  Operation *made = b.create(state);
  // By way of the chip's reciprocal: an instruction or two, and not ten.
  if (auto quotient = dyn_cast<arith::DivFOp>(made))
    quotient.setFastmath(quotient.getFastmath() | arith::FastMathFlags::arcp |
                         arith::FastMathFlags::afn);
  set(op.getResult(0), made->getResult(0));
}

Score::Result Score::apply(Value products, Value scale,
                           const ScorePlace &place) {
  auto whole = cast<RankedTensorType>(products.getType());
  auto integers = whole.clone(b.getI32Type());
  auto columns =
      RankedTensorType::get({1, whole.getDimSize(1)}, b.getI32Type());
  Block &block = program.front();
  TileProgram tiles(b, whole);
  auto set = [&](ScoreArgument argument, Value value) {
    tiles.set(block.getArgument(unsigned(argument)), value);
  };
  Value row =
      arith::AddIOp::create(b, RowIndexOp::create(b, integers),
                            tensor::SplatOp::create(b, place.row, integers));
  Value column =
      arith::AddIOp::create(b, ColumnIndexOp::create(b, columns),
                            tensor::SplatOp::create(b, place.column, columns));
  set(ScoreArgument::Score,
      arith::MulFOp::create(b, products,
                            tensor::SplatOp::create(b, scale, whole)));
  set(ScoreArgument::Batch, place.batch);
  set(ScoreArgument::Head, place.head);
  set(ScoreArgument::Query, place.hasKeyRows ? column : row);
  set(ScoreArgument::Key, place.hasKeyRows ? row : column);
  set(ScoreArgument::SeqlenQ, seqlenQ);
  set(ScoreArgument::SeqlenK, seqlenK);
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
