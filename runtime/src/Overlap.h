//===- Overlap.h - whether tensors share memory -----------------*- C++ -*-===//
//
// Kernels read their inputs while they write, so what is written may share no
// byte with another tensor, nor with itself. Ranges of addresses alone don't
// tell: q, k and v, or their gradients, may be interleaved in one buffer. Every
// launch comes through here, so nothing of it allocates.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_OVERLAP_H
#define FOVEA_RUNTIME_SRC_OVERLAP_H

#include "Result.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace fovea::rt {

/// Rows of bytes in up to three dimensions that come again at fixed distances.
struct Region {
  struct Dim {
    int64_t stride; ///< in bytes, not negative
    int64_t count;  ///< positive
  };
  uint64_t begin;   ///< address of the first byte
  uint64_t end;     ///< one past the last
  int64_t rowBytes; ///< positive
  Dim dims[3];
};

/// Whether a byte is in both regions. A yes is always true. So is a no where
/// the dimensions have equal strides and nest, or are few; the search ends
/// after a number of steps that only strides that have nothing to do with each
/// other need, and then says no.
bool overlap(const Region &a, const Region &b);

/// Checks that what is written has places of its own: reading one twice is a
/// broadcast, writing it twice a race. Dimensions may nest in any order: each
/// must step over all that the finer ones reach.
/// \param dims  a range of what has a `stride` and a `size`, in elements
/// \param reach  elements that lie together
/// \param what  would overlap; for the message
/// \param nameOf  gives the field that is the stride of one of `dims`
template <typename Dims, typename NameOf>
Result checkNoOverlap(Dims dims, int64_t reach, const char *what,
                      NameOf nameOf) {
  std::sort(dims.begin(), dims.end(),
            [](const auto &a, const auto &b) { return a.stride < b.stride; });
  for (const auto &dim : dims) {
    if (dim.size <= 1)
      continue;
    if (dim.stride < reach)
      return invalid(nameOf(dim) + " is " + std::to_string(dim.stride) + ": " +
                     what + " would overlap; it must be at least " +
                     std::to_string(reach) +
                     ", what the dimensions of smaller stride span");
    reach += (dim.size - 1) * dim.stride;
  }
  return Result();
}

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_OVERLAP_H
