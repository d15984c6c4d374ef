//===- DeviceMemory.cpp - The simulated device's address space ------------===//
//
// Allocations are cut one after the other from a reservation that the host
// backs with pages only when they are touched. Freed ranges give their pages
// back and are not handed out again until the reservation is used up.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/DeviceMemory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <sys/mman.h>
#include <vector>

namespace fovea::sim {

namespace {
constexpr uint64_t kPage = 4096;
/// Unallocated bytes after each allocation: more than a tile row or two beyond
/// the end, so that an overrun does not land in a neighbour.
constexpr uint64_t kGap = 64 * 1024;
/// Freed allocations that error messages can still name.
constexpr size_t kRemembered = 4096;
constexpr uint64_t kMaxReservation = uint64_t(4) << 40;
constexpr uint64_t kMinReservation = uint64_t(256) << 20;

uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

/// The memories of all devices, so that a message can name the right one.
struct Memories {
  std::mutex mutex;
  std::vector<const DeviceMemory *> all;
};
Memories &memories() {
  static auto *instance = new Memories; // outlives every device
  return *instance;
}

std::string labelOf(const Allocation &a) {
  return "allocation #" + std::to_string(a.id) + " (" +
         std::to_string(a.size) + " bytes at " + hex(a.base) + ")";
}
} // namespace

DeviceMemory::DeviceMemory(uint64_t capacity) : Capacity(capacity) {
  // A limit on address space (ulimit -v, containers) makes the large
  // reservation fail; a smaller one serves as well.
  for (uint64_t size = kMaxReservation; size >= kMinReservation; size /= 4) {
    void *place = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
      continue;
    Reserved = size;
    Base = reinterpret_cast<uint64_t>(place);
    Next = Base + kGap;
    break;
  }
  std::lock_guard<std::mutex> lock(memories().mutex);
  memories().all.push_back(this);
}

DeviceMemory::~DeviceMemory() {
  {
    std::lock_guard<std::mutex> lock(memories().mutex);
    auto &all = memories().all;
    all.erase(std::find(all.begin(), all.end(), this));
  }
  if (Reserved)
    munmap(reinterpret_cast<void *>(Base), Reserved);
}

uint64_t DeviceMemory::takeRange(uint64_t span, uint64_t alignment) {
  uint64_t start = alignTo(Next, alignment);
  if (start >= Next && start - Base <= Reserved &&
      span <= Reserved - (start - Base)) {
    Next = start + span;
    return start;
  }
  // The reservation is used up: take the first gap that is wide enough.
  uint64_t cursor = Base + kGap, end = Base + Reserved;
  for (const auto &[base, live] : Live) {
    if (base < Base || base >= end)
      continue; // registered host memory
    start = alignTo(cursor, alignment);
    if (start + span <= base)
      return start;
    cursor = base + alignTo(live.size, kPage) + kGap;
  }
  start = alignTo(cursor, alignment);
  return start + span <= end ? start : 0;
}

void DeviceMemory::remember(const Allocation &old) {
  Freed[old.base] = old;
  FreedOrder.push_back(old.base);
  if (FreedOrder.size() > kRemembered) {
    Freed.erase(FreedOrder.front());
    FreedOrder.pop_front();
  }
}

void DeviceMemory::forget(uint64_t begin, uint64_t end) {
  auto it = Freed.lower_bound(begin);
  if (it != Freed.begin()) {
    auto before = std::prev(it);
    if (before->second.contains(begin, 1))
      it = before;
  }
  while (it != Freed.end() && it->first < end)
    it = Freed.erase(it);
}

Status DeviceMemory::allocate(uint64_t bytes, uint64_t alignment,
                              uint64_t &address) {
  if (alignment == 0 || (alignment & (alignment - 1)))
    return {ErrorCode::InvalidArgument,
            "alignment " + std::to_string(alignment) + " is no power of two"};
  if (!Reserved)
    return {ErrorCode::OutOfMemory,
            "no address space could be reserved for device memory, which takes "
            "256 MiB at least; free memory, or let the process have more "
            "(ulimit -v)"};
  bytes = std::max<uint64_t>(bytes, 1);
  std::unique_lock<std::shared_mutex> lock(Mutex);
  uint64_t used = Used.load(std::memory_order_relaxed);
  if (bytes > Capacity || used > Capacity - bytes)
    return {ErrorCode::OutOfMemory,
            "cannot allocate " + std::to_string(bytes) + " bytes: " +
                std::to_string(used) + " of " + std::to_string(Capacity) +
                " bytes of device memory are in use"};
  // Pages are not shared between allocations, so that free() can return them.
  uint64_t span = alignTo(bytes, kPage) + kGap;
  uint64_t start = takeRange(span, std::max(alignment, kPage));
  if (!start)
    return {ErrorCode::OutOfMemory,
            "cannot allocate " + std::to_string(bytes) + " bytes: the " +
                std::to_string(Reserved) +
                " bytes of simulated address space are used up"};
  forget(start, start + span);
  Allocation fresh;
  fresh.base = start;
  fresh.size = bytes;
  fresh.id = NextId++;
  Live[start] = fresh;
  Used.store(used + bytes, std::memory_order_relaxed);
  Generation.fetch_add(1, std::memory_order_acq_rel);
  address = start;
  return Status::success();
}

Status DeviceMemory::free(uint64_t address) {
  std::unique_lock<std::shared_mutex> lock(Mutex);
  auto it = Live.find(address);
  if (it == Live.end() || it->second.external) {
    const char *why = Freed.count(address) ? " (it was freed before)" : "";
    return {ErrorCode::InvalidArgument,
            "free: no allocation starts at " + hex(address) + why};
  }
  Allocation old = it->second;
  Live.erase(it);
  Initialised.forget(old.base);
  Used.fetch_sub(old.size, std::memory_order_relaxed);
  madvise(reinterpret_cast<void *>(old.base), alignTo(old.size, kPage),
          MADV_DONTNEED);
  remember(old);
  Generation.fetch_add(1, std::memory_order_acq_rel);
  return Status::success();
}

Status DeviceMemory::registerHost(uint64_t address, uint64_t bytes) {
  if (!address || !bytes || address + bytes < address)
    return {ErrorCode::InvalidArgument,
            "cannot register " + std::to_string(bytes) + " bytes of host memory at " +
                hex(address)};
  std::unique_lock<std::shared_mutex> lock(Mutex);
  auto next = Live.lower_bound(address);
  bool overlaps = next != Live.end() && next->first < address + bytes;
  if (next != Live.begin()) {
    const Allocation &before = std::prev(next)->second;
    overlaps |= address - before.base < before.size;
  }
  if (overlaps)
    return {ErrorCode::InvalidArgument,
            "host memory at " + hex(address) +
                " overlaps memory that is registered or allocated already"};
  Allocation fresh;
  fresh.base = address;
  fresh.size = bytes;
  fresh.id = NextId++;
  fresh.external = true;
  Live[address] = fresh;
  Generation.fetch_add(1, std::memory_order_acq_rel);
  return Status::success();
}

Status DeviceMemory::unregisterHost(uint64_t address) {
  std::unique_lock<std::shared_mutex> lock(Mutex);
  auto it = Live.find(address);
  if (it == Live.end() || !it->second.external)
    return {ErrorCode::InvalidArgument,
            "no host memory is registered at " + hex(address)};
  Live.erase(it);
  Generation.fetch_add(1, std::memory_order_acq_rel);
  return Status::success();
}

bool DeviceMemory::find(uint64_t address, Allocation &found) const {
  std::shared_lock<std::shared_mutex> lock(Mutex);
  auto it = Live.upper_bound(address);
  if (it == Live.begin())
    return false;
  --it;
  if (!it->second.contains(address, 1))
    return false;
  found = it->second;
  return true;
}

std::string DeviceMemory::describeElsewhere(uint64_t address) const {
  if (address - Base < Reserved)
    return "";
  std::lock_guard<std::mutex> lock(memories().mutex);
  for (const DeviceMemory *other : memories().all) {
    if (other == this || address - other->Base >= other->Reserved)
      continue;
    Allocation found;
    if (other->find(address, found))
      return std::to_string(address - found.base) + " bytes into " +
             labelOf(found) + " of " + other->Owner +
             ", which this device does not see";
    return "";
  }
  return "";
}

std::string DeviceMemory::describe(uint64_t address, uint64_t bytes) const {
  // Before this memory's own lock: no two of them are held at a time.
  const std::string elsewhere = describeElsewhere(address);
  std::shared_lock<std::shared_mutex> lock(Mutex);
  std::string text =
      std::to_string(bytes) + " bytes at " + hex(address) + ": ";
  if (address < kPage)
    return text + "a null pointer";
  if (!elsewhere.empty())
    return text + elsewhere;
  auto freed = Freed.upper_bound(address);
  if (freed != Freed.begin()) {
    const Allocation &old = std::prev(freed)->second;
    if (old.contains(address, 1))
      return text + std::to_string(address - old.base) +
             " bytes into allocation #" + std::to_string(old.id) + " (" +
             std::to_string(old.size) + " bytes at " + hex(old.base) +
             "), which was freed";
  }
  auto next = Live.upper_bound(address);
  uint64_t above = UINT64_MAX, below = UINT64_MAX;
  const Allocation *after = nullptr, *before = nullptr;
  if (next != Live.end()) {
    after = &next->second;
    above = after->base - address;
  }
  if (next != Live.begin()) {
    before = &std::prev(next)->second;
    uint64_t end = before->base + before->size;
    below = address >= end ? address - end : 0;
  }
  if (before && below <= above)
    return text +
           (before->contains(address, 1)
                ? "runs over the end of "
                : std::to_string(below) + " bytes past the end of ") +
           labelOf(*before);
  if (after)
    return text + std::to_string(above) + " bytes before " + labelOf(*after);
  return text + "nothing is allocated";
}

} // namespace fovea::sim
