//===- ConvertRows.cpp - Conversions of small and scaled floats -----------===//
//
// v_cvt_*fp8, bf8 (gfx942 in FNUZ, gfx950 in OCP formats), gfx950's
// v_cvt_scalef32_*, and stochastic rounding. op_sel picks the byte or the word
// of a packed register; the other bytes of a destination stay. The scale is the
// exponent of a float: conversions from small formats multiply by it, those to
// small formats divide. Sources: CDNA3 and CDNA4 ISA documents; which bit of
// op_sel is which, from LLVM's code for the intrinsics.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "fovea/Simulator/Chip.h"
#include "isa/MiniFloat.h"

#include <deque>
#include <string>

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// Source types: how many are in a word, and their values.
struct SrcF32 {
  static constexpr const char *name = "f32";
  static constexpr int perWord = 1;
  static double get(const uint32_t *p, int l, int e) {
    return static_cast<double>(asF32(p[e * kLaneStride + l]));
  }
  static uint32_t make(double x, bool) { return asU32(static_cast<float>(x)); }
};
struct SrcF16 {
  static constexpr const char *name = "f16";
  static constexpr int perWord = 2;
  static double get(const uint32_t *p, int l, int e) {
    return static_cast<double>(halfToFloat(static_cast<uint16_t>(
        p[e / 2 * kLaneStride + l] >> (16 * (e & 1)))));
  }
  static uint32_t make(double x, bool limit) {
    uint32_t half = floatToHalf(forHalf(x));
    bool over = (half & 0x7fff) == 0x7c00 &&
                std::fabs(x) <= std::numeric_limits<double>::max();
    return limit && over ? half - 1 : half;
  }
};
struct SrcBf16 {
  static constexpr const char *name = "bf16";
  static constexpr int perWord = 2;
  static double get(const uint32_t *p, int l, int e) {
    uint32_t word = p[e / 2 * kLaneStride + l];
    return static_cast<double>(asF32(e & 1 ? word & 0xffff0000 : word << 16));
  }
  // Exact products of powers of two: rounding to fp32 first changes nothing.
  static uint32_t make(double x, bool) {
    return floatToBf16(static_cast<float>(x));
  }
};

/// The lanes of source \p i with neg and abs, which only fp32 sources have.
const uint32_t *source(Wave &w, const MicroOp &op, int i) {
  const uint32_t *p = lanesOf(w, op.s[i], i);
  const Operand &o = op.s[i];
  if (!o.neg && !o.abs)
    return p;
  uint32_t *t = w.buffer[i];
  for (unsigned l = 0; l < kLaneStride; ++l) {
    uint32_t x = o.abs ? p[l] & 0x7fffffff : p[l];
    t[l] = o.neg ? x ^ 0x80000000 : x;
  }
  return t;
}

/// 2^(exponent of \p scale), exactly; NaN for the highest exponent.
double scaleOf(uint32_t scale) {
  int exponent = static_cast<int>((scale >> 23) & 0xff);
  return exponent == 255 ? std::numeric_limits<double>::quiet_NaN()
                         : std::ldexp(1.0, exponent - 127);
}

bool sel(const MicroOp &op, int bit) { return (op.aux >> bit) & 1; }
/// The byte that two bits of op_sel name.
unsigned byteAt(const MicroOp &op, int bit) { return (op.aux >> bit) & 3; }

/// Writes \p width bits at \p shift of the destination, keeping the others.
void insert(Wave &w, const MicroOp &op, const uint32_t *x, unsigned shift,
            unsigned width) {
  uint32_t field = ((1u << width) - 1) << shift;
  uint32_t *r = w.buffer[4];
  const uint32_t *old = w.vreg(op.d.reg);
  for (int l = 0; l < w.lanes; ++l)
    r[l] = (old[l] & ~field) | ((x[l] << shift) & field);
  storeLanes(w, op.d.reg, r, 1, w.exec());
}

//===-- Without scale -----------------------------------------------------===//

/// v_cvt_pk_fp8_f32: two numbers into a word.
template <class M>
void packTwo(Wave &w, const MicroOp &op) {
  const uint32_t *a = source(w, op, 0), *b = source(w, op, 1);
  uint32_t r[kLaneStride];
  for (int l = 0; l < w.lanes; ++l)
    r[l] =
        M::encode(static_cast<double>(asF32(a[l])), w.limitsOverflow(),
                  nullptr) |
        M::encode(static_cast<double>(asF32(b[l])), w.limitsOverflow(), nullptr)
            << 8;
  insert(w, op, r, sel(op, 2) ? 16 : 0, 16);
}
/// v_cvt_sr_fp8_f32: one number, stochastically rounded, into a byte.
template <class M>
void stochasticOne(Wave &w, const MicroOp &op) {
  const uint32_t *a = source(w, op, 0), *seed = source(w, op, 1);
  uint32_t r[kLaneStride];
  for (int l = 0; l < w.lanes; ++l)
    r[l] = M::encode(static_cast<double>(asF32(a[l])), w.limitsOverflow(),
                     &seed[l]);
  insert(w, op, r, 8 * byteAt(op, 2), 8);
}
/// v_cvt_sr_bf16_f32, v_cvt_sr_f16_f32: the bits below the result, plus as many
/// of the random ones, carry.
template <int KEPT>
void stochasticHalf(Wave &w, const MicroOp &op) {
  using M = MiniFloat<15 - KEPT, KEPT, KEPT == 10 ? 15 : 127, Special::Ieee>;
  const uint32_t *a = source(w, op, 0), *seed = source(w, op, 1);
  uint32_t r[kLaneStride];
  for (int l = 0; l < w.lanes; ++l) {
    double x = static_cast<double>(asF32(a[l]));
    bool infinite = std::fabs(x) > 3.5e38;
    if (infinite)
      r[l] = M::infinity | (x < 0 ? M::signBit : 0);
    else if (KEPT == 7 && std::fabs(x) >= 1e30)
      // Beyond what MiniFloat::encode takes: the same on scaled numbers.
      r[l] = M::encode(x * 0x1p-64, w.limitsOverflow(), &seed[l]) + (64u << 7);
    else
      r[l] = M::encode(x, w.limitsOverflow(), &seed[l]);
  }
  insert(w, op, r, sel(op, 2) ? 16 : 0, 16);
}

//===-- To small formats, scaled ------------------------------------------===//

/// Two fp32 in two operands, or two halves in one, into COUNT elements' bits.
template <class M, class S>
void scaledPair(Wave &w, const MicroOp &op) {
  constexpr bool two = S::perWord == 1;
  const uint32_t *a = source(w, op, 0);
  const uint32_t *b = two ? source(w, op, 1) : a;
  const uint32_t *scale = source(w, op, two ? 2 : 1);
  uint32_t r[kLaneStride];
  for (int l = 0; l < w.lanes; ++l) {
    double s = scaleOf(scale[l]);
    r[l] = M::encode(S::get(a, l, 0) / s, w.limitsOverflow(), nullptr) |
           M::encode(S::get(b, l, two ? 0 : 1) / s, w.limitsOverflow(), nullptr)
               << M::width;
  }
  if (M::width == 4)
    insert(w, op, r, 8 * byteAt(op, 2), 8);
  else
    insert(w, op, r, sel(op, two ? 3 : 2) ? 16 : 0, 16);
}
/// One number (COUNT 1) or two, stochastically rounded, into a byte. Each has a
/// random number of its own, which follows from the one before.
template <class M, class S, int COUNT>
void scaledStochastic(Wave &w, const MicroOp &op) {
  const uint32_t *a = source(w, op, 0), *seed = source(w, op, 1);
  const uint32_t *scale = source(w, op, 2);
  uint32_t r[kLaneStride];
  for (int l = 0; l < w.lanes; ++l) {
    double s = scaleOf(scale[l]);
    r[l] = 0;
    uint32_t random = seed[l];
    for (int e = 0; e < COUNT; ++e, random = nextRandom(random))
      r[l] |= M::encode(S::get(a, l, e) / s, w.limitsOverflow(), &random)
              << (e * M::width);
  }
  insert(w, op, r, 8 * byteAt(op, 2), 8);
}
/// 32 numbers into six words: from one operand, or (INTERLEAVED) in turns from
/// two of 16 fp32.
template <class M, class S, bool STOCHASTIC, bool INTERLEAVED>
void scaled32(Wave &w, const MicroOp &op) {
  const uint32_t *a = w.vreg(op.s[0].reg);
  const uint32_t *b = INTERLEAVED ? w.vreg(op.s[1].reg) : a;
  const uint32_t *seed = STOCHASTIC ? source(w, op, 1) : nullptr;
  const uint32_t *scale = source(w, op, STOCHASTIC || INTERLEAVED ? 2 : 1);
  alignas(64) uint32_t r[6 * kLaneStride] = {};
  for (int l = 0; l < w.lanes; ++l) {
    double s = scaleOf(scale[l]);
    uint32_t random = STOCHASTIC ? seed[l] : 0;
    for (int e = 0; e < 32; ++e, random = nextRandom(random)) {
      double x = INTERLEAVED ? S::get(e & 1 ? b : a, l, e / 2) : S::get(a, l, e);
      uint64_t code =
          M::encode(x / s, w.limitsOverflow(), STOCHASTIC ? &random : nullptr);
      int bit = 6 * e;
      code <<= bit % 32;
      r[bit / 32 * kLaneStride + l] |= static_cast<uint32_t>(code);
      if (bit % 32 > 26)
        r[(bit / 32 + 1) * kLaneStride + l] |= static_cast<uint32_t>(code >> 32);
    }
  }
  storeLanes(w, op.d.reg, r, 6, w.exec());
}

//===-- From small formats, scaled ----------------------------------------===//

/// One byte to fp32, or to a half that op_sel places.
template <class M, class S>
void unscaleOne(Wave &w, const MicroOp &op) {
  const uint32_t *a = source(w, op, 0), *scale = source(w, op, 1);
  uint32_t r[kLaneStride];
  for (int l = 0; l < w.lanes; ++l)
    r[l] = S::make(static_cast<double>(M::decode(a[l] >> (8 * byteAt(op, 0)))) *
                       scaleOf(scale[l]),
                   w.limitsOverflow());
  if (S::perWord == 2)
    insert(w, op, r, sel(op, 2) ? 16 : 0, 16);
  else
    storeLanes(w, op.d.reg, r, 1, w.exec());
}
/// A word of fp8 or a byte of fp4 to two numbers.
template <class M, class S>
void unscalePair(Wave &w, const MicroOp &op) {
  const uint32_t *a = source(w, op, 0), *scale = source(w, op, 1);
  unsigned shift = M::width == 4 ? 8 * byteAt(op, 0) : sel(op, 0) ? 16 : 0;
  alignas(64) uint32_t r[2 * kLaneStride] = {};
  for (int l = 0; l < w.lanes; ++l)
    for (int e = 0; e < 2; ++e) {
      uint32_t x = S::make(static_cast<double>(M::decode(
                               a[l] >> (shift + unsigned(e) * M::width))) *
                               scaleOf(scale[l]),
                           w.limitsOverflow());
      if (S::perWord == 1)
        r[e * static_cast<int>(kLaneStride) + l] = x;
      else
        r[l] |= x << (16 * e);
    }
  storeLanes(w, op.d.reg, r, S::perWord == 1 ? 2 : 1, w.exec());
}
template <class M, class S>
void unscale32(Wave &w, const MicroOp &op) {
  const uint32_t *a = w.vreg(op.s[0].reg), *scale = source(w, op, 1);
  alignas(64) uint32_t r[32 * kLaneStride] = {};
  for (int l = 0; l < w.lanes; ++l)
    for (int e = 0; e < 32; ++e) {
      int bit = 6 * e;
      uint64_t both = a[bit / 32 * static_cast<int>(kLaneStride) + l];
      if (bit % 32 > 26)
        both |= uint64_t(a[(bit / 32 + 1) * static_cast<int>(kLaneStride) + l])
                << 32;
      uint32_t x = S::make(static_cast<double>(M::decode(
                               static_cast<uint32_t>(both >> (bit % 32)))) *
                               scaleOf(scale[l]),
                           w.limitsOverflow());
      r[e / S::perWord * static_cast<int>(kLaneStride) + l] |=
          x << (16 * (e % S::perWord));
    }
  storeLanes(w, op.d.reg, r, 32 / S::perWord, w.exec());
}

//===-- Plain lane functions ----------------------------------------------===//

template <class M>
struct FromByte {
  static inline float f(uint32_t a) { return M::decode(a); }
};
template <class M>
struct FromWord {
  static inline uint64_t f(uint32_t a) {
    return asU32(M::decode(a)) | uint64_t(asU32(M::decode(a >> 8))) << 32;
  }
};
struct FromBf16 {
  static inline float f(uint32_t a) { return asF32(a << 16); }
};
struct ToBf16Pair {
  static inline uint32_t f(float a, float b) {
    return floatToBf16(a) | floatToBf16(b) << 16;
  }
};
struct ToHalfPair {
  static inline uint32_t f(float a, float b) {
    return floatToHalf(a) | static_cast<uint32_t>(floatToHalf(b)) << 16;
  }
};

Row plainRow(const char *name, LoopFn loop, Ty d, Ty a, Ty b, uint32_t traits) {
  Row row = valueRow(name, InstClass::Valu, Form::Vector, execVector, d, a, b);
  row.loop = loop;
  row.traits = traits;
  return row;
}

/// Makes rows and keeps their names, which live as long as the program.
struct Adder {
  std::vector<Row> &rows;
  uint32_t flags = 0; ///< of the rows
  void operator()(const std::string &name, Handler handler, Ty d, Ty a, Ty b,
                  Ty c, uint32_t traits = 0) {
    static std::deque<std::string> names;
    names.push_back(name);
    rows.push_back(valueRow(names.back(), InstClass::Valu, Form::Convert,
                            handler, d, a, b, c));
    rows.back().traits = traits;
    rows.back().flags = flags;
  }
};

constexpr Ty N = Ty::None, W = Ty::B32, F = Ty::F32;
/// The type of 1, 2 or 32 elements in an operand. PH: constants are halves.
template <class S>
constexpr Ty one() {
  return S::perWord == 1 ? F : Ty::PH;
}
template <class S>
constexpr Ty pair() {
  return S::perWord == 1 ? Ty::B64 : Ty::PH;
}
template <class S>
constexpr Ty all() {
  return S::perWord == 1 ? Ty::W32 : Ty::W16;
}

template <class M>
void addUnscaled(std::vector<Row> &rows, const char *pack, const char *random,
                 const char *fromByte, const char *fromWord, uint32_t traits) {
  Adder add{rows};
  add(pack, packTwo<M>, W, F, F, N, traits);
  add(random, stochasticOne<M>, W, F, W, N, traits);
  rows.push_back(plainRow(fromByte, laneLoop<FromByte<M>, F32, U32>, F, Ty::U32,
                          N, traits));
  rows.push_back(plainRow(fromWord, laneLoop<FromWord<M>, B64, U32>, Ty::B64,
                          Ty::U32, N, traits));
}

/// Rows of an 8-bit format and one type of number.
template <class M, class S>
void addScaled8(Adder &add, const std::string &m) {
  const std::string prefix = "v_cvt_scalef32_", s = S::name;
  add(prefix + "pk_" + m + "_" + s, scaledPair<M, S>, W, one<S>(),
      S::perWord == 1 ? F : F, S::perWord == 1 ? F : N);
  add(prefix + "sr_" + m + "_" + s, scaledStochastic<M, S, 1>, W, one<S>(), W, F);
  add(prefix + "pk_" + s + "_" + m, unscalePair<M, S>, pair<S>(), W, F, N);
  if (s != "bf16")
    add(prefix + s + "_" + m, unscaleOne<M, S>, W, W, F, N);
}
template <class S>
void addScaled4(Adder &add) {
  const std::string prefix = "v_cvt_scalef32_", s = S::name;
  add(prefix + "pk_fp4_" + s, scaledPair<Fp4, S>, W, one<S>(), F,
      S::perWord == 1 ? F : N);
  add(prefix + "sr_pk_fp4_" + s, scaledStochastic<Fp4, S, 2>, W, pair<S>(), W, F);
  add(prefix + "pk_" + s + "_fp4", unscalePair<Fp4, S>, pair<S>(), W, F, N);
}
template <class M, class S>
void addScaled6(Adder &add, const std::string &m) {
  const std::string prefix = "v_cvt_scalef32_", s = S::name;
  if (S::perWord == 1)
    add(prefix + "2xpk16_" + m + "_" + s, scaled32<M, S, false, true>, Ty::W6,
        Ty::W16, Ty::W16, F);
  else
    add(prefix + "pk32_" + m + "_" + s, scaled32<M, S, false, false>, Ty::W6,
        all<S>(), F, N);
  add(prefix + "sr_pk32_" + m + "_" + s, scaled32<M, S, true, false>, Ty::W6,
      all<S>(), W, F);
  add(prefix + "pk32_" + s + "_" + m, unscale32<M, S>, all<S>(), Ty::W6, F, N);
}
template <class S>
void addScaled(Adder add) {
  add.flags = std::is_same_v<S, SrcBf16> ? kBrain : 0;
  addScaled8<Fp8Ocp, S>(add, "fp8");
  addScaled8<Bf8Ocp, S>(add, "bf8");
  addScaled4<S>(add);
  addScaled6<Fp6, S>(add, "fp6");
  addScaled6<Bf6, S>(add, "bf6");
}

} // namespace

void addConvertRows(std::vector<Row> &rows) {
  addUnscaled<Fp8Fnuz>(rows, "v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32",
                       "v_cvt_f32_fp8", "v_cvt_pk_f32_fp8", 0);
  addUnscaled<Bf8Fnuz>(rows, "v_cvt_pk_bf8_f32", "v_cvt_sr_bf8_f32",
                       "v_cvt_f32_bf8", "v_cvt_pk_f32_bf8", 0);
  addUnscaled<Fp8Ocp>(rows, "v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32",
                      "v_cvt_f32_fp8", "v_cvt_pk_f32_fp8", kTraitOcpFloat8);
  addUnscaled<Bf8Ocp>(rows, "v_cvt_pk_bf8_f32", "v_cvt_sr_bf8_f32",
                      "v_cvt_f32_bf8", "v_cvt_pk_f32_bf8", kTraitOcpFloat8);
  Adder add{rows};
  add("v_cvt_sr_bf16_f32", stochasticHalf<7>, W, F, W, N);
  add("v_cvt_sr_f16_f32", stochasticHalf<10>, W, F, W, N);
  rows.push_back(plainRow("v_cvt_f32_bf16", laneLoop<FromBf16, F32, U32>, F,
                          Ty::U16, N, 0));
  rows.back().flags = kBrain;
  rows.push_back(plainRow("v_cvt_pk_bf16_f32",
                          laneLoop<ToBf16Pair, U32, F32, F32>, Ty::U32, F, F, 0));
  rows.push_back(plainRow("v_cvt_pk_f16_f32",
                          laneLoop<ToHalfPair, U32, F32, F32>, Ty::PH, F, F,
                          0));
  addScaled<SrcF32>(add);
  addScaled<SrcF16>(add);
  addScaled<SrcBf16>(add);
}

} // namespace fovea::sim::FOVEA_VARIANT
