//===- ComputeToLanes.cpp - arithmetic on tiles for lanes -----------------===//

#include "Fragments.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::Coord;
using layout::TileLayout;

/// For each register of a fragment, the register of the layout reduced along
/// dimension 0 that has its column: what is left when bits of dimension 0 go.
static SmallVector<int64_t> reducedRegisters(const TileLayout &layout) {
  SmallVector<int64_t> result;
  for (int reg = 0; reg < layout.elementsPerFragment(); ++reg) {
    int64_t reduced = 0, next = 0;
    for (auto [bit, basis] : llvm::enumerate(layout.registers()))
      if (basis[0] == 0)
        reduced |= int64_t(reg >> bit & 1) << next++;
    result.push_back(reduced);
  }
  return result;
}

namespace {

/// Any element-wise op: the same op on scalars, once a register. Not on
/// vectors: the backend would pair them into packed instructions, which cannot
/// issue beside a matrix instruction and want aligned register pairs.
struct LowerElementwise : public ConversionPattern {
  LowerElementwise(TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 ||
        !getTileLayout(op->getResult(0).getType()))
      return rewriter.notifyMatchFailure(op, "not element-wise on tiles");
    for (Value operand : op->getOperands())
      if (LayoutAttr layout = getTileLayout(operand.getType());
          layout && layout != getTileLayout(op->getResult(0).getType()))
        return op->emitOpError("has operands in another layout than its "
                               "result's; attn.convert_layout goes before it");
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    Type tile = op->getResult(0).getType();
    auto compute = [&, &operands = operands](int fragment, int reg) -> Value {
      SmallVector<Value> inputs;
      for (auto [operand, converted] : llvm::zip(op->getOperands(), operands))
        inputs.push_back(getTileLayout(operand.getType())
                             ? element(b, converted[fragment], reg)
                             : converted[0]);
      OperationState state(op->getLoc(), op->getName(), inputs,
                           getElementTypeOrSelf(tile), op->getAttrs());
      return rewriter.create(state)->getResult(0);
    };
    rewriter.replaceOpWithMultiple(op, {makeFragments(b, tile, compute)});
    return success();
  }
};

/// math.exp2 and math.log2 as the chip's instruction: one a lane and register.
/// Results below the least normal number are flushed, which no caller here can
/// see: probabilities that small add nothing to a sum of at least 2^-8.
template <typename Op, typename Instruction>
struct LowerTranscendental : public ElementPattern<Op> {
  using ElementPattern<Op>::ElementPattern;

  LogicalResult check(Op op,
                      ConversionPatternRewriter &rewriter) const override {
    if (!getTileLayout(op.getType()))
      return rewriter.notifyMatchFailure(op, "not on tiles");
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "no instruction for the type");
    return success();
  }
  Value lowerElement(ImplicitLocOpBuilder &b, Value value) const override {
    return Instruction::create(b, b.getF32Type(), value);
  }
};

/// Other functions by way of these.
struct FunctionBuilder {
  ImplicitLocOpBuilder &b;

  Value constant(float value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  Value mul(Value x, float y) {
    return arith::MulFOp::create(b, x, constant(y));
  }
  Value exp2(Value x) { return ROCDL::ROCDLExp2::create(b, b.getF32Type(), x); }
};

constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.693147180559945309f;

Value lowerExp(ImplicitLocOpBuilder &b, Value x) {
  FunctionBuilder f{b};
  return f.exp2(f.mul(x, kLog2E));
}

Value lowerLog(ImplicitLocOpBuilder &b, Value x) {
  FunctionBuilder f{b};
  return f.mul(ROCDL::ROCDLLog::create(b, b.getF32Type(), x), kLn2);
}

/// What LLVM has instructions or short sequences for, where MLIR would call the
/// device library.
template <const char *name>
Value lowerIntrinsic(ImplicitLocOpBuilder &b, Value x) {
  return callIntrinsic(b, b.getF32Type(), name, {x});
}
constexpr char kSqrt[] = "llvm.sqrt", kFloor[] = "llvm.floor",
               kCeil[] = "llvm.ceil", kTrunc[] = "llvm.trunc";

/// 1 - 2 / (1 + exp(2 x)): within 2^-22 of the function, whose digits near 0
/// are not all there. Where the exponential is infinite or 0 this is 1 and -1.
Value lowerTanh(ImplicitLocOpBuilder &b, Value x) {
  FunctionBuilder f{b};
  Value one = f.constant(1);
  Value sum = arith::AddFOp::create(b, one, f.exp2(f.mul(x, 2 * kLog2E)));
  Value inverse = callIntrinsic(b, b.getF32Type(), "llvm.amdgcn.rcp", {sum});
  return math::FmaOp::create(b, inverse, f.constant(-2), one);
}

template <typename Op, Value (*lower)(ImplicitLocOpBuilder &, Value)>
struct LowerFunction : public ElementPattern<Op> {
  using ElementPattern<Op>::ElementPattern;

  LogicalResult check(Op op,
                      ConversionPatternRewriter &rewriter) const override {
    if (!getTileLayout(op.getType()) ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not on tiles of f32");
    return success();
  }
  Value lowerElement(ImplicitLocOpBuilder &b, Value value) const override {
    return lower(b, value);
  }
};

struct LowerConstant : public LanePattern<arith::ConstantOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(arith::ConstantOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat || !getTileLayout(op.getType()))
      return rewriter.notifyMatchFailure(op, "not a tile of one value");
    Value value = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        SplatElementsAttr::get(fragmentType(op.getType()),
                               splat.getSplatValue<Attribute>()));
    SmallVector<Value> fragments(layoutOf(op).fragments(), value);
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }
};

struct LowerSplat : public LanePattern<tensor::SplatOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(tensor::SplatOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value value = vector::BroadcastOp::create(
        rewriter, op.getLoc(), fragmentType(op.getType()), op.getInput());
    SmallVector<Value> fragments(layoutOf(op).fragments(), value);
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }
};

struct LowerTranspose : public LanePattern<TransposeOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(TransposeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileLayout layout = layoutOf(op.getTile());
    SmallVector<Value> fragments(layout.fragments());
    for (auto [number, fragment] : llvm::enumerate(adaptor.getTile()))
      fragments[layout.transposeFragment(number)] = fragment;
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }
};

struct LowerDot : public LanePattern<DotOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(DotOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout a = layoutOf(op.getA()), bb = layoutOf(op.getB()),
               acc = layoutOf(op.getAcc());
    Type factor = cast<RankedTensorType>(op.getA().getType()).getElementType();
    const target::MatrixInstr *inst =
        lookupMatrixInstr(lanes.getTarget(), op.getInst(), factor);
    if (!inst)
      return emitNoMatrixInstr([&] { return op.emitOpError(); },
                               lanes.getTarget(), op.getInst(), factor);
    if (a.grid()[0] != acc.grid()[0] || bb.grid()[1] != acc.grid()[1] ||
        a.grid()[1] != bb.grid()[0] ||
        a.elementsPerFragment() % inst->a.elementsPerFragment() != 0 ||
        bb.elementsPerFragment() % inst->b.elementsPerFragment() != 0 ||
        a.elementsPerFragment() / inst->a.elementsPerFragment() !=
            bb.elementsPerFragment() / inst->b.elementsPerFragment() ||
        acc.elementsPerFragment() != inst->d.elementsPerFragment())
      return op.emitOpError("has operand layouts that do not belong together");
    const int64_t widthA = inst->a.elementsPerFragment(),
                  widthB = inst->b.elementsPerFragment();
    auto slice = [&](Value fragment, int64_t width, int64_t step) -> Value {
      if (cast<VectorType>(fragment.getType()).getNumElements() == width)
        return fragment;
      return vector::ShuffleOp::create(b, fragment, fragment,
                                       llvm::to_vector(llvm::seq<int64_t>(
                                           step * width, (step + 1) * width)));
    };
    SmallVector<Value> sums(adaptor.getAcc());
    if (op.getRowsAlike())
      for (size_t i = acc.grid()[1]; i < sums.size(); ++i)
        sums[i] = sums[i - acc.grid()[1]];
    // The contraction is outermost: consecutive instructions then write
    // different accumulators and do not wait for one another.
    for (int k = 0; k < a.grid()[1]; ++k)
      for (int64_t step = 0; step < a.elementsPerFragment() / widthA; ++step)
        for (int m = 0; m < acc.grid()[0]; ++m)
          for (int n = 0; n < acc.grid()[1]; ++n) {
            Value &sum = sums[m * acc.grid()[1] + n];
            sum = MmaOp::create(
                b, slice(adaptor.getA()[m * a.grid()[1] + k], widthA, step),
                slice(adaptor.getB()[k * bb.grid()[1] + n], widthB, step), sum,
                op.getInstAttr());
          }
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }
};

struct LowerToAccumulators : public FragmentPattern<ToAccumulatorsOp> {
  using FragmentPattern::FragmentPattern;

  LogicalResult check(ToAccumulatorsOp op,
                      ConversionPatternRewriter &) const override {
    const target::MatrixInstr *inst = instruction(op);
    if (!inst)
      return emitNoMatrixInstr([&] { return op.emitOpError(); },
                               lanes.getTarget(), op.getInst(), op.getFactor());
    if (layoutOf(op.getTile()).elementsPerFragment() !=
        inst->d.elementsPerFragment())
      return op.emitOpError() << "has fragments that '"
                              << op.getInst().getName() << "' does not sum";
    return success();
  }
  Value lowerFragment(ImplicitLocOpBuilder &b, ToAccumulatorsOp op,
                      Value fragment) const override {
    auto type = VectorType::get({instruction(op)->a.elementsPerFragment()},
                                op.getFactor());
    Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(type));
    return MmaOp::create(b, zeros, zeros, fragment, op.getInstAttr());
  }

private:
  const target::MatrixInstr *instruction(ToAccumulatorsOp op) const {
    return lookupMatrixInstr(lanes.getTarget(), op.getInst(), op.getFactor());
  }
};

struct LowerToVectors : public ElementPattern<ToVectorsOp> {
  using ElementPattern::ElementPattern;

  Value lowerElement(ImplicitLocOpBuilder &b, Value value) const override {
    return passVectorRegister(b, value, /*hasSideEffects=*/false);
  }
};

struct LowerPin : public FragmentPattern<PinOp> {
  using FragmentPattern::FragmentPattern;

  LogicalResult check(PinOp op, ConversionPatternRewriter &) const override {
    if (bitsOf(fragmentType(op.getType())) % kRegisterBits != 0)
      return op.emitOpError("takes tiles of whole registers; a unit of this "
                            "layout gives a lane ")
             << bitsOf(fragmentType(op.getType())) << " bits";
    return success();
  }
  Value lowerFragment(ImplicitLocOpBuilder &b, PinOp op,
                      Value fragment) const override {
    auto pin = [&](Value words) {
      return mapElements(b, words, [&](Value word) {
        return passVectorRegister(b, word, /*hasSideEffects=*/true);
      });
    };
    auto type = cast<VectorType>(fragment.getType());
    if (op.getAccumulators()) {
      auto words =
          VectorType::get({bitsOf(type) / kRegisterBits}, b.getI32Type());
      Value pinned =
          passAccumulators(b, vector::BitCastOp::create(b, words, fragment));
      return vector::BitCastOp::create(b, type, pinned);
    }
    // A cast would come between what is pinned and its uses in other blocks,
    // and a vector that was put together from elements would be carried as
    // these.
    if (type.getElementTypeBitWidth() == kRegisterBits)
      return type.getNumElements() == 1
                 ? pin(fragment)
                 : passVectorRegister(b, fragment, /*hasSideEffects=*/true);
    auto words =
        VectorType::get({bitsOf(type) / kRegisterBits}, b.getI32Type());
    Value pinned = pin(vector::BitCastOp::create(b, words, fragment));
    return vector::BitCastOp::create(b, type, pinned);
  }

private:
  static constexpr int64_t kRegisterBits = 32;
  static int64_t bitsOf(VectorType type) {
    return type.getNumElements() * type.getElementTypeBitWidth();
  }
};

struct LowerReduce : public LanePattern<ReduceOp> {
  using LanePattern::LanePattern;

  Value combine(ImplicitLocOpBuilder &b, ReduceKind kind, Value x,
                Value y) const {
    if (kind == ReduceKind::Max)
      return arith::MaxNumFOp::create(b, x, y);
    // With a product that says so too, it is one instruction.
    return arith::AddFOp::create(b, x, y, arith::FastMathFlags::contract);
  }

  /// Adds the f16 elements of one column of a fragment to an f32 sum.
  Value addF16(ImplicitLocOpBuilder &b, Value fragment, ArrayRef<int64_t> regs,
               Value sum) const {
    if (!lanes.getTarget().has(target::kDot2F32F16) || regs.size() % 2 != 0) {
      for (int64_t reg : regs) {
        Value wide =
            arith::ExtFOp::create(b, b.getF32Type(), element(b, fragment, reg));
        sum = sum ? combine(b, ReduceKind::Sum, sum, wide) : wide;
      }
      return sum;
    }
    // v_dot2_f32_f16 with ones sums two elements exactly.
    auto pair = VectorType::get({2}, b.getF16Type());
    Value ones = arith::ConstantOp::create(
        b, DenseElementsAttr::get(pair, b.getF16FloatAttr(1.0).getValue()));
    Value noClamp = arith::ConstantIntOp::create(b, 0, 1).getResult();
    if (!sum)
      sum = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0f));
    for (size_t i = 0; i < regs.size(); i += 2) {
      Value both =
          vector::ShuffleOp::create(b, fragment, fragment, regs.slice(i, 2));
      sum = callIntrinsic(b, b.getF32Type(), "llvm.amdgcn.fdot2",
                          {both, ones, sum, noClamp});
    }
    return sum;
  }

  LogicalResult
  matchAndRewrite(ReduceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout from = layoutOf(op.getTile()), to = layoutOf(op.getResult());
    bool f16 = op.getTile().getType().getElementType().isF16();
    if (f16 && op.getKind() != ReduceKind::Sum)
      return op.emitOpError("reduces f16 by sum only");
    int64_t groups = op.getResult().getType().getDimSize(0);
    bool acrossLanes = groups == 1;
    SmallVector<int64_t> target = reducedRegisters(from);
    SmallVector<Value> fragments;
    for (int column = 0; column < from.grid()[1]; ++column) {
      SmallVector<Value> results;
      for (int64_t reg = 0; reg < to.elementsPerFragment(); ++reg) {
        SmallVector<int64_t> regs;
        for (int64_t source = 0; source < from.elementsPerFragment(); ++source)
          if (target[source] == reg)
            regs.push_back(source);
        // Two chains can be issued as one; a maximum takes three operands.
        bool twoChains = op.getKind() == ReduceKind::Sum &&
                         lanes.getTarget().has(target::kDualIssue);
        Value result, other;
        for (int row = 0; row < from.grid()[0]; ++row) {
          Value fragment = adaptor.getTile()[row * from.grid()[1] + column];
          if (f16) {
            result = addF16(b, fragment, regs, result);
            continue;
          }
          for (int64_t source : regs) {
            Value next = element(b, fragment, source);
            result = result ? combine(b, op.getKind(), result, next) : next;
            if (twoChains)
              std::swap(result, other);
          }
        }
        if (other)
          result = result ? combine(b, op.getKind(), result, other) : other;
        if (acrossLanes)
          for (int bit : from.rowLaneBits()) {
            auto [x, y] = lanes.exchangePair(rewriter, op, result, 1 << bit);
            result = combine(b, op.getKind(), x, y);
          }
        results.push_back(result);
      }
      fragments.push_back(vector::FromElementsOp::create(
          b, fragmentType(op.getResult().getType()), results));
    }
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }
};

struct LowerBroadcast : public LanePattern<BroadcastOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(BroadcastOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileLayout to = layoutOf(op.getResult());
    SmallVector<int64_t> source = reducedRegisters(to);
    SmallVector<Value> fragments;
    for (int fragment = 0; fragment < to.fragments(); ++fragment) {
      Value row = adaptor.getTile()[fragment % to.grid()[1]];
      fragments.push_back(
          vector::ShuffleOp::create(rewriter, op.getLoc(), row, row, source));
    }
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }
};

struct LowerMask : public LanePattern<MaskOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(MaskOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getTile());
    SmallVector<int64_t> limitOf = reducedRegisters(layout);
    Value laneRow = lanes.coordinate(op, layout, 0);
    Value minusInf = arith::ConstantOp::create(
        b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    auto isSeen = [&](int fragment, int reg) -> Value {
      const int64_t column = fragment % layout.grid()[1];
      Value row = lanes.i32(b, layout.fragmentOrigin(fragment)[0] +
                                   layout.map(reg, 0, 0)[0]);
      // Only a constant is left to compare with in each register.
      auto limit = [&](ValueRange limits) -> Value {
        return element(b, limits[column], limitOf[reg]);
      };
      auto relative = [&](ValueRange limits) -> Value {
        return arith::SubIOp::create(b, limit(limits), laneRow);
      };
      auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) {
        return arith::CmpIOp::create(b, predicate, x, y).getResult();
      };
      if (op.getBegin() && op.getEnd()) {
        // One comparison, since each holds a pair of scalar registers: how far
        // behind the beginning, as a number without sign.
        Value begin = relative(adaptor.getBegin());
        Value width = arith::MaxSIOp::create(
            b,
            arith::SubIOp::create(b, limit(adaptor.getEnd()),
                                  limit(adaptor.getBegin())),
            lanes.i32(b, 0));
        return compare(arith::CmpIPredicate::ult,
                       arith::SubIOp::create(b, row, begin), width);
      }
      if (op.getBegin())
        return compare(arith::CmpIPredicate::sge, row,
                       relative(adaptor.getBegin()));
      if (op.getEnd())
        return compare(arith::CmpIPredicate::slt, row,
                       relative(adaptor.getEnd()));
      return nullptr;
    };
    // On chips with two wait states between a comparison and the selection by
    // it, other comparisons fill these.
    const int together = lanes.getTarget().has(target::kLoadToLds128) ? 4 : 1;
    SmallVector<Value> seen;
    auto show = [&](int fragment, int reg) -> Value {
      Value score = element(b, adaptor.getTile()[fragment], reg);
      if (reg % together == 0) {
        seen.clear();
        int end = std::min(reg + together, layout.elementsPerFragment());
        for (int other = reg; other < end; ++other)
          seen.push_back(isSeen(fragment, other));
      }
      Value isShown = seen[reg % together];
      return isShown ? arith::SelectOp::create(b, isShown, score, minusInf)
                           .getResult()
                     : score;
    };
    rewriter.replaceOpWithMultiple(op, {makeFragments(b, op.getType(), show)});
    return success();
  }
};

/// Where each element lies along a dimension of its tile.
template <typename Op, int dimension>
struct LowerIndex : public LanePattern<Op> {
  using LanePattern<Op>::LanePattern;
  LogicalResult
  matchAndRewrite(Op op, typename LanePattern<Op>::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getResult());
    Value ofLane = this->lanes.coordinate(op, layout, dimension);
    auto number = [&](int fragment, int reg) -> Value {
      Value ofRegister =
          this->lanes.i32(b, layout.fragmentOrigin(fragment)[dimension] +
                                 layout.map(reg, 0, 0)[dimension]);
      return arith::AddIOp::create(b, ofLane, ofRegister);
    };
    rewriter.replaceOpWithMultiple(op,
                                   {makeFragments(b, op.getType(), number)});
    return success();
  }
};

struct LowerRound : public FragmentPattern<RoundOp> {
  using FragmentPattern::FragmentPattern;

  LogicalResult check(RoundOp op, ConversionPatternRewriter &) const override {
    VectorType type = fragmentType(op.getType());
    if (op.getMode() == Rounding::NearestAway &&
        (!type.getElementType().isBF16() || type.getNumElements() % 2 != 0))
      return op.emitOpError(
          "rounds ties away from zero for pairs of bf16 only");
    return success();
  }
  Value lowerFragment(ImplicitLocOpBuilder &b, RoundOp op,
                      Value fragment) const override {
    if (op.getMode() == Rounding::NearestAway)
      return roundAwayBf16(b, fragment);
    return arith::TruncFOp::create(b, fragmentType(op.getType()), fragment);
  }

private:
  /// Two f32 to two bf16, ties away from zero: adding half of the last place
  /// kept makes truncation round, and one permute takes both upper halves. Only
  /// a NaN carries from one into the other of an addition of 64 bits.
  Value roundAwayBf16(ImplicitLocOpBuilder &b, Value fragment) const {
    auto type = cast<VectorType>(fragment.getType());
    SmallVector<Value> words;
    for (int64_t index = 0; index < type.getNumElements(); index += 2) {
      auto half = [&](int64_t which) -> Value {
        Value bits = arith::BitcastOp::create(
            b, b.getI32Type(), element(b, fragment, index + which));
        return arith::AddIOp::create(b, bits, lanes.i32(b, 0x8000));
      };
      Value low, high;
      if (lanes.getTarget().has(target::kAddU64)) {
        auto pair = VectorType::get({2}, b.getI32Type());
        Value both = LLVM::BitcastOp::create(
            b, b.getI64Type(),
            vector::ShuffleOp::create(b, fragment, fragment,
                                      ArrayRef<int64_t>{index, index + 1}));
        Value halves = arith::ConstantIntOp::create(b, 0x800000008000, 64);
        both = LLVM::BitcastOp::create(
            b, pair, arith::AddIOp::create(b, both, halves));
        low = element(b, both, 0);
        high = element(b, both, 1);
      } else {
        low = half(0);
        high = half(1);
      }
      words.push_back(permuteBytes(b, high, low, 0x07060302));
    }
    Value packed = vector::FromElementsOp::create(
        b, VectorType::get({int64_t(words.size())}, b.getI32Type()), words);
    return vector::BitCastOp::create(
        b, VectorType::get({type.getNumElements()}, b.getBF16Type()), packed);
  }
};

struct LowerSaturate : public ElementPattern<SaturateOp> {
  using ElementPattern::ElementPattern;

  Value lowerElement(ImplicitLocOpBuilder &b, Value value) const override {
    auto f32 = [&](float constant) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(constant));
    };
    if (!lanes.getTarget().has(target::kClampsKeepNaN))
      return arith::MinimumFOp::create(b, value, f32(1.0f));
    // The backend makes this the `clamp` of the instruction before.
    Value zero = f32(0.0f), one = f32(1.0f);
    return callIntrinsic(b, b.getF32Type(), "llvm.amdgcn.fmed3",
                         {value, zero, one});
  }
};

struct LowerNegateIf : public FragmentPattern<NegateIfOp> {
  using FragmentPattern::FragmentPattern;

  LogicalResult check(NegateIfOp op,
                      ConversionPatternRewriter &) const override {
    if (layoutOf(op.getTile()).elementsPerFragment() % perWord(op) != 0)
      return op.emitOpError("changes the signs of pairs that a lane holds; a "
                            "unit of this layout gives it one element");
    return success();
  }
  Value lowerFragment(ImplicitLocOpBuilder &b, NegateIfOp op,
                      Value fragment) const override {
    Value signs = lanes.i32(b, perWord(op) == 2 ? 0x80008000 : 0x80000000),
          none = lanes.i32(b, 0);
    Value flip = arith::SelectOp::create(b, op.getFlag(), signs, none);
    auto type = cast<VectorType>(fragment.getType());
    auto words =
        VectorType::get({type.getNumElements() / perWord(op)}, b.getI32Type());
    Value bits = vector::BitCastOp::create(b, words, fragment);
    bits = arith::XOrIOp::create(b, bits,
                                 vector::BroadcastOp::create(b, words, flip));
    return vector::BitCastOp::create(b, type, bits);
  }

private:
  static int64_t perWord(NegateIfOp op) {
    return elementsOfWord(op.getType().getElementType());
  }
};

/// attn.cut: bits of what stays, in words where lanes hold pairs.
struct LowerCut : public LanePattern<CutOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(CutOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getTile());
    auto element = op.getTile().getType().getElementType();
    const int64_t bits = element.getIntOrFloatBitWidth(),
                  ofWord = elementsOfWord(element),
                  count = layout.elementsPerFragment();
    if (bits != 16 && bits != 32)
      return op.emitOpError()
             << "cuts elements of 16 or 32 bits, not " << element;
    if (count % ofWord != 0)
      return op.emitOpError("cuts words that a lane holds; a unit of this "
                            "layout gives it less");
    auto i32 = [&](int64_t value) { return lanes.i32(b, value); };
    // Those that are there from the lane's first on.
    Value first = lanes.coordinate(op, layout, 1);
    Value there = arith::SubIOp::create(b, op.getColumns(), first);
    // Whether the column is in the lane's first with so many more once more.
    auto isAgain = [&](int64_t more) -> Value {
      constexpr int64_t again = ViewOp::kColumnSeenAgain;
      if (!op.getAgain() || more > again || more + lastColumn(layout) < again)
        return nullptr;
      return arith::AndIOp::create(
          b,
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first,
                                i32(again - more)),
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, op.getAgain(),
                                i32(0)));
    };
    llvm::DenseMap<std::pair<int64_t, int64_t>, Value> masks;
    auto maskOf = [&](int64_t column, int64_t half) {
      Value &mask = masks[{column, half}];
      if (!mask) {
        const int64_t all = bits == 32 ? -1 : int32_t(0xffffu << 16 * half);
        Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                              there, i32(column));
        if (Value isSeen = isAgain(column))
          isThere = arith::AndIOp::create(
              b, isThere,
              arith::XOrIOp::create(b, isSeen,
                                    arith::ConstantIntOp::create(b, 1, 1)));
        mask = arith::SelectOp::create(b, isThere, i32(all), i32(0));
      }
      return mask;
    };
    auto words = VectorType::get({count / ofWord}, b.getI32Type());
    SmallVector<Value> results;
    for (auto [fragment, value] : llvm::enumerate(adaptor.getTile())) {
      SmallVector<Value> kept;
      for (int64_t word = 0; word != count / ofWord; ++word) {
        Value mask;
        for (int64_t half = 0; half != ofWord; ++half) {
          const int reg = int(word * ofWord + half);
          const int64_t column = layout.fragmentOrigin(int(fragment))[1] +
                                 layout.map(reg, 0, 0)[1];
          Value part = maskOf(column, half);
          mask = mask ? arith::OrIOp::create(b, mask, part).getResult() : part;
        }
        kept.push_back(mask);
      }
      Value cut =
          arith::AndIOp::create(b, vector::BitCastOp::create(b, words, value),
                                vector::FromElementsOp::create(b, words, kept));
      results.push_back(vector::BitCastOp::create(b, value.getType(), cut));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct LowerWaveAny : public LanePattern<WaveAnyOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(WaveAnyOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value any;
    for (Value fragment : adaptor.getTile())
      for (int64_t index = 0;
           index < cast<VectorType>(fragment.getType()).getNumElements();
           ++index) {
        Value next = element(b, fragment, index);
        any = any ? Value(arith::OrIOp::create(b, any, next)) : next;
      }
    IntegerType mask = b.getIntegerType(lanes.getTarget().waveSize);
    Value ballot = ROCDL::BallotOp::create(b, mask, any);
    Value none =
        arith::ConstantIntOp::create(b, 0, mask.getWidth()).getResult();
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::ne,
                                               ballot, none);
    return success();
  }
};

struct LowerIsLateWave : public LanePattern<IsLateWaveOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(IsLateWaveOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, lanes.isLateWave(b));
    return success();
  }
};

} // namespace

void fovea::populateComputeToLanesPatterns(TypeConverter &converter,
                                           RewritePatternSet &patterns,
                                           LaneContext &context) {
  patterns.add<LowerElementwise>(converter, patterns.getContext());
  patterns.add<LowerTranscendental<math::Exp2Op, ROCDL::ROCDLExp2>,
               LowerTranscendental<math::Log2Op, ROCDL::ROCDLLog>>(converter,
                                                                   context);
  patterns.add<LowerFunction<math::ExpOp, lowerExp>,
               LowerFunction<math::LogOp, lowerLog>,
               LowerFunction<math::SqrtOp, lowerIntrinsic<kSqrt>>,
               LowerFunction<math::FloorOp, lowerIntrinsic<kFloor>>,
               LowerFunction<math::CeilOp, lowerIntrinsic<kCeil>>,
               LowerFunction<math::TruncOp, lowerIntrinsic<kTrunc>>,
               LowerFunction<math::TanhOp, lowerTanh>>(converter, context);
  patterns.add<LowerConstant, LowerSplat, LowerTranspose, LowerDot,
               LowerToAccumulators, LowerToVectors, LowerPin, LowerReduce,
               LowerBroadcast, LowerMask, LowerIndex<RowIndexOp, 0>,
               LowerIndex<ColumnIndexOp, 1>, LowerRound, LowerSaturate,
               LowerNegateIf, LowerCut, LowerWaveAny, LowerIsLateWave>(
      converter, context);
}
