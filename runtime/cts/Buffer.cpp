//===- Buffer.cpp - a tensor of a suite's problem -------------------------===//

#include "Buffer.h"

#include <cmath>
#include <cstring>

namespace fovea::cts {
namespace {

/// What outputs hold before: a NaN in fp16, bf16 and fp32 alike.
constexpr uint8_t kUnwrittenByte = 0xff;

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

/// Elements of a row and of the gap behind it.
int64_t rowLength(const Problem &p) { return p.kernel.headDim + p.padding; }

} // namespace

Buffer::Buffer(const Problem &p, int64_t heads, int64_t rows)
    : bf16(p.kernel.dtype == FOVEA_DTYPE_BF16), batch(p.batch), heads(heads),
      rows(rows), dim(p.kernel.headDim),
      strideBatch(heads * rows * rowLength(p)),
      strideHead(p.sequenceFirst ? rowLength(p) : rows * rowLength(p)),
      strideSeq(p.sequenceFirst ? heads * rowLength(p) : rowLength(p)),
      host(size_t(batch * strideBatch)), memory(host.size() * 2) {
  std::memset(host.data(), kUnwrittenByte, host.size() * 2);
  memory.upload(host.data());
}

template <typename Function>
void Buffer::forEachElement(Function function) const {
  for (int64_t b = 0; b != batch; ++b)
    for (int64_t h = 0; h != heads; ++h)
      for (int64_t r = 0; r != rows; ++r)
        for (int64_t d = 0; d != dim; ++d)
          function(size_t(b * strideBatch + h * strideHead + r * strideSeq + d),
                   b, h, r, d);
}

Buffer::Buffer(const Problem &p, int64_t heads, int64_t rows,
               const Problem::Value &value)
    : Buffer(p, heads, rows) {
  output = false;
  forEachElement([&](size_t at, int64_t b, int64_t h, int64_t r, int64_t d) {
    const float x = value(b, h, r, d);
    host[at] = bf16 ? toBf16(x) : toF16(x);
  });
  memory.upload(host.data());
}

std::vector<float> Buffer::finish() {
  const std::vector<uint16_t> before = host;
  memory.download(host.data());
  std::vector<bool> mayChange(host.size());
  std::vector<float> elements;
  forEachElement([&](size_t at, int64_t, int64_t, int64_t, int64_t) {
    mayChange[at] = output;
    elements.push_back(bf16 ? fromBf16(host[at]) : fromF16(host[at]));
  });
  for (size_t at = 0; at != host.size(); ++at)
    if (!mayChange[at] && host[at] != before[at]) {
      ADD_FAILURE() << "element " << at
                    << (output ? " between rows" : " of an input")
                    << " was written";
      break;
    }
  return elements;
}

} // namespace fovea::cts
