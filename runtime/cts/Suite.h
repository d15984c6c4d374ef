//===- Suite.h - what the conformance suite's files share -------*- C++ -*-===//
//
// The suite runs on any HIP library and any packages, through the public C
// interface alone: `fovea-cts PACKAGE...`, with FOVEA_HIP_LIBRARY choosing the
// library. What a call has is filled in by the tables of the operations
// (OperationSpec.h). Its problems have results that are known in closed form,
// so that it needs no second implementation of attention.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_CTS_SUITE_H
#define FOVEA_RUNTIME_CTS_SUITE_H

#include "fovea/Package/OperationSpec.h"
#include "fovea/fovea.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
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
  ProblemKey key;
  const spec::AlgorithmSpec *algorithm = nullptr;
  std::string name; ///< letters, digits and underscores, for the test's name
};

/// In messages of GoogleTest.
inline void PrintTo(const KernelCase &kernel, std::ostream *out) {
  *out << kernel.name;
}

/// All kernels of the packages that run on device 0, or those of an operation.
const std::vector<KernelCase> &kernelCases();
std::vector<KernelCase> kernelCases(OpKind op);
/// Those of them that take a window.
std::vector<KernelCase> windowCases(OpKind op);

/// Says by a skipped test that no such kernel takes a window.
void expectWindowCases(OpKind op);

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

/// One pass with values given as functions of their place.
struct Problem {
  KernelCase kernel;
  int64_t batch = 1, headsQ = 2, headsK = 1, seqlenQ = 1, seqlenK = 1;
  float scale = 1;
  /// The tensors that are all zero in the call.
  std::set<std::string> absent;
  /// Order of the dimensions in memory: batch-head-seq or batch-seq-head.
  bool sequenceFirst = false;
  int64_t padding = 0; ///< elements between rows, never to be touched
  void *stream = nullptr;
  /// Enqueues the pass on `stream`, given the operation's parameters; empty: by
  /// the operation's function on context().
  std::function<void(const void *)> enqueue;
  fovea_status_t status = FOVEA_STATUS_OK; ///< that is expected

  /// By place; the last one is 0 for a vector, whose rows have no elements.
  using Value =
      std::function<float(int64_t batch, int64_t head, int64_t row, int64_t d)>;
  /// Of a tensor that is read; ones where nothing else is said.
  Value &operator[](const std::string &tensor) { return values[tensor]; }
  const Value &operator[](const std::string &tensor) const;

  /// In place of the kernel's mask.
  std::optional<fovea_window_t> window;
  /// Besides the window: structures of the C interface with their headers.
  std::vector<const fovea_group_t *> groups;

  int64_t sizeOf(spec::Extent extent) const;

  struct Keys {
    int64_t begin, end; ///< begin <= end
    int64_t count() const { return end - begin; }
  };
  /// Keys that a row sees by the window or the kernel's mask.
  Keys keysOf(int64_t row) const;
  int64_t visibleKeys(int64_t row) const { return keysOf(row).count(); }

private:
  std::map<std::string, Value> values;
};

/// What the call has written, by name, each in the order of the tensor's shape;
/// NaN where it did not. What it may not write has been checked.
using Results = std::map<std::string, std::vector<float>>;

/// Runs a problem on device 0. Failures are GoogleTest's.
Results run(const Problem &problem);

/// Calls `check` with batch, head, row, the row's outputs and log-sum-exp of a
/// forward pass.
void forEachRow(const Problem &problem, const Results &results,
                const std::function<void(int64_t, int64_t, int64_t,
                                         const float *, float)> &check);

/// Relative rounding error of the type, half a unit in the last place.
double roundoff(DataType type);
/// By how much a mean of ones over so many keys may differ from 1: not at all
/// where the type rounds it; in fp32 by the roundings of both sums.
double errorOfOnes(DataType type, int64_t keys);

} // namespace fovea::cts

#endif // FOVEA_RUNTIME_CTS_SUITE_H
