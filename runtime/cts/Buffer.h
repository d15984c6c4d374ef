//===- Buffer.h - a tensor of a suite's problem -----------------*- C++ -*-===//
//
// A strided tensor on host and device. What lies around it and between its rows
// is checked after a run, and all of it when it is an input.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_CTS_BUFFER_H
#define FOVEA_RUNTIME_CTS_BUFFER_H

#include "Suite.h"

namespace fovea::cts {

/// Sizes, type, window and kernel of a problem, in parameters that are all
/// zero. They point to the problem's window.
template <typename Params>
void fillSizes(const Problem &p, Params &params) {
  params.struct_size = sizeof(params);
  params.dtype = p.kernel.dtype;
  params.mask = p.window ? int32_t(FOVEA_MASK_NONE) : p.kernel.mask;
  params.groups = p.window ? &p.window->header : nullptr;
  params.scale = p.scale;
  params.batch = p.batch;
  params.heads_q = p.headsQ;
  params.heads_k = p.headsK;
  params.seqlen_q = p.seqlenQ;
  params.seqlen_k = p.seqlenK;
  params.head_dim = p.kernel.headDim;
  params.kernel = p.kernel.id;
}

/// A tensor [batch, heads, rows, head_dim] of a problem's type and layout.
class Buffer {
public:
  /// An input with its values.
  Buffer(const Problem &problem, int64_t heads, int64_t rows,
         const Problem::Value &value);
  /// An output, which holds NaN.
  Buffer(const Problem &problem, int64_t heads, int64_t rows);

  template <typename Tensor>
  void describe(Tensor &tensor) const {
    tensor.data = memory.data();
    tensor.stride_batch = strideBatch;
    tensor.stride_head = strideHead;
    tensor.stride_seq = strideSeq;
  }

  /// After the run: expects that nothing changed but the elements of an output;
  /// gives the elements in the order of the shape.
  std::vector<float> finish();

private:
  template <typename Function>
  void forEachElement(Function function) const;

  bool output = true; ///< else an input
  const bool bf16;
  const int64_t batch, heads, rows, dim;
  int64_t strideBatch, strideHead, strideSeq;
  std::vector<uint16_t> host;
  Guarded memory;
};

} // namespace fovea::cts

#endif // FOVEA_RUNTIME_CTS_BUFFER_H
