//===- ErrorBudget.cpp - when a result is right ---------------------------===//
//
// The rules of docs/Accuracy.md: class of every element (finite, NaN, infinite)
// exactly, largest error over the tensor, root mean square over blocks of rows,
// largest error of the log-sum-exp.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/ErrorBudget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace fovea::reference;

namespace {

/// Each rule's slack over the plain algorithm's error; docs/Accuracy.md.
constexpr double kFactor = 2.0;
constexpr double kMaxRoundings = 1.0; // of the output type, at its maximum
constexpr double kRmsRoundings = 0.5; // of the output type, at the block's RMS
constexpr double kLogitUlp = 0x1p-23; // one fp32 unit in the last place
constexpr double kLseUlps = 4.0;
/// Of fp32 no rounding at the end hides those of the sum of weights, of its
/// inverse and of their product: as many of them.
constexpr double kF32Roundings = 3.0;

std::string format(const char *text, double a, double b, double c) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), text, a, b, c);
  return buffer;
}

std::string rowIndex(const Tensor &q, int64_t row) {
  return "[" + std::to_string(row / q.seq / q.heads) + ", " +
         std::to_string(row / q.seq % q.heads) + ", " +
         std::to_string(row % q.seq);
}

/// Largest Euclidean norm of a row, over the finite ones: the product of those
/// of q and k bounds every logit and every partial sum of one.
double largestNorm(const Tensor &t) {
  double largest = 0;
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s) {
        double squares = 0;
        const Row row = t.row(b, h, s);
        for (int64_t d = 0; d < t.dim; ++d) {
          const double x = row[d];
          squares += x * x;
        }
        if (std::isfinite(squares))
          largest = std::max(largest, squares);
      }
  return std::sqrt(largest);
}

/// Largest magnitude of a finite element.
double largestElement(const Tensor &t) {
  double largest = 0;
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s)
        for (int64_t d = 0; d < t.dim; ++d) {
          const double x = std::fabs(t.row(b, h, s)[d]);
          if (std::isfinite(x))
            largest = std::max(largest, x);
        }
  return largest;
}

double largestOf(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, value);
  return largest;
}

class Comparer {
public:
  Comparer(const Expectation &e, const Tensor &out, const float *lse,
           bool hasShares)
      : e(e), q(e.problem.q), out(out), lse(lse), dim(e.problem.v.dim),
        unit(unitRoundoff(q.type)), hasShares(hasShares) {
    logitBound = std::fabs(double(e.problem.scale)) * largestNorm(q) *
                 largestNorm(e.problem.k);
    // Of a program's scores, what it makes of a rounding before it and what it
    // rounds itself.
    if (e.problem.score)
      logitBound = logitBound * std::max(1.0, largestOf(e.exact.largestSlope)) +
                   largestOf(e.exact.largestScore);
    logitBound = std::max(logitBound, largestSink());
    // What one fp32 rounding of the largest logit changes in a probability,
    // carried to the output: 2 max|v| is the widest range it can average over.
    logitNoise = kLogitUlp * logitBound * largestElement(e.problem.v) *
                 e.problem.keptFactor();
  }

  Comparison run() {
    for (int64_t b = 0; b < q.batch; ++b)
      for (int64_t h = 0; h < q.heads; ++h)
        for (int64_t s = 0; s < q.seq; s += kRmsRows)
          block(b, h, s, std::min(s + kRmsRows, q.seq));
    result.max.budget = kFactor * result.max.plain +
                        kMaxRoundings * roundings() * unit * magnitude +
                        largestNoise();
    if (!result.max.ok())
      fail("out" + rowIndex(q, worst / dim) + ", " +
           std::to_string(worst % dim) + "] " +
           format("is %.9g, expected %.9g: error above the budget %.3g",
                  worstValue, e.exact.out[size_t(worst)], result.max.budget));
    if (!result.rms.ok())
      fail("out rows from " + rowIndex(q, worstBlock) + "] " +
           format("have RMS error %.3g, above the budget %.3g (plain "
                  "algorithm: %.3g)",
                  result.rms.error, result.rms.budget, result.rms.plain));
    if (lse)
      compareLse();
    result.pass = result.message.empty();
    return result;
  }

private:
  double roundings() const {
    return q.type == ElemType::F32 ? kF32Roundings : 1;
  }
  /// Of 16 bits a share's results and the output may be rounded the same way by
  /// as much as there is, where plain's one rounding is of nearly nothing: one
  /// more, at the most that it costs.
  double roundingsOfShares() const {
    return hasShares && q.type != ElemType::F32 ? 1 : 0;
  }
  double largestNoise() const {
    double largest = e.exact.noise.empty() ? logitNoise : 0;
    for (const RowNoise &noise : e.exact.noise)
      largest = std::max(largest, noise.largest);
    return largest;
  }

  /// Of the sinks that weigh anything: one counts as a logit.
  double largestSink() const {
    constexpr double kNothing = 40; // natural logarithm below the sum
    double largest = 0;
    if (e.problem.sinks.empty())
      return largest;
    for (int64_t row = 0; row < q.batch * q.heads * q.seq; ++row) {
      const double sink = e.problem.sinkOf(row / q.seq % q.heads);
      if (std::isfinite(sink) && sink > e.exact.lse[size_t(row)] - kNothing)
        largest = std::max(largest, std::fabs(sink));
    }
    return largest;
  }

  void fail(const std::string &line) {
    if (!result.message.empty())
      result.message += '\n';
    result.message += line;
  }

  void failClass(const std::string &where, double found, double expected) {
    if (result.wrongClass++ == 0)
      fail(where + format(" is %g, expected %g", found, expected, 0));
  }

  void block(int64_t b, int64_t h, int64_t begin, int64_t end) {
    double error2 = 0, plain2 = 0, exact2 = 0, noise2 = 0;
    int64_t counted = 0;
    for (int64_t s = begin; s < end; ++s) {
      const int64_t row = (b * q.heads + h) * q.seq + s;
      const double noise =
          e.exact.noise.empty() ? logitNoise : e.exact.noise[size_t(row)].rms;
      noise2 += noise * noise;
      const bool empty =
          std::isinf(e.exact.lse[size_t(row)]) && e.exact.lse[size_t(row)] < 0;
      for (int64_t d = 0; d < dim; ++d) {
        const int64_t index = row * dim + d;
        const double found = out.row(b, h, s)[d];
        const double exact = e.exact.out[size_t(index)];
        const double plain = e.plain.out[size_t(index)];
        // What the oracle says after rounding to the output's type decides the
        // class: an fp16 output may overflow rightly.
        const double rounded = roundTo(q.type, exact);
        if (empty || !std::isfinite(rounded) || !std::isfinite(found)) {
          const bool same =
              std::isnan(rounded) ? std::isnan(found) : found == rounded;
          if (!same)
            failClass("out" + rowIndex(q, row) + ", " + std::to_string(d) + "]",
                      found, rounded);
          continue;
        }
        const double error = std::fabs(found - exact);
        // A row on which the plain algorithm overflows says nothing of budgets.
        const double plainError =
            std::isfinite(plain) ? std::fabs(plain - exact) : 0;
        if (error > result.max.error || worst < 0) {
          result.max.error = error;
          worst = index;
          worstValue = found;
        }
        result.max.plain = std::max(result.max.plain, plainError);
        magnitude = std::max(magnitude, std::fabs(exact));
        error2 += error * error;
        plain2 += plainError * plainError;
        exact2 += exact * exact;
        ++counted;
      }
    }
    if (counted == 0)
      return;
    Figure rms;
    rms.error = std::sqrt(error2 / double(counted));
    rms.plain = std::sqrt(plain2 / double(counted));
    rms.budget = kFactor * rms.plain +
                 kRmsRoundings * (roundings() + roundingsOfShares()) * unit *
                     std::sqrt(exact2 / double(counted)) +
                 std::sqrt(noise2 / double(end - begin));
    // The block that used the largest part of its budget; a budget of 0 (all
    // zeros expected) is exceeded by any error.
    const double used = rms.budget > 0 ? rms.error / rms.budget
                                       : (rms.error > 0 ? HUGE_VAL : 0);
    if (used > worstUse) {
      worstUse = used;
      result.rms = rms;
      worstBlock = (b * q.heads + h) * q.seq + begin;
    }
  }

  void compareLse() {
    int64_t worstRow = -1;
    const int64_t rows = q.batch * q.heads * q.seq;
    for (int64_t row = 0; row < rows; ++row) {
      const double found = lse[row], exact = e.exact.lse[size_t(row)];
      if (!std::isfinite(exact) || !std::isfinite(found)) {
        const bool same =
            std::isnan(exact) ? std::isnan(found) : found == exact;
        if (!same)
          failClass("lse" + rowIndex(q, row) + "]", found, exact);
        continue;
      }
      const double plain = e.plain.lse[size_t(row)];
      if (std::isfinite(plain))
        result.lse.plain = std::max(result.lse.plain, std::fabs(plain - exact));
      const double error = std::fabs(found - exact);
      if (error > result.lse.error || worstRow < 0) {
        result.lse.error = error;
        worstRow = row;
      }
    }
    const double terms = std::log(std::max<double>(2, e.problem.k.seq));
    result.lse.budget = kFactor * result.lse.plain +
                        kLseUlps * kLogitUlp * (logitBound + terms);
    if (!result.lse.ok())
      fail("lse" + rowIndex(q, worstRow) + "] " +
           format("is %.9g, expected %.9g: error above the budget %.3g",
                  lse[worstRow], e.exact.lse[size_t(worstRow)],
                  result.lse.budget));
  }

  const Expectation &e;
  const Tensor &q;
  const Tensor &out;
  const float *lse;
  const int64_t dim; ///< of the output
  const double unit;
  const bool hasShares; ///< of the keys, combined
  double logitBound = 0, logitNoise = 0, magnitude = 0;
  int64_t worst = -1, worstBlock = 0;
  double worstValue = 0, worstUse = -1;
  Comparison result;
};

} // namespace

Expectation fovea::reference::expectForward(const ForwardProblem &problem,
                                            unsigned threads) {
  return {problem, attentionForwardF64(problem, threads),
          attentionForwardPlain(problem, threads)};
}

Comparison fovea::reference::compareForward(const Expectation &expected,
                                            const Tensor &out, const float *lse,
                                            uint32_t shares) {
  return Comparer(expected, out, lse, shares > 1).run();
}
