//===- Dispatch.h - What a launch puts into device memory -------*- C++ -*-===//
//
// The argument segment, the dispatch packet and the queue of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_DISPATCH_H
#define FOVEA_SIMULATOR_EXEC_DISPATCH_H

#include "exec/LaunchRun.h"

namespace fovea::sim {

/// Device memory of one launch; frees it at its end.
class Dispatch {
public:
  explicit Dispatch(DeviceMemory &memory) : memory(memory) {}
  ~Dispatch();
  Dispatch(const Dispatch &) = delete;
  Dispatch &operator=(const Dispatch &) = delete;

  /// Allocates and fills it all, and tells \p run the addresses. Errors:
  /// InvalidArgument (too few bytes of arguments) and those of
  /// DeviceMemory::allocate().
  Status create(Run &run);

private:
  void fillSegment(const Run &run, uint64_t bytes);
  void fillPacket(const Run &run);

  DeviceMemory &memory;
  uint64_t segment = 0, packet = 0;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_DISPATCH_H
