//===- Status.h - results of the package library ----------------*- C++ -*-===//
//
// Status and Expected: how the package library and the runtime report failure.
// Nothing in them throws; the one exception that the library lets through is
// std::bad_alloc. A message names the thing, the value found and the remedy.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_STATUS_H
#define FOVEA_PACKAGE_STATUS_H

#include <string>
#include <utility>
#include <variant>

namespace fovea {

/// What kind of failure it was; the message says which.
enum class StatusCode {
  Ok,
  InvalidArgument, ///< the caller's value breaks a stated rule
  NotFound,        ///< no such file, kernel or image
  Io,              ///< the file system refused (unwritable, disk full, ...)
  Busy,            ///< another process held the package for too long
  Corrupt,         ///< the file's content contradicts itself
  Incompatible,    ///< well formed, but another version or another target
  OutOfMemory,     ///< of the host
};

/// Spelling of a code for messages, e.g. "corrupt".
const char *toString(StatusCode code);

/// Success, or a code with a message.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  bool ok() const { return statusCode == StatusCode::Ok; }
  StatusCode code() const { return statusCode; }
  const std::string &message() const { return text; }

private:
  StatusCode statusCode = StatusCode::Ok;
  std::string text;
};

/// A value, or the Status (never Ok) that says why there is none.
template <typename T>
class [[nodiscard]] Expected {
public:
  Expected(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Expected(Status status) : state(std::in_place_index<1>, std::move(status)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() { return *std::get_if<0>(&state); }
  const T &operator*() const { return *std::get_if<0>(&state); }
  T *operator->() { return std::get_if<0>(&state); }
  const T *operator->() const { return std::get_if<0>(&state); }

  /// Ok when there is a value.
  Status status() const {
    const Status *failure = std::get_if<1>(&state);
    return failure ? *failure : Status();
  }

private:
  std::variant<T, Status> state;
};

} // namespace fovea

#endif // FOVEA_PACKAGE_STATUS_H
