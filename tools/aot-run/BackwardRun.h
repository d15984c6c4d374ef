//===- BackwardRun.h - run a backward pass and judge it ---------*- C++ -*-===//
//
// As ForwardRun.h, for the gradients of a forward problem.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_BACKWARDRUN_H
#define FOVEA_TOOLS_AOTRUN_BACKWARDRUN_H

#include "ForwardRun.h"

namespace fovea::run {

/// The gradients of a forward problem for a normal dout; those of its sinks
/// too, where a kernel has them.
struct BackwardCase {
  ForwardCase forward;  ///< its `lse` says nothing here
  double doutScale = 1; ///< standard deviation of dout

  /// "backward bf16 d128 causal-bottom-right ... normal dout*256"
  std::string str() const;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_BACKWARDRUN_H
