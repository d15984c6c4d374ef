//===- Capture.h - streams that record instead of running -------*- C++ -*-===//
//
// While a stream is captured, what is submitted to it becomes a step of a
// graph. An event recorded in a captured stream draws every stream that waits
// for it into the capture. A graph keeps its steps in the order of their
// submission, which respects all dependencies between them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_CAPTURE_H
#define FOVEA_HIPSIM_CAPTURE_H

#include "Runtime.h"

#include <optional>
#include <thread>

namespace fovea::hipsim {

/// What a graph does, on one device.
struct GraphBody {
  int device = 0;
  std::vector<std::function<void()>> steps;
};

struct Capture;

/// How far each captured stream has come, as one of them knows.
using Progress = std::map<const Stream *, size_t>;

/// What an event stands for that was recorded in a captured stream.
struct CapturedPoint {
  std::shared_ptr<Capture> capture;
  Progress known;
};

/// Whether work that may become a step, or (`recordable` false) a call that may
/// not, is allowed on the stream now. A refused call invalidates the captures
/// that it would have to wait for.
Result checkCapture(DeviceState &device, Stream &stream, bool recordable);

/// checkCapture(), and the device's fault if it has one.
Result checkReady(DeviceState &device, Stream &stream, bool recordable);

/// checkCapture() for a call that waits for the whole device.
Result checkCapture(DeviceState &device);

/// Records `work` if the stream is captured; false: it is not.
bool recordStep(Stream &stream, const std::function<void()> &work);

/// The point an event marks, if the stream is captured.
std::optional<CapturedPoint> markCapture(Stream &stream);

/// Makes a stream wait for a captured event, which takes it into the capture.
/// `point` is empty for an event that was recorded outside.
Result waitForCaptured(Stream &stream,
                       const std::optional<CapturedPoint> &point);

bool isCaptured(const Stream &stream);

/// Ends the capture that a stream belongs to, before the stream goes.
void abandonCapture(Stream &stream);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_CAPTURE_H
