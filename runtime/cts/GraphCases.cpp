//===- GraphCases.cpp - launches into streams that are captured -----------===//
//
// What fovea_forward_prepare promises, on a HIP library that captures: a kernel
// that is not loaded is refused and the capture goes on as if nobody had asked;
// a prepared one becomes part of the graph.
//
//===----------------------------------------------------------------------===//

#include "Suite.h"

#include <memory>

using namespace fovea;
using namespace fovea::cts;

namespace {

class Graph : public testing::TestWithParam<KernelCase> {};

/// Captures what `enqueue` does to a stream.
template <typename Enqueue>
void *capture(void *stream, Enqueue enqueue) {
  void *graph = nullptr;
  EXPECT_EQ(hip().hipStreamBeginCapture(stream, /*global=*/0), 0);
  enqueue();
  EXPECT_EQ(hip().hipStreamEndCapture(stream, &graph), 0);
  return graph;
}

} // namespace

TEST_P(Graph, PreparedLaunchesAreCaptured) {
  // The graph's kernel lives as long as its context.
  const std::unique_ptr<fovea_context_t, void (*)(fovea_context_t *)> fresh(
      newContext(), fovea_context_destroy);
  Problem p;
  p.kernel = GetParam();
  p.seqlenQ = 70;
  p.seqlenK = 90;
  ASSERT_HIP(hip().hipStreamCreate(&p.stream));
  void *graph = nullptr, *executable = nullptr;
  p.enqueue = [&](const void *given) {
    const auto &params = *static_cast<const fovea_forward_params_t *>(given);
    void *empty = capture(p.stream, [&] {
      EXPECT_FOVEA(fovea_forward(fresh.get(), &params, p.stream),
                   FOVEA_STATUS_INVALID_ARGUMENT);
    });
    EXPECT_EQ(hip().hipGraphDestroy(empty), 0);
    EXPECT_FOVEA(fovea_forward_prepare(fresh.get(), &params, -1, nullptr),
                 FOVEA_STATUS_OK);
    graph = capture(p.stream, [&] {
      EXPECT_FOVEA(fovea_forward(fresh.get(), &params, p.stream),
                   FOVEA_STATUS_OK);
    });
    ASSERT_HIP(
        hip().hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int round = 0; round != 2; ++round)
      ASSERT_HIP(hip().hipGraphLaunch(executable, p.stream));
  };
  // Captured work does not run: the results are those of the graph.
  forEachRow(p, run(p),
             [&](int64_t, int64_t, int64_t row, const float *out, float) {
               const int64_t keys = p.visibleKeys(row);
               const double one = keys > 0 ? 1 : 0,
                            error = errorOfOnes(p.kernel.key.dtype, keys);
               for (int64_t d = 0; d != p.kernel.key.dimOfV(); ++d)
                 ASSERT_NEAR(out[d], one, keys > 0 ? error : 0)
                     << "row " << row << " d " << d;
             });
  ASSERT_HIP(hip().hipGraphExecDestroy(executable));
  ASSERT_HIP(hip().hipGraphDestroy(graph));
  ASSERT_HIP(hip().hipStreamDestroy(p.stream));
}

namespace {

/// One kernel is enough: it is about the runtime.
std::vector<KernelCase> firstKernel() {
  std::vector<KernelCase> kernels = kernelCases(OpKind::Forward);
  kernels.resize(kernels.empty() ? 0 : 1);
  return kernels;
}

} // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Graph);
INSTANTIATE_TEST_SUITE_P(Kernels, Graph, testing::ValuesIn(firstKernel()),
                         [](const auto &info) { return info.param.name; });
