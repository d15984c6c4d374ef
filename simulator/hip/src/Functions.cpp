//===- Functions.cpp - what a program can ask of a kernel -----------------===//
//
// Attributes and occupancy, for handles of modules and for host functions that
// clang registered.
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include <algorithm>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

/// Workgroups of `threads` work-items that fit one CU at a time.
int blocksPerCU(const Function &function, const sim::ChipInfo &chip,
                uint64_t threads, uint64_t dynamicLds) {
  const sim::KernelInfo &kernel = *function.kernel;
  auto roundUp = [](uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
  };
  if (threads == 0 || threads > kernel.maxWorkgroupSize)
    return 0;
  const uint64_t lds = roundUp(kernel.staticLdsBytes + dynamicLds, 512);
  if (lds > chip.ldsPerWorkgroup)
    return 0;
  // Registers are given in granules; where the file is unified the count
  // includes AGPRs already.
  const uint64_t granule = chip.vgprGranule;
  const uint64_t registers =
      std::max<uint64_t>(granule, roundUp(kernel.vgprs, granule));
  const uint64_t perSimd = std::min<uint64_t>(
      chip.maxWavesPerSimd, chip.vgprsPerSimdLane / registers);
  const uint64_t waves = (threads + kernel.waveSize - 1) / kernel.waveSize;
  uint64_t blocks = perSimd * chip.simdsPerCU / waves;
  if (lds)
    blocks = std::min(blocks, chip.ldsPerCU / lds);
  return int(blocks);
}

/// Runs `body(function, chip)` for a function handle.
template <typename Body>
hipError_t onFunction(const char *name, hipFunction_t handle, Body body) {
  return enter(name, [&]() -> Result {
    std::shared_ptr<Function> function;
    if (Result found = findFunction(handle, function); !found.ok())
      return found;
    return body(*function, deviceAt(function->device)->device->chip());
  });
}

/// Runs it for a registered host function, on the thread's device, or a handle.
template <typename Body>
hipError_t onKernel(const char *name, const void *host, Body body) {
  return enter(name, [&]() -> Result {
    std::shared_ptr<Function> function;
    if (Result found = kernelOf(host, thisDevice(), function); !found.ok())
      return found;
    return body(*function, deviceAt(function->device)->device->chip());
  });
}

Result maxActiveBlocks(const Function &function, const sim::ChipInfo &chip,
                       int *blocks, int threads, size_t dynamicLds) {
  if (!blocks || threads <= 0)
    return {hipErrorInvalidValue, "the result is null or the workgroup empty"};
  *blocks = blocksPerCU(function, chip, uint64_t(threads), dynamicLds);
  return hipSuccess;
}

Result maxPotentialBlockSize(const Function &function,
                             const sim::ChipInfo &chip, int *gridSize,
                             int *blockSize, size_t dynamicLds, int limit) {
  if (!gridSize || !blockSize || limit < 0)
    return {hipErrorInvalidValue, "a result is null, or the limit negative"};
  uint64_t most = function.kernel->maxWorkgroupSize;
  if (limit)
    most = std::min<uint64_t>(most, uint64_t(limit));
  uint64_t best = 0;
  const uint64_t wave = function.kernel->waveSize;
  for (uint64_t threads = most / wave * wave; threads; threads -= wave) {
    const uint64_t blocks =
        uint64_t(blocksPerCU(function, chip, threads, dynamicLds));
    if (blocks * threads <= best)
      continue;
    best = blocks * threads;
    *blockSize = int(threads);
    *gridSize = int(blocks * chip.computeUnits);
  }
  if (!best)
    return {hipErrorInvalidValue, "no workgroup of it fits the device"};
  return hipSuccess;
}

} // namespace

HIP_ENTRY hipError_t hipFuncGetAttribute(int *value, int attribute,
                                         hipFunction_t handle) {
  return onFunction(
      "hipFuncGetAttribute", handle,
      [&](Function &function, const sim::ChipInfo &chip) -> Result {
        if (!value)
          return {hipErrorInvalidValue, "the result pointer is null"};
        const sim::KernelInfo &kernel = *function.kernel;
        switch (attribute) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
          *value = int(kernel.maxWorkgroupSize);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
          *value = int(kernel.staticLdsBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
          *value = int(kernel.privateBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_NUM_REGS:
          *value = int(kernel.vgprs);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
          *value = int(chip.ldsPerWorkgroup - kernel.staticLdsBytes);
          return hipSuccess;
        case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
        case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
          *value = 0;
          return hipSuccess;
        }
        return {hipErrorInvalidValue,
                "attribute " + std::to_string(attribute) + " is not known"};
      });
}

HIP_ENTRY hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes,
                                          const void *handle) {
  return onKernel(
      "hipFuncGetAttributes", handle,
      [&](Function &found, const sim::ChipInfo &chip) -> Result {
        if (!attributes)
          return {hipErrorInvalidValue, "the result pointer is null"};
        const sim::KernelInfo &kernel = *found.kernel;
        *attributes = {};
        attributes->localSizeBytes = kernel.privateBytes;
        attributes->maxDynamicSharedSizeBytes =
            int(chip.ldsPerWorkgroup - kernel.staticLdsBytes);
        attributes->maxThreadsPerBlock = int(kernel.maxWorkgroupSize);
        attributes->numRegs = int(kernel.vgprs);
        attributes->sharedSizeBytes = kernel.staticLdsBytes;
        return hipSuccess;
      });
}

// All of the LDS can be had without asking; the call checks the amount.
HIP_ENTRY hipError_t hipFuncSetAttribute(const void *handle, int attribute,
                                         int value) {
  return onKernel(
      "hipFuncSetAttribute", handle,
      [&](Function &found, const sim::ChipInfo &chip) -> Result {
        if (attribute != hipFuncAttributeMaxDynamicSharedMemorySize &&
            attribute != hipFuncAttributePreferredSharedMemoryCarveout)
          return {hipErrorInvalidValue,
                  "attribute " + std::to_string(attribute) + " is not known"};
        if (attribute == hipFuncAttributeMaxDynamicSharedMemorySize &&
            (value < 0 || uint64_t(value) + found.kernel->staticLdsBytes >
                              chip.ldsPerWorkgroup))
          return {hipErrorInvalidValue,
                  std::to_string(value) + " bytes of LDS; the device has " +
                      std::to_string(chip.ldsPerWorkgroup)};
        return hipSuccess;
      });
}

// The simulated devices have no cache to divide: the choice is taken and has no
// effect.
HIP_ENTRY hipError_t hipFuncSetCacheConfig(const void *handle, int config) {
  return onKernel(
      "hipFuncSetCacheConfig", handle,
      [&](Function &, const sim::ChipInfo &) -> Result {
        if (config < hipFuncCachePreferNone || config > hipFuncCachePreferEqual)
          return {hipErrorInvalidValue, "config " + std::to_string(config)};
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipGetFuncBySymbol(hipFunction_t *result,
                                        const void *symbol) {
  return onKernel("hipGetFuncBySymbol", symbol,
                  [&](Function &function, const sim::ChipInfo &) -> Result {
                    if (!result)
                      return {hipErrorInvalidValue, "the result is null"};
                    *result = function.handle;
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, hipFunction_t handle, int threads, size_t dynamicLds) {
  return onFunction("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
                    handle, [&](Function &function, const sim::ChipInfo &chip) {
                      return maxActiveBlocks(function, chip, blocks, threads,
                                             dynamicLds);
                    });
}

HIP_ENTRY hipError_t
hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, hipFunction_t handle, int threads, size_t dynamicLds,
    unsigned) {
  return onFunction(
      "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", handle,
      [&](Function &function, const sim::ChipInfo &chip) {
        return maxActiveBlocks(function, chip, blocks, threads, dynamicLds);
      });
}

HIP_ENTRY hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, const void *handle, int threads, size_t dynamicLds) {
  return onKernel("hipOccupancyMaxActiveBlocksPerMultiprocessor", handle,
                  [&](Function &function, const sim::ChipInfo &chip) {
                    return maxActiveBlocks(function, chip, blocks, threads,
                                           dynamicLds);
                  });
}

HIP_ENTRY hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *handle, int threads, size_t dynamicLds, unsigned) {
  return onKernel("hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                  handle, [&](Function &function, const sim::ChipInfo &chip) {
                    return maxActiveBlocks(function, chip, blocks, threads,
                                           dynamicLds);
                  });
}

HIP_ENTRY hipError_t hipModuleOccupancyMaxPotentialBlockSize(
    int *gridSize, int *blockSize, hipFunction_t handle, size_t dynamicLds,
    int limit) {
  return onFunction("hipModuleOccupancyMaxPotentialBlockSize", handle,
                    [&](Function &function, const sim::ChipInfo &chip) {
                      return maxPotentialBlockSize(function, chip, gridSize,
                                                   blockSize, dynamicLds,
                                                   limit);
                    });
}

HIP_ENTRY hipError_t hipOccupancyMaxPotentialBlockSize(int *gridSize,
                                                       int *blockSize,
                                                       const void *handle,
                                                       size_t dynamicLds,
                                                       int limit) {
  return onKernel("hipOccupancyMaxPotentialBlockSize", handle,
                  [&](Function &function, const sim::ChipInfo &chip) {
                    return maxPotentialBlockSize(function, chip, gridSize,
                                                 blockSize, dynamicLds, limit);
                  });
}
