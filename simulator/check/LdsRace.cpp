//===- LdsRace.cpp - Races on LDS -----------------------------------------===//
//
// Two words of state for each block of 16 bytes, and for each word of those
// blocks that are not always accessed as a whole.
//
//===----------------------------------------------------------------------===//
#include "check/LdsRace.h"
#include "check/WaitCheck.h"

#include <cstring>

namespace fovea::sim {

namespace {
/// Cell::write of a block whose words have cells of their own.
constexpr uint64_t kSplit = ~uint64_t(0);
// Cell::write: clock 24 | instruction 24 | wave 8 | atomic 4 | bytes 4.
uint64_t packWrite(uint32_t clock, uint32_t instruction, unsigned wave,
                   bool atomic, unsigned bytes) {
  return uint64_t(clock & 0xffffff) << 40 |
         uint64_t(instruction & 0xffffff) << 16 | wave << 8 |
         unsigned(atomic) << 4 | bytes;
}
uint32_t content(const Wave &wave, uint32_t index) {
  uint32_t word = 0;
  uint32_t at = 4 * index, size = wave.group->ldsBytes;
  if (at < size)
    std::memcpy(&word, wave.group->lds + at, std::min(4u, size - at));
  return word;
}
uint32_t clockOf(uint64_t write) { return uint32_t(write >> 40); }
uint32_t instructionOf(uint64_t write) { return (write >> 16) & 0xffffff; }
unsigned waveOf(uint64_t write) { return (write >> 8) & 0xff; }
bool atomicOf(uint64_t write) { return (write >> 4) & 1; }
// Cell::read: barriers 28 | bytes 4 | waves 32.
uint64_t packRead(uint32_t barriers, unsigned wave, unsigned bytes) {
  return uint64_t(barriers & 0xfffffff) << 36 | uint64_t(bytes) << 32 |
         uint64_t(1) << wave;
}
/// Readers of the same bytes are kept together; of others, the last.
void addRead(uint64_t &read, uint64_t fresh) {
  read = read >> 32 == fresh >> 32 ? fresh | read : fresh;
}
} // namespace

unsigned LdsRace::ownerOf(uint64_t write) const {
  unsigned clock = waveOf(write);
  return Time.hasLoads() && clock >= kLoadClock ? clock - kLoadClock : clock;
}

void LdsRace::beginGroup(const Group &group) {
  size_t blocks = (size_t(group.ldsBytes) + 15) / 16;
  Blocks.assign(blocks, Cell{0, 0});
  BlockReadBy.resize(blocks);
  Cells.resize(4 * blocks);
  ReadBy.resize(4 * blocks);
  Suspects.clear();
  Reads.resize(size_t(group.waveCount) * WaitCheck::kMostLdsReads);
  ReadCount.assign(group.waveCount, 0);
}

void LdsRace::split(uint32_t block) {
  for (uint32_t i = 4 * block; i < 4 * block + 4; ++i) {
    Cells[i] = Blocks[block];
    ReadBy[i] = BlockReadBy[block];
  }
  Blocks[block].write = kSplit;
}

uint32_t LdsRace::readBy(uint32_t index) const {
  return Blocks[index / 4].write == kSplit ? ReadBy[index]
                                           : BlockReadBy[index / 4];
}

void LdsRace::race(Wave &wave, const InstPlan &plan, MemoryAccess::Kind kind,
                   uint32_t index, unsigned lane, const std::string &other) {
  if (kind == MemoryAccess::Store) {
    uint32_t last = Blocks[index / 4].write == kSplit ? index : index | 3;
    for (uint32_t i = index; i <= last && Suspects.size() < 256; ++i)
      Suspects.push_back({i, content(wave, i), lane, other});
    return;
  }
  Out.fail(wave, *plan.op, kCheckRaceLds, uint64_t(1) << lane,
           "LDS offset " + hexText(4 * uint64_t(index)) + " is accessed, and " +
               other);
}

void LdsRace::after(Wave &wave, const InstPlan &plan) {
  if (__builtin_expect(Suspects.empty(), 1))
    return;
  for (const Suspect &s : Suspects)
    if (content(wave, s.index) != s.before) {
      race(wave, plan, MemoryAccess::Atomic, s.index, s.lane, s.other);
      break;
    }
  Suspects.clear();
}

/// What is the same for all words of an access.
struct LdsRace::Now {
  Wave &wave;
  const InstPlan &plan;
  MemoryAccess::Kind kind;
  unsigned me;
  uint64_t read;  ///< Cell::read but for its bytes
  uint64_t write; ///< Cell::write but for its bytes
};

/// The accesses of \p bytes of words in state \p cell. The words have numbers
/// from \p index on.
inline void LdsRace::step(const Now &now, Cell &cell, uint32_t index,
                          unsigned bytes, unsigned lane) {
  uint64_t fresh = now.read | uint64_t(bytes) << 32;
  uint64_t write = cell.write, read = cell.read;
  // Whoever wrote since this wave's last read has been held against that.
  if (now.kind == MemoryAccess::Load && (read & fresh) == fresh &&
      read >> 32 == fresh >> 32)
    return;
  bool harmless = atomicOf(write) && now.kind != MemoryAccess::Store;
  if (waveOf(write) != now.me && waveOf(write) != Time.loads(now.me) &&
      (write & bytes) && !harmless &&
      !Time.before(now.me, waveOf(write), clockOf(write))) {
    race(now.wave, now.plan, now.kind, index, lane,
         "wave " + std::to_string(ownerOf(write)) + " writes it with " +
             Out.place(instructionOf(write)) +
             "; no barrier after that write's wait lies between them");
    return;
  }
  if (now.kind == MemoryAccess::Load) {
    addRead(cell.read, fresh);
    return;
  }
  if (now.kind == MemoryAccess::Store && read >> 36 == now.read >> 36 &&
      ((read >> 32) & bytes)) {
    uint32_t others = uint32_t(read) & ~(1u << now.me);
    for (; others; others &= others - 1) {
      unsigned other = unsigned(__builtin_ctz(others));
      if (Time.synced(now.me, other))
        continue;
      race(now.wave, now.plan, now.kind, index, lane,
           "wave " + std::to_string(other) + " reads it with " +
               Out.place(readBy(index)) +
               "; no barrier after that read's wait lies between them");
      return;
    }
  }
  // Several parts of a word that one wave writes are kept together.
  if (waveOf(write) == waveOf(now.write) && clockOf(write) == clockOf(now.write))
    bytes |= write & 15;
  cell.write = now.write | bytes;
}

template <typename Function>
inline void LdsRace::eachCell(uint32_t at, uint32_t bytes,
                              const Function &function) {
  uint32_t index = at / 4;
  if (bytes == 16 && at % 16 == 0 && index / 4 < Blocks.size() &&
      Blocks[index / 4].write != kSplit) {
    function(Blocks[index / 4], BlockReadBy[index / 4], index, 15);
    return;
  }
  for (uint32_t i = index / 4; i <= (at + bytes - 1) / 16; ++i)
    if (i < Blocks.size() && Blocks[i].write != kSplit)
      split(i);
  bool words = bytes % 4 == 0 && at % 4 == 0;
  for (uint32_t i = 0; i < (words ? bytes / 4 : bytes); ++i) {
    uint32_t word = words ? index + i : (at + i) / 4;
    if (word < Cells.size())
      function(Cells[word], ReadBy[word], word,
               words ? 15u : 1u << ((at + i) % 4));
  }
}

void LdsRace::access(Wave &wave, const InstPlan &plan,
                     const MemoryAccess &access) {
  unsigned me = wave.index;
  bool atomic = access.kind == MemoryAccess::Atomic;
  bool direct = plan.op->flags & kLdsDirect;
  Now now{
      wave,
      plan,
      access.kind,
      me,
      packRead(Time.barriers(), me, 0),
      direct ? packWrite(Time.nowLoad(me), plan.index, Time.loads(me), false, 0)
             : packWrite(Time.now(me), plan.index, me, atomic, 0)};
  bool loads = access.kind == MemoryAccess::Load;
  if (loads) {
    Read &read = Reads[me * WaitCheck::kMostLdsReads +
                       ReadCount[me]++ % WaitCheck::kMostLdsReads];
    read.instruction = plan.index;
    read.bytes = access.bytes;
    read.mask = access.mask;
    unsigned lanes =
        access.mask ? 64 - unsigned(__builtin_clzll(access.mask)) : 0;
    for (unsigned i = 0; i < lanes; ++i)
      read.address[i] = uint32_t(access.address[i]);
  }
  for (uint64_t left = access.mask; left; left &= left - 1) {
    unsigned lane = unsigned(__builtin_ctzll(left));
    eachCell(uint32_t(access.address[lane]), access.bytes,
             [&](Cell &cell, uint32_t &readBy, uint32_t index, unsigned bytes) {
               if (loads)
                 readBy = plan.index;
               step(now, cell, index, bytes, lane);
             });
    if (wave.state != WaveState::Running)
      return;
  }
}

void LdsRace::keepReads(unsigned wave, unsigned open) {
  uint64_t fresh = packRead(Time.barriers(), wave, 0);
  for (unsigned i = open; i > 0; --i) {
    const Read &read = Reads[wave * WaitCheck::kMostLdsReads +
                             (ReadCount[wave] - i) % WaitCheck::kMostLdsReads];
    for (uint64_t left = read.mask; left; left &= left - 1)
      eachCell(read.address[__builtin_ctzll(left)], read.bytes,
               [&](Cell &cell, uint32_t &readBy, uint32_t, unsigned bytes) {
                 readBy = read.instruction;
                 addRead(cell.read, fresh | uint64_t(bytes) << 32);
               });
  }
}

} // namespace fovea::sim
