//===- Access.h - Moving words between registers and memory -----*- C++ -*-===//
//
// The part of vector memory and LDS instructions that is the same once every
// lane's place is known: loads, stores and atomics by element size and count.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_ACCESS_H
#define FOVEA_SIMULATOR_EXEC_ACCESS_H

#include "exec/Engine.h"
#include "exec/Observer.h"
#include "fovea/Simulator/Chip.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

using Word4 = uint32_t __attribute__((vector_size(16)));

/// Four words of four lanes, turned so that each result holds one word of all
/// four lanes.
inline void transpose4(Word4 &a, Word4 &b, Word4 &c, Word4 &d) {
  Word4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  Word4 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  Word4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  Word4 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

/// Tells an observer, if there is one, of the places an instruction is about to
/// access. True when the wave goes on.
template <class Place>
inline bool observed(Wave &w, const MicroOp &op, MemoryAccess::Kind kind,
                     uint64_t mask, Place place, uint32_t bytes) {
  if (__builtin_expect(w.group->observer == nullptr, 1))
    return true;
  uint64_t at[kLaneStride];
  forEachLane(mask, [&](int l) { at[l] = reinterpret_cast<uint64_t>(place(l)); });
  return observeAccess(w, op, kind, mask, at, bytes);
}
inline MemoryAccess::Kind accessKind(const Row &row) {
  return row.flags & kAtomic  ? MemoryAccess::Atomic
         : row.flags & kStore ? MemoryAccess::Store
                              : MemoryAccess::Load;
}

/// Loads N words a lane into registers reg... place(l) is lane l's address.
template <int N, class Place>
inline void loadWords(Wave &w, unsigned reg, uint64_t mask, Place place) {
  uint32_t *d = w.vreg(reg);
  if constexpr (N == 4) {
    if (mask == w.fullMask) {
      for (int l = 0; l < w.lanes; l += 4) {
        Word4 r[4];
        for (int i = 0; i < 4; ++i)
          std::memcpy(&r[i], place(l + i), 16);
        transpose4(r[0], r[1], r[2], r[3]);
        for (int i = 0; i < 4; ++i)
          std::memcpy(d + i * kLaneStride + l, &r[i], 16);
      }
      return;
    }
  }
  auto one = [&](int l) {
    uint32_t x[N];
    std::memcpy(x, place(l), N * 4);
    for (int i = 0; i < N; ++i)
      d[i * kLaneStride + l] = x[i];
  };
  if (mask == w.fullMask)
    for (int l = 0; l < w.lanes; ++l)
      one(l);
  else
    forEachLane(mask, one);
}

template <int N, class Place>
inline void storeWords(Wave &w, unsigned reg, uint64_t mask, Place place) {
  const uint32_t *s = w.vreg(reg);
  if constexpr (N == 4) {
    if (mask == w.fullMask) {
      for (int l = 0; l < w.lanes; l += 4) {
        Word4 r[4];
        for (int i = 0; i < 4; ++i)
          std::memcpy(&r[i], s + i * kLaneStride + l, 16);
        transpose4(r[0], r[1], r[2], r[3]);
        for (int i = 0; i < 4; ++i)
          std::memcpy(place(l + i), &r[i], 16);
      }
      return;
    }
  }
  auto one = [&](int l) {
    uint32_t x[N];
    for (int i = 0; i < N; ++i)
      x[i] = s[i * kLaneStride + l];
    std::memcpy(place(l), x, N * 4);
  };
  if (mask == w.fullMask)
    for (int l = 0; l < w.lanes; ++l)
      one(l);
  else
    forEachLane(mask, one);
}

/// Whether all active lanes' accesses lie in allocations; fails the wave if not.
bool checkMemory(Wave &w, const MicroOp &op, const uint64_t *address,
                 uint64_t mask, uint32_t bytes);

/// Which elements of a buffer resource are in range. Offsets are those of the
/// instruction and of the lane; the scalar one moves the address alone.
struct BufferRange {
  uint64_t limit;   ///< of the offset of an element's end
  uint64_t records; ///< of the index; all where it is not looked at

  bool holds(uint64_t index, uint64_t end) const {
    return index < records && end <= limit;
  }
};
/// CDNA: "Range Checking" in the chapters on vector memory, where raw buffers
/// compare the offset and structured ones the index. RDNA: the table "Buffer
/// Out Of Bounds Selection", by word 3 of the resource \p r.
inline BufferRange bufferRange(const ChipInfo &chip, const uint32_t *r,
                               uint32_t stride, bool swizzle, bool idxen,
                               uint32_t soffset, uint32_t bytes) {
  constexpr uint64_t all = ~uint64_t(0) >> 1;
  const uint32_t records = r[2];
  if (!chip.bufferOobSelect) {
    if (idxen && stride != 0)
      return {swizzle ? uint64_t(stride) + bytes - 1 : all, records};
    return {records, all};
  }
  switch ((r[3] >> 28) & 3) {
  case 0:
    return {stride, records};
  case 1:
    return {all, records};
  case 2:
    return {all, records ? all : 0};
  default:
    if (swizzle && stride != 0)
      return {stride, records};
    return {records > soffset ? records - soffset : 0, all};
  }
}

/// Widens or places what a load of 1 or 2 bytes read, by the row's flags.
inline uint32_t extend(uint32_t x, uint32_t bytes, uint32_t flags, uint32_t old) {
  if (bytes == 1)
    x = flags & kSigned ? static_cast<uint32_t>(static_cast<int8_t>(x)) : x;
  else
    x = flags & kSigned ? static_cast<uint32_t>(static_cast<int16_t>(x)) : x;
  if (flags & kHigh)
    return (old & 0xffff) | x << 16;
  if (flags & kD16)
    return (old & 0xffff0000) | (x & 0xffff);
  return x;
}

/// What a D16 load keeps of the half that it does not write: with SRAM-ECC
/// nothing, since registers are written as a whole (LLVM's
/// d16PreservesUnusedBits).
inline uint32_t keptByD16(const Wave &w) {
  return w.group->chip->sramecc == Feature::On ? 0 : ~0u;
}

/// Loads by element size and count. `reg` is the first destination register.
template <class Place>
void loadAny(Wave &w, const Row &row, unsigned reg, uint64_t mask, Place place) {
  if (row.param == 4) {
    switch (row.count) {
    case 1: return loadWords<1>(w, reg, mask, place);
    case 2: return loadWords<2>(w, reg, mask, place);
    case 3: return loadWords<3>(w, reg, mask, place);
    default: return loadWords<4>(w, reg, mask, place);
    }
  }
  uint32_t *d = w.vreg(reg);
  const uint32_t kept = keptByD16(w);
  forEachLane(mask, [&](int l) {
    uint32_t x = 0;
    std::memcpy(&x, place(l), row.param);
    d[l] = extend(x, row.param, row.flags, d[l] & kept);
  });
}

template <class Place>
void storeAny(Wave &w, const Row &row, unsigned reg, uint64_t mask, Place place) {
  if (row.param == 4) {
    switch (row.count) {
    case 1: return storeWords<1>(w, reg, mask, place);
    case 2: return storeWords<2>(w, reg, mask, place);
    case 3: return storeWords<3>(w, reg, mask, place);
    default: return storeWords<4>(w, reg, mask, place);
    }
  }
  const uint32_t *s = w.vreg(reg);
  forEachLane(mask, [&](int l) {
    uint32_t x = row.flags & kHigh ? s[l] >> 16 : s[l];
    std::memcpy(place(l), &x, row.param);
  });
}

enum AtomicOp : uint32_t {
  kSwap, kCmpSwap, kAdd, kSub, kRsub, kSmin, kUmin, kSmax, kUmax, kAnd, kOr,
  kXor, kInc, kDec, kAddF, kMinF, kMaxF, kPkAddF16, kPkAddBf16, kMskor,
  kWrap, kCondXchg, kSubClamp, kCondSub, kCmpSwapF, kMinNumF, kMaxNumF,
};
constexpr bool isCompareSwap(uint32_t op) {
  return op == kCmpSwap || op == kCmpSwapF;
}

/// The new value of an atomic; \p c is the comparand or second operand.
template <class T>
T atomicResult(AtomicOp op, T old, T x, T c) {
  using S = std::make_signed_t<T>;
  using F = std::conditional_t<sizeof(T) == 8, double, float>;
  S so = static_cast<S>(old), sx = static_cast<S>(x);
  switch (op) {
  case kSwap: return x;
  case kCmpSwap: return old == c ? x : old;
  case kCmpSwapF: return bits<F>(old) == bits<F>(c) ? x : old;
  case kAdd: return old + x;
  case kSubClamp: return old < x ? 0 : old - x;
  case kCondSub: return old < x ? old : old - x;
  case kSub: return old - x;
  case kRsub: return x - old;
  case kSmin: return so < sx ? old : x;
  case kUmin: return old < x ? old : x;
  case kSmax: return so > sx ? old : x;
  case kUmax: return old > x ? old : x;
  case kAnd: return old & x;
  case kOr: return old | x;
  case kXor: return old ^ x;
  case kInc: return old >= x ? 0 : old + 1;
  case kDec: return old == 0 || old > x ? x : old - 1;
  case kAddF: return bits<T>(static_cast<F>(bits<F>(old) + bits<F>(x)));
  case kMinF: return bits<T>(fminNum(bits<F>(old), bits<F>(x)));
  case kMaxF: return bits<T>(fmaxNum(bits<F>(old), bits<F>(x)));
  case kMinNumF: return bits<T>(fminimumNumber(bits<F>(old), bits<F>(x)));
  case kMaxNumF: return bits<T>(fmaximumNumber(bits<F>(old), bits<F>(x)));
  case kMskor: return (old & ~x) | c;
  case kWrap: return old >= x ? old - x : old + c;
  case kCondXchg: { // words whose highest bit is set, without it
    uint64_t wide = x, r = old;
    for (int s = 0; s < static_cast<int>(8 * sizeof(T)); s += 32)
      if ((wide >> (s + 31)) & 1)
        r = (r & ~(uint64_t(0xffffffff) << s)) |
            (wide & (uint64_t(0x7fffffff) << s));
    return static_cast<T>(r);
  }
  case kPkAddF16:
  case kPkAddBf16: {
    uint32_t r = 0;
    for (int s = 0; s < 32; s += 16) {
      uint16_t p = static_cast<uint16_t>(old >> s), q = static_cast<uint16_t>(x >> s);
      if (op == kPkAddF16) {
        r |= static_cast<uint32_t>(floatToHalf(halfToFloat(p) + halfToFloat(q))) << s;
      } else {
        float sum = asF32(uint32_t(p) << 16) + asF32(uint32_t(q) << 16);
        uint32_t u = asU32(sum);
        u = isNan(sum) ? u | 0x400000 : u + 0x7fff + ((u >> 16) & 1);
        r |= (u >> 16) << s;
      }
    }
    return static_cast<T>(r);
  }
  }
  return old;
}

/// Which denormals a float atomic takes for zeros ("Denormals" in the chapters
/// on float atomics of the ISA documents).
struct AtomicFlush {
  bool in = false, out = false;
  bool picks = true; ///< minimum and maximum give what they found, not zeros
};
inline AtomicFlush atomicFlush(const Wave &w, const Row &row) {
  AtomicFlush flush;
  const bool lds = row.form == Form::Ds, wide = row.param == 8;
  const uint32_t traits = w.group->chip->traits;
  flush.picks = !(traits & kTraitAtomicsKeep);
  switch (row.count) {
  case kAddF:
    if (wide)
      break;
    // Memory: always, of what goes in.
    flush.in = lds ? !(w.mode & 0x10) : !(traits & kTraitAtomicsKeep);
    flush.out = lds && !(w.mode & 0x20);
    break;
  case kPkAddF16:
    flush.in = lds && !(w.mode & 0x40);
    flush.out = lds && !(w.mode & 0x80);
    break;
  case kMinF:
  case kMaxF:
  case kMinNumF:
  case kMaxNumF:
  case kCmpSwapF:
    flush.in = (lds || (traits & kTraitAtomicsFlush)) &&
               !(w.mode & (wide ? 0x40 : 0x10));
    break;
  default:
    break;
  }
  return flush;
}
template <class T>
T flushedBits(AtomicOp op, T x) {
  using F = std::conditional_t<sizeof(T) == 8, double, float>;
  if (op == kPkAddF16)
    return static_cast<T>(flushedHalves(static_cast<uint32_t>(x)));
  return bits<T>(flushed(bits<F>(x)));
}
template <class T>
T atomicFlushed(AtomicOp op, T old, T x, T c, AtomicFlush flush) {
  T a = flush.in ? flushedBits(op, old) : old;
  T b = flush.in ? flushedBits(op, x) : x;
  T r = atomicResult<T>(op, a, b, flush.in ? flushedBits(op, c) : c);
  if (flush.picks && (op == kMinF || op == kMaxF))
    return r == a ? old : r == b ? x : r;
  return flush.out ? flushedBits(op, r) : r;
}

template <class T>
T atomicApply(AtomicOp op, uint8_t *place, T x, T c, AtomicFlush flush = {}) {
  T *p = reinterpret_cast<T *>(place);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (true) {
    T fresh = flush.in || flush.out ? atomicFlushed<T>(op, old, x, c, flush)
                                    : atomicResult<T>(op, old, x, c);
    if (__atomic_compare_exchange_n(p, &old, fresh, true, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED))
      return old;
  }
}

/// Atomics on every active lane, in lane order. \p x and \p c: registers of the
/// operand and of the comparand. Writes the value before to \p d when asked.
/// False (with the lane) when a place is not aligned.
template <class Place>
bool atomicAny(Wave &w, const Row &row, uint64_t mask, Place place, unsigned x,
               unsigned c, unsigned d, bool returns, int &badLane) {
  auto kind = static_cast<AtomicOp>(row.count);
  const AtomicFlush flush = atomicFlush(w, row);
  bool ok = true;
  forEachLane(mask, [&](int l) {
    uint8_t *p = place(l);
    if (reinterpret_cast<uint64_t>(p) % row.param) {
      if (ok)
        badLane = l;
      ok = false;
      return;
    }
    if (!ok)
      return;
    if (row.param == 8) {
      uint64_t old = atomicApply<uint64_t>(kind, p, U64::load(w.vreg(x), l),
                                           U64::load(w.vreg(c), l), flush);
      if (returns)
        U64::store(w.vreg(d), l, old);
    } else {
      uint32_t old =
          atomicApply<uint32_t>(kind, p, w.vreg(x)[l], w.vreg(c)[l], flush);
      if (returns)
        w.vreg(d)[l] = old;
    }
  });
  return ok;
}

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_EXEC_ACCESS_H
