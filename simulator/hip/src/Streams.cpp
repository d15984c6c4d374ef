//===- Streams.cpp - stream and event handles -----------------------------===//
//
// Handles are checked against the live ones before they are followed. Events
// mark a point of a stream and the time when it was passed. Reset of a device
// is here, since it ends all its streams.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"
#include "Events.h"
#include "Handles.h"
#include "Module.h"

#include <chrono>
#include <cstring>
#include <unordered_set>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

using Clock = std::chrono::steady_clock;

/// What an event stands for since it was last recorded.
struct Mark {
  Point point;
  Clock::time_point time; // written by the stream before the point is reached
  DeviceState *device = nullptr;
  /// When it was recorded in a captured stream: never reached, no time.
  std::optional<CapturedPoint> captured;
};

struct Event {
  unsigned flags = 0;
  std::mutex mutex;
  std::shared_ptr<Mark> mark; // null until recorded
  std::shared_ptr<Mark> current() {
    std::lock_guard<std::mutex> lock(mutex);
    return mark;
  }
};

auto &streams() {
  static auto &handles = Handles<hipStream_t, Stream>::make();
  return handles;
}
auto &events() {
  static auto &handles = Handles<hipEvent_t, Event>::make();
  return handles;
}

/// Takes a stream from its device; its work runs to its end first.
void retire(Stream &stream) {
  DeviceState &device = *deviceAt(stream.device);
  abandonCapture(stream);
  stream.tail().wait();
  std::lock_guard<std::mutex> lock(device.streamsMutex);
  device.streams.erase(&stream);
}

/// The streams that hipStreamPerThread means on this thread.
struct ThreadStreams {
  std::map<int, std::unique_ptr<Stream>> byDevice;
  ~ThreadStreams() {
    for (auto &[index, stream] : byDevice)
      retire(*stream);
  }
};

Stream &streamOfThread(DeviceState &device) {
  thread_local ThreadStreams own;
  std::unique_ptr<Stream> &slot = own.byDevice[device.index];
  if (!slot) {
    slot = std::make_unique<Stream>(device.index, hipStreamDefault, 0);
    std::lock_guard<std::mutex> lock(device.streamsMutex);
    device.streams.insert(slot.get());
  }
  return *slot;
}

Result createStream(hipStream_t *result, unsigned flags, int priority) {
  if (!result)
    return {hipErrorInvalidValue, "the result pointer is null"};
  if (flags != hipStreamDefault && flags != hipStreamNonBlocking)
    return {hipErrorInvalidValue,
            "flags " + std::to_string(flags) +
                " are neither hipStreamDefault nor hipStreamNonBlocking"};
  DeviceState &device = thisDevice();
  auto stream = std::make_shared<Stream>(device.index, flags,
                                         std::max(-1, std::min(1, priority)));
  {
    std::lock_guard<std::mutex> lock(device.streamsMutex);
    device.streams.insert(stream.get());
  }
  *result = streams().add(std::move(stream));
  return hipSuccess;
}

Result findEvent(hipEvent_t handle, std::shared_ptr<Event> &event) {
  event = events().find(handle);
  if (!event)
    return {hipErrorInvalidHandle,
            handle ? "not an event, or a destroyed one" : "the event is null"};
  return hipSuccess;
}

/// For questions about an event that was recorded in a captured stream.
const Result kCaptured = {hipErrorCapturedEvent,
                          "the event was recorded in a captured stream"};

/// For onStream(): a property of the stream for `result`, named `name`.
template <typename Value, typename Get>
auto answer(Value *result, const char *name, Get get) {
  return [=](DeviceState &, Stream &stream) -> Result {
    if (!result)
      return {hipErrorInvalidValue, std::string(name) + " is null"};
    *result = get(stream);
    return hipSuccess;
  };
}

/// Runs `body(event)` for an event handle.
template <typename Body>
hipError_t onEvent(const char *function, hipEvent_t handle, Body body) {
  return enter(function, [&]() -> Result {
    std::shared_ptr<Event> event;
    if (Result found = findEvent(handle, event); !found.ok())
      return found;
    return body(*event);
  });
}

} // namespace

Result fovea::hipsim::findStream(hipStream_t handle, DeviceState *&device,
                                 Stream *&stream) {
  if (handle == nullptr || handle == hipStreamLegacy) {
    device = &thisDevice();
    stream = device->nullStream.get();
    return hipSuccess;
  }
  if (handle == hipStreamPerThread) {
    device = &thisDevice();
    stream = &streamOfThread(*device);
    return hipSuccess;
  }
  const std::shared_ptr<Stream> found = streams().find(handle);
  if (!found)
    return {hipErrorContextIsDestroyed, "not a stream, or a destroyed one"};
  stream = found.get();
  device = deviceAt(stream->device);
  return hipSuccess;
}

HIP_ENTRY hipError_t hipStreamCreate(hipStream_t *stream) {
  return enter("hipStreamCreate",
               [&] { return createStream(stream, hipStreamDefault, 0); });
}

HIP_ENTRY hipError_t hipStreamCreateWithFlags(hipStream_t *stream,
                                              unsigned flags) {
  return enter("hipStreamCreateWithFlags",
               [&] { return createStream(stream, flags, 0); });
}

// A priority is kept and can be asked; streams run side by side whatever it is.
HIP_ENTRY hipError_t hipStreamCreateWithPriority(hipStream_t *stream,
                                                 unsigned flags, int priority) {
  return enter("hipStreamCreateWithPriority",
               [&] { return createStream(stream, flags, priority); });
}

HIP_ENTRY hipError_t hipStreamDestroy(hipStream_t handle) {
  return enter("hipStreamDestroy", [&]() -> Result {
    const std::shared_ptr<Stream> stream = streams().take(handle);
    if (!stream)
      return {handle ? hipErrorContextIsDestroyed : hipErrorInvalidHandle,
              "not a stream that was created, or a destroyed one"};
    retire(*stream);
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipStreamSynchronize(hipStream_t handle) {
  return onStream("hipStreamSynchronize", handle,
                  [](DeviceState &device, Stream &stream) -> Result {
                    if (Result ok = checkCapture(device, stream, false);
                        !ok.ok())
                      return ok;
                    // Through the null stream the blocking ones are awaited
                    // too.
                    submit(device, stream, nullptr).wait();
                    return faultOf(device);
                  });
}

HIP_ENTRY hipError_t hipStreamQuery(hipStream_t handle) {
  return onStream("hipStreamQuery", handle,
                  [](DeviceState &device, Stream &stream) -> Result {
                    if (Result ok = checkReady(device, stream, false); !ok.ok())
                      return ok;
                    return stream.tail().reached() ? hipSuccess
                                                   : hipErrorNotReady;
                  });
}

HIP_ENTRY hipError_t hipStreamGetFlags(hipStream_t handle, unsigned *flags) {
  return onStream("hipStreamGetFlags", handle,
                  answer(flags, "flags",
                         [](const Stream &stream) { return stream.flags; }));
}

HIP_ENTRY hipError_t hipStreamGetPriority(hipStream_t handle, int *priority) {
  return onStream("hipStreamGetPriority", handle,
                  answer(priority, "priority",
                         [](const Stream &stream) { return stream.priority; }));
}

HIP_ENTRY hipError_t hipStreamGetDevice(hipStream_t handle,
                                        hipDevice_t *device) {
  return onStream("hipStreamGetDevice", handle,
                  answer(device, "device",
                         [](const Stream &stream) { return stream.device; }));
}

HIP_ENTRY hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event,
                                        unsigned flags) {
  return onStream("hipStreamWaitEvent", handle,
                  [&](DeviceState &device, Stream &stream) -> Result {
                    if (flags != 0)
                      return {hipErrorInvalidValue, "flags must be 0"};
                    std::shared_ptr<Event> found;
                    if (Result ok = findEvent(event, found); !ok.ok())
                      return ok;
                    // An event never recorded holds nobody up.
                    auto mark = found->current();
                    if (!mark)
                      return hipSuccess;
                    if (Result ok = waitForCaptured(stream, mark->captured);
                        !ok.ok() || mark->captured)
                      return ok;
                    if (Result ok = checkCapture(device, stream, true);
                        !ok.ok())
                      return ok;
                    submit(device, stream, nullptr, {mark->point});
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipStreamAddCallback(hipStream_t handle,
                                          hipStreamCallback_t callback,
                                          void *data, unsigned flags) {
  return onStream(
      "hipStreamAddCallback", handle,
      [&](DeviceState &device, Stream &stream) -> Result {
        if (!callback || flags != 0)
          return {hipErrorInvalidValue, "callback is null or flags are not 0"};
        if (Result ok = checkCapture(device, stream, false); !ok.ok())
          return ok;
        submit(
            device, stream,
            [=, &device] { callback(handle, device.fault.load(), data); }, {},
            /*evenAfterFault=*/true);
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function,
                                       void *data) {
  return onStream("hipLaunchHostFunc", handle,
                  [&](DeviceState &device, Stream &stream) -> Result {
                    if (!function)
                      return {hipErrorInvalidValue, "function is null"};
                    if (Result ok = checkCapture(device, stream, true);
                        !ok.ok())
                      return ok;
                    submit(device, stream, [=] { function(data); });
                    return hipSuccess;
                  });
}

HIP_ENTRY hipError_t hipEventCreateWithFlags(hipEvent_t *result,
                                             unsigned flags) {
  return enter("hipEventCreateWithFlags", [&]() -> Result {
    // Blocking, no timing, interprocess, and the three fences.
    constexpr unsigned kKnown = 0x7u | 0x20000000u | 0x40000000u | 0x80000000u;
    if (!result || (flags & ~kKnown))
      return {hipErrorInvalidValue, "the result is null or a flag unknown"};
    auto event = std::make_shared<Event>();
    event->flags = flags;
    *result = events().add(std::move(event));
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipEventCreate(hipEvent_t *result) {
  return hipEventCreateWithFlags(result, hipEventDefault);
}

HIP_ENTRY hipError_t hipEventDestroy(hipEvent_t handle) {
  return enter("hipEventDestroy", [&]() -> Result {
    if (!events().take(handle))
      return {hipErrorInvalidHandle, "not an event, or a destroyed one"};
    return hipSuccess;
  });
}

Result fovea::hipsim::checkEvent(hipEvent_t handle) {
  std::shared_ptr<Event> event;
  return findEvent(handle, event);
}

Result fovea::hipsim::recordEvent(hipEvent_t handle, DeviceState &device,
                                  Stream &stream) {
  std::shared_ptr<Event> event;
  if (Result found = findEvent(handle, event); !found.ok())
    return found;
  auto mark = std::make_shared<Mark>();
  mark->device = &device;
  mark->captured = markCapture(stream);
  if (mark->captured) {
    std::lock_guard<std::mutex> lock(event->mutex);
    event->mark = std::move(mark);
    return hipSuccess;
  }
  if (Result ok = checkCapture(device, stream, true); !ok.ok())
    return ok;
  mark->point = submit(
      device, stream, [mark] { mark->time = Clock::now(); }, {},
      /*evenAfterFault=*/true);
  std::lock_guard<std::mutex> lock(event->mutex);
  event->mark = std::move(mark);
  return hipSuccess;
}

HIP_ENTRY hipError_t hipEventRecord(hipEvent_t handle, hipStream_t stream) {
  return onStream("hipEventRecord", stream,
                  [&](DeviceState &device, Stream &onto) {
                    return recordEvent(handle, device, onto);
                  });
}

HIP_ENTRY hipError_t hipEventSynchronize(hipEvent_t handle) {
  return onEvent("hipEventSynchronize", handle, [](Event &event) -> Result {
    auto mark = event.current();
    if (!mark)
      return hipSuccess; // never recorded: nothing to wait for
    if (mark->captured)
      return kCaptured;
    mark->point.wait();
    return faultOf(*mark->device);
  });
}

HIP_ENTRY hipError_t hipEventQuery(hipEvent_t handle) {
  return onEvent("hipEventQuery", handle, [](Event &event) -> Result {
    auto mark = event.current();
    if (!mark)
      return hipSuccess;
    if (mark->captured)
      return kCaptured;
    if (!mark->point.reached())
      return hipErrorNotReady;
    return faultOf(*mark->device);
  });
}

HIP_ENTRY hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start,
                                         hipEvent_t stop) {
  return onEvent("hipEventElapsedTime", start, [&](Event &first) -> Result {
    if (!milliseconds)
      return {hipErrorInvalidValue, "the result pointer is null"};
    std::shared_ptr<Event> last;
    if (Result found = findEvent(stop, last); !found.ok())
      return found;
    if ((first.flags | last->flags) & hipEventDisableTiming)
      return {hipErrorInvalidHandle, "an event was created without timing"};
    auto from = first.current(), to = last->current();
    if (!from || !to)
      return {hipErrorInvalidHandle, "an event was never recorded"};
    if (from->captured || to->captured)
      return kCaptured;
    if (!from->point.reached() || !to->point.reached())
      return hipErrorNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipDeviceReset() {
  return enter("hipDeviceReset", [&]() -> Result {
    DeviceState &device = thisDevice();
    drain(device);
    for (const auto &stream : streams().takeIf([&](const Stream &stream) {
           return stream.device == device.index;
         }))
      retire(*stream);
    unloadModulesOf(device.index);
    unloadFatBinariesOf(device.index);
    forgetMemoryOf(device.index);
    device.fault = hipSuccess;
    return hipSuccess;
  });
}
