//===- Status.cpp - outcomes of the interface's calls ---------------------===//

#include "Status.h"

#include <fovea/aotriton.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>

namespace fovea::shim {
namespace {

enum class OnError { Print, Quiet, Throw };

/// The names of FOVEA_AOTRITON_ERRORS.
struct OnErrorName {
  const char *name;
  OnError value;
};
constexpr OnErrorName kOnErrorNames[] = {{"print", OnError::Print},
                                         {"quiet", OnError::Quiet},
                                         {"throw", OnError::Throw}};

OnError readOnError() {
  // PyTorch looked at no status before the end of 2026, and memory that nobody
  // wrote must not pass for a result.
  constexpr OnError kDefault = OnError::Throw;
  const char *text = std::getenv("FOVEA_AOTRITON_ERRORS");
  if (!text || !*text)
    return kDefault;
  for (const OnErrorName &row : kOnErrorNames)
    if (!std::strcmp(text, row.name))
      return row.value;
  std::fprintf(
      stderr,
      "fovea-aotriton: FOVEA_AOTRITON_ERRORS is '%s', which is none of "
      "print, quiet, throw; taken as throw\n",
      text);
  return kDefault;
}

/// A training loop repeats its refusals: each text is printed once, and of
/// texts without end (sizes that change) the first ones.
constexpr size_t kMostPrinted = 64;

void printOnce(const std::string &text) {
  static std::mutex mutex;
  static auto &printed = *new std::set<std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  if (printed.size() >= kMostPrinted || !printed.insert(text).second)
    return;
  std::fprintf(stderr, "fovea-aotriton: %s\n", text.c_str());
  if (printed.size() == kMostPrinted)
    std::fprintf(stderr, "fovea-aotriton: further messages are not printed; "
                         "fovea_aotriton_last_message() gives them\n");
}

std::string &lastMessage() {
  thread_local std::string message;
  return message;
}

hipError_t &lastStatus() {
  thread_local hipError_t status = hipSuccess;
  return status;
}

OnError onError() {
  static const OnError value = readOnError();
  return value;
}

/// Ends a call that has something to say.
hipError_t end(hipError_t code, std::string text, CallKind kind) {
  lastMessage() = text;
  lastStatus() = code;
  const bool works = kind == CallKind::Works;
  if (onError() == OnError::Throw && works && code != hipSuccess)
    throw std::runtime_error("fovea-aotriton: " + text);
  // Of what is handed on and succeeds the default says nothing.
  if (onError() == OnError::Print ||
      (onError() == OnError::Throw && code != hipSuccess))
    printOnce(text);
  return code;
}

} // namespace

hipError_t finish(const char *function, Status status, CallKind kind) {
  if (status)
    return end(status.code, std::string(function) + ": " + status.message,
               kind);
  lastMessage().clear();
  return lastStatus() = hipSuccess;
}

hipError_t finishHandedOn(const char *function, Status status, hipError_t code,
                          CallKind kind, const std::string &path) {
  std::string text =
      std::string(function) + ": " + status.message + "; handed on to " + path;
  if (code != hipSuccess)
    text += ", which returned status " + std::to_string(int(code));
  return end(code, std::move(text), kind);
}

} // namespace fovea::shim

const char *fovea_aotriton_last_message(void) {
  return fovea::shim::lastMessage().c_str();
}

int fovea_aotriton_last_status(void) { return int(fovea::shim::lastStatus()); }
