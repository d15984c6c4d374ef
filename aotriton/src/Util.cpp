//===- Util.cpp - tensors and devices of the interface --------------------===//

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
  StreamDevice device;
  if (Status bad = device.enter(context, stream))
    return bad;
  const fovea_status_t status =
      fovea_device_info(context, device.device(), &info);
  return status == FOVEA_STATUS_OK ? Status() : failure(context, status);
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

} // namespace

Gpu getGpuFromStream(hipStream_t stream) {
  Gpu gpu = GPU_ARCH_UNKNOWN;
  (void)ask("getGpuFromStream", [&] {
    fovea_device_info_t info;
    Status status = describeDevice(stream, info);
    if (!status)
      if (const uint16_t digits = digitsOf(info.arch))
        gpu = Gpu(TRICAT(kAMD, digits, 0));
    return status;
  });
  return gpu;
}

int getMultiProcessorCount(hipStream_t stream) {
  int count = 0;
  (void)ask("getMultiProcessorCount", [&] {
    fovea_device_info_t info;
    Status status = describeDevice(stream, info);
    if (!status)
      count = info.compute_units;
    return status;
  });
  return count;
}

bool isArchExperimentallySupported(hipStream_t) { return false; }

#if AOTRITON_VERSION_MINOR >= 12
bool isArchTechPreview(hipStream_t) { return false; }
#endif

} // namespace aotriton
