//===- GlobalRace.h - Races on device memory --------------------*- C++ -*-===//
//
// For each word of device memory that a launch touches, who wrote it last and
// who read it: workgroup, wave and the wave's clock. Within a workgroup
// accesses are ordered as Clocks tells. Workgroups of a launch are not ordered
// at all, unless one met the other at an atomic (an access of device scope
// counts as one): it then knows all that the other did until now, which may
// hide a race and never invents one.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_GLOBALRACE_H
#define FOVEA_SIMULATOR_CHECK_GLOBALRACE_H

#include "check/Clocks.h"
#include "check/Report.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace fovea::sim {

/// What the threads of a launch share.
class GlobalShadow {
public:
  static constexpr unsigned kPageBits = 16;
  struct Cell {
    uint64_t write, read;
  };
  /// Cells of a page: of its blocks of 16 bytes, then of its words. Those of
  /// the words are used where a block is not always accessed as a whole.
  static constexpr size_t kBlocks = (size_t(1) << kPageBits) / 16;
  static constexpr size_t kCells = 5 * kBlocks;
  ~GlobalShadow();
  /// The cells of the page (of 64 KiB) that holds \p address.
  Cell *page(uint64_t address);

  /// Workgroup \p group executes an atomic at \p address: adds to \p known the
  /// workgroups that did so before, with those that these knew.
  void meet(uint64_t address, uint64_t group,
            std::unordered_set<uint64_t> &known);

private:
  std::mutex PagesMutex;
  std::unordered_map<uint64_t, Cell *> Pages;
  std::mutex MeetMutex;
  std::unordered_map<uint64_t, std::unordered_set<uint64_t>> Met;
};

/// One for each thread.
class GlobalRace {
public:
  GlobalRace(const Reporter &reporter, const Clocks &clocks,
             GlobalShadow &shadow)
      : Out(reporter), Time(clocks), Shadow(shadow) {}
  void beginGroup(const Group &group);
  void access(Wave &wave, const InstPlan &plan, const MemoryAccess &access);
  /// Reports a race of the instruction's store if it changed what was there.
  void after(Wave &wave, const InstPlan &plan);

private:
  using Cell = GlobalShadow::Cell;
  void word(Wave &wave, const InstPlan &plan, const MemoryAccess &access,
            uint64_t mine, Cell &c, uint64_t address, unsigned bytes,
            unsigned lane);
  static uint64_t inPage(uint64_t address) {
    return address & ((uint64_t(1) << GlobalShadow::kPageBits) - 1);
  }
  Cell *pageOf(uint64_t address) {
    uint64_t page = address >> GlobalShadow::kPageBits;
    Slot &slot = Cache[page % kSlots];
    if (slot.page != page) {
      slot.page = page;
      slot.cells = Shadow.page(address);
    }
    return slot.cells;
  }
  Cell *block(uint64_t address) {
    return pageOf(address) + inPage(address) / 16;
  }
  Cell *cell(uint64_t address) {
    return pageOf(address) + GlobalShadow::kBlocks + inPage(address) / 4;
  }
  void split(uint64_t address);
  void race(Wave &wave, const InstPlan &plan, const MemoryAccess &access,
            unsigned lane, const std::string &other);
  std::string groupName(uint64_t group, const Group &of) const;

  /// A store that races unless it stores what is there already.
  struct Suspect {
    uint64_t address = 0; ///< 0: none
    uint32_t before = 0;
    unsigned lane = 0;
    uint64_t laneAddress = 0;
    uint32_t laneBytes = 0;
    std::string other;
  };

  static constexpr unsigned kSlots = 256;
  struct Slot {
    uint64_t page = ~uint64_t(0);
    Cell *cells = nullptr;
  };
  const Reporter &Out;
  const Clocks &Time;
  GlobalShadow &Shadow;
  Slot Cache[kSlots];
  uint64_t Me = 0; ///< number of the workgroup that runs
  std::unordered_set<uint64_t> Known;
  std::vector<Suspect> Suspects;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_GLOBALRACE_H
