//===- VarlenDropoutTest.cpp - dropout of sequences of different lengths --===//

#include "VarlenPack.h"

using namespace client;

namespace {

constexpr float kP = 0.25f;

/// Has a call drop weights, by seed and offset.
template <typename Params>
void drop(Params &params, const Words &words) {
  params.dropout_p = kP;
  params.philox_seed_ptr = words.at(0);
  params.philox_offset1 = words.at(1);
}

/// The backward pass of a pack whose forward pass dropped by the same.
void expectGradients(Pack &pack, const Words &words) {
  pack.fillForwardResults();
  Lazy delta;
  v3::attn_bwd_params backward = pack.backwardParams(delta);
  drop(backward, words);
  ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
  EXPECT_EQ(pack.judgeBackward(), "");
}

/// The mask of all sequences, by the longest.
TEST(DropoutVarlen, Mask) {
  Pack pack({"", kCompact, kCompact, {40, 10}, {33, 61}}, /*slack=*/0,
            /*least=*/103);
  ref::Dropout dropout;
  dropout.p = kP;
  dropout.seed = 11;
  dropout.offset = 1;
  dropout.swapsWords = AOTRITON_VERSION_MINOR < 14;
  dropout.heads = Pack::kHeadsQ;
  dropout.seqQ = pack.sideQ.most;
  dropout.seqK = pack.sideK.most;
  const Words words({dropout.seed, dropout.offset});
  Buffer mask(pack.c.type, Layout::BHSD, 2, Pack::kHeadsQ, dropout.seqQ,
              dropout.seqK);
  v3::attn_fwd_params forward = pack.forwardParams();
  drop(forward, words);
  forward.encoded_softmax = mask.view();
  ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
  mask.download();
  for (int64_t z = 0; z < 2; ++z)
    for (int64_t h = 0; h < Pack::kHeadsQ; ++h)
      for (int64_t i = 0; i < dropout.seqQ; ++i)
        for (int64_t j = 0; j < dropout.seqK; ++j)
          ASSERT_EQ(mask.host.row(z, h, i)[j] >= 0, dropout.keeps(z, h, i, j));
}

/// Numbers of weights count by the longest sequences of the call, as the client
/// says them: they may be longer than the tensors.
TEST(DropoutVarlen, ForwardAndBackward) {
  constexpr uint64_t kSeed = 11, kOffset = 1;
  struct Row {
    Axes axes;
    Lengths lengthsQ, lengthsK;
    int64_t slack, least;
  };
  for (const Row &row : {Row{kCompact, kFew, kMore, 5, 0},
                         {kPadded, kFew, kMore, 5, 0},
                         {kCompact, {10}, {9}, 0, 21},
                         {kPadded, {10, 7}, {4, 9}, 0, 21}}) {
    SCOPED_TRACE(row.least + row.axes.stacked);
    Pack pack(
        {"", row.axes, row.axes, row.lengthsQ, row.lengthsK, kCausalAtTheEnd},
        row.slack, row.least);
    for (size_t z = 0; z < pack.problems.size(); ++z) {
      ref::Dropout dropout;
      dropout.p = kP;
      dropout.seed = kSeed;
      dropout.offset = kOffset;
      dropout.swapsWords = AOTRITON_VERSION_MINOR < 14;
      dropout.heads = Pack::kHeadsQ;
      dropout.seqQ = pack.sideQ.most;
      dropout.seqK = pack.sideK.most;
      dropout.firstBatch = int64_t(z);
      pack.problems[z]->dropout = dropout;
    }
    const Words words({kSeed, kOffset});
    v3::attn_fwd_params forward = pack.forwardParams();
    drop(forward, words);
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeForward(), "");

    expectGradients(pack, words);

    // AOTriton would drop the same keys for all queries, and others in the
    // backward pass, which PyTorch tells the longest.
    forward.Max_seqlen_k = 0;
    EXPECT_EQ(attnFwd(forward), hipErrorInvalidValue);
    EXPECT_NE(std::string(why()).find("Max_seqlen_k is 0"), std::string::npos)
        << why();
  }
}

/// Of no keys nothing is dropped, and nobody has to know how many there are;
/// the outputs of seed and offset are written all the same.
TEST(DropoutVarlen, NoKeys) {
  constexpr uint64_t kSeed = 11, kOffset = 1;
  const Words words({kSeed, kOffset, 0, 0});
  for (const Axes &axes : {kCompact, kPadded}) {
    SCOPED_TRACE(axes.stacked);
    Pack pack({"", axes, axes, {5, 9}, {0, 0}}, /*slack=*/0);
    v3::attn_fwd_params forward = pack.forwardParams();
    drop(forward, words);
    forward.philox_seed_output = words.at(2);
    forward.philox_offset_output = words.at(3);
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeForward(), "");
    EXPECT_EQ(words.download(),
              (std::vector<uint64_t>{kSeed, kOffset, kSeed, kOffset}));
    expectGradients(pack, words);
  }
}

} // namespace
