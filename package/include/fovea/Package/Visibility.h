//===- Visibility.h - which keys a query sees -------------------*- C++ -*-===//
//
// The one table of masks, and the window that each of them is. Everything that
// names a mask asks here: keys, front ends, reference, tools. A mask says
// nothing that a window's numbers can't; a kernel may have one compiled in, or
// take a window at run time (docs/Visibility.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_VISIBILITY_H
#define FOVEA_PACKAGE_VISIBILITY_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace fovea {

/// Masks that have a name. The numbers are those of FOVEA_MASK_ in fovea.h.
enum class MaskKind { None, CausalTopLeft, CausalBottomRight };

/// From which diagonal a side of a window counts: that of the first row and the
/// first key, or that of the last row and the last key.
enum class Alignment { TopLeft, BottomRight };

/// Row i sees key j of [0, seqlen_k) if
///   i + diagonal(left) - left <= j <= i + diagonal(right) + right
/// where the diagonal is 0 aligned top left and seqlen_k - seqlen_q aligned
/// bottom right. Both ends belong to it; either may be negative, so that a
/// window may lie beside the diagonal, or hold no key at all.
struct Window {
  /// No bound, whatever the lengths.
  static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max();
  int64_t left = kInfinite, right = kInfinite; ///< keys
  Alignment leftAlignment = Alignment::TopLeft;
  Alignment rightAlignment = Alignment::TopLeft;

  constexpr Window() = default;
  constexpr Window(int64_t left, int64_t right, Alignment leftAlignment,
                   Alignment rightAlignment)
      : left(left), right(right), leftAlignment(leftAlignment),
        rightAlignment(rightAlignment) {}
  /// That of a mask: wherever a window is taken, a mask will do.
  constexpr Window(MaskKind mask);

  friend constexpr bool operator==(const Window &a, const Window &b) {
    return a.left == b.left && a.right == b.right &&
           a.leftAlignment == b.leftAlignment &&
           a.rightAlignment == b.rightAlignment;
  }
  friend constexpr bool operator!=(const Window &a, const Window &b) {
    return !(a == b);
  }
};

struct MaskInfo {
  MaskKind kind;
  const char *name;   ///< in keys: "causal_bottom_right"
  const char *option; ///< on command lines: "causal-bottom-right"
  Window window;
};

/// In the order of MaskKind.
inline constexpr MaskInfo kMasks[] = {
    {MaskKind::None, "none", "none", Window()},
    {MaskKind::CausalTopLeft, "causal_top_left", "causal-top-left",
     Window(Window::kInfinite, 0, Alignment::TopLeft, Alignment::TopLeft)},
    {MaskKind::CausalBottomRight, "causal_bottom_right", "causal-bottom-right",
     Window(Window::kInfinite, 0, Alignment::BottomRight,
            Alignment::BottomRight)},
};
inline constexpr const MaskInfo &maskInfo(MaskKind mask) {
  return kMasks[static_cast<int>(mask)];
}
constexpr Window::Window(MaskKind mask) : Window(maskInfo(mask).window) {}
/// The mask of a name in either spelling; null: there is none.
inline constexpr const MaskInfo *findMask(std::string_view name) {
  for (const MaskInfo &info : kMasks)
    if (name == info.name || name == info.option)
      return &info;
  return nullptr;
}

/// The mask that says the same as a window, whatever the lengths; null: none
/// does.
inline constexpr const MaskInfo *findMask(const Window &window) {
  for (const MaskInfo &info : kMasks)
    if (window == info.window)
      return &info;
  return nullptr;
}

/// A window for given lengths: row i sees keys [i + first, i + end) of
/// [0, seqlen_k).
struct Band {
  int64_t first, end;

  struct Keys {
    int64_t begin, end; ///< begin <= end
    bool sees(int64_t key) const { return begin <= key && key < end; }
  };
  /// What a row sees of `seqlenK` keys.
  Keys keysOf(int64_t row, int64_t seqlenK) const {
    const int64_t begin = std::clamp<int64_t>(row + first, 0, seqlenK);
    return {begin, std::clamp(row + end, begin, seqlenK)};
  }
};

/// Lengths are at most 2^31. The sums do not overflow, whatever the window, and
/// an infinite side is infinite: the band's ends lie in [-seqlen_q, seqlen_k],
/// beyond which nothing changes.
inline constexpr Band bandOf(const Window &window, int64_t seqlenQ,
                             int64_t seqlenK) {
  // Far beyond all lengths, and far from overflowing.
  constexpr int64_t kFar = int64_t(1) << 40;
  auto diagonal = [&](Alignment alignment) {
    return alignment == Alignment::TopLeft ? 0 : seqlenK - seqlenQ;
  };
  auto bounded = [&](int64_t value) {
    return std::clamp(value, -seqlenQ, seqlenK);
  };
  return {bounded(diagonal(window.leftAlignment) -
                  std::clamp(window.left, -kFar, kFar)),
          bounded(diagonal(window.rightAlignment) +
                  std::clamp(window.right, -kFar, kFar) + 1)};
}

/// Whether a mask shows the same keys as a window for these lengths.
inline constexpr bool isSame(MaskKind mask, const Window &window,
                             int64_t seqlenQ, int64_t seqlenK) {
  const Band a = bandOf(maskInfo(mask).window, seqlenQ, seqlenK),
             b = bandOf(window, seqlenQ, seqlenK);
  // Of the first row no end before the first key counts, nor of the last row
  // one behind the last.
  auto first = [&](const Band &band) {
    return std::max(band.first, 1 - std::max<int64_t>(seqlenQ, 1));
  };
  auto end = [&](const Band &band) { return std::min(band.end, seqlenK); };
  return first(a) == first(b) && end(a) == end(b);
}

/// What a kernel is passed for a side of a window: 32 bits, in which the
/// largest number is beyond any length.
inline constexpr int32_t windowArgument(int64_t bound) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return int32_t(std::clamp(bound, -kMost, kMost));
}
/// The argument beside them: a bit a side that is aligned bottom right.
enum WindowAlignmentBits : int32_t {
  kLeftBottomRight = 1,
  kRightBottomRight = 2
};
inline constexpr int32_t windowAlignment(const Window &window) {
  return (window.leftAlignment == Alignment::BottomRight ? kLeftBottomRight
                                                         : 0) |
         (window.rightAlignment == Alignment::BottomRight ? kRightBottomRight
                                                          : 0);
}

/// For messages: "none", "causal_top_left", or "window(128:0, bottom_right)":
/// sides as numbers or "inf", one alignment or one a side.
std::string toString(const Window &window);
/// As a command line says it: "causal-top-left", "128:0,bottom-right".
std::string optionOf(const Window &window);

/// Reads what optionOf() writes: "128:0", "128:inf,bottom-right",
/// "4:-1,top-left:bottom-right"; a name in either spelling. An alignment that is
/// left out is bottom right, as flash-attn has it. Nullopt: it is none of these.
std::optional<Window> parseWindow(std::string_view text);

} // namespace fovea

#endif // FOVEA_PACKAGE_VISIBILITY_H
