//===- RdnaKernelsTest.cpp - Kernels of RDNA chips ------------------------===//
//
// OpenCL kernels built for GFX11 and GFX12, in waves of 32 and of 64 lanes: the
// work is the same, what the hardware gives a wave at its start is not.
//
//===----------------------------------------------------------------------===//
#include "KernelTest.h"

#include <numeric>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

struct Target {
  const char *chip;
  unsigned lanes;
};

class RdnaKernels : public KernelTest,
                    public ::testing::WithParamInterface<Target> {
protected:
  void SetUp() override {
    ASSERT_TRUE(Device::create(GetParam().chip, Dev).ok());
  }
  void compile(const std::string &source) {
    load(compileOpenCL(source, GetParam().chip,
                       GetParam().lanes == 64 ? "-O2 -mwavefrontsize64"
                                              : "-O2"));
  }
};

TEST_P(RdnaKernels, IdsInThreeDimensions) {
  compile(R"(
__kernel void ids(__global uint *out) {
  uint group = __builtin_amdgcn_workgroup_id_x() +
               3 * __builtin_amdgcn_workgroup_id_y() +
               6 * __builtin_amdgcn_workgroup_id_z();
  uint item = __builtin_amdgcn_workitem_id_x() +
              10 * __builtin_amdgcn_workitem_id_y() +
              30 * __builtin_amdgcn_workitem_id_z();
  out[group * 60 + item] = group << 16 | item;
})");
  ASSERT_TRUE(Code);
  EXPECT_EQ(Code->kernels().front().waveSize, GetParam().lanes);
  uint32_t *out = buffer<uint32_t>(24 * 60);
  LaunchConfig config;
  config.grid = {3, 2, 4};
  config.block = {10, 3, 2};
  Status status = run("ids", config, Args().add(out));
  ASSERT_TRUE(status.ok()) << status.message();
  for (uint32_t i = 0; i < 24 * 60; ++i)
    ASSERT_EQ(out[i], i / 60 << 16 | i % 60) << i;
  // 60 items in waves of 32 or 64.
  EXPECT_EQ(Count.waves, 24u * (GetParam().lanes == 64 ? 1 : 2));
}

TEST_P(RdnaKernels, WavesKnowTheirNumber) {
  if (std::string(GetParam().chip).rfind("gfx12", 0) != 0)
    return; // earlier chips do not say
  compile(R"(
__kernel void number(__global uint *out) {
  uint wave;
  __asm("s_bfe_u32 %0, ttmp8, 0x50019" : "=s"(wave));
  out[__builtin_amdgcn_workitem_id_x()] = wave;
})");
  ASSERT_TRUE(Code);
  uint32_t *out = buffer<uint32_t>(256);
  LaunchConfig config;
  config.block = {256, 1, 1};
  Status status = run("number", config, Args().add(out));
  ASSERT_TRUE(status.ok()) << status.message();
  for (uint32_t i = 0; i < 256; ++i)
    ASSERT_EQ(out[i], i / GetParam().lanes) << i;
}

TEST_P(RdnaKernels, OneDimensionAloneReadsNoOtherId) {
  compile(R"(
__kernel void y(__global uint *out) {
  if (LID == 0) out[__builtin_amdgcn_workgroup_id_y()] = __builtin_amdgcn_workgroup_id_y() + 1;
})");
  uint32_t *out = buffer(std::vector<uint32_t>(5, 0));
  LaunchConfig config;
  config.grid = {2, 5, 3};
  config.block = {64, 1, 1};
  Status status = run("y", config, Args().add(out));
  ASSERT_TRUE(status.ok()) << status.message();
  for (uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(out[i], i + 1);
}

TEST_P(RdnaKernels, BarriersAndLds) {
  compile(R"(
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void reverse(__global const int *in, __global int *out) {
  __local int t[256];
  for (int i = 0; i < 4; ++i) {
    t[LID] = in[GID] + i;
    BARRIER();
    int x = t[255 - LID];
    BARRIER();
    out[GID * 4 + i] = x;
  }
})");
  std::vector<int> values(512);
  std::iota(values.begin(), values.end(), 1000);
  int *in = buffer(values), *out = buffer<int>(2048);
  Status status = run("reverse", 2, 256, Args().add(in).add(out));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < 512; ++i)
    for (int k = 0; k < 4; ++k)
      ASSERT_EQ(out[i * 4 + k],
                values[size_t(i / 256 * 256 + 255 - i % 256)] + k);
}

TEST_P(RdnaKernels, ScratchAndDivergence) {
  compile(R"(
__attribute__((noinline)) int collatz(int n) {
  int steps = 0;
  while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; ++steps; }
  return steps;
}
__kernel void k(__global int *out) {
  volatile int t[16];
  for (int i = 0; i < 16; ++i) t[i] = i * LID;
  out[GID] = collatz(GID + 1) + t[GID & 15];
})");
  int *out = buffer<int>(200);
  LaunchConfig config;
  config.gridWorkItems = {200, 1, 1};
  config.block = {96, 1, 1};
  Status status = run("k", config, Args().add(out));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < 200; ++i) {
    int steps = 0;
    for (int n = i + 1; n != 1; ++steps)
      n = n & 1 ? 3 * n + 1 : n / 2;
    ASSERT_EQ(out[i], steps + (i & 15) * (i % 96)) << i;
  }
}

TEST_P(RdnaKernels, HalvesAndBytes) {
  compile(R"(
__kernel void k(__global const half *a, __global const char *b, __global half *h, __global short *s) {
  half x = a[GID];
  h[GID] = x * x + (half)b[GID];
  s[GID] = (short)(b[GID] * 3) ^ (short)GID;
})");
  std::vector<_Float16> a(100);
  std::vector<char> b(100);
  for (int i = 0; i < 100; ++i) {
    a[size_t(i)] = static_cast<_Float16>(i / 8.0 - 5);
    b[size_t(i)] = static_cast<char>(i * 37);
  }
  auto *pa = buffer(a);
  auto *pb = buffer(b);
  auto *h = buffer<_Float16>(100);
  auto *s = buffer<int16_t>(100);
  LaunchConfig config;
  config.gridWorkItems = {100, 1, 1};
  config.block = {64, 1, 1};
  Status status = run("k", config, Args().add(pa).add(pb).add(h).add(s));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < 100; ++i) {
    double x = static_cast<double>(a[size_t(i)]);
    // Squares of multiples of 1/8 and their sums with bytes are exact in fp16
    // or rounded once: the compiler fuses.
    auto expected = static_cast<_Float16>(x * x + b[size_t(i)]);
    EXPECT_EQ(static_cast<float>(h[i]), static_cast<float>(expected)) << i;
    EXPECT_EQ(s[i],
              static_cast<int16_t>(static_cast<int16_t>(b[size_t(i)] * 3) ^ i));
  }
}

TEST_P(RdnaKernels, WavesOfTheOtherSizeAreKept) {
  // A ballot counts the lanes of one wave.
  compile(R"(
__kernel void lanes(__global int *out) {
  out[GID] = __builtin_amdgcn_wavefrontsize();
  if (LID & 1) out[GID] += 1000;
})");
  int *out = buffer<int>(128);
  ASSERT_TRUE(run("lanes", 1, 128, Args().add(out)).ok());
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], static_cast<int>(GetParam().lanes) + (i & 1) * 1000);
}

std::string nameOf(const ::testing::TestParamInfo<Target> &info) {
  return std::string(info.param.chip) + "_wave" +
         std::to_string(info.param.lanes);
}
INSTANTIATE_TEST_SUITE_P(
    Targets, RdnaKernels,
    ::testing::Values(Target{"gfx1100", 32}, Target{"gfx1100", 64},
                      Target{"gfx1102", 32}, Target{"gfx1151", 32},
                      Target{"gfx1200", 64}, Target{"gfx1201", 32}),
    nameOf);

} // namespace
