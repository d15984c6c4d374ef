//===- Chip.cpp - The table of simulated chips ----------------------------===//
//
// One row per chip. Figures are those of AMD's ISA documents and data sheets,
// and of LLVM's AMDGPU usage document where it states them (register files,
// wave slots, features).
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Chip.h"

#include <string>

namespace fovea::sim {

namespace {
constexpr uint64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

std::vector<ChipInfo> makeTable() {
  std::vector<ChipInfo> table;
  ChipInfo mi300x{};
  mi300x.target = "gfx942";
  mi300x.genericTarget = "gfx9-4-generic";
  mi300x.name = "AMD Instinct MI300X (simulated)";
  mi300x.features = ":sramecc+:xnack-";
  mi300x.waveSize = 64;
  mi300x.computeUnits = 304;
  mi300x.simdsPerCU = 4;
  mi300x.maxWavesPerSimd = 8;
  mi300x.maxWorkgroupSize = 1024;
  mi300x.ldsPerWorkgroup = 64 * KiB;
  mi300x.ldsPerCU = 64 * KiB;
  mi300x.vgprsPerSimdLane = 512;
  mi300x.maxVgprs = 256;
  mi300x.sgprsPerWave = 102;
  mi300x.hasAgprs = true;
  mi300x.unifiedRegisters = true;
  mi300x.packedWorkItemIds = true;
  mi300x.architectedFlatScratch = true;
  mi300x.zeroHigh16 = true;
  mi300x.xnack = Feature::Off;
  mi300x.sramecc = Feature::On;
  mi300x.memoryBytes = 192 * GiB;
  mi300x.clockKHz = 2100000;
  mi300x.memoryClockKHz = 1300000;
  mi300x.memoryBusBits = 8192;
  mi300x.l2Bytes = 4 * MiB;
  mi300x.xcds = 8;
  mi300x.source = "CDNA3 ISA document; MI300X data sheet; LLVM AMDGPUUsage";
  table.push_back(mi300x);
  return table;
}
} // namespace

const std::vector<ChipInfo> &knownChips() {
  static const std::vector<ChipInfo> table = makeTable();
  return table;
}

const ChipInfo *findChip(std::string_view target) {
  target = target.substr(0, target.find(':'));
  for (const ChipInfo &chip : knownChips())
    if (chip.target == target)
      return &chip;
  return nullptr;
}

std::string_view chipList() {
  static const std::string list = [] {
    std::string text;
    for (const ChipInfo &chip : knownChips()) {
      if (!text.empty())
        text += ", ";
      text += chip.target;
    }
    return text;
  }();
  return list;
}

} // namespace fovea::sim
