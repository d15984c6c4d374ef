//===- Row.h - One row of the semantics table -------------------*- C++ -*-===//
//
// The table says what each instruction does; this is the form of its rows. A
// row is found by mnemonic (without the encoding suffixes _e32, _e64, _dpp,
// _sdwa); the decoder binds the operands of an instruction as the row's form
// asks, the engine applies modifiers, and the row's function does the rest.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_ISA_ROW_H
#define FOVEA_SIMULATOR_ISA_ROW_H

#include "exec/MicroOp.h"
#include "fovea/Simulator/Launch.h"

#include <cstdint>
#include <string_view>

namespace fovea::sim {

/// Operand types: how many words an operand has and what modifiers mean.
enum class Ty : uint8_t {
  None,
  B32, B64, B96, B128, ///< bits: no modifiers
  W6, W16, W32,        ///< as many words, in vector registers only
  U16, U32, U64,
  I16, I32, I64,
  F16, F32, F64,
  P16,  ///< two 16-bit integers
  PH,   ///< two halves (fp16)
  PF,   ///< two fp32 in a register pair
  Mask, ///< a lane mask: VCC or a scalar register pair
  MixF, ///< fp32, or a half picked by op_sel (v_fma_mix*)
};

constexpr unsigned wordsOf(Ty ty) {
  switch (ty) {
  case Ty::B64: case Ty::U64: case Ty::I64: case Ty::F64: case Ty::PF:
    return 2;
  case Ty::B96: return 3;
  case Ty::B128: return 4;
  case Ty::W6: return 6;
  case Ty::W16: return 16;
  case Ty::W32: return 32;
  default: return 1;
  }
}
constexpr bool isFloat(Ty ty) {
  return ty == Ty::F16 || ty == Ty::F32 || ty == Ty::F64 || ty == Ty::PH ||
         ty == Ty::PF || ty == Ty::MixF;
}

/// How the decoder binds the operands that the disassembler prints.
enum class Form : uint8_t {
  Vector,   ///< d, [sd,] s0...; the engine calls the row's loop
  Compare,  ///< mask, s0, s1
  Custom,   ///< d, s0... as printed; the row's handler does everything
  Convert,  ///< d, s0... as printed; op_sel goes to MicroOp::aux
  Scalar,   ///< d, s0, s1 as printed
  ScalarNoDst, ///< s0, s1 (compares, s_setpc...)
  Branch,   ///< the target is worked out by the decoder
  Nop,      ///< nothing to do functionally
  Smem,     ///< d, base, offset
  Flat,     ///< flat_*, global_*, scratch_*
  Buffer,   ///< buffer_*
  Ds,       ///< ds_*
  Mfma,     ///< d, a, b, c
  Smfmac,   ///< d, a, b, index; d is also the accumulator
  MfmaSmall, ///< d, a, b, c[, scale of a, scale of b]; cbsz, blgp are formats
};

/// How often a SIMD can start an instruction on its vector ALU, or what a
/// matrix instruction leaves to it; timing/Constants.h has the clocks of each
/// chip.
enum class Rate : uint8_t {
  Full,
  Transcendental,
  Quarter, ///< integer multiplies of 32 bits
  Double,  ///< fp64 arithmetic
  Packed,  ///< two fp32
  Swap,    ///< exchanges between two registers of all lanes
  Alone,   ///< a matrix instruction beside which the vector ALU is idle
};

/// Bits of Row::flags.
enum RowFlags : uint32_t {
  kTied = 1 << 0,     ///< the destination is also the last source
  kCarryOut = 1 << 1, ///< writes a lane mask (sd)
  kVccIn = 1 << 2,    ///< reads VCC, not printed, as the last source
  kKeepHigh = 1 << 3, ///< 16-bit result leaves the upper half alone
  kLoad = 1 << 4,
  kStore = 1 << 5,
  kAtomic = 1 << 6,
  kSigned = 1 << 7, ///< sign-extend what is loaded
  kD16 = 1 << 8,    ///< write one half of the register
  kHigh = 1 << 9,   ///< ... the upper one; stores: from the upper half
  kTwo = 1 << 10,   ///< ds_read2 / write2: two places
  kSt64 = 1 << 11,  ///< ... with offsets in units of 64 elements
  kScratch = 1 << 12,
  kGlobal = 1 << 13,
  kRaw = 1 << 14,  ///< flushing modes do not apply
  kDual = 1 << 15, ///< the loop runs once for each word of a pair (PF)
  kNoWriteCheck = 1 << 16,
  kNoAddress = 1 << 17, ///< LDS: the address is M0's
  kBrain = 1 << 18,     ///< 16-bit sources are bf16
  kNearest = 1 << 19,   ///< rounds to nearest even in any mode
  kOwnModifiers =
      1 << 23, ///< the handler reads op_sel, neg_lo and clamp itself
  kValueFirst =
      1 << 24, ///< LDS compare and swap: the value before the comparand
  kQuarterRate = 1 << 25, ///< Rate::Quarter
};

struct Row {
  std::string_view mnemonic;
  InstClass cls = InstClass::Other;
  Form form = Form::Nop;
  Handler handler = nullptr;
  LoopFn loop = nullptr;
  Ty d = Ty::None;
  Ty s[3] = {Ty::None, Ty::None, Ty::None};
  Rate rate = Rate::Full;
  uint32_t flags = 0;
  uint32_t param = 0; ///< memory: bytes an element; WMMA: index into its table
  uint32_t count = 1; ///< memory: elements; matrix: multiply-adds
  /// ChipTraits that a chip has to have; of rows with one name, that with the
  /// most traits counts.
  uint32_t traits = 0;
};

/// What class and types say of an instruction's rate.
constexpr Rate rateOf(InstClass cls, Ty d, Ty a) {
  return cls == InstClass::Trans        ? Rate::Transcendental
         : a == Ty::F64                 ? Rate::Double
         : d == Ty::PF && a == Ty::PF   ? Rate::Packed
                                        : Rate::Full;
}

/// The row of an instruction that makes a value of type \p d from up to three.
inline Row valueRow(std::string_view mnemonic, InstClass cls, Form form,
                    Handler handler, Ty d, Ty a, Ty b = Ty::None,
                    Ty c = Ty::None) {
  Row row;
  row.mnemonic = mnemonic;
  row.cls = cls;
  row.form = form;
  row.handler = handler;
  row.d = d;
  row.s[0] = a;
  row.s[1] = b;
  row.s[2] = c;
  row.rate = rateOf(cls, d, a);
  return row;
}

/// The row of a memory instruction; \p param and \p count: mostly the bytes of
/// an element and their number.
inline Row memoryRow(std::string_view mnemonic, InstClass cls, Form form,
                     Handler handler, uint32_t flags, uint32_t param,
                     uint32_t count) {
  Row row;
  row.mnemonic = mnemonic;
  row.cls = cls;
  row.form = form;
  row.handler = handler;
  row.flags = flags;
  row.param = param;
  row.count = count;
  return row;
}

/// Whether the float modes of MODE can matter to an instruction.
constexpr bool usesFloats(const Row &row) {
  return isFloat(row.d) || isFloat(row.s[0]) || isFloat(row.s[1]) ||
         isFloat(row.s[2]);
}

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_ISA_ROW_H
