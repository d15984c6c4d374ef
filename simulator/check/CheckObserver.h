//===- CheckObserver.h - The checkers of a launch ---------------*- C++ -*-===//
//
// Composes the checkers that LaunchOptions::checks switches on into one
// observer, beside the observer that the caller gave.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_CHECKOBSERVER_H
#define FOVEA_SIMULATOR_CHECK_CHECKOBSERVER_H

#include "check/Report.h"

namespace fovea::sim {

class GlobalShadow;
class WrittenMap;

class CheckFactory : public ObserverFactory {
public:
  /// \p others may be null; what is passed must outlive the factory.
  CheckFactory(Program &program, const KernelInfo &kernel, const ChipInfo &chip,
               uint32_t checks, WrittenMap &written, ObserverFactory *others);
  ~CheckFactory() override;
  std::unique_ptr<Observer> create() override;

private:
  Reporter Out;
  PlanTable &Plans;
  uint32_t Checks;
  WrittenMap &Written;
  ObserverFactory *Others;
  std::unique_ptr<GlobalShadow> RaceCells;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_CHECKOBSERVER_H
