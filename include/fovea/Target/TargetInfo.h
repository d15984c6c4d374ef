//===- TargetInfo.h - the table of chips ------------------------*- C++ -*-===//
//
// One row a chip. Passes ask a row what it can do; none names a chip.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_TARGETINFO_H
#define FOVEA_TARGET_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace fovea::target {

/// What a chip can do, as bits of TargetInfo::features. A matrix instruction
/// names the bit that it needs.
enum Feature : uint32_t {
  kMfmaF16 = 1u << 0,     ///< v_mfma_f32_*_f16, K = 8 and 16
  kMfmaBf16_1k = 1u << 1, ///< v_mfma_f32_*_bf16_1k, K = 8 and 16
  kDot2F32F16 = 1u << 2,  ///< v_dot2_f32_f16
};

/// One chip. Source of each figure: AMD's instruction set documents and LLVM's
/// AMDGPU subtarget; products from AMD's data sheets.
struct TargetInfo {
  llvm::StringRef name;    ///< as LLVM's -mcpu spells it
  llvm::StringRef product; ///< what people buy
  int waveSize;            ///< lanes
  int ldsBytes;            ///< a workgroup, and a compute unit, may hold
  int ldsBanks;            ///< of 4 bytes
  int simdsPerCu;
  int registersPerSimdLane; ///< VGPRs and AGPRs of a SIMD that waves share
  int maxRegistersPerWave;  ///< VGPRs and AGPRs of one wave
  int registerGranule;      ///< registers are given out in multiples of this
  int maxWavesPerSimd;
  int computeUnits;
  int xcds;             ///< dies that workgroups are dealt to in turn
  uint32_t bufferFlags; ///< last word of a raw buffer resource
  uint32_t features;

  bool has(uint32_t feature) const { return (features & feature) == feature; }
};

/// All chips that code can be generated for.
llvm::ArrayRef<TargetInfo> allTargets();

/// The row of a chip; null if there is none.
const TargetInfo *lookupTarget(llvm::StringRef name);

/// The chips' names, for messages: "gfx942, ...".
std::string targetNames();

/// Waves of a kernel that fit one SIMD, by registers and LDS.
/// \param registers  VGPRs plus AGPRs of a wave
/// \param ldsBytes   LDS of a workgroup
/// \param waves      waves of a workgroup
int wavesPerSimd(const TargetInfo &target, int registers, int ldsBytes,
                 int waves);

} // namespace fovea::target

#endif // FOVEA_TARGET_TARGETINFO_H
