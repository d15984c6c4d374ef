//===- BasicKernelsTest.cpp - Ordinary kernels against the host -----------===//
//
// Kernels compiled by clang from OpenCL C; every result is compared with the
// same computation on the host.
//
//===----------------------------------------------------------------------===//
#include "KernelTest.h"

#include <cmath>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class BasicKernels : public KernelTest {};

TEST_F(BasicKernels, VectorAdd) {
  load(compileOpenCL(R"(
__kernel void vadd(__global const float *a, __global const float *b,
                   __global float *c, int n) {
  int i = GID;
  if (i < n) c[i] = a[i] + b[i];
})"));
  const int n = 1000;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = 0.1f * i;
    b[i] = 1.0f / (i + 1);
  }
  float *pa = buffer(a), *pb = buffer(b), *pc = buffer<float>(n);
  Status status = run("vadd", 4, 256, Args().add(pa).add(pb).add(pc).add(n));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < n; ++i)
    EXPECT_EQ(pc[i], a[i] + b[i]) << i;
  EXPECT_EQ(Count.workgroups, 4u);
  EXPECT_EQ(Count.waves, 16u);
}

TEST_F(BasicKernels, MfmaMatmul) {
  load(compileOpenCL(R"(
// C[32][32] = A[32][K] * B[32][K]^T with one wave.
__kernel void mm(__global const half *a, __global const half *b,
                 __global float *c, int k) {
  f16 acc = 0;
  int l = LID;
  for (int kk = 0; kk < k; kk += 8) {
    h4 x = *(__global const h4 *)(a + (l % 32) * k + kk + 4 * (l / 32));
    h4 y = *(__global const h4 *)(b + (l % 32) * k + kk + 4 * (l / 32));
    acc = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, acc, 0, 0, 0);
  }
  for (int r = 0; r < 16; ++r)
    c[(8 * (r / 4) + 4 * (l / 32) + r % 4) * 32 + l % 32] = acc[r];
})"));
  const int k = 64;
  std::mt19937 rng(1);
  std::vector<_Float16> a(32 * k), b(32 * k);
  for (auto *m : {&a, &b})
    for (auto &x : *m)
      x = static_cast<_Float16>(static_cast<int>(rng() % 65) - 32);
  auto *pa = buffer(a), *pb = buffer(b);
  auto *pc = buffer<float>(32 * 32);
  Status status = run("mm", 1, 64, Args().add(pa).add(pb).add(pc).add(k));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      float want = 0;
      for (int kk = 0; kk < k; ++kk)
        want += static_cast<float>(a[i * k + kk]) * static_cast<float>(b[j * k + kk]);
      EXPECT_EQ(pc[i * 32 + j], want) << i << " " << j;
    }
  EXPECT_EQ(Count[InstClass::Mfma], 8u);
}

} // namespace
