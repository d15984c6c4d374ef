//===- SessionImpl.h - what the runs of a session share ---------*- C++ -*-===//
//
// The device behind a session, and what a run of any operation does with it:
// tensors filled from cases, launches that are timed and counted. Private to
// this folder.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_SESSIONIMPL_H
#define FOVEA_TOOLS_AOTRUN_SESSIONIMPL_H

#include "ForwardRun.h"
#include "GuardedTensor.h"

#include <functional>

namespace fovea::run {

struct Session::Impl {
  fovea_context_t *context = nullptr;
  HipCalls hip;
  int device = 0;
  bool simulated = false;
  /// A fault leaves the device unusable until it is reset.
  bool faulted = false;
  std::string arch, library;
  ~Impl() {
    fovea_context_destroy(context);
    if (faulted)
      (void)hip.reset();
  }

  RunReport run(const ForwardCase &problem, const RunOptions &options);
  RunReport run(const BackwardCase &problem, const RunOptions &options);

  /// Bytes on each side of a tensor.
  int64_t guardBytes(Guards guards) const;

  /// Whether there is memory for `tensors` of the shape of q and as many of
  /// k's, on the host and the device; else `report` refuses the case.
  bool fitsMemory(const ForwardCase &c, int tensors, RunReport &report) const;

  /// Launches as often as asked for, each time waiting for the end; keeps the
  /// least time and the counts. False after a failure, which `report` has.
  bool launch(const RunOptions &options,
              const std::function<fovea_status_t()> &enqueue,
              RunReport &report);

  /// False when one of the calls failed, which `report` has.
  bool check(const char *what, std::initializer_list<HipStatus> statuses,
             RunReport &report);
};

/// Adds a reason; the outcome is the latest.
RunReport &fail(RunReport &report, Outcome outcome, const std::string &why);

using Halves = GuardedTensor<uint16_t>;
using Words = GuardedTensor<uint32_t>;

Rows rowsOf(const reference::Tensor &tensor);
/// One row of log-sum-exps a head; heads as far apart as a multiple of 4 rows.
Rows lseRowsOf(const ForwardCase &problem);

/// Whether strides of the case, and a few times its sizes, fit 64 bits; else
/// `report` refuses it.
bool isCountable(const ForwardCase &c, RunReport &report);

/// Mask, scale and the shapes of q, k and v of a case.
void describe(const ForwardCase &c, reference::ForwardProblem &problem);

/// Encodes dense values into a tensor, if there are any.
void fillGiven(const reference::Tensor &tensor,
               const std::vector<double> &values);
/// A tensor's elements, dense.
std::vector<float> valuesOf(const reference::Tensor &tensor);

/// FOVEA_DTYPE_... and FOVEA_MASK_...; -1, which the library refuses, for a
/// value that is none.
inline int32_t dtypeOf(reference::ElemType type) {
  switch (type) {
  case reference::ElemType::F16:
    return FOVEA_DTYPE_F16;
  case reference::ElemType::BF16:
    return FOVEA_DTYPE_BF16;
  }
  return -1;
}
inline int32_t maskOf(reference::Mask mask) {
  switch (mask) {
  case reference::Mask::None:
    return FOVEA_MASK_NONE;
  case reference::Mask::CausalTopLeft:
    return FOVEA_MASK_CAUSAL_TOP_LEFT;
  case reference::Mask::CausalBottomRight:
    return FOVEA_MASK_CAUSAL_BOTTOM_RIGHT;
  }
  return -1;
}

/// Type, mask and sizes of a case, in parameters that are all zero.
template <typename Params>
void fillSizes(const ForwardCase &c, Params &params) {
  params.struct_size = sizeof(params);
  params.dtype = dtypeOf(c.type);
  params.mask = maskOf(c.mask);
  params.scale = c.scaleOrDefault();
  params.batch = c.batch;
  params.heads_q = c.heads;
  params.heads_k = c.headsK;
  params.seqlen_q = c.seqQ;
  params.seqlen_k = c.seqK;
  params.head_dim = c.headDim;
}

/// Strides of a tensor, which has no address yet.
template <typename View>
void describe(const reference::Tensor &t, View &view) {
  view.stride_batch = t.strideBatch;
  view.stride_head = t.strideHead;
  view.stride_seq = t.strideSeq;
}

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_SESSIONIMPL_H
