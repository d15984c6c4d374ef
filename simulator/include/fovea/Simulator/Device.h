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
#include <string>
#include <string_view>

namespace fovea::sim {

class Device {
public:
  /// A device of the chip \p target: "gfx942", or with features that differ
  /// from the chip's usual ones, "gfx942:xnack+". Errors: NotFound, with the
  /// known chips; InvalidArgument for a feature that the chip does not have;
  /// OutOfMemory when no address space can be reserved.
  static Status create(std::string_view target, std::shared_ptr<Device> &result);

  const ChipInfo &chip() const { return Chip; }
  DeviceMemory &memory() { return Memory; }
  const DeviceMemory &memory() const { return Memory; }

private:
  explicit Device(const ChipInfo &chip)
      : Chip(chip), Memory(chip.memoryBytes) {}
  ChipInfo Chip;        ///< the table's row with the features asked for
  std::string Features; ///< what Chip.features points to
  DeviceMemory Memory;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DEVICE_H
