//===- divergence.hip - lanes that go different ways ----------------------===//
//
// Nested loops with early exits, switches, gotos and short circuits; the same
// code runs on the host one item after the other.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

HD int collatz(uint64_t n) {
  int steps = 0;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    if (++steps > 500)
      return -1;
  }
  return steps;
}

HD int nested(int seed) {
  int total = 0;
  for (int i = 0; i < seed % 13; ++i) {
    if ((i + seed) % 5 == 3)
      continue;
    for (int j = i; j < 20; j += 1 + seed % 3) {
      if (j * i > 40 + seed % 17)
        break;
      int k = j;
      do {
        total += k * (i + 1);
        if (total > 5000)
          goto out;
        k -= 1 + i % 2;
      } while (k > 0 && (total & 7) != 5);
    }
  }
out:
  return total;
}

HD int machine(const uint8_t *code, int size, int x) {
  int stack[8] = {x};
  int top = 0, pc = 0, steps = 0;
  while (pc < size && ++steps < 200) {
    switch (code[pc++]) {
    case 0:
      if (top < 7) {
        stack[top + 1] = stack[top];
        ++top;
      }
      break;
    case 1:
      stack[top] += 3;
      break;
    case 2:
      stack[top] = int(uint32_t(stack[top]) * 5u);
      break;
    case 3:
      if (top) {
        stack[top - 1] ^= stack[top];
        --top;
      }
      break;
    case 4:
      if (stack[top] & 1)
        pc += 2;
      break;
    case 5:
      if (stack[top] > 0 && stack[top] % 3 == 0)
        pc = 0;
      break;
    case 6:
      stack[top] >>= 1;
      break;
    default:
      return stack[top] - steps;
    }
  }
  return stack[top] + steps;
}

constexpr int kCode = 24;

__global__ void control(const uint8_t *codes, int *out) {
  const int i = int(globalX());
  out[3 * i] = collatz(uint64_t(i) + 1);
  out[3 * i + 1] = nested(i);
  out[3 * i + 2] = machine(codes + (i % 16) * kCode, kCode, i * 7 - 300);
}

HIP_CASE(ControlFlow) {
  constexpr int kCount = 512;
  Numbers numbers;
  auto codes = numbers.integers<uint8_t>(16 * kCode);
  for (uint8_t &c : codes)
    c %= 8;
  Buffer<uint8_t> device(report, codes);
  Buffer<int> out(report, size_t(3 * kCount));
  control<<<kCount / 128, 128>>>(device, out);
  finish(report);
  std::vector<int> want;
  for (int i = 0; i < kCount; ++i) {
    want.push_back(collatz(uint64_t(i) + 1));
    want.push_back(nested(i));
    want.push_back(machine(&codes[size_t(i % 16 * kCode)], kCode, i * 7 - 300));
  }
  same(report, "control", out.read(), want);
}

/// Barriers inside uniform branches, with waves that took other loops before.
__global__ void phases(int *data, int rounds) {
  __shared__ int box[256];
  const int t = int(threadX());
  box[t] = data[globalX()];
  for (int r = 0; r < rounds; ++r) {
    syncThreads();
    int x = box[(t + r + 1) % 256];
    for (int k = 0; k < (t ^ r) % 9; ++k)
      x = x * 3 + k;
    if (r % 2 == 0) {
      syncThreads();
      box[t] = x;
    } else {
      syncThreads();
      box[t] ^= x;
    }
  }
  data[globalX()] = box[t];
}

HIP_CASE(Phases) {
  Numbers numbers;
  auto data = numbers.integers<int>(512);
  for (int &x : data)
    x &= 0xff;
  Buffer<int> device(report, data);
  phases<<<2, 256>>>(device, 5);
  finish(report);
  for (int block = 0; block < 2; ++block) {
    uint32_t box[256], next[256];
    for (int t = 0; t < 256; ++t)
      box[t] = uint32_t(data[size_t(block * 256 + t)]);
    for (int r = 0; r < 5; ++r) {
      for (int t = 0; t < 256; ++t) {
        uint32_t x = box[(t + r + 1) % 256];
        for (int k = 0; k < (t ^ r) % 9; ++k)
          x = x * 3 + uint32_t(k);
        next[t] = r % 2 == 0 ? x : box[t] ^ x;
      }
      std::memcpy(box, next, sizeof(box));
    }
    for (int t = 0; t < 256; ++t)
      data[size_t(block * 256 + t)] = int(box[t]);
  }
  same(report, "phases", device.read(), data);
}

HD int escape(double cx, double cy) {
  double x = 0, y = 0;
  int n = 0;
  for (; n < 100 && x * x + y * y < 4; ++n) {
    const double t = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = t;
  }
  return n;
}

__global__ void mandelbrot(int *out, int width) {
  const uint32_t x = blockX() * 16 + threadX(), y = blockY() * 16 + threadY();
  out[y * uint32_t(width) + x] =
      escape(double(x) / 16 - 2, double(y) / 16 - 1.5);
}

HIP_CASE(Mandelbrot) {
  constexpr int kWidth = 48;
  Buffer<int> out(report, size_t(kWidth * kWidth));
  mandelbrot<<<dim3(3, 3), dim3(16, 16)>>>(out, kWidth);
  finish(report);
  std::vector<int> want;
  for (int y = 0; y < kWidth; ++y)
    for (int x = 0; x < kWidth; ++x)
      want.push_back(escape(double(x) / 16 - 2, double(y) / 16 - 1.5));
  same(report, "mandelbrot", out.read(), want);
}

} // namespace
