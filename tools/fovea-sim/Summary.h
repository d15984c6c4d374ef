//===- Summary.h - what a program did on the simulated device ---*- C++ -*-===//
//
// Put together of the lines that the simulated HIP library logs (docs/HipSim.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_FOVEASIM_SUMMARY_H
#define FOVEA_TOOLS_FOVEASIM_SUMMARY_H

#include <cstdint>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fovea::foveasim {

/// A sum of predicted times, seconds, with the sum of their intervals.
struct TimeSum {
  double seconds = 0, low = 0, high = 0;
  uint64_t launches = 0;   ///< that have a prediction
  bool isEstimate = false; ///< of some the interval is an estimate
  std::string why;         ///< why the others have none
  TimeSum &operator+=(const TimeSum &other);
};

/// All launches of one kernel on one chip, or of several.
struct KernelSum {
  std::string chip, symbol;
  uint64_t launches = 0, workgroups = 0, instructions = 0;
  std::map<std::string, uint64_t> classes; ///< instructions
  TimeSum time;
  KernelSum &operator+=(const KernelSum &other);
};

struct Finding {
  std::string by; ///< a checker, or what else stopped the launch
  std::string kernel, message;
};

struct Summary {
  struct Process {
    uint64_t id = 0;
    std::string program, error;
    std::vector<std::string> chips;
  };
  std::vector<Process> processes;
  std::vector<KernelSum> kernels; ///< those with most instructions first
  std::vector<Finding> findings;
  std::vector<std::string> refusals;
  bool timed = false;  ///< times were asked for
  std::string watched; ///< checkers that were asked for; "": none

  /// Adds what lines of the log say. What is no whole line, of a process that was
  /// killed in the middle of it, is passed over.
  void read(std::istream &log);
  KernelSum total() const;
  std::string text() const; ///< lines
  nlohmann::json toJson() const;
};

} // namespace fovea::foveasim

#endif // FOVEA_TOOLS_FOVEASIM_SUMMARY_H
