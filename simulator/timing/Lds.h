//===- Lds.h - Clocks and bank conflicts of LDS accesses --------*- C++ -*-===//
//
// A phase serves the lanes whose words all banks can give in a clock; which
// lanes those are depends on the width of the access and on the chip.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_LDS_H
#define FOVEA_SIMULATOR_TIMING_LDS_H

#include "fovea/Simulator/Chip.h"

#include <cstdint>

namespace fovea::sim {

struct LdsShape {
  LdsKind kind;
  unsigned readBytes; ///< a clock, all banks
  unsigned readBanks; ///< of 4 bytes
  /// Lanes in the order in which reads of 12 and of 16 bytes a lane serve them,
  /// those of a phase together; null: in order.
  const uint8_t *read96, *read128;
};

/// The row of a chip.
const LdsShape &ldsShape(const ChipInfo &chip);

/// Clocks that the LDS needs for an access of \p bytes a lane at \p address of
/// the lanes in \p mask, in a wave of \p lanes. \p conflicts receives those that
/// distinct addresses in one bank add.
unsigned ldsClocks(const LdsShape &shape, const uint64_t *address, uint64_t mask,
                   unsigned lanes, uint32_t bytes, bool store,
                   unsigned &conflicts);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_LDS_H
