//===- GradientFaultTest.cpp - wrong gradients must be found wrong --------===//
//
// As ForwardFaultTest, for the kernels of the backward pass: each fault is in
// one of them, and the oracle must refuse what the three of them give.
//
//===----------------------------------------------------------------------===//

#include "PlantedKernel.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// dS = P * dP instead of P * (dP - delta).
static int dropDelta(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](arith::SubFOp difference) {
    difference.getResult().replaceAllUsesWith(difference.getLhs());
    ++changed;
  });
  return changed;
}

/// The row sums are of something else: delta of O and O.
static int wrongDelta(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](arith::MulFOp product) {
    product.getRhsMutable().assign(product.getLhs());
    ++changed;
  });
  return changed;
}

/// What is multiplied with P and dS is taken the other way round. Head
/// dimension and block are equal, so that it fits.
static int turnOperand(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::StoreLdsOp store) {
    auto turned = store.getTile().getDefiningOp<attn::TransposeOp>();
    if (!turned || turned.getType() != turned.getOperand().getType())
      return;
    store.getTileMutable().assign(turned.getOperand());
    ++changed;
  });
  return changed;
}

/// The last block of the innermost, last loop is left to nobody.
static int skipBlock(gpu::GPUFuncOp kernel) {
  scf::ForOp last;
  kernel.walk([&](scf::ForOp loop) {
    if (loop.getOps<scf::ForOp>().empty())
      last = loop;
  });
  return stopEarly(last);
}

/// The loop over the heads of the group ends early.
static int dropHead(gpu::GPUFuncOp kernel) {
  return stopEarly(*kernel.getOps<scf::ForOp>().begin());
}

/// Products with the scale, which gradients have last.
template <typename Change>
static int changeLastScale(gpu::GPUFuncOp kernel, Change change) {
  Value scale = kernel.getArguments().back();
  int changed = 0;
  SmallVector<arith::MulFOp> products;
  kernel.walk([&](arith::MulFOp product) {
    auto splat = product.getRhs().getDefiningOp<tensor::SplatOp>();
    if (splat && splat.getInput() == scale)
      products.push_back(product);
  });
  for (arith::MulFOp product : products) {
    change(product);
    ++changed;
  }
  return changed;
}
static int scaleTwice(gpu::GPUFuncOp kernel) {
  return changeLastScale(kernel, [](arith::MulFOp product) {
    OpBuilder b(product);
    product.getLhsMutable().assign(arith::MulFOp::create(
        b, product.getLoc(), product.getLhs(), product.getRhs()));
  });
}
static int dropScale(gpu::GPUFuncOp kernel) {
  return changeLastScale(kernel, [](arith::MulFOp product) {
    product.getResult().replaceAllUsesWith(product.getLhs());
  });
}

const Fault kFaults[] = {
    {"WrongDelta", wrongDelta, 1, "delta"},
    {"DropDeltaInDkdv", dropDelta, 2, "dkdv"},
    {"DropDeltaInDq", dropDelta, 2, "dq"},
    {"TurnOperandInDkdv", turnOperand, 4, "dkdv"},
    {"TurnOperandInDq", turnOperand, 2, "dq"},
    {"SkipQueries", skipBlock, 1, "dkdv"},
    {"SkipKeys", skipBlock, 1, "dq"},
    {"DropHead", dropHead, 1, "dkdv"},
    {"ScaleTwiceInDkdv", scaleTwice, 1, "dkdv"},
    {"ScaleTwiceInDq", scaleTwice, 1, "dq"},
    {"DropScaleInDkdv", dropScale, 1, "dkdv"},
    {"DropScaleInDq", dropScale, 1, "dq"},
    {"MaskOneMoreInDkdv", shiftMask<MaskEnd::Begin, -1>, 1, "dkdv"},
    {"MaskOneMoreInDq", shiftMask<MaskEnd::End, 1>, 1, "dq"},
    {"MaskOneLessInDkdv", shiftMask<MaskEnd::Begin, 1>, 1, "dkdv"},
    {"MaskOneLessInDq", shiftMask<MaskEnd::End, -1>, 1, "dq"},
    {"DropMaskInDkdv", dropMask, 1, "dkdv"},
    {"DropMaskInDq", dropMask, 1, "dq"},
    {"ScoresOnePerCentMore", changeScale<1>, 2},
    {"ScoresOnePerCentLess", changeScale<-1>, 2},
};

class GradientFaultTest : public PlantedKernelTest {
protected:
  /// A causal one, or one that takes a window.
  void build(bool hasWindow = false, const std::string &algorithm = "");
  std::vector<run::BackwardCase> cases() const;
  std::vector<run::BackwardCase> windows() const;

  /// Also that of blocks of queries and keys.
  static constexpr int kHeadDim = 32;
};
} // namespace

void GradientFaultTest::build(bool hasWindow, const std::string &algorithm) {
  std::string tensor = llvm::formatv(
      "memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>", kHeadDim, dtype());
  std::string lse = "memref<?x?x?xf32, strided<[?, ?, 1]>>";
  KernelRecord record;
  record.problem.op = fovea::OpKind::Backward;
  record.problem.headDim = kHeadDim;
  if (hasWindow)
    record.problem.groups[kWindowGroup] = kWindowVersion;
  else
    record.problem.mask = fovea::MaskKind::CausalBottomRight;
  record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Backward);
  PlantedKernelTest::build(
      llvm::formatv(
          "func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, %dout: {0}, "
          "%lse: {1}, %dq: {0}, %dk: {0}, %dv: {0}, %w: memref<?xi8>, "
          "%scale: f32{2}) {{\n"
          "attn.backward %q, %k, %v, %out, %dout, %lse -> %dq, %dk, %dv "
          "workspace(%w) scale(%scale) visible {3} : "
          "{0}, {0}, {0}, {0}, {0}, {1} -> {0}, {0}, {0}, memref<?xi8>\n"
          "return\n}",
          tensor, lse, hasWindow ? kWindowArguments : "",
          hasWindow ? kWindowPart : "[#attn.causal<bottom_right>]"),
      record, /*blockN=*/kHeadDim, algorithm);
}

std::vector<run::BackwardCase> GradientFaultTest::cases() const {
  std::vector<run::BackwardCase> all;
  for (int64_t seqK : {200, 331}) {
    run::BackwardCase c;
    c.forward.type = type();
    c.forward.headDim = kHeadDim;
    c.forward.mask = reference::Mask::CausalBottomRight;
    c.forward.heads = 4;
    c.forward.headsK = 2;
    c.forward.seqQ = 200;
    c.forward.seqK = seqK;
    c.doutScale = seqK == 200 ? 1 : 64;
    all.push_back(c);
  }
  return all;
}

std::vector<run::BackwardCase> GradientFaultTest::windows() const {
  std::vector<run::BackwardCase> all;
  for (const Window &window : kFaultWindows) {
    run::BackwardCase c;
    c.forward.type = type();
    c.forward.headDim = kHeadDim;
    c.forward.mask = window;
    c.forward.heads = 2;
    c.forward.headsK = 1;
    c.forward.seqQ = 300;
    c.forward.seqK = 420;
    all.push_back(c);
  }
  return all;
}

TEST_P(GradientFaultTest, IsFound) {
  build();
  expectFound(cases());
}

/// Of each family one type.
static std::vector<Parameters> parameters(ArrayRef<Fault> faults) {
  static const Subject subjects[] = {{"gfx908", "f16"},
                                     {"gfx942", "bf16"},
                                     {"gfx1100", "bf16"},
                                     {"gfx1201", "f16"}};
  return parametersOf(subjects, faults);
}

INSTANTIATE_TEST_SUITE_P(Planted, GradientFaultTest,
                         testing::ValuesIn(parameters(kFaults)), nameOf);

class GradientNoFaultTest : public GradientFaultTest {};

TEST_P(GradientNoFaultTest, Passes) {
  build();
  expectPasses(cases());
}

INSTANTIATE_TEST_SUITE_P(Unharmed, GradientNoFaultTest,
                         testing::ValuesIn(parameters(Fault{"None", none, 0})),
                         nameOf);

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

static const Fault kWindowFaults[] = {
    // Masked blocks, which are tail and head, then full ones.
    {"BeginOneMoreInDkdv", shiftMask<MaskEnd::Begin, 1>, 1, "dkdv"},
    {"BeginOneLessInDkdv", shiftMask<MaskEnd::Begin, -1>, 1, "dkdv"},
    {"EndOneMoreInDkdv", shiftMask<MaskEnd::End, 1>, 1, "dkdv"},
    {"EndOneLessInDkdv", shiftMask<MaskEnd::End, -1>, 1, "dkdv"},
    {"BeginOneMoreInDq", shiftMask<MaskEnd::Begin, 1>, 1, "dq"},
    {"BeginOneLessInDq", shiftMask<MaskEnd::Begin, -1>, 1, "dq"},
    {"EndOneMoreInDq", shiftMask<MaskEnd::End, 1>, 2, "dq"},
    {"EndOneLessInDq", shiftMask<MaskEnd::End, -1>, 2, "dq"},
    {"SkipFirstInDkdv", moveSegment<-1, 1>, 2, "dkdv"},
    {"MaskedTooShortInDkdv", moveSegment<0, -1>, 2, "dkdv"},
    {"FullTooLongInDkdv", moveSegment<1, 1>, 2, "dkdv"},
    {"FullTooShortInDkdv", moveSegment<1, -1>, 2, "dkdv"},
    {"SkipFirstInDq", moveSegment<-1, 1>, 3, "dq"},
    {"FullTooLongInDq", moveSegment<0, 1>, 3, "dq"},
    {"TailTooLongInDq", moveSegment<1, 1>, 3, "dq"},
    {"HeadTooShortInDq", moveSegment<2, -1>, 3, "dq"},
};

class WindowGradientFaultTest : public GradientFaultTest {};

TEST_P(WindowGradientFaultTest, IsFound) {
  build(/*hasWindow=*/true);
  expectFound(windows());
}

INSTANTIATE_TEST_SUITE_P(Planted, WindowGradientFaultTest,
                         testing::ValuesIn(parameters(kWindowFaults)), nameOf);

class WindowGradientNoFaultTest : public GradientFaultTest {};

TEST_P(WindowGradientNoFaultTest, Passes) {
  build(/*hasWindow=*/true);
  expectPasses(windows());
}

INSTANTIATE_TEST_SUITE_P(Unharmed, WindowGradientNoFaultTest,
                         testing::ValuesIn(parameters(Fault{"None", none, 0})),
                         nameOf);

//===----------------------------------------------------------------------===//
// Sums of dQ in 16 bits
//===----------------------------------------------------------------------===//

/// What a block adds to dQ is added again.
static int addTwice(gpu::GPUFuncOp kernel) {
  SmallVector<attn::AtomicAddOp> additions;
  kernel.walk([&](attn::AtomicAddOp add) { additions.push_back(add); });
  for (attn::AtomicAddOp add : additions)
    OpBuilder(add).clone(*add);
  return additions.size();
}

/// What is added is not scaled.
static int addUnscaled(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::AtomicAddOp add) {
    auto rounded = add.getTile().getDefiningOp<attn::RoundOp>();
    if (auto scaled = rounded.getTile().getDefiningOp<arith::MulFOp>()) {
      rounded.getTileMutable().assign(scaled.getLhs());
      ++changed;
    }
  });
  return changed;
}

/// Blocks of queries begin where the first query that is seen does, not with
/// pairs of rows.
static int beginAnywhere(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](arith::SubIOp origin) {
    if (!origin.getRhs().getDefiningOp<arith::RemUIOp>())
      return;
    origin.getResult().replaceAllUsesWith(origin.getLhs());
    ++changed;
  });
  return changed;
}

/// Even rows of dQ are stored where odd ones belong.
static int exchangeRows(gpu::GPUFuncOp kernel) {
  SmallVector<attn::StoreOp> stores(kernel.getOps<attn::StoreOp>());
  if (stores.size() != 2)
    return 0;
  Value even = stores[0].getTile(), odd = stores[1].getTile();
  stores[0]->moveBefore(stores[1]);
  stores[0].getTileMutable().assign(odd);
  stores[1].getTileMutable().assign(even);
  return 1;
}

static const Fault kNarrowFaults[] = {
    {"AddTwice", addTwice, 2, "fused16"},
    {"DropScale", addUnscaled, 2, "fused16"},
    {"BeginAnywhere", beginAnywhere, 1, "fused16"},
    {"ExchangeRows", exchangeRows, 1, "convert16"},
    {"EndOneMore", shiftMask<MaskEnd::End, 1>, 1, "fused16"},
};

class NarrowFaultTest : public GradientFaultTest {
protected:
  NarrowFaultTest() {
    options.deterministic = false;
    options.narrowSums = true;
  }
  run::RunOptions options;
};

/// Of the additions by buffer and by address.
static std::vector<Parameters> narrowParameters(ArrayRef<Fault> faults) {
  static const Subject subjects[] = {{"gfx942", "bf16"}, {"gfx950", "f16"}};
  return parametersOf(subjects, faults);
}

TEST_P(NarrowFaultTest, IsFound) {
  build(/*hasWindow=*/true, "atomic16");
  expectFound(windows(), options);
}

INSTANTIATE_TEST_SUITE_P(Planted, NarrowFaultTest,
                         testing::ValuesIn(narrowParameters(kNarrowFaults)),
                         nameOf);

class NarrowNoFaultTest : public NarrowFaultTest {};

TEST_P(NarrowNoFaultTest, Passes) {
  build(/*hasWindow=*/true, "atomic16");
  expectPasses(windows(), options);
}

INSTANTIATE_TEST_SUITE_P(
    Unharmed, NarrowNoFaultTest,
    testing::ValuesIn(narrowParameters(Fault{"None", none, 0})), nameOf);
