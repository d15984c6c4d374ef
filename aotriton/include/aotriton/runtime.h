//===- runtime.h - the stream that a call works on --------------*- C++ -*-===//

#ifndef FOVEA_AOTRITON_RUNTIME_H
#define FOVEA_AOTRITON_RUNTIME_H

#include <aotriton/config.h>
#include <aotriton/detail/hip.h>

namespace AOTRITON_NS {

/// A device's stream; a native one converts to it. Does not own it.
template <typename DeviceStreamType>
class AOTRITON_API StreamTemplate {
public:
  /// The default stream of the current device.
  StreamTemplate() : handle(nullptr) {}
  StreamTemplate(DeviceStreamType stream) : handle(stream) {}
  DeviceStreamType native() const { return handle; }

private:
  DeviceStreamType handle;
};

using Stream = StreamTemplate<hipStream_t>;

} // namespace AOTRITON_NS

#endif // FOVEA_AOTRITON_RUNTIME_H
