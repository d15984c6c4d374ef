//===- V3.cpp - the calls with structures of parameters -------------------===//

#include "Call.h"
#include "Fallback.h"

using namespace aotriton;
using namespace fovea::shim;

namespace aotriton::v3::flash {

#if AOTRITON_VERSION_MINOR >= 14
/// Where varlen_type is in the layouts before 0.14, whose clients call the same
/// constructors and need not set it.
template <typename Params>
static uint8_t &behindCausalType(const Params &params) {
  auto *causal = const_cast<int8_t *>(&params.causal_type);
  return reinterpret_cast<uint8_t *>(causal)[1];
}
#endif

// Out of line, as clients expect; they do not know what the members start with.
#if AOTRITON_VERSION_MINOR >= 14
attn_fwd_params::attn_fwd_params() { behindCausalType(*this) = 0; }
attn_bwd_params::attn_bwd_params() { behindCausalType(*this) = 0; }
#else
attn_fwd_params::attn_fwd_params() = default;
attn_bwd_params::attn_bwd_params() = default;
#endif

namespace {

// What the libraries of 0.14 read beside their own layout: that of 0.12 and
// 0.13, whose members are in the same places under older names, but that the
// byte behind causal_type is varlen_type and there are no varlen_bits.
template <typename Params>
constexpr int32_t kOlder = 0;
#if AOTRITON_VERSION_MINOR >= 14
template <>
constexpr int32_t kOlder<attn_fwd_params> = 3;
template <>
constexpr int32_t kOlder<attn_bwd_params> = 6;
#endif

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
  call.dropout = {in.dropout_p, in.philox_seed_ptr, in.philox_offset1,
                  in.philox_offset2};
  call.window = {in.causal_type, in.window_left, in.window_right};
#if AOTRITON_VERSION_MINOR >= 11
  call.backend = options ? options->force_backend_index : -1;
#else
  (void)options; // it has no members
#endif
  call.bias = in.B;
  return call;
}

/// The sequences of a call.
template <typename Params>
Status readSequences(const Params &in, int32_t version, Sequences &sequences) {
  SequenceSide &q = sequences.q, &k = sequences.k;
  q.mostName = "Max_seqlen_q";
  k.mostName = "Max_seqlen_k";
  q.most = in.Max_seqlen_q;
  k.most = in.Max_seqlen_k;
  q.lengthsName = "cu_seqlens_q";
  k.lengthsName = "cu_seqlens_k";
  q.placesName = "seq_strides_q";
  k.placesName = "seq_strides_k";
#if AOTRITON_VERSION_MINOR >= 14
  q.lengths = in.seqinfo_q0;
  k.lengths = in.seqinfo_k0;
  q.places = in.seqinfo_q1;
  k.places = in.seqinfo_k1;
  if (version == kOlder<Params>)
    return readVarlenType(int8_t(behindCausalType(in)), sequences);
  q.lengthsName = "seqinfo_q0";
  k.lengthsName = "seqinfo_k0";
  q.placesName = "seqinfo_q1";
  k.placesName = "seqinfo_k1";
  uint32_t bits;
  static_assert(sizeof(in.varlen_bits) == sizeof(bits));
  __builtin_memcpy(&bits, &in.varlen_bits, sizeof(bits));
  return readVarlenBits(bits, sequences);
#else
  (void)version;
  q.lengths = in.cu_seqlens_q;
  k.lengths = in.cu_seqlens_k;
#if AOTRITON_VERSION_MINOR >= 12
  q.places = in.seq_strides_q;
  k.places = in.seq_strides_k;
#endif
  return readVarlenType(in.varlen_type, sequences);
#endif
}

/// Refuses a structure of another layout.
template <typename Params>
Status checkVersion(int32_t version) {
  constexpr int32_t older = kOlder<Params>;
  if (version == Params::kVersion || (older && version == older))
    return {};
  return refuse(
      hipErrorInvalidSymbol,
      "the parameters have layout " + std::to_string(version) +
          "; this library, for AOTriton 0." +
          std::to_string(AOTRITON_VERSION_MINOR) + ", takes layout " +
          std::to_string(Params::kVersion) +
          (older ? " and, of 0.12 and 0.13, " + std::to_string(older) : "") +
          ": link the libfovea_aotriton of the headers' version");
}

#if AOTRITON_VERSION_MINOR >= 11
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

/// Whether acquire() has the client allocate.
template <int Rank>
bool isAllocated(const LazyTensor<Rank> &lazy) {
#if AOTRITON_VERSION_MINOR >= 12
  if (lazy.eager)
    return false;
#endif
  return lazy.acquire != nullptr;
}

/// A LazyTensor, `client`, as memory of rank 4.
template <int Rank>
TensorView<4> acquireLazy(void *client) {
  return asMemory(acquire(*static_cast<LazyTensor<Rank> *>(client)));
}

std::array<Workspace, 2> workspacesOf(const attn_bwd_params &in) {
  return {{{"D", &in.D, acquireLazy<2>, isAllocated(in.D)},
           {"DQ_ACC", &in.DQ_ACC, acquireLazy<4>, isAllocated(in.DQ_ACC)}}};
}
void freeWorkspaces(const attn_bwd_params &in) {
  in.D.free();
  in.DQ_ACC.free();
}
#else
std::array<Workspace, 2> workspacesOf(const attn_bwd_params &in) {
  return {{{"D", const_cast<T2 *>(&in.D), acquireView}}};
}
void freeWorkspaces(const attn_bwd_params &) {} // it is the client's
#endif

} // namespace

hipError_t attn_fwd(const attn_fwd_params &in, int32_t params_version,
                    Stream stream, const attn_options *options) {
  return work<&attn_fwd>(
      "attn_fwd",
      [&]() -> Status {
        if (Status bad = checkVersion<attn_fwd_params>(params_version))
          return bad;
        ForwardCall call = common(in, options);
        if (Status bad = readSequences(in, params_version, call.sequences))
          return bad;
        call.dropout.seedOut = in.philox_seed_output;
        call.dropout.offsetOut = in.philox_offset_output;
        call.mustBeAbsent("A", in.A, "ALiBi");
        call.mask = in.encoded_softmax;
        return forward(call, stream);
      },
      in, params_version, stream, options);
}

/// A backward pass by the exported function `Own`.
template <auto Own>
static hipError_t attnBwd(const char *function, const attn_bwd_params &in,
                          int32_t params_version, Stream stream,
                          const attn_options *options) {
  return work<Own>(
      function,
      [&]() -> Status {
        if (Status bad = checkVersion<attn_bwd_params>(params_version))
          return bad;
        BackwardCall call;
        call.forward = common(in, options);
        call.dbias = in.DB;
        call.dout = in.DO;
        call.dq = in.DQ;
        call.dk = in.DK;
        call.dv = in.DV;
#if AOTRITON_VERSION_MINOR >= 12
        call.deterministic = options && options->deterministic;
#endif
        call.workspaces = workspacesOf(in);
        Status status =
            readSequences(in, params_version, call.forward.sequences);
        try {
          if (!status)
            status = backward(call, stream);
        } catch (...) { // out of the client's acquire(), or no memory
          freeWorkspaces(in);
          throw;
        }
        // Who takes the call frees them.
        if (!goesToFallback<Own>(status))
          freeWorkspaces(in);
        return status;
      },
      in, params_version, stream, options);
}

hipError_t attn_bwd(const attn_bwd_params &in, int32_t params_version,
                    Stream stream, const attn_options *options) {
  return attnBwd<&attn_bwd>("attn_bwd", in, params_version, stream, options);
}

#if AOTRITON_VERSION_MINOR == 11
/// By the same kernels: AITER's are a choice of AOTriton's.
hipError_t aiter_bwd(const attn_bwd_params &in, int32_t params_version,
                     Stream stream, const attn_options *options) {
  return attnBwd<&aiter_bwd>("aiter_bwd", in, params_version, stream, options);
}
#endif

} // namespace aotriton::v3::flash
