//===- calls.hip - functions, recursion, pointers and virtual calls -------===//
//
// Calls that the compiler can't inline: recursion on a stack in scratch, tables
// of function pointers (which the loader relocates), and objects with virtual
// functions that a kernel constructs.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <algorithm>

/// Placement new for kernels; the host's comes with its library.
inline __device__ void *operator new(size_t, void *place) noexcept {
  return place;
}
inline __device__ void operator delete(void *, void *) noexcept {}

namespace {

HD uint32_t ackermann(uint32_t m, uint32_t n) {
  if (m == 0)
    return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

/// Ways to put queens on a board, with the rows so far as bits.
HD int queens(int size, uint32_t columns, uint32_t left, uint32_t right) {
  const uint32_t all = (1u << size) - 1;
  if (columns == all)
    return 1;
  int ways = 0;
  for (uint32_t open = all & ~(columns | left | right); open;) {
    const uint32_t place = open & -open;
    open ^= place;
    ways += queens(size, columns | place, (left | place) << 1,
                   (right | place) >> 1);
  }
  return ways;
}

HD void quickSort(int *data, int low, int high) {
  if (low >= high)
    return;
  const int pivot = data[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (data[i] < pivot)
      ++i;
    while (data[j] > pivot)
      --j;
    if (i <= j) {
      const int kept = data[i];
      data[i++] = data[j];
      data[j--] = kept;
    }
  }
  quickSort(data, low, j);
  quickSort(data, i, high);
}

__global__ void recursion(const int *in, int *out) {
  const uint32_t i = globalX();
  int local[40];
  for (int k = 0; k < 40; ++k)
    local[k] = in[(i * 7 + uint32_t(k)) % 256];
  quickSort(local, 0, 39);
  out[4 * i] = local[int(i) % 40];
  out[4 * i + 1] = local[39] - local[0];
  out[4 * i + 2] = int(ackermann(2, i % 7));
  out[4 * i + 3] = queens(int(i) % 6 + 1, 0, 0, 0);
}

HIP_CASE(Recursion) {
  constexpr int kCount = 128;
  Numbers numbers;
  auto in = numbers.integers<int>(256);
  for (int &x : in)
    x %= 100000;
  Buffer<int> device(report, in), out(report, size_t(4 * kCount));
  recursion<<<2, kCount / 2>>>(device, out);
  finish(report);
  std::vector<int> want(4 * kCount);
  for (int i = 0; i < kCount; ++i) {
    int local[40];
    for (int k = 0; k < 40; ++k)
      local[k] = in[size_t((i * 7 + k) % 256)];
    std::sort(local, local + 40);
    want[4 * i] = local[i % 40];
    want[4 * i + 1] = local[39] - local[0];
    want[4 * i + 2] = int(ackermann(2, uint32_t(i % 7)));
    want[4 * i + 3] = queens(i % 6 + 1, 0, 0, 0);
  }
  same(report, "recursion", out.read(), want);
}

typedef int (*Operation)(int, int);
HD int addUp(int a, int b) { return a + b; }
HD int takeOff(int a, int b) { return a - b; }
HD int multiply(int a, int b) { return a * b; }
HD int shiftUp(int a, int b) { return int(uint32_t(a) << (b & 7)); }

__device__ const Operation operations[4] = {addUp, takeOff, multiply, shiftUp};
const Operation hostOperations[4] = {addUp, takeOff, multiply, shiftUp};

__device__ __attribute__((noinline)) int fold(Operation f, int start, int n) {
  int result = start;
  for (int i = 1; i <= n; ++i)
    result = f(result, i);
  return result;
}

/// Lanes of one wave call different functions.
__global__ void pointers(int *out) {
  const int i = int(globalX());
  out[i] = fold(operations[i % 4], i, 3) + operations[(i / 4) % 4](i, i & 3);
}

HIP_CASE(FunctionPointers) {
  constexpr int kCount = 256;
  Buffer<int> out(report, size_t(kCount));
  pointers<<<2, kCount / 2>>>(out);
  finish(report);
  std::vector<int> want(kCount);
  for (int i = 0; i < kCount; ++i) {
    int folded = i;
    for (int k = 1; k <= 3; ++k)
      folded = hostOperations[i % 4](folded, k);
    want[i] = folded + hostOperations[(i / 4) % 4](i, i & 3);
  }
  same(report, "pointers", out.read(), want);
}

struct Shape {
  HD virtual double area() const { return -1; }
  HD virtual int corners() const { return 0; }
};
struct Circle : Shape {
  double radius;
  HD explicit Circle(double radius) : radius(radius) {}
  HD double area() const override { return 3 * radius * radius; }
};
struct Box : Shape {
  double width, height;
  HD Box(double width, double height) : width(width), height(height) {}
  HD double area() const override { return width * height; }
  HD int corners() const override { return 4; }
};
struct Square final : Box {
  HD explicit Square(double side) : Box(side, side) {}
  HD int corners() const override { return Box::corners() + 100; }
};

constexpr size_t kShapeBytes = sizeof(Square);

struct ShapeMemory {
  alignas(8) char bytes[kShapeBytes];
};

__device__ Shape *makeShape(void *memory, int i) {
  switch (i % 3) {
  case 0:
    return new (memory) Circle(i);
  case 1:
    return new (memory) Box(i, 2);
  default:
    return new (memory) Square(i);
  }
}

__global__ void build(ShapeMemory *memory, Shape **shapes) {
  const int i = int(globalX());
  shapes[i] = makeShape(memory[i].bytes, i);
}

/// The objects of an earlier launch: their virtual tables are still there.
__global__ void measure(Shape *const *shapes, double *out) {
  const int i = int(globalX());
  const Shape *shape = shapes[i];
  out[i] = shape->area() + shape->corners() * 1000.0;
}

HIP_CASE(VirtualCalls) {
  constexpr int kCount = 192;
  Buffer<ShapeMemory> memory(report, size_t(kCount));
  Buffer<Shape *> shapes(report, size_t(kCount));
  Buffer<double> out(report, size_t(kCount));
  build<<<3, 64>>>(memory, shapes);
  measure<<<3, 64>>>(shapes, out);
  finish(report);
  std::vector<double> want(kCount);
  for (int i = 0; i < kCount; ++i)
    want[i] = i % 3 == 0   ? 3.0 * i * i
              : i % 3 == 1 ? i * 2 + 4000
                           : 104000.0 + double(i) * i;
  same(report, "areas", out.read(), want);
}

/// A structure by value in and out of a function that is really called.
struct Matrix {
  double at[3][3];
};
HD __attribute__((noinline)) Matrix product(Matrix a, const Matrix &b) {
  Matrix c;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      c.at[i][j] = 0;
      for (int k = 0; k < 3; ++k)
        c.at[i][j] += a.at[i][k] * b.at[k][j];
    }
  return c;
}
HD Matrix powerOf(Matrix a, int n) {
  Matrix r = a;
  for (int i = 1; i < n; ++i)
    r = product(r, a);
  return r;
}

__global__ void powers(const Matrix *in, Matrix *out) {
  const uint32_t i = globalX();
  out[i] = powerOf(in[i], int(i % 5) + 1);
}

HIP_CASE(StructuresByValue) {
  constexpr int kCount = 64;
  Numbers numbers;
  std::vector<Matrix> in(kCount);
  for (Matrix &m : in)
    for (auto &row : m.at)
      for (double &x : row)
        x = numbers.real(-2, 2);
  Buffer<Matrix> device(report, in), out(report, in.size());
  powers<<<1, kCount>>>(device, out);
  finish(report);
  const auto got = out.read();
  for (int i = 0; i < kCount; ++i) {
    const Matrix want = powerOf(in[size_t(i)], i % 5 + 1);
    CHECK(std::memcmp(&got[size_t(i)], &want, sizeof(want)) == 0);
  }
}

} // namespace
