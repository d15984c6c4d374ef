//===- ForwardAbi.h - kernel arguments of attn.forward ----------*- C++ -*-===//
//
// The one definition of what a compiled `attn.forward` kernel is passed. The
// compiler builds the kernel's signature from it, the runtime fills it, and
// `aot-compile --emit=contract` prints it. Source: docs/KernelAbi.md.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_FORWARDABI_H
#define FOVEA_PACKAGE_FORWARDABI_H

#include <cstddef>
#include <cstdint>
#include <limits>

namespace fovea::abi {

/// Number of this argument layout; it is stored with each kernel. A change of
/// any field's meaning, type or offset takes the next number.
inline constexpr int32_t kForwardAbiVersion = 1;

/// Kernel argument segment of `attn.forward`. Shapes: q and out [batch, heads_q,
/// seqlen_q, head_dim], k and v [batch, heads_k, seqlen_k, head_dim], lse
/// [batch, heads_q, seqlen_q]. Strides are in elements; the stride of the head
/// dimension, and of the sequence in lse, is 1.
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
  int32_t seqlenQ;  ///< query rows, >= 0
  int32_t seqlenK;  ///< key rows, >= 0
  int32_t headsQ;   ///< query heads; the grid's x extent
  int32_t groupSize; ///< query heads a key head serves: heads_q / heads_k
  float scale;      ///< multiplies q.k^T before the softmax
};

enum class ArgKind { Pointer, I64, I32, F32 };

/// One kernel argument: name, type, offset in bytes, and what it means.
struct ArgInfo {
  const char *name;
  ArgKind kind;
  size_t offset;
  const char *unit;
  const char *meaning;
};

#define FOVEA_ARG(field, name, kind, unit, meaning)                            \
  {name, ArgKind::kind, offsetof(ForwardArgs, field), unit, meaning}

/// Every argument in order; the offsets are those of ForwardArgs.
inline constexpr ArgInfo kForwardArgs[] = {
    FOVEA_ARG(q, "q", Pointer, "address", "Q [batch, heads_q, seqlen_q, head_dim]"),
    FOVEA_ARG(k, "k", Pointer, "address", "K [batch, heads_k, seqlen_k, head_dim]"),
    FOVEA_ARG(v, "v", Pointer, "address", "V [batch, heads_k, seqlen_k, head_dim]"),
    FOVEA_ARG(out, "out", Pointer, "address", "output [batch, heads_q, seqlen_q, head_dim]"),
    FOVEA_ARG(lse, "lse", Pointer, "address", "log-sum-exp f32 [batch, heads_q, seqlen_q], natural log; null: not written"),
    FOVEA_ARG(qStrideBatch, "q_stride_batch", I64, "elements", "distance of batches in Q"),
    FOVEA_ARG(qStrideHead, "q_stride_head", I64, "elements", "distance of heads in Q"),
    FOVEA_ARG(qStrideSeq, "q_stride_seq", I64, "elements", "distance of rows in Q"),
    FOVEA_ARG(kStrideBatch, "k_stride_batch", I64, "elements", "distance of batches in K"),
    FOVEA_ARG(kStrideHead, "k_stride_head", I64, "elements", "distance of heads in K"),
    FOVEA_ARG(kStrideSeq, "k_stride_seq", I64, "elements", "distance of rows in K"),
    FOVEA_ARG(vStrideBatch, "v_stride_batch", I64, "elements", "distance of batches in V"),
    FOVEA_ARG(vStrideHead, "v_stride_head", I64, "elements", "distance of heads in V"),
    FOVEA_ARG(vStrideSeq, "v_stride_seq", I64, "elements", "distance of rows in V"),
    FOVEA_ARG(outStrideBatch, "out_stride_batch", I64, "elements", "distance of batches in the output"),
    FOVEA_ARG(outStrideHead, "out_stride_head", I64, "elements", "distance of heads in the output"),
    FOVEA_ARG(outStrideSeq, "out_stride_seq", I64, "elements", "distance of rows in the output"),
    FOVEA_ARG(lseStrideBatch, "lse_stride_batch", I64, "elements", "distance of batches in lse"),
    FOVEA_ARG(lseStrideHead, "lse_stride_head", I64, "elements", "distance of heads in lse"),
    FOVEA_ARG(seqlenQ, "seqlen_q", I32, "rows", "query rows, >= 0"),
    FOVEA_ARG(seqlenK, "seqlen_k", I32, "rows", "key rows, >= 0"),
    FOVEA_ARG(headsQ, "heads_q", I32, "heads", "query heads; the grid's x extent"),
    FOVEA_ARG(groupSize, "group_size", I32, "heads", "query heads that share a key head: heads_q / heads_k"),
    FOVEA_ARG(scale, "scale", F32, "factor", "multiplies q.k^T before the softmax"),
};
#undef FOVEA_ARG

static_assert(sizeof(ForwardArgs) == 176 && offsetof(ForwardArgs, scale) == 168,
              "the kernel argument segment is part of the package format");

/// Largest distance between two rows, in elements, that a kernel addresses: a
/// tile of up to 256 rows of 2-byte elements must span less than 2^31 bytes.
inline constexpr int64_t kMaxSeqStride = (int64_t(1) << 31) / (256 * 2) - 1;

/// Largest seqlen_q and seqlen_k: the block of rows after the last one must
/// still have a number in 32 bits.
inline constexpr int32_t kMaxSeqlen = std::numeric_limits<int32_t>::max() - 512;

} // namespace fovea::abi

#endif // FOVEA_PACKAGE_FORWARDABI_H
