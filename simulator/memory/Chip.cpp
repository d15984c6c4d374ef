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
  chip.traits = gfx12 ? kTraitOcpFloat8 | kTraitSplitWmma | kTraitAtomicsKeep
                      : kTraitAtomicsFlush;
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

/// What differs between the CDNA chips.
struct Cdna {
  const char *target, *generic, *name;
  /// AGPRs have a file of their own beside the VGPRs' (MI100).
  bool ownAgprFile;
  bool architectedFlatScratch;
  unsigned ldsKiB;
  LdsKind ldsKind;
  uint32_t traits;
  unsigned computeUnits, xcds;
  unsigned clockMHz, memoryMHz, busBits;
  uint64_t memoryGiB, l2MiB;
  const char *source;
};
/// gfx90a: one of the two dies of an MI250X, which is a device of its own.
constexpr Cdna kCdna[] = {
    {"gfx908", "", "AMD Instinct MI100 (simulated)", true, false, 64,
     LdsKind::Cdna, 0, 120, 1, 1502, 1200, 4096, 32, 8,
     "CDNA1 ISA document and white paper; MI100 data sheet; LLVM AMDGPUUsage"},
    {"gfx90a", "", "AMD Instinct MI250X (simulated)", false, false, 64,
     LdsKind::Cdna, kTraitMfmaFlushHalf | kTraitDot2Flush, 110, 1, 1700, 1600,
     4096, 64, 8,
     "CDNA2 ISA document and white paper; MI250X data sheet; LLVM AMDGPUUsage"},
    {"gfx942", "gfx9-4-generic", "AMD Instinct MI300X (simulated)", false, true,
     64, LdsKind::Cdna, kTraitMfmaClamp, 304, 8, 2100, 1300, 8192, 192, 4,
     "CDNA3 ISA document; MI300X data sheet; LLVM AMDGPUUsage"},
    {"gfx950", "gfx9-4-generic", "AMD Instinct MI355X (simulated)", false, true,
     160, LdsKind::Cdna4, kTraitOcpFloat8 | kTraitMfmaClamp, 256, 8, 2400, 2000,
     8192, 288, 4, "CDNA4 ISA document; MI355X data sheet; LLVM AMDGPUUsage"},
};

ChipInfo makeCdna(const Cdna &c) {
  ChipInfo chip{};
  chip.target = c.target;
  chip.genericTarget = c.generic;
  chip.name = c.name;
  chip.features = ":sramecc+:xnack-";
  chip.waveSize = 64;
  chip.computeUnits = c.computeUnits;
  chip.simdsPerCU = 4;
  chip.maxWavesPerSimd = c.ownAgprFile ? 10 : 8;
  chip.maxWorkgroupSize = 1024;
  chip.ldsPerWorkgroup = c.ldsKiB * KiB;
  chip.ldsPerCU = c.ldsKiB * KiB;
  chip.ldsKind = c.ldsKind;
  chip.vgprsPerSimdLane = c.ownAgprFile ? 256 : 512;
  chip.maxVgprs = 256;
  chip.vgprGranule = c.ownAgprFile ? 4 : 8;
  chip.sgprsPerWave = 102;
  chip.hasAgprs = true;
  // What came with the one file of gfx90a.
  chip.unifiedRegisters = !c.ownAgprFile;
  chip.alignedTuples = !c.ownAgprFile;
  chip.packedWorkItemIds = !c.ownAgprFile;
  chip.architectedFlatScratch = c.architectedFlatScratch;
  chip.zeroHigh16 = true;
  chip.modeHasIeee = true;
  chip.traits = c.traits | kTraitWrite2Once;
  chip.xnack = Feature::Off;
  chip.sramecc = Feature::On;
  chip.memoryBytes = c.memoryGiB * GiB;
  chip.clockKHz = c.clockMHz * 1000;
  chip.memoryClockKHz = c.memoryMHz * 1000;
  chip.memoryBusBits = c.busBits;
  chip.l2Bytes = c.l2MiB * MiB;
  chip.xcds = c.xcds;
  chip.source = c.source;
  return chip;
}

std::vector<ChipInfo> makeTable() {
  std::vector<ChipInfo> table;
  for (const Cdna &cdna : kCdna)
    table.push_back(makeCdna(cdna));
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
