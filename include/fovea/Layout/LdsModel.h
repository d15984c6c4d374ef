//===- LdsModel.h - how LDS serves the lanes of a wave ----------*- C++ -*-===//
//
// What decides whether an access of LDS has bank conflicts: which lanes are
// served in the same clock, and over how many banks. A row of the table of
// chips names one of these.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LAYOUT_LDSMODEL_H
#define FOVEA_LAYOUT_LDSMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace fovea::layout {

/// LDS as reads, or writes, see it. An access of w bytes a lane takes the lanes
/// in groups of bytesPerClock / w; lanes of a group that want different words
/// of one bank cost a clock more each.
struct LdsPort {
  int banks; ///< of 4 bytes
  int bytesPerClock;
  /// The order in which groups take lanes for accesses of 16 bytes; empty:
  /// consecutive lanes, as for all narrower accesses.
  llvm::ArrayRef<uint8_t> wideOrder;
};

struct LdsModel {
  LdsPort read, write;
};

} // namespace fovea::layout

#endif // FOVEA_LAYOUT_LDSMODEL_H
