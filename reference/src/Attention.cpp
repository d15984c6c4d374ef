//===- Attention.cpp - the attention oracle -------------------------------===//
//
// One template computes both: fp64 without any intermediate rounding, and the
// plain fp32 algorithm. Work is split over blocks of query rows; each thread
// keeps the keys (transposed) and values of its head converted, so that the two
// inner loops run over contiguous memory and vectorise.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Attention.h"
#include "fovea/Threads/Parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

using namespace fovea::reference;

// The hot loops pick the host's vector width at load time. AVX2 alone implies
// no fused multiply-add, so results do not depend on the host.
#if defined(__x86_64__) && defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FOVEA_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define FOVEA_VECTOR_CLONES
#endif

namespace {

/// Query rows whose logits are computed together: each key element loaded
/// serves so many rows.
constexpr int kRows = 4;
/// Query rows of one unit of work.
constexpr int64_t kBlock = 64;

/// acc[r][j] += q[r][d] * keys[d][j] over d in order, for j in [begin, end).
template <typename Real>
inline void logitsBody(Real *const acc[kRows], const Real *const q[kRows],
                       const Real *keys, int64_t keyStride, int64_t dim,
                       int64_t begin, int64_t end) {
  for (int64_t d = 0; d < dim; ++d) {
    const Real *key = keys + d * keyStride;
    const Real q0 = q[0][d], q1 = q[1][d], q2 = q[2][d], q3 = q[3][d];
    Real *__restrict a0 = acc[0], *__restrict a1 = acc[1];
    Real *__restrict a2 = acc[2], *__restrict a3 = acc[3];
    for (int64_t j = begin; j < end; ++j) {
      a0[j] += q0 * key[j];
      a1[j] += q1 * key[j];
      a2[j] += q2 * key[j];
      a3[j] += q3 * key[j];
    }
  }
}

/// acc[d] += p[j] * values[j][d] over j in order.
template <typename Real>
inline void weightedSumBody(Real *__restrict acc, const Real *p,
                            const Real *values, int64_t dim, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const Real weight = p[j];
    const Real *value = values + j * dim;
    for (int64_t d = 0; d < dim; ++d)
      acc[d] += weight * value[d];
  }
}

#define FOVEA_KERNELS(Real)                                                    \
  FOVEA_VECTOR_CLONES void logits(                                             \
      Real *const acc[kRows], const Real *const q[kRows], const Real *keys,    \
      int64_t keyStride, int64_t dim, int64_t begin, int64_t end) {            \
    logitsBody<Real>(acc, q, keys, keyStride, dim, begin, end);                \
  }                                                                            \
  FOVEA_VECTOR_CLONES void weightedSum(Real *acc, const Real *p,               \
                                       const Real *values, int64_t dim,        \
                                       int64_t count) {                        \
    weightedSumBody<Real>(acc, p, values, dim, count);                         \
  }
FOVEA_KERNELS(double)
FOVEA_KERNELS(float)
#undef FOVEA_KERNELS

/// Whether roundings of fp32 are counted.
template <typename Real>
bool hasNoise(const ForwardProblem &p) {
  return std::is_same_v<Real, double> && p.q.type == ElemType::F32;
}

/// Largest magnitude and Euclidean norm of a row.
struct Size {
  double largest = 0, norm = 0;
};
template <typename Element>
Size sizeOf(const Element *row, int64_t dim) {
  Size size;
  double squares = 0;
  for (int64_t d = 0; d < dim; ++d) {
    const double x = std::fabs(double(row[d]));
    size.largest = std::max(size.largest, x);
    squares += x * x;
  }
  size.norm = std::sqrt(squares);
  return size;
}

/// Sums up what roundings may change in a row of fp32 (docs/Accuracy.md).
class Noise {
public:
  Noise(const ForwardProblem &p, Size query, double maximum, double sum)
      : scale(std::fabs(double(p.scale))), query(query.norm), maximum(maximum),
        sum(sum), root(std::sqrt(double(p.v.dim))) {}

  /// A key, or a sink, which has no value.
  /// \param logit   that its score is made of, or its score, whichever is more
  /// \param kept    what its weight counts for in the sum of values
  void add(double score, double logit, double slope, double keyNorm,
           const Size &value, double kept) {
    if (!std::isfinite(score))
      return;
    const double weight = std::exp(score - maximum) / sum,
                 relative = kUlp / 2 *
                            (std::max(1.0, slope) * scale * query * keyNorm +
                             std::fabs(logit) + std::fabs(score - maximum) + 2);
    worst = std::max(worst, relative);
    largestValue = std::max(largestValue, value.largest);
    terms.push_back(
        {weight, relative, kept * value.largest, kept * value.norm / root});
  }

  /// \param out      the row of the output
  /// \param byScale  its derivative by the logarithm of the scale
  RowNoise finish(const Size &out, const Size &byScale) const {
    // Beyond this a weight may be any.
    constexpr double kLinear = 1.0 / 16;
    if (!(worst < kLinear))
      return {2 * worst * largestValue, 2 * worst * largestValue};
    double largest = 0, rms = 0, squares = 0, rmsSquares = 0;
    for (const Term &term : terms) {
      const double change = term.weight * (term.largest + out.largest),
                   rmsChange = term.weight * (term.rms + out.norm / root);
      largest += change;
      rms += rmsChange;
      squares += change * change * term.relative * term.relative;
      rmsSquares += rmsChange * rmsChange * term.relative * term.relative;
    }
    return {kUlp * (byScale.largest + largest) + std::sqrt(squares),
            kUlp * (byScale.norm / root + rms) + std::sqrt(rmsSquares)};
  }

private:
  static constexpr double kUlp = 0x1p-23; // one fp32 unit in the last place
  struct Term {
    double weight, relative, largest, rms;
  };
  const double scale, query, maximum, sum, root;
  double worst = 0, largestValue = 0;
  std::vector<Term> terms;
};

/// One thread's converted keys and values, kept while the head stays the same.
template <typename Real>
struct Head {
  int64_t batch = -1, head = -1;
  std::vector<Real> keys;   // [dim][seqlen_k]
  std::vector<Real> values; // [seqlen_k][dim of v]
  std::vector<Size> keySizes, valueSizes;

  void load(const ForwardProblem &p, int64_t b, int64_t h) {
    if (batch == b && head == h)
      return;
    batch = b;
    head = h;
    const int64_t dim = p.k.dim, count = p.k.seq;
    keys.resize(size_t(dim * count));
    values.resize(size_t(p.v.dim * count));
    for (int64_t j = 0; j < count; ++j) {
      const Row k = p.k.row(b, h, j), v = p.v.row(b, h, j);
      for (int64_t d = 0; d < dim; ++d)
        keys[size_t(d * count + j)] = Real(k[d]);
      for (int64_t d = 0; d < p.v.dim; ++d)
        values[size_t(j * p.v.dim + d)] = Real(v[d]);
    }
    keySizes.clear();
    valueSizes.clear();
    for (int64_t j = 0; hasNoise<Real>(p) && j < count; ++j) {
      std::vector<double> key;
      for (int64_t d = 0; d < dim; ++d)
        key.push_back(double(keys[size_t(d * count + j)]));
      keySizes.push_back(sizeOf(key.data(), dim));
      valueSizes.push_back(sizeOf(values.data() + j * p.v.dim, p.v.dim));
    }
  }
};

template <typename Real>
class Forward {
public:
  Forward(const ForwardProblem &p, ForwardResult &result)
      : p(p), result(result), weights(size_t(kRows * p.k.seq)),
        query(size_t(kRows * p.q.dim)), acc(size_t(p.v.dim)) {}

  /// Rows [begin, end) of one query head.
  void run(int64_t b, int64_t h, int64_t begin, int64_t end) {
    head.load(p, b, h / (p.q.heads / p.k.heads));
    for (int64_t i = begin; i < end; i += kRows)
      runRows(b, h, i, std::min<int64_t>(kRows, end - i));
  }

private:
  /// Rounds as the plain algorithm does; the fp64 one does not.
  static Real toInput(ElemType type, Real x) {
    if constexpr (std::is_same_v<Real, float>)
      return Real(roundTo(type, x));
    return x;
  }

  Real score(Real product, const ScoreFunction::Place &place, size_t row) {
    const auto [score, slope, seen] = p.scoreOf(product, place);
    if (!seen)
      return -std::numeric_limits<Real>::infinity();
    auto raise = [](double &largest, double value) {
      if (std::isfinite(value))
        largest = std::max(largest, std::fabs(value));
    };
    raise(result.largestScore[row], double(score));
    raise(result.largestSlope[row], double(slope));
    return score;
  }

  void runRows(int64_t b, int64_t h, int64_t first, int64_t rows) {
    const int64_t dim = p.q.dim, seqK = p.k.seq;
    Real *s[kRows];
    const Real *q[kRows];
    int64_t least = seqK, most = 0;
    for (int64_t r = 0; r < kRows; ++r) {
      // Rows past the last are computed as copies of it and dropped.
      const int64_t i = first + std::min(r, rows - 1);
      Real *row = query.data() + r * dim;
      for (int64_t d = 0; d < dim; ++d)
        row[d] = Real(p.q.row(b, h, i)[d]);
      q[r] = row;
      s[r] = weights.data() + r * seqK;
      const KeyRange seen = p.keysOf(i);
      if (seen.begin < seen.end) {
        least = std::min(least, seen.begin);
        most = std::max(most, seen.end);
      }
    }
    std::fill(weights.begin(), weights.end(), Real(0));
    constexpr int64_t kChunk = 512; // keys whose logits stay in the L1 cache
    for (int64_t j = least; j < most; j += kChunk)
      logits(s, q, head.keys.data(), seqK, dim, j, std::min(most, j + kChunk));
    for (int64_t r = 0; r < rows; ++r)
      finishRow(b, h, first + r, s[r]);
  }

  void finishRow(int64_t b, int64_t h, int64_t i, Real *s) {
    const int64_t dim = p.v.dim;
    const KeyRange seen = p.keysOf(i);
    const int64_t row = (b * p.q.heads + h) * p.q.seq + i;
    double *out = result.out.data() + row * dim;
    const Real scale = Real(p.scale);
    const Real inf = std::numeric_limits<Real>::infinity();
    Real maximum = -inf;
    bool sawNaN = false;
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      if (!p.isListed(b, h, i, j)) {
        s[j] = -inf;
        continue;
      }
      s[j] *= scale;
      if (p.score)
        s[j] = score(s[j], {b, h, i, j, p.q.seq, p.k.seq}, size_t(row));
      maximum = std::max(maximum, s[j]);
      sawNaN |= std::isnan(s[j]);
    }
    if (maximum == -inf && !sawNaN) {
      std::fill(out, out + dim, 0.0);
      result.lse[size_t(row)] = p.sinkOf(h);
      return;
    }
    const Real sink = Real(p.sinkOf(h));
    maximum = std::max(maximum, sink);
    Real sum = sink > -inf ? std::exp(sink - maximum) : Real(0);
    std::fill(acc.begin(), acc.end(), Real(0));
    if (hasNoise<Real>(p)) {
      scores.assign(s, s + p.k.seq);
      byScale.assign(size_t(dim), Real(0));
    }
    // Runs of keys: values of those that are not listed may be anything.
    for (int64_t from = seen.begin, to; from < seen.end; from = to) {
      for (to = from; to < seen.end && p.isListed(b, h, i, to); ++to) {
        const Real e = std::exp(s[to] - maximum);
        sum += e;
        s[to] = p.keeps(b, h, i, to) ? toInput(p.q.type, e) : Real(0);
      }
      weightedSum(acc.data(), s + from, head.values.data() + from * dim, dim,
                  to - from);
      if (hasNoise<Real>(p)) {
        for (int64_t j = from; j < to; ++j)
          s[j] = s[j] == 0 ? Real(0) : s[j] * scores[size_t(j)];
        weightedSum(byScale.data(), s + from, head.values.data() + from * dim,
                    dim, to - from);
      }
      while (to < seen.end && !p.isListed(b, h, i, to))
        ++to;
    }
    for (int64_t d = 0; d < dim; ++d)
      out[d] = double(
          toInput(p.q.type, acc[size_t(d)] / sum * Real(p.keptFactor())));
    result.lse[size_t(row)] = double(maximum + std::log(sum));
    if (hasNoise<Real>(p))
      result.noise[size_t(row)] =
          noiseOf(b, h, i, double(maximum), double(sum), out);
  }

  /// With the row's scores, and their sum by weights and values.
  RowNoise noiseOf(int64_t b, int64_t h, int64_t i, double maximum, double sum,
                   const double *out) {
    const int64_t dim = p.v.dim;
    const KeyRange seen = p.keysOf(i);
    std::vector<double> row;
    for (int64_t d = 0; d < p.q.dim; ++d)
      row.push_back(p.q.row(b, h, i)[d]);
    Noise noise(p, sizeOf(row.data(), p.q.dim), maximum, sum);
    row.resize(size_t(dim));
    const double sink = p.sinkOf(h);
    double meanScore = 0;
    auto count = [&](double score) {
      const double weight = std::exp(score - maximum) / sum;
      meanScore += weight == 0 ? 0 : weight * score;
    };
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      if (!p.isListed(b, h, i, j))
        continue;
      const double score = double(scores[size_t(j)]);
      const size_t at = size_t((b * p.q.heads + h) * p.q.seq + i);
      count(score);
      noise.add(score, p.score ? result.largestScore[at] : score,
                p.score ? result.largestSlope[at] : 1,
                head.keySizes[size_t(j)].norm, head.valueSizes[size_t(j)],
                p.keeps(b, h, i, j) ? p.keptFactor() : 0);
    }
    if (std::isfinite(sink)) {
      count(sink);
      noise.add(sink, sink, 1, 0, Size(), 0);
    }
    for (int64_t d = 0; d < dim; ++d)
      row[size_t(d)] = double(byScale[size_t(d)]) / sum * p.keptFactor() -
                       meanScore * out[d];
    return noise.finish(sizeOf(out, dim), sizeOf(row.data(), dim));
  }

  const ForwardProblem &p;
  ForwardResult &result;
  Head<Real> head;
  std::vector<Real> weights, query, acc;
  std::vector<Real> scores, byScale; ///< of a row, where noise is counted
};

template <typename Real>
ForwardResult forward(const ForwardProblem &p, unsigned threads) {
  ForwardResult result;
  const int64_t rows = p.q.batch * p.q.heads * p.q.seq;
  result.out.assign(size_t(rows * p.v.dim), 0.0);
  result.lse.assign(size_t(rows), 0.0);
  if (p.score)
    result.largestScore = result.largestSlope = result.lse;
  if (hasNoise<Real>(p))
    result.noise.assign(size_t(rows), {});
  if (rows == 0)
    return result;
  const int64_t blocks = (p.q.seq + kBlock - 1) / kBlock;
  fovea::parallelFor(
      p.q.batch * p.q.heads * blocks, threads,
      [&] { return Forward<Real>(p, result); },
      [&](Forward<Real> &worker, int64_t index) {
        const int64_t block = index % blocks, head = index / blocks;
        const int64_t begin = block * kBlock;
        worker.run(head / p.q.heads, head % p.q.heads, begin,
                   std::min(begin + kBlock, p.q.seq));
      });
  return result;
}

} // namespace

KeyRange fovea::reference::visibleKeys(const Window &mask, int64_t i,
                                       int64_t seqlenQ, int64_t seqlenK) {
  // Wide enough for any sum of the four.
  using Wide = __int128;
  auto diagonal = [&](fovea::Alignment alignment) -> Wide {
    return alignment == fovea::Alignment::TopLeft ? 0 : Wide(seqlenK) - seqlenQ;
  };
  Wide begin = 0, end = seqlenK;
  if (mask.left != Window::kInfinite)
    begin = std::max(begin, i + diagonal(mask.leftAlignment) - mask.left);
  if (mask.right != Window::kInfinite)
    end = std::min(end, i + diagonal(mask.rightAlignment) + mask.right + 1);
  if (begin >= end)
    return {0, 0};
  return {int64_t(begin), int64_t(end)};
}

KeyRange ForwardProblem::keysOf(int64_t i) const {
  KeyRange seen = visibleKeys(mask, i, q.seq, k.seq);
  for (const auto &part : parts) {
    const KeyRange more = part(i, q.seq, k.seq);
    seen.begin = std::max(seen.begin, more.begin);
    seen.end = std::max(seen.begin, std::min(seen.end, more.end));
  }
  return seen;
}

std::string ForwardProblem::check() const {
  auto number = [](int64_t n) { return std::to_string(n); };
  if (q.batch != k.batch || k.batch != v.batch)
    return "q, k and v have batch " + number(q.batch) + ", " + number(k.batch) +
           " and " + number(v.batch) + "; all must agree";
  if (k.heads != v.heads || k.seq != v.seq)
    return "k and v must agree in heads (" + number(k.heads) + ", " +
           number(v.heads) + ") and sequence (" + number(k.seq) + ", " +
           number(v.seq) + ")";
  if (q.heads != 0 && (k.heads == 0 || q.heads % k.heads != 0))
    return "query heads (" + number(q.heads) +
           ") must be a multiple of key heads (" + number(k.heads) + ")";
  if (q.dim != k.dim || q.dim <= 0 || v.dim <= 0)
    return "head dimensions of q, k and v (" + number(q.dim) + ", " +
           number(k.dim) + ", " + number(v.dim) +
           ") must be above 0, and q's that of k";
  if (q.type != k.type || q.type != v.type)
    return "q, k and v must have one element type";
  return {};
}

ForwardResult
fovea::reference::attentionForwardF64(const ForwardProblem &problem,
                                      unsigned threads) {
  return forward<double>(problem, threads);
}

ForwardResult
fovea::reference::attentionForwardPlain(const ForwardProblem &problem,
                                        unsigned threads) {
  return forward<float>(problem, threads);
}
