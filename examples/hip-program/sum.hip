// sum.hip - a HIP program to run with fovea-sim (docs/FoveaSim.md)
//
//   clang++ -x hip --offload-arch=gfx942 -O2 -gline-tables-only -nogpulib -nogpuinc \
//       sum.hip -o sum -lamdhip64
//   ./sum         sums 65536 numbers
//   ./sum race    the same, by a kernel that lacks a barrier
//   ./sum beyond  the same, by one that writes behind its memory
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#else
#include "hip.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

constexpr unsigned kThreads = 256, kNumbers = 65536,
                   kBlocks = kNumbers / kThreads;

template <bool kWaits>
__global__ void sumBlocks(const float *in, float *out, unsigned to) {
  __shared__ float part[kThreads];
  const unsigned t = threadIdx.x;
  part[t] = in[blockIdx.x * kThreads + t];
  for (unsigned half = kThreads / 2; half; half /= 2) {
    if (kWaits)
      __syncthreads();
    if (t < half)
      part[t] += part[t + half];
  }
  if (t == 0)
    out[to + blockIdx.x] = part[0];
}

#define CHECK(call)                                                            \
  if (hipError_t error = call; error != hipSuccess) {                          \
    printf("%s: %s\n", #call, hipGetErrorString(error));                       \
    exit(1);                                                                   \
  }

int main(int argc, char **argv) {
  const char *which = argc > 1 ? argv[1] : "";
  std::vector<float> in(kNumbers), out(kBlocks);
  for (unsigned i = 0; i < kNumbers; ++i)
    in[i] = float(i % 8);
  float *deviceIn, *deviceOut;
  CHECK(hipMalloc((void **)&deviceIn, kNumbers * sizeof(float)));
  CHECK(hipMalloc((void **)&deviceOut, kBlocks * sizeof(float)));
  CHECK(hipMemcpy(deviceIn, in.data(), kNumbers * sizeof(float),
                  hipMemcpyHostToDevice));
  const unsigned to = strcmp(which, "beyond") ? 0 : 1 << 20;
  if (strcmp(which, "race"))
    sumBlocks<true><<<dim3(kBlocks), dim3(kThreads)>>>(deviceIn, deviceOut, to);
  else
    sumBlocks<false><<<dim3(kBlocks), dim3(kThreads)>>>(deviceIn, deviceOut, to);
  CHECK(hipGetLastError());
  CHECK(hipMemcpy(out.data(), deviceOut, kBlocks * sizeof(float),
                  hipMemcpyDeviceToHost));
  CHECK(hipFree(deviceIn));
  CHECK(hipFree(deviceOut));
  double sum = 0;
  for (float part : out)
    sum += part;
  printf("sum %g, %s\n", sum, sum == 3.5 * kNumbers ? "right" : "WRONG");
  return sum == 3.5 * kNumbers ? 0 : 3;
}
