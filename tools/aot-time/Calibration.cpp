//===- Calibration.cpp - what a GPU says of the predictions ---------------===//

#include "Calibration.h"

#include "Main.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;

namespace {

/// Fewer say nothing of a spread.
constexpr size_t kLeastPoints = 5;
/// With fewer, the farthest of all is the interval's end.
constexpr size_t kPointsForTenths = 20;
/// Two runs of one kernel differ by as much.
constexpr double kLeastError = 0.02;

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[size_t(std::ceil(share * double(values.size() - 1)))];
}

std::string textIn(const json &object, const char *name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

/// A number above 0; else 0.
double numberIn(const json &object, const char *name) {
  const auto found = object.find(name);
  const double value = found != object.end() && found->is_number()
                           ? found->get<double>()
                           : 0;
  return std::isfinite(value) && value > 0 ? value : 0;
}

json objectIn(const json &object, const char *name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : json::object();
}

} // namespace

bool timing::readCalibration(const std::string &path, Calibration &result,
                             std::string &error) {
  const std::string head = "--calibrate: '" + path + "' ";
  std::string text;
  if (!tool::readFile(path, text, error)) {
    error = "--calibrate: " + error;
    return false;
  }
  const json report = json::parse(text, nullptr, false);
  if (!report.is_object() || textIn(report, "format") != "fovea-qualify") {
    error = head + "is no report of aot-qualify, which writes NAME.json";
    return false;
  }
  if (report.value("version", json()) != 1) {
    error = head + "has version " + report.value("version", json()).dump() +
            ", and this aot-time reads version 1; take one of the other's age";
    return false;
  }
  const json device = objectIn(report, "device");
  if (device.value("simulated", json()) != false) {
    error = head + "is of a simulated device, whose times say nothing of a "
                   "GPU; run aot-qualify where there is one";
    return false;
  }
  const std::string arch = textIn(device, "arch");
  result.source = path;
  result.chip = arch.substr(0, arch.find(':'));
  result.name = textIn(device, "name");
  result.time = textIn(report, "time");
  std::vector<double> ratios, errors, clocks;
  const json benchmark = objectIn(report, "benchmark");
  const auto rows = benchmark.find("rows");
  if (rows != benchmark.end() && rows->is_array())
    for (const json &row : *rows) {
      const json measured = objectIn(row, "measured"),
                 predicted = objectIn(row, "predicted");
      const double seconds = numberIn(measured, "seconds"),
                   model = numberIn(predicted, "seconds"),
                   modelError = numberIn(predicted, "time_error");
      // A clock that has not settled is another one.
      if (!seconds || !model || measured.value("settled", json()) != true)
        continue;
      ratios.push_back(seconds / model);
      errors.push_back(modelError);
      clocks.push_back(numberIn(predicted, "clock_hz"));
      result.withinBefore += seconds <= model * (1 + modelError) &&
                             seconds >= model / (1 + modelError);
    }
  result.points = ratios.size();
  if (ratios.size() < kLeastPoints) {
    error = head + "has " + std::to_string(ratios.size()) +
            " settled times beside predictions, and " +
            std::to_string(kLeastPoints) +
            " are needed; run aot-qualify --parts=benchmark";
    return false;
  }
  result.factor = quantile(ratios, 0.5);
  result.errorBefore = quantile(errors, 0.5);
  result.clockHz = quantile(clocks, 0.5);
  for (double &ratio : ratios)
    ratio = std::abs(std::log(ratio / result.factor));
  result.isEstimate = ratios.size() < kPointsForTenths;
  result.error = std::max(
      kLeastError,
      std::exp(quantile(ratios, result.isEstimate ? 1.0 : 0.9)) - 1);
  return true;
}

void timing::calibrate(const Calibration &calibration, SubjectTime &time) {
  if (!time.error.empty())
    return;
  const std::string chip = time.target.substr(0, time.target.find(':'));
  if (chip != calibration.chip) {
    time.error = "the kernel is for " + chip + ", and '" + calibration.source +
                 "' is a report of a " + calibration.chip +
                 "; leave --calibrate out, or take a report of that chip";
    return;
  }
  for (LaunchTime &launch : time.launches) {
    sim::TimingReport &report = launch.report;
    report.seconds *= calibration.factor;
    report.launchSeconds *= calibration.factor;
    for (sim::MemberTime &member : report.members)
      member.seconds *= calibration.factor;
    report.clocks *= calibration.factor;
    report.timeError = calibration.error;
    report.errorIsEstimate = calibration.isEstimate;
  }
  char note[160];
  std::snprintf(note, sizeof note,
                "times are the model's by %.3f, as %zu measurements say",
                calibration.factor, calibration.points);
  time.notes.push_back(note);
}

std::string timing::toText(const Calibration &c) {
  char text[768];
  std::snprintf(
      text, sizeof text,
      "calibration  %s: %s %s, %zu measurements of %s\n"
      "  times      by %.3f%s\n"
      "  interval   %.0f %% of the model's own, in which %zu of %zu lie; now "
      "%.0f %%%s\n",
      c.source.c_str(), c.chip.c_str(), c.name.c_str(), c.points,
      c.time.c_str(), c.factor,
      c.clockHz > 0 ? (", as if the clock was " +
                       std::to_string(c.clockHz / c.factor / 1e9).substr(0, 4) +
                       " GHz, not " +
                       std::to_string(c.clockHz / 1e9).substr(0, 4))
                          .c_str()
                    : "",
      100 * c.errorBefore, c.withinBefore, c.points, 100 * c.error,
      c.isEstimate ? ", the farthest of all (few points)"
                   : ", in which nine of ten lie");
  return text;
}

json timing::toJson(const Calibration &c) {
  return {{"report", c.source},
          {"chip", c.chip},
          {"name", c.name},
          {"time", c.time},
          {"points", c.points},
          {"factor", c.factor},
          {"time_error", c.error},
          {"time_error_before", c.errorBefore},
          {"within_before", c.withinBefore},
          {"error_is_estimate", c.isEstimate},
          {"clock_hz", c.clockHz}};
}
