//===- Backward.h - gradients of attention ----------------------*- C++ -*-===//
//
// The attention backward pass in fp64 and by the plain algorithm, and the rules
// by which gradients are right. Written from the derivatives of the forward
// formula.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_BACKWARD_H
#define FOVEA_REFERENCE_BACKWARD_H

#include "fovea/Reference/Attention.h"
#include "fovea/Reference/ErrorBudget.h"

namespace fovea::reference {

/// The forward problem, and the gradient of its output: `dout` has the shape of
/// out, [batch, heads_q, seqlen_q, dim], and the type of q.
struct BackwardProblem {
  ForwardProblem forward;
  Tensor dout;
  /// The gradient of lse, [batch, heads_q, seqlen_q]; empty: zeros. Of rows
  /// that see no key it does not count.
  std::vector<double> dlse;
  /// The device's matrix instructions take subnormal operands for zeros, and so
  /// does the plain algorithm in products of inputs.
  bool flushSubnormals = false;
  /// The same for ds, of a kernel that does not scale it first.
  bool flushScoreGradients = false;
  /// Of a kernel that sums dq in memory in the type of q: keys of one addition.
  /// 0: sums are fp32.
  int64_t narrowSumKeys = 0;
  /// Empty when shapes and types agree; otherwise what disagrees.
  std::string check() const;
};

/// Gradients, contiguous: dq [batch, heads_q, seqlen_q, dim]; dk and dv [batch,
/// heads_k, seqlen_k, dim], sums over the query heads that share a key head.
/// With p the probabilities and delta the dot product of out and dout by row,
/// less dlse:
///   dv = p^T . dout;  ds = p * (dout . v^T - delta)
///   dq = scale * ds . k;  dk = scale * ds^T . q
/// and, of a forward problem with sinks, [heads_q]:
///   dsinks = - sum over batches and rows of exp(sink - lse) * delta
struct BackwardResult {
  std::vector<double> dq, dk, dv;
  std::vector<double> dsinks; ///< of attentionBackwardF64() alone
};

/// What fp32 roundings of large intermediates may add to one row of a gradient:
/// to its largest element, and in the root mean square over the row. Nothing of
/// note on usual inputs, and all there is where a gradient is exactly 0. Of dq
/// with narrow sums also what these may add.
struct RowSlack {
  double largest = 0, rms = 0;
  /// Some query and key that see each other add to the row; where none does, it
  /// is exactly 0.
  bool reached = false;
};

/// One for each row of a gradient. docs/Accuracy.md says what they count.
struct GradientSlack {
  std::vector<RowSlack> dq, dk, dv;
  std::vector<double> dsinks; ///< the whole budget of each
};

/// fp64 throughout, on the inputs as they are stored.
/// \param slack  if given, receives the slack of every row
BackwardResult attentionBackwardF64(const BackwardProblem &problem,
                                    unsigned threads = 0,
                                    GradientSlack *slack = nullptr);

/// The plain algorithm: fp32, with the output that delta is made of, p (before
/// dv) and ds (before dq and dk) rounded to the input type, and results rounded
/// to it; subnormals as the problem says. The log-sum-exp it starts from is the exact one in fp32.
BackwardResult attentionBackwardPlain(const BackwardProblem &problem,
                                      unsigned threads = 0);

/// The gradient of what a score program captures, by element, in the order of
/// ScoreFunction::Term.
struct CaptureGradient {
  struct Element {
    double exact = 0;
    double rounding = 0;  ///< what fp32 roundings of its terms may come to
    double magnitude = 0; ///< of all terms
    int64_t terms = 0;

    /// Both of one sum: of broadcast elements.
    void add(const Element &other) {
      exact += other.exact;
      rounding += other.rounding;
      magnitude += other.magnitude;
      terms += other.terms;
    }
    /// How far a sum of the terms and `start` in fp32 may be off, in whatever
    /// order (docs/Accuracy.md).
    double budget(double start = 0) const;
  };
  std::vector<Element> elements;
};

/// In fp64 on what the kernels are given: with the output that delta is made
/// of, [batch, heads_q, seqlen_q, dim], and the log-sum-exp, [batch, heads_q,
/// seqlen_q], of the forward pass as they are stored; products are of what the
/// device's matrix instructions see.
/// \param capture  its number
/// \param count    of its elements
CaptureGradient captureGradientF64(const BackwardProblem &problem,
                                   const std::vector<double> &out,
                                   const std::vector<float> &lse, int capture,
                                   int64_t count);

/// Compares a gradient that is no tensor of rows, element by element, with the
/// exact one and its budgets.
/// \param name  for messages
Comparison compareElements(const char *name, const std::vector<float> &found,
                           const std::vector<double> &exact,
                           const std::vector<double> &budget);

/// Compares one gradient, `found`, with the `exact` values and those of the
/// plain algorithm, both contiguous in the order of `found`'s axes. The rules
/// are those of the forward output (docs/Accuracy.md) with `slack`, one for
/// each row, in place of that for large logits; budgets are multiplied by
/// `tolerance`. `name` is for messages.
Comparison compareGradient(const std::string &name, const Tensor &found,
                           const std::vector<double> &exact,
                           const std::vector<double> &plain,
                           const std::vector<RowSlack> &slack,
                           double tolerance = 1);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_BACKWARD_H
