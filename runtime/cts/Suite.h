//===- Suite.h - what the conformance suite's files share -------*- C++ -*-===//
//
// The suite runs on any HIP library and any packages, through the public C
// interface alone: `fovea-cts PACKAGE...`, with FOVEA_HIP_LIBRARY choosing the
// library. Its problems have results that are known in closed form, so that it
// needs no second implementation of attention.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_CTS_SUITE_H
#define FOVEA_RUNTIME_CTS_SUITE_H

#include "fovea/fovea.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace fovea::cts {

/// The context that all tests share, with the packages of the command line.
fovea_context_t *context();

/// Another one with the same packages, for the caller to destroy: nothing is
/// loaded on it yet.
fovea_context_t *newContext();

/// A kernel that runs on device 0.
struct KernelCase {
  uint32_t id = 0;
  bool backward = false;
  /// A backward kernel that promises the same bits in every run.
  bool deterministic = false;
  std::string name; ///< letters, digits and underscores, for the test's name
  int32_t dtype, mask;
  int64_t headDim;
  /// It has no mask compiled in, but takes a window at run time.
  bool takesWindow = false;
};

/// All forward or backward kernels of the packages that run on device 0.
std::vector<KernelCase> kernelCases(bool backward);
/// Those of them that take a window.
std::vector<KernelCase> windowCases(bool backward);

/// Says by a skipped test that no such kernel takes a window.
void expectWindowCases(bool backward);

/// A window with its name. None of its numbers but FOVEA_WINDOW_INFINITE means
/// no bound.
struct NamedWindow {
  const char *name;
  int64_t left, right;
  int32_t leftAlignment, rightAlignment;
  fovea_window_t group() const;
};
/// Both alignments and mixed ones, sides without a bound, bands beside the
/// diagonal, windows that hold no key.
const std::vector<NamedWindow> &windows();

/// The HIP functions that the suite calls itself.
struct HipFunctions {
  int (*hipMalloc)(void **, size_t);
  int (*hipFree)(void *);
  int (*hipMemcpy)(void *, const void *, size_t, int);
  int (*hipStreamCreate)(void **);
  int (*hipStreamDestroy)(void *);
  int (*hipStreamSynchronize)(void *);
  int (*hipDeviceSynchronize)();
  int (*hipModuleLoadData)(void **, const void *);
  int (*hipModuleUnload)(void *);
  int (*hipModuleGetFunction)(void **, void *, const char *);
  int (*hipStreamBeginCapture)(void *, int);
  int (*hipStreamEndCapture)(void *, void **);
  int (*hipGraphInstantiate)(void **, void *, void **, char *, size_t);
  int (*hipGraphLaunch)(void *, void *);
  int (*hipGraphExecDestroy)(void *);
  int (*hipGraphDestroy)(void *);
  const char *(*hipGetErrorName)(int);
};
const HipFunctions &hip();

/// Expects a status of the runtime, with its message on failure.
#define EXPECT_FOVEA(expression, wanted)                                       \
  do {                                                                         \
    const fovea_status_t status_ = (expression);                               \
    EXPECT_EQ(status_, wanted)                                                 \
        << fovea_status_name(status_) << ": " << fovea_last_message();         \
  } while (false)
#define ASSERT_HIP(expression)                                                 \
  do {                                                                         \
    const int error_ = (expression);                                           \
    ASSERT_EQ(error_, 0) << #expression << ": "                                \
                         << ::fovea::cts::hip().hipGetErrorName(error_);       \
  } while (false)

/// A device allocation whose content is checked on both sides of what it is
/// for: 4096 bytes of a pattern before and behind.
class Guarded {
public:
  explicit Guarded(size_t bytes);
  ~Guarded();
  Guarded(const Guarded &) = delete;
  void *data() const { return base + kGuard; }
  void upload(const void *from);
  /// Reads the content back and expects the guards to be as they were.
  void download(void *to) const;

private:
  static constexpr size_t kGuard = 4096;
  size_t bytes;
  uint8_t *base = nullptr;
};

/// One pass with values given as functions of their place.
struct Problem {
  KernelCase kernel;
  int64_t batch = 1, headsQ = 2, headsK = 1, seqlenQ = 1, seqlenK = 1;
  float scale = 1;
  bool wantLse = true; ///< of a forward pass
  /// Order of the dimensions in memory: batch-head-seq or batch-seq-head.
  bool sequenceFirst = false;
  int64_t padding = 0; ///< elements between rows, never to be touched
  void *stream = nullptr;
  /// Enqueues the pass on `stream`; empty: fovea_forward on context().
  std::function<void(const fovea_forward_params_t &)> enqueue;

  using Value =
      std::function<float(int64_t batch, int64_t head, int64_t row, int64_t d)>;
  Value q = [](int64_t, int64_t, int64_t, int64_t) { return 1.0f; };
  Value k = q, v = q;

  /// In place of the kernel's mask.
  std::optional<fovea_window_t> window;

  struct Keys {
    int64_t begin, end; ///< begin <= end
    int64_t count() const { return end - begin; }
  };
  /// Keys that a row sees by the window or the kernel's mask.
  Keys keysOf(int64_t row) const;
  int64_t visibleKeys(int64_t row) const { return keysOf(row).count(); }
};

/// Results on the host; padding between the rows has been checked.
struct Outcome {
  std::vector<float> out; ///< [batch, heads_q, seqlen_q, head_dim]
  std::vector<float> lse; ///< [batch, heads_q, seqlen_q]
};

/// Runs a problem on device 0. Failures are GoogleTest's.
Outcome run(const Problem &problem);

/// Calls `check` with batch, head, row, the row's outputs and log-sum-exp.
void forEachRow(const Problem &problem, const Outcome &outcome,
                const std::function<void(int64_t, int64_t, int64_t,
                                         const float *, float)> &check);

/// Relative rounding error of the type, half a unit in the last place.
double roundoff(int32_t dtype);

} // namespace fovea::cts

#endif // FOVEA_RUNTIME_CTS_SUITE_H
