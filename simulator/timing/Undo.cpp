//===- Undo.cpp - Taking back what workgroups wrote -----------------------===//
//
// Device addresses are host addresses, so that a line is read and put back by
// plain copies.
//
//===----------------------------------------------------------------------===//
#include "timing/Undo.h"

#include <algorithm>
#include <cstring>

namespace fovea::sim {

namespace {

/// Hands everything on to another observer and keeps what stores and atomics
/// are about to change.
class UndoObserver : public Observer {
public:
  UndoObserver(UndoLog &log, std::unique_ptr<Observer> other)
      : Log(log), Other(std::move(other)) {}
  void beginGroup(Group &group, Wave *waves, unsigned count) override {
    if (Other)
      Other->beginGroup(group, waves, count);
  }
  void endGroup(Group &group) override {
    if (Other)
      Other->endGroup(group);
  }
  void before(Wave &wave, const MicroOp &op, uint32_t index) override {
    if (Other)
      Other->before(wave, op, index);
  }
  void after(Wave &wave, const MicroOp &op, uint32_t index) override {
    if (Other)
      Other->after(wave, op, index);
  }
  void barrier(Group &group) override {
    if (Other)
      Other->barrier(group);
  }
  void access(Wave &wave, const MicroOp &op, const MemoryAccess &a) override {
    if (a.space == MemoryAccess::Global && a.kind != MemoryAccess::Load)
      for (uint64_t left = a.mask; left; left &= left - 1)
        Log.keep(a.address[__builtin_ctzll(left)], a.bytes);
    if (Other)
      Other->access(wave, op, a);
  }

private:
  UndoLog &Log;
  std::unique_ptr<Observer> Other;
};

} // namespace

std::unique_ptr<Observer> UndoLog::create() {
  return std::make_unique<UndoObserver>(*this,
                                        Others ? Others->create() : nullptr);
}

void UndoLog::keep(uint64_t address, uint32_t bytes) {
  std::lock_guard<std::mutex> lock(Mutex);
  for (const uint64_t end = address + bytes; address < end;) {
    const uint64_t first = address % kLineBytes;
    const uint64_t count = std::min(kLineBytes - first, end - address);
    Line &line = Lines[address - first];
    for (uint64_t i = first; i < first + count; ++i)
      if (!(line.kept >> i & 1)) {
        line.kept |= uint64_t(1) << i;
        line.bytes[i] = *reinterpret_cast<const uint8_t *>(address - first + i);
      }
    address += count;
  }
}

void UndoLog::restore() {
  std::lock_guard<std::mutex> lock(Mutex);
  for (const auto &[base, line] : Lines)
    for (uint64_t left = line.kept; left; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      *reinterpret_cast<uint8_t *>(base + uint64_t(i)) = line.bytes[size_t(i)];
    }
  Lines.clear();
}

} // namespace fovea::sim
