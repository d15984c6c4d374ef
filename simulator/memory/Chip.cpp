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

/// What the CDNA chips have in common.
ChipInfo cdna(std::string_view target, std::string_view name) {
  ChipInfo chip{};
  chip.target = target;
  chip.name = name;
  chip.features = ":sramecc+:xnack-";
  chip.waveSize = 64;
  chip.simdsPerCU = 4;
  chip.maxWavesPerSimd = 8;
  chip.maxWorkgroupSize = 1024;
  chip.ldsPerWorkgroup = 64 * KiB;
  chip.ldsPerCU = 64 * KiB;
  chip.vgprsPerSimdLane = 512;
  chip.maxVgprs = 256;
  chip.vgprGranule = 8;
  chip.sgprsPerWave = 102;
  chip.hasAgprs = true;
  chip.unifiedRegisters = true;
  chip.alignedTuples = true;
  chip.packedWorkItemIds = true;
  chip.zeroHigh16 = true;
  chip.xnack = Feature::Off;
  chip.sramecc = Feature::On;
  chip.xcds = 1;
  return chip;
}

void addCdna(std::vector<ChipInfo> &table) {
  ChipInfo mi100 = cdna("gfx908", "AMD Instinct MI100 (simulated)");
  mi100.computeUnits = 120;
  mi100.maxWavesPerSimd = 10;
  mi100.vgprsPerSimdLane = 256; // and as many AGPRs, in a file of their own
  mi100.vgprGranule = 4;
  mi100.unifiedRegisters = false;
  mi100.alignedTuples = false;
  mi100.packedWorkItemIds = false;
  mi100.memoryBytes = 32 * GiB;
  mi100.clockKHz = 1502000;
  mi100.memoryClockKHz = 1200000;
  mi100.memoryBusBits = 4096;
  mi100.l2Bytes = 8 * MiB;
  mi100.source = "CDNA1 ISA document and white paper; MI100 data sheet; LLVM "
                 "AMDGPUUsage";
  table.push_back(mi100);

  ChipInfo mi250x = cdna("gfx90a", "AMD Instinct MI250X (simulated)");
  mi250x.computeUnits = 110; // of one of its two dies, a device of its own
  mi250x.traits = kTraitMfmaFlushHalf;
  mi250x.memoryBytes = 64 * GiB;
  mi250x.clockKHz = 1700000;
  mi250x.memoryClockKHz = 1600000;
  mi250x.memoryBusBits = 4096;
  mi250x.l2Bytes = 8 * MiB;
  mi250x.source = "CDNA2 ISA document and white paper; MI250X data sheet; LLVM "
                  "AMDGPUUsage";
  table.push_back(mi250x);

  ChipInfo mi300x = cdna("gfx942", "AMD Instinct MI300X (simulated)");
  mi300x.genericTarget = "gfx9-4-generic";
  mi300x.computeUnits = 304;
  mi300x.architectedFlatScratch = true;
  mi300x.memoryBytes = 192 * GiB;
  mi300x.clockKHz = 2100000;
  mi300x.memoryClockKHz = 1300000;
  mi300x.memoryBusBits = 8192;
  mi300x.l2Bytes = 4 * MiB;
  mi300x.xcds = 8;
  mi300x.source = "CDNA3 ISA document; MI300X data sheet; LLVM AMDGPUUsage";
  table.push_back(mi300x);

  ChipInfo mi355x = cdna("gfx950", "AMD Instinct MI355X (simulated)");
  mi355x.genericTarget = "gfx9-4-generic";
  mi355x.computeUnits = 256;
  mi355x.ldsPerWorkgroup = 160 * KiB;
  mi355x.ldsPerCU = 160 * KiB;
  mi355x.architectedFlatScratch = true;
  mi355x.traits = kTraitOcpFloat8;
  mi355x.memoryBytes = 288 * GiB;
  mi355x.clockKHz = 2400000;
  mi355x.memoryClockKHz = 2000000;
  mi355x.memoryBusBits = 8192;
  mi355x.l2Bytes = 4 * MiB;
  mi355x.xcds = 8;
  mi355x.source = "CDNA4 ISA document; MI355X data sheet; LLVM AMDGPUUsage";
  table.push_back(mi355x);
}

std::vector<ChipInfo> makeTable() {
  std::vector<ChipInfo> table;
  addCdna(table);
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
