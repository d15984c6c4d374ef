//===- TrueLibrary.cpp - a library to which calls are handed on -----------===//
//
// Stands for AOTriton's own, with all names of its interface: each function
// calls others by their public names, as the library is free to do, and gives
// what FallbackTest expects only if it was this library that they reached.
//
//===----------------------------------------------------------------------===//

#include "TrueLibrary.h"

namespace aotriton {

template class TensorView<1>;
template class TensorView<2>;
template class TensorView<3>;
template class TensorView<4>;

Gpu getGpuFromStream(hipStream_t) { return kTrueGpu; }
int getMultiProcessorCount(hipStream_t) { return kTrueUnits; }
bool isArchExperimentallySupported(hipStream_t stream) {
  return getGpuFromStream(stream) == kTrueGpu;
}
#if AOTRITON_VERSION_MINOR >= 12
bool isArchTechPreview(hipStream_t stream) {
  return isArchExperimentallySupported(stream);
}
#endif

namespace v2::flash {

hipError_t check_gpu(Stream stream) {
  return isArchExperimentallySupported(stream.native()) ? hipSuccess
                                                        : hipErrorUnknown;
}

} // namespace v2::flash

namespace {

/// `answer` if the names lead here.
hipError_t ifTrue(Stream stream, hipError_t answer) {
  const bool here = v2::flash::check_gpu(stream) == hipSuccess &&
                    getGpuFromStream(stream.native()) == kTrueGpu &&
                    getMultiProcessorCount(stream.native()) == kTrueUnits;
  return here ? answer : hipErrorUnknown;
}

} // namespace

namespace v2::flash {

hipError_t debug_simulate_encoded_softmax(TensorView<4>, float, TensorView<0>,
                                          TensorView<0>, uint64_t,
                                          Stream stream) {
  return ifTrue(stream, kTrueStatus);
}

#if AOTRITON_VERSION_MINOR < 13
hipError_t attn_fwd(T4, T4, T4, T4, float, T2, T4, float, T0, T0, int64_t, T0,
                    T0, T4, bool, T0, Stream stream, FwdExtraArguments *) {
  return v3::flash::attn_fwd({}, v3::flash::attn_fwd_params::kVersion, stream,
                             nullptr);
}
hipError_t attn_fwd_compact_varlen(T4 q, T4 k, T4 v, T4 b, T1, T1, int32_t,
                                   int32_t, float scale, T2 lse, T4 out,
                                   float dropout, T0 seed, T0 offset,
                                   int64_t offset2, T0, T0, T4, bool causal, T0,
                                   Stream stream, FwdExtraArguments *) {
  return attn_fwd(q, k, v, b, scale, lse, out, dropout, seed, offset, offset2,
                  {}, {}, {}, causal, {}, stream, nullptr);
}
hipError_t attn_bwd(T4, T4, T4, T4, float, T4, T4, T4, T4, T4, T4, T2, T2,
                    float, T0, T0, int64_t, bool, Stream stream,
                    BwdExtraArguments *) {
  return v3::flash::attn_bwd({}, v3::flash::attn_bwd_params::kVersion, stream,
                             nullptr);
}
hipError_t attn_bwd_fused(T4, T4, T4, T4, float, T4, T4, T4, T4, T4, T4, T2,
                          float, T0, T0, int64_t, bool, Stream stream,
                          FusedBwdExtraArguments *) {
  return attn_bwd({}, {}, {}, {}, 0, {}, {}, {}, {}, {}, {}, {}, {}, 0, {}, {},
                  0, false, stream, nullptr);
}
hipError_t attn_bwd_compact_varlen(T4, T4, T4, T1, T1, int32_t, int32_t, T4,
                                   float, T4, T4, T4, T4, T4, T4, T2, T2, float,
                                   T0, T0, int64_t, bool, Stream stream,
                                   BwdExtraArguments *) {
  return attn_bwd_fused({}, {}, {}, {}, 0, {}, {}, {}, {}, {}, {}, {}, 0, {},
                        {}, 0, false, stream, nullptr);
}
#endif

} // namespace v2::flash

namespace v3::flash {

attn_fwd_params::attn_fwd_params() = default;
attn_bwd_params::attn_bwd_params() = default;

hipError_t attn_fwd(const attn_fwd_params &params, int32_t, Stream stream,
                    const attn_options *) {
  // A marked call is one to fail.
  return ifTrue(stream,
                params.dropout_p == kFailingDropout ? kTrueStatus : hipSuccess);
}
hipError_t attn_bwd(const attn_bwd_params &params, int32_t, Stream stream,
                    const attn_options *options) {
  const hipError_t error =
      attn_fwd({}, attn_fwd_params::kVersion, stream, options);
  params.D.free();
  params.DQ_ACC.free();
  return error;
}
#if AOTRITON_VERSION_MINOR < 12
hipError_t aiter_bwd(const attn_bwd_params &params, int32_t version,
                     Stream stream, const attn_options *options) {
  return attn_bwd(params, version, stream, options);
}
#endif

} // namespace v3::flash

} // namespace aotriton
