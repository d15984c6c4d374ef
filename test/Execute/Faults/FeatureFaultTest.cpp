//===- FeatureFaultTest.cpp - wrong features must be found wrong ----------===//
//
// As ForwardFaultTest and GradientFaultTest, for what kernels with feature
// groups and biases have besides: each fault is planted into the kernels of a
// table, and the oracle must refuse what they give, and none without one.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// Changes a kernel's tile program; returns how many places it changed.
using Plant = int (*)(gpu::GPUFuncOp kernel);
struct Fault {
  const char *name;
  Plant plant;
};

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// The second and the third word of four change places.
int swapWords(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::DropoutOp op) {
    OpBuilder b(op);
    Value yes = arith::ConstantIntOp::create(b, op.getLoc(), 1, 1);
    op.getSwapsMutable().assign(
        arith::XOrIOp::create(b, op.getLoc(), op.getSwaps(), yes));
    ++changed;
  });
  return changed;
}

/// Four keys have the words of the next four.
int moveCounter(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::DropoutOp op) {
    OpBuilder b(op);
    Value one = arith::ConstantIntOp::create(b, op.getLoc(), 1, 64);
    op.getCounterMutable().assign(
        arith::AddIOp::create(b, op.getLoc(), op.getCounter(), one));
    ++changed;
  });
  return changed;
}

/// What is kept is scaled twice.
int scaleTwice(gpu::GPUFuncOp kernel) {
  auto names = kernel->getAttrOfType<ArrayAttr>(hsaco::kArgumentNamesAttrName);
  for (auto [name, argument] : llvm::zip_equal(names, kernel.getArguments())) {
    if (cast<StringAttr>(name) != "dropout_scale" || argument.use_empty())
      continue;
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    auto square = arith::MulFOp::create(b, kernel.getLoc(), argument, argument);
    argument.replaceAllUsesExcept(square, square);
    return 1;
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Sequences of different lengths
//===----------------------------------------------------------------------===//

/// A sequence begins one row later: of each side whose start is read.
int moveStart(gpu::GPUFuncOp kernel) {
  SmallVector<arith::SelectOp> starts;
  kernel.walk([&](arith::SelectOp select) {
    if (select.getType().isInteger(32) &&
        matchPattern(select.getTrueValue(), m_Zero()) &&
        select.getFalseValue().getDefiningOp<LLVM::LoadOp>())
      starts.push_back(select);
  });
  for (arith::SelectOp start : starts) {
    OpBuilder b(start);
    b.setInsertionPointAfter(start);
    Value one = arith::ConstantIntOp::create(b, start.getLoc(), 1, 32);
    auto later = arith::AddIOp::create(b, start.getLoc(), start, one);
    start.getResult().replaceAllUsesExcept(later, later);
  }
  return int(starts.size());
}

//===----------------------------------------------------------------------===//
// Gradients of a bias
//===----------------------------------------------------------------------===//

/// It has the scale of the scores, like the gradients of queries and keys.
int scaleBiasGradient(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::ScatterOp store) {
    auto narrow = store.getTile().getDefiningOp<arith::TruncFOp>();
    if (!narrow)
      return;
    OpBuilder b(narrow);
    auto type = cast<RankedTensorType>(narrow.getIn().getType());
    Value scale = arith::ConstantOp::create(
        b, narrow.getLoc(),
        DenseElementsAttr::get(type, b.getF32FloatAttr(0.25f)));
    narrow.getInMutable().assign(
        arith::MulFOp::create(b, narrow.getLoc(), narrow.getIn(), scale));
    ++changed;
  });
  return changed;
}

const Fault kDropout[] = {{"WordsOutOfOrder", swapWords},
                          {"CounterOneFurther", moveCounter},
                          {"ScaledTwice", scaleTwice}};
const Fault kSequences[] = {{"StartOneOff", moveStart}};
const Fault kBiasGradient[] = {{"Scaled", scaleBiasGradient}};

class FeatureFaults : public GroupKernelTest {
protected:
  /// Of the kernels as they are, and with each fault.
  void expectFound(fovea::OpKind op, llvm::ArrayRef<Fault> faults);

  template <typename Case>
  bool passes(const Case &c) {
    const run::RunReport report = session->run(c, options);
    return report.outcome == run::Outcome::Pass;
  }
  bool runCase(fovea::OpKind op);
};

/// Whether the results are right.
bool FeatureFaults::runCase(fovea::OpKind op) {
  run::ForwardCase c = makeCase(2, 70, 90, reference::Mask::CausalBottomRight);
  c.scale = 0.25f;
  fill(c, kernel().has("varlen") ? "packed:30x41,65x20,3x53" : nullptr);
  if (kernel().has("dropout"))
    c.dropout = dropoutOf(c, 0.3f, 0x1bf52, 0x1d4b42);
  if (op == fovea::OpKind::Forward)
    return passes(c);
  run::BackwardCase backward;
  backward.forward = c;
  return passes(backward);
}

void FeatureFaults::expectFound(fovea::OpKind op,
                                llvm::ArrayRef<Fault> faults) {
  change = nullptr;
  compile(op);
  if (HasFatalFailure())
    return;
  EXPECT_TRUE(runCase(op)) << "without a fault";
  for (const Fault &fault : faults) {
    SCOPED_TRACE(fault.name);
    int changed = 0;
    change = [&](gpu::GPUFuncOp function) { changed += fault.plant(function); };
    memory = CaseMemory(); // of the session that ends
    compile(op);
    if (HasFatalFailure())
      return;
    EXPECT_GT(changed, 0) << "it was planted nowhere";
    EXPECT_FALSE(runCase(op)) << "it passes for right";
  }
}

class DropoutFaults : public FeatureFaults {};
class SequenceFaults : public FeatureFaults {};
class BiasGradientFaults : public FeatureFaults {};

} // namespace

TEST_P(DropoutFaults, AreFoundInForward) {
  expectFound(fovea::OpKind::Forward, kDropout);
}
TEST_P(DropoutFaults, AreFoundInBackward) {
  expectFound(fovea::OpKind::Backward, kDropout);
}
TEST_P(SequenceFaults, AreFoundInForward) {
  expectFound(fovea::OpKind::Forward, kSequences);
}
TEST_P(SequenceFaults, AreFoundInBackward) {
  expectFound(fovea::OpKind::Backward, kSequences);
}
TEST_P(BiasGradientFaults, AreFound) {
  expectFound(fovea::OpKind::Backward, kBiasGradient);
}

namespace {

const GroupKernel kKernels[] = {{"gfx942", "gfx942", "bf16", 32, {}},
                                {"gfx1201", "gfx1201", "f16", 32, {}}};

constexpr const char *kBias = "memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>";
constexpr const char *kBiasProgram = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32,
       %bias: memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>):
    %b = attn.at %bias[%batch, %head, %query, %key]
      : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
    %s = arith.addf %x, %b : f32
    attn.yield %s : f32
  })";
const GroupKernel kWithBias = {"gfx942", "gfx942",     "bf16", 32,    {},
                               {},       kBiasProgram, 0,      kBias, kBias};

INSTANTIATE_TEST_SUITE_P(Planted, DropoutFaults,
                         testing::ValuesIn(withGroup("dropout", kKernels)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Planted, SequenceFaults,
                         testing::ValuesIn(withGroup("varlen", kKernels)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Planted, BiasGradientFaults,
                         testing::Values(kWithBias), nameOf);

} // namespace
