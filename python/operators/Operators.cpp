//===- Operators.cpp - attention as operators of PyTorch's, in C++ --------===//
//
// fovea::attention_forward and fovea::attention_backward by PyTorch's stable ABI:
// schemas and kernels, for processes with Python and without (docs/Python.md). Fake
// kernels and formulas of gradients are fovea/_torch_operators.py's, whichever kernels
// there are; so is what arguments mean.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "fovea_torch_schema.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdio>
#include <functional>

namespace fovea::operators {
namespace {

using torch::stable::detail::from;
using torch::stable::detail::to;

/// A text among the arguments, whose handle is given up.
std::string textOf(StableIValue value) {
  const auto handle = to<StringHandle>(value);
  const char *data = nullptr;
  size_t length = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle, &data));
  STABLE_TORCH_ERROR_CODE_CHECK(torch_string_length(handle, &length));
  std::string text(data, length);
  STABLE_TORCH_ERROR_CODE_CHECK(torch_delete_string(handle));
  return text;
}

std::vector<Tensor> tensorsOf(StableIValue value) {
  return to<std::optional<std::vector<Tensor>>>(value).value_or(
      std::vector<Tensor>());
}

/// The arguments that both operators have, by the places in the schema of one.
template <typename Of>
Features featuresOf(const StableIValue *stack) {
  return {to<double>(stack[Of::scale]),
          textOf(stack[Of::mask]),
          textOf(stack[Of::window]),
          textOf(stack[Of::score]),
          textOf(stack[Of::score_text]),
          tensorsOf(stack[Of::captures]),
          to<std::optional<Tensor>>(stack[Of::sinks]),
          to<double>(stack[Of::dropout_p]),
          to<std::optional<Tensor>>(stack[Of::seed]),
          textOf(stack[Of::listed]),
          tensorsOf(stack[Of::lists]),
          to<std::vector<int64_t>>(stack[Of::sizes])};
}

/// As kernels read it: of rows the last stride is 1.
Tensor plain(Tensor tensor) {
  const int64_t rank = tensor.dim();
  if (rank && tensor.strides()[rank - 1] != 1 && tensor.sizes()[rank - 1] > 1)
    return torch::stable::contiguous(tensor);
  return tensor;
}

/// Results lie as PyTorch's attention has them: the heads of a row side by side.
/// \param columns  of a row, where they are not those of `like`
Tensor empty(const Tensor &like, std::optional<int64_t> columns = {}) {
  const int64_t rank = like.dim();
  std::vector<int64_t> sizes(like.sizes().begin(), like.sizes().end());
  if (rank < 3)
    refuse("a tensor of attention has " + std::to_string(rank) +
           " dimensions, not 3 or 4");
  if (columns)
    sizes.back() = *columns;
  std::vector<int64_t> strides(rank, 1);
  const int64_t heads = sizes[rank - 3], rows = sizes[rank - 2];
  strides[rank - 3] = sizes.back();
  strides[rank - 2] = heads * sizes.back();
  if (rank == 4)
    strides[0] = heads * rows * sizes.back();
  int32_t dtype = 0, kind = 0, device = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &dtype));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &kind));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &device));
  AtenTensorHandle made = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      rank, sizes.data(), strides.data(), dtype, kind, device, &made));
  return Tensor(made);
}

void clear(const Tensor &tensor) {
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(tensor.get()));
}

constexpr auto kF32 = torch::headeronly::ScalarType::Float;

void forward(StableIValue *stack) {
  using Of = Forward;
  const Tensor q = plain(to<Tensor>(stack[Of::q])), k = plain(to<Tensor>(stack[Of::k])),
               v = plain(to<Tensor>(stack[Of::v]));
  const Features features = featuresOf<Of>(stack);
  const auto splits = to<int64_t>(stack[Of::splits]);
  if (!v.dim())
    refuse("v has no dimensions");
  const Tensor out = empty(q, v.sizes()[v.dim() - 1]);
  const Tensor lse = torch::stable::new_empty(
      q, {q.sizes().data(), static_cast<size_t>(q.dim() - 1)}, kF32);
  if (features.packs()) {
    clear(out);
    clear(lse);
  }
  ForwardCall(features, q, k, v, out, lse, splits).run();
  stack[0] = from(out);
  stack[1] = from(lse);
}

void backward(StableIValue *stack) {
  using Of = Backward;
  const Tensor dout = plain(to<Tensor>(stack[Of::dout]));
  auto dlse = to<std::optional<Tensor>>(stack[Of::dlse]);
  const Tensor q = plain(to<Tensor>(stack[Of::q])), k = plain(to<Tensor>(stack[Of::k])),
               v = plain(to<Tensor>(stack[Of::v])),
               out = plain(to<Tensor>(stack[Of::out])),
               lse = plain(to<Tensor>(stack[Of::lse]));
  const auto wanted = to<std::vector<bool>>(stack[Of::wanted]);
  const Features features = featuresOf<Of>(stack);
  const bool deterministic = to<bool>(stack[Of::deterministic]);
  if (dlse)
    dlse = plain(*dlse);
  if (wanted.size() != 4 + features.captures.size())
    refuse("wanted has " + std::to_string(wanted.size()) +
           " elements, not those of q, k, v, sinks and " +
           std::to_string(features.captures.size()) + " captures");

  // Those that are not wanted are empty: an operator's results are tensors.
  std::vector<Tensor> results;
  const auto add = [&](bool isWanted, auto make) {
    const int64_t none = 0;
    results.push_back(isWanted ? make() : torch::stable::new_empty(q, {&none, 1}));
  };
  // dk and dv come together, and those of captures with them.
  const bool ofKeys =
      wanted[1] || wanted[2] ||
      std::find(wanted.begin() + 4, wanted.end(), true) != wanted.end();
  add(wanted[0], [&] { return empty(q); });
  add(ofKeys, [&] { return empty(k); });
  add(ofKeys, [&] { return empty(v); });
  if (features.packs())
    for (const Tensor &result : results)
      clear(result);
  add(wanted[3], [&] {
    if (!features.sinks)
      refuse("the gradient of sinks is wanted, and there are no sinks");
    return torch::stable::empty_like(*features.sinks);
  });
  for (size_t i = 0; i < features.captures.size(); ++i)
    add(wanted[4 + i], [&] {
      return torch::stable::new_zeros(features.captures[i],
                                      features.captures[i].sizes(), kF32);
    });
  const auto given = [&](size_t at, bool isWanted) -> const Tensor * {
    return isWanted ? &results[at] : nullptr;
  };
  std::vector<const Tensor *> ofCaptures;
  for (size_t i = 4; i < results.size(); ++i)
    ofCaptures.push_back(given(i, wanted[i]));
  BackwardCall(features,
               {dout, dlse ? &*dlse : nullptr, q, k, v, out, lse,
                given(0, wanted[0]), given(1, ofKeys), given(2, ofKeys),
                given(3, wanted[3]), ofCaptures},
               deterministic)
      .run();
  // Summed in fp32, and given in the captures' types.
  for (size_t i = 4; i < results.size(); ++i)
    if (const auto type = features.captures[i - 4].scalar_type();
        wanted[i] && type != kF32)
      results[i] = torch::stable::to(results[i], type);
  stack[0] = from(results);
}

/// Runs a kernel. \return why it failed, or NULL
template <typename Of, void (*run)(StableIValue *)>
[[gnu::noinline]] const char *attempt(StableIValue *stack,
                                      uint64_t arguments) noexcept {
  static thread_local std::string message;
  try {
    if (arguments != Of::count)
      refuse(std::string(Of::name) + " has " + std::to_string(arguments) +
             " arguments, not " + std::to_string(unsigned(Of::count)));
    run(stack);
    return nullptr;
  } catch (const Error &error) {
    message = std::string(fovea_status_name(error.status())) + "(" +
              std::to_string(error.cause()) + "): " + error.what();
  } catch (const TypeError &error) {
    message = std::string("TypeError: ") + error.what();
  } catch (const std::exception &error) {
    message = error.what();
  }
  return message.c_str();
}

/// A kernel as PyTorch calls it. A failure is PyTorch's own exception, which the
/// package knows by how it begins: this library may have a C++ library of its own, as a
/// wheel's has, whose exceptions and unwinder know nothing of the other's. So nothing is
/// caught here, and nothing is to be cleared away.
template <typename Of, void (*run)(StableIValue *)>
void boxed(StableIValue *stack, uint64_t arguments, uint64_t) {
  if (const char *failure = attempt<Of, run>(stack, arguments))
    aoti_torch_check(false, Of::name, __FILE__, __LINE__, failure);
}

std::string registration; // why there is none

/// Registers; a failure may not leave an initializer.
template <typename Function>
void enter(Function function) {
  try {
    function();
  } catch (const std::exception &error) {
    registration = error.what();
    std::fprintf(stderr, "fovea: the operators in C++ cannot be registered: %s\n",
                 error.what());
  }
}

void implement(torch::stable::detail::StableLibrary &library) {
  enter([&] {
    library.impl(Forward::name, boxed<Forward, forward>);
    library.impl(Backward::name, boxed<Backward, backward>);
  });
}

STABLE_TORCH_LIBRARY_FRAGMENT(fovea, library) {
  enter([&] {
    library.def(Forward::schema);
    library.def(Backward::schema);
  });
}
STABLE_TORCH_LIBRARY_IMPL(fovea, CPU, library) { implement(library); }
// ROCm's key, too.
STABLE_TORCH_LIBRARY_IMPL(fovea, CUDA, library) { implement(library); }

} // namespace
} // namespace fovea::operators

extern "C" {

/// The library's version, as a text.
FOVEA_API const char *fovea_torch_version() { return FOVEA_TORCH_VERSION; }

/// Why the operators could not be registered; empty: they are.
FOVEA_API const char *fovea_torch_error() {
  return fovea::operators::registration.c_str();
}
}
