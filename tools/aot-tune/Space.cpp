//===- Space.cpp - which schedules there are to try -----------------------===//

#include "Space.h"

#include "fovea/Package/OperationSpec.h"

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
