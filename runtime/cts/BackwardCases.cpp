//===- BackwardCases.cpp - backward passes with known results -------------===//
//
// Run for every backward kernel of the packages. The backward pass takes the
// log-sum-exp as it is given: with q and k orthogonal and 0 for it, each
// probability is exactly 1, and sums of small binary fractions are exact too,
// so the expected gradients need no second implementation of attention. With a
// scale of zero and the true log-sum-exp, dv is a sum of means.
//
//===----------------------------------------------------------------------===//

#include "Buffer.h"

#include <cmath>
#include <cstring>
#include <thread>

using namespace fovea::cts;

namespace {

struct BackwardProblem : Problem {
  Value out = q, dout = q;
  std::function<float(int64_t row)> lse = [](int64_t) { return 0.0f; };
  bool wantDq = true, wantDkAndDv = true;
  fovea_status_t status = FOVEA_STATUS_OK; ///< that is expected
};

/// In the order of the shapes; empty when not wanted.
struct Gradients {
  std::vector<float> dq, dk, dv;
};

Gradients run(const BackwardProblem &p) {
  Buffer q(p, p.headsQ, p.seqlenQ, p.q), k(p, p.headsK, p.seqlenK, p.k),
      v(p, p.headsK, p.seqlenK, p.v), out(p, p.headsQ, p.seqlenQ, p.out),
      dout(p, p.headsQ, p.seqlenQ, p.dout), dq(p, p.headsQ, p.seqlenQ),
      dk(p, p.headsK, p.seqlenK), dv(p, p.headsK, p.seqlenK);
  const int64_t lseHead = p.seqlenQ + 3;
  std::vector<float> lse(size_t(p.batch * p.headsQ * lseHead), NAN);
  for (int64_t head = 0; head != p.batch * p.headsQ; ++head)
    for (int64_t row = 0; row != p.seqlenQ; ++row)
      lse[size_t(head * lseHead + row)] =
          p.visibleKeys(row) ? p.lse(row) : -INFINITY;
  Guarded deviceLse(lse.size() * 4);
  deviceLse.upload(lse.data());

  fovea_backward_params_t params{};
  fillSizes(p, params);
  q.describe(params.q);
  k.describe(params.k);
  v.describe(params.v);
  out.describe(params.out);
  dout.describe(params.dout);
  params.lse = static_cast<const float *>(deviceLse.data());
  params.lse_stride_head = lseHead;
  params.lse_stride_batch = p.headsQ * lseHead;
  if (p.wantDq)
    dq.describe(params.dq);
  if (p.wantDkAndDv) {
    dk.describe(params.dk);
    dv.describe(params.dv);
  }
  params.deterministic = p.kernel.deterministic;
  fovea_backward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  EXPECT_FOVEA(fovea_backward_select(context(), &params, -1, &plan), p.status);
  // It holds NaN, and what lies around it is checked.
  const std::vector<uint8_t> before(plan.workspace_bytes, 0xff);
  Guarded workspace(before.size());
  workspace.upload(before.data());
  params.workspace = workspace.data();
  params.workspace_bytes = before.size();
  EXPECT_FOVEA(fovea_backward(context(), &params, p.stream), p.status);
  EXPECT_EQ(hip().hipStreamSynchronize(p.stream), 0);

  for (Buffer *input : {&q, &k, &v, &out, &dout})
    input->finish();
  std::vector<uint8_t> after(before.size());
  workspace.download(after.data());
  std::vector<float> lseAfter(lse.size());
  deviceLse.download(lseAfter.data());
  EXPECT_EQ(std::memcmp(lse.data(), lseAfter.data(), lse.size() * 4), 0)
      << "lse was written";
  Gradients result;
  result.dq = dq.finish();
  result.dk = dk.finish();
  result.dv = dv.finish();
  return result;
}

/// Small binary fractions that tell places apart.
float fraction(int64_t b, int64_t h, int64_t row, int64_t d) {
  return float((b * 5 + h * 3 + row * 7 + d * 11) % 9 - 4) * 0.25f;
}

/// The one element of a row of dout that is not 0, and its value.
int64_t doutPlace(const Problem &p, int64_t h, int64_t row) {
  return (row * 7 + h * 3) % p.kernel.headDim;
}
float doutValue(int64_t row) { return row % 3 ? 0.5f : -1.0f; }

/// Every probability is 1.
BackwardProblem ones(const KernelCase &kernel) {
  BackwardProblem p;
  p.kernel = kernel;
  const int64_t half = kernel.headDim / 2;
  p.q = [=](int64_t b, int64_t h, int64_t row, int64_t d) {
    return d < half ? fraction(b, h, row, d) : 0.0f;
  };
  p.k = [=](int64_t b, int64_t h, int64_t row, int64_t d) {
    return d < half ? 0.0f : fraction(b, h, row, d);
  };
  p.v = fraction;
  p.out = [](int64_t b, int64_t h, int64_t row, int64_t d) {
    return fraction(b, h, row + 2, d);
  };
  p.dout = [=](int64_t, int64_t h, int64_t row, int64_t d) {
    Problem sizes;
    sizes.kernel = kernel;
    return d == doutPlace(sizes, h, row) ? doutValue(row) : 0.0f;
  };
  p.scale = 0.25f;
  return p;
}

/// By the formulas, with p = 1 where the row sees the key.
Gradients expectedOfOnes(const BackwardProblem &p) {
  const int64_t dim = p.kernel.headDim, half = dim / 2,
                group = p.headsK ? p.headsQ / p.headsK : 1;
  Gradients all;
  all.dq.resize(size_t(p.batch * p.headsQ * p.seqlenQ * dim));
  all.dk.resize(size_t(p.batch * p.headsK * p.seqlenK * dim));
  all.dv.resize(all.dk.size());
  for (int64_t b = 0; b != p.batch; ++b)
    for (int64_t h = 0; h != p.headsQ; ++h)
      for (int64_t i = 0; i != p.seqlenQ; ++i) {
        const int64_t place = doutPlace(p, h, i), kh = h / group;
        const float delta = p.out(b, h, i, place) * doutValue(i);
        float *dq = &all.dq[size_t(((b * p.headsQ + h) * p.seqlenQ + i) * dim)];
        const Problem::Keys keys = p.keysOf(i);
        for (int64_t j = keys.begin; j != keys.end; ++j) {
          const size_t key =
              size_t(((b * p.headsK + kh) * p.seqlenK + j) * dim);
          const float ds =
              (doutValue(i) * p.v(b, kh, j, place) - delta) * p.scale;
          for (int64_t d = half; d != dim; ++d)
            dq[d] += ds * p.k(b, kh, j, d);
          for (int64_t d = 0; d != half; ++d)
            all.dk[key + size_t(d)] += ds * p.q(b, h, i, d);
          all.dv[key + size_t(place)] += doutValue(i);
        }
      }
  return all;
}

void expectNear(const char *name, const BackwardProblem &p,
                const std::vector<float> &found,
                const std::vector<float> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i != found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i],
                std::fabs(expected[i]) * roundoff(p.kernel.dtype))
        << name << " element " << i;
}

/// Sums are exact, so only the store may round.
void expectOnesOf(const BackwardProblem &p) {
  const Gradients expected = expectedOfOnes(p), found = run(p);
  expectNear("dq", p, found.dq, expected.dq);
  expectNear("dk", p, found.dk, expected.dk);
  expectNear("dv", p, found.dv, expected.dv);
}

class Backward : public testing::TestWithParam<KernelCase> {};
class BackwardWindow : public testing::TestWithParam<KernelCase> {};
// A package may hold forward kernels alone, or none that takes a window.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Backward);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackwardWindow);

} // namespace

TEST_P(Backward, ProbabilitiesOfOne) {
  const std::pair<int64_t, int64_t> lengths[] = {
      {1, 1}, {67, 45}, {45, 67}, {64, 64}, {129, 65}, {1, 150}, {150, 1}};
  for (const auto &[seqlenQ, seqlenK] : lengths) {
    SCOPED_TRACE(std::to_string(seqlenQ) + "x" + std::to_string(seqlenK));
    BackwardProblem p = ones(GetParam());
    p.seqlenQ = seqlenQ;
    p.seqlenK = seqlenK;
    expectOnesOf(p);
  }
}

TEST_P(Backward, HeadsBatchesAndLayouts) {
  for (bool sequenceFirst : {false, true}) {
    BackwardProblem p = ones(GetParam());
    p.batch = 2;
    p.headsQ = 6;
    p.headsK = 2;
    p.seqlenQ = 40;
    p.seqlenK = 70;
    p.sequenceFirst = sequenceFirst;
    p.padding = sequenceFirst ? 24 : 3;
    expectOnesOf(p);
  }
}

// What has elements gets its zeros though there is nothing to sum.
TEST_P(Backward, NothingToSumGivesZeros) {
  for (int which : {0, 1, 2}) {
    BackwardProblem p = ones(GetParam());
    p.batch = 2;
    p.seqlenQ = which == 0 ? 0 : 70;
    p.seqlenK = which == 1 ? 0 : 70;
    p.headsQ = which == 2 ? 0 : 2;
    expectOnesOf(p);
  }
}

TEST_P(Backward, GradientsThatAreNotWantedStayAsTheyAre) {
  BackwardProblem p = ones(GetParam());
  p.seqlenQ = 50;
  p.seqlenK = 70;
  const Gradients all = run(p);
  auto isUnwritten = [](const std::vector<float> &values) {
    for (float value : values)
      if (!std::isnan(value))
        return false;
    return true;
  };
  p.wantDq = false;
  Gradients some = run(p);
  EXPECT_TRUE(isUnwritten(some.dq));
  EXPECT_EQ(some.dk, all.dk);
  EXPECT_EQ(some.dv, all.dv);
  p.wantDq = true;
  p.wantDkAndDv = false;
  // One launch computes them and what dq is made of, unless each gradient is
  // summed in an order of its own.
  const bool alone = p.kernel.deterministic;
  p.status = alone ? FOVEA_STATUS_OK : FOVEA_STATUS_NOT_FOUND;
  some = run(p);
  if (alone)
    EXPECT_EQ(some.dq, all.dq);
  else
    EXPECT_TRUE(isUnwritten(some.dq));
  EXPECT_TRUE(isUnwritten(some.dk));
  EXPECT_TRUE(isUnwritten(some.dv));
}

TEST_P(Backward, ZeroScaleGivesMeans) {
  BackwardProblem p = ones(GetParam());
  p.headsQ = 2;
  p.seqlenQ = 67;
  p.seqlenK = 45;
  p.scale = 0;
  p.q = p.k = fraction;
  p.lse = [&](int64_t row) {
    return float(std::log(double(p.visibleKeys(row))));
  };
  const Gradients found = run(p);
  const int64_t dim = p.kernel.headDim;
  for (const std::vector<float> *zeros : {&found.dq, &found.dk})
    for (float value : *zeros)
      ASSERT_EQ(value, 0);
  std::vector<double> dv(found.dv.size()), sizes(dv.size());
  for (int64_t h = 0; h != p.headsQ; ++h)
    for (int64_t i = 0; i != p.seqlenQ; ++i) {
      const Problem::Keys keys = p.keysOf(i);
      for (int64_t j = keys.begin; j != keys.end; ++j) {
        const size_t at = size_t(j * dim + doutPlace(p, h, i));
        const double share = double(doutValue(i)) / double(keys.count());
        dv[at] += share;
        sizes[at] += std::fabs(share);
      }
    }
  // Each probability is rounded to the type, and the sum once more.
  for (size_t i = 0; i != dv.size(); ++i)
    ASSERT_NEAR(found.dv[i], dv[i], 3 * roundoff(p.kernel.dtype) * sizes[i])
        << "dv element " << i;
}

TEST_P(Backward, ThreadsWithStreamsOfTheirOwn) {
  auto work = [&](int64_t lengths) {
    void *stream = nullptr;
    ASSERT_HIP(hip().hipStreamCreate(&stream));
    BackwardProblem p = ones(GetParam());
    p.seqlenQ = lengths + 1;
    p.seqlenK = lengths;
    p.stream = stream;
    expectOnesOf(p);
    ASSERT_HIP(hip().hipStreamDestroy(stream));
  };
  std::thread one(work, 33), two(work, 50);
  one.join();
  two.join();
}

TEST(BackwardWindows, HaveKernels) { expectWindowCases(/*backward=*/true); }

// Keys that no query sees have gradients too, which are zeros.
TEST_P(BackwardWindow, ProbabilitiesOfOne) {
  for (const NamedWindow &window : windows())
    for (const auto &[seqlenQ, seqlenK] :
         {std::pair(67, 45), std::pair(45, 67), std::pair(129, 130),
          std::pair(1, 70), std::pair(70, 1), std::pair(70, 0)}) {
      SCOPED_TRACE(std::string(window.name) + ", " + std::to_string(seqlenQ) +
                   "x" + std::to_string(seqlenK));
      BackwardProblem p = ones(GetParam());
      p.seqlenQ = seqlenQ;
      p.seqlenK = seqlenK;
      p.window = window.group();
      expectOnesOf(p);
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, BackwardWindow,
                         testing::ValuesIn(windowCases(/*backward=*/true)),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
INSTANTIATE_TEST_SUITE_P(Kernels, Backward,
                         testing::ValuesIn(kernelCases(/*backward=*/true)),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
