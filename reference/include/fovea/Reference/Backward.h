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
  /// Empty when shapes and types agree; otherwise what disagrees.
  std::string check() const;
};

/// Gradients, contiguous: dq [batch, heads_q, seqlen_q, dim]; dk and dv [batch,
/// heads_k, seqlen_k, dim], sums over the query heads that share a key head.
/// With p the probabilities and delta the dot product of out and dout by row:
///   dv = p^T . dout;  ds = p * (dout . v^T - delta)
///   dq = scale * ds . k;  dk = scale * ds^T . q
struct BackwardResult {
  std::vector<double> dq, dk, dv;
};

/// fp64 throughout, on the inputs as they are stored.
BackwardResult attentionBackwardF64(const BackwardProblem &problem,
                                    unsigned threads = 0);

/// The plain algorithm: fp32, with the output that delta is made of, p (before
/// dv) and ds (before dq and dk) rounded to the input type, and results rounded
/// to it. The log-sum-exp it starts from is the exact one in fp32.
BackwardResult attentionBackwardPlain(const BackwardProblem &problem,
                                      unsigned threads = 0);

/// What roundings of large fp32 intermediates may add to a gradient: nothing of
/// note on usual inputs, and all there is where a gradient is exactly 0.
struct GradientSlack {
  double dq = 0, dk = 0, dv = 0;
};

/// One fp32 rounding of the largest product of dout and a value, carried to dq
/// and dk; one of the largest logit, carried to dv.
GradientSlack gradientSlack(const BackwardProblem &problem);

/// Compares one gradient, `found`, with the `exact` values and those of the
/// plain algorithm, both contiguous in the order of `found`'s axes. The rules
/// are those of the forward output (docs/Accuracy.md) with `slack` in place of
/// that for large logits; budgets are multiplied by `tolerance`. `name` is for
/// messages.
Comparison compareGradient(const std::string &name, const Tensor &found,
                           const std::vector<double> &exact,
                           const std::vector<double> &plain, double slack,
                           double tolerance = 1);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_BACKWARD_H
