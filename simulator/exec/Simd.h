//===- Simd.h - The few helpers written with intrinsics ---------*- C++ -*-===//
//
// Lane masks to words and back, and masked stores. Everything else is plain
// loops that the compiler vectorises; files that include this are compiled once
// for each level of the host's instruction set (see HostVariant.h).
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_SIMD_H
#define FOVEA_SIMULATOR_EXEC_SIMD_H

#include "exec/HostVariant.h"
#include "exec/MicroOp.h"

#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define FOVEA_LANES _Pragma("clang loop vectorize(assume_safety)")
/// A short loop that must not be unrolled before it is vectorised.
#define FOVEA_ROW _Pragma("clang loop vectorize(enable) unroll(disable)")
#else
#define FOVEA_LANES _Pragma("GCC ivdep")
#define FOVEA_ROW _Pragma("GCC ivdep")
#endif

namespace fovea::sim::FOVEA_VARIANT {

constexpr int kBlock = 32; ///< lanes of the inner loops; both wave sizes divide

/// The same word for every lane.
inline void spread(uint32_t *p, uint32_t value, int lanes = kLaneStride) {
  for (int base = 0; base < lanes; base += kBlock)
    for (int l = base; l < base + kBlock; ++l)
      p[l] = value;
}

/// Bit l of the result: p[l] is not 0.
inline uint64_t packMask(const uint32_t *p, int lanes) {
  uint64_t mask = 0;
#if defined(__AVX512F__)
  for (int l = 0; l < lanes; l += 16) {
    __m512i x = _mm512_loadu_si512(p + l);
    mask |= uint64_t(_mm512_test_epi32_mask(x, x)) << l;
  }
#elif defined(__AVX2__)
  for (int l = 0; l < lanes; l += 8) {
    __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p + l));
    __m256i zero = _mm256_cmpeq_epi32(x, _mm256_setzero_si256());
    unsigned bits = ~_mm256_movemask_ps(_mm256_castsi256_ps(zero)) & 0xff;
    mask |= uint64_t(bits) << l;
  }
#else
  for (int l = 0; l < lanes; ++l)
    mask |= uint64_t(p[l] != 0) << l;
#endif
  return mask;
}

/// p[l] = bit l of mask.
inline void spreadMask(uint32_t *p, uint64_t mask, int lanes = kLaneStride) {
#if defined(__AVX512F__)
  for (int l = 0; l < lanes; l += 16)
    _mm512_storeu_si512(
        p + l, _mm512_maskz_set1_epi32(static_cast<__mmask16>(mask >> l), 1));
#else
  for (int l = 0; l < lanes; ++l)
    p[l] = (mask >> l) & 1;
#endif
}

/// d[l] = s[l] where bit l of mask is set.
inline void storeMasked(uint32_t *d, const uint32_t *s, uint64_t mask,
                        int lanes = kLaneStride) {
#if defined(__AVX512F__)
  for (int l = 0; l < lanes; l += 16)
    _mm512_mask_storeu_epi32(d + l, static_cast<__mmask16>(mask >> l),
                             _mm512_loadu_si512(s + l));
#elif defined(__AVX2__)
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (int l = 0; l < lanes; l += 8) {
    __m256i m = _mm256_set1_epi32(static_cast<int>((mask >> l) & 0xff));
    m = _mm256_cmpeq_epi32(_mm256_and_si256(m, bit), bit);
    _mm256_maskstore_epi32(reinterpret_cast<int *>(d + l), m,
                           _mm256_loadu_si256(
                               reinterpret_cast<const __m256i *>(s + l)));
  }
#else
  for (int l = 0; l < lanes; ++l)
    d[l] = (mask >> l) & 1 ? s[l] : d[l];
#endif
}

inline void copyLanes(uint32_t *d, const uint32_t *s, int lanes = kLaneStride) {
  for (int base = 0; base < lanes; base += kBlock)
    std::memcpy(d + base, s + base, kBlock * 4);
}

/// Calls f(lane) for each set bit.
template <class F>
inline void forEachLane(uint64_t mask, F f) {
  while (mask) {
    int lane = __builtin_ctzll(mask);
    mask &= mask - 1;
    f(lane);
  }
}

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_EXEC_SIMD_H
