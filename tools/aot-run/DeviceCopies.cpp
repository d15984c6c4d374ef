//===- DeviceCopies.cpp - a case's tensors in memory of a device ----------===//

#include "DeviceCopies.h"

namespace fovea::run {

DeviceCopies::~DeviceCopies() {
  for (void *address : addresses)
    (void)hip.free(address);
}

std::string DeviceCopies::answer(HipStatus status) const {
  return status ? std::string(what) + ": " + hip.explain(status) : "";
}

std::string DeviceCopies::open(fovea_context_t *context) {
  std::string error;
  return hip.load(context, error) ? "" : error;
}

std::string DeviceCopies::put(const void *from, size_t bytes, void *&address) {
  address = nullptr;
  if (bytes == 0)
    return "";
  if (HipStatus status = hip.malloc(&address, bytes))
    return answer(status);
  addresses.push_back(address);
  return answer(hip.memcpy(address, from, bytes, HostToDevice));
}

std::string DeviceCopies::putAll(fovea_context_t *context,
                                 const std::vector<Integers> &lists) {
  if (std::string error = open(context); !error.empty())
    return error;
  for (const Integers &list : lists) {
    void *address = nullptr;
    if (std::string error = put(list.values.data(),
                                list.values.size() * sizeof(int32_t), address);
        !error.empty())
      return error;
    *list.address = static_cast<const int32_t *>(address);
  }
  return "";
}

std::string DeviceCopies::read(void *to, const void *address,
                               size_t bytes) const {
  return answer(hip.memcpy(to, address, bytes, DeviceToHost));
}

} // namespace fovea::run
