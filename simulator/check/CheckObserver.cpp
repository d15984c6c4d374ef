//===- CheckObserver.cpp - The checkers of a launch -----------------------===//
//
// One virtual call an instruction; what is off costs a test of a pointer.
//
//===----------------------------------------------------------------------===//
#include "check/CheckObserver.h"
#include "check/SimpleChecks.h"
#include "check/WaitCheck.h"

#include <optional>

namespace fovea::sim {

namespace {

class CheckObserver : public Observer {
public:
  CheckObserver(const Reporter &out, PlanTable &plans, uint32_t checks,
                std::unique_ptr<Observer> other)
      : Plans(plans), Other(std::move(other)) {
    if (checks & kCheckAlign)
      Align.emplace(out);
    if (checks & kCheckBarrier)
      Barrier.emplace(out);
    if (checks & kCheckWaitcnt)
      Wait.emplace(out, true);
  }

  void beginGroup(Group &group, Wave *waves, unsigned count) override {
    if (Barrier)
      Barrier->beginGroup(waves, count);
    if (Wait)
      Wait->beginGroup(count);
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
    if (Wait)
      Wait->before(wave, plan);
    if (Other && wave.state != WaveState::Faulted)
      Other->before(wave, op, index);
  }

  void after(Wave &wave, const MicroOp &op, uint32_t index) override {
    const InstPlan &plan = *Current;
    if (Barrier)
      Barrier->after(wave, plan);
    if (Wait)
      Wait->after(wave, plan);
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
      Wait->access(wave, plan, access, 0);
    if (Other && wave.state == WaveState::Running)
      Other->access(wave, op, access);
  }

  void barrier(Group &group) override {
    if (Barrier)
      Barrier->barrier();
    if (Other)
      Other->barrier(group);
  }

private:
  PlanTable &Plans;
  std::unique_ptr<Observer> Other;
  const InstPlan *Current = nullptr;
  std::optional<AlignCheck> Align;
  std::optional<BarrierCheck> Barrier;
  std::optional<WaitCheck> Wait;
};

} // namespace

CheckFactory::CheckFactory(Program &program, const KernelInfo &kernel,
                           const ChipInfo &chip, uint32_t checks,
                           ObserverFactory *others)
    : Out(program, kernel, chip), Plans(PlanTable::of(program)), Checks(checks),
      Others(others) {}

CheckFactory::~CheckFactory() = default;

std::unique_ptr<Observer> CheckFactory::create() {
  return std::make_unique<CheckObserver>(Out, Plans, Checks,
                                         Others ? Others->create() : nullptr);
}

} // namespace fovea::sim
