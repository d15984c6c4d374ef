//===- Memory.cpp - Caches and memory behind a compute unit ---------------===//
//
// Every level is a queue with a rate and a latency. Levels that compute units
// share serve one of them at its share of the rate.
//
//===----------------------------------------------------------------------===//
#include "timing/Memory.h"

#include <algorithm>

namespace fovea::sim {

/// The tag of a way that holds none.
static constexpr uint64_t kNoLine = ~uint64_t(0);

TagStore::TagStore(uint64_t bytes, unsigned lineBytes, unsigned ways,
                   bool spread)
    : Ways(ways) {
  Sets = std::max<uint64_t>(1, bytes / lineBytes / ways);
  // Of a power of two the low bits of the hash choose, and those are alike of
  // all copies of a trace, which differ in high bits of their lines.
  if (spread && (Sets & (Sets - 1)) == 0)
    ++Sets;
  Tags.assign(Sets * Ways, kNoLine);
  Used.assign(Sets * Ways, 0);
}

bool TagStore::touch(uint64_t line) {
  // A multiplicative hash spreads strides that are powers of two, as hardware's
  // address swizzles do.
  uint64_t set = ((line * 0x9e3779b97f4a7c15u) >> 20) % Sets * Ways;
  ++Now;
  uint64_t oldest = set;
  for (uint64_t i = set; i < set + Ways; ++i) {
    if (Tags[i] == line) {
      Used[i] = Now;
      return true;
    }
    if (Used[i] < Used[oldest])
      oldest = i;
  }
  Tags[oldest] = line;
  Used[oldest] = Now;
  return false;
}

void TagStore::clear() { std::fill(Tags.begin(), Tags.end(), kNoLine); }

MemoryCounters &MemoryCounters::operator+=(const MemoryCounters &other) {
  l1Lines += other.l1Lines;
  l1Hits += other.l1Hits;
  l2Lines += other.l2Lines;
  l2Hits += other.l2Hits;
  l1Bytes += other.l1Bytes;
  l2Bytes += other.l2Bytes;
  memoryBytes += other.memoryBytes;
  atomicClocks += other.atomicClocks;
  busyClocks += other.busyClocks;
  ldsClocks += other.ldsClocks;
  ldsConflicts += other.ldsConflicts;
  return *this;
}

/// Compute units at work that share a cache.
static double unitsOf(Scope scope, const Sharing &sharing) {
  switch (scope) {
  case Scope::Unit:
    return 1;
  case Scope::Array:
    return std::max(1.0, sharing.unitsOfArray);
  case Scope::Die:
    return std::max(1.0, sharing.unitsOfDie);
  case Scope::Chip:
    break;
  }
  return std::max(1.0, sharing.units);
}

/// Bytes a clock of one of the compute units that share a level.
static double rateOf(const MemoryLevel &level, const Sharing &sharing) {
  const double total = level.totalClock + level.totalSecond / sharing.clockHz;
  const double share = total / unitsOf(level.scope, sharing);
  return level.unitClock ? std::min(level.unitClock, share) : share;
}

/// Bytes of a cache in which a compute unit's lines can expect to stay.
static uint64_t ownBytes(const TimingConstants &chip, const Sharing &sharing,
                         size_t level) {
  const MemoryLevel &cache = chip.levels[level];
  return std::max<uint64_t>(chip.l1Bytes,
                            uint64_t(double(cache.bytes) /
                                     std::max(1.0, unitsOf(cache.scope, sharing) *
                                                       sharing.misses[level].mean)));
}

MemoryModel::MemoryModel(const TimingConstants &chip, const Sharing &sharing)
    : Chip(chip), Share(sharing), L1Lines(chip.l1Bytes / chip.lineBytes),
      Scalar(chip.scalarBytes, 64, 4) {
  L1s.assign(chip.l1s,
             {TagStore(chip.l1Bytes, chip.lineBytes, chip.l1Ways), L1Lines});
  Own.resize(chip.levels.size());
  for (size_t i = 0; i < chip.levels.size(); ++i)
    if (chip.levels[i].keepsOwn)
      Own[i].emplace(ownBytes(chip, sharing, i), chip.lineBytes, 16, true);
  for (const MemoryLevel &level : chip.levels)
    Levels.push_back({rateOf(level, sharing),
                      level.clocks + level.seconds * sharing.clockHz});
  LoadedClocks = chip.loadedSeconds * sharing.clockHz * sharing.unitsShare /
                 double(chip.flightBytes);
  AtomicRate = chip.atomicWordsPerSecond / sharing.clockHz /
               std::max(1.0, sharing.units);
  PortFree.assign(chip.ldsPairs, 0);
  PortQueue.resize(chip.ldsPairs);
  SideFree.assign(chip.ldsSides, 0);
}

uint64_t MemoryModel::vectorReady(unsigned simd, uint64_t now) {
  std::deque<double> &accepted = cacheOf(simd).accepted;
  while (!accepted.empty() && accepted.front() <= double(now))
    accepted.pop_front();
  if (accepted.size() < Chip.vmemQueue)
    return now;
  return uint64_t(accepted[accepted.size() - Chip.vmemQueue] + 0.999);
}
uint64_t MemoryModel::ldsReady(unsigned simd, uint64_t now) {
  // A port takes its SIMDs in turn: one that has less than its share of the queue
  // gets in even when the others have filled it.
  auto &queue = PortQueue[simd * Chip.ldsPairs / Chip.simds];
  while (!queue.empty() && queue.front().end <= double(now))
    queue.pop_front();
  if (queue.size() < Chip.ldsQueue)
    return now;
  unsigned own = 0, share = Chip.ldsQueue * Chip.ldsPairs / Chip.simds;
  for (const PortEntry &entry : queue)
    own += entry.simd == simd;
  if (own < share)
    return now;
  return uint64_t(queue[queue.size() - Chip.ldsQueue].end + 0.999);
}

/// A fixed pseudo-random number in [0, 1) of a line: the model must not depend
/// on anything but its input.
static double chance(uint64_t line) {
  uint64_t x = line * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 32;
  return double(x >> 11) * 0x1p-53;
}

/// Only so many misses can be under way: when there is room for one.
double MemoryModel::roomForMiss(Cache &cache, uint64_t now) {
  double at = double(now);
  auto &flight = cache.flight;
  auto leave = [&] {
    cache.flightBytes -= flight.front().second;
    flight.pop_front();
  };
  while (!flight.empty() && flight.front().first <= now)
    leave();
  while (cache.flightBytes + Chip.lineBytes > Chip.flightBytes &&
         !flight.empty()) {
    at = std::max(at, double(flight.front().first));
    leave();
  }
  return at;
}

/// Which level has a line, or takes what is written there.
size_t MemoryModel::levelOf(const Cache &cache, uint64_t line, uint32_t op,
                            Access access) {
  const size_t memory = Levels.size() - 1;
  size_t level = 0;
  for (uint64_t salt = 0; level != memory; ++level, salt += 0x5555) {
    if (Own[level] && Own[level]->touch(line))
      break;
    // What is written is written back some time, to memory.
    if (access == Access::Store)
      continue;
    const double drawn = chance(line ^ salt);
    const double misses = Chip.missScale * Share.misses[level].of(op);
    if (drawn < misses)
      continue;
    // Of what neighbours brought to the L1 there is what came since it was
    // emptied, taken to lie evenly over what a full one holds. The rest is in
    // the cache behind, through which it came.
    level += Chip.levels[level].scope == Scope::Unit &&
             (drawn - misses) * double(L1Lines) >=
                 (1 - misses) * double(cache.loaded);
    break;
  }
  return level;
}

uint64_t MemoryModel::fetch(Cache &cache, uint64_t line, uint32_t op,
                            uint64_t now, Access access) {
  const double at = roomForMiss(cache, now);
  // What comes behind waits as well.
  cache.addressFree = std::max(cache.addressFree, at);
  cache.loaded += access == Access::Load;
  const size_t last = levelOf(cache, line, op, access);
  const bool store = access == Access::Store;
  // The other compute units are taken to have as much under way as this one.
  const double loaded = LoadedClocks * double(cache.flightBytes);
  double done = 0;
  for (size_t i = 0; i <= last; ++i) {
    Level &level = Levels[i];
    level.free = std::max(level.free, at) + Chip.lineBytes / level.rate;
    if (i == 0 || !store) // nobody waits for what is written back
      done = std::max(done, level.free + level.latency + (i ? loaded : 0));
  }
  const bool isNeighbours = Chip.levels[last].scope == Scope::Unit;
  Count.l1Hits += isNeighbours;
  if (!isNeighbours) {
    ++Count.l2Lines;
    Count.l2Bytes += Chip.lineBytes;
    Count.l2Hits += Chip.levels[last].scope != Scope::Chip || store;
  }
  if (last + 1 == Levels.size())
    Count.memoryBytes += Chip.lineBytes;
  // A store makes room once what it writes back has, an atomic once it is done.
  if (access == Access::Atomic)
    done = std::max(done, AtomicFree + Levels.front().latency);
  uint64_t end =
      uint64_t(store ? std::max(Levels.front().free, Levels[last].free) : done);
  if (!cache.flight.empty())
    end = std::max(end, cache.flight.back().first);
  cache.flight.emplace_back(end, Chip.lineBytes);
  cache.flightBytes += Chip.lineBytes;
  return uint64_t(done);
}

uint64_t MemoryModel::vector(const GroupTrace &group, const MemoryUse &use,
                             uint32_t op, uint64_t salt, uint64_t now,
                             unsigned simd) {
  // The address unit takes a few lanes a clock, then lines go to L1 one by one.
  const double clocks =
      Chip.l1Scale *
      std::max<double>(
          {double((use.lanes + Chip.addressLanes - 1) / Chip.addressLanes),
           double(use.bytes) / Chip.l1Clock, double(use.lines) / Chip.l1Lines,
           1.0});
  Cache &cache = cacheOf(simd);
  double start = std::max(cache.addressFree, double(now));
  cache.accepted.push_back(start);
  cache.addressFree = start + clocks;
  Count.busyClocks += uint64_t(clocks);
  uint64_t at = uint64_t(cache.addressFree), done = at + Chip.l1Latency;
  const Access access = use.atomic  ? Access::Atomic
                        : use.store ? Access::Store
                                    : Access::Load;
  if (use.atomic) {
    const double busy = double(use.bytes) / 4 / AtomicRate;
    AtomicFree = std::max(AtomicFree, double(at)) + busy;
    Count.atomicClocks += busy;
  }
  for (unsigned i = 0; i < use.lines; ++i) {
    uint64_t line = group.lines[use.firstLine + i] ^ salt;
    ++Count.l1Lines;
    Count.l1Bytes += Chip.lineBytes;
    if (access == Access::Load && cache.tags.touch(line))
      ++Count.l1Hits;
    else
      done = std::max(done, fetch(cache, line, op, at, access));
  }
  if (use.ldsClocks) { // loads that go to LDS write it when they return
    LdsFree = std::max(LdsFree, double(now)) + use.ldsClocks * Chip.ldsScale;
    Count.ldsClocks += use.ldsClocks;
  }
  return done;
}

uint64_t MemoryModel::lds(const MemoryUse &use, unsigned simd, bool store,
                          uint64_t now, uint64_t firstByte) {
  const unsigned accessed =
      use.ldsClocks ? use.ldsClocks : 2u; // lane exchanges
  const double clocks = accessed * Chip.ldsScale;
  const double bytes = use.ldsClocks ? use.ldsBytes : 256;
  double port = bytes / Chip.ldsPortBytes * Chip.ldsScale;
  if (store && Chip.ldsWriteAddress)
    port += Chip.slot;
  unsigned pair = simd * Chip.ldsPairs / Chip.simds;
  double start = std::max(PortFree[pair], double(now)), end;
  if (Chip.ldsSides) {
    // Each compute unit's in order: one that waits for its half holds up those
    // behind it, which may want the other.
    const unsigned side = unsigned(
        std::min<uint64_t>(Chip.ldsSides - 1, (firstByte + Share.ldsBytes / 2) /
                                                  Chip.ldsSideBytes));
    start = std::max(start, SideFree[side]);
    end = SideFree[side] = PortFree[pair] = start + std::max(port, clocks);
  } else {
    // Ports and banks each work off what they have; the later one gives the
    // data.
    PortFree[pair] = start + std::max(port, clocks);
    LdsFree = std::max(LdsFree, double(now)) + clocks / Chip.ldsHalves;
    end = std::max(PortFree[pair], LdsFree);
  }
  PortQueue[pair].push_back({end, simd});
  Count.ldsClocks += accessed;
  Count.ldsConflicts += use.ldsConflicts;
  return uint64_t(end) + Chip.ldsLatency;
}

uint64_t MemoryModel::invalidate(unsigned simd, uint64_t now) {
  Cache &cache = cacheOf(simd);
  const double start = std::max(cache.addressFree, double(now));
  cache.accepted.push_back(start);
  cache.addressFree = start + Chip.invalidateClocks;
  cache.tags.clear();
  cache.loaded = 0;
  return uint64_t(cache.addressFree) + Chip.l1Latency;
}

uint64_t MemoryModel::scalar(const GroupTrace &group, const MemoryUse &use,
                             uint64_t now) {
  bool hit = true;
  for (unsigned i = 0; i < use.lines; ++i)
    hit &= Scalar.touch(group.lines[use.firstLine + i]);
  return now + (hit ? Chip.scalarHit : Chip.scalarMiss);
}

} // namespace fovea::sim
