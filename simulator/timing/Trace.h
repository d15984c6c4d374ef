//===- Trace.h - What a workgroup executed ----------------------*- C++ -*-===//
//
// The instructions of each wave in order, with what their memory accesses cost
// in LDS clocks and which cache lines they touch.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_TRACE_H
#define FOVEA_SIMULATOR_TIMING_TRACE_H

#include "exec/Observer.h"
#include "timing/Constants.h"
#include "timing/Lds.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace fovea::sim {

struct MemoryUse {
  uint64_t firstLine = 0;   ///< into GroupTrace::lines
  uint16_t lines = 0;
  uint16_t bytes = 0;       ///< moved, of all lanes; at most 65535
  uint16_t ldsClocks = 0;   ///< 0: no LDS access
  uint16_t ldsConflicts = 0;///< of ldsClocks
  uint16_t ldsBytes = 0;    ///< of all lanes of the wave, active or not
  uint8_t lanes = 0;        ///< that take part
  bool store = false, atomic = false, scalar = false;
};

struct TraceStep {
  uint32_t op = 0;  ///< dword of the instruction in the program
  uint32_t use = 0; ///< index into GroupTrace::uses; 0: no memory access
};

struct GroupTrace {
  uint64_t id = 0;
  std::vector<std::vector<TraceStep>> waves;
  std::vector<MemoryUse> uses{MemoryUse()};
  std::vector<uint64_t> lines; ///< addresses / line size
  uint64_t instructions = 0;
};

/// Records whole workgroups, or only runs them.
class TraceRecorder : public ObserverFactory {
public:
  /// \p persistent: how many workgroups share the tiles that they take from an
  /// atomic counter; 0: none do. A workgroup that runs alone would take all
  /// tiles; with this, a counter whose old value it asks for moves on as if the
  /// others had taken theirs as well, and has its first value again at the end.
  /// \p maxLines: a workgroup ends when it has touched as many.
  TraceRecorder(const TimingConstants &chip, const LdsShape &lds,
                const uint32_t *grid, uint64_t persistent, bool keep = true,
                size_t maxLines = SIZE_MAX)
      : Chip(chip), Lds(lds), Grid{grid[0], grid[1], grid[2]},
        Persistent(persistent), Keep(keep), MaxLines(maxLines) {}
  std::unique_ptr<Observer> create() override;
  /// The traces in the order in which the workgroups ended.
  std::vector<std::unique_ptr<GroupTrace>> take() { return std::move(Done); }
  /// What a workgroup took from a counter: the counter's value, and the wave
  /// instructions until it came again. The last time there was nothing left.
  struct Tile {
    uint32_t index = 0;
    uint64_t instructions = 0;
  };
  const std::vector<Tile> &tiles() const { return Tiles; }

private:
  friend class TraceObserver;
  const TimingConstants &Chip;
  const LdsShape &Lds;
  uint32_t Grid[3];
  uint64_t Persistent;
  bool Keep;
  size_t MaxLines;
  std::vector<Tile> Tiles; ///< of the last workgroup
  std::mutex Mutex;
  std::vector<std::unique_ptr<GroupTrace>> Done;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_TRACE_H
