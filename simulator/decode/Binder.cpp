//===- Binder.cpp - From a parsed instruction to a MicroOp ----------------===//
//
// One function for each form of row; those of memory instructions are in
// BinderMemory.cpp. Whatever a form does not expect makes the instruction "not
// simulated" rather than wrong.
//
//===----------------------------------------------------------------------===//
#include "decode/Binder.h"
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

} // namespace

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
  if ((op.flags & kClamp) && !isFloat(row.d) &&
      !endsWith(std::string(row.mnemonic), "_clamp"))
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
    op.sd.words = program.waveSize() == 32 ? 1 : 2;
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
    else if (m.key == "byte_sel" &&
             !m.values.empty()) // GFX12's name for op_sel
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
  op.aux = word & 0xffff; // the literal of SOPK and SOPP
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
  op.offset =
      static_cast<int32_t>(index) + 1 + static_cast<int16_t>(word & 0xffff);
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
  if (scaled &&
      (!source(o[4], Ty::B32, op.s[3]) || !source(o[5], Ty::B32, op.sd)))
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
  uint32_t traits = program.Chip.traits;
  op.row = table.find(name, traits);
  if (op.row && inst.find("clamp") && !isFloat(op.row->d) &&
      !(op.row->flags & kOwnModifiers))
    op.row = table.find(name + "_clamp", traits);
  if (!op.row)
    return nullptr;
  const Row &row = *op.row;
  brain = row.flags & kBrain;
  op.cls = static_cast<uint8_t>(row.cls);
  op.loop = row.loop;
  op.aux = word & 0xffff;
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
  case Form::Custom:
    ok = bindCustom(op, inst);
    break;
  case Form::Convert:
    op.aux = 0;
    ok = bindConvert(op, inst);
    break;
  case Form::Scalar:
  case Form::ScalarNoDst:
    ok = bindScalar(op, inst);
    break;
  case Form::Branch:
    ok = bindBranch(op, inst);
    break;
  case Form::Nop:
    ok = true;
    break;
  case Form::Smem:
    ok = bindSmem(op, inst);
    break;
  case Form::Flat:
    ok = bindFlat(op, inst);
    break;
  case Form::Buffer:
    ok = bindBuffer(op, inst);
    break;
  case Form::Ds:
    ok = bindDs(op, inst);
    break;
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
  return row.form == Form::Compare ? table.variant().compareSlow
                                   : table.variant().vectorSlow;
}

} // namespace fovea::sim
