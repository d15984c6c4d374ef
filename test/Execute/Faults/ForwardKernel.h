//===- ForwardKernel.h - forward kernels under test -------------*- C++ -*-===//

#ifndef FOVEA_TEST_FORWARDKERNEL_H
#define FOVEA_TEST_FORWARDKERNEL_H

#include "PlantedKernel.h"

namespace fovea::test {

/// A causal kernel with log-sum-exp.
class ForwardKernelTest : public PlantedKernelTest {
protected:
  static constexpr int kHeadDim = 64;

  void build();

  /// Runs that between them reach every part.
  std::vector<run::ForwardCase> cases() const;
};

} // namespace fovea::test

#endif // FOVEA_TEST_FORWARDKERNEL_H
