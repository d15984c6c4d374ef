//===- ProbeRun.h - hardware beside the simulator ---------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTQUALIFY_PROBERUN_H
#define FOVEA_TOOLS_AOTQUALIFY_PROBERUN_H

#include "ForwardRun.h"
#include "Probes.h"

#include <nlohmann/json.hpp>
#include <string>

namespace fovea::qualify {

/// Distances in units in the last place, by powers of two: [0] none, [1] one,
/// [2] two, [3] up to four, ... the last all that is farther.
struct UlpHistogram {
  static constexpr size_t kBuckets = 12;
  uint64_t counts[kBuckets] = {};
  uint64_t most = 0;
  void add(uint64_t ulps);
  nlohmann::json toJson() const;
};

/// Units in the last place from one fp32 to another.
uint64_t ulpsBetween(float a, float b);

/// Runs each probe of the device's chip on the device and on the simulator:
/// {"result", "chip", "probes": [...]}. A probe that fails says where first, what
/// went in and what came out of each.
nlohmann::json runProbes(const run::Session &session);

} // namespace fovea::qualify

#endif // FOVEA_TOOLS_AOTQUALIFY_PROBERUN_H
