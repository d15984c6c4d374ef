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

/// What differs between the RDNA chips.
struct Rdna {
  const char *target, *generic, *name;
  unsigned computeUnits, vgprs; ///< registers of a lane of a SIMD, in waves of 32
  unsigned clockMHz, memoryMHz, busBits;
  uint64_t memoryGiB, l2MiB;
  const char *source;
};
/// vgprs: LLVM's Feature1536VGPRs. The memory clock is the data rate over 16
/// (GDDR6) or 8 (LPDDR5); chips with shared memory report 16 GiB.
constexpr Rdna kRdna[] = {
    {"gfx1100", "gfx11-generic", "AMD Radeon RX 7900 XTX (simulated)", 96, 1536,
     2500, 1249, 384, 24, 6, "RDNA3 ISA document; RX 7900 XTX data sheet"},
    {"gfx1101", "gfx11-generic", "AMD Radeon RX 7800 XT (simulated)", 60, 1536,
     2430, 1219, 256, 16, 4, "RDNA3 ISA document; RX 7800 XT data sheet"},
    {"gfx1102", "gfx11-generic", "AMD Radeon RX 7600 (simulated)", 32, 1024,
     2655, 1124, 128, 8, 2, "RDNA3 ISA document; RX 7600 data sheet"},
    {"gfx1103", "gfx11-generic", "AMD Radeon 780M (simulated)", 12, 1024,
     2700, 937, 128, 16, 2, "RDNA3 ISA document; Ryzen 7 7840U data sheet"},
    {"gfx1150", "gfx11-generic", "AMD Radeon 890M (simulated)", 16, 1024,
     2900, 937, 128, 16, 2, "RDNA3.5 ISA document; Ryzen AI 9 HX 370 data sheet"},
    {"gfx1151", "gfx11-generic", "AMD Radeon 8060S (simulated)", 40, 1536,
     2900, 1000, 256, 16, 2, "RDNA3.5 ISA document; Ryzen AI Max+ 395 data sheet"},
    {"gfx1152", "gfx11-generic", "AMD Radeon 860M (simulated)", 8, 1024,
     3000, 1000, 128, 16, 2, "RDNA3.5 ISA document; Ryzen AI 7 350 data sheet"},
    {"gfx1153", "gfx11-generic", "AMD Radeon gfx1153 (simulated)", 2, 1024,
     2800, 1000, 64, 16, 1, "RDNA3.5 ISA document; size and clocks assumed"},
    {"gfx1200", "gfx12-generic", "AMD Radeon RX 9060 XT (simulated)", 32, 1536,
     3130, 1258, 128, 16, 4, "RDNA4 ISA document; RX 9060 XT data sheet"},
    {"gfx1201", "gfx12-generic", "AMD Radeon RX 9070 XT (simulated)", 64, 1536,
     2970, 1258, 256, 16, 8, "RDNA4 ISA document; RX 9070 XT data sheet"},
};

ChipInfo makeRdna(const Rdna &r) {
  bool gfx12 = std::string_view(r.generic) == "gfx12-generic";
  ChipInfo chip{};
  chip.target = r.target;
  chip.genericTarget = r.generic;
  chip.name = r.name;
  chip.features = "";
  chip.waveSize = 32;
  chip.otherWaveSize = 64;
  chip.computeUnits = r.computeUnits;
  chip.simdsPerCU = 2;
  chip.maxWavesPerSimd = 16;
  chip.maxWorkgroupSize = 1024;
  chip.ldsPerWorkgroup = 64 * KiB;
  chip.ldsPerCU = 64 * KiB;
  chip.ldsKind = gfx12 ? LdsKind::Rdna4 : LdsKind::Rdna3;
  chip.vgprsPerSimdLane = r.vgprs;
  chip.maxVgprs = 256;
  chip.vgprGranule = 8;
  chip.sgprsPerWave = 106;
  chip.packedWorkItemIds = true;
  chip.architectedFlatScratch = true;
  chip.workgroupIdsInTtmp = gfx12;
  chip.modeHasIeee = !gfx12;
  chip.traits = gfx12 ? kTraitOcpFloat8 | kTraitSplitWmma : 0;
  chip.permuteIn32 = !gfx12;
  chip.bufferOobSelect = true;
  chip.unifiedFormats = true;
  // 16-bit operands are printed as the halves that the encoding names, also
  // where LLVM's compiler does not use them as such.
  chip.decoderFeatures = "+real-true16";
  chip.memoryBytes = r.memoryGiB * GiB;
  chip.clockKHz = r.clockMHz * 1000;
  chip.memoryClockKHz = r.memoryMHz * 1000;
  chip.memoryBusBits = r.busBits;
  chip.l2Bytes = r.l2MiB * MiB;
  chip.xcds = 1;
  chip.source = r.source;
  return chip;
}

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
  chip.ldsKind = LdsKind::Cdna;
  chip.vgprsPerSimdLane = 512;
  chip.maxVgprs = 256;
  chip.vgprGranule = 8;
  chip.sgprsPerWave = 102;
  chip.hasAgprs = true;
  chip.unifiedRegisters = true;
  chip.alignedTuples = true;
  chip.packedWorkItemIds = true;
  chip.zeroHigh16 = true;
  chip.modeHasIeee = true;
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
  mi355x.ldsKind = LdsKind::Cdna4;
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
  for (const Rdna &rdna : kRdna)
    table.push_back(makeRdna(rdna));
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
