//===- Result.h - statuses inside the runtime -------------------*- C++ -*-===//
//
// The runtime's status: the C interface's code with a message. Package statuses
// turn into it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_RESULT_H
#define FOVEA_RUNTIME_SRC_RESULT_H

#include "fovea/Package/Status.h"
#include "fovea/fovea.h"

#include <string>

namespace fovea::rt {

struct [[nodiscard]] Result {
  fovea_status_t code = FOVEA_STATUS_OK;
  std::string message;
  int hipError = 0; ///< what HIP returned, where that is the failure
  int cause = FOVEA_CAUSE_NONE;

  Result() = default;
  Result(fovea_status_t code, std::string message, int hipError = 0)
      : code(code), message(std::move(message)), hipError(hipError) {}
  /// From the package library.
  Result(const Status &status)
      : code(translate(status.code())), message(status.message()) {}

  bool ok() const { return code == FOVEA_STATUS_OK; }

private:
  static fovea_status_t translate(StatusCode code) {
    switch (code) {
    case StatusCode::Ok:
      return FOVEA_STATUS_OK;
    case StatusCode::InvalidArgument:
      return FOVEA_STATUS_INVALID_ARGUMENT;
    case StatusCode::NotFound:
      return FOVEA_STATUS_NOT_FOUND;
    case StatusCode::Io:
      return FOVEA_STATUS_IO;
    case StatusCode::Busy:
      return FOVEA_STATUS_BUSY;
    case StatusCode::Corrupt:
      return FOVEA_STATUS_CORRUPT;
    case StatusCode::Incompatible:
      return FOVEA_STATUS_INCOMPATIBLE;
    case StatusCode::OutOfMemory:
      return FOVEA_STATUS_OUT_OF_MEMORY;
    }
    return FOVEA_STATUS_INTERNAL;
  }
};

inline Result invalid(std::string message) {
  return Result(FOVEA_STATUS_INVALID_ARGUMENT, std::move(message));
}

/// A failure that has a cause, if `isCause`; of two the one that goes before.
inline Result because(int cause, Result result, bool isCause = true) {
  if (isCause &&
      (result.cause == FOVEA_CAUSE_NONE || cause == FOVEA_CAUSE_CAPTURED))
    result.cause = cause;
  return result;
}
/// A failure that `deterministic` being 0 may spare, if `isCause`.
inline Result ofDeterminism(Result result, bool isCause = true) {
  return because(FOVEA_CAUSE_DETERMINISTIC, std::move(result), isCause);
}

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_RESULT_H
