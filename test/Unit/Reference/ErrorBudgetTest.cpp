//===- ErrorBudgetTest.cpp - the rules pass good kernels and no others ----===//
//
// A scalar model of a tiled kernel (online softmax in base 2, probabilities
// rounded relative to the running maximum, rescaling) takes the place of a
// device. As written it must pass on every kind of input; with a fault planted
// it must fail.
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include "fovea/Reference/ErrorBudget.h"

#include <gtest/gtest.h>

#include <limits>

using namespace fovea::reference;

namespace {

struct Fault {
  double scale = 1;             // factor on the softmax scale
  int64_t skipTile = -1;        // a tile of keys never visited
  int64_t maskShift = 0;        // columns that the mask is off by
  bool staleRescale = false;    // accumulator not rescaled at a new maximum
  bool dropLast = false;        // last key of every row left out
  bool lowPrecisionAcc = false; // accumulator kept in 16 bits, or those of xf32
  bool cutKeys = false;         // keys with the digits of xf32
  bool cutWeights = false;      // likewise the weights of values
  bool cutValues = false;
};

struct Output {
  std::vector<uint8_t> data;
  std::vector<float> lse;
  Tensor tensor;
};

float cutIf(bool is, float x) { return is ? cut(x) : x; }

Output tiledKernel(const ForwardProblem &p, const Fault &fault = {}) {
  constexpr int64_t kTile = 64;
  constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;
  Output r;
  r.tensor =
      describe(p.q.type, Layout::BSHD, p.q.batch, p.q.heads, p.q.seq, p.q.dim);
  r.data.assign(size_t((r.tensor.span() + 1) * elementSize(p.q.type)), 0xff);
  r.tensor.data = r.data.data();
  const float scale = float(p.scale * fault.scale) * kLog2e;
  for (int64_t b = 0; b < p.q.batch; ++b)
    for (int64_t h = 0; h < p.q.heads; ++h)
      for (int64_t i = 0; i < p.q.seq; ++i) {
        const int64_t hk = h / (p.q.heads / p.k.heads);
        int64_t count = visibleKeys(p.mask, i, p.q.seq, p.k.seq).end;
        if (p.mask != Mask::None)
          count = std::clamp<int64_t>(count + fault.maskShift, 0, p.k.seq);
        if (fault.dropLast)
          count = std::max<int64_t>(count - 1, 0);
        std::vector<float> acc(size_t(p.q.dim), 0), s(kTile);
        float m = -INFINITY, l = 0;
        for (int64_t tile = 0; tile < count; tile += kTile) {
          if (tile / kTile == fault.skipTile)
            continue;
          const int64_t end = std::min(tile + kTile, count);
          float top = m;
          for (int64_t j = tile; j < end; ++j) {
            float dot = 0;
            for (int64_t d = 0; d < p.q.dim; ++d)
              dot += float(p.q.row(b, h, i)[d]) *
                     cutIf(fault.cutKeys, float(p.k.row(b, hk, j)[d]));
            s[size_t(j - tile)] = dot * scale;
            top = std::max(top, dot * scale);
          }
          const float rescale = std::exp2(m - top);
          m = top;
          l *= rescale;
          if (!fault.staleRescale)
            for (float &x : acc)
              x *= rescale;
          for (int64_t j = tile; j < end; ++j) {
            const float e = std::exp2(s[size_t(j - tile)] - m);
            l += e;
            const float pr =
                cutIf(fault.cutWeights, float(roundTo(p.q.type, e)));
            for (int64_t d = 0; d < p.q.dim; ++d) {
              float &x = acc[size_t(d)];
              x += pr * cutIf(fault.cutValues, float(p.v.row(b, hk, j)[d]));
              if (fault.lowPrecisionAcc)
                x = coarse(p.q.type, x);
            }
          }
        }
        for (int64_t d = 0; d < p.q.dim; ++d)
          r.tensor.row(b, h, i).set(d, l == 0 ? 0 : acc[size_t(d)] / l);
        r.lse.push_back(l == 0 ? -INFINITY : m * kLn2 + std::log(l));
      }
  return r;
}

const Shape kShapes[] = {
    {ElemType::BF16, 1, 2, 1, 130, 257, 64, Mask::None},
    {ElemType::F16, 1, 2, 1, 130, 257, 64, Mask::CausalBottomRight},
    {ElemType::BF16, 2, 2, 2, 200, 200, 40, Mask::CausalTopLeft},
    {ElemType::F16, 1, 1, 1, 65, 1000, 128, Mask::None},
    {ElemType::BF16, 1, 1, 1, 70, 33, 16, Mask::CausalBottomRight},
    {ElemType::F16, 1, 4, 1, 1, 1, 16, Mask::None},
    {ElemType::BF16, 1, 1, 1, 7, 0, 16, Mask::None},
    {ElemType::F32, 1, 2, 1, 130, 257, 64, Mask::None},
    {ElemType::F32, 1, 1, 1, 65, 300, 128, Mask::CausalBottomRight},
    {ElemType::F32, 1, 4, 1, 1, 1, 16, Mask::None},
};
constexpr ElemType kTypes[] = {ElemType::F16, ElemType::BF16, ElemType::F32};

TEST(ErrorBudget, PassesATiledKernelOnEveryInput) {
  for (const Shape &shape : kShapes)
    for (InputKind kind : {InputKind::Uniform, InputKind::Normal,
                           InputKind::Large, InputKind::OnesV, InputKind::Spike,
                           InputKind::Zeros, InputKind::Masked}) {
      OwnedProblem owned(shape, kind, 17);
      const Expectation e = expectForward(owned.problem);
      const Output out = tiledKernel(owned.problem);
      const Comparison c = compareForward(e, out.tensor, out.lse.data());
      EXPECT_TRUE(c.pass) << inputKindName(kind) << " " << optionOf(shape.mask)
                          << " " << shape.dim << ": " << c.message;
      EXPECT_EQ(c.wrongClass, 0);
      // The budget stays near what rounding must cost.
      EXPECT_LE(c.max.budget, 4 * c.max.plain + 0.1);
    }
}

/// Whether the fault is seen on normal inputs, with lse and without.
void expectCaught(const Shape &shape, const Fault &fault, const char *name) {
  OwnedProblem owned(shape, InputKind::Normal, 23);
  const Expectation e = expectForward(owned.problem);
  const Output out = tiledKernel(owned.problem, fault);
  const Comparison with = compareForward(e, out.tensor, out.lse.data());
  EXPECT_FALSE(with.pass) << name << " with lse, " << optionOf(shape.mask);
  EXPECT_FALSE(with.message.empty());
  const Comparison without = compareForward(e, out.tensor, nullptr);
  EXPECT_FALSE(without.pass)
      << name << " without lse: max " << without.max.error << " of "
      << without.max.budget << ", rms " << without.rms.error << " of "
      << without.rms.budget;
}

TEST(ErrorBudget, CatchesASkippedTile) {
  Fault fault;
  fault.skipTile = 2;
  for (ElemType type : kTypes)
    for (Mask mask : {Mask::None, Mask::CausalTopLeft})
      expectCaught({type, 1, 1, 1, 200, 1000, 128, mask}, fault, "tile");
}

TEST(ErrorBudget, CatchesAMaskOffByOne) {
  for (ElemType type : kTypes)
    for (Mask mask : {Mask::CausalTopLeft, Mask::CausalBottomRight})
      for (int64_t shift : {-1, 1}) {
        Fault fault;
        fault.maskShift = shift;
        expectCaught({type, 1, 1, 1, 129, 257, 64, mask}, fault, "mask");
      }
}

TEST(ErrorBudget, CatchesAStaleRescale) {
  Fault fault;
  fault.staleRescale = true;
  for (ElemType type : kTypes)
    expectCaught({type, 1, 1, 1, 64, 257, 128, Mask::None}, fault, "rescale");
}

TEST(ErrorBudget, CatchesADroppedKey) {
  Fault fault;
  fault.dropLast = true;
  for (ElemType type : kTypes)
    expectCaught({type, 1, 1, 1, 64, 257, 64, Mask::None}, fault, "last key");
}

TEST(ErrorBudget, CatchesALowPrecisionAccumulator) {
  Fault fault;
  fault.lowPrecisionAcc = true;
  for (ElemType type : kTypes)
    expectCaught({type, 1, 1, 1, 64, 257, 64, Mask::None}, fault,
                 "accumulator");
}

TEST(ErrorBudget, CatchesAScaleErrorOfOnePercent) {
  for (ElemType type : kTypes)
    for (double factor : {0.99, 1.01}) {
      Fault fault;
      fault.scale = factor;
      expectCaught({type, 1, 1, 1, 64, 257, 128, Mask::None}, fault, "scale");
    }
}

TEST(ErrorBudget, CatchesAScaleErrorOfOnePercentOnUniformInputsByTheLse) {
  Fault fault;
  fault.scale = 1.01;
  OwnedProblem owned({ElemType::BF16, 1, 1, 1, 64, 257, 128},
                     InputKind::Uniform, 23);
  const Output out = tiledKernel(owned.problem, fault);
  const Comparison c =
      compareForward(expectForward(owned.problem), out.tensor, out.lse.data());
  EXPECT_GT(c.lse.error, 100 * c.lse.budget);
  EXPECT_NE(c.message.find("lse[0, 0, "), std::string::npos) << c.message;
}

TEST(ErrorBudget, CatchesOneMissingKeyInAThousandByTheLse) {
  Fault fault;
  fault.dropLast = true;
  OwnedProblem owned({ElemType::BF16, 1, 1, 1, 3, 1000, 64}, InputKind::Uniform,
                     23);
  const Output out = tiledKernel(owned.problem, fault);
  EXPECT_GT(
      compareForward(expectForward(owned.problem), out.tensor, out.lse.data())
          .lse.error,
      1e-4);
}

/// What fp32 is for: products of fewer digits show, of any operand, and what
/// the budget is beside the output.
TEST(ErrorBudget, OfFp32CatchesOperandsOfFewerDigits) {
  for (bool Fault::*operand :
       {&Fault::cutKeys, &Fault::cutWeights, &Fault::cutValues})
    for (Mask mask : {Mask::None, Mask::CausalTopLeft}) {
      Fault fault;
      fault.*operand = true;
      expectCaught({ElemType::F32, 1, 1, 1, 64, 257, 64, mask}, fault,
                   "operand");
    }
}

TEST(ErrorBudget, OfFp32IsAFewUnitsInTheLastPlace) {
  const Shape shape = {ElemType::F32, 1, 1, 1, 64, 512, 64, Mask::None};
  OwnedProblem owned(shape, InputKind::Normal, 23);
  const Expectation e = expectForward(owned.problem);
  const Comparison c =
      compareForward(e, tiledKernel(owned.problem).tensor, nullptr);
  double squares = 0;
  for (double x : e.exact.out)
    squares += x * x;
  const double size = std::sqrt(squares / double(e.exact.out.size()));
  EXPECT_LT(c.rms.budget, 1e-5 * size);
  EXPECT_GT(c.rms.error, 0.02 * c.rms.budget);
}

class Classes : public testing::Test {
protected:
  Classes()
      : owned({ElemType::BF16, 1, 2, 1, 5, 2, 16, Mask::CausalBottomRight},
              InputKind::Normal, 2),
        expected(expectForward(owned.problem)),
        out(tiledKernel(owned.problem)) {}
  Comparison compare() {
    return compareForward(expected, out.tensor, out.lse.data());
  }
  OwnedProblem owned;
  Expectation expected;
  Output out;
};

TEST_F(Classes, AsComputedPasses) { EXPECT_TRUE(compare().pass); }

TEST_F(Classes, ANaNIsNamedWithItsIndex) {
  out.tensor.row(0, 1, 4).set(3, NAN);
  const Comparison c = compare();
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.wrongClass, 1);
  EXPECT_NE(c.message.find("out[0, 1, 4, 3] is nan"), std::string::npos)
      << c.message;
}

TEST_F(Classes, AnEmptyRowMustBeExactlyZero) {
  out.tensor.row(0, 0, 1).as<uint16_t>()[0] = 1; // least subnormal
  EXPECT_FALSE(compare().pass);
}

TEST_F(Classes, AnEmptyRowsLseMustBeMinusInfinity) {
  out.lse[0] = -1e30f;
  EXPECT_FALSE(compare().pass);
}

TEST_F(Classes, AnInfiniteLseIsAnError) {
  out.lse[4] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(compare().pass);
}

TEST(ErrorBudget, AnOutputThatOverflowsItsTypeMustBeInfinite) {
  OwnedProblem owned({ElemType::F16, 1, 1, 1, 1, 1, 16}, InputKind::Normal, 1);
  Expectation e = expectForward(owned.problem);
  e.exact.out[0] = e.plain.out[0] = 70000;
  Output out = tiledKernel(owned.problem);
  EXPECT_FALSE(compareForward(e, out.tensor, nullptr).pass);
  out.tensor.row(0, 0, 0).set(0, INFINITY);
  EXPECT_TRUE(compareForward(e, out.tensor, nullptr).pass);
}

} // namespace
