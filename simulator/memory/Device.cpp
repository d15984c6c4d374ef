//===- Device.cpp - One simulated device ----------------------------------===//
//
// Creates devices by the name of their chip.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Device.h"

namespace fovea::sim {

Status Device::create(std::string_view target,
                      std::shared_ptr<Device> &result) {
  const ChipInfo *chip = findChip(target);
  if (!chip)
    return {ErrorCode::NotFound, "no simulated chip '" + std::string(target) +
                                     "'; known chips: " +
                                     std::string(chipList())};
  result.reset(new Device(*chip));
  // A first allocation shows whether address space could be reserved.
  uint64_t probe = 0;
  if (Status status = result->memory().allocate(1, 256, probe); !status) {
    result.reset();
    return status;
  }
  return result->memory().free(probe);
}

} // namespace fovea::sim
