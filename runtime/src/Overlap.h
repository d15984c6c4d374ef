//===- Overlap.h - whether tensors share memory -----------------*- C++ -*-===//
//
// Kernels read their inputs while they write, so what is written may share no
// byte with another tensor. Ranges of addresses alone don't tell: q, k and v,
// or their gradients, may be interleaved in one buffer. Every launch comes
// through here, so nothing of it allocates.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_OVERLAP_H
#define FOVEA_RUNTIME_SRC_OVERLAP_H

#include <cstdint>

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

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_OVERLAP_H
