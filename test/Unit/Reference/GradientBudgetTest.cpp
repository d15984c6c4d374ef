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
  bool lowPrecisionAcc = false; ///< sums in 16 bits, or those of xf32
  bool cutSlopes = false;       ///< dS with the digits of xf32
  /// Not a fault where the problem has narrow sums: order of the blocks of keys
  /// whose parts of dq are added in the 16-bit type; 0: sums are fp32.
  int64_t narrowOrder = 0;
  bool narrowAll = false; ///< the same, by key instead of by block
};

/// Four running sums, as wide instructions have.
float dot(int64_t dim, const Row &x, const Row &y) {
  float sums[4] = {};
  for (int64_t d = 0; d < dim; ++d)
    sums[d % 4] += float(x[d]) * float(y[d]);
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
    for (float &x : dk)
      x *= scale;
    if (fault.narrowOrder == 0)
      for (float &x : dq)
        x *= scale;
  }
  std::vector<float> dq, dk, dv;

private:
  float round(float x) const { return float(roundTo(p.q.type, x)); }
  void add(float &sum, float x) const {
    sum += x;
    if (fault.lowPrecisionAcc)
      sum = coarse(p.q.type, sum);
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
                 float(dout.row(b, h, i)[d]);
      if (fault.withoutDelta)
        delta = 0;
      for (int64_t j = 0; j < seen; ++j) {
        if (j / kBlock == fault.skipKeys)
          continue;
        const float s = dot(dim, p.q.row(b, h, i), p.k.row(b, hk, j)),
                    probability =
                        std::exp2(std::fma(s, factor, -lse * 1.44269504f)),
                    dp = dot(dim, dout.row(b, h, i), p.v.row(b, hk, j));
        ps[size_t(i * count + j)] = round(probability);
        ds[size_t(i * count + j)] = round(probability * (dp - delta));
        if (fault.cutSlopes)
          ds[size_t(i * count + j)] = cut(ds[size_t(i * count + j)]);
      }
    }
    if (fault.narrowOrder != 0)
      for (int64_t i = 0; i < rows; ++i)
        addNarrowly(&dq[size_t(((b * p.q.heads + h) * rows + i) * dim)],
                    ds.data() + i * count, b, hk);
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
          if (fault.narrowOrder == 0)
            add(dq[query], slope * float(p.k.row(b, hk, j)[d]));
          if (fault.dropHead && h % group == group - 1)
            continue;
          add(dk[key], slope * float(p.q.row(b, h, i)[d]));
          add(dv[key], probability * float(dout.row(b, h, i)[d]));
        }
      }
  }

  /// One row of dq, a block of keys at a time.
  void addNarrowly(float *row, const float *slopes, int64_t b, int64_t hk) {
    const int64_t count = p.k.seq, size = fault.narrowAll ? 1 : kBlock,
                  blocks = (count + size - 1) / size;
    const float scale = float(p.scale * fault.scale);
    std::vector<float> part(size_t(p.q.dim));
    for (int64_t n = 0; n < blocks; ++n) {
      // An order that starts anywhere, either way.
      const int64_t at = fault.narrowOrder > 0
                             ? (n + fault.narrowOrder) % blocks
                             : (2 * blocks - n + fault.narrowOrder) % blocks;
      std::fill(part.begin(), part.end(), 0.0f);
      for (int64_t j = at * size; j < std::min(count, (at + 1) * size); ++j)
        for (int64_t d = 0; slopes[j] != 0 && d < p.q.dim; ++d)
          part[size_t(d)] += slopes[j] * float(p.k.row(b, hk, j)[d]);
      for (int64_t d = 0; d < p.q.dim; ++d)
        row[d] = round(row[d] + round(scale * part[size_t(d)]));
    }
  }

  const ForwardProblem &p;
  const Tensor &dout;
  const Fault &fault;
  const ForwardResult forward;
};

/// A problem, with dout drawn apart from the rest, and the oracle's answers.
struct Subject {
  Subject(const Shape &shape, InputKind kind, double doutScale = 1,
          int64_t narrowSumKeys = 0)
      : owned(shape, kind, 17), other(shape, InputKind::Zeros, 18),
        problem{owned.problem, other.problem.q} {
    Random random(19);
    const Tensor &t = problem.dout;
    for (int64_t b = 0; b < t.batch; ++b)
      for (int64_t h = 0; h < t.heads; ++h)
        for (int64_t s = 0; s < t.seq; ++s)
          for (int64_t d = 0; d < t.dim; ++d)
            t.row(b, h, s).set(d, doutScale * random.normal());
    problem.narrowSumKeys = narrowSumKeys;
    exact = attentionBackwardF64(problem, 0, &slack);
    plain = attentionBackwardPlain(problem);
  }

  Comparison compare(const char *name, Tensor like, const std::vector<float> &x,
                     std::vector<double> BackwardResult::*result,
                     std::vector<RowSlack> GradientSlack::*rows) const {
    Tensor found = describe(like.type, Layout::BHSD, like.batch, like.heads,
                            like.seq, like.dim);
    std::vector<uint8_t> bytes((x.size() + 1) * size_t(elementSize(like.type)));
    found.data = bytes.data();
    for (size_t i = 0; i < x.size(); ++i)
      found.row(0, 0, 0).set(int64_t(i), x[i]);
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
    {ElemType::F32, 1, 2, 1, 65, 130, 64, Mask::None},
    {ElemType::F32, 1, 4, 2, 100, 70, 32, Mask::CausalBottomRight},
    {ElemType::F32, 1, 6, 3, 257, 1, 96, Mask::None},
    {ElemType::F32, 1, 1, 1, 1, 300, 64, Mask::None},
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

/// Sums of dq that round at each addition keep to their budget in any order,
/// and dk and dv to that of sums in fp32.
TEST(GradientBudget, PassesNarrowSumsInAnyOrder) {
  for (const Shape &shape : kShapes)
    for (InputKind kind : kInputs)
      for (double doutScale : {1.0, 64.0}) {
        if (shape.type == ElemType::F32) // has none
          continue;
        const Subject subject(shape, kind, doutScale, kBlock);
        for (int64_t order : {1, 3, -1, -4}) {
          Fault narrow;
          narrow.narrowOrder = order;
          for (const Comparison &c : subject.judge(narrow))
            EXPECT_TRUE(c.pass)
                << inputKindName(kind) << " q" << shape.seqQ << " k"
                << shape.seqK << " order " << order << ": " << c.message;
        }
      }
}

/// Where there is one addition there is one rounding; with many the budget
/// grows like the root of their number (rms) and their number (max).
TEST(GradientBudget, NarrowSumsGrowWithTheirNumber) {
  const Shape shape{ElemType::BF16, 1, 1, 1, 16, 1024, 64, Mask::None};
  double rms[3], max[3];
  int64_t n = 0;
  for (int64_t keys : {1024, 64, 16}) {
    const Subject subject(shape, InputKind::Normal, 1, keys);
    rms[n] = max[n] = 0;
    for (const RowSlack &row : subject.slack.dq) {
      rms[n] = std::max(rms[n], row.rms);
      max[n] = std::max(max[n], row.largest);
    }
    ++n;
  }
  double largest = 0;
  const Subject wide(shape, InputKind::Normal);
  for (double x : wide.exact.dq)
    largest = std::max(largest, std::fabs(x));
  // One rounding, to nearest.
  EXPECT_LT(max[0], 1.01 * unitRoundoff(shape.type) * largest);
  EXPECT_GT(rms[1], 2 * rms[0]);
  EXPECT_LT(rms[1], 16 * rms[0]);
  EXPECT_GT(rms[2], 1.5 * rms[1]);
  EXPECT_LT(rms[2], 4 * rms[1]);
  EXPECT_GT(max[2], 2 * max[1]);
}

/// Faults of narrow sums are seen through their budget: an addition more or
/// less, each key rounded by itself, a scale that is off.
TEST(GradientBudget, SeesFaultsOfNarrowSums) {
  const Shape shape{ElemType::BF16, 1, 2, 1, 100, 130, 64, Mask::None};
  const Subject subject(shape, InputKind::Normal, 1, 64);
  Fault narrow;
  narrow.narrowOrder = 1;
  Fault skipped = narrow, perKey = narrow, scaled = narrow;
  skipped.skipKeys = 2;
  perKey.narrowAll = true;
  scaled.scale = 1.05;
  for (const Fault *fault : {&skipped, &perKey, &scaled})
    EXPECT_FALSE(subject.judge(*fault)[0].pass);
  // Which fp32 sums do not allow at all.
  const Subject wide(shape, InputKind::Normal);
  narrow.narrowAll = true;
  EXPECT_FALSE(wide.judge(narrow)[0].pass);
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
  add("LowPrecisionSlopes", [](Fault &f) { f.cutSlopes = true; });
  return all;
}

class GradientFault : public testing::TestWithParam<Fault> {};

TEST_P(GradientFault, IsCaught) {
  const Fault fault = GetParam();
  for (const auto &[type, mask, doutScale] :
       {std::tuple{ElemType::F16, Mask::CausalTopLeft, 64.0},
        {ElemType::BF16, Mask::CausalBottomRight, 1.0},
        {ElemType::F32, Mask::None, 1.0}}) {
    if (fault.maskShift != 0 && mask == Mask::None)
      continue;
    if (fault.cutSlopes && type != ElemType::F32)
      continue;
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
