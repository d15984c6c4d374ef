//===- LaunchRun.h - A launch in progress -----------------------*- C++ -*-===//
//
// What the parts of a launch share: its grid, the limits that it was held to,
// and how far its host threads have come.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_LAUNCHRUN_H
#define FOVEA_SIMULATOR_EXEC_LAUNCHRUN_H

#include "fovea/Simulator/Launch.h"

#include <atomic>
#include <mutex>

namespace fovea::sim {

/// A field of kernel code properties and resource registers.
constexpr uint32_t bitField(uint32_t word, unsigned shift, unsigned width) {
  return (word >> shift) & ((1u << width) - 1);
}
constexpr uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/// Vector registers that the kernel descriptor asks for.
unsigned vgprCount(const KernelInfo &kernel, const ChipInfo &chip);

struct Geometry {
  uint64_t groups[3]; ///< workgroups, partial ones included
  uint64_t items[3];  ///< work-items of the grid
  uint32_t block[3];  ///< work-items of a full workgroup
};
Geometry geometryOf(const LaunchConfig &config);
/// "(1, 2, 3)" for three numbers.
std::string triple(const uint32_t *x);

/// A launch in progress, shared by its host threads.
struct Run {
  Run(const CodeObject &code, const KernelInfo &kernel,
      const LaunchConfig &config)
      : code(code), kernel(kernel), config(config), chip(code.device()->chip()),
        geometry(geometryOf(config)), observers(config.options.observers) {}

  uint64_t groupsToRun() const {
    return config.workgroups.empty() ? totalGroups : config.workgroups.size();
  }
  /// Ends the launch with \p why, unless something else has.
  void fail(const Status &why) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failed.exchange(true))
      status = why;
  }

  const CodeObject &code;
  const KernelInfo &kernel;
  const LaunchConfig &config;
  const ChipInfo &chip;
  const Geometry geometry;
  ObserverFactory *observers;

  // Of checkLimits().
  uint32_t ldsBytes = 0, privateBytes = 0;
  unsigned waveSlots = 0; ///< waves of a full workgroup
  uint64_t totalGroups = 0;
  // Of Dispatch: device addresses.
  uint64_t packet = 0, queue = 0, kernarg = 0;

  std::atomic<uint64_t> nextGroup{0};
  std::atomic<bool> failed{false};
  std::mutex mutex; ///< guards what follows
  Status status;
  Counters counters;
};

/// Holds the launch to what the chip and the kernel allow, and sets what
/// follows from it. Errors: LaunchFailure.
Status checkLimits(Run &run);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_LAUNCHRUN_H
