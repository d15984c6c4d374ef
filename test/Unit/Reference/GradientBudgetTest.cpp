//===- GradientBudgetTest.cpp - the rules for gradients -------------------===//
//
// A scalar model of the tiled backward kernels (base 2, sums in another order
// than the plain algorithm's) takes the place of a device. As written it must
// pass on every kind of input; with a fault planted it must fail.
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include "fovea/Reference/Backward.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <tuple>

using namespace fovea::reference;

namespace {

constexpr int64_t kBlock = 16; ///< queries and keys of a block

struct Fault {
  const char *name = "none";
  bool withoutDelta = false;
  bool turned = false;          ///< blocks of dS, the other way round
  int64_t skipKeys = -1;        ///< a block of keys that no query visits
  int64_t maskShift = 0;        ///< columns that the mask is off by
  bool dropHead = false;        ///< the last query head adds nothing to dk, dv
  double scale = 1;             ///< factor on the gradients' scale
  double logits = 1;            ///< factor on the scale of the scores
  bool lowPrecisionAcc = false; ///< sums in the 16-bit type
};

/// Four running sums, as wide instructions have.
float dot(const Tensor &a, const uint16_t *x, const Tensor &b,
          const uint16_t *y) {
  float sums[4] = {};
  for (int64_t d = 0; d < a.dim; ++d)
    sums[d % 4] += float(decode(a.type, x[d])) * float(decode(b.type, y[d]));
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

class Model {
public:
  Model(const BackwardProblem &problem, const Fault &fault)
      : p(problem.forward), dout(problem.dout), fault(fault),
        forward(attentionForwardF64(p)) {
    dq.assign(size_t(p.q.batch * p.q.heads * p.q.seq * p.q.dim), 0.0f);
    dk.assign(size_t(p.k.batch * p.k.heads * p.k.seq * p.k.dim), 0.0f);
    dv = dk;
    for (int64_t b = 0; b < p.q.batch; ++b)
      for (int64_t h = 0; h < p.q.heads; ++h)
        runHead(b, h);
    const float scale = float(p.scale * fault.scale);
    for (std::vector<float> *scaled : {&dq, &dk})
      for (float &x : *scaled)
        x *= scale;
  }
  std::vector<float> dq, dk, dv;

private:
  float round(float x) const { return float(roundTo(p.q.type, x)); }
  void add(float &sum, float x) const {
    sum += x;
    if (fault.lowPrecisionAcc)
      sum = round(sum);
  }

  void runHead(int64_t b, int64_t h) {
    const int64_t rows = p.q.seq, count = p.k.seq, dim = p.q.dim,
                  group = p.q.heads / p.k.heads, hk = h / group;
    std::vector<float> ps(size_t(rows * count)), ds(ps.size());
    const float factor = float(p.scale * fault.logits) * 1.44269504f;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = (b * p.q.heads + h) * rows + i;
      const float lse = float(forward.lse[size_t(row)]);
      int64_t seen = visibleKeys(p.mask, i, rows, count).end;
      if (seen == 0)
        continue;
      if (p.mask != Mask::None)
        seen = std::clamp<int64_t>(seen + fault.maskShift, 0, count);
      float delta = 0;
      for (int64_t d = dim; d-- > 0;)
        delta += round(float(forward.out[size_t(row * dim + d)])) *
                 float(decode(dout.type, dout.row(b, h, i)[d]));
      if (fault.withoutDelta)
        delta = 0;
      for (int64_t j = 0; j < seen; ++j) {
        if (j / kBlock == fault.skipKeys)
          continue;
        const float s = dot(p.q, p.q.row(b, h, i), p.k, p.k.row(b, hk, j)),
                    probability =
                        std::exp2(std::fma(s, factor, -lse * 1.44269504f)),
                    dp = dot(dout, dout.row(b, h, i), p.v, p.v.row(b, hk, j));
        ps[size_t(i * count + j)] = round(probability);
        ds[size_t(i * count + j)] = round(probability * (dp - delta));
      }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < count; ++j) {
        int64_t from = i * count + j;
        if (fault.turned) {
          const int64_t ti = i / kBlock * kBlock + j % kBlock,
                        tj = j / kBlock * kBlock + i % kBlock;
          from = ti < rows && tj < count ? ti * count + tj : from;
        }
        const float probability = ps[size_t(i * count + j)],
                    slope = ds[size_t(from)];
        if (probability == 0 && slope == 0)
          continue;
        for (int64_t d = 0; d < dim; ++d) {
          const size_t key =
                           size_t(((b * p.k.heads + hk) * count + j) * dim + d),
                       query =
                           size_t(((b * p.q.heads + h) * rows + i) * dim + d);
          add(dq[query], slope * float(decode(p.k.type, p.k.row(b, hk, j)[d])));
          if (fault.dropHead && h % group == group - 1)
            continue;
          add(dk[key], slope * float(decode(p.q.type, p.q.row(b, h, i)[d])));
          add(dv[key],
              probability * float(decode(dout.type, dout.row(b, h, i)[d])));
        }
      }
  }

  const ForwardProblem &p;
  const Tensor &dout;
  const Fault &fault;
  const ForwardResult forward;
};

/// A problem, with dout drawn apart from the rest, and the oracle's answers.
struct Subject {
  Subject(const Shape &shape, InputKind kind, double doutScale = 1)
      : owned(shape, kind, 17), other(shape, InputKind::Zeros, 18),
        problem{owned.problem, other.problem.q} {
    Random random(19);
    const Tensor &t = problem.dout;
    for (int64_t b = 0; b < t.batch; ++b)
      for (int64_t h = 0; h < t.heads; ++h)
        for (int64_t s = 0; s < t.seq; ++s)
          for (int64_t d = 0; d < t.dim; ++d)
            t.row(b, h, s)[d] = encode(t.type, doutScale * random.normal());
    exact = attentionBackwardF64(problem, 0, &slack);
    plain = attentionBackwardPlain(problem);
  }

  Comparison compare(const char *name, Tensor like, const std::vector<float> &x,
                     std::vector<double> BackwardResult::*result,
                     std::vector<RowSlack> GradientSlack::*rows) const {
    Tensor found = describe(like.type, Layout::BHSD, like.batch, like.heads,
                            like.seq, like.dim);
    std::vector<uint16_t> words(x.size() + 1);
    for (size_t i = 0; i < x.size(); ++i)
      words[i] = encode(like.type, x[i]);
    found.data = words.data();
    return compareGradient(name, found, exact.*result, plain.*result,
                           slack.*rows);
  }

  /// The comparisons of dq, dk and dv.
  std::vector<Comparison> judge(const Fault &fault = {}) const {
    const Model model(problem, fault);
    const ForwardProblem &p = problem.forward;
    return {
        compare("dq", p.q, model.dq, &BackwardResult::dq, &GradientSlack::dq),
        compare("dk", p.k, model.dk, &BackwardResult::dk, &GradientSlack::dk),
        compare("dv", p.v, model.dv, &BackwardResult::dv, &GradientSlack::dv)};
  }

  OwnedProblem owned, other;
  BackwardProblem problem;
  BackwardResult exact, plain;
  GradientSlack slack;
};

const Shape kShapes[] = {
    {ElemType::BF16, 1, 2, 1, 65, 130, 64, Mask::None},
    {ElemType::F16, 1, 4, 2, 100, 70, 32, Mask::CausalBottomRight},
    {ElemType::BF16, 2, 2, 2, 70, 100, 40, Mask::CausalTopLeft},
    {ElemType::F16, 1, 6, 3, 257, 1, 96, Mask::None},
    {ElemType::BF16, 1, 4, 1, 300, 1, 64, Mask::CausalTopLeft},
    {ElemType::F16, 1, 1, 1, 1, 300, 64, Mask::None},
    {ElemType::BF16, 1, 1, 1, 7, 0, 16, Mask::None},
};
const InputKind kInputs[] = {
    InputKind::Uniform, InputKind::Normal, InputKind::Large, InputKind::OnesV,
    InputKind::Spike,   InputKind::Zeros,  InputKind::Masked};

TEST(GradientBudget, PassesATiledKernelOnEveryInput) {
  for (const Shape &shape : kShapes)
    for (InputKind kind : kInputs)
      for (double doutScale : {1.0, 64.0}) {
        const Subject subject(shape, kind, doutScale);
        for (const Comparison &c : subject.judge()) {
          EXPECT_TRUE(c.pass) << inputKindName(kind) << " q" << shape.seqQ
                              << " k" << shape.seqK << ": " << c.message;
          EXPECT_EQ(c.wrongClass, 0);
        }
      }
}

/// With one key each row of P is 1 and dS is exactly 0; what dP and delta
/// differ by adds up over the queries.
TEST(GradientBudget, CountsARoundingAQueryWithOneKey) {
  std::vector<double> budgets;
  for (int64_t queries : {16, 256, 4096}) {
    const Subject subject({ElemType::F16, 1, 1, 1, queries, 1, 64, Mask::None},
                          InputKind::Normal);
    const Comparison c = subject.judge()[1];
    EXPECT_TRUE(c.pass) << queries << ": " << c.message;
    EXPECT_EQ(c.max.plain, 0);
    EXPECT_GT(c.max.error, 0.02 * c.max.budget);
    budgets.push_back(c.max.budget);
  }
  // Like the square root: the errors are independent.
  EXPECT_GT(budgets[2], 8 * budgets[0]);
  EXPECT_LT(budgets[2], 32 * budgets[0]);
}

/// On usual inputs the slack is small beside one rounding of the output.
TEST(GradientBudget, SlackIsSmallWhereGradientsAreNot) {
  for (ElemType type : {ElemType::F16, ElemType::BF16}) {
    const Subject subject({type, 1, 2, 1, 128, 128, 64, Mask::None},
                          InputKind::Normal);
    double largest = 0, slack = 0;
    for (double x : subject.exact.dk)
      largest = std::max(largest, std::fabs(x));
    for (const RowSlack &row : subject.slack.dk)
      slack = std::max(slack, row.largest);
    EXPECT_GT(slack, 0);
    EXPECT_LT(slack, 0.02 * unitRoundoff(type) * largest);
  }
}

std::vector<Fault> faults() {
  std::vector<Fault> all;
  auto add = [&](const char *name, auto set) {
    all.emplace_back();
    all.back().name = name;
    set(all.back());
  };
  add("WithoutDelta", [](Fault &f) { f.withoutDelta = true; });
  add("TurnedDs", [](Fault &f) { f.turned = true; });
  add("SkippedKeys", [](Fault &f) { f.skipKeys = 2; });
  add("MaskOneMore", [](Fault &f) { f.maskShift = 1; });
  add("MaskOneLess", [](Fault &f) { f.maskShift = -1; });
  add("DroppedHead", [](Fault &f) { f.dropHead = true; });
  add("ScaleTwice", [](Fault &f) { f.scale = 0.125; });
  add("NoScale", [](Fault &f) { f.scale = 8; });
  add("ScaleOnePerCentMore", [](Fault &f) { f.scale = 1.01; });
  add("LogitsOnePerCentLess", [](Fault &f) { f.logits = 0.99; });
  add("LowPrecisionSums", [](Fault &f) { f.lowPrecisionAcc = true; });
  return all;
}

class GradientFault : public testing::TestWithParam<Fault> {};

TEST_P(GradientFault, IsCaught) {
  const Fault fault = GetParam();
  for (const auto &[type, mask, doutScale] :
       {std::tuple{ElemType::F16, Mask::CausalTopLeft, 64.0},
        {ElemType::BF16, Mask::CausalBottomRight, 1.0}}) {
    const Subject subject({type, 1, 2, 1, 100, 130, 64, mask},
                          InputKind::Normal, doutScale);
    bool found = false;
    for (const Comparison &c : subject.judge(fault))
      found |= !c.pass;
    EXPECT_TRUE(found) << elemTypeName(type) << " " << optionOf(mask);
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, GradientFault, testing::ValuesIn(faults()),
                         [](const testing::TestParamInfo<Fault> &info) {
                           return std::string(info.param.name);
                         });

/// A missing delta moves dq and dk alone, with one key too.
TEST(GradientBudget, SeesAMissingDeltaWithOneKey) {
  Fault fault;
  fault.withoutDelta = true;
  const Subject subject({ElemType::BF16, 1, 1, 1, 64, 1, 64, Mask::None},
                        InputKind::Normal);
  const std::vector<Comparison> all = subject.judge(fault);
  EXPECT_FALSE(all[0].pass);
  EXPECT_FALSE(all[1].pass);
  EXPECT_TRUE(all[2].pass) << all[2].message;
}

TEST(GradientBudget, WhatNothingAddsToIsExactlyZero) {
  // Queries 0 to 2 see no key.
  const Subject subject(
      {ElemType::BF16, 1, 1, 1, 5, 2, 16, Mask::CausalBottomRight},
      InputKind::Normal);
  Model model(subject.problem, {});
  auto compare = [&] {
    return subject.compare("dq", subject.problem.forward.q, model.dq,
                           &BackwardResult::dq, &GradientSlack::dq);
  };
  EXPECT_TRUE(compare().pass);
  model.dq[2 * 16 + 3] = 1e-30f;
  EXPECT_EQ(compare().wrongClass, 1);
  EXPECT_FALSE(compare().pass);
}

} // namespace
