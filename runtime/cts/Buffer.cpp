//===- Buffer.cpp - a tensor of a suite's problem -------------------------===//

#include "Buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::cts {
namespace {

enum { kHostToDevice = 1, kDeviceToHost = 2 };
constexpr uint8_t kGuardByte = 0xa5;

uint16_t toF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000;
  const float size = std::fabs(value);
  if (size >= 65520.0f)
    return uint16_t(sign | 0x7c00);
  if (size < 6.103515625e-5f) // subnormal: units of 2^-24
    return uint16_t(sign | uint32_t(std::nearbyint(size * 16777216.0f)));
  bits &= 0x7fffffff;
  bits += 0xfff + (bits >> 13 & 1);
  return uint16_t(sign | ((bits >> 13) - (112 << 10)));
}
float fromF16(uint16_t value) {
  const int exponent = value >> 10 & 31, mantissa = value & 1023;
  float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent == 0
                   ? std::ldexp(float(mantissa), -24)
                   : std::ldexp(float(mantissa + 1024), exponent - 25);
  return value & 0x8000 ? -size : size;
}
uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float fromBf16(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

} // namespace

int64_t bytesOf(const spec::TensorSpec &spec, DataType type) {
  return spec::bytesOf(spec.elements, type);
}

Guarded::Guarded(size_t bytes) : bytes(bytes) {
  void *memory = nullptr;
  EXPECT_EQ(hip().hipMalloc(&memory, bytes + 2 * kGuard), 0);
  base = static_cast<uint8_t *>(memory);
  const std::vector<uint8_t> pattern(bytes + 2 * kGuard, kGuardByte);
  EXPECT_EQ(
      hip().hipMemcpy(base, pattern.data(), pattern.size(), kHostToDevice), 0);
}
Guarded::~Guarded() { EXPECT_EQ(hip().hipFree(base), 0); }
void Guarded::upload(const void *from) {
  if (bytes != 0)
    EXPECT_EQ(hip().hipMemcpy(data(), from, bytes, kHostToDevice), 0);
}
void Guarded::download(void *to) const {
  std::vector<uint8_t> all(bytes + 2 * kGuard);
  EXPECT_EQ(hip().hipMemcpy(all.data(), base, all.size(), kDeviceToHost), 0);
  auto isGuard = [](uint8_t byte) { return byte == kGuardByte; };
  EXPECT_TRUE(std::all_of(all.begin(), all.begin() + kGuard, isGuard))
      << "written before its beginning";
  EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), isGuard))
      << "written behind its end";
  if (bytes != 0)
    std::memcpy(to, all.data() + kGuard, bytes);
}

Buffer::Buffer(const Problem &p, const spec::TensorSpec &spec,
               const Problem::Value &value)
    : spec(spec), type(p.kernel.key.dtype), batch(p.batch),
      heads(p.sizeOf(spec.heads)),
      rows(spec.shape == spec::Shape::Vector ? 1 : p.sizeOf(spec.rows)),
      row(spec.shape == spec::Shape::Vector ? p.sizeOf(spec.rows)
                                            : p.sizeOf(spec.columns)),
      elementBytes(bytesOf(spec, type)) {
  const int64_t length = row + p.padding;
  strides[0] = heads * rows * length;
  strides[1] = p.sequenceFirst ? length : rows * length;
  strides[2] = p.sequenceFirst ? heads * length : length;
  // The sequence of a vector is contiguous: batches come first of the others.
  if (spec.shape == spec::Shape::Vector && p.sequenceFirst) {
    strides[0] = length;
    strides[1] = batch * length;
  }
  // All bits set: a NaN in every type.
  host.assign(size_t(batch * heads * rows * length * elementBytes), 0xff);
  if (!spec.written)
    forEachElement([&](size_t at, int64_t b, int64_t h, int64_t r, int64_t d) {
      encode(at, spec.shape == spec::Shape::Vector ? value(b, h, d, 0)
                                                   : value(b, h, r, d));
    });
  memory.emplace(host.size());
  memory->upload(host.data());
}

template <typename Function>
void Buffer::forEachElement(Function function) const {
  for (int64_t b = 0; b != batch; ++b)
    for (int64_t h = 0; h != heads; ++h)
      for (int64_t r = 0; r != rows; ++r)
        for (int64_t d = 0; d != row; ++d)
          function(size_t(b * strides[0] + h * strides[1] + r * strides[2] + d),
                   b, h, r, d);
}

bool Buffer::isF32() const {
  return spec.elements == spec::Elements::F32 ||
         (spec.elements == spec::Elements::Problem && type == DataType::F32);
}

void Buffer::encode(size_t at, float value) {
  uint8_t *to = host.data() + at * size_t(elementBytes);
  if (isF32()) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    const uint16_t half = type == DataType::BF16 ? toBf16(value) : toF16(value);
    std::memcpy(to, &half, sizeof(half));
  }
}

float Buffer::decode(size_t at) const {
  const uint8_t *from = host.data() + at * size_t(elementBytes);
  float value;
  if (isF32()) {
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, from, sizeof(half));
  return type == DataType::BF16 ? fromBf16(half) : fromF16(half);
}

void Buffer::describe(const params::TensorField &field, void *params) const {
  field.setAddress(params, memory->data());
  for (size_t dim = 0; dim != params::strideCount(spec.shape); ++dim)
    field.setStride(params, dim, strides[dim]);
}

std::vector<float> Buffer::finish() {
  const std::vector<uint8_t> before = host;
  memory->download(host.data());
  const size_t bytes = size_t(elementBytes);
  std::vector<bool> mayChange(host.size() / bytes);
  std::vector<float> elements;
  forEachElement([&](size_t at, int64_t, int64_t, int64_t, int64_t) {
    mayChange[at] = spec.written;
    elements.push_back(decode(at));
  });
  for (size_t at = 0; at != mayChange.size(); ++at)
    if (!mayChange[at] &&
        std::memcmp(&host[at * bytes], &before[at * bytes], bytes) != 0) {
      ADD_FAILURE() << spec.name << ": element " << at
                    << (spec.written ? " between rows" : " of an input")
                    << " was written";
      break;
    }
  return elements;
}

} // namespace fovea::cts
