//===- flash.h - attention, with one argument for each value ----*- C++ -*-===//
//
// The older calls, in 0.10 to 0.12 beside those of aotriton/flash.h. Tensors
// are (batch, heads, sequence, head_dim); `is_causal` is aligned top left;
// softmax_lse and delta are fp32, (batch * heads, seqlen_q). What is served is
// the same as there: docs/AOTriton.md.
//
//===----------------------------------------------------------------------===//

#ifndef AOTRITON_V2_API_FLASH_ATTN_H
// Clients of 0.12 define this name themselves to leave the file out.
#define AOTRITON_V2_API_FLASH_ATTN_H

#include <aotriton/cpp_tune.h>
#include <aotriton/util.h>

#if AOTRITON_VERSION_MINOR < 13

namespace AOTRITON_NS::v2::flash {

using T4 = TensorView<4>;
using T2 = TensorView<2>;
using T1 = TensorView<1>;
using T0 = TensorView<0>;

struct AOTRITON_API FwdExtraArguments : public CppTune {};
struct AOTRITON_API BwdExtraArguments {};
struct AOTRITON_API FusedBwdExtraArguments : public CppTune {};

/// As v3::flash::attn_fwd.
hipError_t AOTRITON_API attn_fwd(T4 q, T4 k, T4 v, T4 b, float sm_scale,
                                 T2 softmax_lse, T4 Out, float dropout_p,
                                 T0 philox_seed, T0 philox_offset1,
                                 int64_t philox_offset2, T0 philox_seed_output,
                                 T0 philox_offset_output, T4 encoded_softmax,
                                 bool is_causal, T0 atomic_for_causal,
                                 Stream stream,
                                 FwdExtraArguments *extargs = nullptr);

/// Of sequences one behind the other, (1, heads, rows of all, head_dim):
/// VarlenType::CompactVarlen of v3::flash::attn_fwd.
hipError_t AOTRITON_API attn_fwd_compact_varlen(
    T4 q, T4 k, T4 v, T4 b, T1 cu_seqlens_q, T1 cu_seqlens_k,
    int32_t max_seqlen_q, int32_t max_seqlen_k, float sm_scale, T2 softmax_lse,
    T4 Out, float dropout_p, T0 philox_seed, T0 philox_offset1,
    int64_t philox_offset2, T0 philox_seed_output, T0 philox_offset_output,
    T4 encoded_softmax, bool is_causal, T0 atomic_for_causal, Stream stream,
    FwdExtraArguments *extargs = nullptr);

/// As v3::flash::attn_bwd; `delta` is the workspace.
hipError_t AOTRITON_API attn_bwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out,
                                 T4 dout, T4 dq, T4 dk, T4 dv, T4 db,
                                 T2 softmax_lse, T2 delta, float dropout_p,
                                 T0 philox_seed, T0 philox_offset1,
                                 int64_t philox_offset2, bool is_causal,
                                 Stream stream,
                                 BwdExtraArguments *extargs = nullptr);

/// As attn_bwd. It brings no workspace, which Fovea's kernels need:
/// FOVEA_AOTRITON_WORKSPACE=allocate lets the library take one, and without
/// that the call is refused.
hipError_t AOTRITON_API attn_bwd_fused(
    T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out, T4 dout, T4 dq, T4 dk,
    T4 dv, T4 db, T2 softmax_lse, float dropout_p, T0 philox_seed,
    T0 philox_offset1, int64_t philox_offset2, bool is_causal, Stream stream,
    FusedBwdExtraArguments *extargs = nullptr);

/// As attn_bwd, of such sequences.
hipError_t AOTRITON_API attn_bwd_compact_varlen(
    T4 q, T4 k, T4 v, T1 cu_seqlens_q, T1 cu_seqlens_k, int32_t max_seqlen_q,
    int32_t max_seqlen_k, T4 b, float sm_scale, T4 out, T4 dout, T4 dq, T4 dk,
    T4 dv, T4 db, T2 softmax_lse, T2 delta, float dropout_p, T0 philox_seed,
    T0 philox_offset1, int64_t philox_offset2, bool is_causal, Stream stream,
    BwdExtraArguments *extargs = nullptr);

} // namespace AOTRITON_NS::v2::flash

#endif

#endif // AOTRITON_V2_API_FLASH_ATTN_H
