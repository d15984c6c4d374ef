//===- Uncertainty.h - How far predictions are off --------------*- C++ -*-===//
//
// From the residuals of kernels whose times were published.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_UNCERTAINTY_H
#define FOVEA_SIMULATOR_TIMING_UNCERTAINTY_H

#include <string_view>

namespace fovea::sim {

/// Nine of ten published points of a kind lie within these factors of what is
/// predicted: 0.1 is from 1 / 1.1 to 1.1 times.
struct Uncertainty {
  double time;  ///< of a launch
  double ratio; ///< of the times of two kernels on one chip
  /// ... of one program in two schedules, beside what the ensemble says.
  double schedule;
  bool isEstimate = false; ///< too few are published
};

/// What a launch's time depends on that the model knows least of.
struct LaunchKind {
  double seconds = 0;        ///< predicted
  bool addsInMemory = false; ///< atomics take a share of its time
  bool onKnownBoard = true;  ///< Board::published, or the chip has no boards
};

Uncertainty uncertaintyOf(std::string_view target, const LaunchKind &kind);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_UNCERTAINTY_H
