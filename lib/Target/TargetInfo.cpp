//===- TargetInfo.cpp - the table of chips --------------------------------===//
//
// A generation's row holds what its chips have in common; a chip's adds what
// tells it from the others. docs/AddingAChip.md walks through a new one.
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/TargetInfo.h"
#include "fovea/Target/LdsModels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace fovea::target {

// Last word of a raw buffer resource: a 32-bit float format (bits 12 to 18;
// any format that is not 0 will do) and, from gfx10 on, a reserved bit and the
// choice of bounds checks by offset.
static constexpr uint32_t kBufferGfx9 = 0x00027000;
static constexpr uint32_t kBufferGfx10 = 0x31027000;
static constexpr uint32_t kBufferGfx1250 = 0; // formats are gone

static const TargetInfo kCdna1 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"",
    /*chipset=*/"gfx908",
    /*codegenFeatures=*/"",
    /*waveSize=*/64,
    /*ldsBytes=*/65536,
    /*lds=*/&kLdsCdna,
    /*simdsPerCu=*/4,
    RegisterFile::Separate,
    /*registersPerSimdLane=*/512,
    /*maxRegistersPerWave=*/512,
    /*registerGranule=*/4,
    /*maxWavesPerSimd=*/10,
    /*computeUnits=*/0,
    /*xcds=*/1,
    /*columnsBegunBelow=*/0,
    kBufferGfx9,
    kMfmaF32 | kMfmaF16 | kMfmaBf16 | kDot2F32F16 | kBufferAtomicAddF32 |
        kBufferAtomicPkAddF16 | kClampsKeepNaN};

static const TargetInfo kCdna2 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"",
    /*chipset=*/"gfx90a",
    /*codegenFeatures=*/"",
    /*waveSize=*/64,
    /*ldsBytes=*/65536,
    /*lds=*/&kLdsCdna,
    /*simdsPerCu=*/4,
    RegisterFile::Unified,
    /*registersPerSimdLane=*/512,
    /*maxRegistersPerWave=*/512,
    /*registerGranule=*/8,
    /*maxWavesPerSimd=*/8,
    /*computeUnits=*/0,
    /*xcds=*/1,
    /*columnsBegunBelow=*/0,
    kBufferGfx9,
    kMfmaF32 | kMfmaF16 | kMfmaBf16_1k | kMfmaFlushesSubnormals | kDot2F32F16 |
        kBufferAtomicAddF32 | kBufferAtomicPkAddF16 | kClampsKeepNaN};

static const TargetInfo kCdna3 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"gfx9-4-generic",
    /*chipset=*/"gfx942",
    /*codegenFeatures=*/"",
    /*waveSize=*/64,
    /*ldsBytes=*/65536,
    /*lds=*/&kLdsCdna,
    /*simdsPerCu=*/4,
    RegisterFile::Unified,
    /*registersPerSimdLane=*/512,
    /*maxRegistersPerWave=*/512,
    /*registerGranule=*/8,
    /*maxWavesPerSimd=*/8,
    /*computeUnits=*/0,
    /*xcds=*/8,
    /*columnsBegunBelow=*/0,
    kBufferGfx9,
    kMfmaF32 | kMfmaF16 | kMfmaBf16_1k | kMfmaEightPass | kAddU64 |
        kDot2F32F16 | kBufferAtomicAddF32 | kBufferAtomicPkAddF16 |
        kGlobalAtomicPkAddBf16 | kClampsKeepNaN};

static const TargetInfo kCdna4 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"gfx9-4-generic",
    /*chipset=*/"gfx950",
    /*codegenFeatures=*/"",
    /*waveSize=*/64,
    /*ldsBytes=*/163840,
    /*lds=*/&kLdsCdna4,
    /*simdsPerCu=*/4,
    RegisterFile::Unified,
    /*registersPerSimdLane=*/512,
    /*maxRegistersPerWave=*/512,
    /*registerGranule=*/8,
    /*maxWavesPerSimd=*/8,
    /*computeUnits=*/0,
    /*xcds=*/8,
    /*columnsBegunBelow=*/0,
    kBufferGfx9,
    kMfmaF32 | kMfmaF16 | kMfmaBf16_1k | kMfmaEightPass | kMfmaDoubleK |
        kAddU64 | kDot2F32F16 | kCvtPkBf16 | kPermlaneSwap |
        kLdsTransposedRead | kLoadToLds128 | kBufferAtomicAddF32 |
        kBufferAtomicPkAddF16 | kBufferAtomicPkAddBf16 |
        kGlobalAtomicPkAddBf16 | kClampsKeepNaN | kFp8};

// Workgroups run in CU mode: their waves share one compute unit's SIMDs, its
// vector cache and its half of the LDS (docs/Rationale.md, "RDNA").
static const TargetInfo kRdna3 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"gfx11-generic",
    /*chipset=*/"gfx1100",
    /*codegenFeatures=*/"+cumode",
    /*waveSize=*/32,
    /*ldsBytes=*/65536,
    /*lds=*/&kLdsRdna3,
    /*simdsPerCu=*/2,
    RegisterFile::Unified,
    /*registersPerSimdLane=*/1024,
    /*maxRegistersPerWave=*/256,
    /*registerGranule=*/16,
    /*maxWavesPerSimd=*/16,
    /*computeUnits=*/0,
    /*xcds=*/1,
    /*columnsBegunBelow=*/128,
    kBufferGfx10,
    kWmmaRepeated | kLaneProducts | kDot2F32F16 | kPermlaneX16 | kDppRowXmask |
        kDualIssue | kBufferAtomicAddF32 | kClampsKeepNaN | kFewHeadsAtOnce};

// Products that begin at zero take no registers of zeros; references of 64
// columns would take a wave of a SIMD.
static const TargetInfo kRdna4 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"gfx12-generic",
    /*chipset=*/"gfx1200",
    /*codegenFeatures=*/"+cumode,+real-true16",
    /*waveSize=*/32,
    /*ldsBytes=*/65536,
    /*lds=*/&kLdsRdna4,
    /*simdsPerCu=*/2,
    RegisterFile::Unified,
    /*registersPerSimdLane=*/1536,
    /*maxRegistersPerWave=*/256,
    /*registerGranule=*/24,
    /*maxWavesPerSimd=*/16,
    /*computeUnits=*/0,
    /*xcds=*/1,
    /*columnsBegunBelow=*/0,
    kBufferGfx10,
    kWmma | kLaneProducts | kLargeRegisterFile | kDot2F32F16 | kPermlaneX16 |
        kDppRowXmask | kDualIssue | kBufferAtomicAddF32 |
        kBufferAtomicPkAddF16 | kBufferAtomicPkAddBf16 | kMemoryScopes |
        kScalarFloat | kFp8 | kFewHeadsAtOnce};

static const TargetInfo kGfx1250 = {
    /*name=*/"",
    /*product=*/"",
    /*generic=*/"",
    /*chipset=*/"gfx1250",
    /*codegenFeatures=*/"",
    /*waveSize=*/32,
    /*ldsBytes=*/327680,
    /*lds=*/&kLdsGfx1250,
    /*simdsPerCu=*/4,
    RegisterFile::Unified,
    /*registersPerSimdLane=*/1024,
    /*maxRegistersPerWave=*/1024,
    /*registerGranule=*/16,
    /*maxWavesPerSimd=*/16,
    /*computeUnits=*/0,
    /*xcds=*/1,
    /*columnsBegunBelow=*/0,
    kBufferGfx1250,
    kWmmaDoubleK | kPermlaneX16 | kDppRowXmask | kDualIssue | kCvtPkBf16 |
        kBufferAtomicAddF32 | kBufferAtomicPkAddF16 | kBufferAtomicPkAddBf16 |
        kMemoryScopes | kScalarFloat | kFp8};

/// A chip of a generation.
static TargetInfo chip(const TargetInfo &generation, llvm::StringRef name,
                       llvm::StringRef product, int computeUnits) {
  TargetInfo row = generation;
  row.name = name;
  row.product = product;
  row.computeUnits = computeUnits;
  return row;
}

/// A chip that multiplies fp8 of a kind that not all of its family do.
static TargetInfo fp8(TargetInfo row, uint32_t feature) {
  row.features |= feature;
  return row;
}

/// An RDNA 3 chip of the later half of the generation.
static TargetInfo rdna35(TargetInfo row) {
  row.features |= kScalarFloat;
  return row;
}

/// An RDNA chip with the larger of the two register files.
static TargetInfo large(TargetInfo row) {
  row.features |= kLargeRegisterFile;
  row.registersPerSimdLane = 1536;
  row.registerGranule = 24;
  return row;
}

/// A chip that nobody tuned for, with the one that is nearest to it.
static TargetInfo like(llvm::StringRef tuned, TargetInfo row) {
  row.tunedAs = tuned;
  return row;
}

llvm::ArrayRef<TargetInfo> allTargets() {
  static const TargetInfo rows[] = {
      chip(kCdna1, "gfx908", "AMD Instinct MI100", 120),
      chip(kCdna2, "gfx90a", "AMD Instinct MI210, MI250X", 110),
      fp8(chip(kCdna3, "gfx942", "AMD Instinct MI300X", 304), kFp8Fnuz),
      chip(kCdna4, "gfx950", "AMD Instinct MI350X, MI355X", 256),
      large(chip(kRdna3, "gfx1100", "AMD Radeon RX 7900", 96)),
      like("gfx1100", large(chip(kRdna3, "gfx1101", "AMD Radeon RX 7800", 60))),
      chip(kRdna3, "gfx1102", "AMD Radeon RX 7600", 32),
      like("gfx1102", chip(kRdna3, "gfx1103", "AMD Radeon 780M", 12)),
      like("gfx1102", rdna35(chip(kRdna3, "gfx1150", "AMD Radeon 890M", 16))),
      rdna35(large(chip(kRdna3, "gfx1151", "AMD Radeon 8060S", 40))),
      like("gfx1102", rdna35(chip(kRdna3, "gfx1152", "AMD Radeon 860M", 8))),
      like("gfx1102", rdna35(chip(kRdna3, "gfx1153", "AMD Radeon 820M", 2))),
      chip(kRdna4, "gfx1200", "AMD Radeon RX 9060", 32),
      chip(kRdna4, "gfx1201", "AMD Radeon RX 9070", 64),
      chip(kGfx1250, "gfx1250", "AMD gfx1250", 256),
      // Code for all chips of a family has what all of them have.
      chip(kCdna3, "gfx9-4-generic", "gfx942, gfx950", 256),
      chip(kRdna3, "gfx11-generic", "gfx1100 to gfx1103, gfx1150 to gfx1153",
           2),
      chip(kRdna4, "gfx12-generic", "gfx1200, gfx1201", 32),
  };
  return rows;
}

/// The innermost of those that live.
static const ScopedTarget *scopedTargets = nullptr;

ScopedTarget::ScopedTarget(const TargetInfo &target)
    : row(target), outer(scopedTargets) {
  scopedTargets = this;
}

ScopedTarget::~ScopedTarget() { scopedTargets = outer; }

const TargetInfo *lookupTarget(llvm::StringRef name) {
  for (const ScopedTarget *scoped = scopedTargets; scoped;
       scoped = scoped->outer)
    if (scoped->row.name == name)
      return &scoped->row;
  for (const TargetInfo &target : allTargets())
    if (target.name == name)
      return &target;
  return nullptr;
}

std::string targetNames() {
  return llvm::join(
      llvm::map_range(allTargets(),
                      [](const TargetInfo &target) { return target.name; }),
      ", ");
}

int wavesPerSimd(const TargetInfo &target, const KernelUse &use) {
  auto byFile = [&](int registers, int file) {
    int rounded = int(llvm::alignTo(std::max(registers, 1),
                                    uint64_t(target.registerGranule)));
    return file / rounded;
  };
  int byRegisters =
      target.registerFile == RegisterFile::Separate
          ? std::min(byFile(use.vgprs, target.registersPerSimdLane / 2),
                     byFile(use.agprs, target.registersPerSimdLane / 2))
          : byFile(use.vgprs + use.agprs, target.registersPerSimdLane);
  byRegisters = std::min(byRegisters, target.maxWavesPerSimd);
  if (use.ldsBytes == 0)
    return byRegisters;
  int workgroups = target.ldsBytes / use.ldsBytes;
  // Waves of a workgroup spread evenly over the SIMDs of a compute unit.
  int byLds = workgroups * use.waves / target.simdsPerCu;
  return std::max(std::min(byRegisters, byLds), workgroups > 0 ? 1 : 0);
}

int registersPerWave(const TargetInfo &target, int waves) {
  return std::min(target.registersPerSimdLane / std::max(waves, 1) /
                      target.registerGranule * target.registerGranule,
                  target.maxRegistersPerWave);
}

} // namespace fovea::target
