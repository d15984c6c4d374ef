//===- VarlenPack.h - sequences of different lengths in one call -*- C++
//-*-===//
//
// A call's tensors, in which sequences lie as the versions say it in all their
// ways. Rows of no sequence are NaN and must stay so, and each sequence is
// judged as the problem that it is alone.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_AOTRITON_VARLENPACK_H
#define FOVEA_TEST_AOTRITON_VARLENPACK_H

#include "Client.h"

#include <algorithm>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>
#include <memory>

namespace client {

using ref::ElemType;
using ref::Layout;

inline const char *why() { return fovea_aotriton_last_message(); }

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
const Axes kStrided = {true, Cumulative, Given};
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

const Case kPlain = {"", kCompact, kCompact, {40, 10}, {33, 5}};

} // namespace client

#endif // FOVEA_TEST_AOTRITON_VARLENPACK_H
