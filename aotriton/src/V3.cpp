//===- V3.cpp - the calls with structures of parameters -------------------===//

#include "Call.h"

using namespace aotriton;
using namespace fovea::shim;

namespace aotriton::v3::flash {

// Out of line, as clients expect; they do not know what the members start with.
attn_fwd_params::attn_fwd_params() = default;
attn_bwd_params::attn_bwd_params() = default;

namespace {

/// What the structures of both passes have under the same names.
template <typename Params>
ForwardCall common(const Params &in, const attn_options *options) {
  ForwardCall call;
  call.q = in.Q;
  call.k = in.K;
  call.v = in.V;
  call.out = in.Out;
  call.lse = in.L;
  call.scale = in.Sm_scale;
  call.dropout = in.dropout_p;
  call.window = {in.causal_type, in.window_left, in.window_right};
  call.backend = options ? options->force_backend_index : -1;
  call.mustBeAbsent("B", in.B, "a bias");
  auto lengths = [&](const char *name, const T1 &tensor) {
    call.mustBeAbsent(name, tensor, "sequences of different lengths");
  };
#if AOTRITON_VERSION_MINOR >= 14
  lengths("seqinfo_q0", in.seqinfo_q0);
  lengths("seqinfo_k0", in.seqinfo_k0);
  lengths("seqinfo_q1", in.seqinfo_q1);
  lengths("seqinfo_k1", in.seqinfo_k1);
  static_assert(sizeof(in.varlen_bits) == sizeof(call.varlen));
  __builtin_memcpy(&call.varlen, &in.varlen_bits, sizeof(call.varlen));
#else
  lengths("cu_seqlens_q", in.cu_seqlens_q);
  lengths("cu_seqlens_k", in.cu_seqlens_k);
  call.varlen = uint8_t(in.varlen_type);
#endif
#if AOTRITON_VERSION_MINOR == 12 || AOTRITON_VERSION_MINOR == 13
  lengths("seq_strides_q", in.seq_strides_q);
  lengths("seq_strides_k", in.seq_strides_k);
#endif
  return call;
}

/// Refuses a structure of another layout.
template <typename Params>
Status checkVersion(int32_t version) {
  if (version == Params::kVersion)
    return {};
  return refuse(hipErrorInvalidSymbol,
                "the parameters have layout " + std::to_string(version) +
                    "; this library, for AOTriton 0." +
                    std::to_string(AOTRITON_VERSION_MINOR) + ", takes layout " +
                    std::to_string(Params::kVersion) +
                    ": link the libfovea_aotriton of the headers' version");
}

template <int Rank>
TensorView<Rank> acquire(LazyTensor<Rank> &lazy) {
#if AOTRITON_VERSION_MINOR >= 12
  if (lazy.eager)
    return lazy.eager;
  return lazy.acquire ? lazy.acquire(&lazy) : TensorView<Rank>();
#else
  return lazy.acquire ? lazy.acquire(lazy.cookie) : TensorView<Rank>();
#endif
}

/// A LazyTensor, `client`, as memory of rank 4.
template <int Rank>
TensorView<4> acquireLazy(void *client) {
  const TensorView<Rank> view =
      acquire(*static_cast<LazyTensor<Rank> *>(client));
  std::array<uint64_t, 4> sizes = {1, 1, 1, 1}, strides = {};
  for (int i = 0; i < Rank; ++i) {
    sizes[size_t(4 - Rank + i)] = view.size(i);
    strides[size_t(4 - Rank + i)] = view.stride(i);
  }
  return TensorView<4>(reinterpret_cast<intptr_t>(view.data_ptr()), sizes,
                       strides, view.dtype());
}

} // namespace

hipError_t attn_fwd(const attn_fwd_params &in, int32_t params_version,
                    Stream stream, const attn_options *options) {
  return run("attn_fwd", [&]() -> Status {
    if (Status bad = checkVersion<attn_fwd_params>(params_version))
      return bad;
    ForwardCall call = common(in, options);
    call.mustBeAbsent("A", in.A, "ALiBi");
    call.mustBeAbsent("encoded_softmax", in.encoded_softmax,
                      "probabilities as an output");
    return forward(call, stream);
  });
}

hipError_t attn_bwd(const attn_bwd_params &in, int32_t params_version,
                    Stream stream, const attn_options *options) {
  return run("attn_bwd", [&]() -> Status {
    if (Status bad = checkVersion<attn_bwd_params>(params_version))
      return bad;
    BackwardCall call;
    call.forward = common(in, options);
    call.forward.mustBeAbsent("DB", in.DB, "a bias");
    call.dout = in.DO;
    call.dq = in.DQ;
    call.dk = in.DK;
    call.dv = in.DV;
#if AOTRITON_VERSION_MINOR >= 12
    call.deterministic = options && options->deterministic;
#endif
    call.workspaces = {
        {{"D", &in.D, acquireLazy<2>}, {"DQ_ACC", &in.DQ_ACC, acquireLazy<4>}}};
    Status status = backward(call, stream);
    in.D.free();
    in.DQ_ACC.free();
    return status;
  });
}

#if AOTRITON_VERSION_MINOR < 12
hipError_t aiter_bwd(const attn_bwd_params &, int32_t, Stream,
                     const attn_options *) {
  return run("aiter_bwd", [] {
    return refuse(hipErrorNotSupported,
                  "there are no kernels of AITER's; call attn_bwd");
  });
}
#endif

} // namespace aotriton::v3::flash
