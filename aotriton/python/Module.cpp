//===- Module.cpp - pyaotriton --------------------------------------------===//

#include "Bindings.h"

#include <cstdlib>
#include <string_view>

namespace pyaotriton {

Errors howErrorsShow() {
  const char *text = std::getenv("FOVEA_AOTRITON_ERRORS");
  const std::string_view value = text ? text : "";
  if (value.empty())
    return Errors::Warn;
  // As the library takes it: what is none of its values throws.
  return value == "print" || value == "quiet" ? Errors::Status : Errors::Throw;
}

CallbackFailure &CallbackFailure::latest() {
  thread_local CallbackFailure failure;
  return failure;
}

hipError_t CallbackFailure::note(const char *function, const std::string &what,
                                 hipError_t status) {
  CallbackFailure &failure = latest();
  if (status != hipSuccess && failure.status == hipSuccess)
    failure = {status, what + ": " + function + " failed with status " +
                           std::to_string(int(status))};
  return status;
}

std::string lastMessage() {
  const std::string library = fovea_aotriton_last_message(),
                    &callback = CallbackFailure::latest().message;
  return library + (library.empty() || callback.empty() ? "" : "; ") + callback;
}

} // namespace pyaotriton

PYBIND11_MODULE(pyaotriton, module) {
  using namespace pyaotriton;
  module.doc() =
      "AOTriton's Python module over Fovea's kernels. Calls return a "
      "hipError_t; the reason of one that is not hipSuccess is a "
      "RuntimeWarning, and what fovea_last_message() gives.";
  defineHip(module);
  defineTensors(module);
  module.def(
      "get_name_suffix", [] { return std::string(); },
      "The suffix of AOTriton's namespace: Fovea has none.");
  module.def(
      "fovea_last_message", [] { return lastMessage(); },
      "Why this thread's latest call failed, or the empty string. Fovea's "
      "own.");
  defineV2(module);
  defineV3(module);
#if AOTRITON_VERSION_MINOR >= 11
  defineLazyTensor(module);
#endif
}
