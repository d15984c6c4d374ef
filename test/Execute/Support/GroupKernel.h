//===- GroupKernel.h - kernels with feature groups --------------*- C++ -*-===//
//
// A kernel that takes any window, other feature groups and a score program, and
// the session to run it in, for tests that go through a table of such kernels.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_EXECUTE_SUPPORT_GROUPKERNEL_H
#define FOVEA_TEST_EXECUTE_SUPPORT_GROUPKERNEL_H

#include "CompiledKernel.h"
#include <gtest/gtest.h>

namespace fovea::test {

/// A chip, a type, a head dimension and what is asked of the schedule.
struct GroupKernel {
  const char *name, *chip, *dtype;
  int headDim;
  std::map<std::string, std::string> schedule;
  std::vector<const char *> groups = {}; ///< besides the window
  const char *score = "";                ///< "score { ... }"

  bool has(llvm::StringRef group) const {
    return llvm::is_contained(groups, group);
  }
  llvm::StringRef algorithm() const {
    const auto found = schedule.find("algorithm");
    return found == schedule.end() ? llvm::StringRef()
                                   : llvm::StringRef(found->second);
  }
};
/// The same kernels with a group more.
std::vector<GroupKernel> withGroup(const char *group,
                                   llvm::ArrayRef<GroupKernel> kernels);
void PrintTo(const GroupKernel &kernel, std::ostream *os);
std::string nameOf(const testing::TestParamInfo<GroupKernel> &info);

class GroupKernelTest : public testing::TestWithParam<GroupKernel> {
protected:
  const GroupKernel &kernel() const { return GetParam(); }
  reference::ElemType type() const;

  /// Compiles the kernel, which `compiled` has then, and opens `session` on it;
  /// the options are those that take it.
  void compile(fovea::OpKind op);

  template <typename Case>
  run::RunReport expectPass(const Case &problem, bool isLaunched = true) {
    run::RunReport report = session->run(problem, options);
    EXPECT_EQ(report.outcome, run::Outcome::Pass)
        << problem.str() << ": " << report.message;
    EXPECT_EQ(report.launched, isLaunched) << problem.str();
    return report;
  }

  CompiledKernel compiled;
  std::unique_ptr<run::Session> session;
  run::RunOptions options;
};

} // namespace fovea::test

#endif // FOVEA_TEST_EXECUTE_SUPPORT_GROUPKERNEL_H
