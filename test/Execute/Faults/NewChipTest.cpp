//===- NewChipTest.cpp - a row is all that a new chip takes ---------------===//
//
// Chips that nobody builds: each a row in place of a real chip's, with fewer
// features and less LDS. Schedule, layouts and lowering follow from the row
// alone: the kernels use what it has and nothing else, and are right when they
// are executed on the real chip, which can do more. docs/AddingAChip.md.
//
//===----------------------------------------------------------------------===//

#include "ForwardKernel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// gfx950 with the features of MI200, and three quarters of its LDS.
target::TargetInfo smallCdna() {
  target::TargetInfo row = *target::lookupTarget("gfx950");
  row.product = "made up";
  row.generic = "";
  row.ldsBytes = 48 * 1024;
  row.computeUnits = 40;
  row.xcds = 2;
  row.features = target::kMfmaF16 | target::kMfmaBf16_1k;
  return row;
}

/// gfx1201 with half of its LDS and none but its matrix instructions, and
/// products of scores that begin as gfx1100's do.
target::TargetInfo smallRdna() {
  target::TargetInfo row = *target::lookupTarget("gfx1201");
  row.product = "made up";
  row.generic = "";
  row.ldsBytes = 32 * 1024;
  row.computeUnits = 6;
  row.columnsBegunBelow = 128;
  row.features = target::kWmma | target::kPermlaneX16;
  return row;
}

/// What a kernel's tile program makes use of.
struct Use {
  std::string inst;
  int directCopies = 0;
  bool beginsBelow = false;
  int64_t ldsBytes = 0;
};
Use seen;

/// Looks at a kernel instead of planting a fault.
int look(gpu::GPUFuncOp kernel) {
  seen = Use();
  kernel.walk([&](mlir::Operation *op) {
    if (auto dot = dyn_cast<attn::DotOp>(op)) {
      seen.inst = dot.getInst().getName().str();
      seen.beginsBelow |= dot.getRowsAlike();
    } else if (auto lds = dyn_cast<attn::AllocLdsOp>(op))
      seen.ldsBytes += lds.getType().getBytes() * lds.getBuffers();
    else
      seen.directCopies += isa<attn::CopyLdsOp>(op);
  });
  return 0;
}

class NewChipTest : public ForwardKernelTest {
protected:
  target::TargetInfo madeUp() const {
    return chip() == "gfx950" ? smallCdna() : smallRdna();
  }
};
} // namespace

TEST_P(NewChipTest, TakesARowAlone) {
  const target::TargetInfo row = madeUp();
  target::ScopedTarget scoped(row);
  ASSERT_EQ(target::lookupTarget(chip())->product, "made up");
  build();
  EXPECT_EQ(seen.inst, chip() == "gfx950" ? "mfma_32x32x8" : "wmma_16x16x16");
  EXPECT_EQ(seen.directCopies, 0);
  EXPECT_EQ(seen.beginsBelow, row.columnsBegunBelow != 0);
  EXPECT_GT(seen.ldsBytes, 0);
  EXPECT_LE(seen.ldsBytes, row.ldsBytes);

  expectPasses(cases());
}

/// What the made-up rows lack does show in the kernels of the real ones.
TEST_P(NewChipTest, TheRealRowUsesMore) {
  build();
  if (chip() == "gfx950") {
    EXPECT_EQ(seen.inst, "mfma_32x32x16");
    EXPECT_GT(seen.directCopies, 0);
  }
  EXPECT_FALSE(seen.beginsBelow);
  EXPECT_NE(target::lookupTarget(chip())->product, "made up");
}

INSTANTIATE_TEST_SUITE_P(Rows, NewChipTest,
                         testing::Combine(testing::Values(Fault{"Row", look,
                                                                0}),
                                          testing::Values("gfx950", "gfx1201"),
                                          testing::Values("f16", "bf16")),
                         nameOf);
