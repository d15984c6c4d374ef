//===- TargetInfo.h - the table of chips ------------------------*- C++ -*-===//
//
// One row a chip. Passes ask a row what it can do; none names a chip.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_TARGETINFO_H
#define FOVEA_TARGET_TARGETINFO_H

#include "fovea/Layout/LdsModel.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace fovea::target {

/// What a chip can do, as bits of TargetInfo::features. A matrix instruction
/// names the bit that it needs.
enum Feature : uint32_t {
  kMfmaF16 = 1u << 0,       ///< v_mfma_f32_*_f16, K = 8 and 16
  kMfmaBf16 = 1u << 1,      ///< v_mfma_f32_*_bf16, K = 4 and 8
  kMfmaBf16_1k = 1u << 2,   ///< v_mfma_f32_*_bf16_1k, K = 8 and 16
  kMfmaDoubleK = 1u << 3,   ///< v_mfma_f32_*, K = 16 and 32
  kWmmaRepeated = 1u << 4,  ///< v_wmma, both halves of a wave hold A and B
  kWmma = 1u << 5,          ///< v_wmma, each half of a wave its part of K
  kWmmaDoubleK = 1u << 6,   ///< the same with K = 32
  kDot2F32F16 = 1u << 7,    ///< v_dot2_f32_f16
  kCvtPkBf16 = 1u << 8,     ///< v_cvt_pk_bf16_f32, to nearest even
  kPermlaneX16 = 1u << 9,   ///< v_permlanex16: rows of 16 lanes trade places
  kPermlaneSwap = 1u << 10, ///< v_permlane16_swap and v_permlane32_swap
  kLdsTransposedRead = 1u << 11, ///< ds_read_b64_tr_b16
  kLoadToLds128 = 1u << 12,      ///< buffer loads of 16 bytes a lane to LDS
  kMfmaEightPass = 1u << 13,     ///< v_mfma_f32_32x32x8 in 8 passes, not 16
  kDppRowXmask = 1u << 14, ///< DPP row_xmask: lanes of a row of 16, by XOR
  kDualIssue = 1u << 15,   ///< v_dual: two simple instructions in one
  kLargeRegisterFile = 1u << 16,  ///< RDNA: 1536 registers a SIMD and lane
  kBufferAtomicAddF32 = 1u << 17, ///< buffer_atomic_add_f32, without a result
  kMemoryScopes =
      1u << 18, ///< memory instructions name the scope that sees them
  kScalarFloat = 1u << 19,           ///< s_add_f32 and others: floats in SGPRs
  kMfmaFlushesSubnormals = 1u << 20, ///< v_mfma takes subnormals for zeros
  kClampsKeepNaN = 1u << 21,         ///< a mode (DX10_CLAMP = 0) passes NaNs on
  kFp8 = 1u << 22,     ///< conversions to and products of OCP's fp8 and bf8
  kFp8Fnuz = 1u << 23, ///< the same of fp8 whose exponents are one less
  // Additions of two 16-bit numbers in memory, without a result.
  kBufferAtomicPkAddF16 = 1u << 24,
  kBufferAtomicPkAddBf16 = 1u << 25,
  kGlobalAtomicPkAddBf16 = 1u << 26, ///< by address, without bounds
  kMfmaF32 = 1u << 27,      ///< v_mfma_f32_*_f32, K = 2 and 4: fp32 products
  kLaneProducts = 1u << 28, ///< of fp32 by v_fma_f32: no matrix instruction's
  kAddU64 = 1u << 29,       ///< v_lshl_add_u64, as fast as an addition of u32
  /// Memory is slow beside the matrix cores: few heads' keys are to be live.
  kFewHeadsAtOnce = 1u << 30,
};

/// How the registers of a SIMD are divided.
enum class RegisterFile {
  Unified,  ///< VGPRs and AGPRs, if any, come from one file
  Separate, ///< half are VGPRs, half AGPRs, whatever a kernel needs
};

/// One chip. Source of each figure: AMD's instruction set documents and LLVM's
/// AMDGPU subtarget; products from AMD's data sheets.
struct TargetInfo {
  llvm::StringRef name;    ///< as LLVM's -mcpu spells it
  llvm::StringRef product; ///< what people buy
  /// LLVM's generic target that also runs here; empty: none. Its own row has
  /// its own name here.
  llvm::StringRef generic;
  /// The chip of this generation by which MLIR's conversions, which know some
  /// chips alone and no generic target, choose instructions.
  llvm::StringRef chipset;
  llvm::StringRef codegenFeatures; ///< LLVM's -mattr
  int waveSize;                    ///< lanes
  int ldsBytes; ///< a workgroup, and a compute unit, may hold
  /// Which lanes LDS serves together; one of LdsModels.h.
  const layout::LdsModel *lds;
  int simdsPerCu;
  RegisterFile registerFile;
  int registersPerSimdLane; ///< VGPRs and AGPRs of a SIMD that waves share
  int maxRegistersPerWave;  ///< VGPRs and AGPRs of one wave
  int registerGranule;      ///< registers are given out in multiples of this
  int maxWavesPerSimd;
  int computeUnits;
  int xcds; ///< dies that workgroups are dealt to in turn
  /// Columns up to which forward kernels begin products of scores at minus
  /// their rows' references, and have registers for these: where sums that
  /// begin at zero take registers of zeros. 0: they begin at zero.
  int columnsBegunBelow;
  uint32_t bufferFlags; ///< last word of a raw buffer resource
  uint32_t features;
  /// The chip whose tuning rows it takes where it has none of its own; empty:
  /// none. As many registers a SIMD, then the same kind of memory, then the
  /// nearest size.
  llvm::StringRef tunedAs = {};

  bool has(uint32_t feature) const { return (features & feature) == feature; }
  /// Whether it adds pairs of bf16, or f16, in memory.
  bool addsPairs(bool bf16) const {
    return bf16 ? has(kBufferAtomicPkAddBf16) || has(kGlobalAtomicPkAddBf16)
                : has(kBufferAtomicPkAddF16);
  }
  /// Whether the row stands for all chips of a family.
  bool isGeneric() const { return name == generic; }
};

/// All chips that code can be generated for.
llvm::ArrayRef<TargetInfo> allTargets();

/// The chip that passes and pipelines take when their options name none.
inline constexpr llvm::StringLiteral kDefaultTarget = "gfx942";

/// The row of a chip; null if there is none.
const TargetInfo *lookupTarget(llvm::StringRef name);

/// Puts a row in place of the table's of the same name, or beside it, for as
/// long as this lives: for tests of what a chip's row decides. lookupTarget()
/// finds it; lists do not. Not while other threads look rows up.
class ScopedTarget {
public:
  explicit ScopedTarget(const TargetInfo &row);
  ~ScopedTarget();
  ScopedTarget(const ScopedTarget &) = delete;
  ScopedTarget &operator=(const ScopedTarget &) = delete;

private:
  friend const TargetInfo *lookupTarget(llvm::StringRef name);
  const TargetInfo row;
  const ScopedTarget *const outer;
};

/// The chips' names, for messages: "gfx942, ...".
std::string targetNames();

/// What one kernel takes of a compute unit.
struct KernelUse {
  int vgprs = 0, agprs = 0; ///< registers of a wave
  int ldsBytes = 0;         ///< of a workgroup
  int waves = 1;            ///< of a workgroup
};

/// Waves of a kernel that fit one SIMD, by registers and LDS.
int wavesPerSimd(const TargetInfo &target, const KernelUse &use);

/// Registers that a wave may take when `waves` share a SIMD: VGPRs and AGPRs
/// together.
int registersPerWave(const TargetInfo &target, int waves);

} // namespace fovea::target

#endif // FOVEA_TARGET_TARGETINFO_H
