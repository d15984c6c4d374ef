//===- Device.h - the simulated device under a test -------------*- C++ -*-===//
//
// The HIP functions that a test calls itself, past the library that fails, and
// attention problems in device memory whose results are known.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_FAULTS_DEVICE_H
#define FOVEA_TEST_FAULTS_DEVICE_H

#include "FaultHip.h"

#include "fovea/Reference/Attention.h"
#include "fovea/fovea.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fovea::test {

/// The simulated library.
struct SimHip {
  void *library = nullptr;
  int (*hipMalloc)(void **, size_t) = nullptr;
  int (*hipFree)(void *) = nullptr;
  int (*hipSetDevice)(int) = nullptr;
  int (*hipGetDevice)(int *) = nullptr;
  int (*hipStreamCreate)(void **) = nullptr;
  int (*hipStreamDestroy)(void *) = nullptr;
  int (*hipDeviceSynchronize)() = nullptr;
  int (*hipDeviceReset)() = nullptr;
  int (*hipModuleUnload)(void *) = nullptr;
};
const SimHip &simHip();

/// State of libfovea_faulthip, which hands on to the simulated library.
FaultHipState &faultHip();

/// Which attention problem: small, of two heads that share a key head.
struct Shape {
  int32_t dtype = FOVEA_DTYPE_F16;
  int64_t headDim = 16;
  int32_t mask = FOVEA_MASK_NONE;
};

/// A problem in the memory of the device that was current when it was made.
/// Both passes read the same inputs; the backward pass starts from the exact
/// forward results, so that it depends on no launch.
class Attention {
public:
  explicit Attention(const Shape &shape);
  ~Attention();
  Attention(const Attention &) = delete;
  Attention &operator=(const Attention &) = delete;

  fovea_forward_params_t forward() const;
  fovea_backward_params_t backward() const;

  /// Fills the results with NaN.
  void poison();
  /// Waits for the device, and expects the results of a pass: at the first time
  /// against the fp64 reference within its budget, then the same bits.
  bool forwardIsRight() const;
  bool backwardIsRight() const;

private:
  struct Truth;
  static Truth &truthOf(const Shape &shape);
  bool isRight(bool backward) const;

  Truth &truth;
  uint8_t *base = nullptr; ///< readable by the host, as the simulator's memory
};

} // namespace fovea::test

#endif // FOVEA_TEST_FAULTS_DEVICE_H
