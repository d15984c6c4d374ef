//===- IntegerTest.cpp - integer kernels against the host -----------------===//

#include "HipProgram.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

using namespace fovea::test;

namespace {

/// Random numbers of all magnitudes, and the awkward ones.
template <typename T>
std::vector<T> operands(Numbers &numbers, size_t count) {
  std::vector<T> values(count);
  for (T &value : values)
    value = T(int64_t(numbers.next()) >> (numbers.next() % 64));
  const T special[] = {T(0),
                       T(1),
                       T(-1),
                       std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max(),
                       T(2),
                       T(-2),
                       T(64)};
  for (size_t i = 0; i < std::size(special) && i < count; ++i)
    values[i * 5 % count] = special[i];
  return values;
}

TEST_P(OpenCL, IntArith) {
  Numbers numbers;
  const int n = 333;
  const auto a = operands<int32_t>(numbers, n),
             b = operands<int32_t>(numbers, n);
  Buffer<int32_t> da(a), db(b), out(16 * n);
  Program program("int_arith", level());
  ASSERT_HIP(program.run("int_arith", {groups(n, kBlock)}, {kBlock},
                         da.device(), db.device(), out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const int32_t x = a[i], y = b[i];
    const uint32_t ux = x, uy = y;
    const int32_t d = y == 0 ? 7 : y;
    const uint32_t ud = uy == 0 ? 7u : uy;
    const int32_t expected[16] = {int32_t(ux + uy),
                                  int32_t(ux - uy),
                                  int32_t(ux * uy),
                                  d == -1 ? int32_t(0u - ux) : x / d,
                                  d == -1 ? 0 : x % d,
                                  int32_t(ux / ud),
                                  int32_t(ux % ud),
                                  x & y,
                                  (x | y) ^ 0x5a5a5a5a,
                                  ~x,
                                  std::min(x, y),
                                  int32_t(std::max(ux, uy)),
                                  int32_t(ux << (uy & 31)),
                                  x >> (y & 31),
                                  int32_t(ux >> (uy & 31)),
                                  (x < 0) + (y < 0) * 2 + (x == y) * 4 +
                                      (ux <= uy) * 8};
    for (int k = 0; k < 16; ++k)
      ASSERT_EQ(got[i * 16 + k], expected[k])
          << "result " << k << " of " << x << ", " << y;
  }
}

TEST_P(OpenCL, LongArith) {
  Numbers numbers;
  const int n = 200;
  const auto a = operands<int64_t>(numbers, n),
             b = operands<int64_t>(numbers, n);
  Buffer<int64_t> da(a), db(b), out(10 * n);
  Program program("long_arith", level());
  ASSERT_HIP(program.run("long_arith", {groups(n, kBlock)}, {kBlock},
                         da.device(), db.device(), out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const int64_t x = a[i], y = b[i];
    const uint64_t ux = x, uy = y;
    const int64_t d = y == 0 || y == -1 ? 3 : y;
    const uint64_t ud = uy == 0 ? 3 : uy;
    const int64_t expected[10] = {int64_t(ux + uy),
                                  int64_t(ux - uy),
                                  int64_t(ux * uy),
                                  x / d,
                                  x % d,
                                  int64_t(ux / ud),
                                  int64_t(ux % ud),
                                  int64_t(ux << (uy & 63)) ^ (x >> (y & 63)),
                                  int64_t(ux >> (uy & 63)),
                                  (x < y) + (ux < uy) * 2 + (x == y) * 4 +
                                      (int32_t(x) < int32_t(y)) * 8};
    for (int k = 0; k < 10; ++k)
      ASSERT_EQ(got[i * 10 + k], expected[k])
          << "result " << k << " of " << x << ", " << y;
  }
}

TEST_P(OpenCL, Bits) {
  Numbers numbers;
  const int n = 150;
  const auto a = operands<int32_t>(numbers, n);
  const auto b = operands<int64_t>(numbers, n);
  Buffer<int32_t> da(a);
  Buffer<int64_t> db(b);
  Buffer<uint32_t> out(8 * n);
  Program program("bits", level());
  ASSERT_HIP(program.run("bits", {groups(n, kBlock)}, {kBlock}, da.device(),
                         db.device(), out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const uint32_t x = a[i];
    const uint64_t y = b[i];
    uint32_t reversed = 0;
    for (int k = 0; k < 32; ++k)
      reversed |= ((x >> k) & 1) << (31 - k);
    const uint32_t amount = x & 31;
    const uint32_t expected[8] = {uint32_t(__builtin_popcount(x)),
                                  uint32_t(__builtin_popcountll(y)),
                                  x == 0 ? 32u : uint32_t(__builtin_clz(x)),
                                  x == 0 ? 32u : uint32_t(__builtin_ctz(x)),
                                  reversed,
                                  amount ? (x << amount | x >> (32 - amount))
                                         : x,
                                  __builtin_bswap32(x),
                                  y == 0 ? 64u : uint32_t(__builtin_clzll(y))};
    for (int k = 0; k < 8; ++k)
      ASSERT_EQ(got[i * 8 + k], expected[k]) << "result " << k << " of " << x;
  }
}

TEST_P(OpenCL, MulWide) {
  Numbers numbers;
  const int n = 150;
  const auto a = operands<int32_t>(numbers, n),
             b = operands<int32_t>(numbers, n);
  Buffer<int32_t> da(a), db(b), out(8 * n);
  Program program("mul_wide", level());
  ASSERT_HIP(program.run("mul_wide", {groups(n, kBlock)}, {kBlock}, da.device(),
                         db.device(), out.device(), n));
  const auto got = out.read();
  auto low24 = [](int32_t v) { return int32_t(uint32_t(v) << 8) >> 8; };
  for (int i = 0; i < n; ++i) {
    const int32_t x = a[i], y = b[i];
    const uint32_t ux = x, uy = y;
    const int64_t sum = int64_t(x) + y;
    const uint64_t wide = uint64_t(ux) * uy + (uint64_t(uy) << 7) + ux;
    const int32_t expected[8] = {
        int32_t((int64_t(x) * y) >> 32),
        int32_t((uint64_t(ux) * uy) >> 32),
        int32_t((ux & 0xffffff) * (uy & 0xffffff)),
        int32_t(uint32_t(low24(x)) * uint32_t(low24(y)) + ux),
        int32_t(std::clamp<int64_t>(sum, INT_MIN, INT_MAX)),
        int32_t(ux > uy ? ux - uy : 0),
        int32_t(ux > uy ? ux - uy : uy - ux),
        int32_t(wide >> 17)};
    for (int k = 0; k < 8; ++k)
      ASSERT_EQ(got[i * 8 + k], expected[k])
          << "result " << k << " of " << x << ", " << y;
  }
}

TEST_P(OpenCL, Bytes) {
  Numbers numbers;
  const int n = 131;
  const auto a = numbers.integers<int8_t>(n);
  const auto b = numbers.integers<uint8_t>(n);
  const auto c = numbers.integers<int16_t>(n);
  const auto d = numbers.integers<uint16_t>(n);
  Buffer<int8_t> da(a), out8(n);
  Buffer<uint8_t> db(b);
  Buffer<int16_t> dc(c), out16(n);
  Buffer<uint16_t> dd(d);
  Buffer<int32_t> sums(n);
  Program program("bytes", level());
  ASSERT_HIP(program.run("bytes", {groups(n, kBlock)}, {kBlock}, da.device(),
                         db.device(), dc.device(), dd.device(), out8.device(),
                         out16.device(), sums.device(), n));
  const auto got8 = out8.read();
  const auto got16 = out16.read();
  const auto gotSums = sums.read();
  for (int i = 0; i < n; ++i) {
    ASSERT_EQ(gotSums[i], a[i] + b[i] * 3 + c[i] * 5 + d[i] * 7);
    ASSERT_EQ(got8[i], int8_t(a[i] - b[n - 1 - i]));
    ASSERT_EQ(got16[i], int16_t(c[i] * 3 - d[n - 1 - i]));
  }
}

TEST_P(OpenCL, VectorTypes) {
  Numbers numbers;
  const int n = 70;
  const auto a = numbers.reals<float>(4 * n, -100, 100);
  const auto b = numbers.integers<int32_t>(4 * n);
  const auto c = numbers.integers<uint8_t>(4 * n);
  const auto e = numbers.integers<int32_t>(8 * n);
  Buffer<float> da(a), outF(4 * n);
  Buffer<int32_t> db(b), outI(4 * n), de(e), out16(16 * n), out3(3 * n);
  Buffer<uint8_t> dc(c), outC(4 * n);
  Program program("vectors", level());
  const Size3 grid{groups(n, kBlock)};
  ASSERT_HIP(program.run("vectors", grid, {kBlock}, da.device(), db.device(),
                         dc.device(), outF.device(), outI.device(),
                         outC.device(), n));
  ASSERT_HIP(
      program.run("vectors8", grid, {kBlock}, de.device(), out16.device(), n));
  ASSERT_HIP(
      program.run("vectors3", grid, {kBlock}, db.device(), out3.device(), n));
  const auto f = outF.read();
  const auto i4 = outI.read();
  const auto c4 = outC.read();
  const auto i16 = out16.read();
  const auto i3 = out3.read();
  const int half[4] = {0, 0, 1, 1};
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 4; ++k) {
      ASSERT_EQ(f[4 * i + k], a[4 * i + 3 - k] * 2.0f + a[4 * i + half[k]]);
      ASSERT_EQ(i4[4 * i + k],
                int32_t(uint32_t(b[4 * i + k]) << 1) ^ b[4 * i + (k + 1) % 4]);
      ASSERT_EQ(c4[4 * i + k], uint8_t(c[4 * i + 3 - k] + k + 1));
    }
    for (int k = 0; k < 8; ++k) {
      ASSERT_EQ(i16[16 * i + k], e[8 * i + k]);
      ASSERT_EQ(i16[16 * i + 8 + k], int32_t(uint32_t(e[8 * i + 7 - k]) * 3u));
    }
    for (int k = 0; k < 3; ++k)
      ASSERT_EQ(i3[3 * i + k], int32_t(uint32_t(b[3 * i + (k + 2) % 3]) +
                                       uint32_t(b[3 * i + k])));
  }
}

TEST_P(OpenCL, MonteCarlo) {
  const int n = 100, rounds = 50;
  const uint64_t seed = 12345;
  Buffer<uint32_t> out(n);
  Program program("random", level());
  ASSERT_HIP(program.run("monte_carlo", {groups(n, kBlock)}, {kBlock},
                         out.device(), seed, rounds, n));
  const auto got = out.read();
  auto mix = [](uint64_t &state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  for (int i = 0; i < n; ++i) {
    uint64_t state = seed + uint64_t(i);
    uint32_t count = 0;
    for (int k = 0; k < rounds; ++k) {
      const float x = float(uint32_t(mix(state) >> 40)) * 0x1p-24f;
      const float y = float(uint32_t(mix(state) >> 40)) * 0x1p-24f;
      const float yy = y * y;
      count += std::fma(x, x, yy) < 1.0f;
    }
    ASSERT_EQ(got[i], count) << i;
  }
}

} // namespace

INSTANTIATE_TEST_SUITE_P(Level, OpenCL, testing::Values(0, 2),
                         [](const auto &info) {
                           return "O" + std::to_string(info.param);
                         });
