//===- Explain.h - a choice of kernels in words -----------------*- C++ -*-===//
//
// Says why a choice came out as it did: the reasons of candidates, tuning rows
// that were missed, and what there is instead. Made only when somebody asks, or
// a choice has failed. Knows nothing of HIP.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_EXPLAIN_H
#define FOVEA_RUNTIME_SRC_EXPLAIN_H

#include "Choice.h"

namespace fovea::rt {

/// Why choose() has found nothing, with each candidate's reason.
Result whyNone(const DeviceView &view, const Query &query);

/// A step of a choice, as fovea_candidate_t.
struct Step {
  uint32_t kernel;
  int32_t state; ///< FOVEA_CANDIDATE_...
  std::string name, reason;
  Refusal::Why why = Refusal::None; ///< it was refused
};

/// The steps of the choice for a problem that is not empty, whether it has
/// found a kernel or not, in the order that fovea_forward_explain() states.
std::vector<Step> explain(const DeviceView &view, const Query &query);

/// "kernel 3 'symbol' ..., chosen by the tuning table, grid 8x4x2 ...", and the
/// tuning rows that were missed.
std::string describe(const DeviceView &view, const Query &query,
                     const Plan &plan);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_EXPLAIN_H
