//===- DeviceMemory.h - The simulated device's address space ----*- C++ -*-===//
//
// Device addresses are host addresses inside one large reservation that the
// simulator owns, so a device pointer can be copied to and from directly. Each
// allocation is followed by an unallocated gap, and a freed range is not handed
// out again until the address space is used up: an access outside every
// allocation, or to one already freed, is found and named.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DEVICEMEMORY_H
#define FOVEA_SIMULATOR_DEVICEMEMORY_H

#include "fovea/Simulator/Status.h"
#include "fovea/Simulator/WrittenMap.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <shared_mutex>
#include <string>

namespace fovea::sim {

/// A contiguous range that kernels may access.
struct Allocation {
  uint64_t base = 0;
  uint64_t size = 0;      ///< bytes the caller asked for; accesses end here
  uint64_t id = 0;        ///< 1, 2, 3... in order of creation
  bool external = false;  ///< host memory made visible by registerHost()
  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

/// Thread safe: launches look allocations up while others allocate and free.
class DeviceMemory {
public:
  /// \p capacity: bytes that can be allocated at a time (the chip's memory).
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Allocates \p bytes (0 is served as 1) at a multiple of \p alignment (a
  /// power of two; at least 256 is used, as HIP promises). New memory reads 0.
  /// Errors: InvalidArgument, OutOfMemory.
  Status allocate(uint64_t bytes, uint64_t alignment, uint64_t &address);

  /// Frees the allocation that starts at \p address. Errors: InvalidArgument
  /// when none does (the message says if it was freed before).
  Status free(uint64_t address);

  /// Makes host memory visible to kernels, at its own address.
  Status registerHost(uint64_t address, uint64_t bytes);
  Status unregisterHost(uint64_t address);

  /// The allocation that holds the byte at \p address; false when none.
  bool find(uint64_t address, Allocation &found) const;

  /// The text of an error about an access of \p bytes at \p address: what is
  /// there or near it (before, after, freed...). For messages only.
  std::string describe(uint64_t address, uint64_t bytes) const;

  /// What messages of other devices call this memory: "device 1". Before any
  /// launch.
  void setOwner(std::string owner) { Owner = std::move(owner); }

  uint64_t capacity() const { return Capacity; }
  uint64_t used() const { return Used.load(std::memory_order_relaxed); }

  /// Changes whenever an allocation appears or goes: caches of find() results
  /// are good while it stays the same.
  uint64_t generation() const {
    return Generation.load(std::memory_order_acquire);
  }

  /// Which bytes were written, for allocations that the check "uninit-mem"
  /// follows.
  WrittenMap &written() { return Initialised; }

private:
  WrittenMap Initialised;
  uint64_t takeRange(uint64_t span, uint64_t alignment);
  void remember(const Allocation &old);
  void forget(uint64_t begin, uint64_t end);

  /// Where \p address lies in the memory of another device of this process;
  /// empty when it does not.
  std::string describeElsewhere(uint64_t address) const;

  uint64_t Capacity;
  std::string Owner = "another device";
  uint64_t Reserved = 0; ///< bytes of address space
  uint64_t Base = 0, Next = 0;
  std::atomic<uint64_t> Used{0};
  std::atomic<uint64_t> Generation{1};
  uint64_t NextId = 1;
  mutable std::shared_mutex Mutex;
  std::map<uint64_t, Allocation> Live;
  std::map<uint64_t, Allocation> Freed; ///< the latest ones, by address
  std::deque<uint64_t> FreedOrder;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DEVICEMEMORY_H
