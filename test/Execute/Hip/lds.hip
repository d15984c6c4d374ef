//===- lds.hip - local memory, fixed and of the launch's choice -----------===//
//
// Tiles, reductions, scans and sorts in __shared__ arrays, and in the dynamic
// one whose size the launch gives.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <algorithm>
#include <numeric>

namespace {

constexpr int kTile = 32, kSide = 128;

__global__ void transpose(const float *in, float *out) {
  __shared__ float tile[kTile][kTile + 1];
  const uint32_t x = threadX(), y0 = threadY();
  for (uint32_t y = y0; y < kTile; y += 8)
    tile[y][x] = in[(blockY() * kTile + y) * kSide + blockX() * kTile + x];
  syncThreads();
  for (uint32_t y = y0; y < kTile; y += 8)
    out[(blockX() * kTile + y) * kSide + blockY() * kTile + x] = tile[x][y];
}

HIP_CASE(Transpose) {
  Numbers numbers;
  const auto in = numbers.reals<float>(kSide * kSide, -1, 1);
  Buffer<float> device(report, in), out(report, in.size());
  transpose<<<dim3(kSide / kTile, kSide / kTile), dim3(kTile, 8)>>>(device,
                                                                    out);
  finish(report);
  std::vector<float> want(in.size());
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x)
      want[x * kSide + y] = in[y * kSide + x];
  same(report, "transpose", out.read(), want);
}

extern __shared__ char dynamicBytes[];

/// Sums a block's values, with as many partial sums as the launch has LDS for.
__global__ void reduce(const int64_t *in, int64_t *out, int perThread) {
  int64_t *partial = reinterpret_cast<int64_t *>(dynamicBytes);
  const uint32_t t = threadX(), n = blockSizeX();
  int64_t sum = 0;
  for (int i = 0; i < perThread; ++i)
    sum += in[(blockX() * uint32_t(perThread) + uint32_t(i)) * n + t];
  partial[t] = sum;
  for (uint32_t half = n / 2; half; half /= 2) {
    syncThreads();
    if (t < half)
      partial[t] += partial[t + half];
  }
  if (t == 0)
    out[blockX()] = partial[0];
}

HIP_CASE(DynamicReduction) {
  Numbers numbers;
  for (int threads : {64, 256, 1024}) {
    const auto in = numbers.integers<int64_t>(size_t(threads) * 4 * 3);
    Buffer<int64_t> device(report, in), out(report, size_t(3));
    reduce<<<3, threads, threads * sizeof(int64_t)>>>(device, out, 4);
    finish(report);
    std::vector<int64_t> want(3);
    for (size_t i = 0; i < in.size(); ++i)
      want[i / size_t(threads * 4)] += in[i];
    same(report, "sums", out.read(), want);
  }
}

/// A fixed and a dynamic array in one kernel, and a type of 16 bytes.
struct alignas(16) Pair {
  uint64_t key, value;
};

__global__ void sortPairs(Pair *data) {
  __shared__ uint32_t swaps;
  Pair *pairs = reinterpret_cast<Pair *>(dynamicBytes);
  const uint32_t t = threadX(), n = 2 * blockSizeX();
  pairs[t] = data[t];
  pairs[t + n / 2] = data[t + n / 2];
  if (t == 0)
    swaps = 0;
  syncThreads();
  for (uint32_t k = 2; k <= n; k *= 2)
    for (uint32_t j = k / 2; j; j /= 2) {
      const uint32_t low = 2 * t - (t & (j - 1)), high = low + j;
      const bool up = (low & k) == 0;
      if ((pairs[low].key > pairs[high].key) == up) {
        const Pair kept = pairs[low];
        pairs[low] = pairs[high];
        pairs[high] = kept;
        __hip_atomic_fetch_add(&swaps, 1u, __ATOMIC_RELAXED,
                               __HIP_MEMORY_SCOPE_WORKGROUP);
      }
      syncThreads();
    }
  data[t] = pairs[t];
  data[t + n / 2] = pairs[t + n / 2];
  if (t == 0)
    data[n].key = swaps;
}

HIP_CASE(DynamicSort) {
  constexpr uint32_t kPairs = 1024;
  Numbers numbers;
  std::vector<Pair> in(kPairs + 1);
  for (uint32_t i = 0; i < kPairs; ++i)
    in[i] = {numbers.next(), i};
  Buffer<Pair> device(report, in);
  sortPairs<<<1, kPairs / 2, kPairs * sizeof(Pair)>>>(device);
  finish(report);
  const auto got = device.read();
  auto want = in;
  std::sort(want.begin(), want.end() - 1,
            [](const Pair &a, const Pair &b) { return a.key < b.key; });
  for (uint32_t i = 0; i < kPairs; ++i)
    CHECK(got[i].key == want[i].key && got[i].value == want[i].value);
  CHECK(got[kPairs].key > kPairs);
}

/// Inclusive scan of a block through two alternating rows.
__global__ void scan(const int *in, int *out) {
  __shared__ int rows[2][512];
  const uint32_t t = threadX();
  int row = 0;
  rows[0][t] = in[globalX()];
  for (uint32_t step = 1; step < 512; step *= 2) {
    syncThreads();
    rows[1 - row][t] = rows[row][t] + (t >= step ? rows[row][t - step] : 0);
    row = 1 - row;
  }
  out[globalX()] = rows[row][t];
}

HIP_CASE(Scan) {
  Numbers numbers;
  const auto in = numbers.integers<int>(2048);
  Buffer<int> device(report, in), out(report, in.size());
  scan<<<4, 512>>>(device, out);
  finish(report);
  std::vector<int> want(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    want[i] = int(uint32_t(i % 512 ? want[i - 1] : 0) + uint32_t(in[i]));
  same(report, "scan", out.read(), want);
}

/// Every width of access, at odd places where LDS allows it.
struct __attribute__((packed)) Odd {
  uint8_t byte;
  uint16_t word;
  uint32_t dword;
  uint64_t qword;
  double real;
};

__global__ void widths(const Odd *in, Odd *out) {
  __shared__ Odd odd[64];
  const uint32_t t = threadX();
  odd[63 - t] = in[t];
  syncThreads();
  Odd o = odd[t];
  o.byte = uint8_t(o.byte + odd[(t + 1) % 64].byte);
  o.word = uint16_t(o.word ^ odd[(t + 2) % 64].word);
  o.qword += odd[(t + 3) % 64].dword;
  o.real *= 2;
  out[t] = o;
}

HIP_CASE(Widths) {
  Numbers numbers;
  std::vector<Odd> in(64), want(64);
  for (Odd &o : in)
    o = {uint8_t(numbers.next()), uint16_t(numbers.next()),
         uint32_t(numbers.next()), numbers.next(), numbers.real(-1, 1)};
  Buffer<Odd> device(report, in), out(report, in.size());
  widths<<<1, 64>>>(device, out);
  finish(report);
  const auto got = out.read();
  for (int t = 0; t < 64; ++t) {
    Odd o = in[63 - t];
    o.byte = uint8_t(o.byte + in[63 - (t + 1) % 64].byte);
    o.word = uint16_t(o.word ^ in[63 - (t + 2) % 64].word);
    o.qword += in[63 - (t + 3) % 64].dword;
    o.real *= 2;
    CHECK(std::memcmp(&got[t], &o, sizeof(o)) == 0);
  }
}

} // namespace
