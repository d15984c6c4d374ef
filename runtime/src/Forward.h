//===- Forward.h - parameters of a forward pass -----------------*- C++ -*-===//

#ifndef FOVEA_RUNTIME_SRC_FORWARD_H
#define FOVEA_RUNTIME_SRC_FORWARD_H

#include "fovea/Package/ForwardAbi.h"

#include "Problem.h"

namespace fovea::rt {

struct ForwardProblem : Problem {
  fovea_forward_params_t params;
};

/// Reads `params` of whatever version and checks everything but addresses.
Result readForward(const fovea_forward_params_t *params,
                   ForwardProblem &problem);

/// Checks the addresses; for a launch.
Result checkAddresses(ForwardProblem &problem);

/// The kernel argument segment of a launch.
abi::ForwardArgs makeForwardArgs(const ForwardProblem &problem);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_FORWARD_H
