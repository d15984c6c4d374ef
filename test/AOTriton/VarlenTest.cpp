//===- VarlenTest.cpp - sequences of different lengths --------------------===//
//
// All ways in which the versions say where sequences lie (VarlenPack.h).
//
//===----------------------------------------------------------------------===//

#include "VarlenPack.h"

using namespace client;

namespace {

const Case kCases[] = {
    {"Compact", kCompact, kCompact, kFew, kMore},
    {"CompactCausal", kCompact, kCompact, kMore, kFew, kCausal, ElemType::F16},
    {"CompactCausalAtTheEnd", kCompact, kCompact, kFew, kMore, kCausalAtTheEnd},
    // Where keys are fewer, rows see none.
    {"CompactSliding", kCompact, kCompact, kMore, kNoKeys, kSliding},
    {"CompactBand", kCompact, kCompact, kFew, kMore, kBand},
    // What PyTorch's mem-efficient path says of keys.
    {"CompactHidesMost", kCompact, kCompact, kFew, kMore, kNone, ElemType::BF16,
     false, true},
    {"CompactFp32", kCompact, kCompact, kFew, kMore, kCausalAtTheEnd,
     ElemType::F32},
    {"Padded", kPadded, kPadded, kFew, kMore},
    {"PaddedFp32", kPadded, kPadded, kMore, kFew, kNone, ElemType::F32},
    {"PaddedCausalAtTheEnd", kPadded, kPadded, kMore, kFew, kCausalAtTheEnd,
     ElemType::F16},
#if AOTRITON_VERSION_MINOR >= 12
    {"Strided", kStrided, kStrided, kFew, kMore},
    {"StridedCausal", kStrided, kStrided, kMore, kFew, kCausal, ElemType::F16},
#endif
#if AOTRITON_VERSION_MINOR >= 14
    {"UsedKeys", kCompact, {true, Each, Given}, kFew, kMore, kCausalAtTheEnd},
    {"Cache", kCompact, {false, Each, Implied}, kFew, kMore},
    {"DenseKeys", kCompact, kDense, kFew, {50, 50, 50, 50}, kSliding},
    {"UniformQueries", {true, Most, Implied}, kCompact, kSame, {20, 0, 80}},
    {"UniformKeys",
     {true, Each, Implied},
     {true, Most, Implied},
     {5, 40, 0},
     kSame},
    {"UniformPlaces",
     {true, Cumulative, Implied},
     {true, Cumulative, Implied},
     kFew,
     kMore,
     kCausal},
    {"Shifted", {false, Each, Given}, {false, Each, Given}, kFew, kMore},
    {"ReusedInBatches",
     {false, Cumulative, Reused},
     {false, Cumulative, Reused},
     kFew,
     kMore},
    {"ShiftedDenseKeys", kPadded, {false, Most, Given}, {5, 40, 0}, kSame},
    {"StackedDenseKeys", kCompact, {true, Most, Given}, {5, 40, 0}, kSame},
    {"CompactByRow", kCompact, kCompact, kFew, kMore, kCausal, ElemType::BF16,
     true},
    {"PaddedByRow", kPadded, kPadded, kFew, kMore, kNone, ElemType::F16, true},
    {"UniformByRow",
     {true, Most, Implied},
     kCompact,
     kSame,
     {20, 0, 80},
     kNone,
     ElemType::BF16,
     true},
    {"DenseByRow", kDense, kDense, kSame, kSame, kNone, ElemType::BF16, true},
#endif
};

class Varlen : public testing::TestWithParam<Case> {};

TEST_P(Varlen, Forward) {
  Pack pack(GetParam());
  ASSERT_EQ(attnFwd(pack.forwardParams()), hipSuccess) << why();
  EXPECT_EQ(pack.judgeForward(), "");
}

TEST_P(Varlen, Backward) {
  Pack pack(GetParam());
  pack.fillForwardResults();
  Lazy delta;
  ASSERT_EQ(attnBwd(pack.backwardParams(delta)), hipSuccess) << why();
  EXPECT_EQ(pack.judgeBackward(), "");
  EXPECT_EQ(delta.acquired, 1);
  EXPECT_EQ(delta.disposed, AOTRITON_VERSION_MINOR >= 11); // else it is ours
}

INSTANTIATE_TEST_SUITE_P(All, Varlen, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) {
                           return info.param.name;
                         });

TEST(VarlenForward, NeedsNoLse) {
  Pack pack(kPlain);
  v3::attn_fwd_params params = pack.forwardParams();
  params.L = {};
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  for (float untouched : pack.lse.download())
    EXPECT_TRUE(untouched != untouched);
}

/// The first rows of a stacked tensor.
aotriton::TensorView<4> firstRows(const aotriton::TensorView<4> &view,
                                  uint64_t rows) {
  std::array<uint64_t, 4> sizes = view.sizes();
  sizes[2] = rows;
  return {reinterpret_cast<intptr_t>(view.data_ptr()), sizes, view.strides(),
          view.dtype()};
}

/// A choice that a thread remembers is not taken for another's workspace.
TEST(VarlenBackward, KnowsHowManyRowsThereAre) {
  constexpr uint64_t kFewer = 55;
  Pack pack(kPlain, /*slack=*/20);
  pack.fillForwardResults();
  Lazy delta;
  v3::attn_bwd_params fewer = pack.backwardParams(delta);
  for (aotriton::TensorView<4> *tensor :
       {&fewer.Q, &fewer.Out, &fewer.DO, &fewer.DQ})
    *tensor = firstRows(*tensor, kFewer);
#if AOTRITON_VERSION_MINOR >= 12
  fewer.L = {reinterpret_cast<intptr_t>(fewer.L.data_ptr()),
             {Pack::kHeadsQ, kFewer},
             {fewer.L.size(1), 1},
             aotriton::kFloat32};
#endif
  delta.rows = Pack::kHeadsQ;
  delta.columns = kFewer;
  ASSERT_EQ(attnBwd(fewer), hipSuccess) << why();
  v3::attn_bwd_params all = pack.backwardParams(delta);
  delta.rows = Pack::kHeadsQ;
  delta.columns = kFewer;
#if AOTRITON_VERSION_MINOR < 11
  all.D = delta.tensor<2>();
#endif
  EXPECT_EQ(attnBwd(all), hipErrorNotSupported);
  EXPECT_NE(std::string(why()).find("need a workspace of 1120 bytes"),
            std::string::npos)
      << why();
  ASSERT_EQ(attnBwd(pack.backwardParams(delta)), hipSuccess) << why();
  EXPECT_EQ(pack.judgeBackward(), "");
}

#if AOTRITON_VERSION_MINOR < 14
/// Tensors decide, not the type, which older clients did not set.
TEST(VarlenForward, IsCompactWithoutType) {
  Pack pack(kPlain);
  v3::attn_fwd_params params = pack.forwardParams();
  params.varlen_type = v3::VarlenType::None;
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(pack.judgeForward(), "");
}
TEST(VarlenForward, IsDenseWithoutLengths) {
  Problem problem({});
  v3::attn_fwd_params params = forwardParams(problem);
  params.varlen_type = v3::VarlenType::PaddedVarlen;
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(), "");
}
#endif
#if AOTRITON_VERSION_MINOR == 12 || AOTRITON_VERSION_MINOR == 13
TEST(VarlenForward, IsStridedByPositions) {
  Case c = kPlain;
  c.q = c.k = kStrided;
  Pack pack(c);
  v3::attn_fwd_params params = pack.forwardParams();
  params.varlen_type = v3::VarlenType::CompactVarlen;
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(pack.judgeForward(), "");
}
#endif

#if AOTRITON_VERSION_MINOR < 13
TEST(VarlenV2, ForwardAndBackward) {
  namespace v2 = aotriton::v2::flash;
  const v2::T4 none;
  const v2::T0 scalar;
  for (bool causal : {false, true}) {
    Pack pack({"", kCompact, kCompact, kFew, kMore, causal ? kCausal : kNone});
    const v3::attn_fwd_params p = pack.forwardParams();
    ASSERT_EQ(v2::attn_fwd_compact_varlen(
                  p.Q, p.K, p.V, none, p.cu_seqlens_q, p.cu_seqlens_k,
                  p.Max_seqlen_q, p.Max_seqlen_k, p.Sm_scale, p.L, p.Out, 0,
                  scalar, scalar, 0, scalar, scalar, none, causal, scalar,
                  nullptr),
              hipSuccess)
        << why();
    EXPECT_EQ(pack.judgeForward(), "");

    pack.fillForwardResults();
    Lazy unused;
    const v3::attn_bwd_params b = pack.backwardParams(unused);
    Floats delta(unused.rows, unused.columns);
    ASSERT_EQ(v2::attn_bwd_compact_varlen(
                  b.Q, b.K, b.V, b.cu_seqlens_q, b.cu_seqlens_k, b.Max_seqlen_q,
                  b.Max_seqlen_k, none, b.Sm_scale, b.Out, b.DO, b.DQ, b.DK,
                  b.DV, none, b.L, delta.view(), 0, scalar, scalar, 0, causal,
                  nullptr),
              hipSuccess)
        << why();
    EXPECT_EQ(pack.judgeBackward(), "");
  }
}
#endif

/// One batch of a bias serves all sequences, each from its own corner.
TEST(VarlenForward, TakesABias) {
  for (const Axes &axes : {kCompact, kPadded}) {
    SCOPED_TRACE(axes.stacked);
    Case c = kPlain;
    c.q = c.k = axes;
    c.mask = kCausal;
    Pack pack(c);
    // Other batches of it are not looked at.
    const auto bias = std::make_shared<Bias>(
        c.type, Bias::Four{2, Pack::kHeadsQ, 40, 33},
        Bias::Four{axes.stacked ? 40 * 40 * 34u : 0, 40 * 34, 34, 1});
    for (std::unique_ptr<Problem> &problem : pack.problems)
      problem->score = bias;
    v3::attn_fwd_params forward = pack.forwardParams();
    forward.B = bias->view();
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeForward(), "");
    pack.fillForwardResults();
    Lazy delta;
    v3::attn_bwd_params backward = pack.backwardParams(delta);
    backward.B = bias->view();
    ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeBackward(), "");
  }
}

/// A gradient of the bias, of sequences that do not write over one another.
TEST(VarlenBackward, StoresTheGradientOfABias) {
  struct Row {
    Axes axes;
    Lengths q, k;
  };
  for (const Row &row :
       {Row{kPadded, {40, 40}, {33, 33}}, Row{kCompact, {40}, {33}}}) {
    SCOPED_TRACE(row.axes.stacked);
    Pack pack({"", row.axes, row.axes, row.q, row.k, kCausal}, /*slack=*/0);
    const uint64_t count = row.q.size();
    const auto bias = std::make_shared<Bias>(
        pack.c.type, Bias::Four{count, Pack::kHeadsQ, 40, 33},
        Bias::Four{0, 40 * 34, 34, 1});
    for (std::unique_ptr<Problem> &problem : pack.problems)
      problem->score = bias;
    pack.fillForwardResults();
    Buffer dbias(pack.c.type, Layout::BHSD, int64_t(count), Pack::kHeadsQ, 40,
                 33, 1);
    Lazy delta;
    v3::attn_bwd_params backward = pack.backwardParams(delta);
    backward.B = bias->view();
    backward.DB = dbias.view();
    ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
    dbias.download();
    for (size_t z = 0; z < pack.problems.size(); ++z) {
      Buffer own(pack.c.type, Layout::BHSD, 1, Pack::kHeadsQ, 40, 33);
      for (int64_t h = 0; h < Pack::kHeadsQ; ++h)
        for (int64_t i = 0; i < 40; ++i)
          std::copy_n(dbias.host.row(int64_t(z), h, i).as<uint16_t>(), 33,
                      own.host.row(0, h, i).as<uint16_t>());
      EXPECT_EQ(pack.problems[z]->judgeBias(own), "");
    }
    EXPECT_EQ(pack.judgeBackward(), "");
  }
  // Those that would are refused.
  Pack pack(kPlain);
  Bias bias(kPlain.type, {1, Pack::kHeadsQ, 40, 33}, {0, 40 * 34, 34, 1});
  Buffer dbias(kPlain.type, Layout::BHSD, 2, Pack::kHeadsQ, 40, 33, 1);
  Lazy delta;
  v3::attn_bwd_params backward = pack.backwardParams(delta);
  backward.B = bias.view();
  backward.DB = dbias.view();
  EXPECT_EQ(attnBwd(backward), hipErrorInvalidValue);
  EXPECT_NE(std::string(why()).find("2 stacked sequences, which would write "
                                    "over one another's gradients"),
            std::string::npos)
      << why();
}

/// L, and D like it, of sequences that each have a batch, as PyTorch's
/// mem-efficient path makes them: AOTriton takes the memory, whatever its
/// shape.
TEST(VarlenForward, AndBackwardTakeAnLseOfBatches) {
  Pack pack(kPlain);
  Floats lse(int64_t(kPlain.lengthsQ.size()) * Pack::kHeadsQ, pack.sideQ.most);
  v3::attn_fwd_params params = pack.forwardParams();
  params.L = lse.view();
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  std::vector<float> values = lse.download();
  ASSERT_GE(values.size(), size_t(pack.lse.rows * pack.lse.columns));
  values.resize(size_t(pack.lse.rows * pack.lse.columns));
  pack.lse.memory.write(values.data());
  EXPECT_EQ(pack.judgeForward(), "");

  pack.fillForwardResults();
  values = pack.lse.download();
  values.resize(size_t(lse.rows * lse.columns), __builtin_nanf(""));
  lse.memory.write(values.data());
  Lazy delta;
  v3::attn_bwd_params backward = pack.backwardParams(delta);
  backward.L = lse.view();
  delta.rows = lse.rows;
  delta.columns = lse.columns;
  ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
  EXPECT_EQ(pack.judgeBackward(), "");
}

/// As PyTorch's mem-efficient path makes it up to now, with room for one
/// sequence: AOTriton writes beyond it. Run with memory of the library's own.
TEST(OwnLse, ForwardAndBackward) {
  for (const Mask &mask : {kNone, kCausalAtTheEnd}) {
    Case c = {"", kCompact, kCompact, {40, 10, 31}, {33, 5, 40}, mask};
    c.hidesMost = true;
    Pack pack(c, /*slack=*/0);
    Floats lse(Pack::kHeadsQ, pack.sideQ.most);
    v3::attn_fwd_params forward = pack.forwardParams();
    forward.L = lse.view();
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeForward(/*withLse=*/false), "");

    pack.fillForwardResults();
    Lazy delta, accumulator;
    v3::attn_bwd_params backward = pack.backwardParams(delta);
    backward.Max_seqlen_k = int32_t(pack.sideK.most); // which it knows here
    backward.L = lse.view();
    delta.rows = lse.rows;
    delta.columns = lse.columns;
    accumulator.rows = Pack::kHeadsQ * pack.sideQ.rows;
    accumulator.columns = Pack::kDim;
#if AOTRITON_VERSION_MINOR >= 11
    backward.DQ_ACC = accumulator.tensor<4>();
#endif
    ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeBackward(), "");
    for (float untouched : lse.download())
      EXPECT_TRUE(untouched != untouched);
  }
}

} // namespace
