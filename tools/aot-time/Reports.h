//===- Reports.h - predictions as text, JSON, HTML and traces ---*- C++ -*-===//
//
// Every output of aot-time. Pure functions of the prediction; docs/AotTime.md
// says how to read them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_REPORTS_H
#define FOVEA_TOOLS_AOTTIME_REPORTS_H

#include "Analysis.h"
#include "TimeRun.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fovea::timing {

/// One prediction in full: times, units, reasons for waiting, the hot loop and
/// the costliest instructions of each launch.
std::string textReport(const SubjectTime &subject);

/// The disassembly of one launch with what each instruction cost.
std::string annotatedText(const LaunchTime &launch);

/// A prediction as JSON (docs/AotTime.md has the fields); `instructions` lists
/// each executed instruction.
nlohmann::json toJson(const SubjectTime &subject, bool instructions);

/// What the JSON of every kind of result begins with: which kernels, at which
/// sizes, and why there is no more if there is an `error`.
template <typename Subject>
nlohmann::json subjectJson(const Subject &subject) {
  nlohmann::json variables = nlohmann::json::object();
  for (const auto &[name, value] : subject.problem.variables)
    if (value.integer)
      variables[name] = value.whole;
    else
      variables[name] = value.fraction;
  nlohmann::json result = {{"label", subject.label},
                           {"name", subject.problem.name},
                           {"target", subject.target},
                           {"variables", variables}};
  if (!subject.schedule.empty())
    result["schedule"] = subject.schedule;
  if (!subject.error.empty())
    result["error"] = subject.error;
  return result;
}

/// Which value each sweep has: {"seqlen", "1024"}.
using Swept = std::vector<std::pair<std::string, std::string>>;
/// "seqlen=1024 heads=8"; empty where nothing is swept.
std::string nameOf(const Swept &swept);

/// One row of a comparison: subjects at the same variables.
struct ComparedPoint {
  Swept swept;
  std::vector<SubjectTime> subjects;
};
/// All of it as text: a block for each point, with the ratio to its first
/// subject, and for several subjects at several points a summary.
std::string comparisonText(const std::vector<ComparedPoint> &points);
/// The same as a page that draws it: rates over lengths, rooflines, and the
/// table; needs no other file.
std::string comparisonHtml(const std::vector<ComparedPoint> &points);

/// Whether a launch executed so much less than its description credits that its
/// rate means nothing: under 0.7 times, or more than the chip can do.
bool creditIsDoubtful(const LaunchTime &launch);

/// How much faster a subject is than another: the ratio of their rates, or of
/// their times where one is credited with no operations.
double speedRatio(const SubjectTime &subject, const SubjectTime &first);

/// A page that draws what each unit and each wave of a compute unit did in
/// `window`; needs no other file.
std::string timelineHtml(const SubjectTime &subject, const LaunchTime &launch,
                         Window window);
/// The same as a picture without a program in it.
std::string timelineSvg(const SubjectTime &subject, const LaunchTime &launch,
                        Window window);
/// The same in Chrome's trace event format, which Perfetto reads; one clock is
/// shown as a nanosecond.
nlohmann::json perfettoTrace(const SubjectTime &subject,
                             const LaunchTime &launch, Window window);

/// What the pictures show, worked out once: which clocks which unit was busy
/// with which instruction.
struct Track {
  std::string name; ///< "matrix core", "vector ALU"...
  struct Span {
    uint64_t clock;
    uint32_t clocks;
    uint32_t event; ///< index into `events` of Lanes
  };
  std::vector<Span> spans; ///< by clock, not overlapping
};
struct Lanes {
  std::vector<sim::TimelineEvent> events; ///< in the window, by clock
  struct Simd {
    std::vector<Track> units;
    std::vector<unsigned> waves; ///< numbers of the waves that were there
  };
  std::vector<Simd> simds;
};
Lanes lanesOf(const sim::TimingReport &report, Window window);

/// "+0x1a40", or "-0x40" for functions before the entry.
std::string offsetText(uint32_t offset);
/// A schedule over several lines of at most 80 columns: each part begins one.
/// The first follows `head`, the others are indented as far.
std::string scheduleText(const std::string &head, const std::string &schedule);
/// "a=1 b=2" of the variables.
std::string variablesText(const describe::Problem &problem);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_REPORTS_H
