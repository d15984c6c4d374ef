//===- DropoutTest.cpp - weights dropped by chance ------------------------===//
//
// Both passes, seeds on the device, the version's order of words, and what the
// forward pass leaves for the backward one.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <fovea/aotriton.h>
#include <gtest/gtest.h>

using namespace client;

namespace {

const char *why() { return fovea_aotriton_last_message(); }

constexpr uint64_t kSeed = 0xdeadbeefcafe1234, kOffset = 0xfffffff0,
                   kMore = 0x25;

void drop(Problem &problem, float p) {
  ref::Dropout dropout;
  dropout.p = p;
  dropout.seed = kSeed;
  dropout.offset = kOffset + kMore;
  dropout.swapsWords = AOTRITON_VERSION_MINOR < 14;
  dropout.heads = problem.shape.headsQ;
  dropout.seqQ = problem.shape.seqlenQ;
  dropout.seqK = problem.shape.seqlenK;
  problem.dropout = dropout;
}

Shape shapeOf(bool causal) {
  Shape shape;
  shape.batch = 2;
  shape.headsQ = 4;
  shape.seqlenQ = 50;
  shape.seqlenK = 61;
  if (causal)
    shape.mask = ref::Mask::CausalBottomRight;
  return shape;
}

TEST(Dropout, Forward) {
  for (float p : {0.1f, 0.5f, 1.0f}) {
    SCOPED_TRACE(p);
    Problem problem(shapeOf(p == 0.5f));
    drop(problem, p);
    const Words words({kSeed, kOffset, 0, 0});
    v3::attn_fwd_params params = forwardParams(problem);
    params.dropout_p = p;
    params.philox_seed_ptr = words.at(0, aotriton::kInt64);
    params.philox_offset1 = words.at(1);
    params.philox_offset2 = kMore;
    params.philox_seed_output = words.at(2);
    params.philox_offset_output = words.at(3);
    ASSERT_EQ(attnFwd(params), hipSuccess) << why();
    EXPECT_EQ(problem.judgeForward(), "");
    EXPECT_EQ(words.download()[2], kSeed);
    EXPECT_EQ(words.download()[3], kOffset + kMore);
  }
}

TEST(Dropout, Backward) {
  for (float p : {0.1f, 0.5f}) {
    SCOPED_TRACE(p);
    Problem problem(shapeOf(p == 0.5f));
    drop(problem, p);
    problem.fillForwardResults();
    const Words words({kSeed, kOffset + kMore});
    Lazy delta;
    v3::attn_bwd_params params = backwardParams(problem, delta);
    params.dropout_p = p;
    params.philox_seed_ptr = words.at(0);
    params.philox_offset1 = words.at(1);
    ASSERT_EQ(attnBwd(params), hipSuccess) << why();
    EXPECT_EQ(problem.judgeBackward(), "");
  }
}

/// Where the offset comes from is not part of what a thread remembers.
TEST(Dropout, OfAnotherOffset) {
  Problem problem(shapeOf(false));
  drop(problem, 0.5f);
  problem.fillForwardResults();
  const Words words({kSeed, kOffset, 7});
  Lazy delta;
  v3::attn_bwd_params params = backwardParams(problem, delta);
  params.dropout_p = 0.5f;
  params.philox_seed_ptr = words.at(0);
  params.philox_offset1 = words.at(2);
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_NE(problem.judgeBackward(), "");
  params = backwardParams(problem, delta);
  params.dropout_p = 0.5f;
  params.philox_seed_ptr = words.at(0);
  params.philox_offset1 = words.at(1);
  params.philox_offset2 = kMore;
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
}

} // namespace
