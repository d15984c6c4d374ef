//===- EmptyHip.h - a HIP library that does nothing -------------*- C++ -*-===//
//
// What tests and benchmarks of launches see of libfovea_emptyhip.so: devices of
// one chip, modules that are their names, and launches that leave a note of
// themselves with the thread. Its calls neither allocate nor lock once modules
// are loaded, so that what they cost is the least that a HIP library can cost.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_EMPTYHIP_EMPTYHIP_H
#define FOVEA_TEST_EMPTYHIP_EMPTYHIP_H

#include <cstddef>
#include <cstdint>

namespace fovea::test {

inline constexpr int kEmptyHipDevices = 8;
inline constexpr const char *kEmptyHipArch = "gfx942:sramecc+:xnack-";
inline constexpr int kEmptyHipUnits = 304;

/// The calling thread's launches.
struct EmptyHipThread {
  uint64_t launches; ///< that were taken
  // Of the last one:
  int device;
  uint32_t grid[3], block[3], sharedBytes;
  void *stream;
  const char *function; ///< its name
  size_t argumentBytes;
  alignas(8) unsigned char arguments[512];
};

/// Exported as `fovea_empty_hip_thread`: the calling thread's note.
using EmptyHipThreadFn = EmptyHipThread *(*)();

} // namespace fovea::test

#endif // FOVEA_TEST_EMPTYHIP_EMPTYHIP_H
