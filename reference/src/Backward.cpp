//===- Backward.cpp - gradients of attention ------------------------------===//
//
// One template computes both, a key head at a time: for each query row its
// logits, probabilities and their gradients over all keys, which are then
// spread over the three results. Inner loops run over contiguous memory and
// vectorise.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Backward.h"
#include "fovea/Threads/Parallel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <type_traits>

using namespace fovea::reference;

namespace {

constexpr double kUlp = 0x1p-23;    // one fp32 unit in the last place
constexpr double kLeast = 0x1p-126; // least normal fp32 number
constexpr double kSlopeUlps = 4;    // of a score program's derivative

/// Largest magnitude and Euclidean norm of a row; 0 if it is not finite.
struct Size {
  double largest = 0, norm = 0;
};

Size sizeOf(const Tensor &t, const Row &row) {
  double largest = 0, squares = 0;
  for (int64_t d = 0; d < t.dim; ++d) {
    const double x = std::fabs(row[d]);
    squares += x * x;
    largest = std::max(largest, x);
  }
  return std::isfinite(squares) ? Size{largest, std::sqrt(squares)} : Size{};
}

double largestNorm(const Tensor &t) {
  double norm = 0;
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s)
        norm = std::max(norm, sizeOf(t, t.row(b, h, s)).norm);
  return norm;
}

/// What rounding may add to a row of dq whose sums have its type: each addition
/// rounds what it adds, and the sum that it leaves. In whatever order additions
/// come, no sum is beyond that of the positive or of the negative parts.
class NarrowSums {
public:
  NarrowSums(const BackwardProblem &problem)
      : keys(problem.narrowSumKeys),
        scale(std::fabs(double(problem.forward.scale))),
        unit(unitRoundoff(problem.forward.q.type)),
        least(leastNormal(problem.forward.q.type) * unit),
        parts(size_t(problem.forward.q.dim)) {}

  void startRow() {
    std::fill(parts.begin(), parts.end(), Part());
    count = 0;
  }
  /// Key `j` has been added to `sums`; `last`: none comes behind.
  template <typename Real>
  void add(int64_t j, const std::vector<Real> &sums, bool last) {
    if ((j + 1) % keys != 0 && !last)
      return;
    ++count;
    for (size_t d = 0; d != parts.size(); ++d) {
      Part &part = parts[d];
      const double added = scale * (double(sums[d]) - part.before);
      part.before = double(sums[d]);
      (added > 0 ? part.positive : part.negative) += std::fabs(added);
      part.squares += added * added;
    }
  }
  void finishRow(RowSlack &row) const {
    if (count == 0)
      return;
    double worst = 0, squares = 0;
    for (const Part &part : parts) {
      const double sum = std::max(part.positive, part.negative),
                   error = unit * (part.positive + part.negative +
                                   double(count - 1) * sum) +
                           double(2 * count - 1) * least;
      if (!std::isfinite(error))
        return;
      worst = std::max(worst, error);
      squares += unit * unit * (part.squares + double(count - 1) * sum * sum) +
                 double(2 * count - 1) * least * least;
    }
    row.largest += worst;
    row.rms += std::sqrt(squares / 3 / double(parts.size()));
  }

private:
  struct Part {
    double before = 0, positive = 0, negative = 0, squares = 0;
  };
  const int64_t keys;
  const double scale, unit, least; ///< the last half the least subnormal
  std::vector<Part> parts;
  int64_t count = 0; ///< of additions
};

/// Where the slack of all rows goes, and what its terms have in common.
struct SlackSums {
  SlackSums(const BackwardProblem &problem, GradientSlack &slack)
      : slack(slack), normV(largestNorm(problem.forward.v)) {
    const Tensor &q = problem.forward.q, &k = problem.forward.k;
    slack.dq.assign(size_t(q.batch * q.heads * q.seq), {});
    slack.dk.assign(size_t(k.batch * k.heads * k.seq), {});
    slack.dv = slack.dk;
  }
  GradientSlack &slack;
  const double normV;
};

/// Sums what roundings add to the rows of one key head, pair by pair; the terms
/// are those of docs/Accuracy.md.
class HeadSlack {
public:
  HeadSlack(const BackwardProblem &problem, const SlackSums &sums, int64_t b,
            int64_t h)
      : p(problem.forward), dout(problem.dout), sums(sums),
        scale(std::fabs(double(p.scale))), root(std::sqrt(double(p.q.dim))),
        rootV(std::sqrt(double(p.v.dim))),
        firstKey(size_t((b * p.k.heads + h) * p.k.seq)) {
    for (int64_t j = 0; j < p.k.seq; ++j) {
      keys.push_back(sizeOf(p.k, p.k.row(b, h, j)));
      values.push_back(isSingle() ? sizeOf(p.v, p.v.row(b, h, j)).norm
                                  : sums.normV);
    }
    if (problem.narrowSumKeys > 0)
      narrow.emplace(problem);
  }

  /// The pairs that follow are of query `i` of a query head.
  /// \param out  the norm of its output
  void startRow(int64_t b, int64_t head, int64_t i, double rowLse,
                double rowDlse, double out) {
    q = sizeOf(p.q, p.q.row(b, head, i));
    gradient = sizeOf(dout, dout.row(b, head, i));
    rowQ = size_t((b * p.q.heads + head) * p.q.seq + i);
    lse = std::fabs(rowLse);
    dlse = std::fabs(rowDlse);
    ofDelta = kUlp * (out * gradient.norm + dlse);
    squares = RowSlack();
    if (narrow)
      narrow->startRow();
  }

  /// \param difference  dP - delta
  /// \param factor      what the weight counts for if it is kept, else 0
  /// \param scored      what a score program made of the pair
  void add(int64_t j, double probability, double difference, double factor,
           const ScoreFunction::Result<double> *scored) {
    const size_t row = firstKey + size_t(j);
    RowSlack *const rows[] = {&sums.slack.dq[rowQ], &sums.slack.dk[row],
                              &sums.slack.dv[row]};
    for (RowSlack *each : rows)
      each->reached = true;
    if (!std::isfinite(probability * difference))
      return;
    const Size &key = keys[size_t(j)];
    // Of one rounding each of logit and log-sum-exp, and of dP and delta; and
    // of a probability that an exponential flushes to 0.
    const double slope = scored ? std::fabs(scored->slope) : 1,
                 score = scored ? std::fabs(scored->score) : 0;
    // A score of -inf has no probability that a rounding could change.
    if (!std::isfinite(slope + score))
      return;
    const double ofLogit =
                     kUlp / 2 *
                     (std::max(1.0, slope) * scale * q.norm * key.norm + score),
                 ofLse = kUlp / 2 * lse;
    if (isSingle()) {
      addSingle(j, probability, difference, factor, slope,
                ofLogit + kUlp * (1 + (scored ? kSlopeUlps : 0)), ofLse);
      return;
    }
    const double relative = ofLogit + ofLse,
                 rounding =
                     kUlp * (factor * gradient.norm * sums.normV +
                             (factor == 1 ? 0 : std::fabs(difference)) + dlse),
                 weight = probability * relative + kLeast;
    double ds = scale * slope *
                (probability * rounding + weight * std::fabs(difference));
    // Of the few roundings that a slope is made with, as of one near 1.
    if (scored)
      ds += scale * probability * std::fabs(difference) * kSlopeUlps * kUlp *
            std::max(1.0, slope);
    rows[0]->largest += ds * key.largest;
    rows[0]->rms += ds * key.norm / root;
    addSquare(*rows[1], ds, q, root);
    addSquare(*rows[2], weight * factor, gradient, rootV);
  }

  /// Key `j` has been added to the row's `dq`, but for the scale.
  template <typename Real>
  void addTo(const std::vector<Real> &dq, int64_t j, bool last) {
    if (!narrow)
      return;
    narrow->add(j, dq, last);
    if (last)
      narrow->finishRow(sums.slack.dq[rowQ]);
  }

  /// All pairs of the row have been added.
  void finishRow(const std::vector<double> &dq) {
    if (!isSingle())
      return;
    RowSlack &row = sums.slack.dq[rowQ];
    double largest = 0, all = 0;
    for (double x : dq) {
      largest = std::max(largest, scale * std::fabs(x));
      all += scale * scale * x * x;
    }
    row.largest += std::sqrt(squares.largest) + kUlp / 2 * lse * largest;
    row.rms += std::sqrt(squares.rms) + kUlp / 2 * lse * std::sqrt(all) / root;
  }

  /// All pairs have been added.
  void finish() {
    for (std::vector<RowSlack> *rows : {&sums.slack.dk, &sums.slack.dv})
      for (size_t j = 0; j < keys.size(); ++j) {
        RowSlack &row = (*rows)[firstKey + j];
        row.largest = std::sqrt(row.largest);
        row.rms = std::sqrt(row.rms);
      }
  }

private:
  /// Whether roundings of fp32 are all that there are.
  bool isSingle() const { return p.q.type == fovea::DataType::F32; }

  /// The same, no larger than it must be: what each key errs by on its own, and
  /// what all keys of a query have in common.
  /// \param ofWeight  the relative errors of a weight, but for that of the
  ///                  log-sum-exp
  void addSingle(int64_t j, double probability, double difference,
                 double factor, double slope, double ofWeight, double ofLse) {
    const size_t row = firstKey + size_t(j);
    const Size &key = keys[size_t(j)];
    const double size = std::fabs(difference),
                 rounding =
                     kUlp * (factor * gradient.norm * values[size_t(j)] + size),
                 weight = probability * ofWeight + kLeast,
                 own = scale * slope * (probability * rounding + weight * size),
                 common = scale * slope * probability * ofDelta;
    addSquare(squares, own, key, root);
    sums.slack.dq[rowQ].largest += common * key.largest;
    sums.slack.dq[rowQ].rms += common * key.norm / root;
    addSquare(sums.slack.dk[row],
              own + common + scale * slope * probability * size * ofLse, q,
              root);
    addSquare(sums.slack.dv[row], (weight + probability * ofLse) * factor,
              gradient, rootV);
  }

  static void addSquare(RowSlack &row, double factor, const Size &size,
                        double root) {
    const double largest = factor * size.largest,
                 rms = factor * size.norm / root;
    row.largest += largest * largest;
    row.rms += rms * rms;
  }

  const ForwardProblem &p;
  const Tensor &dout;
  const SlackSums &sums;
  const double scale, root, rootV; ///< square roots of head dimensions
  const size_t firstKey; ///< the head's first row of dk and dv
  std::vector<Size> keys;
  std::vector<double> values; ///< norms
  Size q, gradient;
  RowSlack squares;   ///< of dq's row, what keys err by on their own
  double ofDelta = 0; ///< error of the row's delta
  size_t rowQ = 0;
  double lse = 0, dlse = 0;
  std::optional<NarrowSums> narrow;
};

template <typename Real>
class Backward {
public:
  Backward(const BackwardProblem &problem, const ForwardResult &forward,
           BackwardResult &result, const SlackSums *sums)
      : problem(problem), p(problem.forward), dout(problem.dout),
        forward(forward), result(result), sums(sums) {}

  /// All of one key head.
  void run(int64_t b, int64_t h) {
    const int64_t dim = p.q.dim, dimV = p.v.dim, count = p.k.seq;
    load(b, h);
    std::optional<HeadSlack> slack;
    if (sums)
      slack.emplace(problem, *sums, b, h);
    dk.assign(size_t(count * dim), Real(0));
    dv.assign(size_t(count * dimV), Real(0));
    const int64_t group = p.q.heads / p.k.heads;
    for (int64_t head = h * group; head < (h + 1) * group; ++head)
      for (int64_t i = 0; i < p.q.seq; ++i)
        runRow(b, head, i, slack ? &*slack : nullptr);
    if (slack)
      slack->finish();
    const int64_t first = (b * p.k.heads + h) * count;
    for (int64_t i = 0; i < count * dim; ++i)
      result.dk[size_t(first * dim + i)] =
          double(toInput(dk[size_t(i)] * Real(p.scale)));
    for (int64_t i = 0; i < count * dimV; ++i)
      result.dv[size_t(first * dimV + i)] =
          double(toInput(dv[size_t(i)] * Real(p.keptFactor())));
  }

private:
  /// Rounds as the plain algorithm does; the fp64 one does not.
  Real toInput(Real x) const {
    if constexpr (std::is_same_v<Real, float>)
      return Real(roundTo(p.q.type, x));
    return x;
  }

  /// The plain algorithm knows that no probability is more, whatever digits the
  /// log-sum-exp lacks. A NaN stays one.
  static Real atMostOne(Real probability) {
    if constexpr (std::is_same_v<Real, float>)
      return probability > 1 ? 1 : probability;
    return probability;
  }

  /// As a chip without subnormal operands sees it.
  Real flushed(Real x) const {
    return std::fabs(x) < leastNormal(p.q.type) ? Real(0) : x;
  }
  std::vector<Real> flushed(std::vector<Real> values) const {
    for (Real &value : values)
      value = flushed(value);
    return values;
  }

  /// As an operand of a product on the device.
  Real operand(Real x) const {
    if constexpr (std::is_same_v<Real, float>)
      if (problem.flushSubnormals)
        return flushed(x);
    return x;
  }

  void load(int64_t b, int64_t h) {
    const int64_t dim = p.q.dim, count = p.k.seq;
    for (std::vector<Real> *all : {&keys, &keysT})
      all->resize(size_t(count * dim));
    valuesT.resize(size_t(count * p.v.dim));
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t d = 0; d < dim; ++d) {
        const Real k = operand(Real(p.k.row(b, h, j)[d]));
        keys[size_t(j * dim + d)] = k;
        keysT[size_t(d * count + j)] = k;
      }
      for (int64_t d = 0; d < p.v.dim; ++d)
        valuesT[size_t(d * count + j)] = operand(Real(p.v.row(b, h, j)[d]));
    }
    if (sums && problem.flushSubnormals)
      flushedValuesT = flushed(valuesT);
  }

  /// to[j] = sum over d of row[d] * matrix[d][j], for the keys `seen`.
  void times(const std::vector<Real> &row, const std::vector<Real> &matrix,
             KeyRange seen, std::vector<Real> &to) const {
    const int64_t count = p.k.seq;
    to.assign(size_t(seen.end), Real(0));
    for (size_t d = 0; d != row.size(); ++d) {
      const Real factor = row[d];
      const Real *from = matrix.data() + int64_t(d) * count;
      Real *sums = to.data();
      for (int64_t j = seen.begin; j < seen.end; ++j)
        sums[j] += factor * from[j];
    }
  }

  void runRow(int64_t b, int64_t head, int64_t i, HeadSlack *slack) {
    const int64_t dim = p.q.dim, dimV = p.v.dim;
    const int64_t row = (b * p.q.heads + head) * p.q.seq + i;
    const double lse = forward.lse[size_t(row)];
    const KeyRange seen = p.keysOf(i);
    std::vector<Real> dq(size_t(dim), Real(0));
    if (seen.begin < seen.end && !std::isinf(lse)) {
      query.resize(size_t(dim));
      gradient.resize(size_t(dimV));
      Real delta = 0;
      for (int64_t d = 0; d < dim; ++d)
        query[size_t(d)] = operand(Real(p.q.row(b, head, i)[d]));
      for (int64_t d = 0; d < dimV; ++d) {
        const Real element = Real(dout.row(b, head, i)[d]);
        gradient[size_t(d)] = operand(element);
        delta += toInput(Real(forward.out[size_t(row * dimV + d)])) * element;
      }
      const double dlse = problem.dlse.empty() ? 0 : problem.dlse[size_t(row)];
      delta -= Real(dlse);
      if (slack) {
        double squares = 0;
        for (int64_t d = 0; d < dimV; ++d)
          squares += forward.out[size_t(row * dimV + d)] *
                     forward.out[size_t(row * dimV + d)];
        slack->startRow(b, head, i, lse, dlse, std::sqrt(squares));
      }
      times(query, keysT, seen, s);
      times(gradient, valuesT, seen, dp);
      // What the device loses of these operands is in dS, whose weight may lack
      // digits.
      const std::vector<Real> *slackDp = &dp;
      if (slack && problem.flushSubnormals) {
        times(flushed(gradient), flushedValuesT, seen, flushedDp);
        slackDp = &flushedDp;
      }
      int64_t last = seen.end - 1;
      while (last >= seen.begin && !p.isListed(b, head, i, last))
        --last;
      for (int64_t j = seen.begin; j <= last; ++j) {
        if (!p.isListed(b, head, i, j))
          continue;
        ScoreFunction::Result<Real> scored = {s[size_t(j)] * Real(p.scale), 1};
        if (p.score)
          scored = p.scoreOf(scored.score, {b, head, i, j, p.q.seq, p.k.seq});
        if (!scored.seen) { // it has no part in the sums
          if (slack)
            slack->addTo(dq, j, j == last);
          continue;
        }
        const Real probability = atMostOne(std::exp(scored.score - Real(lse)));
        const bool isKept = p.keeps(b, head, i, j);
        const Real factor = isKept ? Real(p.keptFactor()) : Real(0);
        /// dP is 0 of what is dropped, whatever the values are.
        auto difference = [&](const std::vector<Real> &products) -> Real {
          return (isKept ? products[size_t(j)] * factor : Real(0)) - delta;
        };
        if (slack) {
          const ScoreFunction::Result<double> wide = {
              double(scored.score), double(scored.slope), scored.seen};
          slack->add(j, double(probability), double(difference(*slackDp)),
                     double(factor), p.score ? &wide : nullptr);
        }
        const Real exactDs =
            toInput(probability * difference(dp) * scored.slope);
        const Real ds =
            problem.flushScoreGradients ? operand(exactDs) : exactDs;
        const Real rounded = isKept ? toInput(probability) : Real(0);
        const Real *key = keys.data() + j * dim;
        Real *dkRow = dk.data() + j * dim, *dvRow = dv.data() + j * dimV;
        for (int64_t d = 0; d < dim; ++d) {
          dq[size_t(d)] += ds * key[d];
          dkRow[d] += ds * query[size_t(d)];
        }
        for (int64_t d = 0; d < dimV; ++d)
          dvRow[d] += rounded * gradient[size_t(d)];
        if (slack)
          slack->addTo(dq, j, j == last);
      }
      if (slack)
        slack->finishRow({dq.begin(), dq.end()});
    }
    for (int64_t d = 0; d < dim; ++d)
      result.dq[size_t(row * dim + d)] =
          double(toInput(dq[size_t(d)] * Real(p.scale)));
  }

  const BackwardProblem &problem;
  const ForwardProblem &p;
  const Tensor &dout;
  const ForwardResult &forward;
  BackwardResult &result;
  const SlackSums *sums; ///< null: not wanted
  std::vector<Real> keys, keysT, valuesT, dk, dv, query, gradient, s, dp,
      flushedValuesT, flushedDp; ///< the last two for the slack
};

/// The gradient of each sink, and what roundings may add to it: of the output
/// that delta is made of to its type, of logit, log-sum-exp and delta in fp32,
/// all of them independent, and of the sum (docs/Accuracy.md).
void sinkGradients(const BackwardProblem &problem, const ForwardResult &forward,
                   BackwardResult &result, GradientSlack *slack) {
  const Tensor &dout = problem.dout;
  const ElemType type = problem.forward.q.type;
  for (int64_t h = 0; h < dout.heads; ++h) {
    const double sink = problem.forward.sinkOf(h);
    double sum = 0, sizes = 0, squares = 0;
    for (int64_t b = 0; b < dout.batch; ++b)
      for (int64_t i = 0; i < dout.seq; ++i) {
        const size_t row = size_t((b * dout.heads + h) * dout.seq + i);
        const double lse = forward.lse[row];
        if (std::isinf(lse) || std::isinf(sink))
          continue;
        const Row gradient = dout.row(b, h, i);
        const double dlse = problem.dlse.empty() ? 0 : problem.dlse[row];
        double delta = -dlse, products = 0, rounded = 0;
        for (int64_t d = 0; d < dout.dim; ++d) {
          const double element =
                           forward.out[row * size_t(dout.dim) + size_t(d)],
                       factor = gradient[d],
                       rounding =
                           unitRoundoff(type) * factor *
                           std::max(std::fabs(element), leastNormal(type));
          delta += element * factor;
          products += std::fabs(element * factor);
          rounded += rounding * rounding;
        }
        const double weight = std::exp(sink - lse);
        sum -= weight * delta;
        sizes += weight * std::fabs(delta);
        const double exponent = kUlp * weight * std::fabs(delta) *
                                (std::fabs(sink) + std::fabs(lse) + 1),
                     difference = kUlp * weight * (products + std::fabs(dlse));
        squares += weight * weight * rounded + exponent * exponent +
                   difference * difference;
      }
    result.dsinks.push_back(sum);
    if (slack)
      slack->dsinks.push_back(4 * std::sqrt(squares) + 4 * kUlp * sizes +
                              kLeast);
  }
}

template <typename Real>
BackwardResult backward(const BackwardProblem &problem, unsigned threads,
                        GradientSlack *slack = nullptr) {
  const ForwardProblem &p = problem.forward;
  const ForwardResult forward = attentionForwardF64(p, threads);
  BackwardResult result;
  result.dq.assign(size_t(p.q.batch * p.q.heads * p.q.seq * p.q.dim), 0.0);
  result.dk.assign(size_t(p.k.batch * p.k.heads * p.k.seq * p.k.dim), 0.0);
  result.dv.assign(size_t(p.v.batch * p.v.heads * p.v.seq * p.v.dim), 0.0);
  std::optional<SlackSums> sums;
  if (slack)
    sums.emplace(problem, *slack);
  fovea::parallelFor(
      p.k.batch * p.k.heads, threads,
      [&] {
        return Backward<Real>(problem, forward, result,
                              sums ? &*sums : nullptr);
      },
      [&](Backward<Real> &worker, int64_t index) {
        worker.run(index / p.k.heads, index % p.k.heads);
      });
  if (std::is_same_v<Real, double> && !p.sinks.empty())
    sinkGradients(problem, forward, result, slack);
  return result;
}

} // namespace

std::string BackwardProblem::check() const {
  std::string wrong = forward.check();
  if (!wrong.empty())
    return wrong;
  const Tensor &q = forward.q;
  if (dout.batch != q.batch || dout.heads != q.heads || dout.seq != q.seq ||
      dout.dim != forward.v.dim || dout.type != q.type)
    return "dout must have the shape and type of q, and v's head dimension";
  return {};
}

BackwardResult
fovea::reference::attentionBackwardF64(const BackwardProblem &problem,
                                       unsigned threads, GradientSlack *slack) {
  return backward<double>(problem, threads, slack);
}

BackwardResult
fovea::reference::attentionBackwardPlain(const BackwardProblem &problem,
                                         unsigned threads) {
  return backward<float>(problem, threads);
}

double CaptureGradient::Element::budget(double start) const {
  // Of few terms all may round alike; of many, three standard deviations.
  const double count = double(terms),
               roundings = std::min(count, 3 * std::sqrt(count));
  return 2 * rounding + kUlp / 2 * roundings * (magnitude + std::fabs(start)) +
         count * kLeast;
}

CaptureGradient fovea::reference::captureGradientF64(
    const BackwardProblem &problem, const std::vector<double> &out,
    const std::vector<float> &lse, int capture, int64_t count) {
  const ForwardProblem &p = problem.forward;
  CaptureGradient result;
  result.elements.resize(size_t(count));
  const double normV = largestNorm(p.v);
  // Of what matrix instructions see, which is the kernel's to compute from: an
  // operand that they flush is no rounding that a budget has a term for.
  auto operand = [&](double x) {
    return problem.flushSubnormals && std::fabs(x) < leastNormal(p.q.type) ? 0
                                                                           : x;
  };
  auto dot = [&](int64_t dim, const Row &x, const Row &y) {
    double sum = 0;
    for (int64_t d = 0; d < dim; ++d)
      sum += operand(x[d]) * operand(y[d]);
    return sum;
  };
  // What the pairs of a row may err by, which they do alike.
  std::vector<double> ofRow(size_t(count), 0.0), squares = ofRow;
  std::vector<int64_t> touched;
  for (int64_t row = 0; row < p.q.batch * p.q.heads * p.q.seq; ++row) {
    const int64_t i = row % p.q.seq, head = row / p.q.seq % p.q.heads,
                  b = row / p.q.seq / p.q.heads,
                  headK = head / (p.q.heads / p.k.heads);
    const double rowLse = lse[size_t(row)];
    if (std::isinf(rowLse))
      continue;
    const Row query = p.q.row(b, head, i),
              gradient = problem.dout.row(b, head, i);
    const double dlse = problem.dlse.empty() ? 0 : problem.dlse[size_t(row)];
    double delta = -dlse;
    for (int64_t d = 0; d < p.v.dim; ++d)
      delta += out[size_t(row * p.v.dim + d)] * gradient[d];
    const double normQ = sizeOf(p.q, query).norm,
                 rounding =
                     kUlp * (sizeOf(problem.dout, gradient).norm * normV +
                             std::fabs(dlse));
    const KeyRange seen = p.keysOf(i);
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      if (!p.isListed(b, head, i, j))
        continue;
      const ScoreFunction::Place place = {b, head, i, j, p.q.seq, p.k.seq};
      const Row key = p.k.row(b, headK, j);
      const double product = double(p.scale) * dot(p.q.dim, query, key);
      const ScoreFunction::Result<double> scored = p.scoreOf(product, place);
      if (!scored.seen)
        continue;
      const double weight = std::exp(scored.score - rowLse);
      const ScoreFunction::Term term = p.score->termOf(capture, product, place);
      if (term.element < 0 || weight == 0)
        continue;
      const double factor = p.keeps(b, head, i, j) ? p.keptFactor() : 0;
      const double difference =
          (factor == 0
               ? 0
               : factor * dot(p.v.dim, gradient, p.v.row(b, headK, j))) -
          delta;
      const double ds = weight * difference, size = std::fabs(term.derivative);
      CaptureGradient::Element &element = result.elements[size_t(term.element)];
      element.exact += ds * term.derivative;
      element.magnitude += std::fabs(ds) * size;
      ++element.terms;
      const double relative =
          2 * kUlp *
          (std::max(1.0, std::fabs(scored.slope)) * std::fabs(double(p.scale)) *
               normQ * sizeOf(p.k, key).norm +
           std::fabs(scored.score) + std::fabs(rowLse));
      if (ofRow[size_t(term.element)] == 0)
        touched.push_back(term.element);
      ofRow[size_t(term.element)] +=
          size * (weight * rounding +
                  (weight * relative + kLeast) * std::fabs(difference)) +
          std::fabs(ds) * kSlopeUlps * kUlp * std::max(1.0, size);
    }
    for (int64_t element : touched) {
      double &sum = ofRow[size_t(element)];
      squares[size_t(element)] += sum * sum;
      sum = 0;
    }
    touched.clear();
  }
  for (size_t i = 0; i != squares.size(); ++i)
    result.elements[i].rounding = std::sqrt(squares[i]);
  return result;
}

Comparison fovea::reference::compareElements(
    const char *name, const std::vector<float> &found,
    const std::vector<double> &exact, const std::vector<double> &budget) {
  Comparison result;
  double worst = -1;
  for (size_t h = 0; h != exact.size(); ++h) {
    const double error = std::fabs(double(found[h]) - exact[h]),
                 use = error == 0 ? 0 : error / budget[h];
    // A NaN is no use at all, and worse than any.
    if (!(use <= worst)) {
      worst = std::isnan(use) ? HUGE_VAL : use;
      result.max = {error, budget[h]};
    }
    if (use <= 1)
      continue;
    result.pass = false;
    if (result.message.size() > 1000) // the first ones will do
      continue;
    char text[160];
    std::snprintf(text, sizeof(text),
                  "%s%s[%lld] is %.9g, expected %.9g within %.3g",
                  result.message.empty() ? "" : "\n", name, (long long)h,
                  double(found[h]), exact[h], budget[h]);
    result.message += text;
  }
  return result;
}

Comparison fovea::reference::compareGradient(const std::string &name,
                                             const Tensor &found,
                                             const std::vector<double> &exact,
                                             const std::vector<double> &plain,
                                             const std::vector<RowSlack> &slack,
                                             double tolerance) {
  // The forward rules' constants: twice the plain error, one rounding of the
  // largest value, half a rounding in the mean square.
  const double unit = unitRoundoff(found.type);
  Comparison result;
  auto say = [&](int64_t row, int64_t d, double value, double expected) {
    char text[256];
    std::snprintf(text, sizeof(text),
                  "%s[%lld, %lld, %lld, %lld] is %.9g, expected %.9g",
                  name.c_str(), (long long)(row / found.seq / found.heads),
                  (long long)(row / found.seq % found.heads),
                  (long long)(row % found.seq), (long long)d, value, expected);
    result.message += (result.message.empty() ? "" : "\n") + std::string(text);
  };
  double magnitude = 0, worstUse = -1, worstValue = 0, largestSlack = 0;
  int64_t worst = -1;
  const int64_t rows = found.batch * found.heads * found.seq;
  for (int64_t first = 0; first < rows;) {
    // Blocks do not reach over the end of a head.
    const int64_t end =
        std::min(first + kRmsRows, (first / found.seq + 1) * found.seq);
    double error2 = 0, plain2 = 0, exact2 = 0, slack2 = 0;
    for (int64_t row = first; row < end; ++row) {
      const RowSlack &rowSlack = slack[size_t(row)];
      largestSlack = std::max(largestSlack, rowSlack.largest);
      slack2 += rowSlack.rms * rowSlack.rms;
      const Row stored =
          found.row(row / found.seq / found.heads,
                    row / found.seq % found.heads, row % found.seq);
      for (int64_t d = 0; d < found.dim; ++d) {
        const size_t index = size_t(row * found.dim + d);
        const double value = stored[d];
        // The class is that of the exact value as the type can hold it.
        const double rounded = roundTo(found.type, exact[index]);
        if (!rowSlack.reached || !std::isfinite(value) ||
            !std::isfinite(rounded)) {
          if (!(std::isnan(value) && std::isnan(rounded)) && value != rounded &&
              result.wrongClass++ == 0)
            say(row, d, value, rounded);
          continue;
        }
        const double error = std::fabs(value - exact[index]);
        const double plainError = std::isfinite(plain[index])
                                      ? std::fabs(plain[index] - exact[index])
                                      : 0;
        if (worst < 0 || error > result.max.error) {
          result.max.error = error;
          worst = int64_t(index);
          worstValue = value;
        }
        result.max.plain = std::max(result.max.plain, plainError);
        magnitude = std::max(magnitude, std::fabs(exact[index]));
        error2 += error * error;
        plain2 += plainError * plainError;
        exact2 += exact[index] * exact[index];
      }
    }
    const double count = double((end - first) * found.dim);
    Figure rms;
    rms.error = std::sqrt(error2 / count);
    rms.plain = std::sqrt(plain2 / count);
    rms.budget =
        tolerance * (2 * rms.plain + unit / 2 * std::sqrt(exact2 / count) +
                     std::sqrt(slack2 / double(end - first)));
    const double used = rms.budget > 0 ? rms.error / rms.budget
                                       : (rms.error > 0 ? HUGE_VAL : 0);
    if (used > worstUse) {
      worstUse = used;
      result.rms = rms;
    }
    first = end;
  }
  result.max.budget =
      tolerance * (2 * result.max.plain + unit * magnitude + largestSlack);
  if (!result.max.ok())
    say(worst / found.dim, worst % found.dim, worstValue, exact[size_t(worst)]);
  if (!result.rms.ok()) {
    char text[128];
    std::snprintf(
        text, sizeof(text),
        "%s: a block of rows has RMS error %.3g, above the budget %.3g",
        name.c_str(), result.rms.error, result.rms.budget);
    result.message += (result.message.empty() ? "" : "\n") + std::string(text);
  }
  result.pass = result.message.empty();
  return result;
}
