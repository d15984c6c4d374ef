//===- Device.cpp - One simulated device ----------------------------------===//
//
// Creates devices by the name of their chip.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Device.h"
#include "fovea/Simulator/TargetId.h"

#include <tuple>

namespace fovea::sim {

Status Device::create(std::string_view target,
                      std::shared_ptr<Device> &result) {
  TargetId id;
  const bool parsed = parseTargetId(target, id);
  const ChipInfo *chip = parsed ? findChip(id.processor) : nullptr;
  if (!chip)
    return {ErrorCode::NotFound, "no simulated chip '" + std::string(target) +
                                     "'; known chips: " +
                                     std::string(chipList())};
  std::shared_ptr<Device> device(new Device(*chip));
  // In the order of HIP's gcnArchName.
  for (auto [name, asked, has] :
       {std::tuple("sramecc", id.sramecc, &device->Chip.sramecc),
        std::tuple("xnack", id.xnack, &device->Chip.xnack)}) {
    if (asked != TargetId::Setting::Any) {
      if (*has == Feature::Unsupported)
        return {ErrorCode::InvalidArgument, std::string(chip->target) +
                                                " has no " + name + " ('" +
                                                std::string(target) + "')"};
      *has = asked == TargetId::Setting::On ? Feature::On : Feature::Off;
    }
    if (*has != Feature::Unsupported)
      device->Features += std::string(":") + name +
                          (*has == Feature::On ? "+" : "-");
  }
  device->Chip.features = device->Features;
  result = std::move(device);
  // A first allocation shows whether address space could be reserved.
  uint64_t probe = 0;
  if (Status status = result->memory().allocate(1, 256, probe); !status) {
    result.reset();
    return status;
  }
  return result->memory().free(probe);
}

} // namespace fovea::sim
