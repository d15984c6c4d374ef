//===- LaneTypes.h - Operand types of lane functions ------------*- C++ -*-===//
//
// How each operand type of the table is read from and written to the words of a
// lane, and the loops that run a lane function over all lanes.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_ISA_LANETYPES_H
#define FOVEA_SIMULATOR_ISA_LANETYPES_H

#include "exec/Simd.h"
#include "isa/Row.h"

#include <cstring>
#include <type_traits>

namespace fovea::sim::FOVEA_VARIANT {

template <class To, class From>
inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

inline float halfToFloat(uint16_t h) {
  return static_cast<float>(bits<_Float16>(h));
}
inline uint16_t floatToHalf(float f) {
  return bits<uint16_t>(static_cast<_Float16>(f));
}

/// Two 16-bit elements of a packed operand.
template <class T>
struct Pair {
  T lo, hi;
};

struct U32 {
  using T = uint32_t;
  static constexpr Ty ty = Ty::U32;
  static T load(const uint32_t *p, int l) { return p[l]; }
  static void store(uint32_t *p, int l, T v) { p[l] = v; }
};
struct B32 : U32 {
  static constexpr Ty ty = Ty::B32;
};
struct Msk : U32 {
  static constexpr Ty ty = Ty::Mask;
};
struct I32 {
  using T = int32_t;
  static constexpr Ty ty = Ty::I32;
  static T load(const uint32_t *p, int l) { return static_cast<T>(p[l]); }
  static void store(uint32_t *p, int l, T v) { p[l] = static_cast<uint32_t>(v); }
};
struct F32 {
  using T = float;
  static constexpr Ty ty = Ty::F32;
  static T load(const uint32_t *p, int l) { return bits<float>(p[l]); }
  static void store(uint32_t *p, int l, T v) { p[l] = bits<uint32_t>(v); }
};
struct U64 {
  using T = uint64_t;
  static constexpr Ty ty = Ty::U64;
  static T load(const uint32_t *p, int l) {
    return p[l] | uint64_t(p[l + kLaneStride]) << 32;
  }
  static void store(uint32_t *p, int l, T v) {
    p[l] = static_cast<uint32_t>(v);
    p[l + kLaneStride] = static_cast<uint32_t>(v >> 32);
  }
};
struct B64 : U64 {
  static constexpr Ty ty = Ty::B64;
};
struct I64 {
  using T = int64_t;
  static constexpr Ty ty = Ty::I64;
  static T load(const uint32_t *p, int l) {
    return static_cast<T>(U64::load(p, l));
  }
  static void store(uint32_t *p, int l, T v) {
    U64::store(p, l, static_cast<uint64_t>(v));
  }
};
struct F64 {
  using T = double;
  static constexpr Ty ty = Ty::F64;
  static T load(const uint32_t *p, int l) {
    return bits<double>(U64::load(p, l));
  }
  static void store(uint32_t *p, int l, T v) {
    U64::store(p, l, bits<uint64_t>(v));
  }
};
struct U16 {
  using T = uint16_t;
  static constexpr Ty ty = Ty::U16;
  static T load(const uint32_t *p, int l) { return static_cast<T>(p[l]); }
  static void store(uint32_t *p, int l, T v) { p[l] = v; }
};
struct I16 {
  using T = int16_t;
  static constexpr Ty ty = Ty::I16;
  static T load(const uint32_t *p, int l) { return static_cast<T>(p[l]); }
  static void store(uint32_t *p, int l, T v) {
    p[l] = static_cast<uint16_t>(v);
  }
};
/// Halves are computed with as fp32 and rounded once when stored.
struct F16 {
  using T = float;
  static constexpr Ty ty = Ty::F16;
  static T load(const uint32_t *p, int l) {
    return halfToFloat(static_cast<uint16_t>(p[l]));
  }
  static void store(uint32_t *p, int l, T v) { p[l] = floatToHalf(v); }
};
/// Packed types give a lane function both elements of a word one by one.
struct P16 {
  using T = uint16_t;
  static constexpr Ty ty = Ty::P16;
};
struct PI16 {
  using T = int16_t;
  static constexpr Ty ty = Ty::P16;
};
struct PH {
  using T = float;
  static constexpr Ty ty = Ty::PH;
};
struct PF : F32 {
  static constexpr Ty ty = Ty::PF;
};
/// Whole words of packed elements, for functions that take them apart.
struct WH : U32 {
  static constexpr Ty ty = Ty::PH;
};
struct WI : U32 {
  static constexpr Ty ty = Ty::P16;
};
/// v_fma_mix*: the engine has made the operand fp32.
struct MixF : F32 {
  static constexpr Ty ty = Ty::MixF;
};

template <class P>
inline typename P::T loadElement(uint32_t word, int half) {
  uint16_t raw = static_cast<uint16_t>(half ? word >> 16 : word);
  if constexpr (std::is_same_v<P, PH>)
    return halfToFloat(raw);
  else
    return static_cast<typename P::T>(raw);
}
template <class P>
inline uint32_t storeElement(typename P::T v) {
  if constexpr (std::is_same_v<P, PH>)
    return floatToHalf(v);
  else
    return static_cast<uint16_t>(v);
}

struct NoType {
  using T = int;
  static constexpr Ty ty = Ty::None;
  static T load(const uint32_t *, int) { return 0; }
};

/// Runs F::f over the lanes, one element a lane.
template <class F, class D, class A, class B = NoType, class C = NoType>
void laneLoop(uint32_t *d, uint32_t *, const uint32_t *a, const uint32_t *b,
              const uint32_t *c, int lanes) {
  for (int base = 0; base < lanes; base += kBlock) {
    FOVEA_LANES
    for (int l = base; l < base + kBlock; ++l) {
      if constexpr (std::is_same_v<B, NoType>)
        D::store(d, l, F::f(A::load(a, l)));
      else if constexpr (std::is_same_v<C, NoType>)
        D::store(d, l, F::f(A::load(a, l), B::load(b, l)));
      else
        D::store(d, l, F::f(A::load(a, l), B::load(b, l), C::load(c, l)));
    }
  }
}

/// As laneLoop, for functions with a second result (a carry, a flag) in d2.
template <class F, class D, class A, class B = NoType, class C = NoType>
void laneLoop2(uint32_t *d, uint32_t *d2, const uint32_t *a, const uint32_t *b,
               const uint32_t *c, int lanes) {
  for (int base = 0; base < lanes; base += kBlock) {
    FOVEA_LANES
    for (int l = base; l < base + kBlock; ++l) {
      uint32_t flag = 0;
      typename D::T r =
          F::f(A::load(a, l), B::load(b, l), C::load(c, l), flag);
      D::store(d, l, r);
      d2[l] = flag;
    }
  }
}

/// Runs F::f on both elements of each word.
template <class F, class D, class A, class B = NoType, class C = NoType>
void packedLoop(uint32_t *d, uint32_t *, const uint32_t *a, const uint32_t *b,
                const uint32_t *c, int lanes) {
  for (int base = 0; base < lanes; base += kBlock) {
    FOVEA_LANES
    for (int l = base; l < base + kBlock; ++l) {
      typename D::T lo, hi;
      if constexpr (std::is_same_v<C, NoType>) {
        lo = F::f(loadElement<A>(a[l], 0), loadElement<B>(b[l], 0));
        hi = F::f(loadElement<A>(a[l], 1), loadElement<B>(b[l], 1));
      } else {
        lo = F::f(loadElement<A>(a[l], 0), loadElement<B>(b[l], 0),
                  loadElement<C>(c[l], 0));
        hi = F::f(loadElement<A>(a[l], 1), loadElement<B>(b[l], 1),
                  loadElement<C>(c[l], 1));
      }
      d[l] = storeElement<D>(lo) | storeElement<D>(hi) << 16;
    }
  }
}

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_ISA_LANETYPES_H
