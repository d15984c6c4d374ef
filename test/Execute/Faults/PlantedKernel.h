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

#include "BackwardRun.h"
#include "ForwardRun.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Package/PackageWriter.h"
#include "fovea/Target/TargetInfo.h"
#include <filesystem>
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

/// The simulated devices, in this order.
inline const char *const kChips[] = {"gfx908", "gfx942", "gfx950", "gfx1100",
                                     "gfx1201"};

/// A fault, a chip and an element type as MLIR spells it.
using Parameters = std::tuple<Fault, const char *, const char *>;
std::string nameOf(const testing::TestParamInfo<Parameters> &info);

class PlantedKernelTest : public testing::TestWithParam<Parameters> {
protected:
  void SetUp() override;
  void TearDown() override;

  /// Compiles `function`, named @kernel, with the test's fault into a package
  /// of its own. `record` has the problem (but for the type) and the version of
  /// the arguments; `blockN` 0 leaves the schedule as it is chosen.
  void build(const std::string &function, fovea::KernelRecord record,
             int blockN = 0);

  /// A session on the test's chip with that package.
  std::unique_ptr<run::Session> open();

  /// Runs each case; a fault is found if one of them is refused by the oracle.
  template <typename Case>
  void expectFound(const std::vector<Case> &cases);
  template <typename Case>
  void expectPasses(const std::vector<Case> &cases);

  mlir::StringRef chip() const { return std::get<1>(GetParam()); }
  mlir::StringRef dtype() const { return std::get<2>(GetParam()); }
  reference::ElemType type() const {
    return dtype() == "f16" ? reference::ElemType::F16
                            : reference::ElemType::BF16;
  }

private:
  std::filesystem::path folder;
};

template <typename Case>
void PlantedKernelTest::expectFound(const std::vector<Case> &cases) {
  if (HasFatalFailure())
    return;
  auto session = open();
  bool found = false;
  for (size_t i = 0; session && !found && i < cases.size(); ++i)
    found = session->run(cases[i], {}).outcome == run::Outcome::Mismatch;
  EXPECT_TRUE(found) << std::get<0>(GetParam()).name << " passes for right";
}

template <typename Case>
void PlantedKernelTest::expectPasses(const std::vector<Case> &cases) {
  if (HasFatalFailure())
    return;
  auto session = open();
  for (size_t i = 0; session && i < cases.size(); ++i) {
    const run::RunReport report = session->run(cases[i], {});
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

/// The loop ends one step early.
int stopEarly(mlir::scf::ForOp loop);

/// The last visible key is off by `delta`.
int shiftMask(mlir::gpu::GPUFuncOp kernel, int delta);
template <int delta>
int shiftMask(mlir::gpu::GPUFuncOp kernel) {
  return shiftMask(kernel, delta);
}

/// Diagonal and tail blocks are taken as they are.
int dropMask(mlir::gpu::GPUFuncOp kernel);

/// The scale of the scores is off by so much.
int changeScale(mlir::gpu::GPUFuncOp kernel, int percent);
template <int percent>
int changeScale(mlir::gpu::GPUFuncOp kernel) {
  return changeScale(kernel, percent);
}

} // namespace fovea::test

#endif // FOVEA_TEST_PLANTEDKERNEL_H
