//===- Status.h - outcomes of the interface's calls -------------*- C++ -*-===//
//
// A HIP status with the text that it lacks. Every exported call ends in
// finish(), which keeps the text for fovea_aotriton_last_message() and says it
// once on standard error, or throws, as FOVEA_AOTRITON_ERRORS asks
// (docs/AOTriton.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_STATUS_H
#define FOVEA_AOTRITON_STATUS_H

#include <aotriton/runtime.h>
#include <new>
#include <string>
#include <utility>

namespace fovea::shim {

struct Status {
  hipError_t code = hipSuccess;
  std::string message;
  /// HIP, the device or the packages failed; it is not that the call asks for
  /// something that there is not.
  bool broken = false;
  /// Whether it is a failure.
  explicit operator bool() const { return code != hipSuccess; }
  bool isRefusal() const { return code != hipSuccess && !broken; }
};

/// There are no kernels for what the call asks, or it contradicts itself.
inline Status refuse(hipError_t code, std::string message) {
  return {code, std::move(message)};
}
/// What would be needed does not work.
inline Status fail(hipError_t code, std::string message) {
  return {code, std::move(message), /*broken=*/true};
}

/// Runs `body()`, which gives a Status.
template <typename Body>
Status attempt(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(hipErrorOutOfMemory, "the host's memory is exhausted");
  }
}

/// Whether a call works or asks: what asks, such as check_gpu, answers with its
/// status and never throws, since clients go another way then.
enum class CallKind { Works, Asks };

/// Ends a call of `function`.
hipError_t finish(const char *function, Status status, CallKind kind);

/// Ends a call that was refused with `status` and handed on to the library at
/// `path`, which returned `code`.
hipError_t finishHandedOn(const char *function, Status status, hipError_t code,
                          CallKind kind, const std::string &path);

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_STATUS_H
