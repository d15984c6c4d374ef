//===- CountRun.cpp - counting what a subject executes --------------------===//

#include "CountRun.h"

#include "LaunchLoop.h"

#include <charconv>
#include <cmath>

using namespace fovea;
using namespace fovea::timing;

bool timing::parseCountStep(const std::string &text, CountStep &step,
                            std::string &error) {
  const size_t equals = text.find('=');
  const char *end = text.data() + text.size();
  auto number = [&](const char *&at, int64_t &value) {
    const std::from_chars_result read = std::from_chars(at, end, value);
    at = read.ptr;
    return read.ec == std::errc() && value > 0;
  };
  if (equals != std::string::npos && equals > 0) {
    step.variable = text.substr(0, equals);
    const char *at = text.data() + equals + 1;
    step.times = 1;
    if (number(at, step.step) &&
        (at == end || (*at++ == 'x' && number(at, step.times) && at == end)))
      return true;
  }
  error = "--per wants NAME=STEP or NAME=STEPxTIMES with whole numbers above "
          "0, as seqlen_k=64x8, not '" +
          text + "'";
  return false;
}

/// Runs the launches of `subject` and counts.
static bool runAll(const Subject &subject, const describe::Overrides &overrides,
                   SubjectCount &result) {
  LaunchLoop loop(subject, /*prediction=*/nullptr);
  const bool all = loop.run(overrides, [&](const LaunchLoop::Item &item) {
    LaunchCount counted;
    counted.launch = item.launch;
    counted.kernel = item.kernel;
    sim::Status status =
        sim::count(item.code, item.kernel, item.config, counted.counts);
    counted.workgroups = counted.counts.workgroups;
    counted.waves = counted.counts.waves;
    result.launches.push_back(std::move(counted));
    return status;
  });
  result.problem = std::move(loop.problem);
  result.target = std::move(loop.target);
  result.error = std::move(loop.error);
  result.deviceError = loop.deviceError;
  if (!all)
    result.launches.clear();
  return all;
}

SubjectCount timing::countSubject(const Subject &subject,
                                  const describe::Overrides &overrides,
                                  const std::optional<CountStep> &step) {
  SubjectCount result;
  result.label = subject.label();
  result.schedule = subject.schedule();
  if (!runAll(subject, overrides, result) || !step)
    return result;
  result.step = step;
  auto fail = [&](const std::string &why) {
    result.launches.clear();
    result.error = why;
    return result;
  };
  const auto &variables = result.problem.variables;
  auto found = variables.find(step->variable);
  if (found == variables.end()) {
    std::string known;
    for (const auto &[name, value] : variables)
      known += (known.empty() ? "" : ", ") + name;
    return fail("--per: there is no variable '" + step->variable +
                "'; there are: " + known);
  }
  if (!found->second.integer)
    return fail("--per: '" + step->variable + "' is no whole number");

  describe::Overrides larger = overrides;
  int64_t most;
  if (__builtin_mul_overflow(step->step, step->times, &most) ||
      __builtin_add_overflow(found->second.whole, most, &most))
    return fail("--per: so many steps are more than 64 bits hold");
  larger[step->variable] = std::to_string(most);
  SubjectCount more;
  if (!runAll(subject, larger, more)) {
    result.deviceError = more.deviceError;
    return fail("with " + step->variable + "=" + larger[step->variable] + ": " +
                more.error);
  }
  bool comparable = more.launches.size() == result.launches.size();
  for (size_t i = 0; comparable && i < more.launches.size(); ++i)
    comparable = more.launches[i].waves == result.launches[i].waves;
  if (!comparable)
    return fail("--per: the number of waves follows from '" + step->variable +
                "', so that a wave does not do more with more of it; another "
                "variable, as seqlen_k, has to grow");
  for (size_t i = 0; i < more.launches.size(); ++i) {
    LaunchCount &launch = result.launches[i];
    if (!more.launches[i].counts.contains(launch.counts))
      return fail("--per: with " + step->variable + "=" +
                  larger[step->variable] + " kernel '" + launch.kernel.name +
                  "' executes less of some instructions; start from a larger "
                  "or rounder value");
    std::swap(launch.counts, more.launches[i].counts);
    launch.counts -= more.launches[i].counts;
    launch.times = step->times;
  }
  return result;
}
