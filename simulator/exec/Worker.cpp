//===- Worker.cpp - Running workgroups on a host thread -------------------===//
//
// Storage, turns and barriers of the waves of one workgroup, and the loops that
// execute their instructions.
//
//===----------------------------------------------------------------------===//
#include "exec/Worker.h"
#include "decode/CodeObjectImpl.h"
#include "exec/Barrier.h"
#include "exec/FaultText.h"

#include <algorithm>
#include <new>

namespace fovea::sim {

namespace {

/// Instructions that a wave runs before the next wave of its workgroup. Few, so
/// that waves advance side by side as on hardware: kernels written by hand may
/// overwrite LDS without a barrier where the write takes so long to arrive
/// (loads to LDS above all) that the readers are done.
constexpr int64_t kSlice = 16;

/// Registers of a wave.
constexpr size_t kRegisterBytes = size_t(kVectorFile) * kLaneStride * 4;

uint64_t executedBy(const Group &group) {
  uint64_t sum = 0;
  for (uint64_t count : group.counts)
    sum += count;
  return sum;
}

/// The handler of the instruction at \p index, which is decoded if it was not.
Handler handlerAt(const Group &group, const MicroOp &op, uint32_t index) {
  Handler handler = op.fn.load(std::memory_order_acquire);
  if (__builtin_expect(handler == group.undecoded, 0)) {
    group.program->decode(index);
    handler = op.fn.load(std::memory_order_acquire);
  }
  return handler;
}

void fillWords(std::vector<uint8_t> &bytes, uint32_t word) {
  std::fill_n(reinterpret_cast<uint32_t *>(bytes.data()), bytes.size() / 4,
              word);
}

} // namespace

//===-- Setting up --------------------------------------------------------===//

Worker::Worker(Run &run)
    : run(run), registers(static_cast<uint8_t *>(
                    std::aligned_alloc(64, kRegisterBytes * run.waveSlots))),
      waves(new (std::nothrow) Wave[run.waveSlots]), lds(run.ldsBytes + 64) {
  const size_t stride = size_t(run.privateBytes) * run.kernel.waveSize;
  scratch.resize(stride * run.waveSlots + 64);
  shareLaunch();
  for (unsigned i = 0; registers && waves && i < run.waveSlots; ++i) {
    waves[i].v =
        reinterpret_cast<uint32_t *>(registers.get() + kRegisterBytes * i);
    waves[i].scratch = scratch.data() + stride * i;
    waves[i].group = &group;
  }
}

/// What the group knows of its launch.
void Worker::shareLaunch() {
  group.chip = &run.chip;
  group.program = &run.code.impl().program(run.kernel.waveSize);
  group.ops = group.program->ops();
  group.textBegin = group.program->begin();
  group.textDwords = group.program->dwords();
  group.undecoded = Program::undecoded();
  group.decodeAt = [](Wave &w) { w.group->program->decode(w.pc); };
  group.cache.memory = &run.code.device()->memory();
  group.lds = lds.data();
  group.ldsBytes = run.ldsBytes;
  group.m0LdsMask = run.chip.ldsPerWorkgroup > 0x10000 ? 0x3ffff : 0xffff;
  group.privateBytes = run.privateBytes;
  group.mfmaFault = run.config.options.mfmaFault;
  group.waves = waves.get();
  std::copy(std::begin(run.geometry.groups), std::end(run.geometry.groups),
            group.grid);
}

/// Readies the waves of workgroup \p index (x + y * X + z * X * Y).
void Worker::setUp(uint64_t index) {
  const uint64_t *groups = run.geometry.groups;
  group.number = index;
  group.id[0] = static_cast<uint32_t>(index % groups[0]);
  group.id[1] = static_cast<uint32_t>(index / groups[0] % groups[1]);
  group.id[2] = static_cast<uint32_t>(index / groups[0] / groups[1]);
  std::fill(std::begin(group.barriers), std::end(group.barriers),
            SplitBarrier());
  const GroupExtent extent = extentOf(run, group.id);
  group.waveCount = extent.waves;
  fillWords(lds, unwrittenWord(run));
  if (run.privateBytes)
    fillWords(scratch, unwrittenWord(run));
  for (unsigned i = 0; i < extent.waves; ++i)
    setInitialState(waves[i], i, run, extent);
  total.waves += extent.waves;
  if (group.observer)
    group.observer->beginGroup(group, waves.get(), extent.waves);
}

//===-- Running -----------------------------------------------------------===//

void Worker::runWorkgroups() {
  if (!registers || !waves) {
    run.fail(
        {ErrorCode::OutOfMemory, "no host memory for the waves' registers"});
    return;
  }
  if (run.observers) {
    observer = run.observers->create();
    group.observer = observer.get();
  }
  const std::vector<uint64_t> &chosen = run.config.workgroups;
  while (!run.failed.load(std::memory_order_relaxed)) {
    uint64_t index = run.nextGroup.fetch_add(1, std::memory_order_relaxed);
    if (index >= run.groupsToRun())
      break;
    if (run.config.options.reverse)
      index = run.groupsToRun() - 1 - index;
    setUp(chosen.empty() ? index : chosen[index]);
    runGroup();
    ++total.workgroups;
  }
  addCounters();
}

void Worker::addCounters() {
  std::copy(std::begin(group.counts), std::end(group.counts),
            total.byClass.begin());
  total.instructions = executedBy(group);
  total.bytesLoaded = group.bytesLoaded;
  total.bytesStored = group.bytesStored;
  std::lock_guard<std::mutex> lock(run.mutex);
  run.counters += total;
}

/// Runs the waves of the workgroup until all have ended, or one fails.
void Worker::runGroup() {
  while (takeTurns() && goOn())
    if (run.failed.load(std::memory_order_relaxed))
      return;
}

/// A time slice for each wave that can run. False when one has failed.
bool Worker::takeTurns() {
  const uint64_t budget = run.config.options.waveBudget;
  for (unsigned i = 0; i < group.waveCount; ++i) {
    Wave &w = waves[i];
    if (w.state != WaveState::Running)
      continue;
    if (__builtin_expect(group.observer != nullptr, 0))
      runSliceObserved(w);
    else
      runSlice(w);
    if (w.state == WaveState::Faulted) {
      run.fail(faultStatus(run, w));
      return false;
    }
    if (w.state == WaveState::Ended)
      endedAtBarriers(group);
    if (budget && w.executed > budget && w.state == WaveState::Running) {
      run.fail(budgetStatus(run, w));
      return false;
    }
  }
  return true;
}

/// After a turn of all waves, which can have let others go on: whether there is
/// another turn.
bool Worker::goOn() {
  if (failedAtAnother())
    return false;
  bool running = false, waiting = false;
  const Wave *stuck = nullptr; // in the second half of a split barrier
  for (unsigned i = 0; i < group.waveCount; ++i) {
    running |= waves[i].state == WaveState::Running;
    if (waves[i].state != WaveState::Barrier)
      continue;
    waiting = true;
    if (waves[i].barrierWait)
      stuck = &waves[i];
  }
  if (running)
    return true;
  if (stuck) {
    run.fail(deadlockStatus(run, *stuck));
    return false;
  }
  if (waiting)
    return passBarrier();
  if (group.observer)
    group.observer->endGroup(group);
  return false;
}

/// All waves that still live have arrived. False when an observer ends one.
bool Worker::passBarrier() {
  ++total.barriers;
  if (group.observer) {
    group.observer->barrier(group);
    if (failedAtAnother())
      return false;
  }
  for (unsigned i = 0; i < group.waveCount; ++i)
    if (waves[i].state == WaveState::Barrier)
      waves[i].state = WaveState::Running;
  return true;
}

/// Reports a wave that failed by what another one did.
bool Worker::failedAtAnother() {
  for (unsigned i = 0; i < group.waveCount; ++i)
    if (waves[i].state == WaveState::Faulted) {
      run.fail(faultStatus(run, waves[i]));
      return true;
    }
  return false;
}

void Worker::runSlice(Wave &w) {
  uint64_t before = executedBy(group);
  w.slice = kSlice;
  const MicroOp *ops = group.ops;
  do {
    const MicroOp &op = ops[w.pc];
    Handler handler = handlerAt(group, op, w.pc);
    ++group.counts[op.cls];
    w.pc += op.size;
    handler(w, op);
  } while (--w.slice > 0);
  w.executed += executedBy(group) - before;
}

void Worker::runSliceObserved(Wave &w) {
  w.slice = kSlice;
  do {
    uint32_t index = w.pc;
    const MicroOp &op = group.ops[index];
    Handler handler = handlerAt(group, op, index);
    ++group.counts[op.cls];
    ++w.executed;
    w.pc += op.size;
    group.observer->before(w, op, index);
    if (w.state == WaveState::Faulted)
      return;
    handler(w, op);
    if (w.state != WaveState::Faulted)
      group.observer->after(w, op, index);
  } while (--w.slice > 0);
}

} // namespace fovea::sim
