//===- Devices.cpp - devices, their properties and contexts ---------------===//
//
// What a program can ask of a device. Figures come from the simulator's chip
// table; attributes are rows that name one.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

/// ROCm release whose interface this is: 6.3.0, as HIP_VERSION spells it.
constexpr int kHipVersion = 60300000;

int clampToInt(uint64_t value) {
  return int(std::min<uint64_t>(value, INT_MAX));
}

/// The digits of a gfx name: "gfx942" is 9, 4; "gfx1151" is 11, 5.
int majorOf(const sim::ChipInfo &c) {
  const std::string digits(c.target.substr(3));
  return std::atoi(digits.substr(0, digits.size() - 2).c_str());
}
int minorOf(const sim::ChipInfo &c) {
  return c.target[c.target.size() - 2] - '0';
}
/// As ROCm counts: pairs of compute units, where a workgroup may run on both.
int multiprocessors(const sim::ChipInfo &c) {
  return int(c.waveSize == 32 ? c.computeUnits / 2 : c.computeUnits);
}
int threadsPerCU(const sim::ChipInfo &c) {
  return int(c.maxWavesPerSimd * c.simdsPerCU * c.waveSize);
}
int registersPerCU(const sim::ChipInfo &c) {
  return int(c.vgprsPerSimdLane * c.waveSize * c.simdsPerCU);
}
int gridLimit(unsigned d) { return int(maxGridSize(d)); }

struct AttributeRow {
  int id;
  const char *name;
  int (*value)(const sim::ChipInfo &, int device);
};

#define FOVEA_ATTRIBUTE(id, name, expression)                                  \
  {id, name, [](const sim::ChipInfo &c, int device) -> int {                   \
     (void)c, (void)device;                                                    \
     return expression;                                                        \
   }}

/// Numbers of hipDeviceAttribute_t. An attribute that is not here is refused.
constexpr AttributeRow kAttributes[] = {
    FOVEA_ATTRIBUTE(0, "EccEnabled", 1),
    FOVEA_ATTRIBUTE(2, "AsyncEngineCount", 1),
    FOVEA_ATTRIBUTE(3, "CanMapHostMemory", 1),
    FOVEA_ATTRIBUTE(4, "CanUseHostPointerForRegisteredMem", 1),
    FOVEA_ATTRIBUTE(5, "ClockRate", int(c.clockKHz)),
    FOVEA_ATTRIBUTE(6, "ComputeMode", 0),
    FOVEA_ATTRIBUTE(7, "ComputePreemptionSupported", 0),
    FOVEA_ATTRIBUTE(8, "ConcurrentKernels", 1),
    FOVEA_ATTRIBUTE(9, "ConcurrentManagedAccess", 1),
    FOVEA_ATTRIBUTE(10, "CooperativeLaunch", 0),
    FOVEA_ATTRIBUTE(11, "CooperativeMultiDeviceLaunch", 0),
    FOVEA_ATTRIBUTE(12, "DeviceOverlap", 1),
    FOVEA_ATTRIBUTE(13, "DirectManagedMemAccessFromHost", 1),
    FOVEA_ATTRIBUTE(16, "Integrated", 0),
    FOVEA_ATTRIBUTE(17, "IsMultiGpuBoard", 0),
    FOVEA_ATTRIBUTE(18, "KernelExecTimeout", 0),
    FOVEA_ATTRIBUTE(19, "L2CacheSize", clampToInt(c.l2Bytes)),
    FOVEA_ATTRIBUTE(23, "ComputeCapabilityMajor", majorOf(c)),
    FOVEA_ATTRIBUTE(24, "ManagedMemory", 1),
    FOVEA_ATTRIBUTE(25, "MaxBlocksPerMultiProcessor",
                    int(c.maxWavesPerSimd *c.simdsPerCU)),
    FOVEA_ATTRIBUTE(26, "MaxBlockDimX", int(c.maxWorkgroupSize)),
    FOVEA_ATTRIBUTE(27, "MaxBlockDimY", int(c.maxWorkgroupSize)),
    FOVEA_ATTRIBUTE(28, "MaxBlockDimZ", int(c.maxWorkgroupSize)),
    FOVEA_ATTRIBUTE(29, "MaxGridDimX", gridLimit(0)),
    FOVEA_ATTRIBUTE(30, "MaxGridDimY", gridLimit(1)),
    FOVEA_ATTRIBUTE(31, "MaxGridDimZ", gridLimit(2)),
    FOVEA_ATTRIBUTE(56, "MaxThreadsPerBlock", int(c.maxWorkgroupSize)),
    FOVEA_ATTRIBUTE(57, "MaxThreadsPerMultiProcessor", threadsPerCU(c)),
    FOVEA_ATTRIBUTE(58, "MaxPitch", INT_MAX),
    FOVEA_ATTRIBUTE(59, "MemoryBusWidth", int(c.memoryBusBits)),
    FOVEA_ATTRIBUTE(60, "MemoryClockRate", int(c.memoryClockKHz)),
    FOVEA_ATTRIBUTE(61, "ComputeCapabilityMinor", minorOf(c)),
    FOVEA_ATTRIBUTE(63, "MultiprocessorCount", multiprocessors(c)),
    FOVEA_ATTRIBUTE(65, "PageableMemoryAccess", 0),
    FOVEA_ATTRIBUTE(66, "PageableMemoryAccessUsesHostPageTables", 0),
    FOVEA_ATTRIBUTE(67, "PciBusId", device + 1),
    FOVEA_ATTRIBUTE(68, "PciDeviceId", 0),
    FOVEA_ATTRIBUTE(69, "PciDomainID", 0),
    FOVEA_ATTRIBUTE(71, "MaxRegistersPerBlock", registersPerCU(c)),
    FOVEA_ATTRIBUTE(72, "MaxRegistersPerMultiprocessor", registersPerCU(c)),
    FOVEA_ATTRIBUTE(73, "ReservedSharedMemPerBlock", 0),
    FOVEA_ATTRIBUTE(74, "MaxSharedMemoryPerBlock",
                    clampToInt(c.ldsPerWorkgroup)),
    FOVEA_ATTRIBUTE(75, "SharedMemPerBlockOptin",
                    clampToInt(c.ldsPerWorkgroup)),
    FOVEA_ATTRIBUTE(76, "SharedMemPerMultiprocessor", clampToInt(c.ldsPerCU)),
    FOVEA_ATTRIBUTE(78, "StreamPrioritiesSupported", 1),
    FOVEA_ATTRIBUTE(80, "TccDriver", 0),
    FOVEA_ATTRIBUTE(83, "TotalConstantMemory", INT_MAX),
    FOVEA_ATTRIBUTE(84, "TotalGlobalMem", clampToInt(c.memoryBytes)),
    FOVEA_ATTRIBUTE(85, "UnifiedAddressing", 1),
    FOVEA_ATTRIBUTE(87, "WarpSize", int(c.waveSize)),
    FOVEA_ATTRIBUTE(88, "MemoryPoolsSupported", 0),
    FOVEA_ATTRIBUTE(89, "VirtualMemoryManagementSupported", 0),
    FOVEA_ATTRIBUTE(90, "HostRegisterSupported", 1),
    FOVEA_ATTRIBUTE(91, "MemoryPoolSupportedHandleTypes", 0),
    FOVEA_ATTRIBUTE(10000, "ClockInstructionRate", 100000),
    FOVEA_ATTRIBUTE(10002, "MaxSharedMemoryPerMultiprocessor",
                    clampToInt(c.ldsPerCU)),
    FOVEA_ATTRIBUTE(10011, "IsLargeBar", 1),
    FOVEA_ATTRIBUTE(10012, "AsicRevision", 0),
    FOVEA_ATTRIBUTE(10013, "CanUseStreamWaitValue", 0),
    FOVEA_ATTRIBUTE(10014, "ImageSupport", 0),
    FOVEA_ATTRIBUTE(10015, "PhysicalMultiProcessorCount", int(c.computeUnits)),
    FOVEA_ATTRIBUTE(10016, "FineGrainSupport", 1),
    FOVEA_ATTRIBUTE(10017, "WallClockRate", 100000),
};
#undef FOVEA_ATTRIBUTE

template <size_t Size>
void copyText(char (&to)[Size], const std::string &text) {
  const size_t length = std::min(text.size(), Size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

hipDeviceArch_t features() {
  hipDeviceArch_t arch = {};
  arch.hasGlobalInt32Atomics = arch.hasGlobalFloatAtomicExch = 1;
  arch.hasSharedInt32Atomics = arch.hasSharedFloatAtomicExch = 1;
  arch.hasFloatAtomicAdd = arch.hasGlobalInt64Atomics = 1;
  arch.hasSharedInt64Atomics = arch.hasDoubles = 1;
  arch.hasWarpVote = arch.hasWarpBallot = arch.hasWarpShuffle = 1;
  arch.hasThreadFenceSystem = arch.has3dGrid = 1;
  return arch;
}

/// What both versions of hipDeviceProp_t have under the same names.
template <typename Properties>
void fillCommon(Properties &p, const DeviceState &state) {
  const sim::ChipInfo &c = state.device->chip();
  std::memset(&p, 0, sizeof(p));
  copyText(p.name, std::string(c.name));
  copyText(p.gcnArchName, std::string(c.target) + std::string(c.features));
  p.totalGlobalMem = c.memoryBytes;
  p.sharedMemPerBlock = c.ldsPerWorkgroup;
  p.regsPerBlock = registersPerCU(c);
  p.warpSize = int(c.waveSize);
  p.maxThreadsPerBlock = int(c.maxWorkgroupSize);
  for (unsigned d = 0; d < 3; ++d) {
    p.maxThreadsDim[d] = int(c.maxWorkgroupSize);
    p.maxGridSize[d] = gridLimit(d);
  }
  p.clockRate = int(c.clockKHz);
  p.memoryClockRate = int(c.memoryClockKHz);
  p.memoryBusWidth = int(c.memoryBusBits);
  p.totalConstMem = INT_MAX;
  p.major = majorOf(c);
  p.minor = minorOf(c);
  p.multiProcessorCount = multiprocessors(c);
  p.l2CacheSize = clampToInt(c.l2Bytes);
  p.maxThreadsPerMultiProcessor = threadsPerCU(c);
  p.clockInstructionRate = 100000;
  p.arch = features();
  p.concurrentKernels = 1;
  p.pciBusID = state.index + 1;
  p.maxSharedMemoryPerMultiProcessor = c.ldsPerCU;
  p.canMapHostMemory = 1;
  p.memPitch = INT_MAX;
  p.textureAlignment = 256;
  p.texturePitchAlignment = 256;
  p.ECCEnabled = 1;
  p.isLargeBar = 1;
  p.managedMemory = 1;
  p.directManagedMemAccessFromHost = 1;
  p.concurrentManagedAccess = 1;
}

Result badDevice(int device) {
  return {hipErrorInvalidDevice,
          "device " + std::to_string(device) + " of " +
              std::to_string(Runtime::get().devices().size())};
}

/// Runs `body(state)` for a device number and a result pointer that both must
/// be good.
template <typename Body>
hipError_t onDevice(const char *function, int device, const void *result,
                    Body body) {
  return enter(function, [&]() -> Result {
    DeviceState *state = deviceAt(device);
    if (!state)
      return badDevice(device);
    if (!result)
      return {hipErrorInvalidValue, "the result pointer is null"};
    return body(*state);
  });
}

/// Runs `body` when the result pointer is good.
template <typename Body>
hipError_t giving(const char *function, const void *result, Body body) {
  return enter(function, [&]() -> Result {
    if (!result)
      return {hipErrorInvalidValue, "the result pointer is null"};
    return body();
  });
}

/// A device's context is its index, one up: there is one for each device.
hipCtx_t contextOf(int device) {
  return reinterpret_cast<hipCtx_t>(intptr_t(device) + 1);
}

} // namespace

HIP_ENTRY hipError_t hipInit(unsigned flags) {
  return enter("hipInit", [&]() -> Result {
    if (flags != 0)
      return {hipErrorInvalidValue, "flags must be 0"};
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipDriverGetVersion(int *version) {
  return giving("hipDriverGetVersion", version, [&]() -> Result {
    *version = kHipVersion;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipRuntimeGetVersion(int *version) {
  return giving("hipRuntimeGetVersion", version, [&]() -> Result {
    *version = kHipVersion;
    return hipSuccess;
  });
}

// Names have no version but in the structures of devices' properties.
HIP_ENTRY hipError_t
hipGetProcAddress(const char *symbol, void **address, int version, uint64_t,
                  hipDriverProcAddressQueryResult *found) {
  if (found)
    *found = HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return enter("hipGetProcAddress", [&]() -> Result {
    if (!symbol || !address)
      return {hipErrorInvalidValue, "a pointer is null"};
    *address = nullptr;
    std::string name = symbol;
    // 600 and 60000000 are both a way to say 6.0.
    if (name == "hipGetDeviceProperties" && version >= 600)
      name += "R0600";
    Dl_info self;
    void *library =
        dladdr(reinterpret_cast<void *>(&hipGetProcAddress), &self)
            ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD)
            : nullptr;
    const bool isHip = name.rfind("hip", 0) == 0;
    if (library && isHip)
      *address = dlsym(library, name.c_str());
    if (library)
      (void)dlclose(library);
    if (!*address)
      return {hipErrorInvalidValue, "there is no '" + name + "' here"};
    if (found)
      *found = HIP_GET_PROC_ADDRESS_SUCCESS;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipGetDeviceCount(int *count) {
  if (count)
    *count = 0;
  return giving("hipGetDeviceCount", count, [&]() -> Result {
    *count = int(Runtime::get().devices().size());
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipSetDevice(int device) {
  return enter("hipSetDevice", [&]() -> Result {
    if (!deviceAt(device))
      return badDevice(device);
    currentDevice() = device;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipGetDevice(int *device) {
  return giving("hipGetDevice", device, [&]() -> Result {
    *device = currentDevice();
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  return onDevice("hipDeviceGet", ordinal, device,
                  [&](DeviceState &) -> Result {
                    *device = ordinal;
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipDeviceGetName(char *name, int length,
                                      hipDevice_t device) {
  return onDevice(
      "hipDeviceGetName", device, name, [&](DeviceState &state) -> Result {
        if (length <= 0)
          return {hipErrorInvalidValue, "the buffer has no room"};
        std::snprintf(name, size_t(length), "%s",
                      std::string(state.device->chip().name).c_str());
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  return onDevice("hipDeviceTotalMem", device, bytes,
                  [&](DeviceState &state) -> Result {
                    *bytes = state.device->chip().memoryBytes;
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipDeviceComputeCapability(int *major, int *minor,
                                                hipDevice_t device) {
  return onDevice("hipDeviceComputeCapability", device, major,
                  [&](DeviceState &state) -> Result {
                    if (!minor)
                      return hipErrorInvalidValue;
                    *major = majorOf(state.device->chip());
                    *minor = minorOf(state.device->chip());
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipDeviceGetAttribute(int *value, int attribute,
                                           int device) {
  return onDevice("hipDeviceGetAttribute", device, value,
                  [&](DeviceState &state) -> Result {
                    for (const AttributeRow &row : kAttributes)
                      if (row.id == attribute) {
                        *value = row.value(state.device->chip(), device);
                        return hipSuccess;
                      }
                    return {hipErrorInvalidValue,
                            "attribute " + std::to_string(attribute) +
                                " is not known"};
                  });
}

HIP_ENTRY hipError_t
hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int device) {
  return onDevice(
      "hipGetDeviceProperties", device, properties,
      [&](DeviceState &state) -> Result {
        hipDeviceProp_tR0600 &p = *properties;
        fillCommon(p, state);
        // As ROCm's are: text, here "GPU-sim" and the number, not terminated.
        const std::string id = "GPU-sim" + std::to_string(100000000 + device);
        std::memcpy(p.uuid.bytes, id.data(), sizeof(p.uuid.bytes));
        p.sharedMemPerMultiprocessor = state.device->chip().ldsPerCU;
        p.sharedMemPerBlockOptin = state.device->chip().ldsPerWorkgroup;
        p.regsPerMultiprocessor = registersPerCU(state.device->chip());
        p.maxBlocksPerMultiProcessor =
            int(state.device->chip().maxWavesPerSimd *
                state.device->chip().simdsPerCU);
        p.asyncEngineCount = 1;
        p.unifiedAddressing = 1;
        p.deviceOverlap = 1;
        p.streamPrioritiesSupported = 1;
        p.canUseHostPointerForRegisteredMem = 1;
        p.hostRegisterSupported = 1;
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t
hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *properties, int device) {
  return onDevice(
      "hipGetDevicePropertiesR0000", device, properties,
      [&](DeviceState &state) -> Result {
        fillCommon(*properties, state);
        // The deprecated number: the name's digits.
        properties->gcnArch = std::atoi(
            std::string(state.device->chip().target.substr(3)).c_str());
        return hipSuccess;
      });
}

// Programs built with HIP 6's header call ...R0600; this name is HIP 5's.
HIP_ENTRY hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties,
                                            int device) {
  return hipGetDevicePropertiesR0000(properties, device);
}

HIP_ENTRY hipError_t hipDeviceGetPCIBusId(char *text, int length, int device) {
  return onDevice("hipDeviceGetPCIBusId", device, text,
                  [&](DeviceState &) -> Result {
                    if (length < 13)
                      return {hipErrorInvalidValue,
                              "the buffer needs room for 13 characters"};
                    std::snprintf(text, size_t(length), "0000:%02x:00.0",
                                  unsigned(device + 1) & 0xff);
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
  return onDevice("hipDeviceCanAccessPeer", device, can,
                  [&](DeviceState &) -> Result {
                    if (!deviceAt(peer))
                      return badDevice(peer);
                    *can = 0; // a kernel sees its own device's memory only
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return enter("hipDeviceEnablePeerAccess", [&]() -> Result {
    if (!deviceAt(peer) || peer == currentDevice())
      return badDevice(peer);
    if (flags != 0)
      return {hipErrorInvalidValue, "flags must be 0"};
    return {hipErrorPeerAccessUnsupported,
            "a kernel sees the memory of its own device, and host and managed "
            "memory; hipMemcpyPeer copies between devices"};
  });
}

HIP_ENTRY hipError_t hipDeviceDisablePeerAccess(int peer) {
  return enter("hipDeviceDisablePeerAccess", [&]() -> Result {
    if (!deviceAt(peer))
      return badDevice(peer);
    return {hipErrorPeerAccessNotEnabled, "it was never enabled"};
  });
}

HIP_ENTRY hipError_t hipDeviceGetStreamPriorityRange(int *least,
                                                     int *greatest) {
  return enter("hipDeviceGetStreamPriorityRange", [&]() -> Result {
    if (least)
      *least = 1;
    if (greatest)
      *greatest = -1;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipSetDeviceFlags(unsigned flags) {
  return enter("hipSetDeviceFlags", [&]() -> Result {
    constexpr unsigned kKnown = 0x1f; // scheduling, mapping, local memory
    if (flags & ~kKnown)
      return {hipErrorInvalidValue, "unknown flag"};
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipDeviceSynchronize() {
  return enter("hipDeviceSynchronize", [&]() -> Result {
    if (Result ok = checkCapture(thisDevice()); !ok.ok())
      return ok;
    drain(thisDevice());
    return faultOf(thisDevice());
  });
}

HIP_ENTRY hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context,
                                               hipDevice_t device) {
  return onDevice("hipDevicePrimaryCtxRetain", device, context,
                  [&](DeviceState &) -> Result {
                    *context = contextOf(device);
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device) {
  return enter("hipDevicePrimaryCtxRelease", [&]() -> Result {
    return deviceAt(device) ? Result(hipSuccess) : badDevice(device);
  });
}

HIP_ENTRY hipError_t hipCtxCreate(hipCtx_t *context, unsigned,
                                  hipDevice_t device) {
  return onDevice("hipCtxCreate", device, context,
                  [&](DeviceState &) -> Result {
                    *context = contextOf(device);
                    currentDevice() = device;
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipCtxDestroy(hipCtx_t context) {
  return enter("hipCtxDestroy", [&]() -> Result {
    const intptr_t device = reinterpret_cast<intptr_t>(context) - 1;
    return deviceAt(int(device)) ? hipSuccess : hipErrorInvalidContext;
  });
}

HIP_ENTRY hipError_t hipCtxGetCurrent(hipCtx_t *context) {
  return giving("hipCtxGetCurrent", context, [&]() -> Result {
    *context = contextOf(currentDevice());
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipCtxSetCurrent(hipCtx_t context) {
  return enter("hipCtxSetCurrent", [&]() -> Result {
    const intptr_t device = reinterpret_cast<intptr_t>(context) - 1;
    if (!deviceAt(int(device)))
      return {hipErrorInvalidContext, "not a context of this library"};
    currentDevice() = int(device);
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipCtxGetDevice(hipDevice_t *device) {
  return giving("hipCtxGetDevice", device, [&]() -> Result {
    *device = currentDevice();
    return hipSuccess;
  });
}
