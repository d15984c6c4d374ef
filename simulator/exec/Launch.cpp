#include "fovea/Simulator/Launch.h"
namespace fovea::sim {
std::string_view name(InstClass) { return "other"; }
Counters &Counters::operator+=(const Counters &) { return *this; }
Status launch(const CodeObject &, const KernelInfo &, const LaunchConfig &, Counters *) {
  return {ErrorCode::LaunchFailure, "kernels cannot be launched yet"};
}
void fillHiddenArguments(const KernelInfo &, const LaunchConfig &, uint8_t *) {}
} // namespace fovea::sim
