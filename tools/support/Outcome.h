//===- Outcome.h - how a run of kernels ended -------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_SUPPORT_OUTCOME_H
#define FOVEA_TOOLS_SUPPORT_OUTCOME_H

namespace fovea::tool {

/// Their numbers are the exit codes of the programs that run kernels.
enum class Outcome {
  Pass,
  Mismatch,    ///< wrong numbers, or writes outside the output
  Refused,     ///< the problem or description and this machine do not fit
  DeviceError, ///< the HIP library reported a failure
};

constexpr int exitCode(Outcome outcome) { return int(outcome); }
/// Also of a wrong command line.
inline constexpr int kUsage = exitCode(Outcome::Refused);
inline constexpr int kDevice = exitCode(Outcome::DeviceError);

/// As reports have it.
constexpr const char *outcomeName(Outcome outcome) {
  constexpr const char *names[] = {"pass", "MISMATCH", "REFUSED",
                                   "DEVICE ERROR"};
  return names[exitCode(outcome)];
}

} // namespace fovea::tool

#endif // FOVEA_TOOLS_SUPPORT_OUTCOME_H
