//===- Kernel.cpp - a compiled candidate ----------------------------------===//

#include "Kernel.h"

#include "Comparison.h"
#include "fovea/Package/Description.h"

using namespace fovea;
using namespace fovea::tune;
using nlohmann::json;

bool KernelSubject::problem(const describe::Overrides &overrides,
                            describe::Problem &result,
                            std::string &error) const {
  DescriptionOptions options;
  options.window = window;
  options.isChecked = isChecked;
  const Expected<std::string> text =
      describeKernel(kernel.record, target, codeObject, options);
  if (!text) {
    error = text.status().message();
    return false;
  }
  return describe::parse(*text, label(), "", overrides, result, error);
}

describe::Overrides tune::variablesOf(const Size &size) {
  return {{"batch", std::to_string(size.batch)},
          {"heads", std::to_string(size.heads)},
          {"heads_k", std::to_string(size.headsK)},
          {"seqlen", std::to_string(size.seqlen)}};
}

std::string tune::faultsOf(const KernelRecord &record) {
  const std::pair<int64_t, const char *> figures[] = {
      {record.resources.vgprSpills, "vector registers spilled"},
      {record.resources.sgprSpills, "scalar registers spilled"},
      {record.resources.scratchBytes, "bytes of scratch a lane"}};
  std::string text;
  for (const auto &[count, what] : figures)
    if (count > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  return text;
}

static timing::SubjectTime timeOf(const tools::BuiltKernel &kernel,
                                  const std::string &target, const Size &size,
                                  const Condition &condition, bool ensemble) {
  const KernelSubject subject(kernel, target, kernel.record.symbol,
                              parseWindow(condition.mask).value_or(Window()));
  sim::TimingOptions options;
  options.clockHz = condition.clockGHz * 1e9;
  options.ensemble = ensemble;
  return timing::predictSubject(subject, variablesOf(size), options);
}

json tune::predictMembers(const tools::BuiltKernel &kernel,
                          const std::string &target, const Size &size,
                          const Condition &condition) {
  const timing::SubjectTime time =
      timeOf(kernel, target, size, condition, /*ensemble=*/true);
  if (!time.error.empty())
    return {{"refused", time.error}};
  json members = json::array();
  for (const sim::MemberTime &member : time.members())
    members.push_back({member.name, member.seconds});
  return {{"members", members}};
}

json tune::predict(const tools::BuiltKernel &kernel, const std::string &target,
                   const Size &size, const Condition &condition) {
  const timing::SubjectTime time =
      timeOf(kernel, target, size, condition, /*ensemble=*/false);
  if (!time.error.empty())
    return {{"refused", time.error}};
  double matrix = 0, valu = 0, conflicts = 0;
  for (const timing::LaunchTime &launch : time.launches) {
    const double share = launch.report.seconds / time.seconds();
    matrix += share * launch.report.matrix;
    valu += share * launch.report.valu;
    conflicts += share * launch.report.ldsConflictShare;
  }
  const sim::TimingReport &longest = timing::longestOf(time).report;
  return {{"seconds", time.seconds()},
          {"tie_error", longest.scheduleError},
          {"guess", longest.errorIsEstimate},
          {"matrix", matrix},
          {"vector", valu},
          {"lds_conflicts", conflicts}};
}
