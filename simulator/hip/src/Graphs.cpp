//===- Graphs.cpp - stream capture and graphs -----------------------------===//
//
// Captures kernels, copies, fills and host functions into graphs, and launches
// these. Graphs are made by capture only: the functions that build them node by
// node are not exported.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"
#include "Handles.h"

#include <algorithm>

using namespace fovea;
using namespace fovea::hipsim;

namespace fovea::hipsim {

/// A capture in progress.
struct Capture {
  std::shared_ptr<GraphBody> body = std::make_shared<GraphBody>();
  const Stream *origin = nullptr;
  int mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  uint64_t id = 0;
  std::string broken; ///< why it is invalid; empty: it is not
  /// The streams that take part, and what each knows of all of them.
  std::map<const Stream *, Progress> members;
};

} // namespace fovea::hipsim

namespace {

std::mutex captureMutex; // guards what follows, and every Capture
std::map<const Stream *, std::shared_ptr<Capture>> &captures() {
  static auto *map = new std::map<const Stream *, std::shared_ptr<Capture>>;
  return *map;
}
uint64_t nextCapture = 1;

std::shared_ptr<Capture> captureOf(const Stream &stream) {
  auto it = captures().find(&stream);
  return it == captures().end() ? nullptr : it->second;
}

void endCapture(Capture &capture) {
  for (const auto &[stream, known] : capture.members)
    captures().erase(stream);
}

/// Handles of their own: several may come from one graph.
struct Executable {
  std::shared_ptr<const GraphBody> body;
};

auto &graphs() {
  static auto &handles = Handles<hipGraph_t, GraphBody>::make();
  return handles;
}
auto &executables() {
  static auto &handles = Handles<hipGraphExec_t, Executable>::make();
  return handles;
}

Result findGraph(hipGraph_t handle, std::shared_ptr<GraphBody> &body) {
  body = graphs().find(handle);
  if (!body)
    return {hipErrorInvalidValue, "not a graph, or a destroyed one"};
  return hipSuccess;
}

Result beginCapture(DeviceState &device, Stream &stream, int mode) {
  if (mode < hipStreamCaptureModeGlobal || mode > hipStreamCaptureModeRelaxed)
    return {hipErrorInvalidValue,
            "mode " + std::to_string(mode) + " is not known"};
  if (&stream == device.nullStream.get())
    return {hipErrorStreamCaptureUnsupported,
            "the null stream cannot be captured"};
  std::lock_guard<std::mutex> lock(captureMutex);
  if (captureOf(stream))
    return {hipErrorIllegalState, "the stream is being captured already"};
  auto capture = std::make_shared<Capture>();
  capture->body->device = device.index;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->id = nextCapture++;
  capture->members[&stream] = {};
  captures()[&stream] = std::move(capture);
  return hipSuccess;
}

/// Ends the capture that `stream` began and the calling thread may end.
Result finishCapture(const Stream &stream, std::shared_ptr<Capture> &capture) {
  std::lock_guard<std::mutex> lock(captureMutex);
  capture = captureOf(stream);
  if (!capture)
    return {hipErrorIllegalState, "the stream is not being captured"};
  if (capture->origin != &stream)
    return {hipErrorStreamCaptureUnmatched,
            "the capture began in another stream"};
  if (capture->mode != hipStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return {hipErrorStreamCaptureWrongThread,
            "the capture was begun by another thread"};
  endCapture(*capture);
  return hipSuccess;
}

Result makeGraph(const Stream &stream, hipGraph_t *graph) {
  if (!graph)
    return {hipErrorInvalidValue, "the result pointer is null"};
  *graph = nullptr;
  std::shared_ptr<Capture> capture;
  if (Result ended = finishCapture(stream, capture); !ended.ok())
    return ended;
  if (!capture->broken.empty())
    return {hipErrorStreamCaptureInvalidated, capture->broken};
  Progress &known = capture->members[&stream];
  for (const auto &[member, progress] : capture->members)
    if (auto own = progress.find(member);
        own != progress.end() && known[member] < own->second)
      return {hipErrorStreamCaptureUnjoined,
              "the origin does not wait for the end of another stream "
              "of the capture"};
  *graph = graphs().add(capture->body);
  return hipSuccess;
}

Result instantiate(hipGraphExec_t *result, hipGraph_t graph) {
  if (!result)
    return {hipErrorInvalidValue, "the result pointer is null"};
  std::shared_ptr<GraphBody> body;
  if (Result found = findGraph(graph, body); !found.ok())
    return found;
  *result = executables().add(
      std::make_shared<Executable>(Executable{std::move(body)}));
  return hipSuccess;
}

} // namespace

Result fovea::hipsim::checkCapture(DeviceState &device, Stream &stream,
                                   bool recordable) {
  std::lock_guard<std::mutex> lock(captureMutex);
  if (std::shared_ptr<Capture> capture = captureOf(stream)) {
    if (!capture->broken.empty())
      return {hipErrorStreamCaptureInvalidated, capture->broken};
    if (recordable)
      return hipSuccess;
    capture->broken = "a call that cannot be captured was made";
    return {hipErrorStreamCaptureUnsupported, "the stream is being captured"};
  }
  if (&stream != device.nullStream.get())
    return hipSuccess;
  // The null stream would wait for the captured ones.
  for (auto &[other, capture] : captures())
    if (other->device == device.index &&
        !(other->flags & hipStreamNonBlocking)) {
      capture->broken = "the null stream was used";
      return {hipErrorStreamCaptureImplicit,
              "the null stream would wait for a stream that is being captured"};
    }
  return hipSuccess;
}

Result fovea::hipsim::checkReady(DeviceState &device, Stream &stream,
                                 bool recordable) {
  if (Result ok = checkCapture(device, stream, recordable); !ok.ok())
    return ok;
  return faultOf(device);
}

Result fovea::hipsim::checkCapture(DeviceState &device) {
  std::lock_guard<std::mutex> lock(captureMutex);
  for (auto &[stream, capture] : captures())
    if (stream->device == device.index) {
      capture->broken = "the device was waited for";
      return {hipErrorStreamCaptureUnsupported,
              "a stream of the device is being captured"};
    }
  return hipSuccess;
}

bool fovea::hipsim::recordStep(Stream &stream,
                               const std::function<void()> &work) {
  std::lock_guard<std::mutex> lock(captureMutex);
  std::shared_ptr<Capture> capture = captureOf(stream);
  if (!capture)
    return false;
  if (work) {
    capture->body->steps.push_back(work);
    ++capture->members[&stream][&stream];
  }
  return true;
}

std::optional<CapturedPoint> fovea::hipsim::markCapture(Stream &stream) {
  std::lock_guard<std::mutex> lock(captureMutex);
  std::shared_ptr<Capture> capture = captureOf(stream);
  if (!capture)
    return std::nullopt;
  return CapturedPoint{capture, capture->members[&stream]};
}

Result
fovea::hipsim::waitForCaptured(Stream &stream,
                               const std::optional<CapturedPoint> &point) {
  std::lock_guard<std::mutex> lock(captureMutex);
  std::shared_ptr<Capture> own = captureOf(stream);
  if (!point) {
    if (own)
      return {hipErrorStreamCaptureIsolation,
              "the event was recorded outside of the stream's capture"};
    return hipSuccess;
  }
  auto alive = captures().find(point->capture->origin);
  if (alive == captures().end() || alive->second != point->capture)
    return {hipErrorCapturedEvent, "the event's capture has ended"};
  if (own && own != point->capture)
    return {hipErrorStreamCaptureMerge,
            "the event belongs to another capture than the stream"};
  captures()[&stream] = point->capture;
  Progress &knows = point->capture->members[&stream];
  for (auto [other, steps] : point->known)
    knows[other] = std::max(knows[other], steps);
  return hipSuccess;
}

bool fovea::hipsim::isCaptured(const Stream &stream) {
  std::lock_guard<std::mutex> lock(captureMutex);
  return captureOf(stream) != nullptr;
}

void fovea::hipsim::abandonCapture(Stream &stream) {
  std::lock_guard<std::mutex> lock(captureMutex);
  if (std::shared_ptr<Capture> capture = captureOf(stream))
    endCapture(*capture);
}

HIP_ENTRY hipError_t hipStreamBeginCapture(hipStream_t handle, int mode) {
  return onStream("hipStreamBeginCapture", handle,
                  [&](DeviceState &device, Stream &stream) {
                    return beginCapture(device, stream, mode);
                  });
}

HIP_ENTRY hipError_t hipStreamEndCapture(hipStream_t handle,
                                         hipGraph_t *graph) {
  return onStream(
      "hipStreamEndCapture", handle,
      [&](DeviceState &, Stream &stream) { return makeGraph(stream, graph); });
}

HIP_ENTRY hipError_t hipStreamGetCaptureInfo(hipStream_t handle, int *status,
                                             unsigned long long *id) {
  return onStream(
      "hipStreamGetCaptureInfo", handle,
      [&](DeviceState &, Stream &stream) -> Result {
        if (!status)
          return {hipErrorInvalidValue, "the result pointer is null"};
        std::lock_guard<std::mutex> lock(captureMutex);
        std::shared_ptr<Capture> capture = captureOf(stream);
        *status = !capture                  ? hipStreamCaptureStatusNone
                  : capture->broken.empty() ? hipStreamCaptureStatusActive
                                            : hipStreamCaptureStatusInvalidated;
        if (id && capture)
          *id = capture->id;
        return hipSuccess;
      });
}

HIP_ENTRY hipError_t hipStreamIsCapturing(hipStream_t handle, int *status) {
  return hipStreamGetCaptureInfo(handle, status, nullptr);
}

HIP_ENTRY hipError_t hipGraphGetNodes(hipGraph_t handle, hipGraphNode_t *nodes,
                                      size_t *count) {
  return enter("hipGraphGetNodes", [&]() -> Result {
    std::shared_ptr<GraphBody> body;
    if (Result found = findGraph(handle, body); !found.ok())
      return found;
    if (!count)
      return {hipErrorInvalidValue, "the result pointer is null"};
    const size_t room = nodes ? *count : 0;
    *count = nodes ? std::min(room, body->steps.size()) : body->steps.size();
    for (size_t i = 0; i < *count && nodes; ++i)
      nodes[i] = reinterpret_cast<hipGraphNode_t>(&body->steps[i]);
    return hipSuccess;
  });
}

HIP_ENTRY hipError_t hipGraphDestroy(hipGraph_t graph) {
  return enter("hipGraphDestroy", [&]() -> Result {
    return graphs().take(graph) ? Result(hipSuccess)
                                : Result(hipErrorInvalidValue, "not a graph");
  });
}

HIP_ENTRY hipError_t hipGraphInstantiate(hipGraphExec_t *result,
                                         hipGraph_t graph, hipGraphNode_t *,
                                         char *, size_t) {
  return enter("hipGraphInstantiate",
               [&] { return instantiate(result, graph); });
}

HIP_ENTRY hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *result,
                                                  hipGraph_t graph,
                                                  unsigned long long flags) {
  return enter("hipGraphInstantiateWithFlags", [&]() -> Result {
    constexpr unsigned long long kAutoFreeOnLaunch = 1; // nothing to free
    if (flags & ~kAutoFreeOnLaunch)
      return {hipErrorNotSupported, "flags " + std::to_string(flags)};
    return instantiate(result, graph);
  });
}

HIP_ENTRY hipError_t hipGraphExecDestroy(hipGraphExec_t handle) {
  return enter("hipGraphExecDestroy", [&]() -> Result {
    return executables().take(handle)
               ? Result(hipSuccess)
               : Result(hipErrorInvalidValue, "not an executable graph");
  });
}

HIP_ENTRY hipError_t hipGraphLaunch(hipGraphExec_t handle,
                                    hipStream_t streamHandle) {
  return onStream(
      "hipGraphLaunch", streamHandle,
      [&](DeviceState &device, Stream &stream) -> Result {
        const auto executable = executables().find(handle);
        if (!executable)
          return {hipErrorInvalidValue, "not an executable graph"};
        const std::shared_ptr<const GraphBody> body = executable->body;
        if (body->device != device.index)
          return {hipErrorInvalidValue,
                  "a graph of device " + std::to_string(body->device) +
                      " on a stream of device " + std::to_string(device.index)};
        if (isCaptured(stream))
          return {hipErrorNotSupported, "a graph within a capture"};
        if (Result ok = checkReady(device, stream, true); !ok.ok())
          return ok;
        submit(device, stream, [body, &device] {
          for (const auto &step : body->steps)
            if (device.fault == hipSuccess)
              step();
        });
        return hipSuccess;
      });
}
