//===- Slopes.cpp - derivatives by differences ----------------------------===//

#include "Slopes.h"

#include "fovea/Reference/Inputs.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::reference;

namespace {

using Place = ScoreFunction::Place;

/// The differences of a function to both sides of where it stands.
struct Differences {
  double below, above;

  double slope() const { return (below + above) / 2; }
  /// Not at a kink, a step, or where something is hidden.
  bool isSmooth() const {
    return std::isfinite(below) && std::isfinite(above) &&
           std::fabs(above - below) <
               1e-3 * (1 + std::fabs(below) + std::fabs(above));
  }
};

template <typename Function>
Differences differencesOf(Function function, double step) {
  const double before = function(-step), here = function(0),
               behind = function(step);
  return {(here - before) / step, (behind - here) / step};
}

/// Where an element of a capture lies in memory.
size_t addressOf(const CapturedValues &tensor, int64_t element) {
  int64_t address = 0;
  for (size_t dim = tensor.extents.size(); dim-- != 0;) {
    address += element % tensor.extents[dim] * tensor.strides[dim];
    element /= tensor.extents[dim];
  }
  return size_t(address);
}

/// Rows of q, k, v and dout.
using Inputs = std::array<std::vector<double>, 4>;

double lossOf(const run::ForwardCase &c, const Inputs &x) {
  const int64_t dim = c.headDim;
  auto row = [&](int which, int64_t b, int64_t head, int64_t i) {
    const bool isKey = which == 1 || which == 2;
    const int64_t heads = isKey ? c.headsK : c.heads,
                  rows = isKey ? c.seqK : c.seqQ;
    return x[size_t(which)].data() + ((b * heads + head) * rows + i) * dim;
  };
  auto dot = [&](const double *a, const double *b) {
    double sum = 0;
    for (int64_t d = 0; d != dim; ++d)
      sum += a[d] * b[d];
    return sum;
  };
  double loss = 0;
  for (int64_t b = 0; b != c.batch; ++b)
    for (int64_t h = 0; h != c.heads; ++h)
      for (int64_t i = 0; i != c.seqQ; ++i) {
        const int64_t headK = h / (c.heads / c.headsK);
        const KeyRange seen = visibleKeys(c.mask, i, c.seqQ, c.seqK);
        std::vector<double> scores(size_t(seen.end), -INFINITY);
        double most = -INFINITY, sum = 0, weighted = 0;
        for (int64_t j = seen.begin; j < seen.end; ++j) {
          const auto result =
              c.score->apply(double(c.scaleOrDefault()) *
                                 dot(row(0, b, h, i), row(1, b, headK, j)),
                             Place{b, h, i, j, c.seqQ, c.seqK});
          if (result.seen)
            scores[size_t(j)] = result.score;
          most = std::max(most, scores[size_t(j)]);
        }
        if (most == -INFINITY)
          continue;
        for (int64_t j = seen.begin; j < seen.end; ++j) {
          const double weight = std::exp(scores[size_t(j)] - most);
          sum += weight;
          weighted += weight * dot(row(3, b, h, i), row(2, b, headK, j));
        }
        loss += weighted / sum;
      }
  return loss;
}

} // namespace

void fovea::test::expectDerivatives(const std::string &text,
                                    std::vector<CapturedValues> captured,
                                    const run::ForwardCase &c) {
  std::string error;
  const auto program = readScoreProgram(text, captured, error);
  ASSERT_TRUE(program) << error;
  Random random(77);
  auto below = [&](int64_t count) {
    return int64_t(random.uniform() * double(count));
  };
  int judged = 0;
  for (int i = 0; i != 5000 && judged != 100; ++i) {
    const Place place = {below(c.batch), below(c.heads), below(c.seqQ),
                         below(c.seqK),  c.seqQ,         c.seqK};
    const double x = 2 * random.normal();
    const auto here = program->apply(x, place);
    if (!std::isfinite(here.score))
      continue;
    const double rounding = 1e-8 * (1 + std::fabs(here.score));
    const Differences product = differencesOf(
        [&](double by) { return program->apply(x + by, place).score; }, 1e-6);
    if (product.isSmooth()) {
      ++judged;
      EXPECT_NEAR(here.slope, product.slope(),
                  1e-5 * (1 + std::fabs(here.slope)) + rounding)
          << "for the product " << x << "\n"
          << text;
    }
    for (size_t number = 0; number != captured.size(); ++number) {
      const ScoreFunction::Term term = program->termOf(int(number), x, place);
      if (term.element < 0)
        continue;
      double &value =
          captured[number].values[addressOf(captured[number], term.element)];
      const double before = value;
      const Differences element = differencesOf(
          [&](double by) {
            value = before + by;
            const double score = program->apply(x, place).score;
            value = before;
            return score;
          },
          1e-6);
      if (element.isSmooth())
        EXPECT_NEAR(term.derivative, element.slope(),
                    1e-5 * (1 + std::fabs(term.derivative)) + rounding)
            << "for capture " << number << "\n"
            << text;
    }
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_GT(judged, 0) << text;
}

void fovea::test::expectSlopesOfLoss(run::Session &session, run::BackwardCase c,
                                     run::RunOptions options) {
  run::ForwardCase &f = c.forward;
  Random random(78);
  Inputs inputs;
  for (int which = 0; which != 4; ++which) {
    const bool isKey = which == 1 || which == 2;
    inputs[size_t(which)].resize(size_t(
        f.batch * (isKey ? f.headsK * f.seqK : f.heads * f.seqQ) * f.headDim));
    for (double &value : inputs[size_t(which)])
      value = decode(f.type, encode(f.type, 0.7 * random.normal()));
  }
  options.given = {inputs[0], inputs[1], inputs[2], inputs[3]};
  const run::RunReport report = session.run(c, options);
  ASSERT_EQ(report.outcome, run::Outcome::Pass) << report.message;
  for (size_t which = 0; which != 3; ++which) {
    const std::vector<float> &gradient = report.gradients[which].values;
    ASSERT_EQ(gradient.size(), inputs[which].size());
    // Uphill, so that terms don't cancel and an error of all shows.
    std::vector<double> direction(gradient.size());
    double found = 0;
    for (size_t i = 0; i != direction.size(); ++i) {
      direction[i] = std::copysign(random.normal(), double(gradient[i]));
      found += direction[i] * double(gradient[i]);
    }
    auto along = [&](double by) {
      Inputs moved = inputs;
      for (size_t i = 0; i != direction.size(); ++i)
        moved[which][i] += by * direction[i];
      return lossOf(f, moved);
    };
    const double expected = differencesOf(along, 1e-5).slope();
    EXPECT_NEAR(found, expected, 0x1p-6 * found + 1e-6)
        << report.gradients[which].name << " of " << c.str();
  }
}
