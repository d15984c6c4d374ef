//===- RecognizeSdpa.cpp - attention in linalg ----------------------------===//
//
// Asks what an element of each half-precision tensor is, and takes the tensor
// for attention's output if the answer is attention's formula. What it does not
// know leaves a program as it is.
//
//===----------------------------------------------------------------------===//

#include "ElementTerms.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNRECOGNIZESDPA
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

template <typename... Ops>
static bool isApply(const Term *term) {
  return term && term->kind == Term::Apply && isa<Ops...>(term->op);
}

/// Whether a term is such a sum, maximum or conjunction.
template <typename... Ops>
static bool isReduce(const Term *term) {
  return term && term->kind == Term::Reduce && isa<Ops...>(term->op);
}

static std::optional<APFloat> number(const Term *term) {
  if (!term || term->kind != Term::Constant)
    return std::nullopt;
  auto attr = dyn_cast<FloatAttr>(term->constant);
  return attr ? std::optional(attr.getValue()) : std::nullopt;
}
static bool isMinusInfinity(const Term *term) {
  std::optional<APFloat> value = number(term);
  return value && value->isInfinity() && value->isNegative();
}
static bool isZero(const Term *term) {
  std::optional<APFloat> value = number(term);
  return value && value->isZero();
}
static bool isTrue(const Term *term) {
  auto attr = term && term->kind == Term::Constant
                  ? dyn_cast<BoolAttr>(term->constant)
                  : nullptr;
  return attr && attr.getValue();
}

static bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

namespace {
/// What was found of one attention.
struct Sdpa {
  Value q, k, v;
  double scale = 1;
  /// Bounds of key less query; none: no bound.
  std::optional<int64_t> least, most;
  /// Of floating point what is added to scores, of i1 where keys are seen; by
  /// the last dimensions of the scores. Null: none.
  Value mask;
  /// Tensors of equal lengths: programs of dynamic ones may read one key for
  /// all where there is one key and several values.
  llvm::SetVector<std::pair<Value, Value>> equalLengths;
};

class Matcher {
public:
  explicit Matcher(OpResult output)
      : output(output), terms(output.getContext()) {}

  /// Whether `output` is attention's.
  bool match(Sdpa &found);
  /// Ops that computed it and are of no use beside.
  Terms::Ops core;
  Terms::Ops &others() { return terms.others; }

private:
  /// The output's index; of rank 3, where batches are no dimension, too.
  AffineExpr row(unsigned fromLast) { return dims[dims.size() - fromLast]; }
  AffineExpr heads() { return row(3); }

  /// Looks into a term whose ops other attentions may use.
  const Term *lookAside(const Term *term) {
    auto *before = std::exchange(terms.noted, &terms.others);
    term = terms.look(term);
    terms.noted = before;
    return term;
  }
  bool startsAt(const Term *reduce, bool (*is)(const Term *)) {
    return is(lookAside(reduce->terms[1]));
  }
  /// A sum from 0 in f32.
  bool isSum(const Term *term) {
    return isReduce<arith::AddFOp>(term) && term->type.isF32() &&
           startsAt(term, isZero);
  }

  /// The tensor whose rows are those of the queries or, `ofKeys`, of the keys'
  /// heads at `position`, and whose columns are `column`; null: none.
  Value tensorOf(const Term *term, bool ofKeys, AffineExpr position,
                 AffineExpr column);
  bool isAccess(const Term *term, bool ofKeys, AffineExpr position,
                AffineExpr column);
  /// The same behind factors, which go to `scale`.
  Value scaled(const Term *term, bool ofKeys, AffineExpr position,
               AffineExpr column, double &scale);
  /// A product with a number, which goes to `scale`; null: it is none.
  const Term *withoutFactor(const Term *term, double &scale);

  const Term *scoresOf(const Term *probability);
  /// Whether an element is of a tensor of the scores' shape in which dimensions
  /// may be 1 or missing.
  bool isMask(const Term *element);
  /// The farthest element of such a tensor that `term` is, behind copies; null:
  /// none. Goes on to what computes it.
  const Term *maskInMemory(const Term *&term);
  bool takeMask(const Term *memory, Sdpa &found);
  /// Of what is added to scores: 0 where the key is seen, or a mask in memory.
  bool addMask(const Term *added, Sdpa &found);
  bool matchMasked(const Term *score, Sdpa &found);
  /// An integer in terms of the dimensions; null: it is another.
  AffineExpr integerOf(const Term *term);
  /// Takes it that keys are seen where `condition` is `holds`.
  bool addCondition(const Term *condition, bool holds, Sdpa &found);
  bool addComputed(const Term *condition, bool holds, Sdpa &found);
  bool matchScores(const Term *score, Sdpa &found);
  bool haveFittingShapes(const Sdpa &found);
  /// Whether extents that were taken to be equal are lengths of q, k and v.
  bool takesEqualLengths(Sdpa &found);
  bool haveNoOtherUses();

  OpResult output;
  Terms terms;
  SmallVector<AffineExpr> dims;
  AffineExpr key, inner; ///< the dimensions that are summed over
};
} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

bool Matcher::isAccess(const Term *term, bool ofKeys, AffineExpr position,
                       AffineExpr column) {
  auto type = dyn_cast<RankedTensorType>(term->value.getType());
  if (!type || !isHalf(type.getElementType()) ||
      type.getRank() != int64_t(dims.size()))
    return false;
  ArrayRef<AffineExpr> indices = term->indices;
  if (indices.back() != column || indices[dims.size() - 2] != position ||
      (dims.size() == 4 && indices.front() != dims.front()))
    return false;
  AffineExpr head = indices[dims.size() - 3];
  int64_t headsQ = cast<ShapedType>(output.getType())
                       .getDimSize(int64_t(dims.size()) - 3),
          headsK = type.getDimSize(int64_t(dims.size()) - 3);
  if (head == heads())
    return headsQ == headsK;
  // A group of query heads shares a key head.
  return ofKeys && !ShapedType::isDynamic(headsQ) &&
         !ShapedType::isDynamic(headsK) && headsK > 0 && headsQ % headsK == 0 &&
         head == terms.simplify(heads().floorDiv(headsQ / headsK));
}

Value Matcher::tensorOf(const Term *term, bool ofKeys, AffineExpr position,
                        AffineExpr column) {
  auto *before = std::exchange(terms.noted, &terms.others);
  // The farthest, behind copies that repeat heads.
  Value found;
  while (term) {
    if (term->kind == Term::Element) {
      if (isAccess(term, ofKeys, position, column))
        found = term->value;
      term = terms.expand(term);
    } else if (isApply<arith::ExtFOp>(term)) {
      term = term->terms[0];
    } else {
      break;
    }
  }
  terms.noted = before;
  return found;
}

const Term *Matcher::withoutFactor(const Term *term, double &scale) {
  if (!isApply<arith::MulFOp, arith::DivFOp>(term) || !term->type.isF32())
    return nullptr;
  bool divides = isa<arith::DivFOp>(term->op);
  for (unsigned factor : {1, 0}) {
    if (divides && factor == 0)
      break;
    std::optional<APFloat> value = number(lookAside(term->terms[factor]));
    if (!value)
      continue;
    scale = divides ? scale / value->convertToDouble()
                    : scale * value->convertToDouble();
    return term->terms[1 - factor];
  }
  return nullptr;
}

Value Matcher::scaled(const Term *term, bool ofKeys, AffineExpr position,
                      AffineExpr column, double &scale) {
  auto *before = std::exchange(terms.noted, &terms.others);
  Value found;
  for (double product = scale; term && !found;) {
    found = tensorOf(term, ofKeys, position, column);
    if (found)
      scale = product;
    else
      term = withoutFactor(terms.look(term), product);
  }
  terms.noted = before;
  return found;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// The largest number that a maximum may start from.
static bool isLowest(const Term *term) {
  std::optional<APFloat> value = number(term);
  return value && value->isNegative() &&
         (value->isInfinity() || value->isLargest());
}

const Term *Matcher::scoresOf(const Term *term) {
  const Term *element = nullptr;
  // Kernels round probabilities too.
  for (;;) {
    if (!term)
      return nullptr;
    if (term->kind == Term::Element) {
      element = term;
      term = terms.expand(term);
      if (term)
        continue;
      auto softmax = element->value.getDefiningOp<linalg::SoftmaxOp>();
      if (!softmax || !element->type.isF32() ||
          element->indices[softmax.getDimension()] != key)
        return nullptr;
      return llvm::count(element->indices, key) == 1 &&
                     softmax.hasPureTensorSemantics()
                 ? terms.at(softmax.getInput(), element->indices)
                 : nullptr;
    }
    if (!isApply<arith::TruncFOp, arith::ExtFOp>(term))
      break;
    term = term->terms[0];
  }
  const Term *noneSeen = nullptr;
  if (isApply<arith::SelectOp>(term)) {
    if (!isZero(lookAside(term->terms[1])))
      return nullptr;
    noneSeen = term->terms[0];
    term = terms.look(term->terms[2]);
  }
  if (!isApply<arith::DivFOp>(term) || !term->type.isF32())
    return nullptr;
  unsigned keyDim = cast<AffineDimExpr>(key).getPosition();
  auto isOver = [&](const Term *reduce, const Term *inside) {
    return terms.extentOf(reduce->dim) == terms.extentOf(keyDim) &&
           terms.isSame(reduce->terms[0], inside, {{reduce->dim, keyDim}});
  };
  const Term *weight = term->terms[0], *sum = terms.look(term->terms[1]);
  if (!isSum(sum) || !isOver(sum, weight))
    return nullptr;
  const Term *exponential = terms.look(weight);
  if (!isApply<math::ExpOp>(exponential))
    return nullptr;
  const Term *difference = terms.look(exponential->terms[0]);
  if (!isApply<arith::SubFOp>(difference))
    return nullptr;
  const Term *score = difference->terms[0],
             *most = terms.look(difference->terms[1]);
  if (!isReduce<arith::MaximumFOp, arith::MaxNumFOp>(most) ||
      !startsAt(most, isLowest) || !isOver(most, score))
    return nullptr;
  if (!noneSeen)
    return score;

  // All scores are -infinity.
  noneSeen = terms.look(noneSeen);
  if (!isReduce<arith::AndIOp>(noneSeen) || !startsAt(noneSeen, isTrue))
    return nullptr;
  const Term *compared = terms.look(noneSeen->terms[0]);
  if (!isApply<arith::CmpFOp>(compared) ||
      cast<arith::CmpFOp>(compared->op).getPredicate() !=
          arith::CmpFPredicate::OEQ ||
      !isMinusInfinity(lookAside(compared->terms[1])))
    return nullptr;
  const Term *is = compared->terms[0];
  if (isApply<arith::ExtFOp>(is))
    is = is->terms[0];
  return terms.extentOf(noneSeen->dim) == terms.extentOf(keyDim) &&
                 terms.isSame(is, score, {{noneSeen->dim, keyDim}})
             ? score
             : nullptr;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

AffineExpr Matcher::integerOf(const Term *term) {
  term = lookAside(term);
  if (!term || term->kind == Term::Index)
    return term ? term->index : AffineExpr();
  if (isApply<arith::IndexCastOp, arith::ExtSIOp>(term))
    return integerOf(term->terms[0]);
  if (!isApply<arith::AddIOp, arith::SubIOp>(term))
    return {};
  AffineExpr lhs = integerOf(term->terms[0]), rhs = integerOf(term->terms[1]);
  if (!lhs || !rhs)
    return {};
  return isa<arith::AddIOp>(term->op) ? lhs + rhs : lhs - rhs;
}

bool Matcher::addCondition(const Term *condition, bool holds, Sdpa &found) {
  const Term *memory = maskInMemory(condition);
  if (Sdpa trial = found; addComputed(condition, holds, trial)) {
    found = trial;
    return true;
  }
  return holds && takeMask(memory, found);
}

bool Matcher::addComputed(const Term *condition, bool holds, Sdpa &found) {
  if (!condition)
    return false;
  if (holds && isTrue(condition))
    return true;
  if (holds && isApply<arith::AndIOp>(condition))
    return addCondition(condition->terms[0], holds, found) &&
           addCondition(condition->terms[1], holds, found);
  if (!isApply<arith::CmpIOp>(condition))
    return false;
  AffineExpr lhs = integerOf(condition->terms[0]),
             rhs = integerOf(condition->terms[1]);
  if (!lhs || !rhs)
    return false;
  arith::CmpIPredicate predicate =
      cast<arith::CmpIOp>(condition->op).getPredicate();
  if (!holds)
    predicate = arith::invertPredicate(predicate);

  // sign * (key - query) + shift, compared with 0.
  AffineExpr difference = terms.simplify(lhs - rhs);
  AffineExpr distance = key - row(2);
  for (int64_t sign : {1, -1}) {
    auto shift = dyn_cast<AffineConstantExpr>(
        terms.simplify(difference - distance * sign));
    if (!shift)
      continue;
    int64_t bound = -shift.getValue();
    bool isMost;
    switch (predicate) {
    case arith::CmpIPredicate::slt:
      --bound;
      [[fallthrough]];
    case arith::CmpIPredicate::sle:
      isMost = sign > 0;
      break;
    case arith::CmpIPredicate::sgt:
      ++bound;
      [[fallthrough]];
    case arith::CmpIPredicate::sge:
      isMost = sign < 0;
      break;
    default:
      return false;
    }
    bound *= sign;
    if (isMost)
      found.most = std::min(found.most.value_or(bound), bound);
    else
      found.least = std::max(found.least.value_or(bound), bound);
    return true;
  }
  return false;
}

bool Matcher::isMask(const Term *element) {
  auto type = dyn_cast<RankedTensorType>(element->value.getType());
  // Batch and heads, as the output has them, then queries and keys.
  SmallVector<AffineExpr> scores(dims);
  scores.back() = key;
  if (!type || type.getRank() == 0 || type.getRank() > int64_t(scores.size()))
    return false;
  Type stored = type.getElementType();
  if (!isHalf(stored) && !stored.isF32() && !stored.isInteger(1))
    return false;
  auto last = ArrayRef(scores).take_back(type.getRank());
  for (auto [index, dim, extent] :
       llvm::zip_equal(element->indices, last, type.getShape())) {
    const int64_t whole =
        terms.extentOf(cast<AffineDimExpr>(dim).getPosition());
    if (extent == 1 ? index != dim && index != terms.simplify(dim * 0)
                    : index != dim || extent != whole)
      return false;
  }
  return true;
}

const Term *Matcher::maskInMemory(const Term *&term) {
  auto *before = std::exchange(terms.noted, &terms.others);
  const Term *farthest = nullptr;
  while (term) {
    if (term->kind == Term::Element) {
      if (isMask(term))
        farthest = term;
      term = terms.expand(term);
    } else if (isApply<arith::ExtFOp>(term)) {
      term = term->terms[0];
    } else {
      break;
    }
  }
  terms.noted = before;
  return farthest;
}

bool Matcher::takeMask(const Term *memory, Sdpa &found) {
  if (!memory || found.mask)
    return false;
  found.mask = memory->value;
  return true;
}

bool Matcher::addMask(const Term *added, Sdpa &found) {
  const Term *memory = maskInMemory(added);
  if (isApply<arith::SelectOp>(added)) {
    const Term *then = lookAside(added->terms[1]),
               *otherwise = lookAside(added->terms[2]);
    const bool holds = isZero(then) && isMinusInfinity(otherwise);
    Sdpa trial = found;
    if ((holds || (isMinusInfinity(then) && isZero(otherwise))) &&
        addCondition(added->terms[0], holds, trial)) {
      found = trial;
      return true;
    }
  }
  return takeMask(memory, found);
}

/// Scores, and masks around them: which side of a sum is which shows when the
/// rest is scores or is not.
bool Matcher::matchMasked(const Term *score, Sdpa &found) {
  const Terms::Ops before = core;
  const Term *term = terms.look(score);
  const bool isSum = isApply<arith::AddFOp>(term);
  if (!isSum && !isApply<arith::SelectOp>(term))
    return matchScores(score, found);
  const Terms::Ops with = core;
  for (unsigned side : {0, 1}) {
    Sdpa trial = found;
    bool isMasked;
    if (isSum) {
      isMasked = addMask(term->terms[1 - side], trial);
    } else {
      isMasked = isMinusInfinity(lookAside(term->terms[2 - side])) &&
                 addCondition(term->terms[0], /*holds=*/side == 0, trial);
    }
    if (isMasked && matchMasked(term->terms[isSum ? side : side + 1], trial)) {
      found = trial;
      return true;
    }
    core = with;
  }
  core = before;
  return false;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

bool Matcher::matchScores(const Term *score, Sdpa &found) {
  const Term *term = terms.look(score);
  while (const Term *rest = withoutFactor(term, found.scale))
    term = terms.look(rest);
  if (!isSum(term))
    return false;
  inner = getAffineDimExpr(term->dim, output.getContext());
  const Term *product = term->terms[0];
  if (!isApply<arith::MulFOp>(product) || !product->type.isF32())
    return false;
  for (unsigned side : {0, 1}) {
    double scale = found.scale;
    found.q =
        scaled(product->terms[side], /*ofKeys=*/false, row(2), inner, scale);
    found.k =
        scaled(product->terms[1 - side], /*ofKeys=*/true, key, inner, scale);
    found.scale = scale;
    if (found.q && found.k)
      return std::isfinite(float(scale));
    found.scale = 1;
  }
  return false;
}

bool Matcher::haveFittingShapes(const Sdpa &found) {
  auto out = cast<RankedTensorType>(output.getType());
  auto q = cast<RankedTensorType>(found.q.getType()),
       k = cast<RankedTensorType>(found.k.getType()),
       v = cast<RankedTensorType>(found.v.getType());
  for (RankedTensorType type : {q, k, v})
    if (type.getElementType() != out.getElementType())
      return false;
  int64_t rank = out.getRank(), headDim = out.getDimSize(rank - 1);
  auto extent = [&](AffineExpr dim) {
    return terms.extentOf(cast<AffineDimExpr>(dim).getPosition());
  };
  if (ShapedType::isDynamic(headDim) || headDim < kMinHeadDim ||
      headDim > kMaxHeadDimV || headDim % kHeadDimStep != 0 ||
      extent(inner) != headDim || q != out.clone(q.getShape()) ||
      q.getDimSize(rank - 1) != headDim || k.getDimSize(rank - 1) != headDim ||
      v.getDimSize(rank - 1) != headDim || k.getShape() != v.getShape() ||
      k.getDimSize(rank - 2) != extent(key))
    return false;
  return q.getShape() == out.getShape() &&
         (rank == 3 || k.getDimSize(0) == out.getDimSize(0));
}

bool Matcher::takesEqualLengths(Sdpa &found) {
  // Of q, k or v.
  auto ownerOf = [&](Terms::Dim dim) -> Value {
    for (Value tensor : {found.q, found.k, found.v}) {
      const int64_t rank = cast<ShapedType>(tensor.getType()).getRank();
      if (Terms::areEqual(dim, Terms::Dim{tensor, rank - 2}))
        return tensor;
    }
    return {};
  };
  for (auto &[extent, other] : terms.taken) {
    const std::pair lengths(ownerOf(extent), ownerOf(other));
    if (!lengths.first || !lengths.second)
      return false;
    found.equalLengths.insert(lengths);
  }
  return true;
}

bool Matcher::haveNoOtherUses() {
  for (Operation *op : core)
    if (op != output.getOwner())
      for (Operation *user : op->getUsers()) // or its body reads elements
        if (!core.contains(user) && !core.contains(user->getParentOp()))
          return false;
  return llvm::all_of(output.getOwner()->getResults(), [&](OpResult result) {
    return result == output || result.use_empty();
  });
}

bool Matcher::match(Sdpa &found) {
  auto type = dyn_cast<RankedTensorType>(output.getType());
  if (!type || !isHalf(type.getElementType()) || type.getRank() < 3 ||
      type.getRank() > 4)
    return false;
  for (int64_t extent : type.getShape())
    dims.push_back(terms.newDim(extent));
  terms.noted = &core;
  const Term *rounded = terms.expand(terms.at(output, dims));
  if (!isApply<arith::TruncFOp>(rounded))
    return false;
  const Term *sum = terms.look(rounded->terms[0]);
  if (!isSum(sum) || !isApply<arith::MulFOp>(sum->terms[0]))
    return false;
  key = getAffineDimExpr(sum->dim, output.getContext());
  const Term *product = sum->terms[0], *score = nullptr;
  for (unsigned side : {1, 0}) {
    found.v = tensorOf(product->terms[side], /*ofKeys=*/true, key, row(1));
    if (found.v && (score = scoresOf(product->terms[1 - side])))
      break;
  }
  if (!score)
    return false;
  return matchMasked(score, found) && haveFittingShapes(found) &&
         takesEqualLengths(found) && haveNoOtherUses();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// The parts of visibility that bounds of key less query are, and their
/// operands; null: none are needed. Fails if there are no parts that say so.
static FailureOr<ArrayAttr> visibilityOf(ImplicitLocOpBuilder &b,
                                         const Sdpa &found,
                                         SmallVectorImpl<Value> &bounds) {
  if (!found.least && !found.most)
    return ArrayAttr();
  MLIRContext *context = b.getContext();
  auto q = cast<ShapedType>(found.q.getType()),
       k = cast<ShapedType>(found.k.getType());
  int64_t seqlenQ = q.getDimSize(q.getRank() - 2),
          seqlenK = k.getDimSize(k.getRank() - 2);
  if (!found.least && found.most == 0)
    return b.getArrayAttr(CausalAttr::get(context, attn::Alignment::TopLeft));
  if (!found.least && !ShapedType::isDynamic(seqlenQ) &&
      !ShapedType::isDynamic(seqlenK) && found.most == seqlenK - seqlenQ)
    return b.getArrayAttr(
        CausalAttr::get(context, attn::Alignment::BottomRight));
  constexpr int64_t none = std::numeric_limits<int32_t>::max();
  int64_t left = found.least ? -*found.least : none,
          right = found.most.value_or(none);
  if (left < 0 || right < 0 || left > none || right > none)
    return failure();
  for (int64_t bound : {left, right, int64_t(0)}) // both of the top left
    bounds.push_back(arith::ConstantIntOp::create(b, bound, 32));
  return b.getArrayAttr(WindowAttr::get(context));
}

static LogicalResult rewrite(OpResult output, const Sdpa &found) {
  ImplicitLocOpBuilder b(output.getLoc(), output.getOwner());
  SmallVector<Value> bounds;
  FailureOr<ArrayAttr> visibility = visibilityOf(b, found, bounds);
  if (failed(visibility))
    return failure();
  auto type = cast<RankedTensorType>(output.getType());
  SmallVector<ReassociationIndices> grouped = {{0, 1}, {2}, {3}};
  // Without a batch dimension there is one batch.
  auto withBatch = [&](Value tensor) -> Value {
    auto of = cast<RankedTensorType>(tensor.getType());
    if (of.getRank() == 4)
      return tensor;
    SmallVector<int64_t> shape(of.getShape());
    shape.insert(shape.begin(), 1);
    return tensor::ExpandShapeOp::create(b, of.clone(shape), tensor, grouped);
  };
  for (auto [tensor, other] : found.equalLengths) {
    auto length = [&](Value of) -> Value {
      return tensor::DimOp::create(
          b, of, cast<ShapedType>(of.getType()).getRank() - 2);
    };
    Value areEqual = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                           length(tensor), length(other));
    cf::AssertOp::create(b, areEqual,
                         "attention: lengths of q, k and v differ that must be "
                         "equal");
  }
  Value mask = found.mask;
  if (mask) {
    auto of = cast<RankedTensorType>(mask.getType());
    const int64_t more = 4 - of.getRank();
    SmallVector<int64_t> shape(more, 1);
    llvm::append_range(shape, of.getShape());
    SmallVector<ReassociationIndices> groups(of.getRank());
    for (int64_t dim = 0; dim != 4; ++dim)
      groups[std::max<int64_t>(dim - more, 0)].push_back(dim);
    if (more)
      mask = tensor::ExpandShapeOp::create(b, of.clone(shape), mask, groups);
  }
  Value init = cast<linalg::LinalgOp>(output.getOwner())
                   .getDpsInitOperand(output.getResultNumber())
                   ->get();
  Value scale =
      arith::ConstantOp::create(b, b.getF32FloatAttr(float(found.scale)));
  Value q = withBatch(found.q), k = withBatch(found.k), v = withBatch(found.v),
        out = withBatch(init);
  auto sdpa = SdpaOp::create(b, TypeRange{out.getType()}, q, k, v, mask, scale,
                             bounds, ValueRange{out}, *visibility);
  Value result = sdpa.getResult(0);
  if (type.getRank() == 3)
    result = tensor::CollapseShapeOp::create(b, type, result, grouped);
  output.replaceAllUsesWith(result);
  return success();
}

namespace {
struct RecognizeSdpa : fovea::attn::impl::AttnRecognizeSdpaBase<RecognizeSdpa> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    Terms::Ops unused;
    for (linalg::LinalgOp op : ops)
      for (OpResult result : op->getResults()) {
        Matcher matcher(result);
        Sdpa found;
        if (!matcher.match(found) || failed(rewrite(result, found)))
          continue;
        ++numRecognized;
        unused.insert(matcher.core.begin(), matcher.core.end());
        unused.insert(matcher.others().begin(), matcher.others().end());
      }
    eraseUnused(unused);
  }

  /// Erases what nobody uses any more, and what that has used.
  static void eraseUnused(Terms::Ops &ops) {
    while (!ops.empty()) {
      Operation *op = ops.pop_back_val();
      if (!isOpTriviallyDead(op))
        continue;
      // Bodies read elements of tensors that are no operands.
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *maker = operand.getDefiningOp())
            ops.insert(maker);
      });
      op->walk([&](Operation *inner) { ops.remove(inner); });
      op->erase();
    }
  }
};
} // namespace
