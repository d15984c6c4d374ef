//===- ForwardKernel.h - forward kernels under test -------------*- C++ -*-===//

#ifndef FOVEA_TEST_FORWARDKERNEL_H
#define FOVEA_TEST_FORWARDKERNEL_H

#include "PlantedKernel.h"

namespace fovea::test {

/// A kernel with log-sum-exp.
class ForwardKernelTest : public PlantedKernelTest {
public:
  static constexpr int kHeadDim = 64;

protected:
  /// A causal one, or one that takes a window.
  void build(bool hasWindow = false);

  /// Causal runs that between them reach every part.
  std::vector<run::ForwardCase> cases() const;
  /// Windows whose ends lie at, beside and within blocks.
  std::vector<run::ForwardCase> windows() const;
};

} // namespace fovea::test

#endif // FOVEA_TEST_FORWARDKERNEL_H
