//===- Types.h - what is tuned, and what comes of it ------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTTUNE_TYPES_H
#define FOVEA_TOOLS_AOTTUNE_TYPES_H

#include "fovea/Package/Package.h"
#include "fovea/Tools/BuildKernel.h"

#include <optional>
#include <string>
#include <vector>

namespace fovea::tune {

using tools::ScheduleChoice;

/// Sizes of a launch: the upper end of a bucket. As many keys as queries.
struct Size {
  int64_t batch = 1, heads = 16, headsK = 16;
  int64_t seqlen = 4096;
  int64_t batchHeads() const { return batch * heads; }
  /// "4096 x 64": rows, and heads of all batches.
  std::string str() const {
    return std::to_string(seqlen) + " x " + std::to_string(batchHeads());
  }
};

/// What else a launch may be under; a schedule is to be no worse under any.
struct Condition {
  std::string mask = "none"; ///< or a window, as parseWindow() reads it
  double clockGHz = 0;       ///< 0: as the power model chooses
};

/// What a schedule takes. Two whose ratio is within 1 + tieError are a tie.
struct Timing {
  std::string refused; ///< not empty: why the schedule is no candidate
  double seconds = 0;
  double tieError = 0;  ///< a factor less one
  bool isGuess = false; ///< the error is; too little is published of the chip
  bool isKnown() const { return refused.empty() && seconds > 0; }
};

/// Whether nobody can tell which is faster.
bool isTie(const Timing &a, const Timing &b);

/// One kernel to tune: a problem on a chip.
struct Subject {
  std::string target;
  ProblemKey problem;
  std::string algorithm; ///< of backward: the only one to try; empty: all
};

/// {"block_m": 64, "inst": "..."} as text, for people and logs; "default" when
/// nothing is replaced.
std::string toString(const ScheduleChoice &choice);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_TYPES_H
