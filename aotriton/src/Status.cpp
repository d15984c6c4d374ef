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
  const char *text = std::getenv("FOVEA_AOTRITON_ERRORS");
  if (!text || !*text)
    return OnError::Print;
  for (const OnErrorName &row : kOnErrorNames)
    if (!std::strcmp(text, row.name))
      return row.value;
  std::fprintf(
      stderr,
      "fovea-aotriton: FOVEA_AOTRITON_ERRORS is '%s', which is none of "
      "print, quiet, throw; taken as print\n",
      text);
  return OnError::Print;
}

/// A training loop repeats its refusals: each text is printed once, and of
/// texts without end (sizes that change) the first ones.
constexpr size_t kMostPrinted = 64;

void printOnce(const std::string &text) {
  static std::mutex mutex;
  static std::set<std::string> printed;
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

} // namespace

hipError_t finish(const char *function, Status status, CallKind kind) {
  static const OnError onError = readOnError();
  if (!status) {
    lastMessage().clear();
    return hipSuccess;
  }
  std::string text = std::string(function) + ": " + status.message;
  lastMessage() = text;
  if (onError == OnError::Throw && kind == CallKind::Works)
    throw std::runtime_error("fovea-aotriton: " + text);
  if (onError != OnError::Quiet)
    printOnce(text);
  return status.code;
}

} // namespace fovea::shim

const char *fovea_aotriton_last_message(void) {
  return fovea::shim::lastMessage().c_str();
}
