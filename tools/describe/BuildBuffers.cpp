//===- BuildBuffers.cpp - buffers of a description ------------------------===//
//
// Extents, strides and first contents.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

using namespace fovea::describe;

void Builder::readBuffer(const std::string &name, const Node &node) {
  node.expectFields({"type", "shape", "strides", "bytes", "fill"});
  Buffer buffer;
  buffer.name = name;
  if (node.field("bytes")) {
    for (const char *other : {"type", "shape", "strides"})
      if (node.field(other))
        node.fail(std::string("'bytes' excludes '") + other + "'");
    buffer.shape = {node.field("bytes").integer(0, kMaxBytes)};
  } else {
    const Node type = node.required("type");
    if (type && !findType(type.text(), buffer.type))
      type.fail("no type '" + type.text() + "'; there are: " + typeNames());
    buffer.shape = node.required("shape").integers(0, kMaxBytes);
  }
  layOut(buffer, node);
  if (ok() && node.field("fill"))
    readFill(buffer, node.field("fill"));
  problem.buffers.push_back(std::move(buffer));
}

void Builder::layOut(Buffer &buffer, const Node &node) {
  const size_t rank = buffer.shape.size();
  if (node.field("strides")) {
    buffer.strides = node.field("strides").integers(0, kMaxBytes);
    if (ok() && buffer.strides.size() != rank)
      node.field("strides").fail(std::to_string(buffer.strides.size()) +
                                 " strides for " + std::to_string(rank) +
                                 " axes");
  } else {
    buffer.strides.assign(rank, 1);
    for (size_t i = rank; i-- > 1;)
      if (__builtin_mul_overflow(buffer.strides[i], buffer.shape[i],
                                 &buffer.strides[i - 1]))
        return node.fail("the buffer is larger than 2^46 bytes");
  }
  if (!ok())
    return;
  int64_t last = 0, elements = 1;
  bool overflow = false, empty = false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t step;
    empty |= buffer.shape[i] == 0;
    overflow |=
        __builtin_mul_overflow(buffer.shape[i] - 1, buffer.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last) ||
        __builtin_mul_overflow(elements, buffer.shape[i], &elements);
  }
  if (empty)
    return;
  const int64_t size = int64_t(typeSize(buffer.type));
  if (overflow || last >= kMaxBytes / size || elements > kMaxBytes)
    return node.fail("the buffer is larger than 2^46 bytes");
  // Memory does not limit elements that lie over one another.
  if (elements > last + 1 && elements > kMaxOverlapping)
    return node.fail(std::to_string(elements) + " elements in the place of " +
                     std::to_string(last + 1) +
                     "; there may be 2^32 where strides let them overlap");
  buffer.bytes = uint64_t((last + 1) * size);
}

void Builder::readFill(Buffer &buffer, const Node &node) {
  Fill &fill = buffer.fill;
  const std::string kind =
      node.isObject() ? node.required("kind").text() : node.text();
  struct KindRow {
    const char *name;
    Fill::Kind kind;
    bool object;
  };
  static constexpr KindRow kKinds[] = {
      {"zeros", Fill::Zeros, false},  {"nan", Fill::NaN, false},
      {"iota", Fill::Iota, false},    {"reference", Fill::Reference, false},
      {"normal", Fill::Normal, true}, {"uniform", Fill::Uniform, true},
      {"value", Fill::Value, true},   {"values", Fill::Values, true},
      {"file", Fill::File, true}};
  const KindRow *found = nullptr;
  std::string names;
  for (const KindRow &candidate : kKinds) {
    names += (names.empty() ? "" : ", ") + std::string(candidate.name);
    if (kind == candidate.name)
      found = &candidate;
  }
  if (!ok())
    return;
  if (!found)
    return node.fail("no fill '" + kind + "'; there are: " + names);
  fill.kind = found->kind;
  if (fill.kind == Fill::Uniform && !isFloat(buffer.type))
    fill.b = 2; // 0 and 1
  auto seed = [&] {
    if (node.field("seed"))
      fill.seed = uint64_t(node.field("seed").integer());
  };
  auto number = [&](const char *name, double &value) {
    if (node.field(name))
      value = node.field(name).real();
  };
  switch (fill.kind) {
  case Fill::Normal:
    if (node.isObject())
      node.expectFields({"kind", "seed", "scale", "mean"});
    seed();
    number("mean", fill.a);
    number("scale", fill.b);
    break;
  case Fill::Uniform:
    if (node.isObject())
      node.expectFields({"kind", "seed", "low", "high"});
    seed();
    number("low", fill.a);
    number("high", fill.b);
    if (!(fill.a < fill.b))
      node.fail("'low' must be below 'high'");
    break;
  case Fill::Value:
    node.expectFields({"kind", "value"});
    fill.values = {node.required("value").number()};
    break;
  case Fill::Values:
    node.expectFields({"kind", "values"});
    for (const Node &item : node.required("values").items())
      fill.values.push_back(item.number());
    if (ok() && int64_t(fill.values.size()) != buffer.elements())
      node.field("values").fail(
          std::to_string(fill.values.size()) + " values for " +
          std::to_string(buffer.elements()) + " elements");
    break;
  case Fill::File:
    node.expectFields({"kind", "path"});
    fill.path = relative(node.required("path").text());
    break;
  default:
    if (node.isObject())
      node.expectFields({"kind"});
    break;
  }
  if (!isFloat(buffer.type))
    checkRange(buffer, node);
}

void Builder::checkRange(const Buffer &buffer, const Node &node) {
  int64_t least, most;
  integerRange(buffer.type, least, most);
  for (const Number &value : buffer.fill.values)
    if (!value.integer || value.whole < least || value.whole > most)
      return node.fail((value.integer ? std::to_string(value.whole)
                                      : std::to_string(value.fraction)) +
                       " is no value of type " + typeName(buffer.type));
  const Fill &fill = buffer.fill;
  if (fill.kind == Fill::Normal)
    node.fail(std::string("'normal' wants a floating-point type, not ") +
              typeName(buffer.type));
  if (fill.kind == Fill::Uniform &&
      (fill.a < double(least) || fill.b > double(most) + 1))
    node.fail(std::string("the bounds exceed type ") + typeName(buffer.type));
}
