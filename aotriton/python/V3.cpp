//===- V3.cpp - pyaotriton.v3 ---------------------------------------------===//

#include "Bindings.h"

#include <cstring>

namespace pyaotriton {
namespace {

namespace flash3 = aotriton::v3::flash;
using aotriton::Stream;
using flash3::attn_fwd_params;
using flash3::attn_options;

#if AOTRITON_VERSION_MINOR < 11

/// The workspace is a tensor as the others are.
using BwdParams = flash3::attn_bwd_params;

void fill(BwdParams &) {}

#else

/// The library's parameters with the objects that their lazy tensors point at:
/// a call may come after the names in Python are gone.
struct BwdParams : flash3::attn_bwd_params {
  py::object delta = py::none(), accumulator = py::none();

  /// The lazy tensors as they are before a call, which frees them.
  void fill() {
    D = lazy<2>(delta);
    DQ_ACC = lazy<4>(accumulator);
  }

private:
  template <int Rank>
  static aotriton::LazyTensor<Rank> lazy(const py::object &object) {
    return object.is_none() ? aotriton::LazyTensor<Rank>()
                            : object.cast<Lazy<Rank> &>().tensor();
  }
};

/// A member that holds a lazy tensor of a rank, or None.
template <int Rank>
void defineLazyMember(py::class_<BwdParams> &type, const char *name,
                      py::object BwdParams::*member, const char *doc) {
  type.def_property(
      name, [member](const BwdParams &self) { return self.*member; },
      [member, name](BwdParams &self, py::object value) {
        if (!value.is_none() && !py::isinstance<Lazy<Rank>>(value))
          throw py::type_error("attn_bwd_params." + std::string(name) +
                               ": a lazy_tensor.LT" + std::to_string(Rank) +
                               " or None, not a " +
                               std::string(py::str(py::type::of(value))));
        self.*member = std::move(value);
      },
      doc);
}

void fill(BwdParams &params) { params.fill(); }

#endif

/// The members that both passes have.
template <typename Type, typename... Extra>
void defineCommon(py::class_<Type, Extra...> &type) {
  type.def(py::init<>(), "All empty.")
      .def_readwrite("Q", &Type::Q)
      .def_readwrite("K", &Type::K)
      .def_readwrite("V", &Type::V)
      .def_readwrite("B", &Type::B)
      .def_readwrite("Sm_scale", &Type::Sm_scale)
      .def_readwrite("L", &Type::L)
      .def_readwrite("Out", &Type::Out)
      .def_readwrite("Max_seqlen_q", &Type::Max_seqlen_q)
      .def_readwrite("Max_seqlen_k", &Type::Max_seqlen_k)
      .def_readwrite("dropout_p", &Type::dropout_p)
      .def_readwrite("philox_seed_ptr", &Type::philox_seed_ptr)
      .def_readwrite("philox_offset1", &Type::philox_offset1)
      .def_readwrite("philox_offset2", &Type::philox_offset2)
      .def_readwrite("causal_type", &Type::causal_type)
      .def_readwrite("window_left", &Type::window_left)
      .def_readwrite("window_right", &Type::window_right)
#if AOTRITON_VERSION_MINOR >= 14
      .def_readwrite("seqinfo_q0", &Type::seqinfo_q0)
      .def_readwrite("seqinfo_k0", &Type::seqinfo_k0)
      .def_readwrite("seqinfo_q1", &Type::seqinfo_q1)
      .def_readwrite("seqinfo_k1", &Type::seqinfo_k1)
      .def_readwrite("varlen_bits", &Type::varlen_bits)
#else
      .def_readwrite("cu_seqlens_q", &Type::cu_seqlens_q)
      .def_readwrite("cu_seqlens_k", &Type::cu_seqlens_k)
      .def_readwrite("varlen_type", &Type::varlen_type)
#if AOTRITON_VERSION_MINOR >= 12
      .def_readwrite("seq_strides_q", &Type::seq_strides_q)
      .def_readwrite("seq_strides_k", &Type::seq_strides_k)
#endif
#endif
      ;
  type.attr("kVersion") = int32_t(Type::kVersion);
}

#if AOTRITON_VERSION_MINOR >= 14

/// A class of named numbers.
struct NumberRow {
  const char *name;
  uint32_t value;
};
template <typename Type, size_t Count>
void defineNumbers(py::module_ &module, const char *name,
                   const NumberRow (&rows)[Count]) {
  py::class_<Type> type(module, name);
  for (const NumberRow &row : rows)
    type.attr(row.name) = row.value;
}

/// Sets a bit field of `Bits` bits; larger numbers have no place in it.
template <unsigned Bits>
uint32_t fits(const char *name, uint32_t value) {
  if (value >> Bits)
    throw py::value_error(std::string(name) + " is " + std::to_string(value) +
                          ", which " + std::to_string(Bits) +
                          " bits do not hold");
  return value;
}

void defineVarlen(py::module_ &module) {
  using flash3::VarlenBits;
  using flash3::VarlenLength;
  using flash3::VarlenLseLayout;
  using flash3::VarlenMode;
  using flash3::VarlenPosition;
  using flash3::VarlenStacked;
  py::class_<VarlenMode>(module, "VarlenMode",
                         "How the sequences of one side lie in memory.")
      .def(py::init<>(), "Dense.")
      .def_property(
          "stacked", [](const VarlenMode &self) { return int(self.stacked); },
          [](VarlenMode &self, uint32_t value) {
            self.stacked = fits<1>("VarlenMode.stacked", value);
          },
          "VarlenStacked")
      .def_property(
          "length", [](const VarlenMode &self) { return int(self.length); },
          [](VarlenMode &self, uint32_t value) {
            self.length = fits<2>("VarlenMode.length", value);
          },
          "VarlenLength")
      .def_property(
          "position", [](const VarlenMode &self) { return int(self.position); },
          [](VarlenMode &self, uint32_t value) {
            self.position = fits<2>("VarlenMode.position", value);
          },
          "VarlenPosition");
  py::class_<VarlenBits>(module, "VarlenBits",
                         "How sequences of different lengths lie in memory.")
      .def(py::init([] { return VarlenBits{}; }), "Dense.")
      .def_readwrite("qmode", &VarlenBits::qmode)
      .def_readwrite("kmode", &VarlenBits::kmode)
      .def_property(
          "lse_layout",
          [](const VarlenBits &self) { return int(self.lse_layout); },
          [](VarlenBits &self, uint32_t value) {
            self.lse_layout = fits<2>("VarlenBits.lse_layout", value);
          },
          "VarlenLseLayout");
  defineNumbers<VarlenStacked>(
      module, "VarlenStacked",
      {{"BHSD", VarlenStacked::BHSD}, {"THD", VarlenStacked::THD}});
  defineNumbers<VarlenLength>(module, "VarlenLength",
                              {{"MAX", VarlenLength::MAX},
                               {"CUMULATIVE", VarlenLength::CUMULATIVE},
                               {"INDIVIDUAL", VarlenLength::INDIVIDUAL}});
  defineNumbers<VarlenPosition>(module, "VarlenPosition",
                                {{"IMPLIED", VarlenPosition::IMPLIED},
                                 {"REUSE", VarlenPosition::REUSE},
                                 {"ARRAY", VarlenPosition::ARRAY}});
  defineNumbers<VarlenLseLayout>(
      module, "VarlenLseLayout",
      {{"HT", VarlenLseLayout::HT}, {"TH", VarlenLseLayout::TH}});
  module.def(
      "varlen_to_wire",
      [](const VarlenBits &bits) {
        uint32_t word = 0;
        static_assert(sizeof(bits) == sizeof(word));
        std::memcpy(&word, &bits, sizeof(word));
        return word;
      },
      py::arg("varlen_bits"), "The word that these bits are.");
}

#endif

/// Binds a call of the library that takes `Params`.
template <typename Params, typename Base>
void defineCall(py::module_ &module, const char *name, const char *doc,
                hipError_t (*function)(const Base &, int32_t, Stream,
                                       const attn_options *)) {
  module.def(
      name,
      [function](const Params &params, int32_t version, const Stream *stream,
                 const attn_options *options) {
        // Other threads may change them meanwhile.
        Params given = params;
        if constexpr (std::is_same_v<Params, BwdParams>)
          fill(given);
        return statusOf([&] {
          return function(given, version, streamOf(stream), options);
        });
      },
      doc, py::arg("params"), py::arg("params_version"),
      py::arg("stream") = py::none(), py::arg("options") = py::none());
}

} // namespace

void defineV3(py::module_ &module) {
  py::module_ v3 = module.def_submodule("v3", "The calls of today.");
  py::module_ calls =
      v3.def_submodule("flash", "Attention, with structures of parameters.");
  py::class_<attn_options>(calls, "attn_options", "How a call is to be served.")
      .def(py::init<>())
#if AOTRITON_VERSION_MINOR >= 11
      .def_readwrite("force_backend_index", &attn_options::force_backend_index,
                     "-1: the library chooses.")
#endif
#if AOTRITON_VERSION_MINOR >= 12
      .def_readwrite("deterministic", &attn_options::deterministic,
                     "Gradients are the same in every run.")
#endif
      ;
#if AOTRITON_VERSION_MINOR >= 14
  defineVarlen(calls);
#endif
  py::class_<attn_fwd_params> forward(
      calls, "attn_fwd_params",
      "Parameters of a forward pass; what is not set is none.");
  defineCommon(forward);
  forward
      .def_readwrite("philox_seed_output", &attn_fwd_params::philox_seed_output)
      .def_readwrite("philox_offset_output",
                     &attn_fwd_params::philox_offset_output)
      .def_readwrite("encoded_softmax", &attn_fwd_params::encoded_softmax)
      .def_readwrite("persistent_atomic_counter",
                     &attn_fwd_params::persistent_atomic_counter);
  py::class_<BwdParams> backward(
      calls, "attn_bwd_params",
      "Parameters of a backward pass; what is not set is none.");
  defineCommon(backward);
  backward.def_readwrite("DO", &BwdParams::DO)
      .def_readwrite("DK", &BwdParams::DK)
      .def_readwrite("DV", &BwdParams::DV)
      .def_readwrite("DQ", &BwdParams::DQ)
      .def_readwrite("DB", &BwdParams::DB);
#if AOTRITON_VERSION_MINOR < 11
  backward.def_readwrite("D", &BwdParams::D,
                         "The workspace: fp32, of the shape of L.");
#else
  defineLazyMember<2>(backward, "D", &BwdParams::delta,
                      "The workspace: a lazy_tensor.LT2.");
  defineLazyMember<4>(backward, "DQ_ACC", &BwdParams::accumulator,
                      "The other workspace: a lazy_tensor.LT4.");
#endif
  defineCall<attn_fwd_params>(calls, "attn_fwd",
                              "Attention, forward. Returns a hipError_t.",
                              &flash3::attn_fwd);
  defineCall<BwdParams>(calls, "attn_bwd",
                        "Attention, backward. Returns a hipError_t.",
                        &flash3::attn_bwd);
#if AOTRITON_VERSION_MINOR == 11
  defineCall<BwdParams>(calls, "aiter_bwd",
                        "As attn_bwd: there are no kernels of AITER's.",
                        &flash3::aiter_bwd);
#endif
}

} // namespace pyaotriton
