//===- Memory.cpp - allocation --------------------------------------------===//
//
// Device memory is the simulator's; host memory is the host's, made visible to
// the kernels of every device. Managed memory is device memory that the other
// devices see too: device addresses are host addresses, so the host reads it as
// it is.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"
#include "Capture.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

/// An allocation that is more than plain device memory.
struct Known {
  hipMemoryType type; // Host or Managed
  int device;         // current when it was made
  uint64_t size;
  unsigned flags;
  bool registered;        // the program's own memory: not ours to free
  bool permanent = false; // a managed variable: a reset leaves it
};

std::mutex knownMutex;
std::map<uint64_t, Known> &known() {
  static auto *map = new std::map<uint64_t, Known>;
  return *map;
}

uint64_t address(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}
void *pointer(uint64_t address) { return reinterpret_cast<void *>(address); }

/// Plain device allocations of each device, for hipDeviceReset.
std::map<uint64_t, int> &plain() {
  static auto *map = new std::map<uint64_t, int>;
  return *map;
}

/// Makes host memory visible on all devices but `except`; on failure on none.
sim::Status showToDevices(uint64_t base, uint64_t bytes, int except) {
  auto &all = Runtime::get().devices();
  for (size_t i = 0; i < all.size(); ++i) {
    if (int(i) == except)
      continue;
    sim::Status shown = all[i]->device->memory().registerHost(base, bytes);
    if (shown)
      continue;
    while (i-- > 0)
      if (int(i) != except)
        (void)all[i]->device->memory().unregisterHost(base);
    return shown;
  }
  return sim::Status::success();
}

void hideFromDevices(uint64_t base, int except) {
  for (auto &state : Runtime::get().devices())
    if (state->index != except)
      (void)state->device->memory().unregisterHost(base);
}

Result allocateDevice(void **result, size_t bytes) {
  if (!result)
    return {hipErrorInvalidValue, "the result pointer is null"};
  *result = nullptr;
  if (bytes == 0)
    return hipSuccess; // HIP gives a null pointer for no bytes
  DeviceState &state = thisDevice();
  if (state.fault != hipSuccess)
    return faultOf(state);
  uint64_t base = 0;
  if (sim::Status made = state.device->memory().allocate(bytes, 256, base);
      !made)
    return {toHip(made.code()), made.message()};
  if (Runtime::get().settings().launch.checks & sim::kCheckUninitMem)
    state.device->memory().written().follow(base, bytes);
  std::lock_guard<std::mutex> lock(knownMutex);
  plain()[base] = state.index;
  *result = pointer(base);
  return hipSuccess;
}

Result allocateHost(void **result, size_t bytes, unsigned flags) {
  if (!result)
    return {hipErrorInvalidValue, "the result pointer is null"};
  *result = nullptr;
  if (bytes == 0)
    return hipSuccess;
  constexpr size_t kPage = 4096;
  if (bytes > SIZE_MAX - kPage)
    return {hipErrorOutOfMemory, std::to_string(bytes) + " bytes"};
  void *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!memory)
    return {hipErrorOutOfMemory,
            "the host has no " + std::to_string(bytes) + " bytes"};
  if (sim::Status shown = showToDevices(address(memory), bytes, -1); !shown) {
    std::free(memory);
    return {toHip(shown.code()), shown.message()};
  }
  std::lock_guard<std::mutex> lock(knownMutex);
  known()[address(memory)] = {hipMemoryTypeHost, currentDevice(), bytes, flags,
                              false};
  *result = memory;
  return hipSuccess;
}

/// Frees device or managed memory, whose users have finished.
Result release(uint64_t base) {
  int device = -1;
  {
    std::lock_guard<std::mutex> lock(knownMutex);
    if (auto it = known().find(base);
        it != known().end() && it->second.type == hipMemoryTypeManaged) {
      device = it->second.device;
      known().erase(it);
    } else if (auto own = plain().find(base); own != plain().end()) {
      device = own->second;
      plain().erase(own);
    }
  }
  if (device < 0)
    return {hipErrorInvalidValue,
            "no allocation starts there: " + describeAccess(pointer(base), 1)};
  hideFromDevices(base, device);
  if (sim::Status freed = deviceAt(device)->device->memory().free(base); !freed)
    return {toHip(freed.code()), freed.message()};
  return hipSuccess;
}

Result releaseHost(void *memory) {
  if (!memory)
    return hipSuccess;
  {
    std::lock_guard<std::mutex> lock(knownMutex);
    auto it = known().find(address(memory));
    if (it == known().end() || it->second.type != hipMemoryTypeHost ||
        it->second.registered)
      return {hipErrorInvalidValue, "not the start of hipHostMalloc's memory"};
  }
  // Kernels in flight may still use it.
  for (auto &state : Runtime::get().devices())
    drain(*state);
  {
    std::lock_guard<std::mutex> lock(knownMutex);
    known().erase(address(memory));
  }
  hideFromDevices(address(memory), -1);
  std::free(memory);
  return hipSuccess;
}

/// Whether `memory`, of which `place` is known, is what an allocation returned.
Result checkStart(const Place &place, const void *memory) {
  if (place.onDevice() && place.base == address(memory) && !place.variable)
    return hipSuccess;
  return {hipErrorInvalidValue,
          "not the start of an allocation: " + describeAccess(memory, 1)};
}

} // namespace

Place fovea::hipsim::placeOf(const void *p) {
  Place place;
  const uint64_t at = address(p);
  {
    std::lock_guard<std::mutex> lock(knownMutex);
    auto it = known().upper_bound(at);
    if (it != known().begin()) {
      --it;
      if (at - it->first < it->second.size) {
        place.type = it->second.type;
        place.device = it->second.device;
        place.base = it->first;
        place.size = it->second.size;
        place.flags = it->second.flags;
        place.variable = it->second.permanent;
        return place;
      }
    }
  }
  for (auto &state : Runtime::get().devices()) {
    sim::Allocation found;
    if (state->device->memory().find(at, found) && !found.external) {
      place.type = hipMemoryTypeDevice;
      place.device = state->index;
      place.base = found.base;
      place.size = found.size;
      return place;
    }
  }
  return place;
}

std::string fovea::hipsim::describeAccess(const void *p, uint64_t bytes) {
  return thisDevice().device->memory().describe(address(p), bytes);
}

void fovea::hipsim::forgetMemoryOf(int device) {
  std::vector<uint64_t> bases;
  {
    std::lock_guard<std::mutex> lock(knownMutex);
    for (const auto &[base, owner] : plain())
      if (owner == device)
        bases.push_back(base);
    for (const auto &[base, entry] : known())
      if (entry.type == hipMemoryTypeManaged && entry.device == device &&
          !entry.permanent)
        bases.push_back(base);
  }
  for (uint64_t base : bases)
    (void)release(base);
}

HIP_ENTRY hipError_t hipMalloc(void **result, size_t bytes) {
  return enter("hipMalloc", [&] { return allocateDevice(result, bytes); });
}

HIP_ENTRY hipError_t hipExtMallocWithFlags(void **result, size_t bytes,
                                           unsigned) {
  return enter("hipExtMallocWithFlags",
               [&] { return allocateDevice(result, bytes); });
}

HIP_ENTRY hipError_t hipMallocAsync(void **result, size_t bytes,
                                    hipStream_t handle) {
  return onStream(
      "hipMallocAsync", handle,
      [&](DeviceState &device, Stream &stream) -> Result {
        if (Result ok = checkCapture(device, stream, false); !ok.ok())
          return ok;
        // Memory that exists early satisfies the stream's order.
        const int before = std::exchange(currentDevice(), device.index);
        Result made = allocateDevice(result, bytes);
        currentDevice() = before;
        return made;
      });
}

HIP_ENTRY hipError_t hipMallocManaged(void **result, size_t bytes,
                                      unsigned flags) {
  return enter("hipMallocManaged", [&]() -> Result {
    if (Result made = allocateDevice(result, bytes); !made.ok() || !*result)
      return made;
    const uint64_t base = address(*result);
    // The host writes there without telling anybody.
    thisDevice().device->memory().written().forget(base);
    if (sim::Status shown = showToDevices(base, bytes, currentDevice());
        !shown) {
      (void)release(base);
      *result = nullptr;
      return {toHip(shown.code()), shown.message()};
    }
    std::lock_guard<std::mutex> lock(knownMutex);
    plain().erase(base);
    known()[base] = {hipMemoryTypeManaged, currentDevice(), bytes, flags,
                     false};
    return hipSuccess;
  });
}

Result fovea::hipsim::allocateManagedVariable(size_t bytes, uint64_t alignment,
                                              const void *initial,
                                              uint64_t &address) {
  if (!Runtime::get().startError().empty())
    return {hipErrorNoDevice, Runtime::get().startError()};
  constexpr int kOwner = 0;
  if (sim::Status made = deviceAt(kOwner)->device->memory().allocate(
          bytes, std::max<uint64_t>(alignment, 256), address);
      !made)
    return {toHip(made.code()), made.message()};
  if (sim::Status shown = showToDevices(address, bytes, kOwner); !shown) {
    (void)deviceAt(kOwner)->device->memory().free(address);
    return {toHip(shown.code()), shown.message()};
  }
  if (initial)
    std::memcpy(pointer(address), initial, bytes);
  std::lock_guard<std::mutex> lock(knownMutex);
  Known &entry = known()[address];
  entry = {hipMemoryTypeManaged, kOwner, bytes, 1, false};
  entry.permanent = true;
  return hipSuccess;
}

void fovea::hipsim::releaseManagedVariable(uint64_t address) {
  (void)release(address);
}

HIP_ENTRY hipError_t hipMallocPitch(void **result, size_t *pitch, size_t width,
                                    size_t rows) {
  return enter("hipMallocPitch", [&]() -> Result {
    constexpr size_t kAlign = 128;
    if (!pitch)
      return {hipErrorInvalidValue, "the pitch's pointer is null"};
    if (width > SIZE_MAX - kAlign)
      return {hipErrorOutOfMemory, std::to_string(width) + " bytes a row"};
    *pitch = (width + kAlign - 1) / kAlign * kAlign;
    if (rows != 0 && *pitch > SIZE_MAX / rows)
      return {hipErrorOutOfMemory, std::to_string(rows) + " rows of " +
                                       std::to_string(*pitch) + " bytes"};
    return allocateDevice(result, *pitch * rows);
  });
}

HIP_ENTRY hipError_t hipFree(void *memory) {
  return enter("hipFree", [&]() -> Result {
    if (!memory)
      return hipSuccess;
    const Place place = placeOf(memory);
    if (Result ok = checkStart(place, memory); !ok.ok())
      return ok;
    // As HIP does: work that may use the memory ends first.
    drain(*deviceAt(place.device));
    return release(place.base);
  });
}

HIP_ENTRY hipError_t hipFreeAsync(void *memory, hipStream_t handle) {
  return onStream(
      "hipFreeAsync", handle,
      [&](DeviceState &device, Stream &stream) -> Result {
        if (Result ok = checkCapture(device, stream, false); !ok.ok())
          return ok;
        if (!memory)
          return hipSuccess;
        const Place place = placeOf(memory);
        if (Result ok = checkStart(place, memory); !ok.ok())
          return ok;
        submit(
            device, stream,
            [base = place.base] {
              if (Result freed = release(base); !freed.ok())
                Runtime::get().report("hipFreeAsync: " + freed.why, true);
            },
            {}, /*evenAfterFault=*/true);
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipHostMalloc(void **result, size_t bytes,
                                   unsigned flags) {
  return enter("hipHostMalloc",
               [&] { return allocateHost(result, bytes, flags); });
}

HIP_ENTRY hipError_t hipHostAlloc(void **result, size_t bytes, unsigned flags) {
  return enter("hipHostAlloc",
               [&] { return allocateHost(result, bytes, flags); });
}

HIP_ENTRY hipError_t hipMallocHost(void **result, size_t bytes) {
  return enter("hipMallocHost", [&] { return allocateHost(result, bytes, 0); });
}

HIP_ENTRY hipError_t hipHostFree(void *memory) {
  return enter("hipHostFree", [&] { return releaseHost(memory); });
}

HIP_ENTRY hipError_t hipFreeHost(void *memory) {
  return enter("hipFreeHost", [&] { return releaseHost(memory); });
}

HIP_ENTRY hipError_t hipHostRegister(void *memory, size_t bytes,
                                     unsigned flags) {
  return enter("hipHostRegister", [&]() -> Result {
    if (!memory || bytes == 0)
      return {hipErrorInvalidValue, "no memory to register"};
    if (placeOf(memory).type != hipMemoryTypeUnregistered)
      return {hipErrorHostMemoryAlreadyRegistered,
              describeAccess(memory, bytes)};
    if (sim::Status shown = showToDevices(address(memory), bytes, -1); !shown)
      return {hipErrorHostMemoryAlreadyRegistered, shown.message()};
    std::lock_guard<std::mutex> lock(knownMutex);
    known()[address(memory)] = {hipMemoryTypeHost, currentDevice(), bytes,
                                flags, true};
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipHostUnregister(void *memory) {
  return enter("hipHostUnregister", [&]() -> Result {
    for (auto &state : Runtime::get().devices())
      drain(*state);
    std::lock_guard<std::mutex> lock(knownMutex);
    auto it = known().find(address(memory));
    if (it == known().end() || !it->second.registered)
      return {hipErrorHostMemoryNotRegistered, "nothing is registered there"};
    known().erase(it);
    hideFromDevices(address(memory), -1);
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipHostGetDevicePointer(void **result, void *memory,
                                             unsigned flags) {
  return enter("hipHostGetDevicePointer", [&]() -> Result {
    if (!result || !memory || flags != 0)
      return {hipErrorInvalidValue, "a pointer is null or flags are not 0"};
    if (placeOf(memory).type == hipMemoryTypeUnregistered)
      return {hipErrorInvalidValue, "devices do not see this memory"};
    *result = memory; // device addresses are host addresses
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipHostGetFlags(unsigned *flags, void *memory) {
  return enter("hipHostGetFlags", [&]() -> Result {
    const Place place = placeOf(memory);
    if (!flags || place.type != hipMemoryTypeHost)
      return {hipErrorInvalidValue, "not memory of hipHostMalloc"};
    *flags = place.flags;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipMemGetInfo(size_t *free, size_t *total) {
  return enter("hipMemGetInfo", [&]() -> Result {
    if (!free || !total)
      return {hipErrorInvalidValue, "a result pointer is null"};
    const sim::DeviceMemory &memory = thisDevice().device->memory();
    *total = memory.capacity();
    *free = memory.capacity() - memory.used();
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipMemPtrGetInfo(void *memory, size_t *bytes) {
  return enter("hipMemPtrGetInfo", [&]() -> Result {
    const Place place = placeOf(memory);
    if (!bytes || place.type == hipMemoryTypeUnregistered)
      return {hipErrorInvalidValue, "not memory of this library"};
    *bytes = place.size;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes,
                                           hipDeviceptr_t memory) {
  return enter("hipMemGetAddressRange", [&]() -> Result {
    const Place place = placeOf(memory);
    if (place.type == hipMemoryTypeUnregistered)
      return {hipErrorNotFound, describeAccess(memory, 1)};
    if (base)
      *base = pointer(place.base);
    if (bytes)
      *bytes = place.size;
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes,
                                             const void *memory) {
  return enter("hipPointerGetAttributes", [&]() -> Result {
    if (!attributes || !memory)
      return {hipErrorInvalidValue, "a pointer is null"};
    // Memory nobody knows is no error since HIP 6: its type says so.
    const Place place = placeOf(memory);
    *attributes = {};
    attributes->type = place.type;
    attributes->device = place.device;
    attributes->allocationFlags = place.flags;
    attributes->isManaged = place.type == hipMemoryTypeManaged;
    if (place.type == hipMemoryTypeUnregistered)
      attributes->device = -2; // HIP's "no device"
    else
      attributes->devicePointer = const_cast<void *>(memory);
    if (place.type == hipMemoryTypeHost || place.type == hipMemoryTypeManaged)
      attributes->hostPointer = const_cast<void *>(memory);
    return hipSuccess;
  });
}

// One of them at a time: what launchers ask (Triton's, for every pointer).
HIP_ENTRY hipError_t hipPointerGetAttribute(void *data,
                                            hipPointer_attribute attribute,
                                            hipDeviceptr_t memory) {
  return enter("hipPointerGetAttribute", [&]() -> Result {
    if (!data || !memory)
      return {hipErrorInvalidValue, "a pointer is null"};
    const Place place = placeOf(memory);
    if (place.type == hipMemoryTypeUnregistered)
      return {hipErrorInvalidValue, describeAccess(memory, 1)};
    auto give = [&](auto value) {
      std::memcpy(data, &value, sizeof value);
      return Result(hipSuccess);
    };
    const bool hostSees =
        place.type == hipMemoryTypeHost || place.type == hipMemoryTypeManaged;
    switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(unsigned(place.type));
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give(memory);
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!hostSees)
        return {hipErrorInvalidValue, "device memory has no host pointer"};
      return give(memory);
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
      return give(place.type == hipMemoryTypeManaged);
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(place.device);
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give(place.base);
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give(place.size);
    case HIP_POINTER_ATTRIBUTE_MAPPED:
      return give(true);
    }
    return {hipErrorNotSupported, "attribute " + std::to_string(attribute) +
                                      " of a pointer is not simulated"};
  });
}
