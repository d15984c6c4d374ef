//===- SimpleChecks.h - Alignment and barriers ------------------*- C++ -*-===//
//
// Checkers that need little state of their own.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_SIMPLECHECKS_H
#define FOVEA_SIMULATOR_CHECK_SIMPLECHECKS_H

#include "check/Report.h"

#include <vector>

namespace fovea::sim {

/// Finds accesses that hardware does not carry out as they are written: scalar
/// loads drop the lower bits of an address, and LDS instructions with two
/// places want multiples of their element. On demand also elements of 2, 4 and
/// more bytes at addresses that are no multiple of 2 or 4: ROCm has memory
/// serve these, and compilers merge bytes into them, but where neither was
/// meant they are slow or wrong. (Misaligned atomics are always reported.)
class AlignCheck {
public:
  AlignCheck(const Reporter &reporter, bool hardware, bool natural)
      : Out(reporter), Hardware(hardware), Natural(natural) {}
  void before(Wave &wave, const InstPlan &plan);
  void access(Wave &wave, const InstPlan &plan, const MemoryAccess &access);

private:
  const Reporter &Out;
  bool Hardware, Natural;
};

/// Finds barriers that not all work-items of a workgroup reach: waves that meet
/// at different barriers, and lanes that sit a barrier out and access memory or
/// LDS after it. (Arithmetic does not count: spills of whole registers switch
/// all lanes on.) Lanes and waves that have ended are not missed.
class BarrierCheck {
public:
  explicit BarrierCheck(const Reporter &reporter) : Out(reporter) {}
  void beginGroup(Wave *waves, unsigned count);
  void before(Wave &wave, const InstPlan &plan);
  void after(Wave &wave, const InstPlan &plan);
  void barrier();

private:
  struct State {
    uint64_t initial = 0; ///< lanes that the wave started with
    uint64_t missed = 0;  ///< of them, those that a barrier passed without
    const InstPlan *barrier = nullptr;
  };
  const Reporter &Out;
  Wave *First = nullptr;
  unsigned Count = 0;
  std::vector<State> Waves;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_SIMPLECHECKS_H
