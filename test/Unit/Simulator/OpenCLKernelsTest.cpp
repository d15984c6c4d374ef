//===- OpenCLKernelsTest.cpp - Compiled kernels against the host ----------===//
//
// What single instructions do not show: division sequences, calls, recursion,
// scratch, divergence, barriers between waves, atomics between workgroups on
// several host threads, partial workgroups. Each kernel is compiled without and
// with optimisation.
//
//===----------------------------------------------------------------------===//
#include "KernelTest.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class OpenCLKernels : public KernelTest,
                      public ::testing::WithParamInterface<
                          std::tuple<const char *, const char *>> {
protected:
  void SetUp() override { use(std::get<0>(GetParam())); }
  void build(const std::string &source, const std::string &flags = "") {
    load(compileOpenCL(source, std::get<0>(GetParam()),
                       std::string(std::get<1>(GetParam())) + " " + flags));
    ASSERT_TRUE(Code);
    std::string missing;
    for (const std::string &mnemonic : Code->unsupportedInstructions())
      missing += mnemonic + " ";
    EXPECT_EQ(missing, "");
  }
  void go(const std::string &name, LaunchConfig config, const Args &args) {
    Status status = run(name, config, args);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  static LaunchConfig grid(unsigned groups, unsigned block) {
    LaunchConfig config;
    config.grid = {groups, 1, 1};
    config.block = {block, 1, 1};
    return config;
  }
};

template <class T>
bool same(T x, T y) {
  return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}

TEST_P(OpenCLKernels, DivisionAndSquareRootAreRounded) {
  build(R"(
__kernel void f(__global const float *a, __global const float *b, __global float *q, __global float *r) {
  int i = GID; q[i] = a[i] / b[i]; r[i] = __builtin_sqrtf(a[i]); }
__kernel void d(__global const double *a, __global const double *b, __global double *q, __global double *r) {
  int i = GID; q[i] = a[i] / b[i]; r[i] = __builtin_sqrt(a[i]); }
__kernel void h(__global const half *a, __global const half *b, __global half *q, __global half *r) {
  int i = GID; q[i] = a[i] / b[i]; r[i] = (half)__builtin_sqrtf((float)a[i]); }
)", "-cl-fp32-correctly-rounded-divide-sqrt");
  const unsigned n = 4096;
  std::mt19937_64 rng(2);
  auto check = [&](auto zero, const char *name) {
    using T = decltype(zero);
    std::vector<T> a(n), b(n);
    for (auto *v : {&a, &b})
      for (unsigned i = 0; i < n; ++i) {
        uint64_t bits = rng();
        std::memcpy(&(*v)[i], &bits, sizeof(T));
        const double special[] = {0.0, -0.0, 1.0, 3.0, INFINITY, -INFINITY, NAN,
                                  1e-310, 1e-40, 1e38, 1e300, 7.0, 1e-7, 65504.0};
        if (i % 8 == 0)
          (*v)[i] = static_cast<T>(special[rng() % 14]);
        else if (i % 8 == 1)
          (*v)[i] = static_cast<T>(static_cast<double>(rng() % 1000) / 8);
      }
    T *pa = buffer(a), *pb = buffer(b), *q = buffer<T>(n), *r = buffer<T>(n);
    go(name, grid(n / 64, 64), Args().add(pa).add(pb).add(q).add(r));
    for (unsigned i = 0; i < n; ++i) {
      T wantQ, wantR;
      if constexpr (sizeof(T) == 2) {
        wantQ = static_cast<T>(static_cast<float>(a[i]) / static_cast<float>(b[i]));
        wantR = static_cast<T>(std::sqrt(static_cast<float>(a[i])));
        float x = static_cast<float>(q[i]), y = static_cast<float>(wantQ);
        ASSERT_TRUE(same(x, y)) << name << " " << i;
        x = static_cast<float>(r[i]), y = static_cast<float>(wantR);
        ASSERT_TRUE(same(x, y)) << name << " sqrt " << i;
      } else {
        wantQ = a[i] / b[i];
        wantR = std::sqrt(a[i]);
        ASSERT_TRUE(same(q[i], wantQ)) << name << " " << a[i] << " / " << b[i]
                                       << " = " << q[i] << ", not " << wantQ;
        ASSERT_TRUE(same(r[i], wantR)) << name << " sqrt " << a[i] << " = " << r[i];
      }
    }
  };
  check(0.0f, "f");
  check(0.0, "d");
  check(static_cast<_Float16>(0), "h");
}

TEST_P(OpenCLKernels, IntegersOfAllWidths) {
  build(R"(
#define K(N, T) __kernel void N(__global const T *a, __global const T *b, __global T *o) { \
  int i = GID; T x = a[i], y = b[i] ? b[i] : (T)1; \
  o[8*i] = x / y; o[8*i+1] = x % y; o[8*i+2] = x * y; o[8*i+3] = x - y; \
  o[8*i+4] = x << (y & 7); o[8*i+5] = x >> (y & 7); o[8*i+6] = x > y ? x : y; o[8*i+7] = (x & y) | (x ^ 5); }
K(k8, char) K(ku8, uchar) K(k16, short) K(ku16, ushort) K(k32, int) K(ku32, uint) K(k64, long) K(ku64, ulong)
)");
  const unsigned n = 512;
  std::mt19937_64 rng(4);
  auto check = [&](auto zero, const char *name) {
    using T = decltype(zero);
    std::vector<T> a(n), b(n);
    for (unsigned i = 0; i < n; ++i) {
      a[i] = static_cast<T>(rng() >> (rng() % 60));
      b[i] = static_cast<T>(rng() >> (rng() % 60));
      if (b[i] == static_cast<T>(-1))
        b[i] = 3; // the smallest number divided by -1 is undefined
    }
    T *pa = buffer(a), *pb = buffer(b), *o = buffer<T>(8 * n);
    go(name, grid(n / 128, 128), Args().add(pa).add(pb).add(o));
    for (unsigned i = 0; i < n; ++i) {
      T x = a[i], y = b[i] ? b[i] : T(1);
      using U = std::make_unsigned_t<T>;
      const T want[] = {T(x / y), T(x % y), T(uint64_t(U(x)) * U(y)), T(U(x) - U(y)),
                        T(uint64_t(U(x)) << (y & 7)), T(x >> (y & 7)),
                        x > y ? x : y, T((x & y) | (x ^ 5))};
      for (int k = 0; k < 8; ++k)
        ASSERT_EQ(o[8 * i + k], want[k]) << name << " op " << k << " of " << +x << ", " << +y;
    }
  };
  check(int8_t(), "k8");
  check(uint8_t(), "ku8");
  check(int16_t(), "k16");
  check(uint16_t(), "ku16");
  check(int32_t(), "k32");
  check(uint32_t(), "ku32");
  check(int64_t(), "k64");
  check(uint64_t(), "ku64");
}

TEST_P(OpenCLKernels, CallsRecursionAndScratch) {
  build(R"(
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
// A call through a pointer makes the compiler ask for a dynamic stack; OpenCL C
// has no recursion otherwise.
typedef int (*fn)(int, int);
typedef int (*unary)(int);
__attribute__((noinline)) int even(int n);
__attribute__((noinline)) int odd(int n);
__constant unary next[2] = {even, odd};
__attribute__((noinline)) int even(int n) { return n < 2 ? n : next[(n - 1) & 1](n - 1) + next[n & 1](n - 2); }
__attribute__((noinline)) int odd(int n) { return n < 2 ? n : next[n & 1](n - 2) + next[(n - 1) & 1](n - 1); }
__attribute__((noinline)) int add(int a, int b) { return a + b; }
__attribute__((noinline)) int mul(int a, int b) { return a * b; }
__kernel void recursion(__global int *o) { int i = GID; o[i] = next[i % 13 & 1](i % 13); }
__kernel void scratch(__global int *o) {
  int t[40]; int i = GID;
  for (int k = 0; k < 40; ++k) t[k] = i * k;
  for (int k = 0; k < 40; ++k) t[(k * 7 + i) % 40] += t[(k * 3) % 40];
  int s = 0; for (int k = 0; k < 40; ++k) s += t[(k + i) % 40] * (k + 1);
  o[i] = s; }
__kernel void pointers(__global int *o) {
  int i = GID; fn f = i % 3 == 0 ? add : mul; o[i] = f(i, 5); }
__kernel void spaces(__global int *o, int which) {
  __local int l[64]; int p[4]; int i = LID;
  l[i] = i; p[i & 3] = 100 + i; BARRIER();
  int *x = which == 0 ? (int *)&l[63 - i] : which == 1 ? (int *)&p[i & 3] : (int *)(o + 64 + i);
  o[i] = *x; }
)");
  const unsigned n = 256;
  int *o = buffer<int>(n);
  go("recursion", grid(2, 128), Args().add(o));
  auto fib = [](auto self, int k) -> int { return k < 2 ? k : self(self, k - 1) + self(self, k - 2); };
  for (unsigned i = 0; i < n; ++i)
    ASSERT_EQ(o[i], fib(fib, static_cast<int>(i % 13)));
  EXPECT_TRUE(Code->findKernel("recursion")->usesDynamicStack);
  // With too small a stack, the access that overruns it is reported.
  LaunchConfig tight = grid(2, 128);
  tight.options.dynamicStackBytes = 64;
  Status status = run("recursion", tight, Args().add(o));
  EXPECT_EQ(status.code(), ErrorCode::IllegalAddress);
  EXPECT_NE(status.message().find("of scratch"), std::string::npos) << status.message();
  go("scratch", grid(4, 64), Args().add(o));
  for (int i = 0; i < static_cast<int>(n); ++i) {
    int t[40], s = 0;
    for (int k = 0; k < 40; ++k) t[k] = i * k;
    for (int k = 0; k < 40; ++k) t[(k * 7 + i) % 40] += t[(k * 3) % 40];
    for (int k = 0; k < 40; ++k) s += t[(k + i) % 40] * (k + 1);
    ASSERT_EQ(o[i], s) << i;
  }
  go("pointers", grid(4, 64), Args().add(o));
  for (int i = 0; i < static_cast<int>(n); ++i)
    ASSERT_EQ(o[i], i % 3 == 0 ? i + 5 : i * 5);
  for (int which = 0; which < 3; ++which) {
    for (int i = 0; i < 128; ++i)
      o[i] = 1000 + i;
    go("spaces", grid(1, 64), Args().add(o).add(which));
    for (int i = 0; i < 64; ++i)
      ASSERT_EQ(o[i], which == 0 ? 63 - i : which == 1 ? 100 + i : 1064 + i) << which;
  }
}

TEST_P(OpenCLKernels, WavesWorkgroupsAndThreads) {
  build(R"(
__kernel void reduce(__global const int *a, __global int *total, __global int *groups) {
  __local int s[256]; int l = LID; s[l] = a[GID]; BARRIER();
  for (int step = 128; step; step >>= 1) { if (l < step) s[l] += s[l + step]; BARRIER(); }
  if (l == 0) { __atomic_fetch_add(total, s[0], __ATOMIC_RELAXED); groups[__builtin_amdgcn_workgroup_id_x()] = s[0]; } }
__kernel void floats(__global float *x, __global double *y) {
  __opencl_atomic_fetch_add((__global atomic_float *)x, 0.5f, __ATOMIC_RELAXED, 2);
  __opencl_atomic_fetch_max((__global atomic_int *)x + 1, (int)GID, __ATOMIC_RELAXED, 2);
  int old = 0, i = GID; __global atomic_int *lock = (__global atomic_int *)x + 2;
  while (!__opencl_atomic_compare_exchange_weak(lock, &old, old + i, __ATOMIC_RELAXED, __ATOMIC_RELAXED, 2)) ; }
__kernel void collatz(__global int *o) {
  int i = GID; unsigned long x = i + 1; int n = 0;
  while (x != 1) { if (x & 1) x = 3 * x + 1; else x >>= 1; if (++n > 500) break; }
  o[i] = n; }
__kernel void spin(__global int *o) {
  __local volatile int flag; int wave = LID / 64;
  if (LID == 0) flag = 0; BARRIER();
  if (wave == 1) { while (flag == 0) __builtin_amdgcn_s_sleep(1); o[LID - 64] = flag; }
  else if (LID == 0) flag = 42; }
)");
  const unsigned n = 256 * 300;
  std::vector<int> a(n);
  std::iota(a.begin(), a.end(), -1000);
  int *pa = buffer(a), *total = buffer<int>(1), *groups = buffer<int>(300);
  LaunchConfig config = grid(300, 256);
  config.options.threads = 4;
  go("reduce", config, Args().add(pa).add(total).add(groups));
  EXPECT_EQ(*total, static_cast<int>(std::accumulate(a.begin(), a.end(), int64_t(0))));
  EXPECT_EQ(Count.workgroups, 300u);
  EXPECT_EQ(Count.waves, 1200u);
  EXPECT_EQ(Count.barriers, 300u * 9);
  EXPECT_EQ(groups[1], 256 * (256 - 1000) + 255 * 128);
  float *x = buffer<float>(4);
  config = grid(64, 64);
  config.options.threads = 4;
  go("floats", config, Args().add(x).add(nullptr));
  EXPECT_EQ(x[0], 2048.0f);
  EXPECT_EQ(reinterpret_cast<int *>(x)[1], 4095);
  EXPECT_EQ(reinterpret_cast<int *>(x)[2], 4095 * 2048);
  int *o = buffer<int>(1000);
  go("collatz", grid(4, 250), Args().add(o));
  for (int i = 0; i < 1000; ++i) {
    int steps = 0;
    for (uint64_t v = static_cast<uint64_t>(i) + 1; v != 1; ++steps)
      v = v & 1 ? 3 * v + 1 : v / 2;
    ASSERT_EQ(o[i], steps) << i;
  }
  go("spin", grid(1, 128), Args().add(o));
  EXPECT_EQ(o[5], 42);
}

TEST_P(OpenCLKernels, GridsOfThreeDimensionsAndPartialWorkgroups) {
  build(R"(
__kernel void ids(__global int *o, int w, int h) {
  int x = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
  int y = __builtin_amdgcn_workgroup_id_y() * 4 + __builtin_amdgcn_workitem_id_y();
  int z = __builtin_amdgcn_workgroup_id_z() * 2 + __builtin_amdgcn_workitem_id_z();
  o[(z * h + y) * w + x] += x + 1000 * y + 1000000 * z
     + 100000000 * (__builtin_amdgcn_grid_size_x() != w); }
)");
  int *o = buffer<int>(40 * 12 * 4);
  LaunchConfig config;
  config.grid = {5, 3, 2};
  config.block = {8, 4, 2};
  go("ids", config, Args().add(o).add(40).add(12));
  for (int i = 0; i < 40 * 12 * 4; ++i)
    ASSERT_EQ(o[i], i % 40 + 1000 * (i / 40 % 12) + 1000000 * (i / 480)) << i;
  // 37 work-items in x: the last workgroup of a row has 5.
  std::memset(o, 0, 40 * 12 * 4 * sizeof(int));
  config.gridWorkItems = {37, 11, 3};
  go("ids", config, Args().add(o).add(37).add(11));
  for (int i = 0; i < 37 * 11 * 3; ++i)
    ASSERT_EQ(o[i], i % 37 + 1000 * (i / 37 % 11) + 1000000 * (i / 407)) << i;
  EXPECT_EQ(o[37 * 11 * 3], 0);
}

TEST_P(OpenCLKernels, TranscendentalsWithinOneUlp) {
  build(R"(
__kernel void t(__global const float *a, __global float *o) {
  int i = GID; float x = a[i];
  o[8*i] = __builtin_amdgcn_exp2f(x); o[8*i+1] = __builtin_amdgcn_logf(x);
  o[8*i+2] = __builtin_amdgcn_rcpf(x); o[8*i+3] = __builtin_amdgcn_rsqf(x);
  o[8*i+4] = __builtin_amdgcn_sinf(x); o[8*i+5] = __builtin_amdgcn_cosf(x);
  o[8*i+6] = __builtin_amdgcn_fractf(x); o[8*i+7] = __builtin_amdgcn_sqrtf(x); }
)");
  const unsigned n = 8192;
  std::vector<float> a(n);
  std::mt19937 rng(8);
  std::uniform_real_distribution<float> uniform(-130.0f, 130.0f);
  for (unsigned i = 0; i < n; ++i) {
    uint32_t bits = static_cast<uint32_t>(rng());
    std::memcpy(&a[i], &bits, 4);
    if (i % 2)
      a[i] = uniform(rng);
    if (i % 64 == 2)
      a[i] = static_cast<float>(static_cast<int>(i / 64) - 64);
  }
  float *pa = buffer(a), *o = buffer<float>(8 * n);
  go("t", grid(n / 256, 256), Args().add(pa).add(o));
  auto flush = [](double x) {
    return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x;
  };
  for (unsigned i = 0; i < n; ++i) {
    double x = flush(static_cast<double>(a[i]));
    double turn = x - std::nearbyint(x);
    const double want[] = {flush(std::exp2(x)), std::log2(x), flush(1 / x),
                           1 / std::sqrt(x), std::sin(turn * 6.283185307179586),
                           std::cos(turn * 6.283185307179586),
                           std::min(static_cast<double>(a[i]) - std::floor(static_cast<double>(a[i])), 0x1.fffffep-1),
                           std::sqrt(x)};
    for (int k = 0; k < 8; ++k) {
      float got = o[8 * i + k], near = static_cast<float>(want[k]);
      if (std::isnan(want[k])) {
        ASSERT_TRUE(std::isnan(got)) << k << " of " << a[i] << ": " << got;
        continue;
      }
      if (got == near)
        continue;
      double ulp = std::fabs(static_cast<double>(std::nextafter(near, got)) - static_cast<double>(near));
      // 0.51 ulp; sine near its zeros keeps an absolute error of 2^-24.
      ASSERT_LE(std::fabs(static_cast<double>(got) - want[k]),
                k == 4 || k == 5 ? std::max(0x1p-24, ulp) : 0.51 * ulp)
          << k << " of " << a[i] << ": " << got << ", not " << near;
    }
  }
  for (unsigned i = 2; i < n; i += 64) // powers of two are exact
    if (std::fabs(a[i]) < 126) {
      ASSERT_EQ(o[8 * i], std::exp2(a[i]));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Chips, OpenCLKernels,
    ::testing::Combine(::testing::Values("gfx908", "gfx90a", "gfx942", "gfx950"),
                       ::testing::Values("-O0", "-O2")),
    [](const auto &info) {
      return std::string(std::get<0>(info.param)) + "_" +
             (std::get<1>(info.param) + 1);
    });

} // namespace
