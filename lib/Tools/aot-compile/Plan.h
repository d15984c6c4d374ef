//===- Plan.h - from what was asked for to what is compiled -----*- C++ -*-===//
//
// Chooses every kernel's schedule. What a chip cannot do is an error, or is
// left out and told of where a spec allows that.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_PLAN_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_PLAN_H

#include "Axes.h"

namespace fovea::tools {

/// A kernel of a spec that its chip cannot do.
struct LeftOut {
  Job job;
  std::string reason;
};

struct Plan {
  std::vector<LeftOut> leftOut;
  size_t equalSchedules = 0; ///< of a spec, that came out as others had
  /// Problems with chips whose tuning rows were found with schedules that this
  /// build does not come to: "forward;... (gfx942)".
  std::vector<std::string> staleTuning;

  /// What was left out and what is compiled once where it was asked for more
  /// often, for people; "" if nothing.
  std::string notes(const Request &request) const;
};

/// Plans the request's jobs and drops those that are not compiled. Fails, with
/// a line for each chip and reason, if one is impossible and may not be left
/// out, or if nothing remains.
llvm::Expected<Plan> planJobs(Request &request);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_PLAN_H
