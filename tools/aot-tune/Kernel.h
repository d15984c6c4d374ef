//===- Kernel.h - a compiled candidate --------------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTTUNE_KERNEL_H
#define FOVEA_TOOLS_AOTTUNE_KERNEL_H

#include "TimeRun.h"
#include "Types.h"

#include <nlohmann/json.hpp>

namespace fovea::tune {

/// The launches of a compiled kernel, for the model and for devices.
class KernelSubject : public timing::Subject {
public:
  /// \param codeObject  what its launches name: the file that has the image, or
  ///   any text where nothing opens it
  KernelSubject(const tools::BuiltKernel &kernel, std::string target,
                std::string codeObject, Window window, bool isChecked = false)
      : kernel(kernel), target(std::move(target)),
        codeObject(std::move(codeObject)), window(window),
        isChecked(isChecked) {}

  std::string label() const override { return kernel.record.symbol; }
  std::string schedule() const override { return kernel.record.schedule; }
  bool problem(const describe::Overrides &overrides, describe::Problem &result,
               std::string &error) const override;
  std::string computed(const describe::Problem &) const override {
    return kernel.record.problem.str();
  }
  bool image(const std::string &, std::string &bytes,
             std::string &) const override {
    bytes = kernel.image;
    return true;
  }

private:
  const tools::BuiltKernel &kernel;
  std::string target, codeObject;
  Window window;
  bool isChecked;
};

/// The variables of a launch.
describe::Overrides variablesOf(const Size &size);

/// What a kernel uses that it must not, "spills 3 vector registers"; empty if
/// nothing.
std::string faultsOf(const KernelRecord &record);

/// {"members": [[name, seconds]]} by the model's ensemble, or {"refused"}.
nlohmann::json predictMembers(const tools::BuiltKernel &kernel,
                              const std::string &target, const Size &size,
                              const Condition &condition);

/// The model's word on a kernel: {"seconds", "tie_error", "guess"} and what it
/// counted, or {"refused"}. The error is that which the ensemble leaves.
nlohmann::json predict(const tools::BuiltKernel &kernel,
                       const std::string &target, const Size &size,
                       const Condition &condition);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_KERNEL_H
