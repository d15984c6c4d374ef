//===- Counters.cpp - what kernels executed -------------------------------===//
//
// The counters that the library adds to HIP.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

#include <algorithm>
#include <cstring>

using namespace fovea;
using namespace fovea::hipsim;

int fovea_sim_counters(int index, fovea_sim_counters_t *result) {
  return enter("fovea_sim_counters", [&]() -> Result {
    if (!result || result->struct_size < sizeof(size_t))
      return {hipErrorInvalidValue, "null, or struct_size is not set"};
    DeviceState *device = deviceAt(index);
    if (!device)
      return hipErrorInvalidDevice;
    drain(*device);
    fovea_sim_counters_t all = {};
    {
      using sim::InstClass;
      std::lock_guard<std::mutex> lock(device->countersMutex);
      const sim::Counters &c = device->counters;
      all.launches = device->launches;
      all.instructions = c.instructions;
      all.valu = c[InstClass::Valu];
      all.trans = c[InstClass::Trans];
      all.mfma = c[InstClass::Mfma];
      all.salu = c[InstClass::Salu];
      all.smem = c[InstClass::Smem];
      all.vmem = c[InstClass::Vmem];
      all.lds = c[InstClass::Lds];
      all.branch = c[InstClass::Branch];
      all.sync = c[InstClass::Sync];
      all.other = c[InstClass::Other];
      all.workgroups = c.workgroups;
      all.waves = c.waves;
      all.barriers = c.barriers;
      all.bytes_loaded = c.bytesLoaded;
      all.bytes_stored = c.bytesStored;
      all.seconds = c.seconds;
    }
    all.struct_size = result->struct_size;
    std::memcpy(result, &all, std::min(sizeof(all), result->struct_size));
    return hipSuccess;
  });
}

int fovea_sim_reset_counters(int index) {
  return enter("fovea_sim_reset_counters", [&]() -> Result {
    DeviceState *device = deviceAt(index);
    if (!device)
      return hipErrorInvalidDevice;
    drain(*device);
    std::lock_guard<std::mutex> lock(device->countersMutex);
    device->counters = {};
    device->launches = 0;
    return hipSuccess;
  });
}
