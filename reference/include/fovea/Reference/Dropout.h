//===- Dropout.h - which weights are dropped --------------------*- C++ -*-===//
//
// Dropout as docs/Dropout.md has it, written from the paper and from that page.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_DROPOUT_H
#define FOVEA_REFERENCE_DROPOUT_H

#include <array>
#include <cstdint>

namespace fovea::reference {

/// Philox4x32-10 of Salmon et al. 2011, "Parallel random numbers: as easy as 1,
/// 2, 3", of counters whose upper half is 0.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter);

struct Dropout {
  float p = 0; ///< above 0, to 1
  uint64_t seed = 0, offset = 0;
  bool swapsWords = false;    ///< of four keys the words 0, 2, 1, 3
  int64_t heads = 1;          ///< of queries
  int64_t seqQ = 0, seqK = 0; ///< of the call
  int64_t firstBatch = 0;     ///< number in the call of batch 0

  bool keeps(int64_t batch, int64_t head, int64_t query, int64_t key) const;
  /// What a weight that is kept is multiplied with.
  double factor() const { return p < 1 ? 1 / (1 - double(p)) : 0; }
};

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_DROPOUT_H
