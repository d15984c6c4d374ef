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

/// A log-sum-exp of rows without keys stays with the library that goes on with
/// it; there are backward kernels here.
TEST(Fallback, LeavesRowsWithoutKeysHere) {
  Shape shape;
  shape.seqlenQ = 90;
  shape.seqlenK = 40;
  shape.mask = ref::Mask::CausalBottomRight;
  Problem problem(shape);
  EXPECT_EQ(attnFwd(forwardParams(problem)), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(problem.judgeForward(), "");
}

TEST(Fallback, TakesWhatIsAlwaysRefused) {
  expectHandedOn(
      v2::debug_simulate_encoded_softmax({}, 0.5f, {}, {}, 0, nullptr),
      aotriton::kTrueStatus, "debug_simulate_encoded_softmax: ");
#if AOTRITON_VERSION_MINOR < 12
  Problem problem({});
  Lazy delta;
  expectHandedOn(v3::aiter_bwd(backwardParams(problem, delta),
                               v3::attn_bwd_params::kVersion, nullptr),
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
  EXPECT_NE(lastMessage().find("check_gpu: none of the 12 kernels"),
            std::string::npos)
      << lastMessage();
  EXPECT_TRUE(aotriton::isArchExperimentallySupported(nullptr));
#if AOTRITON_VERSION_MINOR >= 12
  EXPECT_TRUE(aotriton::isArchTechPreview(nullptr));
#endif
  Problem problem({});
  expectHandedOn(attnFwd(forwardParams(problem)), hipSuccess, "none of the 12");
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

  // These would get NaN from our log-sum-exp.
  Shape shape;
  shape.seqlenQ = 90;
  shape.seqlenK = 40;
  shape.mask = ref::Mask::CausalBottomRight;
  Problem without(shape);
  v3::attn_fwd_params forward = forwardParams(without);
  expectHandedOn(attnFwd(forward), hipSuccess, "rows that see no key");
  forward.L = {};
  ASSERT_EQ(attnFwd(forward), hipSuccess);
  EXPECT_EQ(lastMessage(), "");
  EXPECT_EQ(without.judgeForward(false), "");
}

} // namespace
