//===- HipCalls.h - the HIP calls a run needs -------------------*- C++ -*-===//
//
// A table of functions taken from the HIP library that libfovea opened, and the
// simulated library's extras where it has them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_HIPCALLS_H
#define FOVEA_TOOLS_AOTRUN_HIPCALLS_H

#include "fovea/fovea.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fovea::run {

using HipStatus = int; // hipError_t; 0 is success
enum CopyKind { HostToDevice = 1, DeviceToHost = 2 };

struct HipCalls {
  HipStatus (*setDevice)(int) = nullptr;
  HipStatus (*malloc)(void **, size_t) = nullptr;
  HipStatus (*free)(void *) = nullptr;
  HipStatus (*memcpy)(void *, const void *, size_t, int) = nullptr;
  HipStatus (*synchronize)() = nullptr;
  HipStatus (*reset)() = nullptr;
  HipStatus (*eventCreate)(void **) = nullptr;
  HipStatus (*eventDestroy)(void *) = nullptr;
  HipStatus (*eventRecord)(void *, void *) = nullptr;
  HipStatus (*eventSynchronize)(void *) = nullptr;
  HipStatus (*eventElapsed)(float *, void *, void *) = nullptr;
  const char *(*errorName)(HipStatus) = nullptr;

  // The simulated library's own; null on a real one.
  const char *(*lastReport)() = nullptr;
  int (*counters)(int, void *) = nullptr;
  int (*resetCounters)(int) = nullptr;

  /// Fills the table; what is missing is named in `error`.
  bool load(fovea_context_t *context, std::string &error);

  /// "hipErrorIllegalAddress", with the simulator's report where there is one.
  std::string explain(HipStatus status) const;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_HIPCALLS_H
