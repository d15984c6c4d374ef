//===- Search.h - from times of schedules to a choice -----------*- C++ -*-===//
//
// The search of one bucket, which asks an evaluator for times and knows nothing
// of where they come from.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTUNE_SEARCH_H
#define FOVEA_TOOLS_AOTTUNE_SEARCH_H

#include "Space.h"

#include "fovea/Simulator/Timing.h"

namespace fovea::tune {

/// Answers what the search wants to know of schedules of one subject.
class Evaluator {
public:
  virtual ~Evaluator() = default;
  /// The canonical text of the schedule that a choice comes out as; empty if
  /// the chip cannot run it.
  virtual std::string plan(const ScheduleChoice &choice) = 0;
  /// Times, in the order of the choices. Those that were not tried any more,
  /// since the search is to stop, are not known and not refused.
  /// \param isLast  a choice against the default: a spent budget lets it pass,
  ///                and times are of one measurement, where they are measured
  virtual std::vector<Timing> times(const std::vector<ScheduleChoice> &choices,
                                    const Size &size,
                                    const Condition &condition,
                                    bool isLast) = 0;
  /// Times of each choice by the members of the model's ensemble, the same
  /// members of all; none of a choice of which they are not known.
  using Members = std::vector<sim::MemberTime>;
  virtual std::vector<Members>
  members(const std::vector<ScheduleChoice> &choices, const Size &size,
          const Condition &condition) = 0;
  /// Whether there is an ensemble: not where times are measured.
  virtual bool hasEnsemble() const = 0;
  /// Empty, or why the kernel's results are wrong under a mask.
  virtual std::string check(const ScheduleChoice &choice,
                            const std::string &mask) = 0;
  /// Whether to try no more.
  virtual bool isSpent() = 0;
};

/// What came of a bucket.
struct Found {
  Size size;
  ScheduleChoice chosen;     ///< the baseline, or what is faster beyond a tie
  std::string schedule;      ///< its canonical text
  ScheduleChoice parameters; ///< the fewest that give it
  bool isBaseline = true;
  bool isComplete = false; ///< the search ended by itself
  /// The default and all seeds have answers, so that rows may be replaced.
  bool isDecided = false;
  Timing baseline, best; ///< under the first condition
  ScheduleChoice bestChoice;
  /// Of the chosen one, the mean over conditions: the least of the ensemble's
  /// members, where there is one.
  double gain = 1;
  double estimate = 1; ///< ... by the model itself, or as measured
  size_t tried = 0, refused = 0;
  size_t ties = 0;          ///< schedules that tie with the best, besides it
  bool baselineTies = true; ///< the baseline is the best or ties with it
  std::string why;          ///< of the choice, for people
};

/// Goes from the baseline, and from the best of `seeds` if that is faster, to
/// better neighbours until there are none. What it ends at takes the baseline's
/// place if it is faster beyond a tie in the mean over the conditions, by each
/// member of the ensemble where there is one, slower under none, and computes
/// what it should. Of such schedules one of the seeds
/// that ties with the best is taken before it: fewer kernels serve more
/// buckets.
Found searchBucket(const std::vector<Axis> &axes,
                   const ScheduleChoice &baseline,
                   const std::vector<ScheduleChoice> &seeds, const Size &size,
                   const std::vector<Condition> &conditions,
                   Evaluator &evaluator);

/// The choice without what it need not say, since the schedule is the same.
/// \param forReaders  who want to see the algorithm named in any case
ScheduleChoice simplified(ScheduleChoice choice, Evaluator &evaluator,
                          bool forReaders = false);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_SEARCH_H
