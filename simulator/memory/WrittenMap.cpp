//===- WrittenMap.cpp - Bytes of device memory that were written ----------===//
//
// One host byte for each device byte, in pages that the host provides when they
// are touched.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/WrittenMap.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

namespace fovea::sim {

WrittenMap::~WrittenMap() { forgetAll(); }

void WrittenMap::follow(uint64_t base, uint64_t bytes) {
  forget(base);
  void *place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return;
  std::unique_lock<std::shared_mutex> lock(Mutex);
  Ranges[base] = {base, base + bytes, static_cast<uint8_t *>(place)};
  Count.store(Ranges.size(), std::memory_order_relaxed);
  Generation.fetch_add(1, std::memory_order_acq_rel);
}

void WrittenMap::forget(uint64_t base) {
  std::unique_lock<std::shared_mutex> lock(Mutex);
  auto it = Ranges.find(base);
  if (it == Ranges.end())
    return;
  munmap(it->second.written, it->second.end - it->second.begin);
  Ranges.erase(it);
  Count.store(Ranges.size(), std::memory_order_relaxed);
  Generation.fetch_add(1, std::memory_order_acq_rel);
}

void WrittenMap::forgetAll() {
  std::unique_lock<std::shared_mutex> lock(Mutex);
  for (auto &[base, range] : Ranges)
    munmap(range.written, range.end - range.begin);
  Ranges.clear();
  Count.store(0, std::memory_order_relaxed);
  Generation.fetch_add(1, std::memory_order_acq_rel);
}

bool WrittenMap::lookUp(uint64_t address, Range &range) const {
  std::shared_lock<std::shared_mutex> lock(Mutex);
  auto it = Ranges.upper_bound(address);
  if (it == Ranges.begin())
    return false;
  range = std::prev(it)->second;
  return address < range.end;
}

uint8_t *WrittenMap::find(uint64_t address, Cache &cache) const {
  uint64_t now = Generation.load(std::memory_order_acquire);
  if (cache.generation != now) {
    cache = Cache();
    cache.generation = now;
  }
  for (const Range &range : cache.ranges)
    if (address >= range.begin && address < range.end)
      return range.written ? range.written + (address - range.begin) : nullptr;
  Range range;
  if (!lookUp(address, range)) {
    // Remembered too, for the block around it that no range can begin in.
    range.begin = address & ~uint64_t(255);
    range.end = range.begin + 256;
    range.written = nullptr;
  }
  cache.ranges[cache.next] = range;
  cache.next = (cache.next + 1) % 8;
  return range.written ? range.written + (address - range.begin) : nullptr;
}

void WrittenMap::write(uint64_t address, uint64_t bytes) {
  if (empty())
    return;
  Range range;
  if (lookUp(address, range))
    std::memset(range.written + (address - range.begin), 1,
                std::min(bytes, range.end - address));
}

void WrittenMap::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (empty())
    return;
  Range source, target;
  if (!lookUp(to, target))
    return;
  bytes = std::min(bytes, target.end - to);
  uint8_t *place = target.written + (to - target.begin);
  if (lookUp(from, source))
    std::memmove(place, source.written + (from - source.begin),
                 std::min(bytes, source.end - from));
  else
    std::memset(place, 1, bytes);
}

} // namespace fovea::sim
