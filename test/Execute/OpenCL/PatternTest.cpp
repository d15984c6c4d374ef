//===- PatternTest.cpp - LDS, control flow, calls, memory patterns --------===//

#include "HipProgram.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace fovea::test;

namespace {

TEST_P(OpenCL, Reduce) {
  Numbers numbers;
  const int n = 1000;
  const auto in = numbers.integers<int32_t>(n);
  Buffer<int32_t> din(in), out(groups(n, 256));
  Program program("reduce", level());
  ASSERT_HIP(program.run("reduce", {groups(n, 256)}, {256}, din.device(),
                         out.device(), n));
  const auto got = out.read();
  for (size_t g = 0; g < got.size(); ++g) {
    uint32_t sum = 0;
    for (size_t i = g * 256; i < std::min<size_t>(n, g * 256 + 256); ++i)
      sum += uint32_t(in[i]);
    EXPECT_EQ(got[g], int32_t(sum)) << g;
  }
}

TEST_P(OpenCL, Transpose) {
  Numbers numbers;
  const int rows = 45, columns = 70;
  const auto in = numbers.reals<float>(rows * columns, -1, 1);
  Buffer<float> din(in), out(rows * columns);
  Program program("transpose", level());
  ASSERT_HIP(program.run("transpose", {groups(columns, 16), groups(rows, 16)},
                         {16, 16}, din.device(), out.device(), rows, columns));
  const auto got = out.read();
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      ASSERT_EQ(got[x * rows + y], in[y * columns + x]) << x << ", " << y;
}

TEST_P(OpenCL, Atomics) {
  Numbers numbers;
  const int n = 500;
  const auto in = numbers.integers<int32_t>(n);
  Buffer<int32_t> din(in);
  std::vector<int32_t> start = {5, 5, 100, -100, -1, 0, 77, 0, 0};
  Buffer<int32_t> cells(start);
  Buffer<uint64_t> sum64(1);
  Buffer<float> sumF(1);
  Program program("atomics", level());
  ASSERT_HIP(program.run("atomics", {groups(n, kBlock)}, {kBlock}, din.device(),
                         cells.device(), sum64.device(), sumF.device(), n));
  auto expected = start;
  uint64_t wide = 0;
  float real = 0;
  for (int32_t x : in) {
    expected[0] = int32_t(uint32_t(expected[0]) + uint32_t(x));
    expected[1] = int32_t(uint32_t(expected[1]) - uint32_t(x));
    expected[2] = std::min(expected[2], x);
    expected[3] = std::max(expected[3], x);
    expected[4] &= x | 0x0f;
    expected[5] |= x & 0xff00;
    expected[6] ^= x;
    expected[8] += 3;
    wide += uint64_t(uint32_t(x)) << 20;
    real += float(x & 15);
  }
  expected[7] = in[5];
  EXPECT_EQ(cells.read(), expected);
  EXPECT_EQ(sum64.read()[0], wide);
  EXPECT_EQ(sumF.read()[0], real);
}

TEST_P(OpenCL, Divergent) {
  const int n = 200;
  std::vector<uint32_t> in(n);
  for (int i = 0; i < n; ++i)
    in[i] = uint32_t(i * 37 + 1);
  Buffer<uint32_t> din(in), steps(n), counts(n);
  Program program("divergent", level());
  ASSERT_HIP(program.run("collatz", {groups(n, kBlock)}, {kBlock}, din.device(),
                         steps.device(), n));
  ASSERT_HIP(
      program.run("primes", {groups(n, kBlock)}, {kBlock}, counts.device(), n));
  const auto gotSteps = steps.read(), gotCounts = counts.read();
  uint32_t primes = 0;
  for (int i = 0; i < n; ++i) {
    uint32_t x = in[i], count = 0;
    for (; x != 1 && count < 1000; ++count)
      x = x & 1 ? 3 * x + 1 : x >> 1;
    ASSERT_EQ(gotSteps[i], count) << in[i];
    bool prime = i >= 2;
    for (int d = 2; d * d <= i; ++d)
      prime &= i % d != 0;
    primes += prime;
    ASSERT_EQ(gotCounts[i], std::min(primes, 41u)) << i;
  }
}

TEST_P(OpenCL, Switches) {
  Numbers numbers;
  const int n = 300;
  auto in = numbers.integers<int32_t>(n);
  for (int i = 0; i < 64; ++i)
    in[i] = i - 20;
  Buffer<int32_t> din(in), out(n);
  Program program("switches", level());
  ASSERT_HIP(program.run("switches", {groups(n, kBlock)}, {kBlock},
                         din.device(), out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const int32_t x = in[i];
    const uint32_t u = uint32_t(x);
    uint32_t r = 0;
    switch (x & 15) {
    case 0:
      r = 11;
      break;
    case 1:
      r = u * 3;
      break;
    case 2:
      r = 12;
      break;
    case 3:
      r = 7;
      break;
    case 4:
      r = uint32_t(x / 3);
      break;
    case 5:
      r = u ^ 0x55;
      break;
    case 6:
      r = ~u;
      break;
    case 7:
      r = u << 3;
      break;
    case 9:
      r = uint32_t(x >> 2);
      break;
    case 12:
      r = uint32_t(x % 13);
      break;
    default:
      r = 0u - u;
      break;
    }
    for (uint32_t step = 0; step < 4; ++step)
      switch ((x >> (2 * step)) & 3) {
      case 0:
        r += step;
        break;
      case 1:
        r *= 3;
        break;
      case 2:
        r -= u;
        break;
      case 3:
        r ^= uint32_t(int32_t(r) >> 5);
        break;
      }
    ASSERT_EQ(got[i], int32_t(r)) << x;
  }
}

int32_t polynomial(uint32_t x, uint32_t a, uint32_t b, uint32_t c) {
  return int32_t((a * x + b) * x + c);
}

TEST_P(OpenCL, Calls) {
  const int n = 200;
  std::vector<int32_t> in(n);
  for (int i = 0; i < n; ++i)
    in[i] = i * 91 - 4000;
  Buffer<int32_t> din(in), out(n);
  Program program("calls", level());
  ASSERT_HIP(program.run("calls", {groups(n, kBlock)}, {kBlock}, din.device(),
                         out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const int32_t x = in[i];
    uint32_t r;
    if (x % 3 == 0) {
      const int32_t d = i | 1;
      r = uint32_t(
              polynomial(uint32_t(x / d), uint32_t(x % d), 3, uint32_t(x))) -
          uint32_t(i % 7);
    } else {
      r = uint32_t(polynomial(uint32_t(x), 2, uint32_t(i), 5));
    }
    for (int k = 0; k < (x & 3); ++k)
      r += uint32_t(k + x) * 2;
    ASSERT_EQ(got[i], int32_t(r)) << i;
  }
}

TEST_P(OpenCL, Scratch) {
  Numbers numbers;
  const int n = 150;
  const auto in = numbers.integers<int32_t>(n);
  const auto bytes = numbers.integers<uint8_t>(n);
  Buffer<int32_t> din(in), out(n);
  Buffer<uint8_t> dbytes(bytes), out8(n);
  Program program("scratch", level());
  ASSERT_HIP(program.run("scratch_sort", {groups(n, kBlock)}, {kBlock},
                         din.device(), out.device(), n));
  ASSERT_HIP(program.run("scratch_bytes", {groups(n, kBlock)}, {kBlock},
                         dbytes.device(), out8.device(), n));
  const auto got = out.read();
  const auto got8 = out8.read();
  for (int i = 0; i < n; ++i) {
    int32_t values[24];
    for (int k = 0; k < 24; ++k)
      values[k] = in[(i * 7 + k * 13) % n];
    std::sort(std::begin(values), std::end(values));
    uint32_t hash = 0;
    for (int32_t value : values)
      hash = hash * 31 + uint32_t(value);
    ASSERT_EQ(got[i], int32_t(hash)) << i;
    uint8_t table[64], acc = 0;
    for (int k = 0; k < 64; ++k)
      table[k] = uint8_t(k * 5 + i);
    for (int k = 0; k < 16; ++k) {
      const int at = bytes[(i + k) % n] & 63;
      acc ^= table[at];
      table[at] = uint8_t(table[at] + acc);
    }
    ASSERT_EQ(got8[i], acc) << i;
  }
}

TEST_P(OpenCL, Crc32) {
  Numbers numbers;
  const int n = 70, length = 9;
  auto in = numbers.integers<uint8_t>(n * length);
  std::memcpy(in.data(), "123456789", 9);
  Buffer<uint8_t> din(in);
  Buffer<uint32_t> out(n);
  Program program("tables", level());
  ASSERT_HIP(program.run("crc32", {groups(n, kBlock)}, {kBlock}, din.device(),
                         out.device(), length, n));
  const auto got = out.read();
  EXPECT_EQ(got[0], 0xcbf43926u); // the check value of CRC-32
  for (int i = 0; i < n; ++i) {
    uint32_t crc = ~0u;
    for (int k = 0; k < length; ++k) {
      crc ^= in[i * length + k];
      for (int bit = 0; bit < 8; ++bit)
        crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    ASSERT_EQ(got[i], ~crc) << i;
  }
}

TEST_P(OpenCL, ModuleVariables) {
  Program program("tables", level());
  hipDeviceptr_t state;
  size_t bytes = 0;
  ASSERT_HIP(
      hipModuleGetGlobal(&state, &bytes, program.module, "shared_state"));
  ASSERT_EQ(bytes, 16u);
  std::vector<int32_t> values(4);
  ASSERT_HIP(hipMemcpyDtoH(values.data(), state, bytes));
  EXPECT_EQ(values, (std::vector<int32_t>{10, 20, 30, 40}));
  values = {1, 2, 3, 4};
  ASSERT_HIP(hipMemcpyHtoD(state, values.data(), bytes));
  Buffer<int32_t> out(8);
  ASSERT_HIP(program.run("use_state", {1}, {8}, out.device()));
  EXPECT_EQ(out.read(), (std::vector<int32_t>{2, 4, 6, 8, 2, 4, 6, 8}));
  ASSERT_HIP(hipMemcpyDtoH(values.data(), state, bytes));
  EXPECT_EQ(values, (std::vector<int32_t>{2, 3, 4, 5}));
  EXPECT_EQ(hipModuleGetGlobal(&state, &bytes, program.module, "nothing"),
            hipErrorNotFound);
}

TEST_P(OpenCL, Stencil3d) {
  Numbers numbers;
  const int nx = 21, ny = 10, nz = 7;
  const auto in = numbers.integers<int32_t>(nx * ny * nz);
  Buffer<int32_t> din(in), out(nx * ny * nz);
  Program program("grid3d", level());
  ASSERT_HIP(program.run("stencil3d",
                         {groups(nx, 8), groups(ny, 4), groups(nz, 4)},
                         {8, 4, 4}, din.device(), out.device(), nx, ny, nz));
  const auto got = out.read();
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x) {
        auto at = [&](int dx, int dy, int dz) -> uint32_t {
          const int px = x + dx, py = y + dy, pz = z + dz;
          if (px < 0 || px >= nx || py < 0 || py >= ny || pz < 0 || pz >= nz)
            return 0;
          return uint32_t(in[(pz * ny + py) * nx + px]);
        };
        const uint32_t expected = 6 * at(0, 0, 0) - at(-1, 0, 0) - at(1, 0, 0) -
                                  at(0, -1, 0) - at(0, 1, 0) - at(0, 0, -1) -
                                  at(0, 0, 1);
        ASSERT_EQ(got[(z * ny + y) * nx + x], int32_t(expected));
      }
}

TEST_P(OpenCL, Histogram) {
  Numbers numbers;
  const int n = 3000;
  const auto in = numbers.integers<uint8_t>(n);
  Buffer<uint8_t> din(in);
  Buffer<uint32_t> bins(256);
  Program program("histogram", level());
  ASSERT_HIP(
      program.run("histogram", {3}, {128}, din.device(), bins.device(), n));
  std::vector<uint32_t> expected(256);
  for (uint8_t x : in)
    ++expected[x];
  EXPECT_EQ(bins.read(), expected);
}

TEST_P(OpenCL, Scan) {
  Numbers numbers;
  const int n = 1100;
  const auto in = numbers.integers<uint32_t>(n);
  Buffer<uint32_t> din(in), out(n);
  Program program("scan", level());
  ASSERT_HIP(program.run("scan", {groups(n, 512)}, {512}, din.device(),
                         out.device(), n));
  const auto got = out.read();
  uint32_t sum = 0;
  for (int i = 0; i < n; ++i) {
    sum = i % 512 == 0 ? in[i] : sum + in[i];
    ASSERT_EQ(got[i], sum) << i;
  }
}

TEST_P(OpenCL, BitonicInDynamicLds) {
  Numbers numbers;
  const auto in = numbers.integers<int32_t>(2 * 512);
  Buffer<int32_t> keys(in);
  Program program("bitonic", level());
  // A local pointer argument is an offset into the dynamic LDS.
  ASSERT_HIP(program.runWithLds("bitonic", {2}, {256}, 512 * 4, keys.device(),
                                uint32_t(0)));
  auto expected = in;
  std::sort(expected.begin(), expected.begin() + 512);
  std::sort(expected.begin() + 512, expected.end());
  EXPECT_EQ(keys.read(), expected);
}

TEST_P(OpenCL, CrossLane) {
  Numbers numbers;
  const auto in = numbers.integers<int32_t>(128);
  Buffer<int32_t> din(in), out(128 * 7);
  Program program("cross_lane", level());
  ASSERT_HIP(program.run("cross_lane", {2}, {64}, din.device(), out.device()));
  const auto got = out.read();
  for (int i = 0; i < 128; ++i) {
    const int lanes = got[i * 7 + 6];
    ASSERT_TRUE(lanes == 32 || lanes == 64) << lanes;
    const int wave = i / lanes * lanes, lane = i % lanes;
    int voted = 0, below = 0;
    for (int l = 0; l < lanes; ++l) {
      voted += in[wave + l] & 1;
      below += l < lane ? in[wave + l] & 1 : 0;
    }
    const int32_t expected[6] = {in[wave + (lane ^ 21)],
                                 in[wave + 17],
                                 in[wave],
                                 in[i ^ 3],
                                 voted,
                                 below};
    for (int k = 0; k < 6; ++k)
      ASSERT_EQ(got[i * 7 + k], expected[k])
          << "result " << k << ", lane " << i;
  }
}

TEST_P(OpenCL, LaunchInfo) {
  Buffer<int32_t> out(24 * 8, -1);
  Program program("launch_info", level());
  ASSERT_HIP(
      program.run("launch_info", {4, 3, 2}, {8, 4, 2}, out.device(), 99));
  const auto got = out.read();
  for (int group = 0; group < 24; ++group) {
    const int32_t expected[8] = {99, 8, 4, 2, 32, 12, 4, group};
    for (int k = 0; k < 8; ++k)
      EXPECT_EQ(got[group * 8 + k], expected[k]) << "value " << k;
  }
}

TEST_P(OpenCL, BufferBounds) {
  const int n = 100, valid = 61;
  std::vector<int32_t> in(n);
  std::iota(in.begin(), in.end(), 1);
  Buffer<int32_t> din(in), out(n, -7);
  Program program("buffers", level());
  ASSERT_HIP(program.run("buffers", {groups(n, kBlock)}, {kBlock}, din.device(),
                         out.device(), valid, n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(got[i], i < valid ? in[i] + 1000 : -7) << i;
}

struct Record {
  int8_t tag;
  int16_t number;
  int32_t value;
  float factor;
  int64_t wide;
};

struct alignas(16) Int4 {
  int32_t x, y, z, w;
};

TEST_P(OpenCL, ArgumentsOfEverySize) {
  Buffer<int64_t> out(9);
  Program program("arguments", level());
  const Record record{-3, 400, 50000, 1.5f, 1ll << 40};
  ASSERT_HIP(program.run("arguments", {1}, {1}, int8_t(-5), int16_t(-300),
                         int32_t(70000), -(int64_t(1) << 50), 2.5f, -0.125,
                         Int4{1, 2, 3, 4}, record, out.device()));
  int32_t f, factor;
  int64_t d;
  const float two = 2.5f;
  const double eighth = -0.125;
  std::memcpy(&f, &two, 4);
  std::memcpy(&d, &eighth, 8);
  std::memcpy(&factor, &record.factor, 4);
  EXPECT_EQ(out.read(),
            (std::vector<int64_t>{-5, -300, 70000, -(int64_t(1) << 50), f, d,
                                  4321, 50397, factor + (1ll << 40)}));
}

TEST_P(OpenCL, ArgumentsThroughExtra) {
  const int n = 100;
  std::vector<int32_t> in(n, 3);
  Buffer<int32_t> din(in), out(1);
  Program program("reduce", level());
  struct {
    const int32_t *in;
    int32_t *out;
    int32_t n;
  } packed = {din.device(), out.device(), n};
  size_t size = sizeof(packed);
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                   HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
  ASSERT_HIP(hipModuleLaunchKernel(program.function("reduce"), 1, 1, 1, 256, 1,
                                   1, 0, nullptr, nullptr, extra));
  ASSERT_HIP(hipDeviceSynchronize());
  EXPECT_EQ(out.read()[0], 300);
  size = 4;
  EXPECT_EQ(hipModuleLaunchKernel(program.function("reduce"), 1, 1, 1, 256, 1,
                                  1, 0, nullptr, nullptr, extra),
            hipErrorInvalidValue);
}

TEST_P(OpenCL, PartialWorkgroups) {
  // 100 work-items in workgroups of 64: the second has 36.
  Program program("divergent", level());
  Buffer<uint32_t> in(128, 1u << 5), steps(128, 99u);
  uint32_t *from = in.device(), *to = steps.device();
  int n = 128;
  void *params[] = {&from, &to, &n};
  ASSERT_HIP(hipExtModuleLaunchKernel(program.function("collatz"), 100, 1, 1,
                                      64, 1, 1, 0, nullptr, params, nullptr,
                                      nullptr, nullptr, 0));
  ASSERT_HIP(hipDeviceSynchronize());
  const auto got = steps.read();
  for (int i = 0; i < 128; ++i)
    ASSERT_EQ(got[i], i < 100 ? 5u : 99u) << i;
}

} // namespace
