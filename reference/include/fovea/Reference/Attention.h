//===- Attention.h - the attention oracle -----------------------*- C++ -*-===//
//
// Attention forward in fp64, which is the truth that kernels are held to, and
// the plain algorithm in fp32, whose error sets how much a kernel may err. Both
// are written from the formula and share nothing with the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_ATTENTION_H
#define FOVEA_REFERENCE_ATTENTION_H

#include "fovea/Package/Visibility.h"
#include "fovea/Reference/Dropout.h"
#include "fovea/Reference/Types.h"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::reference {

/// Masks that have a name; each is a window.
using Mask = fovea::MaskKind;
using fovea::Alignment;
using fovea::Window;

/// Keys [begin, end), begin <= end.
struct KeyRange {
  int64_t begin, end;
};
/// What query `i` sees, from the window's formula alone.
KeyRange visibleKeys(const Window &mask, int64_t i, int64_t seqlenQ,
                     int64_t seqlenK);

/// What a score program makes of the scaled product of a query and a key.
class ScoreFunction {
public:
  struct Place {
    int64_t batch, head, query, key, seqlenQ, seqlenK;
  };
  template <typename Real>
  struct Result {
    Real score, slope; ///< the latter is the derivative for the product
    /// The program's predicate: a pair of which it is false is hidden, whatever
    /// else is here.
    bool seen = true;
  };
  virtual ~ScoreFunction() = default;
  virtual Result<double> apply(double product, const Place &place) const = 0;
  /// In fp32 throughout, op by op.
  virtual Result<float> apply(float product, const Place &place) const = 0;

  /// What an element of a capture is to a score.
  struct Term {
    double derivative = 0; ///< of the score for the element
    /// In the order of the capture's indices, the last one innermost, without
    /// gaps; -1: no element is read.
    int64_t element = -1;
  };
  /// \param capture  its number
  virtual Term termOf([[maybe_unused]] int capture,
                      [[maybe_unused]] double product,
                      [[maybe_unused]] const Place &place) const {
    return {};
  }
};

/// How lists of blocks have a key for a query.
enum class Listed : uint8_t {
  No,
  InPart,  ///< in a block of which some is seen
  InWhole, ///< in one of which all is: that is not asked of the score program
};

/// One forward problem: out = softmax(scale * q.k^T + mask) . v.
/// q [batch, heads_q, seqlen_q, dim]; k, v [batch, heads_k, seqlen_k, dim];
/// query head h reads key head h / (heads_q / heads_k).
struct ForwardProblem {
  Tensor q, k, v;
  Window mask;
  float scale = 1.0f;
  /// What else a query sees no more than: keys of query i, given seqlen_q and
  /// seqlen_k.
  std::vector<
      std::function<KeyRange(int64_t i, int64_t seqlenQ, int64_t seqlenK)>>
      parts;
  /// Whether the lists of blocks of a batch and query head have key `j` for
  /// query `i`: keys that they have not are never looked at, and nor are
  /// queries without any. Null: there are no lists.
  std::function<Listed(int64_t b, int64_t head, int64_t i, int64_t j)> listed;
  bool isListed(int64_t b, int64_t head, int64_t i, int64_t j) const {
    return !listed || listed(b, head, i, j) != Listed::No;
  }
  std::shared_ptr<const ScoreFunction> score; ///< null: products are scores
  /// What `score` makes of the product of a pair that is listed.
  template <typename Real>
  ScoreFunction::Result<Real> scoreOf(Real product,
                                      const ScoreFunction::Place &place) const {
    ScoreFunction::Result<Real> result = score->apply(product, place);
    result.seen |= listed && listed(place.batch, place.head, place.query,
                                    place.key) == Listed::InWhole;
    return result;
  }
  /// A logit of each query head that takes part in the softmax of all its rows
  /// and has no value; neither scaled nor given to `score`. Empty: none.
  std::vector<double> sinks;
  double sinkOf(int64_t head) const {
    return sinks.empty() ? -std::numeric_limits<double>::infinity()
                         : sinks[size_t(head)];
  }
  std::optional<Dropout> dropout; ///< of weights; none: all are kept
  bool keeps(int64_t b, int64_t head, int64_t i, int64_t j) const {
    return !dropout || dropout->keeps(b, head, i, j);
  }
  double keptFactor() const { return dropout ? dropout->factor() : 1; }
  /// What query i sees of the keys.
  KeyRange keysOf(int64_t i) const;
  /// Empty when shapes and types agree; otherwise what disagrees.
  std::string check() const;
};

/// Results, contiguous: out [batch, heads_q, seqlen_q, dim], lse [batch,
/// heads_q, seqlen_q]: the natural logarithm of the sum of exp(scale * q.k^T)
/// over visible keys. A row whose sum is 0, because it sees no key or because
/// every logit it sees is -inf, has zeros in out and -inf in lse, or its sink,
/// which all sums have. Keys that a
/// row does not see take no part: an infinity or NaN there changes nothing.
/// What fp32 roundings that the plain algorithm makes elsewhere may change in a
/// row: its largest element, and in the root mean square over the row.
struct RowNoise {
  double largest = 0, rms = 0;
};

struct ForwardResult {
  std::vector<double> out;
  std::vector<double> lse;
  /// Of each row the largest finite magnitudes, at keys that it sees; empty
  /// without a score program.
  std::vector<double> largestScore, largestSlope;
  /// Of fp64 on fp32 inputs, one for each row; docs/Accuracy.md. Empty
  /// otherwise, where one rounding of an input hides them.
  std::vector<RowNoise> noise;
};

/// fp64 throughout, on the inputs as they are stored (rounded to their type).
/// `threads` 0 means one for each hardware thread.
ForwardResult attentionForwardF64(const ForwardProblem &problem,
                                  unsigned threads = 0);

/// The plain algorithm: logits, maximum, exponentials relative to it and their
/// sum in fp32; each exponential rounded to the input type before it multiplies
/// V; products accumulated in key order in fp32, divided by the sum, and
/// rounded to the output's type (that of q). Its error is what a
/// straightforward correct kernel has.
ForwardResult attentionForwardPlain(const ForwardProblem &problem,
                                    unsigned threads = 0);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_ATTENTION_H
