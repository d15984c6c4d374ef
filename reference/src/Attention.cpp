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

/// One thread's converted keys and values, kept while the head stays the same.
template <typename Real>
struct Head {
  int64_t batch = -1, head = -1;
  std::vector<Real> keys;   // [dim][seqlen_k]
  std::vector<Real> values; // [seqlen_k][dim of v]

  void load(const ForwardProblem &p, int64_t b, int64_t h) {
    if (batch == b && head == h)
      return;
    batch = b;
    head = h;
    const int64_t dim = p.k.dim, count = p.k.seq;
    keys.resize(size_t(dim * count));
    values.resize(size_t(p.v.dim * count));
    for (int64_t j = 0; j < count; ++j) {
      const uint16_t *k = p.k.row(b, h, j), *v = p.v.row(b, h, j);
      for (int64_t d = 0; d < dim; ++d)
        keys[size_t(d * count + j)] = Real(decode(p.k.type, k[d]));
      for (int64_t d = 0; d < p.v.dim; ++d)
        values[size_t(j * p.v.dim + d)] = Real(decode(p.v.type, v[d]));
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
        row[d] = Real(decode(p.q.type, p.q.row(b, h, i)[d]));
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
    // Runs of keys: values of those that are not listed may be anything.
    for (int64_t from = seen.begin, to; from < seen.end; from = to) {
      for (to = from; to < seen.end && p.isListed(b, h, i, to); ++to) {
        const Real e = std::exp(s[to] - maximum);
        sum += e;
        s[to] = p.keeps(b, h, i, to) ? toInput(p.q.type, e) : Real(0);
      }
      weightedSum(acc.data(), s + from, head.values.data() + from * dim, dim,
                  to - from);
      while (to < seen.end && !p.isListed(b, h, i, to))
        ++to;
    }
    for (int64_t d = 0; d < dim; ++d)
      out[d] = double(
          toInput(p.q.type, acc[size_t(d)] / sum * Real(p.keptFactor())));
    result.lse[size_t(row)] = double(maximum + std::log(sum));
  }

  const ForwardProblem &p;
  ForwardResult &result;
  Head<Real> head;
  std::vector<Real> weights, query, acc;
};

template <typename Real>
ForwardResult forward(const ForwardProblem &p, unsigned threads) {
  ForwardResult result;
  const int64_t rows = p.q.batch * p.q.heads * p.q.seq;
  result.out.assign(size_t(rows * p.v.dim), 0.0);
  result.lse.assign(size_t(rows), 0.0);
  if (p.score)
    result.largestScore = result.largestSlope = result.lse;
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
