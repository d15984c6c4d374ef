//===- Chips.cpp - processors that code objects name ----------------------===//

#include "fovea/Package/Chips.h"

#include <algorithm>
#include <iterator>

namespace fovea {
namespace {

/// What code may ask for; the columns `xnack` and `sramecc`.
constexpr bool kXnack = true, kSramecc = true, kNone = false;

// A chip of LLVM's that is missing here, or a number or feature that differs
// from its, fails a test.
constexpr Chip kChips[] = {
    {"gfx900", 0x2c, "gfx9-generic", kXnack, kNone},
    {"gfx902", 0x2d, "gfx9-generic", kXnack, kNone},
    {"gfx904", 0x2e, "gfx9-generic", kXnack, kNone},
    {"gfx906", 0x2f, "gfx9-generic", kXnack, kSramecc},
    {"gfx908", 0x30, "", kXnack, kSramecc},
    {"gfx909", 0x31, "gfx9-generic", kXnack, kNone},
    {"gfx90a", 0x3f, "", kXnack, kSramecc},
    {"gfx90c", 0x32, "gfx9-generic", kXnack, kNone},
    {"gfx942", 0x4c, "gfx9-4-generic", kXnack, kSramecc},
    {"gfx950", 0x4f, "gfx9-4-generic", kXnack, kSramecc},
    {"gfx1010", 0x33, "gfx10-1-generic", kXnack, kNone},
    {"gfx1011", 0x34, "gfx10-1-generic", kXnack, kNone},
    {"gfx1012", 0x35, "gfx10-1-generic", kXnack, kNone},
    {"gfx1013", 0x42, "gfx10-1-generic", kXnack, kNone},
    {"gfx1030", 0x36, "gfx10-3-generic", kNone, kNone},
    {"gfx1031", 0x37, "gfx10-3-generic", kNone, kNone},
    {"gfx1032", 0x38, "gfx10-3-generic", kNone, kNone},
    {"gfx1033", 0x39, "gfx10-3-generic", kNone, kNone},
    {"gfx1034", 0x3e, "gfx10-3-generic", kNone, kNone},
    {"gfx1035", 0x3d, "gfx10-3-generic", kNone, kNone},
    {"gfx1036", 0x45, "gfx10-3-generic", kNone, kNone},
    {"gfx1100", 0x41, "gfx11-generic", kNone, kNone},
    {"gfx1101", 0x46, "gfx11-generic", kNone, kNone},
    {"gfx1102", 0x47, "gfx11-generic", kNone, kNone},
    {"gfx1103", 0x44, "gfx11-generic", kNone, kNone},
    {"gfx1150", 0x43, "gfx11-generic", kNone, kNone},
    {"gfx1151", 0x4a, "gfx11-generic", kNone, kNone},
    {"gfx1152", 0x55, "gfx11-generic", kNone, kNone},
    {"gfx1153", 0x58, "gfx11-generic", kNone, kNone},
    {"gfx1200", 0x48, "gfx12-generic", kNone, kNone},
    {"gfx1201", 0x4e, "gfx12-generic", kNone, kNone},
    {"gfx1250", 0x49, "", kXnack, kSramecc},
    {"gfx1251", 0x5a, "", kXnack, kSramecc},
    {"gfx9-generic", 0x51, "", kXnack, kNone},
    {"gfx9-4-generic", 0x5f, "", kXnack, kSramecc},
    {"gfx10-1-generic", 0x52, "", kXnack, kNone},
    {"gfx10-3-generic", 0x53, "", kNone, kNone},
    {"gfx11-generic", 0x54, "", kNone, kNone},
    {"gfx12-generic", 0x59, "", kNone, kNone},
};

} // namespace

bool Chip::isGeneric() const {
  constexpr std::string_view kEnding = "-generic";
  return name.size() > kEnding.size() &&
         name.substr(name.size() - kEnding.size()) == kEnding;
}

ChipTable allChips() { return {std::begin(kChips), std::end(kChips)}; }

const Chip *findChip(std::string_view name) {
  for (const Chip &chip : kChips)
    if (chip.name == name)
      return &chip;
  return nullptr;
}

const Chip *findChip(uint32_t mach) {
  for (const Chip &chip : kChips)
    if (chip.mach == mach)
      return &chip;
  return nullptr;
}

std::string simulatedChipFor(std::string_view target) {
  const size_t end = std::min(target.find(':'), target.size());
  for (const Chip &chip : kChips)
    if (!chip.family.empty() && chip.family == target.substr(0, end))
      return std::string(chip.name).append(target.substr(end));
  return std::string(target);
}

std::string membersOf(std::string_view family) {
  std::string names;
  for (const Chip &chip : kChips)
    if (chip.family == family && !chip.isGeneric())
      names.append(names.empty() ? "" : ", ").append(chip.name);
  return names;
}

bool flushesSubnormals(std::string_view chip, DataType type) {
  return type != DataType::F32 && chip.substr(0, chip.find(':')) == "gfx90a";
}

} // namespace fovea
