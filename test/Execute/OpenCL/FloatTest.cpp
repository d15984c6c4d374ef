//===- FloatTest.cpp - floating-point kernels against the host ------------===//

#include "HipProgram.h"

#include "fovea/Reference/Types.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace fovea::test;
using namespace fovea::reference;

namespace {

template <typename Bits, typename Value>
Bits bitsOf(Value value) {
  static_assert(sizeof(Bits) == sizeof(Value));
  Bits bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Equal bit by bit, or both NaN (which one is the hardware's business).
template <typename Bits, typename Value>
testing::AssertionResult same(Value got, Value expected) {
  if ((std::isnan(got) && std::isnan(expected)) ||
      bitsOf<Bits>(got) == bitsOf<Bits>(expected))
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << std::hexfloat << got << ", expected " << expected;
}

std::vector<float> floats(Numbers &numbers, size_t count) {
  std::vector<float> values(count);
  for (float &value : values)
    value =
        float(std::ldexp(numbers.real(-1, 1), int(numbers.next() % 60) - 30));
  const float special[] = {
      0.0f, -0.0f,     1.0f,       -1.0f,     INFINITY,        -INFINITY,
      NAN,  0x1p-149f, -0x1p-140f, 0x1p-126f, 0x1.fffffep127f, 0.5f,
      1.5f, 2.5f,      -2.5f,      8388609.0f};
  for (size_t i = 0; i < std::size(special) && i < count; ++i)
    values[i * 7 % count] = special[i];
  return values;
}

TEST_P(OpenCL, FloatArith) {
  Numbers numbers;
  const int n = 317;
  const auto a = floats(numbers, n), b = floats(numbers, n);
  const auto c = numbers.reals<float>(n, -10, 10);
  Buffer<float> da(a), db(b), dc(c), out(14 * n);
  Program program("float_arith", level());
  ASSERT_HIP(program.run("float_arith", {groups(n, kBlock)}, {kBlock},
                         da.device(), db.device(), dc.device(), out.device(),
                         n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const float x = a[i], y = b[i], z = c[i];
    const float product = x * y;
    const float expected[14] = {x + y,
                                x - y,
                                product,
                                std::fma(x, y, z),
                                x / y,
                                std::sqrt(std::fabs(x)),
                                std::floor(x),
                                std::ceil(x),
                                std::trunc(x),
                                std::nearbyint(x),
                                std::copysign(x, y),
                                product + z,
                                -x - (-z),
                                1.0f / x};
    for (int k = 0; k < 14; ++k)
      ASSERT_TRUE(same<uint32_t>(got[i * 14 + k], expected[k]))
          << " in result " << k << " of " << x << ", " << y << ", " << z;
  }
}

TEST_P(OpenCL, FloatCompare) {
  Numbers numbers;
  const int n = 200;
  const auto a = floats(numbers, n);
  auto b = floats(numbers, n);
  for (int i = 0; i < n; i += 3)
    b[i] = a[i];
  Buffer<float> da(a), db(b);
  Buffer<int32_t> out(8 * n);
  Program program("float_compare", level());
  ASSERT_HIP(program.run("float_compare", {groups(n, kBlock)}, {kBlock},
                         da.device(), db.device(), out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const float x = a[i], y = b[i];
    const float safe = x > -2.0e9f && x < 2.0e9f ? x : 0.0f;
    int32_t expected[8];
    expected[0] = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 |
                  (x > y) << 4 | (x >= y) << 5;
    expected[1] = int(!(x < y)) | int(!(x >= y)) << 1;
    expected[2] = std::isnan(x) | std::isinf(x) << 1 | std::isfinite(x) << 2 |
                  std::isnormal(x) << 3;
    expected[3] = int32_t(safe);
    expected[4] = int32_t(uint32_t(std::fabs(safe)));
    expected[5] = bitsOf<int32_t>(float(expected[3]));
    expected[6] = bitsOf<int32_t>(float(uint32_t(expected[0])) + 0.25f);
    for (int k = 0; k < 7; ++k)
      ASSERT_EQ(got[i * 8 + k], expected[k])
          << "result " << k << " of " << x << ", " << y;
    const float least = bitsOf<float>(got[i * 8 + 7]);
    ASSERT_TRUE(same<uint32_t>(least, x < y ? x : y)) << x << ", " << y;
  }
}

TEST_P(OpenCL, Transcendental) {
  Numbers numbers;
  const int n = 500;
  const auto a = numbers.reals<float>(n, 0.01, 32);
  Buffer<float> da(a), out(6 * n);
  Program program("transcendental", level());
  ASSERT_HIP(program.run("transcendental", {groups(n, kBlock)}, {kBlock},
                         da.device(), out.device(), n));
  const auto got = out.read();
  constexpr double kUlps = 2 * 0x1p-23;
  for (int i = 0; i < n; ++i) {
    const double x = a[i];
    const double expected[6] = {std::exp2(double(a[i] - 16.0f)),
                                std::log2(x),
                                1 / x,
                                1 / std::sqrt(x),
                                std::sqrt(x),
                                std::sin(2 * M_PI * double(a[i] * 0.03125f))};
    for (int k = 0; k < 6; ++k) {
      // The logarithm near 1 and the sine are absolute in their last place.
      const double scale = k == 1 || k == 5
                               ? std::max(1.0, std::fabs(expected[k]))
                               : std::fabs(expected[k]);
      ASSERT_NEAR(got[i * 6 + k], expected[k],
                  (k == 5 ? 16 : 1) * kUlps * scale)
          << "result " << k << " of " << x;
    }
  }
}

TEST_P(OpenCL, HalfArith) {
  Numbers numbers;
  const int n = 2 * 151;
  std::vector<uint16_t> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = toF16(std::ldexp(numbers.real(-1, 1), int(numbers.next() % 8)));
    b[i] = toF16(std::ldexp(numbers.real(-1, 1), int(numbers.next() % 8)));
  }
  const double special[] = {0, -0.0, INFINITY, NAN, 65504, 0x1p-24, 0x1p-14, 1};
  for (int i = 0; i < 8; ++i)
    a[i * 11] = toF16(special[i]);
  Buffer<uint16_t> da(a), db(b), out(6 * n), packed(3 * n);
  Buffer<float> wide(n);
  Program program("half_arith", level());
  ASSERT_HIP(program.run("half_arith", {groups(n, kBlock)}, {kBlock},
                         da.device(), db.device(), out.device(), wide.device(),
                         n));
  ASSERT_HIP(program.run("half_packed", {groups(n / 2, kBlock)}, {kBlock},
                         da.device(), db.device(), packed.device(), n / 2));
  const auto got = out.read(), got2 = packed.read();
  const auto gotWide = wide.read();
  auto sameHalf = [](uint16_t bits, double expected) {
    const double value = fromF16(bits),
                 rounded = roundTo(ElemType::F16, expected);
    return (std::isnan(value) && std::isnan(rounded)) ||
           (value == rounded && std::signbit(value) == std::signbit(rounded));
  };
  // clang makes the product of result 4 a fused one with +0 added, which turns
  // -0 into +0.
  auto zeroSign = [](int k, double x) { return k == 4 && x == 0 ? 0.0 : x; };
  for (int i = 0; i < n; ++i) {
    const double x = fromF16(a[i]), y = fromF16(b[i]);
    const double expected[6] = {
        x + y,        x * y, x - y, x * y + 0.5, double(float(x) * 3.0f),
        x < y ? x : y};
    for (int k = 0; k < 6; ++k)
      ASSERT_TRUE(sameHalf(k == 4 ? toF16(zeroSign(k, fromF16(got[i * 6 + k])))
                                  : got[i * 6 + k],
                           zeroSign(k, expected[k])))
          << "result " << k << " of " << x << ", " << y << ": "
          << fromF16(got[i * 6 + k]) << ", expected " << expected[k];
    ASSERT_TRUE(same<uint32_t>(gotWide[i], float(x) * float(y)));
    const double other = fromF16(a[i ^ 1]);
    const double expected2[3] = {x + y, x * y, std::fma(x, y, other)};
    for (int k = 0; k < 3; ++k)
      ASSERT_TRUE(sameHalf(got2[(i / 2 * 3 + k) * 2 + i % 2], expected2[k]))
          << "packed " << k << " of " << x << ", " << y;
  }
}

TEST_P(OpenCL, DoubleArith) {
  Numbers numbers;
  const int n = 150;
  auto a = numbers.reals<double>(n, -1e6, 1e6);
  auto b = numbers.reals<double>(n, -50, 50);
  a[3] = 0;
  b[5] = 0;
  a[7] = -0.0;
  b[9] = 0x1p-1040;
  a[9] = 0x1p-1000;
  b[11] = INFINITY;
  Buffer<double> da(a), db(b), out(8 * n);
  Program program("double_arith", level());
  ASSERT_HIP(program.run("double_arith", {groups(n, kBlock)}, {kBlock},
                         da.device(), db.device(), out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    const double expected[8] = {x + y,
                                x * y,
                                std::fma(x, y, -x),
                                x / y,
                                std::sqrt(std::fabs(x)),
                                double(float(x)),
                                double(int(std::floor(x))) +
                                    double(unsigned(i)),
                                x < y ? std::trunc(x) : std::nearbyint(y)};
    for (int k = 0; k < 8; ++k)
      ASSERT_TRUE(same<uint64_t>(got[i * 8 + k], expected[k]))
          << " in result " << k << " of " << x << ", " << y;
  }
}

TEST_P(OpenCL, Mandelbrot) {
  const int width = 61, height = 37, limit = 60;
  const float x0 = -2.1f, y0 = -1.2f, step = 0.05f;
  Buffer<int32_t> out(width * height);
  Program program("mandelbrot", level());
  ASSERT_HIP(program.run("mandelbrot", {groups(width, 16), groups(height, 8)},
                         {16, 8}, out.device(), width, height, x0, y0, step,
                         limit));
  const auto got = out.read();
  for (int py = 0; py < height; ++py)
    for (int px = 0; px < width; ++px) {
      const float sx = step * float(px), sy = step * float(py);
      const float cx = x0 + sx, cy = y0 + sy;
      float x = 0, y = 0;
      int count = 0;
      for (; count < limit; ++count) {
        const float xx = x * x, yy = y * y;
        if (xx + yy > 4.0f)
          break;
        const float xy = 2.0f * x * y, difference = xx - yy;
        y = xy + cy;
        x = difference + cx;
      }
      ASSERT_EQ(got[py * width + px], count) << px << ", " << py;
    }
}

TEST_P(OpenCL, Matmul) {
  Numbers numbers;
  const int m = 37, n = 50, k = 29;
  const auto a = numbers.reals<float>(m * k, -1, 1);
  const auto b = numbers.reals<float>(k * n, -1, 1);
  Buffer<float> da(a), db(b), c(m * n, NAN);
  Program program("matmul", level());
  ASSERT_HIP(program.run("matmul", {groups(n, 16), groups(m, 16)}, {16, 16},
                         da.device(), db.device(), c.device(), m, n, k));
  const auto got = c.read();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0; // in the kernel's order, so equal to the last bit
      for (int d = 0; d < 32; ++d)
        sum = d < k ? std::fma(a[i * k + d], b[d * n + j], sum) : sum;
      ASSERT_EQ(got[i * n + j], sum) << i << ", " << j;
    }
}

/// a * b^T on the matrix cores; integers small enough to be exact, and reals.
void matrixCores(int level, const char *file, const char *kernel, int tile,
                 ElemType type) {
  Numbers numbers;
  const int m = 2 * tile, n = 3 * tile, k = 48;
  for (bool exact : {true, false}) {
    std::vector<uint16_t> a(m * k), b(n * k);
    for (auto *values : {&a, &b})
      for (uint16_t &value : *values)
        value = encode(type, exact ? double(int(numbers.next() % 17) - 8)
                                   : numbers.real(-2, 2));
    Buffer<uint16_t> da(a), db(b);
    Buffer<float> c(m * n, NAN);
    Program program(file, level);
    ASSERT_HIP(program.run(kernel, {unsigned(n / tile), unsigned(m / tile)},
                           {64}, da.device(), db.device(), c.device(), k, n));
    const auto got = c.read();
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0, magnitude = 0;
        for (int d = 0; d < k; ++d) {
          const double product =
              decode(type, a[i * k + d]) * decode(type, b[j * k + d]);
          sum += product;
          magnitude += std::fabs(product);
        }
        ASSERT_NEAR(got[i * n + j], sum, exact ? 0 : magnitude * 0x1p-20)
            << kernel << " " << i << ", " << j;
      }
  }
}

TEST_P(OpenCL, MfmaF16) {
  matrixCores(level(), "mfma_f16", "mfma16_f16", 16, ElemType::F16);
  matrixCores(level(), "mfma_f16", "mfma32_f16", 32, ElemType::F16);
}

TEST_P(OpenCL, MfmaBF16) {
  matrixCores(level(), "mfma_bf16", "mfma16_bf16", 16, ElemType::BF16);
  matrixCores(level(), "mfma_bf16", "mfma32_bf16", 32, ElemType::BF16);
}

TEST_P(OpenCL, Blur) {
  Numbers numbers;
  const int n = 300;
  const auto in = numbers.reals<float>(n, 0, 256);
  Buffer<float> din(in), out(n);
  Program program("tables", level());
  ASSERT_HIP(program.run("blur", {groups(n, kBlock)}, {kBlock}, din.device(),
                         out.device(), n));
  const auto got = out.read();
  for (int i = 0; i < n; ++i) {
    const double expected = 0.5 * in[i] + (i > 0 ? 0.25 * in[i - 1] : 0) +
                            (i + 1 < n ? 0.25 * in[i + 1] : 0);
    ASSERT_NEAR(got[i], expected, 1e-4) << i;
  }
}

} // namespace
