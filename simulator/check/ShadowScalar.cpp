//===- ShadowScalar.cpp - Undefined values in scalar instructions ---------===//
//
// Bit by bit through moves, logic and shifts; as a whole through the rest.
//
//===----------------------------------------------------------------------===//
#include "check/Shadow.h"
#include "isa/Row.h"

namespace fovea::sim {

namespace {
bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}
uint64_t value(const Wave &w, const Operand &o, unsigned words) {
  return words > 1 ? readS64(w, o) : readS32(w, o);
}
bool writesScc(const InstInfo &info) {
  for (const RegRange &range : info.writes)
    if (range.file == RegRange::Scc)
      return true;
  return false;
}
} // namespace

uint64_t Shadow::fetchScalar(const State &s, const Wave &w, const Operand &o,
                             unsigned words, uint32_t &from) const {
  if (o.kind == Operand::Sgpr || o.kind == Operand::Mask) {
    if (o.reg >= kNull)
      return 0;
    uint64_t bits = s.s[o.reg];
    if (s.s[o.reg])
      from = s.sFrom[o.reg];
    if (words > 1) {
      bits |= uint64_t(s.s[o.reg + 1]) << 32;
      if (s.s[o.reg + 1])
        from = s.sFrom[o.reg + 1];
    }
    return bits;
  }
  Value v = fetch(s, w, o, words);
  if (v.any())
    from = v.from;
  return v.any() ? ~uint64_t(0) : 0;
}

void Shadow::writeScalar(Wave &w, const InstPlan &plan, State &s, unsigned reg,
                         unsigned words, uint64_t bits, uint32_t from) {
  if (reg == kExec && (bits & w.fullMask))
    return report(w, plan, from, 0, "which lanes are active from here on");
  setScalar(s, reg, words, bits, from);
}

void Shadow::scalar(Wave &w, const InstPlan &plan, State &s) {
  const MicroOp &op = *plan.op;
  const Row &row = *op.row;
  const std::string &name = plan.info->mnemonic;
  unsigned words =
      row.d == Ty::B64 || row.d == Ty::I64 || row.d == Ty::U64 ? 2 : 1;
  uint64_t most = words > 1 ? ~uint64_t(0) : 0xffffffffu;
  uint32_t from = 0;
  auto source = [&](int i) {
    return fetchScalar(s, w, op.s[i], wordsOf(row.s[i]), from);
  };
  // A result of which SCC says whether it is 0.
  auto writeTested = [&](uint64_t bits) {
    writeScalar(w, plan, s, op.d.reg, words, bits, from);
    s.logicUndefined = bits;
    if (bits)
      s.logic = &plan;
    else
      setScc(s, false, 0);
  };
  bool scc = writesScc(*plan.info);
  switch (plan.rule) {
  case ShadowRule::Branch: {
    if (has(name, "scc")) {
      if (s.scc)
        report(w, plan, s.sccFrom, 0, "the way that the branch takes");
      return;
    }
    if (!has(name, "vcc"))
      return;
    uint64_t bits = s.s[kVcc];
    uint64_t known = w.vcc();
    if (w.lanes > 32)
      bits |= uint64_t(s.s[kVcc + 1]) << 32;
    bits &= w.fullMask;
    known &= w.fullMask & ~bits;
    // A bit that is known to be 1 decides.
    if (bits && !known)
      report(w, plan, s.sFrom[s.s[kVcc] ? kVcc : kVcc + 1], 0,
             "the way that the branch takes");
    return;
  }
  case ShadowRule::Jump:
    if (source(0))
      return report(w, plan, from, 0, "the address to go to");
    if (row.form == Form::Scalar)
      setScalar(s, op.d.reg, 2, 0, 0);
    return;
  case ShadowRule::ScalarMove: {
    uint64_t bits = source(0) & most;
    writeScalar(w, plan, s, op.d.reg, words, bits, from);
    if (scc && bits) {
      s.logic = &plan;
      s.logicUndefined = bits;
    } else if (scc) {
      setScc(s, false, 0);
    }
    return;
  }
  case ShadowRule::ScalarSelect: {
    if (s.scc)
      return writeScalar(w, plan, s, op.d.reg, words, most, s.sccFrom);
    bool second = row.s[1] != Ty::None; // else s_cmov: one source, or none
    if (!second && !w.scc)
      return;
    uint64_t bits = source(second && !w.scc ? 1 : 0) & most;
    return writeScalar(w, plan, s, op.d.reg, words, bits, from);
  }
  case ShadowRule::ScalarPack: {
    uint64_t a = source(0), b = source(1);
    uint64_t low = has(name, "_h") ? a >> 16 : a, high = b;
    if (has(name, "_hh") || has(name, "_lh"))
      high = b >> 16;
    if (has(name, "_lh") || has(name, "_ll"))
      low = a;
    return writeScalar(w, plan, s, op.d.reg, 1,
                       (low & 0xffff) | (high & 0xffff) << 16, from);
  }
  case ShadowRule::ScalarShift: {
    uint64_t bits = source(0) & most;
    uint32_t countFrom = 0;
    unsigned size = 32 * words;
    if (fetchScalar(s, w, op.s[1], 1, countFrom) & (size - 1)) {
      bits = most;
      from = countFrom;
    } else {
      unsigned n = readS32(w, op.s[1]) & (size - 1);
      if (has(name, "lshl"))
        bits = bits << n & most;
      else if (has(name, "lshr"))
        bits >>= n;
      else if (words > 1)
        bits = static_cast<uint64_t>(static_cast<int64_t>(bits) >> n);
      else
        bits = static_cast<uint32_t>(static_cast<int32_t>(bits) >> n);
    }
    return writeTested(bits);
  }
  case ShadowRule::ScalarLogic: {
    uint64_t a = value(w, op.s[0], words), b = value(w, op.s[1], words);
    uint64_t ua = source(0) & most, ub = source(1) & most;
    if (has(name, "n2_") || has(name, "not1_"))
      b = ~b;
    uint64_t bits = ua | ub;
    // A bit is known where one side alone decides it.
    if (has(name, "and"))
      bits &= (a | ua) & (b | ub);
    else if (!has(name, "xor") && !has(name, "xnor"))
      bits &= (~a | ua) & (~b | ub);
    bits &= most;
    return writeTested(bits);
  }
  case ShadowRule::SaveExec: {
    uint64_t bits = source(0), exec = w.exec();
    bool negated = has(name, "n2_") || has(name, "not1_");
    if (has(name, "and") && has(name, "nand"))
      negated = false;
    if (has(name, "and"))
      bits &= negated ? ~exec : exec;
    else if (!has(name, "xor") && !has(name, "xnor"))
      bits &= negated ? exec : ~exec;
    bits &= w.fullMask;
    if (bits)
      return report(w, plan, from, bits, "which lanes are active from here on");
    setScalar(s, op.d.reg, words, 0, 0);
    setScc(s, false, 0);
    return;
  }
  case ShadowRule::BitCompare: {
    uint64_t bits = source(0);
    uint32_t countFrom = 0;
    bool unknown = fetchScalar(s, w, op.s[1], 1, countFrom) != 0;
    unsigned n = readS32(w, op.s[1]) & (wordsOf(row.s[0]) > 1 ? 63 : 31);
    setScc(s, unknown || (bits >> n) & 1, unknown ? countFrom : from);
    return;
  }
  default:
    break;
  }
  // Everything that it reads.
  bool undefined = false;
  for (const RegRange &range : plan.info->reads) {
    if (range.file == RegRange::Scc && s.scc) {
      undefined = true;
      from = s.sccFrom;
    }
    for (unsigned i = 0; range.file == RegRange::Scalar && i < range.words; ++i)
      if (range.reg + i < kScalars && s.s[range.reg + i]) {
        undefined = true;
        from = s.sFrom[range.reg + i];
      }
  }
  for (const RegRange &range : plan.info->writes) {
    if (range.file == RegRange::Scc)
      setScc(s, undefined, from);
    else if (range.file == RegRange::Scalar)
      writeScalar(w, plan, s, range.reg, range.words,
                  undefined ? ~uint64_t(0) : 0, from);
  }
}

} // namespace fovea::sim
