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

/// The program does not outlive this call. Null: an op is not known here.
std::shared_ptr<const reference::ScoreFunction>
evaluatorOf(mlir::Region &program);

} // namespace fovea::test

#endif // FOVEA_TEST_SCOREEVALUATOR_H
