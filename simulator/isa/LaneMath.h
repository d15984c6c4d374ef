//===- LaneMath.h - Arithmetic that C++ has no operator for -----*- C++ -*-===//
//
// Pure functions on the values of one lane, written without branches where the
// compiler has to vectorise them. Semantics: AMD's "CDNA3 Instruction Set
// Architecture" reference, chapter on instructions. The hardware's
// transcendentals are accurate to 1 ulp; here they are rounded correctly but
// for rare cases, and flush fp32 denormals as the hardware does.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_ISA_LANEMATH_H
#define FOVEA_SIMULATOR_ISA_LANEMATH_H

#include "isa/LaneTypes.h"

#include <cmath>
#include <limits>

namespace fovea::sim::FOVEA_VARIANT {

inline float asF32(uint32_t x) { return bits<float>(x); }
inline uint32_t asU32(float x) { return bits<uint32_t>(x); }
inline double asF64(uint64_t x) { return bits<double>(x); }
inline uint64_t asU64(double x) { return bits<uint64_t>(x); }

inline bool isNan(float x) { return (asU32(x) & 0x7fffffff) > 0x7f800000; }
inline bool isNan(double x) {
  return (asU64(x) << 1) > (uint64_t(0x7ff) << 53);
}
inline float quiet(float x) { return asF32(asU32(x) | 0x00400000); }
inline double quiet(double x) { return asF64(asU64(x) | (uint64_t(1) << 51)); }

/// Order of bit patterns in which -0 is below +0.
inline int32_t orderKey(float x) {
  int32_t i = static_cast<int32_t>(asU32(x));
  return i ^ static_cast<int32_t>(static_cast<uint32_t>(i >> 31) >> 1);
}
inline int64_t orderKey(double x) {
  int64_t i = static_cast<int64_t>(asU64(x));
  return i ^ static_cast<int64_t>(static_cast<uint64_t>(i >> 63) >> 1);
}

inline bool isSignalling(float x) { return isNan(x) && !(asU32(x) & 0x00400000); }
inline bool isSignalling(double x) {
  return isNan(x) && !(asU64(x) & (uint64_t(1) << 51));
}

/// IEEE 754-2008 maxNum and minNum: a quiet NaN gives way to a number, a
/// signalling one becomes the result, quietened (MODE.IEEE is set for compute).
template <class T>
inline T pickNumber(T a, T b, T r) {
  r = isNan(a) ? b : r;
  r = isNan(b) ? a : r;
  r = isSignalling(b) ? b : r;
  r = isSignalling(a) ? a : r;
  return isNan(r) ? quiet(r) : r;
}
template <class T>
inline T fmaxNum(T a, T b) {
  return pickNumber(a, b, orderKey(a) > orderKey(b) ? a : b);
}
template <class T>
inline T fminNum(T a, T b) {
  return pickNumber(a, b, orderKey(a) < orderKey(b) ? a : b);
}
/// IEEE 754-2019 maximumNumber and minimumNumber: any NaN gives way to a
/// number.
template <class T>
inline T pickAnyNumber(T a, T b, T r) {
  r = isNan(a) ? b : r;
  r = isNan(b) ? a : r;
  return isNan(r) ? quiet(r) : r;
}
template <class T>
inline T fmaximumNumber(T a, T b) {
  return pickAnyNumber(a, b, orderKey(a) > orderKey(b) ? a : b);
}
template <class T>
inline T fminimumNumber(T a, T b) {
  return pickAnyNumber(a, b, orderKey(a) < orderKey(b) ? a : b);
}
template <class T>
inline T med3Number(T a, T b, T c) {
  T lowest = fminimumNumber(fminimumNumber(a, b), c);
  T hi = fmaximumNumber(a, b), lo = fminimumNumber(a, b);
  T r = fmaximumNumber(lo, fminimumNumber(hi, c));
  return isNan(a) || isNan(b) || isNan(c) ? lowest : r;
}
/// IEEE 754-2019 maximum and minimum: a NaN of either side is the result.
template <class T>
inline T fmaximum(T a, T b) {
  T r = orderKey(a) > orderKey(b) ? a : b;
  r = isNan(b) ? quiet(b) : r;
  return isNan(a) ? quiet(a) : r;
}
template <class T>
inline T fminimum(T a, T b) {
  T r = orderKey(a) < orderKey(b) ? a : b;
  r = isNan(b) ? quiet(b) : r;
  return isNan(a) ? quiet(a) : r;
}
template <class T>
inline T med3f(T a, T b, T c) {
  T nanned = fminNum(fminNum(a, b), c);
  T hi = fmaxNum(a, b), lo = fminNum(a, b);
  T r = fmaxNum(lo, fminNum(hi, c));
  return isNan(a) || isNan(b) || isNan(c) ? nanned : r;
}
template <class T>
inline T imax(T a, T b) { return a > b ? a : b; }
template <class T>
inline T imin(T a, T b) { return a < b ? a : b; }
template <class T>
inline T imed3(T a, T b, T c) {
  return imax(imin(a, b), imin(imax(a, b), c));
}

inline float flushed(float x) {
  uint32_t u = asU32(x);
  return (u & 0x7f800000) == 0 ? asF32(u & 0x80000000) : x;
}

inline double flushed(double x) {
  uint64_t u = asU64(x), sign = uint64_t(1) << 63;
  return (u >> 52 & 0x7ff) == 0 ? asF64(u & sign) : x;
}
/// Both halves of a word with denormals of fp16 made zeros.
inline uint32_t flushedHalves(uint32_t x) {
  uint32_t keep = (x & 0x7c00 ? 0xffffu : 0x8000u) |
                  (x & 0x7c000000 ? 0xffff0000u : 0x80000000u);
  return x & keep;
}

/// a * b + c rounded once to fp16: the sum is made odd in double when it is
/// inexact, so that the roundings to float and to half do not add up.
inline float roundToOdd(double sum, double error) {
  uint64_t u = asU64(sum);
  bool inexact = error != 0 && (u & 1) == 0;
  // Away from or towards zero by one, to the odd neighbour on the error's side.
  bool grow = (error > 0) == (sum > 0);
  u = inexact ? (grow ? u + 1 : u - 1) : u;
  // Now to float, again to odd: truncate, and keep a trace of what was cut.
  double odd = asF64(u);
  uint32_t f = asU32(static_cast<float>(odd));
  double back = static_cast<double>(asF32(f));
  bool cut = back != odd && odd == odd;
  bool over = std::fabs(back) > std::fabs(odd);
  uint32_t truncated = over ? f - 1 : f;
  return asF32(cut ? truncated | 1 : f);
}
inline float fmaHalf(float a, float b, float c) {
  double p = static_cast<double>(a) * b; // exact: 22 bits
  double s = p + c;
  double t = s - p;
  double error = (p - (s - t)) + (c - t);
  bool finite = std::fabs(s) < 1e300 && s != 0;
  return finite ? roundToOdd(s, error) : static_cast<float>(s);
}
/// A double to the fp32 whose rounding to fp16 is the rounding of the double.
inline float forHalf(double x) { return roundToOdd(x, 0); }

inline float fma32(float a, float b, float c) { return std::fma(a, b, c); }
inline double fma64(double a, double b, double c) { return std::fma(a, b, c); }

//===-- Transcendentals ---------------------------------------------------===//

/// 2^x in double for |x| <= 1100: a polynomial on [-1/2, 1/2] with an error of
/// about 2^-42, then scaling by exponent bits.
inline double exp2Double(double x) {
  double n = std::nearbyint(x);
  double f = (x - n) * 0.69314718055994530942;
  // Taylor series of e^f; |f| <= 0.3466, the first term left out is 2^-49.
  double p = 1.0 / 39916800;
  p = p * f + 1.0 / 3628800;
  p = p * f + 1.0 / 362880;
  p = p * f + 1.0 / 40320;
  p = p * f + 1.0 / 5040;
  p = p * f + 1.0 / 720;
  p = p * f + 1.0 / 120;
  p = p * f + 1.0 / 24;
  p = p * f + 1.0 / 6;
  p = p * f + 0.5;
  p = p * f + 1.0;
  p = p * f + 1.0;
  int64_t e = static_cast<int64_t>(static_cast<int32_t>(n)) + 1023;
  return p * asF64(static_cast<uint64_t>(e) << 52);
}
inline float exp2Lane(float x) {
  float y = flushed(x);
  // Beyond these bounds the result is 0 or infinity anyway.
  float clamped = y < -200.0f ? -200.0f : y;
  clamped = clamped > 200.0f ? 200.0f : clamped;
  clamped = isNan(x) ? 0.0f : clamped;
  float r = flushed(static_cast<float>(exp2Double(clamped)));
  return isNan(x) ? quiet(x) : r;
}

/// log2 of a positive normal number: exponent, and the series of atanh on a
/// mantissa in [sqrt(1/2), sqrt(2)).
inline double log2Double(double x) {
  uint64_t u = asU64(x);
  // Subtracting the bits of sqrt(1/2) puts the cut between exponents there.
  uint64_t shifted = u - 0x3fe6a09e667f3bcdu;
  int32_t e = static_cast<int32_t>(static_cast<int64_t>(shifted) >> 52);
  double m = asF64(u - (static_cast<uint64_t>(static_cast<int64_t>(e)) << 52));
  double z = (m - 1) / (m + 1);
  double w = z * z;
  double p = 1.0 / 19;
  p = p * w + 1.0 / 17;
  p = p * w + 1.0 / 15;
  p = p * w + 1.0 / 13;
  p = p * w + 1.0 / 11;
  p = p * w + 1.0 / 9;
  p = p * w + 1.0 / 7;
  p = p * w + 1.0 / 5;
  p = p * w + 1.0 / 3;
  p = p * w + 1.0;
  return e + 2.8853900817779268147 * z * p;
}
inline float log2Lane(float x) {
  float y = flushed(x);
  bool normal = y > 0 && y <= std::numeric_limits<float>::max();
  float r = static_cast<float>(log2Double(normal ? y : 1.0f));
  r = y == 0 ? -std::numeric_limits<float>::infinity() : r;
  r = y < 0 ? asF32(0x7fc00000) : r;
  r = y > std::numeric_limits<float>::max() ? y : r;
  return isNan(x) ? quiet(x) : r;
}
inline float rcpLane(float x) { return flushed(1.0f / flushed(x)); }
inline float sqrtLane(float x) {
  float y = flushed(x);
  float r = std::sqrt(y < 0 ? 0.0f : y);
  r = y < 0 ? asF32(0x7fc00000) : r;
  return isNan(x) ? quiet(x) : (y == 0 ? y : r);
}
inline float rsqLane(float x) {
  float y = flushed(x);
  double root = std::sqrt(static_cast<double>(y < 0 ? 1.0f : y));
  float r = static_cast<float>(1.0 / root);
  r = y < 0 ? asF32(0x7fc00000) : r;
  r = y == 0 ? std::copysign(std::numeric_limits<float>::infinity(), y) : r;
  return isNan(x) ? quiet(x) : r;
}
/// sin and cos of a number of revolutions.
inline float sinLane(float x) {
  if (!(std::fabs(x) <= std::numeric_limits<float>::max()))
    return asF32(0x7fc00000);
  double r = static_cast<double>(x);
  r -= std::nearbyint(r);
  return static_cast<float>(std::sin(6.28318530717958647692 * r));
}
inline float cosLane(float x) {
  if (!(std::fabs(x) <= std::numeric_limits<float>::max()))
    return asF32(0x7fc00000);
  double r = static_cast<double>(x);
  r -= std::nearbyint(r);
  return static_cast<float>(std::cos(6.28318530717958647692 * r));
}

//===-- Conversions -------------------------------------------------------===//

/// To an integer: truncated, NaN to 0, out of range to the nearest bound.
inline int32_t toI32(double x) {
  double y = x != x ? 0.0 : x;
  y = y < -2147483648.0 ? -2147483648.0 : y;
  y = y > 2147483647.0 ? 2147483647.0 : y;
  return static_cast<int32_t>(y);
}
inline uint32_t toU32(double x) {
  double y = x > 0 ? x : 0.0;
  y = y > 4294967295.0 ? 4294967295.0 : y;
  return static_cast<uint32_t>(static_cast<int64_t>(y));
}
inline int16_t toI16(float x) {
  float y = isNan(x) ? 0.0f : x;
  y = y < -32768.0f ? -32768.0f : y;
  y = y > 32767.0f ? 32767.0f : y;
  return static_cast<int16_t>(static_cast<int32_t>(y));
}
inline uint16_t toU16(float x) {
  float y = x > 0 ? x : 0.0f;
  y = y > 65535.0f ? 65535.0f : y;
  return static_cast<uint16_t>(static_cast<int32_t>(y));
}
/// fp32 to fp16 towards zero.
inline uint32_t halfRtz(float x) {
  uint32_t h = floatToHalf(x);
  float back = halfToFloat(static_cast<uint16_t>(h));
  uint32_t mag = asU32(x) & 0x7fffffff, backMag = asU32(back) & 0x7fffffff;
  bool over = backMag > mag && mag <= 0x7f800000;
  return over ? h - 1 : h;
}
inline uint32_t pkHalfRtz(float a, float b) {
  return halfRtz(a) | halfRtz(b) << 16;
}
/// fp32 to a normalised 16-bit integer.
inline uint32_t normI16(float x) {
  float y = isNan(x) ? 0.0f : x;
  y = y < -1.0f ? -1.0f : y;
  y = y > 1.0f ? 1.0f : y;
  return static_cast<uint16_t>(
      static_cast<int32_t>(std::nearbyint(y * 32767.0f)));
}
inline uint32_t normU16(float x) {
  float y = x > 0 ? x : 0.0f;
  y = y > 1.0f ? 1.0f : y;
  return static_cast<uint16_t>(
      static_cast<int32_t>(std::nearbyint(y * 65535.0f)));
}
inline uint32_t clampTo(uint32_t x, uint32_t limit) {
  return x > limit ? limit : x;
}

inline int32_t sext24(int32_t x) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8;
}

/// Eight bytes of {s0, s1}, picked and replaced by the selector's rules.
inline uint32_t permByte(uint64_t data, uint32_t sel) {
  uint32_t byte = static_cast<uint32_t>(data >> (8 * (sel & 7))) & 0xff;
  uint32_t signShift = sel == 8 ? 15 : sel == 9 ? 31 : sel == 10 ? 47 : 63;
  uint32_t sign = (data >> signShift) & 1 ? 0xff : 0;
  uint32_t r = sel < 8 ? byte : sel < 12 ? sign : sel == 12 ? 0 : 0xff;
  return r;
}
inline uint32_t perm(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t data = uint64_t(a) << 32 | b;
  return permByte(data, c & 0xff) | permByte(data, (c >> 8) & 0xff) << 8 |
         permByte(data, (c >> 16) & 0xff) << 16 |
         permByte(data, c >> 24) << 24;
}

/// Bit 64 of the sum of two signed numbers of 64 bits.
inline uint32_t carryOfSigned(uint64_t a, uint64_t b) {
  uint64_t carry = a + b < a;
  return static_cast<uint32_t>((a >> 63) ^ (b >> 63) ^ carry);
}
/// v_prng_b32: the next pseudo-random number.
inline uint32_t nextRandom(uint32_t x) {
  return (x << 1) ^ (x >> 31 ? 0xc5u : 0u);
}
inline uint32_t bitReverse(uint32_t x) {
  x = (x & 0x55555555) << 1 | ((x >> 1) & 0x55555555);
  x = (x & 0x33333333) << 2 | ((x >> 2) & 0x33333333);
  x = (x & 0x0f0f0f0f) << 4 | ((x >> 4) & 0x0f0f0f0f);
  return __builtin_bswap32(x);
}
inline uint32_t popcount(uint32_t x) {
  x = x - ((x >> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >> 2) & 0x33333333);
  return (((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101) >> 24;
}
inline uint32_t leadingZeros(uint32_t x) {
  return x ? static_cast<uint32_t>(__builtin_clz(x)) : 0xffffffff;
}
inline uint32_t signBits(int32_t x) {
  uint32_t y = static_cast<uint32_t>(x < 0 ? ~x : x);
  return y ? static_cast<uint32_t>(__builtin_clz(y)) : 0xffffffff;
}
inline uint32_t trailingZeros(uint32_t x) {
  return x ? static_cast<uint32_t>(__builtin_ctz(x)) : 0xffffffff;
}
inline uint32_t bfe(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t offset = b & 31, width = c & 31;
  return (a >> offset) & ((1u << width) - 1);
}
inline int32_t bfeSigned(int32_t a, uint32_t b, uint32_t c) {
  uint32_t offset = b & 31, width = c & 31;
  uint32_t x = static_cast<uint32_t>(a >> offset) & ((1u << width) - 1);
  uint32_t sign = width ? 1u << (width - 1) : 0;
  return static_cast<int32_t>((x ^ sign) - sign);
}
inline uint32_t bfm(uint32_t a, uint32_t b) {
  return ((1u << (a & 31)) - 1) << (b & 31);
}
inline uint32_t sadU8(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8) {
    int x = static_cast<int>((a >> i) & 0xff), y = static_cast<int>((b >> i) & 0xff);
    c += static_cast<uint32_t>(x > y ? x - y : y - x);
  }
  return c;
}
/// As sadU8, but bytes of b that are 0 do not count.
inline uint32_t msadU8(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8) {
    int x = static_cast<int>((a >> i) & 0xff), y = static_cast<int>((b >> i) & 0xff);
    c += y == 0 ? 0 : static_cast<uint32_t>(x > y ? x - y : y - x);
  }
  return c;
}
inline uint32_t sadU16(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 16) {
    int x = static_cast<int>((a >> i) & 0xffff), y = static_cast<int>((b >> i) & 0xffff);
    c += static_cast<uint32_t>(x > y ? x - y : y - x);
  }
  return c;
}

//===-- Scaling and parts of floats ---------------------------------------===//

inline float ldexp32(float x, int32_t e) {
  int n = e < -400 ? -400 : e > 400 ? 400 : e;
  // The product is exact in double; one rounding remains.
  double scale = asF64(static_cast<uint64_t>(n + 1023) << 52);
  return static_cast<float>(static_cast<double>(x) * scale);
}
inline double ldexp64(double x, int32_t e) {
  return std::ldexp(x, e < -5000 ? -5000 : e > 5000 ? 5000 : e);
}
inline float frexpMant(float x) {
  if (!(std::fabs(x) <= std::numeric_limits<float>::max()))
    return isNan(x) ? quiet(x) : x;
  int e;
  return std::frexp(x, &e);
}
inline double frexpMant(double x) {
  if (!(std::fabs(x) <= std::numeric_limits<double>::max()))
    return isNan(x) ? quiet(x) : x;
  int e;
  return std::frexp(x, &e);
}
template <class T>
inline int32_t frexpExp(T x) {
  if (!(std::fabs(x) <= std::numeric_limits<T>::max()) || x == 0)
    return 0;
  int e;
  (void)std::frexp(x, &e);
  return e;
}
template <class T>
inline T fractNum(T x) {
  // Below one, as the hardware has it: the largest number under 1 at most.
  T r = x - std::floor(x);
  T limit = sizeof(T) == 4 ? T(0x1.fffffep-1) : T(0x1.fffffffffffffp-1);
  return r < limit || r != r ? r : limit;
}
inline float fractHalf(float x) {
  float r = x - std::floor(x);
  return r < 0x1.ffcp-1f || isNan(r) ? r : 0x1.ffcp-1f;
}

/// Bits of v_cmp_class: sNaN, qNaN, -inf, -normal, -denormal, -0, +0,
/// +denormal, +normal, +inf.
inline uint32_t classBits(uint64_t raw, int expBits, int mantBits) {
  uint64_t mant = raw & ((uint64_t(1) << mantBits) - 1);
  uint32_t exp = static_cast<uint32_t>(raw >> mantBits) & ((1u << expBits) - 1);
  bool neg = (raw >> (expBits + mantBits)) & 1;
  uint32_t top = (1u << expBits) - 1;
  if (exp == top && mant)
    return (mant >> (mantBits - 1)) & 1 ? 2 : 1;
  if (exp == top)
    return neg ? 4 : 512;
  if (exp)
    return neg ? 8 : 256;
  if (mant)
    return neg ? 16 : 128;
  return neg ? 32 : 64;
}

//===-- Division helpers --------------------------------------------------===//

template <class T>
struct FloatBits;
template <>
struct FloatBits<float> {
  static constexpr int mant = 23, expTop = 255, bias = 127;
  static int exponent(float x) { return (asU32(x) >> 23) & 0xff; }
  static constexpr int far = 96, scaleUp = 64, small = 23;
};
template <>
struct FloatBits<double> {
  static constexpr int mant = 52, expTop = 2047, bias = 1023;
  static int exponent(double x) {
    return static_cast<int>(asU64(x) >> 52) & 0x7ff;
  }
  static constexpr int far = 768, scaleUp = 128, small = 53;
};
inline float scaleBy(float x, int e) { return std::ldexp(x, e); }
inline double scaleBy(double x, int e) { return std::ldexp(x, e); }

/// v_div_scale: a is the operand to scale (numerator c or denominator b); the
/// flag says that v_div_fmas must scale the quotient back.
template <class T>
inline T divScale(T a, T b, T c, uint32_t &flag) {
  using B = FloatBits<T>;
  T r = a;
  bool denormB = b != 0 && B::exponent(b) == 0;
  flag = 0;
  if (c == 0 || b == 0) {
    r = std::numeric_limits<T>::quiet_NaN();
  } else if (B::exponent(c) - B::exponent(b) >= B::far) {
    flag = 1; // the quotient would overflow
    if (a == b)
      r = scaleBy(a, B::scaleUp);
  } else if (denormB) {
    r = scaleBy(a, B::scaleUp);
  } else {
    T inverse = T(1) / b, quotient = c / b;
    bool denormInverse = B::exponent(inverse) == 0;
    bool denormQuotient = B::exponent(quotient) == 0;
    if (denormInverse && denormQuotient) {
      // The documents print a positive exponent here. It would overflow every
      // denominator that comes this way; scaled down, 1 / FLT_MAX is right.
      flag = 1;
      if (a == b)
        r = scaleBy(a, -B::scaleUp);
    } else if (denormInverse) {
      r = scaleBy(a, -B::scaleUp);
    } else if (denormQuotient) {
      flag = 1;
      if (a == c)
        r = scaleBy(a, B::scaleUp);
    } else if (B::exponent(c) <= B::small) {
      r = scaleBy(a, B::scaleUp);
    }
  }
  return r;
}
#if defined(__SIZEOF_FLOAT128__)
using Wide = __float128;
#else
using Wide = long double;
#endif
/// v_div_fmas: a * b + c, and where the flag is set scaled by 2^64 (2^128 for
/// fp64) up or down, as the exponent of c says. Scaled and rounded once: a
/// denormal quotient is correctly rounded.
template <class T>
inline T divFmas(T a, T b, T c, uint32_t vcc) {
  T r = std::fma(a, b, c);
  if (!vcc || !(std::fabs(r) <= std::numeric_limits<T>::max()))
    return r;
  constexpr int by = sizeof(T) == 4 ? 64 : 128;
  int e = FloatBits<T>::exponent(c) > FloatBits<T>::bias ? by : -by;
  Wide exact = static_cast<Wide>(a) * b + c;
  return static_cast<T>(exact * static_cast<Wide>(std::ldexp(1.0, e)));
}
/// v_div_fixup: the quotient a of c / b, with the special cases put right.
template <class T>
inline T divFixup(T a, T b, T c) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  bool negative = std::signbit(b) != std::signbit(c);
  if (isNan(c))
    return quiet(c);
  if (isNan(b))
    return quiet(b);
  bool bInf = std::fabs(b) == inf, cInf = std::fabs(c) == inf;
  if ((b == 0 && c == 0) || (bInf && cInf))
    return -std::numeric_limits<T>::quiet_NaN();
  if (b == 0 || cInf)
    return negative ? -inf : inf;
  if (bInf || c == 0)
    return negative ? T(-0.0) : T(0.0);
  int eb = FloatBits<T>::exponent(b), ec = FloatBits<T>::exponent(c);
  constexpr int bias = FloatBits<T>::bias;
  if (ec - eb < -(bias + FloatBits<T>::mant))
    return negative ? T(-0.0) : T(0.0);
  if (ec - eb > bias + 1)
    return negative ? -inf : inf;
  // A quotient that overflowed on its way.
  T mag = isNan(a) ? inf : std::fabs(a);
  return negative ? -mag : mag;
}

//===-- Cube maps, reduction of large angles, sums of differences ---------===//

/// The axis along which (x, y, z) is longest: 2 is z, 1 is y, 0 is x.
inline int cubeAxis(float x, float y, float z) {
  float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  return az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
}
inline float cubeFace(float x, float y, float z) {
  int axis = cubeAxis(x, y, z);
  float along = axis == 2 ? z : axis == 1 ? y : x;
  return static_cast<float>(2 * axis + (along < 0 ? 1 : 0));
}
inline float cubeMajor(float x, float y, float z) {
  int axis = cubeAxis(x, y, z);
  return 2.0f * (axis == 2 ? z : axis == 1 ? y : x);
}
inline float cubeS(float x, float y, float z) {
  int axis = cubeAxis(x, y, z);
  float front = z < 0 ? -x : x, side = x < 0 ? z : -z;
  return axis == 2 ? front : axis == 1 ? x : side;
}
inline float cubeT(float x, float y, float z) {
  float top = y < 0 ? -z : z;
  return cubeAxis(x, y, z) == 1 ? top : -y;
}

/// v_trig_preop: 53 bits of 2 / pi, from bit 53 * segment on (later for large
/// x), scaled to their place.
inline double trigPreop(double x, uint32_t segment) {
  static const uint64_t kTwoOverPi[19] = {
      0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
      0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu,
      0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u,
      0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu,
      0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
      0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u,
      0x56033046fc7b6babu};
  int exponent = static_cast<int>(asU64(x) >> 52) & 0x7ff;
  int shift = static_cast<int>(segment & 31) * 53;
  if (exponent > 1077)
    shift += exponent - 1077;
  uint64_t bits = 0;
  for (int i = 0; i < 53; ++i) {
    int at = shift + i;
    uint64_t bit = at <= 1200 ? (kTwoOverPi[at / 64] >> (63 - at % 64)) & 1 : 0;
    bits = bits << 1 | bit;
  }
  int scale = -53 - shift;
  if (exponent >= 1968)
    scale += 128;
  return std::ldexp(static_cast<double>(bits), scale);
}

/// Four sums of absolute differences of four bytes, at four places of \p a,
/// added to the 16-bit elements of \p c; mqsad leaves out bytes of b that are 0.
inline uint64_t qsadOf(uint64_t a, uint32_t b, uint64_t c, bool masked) {
  uint64_t r = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t part = static_cast<uint32_t>(a >> (8 * i));
    uint32_t old = static_cast<uint32_t>(c >> (16 * i)) & 0xffff;
    uint32_t sum = masked ? msadU8(part, b, old) : sadU8(part, b, old);
    r |= uint64_t(sum & 0xffff) << (16 * i);
  }
  return r;
}
inline uint64_t qsad(uint64_t a, uint32_t b, uint64_t c) {
  return qsadOf(a, b, c, false);
}
inline uint64_t mqsad(uint64_t a, uint32_t b, uint64_t c) {
  return qsadOf(a, b, c, true);
}
inline uint32_t clampWide(uint64_t x) {
  return x > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(x);
}
inline int64_t wideI16(uint32_t a, uint32_t b) {
  return int64_t(static_cast<int16_t>(a)) * static_cast<int16_t>(b) +
         int64_t(static_cast<int32_t>(a) >> 16) * (static_cast<int32_t>(b) >> 16);
}

//===-- Dot products ------------------------------------------------------===//

inline float dot2(uint32_t a, uint32_t b, float c) {
  float lo = halfToFloat(static_cast<uint16_t>(a)) *
             halfToFloat(static_cast<uint16_t>(b));
  float hi = halfToFloat(static_cast<uint16_t>(a >> 16)) *
             halfToFloat(static_cast<uint16_t>(b >> 16));
  return lo + hi + c;
}
inline float brainToFloat(uint32_t x) { return asF32(x << 16); }
/// fp32 to bf16, to nearest even.
inline uint16_t floatToBrain(float x) {
  uint32_t u = asU32(x);
  u = isNan(x) ? u | 0x400000 : u + 0x7fff + ((u >> 16) & 1);
  return static_cast<uint16_t>(u >> 16);
}
inline float dot2Brain(uint32_t a, uint32_t b, float c) {
  float lo = brainToFloat(a & 0xffff) * brainToFloat(b & 0xffff);
  float hi = brainToFloat(a >> 16) * brainToFloat(b >> 16);
  return lo + hi + c;
}
/// A pair of bf16 with denormals made zeros.
inline uint32_t flushedBrains(uint32_t x) {
  uint32_t keep = (x & 0x7f80 ? 0xffffu : 0x8000u) |
                  (x & 0x7f800000 ? 0xffff0000u : 0x80000000u);
  return x & keep;
}
/// v_dot2_bf16_bf16: without denormals, in any mode.
inline uint16_t dot2Brain16(uint32_t a, uint32_t b, uint16_t c) {
  float sum =
      dot2Brain(flushedBrains(a), flushedBrains(b), flushed(brainToFloat(c)));
  return static_cast<uint16_t>(flushedBrains(floatToBrain(sum)));
}
/// The lighting product of DirectX 9: v_mullit_f32.
inline float mulLit(float a, float b, float c) {
  constexpr float lowest = -std::numeric_limits<float>::max();
  bool dark = !(b > lowest) || !(c > 0);
  float product = a == 0 || b == 0 ? 0.0f : a * b;
  return dark ? lowest : product;
}
inline uint32_t dotI16(uint32_t a, uint32_t b, uint32_t c) {
  return static_cast<uint32_t>(static_cast<int16_t>(a) * static_cast<int16_t>(b)) +
         static_cast<uint32_t>((static_cast<int32_t>(a) >> 16) *
                               (static_cast<int32_t>(b) >> 16)) +
         c;
}
inline uint32_t dotI8(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8)
    c += static_cast<uint32_t>(static_cast<int8_t>(a >> i) *
                               static_cast<int8_t>(b >> i));
  return c;
}
inline uint32_t dotU8(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8)
    c += ((a >> i) & 0xff) * ((b >> i) & 0xff);
  return c;
}
inline uint32_t dotI4(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 4)
    c += static_cast<uint32_t>((static_cast<int32_t>(a << (28 - i)) >> 28) *
                               (static_cast<int32_t>(b << (28 - i)) >> 28));
  return c;
}
inline uint32_t dotU4(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 4)
    c += ((a >> i) & 15) * ((b >> i) & 15);
  return c;
}

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_ISA_LANEMATH_H
