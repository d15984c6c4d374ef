//===- BinderMemory.cpp - Memory instructions as MicroOps -----------------===//
//
// Scalar, flat, buffer and LDS instructions: which operands are there follows
// from what the row says the instruction does.
//
//===----------------------------------------------------------------------===//
#include "decode/Binder.h"
#include "exec/UnifiedFormat.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim {

namespace {
/// GFX12's temporal hints say whether an atomic returns: TH_ATOMIC_RETURN,
/// TH_ATOMIC_NT_RETURN.
bool returnsByTh(const ParsedInst &inst) {
  const ParsedModifier *th = inst.find("th");
  return th && th->word.find("RETURN") != std::string::npos;
}
} // namespace

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
      if (inst.find("sc0") || inst.find("glc") || returnsByTh(inst))
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
  op.aux = (word >> 19) & 0x7f; // tbuffer_*: data and number format
  if (const ParsedModifier *format = inst.find("format");
      format && program.Chip.unifiedFormats)
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
  bool returns = (row.flags & kAtomic) &&
                 row.mnemonic.find("_rtn") != std::string_view::npos;
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
    op.aux = word & 0xffff;
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

} // namespace fovea::sim
