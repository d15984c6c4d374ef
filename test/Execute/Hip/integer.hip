//===- integer.hip - integer arithmetic of every width --------------------===//
//
// The same expressions on the device and on the host, on random and on extreme
// values: division and remainder are expanded by the compiler.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

constexpr int kResults = 20;

/// Everything that two integers can be asked.
template <typename T>
HD void compute(T a, T b, T *out) {
  using U = std::make_unsigned_t<T>;
  const unsigned bits = 8 * sizeof(T), shift = unsigned(U(b)) % bits;
  const bool overflows = std::is_signed_v<T> && b == T(-1);
  out[0] = T(U(a) + U(b));
  out[1] = T(U(a) - U(b));
  out[2] = T(uint64_t(U(a)) * uint64_t(U(b)));
  out[3] = b == 0 || overflows ? T(1) : T(a / b);
  out[4] = b == 0 || overflows ? T(2) : T(a % b);
  out[5] = T(a & b);
  out[6] = T(a | ~b);
  out[7] = T(a ^ b);
  out[8] = T(U(a) << shift);
  out[9] = T(a >> shift);
  out[10] = T(U(a) >> shift);
  out[11] = T((U(a) << shift) | (U(a) >> ((bits - shift) % bits)));
  out[12] = a < b ? a : b;
  out[13] = T((a < b) | (a <= b) << 1 | (a == b) << 2 | (U(a) > U(b)) << 3);
  out[14] = T(__builtin_popcountll(U(a)));
  out[15] = T(a == 0 ? bits : unsigned(__builtin_ctzll(U(a))));
  out[16] = T(a == 0 ? bits : unsigned(__builtin_clzll(U(a))) - (64 - bits));
  T sum, product;
  const bool carry = __builtin_add_overflow(a, b, &sum);
  const bool wide = __builtin_mul_overflow(a, b, &product);
  out[17] = T(sum + T(carry));
  out[18] = T(product ^ T(wide));
  out[19] = __builtin_elementwise_add_sat(a, b);
}

template <typename T>
__global__ void integers(const T *a, const T *b, T *out, int count) {
  const int i = int(globalX());
  if (i < count)
    compute(a[i], b[i], out + i * kResults);
}

template <typename T>
void checkType(fovea::test::Report &report, const char *what) {
  Numbers numbers;
  std::vector<T> a = numbers.integers<T>(900), b = numbers.integers<T>(900);
  const T edges[] = {T(0),
                     T(1),
                     T(2),
                     T(-1),
                     T(-2),
                     T(3),
                     T(std::make_unsigned_t<T>(-1) >> 1),
                     T((std::make_unsigned_t<T>(-1) >> 1) + 1)};
  for (T x : edges)
    for (T y : edges) {
      a.push_back(x);
      b.push_back(y);
    }
  const int count = int(a.size());
  Buffer<T> deviceA(report, a), deviceB(report, b),
      out(report, a.size() * kResults);
  integers<T><<<(count + 127) / 128, 128>>>(deviceA, deviceB, out, count);
  finish(report);
  std::vector<T> want(a.size() * kResults);
  for (int i = 0; i < count; ++i)
    compute(a[i], b[i], &want[i * kResults]);
  same(report, what, out.read(), want);
}

HIP_CASE(Int8) { checkType<int8_t>(report, "int8"); }
HIP_CASE(UInt8) { checkType<uint8_t>(report, "uint8"); }
HIP_CASE(Int16) { checkType<int16_t>(report, "int16"); }
HIP_CASE(UInt16) { checkType<uint16_t>(report, "uint16"); }
HIP_CASE(Int32) { checkType<int32_t>(report, "int32"); }
HIP_CASE(UInt32) { checkType<uint32_t>(report, "uint32"); }
HIP_CASE(Int64) { checkType<int64_t>(report, "int64"); }
HIP_CASE(UInt64) { checkType<uint64_t>(report, "uint64"); }

__global__ void wideProducts(const uint64_t *a, const uint64_t *b,
                             uint64_t *out) {
  const uint32_t i = globalX();
  const unsigned __int128 u = (unsigned __int128)a[i] * b[i];
  const __int128 s = (__int128)int64_t(a[i]) * int64_t(b[i]);
  out[4 * i] = uint64_t(u);
  out[4 * i + 1] = uint64_t(u >> 64);
  out[4 * i + 2] = uint64_t(s >> 64);
  out[4 * i + 3] = uint64_t((u + (unsigned __int128)s) >> (a[i] & 127));
}

HIP_CASE(Int128) {
  constexpr int kCount = 512;
  Numbers numbers;
  std::vector<uint64_t> a(kCount), b(kCount), want;
  for (int i = 0; i < kCount; ++i) {
    a[i] = numbers.next();
    b[i] = numbers.next();
    const unsigned __int128 u = (unsigned __int128)a[i] * b[i];
    const __int128 s = (__int128)int64_t(a[i]) * int64_t(b[i]);
    want.insert(want.end(),
                {uint64_t(u), uint64_t(u >> 64), uint64_t(s >> 64),
                 uint64_t((u + (unsigned __int128)s) >> (a[i] & 127))});
  }
  Buffer<uint64_t> deviceA(report, a), deviceB(report, b),
      out(report, size_t(4 * kCount));
  wideProducts<<<kCount / 64, 64>>>(deviceA, deviceB, out);
  finish(report);
  same(report, "int128", out.read(), want);
}

} // namespace
