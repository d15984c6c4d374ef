//===- WaitCheck.h - Operations in flight and their registers ---*- C++ -*-===//
//
// Follows, for each wave, the memory operations that a wait counter does not
// yet promise to be done, and the registers and LDS bytes that they will write.
// Operations of one counter complete in the order of issue, those of scalar
// memory and FLAT ones of GFX9 in any order (so only a wait for 0 helps), as
// the chapters on data dependency resolution and on FLAT of AMD's ISA documents
// say. A flat operation counts on two counters; the one of the address space
// that it met is what it needs.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_WAITCHECK_H
#define FOVEA_SIMULATOR_CHECK_WAITCHECK_H

#include "check/Report.h"

#include <vector>

namespace fovea::sim {

class WaitCheck {
public:
  /// \p report: whether early uses end the wave, or waits are only followed.
  WaitCheck(const Reporter &reporter, bool report)
      : Out(reporter), Reports(report) {}

  void beginGroup(unsigned waves);
  /// Looks at the registers of the instruction and does its waits. True when
  /// writes to LDS were completed by it.
  bool before(Wave &wave, const InstPlan &plan);
  /// \p clock: of the wave, for race-lds.
  void access(Wave &wave, const InstPlan &plan, const MemoryAccess &access,
              uint32_t clock);
  void after(Wave &wave, const InstPlan &plan);

  /// The clock at which the oldest write to LDS was issued that is not known to
  /// be done; UINT32_MAX when all are.
  /// \p loads: of loads to LDS, or of the others.
  uint32_t oldestLdsWrite(unsigned wave, bool loads) const;
  /// How many reads of LDS (two of a ds_read2) are not known to be done: the
  /// last ones of the wave.
  unsigned openLdsReads(unsigned wave) const;
  /// What it returns at most.
  static constexpr unsigned kMostLdsReads = 128;

private:
  struct Operation {
    uint32_t index = 0;
    bool unordered = false;
    uint8_t ranges = 0;
    uint8_t ldsReads = 0; ///< into registers
    RegRange range[2];
    uint32_t ldsLow = 0, ldsHigh = 0; ///< bytes that a load will write to LDS
    uint32_t ldsClock = UINT32_MAX;   ///< when it writes LDS
  };
  /// The operations on one counter, oldest first.
  struct Queue {
    /// No counter counts further.
    static constexpr unsigned kMost = kMostLdsReads / 2;
    Operation op[kMost];
    unsigned begin = 0, size = 0;
    unsigned unordered = 0, toLds = 0;
    Operation &at(unsigned i) { return op[(begin + i) % kMost]; }
    const Operation &at(unsigned i) const { return op[(begin + i) % kMost]; }
  };
  struct State {
    RegSet pending;
    bool shared = false; ///< a register may be pending on two operations
    Queue queue[kWaitCounters];
    // Of the instruction that executes:
    uint8_t spaces = 0, ldsReads = 0;
    uint32_t ldsLow = UINT32_MAX, ldsHigh = 0;
    uint32_t ldsClock = UINT32_MAX;
  };

  bool complete(State &s, Queue &q, unsigned most);
  void retire(State &s, const Operation &done);
  void dropOldest(State &s, Queue &q);
  void rebuild(State &s);
  void early(Wave &wave, const InstPlan &plan, State &s);
  std::string counterName(unsigned counter, unsigned value) const;

  const Reporter &Out;
  bool Reports;
  std::vector<State> Waves;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_WAITCHECK_H
