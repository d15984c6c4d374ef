//===- Device.h - One simulated device --------------------------*- C++ -*-===//
//
// A chip and its memory. Code objects are loaded into a device and launched on
// it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DEVICE_H
#define FOVEA_SIMULATOR_DEVICE_H

#include "fovea/Simulator/Chip.h"
#include "fovea/Simulator/DeviceMemory.h"

#include <memory>
#include <string_view>

namespace fovea::sim {

class Device {
public:
  /// A device of the chip \p target ("gfx942"). Errors: NotFound, with the
  /// known chips; OutOfMemory when no address space can be reserved.
  static Status create(std::string_view target, std::shared_ptr<Device> &result);

  const ChipInfo &chip() const { return Chip; }
  DeviceMemory &memory() { return Memory; }
  const DeviceMemory &memory() const { return Memory; }

private:
  explicit Device(const ChipInfo &chip) : Chip(chip), Memory(chip.memoryBytes) {}
  const ChipInfo &Chip;
  DeviceMemory Memory;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DEVICE_H
