//===- Call.h - one form for all calls of attention -------------*- C++ -*-===//
//
// What the calls of every version have in common, as they give it, and what is
// done with it: it is described as libfovea's parameters (Describe.h), which
// refuses whatever libfovea's kernels do not have, and launched.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_CALL_H
#define FOVEA_AOTRITON_CALL_H

#include "Sequences.h"
#include "Session.h"

#include <aotriton/flash.h>
#include <array>

namespace fovea::shim {

using aotriton::DType;
using aotriton::Stream;

/// A tensor that must have no data, and what it would mean if it had.
struct Absent {
  const char *name = nullptr;
  const char *feature = nullptr;
  bool present = false;
};

/// Which keys a query sees, as the interface says it.
struct Window {
  int8_t type = 0; ///< CausalType
  int32_t left = 0, right = 0;
};

/// Which weights are dropped. The tensors are numbers of 64 bits on the device.
struct Dropout {
  float p = 0; ///< 0: none are, and nothing else is looked at
  TensorView<0> seed, offset;
  uint64_t offsetValue = 0;                   ///< added to the offset
  TensorView<0> seedOut = {}, offsetOut = {}; ///< of a forward call
};

struct ForwardCall {
  TensorView<4> q, k, v, out;
  TensorView<4> bias; ///< added to the scores; without data: none
  TensorView<2> lse;
  TensorView<4> mask; ///< receives which weights are kept; without data: none
  float scale = 0;
  Dropout dropout;
  Window window;
  Sequences sequences;
  /// The index of AOTriton's implementation; -1 is any.
  int backend = -1;
  /// Of the tensors that must be absent the first one that is not.
  Absent present;

  template <int Rank>
  void mustBeAbsent(const char *name, const TensorView<Rank> &tensor,
                    const char *feature) {
    if (tensor && !present.present)
      present = {name, feature, true};
  }
};

/// Memory that the client offers, which it may allocate only when asked for.
struct Workspace {
  const char *name = nullptr; ///< null: none
  void *client = nullptr;
  TensorView<4> (*acquire)(void *client) = nullptr;
  /// By that, so that without data it failed; else there was none to acquire.
  bool isAllocated = false;
};

/// A tensor as memory of rank 4.
template <int Rank>
TensorView<4> asMemory(const TensorView<Rank> &view) {
  std::array<uint64_t, 4> sizes = {1, 1, 1, 1}, strides = {};
  for (int i = 0; i < Rank; ++i) {
    sizes[size_t(4 - Rank + i)] = view.size(i);
    strides[size_t(4 - Rank + i)] = view.stride(i);
  }
  return TensorView<4>(reinterpret_cast<intptr_t>(view.data_ptr()), sizes,
                       strides, view.dtype());
}
/// The workspace of a TensorView<2>, which is there already.
inline TensorView<4> acquireView(void *client) {
  return asMemory(*static_cast<const TensorView<2> *>(client));
}

struct BackwardCall {
  ForwardCall forward;
  TensorView<4> dout, dq, dk, dv;
  TensorView<4> dbias; ///< of the bias; without data: not wanted
  bool deterministic = false;
  std::array<Workspace, 2> workspaces; ///< tried in this order
};

Status forward(const ForwardCall &call, Stream stream);
Status backward(const BackwardCall &call, Stream stream);
/// Writes 0.5 where a weight is kept and -0.5 where it is dropped.
Status dropoutMask(const TensorView<4> &mask, const Dropout &dropout,
                   Stream stream);

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_CALL_H
