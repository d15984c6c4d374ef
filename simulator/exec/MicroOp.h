//===- MicroOp.h - A decoded instruction ------------------------*- C++ -*-===//
//
// What the decoder makes of one machine instruction and the engine executes:
// a handler, operands with their places worked out, and modifiers. No strings,
// no look-ups.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_MICROOP_H
#define FOVEA_SIMULATOR_EXEC_MICROOP_H

#include <atomic>
#include <cstdint>

namespace fovea::sim {

struct Wave;
struct MicroOp;
struct Row;

/// Executes one instruction for all lanes of a wave. The program counter has
/// been advanced past it.
using Handler = void (*)(Wave &, const MicroOp &);

/// The pure lane function of a vector instruction, over all lanes: `d` (and
/// `d2`, a second result) from up to three sources. Lane l of the k-th word of
/// an operand is p[k * kLaneStride + l].
using LoopFn = void (*)(uint32_t *d, uint32_t *d2, const uint32_t *a,
                        const uint32_t *b, const uint32_t *c, int lanes);

/// Words between consecutive registers of one lane. Waves of 32 lanes leave the
/// upper half unused.
constexpr unsigned kLaneStride = 64;
constexpr unsigned kAgprBase = 256;   ///< register index of a0
constexpr unsigned kVectorRegs = 512;
constexpr unsigned kSpareReg = 512; ///< a vector register of the engine's own
constexpr unsigned kVectorFile = 513;

/// Indices of scalar registers: the hardware's operand encoding on GFX9, but for
/// the null register, which stands behind them so that 64-bit writes to it do
/// no harm.
enum ScalarReg : uint16_t {
  kFlatScratch = 102,
  kXnackMask = 104,
  kVcc = 106,
  kTtmp0 = 108,
  kM0 = 124,
  kExec = 126,
  kNull = 128,
  kScalarRegs = 144,
};

/// Scalar sources that are computed when read.
enum SpecialReg : uint16_t { kSrcVccz, kSrcExecz, kSrcScc };

struct Operand {
  enum Kind : uint8_t {
    None,
    Vgpr,    ///< `reg` is the index of the first of `words` vector registers
    Sgpr,    ///< `reg` is the index of the first of `words` scalar registers
    Const,   ///< `lanes` points at the value, spread over the lanes
    Special, ///< `reg` is a SpecialReg
    Mask,    ///< a lane mask in scalar registers, spread to 0 or 1 a lane
  };
  Kind kind = None;
  uint8_t words = 1;
  bool neg = false, abs = false, sext = false;
  /// Packed sources: which half feeds the low and the high half of the result.
  /// Plain sources of one word: selLo asks for the upper half.
  bool selLo = false, selHi = true;
  bool negLo = false, negHi = false;
  uint8_t sdwa = 6; ///< BYTE_0..3 = 0..3, WORD_0/1 = 4/5, DWORD = 6
  uint16_t reg = 0;
  const uint32_t *lanes = nullptr;

  /// The value of a constant.
  uint64_t value() const {
    return lanes[0] | (words > 1 ? uint64_t(lanes[kLaneStride]) << 32 : 0);
  }
};

/// Bits of MicroOp::flags.
enum OpFlags : uint32_t {
  kModified = 1 << 0,  ///< take the path that applies modifiers
  kClamp = 1 << 1,
  kDpp = 1 << 2,
  kSdwa = 1 << 3,
  kCmpx = 1 << 4,      ///< also write EXEC
  kDstHigh = 1 << 5,   ///< op_sel: write the upper half of the destination
  kReturn = 1 << 6,    ///< atomic that returns the value before it
  kOffen = 1 << 7,
  kIdxen = 1 << 8,
  kLdsDirect = 1 << 9, ///< memory to LDS
  kPreserve = 1 << 10, ///< SDWA dst_unused:UNUSED_PRESERVE
  kDstSext = 1 << 11,  ///< SDWA dst_unused:UNUSED_SEXT
  kBoundCtrl = 1 << 12,
  kGds = 1 << 13,
  kPackedSel = 1 << 14, ///< op_sel differs from the default
  kDstLow = 1 << 15,    ///< write the lower half of the destination alone
  kFetchInactive = 1 << 16, ///< DPP reads lanes that EXEC excludes
};

/// Set in MicroOp::aux for DPP8; eight selectors of three bits follow.
constexpr uint32_t kDpp8 = 1u << 31;

struct MicroOp {
  std::atomic<Handler> fn{nullptr};
  LoopFn loop = nullptr;
  const Row *row = nullptr;
  const MicroOp *halves = nullptr; ///< dual issue: the two instructions
  Operand d, s[4], sd;
  int32_t offset = 0, offset1 = 0; ///< memory: bytes; branches: target dword
  uint32_t aux = 0;                ///< DPP control, hwreg, swizzle pattern...
  uint8_t size = 0;                ///< dwords; 0 while not decoded
  uint8_t cls = 0;                 ///< InstClass, for the counters
  uint8_t omod = 0;                ///< 1: *2, 2: *4, 3: /2
  uint8_t rowMask = 0xf, bankMask = 0xf;
  uint8_t dstSel = 6;
  uint32_t flags = 0;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_MICROOP_H
