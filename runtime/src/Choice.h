//===- Choice.h - which kernels for a problem -------------------*- C++ -*-===//
//
// Chooses the kernels for a problem on a device and plans their launches. Knows
// nothing of HIP.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_CHOICE_H
#define FOVEA_RUNTIME_SRC_CHOICE_H

#include "Catalog.h"
#include "Problem.h"

namespace fovea::rt {

/// What a choice depends on of a device.
struct DeviceTraits {
  TargetId target;
  int32_t computeUnits = 0;
};

/// One of a plan's launches.
struct PlannedLaunch {
  const KernelLaunch *kernel; ///< owned by the catalog
  uint32_t grid[3];           ///< workgroups, none of them 0
};

/// What to launch for a problem, in this order.
struct Plan {
  const Kernel *kernel = nullptr; ///< owned by the catalog
  int32_t chosenBy = 0;           ///< FOVEA_CHOSEN_BY_...
  std::vector<PlannedLaunch> launches;
  uint64_t workspaceBytes = 0;
};

/// Chooses for a problem that is not empty; NOT_FOUND with each candidate's
/// reason.
Result chooseKernel(const Catalog &catalog, const Problem &problem,
                    const DeviceTraits &device, Plan &plan);

/// "kernel 3 'symbol' ... by the tuning table, grid 8x4x2".
std::string describe(const Plan &plan);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_CHOICE_H
