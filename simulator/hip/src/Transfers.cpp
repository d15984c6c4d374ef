//===- Transfers.cpp - copies and fills -----------------------------------===//
//
// Every copy and fill is checked against the allocations it touches when it is
// called, and runs in its stream. A copy with pageable host memory waits for
// its end, as HIP's does, since the program may reuse that memory at once.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"
#include "Memory.h"

#include <algorithm>
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

/// Tells the devices' maps of written bytes of a fill (\p from is null) or
/// copy.
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

/// Submits a transfer whose memory is checked, and waits for its end where it
/// must.
template <typename Work>
Result transfer(DeviceState &device, Stream &stream, Wait wait, bool pageable,
                Work work) {
  if (Result ok = checkReady(device, stream, wait != Wait::Always); !ok.ok())
    return ok;
  const Point end = submit(device, stream, std::move(work));
  if (wait != Wait::Always && !pageable)
    return hipSuccess;
  end.wait();
  return faultOf(device);
}

/// What the ends of a copy of hipMemcpyKind `kind` must be.
Result endsOf(int kind, End &to, End &from) {
  to = from = End::Any;
  switch (kind) {
  case hipMemcpyHostToHost:
    to = from = End::Host;
    return hipSuccess;
  case hipMemcpyHostToDevice:
    to = End::Device;
    from = End::Host;
    return hipSuccess;
  case hipMemcpyDeviceToHost:
    to = End::Host;
    from = End::Device;
    return hipSuccess;
  case hipMemcpyDeviceToDevice:
  case hipMemcpyDeviceToDeviceNoCU:
    to = from = End::Device;
    return hipSuccess;
  case hipMemcpyDefault:
    return hipSuccess;
  }
  return {hipErrorInvalidMemcpyDirection,
          "kind " + std::to_string(kind) + " is not known"};
}

Result copyPlane(void *to, const Plane &toPlane, const void *from,
                 const Plane &fromPlane, int kind, hipStream_t handle,
                 Wait wait) {
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(handle, device, stream); !found.ok())
    return found;
  End toEnd, fromEnd;
  if (Result known = endsOf(kind, toEnd, fromEnd); !known.ok())
    return known;
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
  const bool pageable = toWhere.type == hipMemoryTypeUnregistered ||
                        fromWhere.type == hipMemoryTypeUnregistered;
  return transfer(*device, *stream, wait, pageable, [=] {
    for (size_t row = 0; row < toPlane.rows; ++row) {
      char *out = static_cast<char *>(to) + row * toPlane.pitch;
      const char *in = static_cast<const char *>(from) + row * fromPlane.pitch;
      std::memmove(out, in, toPlane.width);
      noteWrite(out, in, toPlane.width);
    }
  });
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

/// Rows of elements, without gaps where there is one row.
template <typename Element>
Result fillPlane(void *to, size_t pitch, Element value, size_t count,
                 size_t rows, hipStream_t handle, Wait wait) {
  DeviceState *device;
  Stream *stream;
  if (Result found = findStream(handle, device, stream); !found.ok())
    return found;
  if (count == 0 || rows == 0)
    return hipSuccess;
  if (count > SIZE_MAX / sizeof(Element))
    return {hipErrorInvalidValue, "the size does not fit 64 bits"};
  const size_t width = count * sizeof(Element);
  size_t bytes;
  if (Result ok = planeBytes("destination", {width, pitch, rows}, bytes);
      !ok.ok())
    return ok;
  if (Result ok = checkEnd("destination", to, bytes, placeOf(to), End::Device);
      !ok.ok())
    return ok;
  if (reinterpret_cast<uint64_t>(to) % sizeof(Element) != 0)
    return {hipErrorInvalidValue, "destination is not a multiple of " +
                                      std::to_string(sizeof(Element))};
  return transfer(*device, *stream, wait, /*pageable=*/false, [=] {
    for (size_t row = 0; row < rows; ++row) {
      char *out = static_cast<char *>(to) + row * pitch;
      std::fill_n(reinterpret_cast<Element *>(out), count, value);
      noteWrite(out, nullptr, width);
    }
  });
}

Result fillRows(void *to, size_t pitch, int value, size_t width, size_t rows,
                hipStream_t stream, Wait wait) {
  return fillPlane(to, pitch, uint8_t(value), width, rows, stream, wait);
}

template <typename Element>
Result fill(void *to, Element value, size_t count, hipStream_t stream,
            Wait wait) {
  return fillPlane(to, /*pitch=*/0, value, count, /*rows=*/1, stream, wait);
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

/// The entry point `name`, which is `function` of `arguments`.
template <typename Function, typename... Arguments>
hipError_t call(const char *name, Function function, Arguments... arguments) {
  return enter(name, [&] { return function(arguments...); });
}

} // namespace

Result fovea::hipsim::copyMemory(void *to, const void *from, size_t bytes,
                                 int kind, hipStream_t stream, bool wait) {
  return copy(to, from, bytes, kind, stream,
              wait ? Wait::Always : Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpy(void *to, const void *from, size_t bytes,
                               int kind) {
  return call("hipMemcpy", copy, to, from, bytes, kind, nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpyWithStream(void *to, const void *from,
                                         size_t bytes, int kind,
                                         hipStream_t stream) {
  return call("hipMemcpyWithStream", copy, to, from, bytes, kind, stream,
              Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                                    int kind, hipStream_t stream) {
  return call("hipMemcpyAsync", copy, to, from, bytes, kind, stream,
              Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void *from,
                                   size_t bytes) {
  return call("hipMemcpyHtoD", copy, to, from, bytes, hipMemcpyHostToDevice,
              nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from,
                                   size_t bytes) {
  return call("hipMemcpyDtoH", copy, to, from, bytes, hipMemcpyDeviceToHost,
              nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from,
                                   size_t bytes) {
  return call("hipMemcpyDtoD", copy, to, from, bytes, hipMemcpyDeviceToDevice,
              nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from,
                                        size_t bytes, hipStream_t stream) {
  return call("hipMemcpyHtoDAsync", copy, to, from, bytes,
              hipMemcpyHostToDevice, stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from,
                                        size_t bytes, hipStream_t stream) {
  return call("hipMemcpyDtoHAsync", copy, to, from, bytes,
              hipMemcpyDeviceToHost, stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from,
                                        size_t bytes, hipStream_t stream) {
  return call("hipMemcpyDtoDAsync", copy, to, from, bytes,
              hipMemcpyDeviceToDevice, stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpy2D(void *to, size_t toPitch, const void *from,
                                 size_t fromPitch, size_t width, size_t rows,
                                 int kind) {
  return call("hipMemcpy2D", copyRows, to, toPitch, from, fromPitch, width,
              rows, kind, nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpy2DAsync(void *to, size_t toPitch,
                                      const void *from, size_t fromPitch,
                                      size_t width, size_t rows, int kind,
                                      hipStream_t stream) {
  return call("hipMemcpy2DAsync", copyRows, to, toPitch, from, fromPitch, width,
              rows, kind, stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemcpyPeer(void *to, int toDevice, const void *from,
                                   int fromDevice, size_t bytes) {
  return call("hipMemcpyPeer", copyPeer, to, toDevice, from, fromDevice, bytes,
              nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemcpyPeerAsync(void *to, int toDevice,
                                        const void *from, int fromDevice,
                                        size_t bytes, hipStream_t stream) {
  return call("hipMemcpyPeerAsync", copyPeer, to, toDevice, from, fromDevice,
              bytes, stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemset2D(void *to, size_t pitch, int value,
                                 size_t width, size_t rows) {
  return call("hipMemset2D", fillRows, to, pitch, value, width, rows, nullptr,
              Wait::Always);
}

HIP_ENTRY hipError_t hipMemset2DAsync(void *to, size_t pitch, int value,
                                      size_t width, size_t rows,
                                      hipStream_t stream) {
  return call("hipMemset2DAsync", fillRows, to, pitch, value, width, rows,
              stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemset(void *to, int value, size_t bytes) {
  return call("hipMemset", fill<uint8_t>, to, uint8_t(value), bytes, nullptr,
              Wait::Always);
}

HIP_ENTRY hipError_t hipMemsetAsync(void *to, int value, size_t bytes,
                                    hipStream_t stream) {
  return call("hipMemsetAsync", fill<uint8_t>, to, uint8_t(value), bytes,
              stream, Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value,
                                 size_t count) {
  return call("hipMemsetD8", fill<uint8_t>, to, value, count, nullptr,
              Wait::Always);
}

HIP_ENTRY hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value,
                                      size_t count, hipStream_t stream) {
  return call("hipMemsetD8Async", fill<uint8_t>, to, value, count, stream,
              Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value,
                                  size_t count) {
  return call("hipMemsetD16", fill<uint16_t>, to, value, count, nullptr,
              Wait::Always);
}

HIP_ENTRY hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value,
                                       size_t count, hipStream_t stream) {
  return call("hipMemsetD16Async", fill<uint16_t>, to, value, count, stream,
              Wait::IfPageable);
}

HIP_ENTRY hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return call("hipMemsetD32", fill<uint32_t>, to, uint32_t(value), count,
              nullptr, Wait::Always);
}

HIP_ENTRY hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value,
                                       size_t count, hipStream_t stream) {
  return call("hipMemsetD32Async", fill<uint32_t>, to, uint32_t(value), count,
              stream, Wait::IfPageable);
}
