//===- Module.cpp - pyaotriton --------------------------------------------===//

#include "Bindings.h"

#include <cstdlib>

namespace pyaotriton {

bool errorsAreOurs() {
  const char *text = std::getenv("FOVEA_AOTRITON_ERRORS");
  return !text || !*text;
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
      "fovea_last_message", [] { return fovea_aotriton_last_message(); },
      "Why this thread's latest call failed, or the empty string. Fovea's "
      "own.");
  defineV2(module);
  defineV3(module);
  defineLazyTensor(module);
}
