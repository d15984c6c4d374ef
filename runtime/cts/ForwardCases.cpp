//===- ForwardCases.cpp - forward passes with known results ---------------===//
//
// Run for every kernel of the packages. Three families have closed forms:
// values all one give one; a scale of zero gives the mean of the visible rows
// of V; a query that meets one key by a wide margin gives that key's row.
//
//===----------------------------------------------------------------------===//

#include "Suite.h"

#include <algorithm>
#include <cmath>
#include <thread>

using namespace fovea;
using namespace fovea::cts;

namespace {

class Forward : public testing::TestWithParam<KernelCase> {
protected:
  Problem problem() const {
    Problem p;
    p.kernel = GetParam();
    return p;
  }
};

class ForwardWindow : public Forward {};

/// Small numbers that every type holds exactly and that tell places apart.
float valueOf(int64_t b, int64_t h, int64_t row, int64_t d) {
  return float((b * 5 + h * 3 + row * 7 + d * 11) % 17) * 0.25f -
         1.875f; // never 0
}

/// Outputs are means of the values that a row sees; the scale must be 0.
void expectMeans(const Problem &p) {
  const Problem::Value &v = p["v"];
  const double tolerance = 3 * roundoff(p.kernel.key.dtype);
  forEachRow(
      p, run(p),
      [&](int64_t b, int64_t h, int64_t row, const float *out, float lse) {
        const Problem::Keys keys = p.keysOf(row);
        if (keys.count() == 0) {
          EXPECT_EQ(lse, -INFINITY);
          for (int64_t d = 0; d != p.kernel.key.dimOfV(); ++d)
            ASSERT_EQ(out[d], 0.0f)
                << "batch " << b << " head " << h << " row " << row;
          return;
        }
        EXPECT_NEAR(lse, std::log(double(keys.count())), 1e-5);
        for (int64_t d = 0; d != p.kernel.key.dimOfV(); ++d) {
          double mean = 0;
          for (int64_t key = keys.begin; key != keys.end; ++key)
            mean +=
                v(b, h / (p.headsQ / p.headsK), key, d) / double(keys.count());
          ASSERT_NEAR(out[d], mean, 2 * tolerance)
              << "batch " << b << " head " << h << " row " << row << " d " << d;
        }
      });
}

void expectOnes(const Problem &p) {
  forEachRow(
      p, run(p),
      [&](int64_t b, int64_t h, int64_t row, const float *out, float lse) {
        const bool sees = p.visibleKeys(row) > 0;
        const double error =
            sees ? errorOfOnes(p.kernel.key.dtype, p.visibleKeys(row)) : 0;
        for (int64_t d = 0; d != p.kernel.key.dimOfV(); ++d)
          if (!(std::fabs(out[d] - (sees ? 1.0 : 0.0)) <= error)) {
            ADD_FAILURE() << "batch " << b << " head " << h << " row " << row
                          << " d " << d << ": " << out[d];
            return;
          }
        if (p.absent.count("lse"))
          return;
        if (sees)
          EXPECT_TRUE(std::isfinite(lse)) << "row " << row << ": " << lse;
        else
          EXPECT_EQ(lse, -INFINITY) << "row " << row;
      });
}

} // namespace

TEST_P(Forward, OnesGiveOne) {
  const std::pair<int64_t, int64_t> lengths[] = {
      {1, 1}, {17, 2}, {2, 17}, {64, 64}, {65, 63}, {129, 31}, {31, 129}};
  for (const auto &[seqlenQ, seqlenK] : lengths) {
    SCOPED_TRACE(std::to_string(seqlenQ) + "x" + std::to_string(seqlenK));
    Problem p = problem();
    p.seqlenQ = seqlenQ;
    p.seqlenK = seqlenK;
    p["q"] = p["k"] = valueOf;
    p.scale = 0.125f;
    expectOnes(p);
  }
}

TEST_P(Forward, NoKeysGiveZeros) {
  Problem p = problem();
  p.batch = 2;
  p.seqlenQ = 70;
  p.seqlenK = 0;
  expectOnes(p);
}

TEST_P(Forward, LogSumExpIsOptional) {
  Problem p = problem();
  p.seqlenQ = p.seqlenK = 20;
  p.absent = {"lse"};
  expectOnes(p);
}

TEST_P(Forward, ZeroScaleGivesTheMean) {
  for (bool sequenceFirst : {false, true}) {
    Problem p = problem();
    p.batch = 2;
    p.headsQ = 4;
    p.headsK = 2;
    p.seqlenQ = 67;
    p.seqlenK = 45;
    p.scale = 0;
    p.sequenceFirst = sequenceFirst;
    p.padding = sequenceFirst ? 24 : 3;
    p["q"] = p["k"] = p["v"] = valueOf;
    expectMeans(p);
  }
}

// Key j is the unit vector j; a query times 64 of it leaves the others e^-64.
TEST_P(Forward, AFarLargestLogitGivesItsRow) {
  Problem p = problem();
  p.headsQ = 6;
  p.headsK = 3;
  p.seqlenQ = 80;
  p.seqlenK = std::min<int64_t>(p.kernel.key.headDim, 90);
  p.scale = 4;
  auto keyOf = [&](int64_t h, int64_t row) {
    const int64_t keys = p.visibleKeys(row);
    return keys ? (row * 13 + h * 5) % keys : 0;
  };
  p["q"] = [&](int64_t, int64_t h, int64_t row, int64_t d) {
    return d == keyOf(h, row) ? 4.0f : 0.0f;
  };
  p["k"] = [](int64_t, int64_t, int64_t row, int64_t d) {
    return d == row ? 4.0f : 0.0f;
  };
  p["v"] = valueOf;
  forEachRow(
      p, run(p),
      [&](int64_t b, int64_t h, int64_t row, const float *out, float lse) {
        if (p.visibleKeys(row) == 0) {
          EXPECT_EQ(lse, -INFINITY);
          return;
        }
        EXPECT_NEAR(lse, 64.0, 1e-4);
        for (int64_t d = 0; d != p.kernel.key.dimOfV(); ++d)
          ASSERT_EQ(out[d], valueOf(b, h / 2, keyOf(h, row), d))
              << "head " << h << " row " << row << " d " << d;
      });
}

TEST_P(Forward, ThreadsWithStreamsOfTheirOwn) {
  auto work = [&](int64_t lengths) {
    void *stream = nullptr;
    ASSERT_HIP(hip().hipStreamCreate(&stream));
    for (int round = 0; round != 2; ++round) {
      Problem p = problem();
      p.seqlenQ = lengths + round;
      p.seqlenK = lengths;
      p["q"] = p["k"] = valueOf;
      p.stream = stream;
      p.scale = 0.125f;
      expectOnes(p);
    }
    ASSERT_HIP(hip().hipStreamDestroy(stream));
  };
  std::thread one(work, 33), two(work, 50);
  one.join();
  two.join();
}

TEST(ForwardWindows, HaveKernels) { expectWindowCases(OpKind::Forward); }

// Which values the mean is of tells which keys were seen.
TEST_P(ForwardWindow, MeansAreOfTheKeysInIt) {
  for (const NamedWindow &window : windows())
    for (const auto &[seqlenQ, seqlenK] :
         {std::pair(67, 45), std::pair(45, 67), std::pair(130, 130)}) {
      SCOPED_TRACE(std::string(window.name) + ", " + std::to_string(seqlenQ) +
                   "x" + std::to_string(seqlenK));
      Problem p = problem();
      p.seqlenQ = seqlenQ;
      p.seqlenK = seqlenK;
      p.scale = 0;
      p.window = window.group();
      p["q"] = p["k"] = p["v"] = valueOf;
      expectMeans(p);
    }
}

// A row or no key at all is where ends are easily off by one.
TEST_P(ForwardWindow, OneRowAndNoKeys) {
  for (const NamedWindow &window : windows())
    for (const auto &[seqlenQ, seqlenK] :
         {std::pair(1, 70), std::pair(70, 1), std::pair(70, 0)}) {
      SCOPED_TRACE(std::string(window.name) + ", " + std::to_string(seqlenQ) +
                   "x" + std::to_string(seqlenK));
      Problem p = problem();
      p.seqlenQ = seqlenQ;
      p.seqlenK = seqlenK;
      p.window = window.group();
      p["q"] = p["k"] = valueOf;
      p.scale = 0.125f;
      expectOnes(p);
    }
}

// The same kernel, asked in the other way.
TEST_P(ForwardWindow, MasksAreWindows) {
  const struct {
    MaskKind mask;
    int32_t alignment;
  } masks[] = {{MaskKind::CausalTopLeft, FOVEA_ALIGN_TOP_LEFT},
               {MaskKind::CausalBottomRight, FOVEA_ALIGN_BOTTOM_RIGHT}};
  for (const auto &[mask, alignment] : masks) {
    Problem p = problem();
    p.seqlenQ = 67;
    p.seqlenK = 90;
    p["q"] = p["k"] = p["v"] = valueOf;
    p.scale = 0.125f;
    p.kernel.key.mask = mask;
    const Results byMask = run(p);
    p.window =
        NamedWindow{"", FOVEA_WINDOW_INFINITE, 0, alignment, alignment}.group();
    EXPECT_EQ(run(p), byMask);
  }
}

// A package may hold backward kernels alone, or none that takes a window.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Forward);
INSTANTIATE_TEST_SUITE_P(Kernels, Forward,
                         testing::ValuesIn(kernelCases(OpKind::Forward)),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ForwardWindow);
INSTANTIATE_TEST_SUITE_P(Kernels, ForwardWindow,
                         testing::ValuesIn(windowCases(OpKind::Forward)),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
