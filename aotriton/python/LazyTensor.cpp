//===- LazyTensor.cpp - pyaotriton.lazy_tensor ----------------------------===//
//
// Workspaces that the library asks for if its kernels need them. AOTriton's
// module has PyTorch allocate them and is built with PyTorch; here HIP does.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"

namespace pyaotriton {

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
  if (!lazy->memory)
    lazy->allocate();
  std::array<uint64_t, Rank> strides = {};
  uint64_t stride = 1;
  for (int i = Rank; i-- > 0; stride *= lazy->sizes[i])
    strides[i] = stride;
  return {reinterpret_cast<intptr_t>(lazy->memory), lazy->sizes, strides,
          aotriton::DType::kFloat32};
}

template <int Rank>
void Lazy<Rank>::dispose(Self self) {
  of(self)->release();
}

template <int Rank>
void Lazy<Rank>::allocate() {
  size_t bytes = sizeof(float);
  for (uint64_t size : sizes)
    bytes *= size;
  int before = 0;
  const bool elsewhere =
      device &&
      callHip("hipGetDevice", hipSignature<int *>(), &before) == hipSuccess &&
      before != *device;
  if (elsewhere &&
      callHip("hipSetDevice", hipSignature<int>(), *device) != hipSuccess)
    return; // no data: the call that wants it says so
  if (callHip("hipMalloc", hipSignature<void **, size_t>(), &memory, bytes) !=
      hipSuccess)
    memory = nullptr;
  else if (fill == Fill::Zeros &&
           // Streams that do not wait for the default one find zeros.
           (callHip("hipMemset", hipSignature<void *, int, size_t>(), memory, 0,
                    bytes) != hipSuccess ||
            callHip("hipStreamSynchronize", hipSignature<void *>(), nullptr) !=
                hipSuccess))
    release();
  if (elsewhere)
    (void)callHip("hipSetDevice", hipSignature<int>(), before);
}

template <int Rank>
void Lazy<Rank>::release() {
  // Work that uses it ends first: hipFree waits.
  if (memory)
    (void)callHip("hipFree", hipSignature<void *>(), memory);
  memory = nullptr;
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
