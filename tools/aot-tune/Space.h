//===- Space.h - which schedules there are to try ---------------*- C++ -*-===//
//
// A table of axes: parameters that are changed together, and the values worth
// trying. What a chip cannot run is told by the compiler's own check of
// schedules before anything is compiled, so the table names no chip.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTUNE_SPACE_H
#define FOVEA_TOOLS_AOTTUNE_SPACE_H

#include "Types.h"

namespace fovea::tune {

/// Parameters that are changed together: each value sets all of them.
struct Axis {
  std::string name;
  std::vector<std::string> keys;
  std::vector<ScheduleChoice> values;
};

/// The axes of the subject's operation.
std::vector<Axis> axesOf(const Subject &subject);

/// The choices that differ from `choice` in one axis: its parameters as the
/// compiler chooses them, and each of the axis' values.
std::vector<ScheduleChoice> neighbours(const ScheduleChoice &choice,
                                       const std::vector<Axis> &axes);

/// How far apart two schedules are, by their canonical texts: of each launch
/// that both have the doublings that lie between numbers of a parameter, of
/// `waves` those between the rows of one wave, and 1 where other values differ
/// or only one has the parameter; 1 for each launch that only one has, and 1
/// for another algorithm.
double distance(const std::string &a, const std::string &b);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_SPACE_H
