//===- BackwardTest.cpp - gradients of attention --------------------------===//
//
// The gradients are compared with differences of the forward formula, written
// here once more on plain fp64 arrays, and the rules with results that are
// slightly and plainly wrong.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Backward.h"

#include "Problem.h"
#include "fovea/Reference/ScoreProgram.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace fovea::reference;

namespace {

/// [heads][seq][dim], batch 1.
using Array = std::vector<std::vector<std::vector<double>>>;

Array toArray(const Tensor &t) {
  Array a(size_t(t.heads),
          std::vector<std::vector<double>>(size_t(t.seq),
                                           std::vector<double>(size_t(t.dim))));
  for (int64_t h = 0; h < t.heads; ++h)
    for (int64_t s = 0; s < t.seq; ++s)
      for (int64_t d = 0; d < t.dim; ++d)
        a[size_t(h)][size_t(s)][size_t(d)] = t.row(0, h, s)[d];
  return a;
}

/// Sum over all elements of dout * softmax(scale q.k^T) v.
double loss(const Array &q, const Array &k, const Array &v, const Array &dout,
            double scale, const Window &mask) {
  double total = 0;
  const size_t group = q.size() / k.size();
  for (size_t h = 0; h < q.size(); ++h)
    for (size_t i = 0; i < q[h].size(); ++i) {
      const KeyRange seen = visibleKeys(mask, int64_t(i), int64_t(q[h].size()),
                                        int64_t(k[0].size()));
      double sum = 0, weighted = 0;
      for (size_t j = size_t(seen.begin); j < size_t(seen.end); ++j) {
        double logit = 0, value = 0;
        for (size_t d = 0; d < q[h][i].size(); ++d) {
          logit += q[h][i][d] * k[h / group][j][d];
          value += dout[h][i][d] * v[h / group][j][d];
        }
        sum += std::exp(scale * logit);
        weighted += std::exp(scale * logit) * value;
      }
      total += seen.begin < seen.end ? weighted / sum : 0;
    }
  return total;
}

struct Case {
  const char *name;
  Shape shape;
};

class Backward : public testing::TestWithParam<Case> {};

TEST_P(Backward, GradientsAreSlopesOfTheForwardFormula) {
  const Shape &shape = GetParam().shape;
  OwnedProblem owned(shape, InputKind::Normal, 5);
  Shape gradient = shape;
  OwnedProblem other(gradient, InputKind::Normal, 6);
  BackwardProblem problem{owned.problem, other.problem.q};
  ASSERT_EQ(problem.check(), "");
  const BackwardResult result = attentionBackwardF64(problem);
  Array arrays[] = {toArray(owned.problem.q), toArray(owned.problem.k),
                    toArray(owned.problem.v)};
  const Array dout = toArray(problem.dout);
  const double scale = owned.problem.scale;
  const std::vector<double> *found[] = {&result.dq, &result.dk, &result.dv};
  for (int which = 0; which < 3; ++which) {
    Array &a = arrays[which];
    size_t index = 0;
    for (auto &head : a)
      for (auto &row : head)
        for (double &x : row) {
          const double kStep = 1e-5, before = x;
          x = before + kStep;
          const double above =
              loss(arrays[0], arrays[1], arrays[2], dout, scale, shape.mask);
          x = before - kStep;
          const double below =
              loss(arrays[0], arrays[1], arrays[2], dout, scale, shape.mask);
          x = before;
          ASSERT_NEAR((*found[which])[index], (above - below) / (2 * kStep),
                      1e-7)
              << "dq dk dv"[3 * which + 1] << " at " << index;
          ++index;
        }
    EXPECT_EQ(index, found[which]->size());
  }
}

/// A program's predicate hides what a mask does, a NaN of its score too, but in
/// blocks that are listed as seen in whole.
TEST(BackwardScores, PredicatesAreMasksOutsideOfWholeBlocks) {
  const Shape shape{ElemType::BF16, 1, 2, 1, 7, 12, 16, Mask::CausalTopLeft};
  OwnedProblem owned(shape, InputKind::Normal, 5),
      other(shape, InputKind::Normal, 6);
  const std::vector<CapturedValues> captured;
  auto solve = [&](Window mask, bool hasProgram, const char *last,
                   Listed listed) {
    BackwardProblem problem{owned.problem, other.problem.q};
    problem.forward.mask = mask;
    std::string error;
    if (hasProgram)
      problem.forward.score = readScoreProgram(
          std::string("score 1\n%0 = arith.cmpi sle key, query : i1\n"
                      "%1 = arith.constant 0x7fc00000 : f32\n"
                      "%2 = arith.select %0, x, %1 : f32\n") +
              last,
          captured, error);
    EXPECT_EQ(error, "");
    problem.forward.listed = [=](int64_t, int64_t, int64_t, int64_t j) {
      return j < 8 ? listed : Listed::No;
    };
    const BackwardResult result = attentionBackwardF64(problem);
    std::vector<double> all = attentionForwardF64(problem.forward).out;
    for (const std::vector<double> *part : {&result.dq, &result.dk, &result.dv})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  };
  const auto causal = solve(Mask::CausalTopLeft, false, "", Listed::InPart);
  const auto whole = solve(Mask::None, false, "", Listed::InWhole);
  EXPECT_NE(causal, whole);
  EXPECT_EQ(solve(Mask::None, true, "yield %2 seen %0", Listed::InPart),
            causal);
  EXPECT_EQ(solve(Mask::None, true, "yield x seen %0", Listed::InPart), causal);
  EXPECT_EQ(solve(Mask::None, true, "yield x seen %0", Listed::InWhole), whole);
  std::string error;
  EXPECT_FALSE(readScoreProgram("score 1\nyield x seen %0", captured, error));
  EXPECT_NE(error.find("no value is named %0"), std::string::npos) << error;
}

// Of the loss sum(dout * out) + sum(dlse * lse), by the forward oracle.
TEST_P(Backward, SinkGradientsAreSlopesOfTheForwardOracle) {
  Shape shape = GetParam().shape;
  shape.batch = 2;
  OwnedProblem owned(shape, InputKind::Normal, 5),
      other(shape, InputKind::Normal, 6);
  ForwardProblem &forward = owned.problem;
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  for (int64_t h = 0; h < shape.heads; ++h)
    forward.sinks.push_back(h == 1 ? kNone : 0.7 * double(h) - 0.4);
  BackwardProblem problem{forward, other.problem.q};
  Random random(7);
  for (int64_t i = 0; i < shape.batch * shape.heads * shape.seqQ; ++i)
    problem.dlse.push_back(random.normal());
  const Tensor &dout = problem.dout;
  auto lossOf = [&](const ForwardProblem &p) {
    const ForwardResult result = attentionForwardF64(p);
    double total = 0;
    for (size_t row = 0; row != result.lse.size(); ++row) {
      if (std::isfinite(result.lse[row]))
        total += problem.dlse[row] * result.lse[row];
      const int64_t i = int64_t(row), head = i / dout.seq;
      const Row gradient =
          dout.row(head / dout.heads, head % dout.heads, i % dout.seq);
      for (int64_t d = 0; d < dout.dim; ++d)
        total += gradient[d] * result.out[row * size_t(dout.dim) + size_t(d)];
    }
    return total;
  };
  const BackwardResult result = attentionBackwardF64(problem);
  ASSERT_EQ(int64_t(result.dsinks.size()), shape.heads);
  for (size_t h = 0; h != result.dsinks.size(); ++h) {
    constexpr double kStep = 1e-5;
    ForwardProblem above = forward, below = forward;
    above.sinks[h] += kStep;
    below.sinks[h] -= kStep;
    const double slope = (lossOf(above) - lossOf(below)) / (2 * kStep);
    EXPECT_NEAR(result.dsinks[h], slope, 1e-6) << "head " << h;
    EXPECT_EQ(slope == 0, forward.sinks[h] == kNone) << "head " << h;
  }
}

TEST(BackwardCheck, SinkGradientsHaveABudget) {
  const std::vector<double> exact = {1, -2}, budget = {1e-3, 1e-3};
  EXPECT_TRUE(compareElements("dsinks", {1.0005f, -2}, exact, budget).pass);
  for (const std::vector<float> &found :
       {std::vector<float>{1, 2}, {1.002f, -2}, {NAN, -2}, {1, INFINITY}})
    EXPECT_FALSE(compareElements("dsinks", found, exact, budget).pass);
}

TEST_P(Backward, PlainIsNearAndPassesTheRules) {
  const Shape &shape = GetParam().shape;
  OwnedProblem owned(shape, InputKind::Normal, 5);
  OwnedProblem other(shape, InputKind::Normal, 6);
  BackwardProblem problem{owned.problem, other.problem.q};
  GradientSlack slack;
  const BackwardResult exact = attentionBackwardF64(problem, 0, &slack);
  const BackwardResult plain = attentionBackwardPlain(problem);
  Tensor found = describe(shape.type, Layout::BHSD, shape.batch, shape.headsK,
                          shape.seqK, shape.dim);
  std::vector<uint8_t> bytes(size_t(found.span() * elementSize(shape.type)));
  found.data = bytes.data();
  const Row elements = found.row(0, 0, 0);
  auto fill = [&](double factor) {
    for (size_t i = 0; i < plain.dk.size(); ++i)
      elements.set(int64_t(i), factor * plain.dk[i]);
  };
  fill(1);
  Comparison good = compareGradient("dk", found, exact.dk, plain.dk, slack.dk);
  EXPECT_TRUE(good.pass) << good.message;
  EXPECT_GT(good.max.plain, 0);
  fill(1.05);
  Comparison scaled =
      compareGradient("dk", found, exact.dk, plain.dk, slack.dk);
  EXPECT_FALSE(scaled.pass);
  EXPECT_NE(scaled.message.find("dk"), std::string::npos);
  EXPECT_TRUE(
      compareGradient("dk", found, exact.dk, plain.dk, slack.dk, 1000).pass);
  fill(1);
  elements.set(0, NAN);
  Comparison nan = compareGradient("dk", found, exact.dk, plain.dk, slack.dk);
  EXPECT_EQ(nan.wrongClass, 1);
  EXPECT_FALSE(nan.pass);
}

Shape shapeOf(ElemType type, int64_t heads, int64_t headsK, int64_t seqQ,
              int64_t seqK, const Window &mask) {
  Shape s;
  s.type = type;
  s.heads = heads;
  s.headsK = headsK;
  s.seqQ = seqQ;
  s.seqK = seqK;
  s.dim = 8;
  s.mask = mask;
  return s;
}

INSTANTIATE_TEST_SUITE_P(
    Reference, Backward,
    testing::Values(
        Case{"Full", shapeOf(ElemType::F16, 2, 2, 5, 7, Mask::None)},
        Case{"Grouped", shapeOf(ElemType::BF16, 4, 2, 6, 6, Mask::None)},
        Case{"TopLeft",
             shapeOf(ElemType::F16, 2, 1, 6, 9, Mask::CausalTopLeft)},
        Case{"EmptyRows",
             shapeOf(ElemType::BF16, 1, 1, 9, 4, Mask::CausalBottomRight)},
        Case{"Window",
             shapeOf(ElemType::BF16, 2, 1, 7, 9,
                     Window(2, 1, Alignment::BottomRight, Alignment::TopLeft))},
        Case{"BesideTheDiagonal",
             shapeOf(ElemType::F16, 1, 1, 8, 8,
                     Window(-1, 3, Alignment::TopLeft, Alignment::TopLeft))}),
    [](const auto &info) { return std::string(info.param.name); });

/// Every probability is 2^-15, subnormal in fp16 and not in bf16: it counts on
/// every device. An element of dout that is subnormal counts where it is seen.
TEST(BackwardPlain, TakesSubnormalInputsForZerosWhereTheDeviceDoes) {
  for (ElemType type : {ElemType::F16, ElemType::BF16}) {
    Shape shape = shapeOf(type, 1, 1, 1, 1 << 15, Mask::None);
    OwnedProblem owned(shape, InputKind::Zeros, 1);
    shape.seqK = 1;
    OwnedProblem other(shape, InputKind::Normal, 2);
    BackwardProblem problem{owned.problem, other.problem.q};
    const Row elements = problem.dout.row(0, 0, 0);
    const double first = elements[0];
    elements.set(1, 0x1p-16);
    for (bool flush : {false, true}) {
      problem.flushSubnormals = flush;
      const BackwardResult plain = attentionBackwardPlain(problem);
      EXPECT_EQ(plain.dv[0], roundTo(type, first * 0x1p-15));
      EXPECT_NEAR(attentionBackwardF64(problem).dv[0], first * 0x1p-15, 1e-12);
    }
  }
}

/// dS is at most 2^-15 times what it is made of; a device that takes it for
/// zero has no gradient of Q.
TEST(BackwardPlain, TakesSubnormalScoreGradientsForZerosIfAsked) {
  Shape shape = shapeOf(ElemType::F16, 1, 1, 1, 1 << 15, Mask::None);
  OwnedProblem owned(shape, InputKind::Normal, 1);
  for (int64_t d = 0; d < owned.problem.q.dim; ++d)
    owned.problem.q.row(0, 0, 0).set(d, 0);
  shape.seqK = 1;
  OwnedProblem other(shape, InputKind::Normal, 2);
  BackwardProblem problem{owned.problem, other.problem.q};
  for (int64_t d = 0; d < problem.dout.dim; ++d)
    problem.dout.row(0, 0, 0).set(d, problem.dout.row(0, 0, 0)[d] / 16);
  problem.flushSubnormals = true;
  EXPECT_NE(attentionBackwardPlain(problem).dq[0], 0);
  problem.flushScoreGradients = true;
  EXPECT_EQ(attentionBackwardPlain(problem).dq[0], 0);
}

/// A bias of each key.
struct KeyBias : ScoreFunction {
  Result<double> apply(double x, const Place &) const override {
    return {x, 1};
  }
  Result<float> apply(float x, const Place &) const override { return {x, 1}; }
  Term termOf(int, double, const Place &place) const override {
    return {1, place.key};
  }
};

/// What a score program captures has gradients of the same operands.
TEST(CaptureGradients, AreOfWhatMatrixInstructionsSee) {
  Shape shape = shapeOf(ElemType::F16, 1, 1, 3, 5, Mask::None);
  OwnedProblem owned(shape, InputKind::Normal, 1);
  OwnedProblem other(shape, InputKind::Normal, 2);
  BackwardProblem problem{owned.problem, other.problem.q};
  problem.forward.score = std::make_shared<KeyBias>();
  const Row places[] = {
      problem.forward.q.row(0, 0, 1), problem.forward.k.row(0, 0, 2),
      problem.forward.v.row(0, 0, 3), problem.dout.row(0, 0, 2)};
  const ForwardResult forward = attentionForwardF64(problem.forward);
  const std::vector<float> lse(forward.lse.begin(), forward.lse.end());
  auto gradients = [&] {
    std::vector<double> values;
    for (const CaptureGradient::Element &element :
         captureGradientF64(problem, forward.out, lse, 0, 5).elements)
      values.push_back(element.exact);
    return values;
  };
  // Delta is made of vector instructions, which see all of dout.
  for (const Row &place : places) {
    const double before = place[4];
    const bool isOfDelta = &place == &places[3];
    place.set(4, 0x1p-15);
    problem.flushSubnormals = true;
    const auto flushed = gradients();
    problem.flushSubnormals = false;
    EXPECT_NE(gradients(), flushed);
    place.set(4, 0);
    if (isOfDelta)
      EXPECT_NE(gradients(), flushed);
    else
      EXPECT_EQ(gradients(), flushed);
    place.set(4, before);
  }
}

/// Where the log-sum-exp lacks the digits of a probability, this is still none
/// above 1: one key, whose logit is 2^40.
TEST(BackwardPlain, HasNoProbabilityAboveOne) {
  Shape shape = shapeOf(ElemType::BF16, 1, 1, 1, 300, Mask::None);
  OwnedProblem owned(shape, InputKind::Equal, 1);
  OwnedProblem other(shape, InputKind::Normal, 2);
  BackwardProblem problem{owned.problem, other.problem.q};
  const BackwardResult plain = attentionBackwardPlain(problem);
  for (size_t i = 0; i < plain.dv.size(); ++i)
    EXPECT_LE(
        std::fabs(plain.dv[i]),
        std::fabs(problem.dout.row(0, 0, 0)[int64_t(i) % problem.dout.dim]));
}

TEST(BackwardCheck, NamesWhatDisagrees) {
  Shape shape;
  OwnedProblem owned(shape, InputKind::Normal, 1);
  BackwardProblem problem{owned.problem, owned.problem.q};
  EXPECT_EQ(problem.check(), "");
  problem.dout.seq = 3;
  EXPECT_NE(problem.check().find("dout"), std::string::npos);
}

} // namespace
