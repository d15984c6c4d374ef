//===- LaunchLog.h - a line of JSON for each launch -------------*- C++ -*-===//
//
// What fovea-sim makes its summary of. Each line is written at once and whole, so
// that a program that is killed, and several processes with one log, lose nothing.
// docs/HipSim.md lists the fields; they are only ever added.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_LAUNCHLOG_H
#define FOVEA_HIPSIM_LAUNCHLOG_H

#include "fovea/Simulator/Launch.h"

#include <memory>
#include <string>
#include <vector>

namespace fovea::hipsim {

/// A launch's time by the timing model, or why there is none.
struct PredictedTime {
  std::string why; ///< not empty: there is none
  double seconds = 0;
  double error = 0; ///< from seconds / (1 + error) to seconds * (1 + error)
  bool isEstimate = false;
};

/// Thread safe.
class LaunchLog {
public:
  /// Opens `path` to append to it; null when that cannot be.
  static std::shared_ptr<LaunchLog> open(const std::string &path);
  ~LaunchLog();
  LaunchLog(const LaunchLog &) = delete;
  LaunchLog &operator=(const LaunchLog &) = delete;

  /// This process uses the library, on these chips; or `error`: it has none.
  void process(const std::vector<std::string> &chips, const std::string &error);
  /// A launch has ended. `predicted` may be null.
  void launch(int device, const sim::KernelInfo &kernel,
              const sim::LaunchConfig &config, const sim::Counters &counters,
              const sim::Status &status, const PredictedTime *predicted);
  /// Something is refused that only the report tells of.
  void refusal(const std::string &why);

private:
  explicit LaunchLog(int file) : file(file) {}
  void write(std::string line);
  const int file;
};

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_LAUNCHLOG_H
