//===- ServedTest.cpp - calls that are served -----------------------------===//

#include "Client.h"

#include <cmath>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>
#include <thread>

using namespace client;
using ref::ElemType;
using ref::Layout;
using ref::Mask;

namespace {

const char *why() { return fovea_aotriton_last_message(); }

/// Shapes that both passes are run on.
const Shape kShapes[] = {
    {ElemType::BF16, Layout::BHSD, 2, 2, 2, 70, 70},
    {ElemType::F16, Layout::BSHD, 1, 4, 2, 33, 100},
    {ElemType::BF16, Layout::BSHD, 1, 4, 1, 100, 33, 64, Mask::CausalTopLeft},
    {ElemType::F16, Layout::SBHD, 2, 2, 2, 40, 90, 64, Mask::CausalBottomRight},
    // Rows that see no key.
    {ElemType::BF16, Layout::BHSD, 1, 2, 2, 90, 40, 64,
     Mask::CausalBottomRight},
    {ElemType::F32, Layout::BSHD, 1, 4, 2, 40, 70, 64, Mask::CausalTopLeft},
};

class Served : public testing::TestWithParam<Shape> {};

TEST_P(Served, Forward) {
  Problem problem(GetParam());
  ASSERT_EQ(attnFwd(forwardParams(problem)), hipSuccess) << why();
  EXPECT_STREQ(why(), "");
  EXPECT_EQ(problem.judgeForward(), "");
}

TEST_P(Served, Backward) {
  Problem problem(GetParam());
  problem.fillForwardResults();
  Lazy delta;
  ASSERT_EQ(attnBwd(backwardParams(problem, delta)), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
  EXPECT_EQ(delta.acquired, 1);
  EXPECT_EQ(delta.disposed, 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Served, testing::ValuesIn(kShapes));

/// Of rows that see no key, as other libraries have them: flash-attn's
/// +infinity, and of AOTriton's tiles the lowest number in base 2 without a
/// sum.
TEST(Backward, TakesLogSumExpsOfOthers) {
  Problem problem(kShapes[4]);
  problem.fillForwardResults();
  const float others[] = {-INFINITY, INFINITY, -2.3586e38f, -2.36e38f};
  std::vector<float> lse = problem.lse.download();
  size_t count = 0;
  for (float &value : lse)
    if (value == -INFINITY)
      value = others[count++ % std::size(others)];
  ASSERT_EQ(count, 2u * 50);
  problem.lse.memory.write(lse.data());
  Lazy delta;
  ASSERT_EQ(attnBwd(backwardParams(problem, delta)), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
}

TEST(Forward, NeedsNoLse) {
  Problem problem({});
  v3::attn_fwd_params params = forwardParams(problem);
  params.L = aotriton::TensorView<2>(0, {0, 0}, {0, 0}, aotriton::kFloat32);
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(false), "");
  for (float untouched : problem.lse.download())
    EXPECT_TRUE(untouched != untouched);
}

/// What does not matter without dropout is neither read nor written.
TEST(Forward, IgnoresPhiloxWithoutDropout) {
  Problem problem({});
  Floats seed(1, 2), counter(1, 1);
  auto scalar = [](const Floats &f, aotriton::DType type) {
    return aotriton::TensorView<0>(reinterpret_cast<intptr_t>(f.memory.data()),
                                   type);
  };
  v3::attn_fwd_params params = forwardParams(problem);
  params.philox_seed_ptr = params.philox_offset1 =
      scalar(seed, aotriton::kInt64);
  params.philox_offset2 = 5;
  params.philox_seed_output = params.philox_offset_output =
      scalar(seed, aotriton::kUInt64);
  params.persistent_atomic_counter = scalar(counter, aotriton::kInt32);
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(), "");
  for (float untouched : seed.download())
    EXPECT_TRUE(untouched != untouched);
}

/// A window in numbers, and the mask it is.
struct Numbers {
  int64_t seqlenQ, seqlenK;
  int32_t left, right;
  Mask mask;
};
class Windows : public testing::TestWithParam<Numbers> {};

TEST_P(Windows, AreMasks) {
  const Numbers &n = GetParam();
  Shape shape;
  shape.seqlenQ = n.seqlenQ;
  shape.seqlenK = n.seqlenK;
  shape.mask = n.mask;
  Problem problem(shape);
  v3::attn_fwd_params params = forwardParams(problem);
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = n.left;
  params.window_right = n.right;
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(), "");
}

INSTANTIATE_TEST_SUITE_P(
    InNumbers, Windows,
    testing::Values(Numbers{20, 50, 20, 0, Mask::CausalTopLeft},
                    Numbers{20, 50, 19, 30, Mask::CausalBottomRight},
                    Numbers{50, 20, 50, -30, Mask::CausalBottomRight},
                    Numbers{20, 50, 20, 50, Mask::None},
                    Numbers{20, 50, 19, 49, Mask::None},
                    Numbers{20, 50, 19, v3::WindowValue::BottomRightAligned,
                            Mask::CausalBottomRight},
                    Numbers{20, 50, v3::WindowValue::BottomRightAligned, 0,
                            Mask::CausalTopLeft}));

/// \param call    made on a stream
/// \param result  which it writes, and not while it is recorded
void capture(const std::function<hipError_t(hipStream_t)> &call,
             Buffer &result) {
  Recording recording(call, result);
  ASSERT_EQ(recording.status(), hipSuccess) << why();
  result.download();
  EXPECT_EQ(result.values[0], 0xffff) << "it ran while it was recorded";
  ASSERT_EQ(recording.replay(), hipSuccess);
}

TEST(Forward, CanBeCapturedWhenItHasRun) {
  Problem problem({});
  capture(
      [&](hipStream_t stream) {
        return attnFwd(forwardParams(problem), stream);
      },
      problem.out);
  EXPECT_EQ(problem.judgeForward(), "");
}

#if AOTRITON_VERSION_MINOR >= 12
/// With the gradient of a bias of fp32, which the library makes zeros first.
TEST(Backward, CanBeCapturedWhenItHasRun) {
  Shape shape;
  shape.type = ElemType::F32;
  Problem problem(shape);
  const auto bias = std::make_shared<Bias>(shape.type, Bias::Four{1, 2, 70, 70},
                                           Bias::Four{0, 0, 70, 1});
  problem.score = bias;
  problem.fillForwardResults();
  Buffer dbias(shape.type, Layout::BHSD, 1, 2, 70, 70);
  Lazy unused;
  v3::attn_bwd_params params = backwardParams(problem, unused);
  Floats delta(unused.rows, unused.columns);
  params.D = {};
  params.D.eager = delta.view();
  params.B = bias->view();
  params.DB = dbias.view();
  capture([&](hipStream_t stream) { return attnBwd(params, stream); }, dbias);
  EXPECT_EQ(problem.judgeBackward(), "");
  dbias.download();
  EXPECT_EQ(problem.judgeBias(dbias), "");
}

/// Run with deterministic kernels, and with others that have dropout as well:
/// of the latter one is loaded when a capture begins, of the former none.
TEST(CapturedFirst, DecidesForItselfAlone) {
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  const auto calls = [&](const v3::attn_bwd_params &params, bool isCaptured) {
    void *graph = nullptr;
    if (isCaptured)
      EXPECT_EQ(hipStreamBeginCapture(stream, 0), hipSuccess);
    const hipError_t status = attnBwd(params, stream);
    if (isCaptured) {
      EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipSuccess);
      EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
    }
    EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
    return status;
  };
  Problem problem({});
  problem.fillForwardResults();
  Lazy unused;
  v3::attn_bwd_params params = backwardParams(problem, unused);
  Floats delta(unused.rows, unused.columns),
      sums(1, int64_t(1) << 17); // what kernels with atomic sums work in
  params.D = {};
  params.D.eager = delta.view();
  v3::attn_bwd_params roomy = params;
  roomy.D.eager = sums.view();
  v3::attn_bwd_params dropping = roomy;
  dropping.dropout_p = 0.5f;
  ASSERT_EQ(calls(dropping, false), hipSuccess) << why();

  // Those that are not loaded are the ones that the client brings memory for.
  EXPECT_EQ(calls(params, true), hipErrorStreamCaptureUnsupported);
  EXPECT_NE(std::string(why()).find("not loaded"), std::string::npos) << why();
  // With memory for the others these are taken, into the graph.
  EXPECT_EQ(calls(roomy, true), hipSuccess) << why();
  ASSERT_EQ(calls(params, false), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
  EXPECT_EQ(calls(params, true), hipSuccess) << why();
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
}
#endif

TEST(Forward, TakesNothingToDo) {
  Shape shape;
  shape.batch = 0;
  Problem problem(shape);
  EXPECT_EQ(attnFwd(forwardParams(problem)), hipSuccess) << why();
}

TEST(Backward, IsTheSameInEveryRun) {
  Shape shape;
  shape.mask = Mask::CausalTopLeft;
  Problem first(shape), second(shape);
  v3::attn_options options;
#if AOTRITON_VERSION_MINOR >= 12
  options.deterministic = true;
#else
  options.force_backend_index = 0;
#endif
  for (Problem *problem : {&first, &second}) {
    problem->fillForwardResults();
    Lazy delta;
    ASSERT_EQ(attnBwd(backwardParams(*problem, delta), {}, &options),
              hipSuccess)
        << why();
    EXPECT_EQ(problem->judgeBackward(), "");
  }
  EXPECT_EQ(first.dq.values, second.dq.values);
  EXPECT_EQ(first.dk.values, second.dk.values);
  EXPECT_EQ(first.dv.values, second.dv.values);
}

/// AOTriton's own backends, of which both passes' are Triton's kernels.
TEST(Backward, TakesBackends) {
  for (int backend : {0, 1}) {
    SCOPED_TRACE(backend);
    Problem problem({});
    v3::attn_options options;
    options.force_backend_index = backend;
    if (backend == 0) {
      ASSERT_EQ(attnFwd(forwardParams(problem), {}, &options), hipSuccess)
          << why();
      EXPECT_EQ(problem.judgeForward(), "");
    }
    problem.fillForwardResults();
    Lazy delta;
    ASSERT_EQ(attnBwd(backwardParams(problem, delta), {}, &options), hipSuccess)
        << why();
    EXPECT_EQ(problem.judgeBackward(), "");
  }
}

#if AOTRITON_VERSION_MINOR < 12
TEST(Backward, IsAITERs) {
  Problem problem({});
  problem.fillForwardResults();
  Lazy delta;
  ASSERT_EQ(v3::aiter_bwd(backwardParams(problem, delta),
                          v3::attn_bwd_params::kVersion, nullptr),
            hipSuccess)
      << why();
  EXPECT_EQ(problem.judgeBackward(), "");
  EXPECT_EQ(delta.disposed, 1);
}
#endif

/// Also on 0.14's library by a client of 0.13, whose structure is 4 bytes
/// shorter than what the library's constructor sets.
TEST(Backward, WithRoomBehindTheParameters) {
  Problem problem({});
  problem.fillForwardResults();
  Lazy delta;
  alignas(v3::attn_bwd_params) char room[sizeof(v3::attn_bwd_params) + 16];
  auto *params = new (room) v3::attn_bwd_params(backwardParams(problem, delta));
  ASSERT_EQ(attnBwd(*params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
  EXPECT_EQ(delta.disposed, 1);
}

/// DQ_ACC is asked for where D is too small, and only there.
TEST(Backward, TakesTheWorkspaceThatFits) {
  Problem problem({});
  problem.fillForwardResults();
  Lazy delta, dqAcc;
  v3::attn_bwd_params params = backwardParams(problem, delta);
  dqAcc.rows = delta.rows * delta.columns;
  dqAcc.columns = problem.shape.dim;
  params.DQ_ACC = dqAcc.tensor<4>();
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(delta.acquired, 1);
  EXPECT_EQ(dqAcc.acquired, 0);
  EXPECT_EQ(dqAcc.disposed, 1); // as AOTriton does
  EXPECT_EQ(params.DQ_ACC.cookie, nullptr);

  params.D = {};
  params.DQ_ACC = dqAcc.tensor<4>();
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(dqAcc.acquired, 1);
  EXPECT_EQ(problem.judgeBackward(), "");
}

#if AOTRITON_VERSION_MINOR >= 12
TEST(Backward, TakesAnEagerWorkspace) {
  Problem problem({});
  problem.fillForwardResults();
  Lazy delta;
  v3::attn_bwd_params params = backwardParams(problem, delta);
  Floats memory(delta.rows, delta.columns);
  params.D = {};
  params.D.eager = memory.view();
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");

  // DQ_ACC, too, in whatever order its dimensions lie.
  const uint64_t rows = uint64_t(delta.columns), heads = uint64_t(delta.rows),
                 dim = uint64_t(problem.shape.dim);
  Floats accumulator(delta.rows * delta.columns, problem.shape.dim);
  params.D.eager = {};
  params.DQ_ACC.eager = {reinterpret_cast<intptr_t>(accumulator.memory.data()),
                         {1, heads, rows, dim},
                         {heads * rows * dim, dim, heads * dim, 1},
                         aotriton::kFloat32};
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
}
#endif

/// The client's workspaces, D and DQ_ACC, that fail to be allocated.
class LazyTensors : public testing::Test {
protected:
  LazyTensors() {
    problem.fillForwardResults();
    params = backwardParams(problem, delta);
    accumulator.rows = delta.rows * delta.columns;
    accumulator.columns = problem.shape.dim;
    params.DQ_ACC = accumulator.tensor<4>();
  }
  /// Nothing was written, and both were freed.
  void expectNothing() {
    for (Buffer *gradient : {&problem.dq, &problem.dk, &problem.dv}) {
      gradient->download();
      for (uint16_t value : gradient->values)
        ASSERT_EQ(value, 0xffff);
    }
    EXPECT_EQ(delta.disposed, 1);
    EXPECT_EQ(accumulator.disposed, 1);
  }
  Problem problem{{}};
  Lazy delta, accumulator;
  v3::attn_bwd_params params;
};

TEST_F(LazyTensors, WithoutData) {
  delta.fails = Lazy::Fails::GivesNull;
  EXPECT_EQ(attnBwd(params), hipErrorOutOfMemory);
  EXPECT_STREQ(why(), "attn_bwd: D was to be allocated for the kernels' "
                      "workspace of 560 bytes, and its acquire() gave no data");
  EXPECT_EQ(accumulator.acquired, 0);
  expectNothing();
}

TEST_F(LazyTensors, OfWhichTheSecondHasNoData) {
  --delta.columns;
  accumulator.fails = Lazy::Fails::GivesNull;
  EXPECT_EQ(attnBwd(params), hipErrorOutOfMemory);
  EXPECT_NE(std::string(why()).find("DQ_ACC was to be allocated"),
            std::string::npos)
      << why();
  EXPECT_EQ(delta.acquired, 1);
  expectNothing();
}

TEST_F(LazyTensors, ThatThrow) {
  --delta.columns;
  accumulator.fails = Lazy::Fails::Throws;
  EXPECT_THROW(attnBwd(params), Lazy::Thrown);
  expectNothing();
}

#if AOTRITON_VERSION_MINOR >= 12
/// The number of elements is a small one if it is counted modulo 2^64.
TEST_F(LazyTensors, WithSizesThatNoMemoryHas) {
  constexpr uint64_t kHalf = uint64_t(1) << 32;
  Floats memory(delta.rows, delta.columns);
  params.D.acquire = nullptr;
  params.D.eager = {reinterpret_cast<intptr_t>(memory.memory.data()),
                    {kHalf + 1, kHalf},
                    {kHalf, 1},
                    aotriton::kFloat32};
  params.DQ_ACC.acquire = nullptr;
  EXPECT_EQ(attnBwd(params), hipErrorNotSupported);
  EXPECT_NE(std::string(why()).find("D 0, DQ_ACC 0"), std::string::npos)
      << why();
}
#endif

/// As the interface says nothing of the distance of elements that are alone.
TEST(Forward, TakesOneElementAtAnyDistance) {
  Shape shape;
  shape.seqlenQ = 1;
  Problem problem(shape);
  v3::attn_fwd_params params = forwardParams(problem);
  params.L = {reinterpret_cast<intptr_t>(params.L.data_ptr()),
              params.L.sizes(),
              {1, 7},
              aotriton::kFloat32};
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(), "");
}

/// Run with memory of the library's own.
class OwnWorkspace : public testing::Test {
protected:
  OwnWorkspace() {
    problem.fillForwardResults();
    params = backwardParams(problem, delta);
    params.D = {};
    EXPECT_EQ(hipStreamCreate(&stream), hipSuccess);
  }
  ~OwnWorkspace() override { (void)hipStreamDestroy(stream); }
  Problem problem{{}};
  Lazy delta;
  v3::attn_bwd_params params;
  hipStream_t stream = nullptr;
};

TEST_F(OwnWorkspace, IsTakenAndGivenBack) {
  size_t before = 0, after = 0, total = 0;
  for (size_t *available : {&before, &after}) {
    ASSERT_EQ(attnBwd(params, stream), hipSuccess) << why();
    ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
    EXPECT_EQ(problem.judgeBackward(), "");
    ASSERT_EQ(hipMemGetInfo(available, &total), hipSuccess);
  }
  EXPECT_EQ(before, after);
}

TEST_F(OwnWorkspace, IsNotTakenWhereTheClientsFits) {
  delta.acquired = 0;
  params.D = delta.tensor<2>();
  ASSERT_EQ(attnBwd(params, stream), hipSuccess) << why();
  ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(delta.acquired, 1);
  EXPECT_EQ(problem.judgeBackward(), "");
}

TEST_F(OwnWorkspace, IsNotTakenIntoAGraph) {
  ASSERT_EQ(attnBwd(params, stream), hipSuccess) << why();
  ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
  void *graph = nullptr;
  ASSERT_EQ(hipStreamBeginCapture(stream, 0), hipSuccess);
  EXPECT_EQ(attnBwd(params, stream), hipErrorNotSupported);
  EXPECT_NE(std::string(why()).find("while the stream is being captured"),
            std::string::npos)
      << why();
  ASSERT_EQ(hipStreamEndCapture(stream, &graph), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
}

/// Few rows of many keys, which kernels that split keys serve where there is
/// memory for their sums.
class Shares : public testing::Test {
protected:
  static Shape fewRows() {
    Shape shape;
    shape.headsQ = 8;
    shape.seqlenQ = 3;
    shape.seqlenK = 4000;
    return shape;
  }
  /// Runs the call on its own and in a graph, which has no memory of ours.
  /// \return whether both give the same bits
  bool isAloneAsInAGraph() {
    Problem problem(fewRows());
    const v3::attn_fwd_params params = forwardParams(problem);
    std::vector<float> lse;
    Recording recording(
        [&](hipStream_t stream) {
          if (lse.empty()) {
            EXPECT_EQ(attnFwd(params, stream), hipSuccess) << why();
            EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
            EXPECT_EQ(problem.judgeForward(), "");
            lse = problem.lse.download();
            return hipSuccess;
          }
          return attnFwd(params, stream);
        },
        problem.out);
    EXPECT_EQ(recording.status(), hipSuccess) << why();
    EXPECT_EQ(recording.replay(), hipSuccess);
    EXPECT_EQ(problem.judgeForward(), "");
    return problem.lse.download() == lse;
  }
};
using OwnShares = Shares;

TEST_F(Shares, AreNotOfTheClientsMemory) { EXPECT_TRUE(isAloneAsInAGraph()); }

TEST_F(OwnShares, AreOfOurMemoryButInGraphs) {
  EXPECT_FALSE(isAloneAsInAGraph());
}

TEST_F(OwnShares, GiveTheirMemoryBack) {
  Problem problem(fewRows());
  size_t before = 0, after = 0, total = 0;
  for (size_t *available : {&before, &after}) {
    ASSERT_EQ(attnFwd(forwardParams(problem)), hipSuccess) << why();
    ASSERT_EQ(hipStreamSynchronize(nullptr), hipSuccess);
    ASSERT_EQ(hipMemGetInfo(available, &total), hipSuccess);
  }
  EXPECT_EQ(before, after);
}

TEST(Device, IsDescribed) {
  EXPECT_EQ(aotriton::v2::flash::check_gpu(nullptr), hipSuccess) << why();
  const aotriton::Gpu gpu = aotriton::getGpuFromStream(nullptr);
  EXPECT_EQ(gpu, aotriton::GPU_AMD_ARCH_GFX942_MOD0);
  EXPECT_EQ(aotriton::Gpu2VendorArch(gpu), 0x10020942u);
  EXPECT_EQ(aotriton::getMultiProcessorCount(nullptr), 304);
  EXPECT_FALSE(aotriton::isArchExperimentallySupported(nullptr));
#if AOTRITON_VERSION_MINOR >= 12
  EXPECT_FALSE(aotriton::isArchTechPreview(nullptr));
#endif
}

/// The stream's device is taken, and the thread's is as before afterwards.
TEST(Device, IsTheStreams) {
  int count = 0;
  ASSERT_EQ(hipGetDeviceCount(&count), hipSuccess);
  ASSERT_EQ(count, 2) << "run with two simulated devices";
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  Problem problem({}); // its memory is device 1's
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(aotriton::v2::flash::check_gpu(stream), hipSuccess) << why();
  ASSERT_EQ(attnFwd(forwardParams(problem), stream), hipSuccess) << why();
  ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
  int device = -1;
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(problem.judgeForward(), "");
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
}

/// Threads with streams of their own; one of them is refused all the time.
TEST(Threads, ShareTheLibrary) {
  constexpr int kThreads = 4;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n)
    threads.emplace_back([n, &wrong] {
      hipStream_t stream = nullptr;
      if (hipStreamCreate(&stream) != hipSuccess)
        wrong[size_t(n)] = "no stream";
      for (int round = 0; round < 3 && wrong[size_t(n)].empty(); ++round) {
        Problem problem({}, uint64_t(n * 10 + round));
        v3::attn_fwd_params params = forwardParams(problem);
        params.dropout_p = n == 0 ? 0.5f : 0.0f;
        const hipError_t error = attnFwd(params, stream);
        (void)hipStreamSynchronize(stream);
        const std::string message = why();
        if (error != (n == 0 ? hipErrorNotSupported : hipSuccess) ||
            message.empty() != (n != 0))
          wrong[size_t(n)] = "status " + std::to_string(error) + message;
        else if (n != 0)
          wrong[size_t(n)] = problem.judgeForward();
      }
      (void)hipStreamDestroy(stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &message : wrong)
    EXPECT_EQ(message, "");
}

} // namespace
