//===- Sampler.h - Executing some workgroups of a launch --------*- C++ -*-===//
//
// Runs workgroups one at a time and keeps what they did.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_SAMPLER_H
#define FOVEA_SIMULATOR_TIMING_SAMPLER_H

#include "timing/Trace.h"
#include "timing/Undo.h"

#include <map>

namespace fovea::sim {

/// Errors of its functions are those of launch().
class Sampler {
public:
  /// \p grid: workgroups of the launch; \p persistent: as for TraceRecorder.
  /// \p undo: keeps what is written over, when not null.
  Sampler(const CodeObject &code, const KernelInfo &kernel,
          const LaunchConfig &config, const TimingConstants &chip,
          const uint32_t *grid, uint64_t persistent, UndoLog *undo);

  /// Adds the wave instructions of each workgroup of \p groups to \p result.
  Status count(const std::vector<uint64_t> &groups,
               std::map<uint64_t, uint64_t> &result) const;
  /// Whether the first workgroup takes work from a counter, and the wave
  /// instructions that it executed.
  Status probe(bool &takesTiles, uint64_t &executed) const;
  /// Adds the tiles that a workgroup takes to \p tiles; lowers \p last to the
  /// first index at which it found none left.
  Status tiles(uint64_t group, std::map<uint64_t, uint64_t> &tiles,
               uint64_t &last) const;
  /// \p maxLines: how many it goes on for.
  Status trace(uint64_t group, std::unique_ptr<GroupTrace> &result,
               size_t maxLines = SIZE_MAX) const;

private:
  TraceRecorder recorder(bool keep, size_t maxLines = SIZE_MAX) const {
    return {chip, lds, grid, persistent, keep, maxLines};
  }
  Status run(uint64_t group, ObserverFactory *observers,
             Counters *counters = nullptr) const;

  const CodeObject &code;
  const KernelInfo &kernel;
  const LaunchConfig &config;
  const TimingConstants &chip;
  const LdsShape &lds;
  const uint32_t *grid;
  uint64_t persistent;
  UndoLog *undo;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_SAMPLER_H
