//===- FallbackTest.cpp - calls that are handed on ------------------------===//
//
// Linked with the stand-in for AOTriton's library, before which Fovea's is
// loaded, and which FOVEA_AOTRITON_FALLBACK names: the same file, or a copy.
//
//===----------------------------------------------------------------------===//

#include "Client.h"
#include "TrueLibrary.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <limits>

using namespace client;
namespace v2 = aotriton::v2::flash;

namespace {

std::string lastMessage() {
  auto *get = reinterpret_cast<const char *(*)()>(
      dlsym(RTLD_DEFAULT, "fovea_aotriton_last_message"));
  return get ? get() : "Fovea's library is not loaded";
}

/// The latest call was refused for `reason` and handed on.
void expectHandedOn(hipError_t status, hipError_t expected,
                    const char *reason) {
  EXPECT_EQ(status, expected);
  const std::string message = lastMessage();
  EXPECT_NE(message.find(reason), message.npos) << message;
  EXPECT_NE(message.find("; handed on to "), message.npos) << message;
  EXPECT_EQ(message.find("which returned status 719") != message.npos,
            expected == aotriton::kTrueStatus)
      << message;
}

TEST(Fallback, TakesNothingThatIsServed) {
  Problem problem({});
  ASSERT_EQ(attnFwd(forwardParams(problem)), hipSuccess) << lastMessage();
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(problem.judgeForward(), "");
  problem.fillForwardResults();
  Lazy delta;
  ASSERT_EQ(attnBwd(backwardParams(problem, delta)), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(delta.disposed, 1);
  EXPECT_EQ(problem.judgeBackward(), "");
  EXPECT_EQ(v2::check_gpu(nullptr), hipSuccess);
  EXPECT_EQ(aotriton::getMultiProcessorCount(nullptr), 304);
  EXPECT_FALSE(aotriton::isArchExperimentallySupported(nullptr));
}

TEST(Fallback, TakesWhatIsRefused) {
  Problem problem({});
  v3::attn_fwd_params forward = forwardParams(problem);
  forward.dropout_p = 0.5f;
  expectHandedOn(attnFwd(forward), hipSuccess, "attn_fwd: dropout_p is 0.5");
  forward.dropout_p = aotriton::kFailingDropout;
  expectHandedOn(attnFwd(forward), aotriton::kTrueStatus, "dropout_p is 0.25");
  // Nothing of another layout is looked at here.
  expectHandedOn(v3::attn_fwd(forward, 99, nullptr), aotriton::kTrueStatus,
                 "layout 99");
  forward = forwardParams(problem);
  forward.Out = forward.Q;
  expectHandedOn(attnFwd(forward), hipSuccess, "share memory");

  // What was acquired is freed once, by the one that has taken the call.
  Lazy delta, accumulator;
  v3::attn_bwd_params backward = backwardParams(problem, delta);
  delta.columns = 1;
  accumulator.rows = accumulator.columns = 1;
  backward.DQ_ACC = accumulator.tensor<4>();
  expectHandedOn(attnBwd(backward), hipSuccess, "need a workspace");
  EXPECT_EQ(delta.disposed, 1);
  EXPECT_EQ(accumulator.disposed, 1);
  // And it is the right library afterwards.
  EXPECT_EQ(attnFwd(forwardParams(problem)), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(problem.judgeForward(), "");
}

constexpr int32_t kTopLeft = v3::WindowValue::TopLeftAligned;
constexpr int32_t kBottomRight = v3::WindowValue::BottomRightAligned;
constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();

/// A window as a client gives it, what it is from the top left, and whether a
/// row sees no key.
struct Windowed {
  int64_t seqlenQ, seqlenK;
  int32_t left, right;
  int64_t fromTopLeft, toTopLeft;
  bool hasEmptyRow;
};
const Windowed kWindowed[] = {
    {90, 40, kBottomRight, kBottomRight, 90, -50, true},
    {90, 40, kTopLeft, kTopLeft, 90, 0, false},
    {90, 40, 5, kBottomRight, 5, -50, true},
    {90, 40, 50, 0, 50, 0, false},
    {90, 40, 49, 0, 49, 0, true}, // the last row
    {40, 90, 5, kBottomRight, 5, 50, false},
    {40, 90, 0, 0, 0, 0, false},
    {40, 90, -3, 7, -3, 7, false},
    {40, 90, 7, -1, 7, -1, true}, // the first row
    {40, 90, -51, kMost, -51, kMost, true},
    {40, 90, -50, kMost, -50, kMost, false},
    {40, 90, 3, -4, 3, -4, true},
    {40, 90, kLeast + 5, kMost, kLeast + 5, kMost, true},
    {40, 90, kMost, kLeast, kMost, kLeast, true},
};
Shape shapeOf(const Windowed &window) {
  Shape shape;
  shape.seqlenQ = window.seqlenQ;
  shape.seqlenK = window.seqlenK;
  shape.mask = {window.fromTopLeft, window.toTopLeft, fovea::Alignment::TopLeft,
                fovea::Alignment::TopLeft};
  return shape;
}
v3::attn_fwd_params forwardOf(const Windowed &window, const Problem &problem) {
  v3::attn_fwd_params params = forwardParams(problem);
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = window.left;
  params.window_right = window.right;
  return params;
}
std::string nameOf(const Windowed &window) {
  return std::to_string(window.seqlenQ) + "x" + std::to_string(window.seqlenK) +
         " " + std::to_string(window.left) + ":" + std::to_string(window.right);
}

/// A log-sum-exp of rows without keys stays with the library that goes on with
/// it; there are backward kernels here.
TEST(Fallback, LeavesRowsWithoutKeysHere) {
  for (const Windowed &window : kWindowed) {
    SCOPED_TRACE(nameOf(window));
    Problem problem(shapeOf(window));
    EXPECT_EQ(attnFwd(forwardOf(window, problem)), hipSuccess);
    EXPECT_EQ(lastMessage(), "");
    EXPECT_EQ(problem.judgeForward(), "");
  }
}

TEST(Fallback, TakesWhatIsAlwaysRefused) {
  expectHandedOn(
      v2::debug_simulate_encoded_softmax({}, 0.5f, {}, {}, 0, nullptr),
      aotriton::kTrueStatus, "debug_simulate_encoded_softmax: ");
#if AOTRITON_VERSION_MINOR < 12
  Problem problem({});
  Lazy delta;
  v3::attn_bwd_params backward = backwardParams(problem, delta);
  delta.columns = 1;
  expectHandedOn(
      v3::aiter_bwd(backward, v3::attn_bwd_params::kVersion, nullptr),
      hipSuccess, "aiter_bwd: ");
  EXPECT_EQ(delta.disposed, 1);
#endif
#if AOTRITON_VERSION_MINOR < 13
  Problem p({});
  expectHandedOn(v2::attn_fwd(p.q.view(), p.k.view(), p.v.view(), {}, p.scale,
                              p.lse.view(), p.out.view(), 0.5f, {}, {}, 0, {},
                              {}, {}, false, {}, nullptr),
                 hipSuccess, "attn_fwd: dropout_p");
  expectHandedOn(v2::attn_bwd(p.q.view(), p.k.view(), p.v.view(), {}, p.scale,
                              p.out.view(), p.dout.view(), p.dq.view(),
                              p.dk.view(), p.dv.view(), {}, p.lse.view(), {},
                              0.5f, {}, {}, 0, false, nullptr),
                 hipSuccess, "attn_bwd: dropout_p");
  expectHandedOn(v2::attn_bwd_fused({}, {}, {}, {}, 0, {}, {}, {}, {}, {}, {},
                                    {}, 0, {}, {}, 0, false, nullptr),
                 hipSuccess, "attn_bwd_fused: ");
  expectHandedOn(v2::attn_fwd_compact_varlen({}, {}, {}, {}, {}, {}, 1, 1, 1,
                                             {}, {}, 0, {}, {}, 0, {}, {}, {},
                                             false, {}, nullptr),
                 hipSuccess, "attn_fwd_compact_varlen: ");
  expectHandedOn(v2::attn_bwd_compact_varlen({}, {}, {}, {}, {}, 1, 1, {}, 1,
                                             {}, {}, {}, {}, {}, {}, {}, {}, 0,
                                             {}, {}, 0, false, nullptr),
                 hipSuccess, "attn_bwd_compact_varlen: ");
#endif
}

/// Run on a device that no package is for.
TEST(OtherChip, IsTheirs) {
  EXPECT_EQ(v2::check_gpu(nullptr), hipSuccess);
  EXPECT_NE(lastMessage().find("check_gpu: none of the 8 kernels"),
            std::string::npos)
      << lastMessage();
  EXPECT_TRUE(aotriton::isArchExperimentallySupported(nullptr));
#if AOTRITON_VERSION_MINOR >= 12
  EXPECT_TRUE(aotriton::isArchTechPreview(nullptr));
#endif
  Problem problem({});
  expectHandedOn(attnFwd(forwardParams(problem)), hipSuccess, "none of the 8");
}

/// Run with forward kernels alone: gradients are the other library's.
TEST(ForwardOnly, BackwardIsTheirs) {
  EXPECT_EQ(v2::check_gpu(nullptr), hipSuccess);
  Problem problem({});
  ASSERT_EQ(attnFwd(forwardParams(problem)), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(problem.judgeForward(), "");
  problem.fillForwardResults();
  Lazy delta;
  expectHandedOn(attnBwd(backwardParams(problem, delta)), hipSuccess,
                 "attn_bwd: no kernel");
  EXPECT_EQ(delta.disposed, 1);
}

/// The other library's gradients would become NaN by our log-sum-exp of rows
/// without keys, and only by that.
TEST(ForwardOnly, RowsWithoutKeysAreTheirs) {
  for (const Windowed &window : kWindowed) {
    SCOPED_TRACE(nameOf(window));
    Problem problem(shapeOf(window));
    v3::attn_fwd_params forward = forwardOf(window, problem);
    if (window.hasEmptyRow) {
      expectHandedOn(attnFwd(forward), hipSuccess, "rows that see no key");
      forward.L = {};
    }
    ASSERT_EQ(attnFwd(forward), hipSuccess);
    EXPECT_EQ(lastMessage(), "");
    EXPECT_EQ(problem.judgeForward(!window.hasEmptyRow), "");
  }
}

/// A forward call with dropout, rows without keys, and seeds that go into
/// memory of the client's, which no backward call has.
struct SeedsOut {
  Problem problem{shapeOf(kWindowed[0])};
  const Words words{{1, 2, 0, 0}};
  v3::attn_fwd_params forward = forwardOf(kWindowed[0], problem);
  SeedsOut() {
    forward.dropout_p = 0.5f;
    forward.philox_seed_ptr = words.at(0);
    forward.philox_offset1 = words.at(1);
    forward.philox_seed_output = words.at(2);
    forward.philox_offset_output = words.at(3);
  }
};

/// Run with kernels of dropout: of both passes, and of the forward one alone.
TEST(FallbackDropout, LeavesRowsWithoutKeysHere) {
  SeedsOut call;
  ASSERT_EQ(attnFwd(call.forward), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(call.words.download()[2], 1u);
}
TEST(ForwardOnlyDropout, RowsWithoutKeysAreTheirs) {
  SeedsOut call;
  expectHandedOn(attnFwd(call.forward), hipSuccess, "rows that see no key");
  call.forward.L = {};
  ASSERT_EQ(attnFwd(call.forward), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(call.words.download()[2], 1u);
}

/// Nor does anyone know here whether sequences have keys.
TEST(ForwardOnly, SequencesAreTheirs) {
  Problem problem({}); // its batch is one sequence
  const int32_t sums[] = {0, int32_t(problem.shape.seqlenQ)};
  Memory memory(sizeof(sums));
  memory.write(sums);
  const aotriton::TensorView<1> lengths(
      reinterpret_cast<intptr_t>(memory.data()), {2}, {1}, aotriton::kInt32);
  v3::attn_fwd_params forward = forwardParams(problem);
  forward.Max_seqlen_q = forward.Max_seqlen_k = sums[1];
#if AOTRITON_VERSION_MINOR >= 14
  forward.seqinfo_q0 = forward.seqinfo_k0 = lengths;
  for (v3::VarlenMode *mode :
       {&forward.varlen_bits.qmode, &forward.varlen_bits.kmode}) {
    mode->stacked = 1;
    mode->length = v3::VarlenLength::CUMULATIVE;
    mode->position = v3::VarlenPosition::REUSE;
  }
#else
  forward.cu_seqlens_q = forward.cu_seqlens_k = lengths;
#endif
  expectHandedOn(attnFwd(forward), hipSuccess, "rows that see no key");
  forward.L = {};
  ASSERT_EQ(attnFwd(forward), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(problem.judgeForward(false), "");
}

} // namespace
