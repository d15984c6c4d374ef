//===- atomics.hip - atomic operations in global memory and LDS -----------===//
//
// Results that do not depend on the order of the work-items: sums of integers
// and of floats that are exact, extremes, bits, and tickets of which each is
// given out once. Float operations come as instructions and as the compare and
// swap loops that clang makes of them.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <algorithm>

namespace {

constexpr int kThreads = 256, kBlocks = 6, kItems = kThreads * kBlocks;
constexpr auto kAgent = __HIP_MEMORY_SCOPE_AGENT;
constexpr auto kGroup = __HIP_MEMORY_SCOPE_WORKGROUP;

template <typename T>
__global__ void integerAtomics(T *slots, T *tickets) {
  const T i = T(globalX());
  tickets[globalX()] =
      __hip_atomic_fetch_add(&slots[0], T(1), __ATOMIC_RELAXED, kAgent);
  __hip_atomic_fetch_sub(&slots[1], i, __ATOMIC_ACQ_REL, kAgent);
  __hip_atomic_fetch_and(&slots[2], T(~(T(1) << (i % 31))), __ATOMIC_RELAXED,
                         kAgent);
  __hip_atomic_fetch_or(&slots[3], T(T(1) << (i % 29)), __ATOMIC_SEQ_CST,
                        __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_fetch_xor(&slots[4], T(i * 77), __ATOMIC_RELAXED, kAgent);
  __hip_atomic_fetch_min(&slots[5], T(500 - i), __ATOMIC_RELAXED, kAgent);
  __hip_atomic_fetch_max(&slots[6], T(i * 3 - 700), __ATOMIC_RELAXED, kAgent);
  // A loop of the program's own.
  T old = __hip_atomic_load(&slots[7], __ATOMIC_RELAXED, kAgent);
  while (!__hip_atomic_compare_exchange_weak(&slots[7], &old, T(old + i * i),
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                             kAgent))
    ;
  // Exchanges hand one value on: the sum of all is what went in.
  const T had =
      __hip_atomic_exchange(&slots[8], T(i + 1), __ATOMIC_RELAXED, kAgent);
  __hip_atomic_fetch_add(&slots[9], had, __ATOMIC_RELAXED, kAgent);
}

template <typename T>
void checkIntegers(fovea::test::Report &report, const char *what) {
  std::vector<T> start(10);
  start[2] = T(-1);
  start[5] = T(1000000);
  Buffer<T> slots(report, start), tickets(report, size_t(kItems));
  integerAtomics<T><<<kBlocks, kThreads>>>(slots, tickets);
  finish(report);
  std::vector<T> want = start;
  T total = 0;
  for (int n = 0; n < kItems; ++n) {
    const T i = T(n);
    want[0] += 1;
    want[1] -= i;
    want[2] &= T(~(T(1) << (i % 31)));
    want[3] |= T(T(1) << (i % 29));
    want[4] ^= T(i * 77);
    want[5] = std::min(want[5], T(500 - i));
    want[6] = std::max(want[6], T(i * 3 - 700));
    want[7] += T(i * i);
    total += T(i + 1);
  }
  auto got = slots.read();
  got[9] += got[8]; // the last one is still in the slot
  got[8] = 0;
  want[9] = total;
  same(report, what, got, want);
  auto given = tickets.read();
  std::sort(given.begin(), given.end());
  for (int i = 0; i < kItems; ++i)
    CHECK(given[size_t(i)] == T(i));
}

HIP_CASE(AtomicInt32) { checkIntegers<int32_t>(report, "int32"); }
HIP_CASE(AtomicUInt32) { checkIntegers<uint32_t>(report, "uint32"); }
HIP_CASE(AtomicInt64) { checkIntegers<int64_t>(report, "int64"); }
HIP_CASE(AtomicUInt64) { checkIntegers<uint64_t>(report, "uint64"); }

/// Instructions where the chip has them: memory is the device's own and fp
/// modes do not matter.
#define NATIVE                                                                 \
  [[clang::atomic(no_remote_memory, no_fine_grained_memory,                    \
                  ignore_denormal_mode)]]

template <typename T>
__global__ void floatAtomics(T *slots, T *returned) {
  const T x = T(int(globalX()) % 64 - 20);
  T old;
  NATIVE {
    old = __hip_atomic_fetch_add(&slots[0], x, __ATOMIC_RELAXED, kAgent);
  }
  __hip_atomic_fetch_add(&slots[1], x, __ATOMIC_RELAXED,
                         __HIP_MEMORY_SCOPE_SYSTEM);
  NATIVE { __hip_atomic_fetch_add(&slots[2], T(1), __ATOMIC_RELAXED, kAgent); }
  NATIVE { __hip_atomic_fetch_min(&slots[3], x, __ATOMIC_RELAXED, kAgent); }
  __hip_atomic_fetch_max(&slots[4], x * T(2), __ATOMIC_RELAXED, kAgent);
  returned[globalX()] = old;
}

template <typename T>
void checkFloats(fovea::test::Report &report, const char *what) {
  Buffer<T> slots(report, std::vector<T>{T(0.5), T(0), T(0), T(7), T(7)}),
      returned(report, size_t(kItems));
  floatAtomics<T><<<kBlocks, kThreads>>>(slots, returned);
  finish(report);
  T sum = 0;
  for (int i = 0; i < kItems; ++i)
    sum += T(i % 64 - 20);
  same(report, what, slots.read(),
       {sum + T(0.5), sum, T(kItems), T(-20), T(86)});
  // What the additions return are partial sums, the first of them the start.
  const auto old = returned.read();
  CHECK(std::count(old.begin(), old.end(), T(0.5)) >= 1);
  for (T value : old)
    CHECK(value == T(int(value - T(0.5))) + T(0.5));
}

HIP_CASE(AtomicFloat) { checkFloats<float>(report, "float"); }
HIP_CASE(AtomicDouble) { checkFloats<double>(report, "double"); }

__global__ void histogram(const uint32_t *in, uint32_t *out, float *mean,
                          double *weight) {
  __shared__ uint32_t bins[32];
  __shared__ float sum;
  __shared__ double heavy;
  __shared__ uint64_t top;
  const uint32_t t = threadX();
  if (t < 32)
    bins[t] = 0;
  if (t == 0)
    sum = 0, heavy = 0, top = 0;
  syncThreads();
  const uint32_t x = in[globalX()] % 32;
  __hip_atomic_fetch_add(&bins[x], 1u, __ATOMIC_RELAXED, kGroup);
  NATIVE { __hip_atomic_fetch_add(&sum, float(x), __ATOMIC_RELAXED, kGroup); }
  NATIVE {
    __hip_atomic_fetch_add(&heavy, double(x) / 4, __ATOMIC_RELAXED, kGroup);
  }
  __hip_atomic_fetch_max(&top, uint64_t(in[globalX()]), __ATOMIC_RELAXED,
                         kGroup);
  syncThreads();
  if (t < 32)
    __hip_atomic_fetch_add(&out[t], bins[t], __ATOMIC_RELAXED, kAgent);
  if (t == 0) {
    mean[blockX()] = sum;
    weight[2 * blockX()] = heavy;
    weight[2 * blockX() + 1] = double(top);
  }
}

HIP_CASE(AtomicLds) {
  Numbers numbers;
  const auto in = numbers.integers<uint32_t>(kItems);
  Buffer<uint32_t> device(report, in), out(report, size_t(32));
  Buffer<float> sums(report, size_t(kBlocks));
  Buffer<double> weights(report, size_t(2 * kBlocks));
  histogram<<<kBlocks, kThreads>>>(device, out, sums, weights);
  finish(report);
  std::vector<uint32_t> bins(32);
  std::vector<float> sum(kBlocks);
  std::vector<double> weight(2 * kBlocks);
  for (int i = 0; i < kItems; ++i) {
    const int block = i / kThreads;
    ++bins[in[i] % 32];
    sum[block] += float(in[i] % 32);
    weight[2 * block] += double(in[i] % 32) / 4;
    weight[2 * block + 1] = std::max(weight[2 * block + 1], double(in[i]));
  }
  same(report, "bins", out.read(), bins);
  same(report, "sums", sums.read(), sum);
  same(report, "weights", weights.read(), weight);
}

} // namespace
