//===- Transfers.cpp - copies and fills -----------------------------------===//
//
// Every copy and fill is checked against the allocations it touches when it is
// called, and runs in its stream. A copy with pageable host memory waits for
// its end, as HIP's does, since the program may reuse that memory at once.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"
#include "Memory.h"

#include <cstring>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

enum class Wait { IfPageable, Always };

/// Rows of `width` bytes whose starts are `pitch` bytes apart.
struct Plane {
  size_t width, pitch, rows;
};

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

/// Bytes of a plane: all rows but the last with their pitch.
Result planeBytes(const char *which, const Plane &plane, size_t &bytes) {
  bytes = plane.width;
  if (plane.rows <= 1)
    return hipSuccess;
  if (plane.pitch < plane.width)
    return {hipErrorInvalidPitchValue,
            std::string(which) + ": a pitch of " + std::to_string(plane.pitch) +
                " bytes for rows of " + std::to_string(plane.width)};
  if (plane.pitch > (SIZE_MAX - plane.width) / (plane.rows - 1))
    return {hipErrorInvalidValue, "the size does not fit 64 bits"};
  bytes += plane.pitch * (plane.rows - 1);
  return hipSuccess;
}

Result copyPlane(void *to, const Plane &toPlane, const void *from,
                 const Plane &fromPlane, int kind, hipStream_t handle,
                 Wait wait) {
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
  if (toPlane.width == 0 || toPlane.rows == 0)
    return hipSuccess;
  size_t toBytes, fromBytes;
  if (Result ok = planeBytes("destination", toPlane, toBytes); !ok.ok())
    return ok;
  if (Result ok = planeBytes("source", fromPlane, fromBytes); !ok.ok())
    return ok;
  const Place toWhere = placeOf(to), fromWhere = placeOf(from);
  if (Result ok = checkEnd("destination", to, toBytes, toWhere, toEnd);
      !ok.ok())
    return ok;
  if (Result ok = checkEnd("source", from, fromBytes, fromWhere, fromEnd);
      !ok.ok())
    return ok;
  if (Result ok = checkCapture(*device, *stream, wait != Wait::Always);
      !ok.ok())
    return ok;
  if (device->fault != hipSuccess)
    return faultOf(*device);
  const Point end = submit(*device, *stream, [=] {
    for (size_t row = 0; row < toPlane.rows; ++row) {
      char *out = static_cast<char *>(to) + row * toPlane.pitch;
      const char *in = static_cast<const char *>(from) + row * fromPlane.pitch;
      std::memmove(out, in, toPlane.width);
      noteWrite(out, in, toPlane.width);
    }
  });
  const bool pageable = toWhere.type == hipMemoryTypeUnregistered ||
                        fromWhere.type == hipMemoryTypeUnregistered;
  if (wait == Wait::Always || pageable) {
    end.wait();
    return faultOf(*device);
  }
  return hipSuccess;
}

Result copy(void *to, const void *from, size_t bytes, int kind,
            hipStream_t handle, Wait wait) {
  const Plane row = {bytes, bytes, 1};
  return copyPlane(to, row, from, row, kind, handle, wait);
}

Result copyRows(void *to, size_t toPitch, const void *from, size_t fromPitch,
                size_t width, size_t rows, int kind, hipStream_t stream,
                Wait wait) {
  return copyPlane(to, {width, toPitch, rows}, from, {width, fromPitch, rows},
                   kind, stream, wait);
}

/// Rows of bytes; the elements of the other fills lie without gaps.
Result fillRows(void *to, size_t pitch, int value, size_t width, size_t rows,
                hipStream_t handle, Wait wait) {
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(handle, device, stream); !found.ok())
    return found;
  if (width == 0 || rows == 0)
    return hipSuccess;
  size_t bytes;
  if (Result ok = planeBytes("destination", {width, pitch, rows}, bytes);
      !ok.ok())
    return ok;
  if (Result ok = checkEnd("destination", to, bytes, placeOf(to), End::Device);
      !ok.ok())
    return ok;
  if (Result ok = checkCapture(*device, *stream, wait != Wait::Always);
      !ok.ok())
    return ok;
  if (device->fault != hipSuccess)
    return faultOf(*device);
  const Point end = submit(*device, *stream, [=] {
    for (size_t row = 0; row < rows; ++row) {
      char *out = static_cast<char *>(to) + row * pitch;
      std::memset(out, value, width);
      noteWrite(out, nullptr, width);
    }
  });
  if (wait == Wait::Always) {
    end.wait();
    return faultOf(*device);
  }
  return hipSuccess;
}

/// A copy between devices, in a stream of the calling thread's device. The
/// devices are checked; where the memory lies, the pointers say.
Result copyPeer(void *to, int toDevice, const void *from, int fromDevice,
                size_t bytes, hipStream_t stream, Wait wait) {
  for (int device : {toDevice, fromDevice})
    if (!deviceAt(device))
      return {hipErrorInvalidDevice, "device " + std::to_string(device)};
  return copy(to, from, bytes, hipMemcpyDeviceToDevice, stream, wait);
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
  if (Result ok = checkCapture(*device, *stream, wait != Wait::Always);
      !ok.ok())
    return ok;
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

HIP_ENTRY hipError_t hipMemcpy2D(void *to, size_t toPitch, const void *from,
                                 size_t fromPitch, size_t width, size_t rows,
                                 int kind) {
  return enter("hipMemcpy2D", [&] {
    return copyRows(to, toPitch, from, fromPitch, width, rows, kind, nullptr,
                    Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpy2DAsync(void *to, size_t toPitch,
                                      const void *from, size_t fromPitch,
                                      size_t width, size_t rows, int kind,
                                      hipStream_t stream) {
  return enter("hipMemcpy2DAsync", [&] {
    return copyRows(to, toPitch, from, fromPitch, width, rows, kind, stream,
                    Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemcpyPeer(void *to, int toDevice, const void *from,
                                   int fromDevice, size_t bytes) {
  return enter("hipMemcpyPeer", [&] {
    return copyPeer(to, toDevice, from, fromDevice, bytes, nullptr,
                    Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemcpyPeerAsync(void *to, int toDevice,
                                        const void *from, int fromDevice,
                                        size_t bytes, hipStream_t stream) {
  return enter("hipMemcpyPeerAsync", [&] {
    return copyPeer(to, toDevice, from, fromDevice, bytes, stream,
                    Wait::IfPageable);
  });
}

HIP_ENTRY hipError_t hipMemset2D(void *to, size_t pitch, int value,
                                 size_t width, size_t rows) {
  return enter("hipMemset2D", [&] {
    return fillRows(to, pitch, value, width, rows, nullptr, Wait::Always);
  });
}

HIP_ENTRY hipError_t hipMemset2DAsync(void *to, size_t pitch, int value,
                                      size_t width, size_t rows,
                                      hipStream_t stream) {
  return enter("hipMemset2DAsync", [&] {
    return fillRows(to, pitch, value, width, rows, stream, Wait::IfPageable);
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
