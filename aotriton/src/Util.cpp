//===- Util.cpp - tensors and devices of the interface --------------------===//

#include "Fallback.h"
#include "Session.h"

#include <aotriton/util.h>
#include <cstdlib>
#include <cstring>

using namespace fovea::shim;

namespace aotriton {

template class TensorView<1>;
template class TensorView<2>;
template class TensorView<3>;
template class TensorView<4>;

namespace {

/// Describes the device of a stream.
Status describeDevice(hipStream_t stream, fovea_device_info_t &info) {
  info = {};
  info.struct_size = sizeof(info);
  fovea_context_t *context = nullptr;
  // Devices can be described without packages.
  if (Status bad = session(context); bad && !context)
    return bad;
  return onDeviceOf(context, stream, [&](int32_t device) {
    const fovea_status_t status = fovea_device_info(context, device, &info);
    return status == FOVEA_STATUS_OK ? Status() : failure(status);
  });
}

/// The number of a gfx name: "gfx90a:xnack-" gives 0x90a; 0 if it is none.
uint16_t digitsOf(const char *arch) {
  constexpr char kPrefix[] = "gfx";
  if (std::strncmp(arch, kPrefix, sizeof(kPrefix) - 1) != 0)
    return 0;
  char *end = nullptr;
  const unsigned long digits =
      std::strtoul(arch + sizeof(kPrefix) - 1, &end, 16);
  return (*end == 0 || *end == ':') && digits <= UINT16_MAX ? uint16_t(digits)
                                                            : 0;
}

/// What AOTriton says of a chip counts where its kernels run: where Fovea has
/// none and another library takes the calls.
template <auto Own>
bool askFallback(hipStream_t stream) {
  if (const auto inner = Fallback<Own>::inner())
    return inner(stream);
  if (fallbackPath().empty() || !Fallback<Own>::function() ||
      !wantsFallback(streamIsServed(stream)))
    return false;
  HandedOn handed;
  return Fallback<Own>::function()(stream);
}

} // namespace

Gpu getGpuFromStream(hipStream_t stream) {
  if (const auto inner = Fallback<&getGpuFromStream>::inner())
    return inner(stream);
  Gpu gpu = GPU_ARCH_UNKNOWN;
  const Status status = attempt([&] {
    fovea_device_info_t info;
    Status bad = describeDevice(stream, info);
    if (!bad)
      if (const uint16_t digits = digitsOf(info.arch))
        gpu = Gpu(TRICAT(kAMD, digits, 0));
    return bad;
  });
  (void)finish("getGpuFromStream", status, CallKind::Asks);
  return gpu;
}

int getMultiProcessorCount(hipStream_t stream) {
  if (const auto inner = Fallback<&getMultiProcessorCount>::inner())
    return inner(stream);
  int count = 0;
  const Status status = attempt([&] {
    fovea_device_info_t info;
    Status bad = describeDevice(stream, info);
    if (!bad)
      count = info.compute_units;
    return bad;
  });
  (void)finish("getMultiProcessorCount", status, CallKind::Asks);
  return count;
}

bool isArchExperimentallySupported(hipStream_t stream) {
  return askFallback<&isArchExperimentallySupported>(stream);
}

#if AOTRITON_VERSION_MINOR >= 12
bool isArchTechPreview(hipStream_t stream) {
  return askFallback<&isArchTechPreview>(stream);
}
#endif

} // namespace aotriton
