//===- V2.cpp - the calls with one argument for each value ----------------===//

#include "Call.h"
#include "Fallback.h"

using namespace aotriton;
using namespace fovea::shim;

namespace aotriton::v2::flash {

hipError_t check_gpu(Stream stream) {
  return ask<&check_gpu>(
      "check_gpu", [&] { return streamIsServed(stream.native()); }, stream);
}

hipError_t debug_simulate_encoded_softmax(TensorView<4> r, float dropout_p,
                                          TensorView<0> philox_seed,
                                          TensorView<0> philox_offset1,
                                          uint64_t philox_offset2,
                                          Stream stream) {
  return work<&debug_simulate_encoded_softmax>(
      "debug_simulate_encoded_softmax",
      [&] {
        return dropoutMask(
            r, {dropout_p, philox_seed, philox_offset1, philox_offset2},
            stream);
      },
      r, dropout_p, philox_seed, philox_offset1, philox_offset2, stream);
}

// 0.12 is the last version that declares the others, and 0.13's library stands
// in for it.
#if AOTRITON_VERSION_MINOR < 14

namespace {

ForwardCall common(const T4 &q, const T4 &k, const T4 &v, const T4 &b,
                   const T4 &out, const T2 &lse, float scale,
                   const Dropout &dropout, bool causal) {
  using v3::flash::CausalType;
  using v3::flash::WindowValue;
  ForwardCall call;
  call.q = q;
  call.k = k;
  call.v = v;
  call.out = out;
  call.lse = lse;
  call.scale = scale;
  call.dropout = dropout;
  if (causal)
    call.window = {CausalType::WindowedAttention, WindowValue::TopLeftAligned,
                   WindowValue::TopLeftAligned};
  call.bias = b;
  return call;
}

/// Compact sequences, whatever the tensors of lengths are.
Sequences compact(const T1 &cuSeqlensQ, const T1 &cuSeqlensK, int32_t mostQ,
                  int32_t mostK) {
  Sequences sequences;
  sequences.q.lengthsName = "cu_seqlens_q";
  sequences.k.lengthsName = "cu_seqlens_k";
  sequences.q.mostName = "max_seqlen_q";
  sequences.k.mostName = "max_seqlen_k";
  sequences.q.lengths = cuSeqlensQ;
  sequences.k.lengths = cuSeqlensK;
  sequences.q.most = mostQ;
  sequences.k.most = mostK;
  for (SequenceSide *side : {&sequences.q, &sequences.k}) {
    side->stacked = true;
    side->length = SequenceSide::Cumulative;
    side->place = SequenceSide::Reused;
  }
  return sequences;
}

Status forwardV2(const T4 &q, const T4 &k, const T4 &v, const T4 &b,
                 float scale, const T2 &lse, const T4 &out,
                 const Dropout &dropout, const T4 &mask, bool causal,
                 const Sequences &sequences, Stream stream) {
  ForwardCall call = common(q, k, v, b, out, lse, scale, dropout, causal);
  call.mask = mask;
  call.sequences = sequences;
  return forward(call, stream);
}

} // namespace

hipError_t attn_fwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T2 softmax_lse,
                    T4 Out, float dropout_p, T0 philox_seed, T0 philox_offset1,
                    int64_t philox_offset2, T0 philox_seed_output,
                    T0 philox_offset_output, T4 encoded_softmax, bool is_causal,
                    T0 atomic_for_causal, Stream stream,
                    FwdExtraArguments *extargs) {
  return work<&attn_fwd>(
      "attn_fwd",
      [&] {
        return forwardV2(q, k, v, b, sm_scale, softmax_lse, Out,
                         {dropout_p, philox_seed, philox_offset1,
                          uint64_t(philox_offset2), philox_seed_output,
                          philox_offset_output},
                         encoded_softmax, is_causal, {}, stream);
      },
      q, k, v, b, sm_scale, softmax_lse, Out, dropout_p, philox_seed,
      philox_offset1, philox_offset2, philox_seed_output, philox_offset_output,
      encoded_softmax, is_causal, atomic_for_causal, stream, extargs);
}

hipError_t attn_fwd_compact_varlen(
    T4 q, T4 k, T4 v, T4 b, T1 cu_seqlens_q, T1 cu_seqlens_k,
    int32_t max_seqlen_q, int32_t max_seqlen_k, float sm_scale, T2 softmax_lse,
    T4 Out, float dropout_p, T0 philox_seed, T0 philox_offset1,
    int64_t philox_offset2, T0 philox_seed_output, T0 philox_offset_output,
    T4 encoded_softmax, bool is_causal, T0 atomic_for_causal, Stream stream,
    FwdExtraArguments *extargs) {
  return work<&attn_fwd_compact_varlen>(
      "attn_fwd_compact_varlen",
      [&] {
        return forwardV2(
            q, k, v, b, sm_scale, softmax_lse, Out,
            {dropout_p, philox_seed, philox_offset1, uint64_t(philox_offset2),
             philox_seed_output, philox_offset_output},
            encoded_softmax, is_causal,
            compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k),
            stream);
      },
      q, k, v, b, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
      sm_scale, softmax_lse, Out, dropout_p, philox_seed, philox_offset1,
      philox_offset2, philox_seed_output, philox_offset_output, encoded_softmax,
      is_causal, atomic_for_causal, stream, extargs);
}

static Status backwardV2(const T4 &q, const T4 &k, const T4 &v, const T4 &b,
                         float scale, const T4 &out, const T4 &dout,
                         const T4 &dq, const T4 &dk, const T4 &dv, const T4 &db,
                         const T2 &lse, const Dropout &dropout, bool causal,
                         const Sequences &sequences, Workspace workspace,
                         Stream stream) {
  BackwardCall call;
  call.forward = common(q, k, v, b, out, lse, scale, dropout, causal);
  call.forward.sequences = sequences;
  call.dbias = db;
  call.dout = dout;
  call.dq = dq;
  call.dk = dk;
  call.dv = dv;
  call.workspaces[0] = workspace;
  return backward(call, stream);
}

hipError_t attn_bwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out, T4 dout,
                    T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse, T2 delta,
                    float dropout_p, T0 philox_seed, T0 philox_offset1,
                    int64_t philox_offset2, bool is_causal, Stream stream,
                    BwdExtraArguments *extargs) {
  return work<&attn_bwd>(
      "attn_bwd",
      [&] {
        return backwardV2(
            q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse,
            {dropout_p, philox_seed, philox_offset1, uint64_t(philox_offset2)},
            is_causal, {}, {"delta", &delta, acquireView}, stream);
      },
      q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse, delta,
      dropout_p, philox_seed, philox_offset1, philox_offset2, is_causal, stream,
      extargs);
}

hipError_t attn_bwd_fused(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out,
                          T4 dout, T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse,
                          float dropout_p, T0 philox_seed, T0 philox_offset1,
                          int64_t philox_offset2, bool is_causal, Stream stream,
                          FusedBwdExtraArguments *extargs) {
  return work<&attn_bwd_fused>(
      "attn_bwd_fused",
      [&] {
        return backwardV2(
            q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse,
            {dropout_p, philox_seed, philox_offset1, uint64_t(philox_offset2)},
            is_causal, {}, {}, stream);
      },
      q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse, dropout_p,
      philox_seed, philox_offset1, philox_offset2, is_causal, stream, extargs);
}

hipError_t attn_bwd_compact_varlen(T4 q, T4 k, T4 v, T1 cu_seqlens_q,
                                   T1 cu_seqlens_k, int32_t max_seqlen_q,
                                   int32_t max_seqlen_k, T4 b, float sm_scale,
                                   T4 out, T4 dout, T4 dq, T4 dk, T4 dv, T4 db,
                                   T2 softmax_lse, T2 delta, float dropout_p,
                                   T0 philox_seed, T0 philox_offset1,
                                   int64_t philox_offset2, bool is_causal,
                                   Stream stream, BwdExtraArguments *extargs) {
  return work<&attn_bwd_compact_varlen>(
      "attn_bwd_compact_varlen",
      [&] {
        return backwardV2(
            q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse,
            {dropout_p, philox_seed, philox_offset1, uint64_t(philox_offset2)},
            is_causal,
            compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k),
            {"delta", &delta, acquireView}, stream);
      },
      q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, b,
      sm_scale, out, dout, dq, dk, dv, db, softmax_lse, delta, dropout_p,
      philox_seed, philox_offset1, philox_offset2, is_causal, stream, extargs);
}

#endif

} // namespace aotriton::v2::flash
