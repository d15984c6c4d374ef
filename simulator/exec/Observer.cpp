//===- Observer.cpp - Watching a launch from outside ----------------------===//
//
// Defaults for what an observer does not care about.
//
//===----------------------------------------------------------------------===//
#include "exec/Observer.h"

namespace fovea::sim {

Observer::~Observer() = default;
void Observer::beginGroup(Group &, Wave *, unsigned) {}
void Observer::endGroup(Group &) {}
void Observer::after(Wave &, const MicroOp &, uint32_t) {}
void Observer::access(Wave &, const MicroOp &, const MemoryAccess &) {}
void Observer::barrier(Group &) {}

bool observeAccess(Wave &wave, const MicroOp &op, MemoryAccess::Kind kind,
                   uint64_t mask, const uint64_t *place, uint32_t bytes) {
  Group &group = *wave.group;
  uint64_t lds = reinterpret_cast<uint64_t>(group.lds);
  uint64_t scratch = reinterpret_cast<uint64_t>(wave.scratch);
  uint64_t scratchBytes = uint64_t(group.privateBytes) * unsigned(wave.lanes);
  uint64_t address[3][kLaneStride], masks[3] = {0, 0, 0};
  for (uint64_t left = mask; left; left &= left - 1) {
    int l = __builtin_ctzll(left);
    uint64_t at = place[l];
    unsigned space = MemoryAccess::Global;
    if (at >= lds && at < lds + group.ldsBytes) {
      space = MemoryAccess::Lds;
      at -= lds;
    } else if (at >= scratch && at < scratch + scratchBytes) {
      space = MemoryAccess::Scratch;
      at -= scratch + uint64_t(group.privateBytes) * unsigned(l);
    }
    address[space][l] = at;
    masks[space] |= uint64_t(1) << l;
  }
  for (auto space :
       {MemoryAccess::Global, MemoryAccess::Lds, MemoryAccess::Scratch})
    if (masks[space] && wave.state == WaveState::Running) {
      MemoryAccess access;
      access.space = space;
      access.kind = kind;
      access.bytes = bytes;
      access.mask = masks[space];
      access.address = address[space];
      group.observer->access(wave, op, access);
    }
  return wave.state == WaveState::Running;
}

bool observeScalar(Wave &wave, const MicroOp &op, MemoryAccess::Kind kind,
                   uint64_t address, uint32_t bytes) {
  MemoryAccess access;
  access.kind = kind;
  access.scalar = true;
  access.bytes = bytes;
  access.mask = 1;
  access.address = &address;
  wave.group->observer->access(wave, op, access);
  return wave.state == WaveState::Running;
}

ObserverFactory::~ObserverFactory() = default;

} // namespace fovea::sim
