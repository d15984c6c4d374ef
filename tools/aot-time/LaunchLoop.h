//===- LaunchLoop.h - a subject's launches on its device --------*- C++ -*-===//
//
// A device of the subject's chip, its buffers and code objects, and its
// launches one by one: what predicting and counting have in common.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_LAUNCHLOOP_H
#define FOVEA_TOOLS_AOTTIME_LAUNCHLOOP_H

#include "TimeRun.h"
#include "fovea/Simulator/CodeObject.h"
#include "fovea/Simulator/Device.h"

#include <functional>
#include <map>

namespace fovea::timing {

class Buffers;

class LaunchLoop {
public:
  /// `prediction`: chips and boards without a timing model are refused; null:
  /// none is needed.
  LaunchLoop(const Subject &subject, const sim::TimingOptions *prediction)
      : subject(subject), prediction(prediction) {}

  /// A launch that is ready to go.
  struct Item {
    const describe::Launch &launch;
    const sim::CodeObject &code;
    const sim::KernelInfo &kernel;
    const sim::LaunchConfig &config;
  };
  using Visitor = std::function<sim::Status(const Item &)>;

  /// Calls `visit` for each launch whose grid is not empty. False with `error`
  /// set when the problem does not fit, there is no launch, or `visit` fails.
  bool run(const describe::Overrides &overrides, const Visitor &visit);

  describe::Problem problem;
  std::string target;
  std::vector<std::string> notes;
  std::string error;
  bool deviceError = false; ///< `visit` failed, not the description

private:
  bool fail(const std::string &why);
  bool openDevice();
  sim::CodeObject *load(const std::string &name);
  bool launch(const describe::Launch &launch, const Buffers &buffers,
              const Visitor &visit);

  const Subject &subject;
  const sim::TimingOptions *prediction;
  std::shared_ptr<sim::Device> device;
  std::map<std::string, std::shared_ptr<sim::CodeObject>> codes;
};

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_LAUNCHLOOP_H
