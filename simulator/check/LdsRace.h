//===- LdsRace.h - Races on LDS ---------------------------------*- C++ -*-===//
//
// For each word of the workgroup's LDS the last write and the waves that read
// it since the last barrier. An access races with another wave's when neither
// happened before the other and one of them writes; atomics do not race with
// atomics. An access counts as done when a wait counter says so: one that is
// still on its way at a barrier is not ordered by it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_LDSRACE_H
#define FOVEA_SIMULATOR_CHECK_LDSRACE_H

#include "check/Clocks.h"
#include "check/Report.h"

namespace fovea::sim {

class LdsRace {
public:
  LdsRace(const Reporter &reporter, const Clocks &clocks)
      : Out(reporter), Time(clocks) {}
  void beginGroup(const Group &group);
  void access(Wave &wave, const InstPlan &plan, const MemoryAccess &access);
  /// Reports a race of the instruction's store if it changed what was there.
  void after(Wave &wave, const InstPlan &plan);
  /// Behind a barrier: the last \p open reads of \p wave are still under way.
  void keepReads(unsigned wave, unsigned open);

private:
  struct Cell {
    uint64_t write; ///< clock, instruction, wave, bytes, atomic; 0: none
    uint64_t read;  ///< barriers passed, bytes, waves
  };
  struct Read {
    uint32_t instruction, bytes;
    uint64_t mask;
    uint32_t address[64];
  };
  struct Now;
  /// Calls \p function(cell, instruction of the last read, index of the first
  /// word, bytes) for the cells of \p bytes at \p at.
  template <typename Function>
  void eachCell(uint32_t at, uint32_t bytes, const Function &function);
  void step(const Now &now, Cell &cell, uint32_t index, unsigned bytes,
            unsigned lane);
  void race(Wave &wave, const InstPlan &plan, MemoryAccess::Kind kind,
            uint32_t index, unsigned lane, const std::string &other);
  /// A store that races unless it stores what is there already: waves that hold
  /// the same data may all store it.
  struct Suspect {
    uint32_t index, before;
    unsigned lane;
    std::string other;
  };

  const Reporter &Out;
  /// The wave of Cell::write, whichever of its clocks wrote.
  unsigned ownerOf(uint64_t write) const;
  const Clocks &Time;
  void split(uint32_t block);
  uint32_t readBy(uint32_t index) const;
  std::vector<Cell> Blocks, Cells; ///< of 16 and of 4 bytes
  std::vector<Suspect> Suspects;
  /// Instruction of the last read.
  std::vector<uint32_t> BlockReadBy, ReadBy;
  /// The last reads of each wave, WaitCheck::kMostLdsReads of it, in turn, and
  /// how many it has made.
  std::vector<Read> Reads;
  std::vector<uint32_t> ReadCount;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_LDSRACE_H
