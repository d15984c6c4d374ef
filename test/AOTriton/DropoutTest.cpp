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

Shape shapeOf(bool causal, ref::ElemType type = ref::ElemType::BF16) {
  Shape shape;
  shape.type = type;
  shape.batch = 2;
  shape.headsQ = 4;
  shape.seqlenQ = 50;
  shape.seqlenK = 61;
  if (causal)
    shape.mask = ref::Mask::CausalBottomRight;
  return shape;
}

constexpr ref::ElemType kTypes[] = {ref::ElemType::BF16, ref::ElemType::F32};

class DropoutPasses : public testing::TestWithParam<ref::ElemType> {};
INSTANTIATE_TEST_SUITE_P(Types, DropoutPasses, testing::ValuesIn(kTypes));

TEST_P(DropoutPasses, Forward) {
  for (float p : {0.1f, 0.5f, 1.0f}) {
    SCOPED_TRACE(p);
    Problem problem(shapeOf(p == 0.5f, GetParam()));
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

TEST_P(DropoutPasses, Backward) {
  for (float p : {0.1f, 0.5f}) {
    SCOPED_TRACE(p);
    Problem problem(shapeOf(p == 0.5f, GetParam()));
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

/// What the mask holds, as its readers take it: kept is what is not negative.
void expectMask(const Buffer &mask, const ref::Dropout &dropout, bool all) {
  int64_t wrong = 0, other = 0;
  for (int64_t b = 0; b != mask.host.batch; ++b)
    for (int64_t h = 0; h != mask.host.heads; ++h)
      for (int64_t i = 0; i != dropout.seqQ; ++i)
        for (int64_t j = 0; j != dropout.seqK; ++j) {
          const double value = mask.host.row(b, h, i)[j];
          wrong += (value >= 0) != (all || dropout.keeps(b, h, i, j));
          other += value != 0.5 && value != -0.5;
        }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(other, 0);
}

TEST_P(DropoutPasses, MaskBesideForward) {
  for (float p : {0.4f, 0.0f}) {
    SCOPED_TRACE(p);
    Problem problem(shapeOf(true, GetParam()));
    drop(problem, p);
    const ref::Dropout dropout = *problem.dropout;
    if (p == 0)
      problem.dropout.reset();
    const Shape &shape = problem.shape;
    Buffer mask(shape.type, ref::Layout::BHSD, shape.batch, shape.headsQ,
                shape.seqlenQ, shape.seqlenK);
    const Words words({kSeed, kOffset});
    v3::attn_fwd_params params = forwardParams(problem);
    params.dropout_p = p;
    params.philox_seed_ptr = words.at(0);
    params.philox_offset1 = words.at(1);
    params.philox_offset2 = kMore;
    params.encoded_softmax = mask.view();
    ASSERT_EQ(attnFwd(params), hipSuccess) << why();
    EXPECT_EQ(problem.judgeForward(), "");
    mask.download();
    expectMask(mask, dropout, p == 0);
  }
}

/// What PyTorch's _fill_mem_eff_dropout_mask_ is, whose tests give fp32.
TEST(Dropout, MaskAlone) {
  ref::Dropout dropout;
  dropout.p = 0.3f;
  dropout.swapsWords = AOTRITON_VERSION_MINOR < 14;
  dropout.heads = 3;
  dropout.seqQ = 21;
  dropout.seqK = 77;
  for (ref::ElemType type :
       {ref::ElemType::BF16, ref::ElemType::F16, ref::ElemType::F32})
    for (bool hasSeeds : {true, false}) {
      dropout.seed = hasSeeds ? kSeed : 0; // null is 0
      dropout.offset = kMore + (hasSeeds ? kOffset : 0);
      Buffer mask(type, ref::Layout::BSHD, 2, dropout.heads, dropout.seqQ,
                  dropout.seqK);
      const Words words({kSeed, kOffset});
      const aotriton::TensorView<0> none;
      ASSERT_EQ(aotriton::v2::flash::debug_simulate_encoded_softmax(
                    mask.view(), dropout.p, hasSeeds ? words.at(0) : none,
                    hasSeeds ? words.at(1) : none, kMore, nullptr),
                hipSuccess)
          << why();
      mask.download();
      expectMask(mask, dropout, false);
    }
}

TEST(Dropout, MaskRefused) {
  Problem problem(shapeOf(false));
  const Shape &shape = problem.shape;
  Buffer mask(shape.type, ref::Layout::BHSD, shape.batch, shape.headsQ,
              shape.seqlenQ, shape.seqlenK + 1);
  v3::attn_fwd_params params = forwardParams(problem);
  params.dropout_p = 0.5f;
  params.encoded_softmax = mask.view();
  EXPECT_EQ(attnFwd(params), hipErrorInvalidValue);
  EXPECT_NE(std::string(why()).find("encoded_softmax has shape (2, 4, 50, 62)"),
            std::string::npos)
      << why();
  auto simulate = [&](const aotriton::TensorView<4> &view, float p) {
    return aotriton::v2::flash::debug_simulate_encoded_softmax(view, p, {}, {},
                                                               0, nullptr);
  };
  EXPECT_EQ(simulate({}, 0.5f), hipErrorInvalidValue);
  EXPECT_EQ(simulate(mask.view(), 1.5f), hipErrorInvalidValue);
  EXPECT_NE(std::string(why()).find("dropout_p is 1.5"), std::string::npos)
      << why();
  mask.download();
  for (uint16_t value : mask.values)
    ASSERT_EQ(value, 0xffff); // nothing was written
}

/// A graph whose seed is advanced between its launches, as PyTorch's is: each
/// drops what its seed says, and the backward pass likewise.
TEST(Dropout, IsReplayedWithItsSeeds) {
  Problem problem(shapeOf(true));
  Words words({1, 2, 0, 0});
  v3::attn_fwd_params forward = forwardParams(problem);
  forward.dropout_p = 0.5f;
  forward.philox_seed_ptr = words.at(0);
  forward.philox_offset1 = words.at(1);
  forward.philox_offset2 = kMore;
  forward.philox_seed_output = words.at(2);
  forward.philox_offset_output = words.at(3);
  Recording first([&](hipStream_t stream) { return attnFwd(forward, stream); },
                  problem.out);
  ASSERT_EQ(first.status(), hipSuccess) << why();
  drop(problem, 0.5f);
  for (uint64_t advanced : {0, 8}) {
    SCOPED_TRACE(advanced);
    words.upload({kSeed, kOffset + advanced, 0, 0});
    problem.dropout->offset = kOffset + advanced + kMore;
    ASSERT_EQ(first.replay(), hipSuccess);
    EXPECT_EQ(problem.judgeForward(), "");
    EXPECT_EQ(words.download()[2], kSeed);
    EXPECT_EQ(words.download()[3], problem.dropout->offset);
  }
#if AOTRITON_VERSION_MINOR >= 12
  Lazy unused;
  v3::attn_bwd_params backward = backwardParams(problem, unused);
  Floats delta(unused.rows, unused.columns);
  backward.D = {};
  backward.D.eager = delta.view();
  backward.dropout_p = 0.5f;
  backward.philox_seed_ptr = words.at(2); // what the forward pass left
  backward.philox_offset1 = words.at(3);
  Recording second(
      [&](hipStream_t stream) { return attnBwd(backward, stream); },
      problem.dq);
  ASSERT_EQ(second.status(), hipSuccess) << why();
  for (uint64_t advanced : {16, 24}) {
    SCOPED_TRACE(advanced);
    words.upload({kSeed, kOffset + advanced, 0, 0});
    problem.dropout->offset = kOffset + advanced + kMore;
    ASSERT_EQ(first.replay(), hipSuccess);
    ASSERT_EQ(second.replay(), hipSuccess);
    EXPECT_EQ(problem.judgeBackward(), "");
  }
#endif
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
