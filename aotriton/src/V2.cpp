//===- V2.cpp - the calls with one argument for each value ----------------===//

#include "Call.h"

using namespace aotriton;
using namespace fovea::shim;

namespace aotriton::v2::flash {

hipError_t check_gpu(Stream stream) {
  return ask("check_gpu", [&]() -> Status {
    fovea_context_t *context = nullptr;
    if (Status bad = session(context))
      return bad;
    StreamDevice device;
    if (Status bad = device.enter(context, stream.native()))
      return bad;
    return deviceHasKernels(context, device.device());
  });
}

hipError_t debug_simulate_encoded_softmax(TensorView<4>, float, TensorView<0>,
                                          TensorView<0>, uint64_t, Stream) {
  return run("debug_simulate_encoded_softmax", [] {
    return refuse(
        hipErrorNotSupported,
        "there are no kernels with dropout whose mask could be shown");
  });
}

// 0.12 is the last version that declares the others, and 0.13's library stands
// in for it.
#if AOTRITON_VERSION_MINOR < 14

namespace {

ForwardCall common(const T4 &q, const T4 &k, const T4 &v, const T4 &b,
                   const T4 &out, const T2 &lse, float scale, float dropout,
                   bool causal) {
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
  call.mustBeAbsent("b", b, "a bias");
  return call;
}

Status varlen() {
  return refuse(hipErrorNotSupported,
                "there are no kernels for sequences of different lengths");
}

} // namespace

hipError_t attn_fwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T2 softmax_lse,
                    T4 Out, float dropout_p, T0, T0, int64_t, T0, T0,
                    T4 encoded_softmax, bool is_causal, T0, Stream stream,
                    FwdExtraArguments *) {
  return run("attn_fwd", [&] {
    ForwardCall call =
        common(q, k, v, b, Out, softmax_lse, sm_scale, dropout_p, is_causal);
    call.mustBeAbsent("encoded_softmax", encoded_softmax,
                      "probabilities as an output");
    return forward(call, stream);
  });
}

hipError_t attn_fwd_compact_varlen(T4, T4, T4, T4, T1, T1, int32_t, int32_t,
                                   float, T2, T4, float, T0, T0, int64_t, T0,
                                   T0, T4, bool, T0, Stream,
                                   FwdExtraArguments *) {
  return run("attn_fwd_compact_varlen", varlen);
}

static Status backwardV2(const T4 &q, const T4 &k, const T4 &v, const T4 &b,
                         float scale, const T4 &out, const T4 &dout,
                         const T4 &dq, const T4 &dk, const T4 &dv, const T4 &db,
                         const T2 &lse, float dropout, bool causal,
                         Workspace workspace, Stream stream) {
  BackwardCall call;
  call.forward = common(q, k, v, b, out, lse, scale, dropout, causal);
  call.forward.mustBeAbsent("db", db, "a bias");
  call.dout = dout;
  call.dq = dq;
  call.dk = dk;
  call.dv = dv;
  call.workspaces[0] = workspace;
  return backward(call, stream);
}

hipError_t attn_bwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out, T4 dout,
                    T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse, T2 delta,
                    float dropout_p, T0, T0, int64_t, bool is_causal,
                    Stream stream, BwdExtraArguments *) {
  return run("attn_bwd", [&] {
    auto acquire = [](void *client) {
      const T2 &delta = *static_cast<const T2 *>(client);
      return T4(reinterpret_cast<intptr_t>(delta.data_ptr()),
                {1, 1, delta.size(0), delta.size(1)},
                {0, 0, delta.stride(0), delta.stride(1)}, delta.dtype());
    };
    return backwardV2(q, k, v, b, sm_scale, out, dout, dq, dk, dv, db,
                      softmax_lse, dropout_p, is_causal,
                      {"delta", &delta, acquire}, stream);
  });
}

hipError_t attn_bwd_fused(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out,
                          T4 dout, T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse,
                          float dropout_p, T0, T0, int64_t, bool is_causal,
                          Stream stream, FusedBwdExtraArguments *) {
  return run("attn_bwd_fused", [&] {
    return backwardV2(q, k, v, b, sm_scale, out, dout, dq, dk, dv, db,
                      softmax_lse, dropout_p, is_causal, {}, stream);
  });
}

hipError_t attn_bwd_compact_varlen(T4, T4, T4, T1, T1, int32_t, int32_t, T4,
                                   float, T4, T4, T4, T4, T4, T4, T2, T2, float,
                                   T0, T0, int64_t, bool, Stream,
                                   BwdExtraArguments *) {
  return run("attn_bwd_compact_varlen", varlen);
}

#endif

} // namespace aotriton::v2::flash
