//===- GroupKernel.h - kernels with feature groups --------------*- C++ -*-===//
//
// A kernel that takes any window, other feature groups and a score program, and
// the session to run it in, for tests that go through a table of such kernels.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_EXECUTE_SUPPORT_GROUPKERNEL_H
#define FOVEA_TEST_EXECUTE_SUPPORT_GROUPKERNEL_H

#include "CaseMemory.h"
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
  int headDimV = 0;                      ///< 0: headDim
  /// The type of what the program captures, and of backward passes that of its
  /// gradient; empty: none.
  const char *captured = "", *gradient = "";

  int dimOfV() const { return headDimV ? headDimV : headDim; }

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
  virtual const GroupKernel &kernel() const { return GetParam(); }
  reference::ElemType type() const;

  /// The schedules that are chosen for the kernel, in text; empty: there are
  /// none.
  std::string scheduleOf(fovea::OpKind op);
  /// Compiles the kernel, which `compiled` has then, and opens `session` on it;
  /// the options are those that take it.
  void compile(fovea::OpKind op);

  /// Of the kernel's type and head dimensions, with 4 heads over 2.
  run::ForwardCase makeCase(int64_t batch, int64_t seqQ, int64_t seqK,
                            Window mask) const;
  /// Gives a case what the kernel has: sinks, of a backward pass dlse, the
  /// sequences if they are not null, its score program, and lists of so large a
  /// part of the blocks.
  void fill(run::ForwardCase &c, const char *sequences = nullptr,
            bool isBackward = false, double part = 0.7);
  /// Which captures of the program a backward pass gives gradients of, a bit
  /// each, and which of these it stores.
  uint8_t gradients() const { return *kernel().gradient ? 1 : 0; }
  uint8_t storedGradients() const {
    return gradients() && !llvm::StringRef(kernel().gradient).contains("f32");
  }
  /// The score program alone, if there is one.
  void fillScore(run::ForwardCase &c);

  template <typename Case>
  run::RunReport expectPass(const Case &problem, bool isLaunched = true) {
    run::RunReport report = session->run(problem, options);
    EXPECT_EQ(report.outcome, run::Outcome::Pass)
        << problem.str() << ": " << report.message;
    EXPECT_EQ(report.launched, isLaunched) << problem.str();
    return report;
  }

  /// Changes the tile programs of what compile() compiles; null: leaves them.
  std::function<void(mlir::gpu::GPUFuncOp)> change;
  CompiledKernel compiled;
  std::unique_ptr<run::Session> session;
  CaseMemory memory; ///< of the case that was filled last
  run::RunOptions options;
};

} // namespace fovea::test

#endif // FOVEA_TEST_EXECUTE_SUPPORT_GROUPKERNEL_H
