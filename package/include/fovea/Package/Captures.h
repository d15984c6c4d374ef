//===- Captures.h - what score programs capture -----------------*- C++ -*-===//
//
// A score program may read scalars and tensors of the caller's
// (docs/ScorePrograms.md). A kernel is passed them behind its feature groups;
// their types are part of the program, and so of the kernel's key.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_CAPTURES_H
#define FOVEA_PACKAGE_CAPTURES_H

#include "fovea/Package/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::spec {

enum class CaptureElement : uint8_t { F32, F16, BF16, I32, I1 };

struct CaptureElementInfo {
  CaptureElement element;
  const char *name; ///< in texts and in IR
  int32_t bytes;    ///< in memory; of i1 the value is whether they are not 0
  bool isScalar;    ///< whether a scalar may be one
};
/// In the order of CaptureElement.
inline constexpr CaptureElementInfo kCaptureElements[] = {
    {CaptureElement::F32, "f32", 4, true},
    {CaptureElement::F16, "f16", 2, false},
    {CaptureElement::BF16, "bf16", 2, false},
    {CaptureElement::I32, "i32", 4, true},
    {CaptureElement::I1, "i1", 1, false},
};
constexpr const CaptureElementInfo &infoOf(CaptureElement element) {
  return kCaptureElements[size_t(element)];
}

/// Arguments of a program that number something, as bits of a set.
enum CaptureIndex : uint8_t {
  kByBatch = 1,
  kByHead = 2,
  kByQuery = 4,
  kByKey = 8
};

/// One dimension of a captured tensor.
struct CaptureDim {
  /// The CaptureIndex that index it as they are: its extent is at least that of
  /// the problem. Other indices may lie outside, and then read zero.
  uint8_t indices = 0;
  /// Elements follow one another in memory; of the last dimension alone.
  bool isUnit = false;

  bool operator==(const CaptureDim &other) const {
    return indices == other.indices && isUnit == other.isUnit;
  }
};

/// More captures than this, and dimensions of one, there are not.
inline constexpr size_t kMaxCaptures = 8, kMaxCaptureRank = 4;

struct CaptureSpec {
  CaptureElement element = CaptureElement::F32;
  std::vector<CaptureDim> dims; ///< none: a scalar

  bool isScalar() const { return dims.empty(); }
  /// Whether it has a gradient: elements are numbers.
  bool isFloat() const {
    return element != CaptureElement::I32 && element != CaptureElement::I1;
  }
  /// Whether each batch, head, query and key reads an element of its own, which
  /// of a tensor without strides of 0 is memory of its own: a sum over those
  /// that read it, such as a gradient, then has one term. Where `attn.at` reads
  /// it in several ways it says nothing; those have no gradient.
  bool hasElementOfEach() const;
  bool operator==(const CaptureSpec &other) const {
    return element == other.element && dims == other.dims;
  }
  /// "f32"; "bf16[batch:?, head:?, query:?, key:1]", each dimension with what
  /// indexes it as it is, if anything does, and its stride, 1 or not known:
  /// "i32[?]", "f32[query+key:?]".
  std::string str() const;
};

/// Separated by commas, as a program's canonical text has them; empty: none.
std::string toString(const std::vector<CaptureSpec> &captures);
/// InvalidArgument, with the place, on anything that toString() does not give.
Expected<std::vector<CaptureSpec>> parseCaptures(std::string_view text);

/// Those that the first line of a program's canonical text names:
/// "score 1 captures(f32, i32[?])"; none, if it names none.
Expected<std::vector<CaptureSpec>> capturesOfProgram(std::string_view text);

/// Largest stride of a captured tensor's dimension that is indexed by query or
/// key as they are, in elements of so many bytes: what a tile of 256 by 256
/// reads must span less than 2^31 bytes.
inline constexpr int64_t maxCaptureStride(int64_t bytes) {
  return (int64_t(1) << 31) / (512 * bytes) - 1;
}
/// What elements that are indexed otherwise may span, in bytes.
inline constexpr int64_t kMaxCaptureSpan = int64_t(1) << 30;
/// What addresses of tensors whose last stride is 1, and in bytes their other
/// strides and the last extent, are multiples of.
inline constexpr int64_t kCaptureAlignment = 4;

} // namespace fovea::spec

#endif // FOVEA_PACKAGE_CAPTURES_H
