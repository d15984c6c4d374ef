//===- ComputeUnit.cpp - Replaying workgroups on a compute unit -----------===//
//
// A SIMD may issue every `slot` clocks: to each unit at most one instruction, of
// each wave at most one, waves of higher priority and older ones first. A wave
// that cannot go on says until when; the SIMD sleeps until then.
//
//===----------------------------------------------------------------------===//
#include "timing/ComputeUnit.h"

#include <algorithm>

namespace fovea::sim {

namespace {
constexpr uint64_t kNever = ~uint64_t(0);
}

UnitCounters &UnitCounters::operator+=(const UnitCounters &other) {
  clocks += other.clocks;
  waveClocks += other.waveClocks;
  issued += other.issued;
  matrixClocks += other.matrixClocks;
  smallMatrixClocks += other.smallMatrixClocks;
  valuClocks += other.valuClocks;
  scalarClocks += other.scalarClocks;
  flops += other.flops;
  for (unsigned s = 0; s < kStalls; ++s)
    stalls[s] += other.stalls[s];
  return *this;
}

struct ComputeUnit::Wave {
  bool live = false;
  const GroupTrace *group = nullptr;
  const TraceStep *at = nullptr, *end = nullptr;
  unsigned simd = 0, place = 0, number = 0;
  uint64_t age = 0, start = 0;
  uint64_t salt = 0; ///< keeps copies of one trace apart in the caches
  uint64_t next = 0;   ///< the earliest clock of its next issue
  uint64_t wake = 0;   ///< when to look at it again
  uint64_t blockedFrom = kNever; ///< first clock at which it could not issue
  int priority = 0;
  bool atBarrier = false;
  uint64_t fetchedLine = kNever;
  std::array<uint32_t, kStalls> pending{}; ///< stalls of the next instruction
  std::array<uint64_t, kTimedRegs> ready{};    ///< by register
  /// Of vector registers as C of a matrix instruction; of scalar ones in the
  /// scalar unit.
  std::array<uint64_t, kTimedRegs> chained{};
  std::array<bool, kTimedRegs> matrix{};       ///< written by one
  std::array<std::vector<uint64_t>, kWaitCounters> outstanding;
  std::array<uint64_t, kWaitCounters> lastDone{};
  std::array<bool, kWaitCounters> scalarOut{}; ///< scalar loads outstanding
  uint64_t dualFree = 0; ///< when the next dual instruction may issue
  unsigned awaited = 0;  ///< the barrier's round that it has arrived for
};

struct ComputeUnit::Simd {
  std::vector<unsigned> waves; ///< by age
  uint64_t vectorFree = 0, matrixFree = 0, packedFree = 0, coexecFree = 0,
           transFree = 0;
  uint64_t next = 0;
  bool salu = false, smem = false, vmem = false, lds = false, branch = false,
       vector = false;
};

struct ComputeUnit::Place {
  unsigned index = 0;
  Residence *residence = nullptr;
  size_t done = 0;
  unsigned live = 0, arrived = 0;
  unsigned round = 0;      ///< barriers that all have reached
  uint64_t released = 0;   ///< when waves go on behind the last of them
  std::vector<unsigned> waves;
};

ComputeUnit::ComputeUnit(const TimingConstants &chip, TimedProgram &program,
                         const Sharing &sharing)
    : Chip(chip), Program(program), Memory(chip, sharing),
      LdsBytes(sharing.ldsBytes),
      Instructions(chip.icacheBytes, chip.icacheLine, 8) {
  Simds.resize(chip.simds);
}
ComputeUnit::~ComputeUnit() = default;

uint64_t ComputeUnit::align(uint64_t clock, unsigned simd) const {
  // SIMD i issues at clocks that are i modulo the slot.
  uint64_t phase = simd % Chip.slot;
  if (clock <= phase)
    return phase;
  return (clock - phase + Chip.slot - 1) / Chip.slot * Chip.slot + phase;
}

void ComputeUnit::launch(Place &place, uint64_t now) {
  if (NextGroup >= Queue->size())
    return;
  const GroupTrace *group = (*Queue)[NextGroup];
  place.done = NextGroup++;
  place.live = place.arrived = place.round = 0;
  place.waves.clear();
  Done[place.done] = {group, now, 0};
  // Waves go to the SIMDs in turn, from the emptiest on.
  unsigned first = 0;
  for (unsigned i = 1; i < Chip.simds; ++i)
    if (Simds[i].waves.size() < Simds[first].waves.size())
      first = i;
  for (size_t i = 0; i < group->waves.size(); ++i) {
    unsigned index = 0;
    while (index < Waves.size() && Waves[index].live)
      ++index;
    if (index == Waves.size())
      Waves.emplace_back();
    Wave &w = Waves[index];
    w = Wave();
    w.live = true;
    w.group = group;
    w.at = group->waves[i].data();
    w.end = w.at + group->waves[i].size();
    w.simd = (first + unsigned(i)) % Chip.simds;
    w.place = place.index;
    w.number = index;
    w.age = Age++;
    w.start = now;
    w.salt = uint64_t(place.done) << 44;
    w.next = w.wake = align(now + Chip.groupLaunch, w.simd);
    if (w.at == w.end) {
      w.live = false;
      continue;
    }
    ++place.live;
    place.waves.push_back(index);
    Simd &simd = Simds[w.simd];
    simd.waves.push_back(index);
    simd.next = std::min(simd.next, w.wake);
  }
  if (!place.live) { // nothing executed: the next one
    Done[place.done].end = now;
    launch(place, now);
  }
}

std::vector<Residence>
ComputeUnit::run(const std::vector<const GroupTrace *> &queue,
                 unsigned places) {
  Queue = &queue;
  NextGroup = 0;
  Done.assign(queue.size(), Residence());
  Places.assign(places, Place());
  for (Simd &simd : Simds)
    simd.next = kNever;
  for (unsigned i = 0; i < places; ++i) {
    Places[i].index = i;
    launch(Places[i], uint64_t(i) * Chip.groupInterval);
  }
  while (true) {
    unsigned best = 0;
    for (unsigned i = 1; i < Simds.size(); ++i)
      if (Simds[i].next < Simds[best].next)
        best = i;
    uint64_t now = Simds[best].next;
    if (now == kNever)
      break;
    Simds[best].next = kNever;
    uint64_t next = step(Simds[best], now);
    Simds[best].next = std::min(Simds[best].next, next);
  }
  Count.clocks = Last;
  return Done;
}

/// Blocks the wave until a clock, for a reason.
void ComputeUnit::block(Wave &w, uint64_t now, uint64_t until, Stall why) {
  until = until == kNever ? kNever : align(until, w.simd);
  w.wake = std::max(until, now + Chip.slot);
  if (until != kNever)
    w.pending[unsigned(why)] += static_cast<uint32_t>(w.wake - now);
  else
    w.blockedFrom = now;
}

uint64_t ComputeUnit::step(Simd &simd, uint64_t now) {
  simd.salu = simd.smem = simd.vmem = simd.lds = simd.branch = simd.vector = false;
  // Priority first, then age: the list is by age, so passes by priority.
  int highest = 0;
  for (unsigned i : simd.waves)
    highest = std::max(highest, Waves[i].priority);
  for (int priority = highest; priority >= 0; --priority)
    for (size_t i = 0; i < simd.waves.size(); ++i) {
      unsigned number = simd.waves[i];
      Wave &w = Waves[number];
      if (w.priority != priority || w.wake > now || w.atBarrier)
        continue;
      if (tryIssue(simd, w, now) && !Waves[number].live)
        --i; // its end took it off the list
    }
  uint64_t next = kNever;
  for (unsigned i : simd.waves)
    if (!Waves[i].atBarrier)
      next = std::min(next, Waves[i].wake);
  return next;
}

bool ComputeUnit::ready(Wave &w, const TimedOp &op, uint64_t now) {
  uint64_t latest = 0;
  bool matrix = false;
  const bool scalar = op.unit == Unit::Salu || op.unit == Unit::Smem ||
                      op.unit == Unit::Branch;
  const uint64_t further =
      op.unit == Unit::Lds || op.unit == Unit::Vmem ? Chip.addressLatency : 0;
  auto look = [&](const TimedRange &range, bool chained, bool matrixOnly) {
    for (unsigned r = range.first; r < unsigned(range.first + range.count); ++r) {
      if (matrixOnly && !w.matrix[r])
        continue;
      const bool vector = r < kTimedScalars;
      uint64_t at = (vector ? chained && w.matrix[r] : scalar) ? w.chained[r]
                                                               : w.ready[r];
      if (vector && at)
        at += further;
      if (at > latest) {
        latest = at;
        matrix = w.matrix[r];
      }
    }
  };
  for (unsigned i = 0; i < op.readCount; ++i)
    look(op.reads[i], int(i) == op.accumulator, false);
  // Each unit writes in order; only the matrix core is slower than the others.
  for (unsigned i = 0; i < op.writeCount; ++i)
    if (op.unit != Unit::Matrix)
      look(op.writes[i], false, true);
  if (latest <= now)
    return true;
  block(w, now, latest, matrix ? Stall::Matrix : Stall::Alu);
  return false;
}

bool ComputeUnit::waitSatisfied(Wave &w, const TimedOp &op, uint64_t now) {
  uint64_t until = 0;
  Stall why = Stall::WaitOther;
  for (unsigned c = 0; c < kWaitCounters; ++c) {
    auto &out = w.outstanding[c];
    if (op.waits[c] == 0xff || out.empty())
      continue;
    out.erase(std::remove_if(out.begin(), out.end(),
                             [&](uint64_t done) { return done <= now; }),
              out.end());
    if (out.empty())
      w.scalarOut[c] = false;
    if (out.size() <= op.waits[c])
      continue;
    std::vector<uint64_t> sorted = out;
    std::sort(sorted.begin(), sorted.end());
    uint64_t at = sorted[out.size() - op.waits[c] - 1];
    if (at > until) {
      until = at;
      why = c == VmCnt || c == VsCnt ? Stall::WaitVector
            : c == LgkmCnt ? (w.scalarOut[c] ? Stall::WaitScalar : Stall::WaitLds)
            : c == DsCnt   ? Stall::WaitLds
            : c == KmCnt   ? Stall::WaitScalar
                           : Stall::WaitOther;
    }
  }
  if (!until)
    return true;
  block(w, now, until, why);
  return false;
}

void ComputeUnit::issueMemory(Wave &w, const TimedOp &op, const TraceStep &step,
                              uint64_t now) {
  const MemoryUse &use = w.group->uses[step.use];
  uint64_t done;
  if (op.unit == Unit::Lds)
    done = Memory.lds(use, w.simd, op.isStore, now, w.place * LdsBytes);
  else if (op.unit == Unit::Invalidate)
    done = Memory.invalidate(w.simd, now);
  else if (op.unit == Unit::Smem)
    done = Memory.scalar(*w.group, use, now);
  else if (use.lines)
    done = Memory.vector(*w.group, use, step.op, w.salt, now, w.simd);
  else // no lane active or in range: only LDS, or nothing
    done = use.ldsClocks
               ? Memory.lds(use, w.simd, true, now, w.place * LdsBytes)
               : now + Chip.slot;
  for (unsigned c = 0; c < kWaitCounters; ++c)
    if ((op.counts >> c) & 1) {
      // Vector memory and LDS return in order.
      if (op.unit != Unit::Smem) {
        done = std::max(done, w.lastDone[c]);
        w.lastDone[c] = done;
      } else {
        w.scalarOut[c] = true;
      }
      w.outstanding[c].push_back(done);
    }
}

void ComputeUnit::retire(Wave &w, const TimedOp &op, uint64_t now) {
  const TraceStep &step = *w.at;
  ++Count.issued;
  for (unsigned s = 0; s < kStalls; ++s)
    Count.stalls[s] += w.pending[s];
  if (Insts) {
    InstCounters &inst = (*Insts)[step.op];
    ++inst.issues;
    inst.busy += op.unit == Unit::Matrix ? op.pipe : op.clocks;
    if (step.use) {
      inst.busy += w.group->uses[step.use].ldsClocks;
      inst.conflicts += w.group->uses[step.use].ldsConflicts;
    }
    for (unsigned s = 0; s < kStalls; ++s)
      inst.stalls[s] += w.pending[s];
  }
  if (Timeline && now >= TimelineFrom && now < TimelineTo) {
    TimelineEvent event;
    event.clock = now;
    event.clocks = op.unit == Unit::Matrix ? op.pipe : op.clocks;
    unsigned most = 0;
    for (unsigned s = 0; s < kStalls; ++s) {
      event.stallClocks += w.pending[s];
      if (w.pending[s] > w.pending[most])
        most = s;
    }
    event.stall = Stall(most);
    event.inst = step.op;
    event.simd = static_cast<uint16_t>(w.simd);
    event.wave = static_cast<uint16_t>(w.number);
    event.workgroup = static_cast<uint32_t>(w.group->id);
    event.cls = op.cls;
    Timeline->push_back(event);
  }
  w.pending.fill(0);
  ++w.at;
}

bool ComputeUnit::fetched(Wave &w, uint32_t op, uint64_t now) {
  uint64_t line = uint64_t(op) * 4 / Chip.icacheLine;
  if (line == w.fetchedLine)
    return true;
  bool next = line == w.fetchedLine + 1;
  w.fetchedLine = line;
  if (Instructions.touch(line) || (next && Instructions.touch(line + 1)))
    return true;
  block(w, now, now + Chip.fetchMiss, Stall::Fetch);
  return false;
}

/// Registers that the instruction writes are ready at a clock.
void ComputeUnit::setReady(Wave &w, const TimedOp &op, uint64_t at,
                           uint64_t chained, bool matrix) {
  for (unsigned i = 0; i < op.writeCount; ++i)
    for (unsigned r = op.writes[i].first;
         r < unsigned(op.writes[i].first + op.writes[i].count); ++r) {
      w.ready[r] = at;
      w.matrix[r] = matrix;
      w.chained[r] = chained;
    }
}

/// Takes a port of the SIMD's for this clock, if no other wave has.
bool ComputeUnit::takePort(bool &taken, Wave &w, uint64_t now) {
  if (taken) {
    block(w, now, now + Chip.slot, Stall::Port);
    return false;
  }
  taken = true;
  return true;
}

bool ComputeUnit::issueVector(Simd &simd, Wave &w, const TimedOp &op,
                              uint64_t now) {
  uint64_t free = std::max(simd.vectorFree, simd.coexecFree);
  Stall why = Stall::VectorPort;
  const bool excludesMatrix = op.packed && Chip.packedExcludesMatrix;
  if (excludesMatrix && simd.packedFree > free) {
    free = simd.packedFree;
    why = Stall::MatrixPipe;
  }
  if (op.trans)
    free = std::max(free, simd.transFree);
  if (op.dual)
    free = std::max(free, w.dualFree);
  if (free > now) {
    block(w, now, free, why);
    return false;
  }
  if (simd.vector) {
    block(w, now, now + Chip.slot, Stall::VectorPort);
    return false;
  }
  simd.vector = true;
  simd.vectorFree = now + op.port;
  if (op.trans)
    simd.transFree = now + op.clocks;
  if (op.forwards)
    w.dualFree = now + Chip.dualForward;
  if (excludesMatrix)
    simd.matrixFree = std::max(simd.matrixFree, now + op.clocks);
  Count.valuClocks += op.clocks;
  setReady(w, op, now + op.latency, now + op.scalarLatency, false);
  return true;
}

bool ComputeUnit::issueMatrix(Simd &simd, Wave &w, const TimedOp &op,
                              uint64_t now) {
  if (simd.matrixFree > now) {
    block(w, now, simd.matrixFree, Stall::MatrixPipe);
    return false;
  }
  if (simd.vectorFree > now || simd.vector) {
    block(w, now, std::max(simd.vectorFree, now + Chip.slot),
          Stall::VectorPort);
    return false;
  }
  if (Chip.matrixExcludesVector && simd.transFree > now) {
    block(w, now, simd.transFree, Stall::VectorPort);
    return false;
  }
  simd.vector = true;
  simd.vectorFree = now + op.port;
  simd.matrixFree = now + op.pipe;
  simd.packedFree = now + op.pipe + Chip.packedAfterMatrix;
  if (op.excludesVector)
    simd.coexecFree = now + op.pipe;
  Count.matrixClocks += op.pipe;
  if (op.small)
    Count.smallMatrixClocks += op.pipe;
  Count.flops += op.flops;
  setReady(w, op, now + op.latency, now + op.pipe, true);
  return true;
}

bool ComputeUnit::issueToQueue(Simd &simd, Wave &w, const TimedOp &op,
                               uint64_t now) {
  const bool lds = op.unit == Unit::Lds;
  const uint64_t at =
      lds ? Memory.ldsReady(w.simd, now) : Memory.vectorReady(w.simd, now);
  if (at > now) {
    block(w, now, at, Stall::MemoryQueue);
    return false;
  }
  if (!takePort(lds ? simd.lds : simd.vmem, w, now))
    return false;
  issueMemory(w, op, *w.at, now);
  return true;
}

/// Lets those go on that wait at a barrier which all have reached.
void ComputeUnit::release(Place &place, uint64_t now) {
  place.arrived = 0;
  ++place.round;
  place.released = now + Chip.barrierLatency;
  for (unsigned i : place.waves) {
    Wave &other = Waves[i];
    if (!other.atBarrier)
      continue;
    other.atBarrier = false;
    other.wake = align(place.released, other.simd);
    other.pending[unsigned(Stall::Barrier)] +=
        static_cast<uint32_t>(other.wake - other.blockedFrom);
    Simds[other.simd].next = std::min(Simds[other.simd].next, other.wake);
  }
}

void ComputeUnit::end(Simd &simd, Wave &w, uint64_t now) {
  Place &place = Places[w.place];
  w.live = false;
  Count.waveClocks += now - w.start;
  Last = std::max(Last, now);
  const unsigned number = w.number;
  simd.waves.erase(std::find(simd.waves.begin(), simd.waves.end(), number));
  place.waves.erase(std::find(place.waves.begin(), place.waves.end(), number));
  --place.live;
  if (!place.live) {
    Done[place.done].end = now;
    launch(place, now);
  } else if (place.arrived >= place.live) {
    release(place, now); // the others wait for this wave, which will not come
  }
}

/// Passes over hints, which issue beside what follows them. False: the wave is
/// at its end.
bool ComputeUnit::skipHints(Wave &w) {
  for (; w.at != w.end && Program.at(w.at->op).unit == Unit::Hint; ++w.at) {
    ++Count.issued;
    if (Insts)
      ++(*Insts)[w.at->op].issues;
  }
  return w.at != w.end;
}

bool ComputeUnit::tryIssue(Simd &simd, Wave &w, uint64_t now) {
  if (!skipHints(w)) {
    end(simd, w, now);
    return true;
  }
  const TraceStep &step = *w.at;
  const TimedOp &op = Program.at(step.op);
  if (!fetched(w, step.op, now) ||
      (op.unit == Unit::Wait && !waitSatisfied(w, op, now)) ||
      !ready(w, op, now))
    return false;
  uint64_t next = now + Chip.slot;
  switch (op.unit) {
  case Unit::Valu:
    if (!issueVector(simd, w, op, now))
      return false;
    break;
  case Unit::Matrix:
    if (!issueMatrix(simd, w, op, now))
      return false;
    break;
  case Unit::Salu:
    if (!takePort(simd.salu, w, now))
      return false;
    Count.scalarClocks += Chip.slot;
    setReady(w, op, now + op.latency, now + op.scalarLatency, false);
    break;
  case Unit::Smem:
    if (!takePort(simd.salu, w, now)) // scalar memory shares the scalar port
      return false;
    issueMemory(w, op, step, now);
    break;
  case Unit::Vmem:
  case Unit::Lds:
  case Unit::Invalidate:
    if (!issueToQueue(simd, w, op, now))
      return false;
    break;
  case Unit::Branch: {
    if (!takePort(simd.branch, w, now))
      return false;
    bool taken = w.at + 1 != w.end && w.at[1].op != step.op + op.size;
    next = now + (taken ? Chip.branchTaken : Chip.branchNotTaken);
    if (taken)
      w.fetchedLine = kNever - 1;
    setReady(w, op, now + op.latency, now + op.scalarLatency, false);
    break;
  }
  case Unit::Wait:
  case Unit::Nop:
    next = now + op.clocks;
    break;
  case Unit::Priority:
    w.priority = op.value;
    break;
  case Unit::Signal: {
    Place &place = Places[w.place];
    w.awaited = place.round + 1;
    if (++place.arrived >= place.live)
      release(place, now);
    break;
  }
  case Unit::Barrier: {
    Place &place = Places[w.place];
    if (op.split && place.round >= w.awaited) { // all have been there
      next = std::max(next, place.released);
      break;
    }
    retire(w, op, now);
    w.next = now + Chip.slot;
    w.atBarrier = true;
    w.blockedFrom = now;
    if (!op.split && ++place.arrived >= place.live)
      release(place, now);
    return true;
  }
  case Unit::Hint: // not reached
  case Unit::End:
    break;
  }
  // Branches and waits delay what follows; that shows as a stall there.
  retire(w, op, now);
  w.next = w.wake = align(next, w.simd);
  if (w.next > now + Chip.slot)
    w.pending[unsigned(op.unit == Unit::Branch ? Stall::Fetch : Stall::Idle)] +=
        static_cast<uint32_t>(w.next - now - Chip.slot);
  if (op.unit == Unit::End || w.at == w.end)
    end(simd, w, now);
  return true;
}

} // namespace fovea::sim
