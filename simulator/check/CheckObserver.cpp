//===- CheckObserver.cpp - The checkers of a launch -----------------------===//
//
// One virtual call an instruction; what is off costs a test of a pointer.
//
//===----------------------------------------------------------------------===//
#include "check/CheckObserver.h"
#include "check/GlobalRace.h"
#include "check/LdsRace.h"
#include "check/Shadow.h"
#include "check/SimpleChecks.h"
#include "check/WaitCheck.h"

#include <optional>

namespace fovea::sim {

namespace {

class CheckObserver : public Observer {
public:
  CheckObserver(const Reporter &out, PlanTable &plans, uint32_t checks,
                GlobalShadow &shadow, WrittenMap &written,
                std::unique_ptr<Observer> other)
      : Plans(plans), Other(std::move(other)) {
    if (checks & (kCheckAlign | kCheckAlignNatural))
      Align.emplace(out, checks & kCheckAlign, checks & kCheckAlignNatural);
    if (checks & kCheckBarrier)
      Barrier.emplace(out);
    if (checks & (kCheckWaitcnt | kCheckRaceLds))
      Wait.emplace(out, checks & kCheckWaitcnt);
    if (checks & kCheckRaceLds)
      LdsRaces.emplace(out, LdsTime);
    if (checks & kCheckRaceGlobal)
      GlobalRaces.emplace(out, GlobalTime, shadow);
    Races = LdsRaces || GlobalRaces;
    if (checks & (kCheckUninitReg | kCheckUninitLds | kCheckUninitMem))
      Shadows.emplace(out, checks, written);
  }

  void beginGroup(Group &group, Wave *waves, unsigned count) override {
    if (Barrier)
      Barrier->beginGroup(waves, count);
    if (Wait)
      Wait->beginGroup(count);
    if (Shadows)
      Shadows->beginGroup(group, waves, count);
    NamedBarriers = false;
    if (Races) {
      LdsTime.beginGroup(count);
      GlobalTime.beginGroup(count);
    }
    if (LdsRaces)
      LdsRaces->beginGroup(group);
    if (GlobalRaces)
      GlobalRaces->beginGroup(group);
    if (Other)
      Other->beginGroup(group, waves, count);
  }
  void endGroup(Group &group) override {
    if (Other)
      Other->endGroup(group);
  }

  void before(Wave &wave, const MicroOp &op, uint32_t index) override {
    const InstPlan &plan = Plans.at(index);
    Current = &plan;
    if (Align)
      Align->before(wave, plan);
    if (Barrier)
      Barrier->before(wave, plan);
    if (Wait && Wait->before(wave, plan) && Races)
      LdsTime.tick(wave.index);
    NamedBarriers |= plan.namedBarrier;
    if (Shadows && wave.state == WaveState::Running)
      Shadows->before(wave, plan);
    if (Other && wave.state != WaveState::Faulted)
      Other->before(wave, op, index);
  }

  void after(Wave &wave, const MicroOp &op, uint32_t index) override {
    const InstPlan &plan = *Current;
    if (Barrier)
      Barrier->after(wave, plan);
    if (Wait)
      Wait->after(wave, plan);
    if (Shadows)
      Shadows->after(wave, plan);
    if (LdsRaces)
      LdsRaces->after(wave, plan);
    if (GlobalRaces)
      GlobalRaces->after(wave, plan);
    if (Other)
      Other->after(wave, op, index);
  }

  void access(Wave &wave, const MicroOp &op,
              const MemoryAccess &access) override {
    // VGPR indexing runs several instructions as one, from copies of them.
    const InstPlan &plan = *Current;
    if (Align)
      Align->access(wave, plan, access);
    if (Wait)
      Wait->access(wave, plan, access,
                   !Races                    ? 0
                   : (op.flags & kLdsDirect) ? LdsTime.nowLoad(wave.index)
                                             : LdsTime.now(wave.index));
    if (Races && !NamedBarriers && wave.state == WaveState::Running)
      races(wave, plan, access);
    // A wait may cover some of the loads to LDS that are under way: each is an
    // event of its own.
    if (Races && (op.flags & kLdsDirect) && access.space == MemoryAccess::Lds)
      LdsTime.tickLoad(wave.index);
    if (Shadows && wave.state == WaveState::Running)
      Shadows->access(wave, plan, access);
    if (Other && wave.state == WaveState::Running)
      Other->access(wave, op, access);
  }

  void barrier(Group &group) override {
    if (Barrier)
      Barrier->barrier();
    if (Races) {
      Clocks::Vector open;
      open.fill(UINT32_MAX);
      GlobalTime.barrier(open);
      for (unsigned i = 0; Wait && i < group.waveCount; ++i)
        if (group.waves[i].state != WaveState::Ended) {
          open[i] = Wait->oldestLdsWrite(i, false);
          uint32_t &load = open[LdsTime.loads(i)];
          load = std::min(load, Wait->oldestLdsWrite(i, true));
        }
      LdsTime.barrier(open);
      for (unsigned i = 0; LdsRaces && !NamedBarriers && i < group.waveCount;
           ++i)
        if (group.waves[i].state != WaveState::Ended)
          LdsRaces->keepReads(i, Wait->openLdsReads(i));
    }
    if (Other)
      Other->barrier(group);
  }

private:
  void races(Wave &wave, const InstPlan &plan, const MemoryAccess &access) {
    if (access.space == MemoryAccess::Scratch)
      return;
    bool lds = access.space == MemoryAccess::Lds;
    if (access.kind == MemoryAccess::Atomic || (plan.deviceScope && !lds)) {
      // What is learned at an atomic holds for both kinds of memory.
      uint32_t open = Wait ? Wait->oldestLdsWrite(wave.index, false) : UINT32_MAX;
      uint64_t last = ~uint64_t(0);
      for (uint64_t left = access.mask; left; left &= left - 1) {
        uint64_t at = access.address[__builtin_ctzll(left)];
        if (at == last)
          continue;
        last = at;
        uint64_t key = lds ? ~at : at;
        LdsTime.synchronise(wave.index, key, open);
        GlobalTime.synchronise(wave.index, key, UINT32_MAX);
      }
    }
    if (lds && LdsRaces)
      LdsRaces->access(wave, plan, access);
    if (!lds && GlobalRaces)
      GlobalRaces->access(wave, plan, access);
  }

  PlanTable &Plans;
  std::unique_ptr<Observer> Other;
  const InstPlan *Current = nullptr;
  std::optional<AlignCheck> Align;
  std::optional<BarrierCheck> Barrier;
  std::optional<WaitCheck> Wait;
  std::optional<Shadow> Shadows;
  Clocks LdsTime, GlobalTime;
  std::optional<LdsRace> LdsRaces;
  std::optional<GlobalRace> GlobalRaces;
  bool Races = false;
  bool NamedBarriers = false; ///< order waves in a way that is not followed
};

} // namespace

CheckFactory::CheckFactory(Program &program, const KernelInfo &kernel,
                           const ChipInfo &chip, uint32_t checks,
                           WrittenMap &written, ObserverFactory *others)
    : Out(program, kernel, chip), Plans(PlanTable::of(program)), Checks(checks),
      Written(written), Others(others),
      RaceCells(std::make_unique<GlobalShadow>()) {}

CheckFactory::~CheckFactory() = default;

std::unique_ptr<Observer> CheckFactory::create() {
  return std::make_unique<CheckObserver>(Out, Plans, Checks, *RaceCells,
                                         Written,
                                         Others ? Others->create() : nullptr);
}

} // namespace fovea::sim
