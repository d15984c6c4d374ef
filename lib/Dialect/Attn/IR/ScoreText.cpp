//===- ScoreText.cpp - the canonical text of score programs ---------------===//
//
// Upstream's folders first: constants are computed, x * 1 is x. Then each value
// has a digest of what it is, by which operands of commutative ops are sorted
// and equal values are one; the ops are those that a walk from the yield finds.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/ScoreText.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Of the form of the text. Another form gives all programs other digests, so
/// that packages have to be built again.
static constexpr llvm::StringLiteral kVersion = "1";

static constexpr llvm::StringLiteral kArgumentNames[] = {
    "x", "batch", "head", "query", "key", "seqlen_q", "seqlen_k"};
static_assert(std::size(kArgumentNames) == kScoreArguments);

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

/// Which operand an op takes, where they are equal, decides its derivative:
/// what moves them makes another program.
static bool hasOrder(Operation *op) {
  const ScoreOp *row = lookupScoreOp(op);
  return row && row->takesFirst;
}

/// Puts what the ops of a program come to, and is not dead, into `to`.
static void foldInto(Block &from, Region &to) {
  auto yield = cast<YieldOp>(from.getTerminator());
  OpBuilder b(yield.getContext());
  to.push_back(new Block);
  b.setInsertionPointToEnd(&to.front());
  IRMapping map;
  for (BlockArgument argument : from.getArguments())
    map.map(argument,
            to.front().addArgument(argument.getType(), argument.getLoc()));
  for (Operation &op : from.without_terminator()) {
    Operation *copy = b.clone(op, map);
    const bool isConstant = llvm::all_of(copy->getOperands(), [](Value value) {
      return matchPattern(value, m_Constant());
    });
    if (hasOrder(copy) && !isConstant)
      continue;
    // What folds in place may fold further.
    SmallVector<Value> folded;
    for (int round = 0; round != 4; ++round) {
      folded.clear();
      if (failed(b.tryFold(copy, folded)))
        folded.clear();
      if (folded.empty() || folded.front() != copy->getResult(0))
        break;
    }
    if (folded.empty() || folded.front() == copy->getResult(0))
      continue;
    map.map(op.getResults(), folded);
    copy->erase();
  }
  b.clone(*yield, map);
  if (yield.getSeen() && !seenOf(to)) // it is always true
    yieldOf(to)->eraseOperand(1);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(to.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// An op's name and what of its attributes counts; constants to the bit.
static std::string describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return text + " 0x" +
             llvm::utohexstr(number.getValue().bitcastToAPInt().getZExtValue(),
                             /*LowerCase=*/true, /*Width=*/8);
    APInt value = cast<IntegerAttr>(constant.getValue()).getValue();
    return text + " " + llvm::toString(value, 10, value.getBitWidth() > 1);
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    text += " " + stringifyCmpFPredicate(compare.getPredicate()).str();
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    text += " " + stringifyCmpIPredicate(compare.getPredicate()).str();
  for (NamedAttribute attribute : op->getAttrs()) {
    Attribute value = attribute.getValue();
    auto fast = dyn_cast<arith::FastMathFlagsAttr>(value);
    auto overflow = dyn_cast<arith::IntegerOverflowFlagsAttr>(value);
    if ((fast && fast.getValue() == arith::FastMathFlags::none) ||
        (overflow && overflow.getValue() == arith::IntegerOverflowFlags::none))
      continue;
    // A note of the writer's changes nothing.
    if (!op->getInherentAttr(attribute.getName()).value_or(nullptr) ||
        isa<arith::CmpFPredicateAttr, arith::CmpIPredicateAttr>(value))
      continue;
    text += " " + attribute.getName().str() + "=" + debugString(value);
  }
  return text;
}

namespace {
/// Numbers the values of a folded program.
class Writer {
public:
  explicit Writer(Region &program);
  void yield(YieldOp op);
  std::string take() { return std::move(text); }

private:
  struct Named {
    std::string digest; ///< of what it is; equal ones are one value
    std::string text;   ///< without its operands
    SmallVector<Value> operands;
  };
  void define(Value value);
  /// Its name in the text, empty: it has none yet.
  StringRef nameOf(Value value) const {
    auto at = names.find(values.at(value).digest);
    return at == names.end() ? StringRef() : StringRef(at->second);
  }

  llvm::DenseMap<Value, Named> values;
  llvm::StringMap<std::string> names; ///< by digest
  unsigned numbered = 0;
  std::string text;
};
} // namespace

static std::string sha256(StringRef text) {
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return std::string(hash.begin(), hash.end());
}

Writer::Writer(Region &program) {
  text = ("score " + kVersion).str();
  if (auto captures = capturesOf(program); !captures.empty())
    text += " captures(" + spec::toString(captures) + ")";
  Block &block = program.front();
  for (BlockArgument argument : block.getArguments()) {
    const unsigned number = argument.getArgNumber();
    std::string name = number < kScoreArguments
                           ? kArgumentNames[number].str()
                           : "c" + std::to_string(number - kScoreArguments);
    std::string digest = sha256(name);
    names[digest] = std::move(name);
    values[argument].digest = std::move(digest);
  }
  for (Operation &op : block.without_terminator()) {
    Named &made = values[op.getResult(0)];
    made.text = describe(&op);
    made.operands = llvm::to_vector(op.getOperands());
    if (op.hasTrait<OpTrait::IsCommutative>() && !hasOrder(&op))
      llvm::sort(made.operands, [&](Value a, Value b) {
        return values.at(a).digest < values.at(b).digest;
      });
    std::string whole = made.text;
    for (Value operand : made.operands)
      whole += values.at(operand).digest;
    whole += debugString(op.getResult(0).getType());
    made.digest = sha256(whole);
  }
}

/// Writes the lines of a value and of all that it is made of, in the order of a
/// depth-first walk. A program may be long: no recursion.
void Writer::define(Value value) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value last = open.back();
    if (!nameOf(last).empty()) {
      open.pop_back();
      continue;
    }
    const Named &made = values.at(last);
    auto next = llvm::find_if(
        made.operands, [&](Value operand) { return nameOf(operand).empty(); });
    if (next != made.operands.end()) {
      open.push_back(*next);
      continue;
    }
    std::string &name = names[made.digest];
    name = "%" + std::to_string(numbered++);
    text += "\n" + name + " = " + made.text;
    for (auto [number, operand] : llvm::enumerate(made.operands))
      text += (number ? ", " : " ") + nameOf(operand).str();
    text += " : " + debugString(last.getType());
    open.pop_back();
  }
}

void Writer::yield(YieldOp op) {
  for (Value value : op.getValues())
    define(value);
  text += "\nyield " + nameOf(op.getScore()).str();
  if (Value seen = op.getSeen())
    text += " seen " + nameOf(seen).str();
  for (Value derivative : op.getDerivatives())
    text += ", " + nameOf(derivative).str();
}

static std::string textOf(Block &program) {
  Region folded;
  foldInto(program, folded);
  Writer writer(folded);
  writer.yield(yieldOf(folded));
  return writer.take();
}

/// The text without derivatives that the rules give too, as they do once
/// attn-differentiate-scores has run.
static std::string withoutKnownDerivative(Region &program, std::string text) {
  auto backward = dyn_cast_or_null<BackwardOp>(program.getParentOp());
  ArrayRef<int32_t> gradients =
      backward ? backward.getGradientsOf() : ArrayRef<int32_t>();
  Region alone;
  IRMapping map;
  program.cloneInto(&alone, map);
  YieldOp yield = yieldOf(alone);
  const size_t derivatives = yield.getDerivatives().size();
  yield.getValuesMutable().erase(yield.getNumOperands() - derivatives,
                                 derivatives);
  std::string shorter = textOf(alone.front());
  // That there is none is no error here.
  ScopedDiagnosticHandler quiet(program.getContext(),
                                [](Diagnostic &) { return success(); });
  return succeeded(differentiate(alone, gradients)) &&
                 textOf(alone.front()) == text
             ? shorter
             : text;
}

ScoreText fovea::attn::canonicalScore(Region &program) {
  ScoreText result;
  result.text = textOf(program.front());
  if (!yieldOf(program).getDerivatives().empty())
    result.text = withoutKnownDerivative(program, std::move(result.text));
  result.digest = llvm::support::endian::read64be(sha256(result.text).data());
  return result;
}
