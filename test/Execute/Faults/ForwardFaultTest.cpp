//===- ForwardFaultTest.cpp - wrong kernels must be found wrong -----------===//
//
// Plants one fault at a time into the tile program of the forward kernel,
// compiles it for a chip of each family, executes it on a simulated device of
// that chip, and expects the comparison with the oracle to refuse it. The
// kernel without a fault passes the same runs.
//
//===----------------------------------------------------------------------===//

#include "ForwardKernel.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// The first key block is never visited.
static int skipTile(gpu::GPUFuncOp kernel) {
  auto loop = *kernel.getOps<scf::ForOp>().begin();
  OpBuilder b(loop);
  loop.setLowerBound(constant(b, loop.getLoc(), 1));
  return 1;
}

/// The last full block is left to nobody.
static int skipLastTile(gpu::GPUFuncOp kernel) {
  return stopEarly(*kernel.getOps<scf::ForOp>().begin());
}

/// In the branch that rescales, the values whose number of rows is `wanted`
/// keep their old scale. A scaled value may be yielded by way of registers of
/// its own, or pinned.
template <typename Wanted>
static int dropRescale(gpu::GPUFuncOp kernel, Wanted wanted) {
  int changed = 0;
  kernel.walk([&](scf::IfOp branch) {
    // The one within it chooses the new reference.
    if (!branch.elseBlock() || !isa<scf::ForOp>(branch->getParentOp()))
      return;
    for (OpOperand &yielded : branch.thenYield()->getOpOperands()) {
      OpOperand *scaled = &yielded;
      while (isa_and_nonnull<attn::ToAccumulatorsOp, attn::PinOp>(
          scaled->get().getDefiningOp()))
        scaled = &scaled->get().getDefiningOp()->getOpOperand(0);
      auto product = scaled->get().getDefiningOp<arith::MulFOp>();
      if (!product ||
          !wanted(cast<RankedTensorType>(product.getType()).getDimSize(0)))
        continue;
      scaled->set(product.getLhs());
      ++changed;
    }
  });
  return changed;
}
static int staleAccumulator(gpu::GPUFuncOp kernel) {
  return dropRescale(kernel, [](int64_t rows) { return rows > 4; });
}
static int staleSum(gpu::GPUFuncOp kernel) {
  return dropRescale(kernel, [](int64_t rows) { return rows <= 4; });
}

/// Every query head reads the keys of head 0.
static int wrongKeyHead(gpu::GPUFuncOp kernel) {
  int changed = 0;
  // Whatever groups there are, these two are the base's last.
  ProblemKey key;
  key.headDim = ForwardKernelTest::kHeadDim;
  const spec::Signature base = spec::signatureOf(key);
  Value group = kernel.getArgument(
      unsigned(base.find("group_size") - base.arguments.data()));
  kernel.walk([&](arith::DivUIOp div) {
    if (div.getRhs() != group)
      return;
    OpBuilder b(div);
    div.getResult().replaceAllUsesWith(constant(b, div.getLoc(), 0));
    ++changed;
  });
  return changed;
}

/// The block that was computed last time is multiplied again: V is not
/// refreshed. It comes in the loop's last value, or by the last copy to LDS.
static int staleValues(gpu::GPUFuncOp kernel) {
  int changed = 0;
  for (auto loop : kernel.getOps<scf::ForOp>()) {
    auto copies = llvm::to_vector(loop.getOps<attn::CopyLdsOp>());
    if (!copies.empty()) {
      copies.back().erase();
      ++changed;
      continue;
    }
    mlir::Operation *yield = loop.getBody()->getTerminator();
    unsigned last = yield->getNumOperands() - 1;
    yield->setOperand(last, loop.getRegionIterArg(last));
    ++changed;
  }
  return changed;
}

const Fault kFaults[] = {
    {"SkipTile", skipTile, 1},
    {"StopEarly", skipLastTile, 1},
    {"StaleAccumulator", staleAccumulator, 2},
    {"StaleSum", staleSum, 2},
    {"MaskOneMore", shiftMask<MaskEnd::End, 1>, 1},
    {"MaskOneLess", shiftMask<MaskEnd::End, -1>, 1},
    {"DropMask", dropMask, 1},
    {"ScaleOnePerCentMore", changeScale<1>, 1},
    {"ScaleOnePerCentLess", changeScale<-1>, 1},
    {"WrongKeyHead", wrongKeyHead, 1},
    {"StaleValues", staleValues, 2},
};

class ForwardFaultTest : public ForwardKernelTest {};
} // namespace

TEST_P(ForwardFaultTest, IsFound) {
  build();
  expectFound(cases());
}

/// Each chip, with both types where there is time.
static std::vector<Parameters> parameters(ArrayRef<Fault> faults) {
  std::vector<Subject> subjects;
  for (auto [index, chip] : llvm::enumerate(kChips)) {
    subjects.emplace_back(chip, index % 2 ? "f16" : "bf16");
    if (runsFullGrids())
      subjects.emplace_back(chip, index % 2 ? "bf16" : "f16");
  }
  return parametersOf(subjects, faults);
}

INSTANTIATE_TEST_SUITE_P(Planted, ForwardFaultTest,
                         testing::ValuesIn(parameters(kFaults)), nameOf);

class ForwardNoFaultTest : public ForwardKernelTest {};

TEST_P(ForwardNoFaultTest, Passes) {
  build();
  expectPasses(cases());
}

INSTANTIATE_TEST_SUITE_P(Unharmed, ForwardNoFaultTest,
                         testing::ValuesIn(parameters(Fault{"None", none, 0})),
                         nameOf);

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Either end of the mask, and of each of the three segments, which are full
/// blocks, tail and head. (A full block that is masked does no harm.)
static const Fault kWindowFaults[] = {
    {"BeginOneMore", shiftMask<MaskEnd::Begin, 1>, 1},
    {"BeginOneLess", shiftMask<MaskEnd::Begin, -1>, 1},
    {"EndOneMore", shiftMask<MaskEnd::End, 1>, 2},
    {"EndOneLess", shiftMask<MaskEnd::End, -1>, 2},
    {"DropMask", dropMask, 2},
    {"SkipFirst", moveSegment<-1, 1>, 3},
    {"FullTooLong", moveSegment<0, 1>, 3},
    {"TailTooLong", moveSegment<1, 1>, 3},
    {"HeadTooShort", moveSegment<2, -1>, 3},
};

class WindowFaultTest : public ForwardKernelTest {};

TEST_P(WindowFaultTest, IsFound) {
  build(/*hasWindow=*/true);
  expectFound(windows());
}

// Of each family one type.
static const Subject kWindowSubjects[] = {{"gfx942", "bf16"},
                                          {"gfx950", "f16"},
                                          {"gfx1100", "bf16"},
                                          {"gfx1201", "f16"}};

INSTANTIATE_TEST_SUITE_P(Planted, WindowFaultTest,
                         testing::ValuesIn(parametersOf(kWindowSubjects,
                                                        kWindowFaults)),
                         nameOf);

class WindowNoFaultTest : public ForwardKernelTest {};

TEST_P(WindowNoFaultTest, Passes) {
  build(/*hasWindow=*/true);
  expectPasses(windows());
}

INSTANTIATE_TEST_SUITE_P(
    Unharmed, WindowNoFaultTest,
    testing::ValuesIn(parametersOf(kWindowSubjects, Fault{"None", none, 0})),
    nameOf);
