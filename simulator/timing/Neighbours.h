//===- Neighbours.h - What workgroups at work together share ----*- C++ -*-===//
//
// How often data that one workgroup needs was fetched for another one.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_NEIGHBOURS_H
#define FOVEA_SIMULATOR_TIMING_NEIGHBOURS_H

#include "timing/Memory.h"
#include "timing/Sampler.h"

#include <vector>

namespace fovea::sim {

/// The workgroups of a launch that are on the chip at a time.
struct Neighbourhood {
  uint64_t total = 0;    ///< workgroups of the launch
  unsigned units = 1;    ///< compute units of the chip
  unsigned xcds = 1;     ///< to which workgroups go in turn, with an L2 each
  unsigned arrays = 1;   ///< of the chip, with a cache each, likewise
  unsigned resident = 1; ///< workgroups that a compute unit holds
  bool atOnce = false;   ///< none waits for another one to end
};

/// How far from a workgroup those lie that are asked what they share with it:
/// of \p neighbours, itself among them, all others, or \p most. These are of as
/// many runs one each, odd and even, since heads and blocks alternate in many
/// ways, and of long runs one at random: steps that are even pass by the others
/// of its head altogether, which are as many apart as there are heads.
std::vector<uint64_t> stepsToNeighbours(uint64_t neighbours, uint64_t most);

/// Sets what compute units share of their caches (all of \p sharing but the
/// clock), by the lines that workgroup \p middle and those around it touch.
/// \p note: the same for the report. Errors: those of Sampler::trace().
Status measureSharing(const Sampler &sampler, const TimingConstants &chip,
                      const Neighbourhood &around, uint64_t middle,
                      Sharing &sharing, std::string &note);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_NEIGHBOURS_H
