//===- TimedKernelTest.h - Kernels whose time is predicted ------*- C++ -*-===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_TIMEDKERNELTEST_H
#define FOVEA_TEST_UNIT_SIMULATOR_TIMEDKERNELTEST_H

#include "KernelTest.h"
#include "fovea/Simulator/Timing.h"

namespace fovea::sim::test {

/// \p n lines of \p text.
inline std::string repeat(const std::string &text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i)
    result += text + "\n";
  return result;
}

class TimedKernelTest : public KernelTest {
protected:
  /// The kernel "k" of the code that is loaded.
  TimingReport predicted(const LaunchConfig &config, const Args &args,
                         const TimingOptions &options = {}) {
    TimingReport report;
    Status status = predict(*Code, *Code->findKernel("k"),
                            withArgs(config, args), options, report);
    EXPECT_TRUE(status.ok()) << status.message();
    return report;
  }
  /// Clocks between issues of the instruction that \p text begins with, of one
  /// wave: busy or waiting.
  static double interval(const TimingReport &report, const std::string &text) {
    double clocks = 0, issues = 0;
    for (const InstTiming &inst : report.instructions)
      if (inst.text.compare(0, text.size(), text) == 0) {
        for (uint64_t stall : inst.stalls)
          clocks += double(stall);
        clocks += double(inst.issues * report.slotClocks);
        issues += double(inst.issues);
      }
    return issues > 0 ? clocks / issues : 0;
  }
};

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_TIMEDKERNELTEST_H
