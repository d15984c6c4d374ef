//===- Chip.h - The chips that can be simulated -----------------*- C++ -*-===//
//
// One row per gfx target: everything about a chip that the simulator, or the
// HIP library above it, has to know. A new chip is a new row in lib/Chip.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHIP_H
#define FOVEA_SIMULATOR_CHIP_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::sim {

/// Whether a code object feature (xnack, sramecc) is on, off or absent.
enum class Feature : uint8_t { Unsupported, Off, On };

/// Bits of ChipInfo::traits: what instructions of the same name do differently.
/// A row of the semantics table can be for chips with a trait (Row::traits).
enum ChipTraits : uint32_t {
  kTraitOcpFloat8 = 1 << 0,     ///< fp8 and bf8 are OCP's, not the FNUZ formats
  kTraitMfmaFlushHalf = 1 << 1, ///< MFMA flushes fp16 and bf16 denormals
  kTraitDot2Flush = 1 << 2,     ///< v_dot2_f32_f16 knows no denormals
  kTraitMfmaClamp = 1 << 3,     ///< MFMA heeds MODE.FP16_OVFL
  kTraitAtomicsKeep = 1 << 4,   ///< float atomics on memory keep denormals
  kTraitAtomicsFlush = 1 << 5,  ///< ... minima and swaps go by MODE (RDNA3)
  kTraitWrite2Once = 1 << 6, ///< ds_write2 to one place writes its first data
  kTraitSplitWmma = 1 << 16, ///< WMMA operands are spread over the wave (GFX12)
};

/// How the LDS serves the lanes of a wave (timing/Lds.cpp).
enum class LdsKind : uint8_t { Cdna, Cdna4, Rdna3, Rdna4 };

/// One simulated chip. Sizes are in bytes unless a name says otherwise.
struct ChipInfo {
  std::string_view target;        ///< "gfx942", as LLVM spells it
  std::string_view genericTarget; ///< "gfx9-4-generic", or empty
  std::string_view name;          ///< marketing name, "... (simulated)"
  std::string_view features;      ///< ":sramecc+:xnack-", HIP's gcnArchName tail
  unsigned waveSize;              ///< lanes of a wave as kernels see it by default
  unsigned otherWaveSize;         ///< lanes of waves that kernels may ask for; 0: none
  unsigned computeUnits;
  unsigned simdsPerCU;
  unsigned maxWavesPerSimd;
  unsigned maxWorkgroupSize;      ///< work-items
  uint64_t ldsPerWorkgroup;       ///< most LDS that one workgroup can have
  uint64_t ldsPerCU;
  LdsKind ldsKind;
  unsigned vgprsPerSimdLane;      ///< unified file where `unifiedRegisters`
  unsigned maxVgprs;              ///< of one wave, without AGPRs
  unsigned vgprGranule;           ///< registers by which descriptors count
  unsigned sgprsPerWave;
  bool hasAgprs;
  bool unifiedRegisters;          ///< AGPRs follow the VGPRs in one file
  bool alignedTuples;             ///< register tuples start at even registers
  bool packedWorkItemIds;         ///< v0 = x | y << 10 | z << 20 at wave start
  bool architectedFlatScratch;    ///< scratch base set up by hardware
  bool zeroHigh16;                ///< 16-bit VALU results clear the upper half
  uint32_t traits;                ///< ChipTraits
  bool workgroupIdsInTtmp;        ///< ids in ttmp9 and ttmp7 instead of SGPRs
  bool modeHasIeee;               ///< MODE holds the IEEE and DX10_CLAMP bits
  bool permuteIn32;               ///< ds_(b)permute stay within 32 lanes
  bool unifiedFormats;            ///< buffer formats are one number
  bool bufferOobSelect;           ///< resources choose their own range check
  std::string_view decoderFeatures; ///< for LLVM's disassembler
  Feature xnack;
  Feature sramecc;
  uint64_t memoryBytes;           ///< device memory that hipMemGetInfo reports
  unsigned clockKHz;
  unsigned memoryClockKHz;
  unsigned memoryBusBits;
  uint64_t l2Bytes;
  unsigned xcds;
  std::string_view source;        ///< where the figures can be checked
};

/// All chips, in table order.
const std::vector<ChipInfo> &knownChips();

/// The row of `target` ("gfx942"; a feature tail such as ":xnack-" is
/// ignored), or null. See chipList() for the text of an error message.
const ChipInfo *findChip(std::string_view target);

/// "gfx942, gfx950": the known targets, for error messages.
std::string_view chipList();

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHIP_H
