//===- Sequences.h - sequences of different lengths -------------*- C++ -*-===//
//
// How the sequences of a call lie in its tensors, as AOTriton's versions say
// it: up to 0.13 by which tensors have data, from 0.14 on by the bits of
// varlen_bits. Both are read into the same three axes for each side, and these
// into libfovea's group.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_SEQUENCES_H
#define FOVEA_AOTRITON_SEQUENCES_H

#include "Status.h"

#include <aotriton/flash.h>
#include <array>
#include <fovea/fovea.h>

namespace fovea::shim {

using aotriton::TensorView;

/// Queries or keys of a call's sequences.
struct SequenceSide {
  const char *lengthsName = nullptr, *placesName = nullptr,
             *mostName = nullptr; ///< for messages

  // The axes, by their numbers in varlen_bits.
  enum Length : uint8_t { Most, Cumulative, Each };
  enum Place : uint8_t { Implied, Reused, Given };
  bool stacked = false; ///< all in one batch: (1, heads, rows, head_dim)
  uint8_t length = Most;
  uint8_t place = Implied;

  TensorView<1> lengths, places; ///< of the device; without data: none
  int32_t most = 0;              ///< Max_seqlen_q, Max_seqlen_k

  /// One length for all, which is that of the tensors.
  bool isDense() const {
    return !stacked && length == Most && place == Implied;
  }
};

struct Sequences {
  SequenceSide q, k;
  bool lseByRow = false; ///< L is (rows, heads)

  bool isDense() const { return q.isDense() && k.isDense(); }
};

/// Sets the axes as AOTriton does up to 0.13.
Status readVarlenType(int8_t type, Sequences &sequences);
/// Sets them by the bits of 0.14.
Status readVarlenBits(uint32_t bits, Sequences &sequences);

/// What follows from the sequences of a call and the shapes of its tensors.
struct Layout {
  struct Side {
    uint64_t batch = 0; ///< of the tensors
    int64_t seqlen = 0; ///< the most that a sequence has
    int64_t most = 0;   ///< what the client says that is, perhaps more
    uint64_t apart = 0; ///< rows from one sequence to the next, in one batch;
                        ///< 0: as the batches, or as the kernels read
  };
  Side q, k;
  uint64_t count = 0; ///< of sequences
  std::array<uint64_t, 2> lseShape = {};
  bool lseIsStacked = false; ///< the rows of L are those of stacked queries
  uint64_t lseApart = 0;     ///< rows of L from one sequence to the next
  bool lseIsShort = false;   ///< L has no room for that
};

/// Checks the sequences against the tensors' shapes and describes them.
/// \param group  receives what libfovea's kernels read; of dense ones without
///   struct_size
Status layOut(const Sequences &sequences, const std::array<uint64_t, 4> &q,
              const std::array<uint64_t, 4> &k, Layout &layout,
              fovea_varlen_t &group);

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_SEQUENCES_H
