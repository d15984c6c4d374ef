//===- ShadowMemory.cpp - Undefined values in memory instructions ---------===//
//
// Addresses have to be defined. Loads bring the state of the bytes with them:
// a word of which no byte was written is undefined. Stores take the state of
// the registers along; to device memory, a lane has to store something defined
// (the padding of structures need not be).
//
//===----------------------------------------------------------------------===//
#include "check/Shadow.h"
#include "isa/Row.h"

#include <cstring>

namespace fovea::sim {

void Shadow::addresses(Wave &w, const InstPlan &plan, State &s) {
  const MicroOp &op = *plan.op;
  const Row &row = *op.row;
  auto scalarSource = [&](const Operand &o, unsigned words, const char *what) {
    if (o.kind != Operand::Sgpr || w.state != WaveState::Running)
      return;
    for (unsigned i = 0; i < words && o.reg + i < kNull; ++i)
      if (s.s[o.reg + i])
        return report(w, plan, s.sFrom[o.reg + i], 0, what);
  };
  if (row.form == Form::Smem) {
    bool buffer = row.mnemonic.substr(0, 8) == "s_buffer";
    scalarSource(op.s[0], buffer ? 4 : 2,
                 buffer ? "the resource" : "the address");
    scalarSource(op.s[1], 1, "the address");
    for (const RegRange &range : plan.info->writes)
      if (range.file == RegRange::Scalar)
        setScalar(s, range.reg, range.words, 0, 0);
    return;
  }
  uint64_t exec = w.exec();
  if (!exec)
    return;
  unsigned addressWords = 1;
  if (row.form == Form::Flat) {
    addressWords =
        (row.flags & kScratch) || op.s[2].kind == Operand::Sgpr ? 1 : 2;
    scalarSource(op.s[2], row.flags & kScratch ? 1 : 2, "the address");
  } else if (row.form == Form::Buffer) {
    addressWords = (op.flags & kIdxen ? 1 : 0) + (op.flags & kOffen ? 1 : 0);
    scalarSource(op.s[2], 4, "the resource");
    scalarSource(op.s[3], 1, "the address");
  }
  if (op.s[0].kind == Operand::Vgpr)
    for (unsigned i = 0; i < addressWords; ++i)
      if (uint64_t bad = s.v[op.s[0].reg + i] & exec)
        return report(w, plan, s.vFrom[op.s[0].reg + i], bad, "the address");
  if (op.flags & kLdsDirect) {
    if (s.s[kM0])
      report(w, plan, s.sFrom[kM0], 0, "the place in LDS");
    return;
  }
  if (row.flags & kAtomic) {
    unsigned words = row.param / 4;
    for (int i = 1; i < 3; ++i)
      for (unsigned k = 0; op.s[i].kind == Operand::Vgpr && k < words; ++k)
        if (uint64_t bad = s.v[op.s[i].reg + k] & exec)
          return report(w, plan, s.vFrom[op.s[i].reg + k], bad,
                        "the operand of the atomic");
  }
  // What is loaded counts as defined until access() knows better.
  if (op.d.kind == Operand::Vgpr && !(row.flags & kStore)) {
    s.oldDestination = s.v[op.d.reg];
    for (const RegRange &range : plan.info->writes)
      for (unsigned k = 0; range.file == RegRange::Vector && k < range.words;
           ++k)
        setVector(s, range.reg + k, exec, 0, 0);
  }
}

uint8_t *Shadow::bytes(const Wave &w, const MemoryAccess &access,
                       unsigned lane) {
  uint64_t at = access.address[lane];
  switch (access.space) {
  case MemoryAccess::Lds:
    return at + access.bytes <= Lds.size() ? &Lds[at] : nullptr;
  case MemoryAccess::Scratch: {
    size_t place = (size_t(w.index) * kLaneStride + lane) * ScratchStride + at;
    return place + access.bytes <= Scratch.size() ? &Scratch[place] : nullptr;
  }
  case MemoryAccess::Global:
    return Checks & kCheckUninitMem ? Written.find(at, Cached) : nullptr;
  }
  return nullptr;
}

void Shadow::access(Wave &wave, const InstPlan &plan,
                    const MemoryAccess &access) {
  if (access.space == MemoryAccess::Global &&
      (!(Checks & kCheckUninitMem) || Written.empty()) &&
      access.kind == MemoryAccess::Load)
    return;
  State &s = Waves[wave.index];
  if (access.kind == MemoryAccess::Load)
    load(wave, plan, s, access);
  else
    store(wave, plan, s, access);
  ++s.accesses;
}

void Shadow::load(Wave &w, const InstPlan &plan, State &s,
                  const MemoryAccess &access) {
  const MicroOp &op = *plan.op;
  uint64_t undefined[4] = {0, 0, 0, 0};
  unsigned words = (access.bytes + 3) / 4;
  uint32_t scalarWords = 0;
  for (uint64_t left = access.mask; left; left &= left - 1) {
    unsigned lane = unsigned(__builtin_ctzll(left));
    const uint8_t *from = bytes(w, access, lane);
    if (!from)
      continue;
    if (access.bytes == 16) {
      uint64_t x[2];
      std::memcpy(x, from, 16);
      if (x[0] == 0x0101010101010101 && x[1] == 0x0101010101010101)
        continue;
    }
    for (unsigned k = 0; k < words; ++k) {
      unsigned n = std::min(4u, access.bytes - 4 * k);
      bool written = false;
      for (unsigned b = 0; b < n; ++b)
        written |= from[4 * k + b] != 0;
      if (written)
        continue;
      if (access.scalar)
        scalarWords |= 1u << k;
      else if (k < 4)
        undefined[k] |= uint64_t(1) << lane;
    }
  }
  Check check = access.space == MemoryAccess::Lds       ? kCheckUninitLds
                : access.space == MemoryAccess::Scratch ? kCheckUninitReg
                                                        : kCheckUninitMem;
  if (access.scalar) {
    for (unsigned k = 0; k < 16 && scalarWords; ++k)
      if ((scalarWords >> k) & 1)
        setScalar(s, op.d.reg + k, 1, 0xffffffff, origin(check, plan));
    return;
  }
  if (!(undefined[0] | undefined[1] | undefined[2] | undefined[3]))
    return;
  if (op.flags & kLdsDirect)
    return; // the bytes come to LDS as written
  unsigned first = op.d.reg;
  if (op.row->flags & kTwo && s.accesses > 0)
    first += words;
  if (op.row->flags & kD16)
    undefined[0] &= s.oldDestination;
  uint32_t from = origin(check, plan);
  for (unsigned k = 0; k < words && k < 4; ++k)
    setVector(s, first + k, undefined[k], undefined[k], from);
}

void Shadow::store(Wave &w, const InstPlan &plan, State &s,
                   const MemoryAccess &access) {
  const MicroOp &op = *plan.op;
  unsigned words = (access.bytes + 3) / 4;
  uint64_t undefined[4] = {0, 0, 0, 0}, all = ~uint64_t(0), any = 0;
  uint32_t from = 0;
  bool fromRegisters =
      op.row && (op.row->flags & kStore) && access.kind == MemoryAccess::Store;
  if (fromRegisters) {
    const Operand &data =
        (op.row->flags & kTwo) && s.accesses > 0 ? op.s[2] : op.s[1];
    for (unsigned k = 0; k < words && k < 4; ++k) {
      undefined[k] = s.v[data.reg + k] & access.mask;
      if (undefined[k])
        from = s.vFrom[data.reg + k];
      any |= undefined[k];
      all &= undefined[k];
    }
    if (access.space == MemoryAccess::Global && (all & access.mask))
      return report(w, plan, from, all & access.mask, "what is stored");
  }
  if (access.space == MemoryAccess::Global &&
      (!(Checks & kCheckUninitMem) || Written.empty()))
    return;
  for (uint64_t left = access.mask; left; left &= left - 1) {
    unsigned lane = unsigned(__builtin_ctzll(left));
    uint8_t *to = bytes(w, access, lane);
    if (!to)
      continue;
    if (!((any >> lane) & 1)) {
      std::memset(to, 1, access.bytes);
      continue;
    }
    for (unsigned k = 0; k < words && k < 4; ++k)
      std::memset(to + 4 * k, (undefined[k] >> lane) & 1 ? 0 : 1,
                  std::min(4u, access.bytes - 4 * k));
  }
}

} // namespace fovea::sim
