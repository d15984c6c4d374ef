//===- Engine.cpp - Vector ALU instructions -------------------------------===//
//
// Fetches sources, applies modifiers once around the row's lane loop, and
// writes results under EXEC. The fast handlers are for instructions without
// modifiers in the default float mode; the slow ones do everything else.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "fovea/Simulator/Chip.h"
#include "isa/LaneMath.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace fovea::sim::FOVEA_VARIANT {

namespace {

constexpr unsigned kResult = 4, kSecond = 5; ///< buffers of results

//===-- Sources -----------------------------------------------------------===//

/// Lane that lane \p l reads under DPP control \p aux (kind << 8 | n), or -1.
int dppSource(uint32_t aux, int l, int lanes) {
  if (aux & kDpp8)
    return (l & ~7) | static_cast<int>((aux >> (3 * (l & 7))) & 7);
  int kind = static_cast<int>(aux >> 8), n = static_cast<int>(aux & 0xff);
  int row = l & ~15, in = l & 15;
  switch (kind) {
  case 0: // quad_perm
    return (l & ~3) | ((n >> (2 * (l & 3))) & 3);
  case 1: // row_shl
    return in + n < 16 ? l + n : -1;
  case 2: // row_shr
    return in - n >= 0 ? l - n : -1;
  case 3: // row_ror
    return row | ((in - n) & 15);
  case 4: // wave_shl
    return l + 1 < lanes ? l + 1 : -1;
  case 5: // wave_rol
    return (l + 1) & (lanes - 1);
  case 6: // wave_shr
    return l - 1;
  case 7: // wave_ror
    return (l - 1) & (lanes - 1);
  case 8: // row_mirror
    return row | (15 - in);
  case 9: // row_half_mirror
    return (l & ~7) | (7 - (l & 7));
  case 10: // row_bcast:15
    return l >= 16 ? row - 1 : -1;
  case 11: // row_bcast:31
    return l >= 32 ? 31 : -1;
  case 12: // row_newbcast:n, row_share:n
    return row | n;
  case 13: // row_xmask:n
    return l ^ n;
  default:
    return -1;
  }
}

/// Permutes \p words words of source 0; removes from \p mask the lanes that DPP
/// does not write.
void applyDpp(const Wave &w, const MicroOp &op, uint32_t *to,
              const uint32_t *from, unsigned words, uint64_t &mask) {
  uint64_t exec = w.exec(), write = 0;
  for (int l = 0; l < w.lanes; ++l) {
    int source = dppSource(op.aux, l, w.lanes);
    bool valid = source >= 0 && (((exec >> source) & 1) ||
                                 (op.flags & kFetchInactive));
    for (unsigned k = 0; k < words; ++k)
      to[k * kLaneStride + l] = valid ? from[k * kLaneStride + source] : 0;
    bool enabled =
        ((op.rowMask >> (l >> 4)) & 1) && ((op.bankMask >> ((l >> 2) & 3)) & 1);
    if (enabled && (valid || (op.flags & kBoundCtrl)))
      write |= uint64_t(1) << l;
  }
  mask &= write;
}

uint32_t sdwaPick(uint32_t x, unsigned sel, bool sext) {
  if (sel <= 3) {
    uint32_t b = (x >> (8 * sel)) & 0xff;
    return sext ? static_cast<uint32_t>(static_cast<int8_t>(b)) : b;
  }
  if (sel <= 5) {
    uint32_t h = (x >> (16 * (sel - 4))) & 0xffff;
    return sext ? static_cast<uint32_t>(static_cast<int16_t>(h)) : h;
  }
  return x;
}

bool is16(Ty ty) { return ty == Ty::F16 || ty == Ty::U16 || ty == Ty::I16; }
/// Types to which op_sel means something of its own.
bool isPacked(Ty ty) {
  return ty == Ty::PH || ty == Ty::P16 || ty == Ty::MixF || ty == Ty::Mask;
}

/// The lanes of source \p i with all its modifiers applied.
const uint32_t *prepare(Wave &w, const MicroOp &op, int i, uint64_t &mask) {
  const Operand &o = op.s[i];
  Ty ty = op.row->s[i];
  if (ty == Ty::None)
    return w.buffer[i];
  const uint32_t *p = lanesOf(w, o, i);
  uint32_t *t = w.buffer[i];
  unsigned words = wordsOf(ty);
  auto own = [&] { // a copy that may be changed
    if (p != t) {
      for (unsigned k = 0; k < words; ++k)
        copyLanes(t + k * kLaneStride, p + k * kLaneStride, w.lanes);
      p = t;
    }
  };
  if (i == 0 && (op.flags & kDpp)) {
    alignas(64) uint32_t moved[2 * kLaneStride];
    applyDpp(w, op, moved, p, words, mask);
    for (unsigned k = 0; k < words; ++k)
      copyLanes(t + k * kLaneStride, moved + k * kLaneStride, w.lanes);
    p = t;
  }
  if ((op.flags & kSdwa) && (o.sdwa != 6 || o.sext)) {
    own();
    for (int l = 0; l < w.lanes; ++l)
      t[l] = sdwaPick(t[l], o.sdwa, o.sext);
  }
  if (o.selLo && words == 1 && !isPacked(ty)) {
    own();
    for (int l = 0; l < w.lanes; ++l)
      t[l] >>= 16;
  }
  if ((ty == Ty::PH || ty == Ty::P16) &&
      (o.selLo || !o.selHi || o.negLo || o.negHi)) {
    own();
    uint32_t flip = (o.negLo ? 0x8000u : 0) | (o.negHi ? 0x80000000u : 0);
    for (int l = 0; l < w.lanes; ++l) {
      uint32_t x = t[l];
      uint32_t lo = o.selLo ? x >> 16 : x & 0xffff;
      uint32_t hi = o.selHi ? x >> 16 : x & 0xffff;
      t[l] = (lo | hi << 16) ^ (ty == Ty::PH || isFloat(op.row->d) ? flip : 0);
    }
  }
  if (ty == Ty::MixF && o.selHi) { // a half
    own();
    for (int l = 0; l < w.lanes; ++l)
      t[l] = bits<uint32_t>(
          halfToFloat(static_cast<uint16_t>(o.selLo ? t[l] >> 16 : t[l])));
  }
  if (o.abs || o.neg) {
    own();
    unsigned word = ty == Ty::F64 ? kLaneStride : 0;
    uint32_t sign = ty == Ty::F16 ? 0x8000u : 0x80000000u;
    for (int l = 0; l < w.lanes; ++l) {
      uint32_t x = t[word + l];
      if (o.abs)
        x &= ~sign;
      if (o.neg)
        x ^= sign;
      t[word + l] = x;
    }
  }
  bool flush32 = !(w.mode & 0x10) && (ty == Ty::F32 || ty == Ty::MixF);
  bool flush16 = !(w.mode & 0x40) && (ty == Ty::F16 || ty == Ty::PH);
  if (flush32 && !(op.row->flags & kRaw)) {
    own();
    for (int l = 0; l < w.lanes; ++l)
      t[l] = (t[l] & 0x7f800000) ? t[l] : t[l] & 0x80000000;
  }
  if (!(w.mode & 0x40) && ty == Ty::F64) {
    own();
    for (int l = 0; l < w.lanes; ++l)
      F64::store(t, l, flushed(F64::load(t, l)));
  }
  if (flush16 && !(op.row->flags & kRaw)) {
    own();
    for (int l = 0; l < w.lanes; ++l) {
      if (!(t[l] & 0x7c00))
        t[l] &= ~0x3ffu;
      if (ty == Ty::PH && !(t[l] & 0x7c000000))
        t[l] &= ~0x3ff0000u;
    }
  }
  return p;
}

//===-- Results -----------------------------------------------------------===//

float omodScale(unsigned omod) {
  return omod == 1 ? 2.0f : omod == 2 ? 4.0f : 0.5f;
}
/// The output modifier that counts: none where results keep denormals, or MODE
/// asks for IEEE's rules.
unsigned omodOf(const Wave &w, const MicroOp &op) {
  uint32_t keeps = op.row->d == Ty::F32 ? 0x20 : 0x80;
  bool ieee = w.group->chip->modeHasIeee && (w.mode & 0x200);
  return (w.mode & keeps) || ieee ? 0 : op.omod;
}
/// \p x times what an output modifier stands for; it makes no -0.
template <class T>
T modified(T x, unsigned omod) {
  T scaled = x * static_cast<T>(omodScale(omod));
  return scaled == 0 ? T(0) : scaled;
}
/// To [0, 1]; NaN becomes 0 where MODE.DX10_CLAMP says so.
template <class T>
T clampUnit(const Wave &w, T x) {
  if (x != x && !(w.mode & 0x100))
    return x;
  return x > 0 ? (x < 1 ? x : T(1)) : T(0);
}

/// Output modifiers and flushing, in place.
void finish(const Wave &w, const MicroOp &op, uint32_t *r) {
  Ty ty = op.row->d;
  bool clamp = op.flags & kClamp;
  const unsigned omod = op.omod ? omodOf(w, op) : 0;
  if (ty == Ty::F32 || ty == Ty::PF) {
    unsigned words = wordsOf(ty);
    for (unsigned k = 0; k < words * kLaneStride; ++k) {
      float x = bits<float>(r[k]);
      if (omod)
        x = modified(x, omod);
      if (clamp)
        x = clampUnit(w, x);
      if (!(w.mode & 0x20))
        x = flushed(x);
      r[k] = bits<uint32_t>(x);
    }
  } else if (ty == Ty::F64 && (omod || clamp || !(w.mode & 0x80))) {
    for (int l = 0; l < w.lanes; ++l) {
      double x = F64::load(r, l);
      if (omod)
        x = modified(x, omod);
      if (clamp)
        x = clampUnit(w, x);
      if (!(w.mode & 0x80))
        x = flushed(x);
      F64::store(r, l, x);
    }
  } else if (ty == Ty::F16 || ty == Ty::PH) {
    for (int l = 0; l < w.lanes; ++l) {
      uint32_t out = 0;
      for (int half = 0; half < (ty == Ty::PH ? 2 : 1); ++half) {
        uint16_t raw = static_cast<uint16_t>(r[l] >> (16 * half));
        float x = halfToFloat(raw);
        if (omod)
          x = modified(x, omod);
        if (clamp)
          x = clampUnit(w, x);
        raw = omod || clamp ? floatToHalf(x) : raw;
        if (!(w.mode & 0x80) && !(raw & 0x7c00))
          raw &= 0x8000;
        out |= static_cast<uint32_t>(raw) << (16 * half);
      }
      r[l] = out;
    }
  }
}

/// Whether a source of type \p ty holds an infinity for one \p half of a
/// result.
bool isInfinite(Ty ty, uint32_t x, int half, bool packedResult) {
  switch (ty) {
  case Ty::F16:
    return (x & 0x7fff) == 0x7c00;
  case Ty::PH: {
    bool low = (x & 0x7fff) == 0x7c00, high = (x & 0x7fff0000) == 0x7c000000;
    return packedResult ? (half ? high : low) : low || high;
  }
  case Ty::F32:
  case Ty::MixF:
    return (x & 0x7fffffff) == 0x7f800000;
  default:
    return false;
  }
}
/// MODE.FP16_OVFL: the largest number for infinities in fp16 that come neither
/// of infinite sources nor of a division by zero.
void limitOverflow(const Wave &w, const Row &row, uint32_t *r,
                   const uint32_t *const (&s)[3]) {
  bool packed = row.d == Ty::PH;
  // v_div_fixup: the second source is the denominator.
  int divisor = row.cls == InstClass::Trans                   ? 0
                : row.mnemonic.substr(0, 11) == "v_div_fixup" ? 1
                                                              : -1;
  for (int l = 0; l < w.lanes; ++l)
    for (int half = 0; half < (packed ? 2 : 1); ++half) {
      if (((r[l] >> (16 * half)) & 0x7fff) != 0x7c00)
        continue;
      bool exact = false;
      for (int i = 0; i < 3 && row.s[i] != Ty::None; ++i) {
        // v_cvt_pk_f16_f32 has a source for each half.
        if (packed && row.s[i] == Ty::F32 && i != half)
          continue;
        exact |= isInfinite(row.s[i], s[i][l], half, packed) ||
                 (i == divisor && !(s[i][l] & 0x7fff));
      }
      if (!exact)
        r[l] -= 1u << (16 * half);
    }
}

/// Writes one word a lane where SDWA or op_sel ask for a part of the register.
void storePart(Wave &w, const MicroOp &op, uint32_t *r, uint64_t mask) {
  uint32_t *d = w.vreg(op.d.reg);
  bool half = is16(op.row->d) || (op.flags & (kDstHigh | kDstLow));
  for (int l = 0; l < w.lanes; ++l) {
    uint32_t x = r[l], old = d[l];
    if ((op.flags & kSdwa) && op.dstSel == 6) {
      r[l] = x; // the whole word
    } else if (op.flags & kSdwa) {
      uint32_t width = op.dstSel <= 3 ? 8 : 16;
      uint32_t shift = op.dstSel <= 3 ? 8u * op.dstSel : 16u * (op.dstSel - 4u);
      uint32_t field = ((1u << width) - 1) << shift;
      if (op.flags & kPreserve) {
        r[l] = (old & ~field) | ((x << shift) & field);
      } else {
        uint32_t part = x & ((1u << width) - 1);
        if (op.flags & kDstSext)
          part = static_cast<uint32_t>(static_cast<int32_t>(part << (32 - width)) >>
                                       (32 - width));
        r[l] = part << shift;
      }
    } else if (half && ((op.flags & kDstHigh) || (op.row->flags & kHigh))) {
      r[l] = (old & 0xffff) | x << 16;
    } else if (half &&
               ((op.flags & kDstLow) || (op.row->flags & kKeepHigh))) {
      r[l] = (old & 0xffff0000) | (x & 0xffff);
    }
  }
  storeLanes(w, op.d.reg, r, 1, mask);
}

/// The host's rounding mode while a lane loop runs.
class Rounding {
public:
  Rounding(const Wave &w, const Row &row) {
#if defined(__SSE2__)
    Ty ty = row.d;
    unsigned mode = ty == Ty::F32 || ty == Ty::PF || ty == Ty::MixF
                        ? w.mode & 3
                        : (w.mode >> 2) & 3;
    if (!mode || (row.flags & kNearest))
      return;
    static const unsigned kCsr[] = {_MM_ROUND_NEAREST, _MM_ROUND_UP,
                                    _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
    saved = _mm_getcsr();
    _mm_setcsr((saved & ~_MM_ROUND_MASK) | kCsr[mode]);
    changed = true;
#endif
  }
  ~Rounding() {
#if defined(__SSE2__)
    if (changed)
      _mm_setcsr(saved);
#endif
  }

private:
  unsigned saved = 0;
  bool changed = false;
};

} // namespace

//===-- Handlers ----------------------------------------------------------===//

void execVector(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  if ((__builtin_expect(w.slowFloat, 0) && usesFloats(row)) ||
      (row.flags & kDual))
    return execVectorSlow(w, op);
  const uint32_t *a = lanesOf(w, op.s[0], 0);
  const uint32_t *b = lanesOf(w, op.s[1], 1);
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  uint64_t exec = w.exec();
  if (exec == w.fullMask && !(row.flags & kCarryOut)) {
    op.loop(w.vreg(op.d.reg), nullptr, a, b, c, w.lanes);
    return;
  }
  uint32_t *r = w.buffer[kResult];
  op.loop(r, w.buffer[kSecond], a, b, c, w.lanes);
  storeLanes(w, op.d.reg, r, op.d.words, exec);
  if (row.flags & kCarryOut)
    storeMaskResult(w, op.sd, packMask(w.buffer[kSecond], w.lanes) & exec);
}

void execVectorSlow(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  uint64_t mask = w.exec();
  uint32_t *r = w.buffer[kResult];
  if (row.flags & kDual) {
    // A word of each result from the words that op_sel picks.
    const uint32_t *p[3];
    for (int i = 0; i < 3; ++i)
      p[i] = lanesOf(w, op.s[i], i);
    for (int k = 0; k < 2; ++k) {
      const uint32_t *q[3];
      alignas(64) uint32_t changed[3][kLaneStride];
      for (int i = 0; i < 3; ++i) {
        const Operand &o = op.s[i];
        q[i] = p[i] + ((k ? o.selHi : o.selLo) ? kLaneStride : 0);
        if (k ? o.negHi : o.negLo) {
          for (unsigned l = 0; l < kLaneStride; ++l)
            changed[i][l] = q[i][l] ^ 0x80000000u;
          q[i] = changed[i];
        }
        if (!(w.mode & 0x10)) {
          for (unsigned l = 0; l < kLaneStride; ++l)
            changed[i][l] = asU32(flushed(asF32(q[i][l])));
          q[i] = changed[i];
        }
      }
      Rounding rounding(w, row);
      op.loop(r + k * kLaneStride, nullptr, q[0], q[1], q[2], w.lanes);
    }
    if ((op.flags & kClamp) || !(w.mode & 0x20))
      finish(w, op, r);
    storeLanes(w, op.d.reg, r, 2, mask);
    return;
  }
  const uint32_t *a = prepare(w, op, 0, mask);
  const uint32_t *b = prepare(w, op, 1, mask);
  const uint32_t *c = prepare(w, op, 2, mask);
  {
    Rounding rounding(w, row);
    op.loop(r, w.buffer[kSecond], a, b, c, w.lanes);
  }
  if (op.omod || (op.flags & kClamp) || w.slowFloat)
    finish(w, op, r);
  if (__builtin_expect(w.limitsOverflow(), 0) &&
      (row.d == Ty::F16 || row.d == Ty::PH))
    limitOverflow(w, row, r, {a, b, c});
  if (op.d.words == 1 && ((op.flags & (kSdwa | kDstHigh | kDstLow)) ||
                          (row.flags & (kKeepHigh | kHigh))))
    storePart(w, op, r, mask);
  else
    storeLanes(w, op.d.reg, r, op.d.words, mask);
  if (row.flags & kCarryOut)
    storeMaskResult(w, op.sd, packMask(w.buffer[kSecond], w.lanes) & mask);
}

namespace {
void finishCompare(Wave &w, const MicroOp &op, uint64_t mask) {
  uint64_t result = packMask(w.buffer[kResult], w.lanes) & mask;
  storeMaskResult(w, op.sd, result);
  if (op.flags & kCmpx)
    w.setExec(result);
}
} // namespace

void execCompare(Wave &w, const MicroOp &op) {
  if (__builtin_expect(w.slowFloat, 0) && usesFloats(*op.row))
    return execCompareSlow(w, op);
  op.loop(w.buffer[kResult], nullptr, lanesOf(w, op.s[0], 0),
          lanesOf(w, op.s[1], 1), nullptr, w.lanes);
  finishCompare(w, op, w.exec());
}

void execCompareSlow(Wave &w, const MicroOp &op) {
  uint64_t mask = w.exec();
  const uint32_t *a = prepare(w, op, 0, mask);
  const uint32_t *b = prepare(w, op, 1, mask);
  op.loop(w.buffer[kResult], nullptr, a, b, nullptr, w.lanes);
  finishCompare(w, op, mask);
}

void execDual(Wave &w, const MicroOp &op) {
  // Both read before either writes: the decoder has given the first half the
  // spare register as destination where the second reads what it writes.
  const MicroOp &first = op.halves[0], &second = op.halves[1];
  first.fn.load(std::memory_order_relaxed)(w, first);
  second.fn.load(std::memory_order_relaxed)(w, second);
  if (first.d.reg == kSpareReg)
    storeLanes(w, op.d.reg, w.vreg(kSpareReg), 1, w.exec());
}

} // namespace fovea::sim::FOVEA_VARIANT
