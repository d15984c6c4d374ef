//===- Memory.h - Caches and memory behind a compute unit -------*- C++ -*-===//
//
// The L1 of one compute unit line by line, and what lies behind it as latency
// and bandwidth. Whether a line that L1 misses is in L2 depends on the other
// compute units: `MissShares` says how often one of them brought it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_MEMORY_H
#define FOVEA_SIMULATOR_TIMING_MEMORY_H

#include "timing/Constants.h"
#include "timing/Trace.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace fovea::sim {

/// A set-associative cache's tags, least recently used first out.
class TagStore {
public:
  /// \p spread: lines that differ in high bits alone are not all to meet in one
  /// set.
  TagStore(uint64_t bytes, unsigned lineBytes, unsigned ways,
           bool spread = false);
  /// Whether the line is there; it is afterwards.
  bool touch(uint64_t line);
  /// Invalidates all lines.
  void clear();

private:
  unsigned Ways;
  uint64_t Sets;
  uint64_t Now = 0;
  std::vector<uint64_t> Tags, Used;
};

/// How often a cache that workgroups share must fetch a line that one of them
/// touches. Some data is everybody's and some is nobody else's, so that the
/// mean says little: each instruction has its own share.
struct MissShares {
  double mean = 1;
  std::vector<float> byOp; ///< by dword of the program; below 0: the mean

  double of(uint32_t op) const {
    return op < byOp.size() && byOp[op] >= 0 ? double(byOp[op]) : mean;
  }
};

/// What the compute units of a launch have in common.
struct Sharing {
  double unitsOfArray = 1; ///< compute units at work in a shader array
  double unitsOfDie = 1; ///< ... on an XCD
  double units = 1;      ///< ... on the chip
  double unitsShare = 1; ///< ... of those that the chip has
  /// Of each level but memory: of first touches, of what the level before
  /// fetches.
  std::vector<MissShares> misses;
  double clockHz = 1;
  uint64_t ldsBytes = 0; ///< of a workgroup, in granules
};

struct MemoryCounters {
  uint64_t l1Lines = 0, l1Hits = 0, l2Lines = 0, l2Hits = 0;
  uint64_t l1Bytes = 0, l2Bytes = 0, memoryBytes = 0;
  double atomicClocks = 0; ///< of the chip's atomic units, its share
  uint64_t busyClocks = 0, ldsClocks = 0, ldsConflicts = 0;
  MemoryCounters &operator+=(const MemoryCounters &other);
};

class MemoryModel {
public:
  MemoryModel(const TimingConstants &chip, const Sharing &sharing);

  /// Whether the address unit, or the LDS port of a SIMD, can take an
  /// instruction at \p now; otherwise when.
  uint64_t vectorReady(unsigned simd, uint64_t now);
  uint64_t ldsReady(unsigned simd, uint64_t now);

  /// Issues at \p now; returns when the data has arrived, or a store is
  /// acknowledged.
  /// \p op: dword of the instruction.
  uint64_t vector(const GroupTrace &group, const MemoryUse &use, uint32_t op,
                  uint64_t salt, uint64_t now, unsigned simd = 0);
  /// \p firstByte: where the workgroup's LDS begins in that of the WGP.
  uint64_t lds(const MemoryUse &use, unsigned simd, bool store, uint64_t now,
               uint64_t firstByte = 0);
  uint64_t scalar(const GroupTrace &group, const MemoryUse &use, uint64_t now);
  /// Empties the SIMD's L1 once what is ahead has looked it up; returns when
  /// that is acknowledged.
  uint64_t invalidate(unsigned simd, uint64_t now);

  const MemoryCounters &counters() const { return Count; }

private:
  enum class Access { Load, Store, Atomic };
  struct Cache;
  Cache &cacheOf(unsigned simd) { return L1s[simd * Chip.l1s / Chip.simds]; }
  uint64_t fetch(Cache &cache, uint64_t line, uint32_t op, uint64_t now,
                 Access access);
  double roomForMiss(Cache &cache, uint64_t now);
  size_t levelOf(const Cache &cache, uint64_t line, uint32_t op, Access access);

  const TimingConstants &Chip;
  Sharing Share;
  const uint64_t L1Lines; ///< that an L1 holds
  /// An L1 with its address unit, and what it misses.
  struct Cache {
    TagStore tags;
    uint64_t loaded; ///< lines since it was emptied; full if it never was
    double addressFree = 0;
    std::deque<double> accepted{}; ///< starts of vector memory
    std::deque<std::pair<uint64_t, unsigned>> flight{}; ///< end and bytes
    uint64_t flightBytes = 0;
  };
  std::vector<Cache> L1s;
  std::vector<std::optional<TagStore>> Own; ///< by level: this one's lines
  TagStore Scalar;
  struct Level {
    double rate;    ///< bytes a clock of this compute unit
    double latency; ///< clocks
    double free = 0;
  };
  std::vector<Level> Levels;
  double AtomicFree = 0, LdsFree = 0;
  std::vector<double> SideFree; ///< by half of a WGP's LDS
  double LoadedClocks; ///< of latency behind L2, by bytes under way
  double AtomicRate;   ///< dwords a clock of this compute unit
  std::vector<double> PortFree;
  struct PortEntry {
    double end; ///< of its service
    unsigned simd;
  };
  std::vector<std::deque<PortEntry>> PortQueue; ///< by port
  MemoryCounters Count;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_MEMORY_H
