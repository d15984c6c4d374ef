//===- ScoreEvaluator.h - score programs on the host ------------*- C++ -*-===//
//
// Evaluates a score program's ops one by one, with the derivative of each by
// dual numbers: forward mode, which shares nothing with the compiler's reverse
// mode.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_SCOREEVALUATOR_H
#define FOVEA_TEST_SCOREEVALUATOR_H

#include "fovea/Reference/Attention.h"
#include "mlir/IR/Region.h"

namespace fovea::test {

/// A scalar or tensor that a program captures.
struct CapturedValues {
  std::vector<int64_t> extents, strides; ///< none: a scalar
  std::vector<double> values;            ///< as memory has them

  double at(const std::vector<int64_t> &indices) const;
};

/// The program does not outlive this call, what it captures does.
std::shared_ptr<const reference::ScoreFunction>
evaluatorOf(mlir::Region &program,
            const std::vector<CapturedValues> &captured = {});

} // namespace fovea::test

#endif // FOVEA_TEST_SCOREEVALUATOR_H
