//===- Bindings.h - what the parts of pyaotriton share ----------*- C++ -*-===//
//
// pyaotriton, the Python module of AOTriton's interface: its names over the
// functions of aotriton/include, one part a file. docs/Pyaotriton.md lists
// them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_PYTHON_BINDINGS_H
#define FOVEA_AOTRITON_PYTHON_BINDINGS_H

#include <aotriton/flash.h>
#include <fovea/aotriton.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace pyaotriton {

namespace py = pybind11;

/// HIP's functions, statuses and memory.
void defineHip(py::module_ &module);
/// Element types, streams and tensors.
void defineTensors(py::module_ &module);
/// The submodules.
#if AOTRITON_VERSION_MINOR >= 11
void defineLazyTensor(py::module_ &module);
#endif
void defineV2(py::module_ &module);
void defineV3(py::module_ &module);

/// Calls a function of HIP by its name. Where there is none, the status says
/// why: hipErrorNoDevice of a library that is not there, say.
template <typename... Parameters, typename... Arguments>
hipError_t callHip(const char *name, hipError_t (*)(Parameters...),
                   Arguments... arguments) {
  auto *function = reinterpret_cast<hipError_t (*)(Parameters...)>(
      fovea_aotriton_hip_symbol(name));
  return function ? function(arguments...)
                  : hipError_t(fovea_aotriton_last_status());
}

/// A null pointer of the function's type, for callHip().
template <typename... Parameters>
constexpr hipError_t (*hipSignature())(Parameters...) {
  return nullptr;
}

/// How a failure shows, by FOVEA_AOTRITON_ERRORS; where that is not set, it is
/// this module's to say.
enum class Errors { Warn, Throw, Status };
Errors howErrorsShow();

/// HIP's first failure in what the library called back during a call of the
/// thread: there nothing can be returned that says so.
struct CallbackFailure {
  hipError_t status = hipSuccess;
  std::string message;

  /// Of the calling thread.
  static CallbackFailure &latest();
  /// Keeps an outcome of HIP's, and gives it back.
  static hipError_t note(const char *function, const std::string &what,
                         hipError_t status);
};

/// Why the thread's latest call failed; the empty string when it did not.
std::string lastMessage();

/// Runs `call()`, which calls the library, without the interpreter's lock. As
/// AOTriton's module a failure is a status; its reason is a RuntimeWarning,
/// where FOVEA_AOTRITON_ERRORS does not say otherwise.
template <typename Call>
hipError_t statusOf(Call call) {
  hipError_t status = hipSuccess;
  CallbackFailure &failure = CallbackFailure::latest();
  failure = {};
  {
    py::gil_scoped_release released;
    try {
      status = call();
    } catch (const std::runtime_error &) {
      status = hipError_t(fovea_aotriton_last_status());
      if (status == hipSuccess)
        throw; // somebody else's
    }
  }
  // What failed for want of memory did so with HIP's status.
  if (failure.status != hipSuccess &&
      (status == hipSuccess || status == hipErrorOutOfMemory))
    status = failure.status;
  if (status == hipSuccess)
    return status;
  const Errors how = howErrorsShow();
  if (how == Errors::Throw)
    throw std::runtime_error("fovea-aotriton: " + lastMessage());
  if (how == Errors::Warn &&
      PyErr_WarnEx(PyExc_RuntimeWarning, lastMessage().c_str(), 1) < 0)
    throw py::error_already_set();
  return status;
}

/// The stream of an argument that may be None.
inline aotriton::Stream streamOf(const aotriton::Stream *stream) {
  return stream ? *stream : aotriton::Stream();
}

#if AOTRITON_VERSION_MINOR >= 11
/// A tensor that is allocated when the library asks for it, and freed when it
/// is done with it or with the object.
template <int Rank>
class Lazy {
public:
  enum class Fill { None, Zeros };
  /// fp32 of the sizes of `like`, on `device`; without one on the current one.
  /// ValueError when no memory has so many bytes.
  Lazy(const aotriton::TensorView<Rank> &like, std::optional<int> device,
       Fill fill);
#if AOTRITON_VERSION_MINOR >= 12
  /// A tensor that is there already.
  explicit Lazy(const aotriton::TensorView<Rank> &tensor) : eager(tensor) {}
#endif
  Lazy(const Lazy &) = delete;
  ~Lazy() { (void)release(); }

  /// What the library is given; it points at this object.
  aotriton::LazyTensor<Rank> tensor();

private:
  using Self = typename aotriton::LazyTensor<Rank>::Self;
  static Lazy *of(Self self);
  static aotriton::TensorView<Rank> acquire(Self self);
  static void dispose(Self self);
  hipError_t allocate();
  hipError_t fillZeros();
  hipError_t release();
  /// Calls HIP, and keeps its failure for the call that this is a part of.
  template <typename... Parameters, typename... Arguments>
  hipError_t hip(const char *name, hipError_t (*signature)(Parameters...),
                 Arguments... arguments);

  std::array<uint64_t, Rank> sizes = {};
  size_t bytes = 0;
  std::optional<int> device;
  Fill fill = Fill::None;
  void *memory = nullptr;
  aotriton::TensorView<Rank> eager;
};
#endif

} // namespace pyaotriton

#endif // FOVEA_AOTRITON_PYTHON_BINDINGS_H
