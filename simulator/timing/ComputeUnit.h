//===- ComputeUnit.h - Replaying workgroups on a compute unit ---*- C++ -*-===//
//
// In-order waves on the SIMDs of one compute unit: clock by clock, but skipping
// those in which nothing can happen.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_COMPUTEUNIT_H
#define FOVEA_SIMULATOR_TIMING_COMPUTEUNIT_H

#include "timing/Memory.h"
#include "timing/Ops.h"
#include "timing/Trace.h"

#include <array>
#include <vector>

namespace fovea::sim {

/// What happened on a compute unit, summed over its waves.
struct UnitCounters {
  uint64_t clocks = 0;       ///< from the first start to the last end
  uint64_t waveClocks = 0;   ///< clocks that waves lived
  uint64_t issued = 0;       ///< instructions
  uint64_t matrixClocks = 0, valuClocks = 0, scalarClocks = 0; ///< of SIMDs
  uint64_t smallMatrixClocks = 0; ///< of matrixClocks: products of 16 x 16
  double flops = 0;
  std::array<uint64_t, kStalls> stalls{};
  UnitCounters &operator+=(const UnitCounters &other);
};

/// Costs by instruction (dword in the program).
struct InstCounters {
  uint64_t issues = 0, busy = 0, conflicts = 0;
  std::array<uint64_t, kStalls> stalls{};
};

struct Residence {
  const GroupTrace *group = nullptr;
  uint64_t start = 0, end = 0; ///< clocks
};

class ComputeUnit {
public:
  ComputeUnit(const TimingConstants &chip, TimedProgram &program,
              const Sharing &sharing);

  /// Keep what each instruction costs in \p counters (one for each dword), and
  /// the issues between the two clocks in \p timeline. Null: do not.
  void collect(std::vector<InstCounters> *counters,
               std::vector<TimelineEvent> *timeline, uint64_t from, uint64_t to) {
    Insts = counters;
    Timeline = timeline;
    TimelineFrom = from;
    TimelineTo = to;
  }

  /// Runs \p queue in order, \p places workgroups at a time. Returns when each
  /// was there.
  std::vector<Residence> run(const std::vector<const GroupTrace *> &queue,
                             unsigned places);

  const UnitCounters &counters() const { return Count; }
  const MemoryCounters &memory() const { return Memory.counters(); }

private:
  struct Wave;
  struct Simd;
  struct Place;
  void launch(Place &place, uint64_t now);
  uint64_t step(Simd &simd, uint64_t now);
  bool tryIssue(Simd &simd, Wave &w, uint64_t now);
  bool skipHints(Wave &w);
  /// Whether the instruction is there: it comes in lines, and straight code is
  /// fetched ahead. This and the others that return bool block the wave if not.
  bool fetched(Wave &w, uint32_t op, uint64_t now);
  bool ready(Wave &w, const TimedOp &op, uint64_t now);
  bool takePort(bool &taken, Wave &w, uint64_t now);
  bool issueVector(Simd &simd, Wave &w, const TimedOp &op, uint64_t now);
  bool issueMatrix(Simd &simd, Wave &w, const TimedOp &op, uint64_t now);
  bool issueToQueue(Simd &simd, Wave &w, const TimedOp &op, uint64_t now);
  void setReady(Wave &w, const TimedOp &op, uint64_t at, uint64_t chained,
                bool matrix);
  void release(Place &place, uint64_t now);
  void end(Simd &simd, Wave &w, uint64_t now);
  void block(Wave &w, uint64_t now, uint64_t until, Stall why);
  void retire(Wave &w, const TimedOp &op, uint64_t now);
  void issueMemory(Wave &w, const TimedOp &op, const TraceStep &step,
                   uint64_t now);
  bool waitSatisfied(Wave &w, const TimedOp &op, uint64_t now);
  uint64_t align(uint64_t clock, unsigned simd) const;

  const TimingConstants &Chip;
  TimedProgram &Program;
  MemoryModel Memory;
  const uint64_t LdsBytes; ///< of a workgroup: places follow each other
  TagStore Instructions;
  std::vector<Wave> Waves;
  std::vector<Simd> Simds;
  std::vector<Place> Places;
  std::vector<Residence> Done;
  const std::vector<const GroupTrace *> *Queue = nullptr;
  size_t NextGroup = 0;
  uint64_t Age = 0;
  UnitCounters Count;
  std::vector<InstCounters> *Insts = nullptr;
  std::vector<TimelineEvent> *Timeline = nullptr;
  uint64_t TimelineFrom = 0, TimelineTo = 0;
  uint64_t Last = 0;

public:
  ~ComputeUnit();
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_COMPUTEUNIT_H
