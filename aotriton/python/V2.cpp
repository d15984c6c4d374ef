//===- V2.cpp - pyaotriton.v2 ---------------------------------------------===//

#include "Bindings.h"

namespace pyaotriton {
namespace {

namespace flash2 = aotriton::v2::flash;
using T4 = aotriton::TensorView<4>;
using T2 = aotriton::TensorView<2>;
using T1 = aotriton::TensorView<1>;
using T0 = aotriton::TensorView<0>;
using aotriton::Stream;

#if AOTRITON_VERSION_MINOR < 13

/// A function of the library whose last parameters are the stream and the extra
/// arguments, behind `Parameters`.
template <typename Extra, typename... Parameters>
struct Call {
  /// Binds it; the last two may be left out, and `names` are those of the
  /// others.
  template <typename... Names>
  static void define(py::module_ &module, const char *name, const char *doc,
                     hipError_t (*function)(Parameters..., Stream, Extra *),
                     Names... names) {
    static_assert(sizeof...(Parameters) == sizeof...(Names));
    module.def(
        name,
        [function](Parameters... arguments, const Stream *stream,
                   Extra *extra) {
          return statusOf(
              [&] { return function(arguments..., streamOf(stream), extra); });
        },
        doc, py::arg(names)..., py::arg("stream") = py::none(),
        py::arg("extargs") = py::none());
  }
};

void defineCalls(py::module_ &module) {
  using aotriton::v2::CppTune;
  using flash2::BwdExtraArguments;
  using flash2::FusedBwdExtraArguments;
  using flash2::FwdExtraArguments;
  py::class_<FwdExtraArguments, CppTune>(module, "FwdExtraArguments",
                                         "Empty: nothing is tuned here.")
      .def(py::init<>());
  py::class_<BwdExtraArguments>(module, "BwdExtraArguments",
                                "Empty: nothing is tuned here.")
      .def(py::init<>());
  py::class_<FusedBwdExtraArguments, CppTune>(module, "FusedBwdExtraArguments",
                                              "Empty: nothing is tuned here.")
      .def(py::init<>());
  Call<FwdExtraArguments, T4, T4, T4, T4, float, T2, T4, float, T0, T0, int64_t,
       T0, T0, T4, bool,
       T0>::define(module, "attn_fwd",
                   "Attention, forward. Returns a hipError_t.",
                   &flash2::attn_fwd, "q", "k", "v", "b", "sm_scale",
                   "softmax_lse", "out", "dropout_p", "philox_seed",
                   "philox_offset1", "philox_offset2", "philox_seed_output",
                   "philox_offset_output", "encoded_softmax", "is_causal",
                   "atomic_for_causal");
  Call<FwdExtraArguments, T4, T4, T4, T4, T1, T1, int32_t, int32_t, float, T2,
       T4, float, T0, T0, int64_t, T0, T0, T4, bool, T0>::
      define(module, "attn_fwd_compact_varlen",
             "Attention of sequences one behind the other, forward. Returns a "
             "hipError_t.",
             &flash2::attn_fwd_compact_varlen, "q", "k", "v", "b",
             "cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k",
             "sm_scale", "softmax_lse", "out", "dropout_p", "philox_seed",
             "philox_offset1", "philox_offset2", "philox_seed_output",
             "philox_offset_output", "encoded_softmax", "is_causal",
             "atomic_for_causal");
  Call<BwdExtraArguments, T4, T4, T4, T4, float, T4, T4, T4, T4, T4, T4, T2, T2,
       float, T0, T0, int64_t,
       bool>::define(module, "attn_bwd",
                     "Attention, backward. Returns a hipError_t.",
                     &flash2::attn_bwd, "q", "k", "v", "b", "sm_scale", "out",
                     "dout", "dq", "dk", "dv", "db", "softmax_lse", "delta",
                     "dropout_p", "philox_seed", "philox_offset1",
                     "philox_offset2", "is_causal");
  Call<FusedBwdExtraArguments, T4, T4, T4, T4, float, T4, T4, T4, T4, T4, T4,
       T2, float, T0, T0, int64_t, bool>::
      define(module, "attn_bwd_fused",
             "Attention, backward, without a workspace. Returns a hipError_t.",
             &flash2::attn_bwd_fused, "q", "k", "v", "b", "sm_scale", "out",
             "dout", "dq", "dk", "dv", "db", "softmax_lse", "dropout_p",
             "philox_seed", "philox_offset1", "philox_offset2", "is_causal");
  Call<BwdExtraArguments, T4, T4, T4, T1, T1, int32_t, int32_t, T4, float, T4,
       T4, T4, T4, T4, T4, T2, T2, float, T0, T0, int64_t, bool>::
      define(module, "attn_bwd_compact_varlen",
             "Attention of sequences one behind the other, backward. Returns a "
             "hipError_t.",
             &flash2::attn_bwd_compact_varlen, "q", "k", "v", "cu_seqlens_q",
             "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k", "b", "sm_scale",
             "out", "dout", "dq", "dk", "dv", "db", "softmax_lse", "delta",
             "dropout_p", "philox_seed", "philox_offset1", "philox_offset2",
             "is_causal");
}

void defineTuning(py::module_ &module) {
  using aotriton::v2::CppTuneSpecialKernelIndex;
  py::class_<aotriton::v2::CppTune>(module, "CppTune",
                                    "Empty: nothing is tuned here.")
      .def(py::init<>());
  py::enum_<CppTuneSpecialKernelIndex>(module, "CppTuneSpecialKernelIndex")
      .value("kDefault", CppTuneSpecialKernelIndex::kDefault)
      .value("kSkipGPUCall", CppTuneSpecialKernelIndex::kSkipGPUCall)
      .export_values();
}

#endif

} // namespace

void defineV2(py::module_ &module) {
  py::module_ v2 = module.def_submodule("v2", "The older calls.");
#if AOTRITON_VERSION_MINOR < 13
  defineTuning(v2);
#endif
  py::module_ calls =
      v2.def_submodule("flash", "Attention, an argument for each value.");
  calls.def(
      "check_gpu",
      [](const Stream *stream) {
        return statusOf([&] { return flash2::check_gpu(streamOf(stream)); });
      },
      py::arg("stream"),
      "hipSuccess when there are kernels of both passes for the device.");
#if AOTRITON_VERSION_MINOR < 13
  defineCalls(calls);
#endif
  calls.def(
      "debug_simulate_encoded_softmax",
      [](T4 r, float p, T0 seed, T0 offset1, uint64_t offset2,
         const Stream *stream) {
        return statusOf([&] {
          return flash2::debug_simulate_encoded_softmax(
              r, p, seed, offset1, offset2, streamOf(stream));
        });
      },
      "Writes which weights dropout keeps. Returns a hipError_t.", py::arg("r"),
      py::arg("dropout_p"), py::arg("philox_seed_ptr"),
      py::arg("philox_offset1"), py::arg("philox_offset2"),
      py::arg("stream") = py::none());
}

} // namespace pyaotriton
