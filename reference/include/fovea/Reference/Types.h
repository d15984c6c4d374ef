//===- Types.h - element types and strided tensors --------------*- C++ -*-===//
//
// What the oracle reads and writes: fp16, bf16 and fp32 values with exact
// conversions (round to nearest, ties to even), and four-dimensional tensors
// described by a pointer and element strides. Depends on the C++ library and
// the table of types.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_TYPES_H
#define FOVEA_REFERENCE_TYPES_H

#include "fovea/Package/DataTypes.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace fovea::reference {

/// Type of a tensor's elements.
using ElemType = fovea::DataType;

/// "fp16", "bf16" or "fp32".
inline const char *elemTypeName(ElemType type) {
  return dataTypeInfo(type).name;
}

/// Rounds to binary16 (nearest, ties to even; overflow to infinity, subnormals
/// kept, a NaN stays a quiet NaN). Source: IEEE 754-2019, 3.6 and 4.3.1.
uint16_t toF16(double value);
/// Rounds to bfloat16, binary32's exponent with 8 significant bits, likewise.
uint16_t toBF16(double value);
/// Exact: every binary16 and bfloat16 value is a binary32 and binary64 value.
double fromF16(uint16_t bits);
double fromBF16(uint16_t bits);

/// The conversions of a type; the bits of 16 are the lower ones.
struct Conversions {
  uint32_t (*encode)(double value);
  double (*decode)(uint32_t bits);
};
/// In the order of ElemType.
extern const Conversions kConversions[];

inline uint32_t encode(ElemType type, double value) {
  return kConversions[static_cast<int>(type)].encode(value);
}
/// \param bits  an integer: an element's value is none
template <typename Bits, typename = std::enable_if_t<std::is_integral_v<Bits>>>
double decode(ElemType type, Bits bits) {
  return kConversions[static_cast<int>(type)].decode(uint32_t(bits));
}
/// `value` rounded to `type`.
inline double roundTo(ElemType type, double value) {
  return decode(type, encode(type, value));
}

/// Largest relative error of one rounding to `type` (half a unit in the last
/// place): 2^-11 for fp16, 2^-8 for bf16, 2^-24 for fp32.
double unitRoundoff(ElemType type);

/// Least positive normal number of `type`: 2^-14 for fp16, 2^-126 for others.
double leastNormal(ElemType type);

/// Elements that follow one another in memory.
struct Row {
  ElemType type;
  void *data;

  template <typename Word>
  Word *as() const {
    return static_cast<Word *>(data);
  }
  uint32_t bits(int64_t d) const {
    if (elementSize(type) == 2)
      return as<uint16_t>()[d];
    return as<uint32_t>()[d];
  }
  double operator[](int64_t d) const { return decode(type, bits(d)); }
  /// Rounds `value`.
  void set(int64_t d, double value) const {
    const uint32_t bits = encode(type, value);
    if (elementSize(type) == 2)
      as<uint16_t>()[d] = uint16_t(bits);
    else
      as<uint32_t>()[d] = bits;
  }
};

/// A tensor [batch, heads, seq, dim] of elements somewhere in memory.
/// Strides are in elements and may be in any order; that of `dim` is 1.
struct Tensor {
  void *data = nullptr;
  ElemType type = ElemType::F16;
  int64_t batch = 0, heads = 0, seq = 0, dim = 0;
  int64_t strideBatch = 0, strideHead = 0, strideSeq = 0;

  int64_t offset(int64_t b, int64_t h, int64_t s) const {
    return b * strideBatch + h * strideHead + s * strideSeq;
  }
  /// The `dim` elements of one row.
  Row row(int64_t b, int64_t h, int64_t s) const {
    return {type,
            static_cast<char *>(data) + offset(b, h, s) * elementSize(type)};
  }
  /// Distance from `data` to one past the last element; 0 when empty.
  int64_t span() const;
};

/// Which of batch, heads and sequence runs slowest: bhsd is [b][h][s][d].
enum class Layout { BHSD, BSHD, SBHD };

/// "bhsd", "bshd" or "sbhd".
const char *layoutName(Layout layout);

/// A tensor in `layout` without gaps except that each row is `rowPadding`
/// elements longer than `dim`; `data` is left null.
Tensor describe(ElemType type, Layout layout, int64_t batch, int64_t heads,
                int64_t seq, int64_t dim, int64_t rowPadding = 0);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_TYPES_H
