//===- Forward.h - checking and planning a forward pass ---------*- C++ -*-===//
//
// Turns the caller's parameters into a checked problem, and chooses the kernel
// and the grid for it. Knows nothing of HIP.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_FORWARD_H
#define FOVEA_RUNTIME_SRC_FORWARD_H

#include "fovea/Package/ForwardAbi.h"

#include "Catalog.h"
#include "Result.h"

namespace fovea::rt {

/// Parameters after the checks of docs/KernelAbi.md.
struct ForwardProblem {
  ProblemKey key;
  fovea_forward_params_t params;
  bool empty; ///< batch, heads_q or seqlen_q is 0
};

/// Reads `params` of whatever version and checks everything but addresses.
Result readForward(const fovea_forward_params_t *params,
                   ForwardProblem &problem);

/// Checks the addresses; for a launch.
Result checkAddresses(const ForwardProblem &problem);

/// What a choice depends on of a device.
struct DeviceTraits {
  TargetId target;
  int32_t computeUnits = 0;
};

/// A kernel for a problem.
struct ForwardPlan {
  const Kernel *kernel = nullptr; ///< owned by the catalog
  int32_t chosenBy = 0;           ///< FOVEA_CHOSEN_BY_...
  uint32_t grid[3] = {0, 0, 0};
};

/// Chooses a kernel; NOT_FOUND with each candidate's reason.
Result chooseForward(const Catalog &catalog, const ForwardProblem &problem,
                     const DeviceTraits &device, ForwardPlan &plan);

/// The kernel argument segment of a launch.
abi::ForwardArgs makeForwardArgs(const ForwardProblem &problem);

/// "batch 2, heads 8/2, lengths 128x256, forward;dtype=..." for messages.
std::string describe(const ForwardProblem &problem);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_FORWARD_H
