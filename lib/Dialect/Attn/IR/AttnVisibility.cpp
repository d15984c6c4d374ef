//===- AttnVisibility.cpp - parts of what a query sees --------------------===//
//
// Each part is a band: row i sees keys [i + first, i + end). What the interface
// asks for follows from the two numbers.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/IR/ScoreText.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

/// Both ends are i32 in [-seqlen_q, seqlen_k]; `first` may be missing. A sum of
/// a row or key and an end may leave 32 bits, but what lies past the sequence
/// is past it however far: sums stop there. (Saturating additions would be
/// vector instructions, and what they make would lie in vector registers.)
class BandEmitter {
public:
  /// \param isSmall  no sum leaves 32 bits
  BandEmitter(VisibilityContext &context, Value first, Value end, bool isSmall)
      : context(context), b(context.b), first(first), end(end),
        isSmall(isSmall) {}

  SeenBounds keysOfRows(Value from, Value last) {
    Value length = context.seqlenK;
    SeenBounds seen;
    seen.any.end = add(last, end, length);
    seen.all.end = add(from, end, length);
    if (first) {
      seen.any.begin = add(from, first, length);
      seen.all.begin = add(last, first, length);
    }
    return seen;
  }

  /// Row i sees key j if j - end < i <= j - first.
  SeenBounds rowsOfKeys(Value from, Value last) {
    Value length = context.seqlenQ;
    SeenBounds seen;
    Value afterFrom = plus(from, 1), afterLast = plus(last, 1);
    seen.any.begin = add(afterFrom, negated(end), length);
    seen.all.begin = add(afterLast, negated(end), length);
    if (first) {
      seen.any.end = add(afterLast, negated(first), length);
      seen.all.end = add(afterFrom, negated(first), length);
    }
    return seen;
  }

  Bounds keysOfEachRow(Value from, Value origin, Value places) {
    Value length = context.seqlenK;
    return {first ? columns(add(from, first, length), origin, places) : Value(),
            columns(add(from, end, length), origin, places)};
  }

  Bounds rowsOfEachKey(Value from, Value origin, Value places) {
    Value after = plus(from, 1), length = context.seqlenQ;
    return {columns(add(after, negated(end), length), origin, places),
            first ? columns(add(after, negated(first), length), origin, places)
                  : Value()};
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32).getResult();
  }
  Value plus(Value x, int64_t y) {
    return arith::AddIOp::create(b, x, constant(y));
  }
  Value negated(Value x) { return arith::SubIOp::create(b, constant(0), x); }
  /// x + y, or `most` if that is less; x and `most` are not negative.
  Value add(Value x, Value y, Value most) {
    if (!isSmall)
      y = arith::MinSIOp::create(b, y, arith::SubIOp::create(b, most, x));
    return arith::AddIOp::create(b, x, y);
  }
  /// limit + p - origin for each place p. What lies a tile's width before the
  /// first row or key might as well lie there however far, so that nothing
  /// overflows.
  Value columns(Value limit, Value origin, Value places) {
    auto type = cast<RankedTensorType>(places.getType());
    if (!isSmall)
      limit = arith::MaxSIOp::create(b, limit, constant(-type.getDimSize(1)));
    limit = arith::SubIOp::create(b, limit, origin);
    return arith::AddIOp::create(b, places,
                                 tensor::SplatOp::create(b, limit, type));
  }

  VisibilityContext &context;
  ImplicitLocOpBuilder &b;
  Value first, end;
  bool isSmall;
};

} // namespace

//===----------------------------------------------------------------------===//
// CausalAttr
//===----------------------------------------------------------------------===//

static BandEmitter emitBand(CausalAttr attr, VisibilityContext &context,
                            ValueRange) {
  ImplicitLocOpBuilder &b = context.b;
  Value end = arith::ConstantIntOp::create(b, 1, 32);
  if (attr.getAlignment() == fovea::attn::Alignment::BottomRight)
    end = arith::AddIOp::create(
        b, arith::SubIOp::create(b, context.seqlenK, context.seqlenQ), end);
  return BandEmitter(context, /*first=*/nullptr, end, /*isSmall=*/true);
}

bool CausalAttr::describe(ProblemKey &key) const {
  if (key.mask != MaskKind::None || key.takesWindow())
    return false;
  key.mask = getAlignment() == fovea::attn::Alignment::TopLeft
                 ? MaskKind::CausalTopLeft
                 : MaskKind::CausalBottomRight;
  return true;
}

//===----------------------------------------------------------------------===//
// WindowAttr
//===----------------------------------------------------------------------===//

static BandEmitter emitBand(WindowAttr, VisibilityContext &context,
                            ValueRange bounds) {
  ImplicitLocOpBuilder &b = context.b;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  };
  Value zero = constant(0), one = constant(1);
  Value seqlenQ = context.seqlenQ, seqlenK = context.seqlenK;
  Value corner = sub(seqlenK, seqlenQ);
  auto diagonal = [&](int32_t bit) -> Value {
    Value isSet = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, bounds[2], constant(bit)), zero);
    return arith::SelectOp::create(b, isSet, corner, zero);
  };
  auto clamp = [&](Value value, Value least, Value most) -> Value {
    return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, value, least),
                                  most);
  };
  // The sides are clamped before they are added, to what clamps the sums to
  // [-seqlen_q, seqlen_k]: so nothing overflows.
  Value dl = diagonal(kLeftBottomRight), dr = diagonal(kRightBottomRight);
  Value first = sub(dl, clamp(bounds[0], sub(dl, seqlenK), add(dl, seqlenQ)));
  Value beyond = add(dr, one);
  Value end = add(beyond, clamp(bounds[1], sub(sub(zero, seqlenQ), beyond),
                                sub(seqlenK, beyond)));
  // A window without a key shows none to any row, beyond both ends: or else the
  // keys between the first row's window and the last row's would be visited.
  Value isEmpty =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, first, end);
  first = arith::SelectOp::create(b, isEmpty, seqlenK, first);
  end = arith::SelectOp::create(b, isEmpty, sub(zero, seqlenQ), end);
  return BandEmitter(context, first, end, /*isSmall=*/false);
}

StringRef WindowAttr::getGroup() const { return "window"; }

//===----------------------------------------------------------------------===//
// What the interface asks for, of every band
//===----------------------------------------------------------------------===//

#define FOVEA_BAND(Attr)                                                       \
  SeenBounds Attr::keysOfRows(VisibilityContext &context, ValueRange bounds,   \
                              Value first, Value last) const {                 \
    return emitBand(*this, context, bounds).keysOfRows(first, last);           \
  }                                                                            \
  SeenBounds Attr::rowsOfKeys(VisibilityContext &context, ValueRange bounds,   \
                              Value first, Value last) const {                 \
    return emitBand(*this, context, bounds).rowsOfKeys(first, last);           \
  }                                                                            \
  Bounds Attr::keysOfEachRow(VisibilityContext &context, ValueRange bounds,    \
                             Value first, Value origin, Value places)          \
      const {                                                                  \
    return emitBand(*this, context, bounds)                                    \
        .keysOfEachRow(first, origin, places);                                 \
  }                                                                            \
  Bounds Attr::rowsOfEachKey(VisibilityContext &context, ValueRange bounds,    \
                             Value first, Value origin, Value places)          \
      const {                                                                  \
    return emitBand(*this, context, bounds)                                    \
        .rowsOfEachKey(first, origin, places);                                 \
  }
FOVEA_BAND(CausalAttr)
FOVEA_BAND(WindowAttr)
#undef FOVEA_BAND

//===----------------------------------------------------------------------===//
// Groups and keys
//===----------------------------------------------------------------------===//

spec::Rows<spec::ScalarSpec> fovea::attn::boundsOf(StringRef group) {
  const int row = spec::findGroup(group);
  return row < 0 ? spec::Rows<spec::ScalarSpec>()
                 : spec::featureGroups()[row].scalars;
}

bool fovea::attn::describeGroup(StringRef group, ProblemKey &key) {
  const int row = spec::findGroup(group);
  if (row < 0 || key.groups[row] ||
      (row == int(kWindowGroup) && key.mask != MaskKind::None))
    return false;
  key.groups[row] = spec::featureGroups()[row].version;
  return true;
}

/// Whether an op has the operands of a group, of which the first tensor stands
/// for the others. Those of visibility say so themselves.
static bool hasGroup(AttentionOpInterface op, const spec::GroupSpec &group) {
  if (const OperandGroup *together = findOperandGroup(group.name))
    return !together->operandsOf(op).empty();
  return !group.tensors.empty() && op.getTensor(group.tensors[0].name);
}

FailureOr<ProblemKey> fovea::attn::keyOf(AttentionOpInterface op) {
  ProblemKey key;
  key.op = op.getOperationKind();
  Type element = op.getElementType();
  const auto *info = llvm::find_if(kDataTypes, [&](const DataTypeInfo &row) {
    return parseType(row.ir, op->getContext()) == element;
  });
  if (info == std::end(kDataTypes))
    return op->emitOpError() << "is on " << element << ", which no kernel is";
  key.dtype = info->type;
  key.setHeadDims(int32_t(op.getHeadDim()), int32_t(op.getHeadDimV()));
  if (ArrayAttr parts = op.getVisibilityAttr())
    for (Attribute part : parts)
      if (!cast<VisibilityAttrInterface>(part).describe(key))
        return op->emitOpError()
               << "no key of a package says that its kernels have " << part
               << " beside what stands before it in " << parts
               << "; leave one of them out";
  for (auto [row, group] : llvm::enumerate(spec::featureGroups()))
    if (group.isOf(key.op) && hasGroup(op, group))
      key.groups[row] = group.version;
  if (!op.getScore().empty())
    key.score = canonicalScore(op.getScore()).digest;
  if (auto backward = dyn_cast<BackwardOp>(op.getOperation()))
    for (auto [number, gradient] :
         llvm::zip_equal(backward.getGradientsOf(), backward.getGradients())) {
      key.scoreGradients |= uint8_t(1 << number);
      if (isStoredGradient(gradient))
        key.storedGradients |= uint8_t(1 << number);
    }
  return key;
}
