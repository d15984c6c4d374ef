//===- GlobalRace.cpp - Races on device memory ----------------------------===//
//
// Shadow cells are read and written by several host threads without locks: a
// torn pair can lose a race between two workgroups that run at the same moment,
// which the next access of either finds as a rule.
//
//===----------------------------------------------------------------------===//
#include "check/GlobalRace.h"

#include <cstring>
#include <sys/mman.h>

namespace fovea::sim {

namespace {
constexpr size_t kPageBytes = GlobalShadow::kCells * sizeof(GlobalShadow::Cell);

// Both words: group + 1 28 bits | clock 24 | wave 5 | flags 3 | bytes 4.
constexpr uint64_t kManyWaves = 1 << 4, kManyGroups = 1 << 5, kAtomic = 1 << 6;
uint64_t pack(uint64_t group, uint32_t clock, unsigned wave, unsigned bytes) {
  return (group + 1) << 36 | uint64_t(clock & 0xffffff) << 12 | wave << 7 |
         bytes;
}
bool sameGroup(uint64_t a, uint64_t b) { return a >> 36 == b >> 36; }
uint64_t groupOf(uint64_t x) { return (x >> 36) - 1; }
uint32_t clockOf(uint64_t x) { return (x >> 12) & 0xffffff; }
unsigned waveOf(uint64_t x) { return (x >> 7) & 31; }

/// Cell::write of a block whose words have cells of their own.
constexpr uint64_t kSplit = ~uint64_t(0);

uint64_t load(const uint64_t &x) {
  return __atomic_load_n(&x, __ATOMIC_RELAXED);
}
void store(uint64_t &x, uint64_t value) {
  __atomic_store_n(&x, value, __ATOMIC_RELAXED);
}
uint32_t memoryWord(uint64_t address) {
  uint32_t word;
  std::memcpy(&word, reinterpret_cast<const void *>(address & ~uint64_t(3)), 4);
  return word;
}
} // namespace

GlobalShadow::~GlobalShadow() {
  for (auto &[page, cells] : Pages)
    munmap(cells, kPageBytes);
}

GlobalShadow::Cell *GlobalShadow::page(uint64_t address) {
  std::lock_guard<std::mutex> lock(PagesMutex);
  Cell *&cells = Pages[address >> kPageBits];
  if (!cells) {
    void *place = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
      throw std::bad_alloc();
    cells = static_cast<Cell *>(place);
  }
  return cells;
}

void GlobalShadow::meet(uint64_t address, uint64_t group,
                        std::unordered_set<uint64_t> &known) {
  std::lock_guard<std::mutex> lock(MeetMutex);
  auto &met = Met[address];
  known.insert(met.begin(), met.end());
  if (met.insert(group).second)
    met.insert(known.begin(), known.end());
}

void GlobalRace::beginGroup(const Group &group) {
  Me = group.number & 0x7ffffff;
  Known.clear();
  Suspects.clear();
}

std::string GlobalRace::groupName(uint64_t group, const Group &of) const {
  uint64_t x = of.grid[0] ? of.grid[0] : 1, y = of.grid[1] ? of.grid[1] : 1;
  return "workgroup (" + std::to_string(group % x) + ", " +
         std::to_string(group / x % y) + ", " + std::to_string(group / x / y) +
         ")";
}

void GlobalRace::race(Wave &wave, const InstPlan &plan,
                      const MemoryAccess &access, unsigned lane,
                      const std::string &other) {
  Out.fail(
      wave, *plan.op, kCheckRaceGlobal, uint64_t(1) << lane,
      wave.group->cache.memory->describe(access.address[lane], access.bytes) +
          ": " + other);
}

void GlobalRace::split(uint64_t address) {
  Cell *whole = block(address);
  uint64_t write = load(whole->write);
  if (write == kSplit)
    return;
  Cell *words = cell(address);
  for (int i = 0; i < 4; ++i) {
    store(words[i].write, write);
    store(words[i].read, load(whole->read));
  }
  store(whole->write, kSplit);
}

inline void GlobalRace::word(Wave &wave, const InstPlan &plan,
                             const MemoryAccess &access, uint64_t mine, Cell &c,
                             uint64_t address, unsigned bytes, unsigned lane) {
  unsigned me = wave.index;
  bool atomic = mine & kAtomic;
  mine |= bytes;
  uint64_t write = load(c.write), read = load(c.read);
  bool loads = access.kind == MemoryAccess::Load;
  auto suspect = [&](const std::string &other) {
    if (loads || access.kind == MemoryAccess::Atomic)
      return race(wave, plan, access, lane, other);
    unsigned words = load(block(address)->write) == kSplit ? 1 : 4;
    for (unsigned i = 0; i < words && Suspects.size() < 256; ++i)
      Suspects.push_back({address + 4 * i, memoryWord(address + 4 * i), lane,
                          access.address[lane], access.bytes, other});
  };
  bool harmless = (write & kAtomic) && (atomic || loads);
  if (write && (write & bytes) && !harmless) {
    if (!sameGroup(write, mine)) {
      if (!Known.count(groupOf(write)))
        return suspect(groupName(groupOf(write), *wave.group) + ", wave " +
                       std::to_string(waveOf(write)) +
                       ", writes it in the same launch, and nothing orders "
                       "the two");
    } else if (waveOf(write) != me &&
               !Time.before(me, waveOf(write), clockOf(write))) {
      return suspect("wave " + std::to_string(waveOf(write)) +
                     " writes it too, with no barrier between");
    }
  }
  if (loads) {
    if (read == mine)
      return;
    // Readers of other bytes are forgotten: two workgroups may share a word.
    if (!(read & bytes) || !((read ^ mine) & ~(uint64_t(0xffffff) << 12)))
      store(c.read, mine);
    else if (sameGroup(read, mine)) // the latest one, and that there are more
      store(c.read, mine | (read & (kManyWaves | kManyGroups | 15)) |
                        (waveOf(read) != me ? kManyWaves : 0));
    else if (!(read & kManyGroups))
      store(c.read, mine | (read & 15) | kManyGroups);
    return;
  }
  if (read && (read & bytes) && !atomic) {
    uint64_t other = groupOf(read);
    if (!sameGroup(read, mine) && !Known.count(other))
      return suspect(groupName(other, *wave.group) + ", wave " +
                     std::to_string(waveOf(read)) +
                     ", reads it in the same launch, and nothing orders the "
                     "two");
    if ((read & kManyGroups) && Known.empty())
      return suspect("other workgroups read it in the same launch, and nothing "
                     "orders them");
    if (sameGroup(read, mine) && waveOf(read) != me &&
        !Time.before(me, waveOf(read), clockOf(read)))
      return suspect("wave " + std::to_string(waveOf(read)) +
                     " reads it, with no barrier between");
  }
  if (write && sameGroup(write, mine) && waveOf(write) == me &&
      clockOf(write) == clockOf(mine))
    mine |= write & 15;
  store(c.write, mine);
}

void GlobalRace::access(Wave &wave, const InstPlan &plan,
                        const MemoryAccess &access) {
  bool atomic = access.kind == MemoryAccess::Atomic || plan.deviceScope;
  if (atomic)
    for (uint64_t left = access.mask, last = 0; left; left &= left - 1) {
      uint64_t at = access.address[__builtin_ctzll(left)];
      if (at != last) {
        Shadow.meet(at, Me, Known);
      }
      last = at;
    }
  uint64_t mine =
      pack(Me, Time.now(wave.index), wave.index, 0) | (atomic ? kAtomic : 0);
  for (uint64_t left = access.mask; left; left &= left - 1) {
    unsigned lane = unsigned(__builtin_ctzll(left));
    uint64_t at = access.address[lane];
    if (access.bytes == 16 && at % 16 == 0) {
      Cell *block = this->block(at);
      if (load(block->write) != kSplit) {
        word(wave, plan, access, mine, *block, at, 15, lane);
        if (wave.state != WaveState::Running)
          return;
        continue;
      }
    }
    for (uint64_t b = at / 16; b <= (at + access.bytes - 1) / 16; ++b)
      split(16 * b);
    if (access.bytes % 4 == 0 && at % 4 == 0) {
      for (uint32_t i = 0; i < access.bytes; i += 4)
        word(wave, plan, access, mine, *cell(at + i), at + i, 15, lane);
    } else {
      for (uint32_t i = 0; i < access.bytes; ++i)
        word(wave, plan, access, mine, *cell(at + i), at + i,
             1u << ((at + i) % 4), lane);
    }
    if (wave.state != WaveState::Running)
      return;
  }
}

void GlobalRace::after(Wave &wave, const InstPlan &plan) {
  if (__builtin_expect(Suspects.empty(), 1))
    return;
  for (const Suspect &s : Suspects)
    if (memoryWord(s.address) != s.before) {
      uint64_t address[kLaneStride] = {};
      address[s.lane] = s.laneAddress;
      MemoryAccess access;
      access.address = address;
      access.bytes = s.laneBytes;
      race(wave, plan, access, s.lane, s.other);
      break;
    }
  Suspects.clear();
}

} // namespace fovea::sim
