//===- Transfers.cpp - copies and fills -----------------------------------===//
//
// Every copy and fill is checked against the allocations it touches when it is
// called, and runs in its stream. A copy with pageable host memory waits for
// its end, as HIP's does, since the program may reuse that memory at once.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <cstring>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

enum class Wait { IfPageable, Always };

/// What one end of a copy must be.
enum class End { Any, Host, Device };

Result checkEnd(const char *which, const void *pointer, size_t bytes,
                const Place &place, End wanted) {
  if (!pointer)
    return {hipErrorInvalidValue, std::string(which) + " is null"};
  // Pinned memory may stand for either side: devices see it too.
  if (wanted == End::Device && place.type == hipMemoryTypeUnregistered)
    return {hipErrorInvalidValue,
            std::string(which) +
                " is no device memory: " + describeAccess(pointer, bytes)};
  if (place.type != hipMemoryTypeUnregistered && place.room(pointer) < bytes)
    return {hipErrorInvalidValue,
            std::string(which) + " has room for " +
                std::to_string(place.room(pointer)) + " of " +
                std::to_string(bytes) +
                " bytes: " + describeAccess(pointer, bytes)};
  return hipSuccess;
}

/// Tells the devices' maps of written bytes of a fill (\p from is null) or copy.
void noteWrite(const void *to, const void *from, size_t bytes) {
  for (auto &state : Runtime::get().devices()) {
    sim::WrittenMap &written = state->device->memory().written();
    if (from)
      written.copy(reinterpret_cast<uint64_t>(to),
                   reinterpret_cast<uint64_t>(from), bytes);
    else
      written.write(reinterpret_cast<uint64_t>(to), bytes);
  }
}

Result copy(void *to, const void *from, size_t bytes, int kind,
            hipStream_t handle, Wait wait) {
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(handle, device, stream); !found.ok())
    return found;
  End toEnd = End::Any, fromEnd = End::Any;
  switch (kind) {
  case hipMemcpyHostToHost:
    toEnd = fromEnd = End::Host;
    break;
  case hipMemcpyHostToDevice:
    toEnd = End::Device;
    fromEnd = End::Host;
    break;
  case hipMemcpyDeviceToHost:
    toEnd = End::Host;
    fromEnd = End::Device;
    break;
  case hipMemcpyDeviceToDevice:
  case hipMemcpyDeviceToDeviceNoCU:
    toEnd = fromEnd = End::Device;
    break;
  case hipMemcpyDefault:
    break;
  default:
    return {hipErrorInvalidMemcpyDirection,
            "kind " + std::to_string(kind) + " is not known"};
  }
  if (bytes == 0)
    return hipSuccess;
  const Place toPlace = placeOf(to), fromPlace = placeOf(from);
  if (Result ok = checkEnd("destination", to, bytes, toPlace, toEnd); !ok.ok())
    return ok;
  if (Result ok = checkEnd("source", from, bytes, fromPlace, fromEnd); !ok.ok())
    return ok;
  if (device->fault != hipSuccess)
    return faultOf(*device);
  const Point end =
      submit(*device, *stream, [=] {
        std::memmove(to, from, bytes);
        noteWrite(to, from, bytes);
      });
  const bool pageable = toPlace.type == hipMemoryTypeUnregistered ||
                        fromPlace.type == hipMemoryTypeUnregistered;
  if (wait == Wait::Always || pageable) {
    end.wait();
    return faultOf(*device);
  }
  return hipSuccess;
}

template <typename Element>
Result fill(void *to, Element value, size_t count, hipStream_t handle,
            Wait wait) {
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(handle, device, stream); !found.ok())
    return found;
  if (count == 0)
    return hipSuccess;
  if (count > SIZE_MAX / sizeof(Element))
    return {hipErrorInvalidValue, "the size does not fit 64 bits"};
  const Place place = placeOf(to);
  if (Result ok = checkEnd("destination", to, count * sizeof(Element), place,
                           End::Device);
      !ok.ok())
    return ok;
  if (reinterpret_cast<uint64_t>(to) % sizeof(Element) != 0)
    return {hipErrorInvalidValue, "destination is not a multiple of " +
                                      std::to_string(sizeof(Element))};
  if (device->fault != hipSuccess)
    return faultOf(*device);
  const Point end = submit(*device, *stream, [=] {
    Element *out = static_cast<Element *>(to);
    for (size_t i = 0; i < count; ++i)
      out[i] = value;
    noteWrite(to, nullptr, count * sizeof(Element));
  });
  if (wait == Wait::Always) {
    end.wait();
    return faultOf(*device);
  }
  return hipSuccess;
}

} // namespace

Result fovea::hipsim::copyMemory(void *to, const void *from, size_t bytes,
                                 int kind, hipStream_t stream, bool wait) {
  return copy(to, from, bytes, kind, stream,
              wait ? Wait::Always : Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpy(void *to, const void *from, size_t bytes,
                               int kind) {
  return enter("hipMemcpy", [&] {
    return copy(to, from, bytes, kind, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpyWithStream(void *to, const void *from,
                                         size_t bytes, int kind,
                                         hipStream_t stream) {
  return enter("hipMemcpyWithStream", [&] {
    return copy(to, from, bytes, kind, stream, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                                    int kind, hipStream_t stream) {
  return enter("hipMemcpyAsync", [&] {
    return copy(to, from, bytes, kind, stream, Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from,
                                   size_t bytes) {
  return enter("hipMemcpyHtoD", [&] {
    return copy(to, from, bytes, hipMemcpyHostToDevice, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from,
                                   size_t bytes) {
  return enter("hipMemcpyDtoH", [&] {
    return copy(to, from, bytes, hipMemcpyDeviceToHost, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from,
                                   size_t bytes) {
  return enter("hipMemcpyDtoD", [&] {
    return copy(to, from, bytes, hipMemcpyDeviceToDevice, nullptr,
                Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from,
                                        size_t bytes, hipStream_t stream) {
  return enter("hipMemcpyHtoDAsync", [&] {
    return copy(to, from, bytes, hipMemcpyHostToDevice, stream,
                Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from,
                                        size_t bytes, hipStream_t stream) {
  return enter("hipMemcpyDtoHAsync", [&] {
    return copy(to, from, bytes, hipMemcpyDeviceToHost, stream,
                Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from,
                                        size_t bytes, hipStream_t stream) {
  return enter("hipMemcpyDtoDAsync", [&] {
    return copy(to, from, bytes, hipMemcpyDeviceToDevice, stream,
                Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemset(void *to, int value, size_t bytes) {
  return enter("hipMemset", [&] {
    return fill<uint8_t>(to, uint8_t(value), bytes, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemsetAsync(void *to, int value, size_t bytes,
                                    hipStream_t stream) {
  return enter("hipMemsetAsync", [&] {
    return fill<uint8_t>(to, uint8_t(value), bytes, stream, Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value,
                                 size_t count) {
  return enter("hipMemsetD8", [&] {
    return fill<uint8_t>(to, value, count, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value,
                                      size_t count, hipStream_t stream) {
  return enter("hipMemsetD8Async", [&] {
    return fill<uint8_t>(to, value, count, stream, Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value,
                                  size_t count) {
  return enter("hipMemsetD16", [&] {
    return fill<uint16_t>(to, value, count, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value,
                                       size_t count, hipStream_t stream) {
  return enter("hipMemsetD16Async", [&] {
    return fill<uint16_t>(to, value, count, stream, Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return enter("hipMemsetD32", [&] {
    return fill<uint32_t>(to, uint32_t(value), count, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value,
                                       size_t count, hipStream_t stream) {
  return enter("hipMemsetD32Async", [&] {
    return fill<uint32_t>(to, uint32_t(value), count, stream, Wait::IfPageable);
  });
}
