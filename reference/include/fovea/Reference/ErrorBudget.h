//===- ErrorBudget.h - when a result is right -------------------*- C++ -*-===//
//
// Compares a kernel's output and log-sum-exp with the fp64 oracle. The budget
// comes from the plain algorithm's own error on the same inputs, so it adapts
// to the problem instead of being a guessed tolerance. The rules and the
// reasons for their constants are in docs/Accuracy.md.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_ERRORBUDGET_H
#define FOVEA_REFERENCE_ERRORBUDGET_H

#include "fovea/Reference/Attention.h"

#include <string>

namespace fovea::reference {

/// An error, what it may be, and what the plain algorithm's was.
struct Figure {
  double error = 0;
  double budget = 0;
  double plain = 0;
  bool ok() const { return error <= budget; }
};

/// Outcome of a comparison.
struct Comparison {
  bool pass = true;
  /// Largest absolute error over the whole output.
  Figure max;
  /// Root mean square error of the block of rows that used most of its budget.
  Figure rms;
  /// Largest absolute error of the log-sum-exp; zeros when none was given.
  Figure lse;
  /// Elements that are NaN or infinite where they must not be, or the reverse,
  /// or not exactly 0 (lse: -inf) in a row that sees no key.
  int64_t wrongClass = 0;
  /// One line a failed rule, with index, value found and value expected.
  std::string message;
};

/// The oracle's two answers to one problem, computed once for many results.
struct Expectation {
  ForwardProblem problem;
  ForwardResult exact, plain;
};

Expectation expectForward(const ForwardProblem &problem, unsigned threads = 0);

/// Rows of one head that the root-mean-square rule takes together.
inline constexpr int64_t kRmsRows = 16;

/// `out` [batch, heads_q, seqlen_q, dim] in the type of q; `lse` contiguous
/// [batch, heads_q, seqlen_q], or null when the kernel wrote none.
/// \param shares  of the keys, whose results are rounded before they are
/// combined
Comparison compareForward(const Expectation &expected, const Tensor &out,
                          const float *lse, uint32_t shares = 1);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_ERRORBUDGET_H
