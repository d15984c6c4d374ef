//===- Counting.cpp - What a kernel executes, exactly ---------------------===//
//
// An observer that counts by instruction; what the instructions are for is
// worked out once, after the launch.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Counting.h"

#include "decode/CodeObjectImpl.h"
#include "exec/Observer.h"
#include "timing/Constants.h"
#include "timing/Lds.h"
#include "timing/Ops.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace fovea::sim {

namespace {

/// What observers of all host threads found.
struct Totals {
  std::mutex mutex;
  std::vector<uint64_t> issues, conflicts; ///< by dword of the program
  ExecutionCounts counts;       ///< what accesses add
};

class CountObserver : public Observer {
public:
  CountObserver(Totals &totals, const LdsShape &lds)
      : Sum(totals), Lds(lds), Issues(totals.issues.size()),
        Conflicts(totals.issues.size()) {}
  ~CountObserver() override {
    std::lock_guard<std::mutex> lock(Sum.mutex);
    for (size_t i = 0; i < Issues.size(); ++i) {
      Sum.issues[i] += Issues[i];
      Sum.conflicts[i] += Conflicts[i];
    }
    Sum.counts += Own;
  }
  void beginGroup(Group &, Wave *, unsigned count) override {
    ++Own.workgroups;
    Own.waves += count;
  }
  void before(Wave &, const MicroOp &, uint32_t index) override {
    ++Issues[Current = index];
  }
  void access(Wave &wave, const MicroOp &, const MemoryAccess &a) override {
    Own.scratch += a.space == MemoryAccess::Scratch;
    if (a.space != MemoryAccess::Lds)
      return;
    const bool load = a.kind == MemoryAccess::Load;
    unsigned conflicts = 0;
    Own.ldsClocks += ldsClocks(Lds, a.address, a.mask, unsigned(wave.lanes),
                               a.bytes, !load, conflicts);
    Own.ldsConflicts += conflicts;
    Conflicts[Current] += conflicts;
    (load ? Own.ldsBytesLoaded : Own.ldsBytesStored) +=
        uint64_t(__builtin_popcountll(a.mask)) * a.bytes;
  }

private:
  Totals &Sum;
  const LdsShape &Lds;
  std::vector<uint64_t> Issues, Conflicts;
  uint32_t Current = 0;
  ExecutionCounts Own;
};

class CountFactory : public ObserverFactory {
public:
  CountFactory(Totals &totals, const LdsShape &lds) : Sum(totals), Lds(lds) {}
  std::unique_ptr<Observer> create() override {
    return std::make_unique<CountObserver>(Sum, Lds);
  }

private:
  Totals &Sum;
  const LdsShape &Lds;
};

/// Costs of the vector ALU of RDNA's kind where there is no model of time.
/// Waves of 32 lanes issue in a clock, transcendentals and 32-bit products at a
/// quarter of the rate (RDNA3 and RDNA4 ISA documents), fp64 at a sixteenth.
TimingConstants rdnaCosts(unsigned waveSize) {
  TimingConstants costs{};
  costs.slot = 1;
  costs.valuClocks = costs.packedClocks = costs.swapClocks = waveSize / 32;
  costs.transClocks = costs.quarterClocks = 4 * costs.valuClocks;
  costs.doubleClocks = 16 * costs.valuClocks;
  return costs;
}

/// Operations that one SIMD's WMMA executes a clock on 16-bit factors. Source:
/// AMD's matrix instruction calculator, 32 clocks for 16x16x16 on RDNA3 and 16 on
/// RDNA4; LLVM's scheduling model has no figures.
double wmmaFlopsPerClock(const ChipInfo &chip) {
  return 2.0 * 16 * 16 * 16 / (chip.traits & kTraitSplitWmma ? 16 : 32);
}

bool startsWith(const std::string &text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

bool isLaneMove(const MicroOp &op, const std::string &mnemonic) {
  return (op.flags & kDpp) || startsWith(mnemonic, "ds_permute") ||
         startsWith(mnemonic, "ds_bpermute") ||
         startsWith(mnemonic, "ds_swizzle") ||
         startsWith(mnemonic, "v_permlane");
}

using Figures = std::map<std::string, uint64_t>;

void add(Figures &a, const Figures &b) {
  for (const auto &[name, n] : b)
    a[name] += n;
}
void subtract(Figures &a, const Figures &b) {
  for (const auto &[name, n] : b)
    if (!(a[name] -= n))
      a.erase(name);
}
bool contains(const Figures &a, const Figures &b) {
  return std::all_of(b.begin(), b.end(), [&](const auto &figure) {
    auto found = a.find(figure.first);
    return figure.second <= (found == a.end() ? 0 : found->second);
  });
}

/// Calls \p apply with each figure of \p a, but those by mnemonic, and the same
/// one of \p b.
template <typename A, typename Fn>
void forEachFigure(A &a, const ExecutionCounts &b, Fn apply) {
  apply(a.workgroups, b.workgroups);
  apply(a.waves, b.waves);
  for (unsigned i = 0; i < kInstClasses; ++i)
    apply(a.byClass[i], b.byClass[i]);
  apply(a.laneMoves, b.laneMoves);
  apply(a.accumulatorMoves, b.accumulatorMoves);
  apply(a.exponentials, b.exponentials);
  apply(a.packedFloats, b.packedFloats);
  apply(a.waits, b.waits);
  apply(a.barriers, b.barriers);
  apply(a.scratch, b.scratch);
  apply(a.ldsClocks, b.ldsClocks);
  apply(a.ldsConflicts, b.ldsConflicts);
  apply(a.ldsBytesLoaded, b.ldsBytesLoaded);
  apply(a.ldsBytesStored, b.ldsBytesStored);
  apply(a.matrixClocks, b.matrixClocks);
  apply(a.vectorClocks, b.vectorClocks);
  apply(a.matrixFlops, b.matrixFlops);
}

} // namespace

uint64_t ExecutionCounts::instructions() const {
  uint64_t sum = 0;
  for (uint64_t n : byClass)
    sum += n;
  return sum;
}

ExecutionCounts &ExecutionCounts::operator+=(const ExecutionCounts &other) {
  forEachFigure(*this, other, [](auto &a, auto b) { a += b; });
  add(byMnemonic, other.byMnemonic);
  add(conflictsByMnemonic, other.conflictsByMnemonic);
  return *this;
}

ExecutionCounts &ExecutionCounts::operator-=(const ExecutionCounts &other) {
  forEachFigure(*this, other, [](auto &a, auto b) { a -= b; });
  subtract(byMnemonic, other.byMnemonic);
  subtract(conflictsByMnemonic, other.conflictsByMnemonic);
  return *this;
}

bool ExecutionCounts::contains(const ExecutionCounts &other) const {
  bool all = true;
  forEachFigure(*this, other, [&](const auto &a, auto b) { all &= a >= b; });
  return all && sim::contains(byMnemonic, other.byMnemonic) &&
         sim::contains(conflictsByMnemonic, other.conflictsByMnemonic);
}

Status count(const CodeObject &code, const KernelInfo &kernel,
             const LaunchConfig &config, ExecutionCounts &counts) {
  const ChipInfo &chip = code.device()->chip();
  Program &program = code.impl().program(kernel.waveSize);
  Totals totals;
  totals.issues.resize(program.dwords());
  totals.conflicts.resize(program.dwords());
  CountFactory factory(totals, ldsShape(chip));
  LaunchConfig watched = config;
  watched.options.observers = &factory;
  if (Status status = launch(code, kernel, watched); !status)
    return status;

  counts = totals.counts;
  const TimingConstants *constants = timingConstants(chip.target);
  const TimingConstants costs =
      constants ? *constants : rdnaCosts(kernel.waveSize);
  TimedProgram timed(program, costs);
  for (uint32_t index = 0; index < totals.issues.size(); ++index) {
    const uint64_t n = totals.issues[index];
    if (!n)
      continue;
    const MicroOp &op = program.ops()[index];
    const std::string &mnemonic = program.info(index).mnemonic;
    const TimedOp &cost = timed.at(index);
    counts.byClass[op.cls] += n;
    counts.byMnemonic[mnemonic] += n;
    if (totals.conflicts[index])
      counts.conflictsByMnemonic[mnemonic] += totals.conflicts[index];
    counts.laneMoves += isLaneMove(op, mnemonic) ? n : 0;
    counts.accumulatorMoves += startsWith(mnemonic, "v_accvgpr_") ? n : 0;
    counts.exponentials += startsWith(mnemonic, "v_exp_") ? n : 0;
    counts.packedFloats += cost.packed ? n : 0;
    counts.waits += cost.unit == Unit::Wait ? n : 0;
    counts.barriers += cost.unit == Unit::Barrier ? n : 0;
    if (cost.unit == Unit::Matrix) {
      counts.matrixFlops += double(n) * cost.flops;
      counts.matrixClocks +=
          double(n) *
          (constants ? cost.pipe - cost.clash : cost.flops / wmmaFlopsPerClock(chip));
    } else if (cost.unit == Unit::Valu) {
      counts.vectorClocks += double(n) * cost.clocks;
    }
  }
  return Status::success();
}

} // namespace fovea::sim
