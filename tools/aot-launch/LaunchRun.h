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

#include <memory>

namespace fovea::launch {

enum class Outcome {
  Pass,
  Mismatch,    ///< wrong numbers
  Refused,     ///< the description and this machine do not go together
  DeviceError, ///< the HIP library reported a failure
};

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

private:
  struct Impl;
  explicit Machine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace fovea::launch

#endif // FOVEA_TOOLS_AOTLAUNCH_LAUNCHRUN_H
