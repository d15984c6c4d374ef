//===- HipCalls.cpp - the HIP calls a run needs ---------------------------===//
//
// Looks the table up.
//
//===----------------------------------------------------------------------===//

#include "HipCalls.h"

using namespace fovea::run;

bool HipCalls::load(fovea_context_t *context, std::string &error) {
  auto find = [&](auto &pointer, const char *name, bool needed) {
    void *symbol = fovea_hip_symbol(context, name);
    pointer =
        reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(symbol);
    if (!symbol && needed && error.empty())
      error = fovea_last_message();
  };
  find(setDevice, "hipSetDevice", true);
  find(malloc, "hipMalloc", true);
  find(free, "hipFree", true);
  find(memcpy, "hipMemcpy", true);
  find(synchronize, "hipDeviceSynchronize", true);
  find(reset, "hipDeviceReset", true);
  find(eventCreate, "hipEventCreate", true);
  find(eventDestroy, "hipEventDestroy", true);
  find(eventRecord, "hipEventRecord", true);
  find(eventSynchronize, "hipEventSynchronize", true);
  find(eventElapsed, "hipEventElapsedTime", true);
  find(errorName, "hipGetErrorName", true);
  find(lastReport, "fovea_sim_last_report", false);
  find(counters, "fovea_sim_counters", false);
  find(resetCounters, "fovea_sim_reset_counters", false);
  return error.empty();
}

std::string HipCalls::explain(HipStatus status) const {
  std::string text = errorName(status);
  if (lastReport && *lastReport())
    text += std::string("\n") + lastReport();
  return text;
}
