//===- Shadow.cpp - Which values were never written -----------------------===//
//
// State, its beginning, and reports. An instruction that touches no register of
// which anything is undefined costs a few ANDs.
//
//===----------------------------------------------------------------------===//
#include "check/Shadow.h"
#include "isa/Row.h"

#include <algorithm>

namespace fovea::sim {

namespace {
// Origins: 0 none, then vector registers, scalar registers, instructions.
constexpr uint32_t kFirstVector = 1, kFirstScalar = 1024, kFirstLoad = 4096;

void mark(RegSet &set, unsigned bit, bool on) {
  uint64_t b = uint64_t(1) << (bit % 64);
  if (on)
    set.word[bit / 64] |= b;
  else
    set.word[bit / 64] &= ~b;
}
} // namespace

void Shadow::beginGroup(const Group &group, Wave *waves, unsigned count) {
  Waves.resize(std::max<size_t>(Waves.size(), count));
  bool regs = Checks & kCheckUninitReg;
  for (unsigned i = 0; i < count; ++i) {
    State &s = Waves[i];
    const Wave &w = waves[i];
    s = State();
    for (unsigned r = 0; r < kVectorFile; ++r) {
      s.v[r] = regs && r >= w.initialVgprs && r != kSpareReg ? w.fullMask : 0;
      s.vFrom[r] = kFirstVector + r;
    }
    for (unsigned r = 0; r < kScalars; ++r) {
      // FLAT_SCRATCH and what lies beside it, EXEC and the trap registers are
      // set up by hardware or are not followed.
      bool set =
          r < w.initialSgprs || (r >= kFlatScratch && r < kVcc) || r >= kTtmp0;
      s.s[r] = regs && (!set || r == kM0) ? ~0u : 0;
      s.sFrom[r] = kFirstScalar + r;
    }
    s.scc = false;
    for (unsigned r = 0; r < kVectorRegs; ++r)
      mark(s.dirty, r, s.v[r] != 0);
    for (unsigned r = 0; r < kScalars; ++r)
      mark(s.dirty, kVectorRegs + r, s.s[r] != 0);
  }
  bool lds = Checks & kCheckUninitLds;
  Lds.assign(group.ldsBytes + 16, lds ? 0 : 1);
  ScratchStride = group.privateBytes;
  Scratch.assign(ScratchStride * kLaneStride * count + 16, regs ? 0 : 1);
}

void Shadow::setVector(State &s, unsigned reg, uint64_t mask, uint64_t bits,
                       uint32_t from) {
  if (reg >= kVectorFile)
    return;
  s.v[reg] = (s.v[reg] & ~mask) | (bits & mask);
  if (bits & mask)
    s.vFrom[reg] = from;
  if (reg < kVectorRegs)
    mark(s.dirty, reg, s.v[reg] != 0);
}

void Shadow::setScalar(State &s, unsigned reg, unsigned words, uint64_t bits,
                       uint32_t from) {
  for (unsigned i = 0; i < words && reg + i < kNull; ++i) {
    if (reg + i == kExec || reg + i == kExec + 1)
      continue;
    s.s[reg + i] = i < 2 ? static_cast<uint32_t>(bits >> (32 * i)) : 0;
    if (s.s[reg + i])
      s.sFrom[reg + i] = from;
    mark(s.dirty, kVectorRegs + reg + i, s.s[reg + i] != 0);
  }
}

void Shadow::setScc(State &s, bool undefined, uint32_t from) {
  s.scc = undefined;
  s.sccFrom = from;
  mark(s.dirty, kSccBit, undefined);
}

uint32_t Shadow::origin(Check check, const InstPlan &plan) {
  for (size_t i = Loads.size(); i-- > 0;)
    if (Loads[i].index == plan.index && Loads[i].check == check)
      return kFirstLoad + static_cast<uint32_t>(i);
  Loads.push_back({check, plan.index});
  return kFirstLoad + static_cast<uint32_t>(Loads.size() - 1);
}

Check Shadow::originCheck(uint32_t from) const {
  Check check =
      from >= kFirstLoad ? Loads[from - kFirstLoad].check : kCheckUninitReg;
  // What undefined registers left in memory is theirs when only they are
  // watched.
  return Checks & check ? check : kCheckUninitReg;
}

std::string Shadow::originText(uint32_t from) const {
  if (from >= kFirstLoad) {
    const Load &load = Loads[from - kFirstLoad];
    const char *what = load.check == kCheckUninitLds   ? "LDS"
                       : load.check == kCheckUninitMem ? "device memory"
                                                       : "scratch";
    return std::string("never written ") + what + ", read by " +
           Out.place(load.index);
  }
  return (from >= kFirstScalar
              ? registerName(RegRange::Scalar, from - kFirstScalar)
              : registerName(RegRange::Vector, from - kFirstVector)) +
         ", never written";
}

void Shadow::report(Wave &wave, const InstPlan &plan, uint32_t from,
                    uint64_t lanes, const std::string &what) {
  Out.fail(wave, *plan.op, originCheck(from), lanes,
           what + " depends on " + originText(from));
}

void Shadow::before(Wave &wave, const InstPlan &plan) {
  State &s = Waves[wave.index];
  s.accesses = 0;
  uint64_t hit = 0;
  for (unsigned i = 0; i < plan.touchedParts; ++i)
    hit |= plan.touched[i].mask & s.dirty.word[plan.touched[i].word];
  if (__builtin_expect(hit != 0, 0) || plan.rule == ShadowRule::Forget)
    slow(wave, plan, s);
}

void Shadow::slow(Wave &wave, const InstPlan &plan, State &s) {
  switch (plan.rule) {
  case ShadowRule::None:
    return;
  case ShadowRule::Probe:
    return probe(wave, plan, s);
  case ShadowRule::Matrix:
    return matrix(wave, plan, s);
  case ShadowRule::Memory:
  case ShadowRule::ScalarLoad:
    return addresses(wave, plan, s);
  case ShadowRule::Forget:
    // Vector registers by number: what may be written counts as written.
    if (plan.info->mnemonic[0] == 'v' ||
        plan.info->mnemonic == "s_set_gpr_idx_on")
      for (unsigned r = 0; r < kVectorRegs; ++r)
        setVector(s, r, ~uint64_t(0), 0, 0);
    else
      for (unsigned r = 0; r < kVcc; ++r)
        setScalar(s, r, 1, 0, 0);
    return;
  default:
    if (plan.rule >= ShadowRule::ScalarAny)
      return scalar(wave, plan, s);
    return vector(wave, plan, s);
  }
}

void Shadow::after(Wave &wave, const InstPlan &plan) {
  State &s = Waves[wave.index];
  if (__builtin_expect(s.logic == nullptr, 1))
    return;
  // SCC says whether the result is 0: one bit that is known to be 1 tells.
  uint64_t value = s.logic->op->row->d == Ty::B64 ? wave.s64(plan.op->d.reg)
                                                  : wave.s[plan.op->d.reg];
  setScc(s, (value & ~s.logicUndefined) == 0, s.sFrom[plan.op->d.reg]);
  s.logic = nullptr;
}

} // namespace fovea::sim
