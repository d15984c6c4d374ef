//===- MiniFloat.h - Floats of 4, 6 and 8 bits ------------------*- C++ -*-===//
//
// Decoding and encoding of the small formats. FNUZ formats (gfx942): one bias
// more than IEEE's, no infinities, no -0, whose pattern is NaN. OCP formats
// (gfx950): "OCP 8-bit Floating Point Specification" and "OCP Microscaling
// Formats (MX) Specification", 1.0. Rounding is to nearest even, or stochastic:
// the bits that are cut off plus random ones carry.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_ISA_MINIFLOAT_H
#define FOVEA_SIMULATOR_ISA_MINIFLOAT_H

#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

/// What patterns mean that are no finite numbers.
enum class Special {
  None, ///< there are none
  Fnuz, ///< NaN takes the place of -0
  Fn,   ///< all bits set: NaN; no infinities
  Ieee, ///< infinities and NaN share the highest exponent
};

template <int EXP, int MANT, int BIAS, Special SPECIAL>
struct MiniFloat {
  static constexpr int width = 1 + EXP + MANT;
  static constexpr uint32_t signBit = 1u << (EXP + MANT);
  static constexpr uint32_t magnitude = signBit - 1;
  static constexpr uint32_t infinity = ((1u << EXP) - 1) << MANT; ///< Ieee
  static constexpr uint32_t maxFinite = SPECIAL == Special::Ieee ? infinity - 1
                                        : SPECIAL == Special::Fn ? magnitude - 1
                                                                 : magnitude;

  /// The value of the low bits of \p raw; exact in fp32.
  static float decode(uint32_t raw) {
    uint32_t bits = raw & magnitude;
    bool negative = raw & signBit;
    if (SPECIAL == Special::Fnuz && negative && !bits)
      return std::numeric_limits<float>::quiet_NaN();
    if (SPECIAL == Special::Ieee && bits >= infinity) {
      float x = bits == infinity ? std::numeric_limits<float>::infinity()
                                 : std::numeric_limits<float>::quiet_NaN();
      return negative ? -x : x;
    }
    if (SPECIAL == Special::Fn && bits == magnitude)
      return std::numeric_limits<float>::quiet_NaN();
    int exponent = static_cast<int>(bits >> MANT);
    uint32_t mantissa = bits & ((1u << MANT) - 1);
    if (exponent)
      mantissa |= 1u << MANT;
    else
      exponent = 1;
    float x = std::ldexp(static_cast<float>(mantissa), exponent - BIAS - MANT);
    return negative ? -x : x;
  }

  /// \p x rounded. \p saturate: what is too large becomes the largest number
  /// instead of NaN or infinity. \p random: 32 bits for stochastic rounding, or
  /// null for rounding to nearest even.
  static uint32_t encode(double x, bool saturate, const uint32_t *random) {
    uint32_t sign = std::signbit(x) ? signBit : 0;
    if (x != x) {
      if (SPECIAL == Special::Fnuz)
        return signBit;
      return SPECIAL == Special::None ? sign | maxFinite : sign | magnitude;
    }
    double size = std::fabs(x);
    uint32_t code = maxFinite + 1;
    if (size < 1e30) {
      int exponent = 1 - BIAS;
      if (size > 0)
        exponent = std::max(exponent, std::ilogb(size));
      double units = std::ldexp(size, MANT - exponent);
      units = random ? std::floor(units + *random * 0x1p-32)
                     : std::nearbyint(units);
      auto whole = static_cast<uint32_t>(units);
      // The next exponent follows where the mantissa is full.
      if (whole >> MANT)
        code = (static_cast<uint32_t>(exponent + BIAS) << MANT) +
               (whole - (1u << MANT));
      else
        code = whole;
    }
    if (code > maxFinite) {
      if (saturate || SPECIAL == Special::None)
        code = maxFinite;
      else if (SPECIAL == Special::Fnuz)
        return signBit;
      else
        code = SPECIAL == Special::Fn ? magnitude : infinity;
    }
    return SPECIAL == Special::Fnuz && !code ? 0 : sign | code;
  }
};

using Fp8Fnuz = MiniFloat<4, 3, 8, Special::Fnuz>;
using Bf8Fnuz = MiniFloat<5, 2, 16, Special::Fnuz>;
using Fp8Ocp = MiniFloat<4, 3, 7, Special::Fn>;
using Bf8Ocp = MiniFloat<5, 2, 15, Special::Ieee>;
using Fp6 = MiniFloat<2, 3, 1, Special::None>; ///< e2m3
using Bf6 = MiniFloat<3, 2, 3, Special::None>; ///< e3m2
using Fp4 = MiniFloat<2, 1, 1, Special::None>; ///< e2m1

/// All values of a format, by pattern.
template <class M>
const float *decodeTable() {
  struct Values {
    float value[1 << M::width];
    Values() {
      for (uint32_t i = 0; i < (1u << M::width); ++i)
        value[i] = M::decode(i);
    }
  };
  static const Values values;
  return values.value;
}

/// fp32 to bf16, to nearest even; NaN stays NaN.
inline uint32_t floatToBf16(float x) {
  uint32_t u = asU32(x);
  return (isNan(x) ? u | 0x400000 : u + 0x7fff + ((u >> 16) & 1)) >> 16;
}

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_ISA_MINIFLOAT_H
