//===- Events.h - events that other calls record ----------------*- C++ -*-===//
//
// Launches may name events to record before and after the kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_EVENTS_H
#define FOVEA_HIPSIM_EVENTS_H

#include "Runtime.h"

namespace fovea::hipsim {

/// hipErrorInvalidHandle unless the event lives.
Result checkEvent(hipEvent_t handle);

/// Records the event behind what the stream has been given so far.
Result recordEvent(hipEvent_t handle, DeviceState &device, Stream &stream);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_EVENTS_H
