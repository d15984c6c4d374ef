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
  /// Whether it is a failure.
  explicit operator bool() const { return code != hipSuccess; }
};

inline Status refuse(hipError_t code, std::string message) {
  return {code, std::move(message)};
}

/// Whether a call works or asks: what asks, such as check_gpu, answers with its
/// status and never throws, since clients go another way then.
enum class CallKind { Works, Asks };

/// Ends a call of `function`.
hipError_t finish(const char *function, Status status, CallKind kind);

/// Runs the body of an exported function: `body()` gives its Status. Exceptions
/// that a client's callback throws pass through.
template <typename Body>
hipError_t run(const char *function, Body body,
               CallKind kind = CallKind::Works) {
  Status status;
  try {
    status = body();
  } catch (const std::bad_alloc &) {
    status = refuse(hipErrorOutOfMemory, "the host's memory is exhausted");
  }
  return finish(function, std::move(status), kind);
}

/// The same for a call that asks.
template <typename Body>
hipError_t ask(const char *function, Body body) {
  return run(function, body, CallKind::Asks);
}

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_STATUS_H
