//===- templates.hip - kernels made by templates, with callables ----------===//
//
// One kernel for several types, sizes and functors; each instance has a host
// function of its own that is registered under its mangled name.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

template <typename T, int Rows, int Columns>
__global__ void product(const T *a, const T *b, T *c, int inner) {
  T sum[Rows][Columns] = {};
  const int row = int(blockY() * 8 + threadY()) * Rows;
  const int column = int(blockX() * 8 + threadX()) * Columns;
  const int width = int(gridItemsX()) * Columns;
  for (int k = 0; k < inner; ++k)
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < Columns; ++j)
        sum[i][j] += a[(row + i) * inner + k] * b[k * width + column + j];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Columns; ++j)
      c[(row + i) * width + column + j] = sum[i][j];
}

template <typename T, int Rows, int Columns>
void checkProduct(fovea::test::Report &report, const char *what) {
  constexpr int kHeight = 16 * Rows, kWidth = 8 * Columns, kInner = 13;
  Numbers numbers;
  std::vector<T> a(kHeight * kInner), b(kInner * kWidth);
  for (T &x : a)
    x = T(int(numbers.next() % 17) - 8);
  for (T &x : b)
    x = T(int(numbers.next() % 17) - 8);
  Buffer<T> deviceA(report, a), deviceB(report, b),
      c(report, size_t(kHeight * kWidth));
  product<T, Rows, Columns>
      <<<dim3(1, 2), dim3(8, 8)>>>(deviceA, deviceB, c, kInner);
  finish(report);
  std::vector<T> want(kHeight * kWidth);
  for (int i = 0; i < kHeight; ++i)
    for (int j = 0; j < kWidth; ++j) {
      T sum = 0;
      for (int k = 0; k < kInner; ++k)
        sum += a[size_t(i * kInner + k)] * b[size_t(k * kWidth + j)];
      want[size_t(i * kWidth + j)] = sum;
    }
  same(report, what, c.read(), want);
}

HIP_CASE(Products) {
  checkProduct<int, 1, 1>(report, "int 1x1");
  checkProduct<float, 2, 2>(report, "float 2x2");
  checkProduct<double, 4, 1>(report, "double 4x1");
  checkProduct<int64_t, 1, 3>(report, "int64 1x3");
  checkProduct<_Float16, 2, 4>(report, "half 2x4");
}

struct Polynomial {
  double c[4];
  HD double operator()(double x) const {
    return ((c[3] * x + c[2]) * x + c[1]) * x + c[0];
  }
};
struct Clamp {
  double low, high;
  HD double operator()(double x) const {
    return x < low ? low : x > high ? high : x;
  }
};
template <typename F, typename G>
struct Chain {
  F f;
  G g;
  HD double operator()(double x) const { return g(f(x)); }
};

template <typename F>
__global__ void map(F f, const double *in, double *out) {
  out[globalX()] = f(in[globalX()]);
}

template <typename F>
void checkMap(fovea::test::Report &report, const char *what, F f) {
  Numbers numbers;
  const auto in = numbers.reals<double>(256, -3, 3);
  Buffer<double> device(report, in), out(report, in.size());
  map<<<4, 64>>>(f, static_cast<const double *>(device),
                 static_cast<double *>(out));
  finish(report);
  std::vector<double> want;
  for (double x : in)
    want.push_back(f(x));
  same(report, what, out.read(), want);
}

HIP_CASE(Functors) {
  const Polynomial cubic = {{1, -2, 0.5, 0.25}};
  checkMap(report, "polynomial", cubic);
  checkMap(report, "chain", Chain<Polynomial, Clamp>{cubic, {-1, 2}});
  const double scale = 1.75;
  checkMap(report, "lambda",
           [=] HD(double x) { return x * scale > 1 ? x : -x; });
}

} // namespace
