//===- Ensemble.h - The model as it might be as well ------------*- C++ -*-===//
//
// What is not known of a chip is a range for each constant. A member of the
// ensemble is the model with one of them at an end of its range, or with all.
// What two kernels have in common moves both of their times alike, so that a
// ratio that holds in all members does not rest on a constant.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_ENSEMBLE_H
#define FOVEA_SIMULATOR_TIMING_ENSEMBLE_H

#include "timing/Constants.h"

namespace fovea::sim {

struct Member {
  std::string name; ///< "L2 latency x 1.25"
  TimingConstants constants;
};

/// In an order that depends on the chip alone; the model itself is none of
/// them.
/// \p chip  a row of the table, not yet as kernels in WGP mode have it
std::vector<Member> ensembleOf(const TimingConstants &chip);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_ENSEMBLE_H
