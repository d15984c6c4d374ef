//===- floating.hip - fp16, fp32 and fp64 arithmetic and conversions ------===//
//
// Operations that IEEE 754 rounds correctly give the host's bits. Division and
// square roots are expanded by the compiler, for fp64 with Newton steps.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

constexpr int kResults = 20;

template <typename T>
HD void compute(T a, T b, T c, T *out) {
  out[0] = a + b;
  out[1] = a - b;
  out[2] = a * b;
  out[3] = -a;
  out[4] = __builtin_elementwise_abs(b);
  out[5] = __builtin_elementwise_copysign(a, b);
  // Zeros of both signs are equal; the sum gives them one sign.
  out[6] = __builtin_elementwise_minnum(a, b) + T(0);
  out[7] = __builtin_elementwise_maxnum(a, b) + T(0);
  out[8] = __builtin_elementwise_floor(a);
  out[9] = __builtin_elementwise_ceil(a);
  out[10] = __builtin_elementwise_trunc(a);
  out[11] = __builtin_elementwise_roundeven(a);
  out[12] = __builtin_elementwise_round(a);
  out[13] = T((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b));
  out[14] = T(__builtin_isnan(a) + 2 * __builtin_isinf(b));
  out[15] = a > b ? a : c;
  out[16] = T(0);
  out[17] = T(0);
  out[18] = T(0);
  out[19] = T(0);
}

/// What fp16 does with another rounding or on the host only through fp32.
template <typename T>
HD void computeExact(T a, T b, T c, T *out) {
  out[16] = a / b;
  out[17] = __builtin_elementwise_sqrt(__builtin_elementwise_abs(a));
  out[18] = __builtin_elementwise_fma(a, b, c);
  out[19] = T(1) / c;
}

template <typename T>
__global__ void floats(const T *a, const T *b, const T *c, T *out, int count) {
  const int i = int(globalX());
  if (i >= count)
    return;
  compute(a[i], b[i], c[i], out + i * kResults);
  if constexpr (sizeof(T) > 2)
    computeExact(a[i], b[i], c[i], out + i * kResults);
}

template <typename T>
void checkType(fovea::test::Report &report, const char *what, double range,
               std::vector<double> edges) {
  Numbers numbers;
  std::vector<T> a = numbers.reals<T>(700, -range, range),
                 b = numbers.reals<T>(700, -8, 8),
                 c = numbers.reals<T>(700, -1, 1);
  for (double x : edges)
    for (double y : edges) {
      a.push_back(T(x));
      b.push_back(T(y));
      c.push_back(T(y + 1));
    }
  const int count = int(a.size());
  Buffer<T> deviceA(report, a), deviceB(report, b), deviceC(report, c),
      out(report, a.size() * kResults);
  floats<T><<<(count + 63) / 64, 64>>>(deviceA, deviceB, deviceC, out, count);
  finish(report);
  std::vector<T> want(a.size() * kResults);
  for (int i = 0; i < count; ++i) {
    compute(a[i], b[i], c[i], &want[i * kResults]);
    if constexpr (sizeof(T) > 2)
      computeExact(a[i], b[i], c[i], &want[i * kResults]);
  }
  same(report, what, out.read(), want);
}

const double kInfinity = __builtin_inf(), kNaN = __builtin_nan("");

HIP_CASE(Half) {
  checkType<_Float16>(report, "half", 300,
                      {0.0, -0.0, 1.0, 65504.0, -65504.0, 0x1p-24, -0x1p-14,
                       kInfinity, -kInfinity, kNaN, 2.5, 3.5});
}
HIP_CASE(Float) {
  checkType<float>(report, "float", 1e6,
                   {0.0, -0.0, 1.0, 3.4e38, -0x1p-149, 0x1p-126, 1.5e-42,
                    kInfinity, -kInfinity, kNaN, 2.5, 8388609.0});
}
HIP_CASE(Double) {
  checkType<double>(report, "double", 1e12,
                    {0.0, -0.0, 1.0, 1.7e308, -0x1p-1074, 0x1p-1022, 1e-310,
                     kInfinity, -kInfinity, kNaN, 2.5, 4503599627370497.0});
}

// The backend divides fp16 through the fp32 reciprocal: 0.51 ulp by AMD's
// figures, so the exact quotient is at most one rounding away.
__global__ void halfQuotients(const _Float16 *a, const _Float16 *b,
                              _Float16 *quotient, _Float16 *root,
                              _Float16 *fused) {
  const uint32_t i = globalX();
  quotient[i] = a[i] / b[i];
  root[i] = __builtin_elementwise_sqrt(__builtin_elementwise_abs(a[i]));
  fused[i] = __builtin_elementwise_fma(a[i], b[i], a[i]);
}

HIP_CASE(HalfQuotients) {
  constexpr int kCount = 2048, kDigits = 11;
  Numbers numbers;
  const auto a = numbers.reals<_Float16>(kCount, -8, 8),
             b = numbers.reals<_Float16>(kCount, 0.01, 8);
  Buffer<_Float16> deviceA(report, a), deviceB(report, b),
      quotient(report, size_t(kCount)), root(report, size_t(kCount)),
      fused(report, size_t(kCount));
  halfQuotients<<<kCount / 256, 256>>>(deviceA, deviceB, quotient, root, fused);
  finish(report);
  std::vector<double> exactQuotient, exactRoot, exactFused;
  for (int i = 0; i < kCount; ++i) {
    const double x = double(a[i]), y = double(b[i]);
    exactQuotient.push_back(x / y);
    exactRoot.push_back(std::sqrt(std::fabs(x)));
    exactFused.push_back(x * y + x); // exact in fp64
  }
  within(report, "half quotient", quotient.read(), exactQuotient, 0.51, kDigits,
         0x1p-14);
  within(report, "half root", root.read(), exactRoot, 0.51, kDigits, 0x1p-14);
  within(report, "half fma", fused.read(), exactFused, 0.5, kDigits, 0x1p-14);
}

/// The nearest bf16, ties to even; hosts' libraries need not have it.
HD uint16_t toBrain(float f) {
#ifdef __HIP_DEVICE_COMPILE__
  return __builtin_bit_cast(uint16_t, __bf16(f));
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, f);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}

struct Converted {
  int64_t fromDouble, fromFloat;
  uint64_t unsignedFromDouble;
  double doubleFromLong, doubleFromUnsigned, doubleFromFloat, fraction;
  float floatFromLong, floatFromUnsigned, floatFromDouble, floatFromHalf;
  int32_t intFromFloat, exponent;
  uint32_t unsignedFromFloat, padding;
  _Float16 halfFromFloat, halfFromDouble, halfFromInt;
  uint16_t brainFromFloat;
  float scaled;
};

HD Converted convert(double d, int64_t n) {
  Converted r;
  const float f = float(d);
  __builtin_memset(&r, 0, sizeof(r));
  r.fromDouble = int64_t(d * 1e6);
  r.fromFloat = int64_t(f * 1024.0f);
  r.unsignedFromDouble = uint64_t(__builtin_elementwise_abs(d) * 1e8);
  r.doubleFromLong = double(n);
  r.doubleFromUnsigned = double(uint64_t(n));
  r.doubleFromFloat = double(f) / 3;
  r.floatFromLong = float(n);
  r.floatFromUnsigned = float(uint64_t(n));
  r.floatFromDouble = float(d / 7);
  r.halfFromFloat = _Float16(f / 16);
  r.halfFromDouble = _Float16(d / 512);
  r.halfFromInt = _Float16(int16_t(n));
  r.floatFromHalf = float(r.halfFromDouble);
  r.intFromFloat = int32_t(f);
  r.unsignedFromFloat = uint32_t(__builtin_elementwise_abs(f));
  r.brainFromFloat = toBrain(f);
  r.fraction = __builtin_frexp(d, &r.exponent);
  r.scaled = __builtin_ldexpf(f, int(n & 63) - 32);
  return r;
}

__global__ void conversions(const double *d, const int64_t *n, Converted *out) {
  const uint32_t i = globalX();
  out[i] = convert(d[i], n[i]);
}

HIP_CASE(Conversions) {
  constexpr int kCount = 1024;
  Numbers numbers;
  const auto d = numbers.reals<double>(kCount, -1e5, 1e5);
  std::vector<int64_t> n(kCount);
  for (int64_t &x : n)
    x = int64_t(numbers.next()) >> (numbers.next() & 63);
  Buffer<double> deviceD(report, d);
  Buffer<int64_t> deviceN(report, n);
  Buffer<Converted> out(report, size_t(kCount));
  conversions<<<kCount / 128, 128>>>(deviceD, deviceN, out);
  finish(report);
  const auto got = out.read();
  for (int i = 0; i < kCount; ++i) {
    const Converted want = convert(d[i], n[i]);
    CHECK(std::memcmp(&got[i], &want, sizeof(want)) == 0);
  }
}

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef _Float16 Half8 __attribute__((ext_vector_type(8)));
typedef double Double3 __attribute__((ext_vector_type(3)));

HD void vectors(Float4 a, Float4 b, float *out) {
  const Float4 mixed = a.wzyx * b - (a < b ? a : b.yyxx);
  const Half8 h = __builtin_convertvector(
      __builtin_shufflevector(mixed, a, 0, 1, 2, 3, 4, 5, 6, 7), Half8);
  const Double3 d = {double(a.x), double(h[3]), double(mixed.z)};
  const Double3 s = d * d + d.zxy;
  for (int i = 0; i < 4; ++i)
    out[i] = mixed[i];
  for (int i = 0; i < 8; ++i)
    out[4 + i] = float(h[i]);
  for (int i = 0; i < 3; ++i)
    out[12 + i] = float(s[i]);
  out[15] = a.x * b.x + a.y * b.y;
}

__global__ void vectorKernel(const Float4 *a, const Float4 *b, float *out) {
  const uint32_t i = globalX();
  vectors(a[i], b[i], out + 16 * i);
}

HIP_CASE(Vectors) {
  constexpr int kCount = 256;
  Numbers numbers;
  const auto a = numbers.reals<float>(4 * kCount, -9, 9),
             b = numbers.reals<float>(4 * kCount, -9, 9);
  Buffer<float> deviceA(report, a), deviceB(report, b),
      out(report, size_t(16 * kCount));
  vectorKernel<<<kCount / 64, 64>>>(
      reinterpret_cast<const Float4 *>(static_cast<float *>(deviceA)),
      reinterpret_cast<const Float4 *>(static_cast<float *>(deviceB)), out);
  finish(report);
  std::vector<float> want(16 * kCount);
  for (int i = 0; i < kCount; ++i) {
    Float4 x, y;
    std::memcpy(&x, &a[4 * i], sizeof(x));
    std::memcpy(&y, &b[4 * i], sizeof(y));
    vectors(x, y, &want[16 * i]);
  }
  same(report, "vectors", out.read(), want);
}

} // namespace
