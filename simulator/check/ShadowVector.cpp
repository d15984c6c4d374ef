//===- ShadowVector.cpp - Undefined values in vector instructions ---------===//
//
// Lane by lane; instructions that move data between lanes, and matrix
// instructions, are executed by the engine on the shadows themselves.
//
//===----------------------------------------------------------------------===//
#include "check/Shadow.h"
#include "isa/Row.h"

#include <algorithm>
#include <cstring>

namespace fovea::sim {

namespace {
bool partial(const MicroOp &op) {
  bool sdwaPart =
      (op.flags & kSdwa) && op.dstSel != 6 && (op.flags & kPreserve);
  return sdwaPart || (op.flags & (kDstHigh | kDstLow)) ||
         (op.row->flags & (kKeepHigh | kHigh));
}
/// Bit l of \p bits to word l of \p lanes.
void spreadBits(uint32_t *lanes, uint64_t bits, uint32_t one) {
  for (unsigned l = 0; l < kLaneStride; ++l)
    lanes[l] = (bits >> l) & 1 ? one : 0;
}
uint64_t gatherBits(const uint32_t *lanes, uint32_t value) {
  uint64_t bits = 0;
  for (unsigned l = 0; l < kLaneStride; ++l)
    bits |= uint64_t(lanes[l] == value) << l;
  return bits;
}
void call(Wave &w, const MicroOp &op) {
  op.fn.load(std::memory_order_acquire)(w, op);
}
/// Register contents, put back when it goes.
class Saved {
public:
  explicit Saved(Wave &w) : W(w) {}
  ~Saved() {
    for (const auto &[reg, words] : Kept)
      std::memcpy(W.vreg(reg), words.data(), kLaneStride * 4);
  }
  void keep(unsigned reg) {
    for (const auto &[known, words] : Kept)
      if (known == reg)
        return;
    Kept.emplace_back(
        reg, std::vector<uint32_t>(W.vreg(reg), W.vreg(reg) + kLaneStride));
  }
  void put(unsigned reg, uint64_t bits, uint32_t one) {
    keep(reg);
    spreadBits(W.vreg(reg), bits, one);
  }

private:
  Wave &W;
  std::vector<std::pair<unsigned, std::vector<uint32_t>>> Kept;
};
} // namespace

Shadow::Value Shadow::fetch(const State &s, const Wave &w, const Operand &o,
                            unsigned words) const {
  Value value;
  switch (o.kind) {
  case Operand::Vgpr:
    // What is wider than four words is not told apart beyond them.
    for (unsigned i = 0; i < words && o.reg + i < kVectorFile; ++i) {
      value.word[std::min(i, 3u)] |= s.v[o.reg + i];
      if (s.v[o.reg + i])
        value.from = s.vFrom[o.reg + i];
    }
    break;
  case Operand::Sgpr:
    for (unsigned i = 0; i < words && i < 4 && o.reg + i < kScalars; ++i)
      if (s.s[o.reg + i]) {
        value.word[i] = ~uint64_t(0);
        value.from = s.sFrom[o.reg + i];
      }
    break;
  case Operand::Mask:
    value.word[0] = s.s[o.reg];
    if (w.lanes > 32)
      value.word[0] |= uint64_t(s.s[o.reg + 1]) << 32;
    if (value.word[0])
      value.from = s.sFrom[o.reg + (s.s[o.reg] ? 0 : 1)];
    break;
  case Operand::Special:
    if (o.reg == kSrcScc && s.scc) {
      value.word[0] = ~uint64_t(0);
      value.from = s.sccFrom;
    }
    break;
  case Operand::None:
  case Operand::Const:
    break;
  }
  return value;
}

/// Permutes \p value as the DPP of an instruction does; \p written: the lanes
/// that it writes.
void Shadow::moveLanes(Wave &w, const MicroOp &mover, Value &value,
                       unsigned words, uint64_t &written) {
  Saved saved(w);
  saved.keep(mover.s[0].reg);
  for (unsigned i = 0; i < words; ++i) {
    spreadBits(w.vreg(mover.s[0].reg), value.word[i], 1);
    uint32_t *d = w.vreg(kSpareReg);
    for (unsigned l = 0; l < kLaneStride; ++l)
      d[l] = 2;
    call(w, mover);
    value.word[i] = gatherBits(d, 1);
    written = ~gatherBits(d, 2);
  }
}

Shadow::Result Shadow::vectorResult(Wave &w, const InstPlan &plan, State &s,
                                    const MicroOp &op, ShadowRule rule) {
  const Row &row = *op.row;
  Result r;
  r.reg = op.d.reg;
  r.words = wordsOf(row.d);
  r.mask = w.exec();
  Value in[3];
  unsigned registers = 0;
  uint64_t all = ~uint64_t(0), any = 0, low = 0;
  for (int i = 0; i < 3; ++i) {
    if (row.s[i] == Ty::None || op.s[i].kind == Operand::None)
      continue;
    unsigned words = wordsOf(row.s[i]);
    in[i] = fetch(s, w, op.s[i], words);
    if (i == 0 && (op.flags & kDpp) && plan.mover) {
      uint64_t written = r.mask;
      if (in[i].any() || op.s[0].kind == Operand::Vgpr)
        moveLanes(w, *plan.mover, in[i], words, written);
      r.mask &= written;
    }
    if (in[i].any())
      r.value.from = in[i].from;
    any |= in[i].any();
    low |= in[i].word[0];
    if (op.s[i].kind != Operand::Const) {
      ++registers;
      all &= in[i].any();
    }
  }
  if (row.flags & kVccIn) { // not printed; a mask source where a row has one
    Operand vcc;
    vcc.kind = Operand::Mask;
    vcc.reg = kVcc;
    Value mask = fetch(s, w, vcc, 1);
    any |= mask.word[0];
    low |= mask.word[0];
    if (mask.word[0])
      r.value.from = mask.from;
  }
  auto fill = [&](uint64_t bits) {
    for (unsigned k = 0; k < 4; ++k)
      r.value.word[k] = bits;
  };
  switch (rule) {
  case ShadowRule::Words:
    for (unsigned k = 0; k < 4; ++k)
      r.value.word[k] = in[0].word[k];
    break;
  case ShadowRule::Low:
    fill(any);
    r.value.word[0] = low;
    break;
  case ShadowRule::Merge:
    fill(registers ? all : 0);
    break;
  case ShadowRule::Select: {
    // The mask is the last source.
    uint64_t mask =
        op.s[2].kind == Operand::Mask || op.s[2].kind == Operand::Sgpr
            ? (w.lanes > 32 ? w.s64(op.s[2].reg) : w.s[op.s[2].reg])
            : w.vcc();
    fill((mask & in[1].word[0]) | (~mask & in[0].word[0]) | in[2].word[0]);
    break;
  }
  case ShadowRule::Packed:
    for (unsigned k = 0; k < 2; ++k)
      for (int i = 0; i < 3; ++i)
        r.value.word[k] |=
            in[i].word[(k ? op.s[i].selHi : op.s[i].selLo) ? 1 : 0];
    break;
  case ShadowRule::PackedMove:
    r.value.word[0] = in[0].word[op.s[0].selLo ? 1 : 0];
    r.value.word[1] = in[1].word[op.s[1].selLo ? 1 : 0];
    break;
  default:
    fill(any);
    break;
  }
  if (partial(op))
    r.value.word[0] &= s.v[r.reg];
  return r;
}

void Shadow::vector(Wave &w, const InstPlan &plan, State &s) {
  const MicroOp &op = *plan.op;
  if (op.halves) { // both read before either writes
    Result first = vectorResult(w, plan, s, op.halves[0], plan.rule);
    first.reg = op.d.reg;
    Result second = vectorResult(w, plan, s, op.halves[1], plan.rule2);
    for (const Result &r : {first, second})
      for (unsigned k = 0; k < r.words; ++k)
        setVector(s, r.reg + k, r.mask, r.value.word[std::min(k, 3u)],
                  r.value.from);
    return;
  }
  switch (plan.rule) {
  case ShadowRule::ReadLane: {
    Value value = fetch(s, w, op.s[0], 1);
    uint32_t from = value.from;
    uint64_t exec = w.exec();
    unsigned lane = exec ? unsigned(__builtin_ctzll(exec)) : 0;
    if (op.s[1].kind != Operand::None) {
      if (Value index = fetch(s, w, op.s[1], 1); index.any())
        return setScalar(s, op.d.reg, 1, ~uint64_t(0), index.from);
      lane = readS32(w, op.s[1]) & unsigned(w.lanes - 1);
    }
    bool undefined = (value.word[0] >> lane) & 1;
    return writeScalar(w, plan, s, op.d.reg, 1, undefined ? ~0u : 0, from);
  }
  case ShadowRule::WriteLane: {
    Value index = fetch(s, w, op.s[1], 1);
    if (index.any())
      return;
    unsigned lane = readS32(w, op.s[1]) & unsigned(w.lanes - 1);
    uint32_t from = 0;
    // A lane holds one bit for the word: a mask that is known in part is kept.
    bool undefined = uint32_t(fetchScalar(s, w, op.s[0], 1, from)) == ~0u;
    return setVector(s, op.d.reg, uint64_t(1) << lane,
                     undefined ? ~uint64_t(0) : 0, from);
  }
  case ShadowRule::Swap: {
    uint64_t a = s.v[op.d.reg], b = s.v[op.s[0].reg];
    uint32_t fromA = s.vFrom[op.d.reg], fromB = s.vFrom[op.s[0].reg];
    setVector(s, op.d.reg, w.exec(), b, fromB);
    return setVector(s, op.s[0].reg, w.exec(), a, fromA);
  }
  default:
    break;
  }
  Result r = vectorResult(w, plan, s, op, plan.rule);
  if (plan.rule == ShadowRule::Compare) {
    uint64_t bits = r.value.word[0] & r.mask;
    unsigned words = op.sd.words < 2 && w.lanes <= 32 ? 1 : 2;
    if (bits && ((op.flags & kCmpx) || op.sd.reg == kExec))
      return report(w, plan, r.value.from, bits,
                    "which lanes are active from here on");
    return writeScalar(w, plan, s, op.sd.reg, words, bits, r.value.from);
  }
  for (unsigned k = 0; k < r.words; ++k)
    setVector(s, r.reg + k, r.mask, r.value.word[std::min(k, 3u)],
              r.value.from);
  if (op.row->flags & kCarryOut)
    writeScalar(w, plan, s, op.sd.reg, w.lanes > 32 ? 2 : 1,
                r.value.word[0] & r.mask, r.value.from);
}

void Shadow::probe(Wave &w, const InstPlan &plan, State &s) {
  const MicroOp &op = *plan.op;
  bool ds = op.row->form == Form::Ds;
  const Operand &data = ds && op.s[1].kind == Operand::Vgpr ? op.s[1] : op.s[0];
  if (data.kind != Operand::Vgpr || op.d.kind != Operand::Vgpr)
    return;
  uint32_t from = s.v[data.reg] ? s.vFrom[data.reg] : s.vFrom[op.d.reg];
  uint64_t unknown = 0;
  for (int i = 0; i < 3; ++i) // lane numbers and selectors
    if (&op.s[i] != &data && op.s[i].kind != Operand::None) {
      Value value = fetch(s, w, op.s[i], 1);
      unknown |= value.any();
      if (value.any())
        from = value.from;
    }
  uint64_t d, other;
  bool swaps = op.row->mnemonic.find("swap") != std::string_view::npos;
  {
    Saved saved(w);
    saved.put(data.reg, s.v[data.reg], 1);
    saved.put(op.d.reg, s.v[op.d.reg], 1);
    call(w, op);
    d = gatherBits(w.vreg(op.d.reg), 1);
    other = gatherBits(w.vreg(data.reg), 1);
  }
  setVector(s, op.d.reg, ~uint64_t(0), d | (unknown & w.exec()), from);
  if (swaps)
    setVector(s, data.reg, ~uint64_t(0), other, from);
}

void Shadow::matrix(Wave &w, const InstPlan &plan, State &s) {
  // Positive numbers in every format of elements: their sums are not 0.
  constexpr uint32_t kPositive = 0x38383838;
  const MicroOp &op = *plan.op;
  const RegRange *to = nullptr;
  for (const RegRange &range : plan.info->writes)
    if (range.file == RegRange::Vector)
      to = &range;
  if (!to)
    return;
  // The widths of the sources are those of the ranges that start there.
  RegRange in[3];
  bool has[3] = {false, false, false};
  uint64_t undefined = 0;
  uint32_t from = 0;
  for (int i = 0; i < 3; ++i) {
    // The third source of the sparse ones is an index; they add to d.
    const Operand &o = i == 2 && op.row->form == Form::Smfmac ? op.d : op.s[i];
    for (const RegRange &range : plan.info->reads)
      if (o.kind == Operand::Vgpr && range.file == RegRange::Vector &&
          range.reg == o.reg && !has[i]) {
        in[i] = range;
        has[i] = true;
        for (unsigned k = 0; k < range.words; ++k)
          if (s.v[range.reg + k]) {
            undefined |= s.v[range.reg + k];
            from = s.vFrom[range.reg + k];
          }
      }
  }
  std::vector<uint64_t> result(to->words, 0);
  bool same = has[0] && has[1] && in[0].reg < in[1].reg + in[1].words &&
              in[1].reg < in[0].reg + in[0].words;
  bool constant = op.s[2].kind == Operand::Const && op.s[2].value() != 0;
  if (undefined && (same || constant || !has[0] || !has[1])) {
    for (uint64_t &lanes : result)
      lanes = w.fullMask;
  } else if (undefined) {
    Saved saved(w);
    for (unsigned k = 0; k < to->words; ++k)
      saved.keep(to->reg + k);
    for (int run = 0; run < 2; ++run) {
      for (int i = 2; i >= 0; --i)
        for (unsigned k = 0; has[i] && k < in[i].words; ++k) {
          unsigned reg = in[i].reg + k;
          uint64_t bits = i == 2     ? (run == 0 ? s.v[reg] : 0)
                          : i == run ? s.v[reg]
                                     : ~uint64_t(0);
          saved.put(reg, bits, kPositive);
        }
      call(w, op);
      for (unsigned k = 0; k < to->words; ++k)
        result[k] |= ~gatherBits(w.vreg(to->reg + k), 0);
    }
  }
  for (unsigned k = 0; k < to->words; ++k)
    setVector(s, to->reg + k, w.fullMask, result[k], from);
}

} // namespace fovea::sim
