//===- Memory.h - what a pointer points to ----------------------*- C++ -*-===//
//
// Host memory that the library handed out or registered, and the question that
// copies, fills and pointer attributes share: whose memory is this?
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_MEMORY_H
#define FOVEA_HIPSIM_MEMORY_H

#include "Runtime.h"

namespace fovea::hipsim {

/// Where a pointer points.
struct Place {
  hipMemoryType type = hipMemoryTypeUnregistered;
  int device = -1;       ///< that owns it
  uint64_t base = 0;     ///< of the allocation
  uint64_t size = 0;     ///< of the allocation, bytes
  unsigned flags = 0;    ///< it was allocated with
  bool variable = false; ///< a managed variable, not an allocation
  bool onDevice() const {
    return type == hipMemoryTypeDevice || type == hipMemoryTypeManaged;
  }
  /// Bytes from `pointer` to the end of the allocation.
  uint64_t room(const void *pointer) const {
    return base + size - reinterpret_cast<uint64_t>(pointer);
  }
};

/// Never fails: a pointer nobody knows is pageable host memory.
Place placeOf(const void *pointer);

/// A copy of hipMemcpyKind `kind` in the order of `stream`. Returns when it is
/// done if `wait` says so or a side is pageable host memory.
Result copyMemory(void *to, const void *from, size_t bytes, int kind,
                  hipStream_t stream, bool wait);

/// Memory for a managed variable, with the bytes at `initial` in it. All
/// devices and the host see it; it outlives hipDeviceReset.
Result allocateManagedVariable(size_t bytes, uint64_t alignment,
                               const void *initial, uint64_t &address);
void releaseManagedVariable(uint64_t address);

/// "16 bytes at 0x...: 4 bytes past the end of allocation #3 (...)".
std::string describeAccess(const void *pointer, uint64_t bytes);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_MEMORY_H
