//===- Status.h - Result of a simulator call --------------------*- C++ -*-===//
//
// How the simulator reports failure: a code for programs and a message for
// people. Nothing in the simulator throws or aborts on what a user hands it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_STATUS_H
#define FOVEA_SIMULATOR_STATUS_H

#include <string>
#include <utility>

namespace fovea::sim {

/// What went wrong, for callers that map errors (the HIP library does).
enum class ErrorCode {
  None,
  InvalidArgument,   ///< a value passed by the caller breaks a stated rule
  OutOfMemory,       ///< device memory or its address space is used up
  InvalidImage,      ///< not a loadable code object
  TargetMismatch,    ///< a code object of another chip or feature set
  NotFound,          ///< no such kernel, symbol or chip
  LaunchFailure,     ///< the kernel's resources or geometry do not fit
  IllegalAddress,    ///< an access outside every allocation, LDS or scratch
  IllegalInstruction,///< undecodable, or an instruction not simulated
  BudgetExceeded,    ///< the instruction budget ran out (endless loop?)
  Trap,              ///< the kernel executed s_trap
  Deadlock,          ///< waves wait for each other for ever
  CheckFailed,       ///< a checker (Checks.h) found a fault
};

/// Success, or a code and a message that names the thing, the value found and
/// the limit. Cheap to move; convertible to bool (true on success).
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(ErrorCode code, std::string message)
      : Code(code), Message(std::move(message)) {}

  static Status success() { return {}; }
  bool ok() const { return Code == ErrorCode::None; }
  explicit operator bool() const { return ok(); }
  ErrorCode code() const { return Code; }
  const std::string &message() const { return Message; }

private:
  ErrorCode Code = ErrorCode::None;
  std::string Message;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_STATUS_H
