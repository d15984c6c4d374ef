//===- arguments.hip - how launches pass arguments and geometry -----------===//
//
// Arguments of every size and alignment, large structures by value, grids of
// three dimensions, and what the program can ask of its kernels.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

struct Inner {
  int8_t small;
  double real;
  int16_t list[3];
};
struct Big {
  Inner inner[5];
  uint64_t numbers[37];
  float tail;
};
struct alignas(32) Aligned {
  int32_t value;
};

HD double digest(int8_t a, const Big &b, uint16_t c, Aligned d, double e,
                 bool f, _Float16 g, int i) {
  double sum = a + c * 2.0 + d.value * 3.0 + e + f + double(g);
  for (const Inner &inner : b.inner)
    sum += inner.small + inner.real * 0.5 + inner.list[i % 3];
  return sum + double(b.numbers[i % 37] % 1000) + double(b.tail);
}

__global__ void mixed(int8_t a, Big b, uint16_t c, double *out, Aligned d,
                      double e, bool f, _Float16 g) {
  const int i = int(globalX());
  out[i] = digest(a, b, c, d, e, f, g, i);
}

HIP_CASE(MixedArguments) {
  Big big;
  std::memset(&big, 0, sizeof(big));
  for (int i = 0; i < 5; ++i)
    big.inner[i] = {int8_t(-i), i * 1.25, {int16_t(i), 100, int16_t(-7 * i)}};
  for (uint64_t i = 0; i < 37; ++i)
    big.numbers[i] = i * i * 97;
  big.tail = 0.5f;
  Buffer<double> out(report, size_t(128));
  mixed<<<2, 64>>>(-9, big, 60000, out, Aligned{77}, 0.125, true,
                   _Float16(2.5));
  finish(report);
  std::vector<double> want;
  for (int i = 0; i < 128; ++i)
    want.push_back(
        digest(-9, big, 60000, Aligned{77}, 0.125, true, _Float16(2.5), i));
  same(report, "mixed", out.read(), want);
}

__global__ void noArguments() {}

__global__ void places(uint32_t *out) {
  const uint32_t bx = __builtin_amdgcn_workgroup_size_x(),
                 by = __builtin_amdgcn_workgroup_size_y(),
                 bz = __builtin_amdgcn_workgroup_size_z();
  const uint32_t x = blockX() * bx + threadX(), y = blockY() * by + threadY(),
                 z = blockZ() * bz + threadZ();
  const uint32_t w = __builtin_amdgcn_grid_size_x(),
                 h = __builtin_amdgcn_grid_size_y();
  out[(z * h + y) * w + x] = x | y << 8 | z << 16 | (bx + by + bz) << 24;
}

HIP_CASE(Geometry) {
  noArguments<<<1, 1>>>();
  const dim3 grid(3, 2, 4), block(5, 7, 3);
  const uint32_t w = grid.x * block.x, h = grid.y * block.y,
                 d = grid.z * block.z;
  Buffer<uint32_t> out(report, size_t(w * h * d));
  places<<<grid, block>>>(out);
  finish(report);
  std::vector<uint32_t> want;
  for (uint32_t z = 0; z < d; ++z)
    for (uint32_t y = 0; y < h; ++y)
      for (uint32_t x = 0; x < w; ++x)
        want.push_back(x | y << 8 | z << 16 | 15u << 24);
  same(report, "places", out.read(), want);
}

__global__ void __launch_bounds__(128) bounded(int *out) {
  __shared__ int box[600];
  box[threadX()] = int(threadX());
  syncThreads();
  out[threadX()] = box[threadX() ^ 1];
}

HIP_CASE(Attributes) {
  hipFuncAttributes attributes = {};
  const void *kernel = reinterpret_cast<const void *>(bounded);
  HIP(hipFuncGetAttributes(&attributes, kernel));
  CHECK(attributes.maxThreadsPerBlock == 128);
  CHECK(attributes.sharedSizeBytes == 2400);
  CHECK(attributes.numRegs > 0);
  constexpr int kMaxDynamicShared = 8;
  HIP(hipFuncSetAttribute(kernel, kMaxDynamicShared, 32768));
  CHECK(hipFuncSetAttribute(kernel, kMaxDynamicShared, 1 << 20) != 0);
  HIP(hipFuncSetCacheConfig(kernel, 1));
  int blocks = 0, grid = 0, block = 0;
  HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0));
  CHECK(blocks >= 1);
  int crowded = 0;
  HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&crowded, kernel, 128,
                                                   40000));
  CHECK(crowded >= 1 && crowded < blocks);
  HIP(hipOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 0));
  CHECK(block >= 32 && block <= 128 && grid > 0);
  // More threads than the kernel was compiled for.
  Buffer<int> out(report, size_t(256));
  bounded<<<1, 256>>>(out);
  CHECK(hipGetLastError() != 0);
  // By handle, too.
  hipFunction_t handle = nullptr;
  HIP(hipGetFuncBySymbol(&handle, kernel));
  int *pointer = out;
  void *parameters[] = {&pointer};
  HIP(hipModuleLaunchKernel(handle, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters,
                            nullptr));
  finish(report);
  CHECK(out.read()[0] == 1 && out.read()[127] == 126);
}

// Numbers of hipError_t.
constexpr int kInvalidConfiguration = 9, kInvalidFunction = 98,
              kNotSupported = 801;

HIP_CASE(Refusals) {
  noArguments<<<dim3(1, 65536), 1>>>();
  CHECK(hipGetLastError() == kInvalidConfiguration);
  noArguments<<<dim3(1u << 31), 64>>>();
  CHECK(hipGetLastError() == kInvalidConfiguration);
  noArguments<<<dim3(1u << 26), 64>>>(); // 2^32 work-items
  CHECK(hipGetLastError() == kInvalidConfiguration);
  int unknown = 0;
  CHECK(hipLaunchKernel(&unknown, dim3(1), dim3(1), nullptr, 0, nullptr) ==
        kInvalidFunction);
  CHECK(hipLaunchCooperativeKernel(reinterpret_cast<const void *>(noArguments),
                                   dim3(1), dim3(1), nullptr, 0,
                                   nullptr) == kNotSupported);
  dim3 grid, block;
  size_t shared;
  hipStream_t stream;
  CHECK(__hipPopCallConfiguration(&grid, &block, &shared, &stream) != 0);
  (void)hipGetLastError();
}

} // namespace
