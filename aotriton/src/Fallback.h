//===- Fallback.h - the library that takes what is refused ------*- C++ -*-===//
//
// FOVEA_AOTRITON_FALLBACK names a library of AOTriton's, to which the calls go
// that Fovea refuses. It exports the names that this library exports, so care
// is taken that neither calls itself through the other: its functions are
// looked up in it alone, it is opened so that it finds its own names first, and
// where it does not (the process had loaded it before) its calls of these
// names, in a thread whose call was handed on, go back to it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_FALLBACK_H
#define FOVEA_AOTRITON_FALLBACK_H

#include "Status.h"

namespace fovea::shim {

/// Opens the library, once. Success also where the variable names none.
Status openFallback();

/// What the variable names; empty if nothing, or if that could not be opened.
const std::string &fallbackPath();

/// A function of the library, or why there is none.
struct FallbackSymbol {
  void *address = nullptr;
  Status status;
};
/// \param own  this library's function of the same name
FallbackSymbol findInFallback(void *own);

/// The calling thread is in a call that was handed on.
class HandedOn {
public:
  HandedOn() : before(current()) { current() = true; }
  ~HandedOn() { current() = before; }
  HandedOn(const HandedOn &) = delete;
  HandedOn &operator=(const HandedOn &) = delete;
  static bool &current();

private:
  bool before;
};

/// The library's function of the name of `Own`.
template <auto Own>
struct Fallback {
  using Function = decltype(Own);
  static const FallbackSymbol &symbol() {
    static const FallbackSymbol &found =
        *new FallbackSymbol(findInFallback(reinterpret_cast<void *>(Own)));
    return found;
  }
  static Function function() {
    return reinterpret_cast<Function>(symbol().address);
  }
  /// For a call that comes from within one that was handed on; else null.
  static Function inner() { return HandedOn::current() ? function() : nullptr; }
};

/// Whether a call that ended so is one for the library: a refusal of what the
/// call asks for, and no failure of packages, HIP or device.
inline bool wantsFallback(const Status &status) {
  return status.isRefusal() && !fallbackPath().empty();
}
/// Whether it will go there.
template <auto Own>
bool goesToFallback(const Status &status) {
  return wantsFallback(status) && Fallback<Own>::function();
}

/// Runs the body of the exported function `Own`, which gives its Status, and
/// hands what it refuses on with its arguments. Exceptions that a client's
/// callback throws pass through.
template <auto Own, typename Body, typename... Args>
hipError_t run(const char *function, CallKind kind, Body body,
               const Args &...args) {
  if (const auto inner = Fallback<Own>::inner())
    return inner(args...);
  Status status = attempt(body);
  if (!wantsFallback(status))
    return finish(function, std::move(status), kind);
  if (const auto other = Fallback<Own>::function()) {
    HandedOn handed;
    const hipError_t code = other(args...);
    return finishHandedOn(function, std::move(status), code, kind,
                          fallbackPath());
  }
  status.message += "; " + Fallback<Own>::symbol().status.message;
  return finish(function, std::move(status), kind);
}
template <auto Own, typename Body, typename... Args>
hipError_t work(const char *function, Body body, const Args &...args) {
  return run<Own>(function, CallKind::Works, body, args...);
}
template <auto Own, typename Body, typename... Args>
hipError_t ask(const char *function, Body body, const Args &...args) {
  return run<Own>(function, CallKind::Asks, body, args...);
}

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_FALLBACK_H
