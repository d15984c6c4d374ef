//===- Types.cpp - element types and strided tensors ----------------------===//
//
// Exact conversions between binary64 and the two 16-bit formats, by one routine
// parametrised with the format's exponent and significand widths; those of fp32
// are the host's.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

using namespace fovea;
using namespace fovea::reference;

namespace {

/// A format of up to 32 bits: sign, `expBits` of exponent, `sigBits` of
/// fraction.
struct Format {
  int expBits, sigBits;
  constexpr int bias() const { return (1 << (expBits - 1)) - 1; }
  constexpr uint16_t infinity() const {
    return uint16_t(((1 << expBits) - 1) << sigBits);
  }
};
constexpr Format formatOf(ElemType type) {
  return {dataTypeInfo(type).exponentBits, dataTypeInfo(type).fractionBits};
}
constexpr Format kF16 = formatOf(ElemType::F16),
                 kBF16 = formatOf(ElemType::BF16);

uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

double doubleOf(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <const Format &F>
uint16_t roundFrom(double value) {
  const uint64_t bits = bitsOf(value);
  const uint16_t sign = uint16_t(bits >> 48) & 0x8000;
  const int exponent = int((bits >> 52) & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  if (exponent == 0x7ff)
    return sign | F.infinity() |
           (fraction ? uint16_t(1 << (F.sigBits - 1)) : 0);
  // Subnormal doubles are far below half of either format's least value.
  if (exponent == 0)
    return sign;
  const int target = exponent - 1023 + F.bias();
  if (target >= (1 << F.expBits) - 1)
    return sign | F.infinity();
  // Below the normal range the significand, its hidden bit included, moves
  // right until the exponent is the format's least.
  const uint64_t significand = fraction | (uint64_t(1) << 52);
  const int drop = 52 - F.sigBits + (target < 1 ? 1 - target : 0);
  if (drop > 53)
    return sign; // less than half of the least subnormal
  uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t(1) << drop) - 1);
  const uint64_t half = uint64_t(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // A carry out of the significand runs into the exponent, as it should: the
  // fields lie in order of weight, up to infinity.
  const uint64_t base = target < 1 ? 0 : uint64_t(target - 1) << F.sigBits;
  return sign | uint16_t(base + kept);
}

template <const Format &F>
double widen(uint16_t bits) {
  const uint64_t sign = uint64_t(bits & 0x8000) << 48;
  const int exponent = (bits & 0x7fff) >> F.sigBits;
  const uint64_t fraction = bits & ((1u << F.sigBits) - 1);
  const uint64_t wide = fraction << (52 - F.sigBits);
  if (exponent == (1 << F.expBits) - 1)
    return doubleOf(sign | (uint64_t(0x7ff) << 52) | wide);
  if (exponent == 0) {
    const double unit =
        doubleOf(uint64_t(1023 + 1 - F.bias() - F.sigBits) << 52);
    const double magnitude = double(fraction) * unit;
    return sign ? -magnitude : magnitude;
  }
  return doubleOf(sign | (uint64_t(exponent - F.bias() + 1023) << 52) | wide);
}

} // namespace

uint16_t fovea::reference::toF16(double value) {
  return roundFrom<kF16>(value);
}
uint16_t fovea::reference::toBF16(double value) {
  return roundFrom<kBF16>(value);
}
double fovea::reference::fromF16(uint16_t bits) { return widen<kF16>(bits); }
double fovea::reference::fromBF16(uint16_t bits) { return widen<kBF16>(bits); }

namespace {
uint32_t toF32(double value) {
  const float rounded = float(value);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return bits;
}
double fromF32(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
} // namespace

const Conversions fovea::reference::kConversions[] = {
    {[](double value) { return uint32_t(toF16(value)); },
     [](uint32_t bits) { return fromF16(uint16_t(bits)); }},
    {[](double value) { return uint32_t(toBF16(value)); },
     [](uint32_t bits) { return fromBF16(uint16_t(bits)); }},
    {toF32, fromF32}};
static_assert(std::size(kDataTypes) == 3, "each type needs its conversions");

double fovea::reference::leastNormal(ElemType type) {
  return std::ldexp(1, 1 - formatOf(type).bias());
}

double fovea::reference::unitRoundoff(ElemType type) {
  return std::ldexp(1, -(formatOf(type).sigBits + 1));
}

const char *fovea::reference::layoutName(Layout layout) {
  switch (layout) {
  case Layout::BHSD:
    return "bhsd";
  case Layout::BSHD:
    return "bshd";
  case Layout::SBHD:
    return "sbhd";
  }
  return "unknown";
}

int64_t Tensor::span() const {
  if (batch == 0 || heads == 0 || seq == 0 || dim == 0)
    return 0;
  return offset(batch - 1, heads - 1, seq - 1) + dim;
}

Tensor fovea::reference::describe(ElemType type, Layout layout, int64_t batch,
                                  int64_t heads, int64_t seq, int64_t dim,
                                  int64_t rowPadding) {
  Tensor t;
  t.type = type;
  t.batch = batch;
  t.heads = heads;
  t.seq = seq;
  t.dim = dim;
  // An extent of 0 leaves strides as if it were 1: they stay valid.
  const int64_t row = dim + rowPadding;
  batch = std::max<int64_t>(batch, 1);
  heads = std::max<int64_t>(heads, 1);
  seq = std::max<int64_t>(seq, 1);
  switch (layout) {
  case Layout::BHSD:
    t.strideSeq = row;
    t.strideHead = seq * row;
    t.strideBatch = heads * seq * row;
    break;
  case Layout::BSHD:
    t.strideHead = row;
    t.strideSeq = heads * row;
    t.strideBatch = seq * heads * row;
    break;
  case Layout::SBHD:
    t.strideHead = row;
    t.strideBatch = heads * row;
    t.strideSeq = batch * heads * row;
    break;
  }
  return t;
}
