//===- transcendental.hip - hardware functions and their expansions -------===//
//
// Against the host's fp64 functions, within the errors that AMD's ISA documents
// give for the instructions, and with one rounding more where the compiler
// works around ranges or multiplies afterwards.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

constexpr int kCount = 2048;
constexpr int kSingle = 24, kHalf = 11, kDouble = 53;

/// One function of a kernel's argument: what the device does, the exact value,
/// the inputs and the error that is allowed.
template <typename T>
struct Unary {
  const char *what;
  double (*exact)(double);
  double low, high, ulps;
};

template <int Which, typename T>
__device__ T apply(T x) {
  if constexpr (sizeof(T) == 4) {
    switch (Which) {
    case 0:
      return __builtin_amdgcn_rcpf(x);
    case 1:
      return __builtin_amdgcn_rsqf(x);
    case 2:
      return __builtin_amdgcn_sqrtf(x);
    case 3:
      return __builtin_amdgcn_exp2f(x);
    case 4:
      return __builtin_amdgcn_logf(x);
    case 5:
      return __builtin_amdgcn_fractf(x);
    case 6:
      return __builtin_exp2f(x);
    case 7:
      return __builtin_expf(x);
    case 8:
      return __builtin_log2f(x);
    case 9:
      return __builtin_logf(x);
    case 10:
      return __builtin_log10f(x);
    case 11:
      return __builtin_exp10f(x);
    }
  } else if constexpr (sizeof(T) == 2) {
    switch (Which) {
    case 0:
      return __builtin_amdgcn_rcph(x);
    case 1:
      return __builtin_amdgcn_rsqh(x);
    case 2:
      return __builtin_amdgcn_sqrth(x);
    case 3:
      return __builtin_elementwise_exp2(x);
    case 4:
      return __builtin_elementwise_log2(x);
    case 5:
      return __builtin_elementwise_exp(x);
    case 6:
      return __builtin_elementwise_log(x);
    }
  } else {
    switch (Which) {
    case 0:
      return __builtin_amdgcn_rcp(x);
    case 1:
      return __builtin_amdgcn_rsq(x);
    case 2:
      return __builtin_amdgcn_sqrt(x);
    case 3:
      return __builtin_amdgcn_fract(x);
    }
  }
  return x;
}

template <int Which, typename T>
__global__ void function(const T *x, T *out) {
  const uint32_t i = globalX();
  out[i] = apply<Which>(x[i]);
}

template <int Which, typename T>
void check(fovea::test::Report &report, const Unary<T> &row) {
  Numbers numbers;
  const auto x = numbers.reals<T>(kCount, row.low, row.high);
  Buffer<T> in(report, x), out(report, size_t(kCount));
  function<Which, T><<<kCount / 256, 256>>>(in, out);
  finish(report);
  std::vector<double> want;
  for (T value : x)
    want.push_back(row.exact(double(value)));
  constexpr int digits = sizeof(T) == 2   ? kHalf
                         : sizeof(T) == 4 ? kSingle
                                          : kDouble;
  constexpr double least = sizeof(T) == 2   ? 0x1p-14
                           : sizeof(T) == 4 ? 0x1p-126
                                            : 0x1p-1022;
  within(report, row.what, out.read(), want, row.ulps, digits, least);
}

double reciprocal(double x) { return 1 / x; }
double reciprocalRoot(double x) { return 1 / std::sqrt(x); }
double root(double x) { return std::sqrt(x); }
double exp2Of(double x) { return std::exp2(x); }
double expOf(double x) { return std::exp(x); }
double exp10Of(double x) { return std::pow(10.0, x); }
double log2Of(double x) { return std::log2(x); }
double logOf(double x) { return std::log(x); }
double log10Of(double x) { return std::log10(x); }
double fraction(double x) { return x - std::floor(x); }

// 1 ulp each: CDNA3 ISA document, tables of VOP1 instructions.
HIP_CASE(HardwareSingle) {
  check<0, float>(report, {"v_rcp_f32", reciprocal, -1e4, 1e4, 1});
  check<1, float>(report, {"v_rsq_f32", reciprocalRoot, 1e-4, 1e4, 1});
  check<2, float>(report, {"v_sqrt_f32", root, 0, 1e6, 1});
  check<3, float>(report, {"v_exp_f32", exp2Of, -120, 120, 1});
  check<4, float>(report, {"v_log_f32", log2Of, 2, 1e6, 1});
  check<5, float>(report, {"v_fract_f32", fraction, -1000, 1000, 0.5});
}

HIP_CASE(ExpandedSingle) {
  check<6, float>(report, {"exp2", exp2Of, -140, 120, 1});
  check<7, float>(report, {"exp", expOf, -90, 80, 2});
  check<8, float>(report, {"log2", log2Of, 1e-38, 0.5, 1});
  check<9, float>(report, {"log", logOf, 2, 1e9, 2});
  check<10, float>(report, {"log10", log10Of, 2, 1e9, 2});
  check<11, float>(report, {"exp10", exp10Of, -36, 36, 2});
}

// 0.51 ulp each. What is expanded goes through fp32.
HIP_CASE(HardwareHalf) {
  check<0, _Float16>(report, {"v_rcp_f16", reciprocal, 0.01, 100, 0.51});
  check<1, _Float16>(report, {"v_rsq_f16", reciprocalRoot, 0.01, 100, 0.51});
  check<2, _Float16>(report, {"v_sqrt_f16", root, 0, 60000, 0.51});
  check<3, _Float16>(report, {"exp2", exp2Of, -10, 10, 0.51});
  check<4, _Float16>(report, {"log2", log2Of, 2, 60000, 0.51});
  check<5, _Float16>(report, {"exp", expOf, -6, 6, 1});
  check<6, _Float16>(report, {"log", logOf, 2, 60000, 2});
}

// The fp64 approximations are good to 2^29 ulp; programs refine them.
HIP_CASE(HardwareDouble) {
  check<0, double>(report, {"v_rcp_f64", reciprocal, 0.1, 1e9, 0x1p29});
  check<1, double>(report, {"v_rsq_f64", reciprocalRoot, 0.1, 1e9, 0x1p29});
  check<2, double>(report, {"v_sqrt_f64", root, 0.1, 1e9, 0x1p29});
  check<3, double>(report, {"v_fract_f64", fraction, -1000, 1000, 0.5});
}

// Sine and cosine of revolutions, an absolute error: no document gives it;
// 2^-20 is far from what the instructions reach.
__global__ void waves(const float *x, float *sine, float *cosine) {
  const uint32_t i = globalX();
  sine[i] = __builtin_amdgcn_sinf(x[i]);
  cosine[i] = __builtin_amdgcn_cosf(x[i]);
}

HIP_CASE(SineAndCosine) {
  Numbers numbers;
  const auto x = numbers.reals<float>(kCount, -256, 256);
  Buffer<float> in(report, x), sine(report, size_t(kCount)),
      cosine(report, size_t(kCount));
  waves<<<kCount / 256, 256>>>(in, sine, cosine);
  finish(report);
  const auto s = sine.read(), c = cosine.read();
  for (int i = 0; i < kCount; ++i) {
    const double angle = double(x[i]) * 2 * 3.14159265358979323846;
    CHECK(std::fabs(s[i] - std::sin(angle)) < 0x1p-20);
    CHECK(std::fabs(c[i] - std::cos(angle)) < 0x1p-20);
  }
}

} // namespace
