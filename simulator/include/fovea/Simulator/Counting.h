//===- Counting.h - What a kernel executes, exactly -------------*- C++ -*-===//
//
// Counts of a launch's instructions by what they are for, and the bank conflicts
// of its LDS accesses. Needs no model of time, so that every simulated chip has
// it. Taking the counts of two launches that differ by one block of keys gives
// an iteration of the main loop without looking for loops in the code.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_COUNTING_H
#define FOVEA_SIMULATOR_COUNTING_H

#include "fovea/Simulator/Launch.h"

#include <map>
#include <string>

namespace fovea::sim {

/// All figures are sums over the waves of a launch.
struct ExecutionCounts {
  uint64_t workgroups = 0, waves = 0;
  std::array<uint64_t, kInstClasses> byClass{};
  std::map<std::string, uint64_t> byMnemonic; ///< without encoding suffixes

  // Kinds that cut across the classes.
  /// Instructions by which every lane gets a value of another one: ds_permute,
  /// ds_bpermute, ds_swizzle, v_permlane* and whatever has a DPP operand. What
  /// goes through LDS memory shows in `ldsBytesStored`.
  uint64_t laneMoves = 0;
  uint64_t accumulatorMoves = 0; ///< v_accvgpr_*
  uint64_t exponentials = 0;     ///< v_exp_*
  uint64_t packedFloats = 0;     ///< v_pk_*_f32
  uint64_t waits = 0;            ///< s_waitcnt and s_wait_*
  uint64_t barriers = 0;         ///< counted where a wave waits for others
  uint64_t scratch = 0;          ///< accesses to scratch: spills, arrays

  // LDS memory. `ldsClocks` is what the banks need; of these, `ldsConflicts` are
  // beyond what accesses of that width need at least.
  uint64_t ldsClocks = 0, ldsConflicts = 0;
  std::map<std::string, uint64_t> conflictsByMnemonic; ///< of `ldsConflicts`
  uint64_t ldsBytesLoaded = 0, ldsBytesStored = 0; ///< by active lanes

  /// Clocks that the instructions keep a SIMD's matrix core, and its vector ALU
  /// without that, at least; floating-point operations of matrix instructions.
  double matrixClocks = 0, vectorClocks = 0, matrixFlops = 0;

  uint64_t operator[](InstClass cls) const {
    return byClass[static_cast<unsigned>(cls)];
  }
  uint64_t instructions() const;
  ExecutionCounts &operator+=(const ExecutionCounts &other);
  /// Figure by figure. \p other may have no figure that is larger, which
  /// contains() tells.
  ExecutionCounts &operator-=(const ExecutionCounts &other);
  /// Whether no figure of \p other is larger.
  bool contains(const ExecutionCounts &other) const;
};

/// Runs the launch \p config of \p kernel, all its workgroups, and adds up what
/// they execute. Errors: those of launch().
Status count(const CodeObject &code, const KernelInfo &kernel,
             const LaunchConfig &config, ExecutionCounts &counts);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_COUNTING_H
