//===- WaitCheck.cpp - Operations in flight and their registers -----------===//
//
// A bit set holds the registers that are pending; most instructions cost a few
// ANDs with it.
//
//===----------------------------------------------------------------------===//
#include "check/WaitCheck.h"
#include "fovea/Simulator/Chip.h"

#include <algorithm>

namespace fovea::sim {

void WaitCheck::beginGroup(unsigned waves) {
  if (Waves.size() < waves)
    Waves.resize(waves);
  for (unsigned i = 0; i < waves; ++i) {
    State &s = Waves[i];
    s.pending = RegSet();
    s.shared = false;
    for (Queue &q : s.queue)
      q.begin = q.size = q.unordered = q.toLds = 0;
  }
}

void WaitCheck::retire(State &s, const Operation &done) {
  for (unsigned i = 0; i < done.ranges; ++i)
    s.pending.remove(done.range[i]);
}

void WaitCheck::rebuild(State &s) {
  s.pending = RegSet();
  for (const Queue &q : s.queue)
    for (unsigned i = 0; i < q.size; ++i)
      for (unsigned k = 0; k < q.at(i).ranges; ++k)
        s.pending.add(q.at(i).range[k]);
}

void WaitCheck::dropOldest(State &s, Queue &q) {
  const Operation &op = q.at(0);
  retire(s, op);
  q.unordered -= op.unordered;
  q.toLds -= op.ldsClock != UINT32_MAX;
  q.begin = (q.begin + 1) % Queue::kMost;
  --q.size;
}

/// At most \p most operations of \p q are still in flight.
bool WaitCheck::complete(State &s, Queue &q, unsigned most) {
  if (q.size <= most)
    return false;
  bool ldsWritten = false;
  auto done = [&](const Operation &op) {
    retire(s, op);
    q.unordered -= op.unordered;
    q.toLds -= op.ldsClock != UINT32_MAX;
    ldsWritten |= op.ldsClock != UINT32_MAX;
  };
  if (!q.unordered || most == 0) {
    while (q.size > most) {
      done(q.at(0));
      q.begin = (q.begin + 1) % Queue::kMost;
      --q.size;
    }
  } else {
    // Any of the unordered ones may be among the `most` that remain; an ordered
    // one remains only with all ordered ones after it.
    unsigned ordered = q.size - q.unordered, seen = 0, kept = 0;
    for (unsigned i = 0; i < q.size; ++i) {
      Operation &op = q.at(i);
      if (!op.unordered && ordered - seen++ > most) {
        done(op);
        continue;
      }
      if (kept != i)
        q.at(kept) = op;
      ++kept;
    }
    q.size = kept;
  }
  if (s.shared) {
    rebuild(s);
    s.shared = s.pending.any();
  }
  return ldsWritten;
}

bool WaitCheck::before(Wave &wave, const InstPlan &plan) {
  State &s = Waves[wave.index];
  if (plan.waits) {
    bool ldsWritten = false;
    for (unsigned c = 0; c < kWaitCounters; ++c)
      if (plan.info->waits[c] != 0xff)
        ldsWritten |= complete(s, s.queue[c], plan.info->waits[c]);
    return ldsWritten;
  }
  uint64_t hit = 0;
  for (unsigned i = 0; i < plan.touchedParts; ++i)
    hit |= plan.touched[i].mask & s.pending.word[plan.touched[i].word];
  if (__builtin_expect(hit != 0, 0))
    early(wave, plan, s);
  s.spaces = s.ldsReads = 0;
  s.ldsLow = UINT32_MAX;
  s.ldsHigh = 0;
  s.ldsClock = UINT32_MAX;
  return false;
}

void WaitCheck::early(Wave &wave, const InstPlan &plan, State &s) {
  // A load may follow a load into the same register on the same counter: they
  // complete in order. (Loads of half a register read the rest of it.) But not
  // a FLAT one, whose parts for LDS and for memory do not wait for each other.
  RegSet own;
  if (plan.info->counts && !plan.unordered && !plan.flat)
    for (const RegRange &range : plan.info->writes)
      own.add(range);
  for (unsigned c = 0; c < kWaitCounters; ++c) {
    const Queue &q = s.queue[c];
    for (unsigned i = q.size; i-- > 0;) { // the latest first
      const Operation &op = q.at(i);
      RegSet hers;
      for (unsigned k = 0; k < op.ranges; ++k)
        hers.add(op.range[k]);
      bool inOrder = (plan.info->counts >> c) & 1 && !op.unordered;
      for (unsigned p = 0; p < plan.touchedParts; ++p) {
        unsigned word = plan.touched[p].word;
        uint64_t hit = plan.touched[p].mask & hers.word[word];
        if (inOrder)
          hit &= ~own.word[word];
        if (!hit)
          continue;
        s.shared = true;
        if (!Reports)
          return;
        unsigned bit = word * 64 + unsigned(__builtin_ctzll(hit));
        bool written = false;
        for (const RegRange &range : plan.info->writes) {
          RegSet set;
          set.add(range);
          written |= (set.word[word] & hit) != 0;
        }
        bool read = false;
        for (const RegRange &range : plan.info->reads) {
          RegSet set;
          set.add(range);
          read |= (set.word[word] & hit) != 0;
        }
        unsigned most = 0;
        for (unsigned later = i + 1; later < q.size; ++later)
          most += !q.at(later).unordered;
        if (op.unordered)
          most = 0;
        return Out.fail(
            wave, *plan.op, kCheckWaitcnt, 0,
            registerName(bit) +
                (read || !written ? " is read" : " is written") + " while " +
                Out.place(op.index) +
                " may still be on its way into it; that takes a wait for " +
                counterName(c, most) + " first");
      }
    }
  }
  s.shared = true;
}

void WaitCheck::access(Wave &wave, const InstPlan &plan,
                       const MemoryAccess &access, uint32_t clock) {
  State &s = Waves[wave.index];
  s.spaces |= static_cast<uint8_t>(1u << access.space);
  if (access.space != MemoryAccess::Lds)
    return;
  bool toLds = plan.info->counts & (1u << VmCnt) && !plan.flat;
  if (access.kind != MemoryAccess::Load) {
    s.ldsClock = clock;
    if (toLds)
      for (uint64_t left = access.mask; left; left &= left - 1) {
        uint64_t at = access.address[__builtin_ctzll(left)];
        s.ldsLow = std::min(s.ldsLow, static_cast<uint32_t>(at));
        s.ldsHigh =
            std::max(s.ldsHigh, static_cast<uint32_t>(at + access.bytes));
      }
  } else {
    ++s.ldsReads;
  }
  if (toLds || !Reports)
    return;
  // A load to LDS that is on its way there.
  const Queue &q = s.queue[VmCnt];
  if (!q.toLds)
    return;
  for (unsigned i = q.size; i-- > 0;) {
    const Operation &op = q.at(i);
    if (op.ldsHigh <= op.ldsLow)
      continue;
    uint64_t bad = 0;
    for (uint64_t left = access.mask; left; left &= left - 1) {
      unsigned lane = unsigned(__builtin_ctzll(left));
      uint64_t at = access.address[lane];
      if (at < op.ldsHigh && at + access.bytes > op.ldsLow)
        bad |= uint64_t(1) << lane;
    }
    if (!bad)
      continue;
    unsigned most = q.size - 1 - i;
    return Out.fail(
        wave, *plan.op, kCheckWaitcnt, bad,
        std::to_string(access.bytes) + " bytes at LDS offset " +
            hexText(access.address[__builtin_ctzll(bad)]) +
            " are accessed while " + Out.place(op.index) +
            " may still be on its way there; that takes a wait for " +
            counterName(VmCnt, most) + " first");
  }
}

void WaitCheck::after(Wave &wave, const InstPlan &plan) {
  uint8_t counts = plan.info->counts;
  if (!counts)
    return;
  State &s = Waves[wave.index];
  // Flat: registers come from where the lanes' addresses led.
  unsigned needed = counts;
  if (plan.flat) {
    unsigned lds = counts & ((1u << LgkmCnt) | (1u << DsCnt));
    bool hitLds = s.spaces & (1u << MemoryAccess::Lds);
    bool hitMemory = s.spaces & ~(1u << MemoryAccess::Lds);
    if (!hitLds)
      needed = counts & ~lds;
    else if (!hitMemory)
      needed = lds;
  }
  for (unsigned c = 0; c < kWaitCounters; ++c) {
    if (!((counts >> c) & 1))
      continue;
    Queue &q = s.queue[c];
    if (q.size == Queue::kMost) // the hardware's counter holds the wave here
      dropOldest(s, q);
    Operation &op = q.op[(q.begin + q.size++) % Queue::kMost];
    op.index = plan.index;
    op.unordered = plan.unordered;
    op.ranges = 0;
    op.ldsLow = s.ldsLow;
    op.ldsHigh = s.ldsHigh;
    op.ldsClock = s.ldsClock;
    op.ldsReads = s.ldsReads;
    q.unordered += op.unordered;
    q.toLds += op.ldsClock != UINT32_MAX;
    if (!((needed >> c) & 1))
      continue;
    for (const RegRange &range : plan.info->writes)
      if (range.file != RegRange::Scc && op.ranges < 2) {
        s.pending.add(range);
        op.range[op.ranges++] = range;
      }
    if (needed & (needed - 1))
      s.shared = true;
  }
}

uint32_t WaitCheck::oldestLdsWrite(unsigned wave, bool loads) const {
  uint32_t oldest = UINT32_MAX;
  for (const Queue &q : Waves[wave].queue)
    if (q.toLds)
      for (unsigned i = 0; i < q.size; ++i)
        if ((q.at(i).ldsHigh != 0) == loads)
          oldest = std::min(oldest, q.at(i).ldsClock);
  return oldest;
}

unsigned WaitCheck::openLdsReads(unsigned wave) const {
  unsigned open = 0;
  // A flat load is on a counter of vector memory, too.
  for (unsigned c : {LgkmCnt, DsCnt}) {
    const Queue &q = Waves[wave].queue[c];
    for (unsigned i = 0; i < q.size; ++i)
      open += q.at(i).ldsReads;
  }
  return open;
}

std::string WaitCheck::counterName(unsigned counter, unsigned value) const {
  // Names as the assembler of the chip's generation writes them.
  static constexpr const char *kOld[] = {"vmcnt",  "vscnt", "lgkmcnt",
                                         "expcnt", "dscnt", "kmcnt"};
  static constexpr const char *kNew[] = {"loadcnt", "storecnt", "lgkmcnt",
                                         "expcnt",  "dscnt",    "kmcnt"};
  bool fresh = Out.chip().target.substr(0, 5) == "gfx12";
  return std::string(fresh ? kNew[counter] : kOld[counter]) + "(" +
         std::to_string(value) + ")";
}

} // namespace fovea::sim
