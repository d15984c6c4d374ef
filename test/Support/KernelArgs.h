//===- KernelArgs.h - argument segments written out -------------*- C++ -*-===//
//
// What kernels of the base group are passed, as a structure: the layout of
// every package so far, written out once more so that tests hold the tables of
// the operations (OperationSpec.h) to it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_SUPPORT_KERNELARGS_H
#define FOVEA_TEST_SUPPORT_KERNELARGS_H

#include <cstddef>
#include <cstdint>

namespace fovea::test {

struct ForwardArgs {
  uint64_t q;   ///< device address of Q
  uint64_t k;   ///< device address of K
  uint64_t v;   ///< device address of V
  uint64_t out; ///< device address of the output
  uint64_t lse; ///< device address of the log-sum-exp (f32), or 0: not wanted
  int64_t qStrideBatch, qStrideHead, qStrideSeq;
  int64_t kStrideBatch, kStrideHead, kStrideSeq;
  int64_t vStrideBatch, vStrideHead, vStrideSeq;
  int64_t outStrideBatch, outStrideHead, outStrideSeq;
  int64_t lseStrideBatch, lseStrideHead;
  int32_t seqlenQ;   ///< query rows, >= 0
  int32_t seqlenK;   ///< key rows, >= 0
  int32_t headsQ;    ///< query heads; the grid's x extent
  int32_t groupSize; ///< query heads a key head serves: heads_q / heads_k
  float scale;       ///< multiplies q.k^T before the softmax
};

struct BackwardArgs {
  uint64_t q;         ///< device address: Q
  uint64_t k;         ///< device address: K
  uint64_t v;         ///< device address: V
  uint64_t out;       ///< device address: output of the forward pass
  uint64_t dout;      ///< device address: gradient of the output
  uint64_t lse;       ///< device address: log-sum-exp
  uint64_t dq;        ///< device address: gradient of Q
  uint64_t dk;        ///< device address: gradient of K
  uint64_t dv;        ///< device address: gradient of V
  uint64_t workspace; ///< device address: scratch memory of the kernels
  int64_t qStrideBatch, qStrideHead, qStrideSeq;
  int64_t kStrideBatch, kStrideHead, kStrideSeq;
  int64_t vStrideBatch, vStrideHead, vStrideSeq;
  int64_t outStrideBatch, outStrideHead, outStrideSeq;
  int64_t doutStrideBatch, doutStrideHead, doutStrideSeq;
  int64_t dqStrideBatch, dqStrideHead, dqStrideSeq;
  int64_t dkStrideBatch, dkStrideHead, dkStrideSeq;
  int64_t dvStrideBatch, dvStrideHead, dvStrideSeq;
  int64_t lseStrideBatch, lseStrideHead;
  int32_t seqlenQ;   ///< query rows, >= 0
  int32_t seqlenK;   ///< key rows, >= 0
  int32_t headsQ;    ///< query heads
  int32_t groupSize; ///< query heads a key head serves: heads_q / heads_k
  float scale;       ///< what the forward pass multiplied q.k^T by
};

/// The window group behind either of them, at the byte behind `scale`.
struct WindowArgs {
  int32_t left, right, alignment;
};

static_assert(sizeof(ForwardArgs) == 176 &&
              offsetof(ForwardArgs, scale) == 168);
static_assert(sizeof(BackwardArgs) == 312 &&
              offsetof(BackwardArgs, scale) == 304);

} // namespace fovea::test

#endif // FOVEA_TEST_SUPPORT_KERNELARGS_H
