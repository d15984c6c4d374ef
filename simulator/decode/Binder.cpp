//===- Binder.cpp - From a parsed instruction to a MicroOp ----------------===//
//
// One function for each form of row. Whatever a form does not expect makes the
// instruction "not simulated" rather than wrong.
//
//===----------------------------------------------------------------------===//
#include "decode/Binder.h"
#include "exec/UnifiedFormat.h"
#include "exec/Wave.h"
#include "fovea/Simulator/Chip.h"

#include <cstring>

namespace fovea::sim {

namespace {

bool endsWith(const std::string &text, const char *suffix) {
  size_t n = std::strlen(suffix);
  return text.size() >= n && text.compare(text.size() - n, n, suffix) == 0;
}
bool startsWith(const std::string &text, const char *prefix) {
  return text.compare(0, std::strlen(prefix), prefix) == 0;
}

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

//===-- Operands -----------------------------------------------------------===//

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
  if (from.kind != ParsedOperand::Sgpr ||
      from.index + from.words > kScalarRegs)
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
      to.lanes = Prog.constant(0);
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
        to.lanes = Prog.constant(named.value);
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
    bool literal = startsWith(from.text, "0x");
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
    } else if (is16(ty) || (ty == Ty::MixF && to.selHi)) {
      value = halfBits(from.real);
    } else {
      value = from.real > 0.159 && from.real < 0.1593
                  ? 0x3e22f983u
                  : floatBits(static_cast<float>(from.real));
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
  to.lanes = Prog.constant(value);
  return true;
}

//===-- Modifiers ----------------------------------------------------------===//

bool Binder::dppModifier(MicroOp &op, const ParsedModifier &m) {
  struct Control {
    const char *key;
    uint32_t kind;
  };
  static const Control kControls[] = {
      {"row_shl", 1},      {"row_shr", 2},          {"row_ror", 3},
      {"wave_shl", 4},     {"wave_rol", 5},         {"wave_shr", 6},
      {"wave_ror", 7},     {"row_mirror", 8},       {"row_half_mirror", 9},
      {"row_newbcast", 12}, {"row_share", 12},      {"row_xmask", 13}};
  uint32_t n = m.values.empty() ? 0 : static_cast<uint32_t>(m.values[0]) & 0xff;
  if (m.key == "quad_perm" && m.values.size() == 4) {
    n = 0;
    for (int i = 0; i < 4; ++i)
      n |= static_cast<uint32_t>(m.values[static_cast<size_t>(i)] & 3) << (2 * i);
    op.aux = n;
  } else if (m.key == "dpp8" && m.values.size() == 8) {
    op.aux = kDpp8;
    for (int i = 0; i < 8; ++i)
      op.aux |= static_cast<uint32_t>(m.values[static_cast<size_t>(i)] & 7) << (3 * i);
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
    op.flags |= kModified |
                (from.half == ParsedOperand::High ? kDstHigh : kDstLow);
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

//===-- Forms --------------------------------------------------------------===//

bool Binder::bindVector(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  size_t next = 0;
  auto take = [&]() -> const ParsedOperand * {
    return next < inst.operands.size() ? &inst.operands[next++] : nullptr;
  };
  const ParsedOperand *p = take();
  if (!p || !vector(*p, op.d))
    return false;
  destinationHalf(*p, op);
  op.d.words = static_cast<uint8_t>(wordsOf(row.d));
  if (row.flags & kCarryOut) {
    p = take();
    if (!p || !scalar(*p, op.sd))
      return false;
  }
  // Which half an fp16 operand of v_fma_mix comes from is known before its
  // constant is made.
  const ParsedModifier *selHi = inst.find("op_sel_hi");
  for (size_t i = 0; i < 3 && row.s[i] != Ty::None; ++i) {
    if (row.s[i] == Ty::MixF)
      op.s[i].selHi = selHi && i < selHi->values.size() && selHi->values[i];
    bool tied = (row.flags & kTied) && (i == 2 || row.s[i + 1] == Ty::None);
    if (tied) {
      op.s[i] = op.d;
      op.s[i].words = static_cast<uint8_t>(wordsOf(row.s[i]));
      op.s[i].selLo = op.flags & kDstHigh;
      continue;
    }
    if (row.s[i] == Ty::Mask && next == inst.operands.size()) {
      op.s[i].kind = Operand::Mask; // not printed: VCC
      op.s[i].reg = kVcc;
      continue;
    }
    p = take();
    if (!p || !source(*p, row.s[i], op.s[i]))
      return false;
    if (row.s[i] == Ty::MixF)
      op.flags |= op.s[i].selHi ? kModified : 0;
  }
  if (next != inst.operands.size() || !vectorModifiers(op, inst))
    return false;
  if ((row.flags & (kKeepHigh | kHigh | kDual)))
    op.flags |= kModified;
  if (op.omod && !isFloat(row.d))
    return false;
  // What clamp means on integers is said by rows of their own.
  if ((op.flags & kClamp) && !isFloat(row.d) && !endsWith(std::string(row.mnemonic), "_clamp"))
    return false;
  return true;
}

bool Binder::bindCompare(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  size_t next = 0;
  if (inst.operands.size() == 3) {
    if (!scalar(inst.operands[next++], op.sd))
      return false;
  } else if (inst.operands.size() == 2 && (op.flags & kCmpx)) {
    op.sd.kind = Operand::Sgpr;
    op.sd.reg = kExec;
    op.sd.words = Prog.waveSize() == 32 ? 1 : 2;
  } else {
    return false;
  }
  return source(inst.operands[next], row.s[0], op.s[0]) &&
         source(inst.operands[next + 1], row.s[1], op.s[1]) &&
         vectorModifiers(op, inst) && !(op.flags & kClamp);
}

bool Binder::bindCustom(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  if (inst.operands.empty())
    return false;
  if (!vector(inst.operands[0], op.d) && !scalar(inst.operands[0], op.d))
    return false;
  size_t count = 0;
  while (count < 3 && row.s[count] != Ty::None)
    ++count;
  if (inst.operands.size() != count + 1)
    return false;
  for (size_t i = 0; i < count; ++i)
    if (!source(inst.operands[i + 1], row.s[i], op.s[i]))
      return false;
  // op_sel is for v_pk_mov_b32 alone, which has nothing to say by op_sel_hi.
  bool selects = row.mnemonic == "v_pk_mov_b32";
  destinationHalf(inst.operands[0], op);
  // Swaps of halves write both operands.
  bool swaps = startsWith(std::string(row.mnemonic), "v_permlane") &&
               endsWith(std::string(row.mnemonic), "_swap_b32");
  if (swaps && op.s[0].kind != Operand::Vgpr)
    return false;
  if (swaps)
    op.aux = 0;
  for (const ParsedModifier &m : inst.modifiers) {
    if (swaps && (m.key == "bound_ctrl" || m.key == "fi")) {
      bool on = !m.values.empty() && m.values[0];
      if (m.key == "fi")
        op.aux |= on ? 2 : 0;
      else
        op.flags |= on ? kBoundCtrl : 0;
      continue;
    }
    if (row.flags & kOwnModifiers) {
      bool Operand::*field = m.key == "op_sel"   ? &Operand::selLo
                             : m.key == "neg_lo" ? &Operand::negLo
                                                 : nullptr;
      for (size_t i = 0; field && i < m.values.size() && i < 3; ++i)
        op.s[i].*field = m.values[i] != 0;
      if (m.key == "clamp")
        op.flags |= kClamp;
      else if (!field && m.key != "neg_hi") // means nothing on integers
        return false;
      continue;
    }
    if (!selects || (m.key != "op_sel" && m.key != "op_sel_hi"))
      return false;
    for (size_t i = 0; m.key == "op_sel" && i < m.values.size() && i < 2; ++i)
      op.s[i].selLo = m.values[i] != 0;
  }
  return true;
}

bool Binder::bindConvert(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  size_t count = 0;
  while (count < 3 && row.s[count] != Ty::None)
    ++count;
  if (inst.operands.size() != count + 1 || !vector(inst.operands[0], op.d) ||
      op.d.words != wordsOf(row.d))
    return false;
  for (size_t i = 0; i < count; ++i) {
    if (!source(inst.operands[i + 1], row.s[i], op.s[i]))
      return false;
    // neg and abs are for single fp32 numbers.
    if ((op.s[i].neg || op.s[i].abs) && row.s[i] != Ty::F32)
      return false;
    if (wordsOf(row.s[i]) > 2 && op.s[i].kind != Operand::Vgpr)
      return false;
    if (inst.operands[i + 1].half == ParsedOperand::High)
      op.aux |= 1u << i;
  }
  for (const ParsedModifier &m : inst.modifiers) {
    if (m.key == "bitop3" && !m.values.empty())
      op.offset = static_cast<int32_t>(m.values[0]);
    else if (m.key == "byte_sel" && !m.values.empty()) // GFX12's name for op_sel
      op.aux |= static_cast<uint32_t>(m.values[0] & 3) << (count > 1 ? 2 : 0);
    else if (m.key != "op_sel")
      return false;
    for (size_t i = 0; m.key == "op_sel" && i < m.values.size(); ++i)
      op.aux |= (m.values[i] ? 1u : 0u) << i;
  }
  return true;
}

bool Binder::bindScalar(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  op.aux = Word & 0xffff; // the literal of SOPK and SOPP
  std::vector<const ParsedOperand *> operands;
  for (const ParsedOperand &o : inst.operands)
    if (!(o.kind == ParsedOperand::Text &&
          (startsWith(o.text, "hwreg(") || startsWith(o.text, "gpr_idx(") ||
           startsWith(o.text, "sendmsg("))))
      operands.push_back(&o);
  size_t next = 0;
  if (row.form == Form::Scalar) {
    if (operands.empty() || !scalar(*operands[next++], op.d) ||
        op.d.reg + wordsOf(row.d) > kScalarRegs)
      return false;
  }
  for (size_t i = 0; i < 3 && row.s[i] != Ty::None; ++i)
    if (next >= operands.size() ||
        !source(*operands[next++], row.s[i], op.s[i]))
      return false;
  for (const ParsedModifier &m : inst.modifiers) {
    int64_t first = m.values.empty() ? 0 : m.values[0];
    if (!(row.flags & kOwnModifiers))
      return false;
    if (m.key == "clamp")
      op.flags |= kClamp;
    else if (m.key == "mul" || m.key == "div")
      op.omod = m.key == "div" ? 3 : first == 2 ? 1 : 2;
    else
      return false;
  }
  return next == operands.size();
}

bool Binder::bindBranch(MicroOp &op, const ParsedInst &inst) {
  if (op.row->d != Ty::None &&
      (inst.operands.empty() || !scalar(inst.operands[0], op.d)))
    return false;
  op.offset = static_cast<int32_t>(Index) + 1 +
              static_cast<int16_t>(Word & 0xffff);
  return true;
}

bool Binder::bindSmem(MicroOp &op, const ParsedInst &inst) {
  const auto &o = inst.operands;
  if (o.size() < 2 || !scalar(o[0], op.d) || !scalar(o[1], op.s[0]) ||
      op.d.reg + op.row->count > kScalarRegs)
    return false;
  op.offset = static_cast<int32_t>(inst.number("offset", 0));
  if ((op.row->flags & kAtomic) && inst.find("glc"))
    op.flags |= kReturn;
  if (o.size() > 2) {
    if (o[2].kind == ParsedOperand::Int)
      op.offset += static_cast<int32_t>(o[2].integer);
    else if (!scalar(o[2], op.s[1]))
      return false;
  }
  return true;
}

bool Binder::bindFlat(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  const auto &o = inst.operands;
  bool hasSaddr = row.flags & (kGlobal | kScratch);
  // gfx942 has names of their own for loads to LDS, older chips a modifier.
  bool toLds = inst.mnemonic.find("_load_lds_") != std::string::npos ||
               ((row.flags & kLoad) && inst.find("lds"));
  size_t expected = (toLds ? 1u : 2u) + (hasSaddr ? 1u : 0u);
  size_t next = 0;
  if (inst.find("tfe") || (inst.find("lds") && !toLds))
    return false;
  bool returns = (row.flags & kAtomic) && o.size() == expected + 1;
  if (o.size() != expected + (returns ? 1 : 0))
    return false;
  if (returns)
    op.flags |= kReturn;
  if (toLds)
    op.flags |= kLdsDirect;
  if (returns || ((row.flags & kLoad) && !toLds))
    if (!vector(o[next++], op.d))
      return false;
  const ParsedOperand &address = o[next++];
  if (address.kind != ParsedOperand::Off && !vector(address, op.s[0]))
    return false;
  if ((row.flags & (kStore | kAtomic)) && !vector(o[next++], op.s[1]))
    return false;
  if (hasSaddr) {
    const ParsedOperand &base = o[next++];
    if (base.kind != ParsedOperand::Off && !scalar(base, op.s[2]))
      return false;
  }
  if (!(row.flags & kScratch) && op.s[0].kind != Operand::Vgpr)
    return false;
  op.offset = static_cast<int32_t>(inst.number("offset", 0));
  op.offset1 = op.offset;
  return true;
}

bool Binder::bindBuffer(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  const auto &o = inst.operands;
  bool toLds = inst.find("lds") != nullptr;
  if (o.size() != (toLds ? 3u : 4u))
    return false;
  size_t next = 0;
  if (toLds) {
    op.flags |= kLdsDirect;
    if (!(row.flags & kLoad))
      return false;
  } else {
    const ParsedOperand &data = o[next++];
    if (!vector(data, row.flags & kLoad ? op.d : op.s[1]))
      return false;
    if (row.flags & kAtomic) {
      op.d = op.s[1];
      if (inst.find("sc0") || inst.find("glc"))
        op.flags |= kReturn;
    }
  }
  const ParsedOperand &address = o[next++];
  if (address.kind != ParsedOperand::Off && !vector(address, op.s[0]))
    return false;
  if (!scalar(o[next++], op.s[2]) || op.s[2].words != 4)
    return false;
  if (!source(o[next], Ty::B32, op.s[3]))
    return false;
  if (inst.find("offen"))
    op.flags |= kOffen;
  if (inst.find("idxen"))
    op.flags |= kIdxen;
  if (inst.find("addr64") || inst.find("tfe"))
    return false;
  if ((op.flags & (kOffen | kIdxen)) && op.s[0].kind != Operand::Vgpr)
    return false;
  op.offset = static_cast<int32_t>(inst.number("offset", 0));
  op.offset1 = op.offset;
  op.aux = (Word >> 19) & 0x7f; // tbuffer_*: data and number format
  if (const ParsedModifier *format = inst.find("format");
      format && Prog.Chip.unifiedFormats)
    op.aux = splitFormat(std::string_view(format->word));
  return true;
}

bool Binder::bindDs(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  const auto &o = inst.operands;
  if (inst.find("gds"))
    return false;
  size_t next = 0;
  bool exchange = !(row.flags & (kLoad | kStore | kAtomic));
  bool returns =
      (row.flags & kAtomic) && row.mnemonic.find("_rtn") != std::string_view::npos;
  if (returns)
    op.flags |= kReturn;
  if ((row.flags & kLoad) || exchange || returns)
    if (next >= o.size() || !vector(o[next++], op.d))
      return false;
  for (int i = 0; next < o.size(); ++i)
    if (i >= 3 || !vector(o[next++], op.s[i]))
      return false;
  if (row.flags & kNoAddress) {
    op.offset = static_cast<int32_t>(inst.number("offset", 0));
    return (op.s[0].kind == Operand::Vgpr) == bool(row.flags & kStore);
  }
  if (op.s[0].kind != Operand::Vgpr)
    return false;
  bool needsData = (row.flags & (kStore | kAtomic)) ||
                   (exchange && row.mnemonic != "ds_swizzle_b32");
  if (needsData && op.s[1].kind != Operand::Vgpr)
    return false;
  if ((row.flags & (kStore | kAtomic)) && (row.flags & kTwo) &&
      op.s[2].kind != Operand::Vgpr)
    return false;
  if (row.mnemonic == "ds_swizzle_b32") {
    op.aux = Word & 0xffff;
    return true;
  }
  op.offset = static_cast<int32_t>(inst.number("offset", 0));
  if (row.flags & kTwo) {
    int32_t unit = static_cast<int32_t>(row.param *
                                        (row.flags & kAtomic ? 1 : row.count)) *
                   (row.flags & kSt64 ? 64 : 1);
    op.offset = static_cast<int32_t>(inst.number("offset0", 0)) * unit;
    op.offset1 = static_cast<int32_t>(inst.number("offset1", 0)) * unit;
  }
  return true;
}

bool Binder::bindMfma(MicroOp &op, const ParsedInst &inst) {
  const Row &row = *op.row;
  const auto &o = inst.operands;
  bool scaled = row.mnemonic.find("_scale_") != std::string_view::npos;
  if (o.size() != (scaled ? 6 : 4) || !vector(o[0], op.d) ||
      !vector(o[1], op.s[0]) || !vector(o[2], op.s[1]) ||
      !source(o[3], row.form == Form::Smfmac ? Ty::B32 : row.s[2], op.s[2]))
    return false;
  if (scaled && (!source(o[4], Ty::B32, op.s[3]) || !source(o[5], Ty::B32, op.sd)))
    return false;
  bool wmma = row.flags & kOwnModifiers;
  for (const ParsedModifier &m : inst.modifiers) {
    uint32_t value = static_cast<uint32_t>(m.values.empty() ? 0 : m.values[0]);
    auto bit = [&](size_t i) {
      return i < m.values.size() && m.values[i] ? 1u : 0u;
    };
    bool Operand::*field = m.key == "op_sel"   ? &Operand::selLo
                           : m.key == "neg_lo" ? &Operand::negLo
                           : m.key == "neg_hi" ? &Operand::negHi
                                               : nullptr;
    if (wmma && field)
      for (size_t i = 0; i < m.values.size() && i < 3; ++i)
        op.s[i].*field = m.values[i] != 0;
    else if (wmma && m.key == "clamp")
      op.flags |= kClamp;
    else if (wmma && m.key == "index_key")
      op.aux = value;
    else if (wmma && m.key != "op_sel_hi") // means nothing here
      return false;
    else if (wmma)
      continue;
    else if (m.key == "cbsz")
      op.aux |= value & 15;
    else if (m.key == "abid")
      op.aux |= (value & 15) << 4;
    else if (m.key == "blgp" && row.d != Ty::F64)
      op.aux |= (value & 7) << 8;
    else if (m.key == "neg" && row.d == Ty::F64)
      op.aux |= (bit(0) | bit(1) << 1 | bit(2) << 2) << 8;
    // Bytes of the scales: op_sel is the low bit, op_sel_hi the high one.
    else if (m.key == "op_sel" && scaled)
      op.aux |= bit(0) << 16 | bit(1) << 18;
    else if (m.key == "op_sel_hi" && scaled)
      op.aux |= bit(0) << 17 | bit(1) << 19;
    else
      return false;
  }
  return true;
}

Handler Binder::bind(MicroOp &op, const ParsedInst &inst) {
  std::string name = withoutSuffix(inst.mnemonic);
  if (startsWith(name, "v_dual_"))
    name = "v_" + name.substr(7);
  if (startsWith(name, "v_cmpx_")) {
    name = "v_cmp_" + name.substr(7);
    op.flags |= kCmpx;
  }
  uint32_t traits = Prog.Chip.traits;
  op.row = Table.find(name, traits);
  if (op.row && inst.find("clamp") && !isFloat(op.row->d) &&
      !(op.row->flags & kOwnModifiers))
    op.row = Table.find(name + "_clamp", traits);
  if (!op.row)
    return nullptr;
  const Row &row = *op.row;
  op.cls = static_cast<uint8_t>(row.cls);
  op.loop = row.loop;
  op.aux = Word & 0xffff;
  bool ok = false, modified = false;
  switch (row.form) {
  case Form::Vector:
    op.aux = 0;
    ok = bindVector(op, inst);
    modified = op.flags & kModified;
    break;
  case Form::Compare:
    op.aux = 0;
    ok = bindCompare(op, inst);
    modified = op.flags & kModified;
    break;
  case Form::Custom: ok = bindCustom(op, inst); break;
  case Form::Convert:
    op.aux = 0;
    ok = bindConvert(op, inst);
    break;
  case Form::Scalar:
  case Form::ScalarNoDst: ok = bindScalar(op, inst); break;
  case Form::Branch: ok = bindBranch(op, inst); break;
  case Form::Nop: ok = true; break;
  case Form::Smem: ok = bindSmem(op, inst); break;
  case Form::Flat: ok = bindFlat(op, inst); break;
  case Form::Buffer: ok = bindBuffer(op, inst); break;
  case Form::Ds: ok = bindDs(op, inst); break;
  case Form::Mfma:
  case Form::Smfmac:
  case Form::MfmaSmall:
    op.aux = 0;
    ok = bindMfma(op, inst);
    break;
  }
  if (!ok)
    return nullptr;
  if (!modified)
    return row.handler;
  return row.form == Form::Compare ? Table.variant().compareSlow
                                   : Table.variant().vectorSlow;
}

} // namespace fovea::sim
