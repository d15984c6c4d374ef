//===- FakeHip.h - a HIP library that records and fails ---------*- C++ -*-===//
//
// What the runtime's tests see of the fake HIP libraries (FakeHip.cpp): the
// devices they pretend to have, the calls and launches they recorded, and the
// call that is to fail next.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_RUNTIME_FAKEHIP_H
#define FOVEA_TEST_UNIT_RUNTIME_FAKEHIP_H

#include "../../Support/KernelArgs.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fovea::test {

struct FakeLaunch {
  std::string function;
  std::string payload; ///< of the image that the function came from
  unsigned grid[3], block[3], sharedBytes;
  void *stream;
  size_t argumentBytes;
  std::vector<unsigned char> argumentSegment;
  /// What the argument segment is, by its size.
  fovea::test::ForwardArgs args;
  fovea::test::BackwardArgs backwardArgs;
};

struct FakeHipState {
  std::mutex mutex;
  std::vector<std::string> archs = {"gfx942:sramecc+:xnack-"};
  int computeUnits = 304;
  int physicalUnits = 0; ///< of the attribute for them; 0: it is unknown
  int currentDevice = 0;
  void *capturing = nullptr; ///< the stream that is being captured
  int captureMode = 0;       ///< of the thread; 2: relaxed
  std::optional<int> runtimeVersion; ///< else the version built in, .2.34567
  /// Device properties of no known layout: with a field more, or empty.
  bool propertiesWritten = true;
  std::optional<int> propertiesUnits; ///< else computeUnits
  size_t newFieldAt = SIZE_MAX, newFieldBytes = 0;

  std::map<std::string, int> calls; ///< by function
  std::vector<FakeLaunch> launches;
  int liveModules = 0;

  /// What hipDeviceReset does: modules and functions from before are gone.
  void reset() {
    ++resets;
    liveModules = 0;
  }
  int resets = 0;
  int resetCountdown = 0; ///< the launch (1: the next) that a reset precedes
  int resetsAfterLoads = 0; ///< so many loads from the next on: one after each

  /// The call of `failFunction` that fails (1: the next), with `failError`.
  std::string failFunction;
  int failCountdown = 0;
  int failError = 0;
};

/// Exported by the fake as `fovea_fake_hip_state`.
using FakeHipStateFn = FakeHipState *(*)();

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_RUNTIME_FAKEHIP_H
