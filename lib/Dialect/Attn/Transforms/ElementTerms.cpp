//===- ElementTerms.cpp - what an element of a tensor is ------------------===//

#include "ElementTerms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace fovea::attn;

/// Of terms that nobody can share, comparing may take long.
static constexpr unsigned kMaxCompared = 10000;

const Term *Terms::keep(Term term) {
  kept.push_back(std::move(term));
  return &kept.back();
}

AffineExpr Terms::newDim(int64_t extent) {
  extents.push_back(extent);
  return getAffineDimExpr(extents.size() - 1, context);
}

const Term *Terms::at(Value tensor, ArrayRef<AffineExpr> indices) {
  Term term{Term::Element, getElementTypeOrSelf(tensor)};
  term.value = tensor;
  for (AffineExpr index : indices)
    term.indices.push_back(simplify(index));
  return keep(std::move(term));
}

const Term *Terms::constant(TypedAttr value) {
  if (auto integer = dyn_cast<IntegerAttr>(value);
      integer && !value.getType().isInteger(1)) {
    Term term{Term::Index, value.getType()};
    if (integer.getValue().getSignificantBits() > 64)
      return nullptr;
    term.index = getAffineConstantExpr(integer.getInt(), context);
    return keep(std::move(term));
  }
  Term term{Term::Constant, value.getType()};
  term.constant = value;
  return keep(std::move(term));
}

const Term *Terms::outside(Value scalar) {
  TypedAttr value;
  if (matchPattern(scalar, m_Constant(&value)))
    return constant(value);
  Term term{Term::Scalar, scalar.getType()};
  term.value = scalar;
  return keep(std::move(term));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

std::optional<int64_t> Terms::largest(AffineExpr index) const {
  if (auto number = dyn_cast<AffineConstantExpr>(index))
    return number.getValue() >= 0 ? std::optional(number.getValue())
                                  : std::nullopt;
  if (auto dim = dyn_cast<AffineDimExpr>(index)) {
    int64_t extent = extents[dim.getPosition()];
    return ShapedType::isDynamic(extent) ? std::nullopt
                                         : std::optional(extent - 1);
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> lhs = largest(binary.getLHS()),
                         rhs = largest(binary.getRHS());
  if (!lhs || !rhs)
    return std::nullopt;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return *lhs + *rhs;
  case AffineExprKind::Mul:
    return *lhs * *rhs;
  case AffineExprKind::FloorDiv:
    return *rhs ? std::optional(*lhs / *rhs) : std::nullopt;
  case AffineExprKind::Mod:
    return std::min(*lhs, *rhs - 1);
  default:
    return std::nullopt;
  }
}

AffineExpr Terms::simplify(AffineExpr index) const {
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary)
    return index;
  AffineExpr lhs = simplify(binary.getLHS()), rhs = simplify(binary.getRHS());
  AffineExpr result = getAffineBinaryOpExpr(binary.getKind(), lhs, rhs);
  result = simplifyAffineExpr(result, extents.size(), /*numSymbols=*/0);
  // Indices are at least 0 wherever `largest` knows a bound.
  binary = dyn_cast<AffineBinaryOpExpr>(result);
  if (!binary)
    return result;
  auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  std::optional<int64_t> most = largest(binary.getLHS());
  if (divisor && most && *most < divisor.getValue()) {
    if (binary.getKind() == AffineExprKind::Mod)
      return binary.getLHS();
    if (binary.getKind() == AffineExprKind::FloorDiv)
      return getAffineConstantExpr(0, context);
  }
  if (result.getKind() == AffineExprKind::Add)
    return simplify(binary.getLHS()) + simplify(binary.getRHS());
  return result;
}

using ValueBounds = ValueBoundsConstraintSet;

bool Terms::areEqual(Dim a, Dim b) {
  FailureOr<bool> known =
      ValueBounds::areEqual(ValueBounds::Variable(a.tensor, a.number),
                            ValueBounds::Variable(b.tensor, b.number));
  return succeeded(known) && *known;
}

bool Terms::areEqual(Value size, Dim dim) {
  auto type = cast<RankedTensorType>(dim.tensor.getType());
  if (!type.isDynamicDim(dim.number)) {
    APInt number;
    return matchPattern(size, m_ConstantInt(&number)) &&
           number == type.getDimSize(dim.number);
  }
  while (auto cast = size.getDefiningOp<arith::IndexCastOp>())
    size = cast.getIn();
  if (!size.getType().isIndex())
    return false;
  FailureOr<bool> known = ValueBounds::areEqual(
      size, ValueBounds::Variable(dim.tensor, dim.number));
  return succeeded(known) && *known;
}

//===----------------------------------------------------------------------===//
// Bodies of linalg ops
//===----------------------------------------------------------------------===//

/// Terms of the values of one op's body, in terms of its loops.
class Terms::Body {
public:
  Body(Terms &terms, linalg::LinalgOp op, ArrayRef<AffineExpr> loops,
       bool reduces)
      : terms(terms), op(op), loops(loops), reduces(reduces) {}

  /// Null: nothing that is known here.
  const Term *scalar(Value value);
  const Term *element(OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<AffineExpr> indices;
    for (AffineExpr index : map.getResults())
      indices.push_back(index.replaceDims(loops));
    return terms.at(operand.get(), indices);
  }

private:
  const Term *apply(Operation *inner);
  /// What indexes a dimension: an index, or one where the extent is not 1, in
  /// which case it is 0. Null: another.
  AffineExpr indexOf(const Term *term, Dim dim);

  Terms &terms;
  linalg::LinalgOp op;
  ArrayRef<AffineExpr> loops;
  bool reduces;
  llvm::SmallDenseMap<Value, const Term *> known;
};

const Term *Terms::Body::scalar(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == op.getBlock()) {
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    if (reduces && op.isDpsInit(&operand))
      return nullptr; // depends on the order
    return isa<TensorType>(operand.get().getType())
               ? element(operand)
               : terms.outside(operand.get());
  }
  Operation *inner = value.getDefiningOp();
  if (!inner || inner->getBlock() != op.getBlock())
    return terms.outside(value);
  auto [at, isNew] = known.try_emplace(value, nullptr);
  if (!isNew)
    return at->second;
  const Term *made = apply(inner);
  return known[value] = made;
}

AffineExpr Terms::Body::indexOf(const Term *term, Dim dim) {
  AffineExpr index = term->kind == Term::Index ? term->index : AffineExpr();
  bool isBroadcast = false;
  if (!index && term->kind == Term::Apply && isa<arith::SelectOp>(term->op)) {
    const Term *isOne = term->terms[0], *first = term->terms[1],
               *whole = term->terms[2];
    auto compare = isOne->kind == Term::Apply
                       ? dyn_cast<arith::CmpIOp>(isOne->op)
                       : nullptr;
    if (compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
        matchPattern(compare.getRhs(), m_One()) &&
        areEqual(compare.getLhs(), dim) && first->kind == Term::Index &&
        first->index == getAffineConstantExpr(0, terms.context) &&
        whole->kind == Term::Index) {
      index = whole->index;
      isBroadcast = true;
    }
  }
  if (!index ||
      !cast<ShapedType>(dim.tensor.getType()).isDynamicDim(dim.number))
    return index;
  // It is a loop of the dimension's extent: then no element is left out, and
  // where the extent is 1 the index is 0.
  OpOperand *init = op.getDpsInitOperand(0);
  for (auto [number, expr] :
       llvm::enumerate(op.getMatchingIndexingMap(init).getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || loops[loop.getPosition()] != index)
      continue;
    const Dim whole = {init->get(), int64_t(number)};
    if (!areEqual(dim, whole))
      terms.taken.push_back({dim, whole});
    return index;
  }
  return isBroadcast ? AffineExpr() : index;
}

const Term *Terms::Body::apply(Operation *inner) {
  if (inner->getNumResults() != 1 || inner->getNumRegions() != 0 ||
      !isMemoryEffectFree(inner))
    return nullptr;
  Term term{Term::Apply, inner->getResult(0).getType()};
  TypedAttr value;
  if (matchPattern(inner, m_Constant(&value)))
    return terms.constant(value);
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    term.kind = Term::Index;
    term.index = loops[index.getDim()];
    return terms.keep(std::move(term));
  }
  bool isIndex = true;
  // The tensor of tensor.extract is no scalar.
  auto extract = dyn_cast<tensor::ExtractOp>(inner);
  for (Value operand : extract ? ValueRange(extract.getIndices())
                               : ValueRange(inner->getOperands())) {
    const Term *of = scalar(operand);
    if (!of)
      return nullptr;
    isIndex &= of->kind == Term::Index;
    term.terms.push_back(of);
  }
  if (extract) {
    SmallVector<AffineExpr> indices;
    for (auto [number, index] : llvm::enumerate(term.terms)) {
      indices.push_back(indexOf(index, {extract.getTensor(), int64_t(number)}));
      if (!indices.back())
        return nullptr;
    }
    return terms.at(extract.getTensor(), indices);
  }
  if (isIndex) {
    auto index = [&](unsigned number) { return term.terms[number]->index; };
    AffineExpr made;
    if (isa<arith::IndexCastOp, arith::ExtSIOp>(inner))
      made = index(0);
    else if (isa<arith::AddIOp>(inner))
      made = index(0) + index(1);
    else if (isa<arith::SubIOp>(inner))
      made = index(0) - index(1);
    else if (isa<arith::MulIOp>(inner) &&
             llvm::any_of(term.terms, [](const Term *of) {
               return isa<AffineConstantExpr>(of->index);
             }))
      made = index(0) * index(1);
    if (made) {
      term.kind = Term::Index;
      term.index = made;
      return terms.keep(std::move(term));
    }
  }
  // Constants are written in f64 and rounded where they are used.
  if (isa<arith::TruncFOp, arith::ExtFOp>(inner) &&
      term.terms[0]->kind == Term::Constant) {
    APFloat number = cast<FloatAttr>(term.terms[0]->constant).getValue();
    bool inexact;
    number.convert(cast<FloatType>(term.type).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &inexact);
    return terms.constant(FloatAttr::get(term.type, number));
  }
  term.op = inner;
  return terms.keep(std::move(term));
}

const Term *Terms::expandLinalg(linalg::LinalgOp op, unsigned result,
                                ArrayRef<AffineExpr> indices) {
  if (!op.hasPureTensorSemantics())
    return nullptr;
  OpOperand *init = op.getDpsInitOperand(result);
  SmallVector<AffineExpr> loops(op.getNumLoops());
  for (auto [expr, index] :
       llvm::zip_equal(op.getMatchingIndexingMap(init).getResults(), indices)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (loops[dim.getPosition()])
        return nullptr;
      loops[dim.getPosition()] = index;
    } else if (!isa<AffineConstantExpr>(expr)) { // of an extent of 1
      return nullptr;
    }
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  std::optional<unsigned> reduced;
  for (auto [number, loop, kind] :
       llvm::enumerate(loops, op.getIteratorTypesArray())) {
    if (bool(loop) != (kind == utils::IteratorType::parallel))
      return nullptr;
    if (loop)
      continue;
    if (reduced)
      return nullptr;
    loop = newDim(ranges[number]);
    reduced = cast<AffineDimExpr>(loop).getPosition();
  }
  Value yielded = op.getBlock()->getTerminator()->getOperand(result);
  Body body(*this, op, loops, reduced.has_value());
  if (!reduced)
    return body.scalar(yielded);

  Value sum = op.getMatchingBlockArgument(init);
  Operation *combiner = yielded.getDefiningOp();
  if (!combiner || combiner->getBlock() != op.getBlock() ||
      combiner->getNumOperands() != 2 || combiner->getNumResults() != 1)
    return nullptr;
  unsigned at = combiner->getOperand(0) == sum ? 0 : 1;
  if (combiner->getOperand(at) != sum)
    return nullptr;
  Term term{Term::Reduce, yielded.getType()};
  term.op = combiner;
  term.dim = *reduced;
  term.terms = {body.scalar(combiner->getOperand(1 - at)), body.element(*init)};
  return term.terms[0] ? keep(std::move(term)) : nullptr;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

const Term *Terms::expandReshape(tensor::ReshapeOp op,
                                 ArrayRef<AffineExpr> indices) {
  auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto sizes = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  if (!source || !sizes || sizes.getElements().size() != indices.size())
    return nullptr;
  // Trailing dimensions stay as they are.
  size_t before = indices.size(), of = size_t(source.getRank());
  while (before && of &&
         areEqual(sizes.getElements()[before - 1],
                  {op.getSource(), int64_t(of) - 1}))
    --before, --of;
  AffineExpr rest = getAffineConstantExpr(0, context);
  int64_t elements = 1;
  for (size_t dim = 0; dim != before; ++dim) {
    APInt size;
    if (!matchPattern(sizes.getElements()[dim], m_ConstantInt(&size)))
      return nullptr;
    rest = rest * size.getSExtValue() + indices[dim];
    elements *= size.getSExtValue();
  }
  ArrayRef<int64_t> leading = source.getShape().take_front(of);
  if (llvm::any_of(leading, ShapedType::isDynamic) ||
      elements != ShapedType::getNumElements(leading) || elements == 0)
    return nullptr;
  SmallVector<AffineExpr> places(of);
  for (size_t dim = of; dim-- != 0;) {
    places[dim] = dim ? rest % leading[dim] : rest;
    rest = simplify(rest.floorDiv(leading[dim]));
  }
  llvm::append_range(places, indices.drop_front(before));
  return at(op.getSource(), places);
}

const Term *Terms::expand(const Term *element) {
  auto result = dyn_cast<OpResult>(element->value);
  if (!result)
    return nullptr;
  Operation *op = result.getOwner();
  noted->insert(op);
  ArrayRef<AffineExpr> indices = element->indices;
  DenseElementsAttr splat;
  if (matchPattern(result, m_Constant(&splat)))
    return splat.isSplat() ? constant(splat.getSplatValue<TypedAttr>())
                           : nullptr;
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return expandLinalg(linalg, result.getResultNumber(), indices);
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return at(cast.getSource(), indices);
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    return expandReshape(reshape, indices);

  SmallVector<AffineExpr> source;
  if (auto expanded = dyn_cast<tensor::ExpandShapeOp>(op)) {
    ArrayRef<int64_t> shape = expanded.getResultType().getShape();
    for (const ReassociationIndices &group :
         expanded.getReassociationIndices()) {
      AffineExpr index = getAffineConstantExpr(0, context);
      bool isFirst = true; // of an extent other than 1
      for (int64_t dim : group) {
        if (shape[dim] == 1)
          continue;
        if (!isFirst && ShapedType::isDynamic(shape[dim]))
          return nullptr;
        index = isFirst ? indices[dim] : index * shape[dim] + indices[dim];
        isFirst = false;
      }
      source.push_back(index);
    }
    return at(expanded.getSrc(), source);
  }
  if (auto collapsed = dyn_cast<tensor::CollapseShapeOp>(op)) {
    ArrayRef<int64_t> shape = collapsed.getSrcType().getShape();
    source.resize(shape.size());
    for (auto [index, group] :
         llvm::zip_equal(indices, collapsed.getReassociationIndices())) {
      AffineExpr rest = index;
      for (int64_t dim : llvm::reverse(ArrayRef(group).drop_front())) {
        if (ShapedType::isDynamic(shape[dim]) || shape[dim] == 0)
          return nullptr;
        source[dim] = rest % shape[dim];
        rest = simplify(rest.floorDiv(shape[dim]));
      }
      source[group.front()] = rest;
    }
    return at(collapsed.getSrc(), source);
  }
  return nullptr;
}

const Term *Terms::look(const Term *term) {
  while (term && term->kind == Term::Element)
    term = expand(term);
  return term;
}

bool Terms::isSame(const Term *a, const Term *b, const Renamed &renamed) {
  if (++compared > kMaxCompared || !a || !b)
    return false;
  auto rename = [&](AffineExpr index) {
    llvm::DenseMap<AffineExpr, AffineExpr> names;
    for (auto [from, to] : renamed)
      names[getAffineDimExpr(from, context)] = getAffineDimExpr(to, context);
    return simplify(index.replace(names));
  };
  if (a->kind == Term::Element && b->kind == Term::Element &&
      a->value == b->value &&
      llvm::equal(llvm::map_range(a->indices, rename), b->indices))
    return true;
  if (a->kind == Term::Element || b->kind == Term::Element)
    return isSame(look(a), look(b), renamed);
  if (a->kind != b->kind || a->type != b->type)
    return false;
  switch (a->kind) {
  case Term::Constant:
    return a->constant == b->constant;
  case Term::Index:
    return rename(a->index) == simplify(b->index);
  case Term::Scalar:
    return a->value == b->value;
  case Term::Reduce:
  case Term::Apply: {
    if (a->op->getName() != b->op->getName() ||
        a->op->getAttrDictionary() != b->op->getAttrDictionary())
      return false;
    Renamed inside = renamed;
    if (a->kind == Term::Reduce) {
      if (extents[a->dim] != extents[b->dim])
        return false;
      inside.push_back({a->dim, b->dim});
    }
    for (auto [x, y] : llvm::zip_equal(a->terms, b->terms))
      if (!isSame(x, y, inside))
        return false;
    return true;
  }
  case Term::Element:
    break; // both looked into
  }
  return false;
}
