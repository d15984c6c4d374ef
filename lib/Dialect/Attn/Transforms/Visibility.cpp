//===- Visibility.cpp - which blocks a kernel visits ----------------------===//

#include "Visibility.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

Visibility::Visibility(AttentionOpInterface op, ImplicitLocOpBuilder &b,
                       llvm::function_ref<Value(StringRef)> argument)
    : context{b, nullptr, nullptr}, b(b) {
  ArrayAttr attrs = op.getVisibilityAttr();
  if (!attrs)
    return;
  for (Attribute attr : attrs) {
    auto part = cast<VisibilityAttrInterface>(attr);
    parts.push_back(
        {part, llvm::map_to_vector(boundsOf(part.getGroup()),
                                   [&](const spec::ScalarSpec &row) {
                                     return argument(row.name);
                                   })});
  }
}

Value Visibility::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

/// The larger of two that may be missing.
static Value later(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::MaxSIOp::create(b, x, y);
}
static Value earlier(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::MinSIOp::create(b, x, y);
}

Bounds Visibility::keysOfAll(Value first, Value last) {
  Bounds all;
  for (const Part &part : parts) {
    const Bounds more =
        part.attr.keysOfRows(context, part.bounds, first, last).all;
    all.begin = later(b, all.begin, more.begin);
    all.end = earlier(b, all.end, more.end);
  }
  return all;
}

Segments Visibility::segments(llvm::function_ref<SeenBounds(const Part &)> of,
                              Value length, int64_t block, int64_t originStep) {
  SeenBounds seen;
  for (const Part &part : parts) {
    SeenBounds more = of(part);
    seen.any.begin = later(b, seen.any.begin, more.any.begin);
    seen.any.end = earlier(b, seen.any.end, more.any.end);
    seen.all.begin = later(b, seen.all.begin, more.all.begin);
    seen.all.end = earlier(b, seen.all.end, more.all.end);
  }
  Value zero = constant(0), size = constant(block);
  auto positive = [&](Value value) -> Value {
    return arith::MaxSIOp::create(b, value, zero);
  };
  // Of numbers that are not negative, so that this is the floor.
  auto divide = [&](Value value) -> Value {
    return arith::DivUIOp::create(b, value, size);
  };
  auto blocksOf = [&](Value count) {
    return divide(arith::AddIOp::create(b, count, constant(block - 1)));
  };
  Segments result;
  result.hasHead = bool(seen.any.begin);
  result.hasTail = bool(seen.any.end);
  result.origin = zero;
  if (result.hasHead)
    result.origin = arith::MinSIOp::create(b, positive(seen.any.begin), length);
  if (result.hasHead && originStep > 1) {
    result.hidden =
        arith::RemUIOp::create(b, result.origin, constant(originStep));
    result.origin = arith::SubIOp::create(b, result.origin, result.hidden);
  }
  auto past = [&](Value number) -> Value {
    if (!result.hasHead)
      return number;
    return arith::SubIOp::create(b, number, result.origin);
  };
  auto within = [&](Value end) { return earlier(b, end, length); };
  result.count = past(within(seen.any.end));
  Value whole = past(within(seen.all.end));
  if (!parts.empty()) {
    result.count = positive(result.count);
    whole = positive(whole);
  }
  result.end = blocksOf(result.count);
  result.head = zero;
  if (result.hasHead)
    result.head = arith::MinSIOp::create(
        b, result.end, blocksOf(positive(past(seen.all.begin))));
  result.full = divide(whole);
  if (result.hasHead)
    result.full = arith::MaxSIOp::create(b, result.head, result.full);
  return result;
}

Segments Visibility::keysOfRows(Value first, Value last, int64_t block,
                                int64_t originStep) {
  return segments(
      [&](const Part &part) {
        return part.attr.keysOfRows(context, part.bounds, first, last);
      },
      context.seqlenK, block, originStep);
}

Segments Visibility::rowsOfKeys(Value first, Value last, int64_t block,
                                int64_t originStep) {
  return segments(
      [&](const Part &part) {
        return part.attr.rowsOfKeys(context, part.bounds, first, last);
      },
      context.seqlenQ, block, originStep);
}

Bounds Visibility::columns(llvm::function_ref<Bounds(const Part &)> of) {
  Bounds result;
  for (const Part &part : parts) {
    Bounds more = of(part);
    result.begin = later(b, result.begin, more.begin);
    result.end = earlier(b, result.end, more.end);
  }
  return result;
}

Bounds Visibility::keysOfEachRow(const Segments &segments, Value first,
                                 int64_t count, Value places) {
  auto type = RankedTensorType::get({1, count}, b.getI32Type());
  if (!places)
    places = ColumnIndexOp::create(b, type);
  Bounds result = columns([&](const Part &part) {
    return part.attr.keysOfEachRow(context, part.bounds, first, segments.origin,
                                   places);
  });
  // Keys past the last one are hidden from every row.
  result.end =
      earlier(b, tensor::SplatOp::create(b, segments.count, type), result.end);
  return result;
}

Bounds Visibility::rowsOfEachKey(const Segments &segments, Value first,
                                 int64_t count) {
  auto type = RankedTensorType::get({1, count}, b.getI32Type());
  Value places = ColumnIndexOp::create(b, type);
  return columns([&](const Part &part) {
    return part.attr.rowsOfEachKey(context, part.bounds, first, segments.origin,
                                   places);
  });
}

Value Visibility::apply(Value scores, Bounds bounds, Value start) {
  auto relative = [&](Value limit) -> Value {
    if (!limit)
      return limit;
    auto type = cast<RankedTensorType>(limit.getType());
    return arith::SubIOp::create(b, limit,
                                 tensor::SplatOp::create(b, start, type));
  };
  if (!bounds.begin && !bounds.end)
    return scores;
  return MaskOp::create(b, scores, relative(bounds.begin),
                        relative(bounds.end));
}

Bounds Visibility::seenKeys() {
  Value last = arith::SubIOp::create(b, context.seqlenQ, constant(1));
  Bounds seen = columns([&](const Part &part) {
    return part.attr.keysOfRows(context, part.bounds, constant(0), last).any;
  });
  seen.end = earlier(b, context.seqlenK, seen.end);
  // Distances of keys to these stay within 32 bits.
  if (!parts.empty())
    seen.end = arith::MaxSIOp::create(b, seen.end, constant(0));
  if (seen.begin)
    seen.begin = arith::MaxSIOp::create(b, seen.begin, constant(0));
  return seen;
}
