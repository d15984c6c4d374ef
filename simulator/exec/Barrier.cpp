//===- Barrier.cpp - Barriers in two halves -------------------------------===//
//
// Completion sets a bit in each wave that takes part; waiting clears it again.
//
//===----------------------------------------------------------------------===//
#include "exec/Barrier.h"
#include "exec/Observer.h"

namespace fovea::sim {

namespace {

/// Bits of Wave::barrierDone and Wave::barrierWait, by kind.
enum : uint8_t { kWorkgroupBit = 1, kTrapBit = 2, kNamedBit = 4 };

uint8_t bitOf(int id) {
  return id == -1 ? kWorkgroupBit : id == -2 ? kTrapBit : kNamedBit;
}
/// Place of a barrier in Group::barriers; -1 when there is no such barrier.
int placeOf(int id) {
  if (id == -1 || id == -2)
    return -id - 1;
  return id >= 1 && id <= 16 ? id + 1 : -1;
}
bool takesPart(const Wave &w, int id) {
  return w.state != WaveState::Ended && (id < 0 || w.joined == id);
}
uint32_t members(const Group &g, int id) {
  if (id > 0)
    return g.barriers[placeOf(id)].members;
  uint32_t live = 0;
  for (unsigned i = 0; i < g.waveCount; ++i)
    live += g.waves[i].state != WaveState::Ended;
  return live;
}

/// Lets the members go on when all have arrived.
void completeIfFull(Group &g, int id) {
  SplitBarrier &barrier = g.barriers[placeOf(id)];
  if (!barrier.arrived || barrier.arrived < members(g, id))
    return;
  barrier.arrived = 0;
  if (id == -1 && g.observer)
    g.observer->barrier(g);
  uint8_t bit = bitOf(id);
  for (unsigned i = 0; i < g.waveCount; ++i) {
    Wave &w = g.waves[i];
    if (!takesPart(w, id))
      continue;
    if (w.state == WaveState::Barrier && w.barrierWait == bit) {
      w.state = WaveState::Running;
      w.barrierWait = 0;
    } else {
      w.barrierDone |= bit;
    }
  }
}

bool known(Wave &w, const MicroOp &op, int id) {
  if (placeOf(id) >= 0)
    return true;
  w.fail(ErrorCode::IllegalInstruction, op, -1,
         "barrier " + std::to_string(id) +
             "; there are -1 (workgroup), -2 (trap) and 1 to 16");
  return false;
}

} // namespace

void signalBarrier(Wave &w, const MicroOp &op, int id, uint32_t count) {
  if (id == 0 || !known(w, op, id)) // 0 is the null barrier
    return;
  SplitBarrier &barrier = w.group->barriers[placeOf(id)];
  if (id > 0 && count)
    barrier.members = count;
  ++barrier.arrived;
  completeIfFull(*w.group, id);
}

bool isFirstToSignal(const Wave &w, int id) {
  return placeOf(id) >= 0 && w.group->barriers[placeOf(id)].arrived == 0;
}

void waitForBarrier(Wave &w, const MicroOp &op, int id) {
  if (id > 0 && !w.joined)
    return; // has joined none: the null barrier
  if (id == 0 || !known(w, op, id))
    return;
  uint8_t bit = bitOf(id);
  if (w.barrierDone & bit) {
    w.barrierDone &= static_cast<uint8_t>(~bit);
    return;
  }
  w.barrierWait = bit;
  w.stop(WaveState::Barrier);
}

void initBarrier(Wave &w, const MicroOp &op, int id, uint32_t count) {
  if (id <= 0)
    return w.fail(ErrorCode::IllegalInstruction, op, -1,
                  "only named barriers, 1 to 16, can be set up; this is " +
                      std::to_string(id));
  if (!known(w, op, id))
    return;
  w.group->barriers[placeOf(id)] = {count, 0};
}

void joinBarrier(Wave &w, const MicroOp &op, int id) {
  if (id != 0 && !known(w, op, id))
    return;
  w.joined = id;
  w.barrierDone &= static_cast<uint8_t>(~kNamedBit);
}

void leaveBarrier(Wave &w, const MicroOp &) {
  int id = w.joined;
  w.joined = 0;
  w.scc = false;
  if (id <= 0)
    return;
  SplitBarrier &barrier = w.group->barriers[placeOf(id)];
  if (barrier.members)
    --barrier.members;
  completeIfFull(*w.group, id);
}

uint32_t stateOfBarrier(const Wave &w, int id) {
  if (placeOf(id) < 0)
    return 0;
  const SplitBarrier &barrier = w.group->barriers[placeOf(id)];
  return 1 | members(*w.group, id) << 4 | (barrier.arrived & 0x7f) << 16;
}

void endedAtBarriers(Group &group) {
  completeIfFull(group, -1);
  completeIfFull(group, -2);
}

} // namespace fovea::sim
