//===- BackwardAbi.h - kernel arguments of attn.backward --------*- C++ -*-===//
//
// The one definition of what the kernels of a compiled `attn.backward` are
// passed: all of them the same segment. Source: docs/KernelAbi.md.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_BACKWARDABI_H
#define FOVEA_PACKAGE_BACKWARDABI_H

#include "fovea/Package/ForwardAbi.h"

#include <string_view>

namespace fovea::abi {

/// Number of this argument layout; see kForwardAbiVersion.
inline constexpr int32_t kBackwardAbiVersion = 1;

/// Kernel argument segment of `attn.backward`. Shapes as in ForwardArgs; every
/// gradient has the shape of its tensor. Strides are in elements; the stride of
/// the head dimension, and of the sequence in lse, is 1.
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

#define FOVEA_ARG(field, name, kind, unit, meaning)                            \
  {name, ArgKind::kind, offsetof(BackwardArgs, field), unit, meaning}

/// Every argument in order; the offsets are those of BackwardArgs.
inline constexpr ArgInfo kBackwardArgs[] = {
    FOVEA_ARG(q, "q", Pointer, "address",
              "Q [batch, heads_q, seqlen_q, head_dim]"),
    FOVEA_ARG(k, "k", Pointer, "address",
              "K [batch, heads_k, seqlen_k, head_dim]"),
    FOVEA_ARG(v, "v", Pointer, "address",
              "V [batch, heads_k, seqlen_k, head_dim]"),
    FOVEA_ARG(
        out, "out", Pointer, "address",
        "output of the forward pass [batch, heads_q, seqlen_q, head_dim]"),
    FOVEA_ARG(dout, "dout", Pointer, "address",
              "gradient of the output [batch, heads_q, seqlen_q, head_dim]"),
    FOVEA_ARG(lse, "lse", Pointer, "address",
              "log-sum-exp f32 of the forward pass [batch, heads_q, seqlen_q], "
              "natural log"),
    FOVEA_ARG(dq, "dq", Pointer, "address",
              "gradient of Q [batch, heads_q, seqlen_q, head_dim]"),
    FOVEA_ARG(dk, "dk", Pointer, "address",
              "gradient of K [batch, heads_k, seqlen_k, head_dim]"),
    FOVEA_ARG(dv, "dv", Pointer, "address",
              "gradient of V [batch, heads_k, seqlen_k, head_dim]"),
    FOVEA_ARG(workspace, "workspace", Pointer, "address",
              "backwardWorkspaceBytes() bytes, aligned to 16; holds nothing "
              "before or after"),
    FOVEA_ARG(qStrideBatch, "q_stride_batch", I64, "elements",
              "distance of batches in Q"),
    FOVEA_ARG(qStrideHead, "q_stride_head", I64, "elements",
              "distance of heads in Q"),
    FOVEA_ARG(qStrideSeq, "q_stride_seq", I64, "elements",
              "distance of rows in Q"),
    FOVEA_ARG(kStrideBatch, "k_stride_batch", I64, "elements",
              "distance of batches in K"),
    FOVEA_ARG(kStrideHead, "k_stride_head", I64, "elements",
              "distance of heads in K"),
    FOVEA_ARG(kStrideSeq, "k_stride_seq", I64, "elements",
              "distance of rows in K"),
    FOVEA_ARG(vStrideBatch, "v_stride_batch", I64, "elements",
              "distance of batches in V"),
    FOVEA_ARG(vStrideHead, "v_stride_head", I64, "elements",
              "distance of heads in V"),
    FOVEA_ARG(vStrideSeq, "v_stride_seq", I64, "elements",
              "distance of rows in V"),
    FOVEA_ARG(outStrideBatch, "out_stride_batch", I64, "elements",
              "distance of batches in the output"),
    FOVEA_ARG(outStrideHead, "out_stride_head", I64, "elements",
              "distance of heads in the output"),
    FOVEA_ARG(outStrideSeq, "out_stride_seq", I64, "elements",
              "distance of rows in the output"),
    FOVEA_ARG(doutStrideBatch, "dout_stride_batch", I64, "elements",
              "distance of batches in the gradient of the output"),
    FOVEA_ARG(doutStrideHead, "dout_stride_head", I64, "elements",
              "distance of heads in the gradient of the output"),
    FOVEA_ARG(doutStrideSeq, "dout_stride_seq", I64, "elements",
              "distance of rows in the gradient of the output"),
    FOVEA_ARG(dqStrideBatch, "dq_stride_batch", I64, "elements",
              "distance of batches in the gradient of Q"),
    FOVEA_ARG(dqStrideHead, "dq_stride_head", I64, "elements",
              "distance of heads in the gradient of Q"),
    FOVEA_ARG(dqStrideSeq, "dq_stride_seq", I64, "elements",
              "distance of rows in the gradient of Q"),
    FOVEA_ARG(dkStrideBatch, "dk_stride_batch", I64, "elements",
              "distance of batches in the gradient of K"),
    FOVEA_ARG(dkStrideHead, "dk_stride_head", I64, "elements",
              "distance of heads in the gradient of K"),
    FOVEA_ARG(dkStrideSeq, "dk_stride_seq", I64, "elements",
              "distance of rows in the gradient of K"),
    FOVEA_ARG(dvStrideBatch, "dv_stride_batch", I64, "elements",
              "distance of batches in the gradient of V"),
    FOVEA_ARG(dvStrideHead, "dv_stride_head", I64, "elements",
              "distance of heads in the gradient of V"),
    FOVEA_ARG(dvStrideSeq, "dv_stride_seq", I64, "elements",
              "distance of rows in the gradient of V"),
    FOVEA_ARG(lseStrideBatch, "lse_stride_batch", I64, "elements",
              "distance of batches in lse"),
    FOVEA_ARG(lseStrideHead, "lse_stride_head", I64, "elements",
              "distance of heads in lse"),
    FOVEA_ARG(seqlenQ, "seqlen_q", I32, "rows", "query rows, >= 0"),
    FOVEA_ARG(seqlenK, "seqlen_k", I32, "rows", "key rows, >= 0"),
    FOVEA_ARG(headsQ, "heads_q", I32, "heads", "query heads"),
    FOVEA_ARG(groupSize, "group_size", I32, "heads",
              "query heads that share a key head: heads_q / heads_k"),
    FOVEA_ARG(scale, "scale", F32, "factor",
              "what the forward pass multiplied q.k^T by"),
};
#undef FOVEA_ARG

static_assert(sizeof(BackwardArgs) == 312 &&
                  offsetof(BackwardArgs, scale) == 304,
              "the kernel argument segment is part of the package format");

/// Gradients, as bits of a set.
enum Gradient : unsigned { kGradientQ = 1, kGradientK = 2, kGradientV = 4 };

/// One of an algorithm's kernels. The grid is as docs/KernelAbi.md says: x
/// heads, y blocks of rows, z batch.
struct BackwardLaunch {
  const char *suffix; ///< of the symbol, behind "<name>_"
  bool ownsKeys;      ///< heads and rows are those of K and V, or else of Q
  unsigned writes;    ///< gradients that it stores
  unsigned feeds;     ///< gradients that launches after it make of its results
  int products;       ///< matrix products that it takes a pair of blocks
};

/// A way to sum the gradients: its kernels in the order in which they are
/// launched. No two algorithms have a suffix in common.
struct BackwardAlgorithm {
  const char *name;
  bool deterministic; ///< the same bits in every run
  BackwardLaunch launches[3];
};

/// In the order of the compiler's enumeration; docs/Backward.md describes them.
inline constexpr BackwardAlgorithm kBackwardAlgorithms[] = {
    {"deterministic",
     true,
     {{"delta", false, 0, kGradientQ | kGradientK | kGradientV, 0},
      {"dkdv", true, kGradientK | kGradientV, 0, 4},
      {"dq", false, kGradientQ, 0, 3}}},
    {"atomic",
     false,
     {{"prepare", false, 0, kGradientQ | kGradientK | kGradientV, 0},
      {"fused", true, kGradientK | kGradientV, kGradientQ, 5},
      {"convert", false, kGradientQ, 0, 0}}},
};

/// A kernel of a backward pass, and the algorithm that it is part of.
struct BackwardKernel {
  const BackwardLaunch
      *launch; ///< null: no algorithm has a kernel of that name
  const BackwardAlgorithm *algorithm;
};
inline constexpr BackwardKernel findBackwardKernel(std::string_view suffix) {
  for (const BackwardAlgorithm &algorithm : kBackwardAlgorithms)
    for (const BackwardLaunch &launch : algorithm.launches)
      if (suffix == launch.suffix)
        return {&launch, &algorithm};
  return {nullptr, nullptr};
}

/// Rows of the workspace of one batch with atomics: those of all heads, padded
/// so that every batch's part begins on a line of 64 bytes.
inline constexpr int64_t kWorkspaceRowStep = 16;
inline constexpr int64_t atomicWorkspaceRows(int64_t headsQ, int64_t seqlenQ) {
  return (headsQ * seqlenQ + kWorkspaceRowStep - 1) / kWorkspaceRowStep *
         kWorkspaceRowStep;
}

/// Bytes of workspace, all f32. Deterministic: delta, the row sums of out *
/// dout, [batch, heads_q, seqlen_q], dense. Else for each batch, with rows =
/// atomicWorkspaceRows(): sums of dQ, [rows, head_dim], then delta, [rows].
inline constexpr int64_t
backwardWorkspaceBytes(const BackwardAlgorithm &algorithm, int64_t batch,
                       int64_t headsQ, int64_t seqlenQ, int64_t headDim) {
  return algorithm.deterministic
             ? batch * headsQ * seqlenQ * 4
             : batch * atomicWorkspaceRows(headsQ, seqlenQ) * (headDim + 1) * 4;
}

} // namespace fovea::abi

#endif // FOVEA_PACKAGE_BACKWARDABI_H
