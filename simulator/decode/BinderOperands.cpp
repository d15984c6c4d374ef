//===- BinderOperands.cpp - Operands and modifiers of a MicroOp -----------===//
//
// What the forms of instructions have in common: registers, constants, and the
// modifiers of vector instructions.
//
//===----------------------------------------------------------------------===//
#include "decode/Binder.h"
#include "exec/Wave.h"

#include <cstring>

namespace fovea::sim {

namespace {

uint32_t floatBits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
/// The inline constants that fp16 operands can have are exact in fp16, but for
/// 1 / (2 pi), whose encoding is fixed.
uint32_t halfBits(double x) {
  if (x > 0.159 && x < 0.1593)
    return 0x3118;
  uint32_t f = floatBits(static_cast<float>(x));
  uint32_t sign = (f >> 16) & 0x8000;
  if ((f & 0x7fffffff) == 0)
    return sign;
  int exponent = static_cast<int>((f >> 23) & 0xff) - 127 + 15;
  return sign | static_cast<uint32_t>(exponent) << 10 | ((f >> 13) & 0x3ff);
}

bool is64(Ty ty) {
  return ty == Ty::B64 || ty == Ty::U64 || ty == Ty::I64 || ty == Ty::F64;
}
bool is16(Ty ty) {
  return ty == Ty::F16 || ty == Ty::U16 || ty == Ty::I16 || ty == Ty::PH ||
         ty == Ty::P16;
}

bool sdwaSel(const std::string &word, uint8_t &sel) {
  static const char *const kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                       "WORD_0", "WORD_1", "DWORD"};
  for (uint8_t i = 0; i < 7; ++i)
    if (word == kNames[i]) {
      sel = i;
      return true;
    }
  return false;
}

} // namespace

//===-- Operands ----------------------------------------------------------===//

bool Binder::vector(const ParsedOperand &from, Operand &to) {
  if (from.kind != ParsedOperand::Vgpr && from.kind != ParsedOperand::Agpr)
    return false;
  to.kind = Operand::Vgpr;
  to.reg = static_cast<uint16_t>(
      from.index + (from.kind == ParsedOperand::Agpr ? kAgprBase : 0));
  to.words = static_cast<uint8_t>(from.words);
  return from.index + from.words <= kAgprBase;
}

bool Binder::scalar(const ParsedOperand &from, Operand &to) {
  if (from.kind != ParsedOperand::Sgpr || from.index + from.words > kScalarRegs)
    return false;
  to.kind = Operand::Sgpr;
  to.reg = static_cast<uint16_t>(from.index);
  to.words = static_cast<uint8_t>(from.words);
  return true;
}

bool Binder::source(const ParsedOperand &from, Ty ty, Operand &to) {
  to.words = static_cast<uint8_t>(wordsOf(ty));
  to.neg = from.neg;
  to.abs = from.abs;
  to.sext = from.sext;
  to.selLo = from.half == ParsedOperand::High;
  uint64_t value = 0;
  switch (from.kind) {
  case ParsedOperand::Vgpr:
  case ParsedOperand::Agpr: {
    unsigned words = to.words;
    if (!vector(from, to))
      return false;
    to.words = static_cast<uint8_t>(words);
    return to.reg + words <= kVectorRegs;
  }
  case ParsedOperand::Sgpr:
    if (from.index == kNull) { // reads 0, however wide
      to.kind = Operand::Const;
      to.lanes = program.constant(0);
      return true;
    }
    to.kind = ty == Ty::Mask ? Operand::Mask : Operand::Sgpr;
    to.reg = static_cast<uint16_t>(from.index);
    return from.index + to.words <= kScalarRegs;
  case ParsedOperand::Special: {
    struct Named {
      const char *name;
      uint64_t value;
    };
    static const Named kConstants[] = {
        {"src_shared_base", kSharedBase},
        {"src_shared_limit", kSharedBase | 0xffffffffu},
        {"src_private_base", kPrivateBase},
        {"src_private_limit", kPrivateBase | 0xffffffffu},
        {"src_flat_scratch_base_lo", kPrivateBase & 0xffffffffu},
        {"src_flat_scratch_base_hi", kPrivateBase >> 32}};
    for (const Named &named : kConstants)
      if (from.text == named.name) {
        to.kind = Operand::Const;
        to.words = 2;
        to.lanes = program.constant(named.value);
        return true;
      }
    to.kind = Operand::Special;
    if (from.text == "src_vccz" || from.text == "vccz")
      to.reg = kSrcVccz;
    else if (from.text == "src_execz" || from.text == "execz")
      to.reg = kSrcExecz;
    else if (from.text == "src_scc" || from.text == "scc")
      to.reg = kSrcScc;
    else
      return false;
    return true;
  }
  case ParsedOperand::Int: {
    value = static_cast<uint64_t>(from.integer);
    bool literal = from.text.compare(0, 2, "0x") == 0;
    if (ty == Ty::F64 && literal && value <= 0xffffffff)
      value <<= 32; // a literal is the upper half
    else if (ty == Ty::I64 && literal && value <= 0xffffffff)
      value = static_cast<uint64_t>(
          static_cast<int64_t>(static_cast<int32_t>(value)));
    break;
  }
  case ParsedOperand::Float:
    if (is64(ty)) {
      double real = from.real;
      if (real > 0.159 && real < 0.1593)
        value = 0x3fc45f306dc9c882u;
      else
        std::memcpy(&value, &real, 8);
    } else if ((is16(ty) && !brain) || (ty == Ty::MixF && to.selHi)) {
      value = halfBits(from.real);
    } else {
      value = from.real > 0.159 && from.real < 0.1593
                  ? 0x3e22f983u
                  : floatBits(static_cast<float>(from.real));
      if (is16(ty)) // bf16: the upper half of the fp32 constant
        value >>= 16;
    }
    break;
  default:
    return false;
  }
  if (!is64(ty))
    value &= 0xffffffff;
  if (ty == Ty::PF)
    value |= value << 32;
  to.kind = Operand::Const;
  to.lanes = program.constant(value);
  return true;
}

//===-- Modifiers ---------------------------------------------------------===//

bool Binder::dppModifier(MicroOp &op, const ParsedModifier &m) {
  struct Control {
    const char *key;
    uint32_t kind;
  };
  static const Control kControls[] = {
      {"row_shl", 1},       {"row_shr", 2},    {"row_ror", 3},
      {"wave_shl", 4},      {"wave_rol", 5},   {"wave_shr", 6},
      {"wave_ror", 7},      {"row_mirror", 8}, {"row_half_mirror", 9},
      {"row_newbcast", 12}, {"row_share", 12}, {"row_xmask", 13}};
  uint32_t n = m.values.empty() ? 0 : static_cast<uint32_t>(m.values[0]) & 0xff;
  if (m.key == "quad_perm" && m.values.size() == 4) {
    n = 0;
    for (int i = 0; i < 4; ++i)
      n |= static_cast<uint32_t>(m.values[static_cast<size_t>(i)] & 3)
           << (2 * i);
    op.aux = n;
  } else if (m.key == "dpp8" && m.values.size() == 8) {
    op.aux = kDpp8;
    for (int i = 0; i < 8; ++i)
      op.aux |= static_cast<uint32_t>(m.values[static_cast<size_t>(i)] & 7)
                << (3 * i);
    op.flags |= kBoundCtrl; // lanes without a source read 0
  } else if (m.key == "row_bcast") {
    op.aux = (n == 15 ? 10u : 11u) << 8;
  } else {
    bool found = false;
    for (const Control &c : kControls)
      if (m.key == c.key) {
        op.aux = c.kind << 8 | n;
        found = true;
      }
    if (!found)
      return false;
  }
  op.flags |= kDpp | kModified;
  return true;
}

void Binder::destinationHalf(const ParsedOperand &from, MicroOp &op) {
  if (from.half != ParsedOperand::Whole)
    op.flags |=
        kModified | (from.half == ParsedOperand::High ? kDstHigh : kDstLow);
}

bool Binder::vectorModifiers(MicroOp &op, const ParsedInst &inst) {
  // Where halves are written out, op_sel only repeats them.
  bool halves = false;
  for (const ParsedOperand &o : inst.operands)
    halves |= o.half != ParsedOperand::Whole;
  for (const ParsedModifier &m : inst.modifiers) {
    int64_t first = m.values.empty() ? 0 : m.values[0];
    auto each = [&](bool Operand::*field) {
      for (size_t i = 0; i < m.values.size() && i < 3; ++i)
        op.s[i].*field = m.values[i] != 0;
      op.flags |= kModified;
    };
    if (m.key == "clamp") {
      op.flags |= kClamp | kModified;
    } else if (m.key == "mul" || m.key == "div") {
      op.omod = m.key == "div" ? 3 : first == 2 ? 1 : 2;
      op.flags |= kModified;
    } else if (m.key == "op_sel" && halves) {
      continue;
    } else if (m.key == "op_sel") {
      each(&Operand::selLo);
      bool packed = op.row->s[0] == Ty::PH || op.row->s[0] == Ty::P16 ||
                    op.row->s[0] == Ty::PF || op.row->s[0] == Ty::MixF;
      size_t sources = 0;
      while (sources < 3 && op.row->s[sources] != Ty::None)
        ++sources;
      if (op.row->flags & kTied)
        --sources;
      if (!packed && m.values.size() > sources) {
        // The last bit is the destination's.
        if (sources < 3)
          op.s[sources].selLo = false;
        if (m.values[sources])
          op.flags |= kDstHigh;
      }
    } else if (m.key == "op_sel_hi") {
      each(&Operand::selHi);
    } else if (m.key == "neg_lo") {
      each(&Operand::negLo);
    } else if (m.key == "neg_hi") {
      each(&Operand::negHi);
    } else if (m.key == "row_mask") {
      op.rowMask = static_cast<uint8_t>(first);
    } else if (m.key == "bank_mask") {
      op.bankMask = static_cast<uint8_t>(first);
    } else if (m.key == "bound_ctrl") {
      op.flags |= kBoundCtrl;
    } else if (m.key == "byte_sel") { // GFX12 has no SDWA
      op.s[0].sdwa = static_cast<uint8_t>(first & 3);
      op.flags |= kSdwa | kModified;
    } else if (m.key == "fi") {
      op.flags |= first ? kFetchInactive : 0;
    } else if (m.key == "dst_sel") {
      if (!sdwaSel(m.word, op.dstSel))
        return false;
      op.flags |= kSdwa | kModified;
    } else if (m.key == "dst_unused") {
      if (m.word == "UNUSED_PRESERVE")
        op.flags |= kPreserve;
      else if (m.word == "UNUSED_SEXT")
        op.flags |= kDstSext;
      else if (m.word != "UNUSED_PAD")
        return false;
    } else if (m.key == "src0_sel" || m.key == "src1_sel") {
      if (!sdwaSel(m.word, op.s[m.key == "src1_sel"].sdwa))
        return false;
      op.flags |= kSdwa | kModified;
    } else if (!dppModifier(op, m)) {
      return false;
    }
  }
  for (const Operand &o : op.s)
    if (o.neg || o.abs || o.sext || o.selLo)
      op.flags |= kModified;
  return true;
}

} // namespace fovea::sim
