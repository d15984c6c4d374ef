//===- PlantedKernel.h - kernels with a fault -------------------*- C++ -*-===//
//
// Compiles an attention op for a chip with a fault planted into its tile
// programs, packs the code object and executes it on a simulated device of that
// chip. Tests of the forward and of the backward kernels are tables of faults
// over this.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_PLANTEDKERNEL_H
#define FOVEA_TEST_PLANTEDKERNEL_H

#include "CompiledKernel.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Target/TargetInfo.h"
#include <gtest/gtest.h>

namespace fovea::test {

/// Changes a kernel's tile program; returns how many places it changed.
using Plant = int (*)(mlir::gpu::GPUFuncOp kernel);

struct Fault {
  const char *name;
  Plant plant;
  int places; ///< that must have been changed
  /// What the kernel's name must end with; empty: any.
  const char *kernel = "";
};
void PrintTo(const Fault &fault, std::ostream *os);

/// A fault, a chip and an element type as MLIR spells it.
using Parameters = std::tuple<Fault, const char *, const char *>;
std::string nameOf(const testing::TestParamInfo<Parameters> &info);

/// A chip, and an element type as MLIR spells it.
using Subject = std::pair<const char *, const char *>;
/// Each fault on each subject; on every second one in turn where there is no time
/// for all.
std::vector<Parameters> parametersOf(mlir::ArrayRef<Subject> subjects,
                                     mlir::ArrayRef<Fault> faults);

class PlantedKernelTest : public testing::TestWithParam<Parameters> {
protected:
  /// Compiles `function`, named @kernel, with the test's fault into a package
  /// of its own. `record` has the problem (but for the type) and the version of
  /// the arguments; `blockN` 0 leaves the schedule as it is chosen, and an
  /// empty `algorithm` the one of every caller.
  void build(const std::string &function, fovea::KernelRecord record,
             int blockN = 0, const std::string &algorithm = "");

  /// A session on the test's chip with that package.
  std::unique_ptr<run::Session> open();

  /// Runs each case; a fault is found if the oracle refuses one of them, or
  /// the device reports an access out of bounds.
  template <typename Case>
  void expectFound(const std::vector<Case> &cases,
                   const run::RunOptions &options = {});
  template <typename Case>
  void expectPasses(const std::vector<Case> &cases,
                    const run::RunOptions &options = {});

  mlir::StringRef chip() const { return std::get<1>(GetParam()); }
  mlir::StringRef dtype() const { return std::get<2>(GetParam()); }
  reference::ElemType type() const {
    return dtype() == "f16" ? reference::ElemType::F16
                            : reference::ElemType::BF16;
  }

private:
  CompiledKernel compiled;
};

template <typename Case>
void PlantedKernelTest::expectFound(const std::vector<Case> &cases,
                                    const run::RunOptions &options) {
  if (HasFatalFailure())
    return;
  auto session = open();
  bool found = false;
  for (size_t i = 0; session && !found && i < cases.size(); ++i) {
    // A loop that walks one block too far is found by its numbers, or by the
    // device where that block is no memory of the process.
    const run::Outcome outcome = session->run(cases[i], options).outcome;
    found = outcome == run::Outcome::Mismatch ||
            outcome == run::Outcome::DeviceError;
  }
  EXPECT_TRUE(found) << std::get<0>(GetParam()).name << " passes for right";
}

template <typename Case>
void PlantedKernelTest::expectPasses(const std::vector<Case> &cases,
                                     const run::RunOptions &options) {
  if (HasFatalFailure())
    return;
  auto session = open();
  for (size_t i = 0; session && i < cases.size(); ++i) {
    const run::RunReport report = session->run(cases[i], options);
    EXPECT_EQ(report.outcome, run::Outcome::Pass)
        << cases[i].str() << ": " << report.message;
  }
}

//===----------------------------------------------------------------------===//
// Faults of both passes
//===----------------------------------------------------------------------===//

inline int none(mlir::gpu::GPUFuncOp) { return 0; }

inline mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc,
                            int64_t value) {
  return mlir::arith::ConstantIntOp::create(b, loc, value, 32).getResult();
}

/// What a function with a window has besides, and what its op says.
inline constexpr const char *kWindowArguments =
    ", %left: i32, %right: i32, %alignment: i32";
inline constexpr const char *kWindowPart =
    "[#attn.window] (%left, %right, %alignment)";
/// Together they have blocks that are seen in part at both ends, at one, and in
/// whole.
inline const Window kFaultWindows[] = {
    {300, 7, Alignment::BottomRight, Alignment::BottomRight},
    {5, 290, Alignment::TopLeft, Alignment::TopLeft},
    {20, 3, Alignment::BottomRight, Alignment::TopLeft}};

/// The loop ends one step early.
int stopEarly(mlir::scf::ForOp loop);

/// Which bound of a mask.
enum class MaskEnd { Begin, End };
/// What each row sees, or what sees each key, ends or begins `delta` off.
int shiftMask(mlir::gpu::GPUFuncOp kernel, MaskEnd end, int delta);
template <MaskEnd end, int delta>
int shiftMask(mlir::gpu::GPUFuncOp kernel) {
  return shiftMask(kernel, end, delta);
}

/// Diagonal and tail blocks are taken as they are.
int dropMask(mlir::gpu::GPUFuncOp kernel);

/// Of the loops over segments in the order of the program, one's upper and the
/// next one's lower bound are off by so many blocks; of the last, or with
/// `from` -1 of the first, the end that has no other.
int moveSegment(mlir::gpu::GPUFuncOp kernel, int from, int delta);
template <int from, int delta>
int moveSegment(mlir::gpu::GPUFuncOp kernel) {
  return moveSegment(kernel, from, delta);
}

/// The scale of the scores is off by so much.
int changeScale(mlir::gpu::GPUFuncOp kernel, int percent);
template <int percent>
int changeScale(mlir::gpu::GPUFuncOp kernel) {
  return changeScale(kernel, percent);
}

} // namespace fovea::test

#endif // FOVEA_TEST_PLANTEDKERNEL_H
