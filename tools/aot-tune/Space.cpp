//===- Space.cpp - which schedules there are to try -----------------------===//

#include "Space.h"

#include "Text.h"

#include "fovea/Package/OperationSpec.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

using namespace fovea;
using namespace fovea::tune;

namespace {

struct AxisRow {
  const char *name;
  bool ofBackward; ///< gradients have it too
  std::vector<const char *> keys;
  std::vector<std::vector<int32_t>> values; ///< each a number a key
};

// Numbers of an axis go together: what one of them is good for depends on the
// others (rows of a wave are block_m / waves; segments need tiles that pass
// through registers).
const AxisRow kAxes[] = {
    {"rows of a workgroup",
     true,
     {"block_m", "waves"},
     {{32, 1},
      {32, 2},
      {64, 2},
      {64, 4},
      {128, 2},
      {128, 4},
      {128, 8},
      {256, 4},
      {256, 8}}},
    {"keys of an iteration", true, {"block_n"}, {{16}, {32}, {64}, {128}}},
    {"pipeline",
     false,
     {"stages", "direct_copy"},
     {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {1, 1}, {2, 1}, {3, 1}}},
    {"stages", true, {"stages"}, {{1}, {2}, {4}, {5}}},
    {"occupancy", true, {"waves_per_simd"}, {{1}, {2}, {3}, {4}}},
    {"waves that share queries", true, {"value_split"}, {{1}, {2}}},
    {"place of queries", true, {"queries_in_lds"}, {{0}, {1}, {3}}},
};

} // namespace

std::vector<Axis> tune::axesOf(const Subject &subject) {
  const bool isBackward = subject.problem.op == OpKind::Backward;
  std::vector<Axis> axes;
  for (const AxisRow &row : kAxes) {
    // Of two rows with a key the one with more is forward's.
    if (isBackward ? !row.ofBackward
                   : row.keys == std::vector<const char *>{"stages"})
      continue;
    Axis &axis = axes.emplace_back();
    axis.name = row.name;
    axis.keys.assign(row.keys.begin(), row.keys.end());
    for (const std::vector<int32_t> &numbers : row.values) {
      ScheduleChoice &value = axis.values.emplace_back();
      for (size_t i = 0; i != numbers.size(); ++i)
        value.numbers[axis.keys[i]] = numbers[i];
    }
  }
  auto addNames = [&](const char *name, const char *key,
                      const std::vector<std::string> &names) {
    Axis &axis = axes.emplace_back();
    axis = {name, {key}, {}};
    for (const std::string &text : names)
      axis.values.emplace_back().names[key] = text;
  };
  addNames("matrix instruction", "inst",
           tools::matrixInstrsOf(subject.target, subject.problem.dtype));
  if (isBackward && subject.algorithm.empty()) {
    std::vector<std::string> names;
    for (const spec::AlgorithmSpec &algorithm :
         spec::specOf(subject.problem.op).algorithms)
      if (!algorithm.sumsNarrowly())
        names.push_back(algorithm.name);
    addNames("algorithm", "algorithm", names);
  }
  return axes;
}

std::vector<ScheduleChoice> tune::neighbours(const ScheduleChoice &choice,
                                             const std::vector<Axis> &axes) {
  std::vector<ScheduleChoice> all;
  for (const Axis &axis : axes) {
    ScheduleChoice without = choice;
    for (const std::string &key : axis.keys) {
      without.numbers.erase(key);
      without.names.erase(key);
    }
    if (!(without == choice))
      all.push_back(without);
    for (const ScheduleChoice &value : axis.values) {
      ScheduleChoice with = without;
      with.numbers.insert(value.numbers.begin(), value.numbers.end());
      with.names.insert(value.names.begin(), value.names.end());
      if (!(with == choice))
        all.push_back(std::move(with));
    }
  }
  return all;
}

namespace {

/// The parameters of a launch as they are in the text of a schedule.
using Parameters = std::map<std::string, std::string>;

/// How many rows a wave has says more of what it does than how many waves there
/// are.
void countRowsOfWaves(Parameters &parameters) {
  const auto rows = parameters.find("block_m"),
             waves = parameters.find("waves");
  if (rows == parameters.end() || waves == parameters.end())
    return;
  const double all = std::atof(rows->second.c_str()),
               shared = std::atof(waves->second.c_str());
  if (shared > 0)
    waves->second = std::to_string(all / shared);
}

/// "atomic;dkdv:block_m=64,...;dq:...": by launch. Under "" is the one launch
/// that has no name, and of others the algorithm.
std::map<std::string, Parameters> launchesOf(const std::string &schedule) {
  std::map<std::string, Parameters> launches;
  for (const std::string &part : tool::splitAt(schedule, ';')) {
    const size_t colon = part.find(':');
    const bool isNamed = colon != std::string::npos;
    const std::string list = isNamed ? part.substr(colon + 1) : part;
    Parameters &parameters = launches[isNamed ? part.substr(0, colon) : ""];
    for (const std::string &pair : tool::splitAt(list, ',')) {
      const size_t equals = std::min(pair.find('='), pair.size());
      if (equals == pair.size())
        parameters["algorithm"] = pair;
      else
        parameters[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    countRowsOfWaves(parameters);
  }
  return launches;
}

/// Whose numbers are names of places, of which none is nearer than others.
constexpr const char *kPlaces = "queries_in_lds";

double distance(const Parameters &a, const Parameters &b) {
  std::set<std::string> keys;
  for (const Parameters *of : {&a, &b})
    for (const auto &[key, value] : *of)
      keys.insert(key);
  double sum = 0;
  for (const std::string &key : keys) {
    const auto own = a.find(key), other = b.find(key);
    if (own == a.end() || other == b.end()) {
      sum += 1;
    } else if (own->second != other->second) {
      const double from = std::atof(own->second.c_str()),
                   to = std::atof(other->second.c_str());
      sum += from > 0 && to > 0 && key != kPlaces
                 ? std::fabs(std::log2(to / from))
                 : 1;
    }
  }
  return sum;
}

} // namespace

double tune::distance(const std::string &a, const std::string &b) {
  const auto own = launchesOf(a), other = launchesOf(b);
  double sum = 0;
  for (const auto &[name, parameters] : own)
    if (const auto at = other.find(name); at != other.end())
      sum += ::distance(parameters, at->second);
    else
      ++sum;
  for (const auto &[name, parameters] : other)
    sum += !own.count(name);
  return sum;
}
