//===- Case.h - one program of the HIP corpus -------------------*- C++ -*-===//
//
// A case runs kernels of its own file and compares with the host. The files are
// compiled for every chip, so this names no test library: HipTest.cpp makes a
// GoogleTest test of each case.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_HIPCASE_H
#define FOVEA_TEST_HIPCASE_H

#include "HipLanguage.h"

#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace fovea::test {

/// What a case found wrong; the first lines of it.
class Report {
public:
  void fail(const std::string &what) {
    ++count;
    if (count <= 8)
      text += what + "\n";
  }
  bool ok() const { return count == 0; }
  int count = 0;
  int compared = 0;
  std::string text;
};

struct Case {
  const char *name;
  void (*run)(Report &);
  static std::vector<Case> &all() {
    static std::vector<Case> cases;
    return cases;
  }
};

struct RegisterCase {
  RegisterCase(const char *name, void (*run)(Report &)) {
    Case::all().push_back({name, run});
  }
};

#define HIP_CASE(name)                                                         \
  static void name(fovea::test::Report &);                                     \
  static const fovea::test::RegisterCase name##Case{#name, name};              \
  static void name(fovea::test::Report &report)

/// The call must succeed.
#define HIP(call)                                                              \
  do {                                                                         \
    if (const hipError_t status = (call))                                      \
      report.fail(std::string(#call) + ": " + hipGetErrorName(status));        \
  } while (0)

/// The condition must hold.
#define CHECK(condition)                                                       \
  do {                                                                         \
    ++report.compared;                                                         \
    if (!(condition))                                                          \
      report.fail(std::string(__FILE__) + ":" + std::to_string(__LINE__) +     \
                  ": " #condition);                                            \
  } while (0)

/// Device memory of `T`, copied both ways as a whole.
template <typename T>
class Buffer {
public:
  Buffer(Report &report, const std::vector<T> &values)
      : report(report), count(values.size()) {
    HIP(hipMalloc(reinterpret_cast<void **>(&memory), count * sizeof(T)));
    HIP(hipMemcpy(memory, values.data(), count * sizeof(T),
                  hipMemcpyHostToDevice));
  }
  Buffer(Report &report, size_t count, T value = T())
      : Buffer(report, std::vector<T>(count, value)) {}
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { (void)hipFree(memory); }
  std::vector<T> read() const {
    std::vector<T> values(count);
    HIP(hipMemcpy(values.data(), memory, count * sizeof(T),
                  hipMemcpyDeviceToHost));
    return values;
  }
  operator T *() const { return memory; }

private:
  Report &report;
  size_t count;
  T *memory = nullptr;
};

/// Waits for the device; kernels in flight must end well.
inline void finish(Report &report) {
  HIP(hipGetLastError());
  HIP(hipDeviceSynchronize());
}

template <typename T>
std::string textOf(const T &value) {
  std::ostringstream out;
  if constexpr (std::is_arithmetic_v<T>)
    out << +value;
  else
    out << static_cast<double>(value);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T) < 8 ? sizeof(T) : 8);
  out << " (0x" << std::hex << bits << ")";
  return out.str();
}

/// Every element has the same bits; NaNs are all alike.
template <typename T>
void same(Report &report, const char *what, const std::vector<T> &got,
          const std::vector<T> &want) {
  if (got.size() != want.size())
    return report.fail(std::string(what) + ": sizes differ");
  for (size_t i = 0; i < got.size(); ++i) {
    ++report.compared;
    if (std::memcmp(&got[i], &want[i], sizeof(T)) == 0)
      continue;
    if (got[i] != got[i] && want[i] != want[i])
      continue;
    report.fail(std::string(what) + "[" + std::to_string(i) +
                "]: " + textOf(got[i]) + ", expected " + textOf(want[i]));
  }
}

/// Every element lies within `ulps` units in the last place of `want`, the
/// exact value, or is the same infinity, or NaN where `want` is. `digits` is
/// the precision of T, `least` its smallest normal number.
template <typename T>
void within(Report &report, const char *what, const std::vector<T> &got,
            const std::vector<double> &want, double ulps, int digits,
            double least) {
  for (size_t i = 0; i < got.size(); ++i) {
    ++report.compared;
    const double g = double(got[i]), w = want[i];
    if ((g != g && w != w) || g == w)
      continue;
    int exponent;
    std::frexp(std::fmax(std::fabs(w), least), &exponent);
    const double ulp = std::ldexp(1.0, exponent - digits);
    if (std::fabs(g - w) <= ulps * ulp)
      continue;
    report.fail(std::string(what) + "[" + std::to_string(i) +
                "]: " + textOf(got[i]) + ", expected " + textOf(w) + ", " +
                std::to_string(std::fabs(g - w) / ulp) + " ulp apart");
  }
}

/// Deterministic 64-bit random numbers (xorshift64*).
class Numbers {
public:
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
  }
  double real(double low, double high) {
    return low + (high - low) * double(next() >> 11) * 0x1p-53;
  }
  template <typename T>
  std::vector<T> integers(size_t count) {
    std::vector<T> values(count);
    for (T &value : values)
      value = T(next() >> 9);
    return values;
  }
  template <typename T>
  std::vector<T> reals(size_t count, double low, double high) {
    std::vector<T> values(count);
    for (T &value : values)
      value = T(real(low, high));
    return values;
  }

private:
  uint64_t state = 0x1234567887654321ull;
};

/// Lanes of a wave of the current device.
inline int waveSize() {
  constexpr int kWarpSize = 87;
  int device = 0, lanes = 0;
  (void)hipGetDevice(&device);
  (void)hipDeviceGetAttribute(&lanes, kWarpSize, device);
  return lanes;
}

} // namespace fovea::test

using fovea::test::Buffer;
using fovea::test::finish;
using fovea::test::Numbers;
using fovea::test::same;
using fovea::test::waveSize;
using fovea::test::within;

#endif // FOVEA_TEST_HIPCASE_H
