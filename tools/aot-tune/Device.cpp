//===- Device.cpp - what a machine's devices say of kernels ---------------===//

#include "Device.h"

#include "LaunchRun.h"
#include "fovea/Package/Chips.h"

#include <cstdlib>

using namespace fovea;
using namespace fovea::tune;
using launch::Machine;
using nlohmann::json;

/// Where a GPU is looked for: `hip` may be empty or "auto".
static std::string libraryOf(const std::string &hip) {
  return hip.empty() || hip == "auto" ? "rocm" : hip;
}

json tune::probeDevice(const std::string &target, const std::string &hip) {
  std::string error;
  // Asked for a GPU: where ROCm's library has none, its reason is the answer.
  const std::unique_ptr<Machine> machine = Machine::open(libraryOf(hip), error);
  if (!machine)
    return {{"none", error}};
  if (machine->isSimulated())
    return {{"none", "the devices of HIP library '" + hip +
                         "' are simulated, and their times are no GPU's"}};
  const std::string device = machine->deviceOf(target);
  if (device.empty())
    return {{"none", "no GPU of this machine is a " + target}};
  return {{"device", device}};
}

json tune::measure(const std::vector<const tools::BuiltKernel *> &kernels,
                   const std::vector<std::string> &files,
                   const std::string &target, const Size &size,
                   const Condition &condition, const std::string &hip) {
  std::string error;
  std::vector<describe::Problem> problems(kernels.size());
  for (size_t i = 0; i != kernels.size(); ++i)
    if (!KernelSubject(*kernels[i], target, files[i],
                       parseWindow(condition.mask).value_or(Window()))
             .problem(variablesOf(size), problems[i], error))
      return {{"error", error}};
  const std::unique_ptr<Machine> machine = Machine::open(libraryOf(hip), error);
  if (!machine)
    return {{"error", error}};
  if (machine->isSimulated())
    return {{"error", "a simulated device measures nothing"}};
  const launch::Measured measured =
      machine->measure(problems, launch::MeasureOptions(), target);
  if (!measured.error.empty())
    return {{"error", measured.error}};
  json all = json::array();
  // Below this two medians of one kernel differ by chance.
  constexpr double kLeastError = 0.01;
  for (size_t i = 0; i != kernels.size(); ++i)
    all.push_back({{"seconds", measured.seconds[i]},
                   {"tie_error", std::max(kLeastError, measured.spread[i])},
                   {"guess", !measured.isSettled}});
  return all;
}

json tune::checkKernel(const tools::BuiltKernel &kernel,
                       const std::string &file, const std::string &target,
                       const std::string &mask, const Method &method) {
  std::string error;
  describe::Problem problem;
  // No block of rows or keys divides these.
  const describe::Overrides sizes = {{"batch", "1"},
                                     {"heads", "2"},
                                     {"heads_k", "1"},
                                     {"seqlen_q", "150"},
                                     {"seqlen_k", "333"}};
  if (!KernelSubject(kernel, target, file, parseWindow(mask).value_or(Window()),
                     /*isChecked=*/true)
           .problem(sizes, problem, error))
    return {{"unchecked", error}};
  if (!method.isMeasured) {
    setenv("FOVEA_SIM_TARGET", simulatedChipFor(target).c_str(),
           /*overwrite=*/1);
    setenv("FOVEA_SIM_CHECK", "all", /*overwrite=*/1);
  }
  const std::unique_ptr<Machine> machine =
      Machine::open(method.isMeasured ? libraryOf(method.hip) : "sim", error);
  if (!machine)
    return {{"unchecked", error}};
  const launch::Report report =
      machine->run(problem, /*check=*/true, /*device=*/-1, target);
  if (report.outcome == launch::Outcome::Refused ||
      (report.outcome == launch::Outcome::Pass && !report.checked))
    return {{"unchecked", report.message}};
  if (report.outcome != launch::Outcome::Pass)
    return {{"wrong", report.message}};
  return json::object();
}
