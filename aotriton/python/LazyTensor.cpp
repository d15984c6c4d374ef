//===- LazyTensor.cpp - pyaotriton.lazy_tensor ----------------------------===//
//
// Workspaces that the library asks for if its kernels need them. AOTriton's
// module has PyTorch allocate them and is built with PyTorch; here HIP does.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"

#include <utility>

#if AOTRITON_VERSION_MINOR >= 11 // 0.10 has none

namespace pyaotriton {

template <int Rank>
Lazy<Rank>::Lazy(const aotriton::TensorView<Rank> &like,
                 std::optional<int> device, Fill fill)
    : sizes(like.sizes()), bytes(sizeof(float)), device(device), fill(fill) {
  for (uint64_t size : sizes)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw py::value_error(
          "lazy_tensor: like_tensor has sizes " +
          std::string(py::str(py::cast(sizes))) +
          ", which have more bytes in fp32 than 64 bits count");
}

template <int Rank>
aotriton::LazyTensor<Rank> Lazy<Rank>::tensor() {
  aotriton::LazyTensor<Rank> result;
#if AOTRITON_VERSION_MINOR >= 12
  if (eager) {
    result.eager = eager;
    result.acquire = [](Self self) { return self->eager; };
    return result;
  }
  if (!sizes[0]) // a null tensor, which is not to be needed
    return result;
#endif
  result.cookie = this;
  result.acquire = &Lazy::acquire;
  result.dispose = &Lazy::dispose;
  return result;
}

template <int Rank>
Lazy<Rank> *Lazy<Rank>::of(Self self) {
#if AOTRITON_VERSION_MINOR >= 12
  return static_cast<Lazy *>(self->cookie);
#else
  return static_cast<Lazy *>(self);
#endif
}

template <int Rank>
aotriton::TensorView<Rank> Lazy<Rank>::acquire(Self self) {
  Lazy *lazy = of(self);
  // No data then: the call fails, by the status that HIP gave.
  if (!lazy->memory && lazy->allocate() != hipSuccess)
    return {};
  std::array<uint64_t, Rank> strides = {};
  uint64_t stride = 1;
  for (int i = Rank; i-- > 0; stride *= lazy->sizes[i])
    strides[i] = stride;
  return {reinterpret_cast<intptr_t>(lazy->memory), lazy->sizes, strides,
          aotriton::DType::kFloat32};
}

template <int Rank>
void Lazy<Rank>::dispose(Self self) {
  (void)of(self)->release();
}

template <int Rank>
template <typename... Parameters, typename... Arguments>
hipError_t Lazy<Rank>::hip(const char *name,
                           hipError_t (*signature)(Parameters...),
                           Arguments... arguments) {
  return CallbackFailure::note(name,
                               "lazy_tensor.LT" + std::to_string(Rank) +
                                   " of " + std::to_string(bytes) + " bytes",
                               callHip(name, signature, arguments...));
}

template <int Rank>
hipError_t Lazy<Rank>::allocate() {
  int before = 0;
  if (device)
    if (hipError_t bad = hip("hipGetDevice", hipSignature<int *>(), &before))
      return bad;
  const bool elsewhere = device && before != *device;
  if (elsewhere)
    if (hipError_t bad = hip("hipSetDevice", hipSignature<int>(), *device))
      return bad;
  hipError_t status =
      hip("hipMalloc", hipSignature<void **, size_t>(), &memory, bytes);
  if (status != hipSuccess)
    memory = nullptr;
  else if (fill == Fill::Zeros)
    status = fillZeros();
  if (elsewhere) {
    const hipError_t back = hip("hipSetDevice", hipSignature<int>(), before);
    status = status == hipSuccess ? back : status;
  }
  if (status != hipSuccess)
    (void)release();
  return status;
}

/// Streams that do not wait for the default one find the zeros.
template <int Rank>
hipError_t Lazy<Rank>::fillZeros() {
  if (hipError_t bad = hip("hipMemset", hipSignature<void *, int, size_t>(),
                           memory, 0, bytes))
    return bad;
  return hip("hipStreamSynchronize", hipSignature<void *>(), nullptr);
}

/// Work that uses it ends first: hipFree waits.
template <int Rank>
hipError_t Lazy<Rank>::release() {
  void *freed = std::exchange(memory, nullptr);
  return freed ? hip("hipFree", hipSignature<void *>(), freed) : hipSuccess;
}

template class Lazy<2>;
template class Lazy<4>;

namespace {

template <int Rank>
void defineCreator(py::module_ &module, const char *name,
                   typename Lazy<Rank>::Fill fill, const char *doc) {
  module.def(
      name,
      [fill](const aotriton::TensorView<Rank> &like,
             std::optional<int> device) {
        return std::make_unique<Lazy<Rank>>(like, device, fill);
      },
      py::arg("like_tensor"), py::arg("device_index"), doc);
}

#if AOTRITON_VERSION_MINOR >= 12
template <int Rank>
void defineEager(py::module_ &module, const char *name, const char *doc) {
  module.def(
      name,
      [](const aotriton::TensorView<Rank> &tensor) {
        return std::make_unique<Lazy<Rank>>(tensor);
      },
      py::arg("tensor_view"), doc);
}
#endif

} // namespace

void defineLazyTensor(py::module_ &module) {
  py::module_ lazy = module.def_submodule(
      "lazy_tensor", "Tensors that are allocated when they are needed.");
  py::class_<Lazy<4>>(lazy, "LT4", "A lazy tensor of four dimensions.");
  py::class_<Lazy<2>>(lazy, "LT2", "A lazy tensor of two dimensions.");
  defineCreator<4>(lazy, "dq_acc", Lazy<4>::Fill::Zeros,
                   "fp32 zeros of the sizes of `like_tensor`, contiguous, on "
                   "that device; None: the current one.");
  defineCreator<2>(lazy, "delta", Lazy<2>::Fill::None,
                   "fp32 of the sizes of `like_tensor`, contiguous, on that "
                   "device; None: the current one.");
#if AOTRITON_VERSION_MINOR >= 12
  defineEager<2>(lazy, "eager_delta", "A tensor that is there already.");
  defineEager<4>(lazy, "eager_null_dq_acc",
                 "A tensor that is there already, or one without data.");
#endif
}

} // namespace pyaotriton

#endif
