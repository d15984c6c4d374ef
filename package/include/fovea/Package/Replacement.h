//===- Replacement.h - which entry of a cache goes --------------*- C++ -*-===//
//
// The one that was put there last, until one was not used while twice as many
// others as there are entries wanted a place: then that. So a program that goes
// round among somewhat more (up to twice as many) finds all but one of the
// entries each time, where by age or last use it would find none; and one whose
// calls change for good finds the latest.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_REPLACEMENT_H
#define FOVEA_PACKAGE_REPLACEMENT_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace fovea {

/// Of a cache with so many entries. No lock: it is a thread's own.
template <size_t count>
class Replacement {
public:
  /// An entry was found.
  void use(size_t entry) { used[entry] = wanted; }

  /// The entry that a new one is to replace.
  size_t take() {
    ++wanted;
    size_t oldest = 0;
    for (size_t entry = 1; entry != count; ++entry)
      if (used[entry] < used[oldest])
        oldest = entry;
    if (wanted - used[oldest] >= 2 * count)
      latest = oldest;
    used[latest] = wanted;
    return latest;
  }

  /// Nothing was put there: the next new one replaces it.
  void leave(size_t entry) { used[entry] = 0; }

private:
  uint64_t wanted = 2 * count;        ///< times that a place was
  std::array<uint64_t, count> used{}; ///< by the count of `wanted`; 0: empty
  size_t latest = 0;
};

} // namespace fovea

#endif // FOVEA_PACKAGE_REPLACEMENT_H
