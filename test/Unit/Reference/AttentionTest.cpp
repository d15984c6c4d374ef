//===- AttentionTest.cpp - the oracle against the formula -----------------===//

#include "Problem.h"

#include <gtest/gtest.h>

#include <limits>

using namespace fovea::reference;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The formula, one element at a time in extended precision.
void naive(const ForwardProblem &p, std::vector<double> &out,
           std::vector<double> &lse) {
  for (int64_t b = 0; b < p.q.batch; ++b)
    for (int64_t h = 0; h < p.q.heads; ++h)
      for (int64_t i = 0; i < p.q.seq; ++i) {
        const int64_t hk = h * p.k.heads / p.q.heads;
        std::vector<long double> o(size_t(p.q.dim), 0);
        long double sum = 0;
        for (int64_t j = 0; j < p.k.seq; ++j) {
          const Window &w = p.mask;
          auto diagonal = [&](Alignment alignment) {
            return alignment == Alignment::TopLeft ? i : i + p.k.seq - p.q.seq;
          };
          if ((w.left != Window::kInfinite &&
               j < diagonal(w.leftAlignment) - w.left) ||
              (w.right != Window::kInfinite &&
               j > diagonal(w.rightAlignment) + w.right))
            continue;
          long double s = 0;
          for (int64_t d = 0; d < p.q.dim; ++d)
            s += (long double)p.q.row(b, h, i)[d] * p.k.row(b, hk, j)[d];
          const long double e = std::exp(s * p.scale);
          sum += e;
          for (int64_t d = 0; d < p.q.dim; ++d)
            o[size_t(d)] += e * p.v.row(b, hk, j)[d];
        }
        for (long double x : o)
          out.push_back(double(sum == 0 ? 0 : x / sum));
        lse.push_back(double(std::log(sum)));
      }
}

TEST(Attention, AgreesWithTheFormula) {
  for (const Window &mask :
       {Window(), Window(Mask::CausalTopLeft), Window(Mask::CausalBottomRight),
        Window(3, 1, Alignment::BottomRight, Alignment::BottomRight),
        Window(-2, 9, Alignment::TopLeft, Alignment::BottomRight),
        Window(5, Window::kInfinite, Alignment::TopLeft, Alignment::TopLeft)})
    for (Layout layout : {Layout::BHSD, Layout::BSHD, Layout::SBHD})
      for (auto [seqQ, seqK] : {std::pair<int, int>{1, 1},
                                {5, 5},
                                {17, 3},
                                {3, 17},
                                {67, 70},
                                {2, 0},
                                {0, 4}}) {
        const Shape shape{ElemType::F16, 2,  4,    2,      seqQ,
                          seqK,          24, mask, layout, 3};
        OwnedProblem owned(shape, InputKind::Normal, 7);
        ASSERT_EQ(owned.problem.check(), "");
        std::vector<double> out, lse;
        naive(owned.problem, out, lse);
        const ForwardResult got = attentionForwardF64(owned.problem, 2);
        ASSERT_EQ(got.out.size(), out.size());
        ASSERT_EQ(got.lse.size(), lse.size());
        for (size_t i = 0; i < out.size(); ++i)
          ASSERT_NEAR(got.out[i], out[i], 1e-13) << optionOf(mask) << " " << i;
        for (size_t i = 0; i < lse.size(); ++i)
          if (std::isfinite(lse[i]))
            ASSERT_NEAR(got.lse[i], lse[i], 1e-12);
          else
            ASSERT_EQ(got.lse[i], lse[i]);
      }
}

TEST(Attention, PlainIsCloseAndRounded) {
  for (ElemType type : {ElemType::F16, ElemType::BF16}) {
    OwnedProblem owned({type, 1, 2, 1, 50, 61, 32, Mask::CausalBottomRight},
                       InputKind::Normal, 3);
    const ForwardResult exact = attentionForwardF64(owned.problem);
    const ForwardResult plain = attentionForwardPlain(owned.problem);
    double worst = 0;
    for (size_t i = 0; i < exact.out.size(); ++i) {
      worst = std::max(worst, std::fabs(exact.out[i] - plain.out[i]));
      ASSERT_EQ(roundTo(type, plain.out[i]), plain.out[i]);
    }
    EXPECT_GT(worst, 0);
    EXPECT_LT(worst, 8 * unitRoundoff(type));
    for (size_t i = 0; i < exact.lse.size(); ++i)
      ASSERT_NEAR(exact.lse[i], plain.lse[i], 1e-5);
  }
}

TEST(Attention, RowsThatSeeNoKeyAreZeroWithLseOfMinusInfinity) {
  OwnedProblem owned(
      {ElemType::BF16, 1, 1, 1, 5, 2, 16, Mask::CausalBottomRight},
      InputKind::Normal, 1);
  const ForwardResult got = attentionForwardF64(owned.problem);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.lse[size_t(i)], -kInf);
    for (int64_t d = 0; d < 16; ++d)
      EXPECT_EQ(got.out[size_t(i * 16 + d)], 0.0);
  }
  EXPECT_TRUE(std::isfinite(got.lse[3]));
}

TEST(Attention, HiddenKeysMayHoldAnything) {
  const Shape shape{ElemType::F16, 1, 1, 1, 3, 9, 16, Mask::CausalTopLeft};
  OwnedProblem clean(shape, InputKind::Normal, 11);
  OwnedProblem masked(shape, InputKind::Masked, 11);
  EXPECT_FALSE(std::isfinite(masked.problem.k.row(0, 0, 8)[0]));
  EXPECT_EQ(attentionForwardF64(clean.problem).out,
            attentionForwardF64(masked.problem).out);
  EXPECT_EQ(attentionForwardPlain(clean.problem).lse,
            attentionForwardPlain(masked.problem).lse);
}

TEST(Attention, VisibleNaNReachesTheRow) {
  OwnedProblem owned({ElemType::F16, 1, 1, 1, 3, 4, 16}, InputKind::Normal, 5);
  owned.problem.q.row(0, 0, 1).set(2, NAN);
  const ForwardResult got = attentionForwardF64(owned.problem);
  EXPECT_TRUE(std::isnan(got.out[16]));
  EXPECT_TRUE(std::isnan(got.lse[1]));
  EXPECT_FALSE(std::isnan(got.out[0]));
}

TEST(Attention, OnesVGivesOne) {
  OwnedProblem owned({ElemType::BF16, 1, 1, 1, 9, 100, 16}, InputKind::OnesV,
                     5);
  for (double x : attentionForwardF64(owned.problem).out)
    EXPECT_NEAR(x, 1.0, 1e-14);
}

TEST(Attention, LargeLogitsReachTenThousand) {
  OwnedProblem owned({ElemType::F16, 1, 1, 1, 64, 256, 64}, InputKind::Large,
                     5);
  double most = 0;
  for (double x : attentionForwardF64(owned.problem).lse)
    most = std::max(most, x);
  EXPECT_GT(most, 5e3);
  EXPECT_LT(most, 5e4);
}

TEST(Attention, CheckNamesWhatDisagrees) {
  OwnedProblem owned({ElemType::F16, 1, 6, 2, 3, 4, 16}, InputKind::Normal, 5);
  ForwardProblem p = owned.problem;
  p.q.heads = 5;
  EXPECT_NE(p.check().find("query heads (5)"), std::string::npos);
  p = owned.problem;
  p.v.seq = 3;
  EXPECT_NE(p.check().find("sequence (4, 3)"), std::string::npos);
  p = owned.problem;
  p.k.batch = 2;
  EXPECT_NE(p.check().find("batch"), std::string::npos);
  p = owned.problem;
  p.k.type = ElemType::BF16;
  EXPECT_NE(p.check().find("element type"), std::string::npos);
}

TEST(Inputs, AreTheSameForTheSameSeed) {
  const Shape shape{ElemType::F16, 1, 2, 1, 8, 8, 16};
  for (InputKind kind : {InputKind::Uniform, InputKind::Normal,
                         InputKind::Large, InputKind::OnesV, InputKind::Spike,
                         InputKind::Zeros, InputKind::Rising}) {
    OwnedProblem a(shape, kind, 1), b(shape, kind, 1), c(shape, kind, 2);
    const auto lse = attentionForwardF64(a.problem).lse;
    EXPECT_EQ(lse, attentionForwardF64(b.problem).lse);
    if (kind != InputKind::Zeros)
      EXPECT_NE(lse, attentionForwardF64(c.problem).lse) << inputKindName(kind);
    InputKind parsed;
    EXPECT_TRUE(parseInputKind(inputKindName(kind), parsed));
    EXPECT_EQ(parsed, kind);
  }
  InputKind parsed;
  EXPECT_FALSE(parseInputKind("gaussian", parsed));
  // A layout changes where elements are, not what they are.
  Shape strided = shape;
  strided.layout = Layout::SBHD;
  strided.padding = 5;
  OwnedProblem a(shape, InputKind::Normal, 9), b(strided, InputKind::Normal, 9);
  EXPECT_EQ(attentionForwardF64(a.problem).out,
            attentionForwardF64(b.problem).out);
}

TEST(Inputs, RandomIsSplitmix64) {
  // First outputs for seed 0, as published with the generator.
  Random random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4u);
}

} // namespace
