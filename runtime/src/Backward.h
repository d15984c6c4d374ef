//===- Backward.h - parameters of a backward pass ---------------*- C++ -*-===//

#ifndef FOVEA_RUNTIME_SRC_BACKWARD_H
#define FOVEA_RUNTIME_SRC_BACKWARD_H

#include "fovea/Package/BackwardAbi.h"

#include "Problem.h"

namespace fovea::rt {

struct BackwardProblem : Problem {
  fovea_backward_params_t params;
};

/// Reads `params` of whatever version and checks everything but addresses.
Result readBackward(const fovea_backward_params_t *params,
                    BackwardProblem &problem);

/// Checks the addresses; for a launch.
Result checkAddresses(BackwardProblem &problem);

/// The kernel argument segment of all launches.
abi::BackwardArgs makeBackwardArgs(const BackwardProblem &problem);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_BACKWARD_H
