//===- LaunchLimits.cpp - What a chip and a kernel allow ------------------===//
//
// The grid of a launch, and what it may ask for: work-items, LDS, registers and
// scratch.
//
//===----------------------------------------------------------------------===//
#include "exec/LaunchRun.h"

#include <algorithm>

namespace fovea::sim {

namespace {

constexpr uint64_t kMaxScratch = uint64_t(1) << 30;

Status launchFailure(const Run &run, const std::string &why) {
  return {ErrorCode::LaunchFailure, "kernel '" + run.kernel.name + "': " + why};
}

/// Sets the number of workgroups, and of the waves of one.
Status checkGeometry(Run &run) {
  const KernelInfo &k = run.kernel;
  const Geometry &g = run.geometry;
  uint64_t items = 1, groups = 1;
  for (int i = 0; i < 3; ++i) {
    if (!g.block[i] || !g.groups[i])
      return launchFailure(run, "grid and workgroup need at least 1 in each "
                                "dimension; the workgroup is " +
                                    triple(g.block));
    if (g.block[i] > run.chip.maxWorkgroupSize)
      return launchFailure(run, "a workgroup of " + triple(g.block) +
                                    " work-items; at most " +
                                    std::to_string(run.chip.maxWorkgroupSize));
    if (g.groups[i] > 0xffffffffu)
      return launchFailure(run, "a grid of " + std::to_string(g.groups[i]) +
                                    " workgroups in dimension " +
                                    std::to_string(i) + "; at most 2^32 - 1");
    items *= g.block[i];
    if (groups > (uint64_t(1) << 62) / g.groups[i])
      return launchFailure(run, "the grid has more than 2^62 workgroups");
    groups *= g.groups[i];
    if (k.requiredWorkgroupSize[i] && k.requiredWorkgroupSize[i] != g.block[i])
      return launchFailure(run, "a workgroup of " + triple(g.block) +
                                    "; it was compiled for " +
                                    triple(k.requiredWorkgroupSize.data()));
  }
  uint64_t limit =
      std::min<uint64_t>(run.chip.maxWorkgroupSize, k.maxWorkgroupSize);
  if (items > limit)
    return launchFailure(run, "a workgroup of " + std::to_string(items) +
                                  " work-items; at most " +
                                  std::to_string(limit));
  run.waveSlots = static_cast<unsigned>(ceilDiv(items, k.waveSize));
  run.totalGroups = groups;
  return Status::success();
}

/// Sets the bytes of LDS of a workgroup.
Status checkLdsAndRegisters(Run &run) {
  const ChipInfo &chip = run.chip;
  uint64_t lds =
      uint64_t(run.kernel.staticLdsBytes) + run.config.dynamicLdsBytes;
  if (lds > chip.ldsPerWorkgroup)
    return launchFailure(run, std::to_string(lds) + " bytes of LDS; " +
                                  std::string(chip.target) + " has " +
                                  std::to_string(chip.ldsPerWorkgroup));
  unsigned registers = vgprCount(run.kernel, chip);
  if (registers > chip.vgprsPerSimdLane)
    return launchFailure(run, std::to_string(registers) +
                                  " vector registers; " +
                                  std::string(chip.target) + " has " +
                                  std::to_string(chip.vgprsPerSimdLane));
  run.ldsBytes = static_cast<uint32_t>(lds);
  return Status::success();
}

/// Sets the bytes of scratch of a lane.
Status checkScratch(Run &run) {
  const KernelInfo &k = run.kernel;
  uint32_t bytes = k.privateBytes;
  if (k.usesDynamicStack)
    bytes = std::max(bytes, run.config.options.dynamicStackBytes);
  run.privateBytes = (bytes + 15) & ~15u;
  if (uint64_t(run.privateBytes) * k.waveSize * run.waveSlots <= kMaxScratch)
    return Status::success();
  const uint32_t *block = run.geometry.block;
  return launchFailure(
      run, std::to_string(run.privateBytes) +
               " bytes of scratch a lane are too much for " +
               std::to_string(uint64_t(block[0]) * block[1] * block[2]) +
               " work-items");
}

} // namespace

// Waves of 64 lanes on chips that also have waves of 32 take half as many in a
// unit.
unsigned vgprCount(const KernelInfo &k, const ChipInfo &chip) {
  bool half = chip.otherWaveSize && k.waveSize == 64;
  return (bitField(k.rsrc1, 0, 6) + 1) *
         (half ? chip.vgprGranule / 2 : chip.vgprGranule);
}

Geometry geometryOf(const LaunchConfig &config) {
  Geometry g;
  bool byItems = config.gridWorkItems[0] || config.gridWorkItems[1] ||
                 config.gridWorkItems[2];
  for (int i = 0; i < 3; ++i) {
    g.block[i] = config.block[i];
    g.items[i] = byItems ? std::max<uint64_t>(config.gridWorkItems[i], 1)
                         : uint64_t(config.grid[i]) * config.block[i];
    g.groups[i] = g.block[i] ? ceilDiv(g.items[i], g.block[i]) : 0;
  }
  return g;
}

std::string triple(const uint32_t *x) {
  return "(" + std::to_string(x[0]) + ", " + std::to_string(x[1]) + ", " +
         std::to_string(x[2]) + ")";
}

Status checkLimits(Run &run) {
  if (Status s = checkGeometry(run); !s)
    return s;
  if (Status s = checkLdsAndRegisters(run); !s)
    return s;
  if (Status s = checkScratch(run); !s)
    return s;
  for (uint64_t index : run.config.workgroups)
    if (index >= run.totalGroups)
      return launchFailure(run, "workgroup " + std::to_string(index) +
                                    " is asked for; the grid has " +
                                    std::to_string(run.totalGroups));
  return Status::success();
}

} // namespace fovea::sim
