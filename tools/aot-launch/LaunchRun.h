//===- LaunchRun.h - run what a description says ----------------*- C++ -*-===//
//
// Devices of one HIP library, and the course of one description on one of them:
// fill buffers, load code objects, launch, compare.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTLAUNCH_LAUNCHRUN_H
#define FOVEA_TOOLS_AOTLAUNCH_LAUNCHRUN_H

#include "Check.h"
#include "Description.h"
#include "HipCalls.h"
#include "Outcome.h"

#include <memory>

namespace fovea::launch {

using tool::Outcome;

struct Report {
  Outcome outcome = Outcome::Pass;
  std::string message;         ///< why it is no pass; lines
  std::vector<double> seconds; ///< of each launch: host time, or GPU time
  bool checked = false;
  describe::Verdict verdict;
};

/// Fills in what a description leaves to its code objects: the target, and a
/// kernel where there is only one. False with `error` set where there is none
/// or a choice.
bool complete(describe::Problem &problem, std::string &error);

/// How kernels are measured against one another.
struct MeasureOptions {
  /// All are launched in turn this long at least before times count, and until
  /// those of two turns agree: the clock has settled.
  double warmSeconds = 0.5;
  double settled = 0.02; ///< agreement of two turns: a share of a time
  unsigned rounds = 15;  ///< of times that count, each in an order of its own
  double roundSeconds = 2e-3; ///< launches of one kernel between two events
  uint64_t seed = 1;          ///< of the orders
};

/// What kernels took, in the order of the descriptions.
struct Measured {
  std::vector<double> seconds; ///< medians over the rounds, of all launches
  std::vector<double> spread;  ///< quartiles' distance over the median
  bool isSettled = false;      ///< before times counted
  std::string error;           ///< not empty: there are no times, and why
};

class Machine {
public:
  /// Opens the HIP library: "auto", "rocm", "sim" or a path; empty: as
  /// FOVEA_HIP_LIBRARY says. Null with `error` set when it or its devices can't
  /// be had.
  static std::unique_ptr<Machine> open(const std::string &hip,
                                       std::string &error);
  ~Machine();

  /// Runs on device number `device`, or, if it is -1, on the first one that is
  /// of `target` or, if that is empty, of the description's. `check` false:
  /// results are not looked at.
  Report run(const describe::Problem &problem, bool check, int device,
             const std::string &target);

  /// Measures the launches of descriptions that have the same buffers, all on
  /// one device: the first of `target`.
  Measured measure(const std::vector<describe::Problem> &problems,
                   const MeasureOptions &options, const std::string &target);

  /// Whether the devices are simulated: their times are this machine's.
  bool isSimulated() const;
  /// The first device that runs the target's code, "gfx942:sramecc+:xnack-", or
  /// empty where there is none.
  std::string deviceOf(const std::string &target) const;

private:
  struct Impl;
  explicit Machine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace fovea::launch

#endif // FOVEA_TOOLS_AOTLAUNCH_LAUNCHRUN_H
