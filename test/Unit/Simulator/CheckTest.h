//===- CheckTest.h - Planted faults for the checkers ------------*- C++ -*-===//
//
// Runs small kernels, wrong ones and their correct twins, with checkers on.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_CHECKTEST_H
#define FOVEA_TEST_UNIT_SIMULATOR_CHECKTEST_H

#include "AsmKernels.h"
#include "KernelTest.h"

#include <initializer_list>

namespace fovea::sim::test {

class CheckTest : public KernelTest {
protected:
  /// Runs assembly between the loads and the store of vectorBody() with the
  /// checks of \p names on, and returns the report; empty when it is silent.
  /// a, b, c and d have room for 256 work-items.
  std::string body(const std::string &names, const std::string &instructions,
                   unsigned block = 64, unsigned groups = 1) {
    AsmKernel kernel{"k", vectorBody(instructions)};
    kernel.ldsBytes = 8192;
    load(assemble(asmModule({kernel})));
    Args args;
    for (int i = 0; i < 4; ++i)
      args.add(buffer<uint64_t>(std::vector<uint64_t>(256, 0)));
    return report(names, block, groups, args);
  }
  /// The same for the kernel `k` of OpenCL C source; it takes what \p args holds.
  std::string kernel(const std::string &names, const std::string &source,
                     unsigned block, unsigned groups, const Args &args,
                     const std::string &flags = "-O2") {
    load(compileOpenCL(source, "gfx942", flags));
    return report(names, block, groups, args);
  }
  std::string report(const std::string &names, unsigned block, unsigned groups,
                     const Args &args) {
    LaunchConfig config;
    config.grid = {groups, 1, 1};
    config.block = {block, 1, 1};
    config.options.threads = Threads;
    Status parsed = parseChecks(names, config.options.checks);
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    Status status = run("k", config, args);
    Code_ = status.code();
    return status.message();
  }

  unsigned Threads = 1;
  ErrorCode Code_ = ErrorCode::None;
};

/// All of \p parts in \p text.
inline ::testing::AssertionResult
hasAll(const std::string &text, std::initializer_list<std::string> parts) {
  for (const std::string &part : parts)
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure()
             << "no '" << part << "' in '" << text << "'";
  return ::testing::AssertionSuccess();
}

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_CHECKTEST_H
