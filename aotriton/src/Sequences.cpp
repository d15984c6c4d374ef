//===- Sequences.cpp - sequences of different lengths ---------------------===//

#include "Sequences.h"

#include "Describe.h"

#include <algorithm>
#include <cstdio>
#include <limits>

using namespace aotriton;

namespace fovea::shim {
namespace {

/// From 0.12 on the log-sum-exp of stacked queries is stacked, too.
constexpr bool kLseIsStacked = AOTRITON_VERSION_MINOR >= 12;

/// Bits of a side, and of the whole. Source: AOTriton 0.14, flash.h,
/// VarlenMode, VarlenBits.
constexpr uint32_t kLengthShift = 1, kPlaceShift = 3, kSideBits = 5,
                   kSideShift = 8, kLseShift = 16, kUsedBits = 18;

std::string hex(uint32_t bits) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%04x", unsigned(bits));
  return text;
}

Status readSide(const char *name, uint32_t bits, SequenceSide &side) {
  const uint32_t length = bits >> kLengthShift & 3,
                 place = bits >> kPlaceShift & 3;
  auto wrong = [&](const char *what) {
    return invalid(std::string("varlen_bits.") + name + " is " + hex(bits) +
                   what);
  };
  if (bits >> kSideBits)
    return wrong("; its reserved bits, 5 to 7, must be 0");
  if (length > SequenceSide::Each || place > SequenceSide::Given)
    return wrong("; lengths and positions go from 0 to 2");
  if (place == SequenceSide::Reused && length != SequenceSide::Cumulative)
    return wrong(": positions are those of lengths (REUSE) that are not "
                 "CUMULATIVE");
  side.stacked = bits & 1;
  side.length = uint8_t(length);
  side.place = uint8_t(place);
  return {};
}

/// Checks one of the tensors that the kernels read on the device.
Status checkArray(const char *name, const TensorView<1> &array,
                  uint64_t entries) {
  if (array.dtype() != kInt32)
    return invalid(std::string(name) + " has type number " +
                   std::to_string(int(array.dtype())) +
                   "; it must be kInt32 (12)");
  if (array.size(0) < entries)
    return invalid(std::string(name) + " has " +
                   std::to_string(int64_t(array.size(0))) + " entries; " +
                   std::to_string(entries) + " are needed");
  if (array.stride(0) != 1 && array.size(0) > 1)
    return invalid(std::string(name) + " has stride " +
                   std::to_string(int64_t(array.stride(0))) +
                   "; kernels need 1: make it contiguous");
  return {};
}

/// Tensors that are not there but have to be, or the reverse.
Status checkPresence(const SequenceSide &side) {
  const bool wantsLengths = side.length != SequenceSide::Most;
  if (wantsLengths != bool(side.lengths))
    return invalid(std::string(side.lengthsName) +
                   (wantsLengths
                        ? " has no data, and lengths are to be read there"
                        : " has data, and the layout has no lengths to read "
                          "there"));
  if (side.place == SequenceSide::Given && !side.places)
    return invalid(std::string(side.placesName) +
                   " has no data, and positions are to be read there");
  return {};
}

/// The number of sequences, which the queries tell.
Status count(const SequenceSide &side, const std::array<uint64_t, 4> &q,
             uint64_t &number) {
  const uint64_t entries = side.lengths ? side.lengths.size(0) : 0;
  const uint64_t byLengths =
      side.length == SequenceSide::Cumulative ? entries - 1 : entries;
  if (side.length == SequenceSide::Cumulative && entries == 0)
    return checkArray(side.lengthsName, side.lengths, 1);
  if (!side.stacked) {
    number = q[0];
    // Of each lengths there may be more than are needed.
    if (side.length == SequenceSide::Cumulative && byLengths != number)
      return invalid(std::string(side.lengthsName) + " has " +
                     std::to_string(entries) + " entries, and Q " +
                     std::to_string(number) +
                     " batches; there must be one entry more");
    return {};
  }
  if (side.length != SequenceSide::Most) {
    number = byLengths;
  } else {
    if (side.most <= 0 || q[2] % uint64_t(side.most) != 0)
      return invalid("Q has " + std::to_string(int64_t(q[2])) + " rows and " +
                     side.mostName + " is " + std::to_string(side.most) +
                     "; of stacked sequences without lengths the first must "
                     "be a multiple of the second");
    number = q[2] / uint64_t(side.most);
  }
  if (number == 0 || number > uint64_t(std::numeric_limits<int32_t>::max()))
    return invalid("there are " + std::to_string(int64_t(number)) +
                   " sequences by " +
                   (side.lengths ? side.lengthsName : side.mostName) +
                   "; there must be at least one");
  return {};
}

/// \param shape  of the side's tensor
/// \param name   of that
Status layOutSide(const char *name, const SequenceSide &side, uint64_t number,
                  const std::array<uint64_t, 4> &shape, bool isQueries,
                  Layout::Side &layout, fovea_sequences_t &given) {
  const uint64_t rows = shape[2];
  // Caches may have more batches than there are sequences.
  layout.batch = side.stacked ? 1 : std::max(number, shape[0]);
  layout.seqlen = layout.most = int64_t(rows);
  if (side.isDense())
    return {};
  if (side.length != SequenceSide::Most)
    if (Status bad =
            checkArray(side.lengthsName, side.lengths,
                       number + (side.length == SequenceSide::Cumulative)))
      return bad;
  // Behind the last position of stacked queries is where their rows end.
  if (side.place == SequenceSide::Given)
    if (Status bad = checkArray(side.placesName, side.places,
                                number + (isQueries && side.stacked)))
      return bad;
  if (side.most < 0)
    return invalid(std::string(side.mostName) + " is " +
                   std::to_string(side.most) + "; it may not be negative");
  // AOTriton's grid has no workgroup then, which HIP refuses.
  if (isQueries && side.most == 0 && rows != 0)
    return invalid(std::string(side.mostName) + " is 0, and " + name + " has " +
                   std::to_string(int64_t(rows)) +
                   " rows, of which none would be computed; it must be the "
                   "length of the longest sequence");
  const uint64_t most = uint64_t(side.most);
  const bool isUniform = side.stacked && side.place == SequenceSide::Implied;
  if (isUniform) {
    if (number * most > rows)
      return invalid(std::string(name) + " has " +
                     std::to_string(int64_t(rows)) + " rows, and " +
                     std::to_string(number) + " sequences that begin " +
                     std::to_string(most) + " rows apart (" + side.mostName +
                     ") end at " + std::to_string(number * most));
    layout.seqlen = layout.most = int64_t(most);
    layout.apart = most;
  } else if (isQueries || most != 0 || side.length == SequenceSide::Most) {
    layout.seqlen = int64_t(std::min(most, rows));
    layout.most = int64_t(most);
  } // else nobody knows: PyTorch's mem-efficient path does not tell of keys

  given.lengths = static_cast<const int32_t *>(side.lengths.data_ptr());
  given.kind = side.length == SequenceSide::Cumulative
                   ? FOVEA_LENGTHS_CUMULATIVE
                   : FOVEA_LENGTHS_EACH;
  if (side.place != SequenceSide::Implied)
    given.starts = static_cast<const int32_t *>(
        (side.place == SequenceSide::Reused ? side.lengths : side.places)
            .data_ptr());
  if (side.stacked && !isUniform) {
    given.layout = FOVEA_ROWS_PACKED;
    given.total = int64_t(rows);
  }
  return {};
}

/// The shape of L, which AOTriton takes to have no gaps.
void layOutLse(const Sequences &sequences, const std::array<uint64_t, 4> &q,
               Layout &layout, fovea_varlen_t &group) {
  const SequenceSide &side = sequences.q;
  const uint64_t heads = q[1];
  const uint64_t most = side.isDense() ? q[2] : uint64_t(side.most);
  layout.lseIsStacked = side.stacked && kLseIsStacked;
  if (side.stacked && !kLseIsStacked)
    group.lse_layout = FOVEA_LSE_BATCHED;
  layout.lseApart = most;
  if (layout.lseIsStacked) {
    const uint64_t rows = layout.q.apart ? layout.count * most : q[2];
    layout.lseShape = {heads, rows};
    if (sequences.lseByRow)
      layout.lseShape = {rows, heads};
  } else {
    layout.lseShape = {layout.count * heads, most};
    if (sequences.lseByRow)
      layout.lseShape = {layout.count * most, heads};
  }
}

} // namespace

Status readVarlenType(int8_t type, Sequences &sequences) {
  constexpr int8_t most = kLseIsStacked ? 3 : 2; // StridedVarlen, PaddedVarlen
  constexpr int8_t padded = 2;
  if (type < 0 || type > most)
    return invalid("varlen_type is " + std::to_string(int(type)) +
                   "; it goes from 0 to " + std::to_string(int(most)));
  SequenceSide &q = sequences.q, &k = sequences.k;
  if (!q.lengths) {
    // Whatever the type says, this is dense.
    for (const auto &[name, array] : {std::pair(k.lengthsName, &k.lengths),
                                      {q.placesName, &q.places},
                                      {k.placesName, &k.places}})
      if (*array)
        return invalid(std::string(name) + " has data, and " + q.lengthsName +
                       " none");
    return {};
  }
  // What AOTriton would not read: it looks for the queries' positions alone,
  // and for none of padded sequences.
  for (const auto *side : {&q, &k})
    if (side->places && type == padded)
      return invalid(std::string(side->placesName) +
                     " has data, and varlen_type is 2 (padded), whose "
                     "sequences begin where their batches do");
  if (k.places && !q.places)
    return invalid(std::string(k.placesName) + " has data, and " +
                   q.placesName + " none");
  for (SequenceSide *side : {&q, &k}) {
    side->length = SequenceSide::Cumulative;
    if (type == padded)
      continue;
    side->stacked = true;
    side->place = q.places ? SequenceSide::Given : SequenceSide::Reused;
  }
  return {};
}

Status readVarlenBits(uint32_t bits, Sequences &sequences) {
  const uint32_t lse = bits >> kLseShift & 3;
  if (bits >> kUsedBits)
    return invalid("varlen_bits is " + hex(bits) +
                   "; its reserved bits, 18 to 31, must be 0");
  if (lse > 1)
    return invalid("varlen_bits.lse_layout is " + std::to_string(lse) +
                   "; it may be 0 (HT) or 1 (TH)");
  sequences.lseByRow = lse == 1;
  const uint32_t mask = (1u << kSideShift) - 1;
  if (Status bad = readSide("qmode", bits & mask, sequences.q))
    return bad;
  return readSide("kmode", bits >> kSideShift & mask, sequences.k);
}

Status layOut(const Sequences &sequences, const std::array<uint64_t, 4> &q,
              const std::array<uint64_t, 4> &k, Layout &layout,
              fovea_varlen_t &group) {
  group = {};
  layout = {};
  for (const SequenceSide *side : {&sequences.q, &sequences.k})
    if (Status bad = checkPresence(*side))
      return bad;
  if (Status bad = count(sequences.q, q, layout.count))
    return bad;
  if (Status bad = layOutSide("Q", sequences.q, layout.count, q,
                              /*isQueries=*/true, layout.q, group.q))
    return bad;
  if (Status bad = layOutSide("K", sequences.k, layout.count, k,
                              /*isQueries=*/false, layout.k, group.k))
    return bad;
  // Without sequences of their own batches of keys are those of queries.
  if (sequences.isDense())
    layout.k.batch = layout.count;
  layOutLse(sequences, q, layout, group);
  if (!sequences.isDense() || sequences.lseByRow) {
    group.header.struct_size = sizeof(group);
    group.header.group = FOVEA_GROUP_VARLEN;
  }
  return {};
}

} // namespace fovea::shim
