//===- Checks.h - What a launch is watched for ------------------*- C++ -*-===//
//
// The switchable checkers: which there are, and a text form for settings and
// command lines. What each finds and costs: docs/Checkers.md.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECKS_H
#define FOVEA_SIMULATOR_CHECKS_H

#include "fovea/Simulator/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::sim {

/// Bits of LaunchOptions::checks.
enum Check : uint32_t {
  kCheckBounds = 1 << 0,
  kCheckBudget = 1 << 1,
  kCheckAlign = 1 << 2,
  kCheckBarrier = 1 << 3,
  kCheckWaitcnt = 1 << 4,
  kCheckUninitReg = 1 << 5,
  kCheckUninitLds = 1 << 6,
  kCheckUninitMem = 1 << 7,
  kCheckRaceLds = 1 << 8,
  kCheckRaceGlobal = 1 << 9,
  kCheckAlignNatural = 1 << 10, ///< not among "all"
};
constexpr uint32_t kAlwaysChecked = kCheckBounds | kCheckBudget;
constexpr uint32_t kAllChecks = kCheckAlignNatural - 1;

struct CheckInfo {
  Check check;
  std::string_view name;  ///< "race-lds"
  std::string_view finds; ///< for help texts
};

/// All checkers, in the order of their bits.
const std::vector<CheckInfo> &knownChecks();

/// The name of one bit.
std::string_view nameOf(Check check);

/// Reads "all" (but "align-natural", which correct kernels may fail), "none" or
/// names with commas between them; a name after '-' is taken away:
/// "all,-barrier". Bounds and budget are always on. Errors: InvalidArgument,
/// with the names that there are.
Status parseChecks(std::string_view text, uint32_t &checks);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECKS_H
