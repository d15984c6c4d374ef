//===- Wave.cpp - The state of a wave and its workgroup -------------------===//
//
// What is too rare to be in line.
//
//===----------------------------------------------------------------------===//
#include "exec/Wave.h"

namespace fovea::sim {

void Wave::fail(ErrorCode code, const MicroOp &op, int lane, std::string what) {
  if (state == WaveState::Faulted)
    return;
  fault.code = code;
  fault.op = &op;
  fault.lane = lane;
  fault.what = std::move(what);
  stop(WaveState::Faulted);
}

bool MemoryCache::lookUp(uint64_t begin, uint64_t end) {
  uint64_t now = memory->generation();
  if (now != generation) {
    for (Range &range : ranges)
      range = Range();
    generation = now;
  }
  Allocation found;
  if (begin >= end || !memory->find(begin, found))
    return false;
  ranges[next] = {found.base, found.base + found.size};
  next = (next + 1) % 8;
  return end <= found.base + found.size;
}

} // namespace fovea::sim
