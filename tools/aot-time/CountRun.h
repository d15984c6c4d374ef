//===- CountRun.h - counting what a subject executes ------------*- C++ -*-===//
//
// Exact counts of the instructions of a subject's launches, on every simulated
// chip; or of what a larger value of one variable adds, such as one more block
// of keys: an iteration of the main loop, found without looking for loops.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_COUNTRUN_H
#define FOVEA_TOOLS_AOTTIME_COUNTRUN_H

#include "TimeRun.h"
#include "fovea/Simulator/Counting.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace fovea::timing {

/// "seqlen_k=64x8": count what 8 times 64 more of seqlen_k adds, and divide it
/// by 8.
struct CountStep {
  std::string variable;
  int64_t step = 1, times = 1;
};

/// Reads NAME=STEP[xTIMES]. False with `error` set.
bool parseCountStep(const std::string &text, CountStep &step,
                    std::string &error);

/// One launch, counted.
struct LaunchCount {
  describe::Launch launch;
  sim::KernelInfo kernel;
  sim::ExecutionCounts counts;        ///< sums over the waves
  uint64_t workgroups = 0, waves = 0; ///< of the launch
  /// What a figure of `counts` is divided by to be of one wave and one step.
  double divisor() const { return double(waves) * double(times); }
  int64_t times = 1;
};

/// A subject at some variables, counted.
struct SubjectCount {
  std::string label, schedule;
  describe::Problem problem; ///< without the step
  std::string target;
  std::optional<CountStep> step;
  std::vector<LaunchCount> launches;
  std::string error;        ///< not empty: there are no counts, and why
  bool deviceError = false; ///< the kernel failed, not the description
};

/// Counts. What fails is told in the result's `error`.
SubjectCount countSubject(const Subject &subject,
                          const describe::Overrides &overrides,
                          const std::optional<CountStep> &step);

/// The counts of a wave as lines, and as JSON (docs/AotTime.md has the fields).
std::string countText(const SubjectCount &subject);
nlohmann::json toJson(const SubjectCount &subject);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_COUNTRUN_H
