//===- BackwardCases.cpp - backward passes with known results -------------===//
//
// Run for every backward kernel of the packages. The backward pass takes the
// log-sum-exp as it is given: with q and k orthogonal and 0 for it, each
// probability is exactly 1, and sums of small binary fractions are exact too,
// so the expected gradients need no second implementation of attention. With a
// scale of zero and the true log-sum-exp, dv is a sum of means.
//
//===----------------------------------------------------------------------===//

#include "Suite.h"

#include <cmath>
#include <thread>

using namespace fovea;
using namespace fovea::cts;

namespace {

/// Small binary fractions that tell places apart.
float fraction(int64_t b, int64_t h, int64_t row, int64_t d) {
  return float((b * 5 + h * 3 + row * 7 + d * 11) % 9 - 4) * 0.25f;
}

/// The one element of a row of dout that is not 0, and its value.
int64_t doutPlace(const Problem &p, int64_t h, int64_t row) {
  return (row * 7 + h * 3) % p.kernel.key.dimOfV();
}
float doutValue(int64_t row) { return row % 3 ? 0.5f : -1.0f; }

/// Runs it with the log-sum-exp that it has, where a row sees a key.
Results runBackward(Problem p) {
  p["lse"] = [&, given = p["lse"]](int64_t b, int64_t h, int64_t row, int64_t) {
    return p.visibleKeys(row) ? given(b, h, row, 0) : -INFINITY;
  };
  return run(p);
}

/// Every probability is 1.
Problem ones(const KernelCase &kernel) {
  Problem p;
  p.kernel = kernel;
  const int64_t half = kernel.key.headDim / 2;
  p["q"] = [=](int64_t b, int64_t h, int64_t row, int64_t d) {
    return d < half ? fraction(b, h, row, d) : 0.0f;
  };
  p["k"] = [=](int64_t b, int64_t h, int64_t row, int64_t d) {
    return d < half ? 0.0f : fraction(b, h, row, d);
  };
  p["v"] = fraction;
  p["out"] = [](int64_t b, int64_t h, int64_t row, int64_t d) {
    return fraction(b, h, row + 2, d);
  };
  p["dout"] = [=](int64_t, int64_t h, int64_t row, int64_t d) {
    Problem sizes;
    sizes.kernel = kernel;
    return d == doutPlace(sizes, h, row) ? doutValue(row) : 0.0f;
  };
  p["lse"] = [](int64_t, int64_t, int64_t, int64_t) { return 0.0f; };
  p.scale = 0.25f;
  return p;
}

/// By the formulas, with p = 1 where the row sees the key.
Results expectedOfOnes(const Problem &p) {
  const Problem::Value &q = p["q"], &k = p["k"], &v = p["v"], &out = p["out"];
  const int64_t dim = p.kernel.key.headDim, half = dim / 2,
                dimV = p.kernel.key.dimOfV(),
                group = p.headsK ? p.headsQ / p.headsK : 1;
  Results all;
  std::vector<float> &dqs = all["dq"], &dks = all["dk"], &dvs = all["dv"];
  dqs.resize(size_t(p.batch * p.headsQ * p.seqlenQ * dim));
  dks.resize(size_t(p.batch * p.headsK * p.seqlenK * dim));
  dvs.resize(size_t(p.batch * p.headsK * p.seqlenK * dimV));
  for (int64_t b = 0; b != p.batch; ++b)
    for (int64_t h = 0; h != p.headsQ; ++h)
      for (int64_t i = 0; i != p.seqlenQ; ++i) {
        const int64_t place = doutPlace(p, h, i), kh = h / group;
        const float delta = out(b, h, i, place) * doutValue(i);
        float *dq = &dqs[size_t(((b * p.headsQ + h) * p.seqlenQ + i) * dim)];
        const Problem::Keys keys = p.keysOf(i);
        for (int64_t j = keys.begin; j != keys.end; ++j) {
          const int64_t row = (b * p.headsK + kh) * p.seqlenK + j;
          const size_t key = size_t(row * dim);
          const float ds =
              (doutValue(i) * v(b, kh, j, place) - delta) * p.scale;
          for (int64_t d = half; d != dim; ++d)
            dq[d] += ds * k(b, kh, j, d);
          for (int64_t d = 0; d != half; ++d)
            dks[key + size_t(d)] += ds * q(b, h, i, d);
          dvs[size_t(row * dimV + place)] += doutValue(i);
        }
      }
  return all;
}

/// Sums are exact, so only the store may round.
void expectOnesOf(const Problem &p) {
  const Results expected = expectedOfOnes(p), found = runBackward(p);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto &[name, gradient] : found) {
    const std::vector<float> &exact = expected.at(name);
    ASSERT_EQ(gradient.size(), exact.size()) << name;
    for (size_t i = 0; i != gradient.size(); ++i)
      ASSERT_NEAR(gradient[i], exact[i],
                  std::fabs(exact[i]) * roundoff(p.kernel.key.dtype))
          << name << " element " << i;
  }
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
    Problem p = ones(GetParam());
    p.seqlenQ = seqlenQ;
    p.seqlenK = seqlenK;
    expectOnesOf(p);
  }
}

TEST_P(Backward, HeadsBatchesAndLayouts) {
  for (bool sequenceFirst : {false, true}) {
    Problem p = ones(GetParam());
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
    Problem p = ones(GetParam());
    p.batch = 2;
    p.seqlenQ = which == 0 ? 0 : 70;
    p.seqlenK = which == 1 ? 0 : 70;
    p.headsQ = which == 2 ? 0 : 2;
    expectOnesOf(p);
  }
}

TEST_P(Backward, GradientsThatAreNotWantedStayAsTheyAre) {
  Problem p = ones(GetParam());
  p.seqlenQ = 50;
  p.seqlenK = 70;
  const Results all = runBackward(p);
  // One launch may compute what is wanted together with what is not.
  auto isRefused = [&](unsigned wanted) {
    for (const spec::LaunchSpec &launch : p.kernel.algorithm->launches)
      if ((launch.writes | launch.feeds) & wanted && launch.writes & ~wanted)
        return true;
    return false;
  };
  for (const auto &[wanted, absent] :
       {std::pair<unsigned, std::set<std::string>>(spec::kDk | spec::kDv,
                                                   {"dq"}),
        {spec::kDq, {"dk", "dv"}}}) {
    p.absent = absent;
    p.status = isRefused(wanted) ? FOVEA_STATUS_NOT_FOUND : FOVEA_STATUS_OK;
    for (const auto &[name, gradient] : runBackward(p))
      EXPECT_EQ(gradient, all.at(name)) << name;
  }
}

TEST_P(Backward, ZeroScaleGivesMeans) {
  Problem p = ones(GetParam());
  p.headsQ = 2;
  p.seqlenQ = 67;
  p.seqlenK = 45;
  p.scale = 0;
  p["q"] = p["k"] = fraction;
  p["lse"] = [&](int64_t, int64_t, int64_t row, int64_t) {
    return float(std::log(double(p.visibleKeys(row))));
  };
  const Results found = runBackward(p);
  const int64_t dim = p.kernel.key.dimOfV();
  for (const char *zeros : {"dq", "dk"})
    for (float value : found.at(zeros))
      ASSERT_EQ(value, 0);
  const std::vector<float> &means = found.at("dv");
  std::vector<double> dv(means.size()), sizes(dv.size());
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
    ASSERT_NEAR(means[i], dv[i], 3 * roundoff(p.kernel.key.dtype) * sizes[i])
        << "dv element " << i;
}

TEST_P(Backward, ThreadsWithStreamsOfTheirOwn) {
  auto work = [&](int64_t lengths) {
    void *stream = nullptr;
    ASSERT_HIP(hip().hipStreamCreate(&stream));
    Problem p = ones(GetParam());
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

TEST(BackwardWindows, HaveKernels) { expectWindowCases(OpKind::Backward); }

// Keys that no query sees have gradients too, which are zeros.
TEST_P(BackwardWindow, ProbabilitiesOfOne) {
  for (const NamedWindow &window : windows())
    for (const auto &[seqlenQ, seqlenK] :
         {std::pair(67, 45), std::pair(45, 67), std::pair(129, 130),
          std::pair(1, 70), std::pair(70, 1), std::pair(70, 0)}) {
      SCOPED_TRACE(std::string(window.name) + ", " + std::to_string(seqlenQ) +
                   "x" + std::to_string(seqlenK));
      Problem p = ones(GetParam());
      p.seqlenQ = seqlenQ;
      p.seqlenK = seqlenK;
      p.window = window.group();
      expectOnesOf(p);
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, BackwardWindow,
                         testing::ValuesIn(windowCases(OpKind::Backward)),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
INSTANTIATE_TEST_SUITE_P(Kernels, Backward,
                         testing::ValuesIn(kernelCases(OpKind::Backward)),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
