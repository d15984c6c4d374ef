//===- V2Test.cpp - the calls with one argument for each value ------------===//

#include "Client.h"

#include <algorithm>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>

#if AOTRITON_VERSION_MINOR < 13

using namespace client;
namespace v2 = aotriton::v2::flash;

namespace {

const v2::T4 kNone;
const v2::T0 kScalar;

class V2Passes : public testing::TestWithParam<ref::ElemType> {};
INSTANTIATE_TEST_SUITE_P(Types, V2Passes,
                         testing::Values(ref::ElemType::BF16,
                                         ref::ElemType::F32));

TEST_P(V2Passes, ForwardAndBackward) {
  for (bool causal : {false, true}) {
    Shape shape;
    shape.type = GetParam();
    shape.layout = ref::Layout::BSHD;
    shape.headsQ = 4;
    shape.seqlenQ = 50;
    shape.mask = causal ? ref::Mask::CausalTopLeft : ref::Mask::None;
    Problem problem(shape);
    ASSERT_EQ(v2::attn_fwd(problem.q.view(), problem.k.view(), problem.v.view(),
                           kNone, problem.scale, problem.lse.view(),
                           problem.out.view(), 0, kScalar, kScalar, 0, kScalar,
                           kScalar, kNone, causal, kScalar, nullptr),
              hipSuccess)
        << fovea_aotriton_last_message();
    EXPECT_EQ(problem.judgeForward(), "");

    problem.fillForwardResults();
    Floats delta(shape.batch * shape.headsQ, shape.seqlenQ);
    ASSERT_EQ(v2::attn_bwd(problem.q.view(), problem.k.view(), problem.v.view(),
                           kNone, problem.scale, problem.out.view(),
                           problem.dout.view(), problem.dq.view(),
                           problem.dk.view(), problem.dv.view(), kNone,
                           problem.lse.view(), delta.view(), 0, kScalar,
                           kScalar, 0, causal, nullptr),
              hipSuccess)
        << fovea_aotriton_last_message();
    EXPECT_EQ(problem.judgeBackward(), "");
  }
}

/// TransformerEngine's packed layouts, (batch, sequence, 3, heads, head_dim)
/// and (sequence, batch, heads, 3, head_dim): views into one tensor.
TEST(V2, PackedQueriesKeysAndValues) {
  constexpr uint64_t kBatch = 2, kHeads = 2, kSeq = 40, kDim = 64;
  const std::array<uint64_t, 4> strides[] = {
      {kSeq * 3 * kHeads * kDim, kDim, 3 * kHeads * kDim, 1},
      {kHeads * 3 * kDim, 3 * kDim, kBatch * kHeads * 3 * kDim, 1}};
  const uint64_t apart[] = {kHeads * kDim, kDim}; // elements from q to k to v
  for (size_t layout : {0, 1}) {
    Shape shape;
    shape.batch = kBatch;
    shape.seqlenQ = shape.seqlenK = kSeq;
    shape.mask = ref::Mask::CausalTopLeft;
    Problem problem(shape);
    std::vector<uint16_t> packed(kBatch * kSeq * 3 * kHeads * kDim);
    size_t which = 0;
    for (const Buffer *part : {&problem.q, &problem.k, &problem.v}) {
      for (uint64_t b = 0; b < kBatch; ++b)
        for (uint64_t h = 0; h < kHeads; ++h)
          for (uint64_t s = 0; s < kSeq; ++s)
            std::copy_n(
                part->host.row(int64_t(b), int64_t(h), int64_t(s))
                    .as<uint16_t>(),
                kDim,
                &packed[which * apart[layout] + b * strides[layout][0] +
                        h * strides[layout][1] + s * strides[layout][2]]);
      ++which;
    }
    Memory memory(packed.size() * 2);
    memory.write(packed.data());
    auto part = [&](uint64_t n) {
      return v2::T4(
          reinterpret_cast<intptr_t>(static_cast<uint16_t *>(memory.data()) +
                                     n * apart[layout]),
          problem.q.view().sizes(), strides[layout], problem.q.view().dtype());
    };
    ASSERT_EQ(v2::attn_fwd(part(0), part(1), part(2), kNone, problem.scale,
                           problem.lse.view(), problem.out.view(), 0, kScalar,
                           kScalar, 0, kScalar, kScalar, kNone, true, kScalar,
                           nullptr),
              hipSuccess)
        << fovea_aotriton_last_message();
    EXPECT_EQ(problem.judgeForward(), "");
  }
}

TEST(V2, ABias) {
  Problem problem({});
  const auto bias = std::make_shared<Bias>(
      problem.shape.type, Bias::Four{1, 2, 70, 70}, Bias::Four{0, 0, 72, 1});
  problem.score = bias;
  ASSERT_EQ(v2::attn_fwd(problem.q.view(), problem.k.view(), problem.v.view(),
                         bias->view(), problem.scale, problem.lse.view(),
                         problem.out.view(), 0, kScalar, kScalar, 0, kScalar,
                         kScalar, kNone, false, kScalar, nullptr),
            hipSuccess)
      << fovea_aotriton_last_message();
  EXPECT_EQ(problem.judgeForward(), "");
}

/// Where nothing is dropped all are kept.
TEST(DropoutV2, Mask) {
  Problem p({});
  const Shape &shape = p.shape;
  Buffer mask(shape.type, ref::Layout::BHSD, shape.batch, shape.headsQ,
              shape.seqlenQ, shape.seqlenK);
  ASSERT_EQ(v2::attn_fwd(p.q.view(), p.k.view(), p.v.view(), kNone, p.scale,
                         p.lse.view(), p.out.view(), 0, kScalar, kScalar, 0,
                         kScalar, kScalar, mask.view(), false, kScalar,
                         nullptr),
            hipSuccess)
      << fovea_aotriton_last_message();
  EXPECT_EQ(p.judgeForward(), "");
  mask.download();
  for (uint16_t value : mask.values)
    ASSERT_EQ(ref::decode(shape.type, value), 0.5);
}

TEST(V2, Refusals) {
  Problem p({});
  auto forward = [&](v2::T4 bias, float dropout, v2::T4 probabilities) {
    return v2::attn_fwd(p.q.view(), p.k.view(), p.v.view(), bias, p.scale,
                        p.lse.view(), p.out.view(), dropout, kScalar, kScalar,
                        0, kScalar, kScalar, probabilities, false, kScalar,
                        nullptr);
  };
  EXPECT_EQ(forward(p.q.view(), 0, kNone), hipErrorInvalidValue);
  EXPECT_EQ(forward(kNone, 0.1f, kNone), hipErrorNotSupported);
  EXPECT_EQ(forward(kNone, 0, p.q.view()), hipErrorInvalidValue); // its shape
  EXPECT_EQ(forward(kNone, 0, kNone), hipSuccess);

  // It brings no workspace, and AOTriton's kernel for it needs none (OwnV2).
  EXPECT_EQ(v2::attn_bwd_fused(p.q.view(), p.k.view(), p.v.view(), kNone,
                               p.scale, p.out.view(), p.dout.view(),
                               p.dq.view(), p.dk.view(), p.dv.view(), kNone,
                               p.lse.view(), 0, kScalar, kScalar, 0, false,
                               nullptr),
            hipErrorNotSupported);
  EXPECT_STREQ(fovea_aotriton_last_message(),
               "attn_bwd_fused: the kernels need a workspace of 560 bytes; the "
               "call offers, in fp32 without gaps: nothing; "
               "FOVEA_AOTRITON_WORKSPACE=allocate lets HIP give it");
}

/// Run with memory of the library's own.
TEST(OwnV2, FusedBackward) {
  for (bool causal : {false, true})
    for (ref::ElemType type : {ref::ElemType::BF16, ref::ElemType::F32}) {
      Shape shape;
      shape.type = type;
      shape.headsQ = 4;
      shape.mask = causal ? ref::Mask::CausalTopLeft : ref::Mask::None;
      Problem p(shape);
      const auto bias = std::make_shared<Bias>(type, Bias::Four{1, 4, 70, 70},
                                               Bias::Four{0, 0, 72, 1});
      p.score = bias;
      p.fillForwardResults();
      Buffer dbias(type, ref::Layout::BHSD, 1, 4, 70, 70, 10);
      ASSERT_EQ(v2::attn_bwd_fused(p.q.view(), p.k.view(), p.v.view(),
                                   bias->view(), p.scale, p.out.view(),
                                   p.dout.view(), p.dq.view(), p.dk.view(),
                                   p.dv.view(), dbias.view(), p.lse.view(), 0,
                                   kScalar, kScalar, 0, causal, nullptr),
                hipSuccess)
          << fovea_aotriton_last_message();
      EXPECT_EQ(p.judgeBackward(), "");
      dbias.download();
      EXPECT_EQ(p.judgeBias(dbias), "");
    }
}

} // namespace

#endif
