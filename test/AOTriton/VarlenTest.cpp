//===- VarlenTest.cpp - sequences of different lengths --------------------===//
//
// All ways in which the versions say where sequences lie, in tensors whose
// other rows are NaN and must stay so. Each sequence is judged as the problem
// that it is alone.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <algorithm>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>

using namespace client;
using ref::ElemType;
using ref::Layout;

namespace {

const char *why() { return fovea_aotriton_last_message(); }

constexpr int32_t kTopLeft = v3::WindowValue::TopLeftAligned;
constexpr int32_t kBottomRight = v3::WindowValue::BottomRightAligned;
constexpr uint16_t kUntouched = 0xffff;

/// AOTriton's axes of a side, by 0.14's numbers.
enum Length { Most, Cumulative, Each };
enum Place { Implied, Reused, Given };
struct Axes {
  bool stacked;
  Length length;
  Place place;
};
const Axes kCompact = {true, Cumulative, Reused},
           kPadded = {false, Cumulative, Implied};
[[maybe_unused]] const Axes kStrided = {true, Cumulative, Given};
#if AOTRITON_VERSION_MINOR >= 14
const Axes kDense = {false, Most, Implied};
#endif

struct Mask {
  bool windowed = false;
  int32_t left = 0, right = 0;
  /// The same for a sequence.
  fovea::Window window = {};
};
const Mask kNone = {};
const Mask kCausal = {true, kTopLeft, kTopLeft, ref::Mask::CausalTopLeft};
const Mask kCausalAtTheEnd = {true, kBottomRight, kBottomRight,
                              ref::Mask::CausalBottomRight};
const Mask kSliding = {
    true,
    9,
    kBottomRight,
    {9, 0, fovea::Alignment::TopLeft, fovea::Alignment::BottomRight}};
const Mask kBand = {
    true, 20, 7, {20, 7, fovea::Alignment::TopLeft, fovea::Alignment::TopLeft}};

using Lengths = std::vector<int64_t>;
struct Case {
  const char *name;
  Axes q, k;
  Lengths lengthsQ, lengthsK;
  Mask mask = kNone;
  ElemType type = ElemType::BF16;
  bool lseByRow = false;
  /// The call says 0 in the place of the longest keys.
  bool hidesMost = false;
};

/// int32 on the device.
class Numbers {
public:
  explicit Numbers(const std::vector<int64_t> &values)
      : count(values.size()), memory(values.size() * sizeof(int32_t)) {
    const std::vector<int32_t> narrow(values.begin(), values.end());
    memory.write(narrow.data());
  }
  aotriton::TensorView<1> view() const {
    return {reinterpret_cast<intptr_t>(memory.data()),
            {uint64_t(count)},
            {1},
            aotriton::kInt32};
  }
  size_t count;
  Memory memory;
};

/// Where the sequences of a side lie.
struct Side {
  Axes axes;
  int64_t batches = 1, rows = 0, most = 0;
  Lengths lengths, starts;
  std::unique_ptr<Numbers> lengthsTensor, places;

  /// \param gap    rows between sequences that have positions
  /// \param slack  rows behind the last sequence
  /// \param least  what the client takes the longest for, at least
  Side(const Axes &axes, const Lengths &lengths, int64_t gap, int64_t slack,
       int64_t least)
      : axes(axes),
        most(
            std::max(least, *std::max_element(lengths.begin(), lengths.end()))),
        lengths(lengths) {
    const int64_t count = int64_t(lengths.size());
    const bool isUniform = axes.stacked && axes.place == Implied;
    if (!axes.stacked)
      batches = count;
    Lengths sums = {0};
    for (int64_t length : lengths)
      sums.push_back(sums.back() + length);
    int64_t end = 0;
    for (int64_t z = 0; z < count; ++z) {
      int64_t start = 0;
      if (axes.place == Reused)
        start = sums[size_t(z)];
      else if (isUniform)
        start = z * most;
      else if (axes.place == Given)
        start = axes.stacked ? end + gap : gap + z;
      starts.push_back(start);
      end = std::max(end, start + lengths[size_t(z)]);
    }
    rows = isUniform ? count * most : end;
    // Without lengths of their own rows are those of the tensors.
    if (axes.length != Most || axes.place == Given)
      rows += slack;
    if (axes.length == Cumulative)
      lengthsTensor = std::make_unique<Numbers>(sums);
    else if (axes.length == Each)
      lengthsTensor = std::make_unique<Numbers>(lengths);
    Lengths slots = starts;
    slots.push_back(rows);
    if (axes.place == Given)
      places = std::make_unique<Numbers>(slots);
  }
  int64_t batchOf(size_t z) const { return axes.stacked ? 0 : int64_t(z); }
};

/// A tensor of a side's rows that has those of its sequences.
class Packed {
public:
  Packed(const Side &side, ElemType type, Layout layout, int64_t heads,
         int64_t dim)
      : side(side), buffer(type, layout, side.batches, heads, side.rows, dim) {}

  void put(size_t z, const Buffer &from) { each(z, from, false); }
  void take(size_t z, Buffer &to) {
    each(z, to, true);
    to.upload();
  }
  /// What no sequence has is as it was, in what has been taken from.
  bool isUntouchedElsewhere() const {
    return std::all_of(buffer.values.begin(), buffer.values.end(),
                       [](uint16_t value) { return value == kUntouched; });
  }
  const Side &side;
  Buffer buffer;

private:
  /// Taking leaves what is not written behind.
  void each(size_t z, const Buffer &other, bool takes) {
    const ref::Tensor &host = buffer.host;
    const int64_t words = host.dim * fovea::elementSize(host.type) / 2;
    for (int64_t h = 0; h < host.heads; ++h)
      for (int64_t s = 0; s < side.lengths[z]; ++s) {
        auto *here =
            host.row(side.batchOf(z), h, side.starts[z] + s).as<uint16_t>();
        auto *there = other.host.row(0, h, s).as<uint16_t>();
        if (takes) {
          std::copy_n(here, words, there);
          std::fill_n(here, words, kUntouched);
        } else {
          std::copy_n(there, words, here);
        }
      }
  }
};

/// A call's tensors, and its sequences as problems of their own.
class Pack {
public:
  static constexpr int64_t kHeadsQ = 4, kHeadsK = 2, kDim = 64;

  explicit Pack(const Case &c, int64_t slack = 5, int64_t least = 0)
      : c(c), sideQ(c.q, c.lengthsQ, 3, slack, least),
        sideK(c.k, c.lengthsK, 7, slack, least), q(make(sideQ, kHeadsQ)),
        k(make(sideK, kHeadsK)), v(make(sideK, kHeadsK)),
        out(make(sideQ, kHeadsQ)), dout(make(sideQ, kHeadsQ)),
        dq(make(sideQ, kHeadsQ)), dk(make(sideK, kHeadsK)),
        dv(make(sideK, kHeadsK)), lse(lseRows(), lseColumns()) {
    for (size_t z = 0; z < c.lengthsQ.size(); ++z) {
      Shape shape;
      shape.type = c.type;
      shape.headsQ = kHeadsQ;
      shape.headsK = kHeadsK;
      shape.seqlenQ = c.lengthsQ[z];
      shape.seqlenK = c.lengthsK[z];
      shape.dim = kDim;
      shape.mask = c.mask.window;
      problems.push_back(std::make_unique<Problem>(shape, 7 + z));
      q->put(z, problems[z]->q);
      k->put(z, problems[z]->k);
      v->put(z, problems[z]->v);
      dout->put(z, problems[z]->dout);
    }
    for (Packed *input : {q.get(), k.get(), v.get(), dout.get()})
      input->buffer.upload();
  }

  /// What the forward pass would have left.
  void fillForwardResults() {
    std::vector<double> values(size_t(lse.rows * lse.columns), -1e30);
    for (size_t z = 0; z < problems.size(); ++z) {
      Problem &problem = *problems[z];
      problem.fillForwardResults();
      out->put(z, problem.out);
      const std::vector<float> sums = problem.lse.download();
      for (int64_t h = 0; h < kHeadsQ; ++h)
        for (int64_t i = 0; i < sideQ.lengths[z]; ++i)
          values[lsePlace(z, h, i)] =
              double(sums[size_t(h * sideQ.lengths[z] + i)]);
    }
    out->buffer.upload();
    lse.upload(values);
  }

  std::string judgeForward(bool withLse = true) {
    std::string message;
    out->buffer.download();
    std::vector<float> sums = lse.download();
    for (size_t z = 0; z < problems.size(); ++z) {
      Problem &problem = *problems[z];
      out->take(z, problem.out);
      std::vector<double> own;
      for (int64_t h = 0; h < kHeadsQ; ++h)
        for (int64_t i = 0; i < sideQ.lengths[z]; ++i) {
          float &value = sums[lsePlace(z, h, i)];
          own.push_back(double(value));
          value = __builtin_nanf("");
        }
      problem.lse.upload(own);
      if (const std::string text = problem.judgeForward(withLse); !text.empty())
        message += "sequence " + std::to_string(z) + ": " + text;
    }
    if (!out->isUntouchedElsewhere())
      message += "rows of out that no sequence has were written\n";
    if (!std::all_of(sums.begin(), sums.end(),
                     [](float value) { return value != value; }))
      message += "elements of L that no sequence has were written\n";
    return message;
  }

  std::string judgeBackward() {
    std::string message;
    for (Packed *gradient : {dq.get(), dk.get(), dv.get()})
      gradient->buffer.download();
    for (size_t z = 0; z < problems.size(); ++z) {
      Problem &problem = *problems[z];
      dq->take(z, problem.dq);
      dk->take(z, problem.dk);
      dv->take(z, problem.dv);
      if (const std::string text = problem.judgeBackward(); !text.empty())
        message += "sequence " + std::to_string(z) + ": " + text;
    }
    for (const Packed *gradient : {dq.get(), dk.get(), dv.get()})
      if (!gradient->isUntouchedElsewhere())
        message += "rows of a gradient that no sequence has were written\n";
    return message;
  }

  v3::attn_fwd_params forwardParams() const {
    v3::attn_fwd_params params;
    describe(params);
    if (c.hidesMost)
      params.Max_seqlen_k = 0;
    return params;
  }
  /// D is as L, which is what frameworks give.
  v3::attn_bwd_params backwardParams(Lazy &delta) const {
    v3::attn_bwd_params params;
    describe(params);
    params.DO = dout->buffer.view();
    params.DQ = dq->buffer.view();
    params.DK = dk->buffer.view();
    params.DV = dv->buffer.view();
    if (c.hidesMost)
      params.Max_seqlen_k = 0;
    delta.rows = lse.rows;
    delta.columns = lse.columns;
    params.D = delta.tensor<2>();
    return params;
  }

  const Case c;
  const Side sideQ, sideK;
  std::unique_ptr<Packed> q, k, v, out, dout, dq, dk, dv;
  Floats lse;
  std::vector<std::unique_ptr<Problem>> problems;

private:
  std::unique_ptr<Packed> make(const Side &side, int64_t heads) const {
    // Stacked as (rows, heads, head_dim), as all clients have them.
    return std::make_unique<Packed>(
        side, c.type, side.axes.stacked ? Layout::BSHD : Layout::BHSD, heads,
        kDim);
  }

  int64_t count() const { return int64_t(c.lengthsQ.size()); }
  /// Rows of L are stacked as those of Q.
  bool lseIsStacked() const {
    return AOTRITON_VERSION_MINOR >= 12 && sideQ.axes.stacked;
  }
  int64_t lseLength() const {
    if (!lseIsStacked())
      return mostQ();
    return sideQ.axes.place == Implied ? count() * mostQ() : sideQ.rows;
  }
  int64_t lseRows() const {
    const int64_t groups = lseIsStacked() ? 1 : count();
    return c.lseByRow ? groups * lseLength() : groups * kHeadsQ;
  }
  int64_t lseColumns() const { return c.lseByRow ? kHeadsQ : lseLength(); }
  size_t lsePlace(size_t z, int64_t head, int64_t i) const {
    // From its first row on, also where that is in a batch of its own.
    const bool hasStarts = AOTRITON_VERSION_MINOR >= 12;
    const int64_t row = (hasStarts ? sideQ.starts[z] : 0) + i,
                  group = lseIsStacked() ? 0 : int64_t(z);
    return size_t(c.lseByRow ? (group * lseLength() + row) * kHeadsQ + head
                             : (group * kHeadsQ + head) * lseLength() + row);
  }
  /// What a client gives for Max_seqlen_q: the rows of L have that length,
  /// where sequences begin in the middle of their batch, too.
  int64_t mostQ() const {
    return sideQ.axes.stacked || sideQ.axes.place == Implied ? sideQ.most
                                                             : sideQ.rows;
  }

  template <typename Params>
  void describe(Params &params) const {
    params.Q = q->buffer.view();
    params.K = k->buffer.view();
    params.V = v->buffer.view();
    params.Out = out->buffer.view();
    params.L = lse.view();
    params.Sm_scale = problems[0]->scale;
    params.dropout_p = 0;
    params.causal_type = c.mask.windowed ? v3::CausalType::WindowedAttention
                                         : v3::CausalType::None;
    params.window_left = c.mask.left;
    params.window_right = c.mask.right;
    params.Max_seqlen_q = int32_t(mostQ());
    params.Max_seqlen_k = int32_t(sideK.most);
    auto viewOf = [](const std::unique_ptr<Numbers> &numbers) {
      return numbers ? numbers->view() : aotriton::TensorView<1>();
    };
    const aotriton::TensorView<1> lengthsQ = viewOf(sideQ.lengthsTensor),
                                  lengthsK = viewOf(sideK.lengthsTensor),
                                  placesQ = viewOf(sideQ.places),
                                  placesK = viewOf(sideK.places);
#if AOTRITON_VERSION_MINOR >= 14
    params.seqinfo_q0 = lengthsQ;
    params.seqinfo_k0 = lengthsK;
    params.seqinfo_q1 = placesQ;
    params.seqinfo_k1 = placesK;
    auto set = [](v3::VarlenMode &mode, const Axes &axes) {
      mode.stacked = axes.stacked;
      mode.length = uint8_t(axes.length) & 3;
      mode.position = uint8_t(axes.place) & 3;
    };
    set(params.varlen_bits.qmode, c.q);
    set(params.varlen_bits.kmode, c.k);
    params.varlen_bits.lse_layout = c.lseByRow;
#else
    params.cu_seqlens_q = lengthsQ;
    params.cu_seqlens_k = lengthsK;
    params.varlen_type = c.q.stacked ? v3::VarlenType::CompactVarlen
                                     : v3::VarlenType::PaddedVarlen;
#if AOTRITON_VERSION_MINOR >= 12
    params.seq_strides_q = placesQ;
    params.seq_strides_k = placesK;
    if (placesQ)
      params.varlen_type = v3::VarlenType::StridedVarlen;
#endif
#endif
  }
};

const Lengths kFew = {40, 0, 70, 1}, kMore = {33, 5, 100, 64},
              kNoKeys = {0, 20, 64, 0}, kSame = {37, 37, 37};

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

const Case kPlain = {"", kCompact, kCompact, {40, 10}, {33, 5}};

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

/// The mask of all sequences, by the longest.
TEST(DropoutVarlen, Mask) {
  Pack pack({"", kCompact, kCompact, {40, 10}, {33, 61}}, /*slack=*/0,
            /*least=*/103);
  ref::Dropout dropout;
  dropout.p = 0.25f;
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
  forward.dropout_p = dropout.p;
  forward.philox_seed_ptr = words.at(0);
  forward.philox_offset1 = words.at(1);
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
                         {kCompact, {10}, {9}, 0, 21}}) {
    SCOPED_TRACE(row.least + row.axes.stacked);
    Pack pack(
        {"", row.axes, row.axes, row.lengthsQ, row.lengthsK, kCausalAtTheEnd},
        row.slack, row.least);
    for (size_t z = 0; z < pack.problems.size(); ++z) {
      ref::Dropout dropout;
      dropout.p = 0.25f;
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
    forward.dropout_p = 0.25f;
    forward.philox_seed_ptr = words.at(0);
    forward.philox_offset1 = words.at(1);
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeForward(), "");

    pack.fillForwardResults();
    Lazy delta;
    v3::attn_bwd_params backward = pack.backwardParams(delta);
    backward.dropout_p = 0.25f;
    backward.philox_seed_ptr = words.at(0);
    backward.philox_offset1 = words.at(1);
    ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeBackward(), "");

    // AOTriton would drop the same keys for all queries, and others in the
    // backward pass, which PyTorch tells the longest.
    forward.Max_seqlen_k = 0;
    EXPECT_EQ(attnFwd(forward), hipErrorInvalidValue);
    EXPECT_NE(std::string(why()).find("Max_seqlen_k is 0"), std::string::npos)
        << why();
  }
}

/// Rows of padded sequences are found by the length that counts them.
TEST(DropoutVarlen, RefusesFewerRowsOfABatch) {
  const Words words({11, 1});
  Pack pack({"", kPadded, kPadded, {10}, {9}}, /*slack=*/0, /*least=*/21);
  v3::attn_fwd_params forward = pack.forwardParams();
  ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
  EXPECT_EQ(pack.judgeForward(), "");
  forward.dropout_p = 0.25f;
  forward.philox_seed_ptr = words.at(0);
  forward.philox_offset1 = words.at(1);
  EXPECT_EQ(attnFwd(forward), hipErrorNotSupported);
  EXPECT_NE(std::string(why()).find(
                "Max_seqlen_q is 21, and a batch of Q has 10 rows"),
            std::string::npos)
      << why();
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
    forward.dropout_p = 0.25f;
    forward.philox_seed_ptr = words.at(0);
    forward.philox_offset1 = words.at(1);
    forward.philox_seed_output = words.at(2);
    forward.philox_offset_output = words.at(3);
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeForward(), "");
    EXPECT_EQ(words.download(),
              (std::vector<uint64_t>{kSeed, kOffset, kSeed, kOffset}));
    pack.fillForwardResults();
    Lazy delta;
    v3::attn_bwd_params backward = pack.backwardParams(delta);
    backward.dropout_p = 0.25f;
    backward.philox_seed_ptr = words.at(0);
    backward.philox_offset1 = words.at(1);
    ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
    EXPECT_EQ(pack.judgeBackward(), "");
  }
}

/// One way to break a call, which is refused and writes nothing.
struct Broken {
  const char *name;
  hipError_t status;
  const char *reason;
  void (*breakIt)(v3::attn_fwd_params &);
};
using Fwd = v3::attn_fwd_params;

template <int Rank>
aotriton::TensorView<Rank> with(const aotriton::TensorView<Rank> &view,
                                uint64_t size,
                                aotriton::DType type = aotriton::kInt32) {
  std::array<uint64_t, Rank> sizes = view.sizes();
  sizes[0] = size;
  return {reinterpret_cast<intptr_t>(view.data_ptr()), sizes, view.strides(),
          type};
}

const Broken kBroken[] = {
    {"Most", hipErrorInvalidValue, "Max_seqlen_q is -1",
     [](Fwd &p) { p.Max_seqlen_q = -1; }},
    {"LseOfBatches", hipErrorInvalidValue, "L has shape",
     [](Fwd &p) { p.L = {0x1000, {7, 7}, {7, 1}, aotriton::kFloat32}; }},
    {"LseOfOneSequence", hipErrorInvalidValue,
     "which AOTriton writes beyond its end; FOVEA_AOTRITON_WORKSPACE=allocate",
     [](Fwd &p) {
       p.L = {
           0x1000, {uint64_t(Pack::kHeadsQ), 40}, {40, 1}, aotriton::kFloat32};
     }},
    {"Batches", hipErrorInvalidValue, "Q has shape (2, ",
     [](Fwd &p) { p.Q = with<4>(p.Q, 2, p.Q.dtype()); }},
    {"Dropout", hipErrorNotSupported, "dropout_p",
     [](Fwd &p) { p.dropout_p = 0.5f; }},
#if AOTRITON_VERSION_MINOR < 14
    {"Type", hipErrorInvalidValue, "varlen_type is 4",
     [](Fwd &p) { p.varlen_type = 4; }},
    {"NoLengthsOfKeys", hipErrorInvalidValue, "cu_seqlens_k has no data",
     [](Fwd &p) { p.cu_seqlens_k = {}; }},
    {"NoLengthsOfQueries", hipErrorInvalidValue,
     "cu_seqlens_k has data, and cu_seqlens_q none",
     [](Fwd &p) { p.cu_seqlens_q = {}; }},
    {"TooFewLengths", hipErrorInvalidValue,
     "cu_seqlens_k has 2 entries; 3 are needed",
     [](Fwd &p) { p.cu_seqlens_k = with<1>(p.cu_seqlens_k, 2); }},
    {"NoSequences", hipErrorInvalidValue, "0 sequences by cu_seqlens_q",
     [](Fwd &p) { p.cu_seqlens_q = with<1>(p.cu_seqlens_q, 1); }},
    {"LongLengths", hipErrorInvalidValue, "cu_seqlens_q has type number 13",
     [](Fwd &p) {
       p.cu_seqlens_q = with<1>(p.cu_seqlens_q, 3, aotriton::kInt64);
     }},
    {"PaddedByOthers", hipErrorInvalidValue, "there must be one entry more",
     [](Fwd &p) { p.varlen_type = v3::VarlenType::PaddedVarlen; }},
#if AOTRITON_VERSION_MINOR >= 12
    {"PositionsOfKeysAlone", hipErrorInvalidValue,
     "seq_strides_k has data, and seq_strides_q none",
     [](Fwd &p) { p.seq_strides_k = p.cu_seqlens_k; }},
    {"PositionsOfPadded", hipErrorInvalidValue,
     "seq_strides_q has data, and varlen_type is 2 (padded)",
     [](Fwd &p) {
       p.varlen_type = v3::VarlenType::PaddedVarlen;
       p.seq_strides_q = p.seq_strides_k = p.cu_seqlens_q;
     }},
#endif
#else
    {"Reserved", hipErrorInvalidValue, "reserved bits, 18 to 31",
     [](Fwd &p) { p.varlen_bits.reserved = 1; }},
    {"ReservedOfSide", hipErrorInvalidValue,
     "varlen_bits.kmode is 0x002b; its reserved bits",
     [](Fwd &p) { p.varlen_bits.kmode.reserved = 1; }},
    {"LseLayout", hipErrorInvalidValue, "lse_layout is 2",
     [](Fwd &p) { p.varlen_bits.lse_layout = 2; }},
    {"Length", hipErrorInvalidValue, "varlen_bits.qmode is 0x000f",
     [](Fwd &p) { p.varlen_bits.qmode.length = 3; }},
    {"Position", hipErrorInvalidValue, "varlen_bits.qmode is 0x001b",
     [](Fwd &p) { p.varlen_bits.qmode.position = 3; }},
    {"ReuseOfEach", hipErrorInvalidValue, "(REUSE) that are not CUMULATIVE",
     [](Fwd &p) { p.varlen_bits.kmode.length = v3::VarlenLength::INDIVIDUAL; }},
    {"LengthsBesideMost", hipErrorInvalidValue, "seqinfo_k0 has data",
     [](Fwd &p) { p.varlen_bits.kmode = {}; }},
    {"NoLengths", hipErrorInvalidValue, "seqinfo_q0 has no data",
     [](Fwd &p) { p.seqinfo_q0 = {}; }},
    {"NoPositions", hipErrorInvalidValue, "seqinfo_q1 has no data",
     [](Fwd &p) { p.varlen_bits.qmode.position = v3::VarlenPosition::ARRAY; }},
    {"TooFewPositions", hipErrorInvalidValue,
     "seqinfo_q1 has 2 entries; 3 are needed",
     [](Fwd &p) {
       p.varlen_bits.qmode.position = v3::VarlenPosition::ARRAY;
       p.seqinfo_q1 = with<1>(p.seqinfo_q0, 2);
     }},
    {"NotAMultiple", hipErrorInvalidValue,
     "Q has 55 rows and Max_seqlen_q is 40",
     [](Fwd &p) {
       p.varlen_bits.qmode = {};
       p.varlen_bits.qmode.stacked = 1;
       p.seqinfo_q0 = {};
     }},
    {"UniformKeysTooFew", hipErrorInvalidValue,
     "K has 43 rows, and 2 sequences that begin 33 rows apart (Max_seqlen_k) "
     "end at 66",
     [](Fwd &p) {
       p.varlen_bits.kmode.position = v3::VarlenPosition::IMPLIED;
     }},
    {"TooFewBatches", hipErrorInvalidValue, "K has shape (1, ",
     [](Fwd &p) {
       p.varlen_bits.kmode = {};
       p.seqinfo_k0 = {};
     }},
#endif
};

TEST(VarlenRefused, BrokenCalls) {
  Pack pack(kPlain);
  for (const Broken &row : kBroken) {
    SCOPED_TRACE(row.name);
    v3::attn_fwd_params params = pack.forwardParams();
    row.breakIt(params);
    EXPECT_EQ(attnFwd(params), row.status);
    EXPECT_NE(std::string(why()).find(row.reason), std::string::npos) << why();
  }
  pack.out->buffer.download();
  EXPECT_TRUE(pack.out->isUntouchedElsewhere());
  EXPECT_EQ(attnFwd(pack.forwardParams()), hipSuccess) << why();
}

} // namespace
