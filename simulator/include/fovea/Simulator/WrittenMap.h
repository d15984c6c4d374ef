//===- WrittenMap.h - Bytes of device memory that were written --*- C++ -*-===//
//
// For allocations whose owner asks for it, which of their bytes have been
// written since. What is not followed counts as written.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_WRITTENMAP_H
#define FOVEA_SIMULATOR_WRITTENMAP_H

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace fovea::sim {

/// Thread safe; the bytes themselves are written without locks.
class WrittenMap {
public:
  WrittenMap() = default;
  ~WrittenMap();
  WrittenMap(const WrittenMap &) = delete;
  WrittenMap &operator=(const WrittenMap &) = delete;

  /// Follows the \p bytes bytes at \p base, none of which is written. Without
  /// host memory for that they are not followed.
  void follow(uint64_t base, uint64_t bytes);
  /// Forgets the range that starts at \p base, if there is one.
  void forget(uint64_t base);
  void forgetAll();

  /// Notes a write, by the host or by a copy whose source is all written.
  void write(uint64_t address, uint64_t bytes);
  /// Notes a copy within device memory.
  void copy(uint64_t to, uint64_t from, uint64_t bytes);

  struct Range {
    uint64_t begin = 1, end = 0;
    uint8_t *written = nullptr; ///< 1 for each byte written
  };
  /// Ranges found last, for one thread.
  struct Cache {
    uint64_t generation = 0;
    Range ranges[8];
    unsigned next = 0;
  };
  /// The byte of \p address, with those after it to the range's end; null when
  /// the address is not followed.
  uint8_t *find(uint64_t address, Cache &cache) const;
  bool empty() const { return Count.load(std::memory_order_relaxed) == 0; }

private:
  bool lookUp(uint64_t address, Range &range) const;
  mutable std::shared_mutex Mutex;
  std::map<uint64_t, Range> Ranges;
  std::atomic<uint64_t> Count{0}, Generation{1};
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_WRITTENMAP_H
