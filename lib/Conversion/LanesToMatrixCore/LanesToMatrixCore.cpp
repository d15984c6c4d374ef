//===- LanesToMatrixCore.cpp - convert-attn-to-matrix-core ----------------===//

#include "MatrixCore.h"
#include "fovea/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_CONVERTATTNTOMATRIXCORE
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

namespace {
using namespace fovea;

/// How many instructions of a kind stand in some run of ops.
struct Mix {
  int matrix = 0, exponentials = 0, reads = 0, copies = 0;
  /// That a wave can issue, one in four clocks, while a product is under way.
  int issuesBeside = 0;

  void add(Operation *op) {
    if (isa<amdgpu::MFMAOp, amdgpu::WMMAOp>(op)) {
      ++matrix;
      if (auto product = dyn_cast<amdgpu::MFMAOp>(op))
        issuesBeside = product.getM() == 32 ? 7 : 3;
    } else if (readsLds(op))
      ++reads;
    else if (isa<ROCDL::RawPtrBufferLoadLdsOp>(op))
      ++copies;
    else if (isa<ROCDL::ROCDLExp2>(op))
      ++exponentials;
    else if (auto round = dyn_cast<arith::TruncFOp>(op))
      vectors += halfOf(round.getType());
    else if (isRounding(op) || isa<arith::CmpIOp>(op))
      ++vectors;
    else if (isa<arith::MaxNumFOp>(op))
      ++maxima;
    else if (isa<arith::NegFOp>(op))
      return; // part of its user
    else if (op->getNumResults() == 1 && op->getNumOperands() > 0 &&
             op->getResult(0).getType().isF32() && !isa<vector::ExtractOp>(op))
      ++vectors;
  }
  /// Instructions: one takes two maxima of a chain.
  int vectorInstructions() const { return vectors + (maxima + 1) / 2; }

private:
  int vectors = 0, maxima = 0;
  static bool readsLds(Operation *op) {
    constexpr unsigned kLdsAddressSpace = 3;
    auto load = dyn_cast<LLVM::LoadOp>(op);
    return isa<ROCDL::ds_read_tr16_b64>(op) ||
           (load && cast<LLVM::LLVMPointerType>(load.getAddr().getType())
                            .getAddressSpace() == kLdsAddressSpace);
  }
  /// Of those that round two f32 to bf16 without a conversion.
  static bool isRounding(Operation *op) {
    if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
      return call.getIntrin() == "llvm.amdgcn.perm";
    return isa<arith::AddIOp>(op) &&
           isa_and_nonnull<arith::BitcastOp, LLVM::BitcastOp>(
               op->getOperand(0).getDefiningOp());
  }
  /// Instructions that convert two elements each.
  static int halfOf(Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? int(vector.getNumElements() + 1) / 2 : 1;
  }
};

/// attn.interleave: groups for LLVM's scheduler. Some reads come first, since
/// the matrix instructions want them; then each is followed by its share of the
/// rest. To the scheduler, exponentials are no vector arithmetic.
static void interleave(attn::InterleaveOp op) {
  constexpr int kReadsAhead = 4;
  constexpr int kMostVectors = 16; // of a product's share
  enum Kind : uint32_t {
    Vectors = 1u << 1,
    Matrix = 1u << 3,
    Copies = 1u << 4,
    Reads = 1u << 8,
    Exponentials = 1u << 10,
    // Vector and scalar instructions, memory, LDS, exponentials.
    Others = 0x7f6
  };
  OpBuilder b(op);
  auto group = [&](uint32_t kinds, int size) {
    if (size > 0)
      ROCDL::SchedGroupBarrier::create(b, op.getLoc(), kinds, size,
                                       /*groupId=*/0);
  };
  Mix mix;
  for (Operation *before = op->getPrevNode();
       before && before->getNumRegions() == 0 &&
       !isa<amdgpu::LDSBarrierOp, amdgpu::SchedBarrierOp, ROCDL::SetPrioOp,
            ROCDL::SchedGroupBarrier>(before);
       before = before->getPrevNode())
    mix.add(before);
  auto schedule =
      op->getParentOfType<gpu::GPUFuncOp>()->getAttrOfType<attn::ScheduleAttr>(
          attn::kScheduleAttrName);
  const bool isAlone = schedule && schedule.getWavesPerSimd() == 1;
  if (isAlone && !schedule.getDirectCopy() && !op.getHasLoads()) {
    // What one wave has no instruction for is lost, and what loads by way of
    // registers need is no op yet that could be counted.
    for (int number = 0; number < mix.matrix; ++number) {
      group(Matrix, 1);
      group(Others, mix.issuesBeside);
    }
  } else if (mix.matrix > 0) {
    // What a wave that is alone reads for its next segment has to be there when
    // that begins: it comes with the first two thirds of the products. Beside
    // loads by way of registers LDS takes longer than that: with all of them.
    const int readers = isAlone && !op.getHasLoads()
                            ? std::max(1, mix.matrix * 2 / 3)
                            : mix.matrix;
    if (!isAlone)
      group(Reads, std::min(mix.reads, kReadsAhead));
    for (int number = 0; number < mix.matrix; ++number) {
      auto share = [&](int all) {
        auto upTo = [&](int end) { return all * end / mix.matrix; };
        return upTo(number + 1) - upTo(number);
      };
      group(Matrix, 1);
      // Rounded up: what counting misses would gather at the end. Exponentials
      // are all counted, and no instruction behind them waits long enough. Of
      // what is longer than any product hides, as score programs have it, the
      // rest has no place: places for all of it took LLVM seconds to find, and
      // the kernel registers.
      group(Vectors,
            std::min(kMostVectors, int(llvm::divideCeil(mix.vectorInstructions(),
                                                        mix.matrix))));
      group(Exponentials, share(mix.exponentials));
      group(Reads, llvm::divideCeil(mix.reads, readers));
      if (isAlone)
        group(op.getHasLoads() ? Others : Copies,
              op.getHasLoads() ? 1 : share(mix.copies));
    }
  }
  op.erase();
}

struct ConvertAttnToMatrixCore
    : public fovea::impl::ConvertAttnToMatrixCoreBase<ConvertAttnToMatrixCore> {
  void runOnOperation() override {
    auto target =
        getOperation()->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
    if (!target)
      return; // nothing of ours
    getOperation().walk(
        [](gpu::GPUFuncOp kernel) { sinkReads(kernel); });
    RewritePatternSet patterns(&getContext());
    populateMfmaPatterns(patterns, target.getInfo());
    populateWmmaPatterns(patterns, target.getInfo());
    populateLaneProductPatterns(patterns, target.getInfo());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation().walk(interleave);
    getOperation().walk([&](attn::MmaOp op) {
      attn::emitNoMatrixInstr([&] { return op.emitOpError(); },
                              target.getInfo(), op.getInst(),
                              getElementTypeOrSelf(op.getA()));
      signalPassFailure();
    });
  }
};
} // namespace
