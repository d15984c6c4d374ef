//===- Analysis.h - what a prediction says about a kernel -------*- C++ -*-===//
//
// Arithmetic on a TimingReport that all outputs share: each instruction's share
// of the time, the loops, and what the reasons for waiting mean.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_ANALYSIS_H
#define FOVEA_TOOLS_AOTTIME_ANALYSIS_H

#include "fovea/Simulator/Timing.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::timing {

/// Instructions from the target of a backward branch to the branch.
struct Loop {
  size_t first = 0, last = 0;  ///< indices into TimingReport::instructions
  double iterations = 0;       ///< of a wave: times that it got to the branch
  double share = 0;            ///< of the time of all waves
  double clocks = 0;           ///< of a wave, for one iteration
  double matrix = 0, valu = 0; ///< clocks that one keeps these units busy
  bool innermost = true;
};

struct Analysis {
  explicit Analysis(const sim::TimingReport &report);

  /// Clocks of a wave that an instruction took: waiting for it and issuing it.
  static double clocksOf(const sim::InstTiming &inst, unsigned slotClocks);
  /// Why waves waited for an instruction most, and for how many clocks.
  static std::pair<sim::Stall, uint64_t> mainStall(const sim::InstTiming &inst);
  /// Instructions that take most of the time, at most `count`.
  std::vector<size_t> costliest(size_t count) const;

  double waves = 0;          ///< that ended in the samples
  double waveClocks = 0;     ///< of all instructions
  std::vector<double> share; ///< of waveClocks, by instruction
  std::vector<Loop> loops;   ///< by address of the first instruction
  int hot = -1;              ///< the innermost loop with most time; -1: none
  /// Reasons with their shares of the waves' time, largest first; without those
  /// that never occurred.
  std::vector<std::pair<sim::Stall, double>> stalls;
};

/// The model counts a wait at the instruction before which it happens. Moves
/// that for a barrier to the s_barrier, where a reader looks for it, when it
/// stands directly in front.
void moveBarrierWaits(sim::TimingReport &report);

/// The instruction to which a branch goes when it is taken, as bytes from the
/// kernel's entry; false when `inst` is no direct branch.
bool branchTarget(const sim::InstTiming &inst, int64_t &offset);

/// What a reason for waiting means, and what helps against it. Plain text
/// without a full stop.
struct Advice {
  std::string_view means, helps;
};
Advice adviceFor(sim::Stall stall);

/// Clocks [begin, end) of the timeline worth showing: `iterations` iterations
/// of the hot loop of some wave in the middle of its work, or the middle
/// `fallback` clocks.
struct Window {
  uint64_t begin = 0, end = 0;
};
Window steadyWindow(const sim::TimingReport &report, const Analysis &analysis,
                    unsigned iterations, uint64_t fallback);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_ANALYSIS_H
