//===- ScoreProgram.cpp - what score programs are made of -----------------===//

#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

namespace {
using Values = ScoreOp::Values;

/// Scalar arithmetic that folds what is known.
class Scalars {
public:
  explicit Scalars(ImplicitLocOpBuilder &b) : b(b) {}

  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value)));
  }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return b.createOrFold<arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return b.createOrFold<arith::DivFOp>(x, y); }
  Value neg(Value x) { return b.createOrFold<arith::NegFOp>(x); }
  Value select(Value condition, Value x, Value y) {
    return b.createOrFold<arith::SelectOp>(condition, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return b.createOrFold<arith::CmpFOp>(predicate, x, y);
  }

private:
  ImplicitLocOpBuilder &b;
};
} // namespace

/// Of ops that are constant between their steps, or have no f32.
static void deriveNone(ImplicitLocOpBuilder &, Operation *, Value, Values) {}

static void deriveAdd(ImplicitLocOpBuilder &, Operation *, Value a, Values to) {
  to[0] = to[1] = a;
}
static void deriveSub(ImplicitLocOpBuilder &b, Operation *, Value a,
                      Values to) {
  to[0] = a;
  to[1] = Scalars(b).neg(a);
}
static void deriveMul(ImplicitLocOpBuilder &b, Operation *op, Value a,
                      Values to) {
  Scalars s(b);
  to[0] = s.mul(a, op->getOperand(1));
  to[1] = s.mul(a, op->getOperand(0));
}
static void deriveDiv(ImplicitLocOpBuilder &b, Operation *op, Value a,
                      Values to) {
  Scalars s(b);
  to[0] = s.div(a, op->getOperand(1));
  to[1] = s.neg(s.mul(to[0], op->getResult(0)));
}
static void deriveNeg(ImplicitLocOpBuilder &b, Operation *, Value a,
                      Values to) {
  to[0] = Scalars(b).neg(a);
}
static void deriveFma(ImplicitLocOpBuilder &b, Operation *op, Value a,
                      Values to) {
  deriveMul(b, op, a, to);
  to[2] = a;
}
static void deriveSelect(ImplicitLocOpBuilder &b, Operation *op, Value a,
                         Values to) {
  Scalars s(b);
  Value zero = s.constant(0);
  to[1] = s.select(op->getOperand(0), a, zero);
  to[2] = s.select(op->getOperand(0), zero, a);
}
/// Of the operand that was taken; of equal ones the first.
template <arith::CmpFPredicate isFirst>
static void deriveChoice(ImplicitLocOpBuilder &b, Operation *op, Value a,
                         Values to) {
  Scalars s(b);
  Value first = s.compare(isFirst, op->getOperand(0), op->getOperand(1));
  Value zero = s.constant(0);
  to[0] = s.select(first, a, zero);
  to[1] = s.select(first, zero, a);
}
/// The same where of a number and NaN the number is taken.
template <arith::CmpFPredicate isFirst>
static void deriveNumber(ImplicitLocOpBuilder &b, Operation *op, Value a,
                         Values to) {
  Scalars s(b);
  Value x = op->getOperand(0), y = op->getOperand(1), zero = s.constant(0);
  Value first = s.compare(isFirst, x, y);
  Value isNan = s.compare(arith::CmpFPredicate::UNO, y, y);
  to[0] = s.select(isNan, a, s.select(first, a, zero));
  to[1] = s.select(isNan, zero, s.select(first, zero, a));
}
static void deriveAbs(ImplicitLocOpBuilder &b, Operation *op, Value a,
                      Values to) {
  Scalars s(b);
  Value negative =
      s.compare(arith::CmpFPredicate::OLT, op->getOperand(0), s.constant(0));
  to[0] = s.select(negative, s.neg(a), a);
}
/// A function whose derivative is a factor times its result.
static void deriveExp(ImplicitLocOpBuilder &b, Operation *op, Value a,
                      Values to) {
  to[0] = Scalars(b).mul(a, op->getResult(0));
}
static constexpr double kLn2 = 0.693147180559945309417;
static void deriveExp2(ImplicitLocOpBuilder &b, Operation *op, Value a,
                       Values to) {
  Scalars s(b);
  to[0] = s.mul(a, s.mul(op->getResult(0), s.constant(kLn2)));
}
static void deriveLog(ImplicitLocOpBuilder &b, Operation *op, Value a,
                      Values to) {
  to[0] = Scalars(b).div(a, op->getOperand(0));
}
static void deriveLog2(ImplicitLocOpBuilder &b, Operation *op, Value a,
                       Values to) {
  Scalars s(b);
  to[0] = s.div(a, s.mul(op->getOperand(0), s.constant(kLn2)));
}
static void deriveSqrt(ImplicitLocOpBuilder &b, Operation *op, Value a,
                       Values to) {
  Scalars s(b);
  to[0] = s.div(s.mul(a, s.constant(0.5)), op->getResult(0));
}
static void deriveTanh(ImplicitLocOpBuilder &b, Operation *op, Value a,
                       Values to) {
  Scalars s(b);
  Value y = op->getResult(0);
  to[0] = s.mul(a, s.sub(s.constant(1), s.mul(y, y)));
}

//===----------------------------------------------------------------------===//
// Degrees
//===----------------------------------------------------------------------===//

/// Of 0 and the infinities, which a positive factor leaves as they are.
static constexpr int kAnyDegree = std::numeric_limits<int>::max();

using Degree = std::optional<int>;

static Degree commonDegree(int x, int y) {
  if (x == kAnyDegree || y == kAnyDegree)
    return std::min(x, y);
  return x == y ? Degree(x) : std::nullopt;
}
static int sumOfDegrees(int x, int y) {
  return x == kAnyDegree || y == kAnyDegree ? kAnyDegree : x + y;
}

static Degree degreeOfOne(ArrayRef<int> of) { return of[0]; }
static Degree degreeOfSum(ArrayRef<int> of) {
  return commonDegree(of[0], of[1]);
}
static Degree degreeOfProduct(ArrayRef<int> of) {
  return sumOfDegrees(of[0], of[1]);
}
static Degree degreeOfQuotient(ArrayRef<int> of) {
  if (of[1] == kAnyDegree)
    return std::nullopt;
  return sumOfDegrees(of[0], -of[1]);
}
static Degree degreeOfFma(ArrayRef<int> of) {
  return commonDegree(sumOfDegrees(of[0], of[1]), of[2]);
}
static Degree degreeOfSelect(ArrayRef<int> of) {
  return of[0] == 0 ? commonDegree(of[1], of[2]) : std::nullopt;
}

static constexpr ScoreOp kScoreOps[] = {
    {"arith.constant", deriveNone},
    {"attn.at", deriveNone},
    {"arith.addf", deriveAdd, degreeOfSum},
    {"arith.subf", deriveSub, degreeOfSum},
    {"arith.mulf", deriveMul, degreeOfProduct},
    {"arith.divf", deriveDiv, degreeOfQuotient},
    {"arith.negf", deriveNeg, degreeOfOne},
    {"arith.maximumf", deriveChoice<arith::CmpFPredicate::OGE>, degreeOfSum,
     /*takesFirst=*/true},
    {"arith.minimumf", deriveChoice<arith::CmpFPredicate::OLE>, degreeOfSum,
     /*takesFirst=*/true},
    {"arith.maxnumf", deriveNumber<arith::CmpFPredicate::OGE>, degreeOfSum,
     /*takesFirst=*/true},
    {"arith.minnumf", deriveNumber<arith::CmpFPredicate::OLE>, degreeOfSum,
     /*takesFirst=*/true},
    {"arith.select", deriveSelect, degreeOfSelect},
    {"arith.cmpf", deriveNone},
    {"arith.cmpi", deriveNone},
    {"arith.addi", deriveNone},
    {"arith.subi", deriveNone},
    {"arith.muli", deriveNone},
    {"arith.divsi", deriveNone},
    {"arith.divui", deriveNone},
    {"arith.remsi", deriveNone},
    {"arith.remui", deriveNone},
    {"arith.maxsi", deriveNone},
    {"arith.minsi", deriveNone},
    {"arith.maxui", deriveNone},
    {"arith.minui", deriveNone},
    {"arith.andi", deriveNone},
    {"arith.ori", deriveNone},
    {"arith.xori", deriveNone},
    {"arith.shli", deriveNone},
    {"arith.shrsi", deriveNone},
    {"arith.shrui", deriveNone},
    {"arith.extui", deriveNone},
    {"arith.sitofp", deriveNone},
    {"arith.uitofp", deriveNone},
    {"arith.fptosi", deriveNone},
    {"arith.bitcast", nullptr},
    {"math.absf", deriveAbs, degreeOfOne},
    {"math.ceil", deriveNone},
    {"math.floor", deriveNone},
    {"math.trunc", deriveNone},
    {"math.fma", deriveFma, degreeOfFma},
    {"math.exp", deriveExp},
    {"math.exp2", deriveExp2},
    {"math.log", deriveLog},
    {"math.log2", deriveLog2},
    {"math.sqrt", deriveSqrt},
    {"math.tanh", deriveTanh},
};

ArrayRef<ScoreOp> fovea::attn::allScoreOps() { return kScoreOps; }

const ScoreOp *fovea::attn::lookupScoreOp(Operation *op) {
  const auto *row = llvm::find_if(kScoreOps, [&](const ScoreOp &row) {
    return row.name == op->getName().getStringRef();
  });
  return row == std::end(kScoreOps) ? nullptr : row;
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

/// i1, i32 or f32.
static bool isScoreType(Type type) {
  return type.isF32() || type.isInteger(32) || type.isInteger(1);
}

/// Why `op` may not be in a program; empty: it may.
static std::string checkScoreOp(Operation &op) {
  if (op.getNumRegions() != 0)
    return "has regions, and a program is a straight line; use arith.select, "
           "or "
           "part of the visibility";
  if (!lookupScoreOp(&op))
    return "is none of " + llvm::join(llvm::map_range(kScoreOps,
                                                      [](const ScoreOp &row) {
                                                        return row.name.str();
                                                      }),
                                      ", ");
  for (Value value : op.getResults())
    if (!isScoreType(value.getType()))
      return "gives " + debugString(value.getType()) +
             "; values are i1, i32 or f32";
  return "";
}

LogicalResult AtOp::inferReturnTypes(MLIRContext *context,
                                     std::optional<Location>, Adaptor adaptor,
                                     SmallVectorImpl<Type> &types) {
  auto tensor = dyn_cast<MemRefType>(adaptor.getTensor().getType());
  if (!tensor)
    return failure();
  Type element = tensor.getElementType();
  types.push_back(isa<FloatType>(element) ? Float32Type::get(context)
                                          : element);
  return success();
}

LogicalResult AtOp::verify() {
  if (!isa_and_nonnull<AttentionOpInterface, FunctionOpInterface>(
          getOperation()->getParentOp()))
    return emitOpError("stands in a score program alone");
  const int64_t rank = getTensor().getType().getRank();
  if (int64_t(getIndices().size()) != rank)
    return emitOpError() << "has " << getIndices().size()
                         << " indices, and the tensor has rank " << rank;
  if (!isa<BlockArgument>(getTensor()))
    return emitOpError("reads a tensor that is no argument of the program");
  return success();
}

/// (C13)
static LogicalResult verifyCaptures(Operation *op, TypeRange captures) {
  if (captures.size() > spec::kMaxCaptures)
    return op->emitOpError()
           << "(C13) captures " << captures.size()
           << " values; there are at most " << spec::kMaxCaptures;
  for (auto [number, type] : llvm::enumerate(captures)) {
    auto tensor = dyn_cast<MemRefType>(type);
    if (!tensor)
      continue;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(tensor.getStridesAndOffset(strides, offset)) || offset != 0 ||
        tensor.getMemorySpace() || llvm::any_of(strides, [](int64_t stride) {
          return !ShapedType::isDynamic(stride) && stride < 0;
        }))
      return op->emitOpError()
             << "(C13) capture " << number
             << " must have a strided layout without an offset or negative "
                "strides, in the default memory space, found "
             << tensor;
  }
  return success();
}

LogicalResult fovea::attn::verifyScoreProgram(Operation *op, Region &program,
                                              TypeRange captures,
                                              unsigned derivatives) {
  if (program.empty()) {
    if (!captures.empty())
      return op->emitOpError("(C13) captures values and has no score program "
                             "that reads them; take them out");
    return success();
  }
  if (failed(verifyCaptures(op, captures)))
    return failure();
  if (!program.hasOneBlock())
    return op->emitOpError("(C10) its score program has several blocks, and a "
                           "program is a straight line");
  Block &block = program.front();
  TypeRange types = block.getArgumentTypes();
  bool fits = types.size() >= kScoreArguments;
  for (auto [number, type] : llvm::enumerate(types.take_front(kScoreArguments)))
    fits &= number == 0 ? type.isF32() : type.isInteger(32);
  if (!fits)
    return op->emitOpError(
               "(C10) its score program takes the score (f32) and batch, head, "
               "query, key, seqlen_q and seqlen_k (i32), then what is "
               "captured, found (")
           << types << ")";
  if (types.drop_front(kScoreArguments) != captures)
    return op->emitOpError("(C13) captures (")
           << captures
           << "), but the arguments of its score program behind the seventh "
              "are ("
           << types.drop_front(kScoreArguments) << ")";
  for (Operation &inner : block.without_terminator())
    if (std::string wrong = checkScoreOp(inner); !wrong.empty())
      return inner.emitOpError("(C11) ") << wrong;
  auto yield = dyn_cast_or_null<YieldOp>(
      block.mightHaveTerminator() ? block.getTerminator() : nullptr);
  if (!yield)
    return op->emitOpError("(C12) its score program must end with attn.yield");
  TypeRange given = yield.getValues().getTypes();
  const bool hasScore = !given.empty() && given.front().isF32();
  TypeRange behind;
  if (hasScore)
    behind = given.drop_front(yield.getSeen() ? 2 : 1);
  if (!hasScore || (!behind.empty() && behind.size() != derivatives) ||
      !llvm::all_of(behind, [](Type type) { return type.isF32(); }))
    return yield.emitOpError("(C12) gives the score (f32), then whether it is "
                             "seen (i1) or not that")
           << (derivatives > 1 ? ", then the score's derivative and that for "
                                 "each capture of gradients, or neither"
               : derivatives   ? ", then the score's derivative or not that"
                               : "")
           << ", found (" << given << ")";
  return success();
}

YieldOp fovea::attn::yieldOf(Region &program) {
  return cast<YieldOp>(program.front().getTerminator());
}

Value fovea::attn::seenOf(Region &program) {
  Value seen = yieldOf(program).getSeen();
  return seen && !matchPattern(seen, m_One()) ? seen : Value();
}

AtOp fovea::attn::readOf(BlockArgument tensor) {
  for (Operation &op : *tensor.getOwner())
    if (auto at = dyn_cast<AtOp>(op); at && at.getTensor() == tensor)
      return at;
  return nullptr;
}

/// Whether all reads of a tensor are of one element, as CSE would find.
static bool isReadOnce(BlockArgument tensor) {
  if (range_size(tensor.getUses()) <= 1)
    return true;
  DenseMap<Value, Value> leaders;
  auto leaderOf = [&](Value value) {
    auto known = leaders.find(value);
    return known == leaders.end() ? value : known->second;
  };
  SmallVector<Operation *> distinct;
  AtOp first;
  for (Operation &op : tensor.getOwner()->without_terminator()) {
    auto *same = llvm::find_if(distinct, [&](Operation *other) {
      return OperationEquivalence::isEquivalentTo(
          &op, other,
          [&](Value a, Value b) { return success(leaderOf(a) == leaderOf(b)); },
          nullptr, OperationEquivalence::IgnoreLocations);
    });
    auto at = dyn_cast<AtOp>(op);
    if (same != distinct.end()) {
      leaders[op.getResult(0)] = (*same)->getResult(0);
      continue;
    }
    distinct.push_back(&op);
    if (!at || at.getTensor() != tensor)
      continue;
    if (first)
      return false;
    first = at;
  }
  return true;
}

LogicalResult fovea::attn::verifyGradients(BackwardOp op) {
  ArrayRef<int32_t> numbers = op.getGradientsOf();
  if (numbers.size() != op.getGradients().size())
    return op.emitOpError("(C16) has ")
           << op.getGradients().size() << " gradients of " << numbers.size()
           << " captures";
  int32_t last = -1;
  for (auto [index, number, gradient] :
       llvm::enumerate(numbers, op.getGradients())) {
    if (number <= last || number >= int32_t(op.getCaptures().size()))
      return op.emitOpError("(C16) has the gradient of capture ")
             << number << ", of " << op.getCaptures().size()
             << "; numbers rise from 0 on";
    last = number;
    Type type = op.getCaptures()[number].getType();
    auto tensor = dyn_cast<MemRefType>(type);
    Type element = tensor ? tensor.getElementType() : type;
    if (!isa<FloatType>(element))
      return op.emitOpError("(C16) has the gradient of capture ")
             << number << ", which is " << type
             << "; f32, f16 and bf16 have one";
    auto to = cast<MemRefType>(gradient.getType());
    const int64_t rank = tensor ? tensor.getRank() : 0;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (to.getRank() != rank ||
        failed(to.getStridesAndOffset(strides, offset)) || offset != 0 ||
        to.getMemorySpace() || llvm::any_of(strides, [](int64_t stride) {
          return !ShapedType::isDynamic(stride) && stride < 0;
        }))
      return op.emitOpError("(C16) has, for the gradient of capture ")
             << number << ", " << to << "; it must have rank " << rank
             << " and a strided layout without an offset or negative strides, "
                "in the default memory space";
    for (int64_t dim = 0; dim != rank; ++dim)
      if (!to.isDynamicDim(dim) && !tensor.isDynamicDim(dim) &&
          to.getDimSize(dim) != tensor.getDimSize(dim))
        return op.emitOpError("(C16) has ")
               << to << " for the gradient of capture " << number
               << ", which is " << tensor << "; extents are the capture's";
    if (isStoredGradient(gradient) &&
        (to.getElementType() != element ||
         !capturesOf(op.getScore())[number].hasElementOfEach()))
      return op.emitOpError("(C16) has ")
             << to << " for the gradient of capture " << number << ", " << type
             << "; a gradient of 16 bits is stored in the capture's type, of "
                "what batch, head, query and key index as they are; f32 is "
                "added to";
    BlockArgument argument =
        op.getScore().getArgument(kScoreArguments + unsigned(number));
    const OperandRange derivatives = yieldOf(op.getScore()).getDerivatives();
    if (tensor && argument.use_empty() &&
        derivatives.size() == 1 + numbers.size() &&
        !matchPattern(derivatives[1 + index], m_AnyZeroFloat()))
      return op.emitOpError("(C16) has the gradient of capture ")
             << number << ", which no attn.at reads; yield 0 for it";
    if (tensor && !isReadOnce(argument))
      return op.emitOpError("(C16) has the gradient of capture ")
             << number
             << ", which attn.at reads in several ways; capture it once for "
                "each";
  }
  return success();
}

bool fovea::attn::isStoredGradient(Value gradient) {
  return !cast<MemRefType>(gradient.getType()).getElementType().isF32();
}

static spec::CaptureElement elementOf(Type type) {
  for (const spec::CaptureElementInfo &row : spec::kCaptureElements)
    if (debugString(type) == row.name)
      return row.element;
  llvm_unreachable("all types of captures have a row");
}

/// The CaptureIndex that `index` is; 0: none.
static uint8_t roleOf(Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  switch (argument ? ScoreArgument(argument.getArgNumber())
                   : ScoreArgument::Score) {
  case ScoreArgument::Batch:
    return spec::kByBatch;
  case ScoreArgument::Head:
    return spec::kByHead;
  case ScoreArgument::Query:
    return spec::kByQuery;
  case ScoreArgument::Key:
    return spec::kByKey;
  default:
    return 0;
  }
}

std::vector<spec::CaptureSpec> fovea::attn::capturesOf(Region &program) {
  std::vector<spec::CaptureSpec> captures;
  if (program.empty())
    return captures;
  for (BlockArgument argument :
       program.getArguments().drop_front(kScoreArguments)) {
    spec::CaptureSpec &capture = captures.emplace_back();
    auto tensor = dyn_cast<MemRefType>(argument.getType());
    capture.element =
        elementOf(tensor ? tensor.getElementType() : argument.getType());
    if (!tensor)
      continue;
    capture.dims.resize(tensor.getRank());
    capture.dims.back().isUnit = tensor.getStridesAndOffset().first.back() == 1;
    for (Operation *user : argument.getUsers())
      for (auto [dim, index] :
           llvm::zip_equal(capture.dims, cast<AtOp>(user).getIndices()))
        dim.indices |= roleOf(index);
  }
  return captures;
}

bool fovea::attn::commutesWithScaling(Region &program) {
  Block &block = program.front();
  DenseMap<Value, Degree> degrees;
  for (BlockArgument argument : block.getArguments())
    degrees[argument] =
        argument.getArgNumber() == unsigned(ScoreArgument::Score) ? 1 : 0;
  for (Operation &op : block.without_terminator()) {
    Degree &degree = degrees[op.getResult(0)];
    if (matchPattern(&op, m_AnyZeroFloat()) ||
        matchPattern(&op, m_PosInfFloat()) ||
        matchPattern(&op, m_NegInfFloat())) {
      degree = kAnyDegree;
      continue;
    }
    SmallVector<int> of;
    for (Value operand : op.getOperands())
      if (Degree known = degrees.lookup(operand))
        of.push_back(*known);
    if (of.size() != op.getNumOperands())
      continue;
    if (ScoreOp::DegreeOf rule = lookupScoreOp(&op)->degree)
      degree = rule(of);
    else if (llvm::all_of(of, [](int degree) { return degree == 0; }))
      degree = 0;
  }
  Value seen = seenOf(program);
  return degrees.lookup(yieldOf(program).getScore()) == 1 &&
         (!seen || degrees.lookup(seen) == 0);
}

//===----------------------------------------------------------------------===//
// Reverse mode
//===----------------------------------------------------------------------===//

/// What a program gets of a capture: the scalar, or elements.
static SmallVector<Value> valuesOf(BlockArgument capture) {
  if (!isa<MemRefType>(capture.getType()))
    return {capture};
  return llvm::map_to_vector(capture.getUsers(), [](Operation *at) -> Value {
    return cast<AtOp>(at).getElement();
  });
}

LogicalResult fovea::attn::differentiate(Region &program,
                                         ArrayRef<int32_t> gradients) {
  Block &block = program.front();
  YieldOp yield = yieldOf(program);
  if (!yield.getDerivatives().empty())
    return success();
  Value score = block.getArgument(unsigned(ScoreArgument::Score));
  SmallVector<SmallVector<Value>> wanted = {{score}};
  for (int32_t number : gradients)
    wanted.push_back(
        valuesOf(block.getArgument(kScoreArguments + unsigned(number))));
  llvm::SmallDenseSet<Value> depends;
  for (const SmallVector<Value> &values : wanted)
    depends.insert(values.begin(), values.end());
  for (Operation &op : block.without_terminator())
    if (llvm::any_of(op.getOperands(),
                     [&](Value value) { return depends.contains(value); }))
      depends.insert(op.result_begin(), op.result_end());

  ImplicitLocOpBuilder b(yield.getLoc(), yield);
  Scalars scalars(b);
  DenseMap<Value, Value> adjoints;
  // What is not seen has no gradient: kernels see to that.
  adjoints[yield.getScore()] = scalars.constant(1);
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (op.getNumResults() == 1 && depends.contains(op.getResult(0)))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    Value adjoint = adjoints.lookup(op->getResult(0));
    if (!adjoint)
      continue;
    const ScoreOp *row = lookupScoreOp(op);
    if (!row->derive)
      return op->emitOpError(
          "has no derivative, and the score depends on it; give attn.yield of "
          "attn.backward the derivative behind the score");
    SmallVector<Value> terms(op->getNumOperands());
    b.setLoc(op->getLoc());
    row->derive(b, op, adjoint, terms);
    for (auto [operand, term] : llvm::zip_equal(op->getOperands(), terms)) {
      if (!term || !depends.contains(operand))
        continue;
      Value &sum = adjoints[operand];
      sum = sum ? scalars.add(sum, term) : term;
    }
  }
  b.setLoc(yield.getLoc());
  for (const SmallVector<Value> &values : wanted) {
    Value derivative;
    for (Value value : values)
      if (Value part = adjoints.lookup(value))
        derivative = derivative ? scalars.add(derivative, part) : part;
    yield.getValuesMutable().append(derivative ? derivative
                                               : scalars.constant(0));
  }
  // Rules say what all operands add, those that nobody asks for too.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  return success();
}
