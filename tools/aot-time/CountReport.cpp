//===- CountReport.cpp - counts as text and for programs ------------------===//

#include "CountRun.h"
#include "Reports.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;

namespace {

/// A figure of one wave: whole where it is.
json numberOf(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) < 1e-9 ? json(int64_t(whole)) : json(value);
}

struct Figure {
  const char *key, *what;
  double value; ///< of all waves and steps
};

std::vector<Figure> figuresOf(const sim::ExecutionCounts &c) {
  auto n = [](uint64_t value) { return double(value); };
  return {
      {"instructions", "instructions", n(c.instructions())},
      {"matrix_clocks", "clocks of the matrix core", c.matrixClocks},
      {"vector_clocks", "clocks of the vector ALU", c.vectorClocks},
      {"matrix_flops", "matrix operations", c.matrixFlops},
      {"exponentials", "exponentials", n(c.exponentials)},
      {"packed_floats", "packed fp32", n(c.packedFloats)},
      {"lane_moves", "moves between lanes", n(c.laneMoves)},
      {"accumulator_moves", "accumulator moves", n(c.accumulatorMoves)},
      {"waits", "waits", n(c.waits)},
      {"barriers", "barriers", n(c.barriers)},
      {"scratch_accesses", "scratch accesses", n(c.scratch)},
      {"lds_clocks", "clocks of the LDS banks", n(c.ldsClocks)},
      {"lds_conflict_clocks", "of these, conflicts", n(c.ldsConflicts)},
      {"lds_bytes_loaded", "bytes from LDS", n(c.ldsBytesLoaded)},
      {"lds_bytes_stored", "bytes to LDS", n(c.ldsBytesStored)},
  };
}

std::string figureText(double value) {
  char text[48];
  const bool whole = std::abs(value - std::round(value)) < 1e-9;
  std::snprintf(text, sizeof text, whole ? "%14.0f" : "%14.3f", value);
  return text;
}

/// Of the clocks that matrix core and vector ALU take one after the other,
/// those of the matrix core.
double matrixShare(const sim::ExecutionCounts &c) {
  const double sum = c.matrixClocks + c.vectorClocks;
  return sum > 0 ? c.matrixClocks / sum : 0;
}

std::string stepText(const CountStep &step) {
  return std::to_string(step.step) + " of " + step.variable;
}

} // namespace

json timing::toJson(const SubjectCount &subject) {
  json result = subjectJson(subject);
  if (subject.step)
    result["per"] = {{"variable", subject.step->variable},
                     {"step", subject.step->step},
                     {"times", subject.step->times}};
  if (!subject.error.empty())
    return result;
  json &launches = result["launches"] = json::array();
  for (const LaunchCount &launch : subject.launches) {
    json executed, classes = json::object();
    auto byMnemonic = [&](const std::map<std::string, uint64_t> &figures) {
      json result = json::object();
      for (const auto &[name, n] : figures)
        result[name] = numberOf(double(n) / launch.divisor());
      return result;
    };
    for (const Figure &figure : figuresOf(launch.counts))
      executed[figure.key] = numberOf(figure.value / launch.divisor());
    executed["matrix_share"] = matrixShare(launch.counts);
    for (unsigned i = 0; i < sim::kInstClasses; ++i)
      classes[std::string(sim::name(sim::InstClass(i)))] =
          numberOf(double(launch.counts.byClass[i]) / launch.divisor());
    executed["classes"] = std::move(classes);
    executed["mnemonics"] = byMnemonic(launch.counts.byMnemonic);
    executed["lds_conflicts"] = byMnemonic(launch.counts.conflictsByMnemonic);
    launches.push_back(
        {{"kernel", launch.kernel.name},
         {"grid", launch.launch.grid},
         {"block", launch.launch.block},
         {"workgroups", launch.workgroups},
         {"waves", launch.waves},
         {"registers",
          {{"vgprs", launch.kernel.vgprs},
           {"agprs", launch.kernel.agprs},
           {"sgprs", launch.kernel.sgprs}}},
         {"lds_bytes", launch.kernel.staticLdsBytes + launch.launch.dynamicLds},
         {"scratch_bytes", launch.kernel.privateBytes},
         {"executed", std::move(executed)}});
  }
  return result;
}

std::string timing::countText(const SubjectCount &subject) {
  std::string text = subject.label + ": " + subject.problem.name + "\n  " +
                     subject.target + ", " + variablesText(subject.problem) +
                     "\n";
  if (!subject.schedule.empty())
    text += scheduleText("  schedule ", subject.schedule);
  for (const LaunchCount &launch : subject.launches) {
    text += "\nkernel " + launch.kernel.name + ", " +
            std::to_string(launch.workgroups) + " workgroups of " +
            std::to_string(launch.waves /
                           std::max<uint64_t>(1, launch.workgroups)) +
            " waves\n  a wave executes" +
            (subject.step ? " for " + stepText(*subject.step) : "") + "\n";
    auto line = [&](const std::string &what, double value) {
      std::string name = "    " + what;
      name.resize(std::max<size_t>(name.size() + 1, 34), ' ');
      text += name + figureText(value) + "\n";
    };
    for (const Figure &figure : figuresOf(launch.counts))
      line(figure.what, figure.value / launch.divisor());
    for (const auto &[name, n] : launch.counts.conflictsByMnemonic)
      line("conflicts in " + name, double(n) / launch.divisor());
    line("matrix share, %", 100 * matrixShare(launch.counts));
    text += "  by class\n";
    for (unsigned i = 0; i < sim::kInstClasses; ++i)
      if (launch.counts.byClass[i])
        line(std::string(sim::name(sim::InstClass(i))),
             double(launch.counts.byClass[i]) / launch.divisor());
    text += "  by instruction\n";
    std::vector<std::pair<std::string, uint64_t>> sorted(
        launch.counts.byMnemonic.begin(), launch.counts.byMnemonic.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return std::tie(b.second, a.first) < std::tie(a.second, b.first);
    });
    for (const auto &[name, n] : sorted)
      line(name, double(n) / launch.divisor());
  }
  return text;
}
