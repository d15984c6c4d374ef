//===- LaneProducts.cpp - attn.mma as fused multiply-adds -----------------===//

#include "MatrixCore.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fovea;

namespace {
struct MmaToLaneProducts : public MmaPattern {
  MmaToLaneProducts(MLIRContext *context, const target::TargetInfo &target)
      : MmaPattern(context, target, target::MatrixFamily::Lanes) {}

  void emit(attn::MmaOp op, const target::MatrixInstr &inst,
            PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto elementsOf = [&](Value vector) {
      SmallVector<Value> elements;
      for (int64_t i = 0;
           i < cast<VectorType>(vector.getType()).getNumElements(); ++i)
        elements.push_back(vector::ExtractOp::create(rewriter, loc, vector, i));
      return elements;
    };
    SmallVector<Value> a = elementsOf(op.getA()), b = elementsOf(op.getB()),
                       sums = elementsOf(op.getC());
    // In the order of the contraction; sums beside one another do not wait.
    for (int k = 0; k < inst.k; ++k)
      for (auto [number, factor] : llvm::enumerate(a)) {
        layout::Coord at = inst.a.map(int(number), 0, 0);
        if (at[1] == k)
          sums[at[0]] =
              math::FmaOp::create(rewriter, loc, factor, b[k], sums[at[0]]);
      }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, op.getResult().getType(), sums);
  }
};
} // namespace

/// Whether what a kernel reads of LDS is more than registers hold at once: by
/// lanes every one of them holds it all, and an operand that stays in LDS is
/// read once a block, all of it.
static bool readsMuch(gpu::GPUFuncOp kernel) {
  auto schedule =
      kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName);
  if (schedule && schedule.getQueriesInLds() == 3)
    return true;
  return kernel
      ->walk([](attn::MmaOp op) {
        return op.getInst().getInfo().family == target::MatrixFamily::Lanes
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Reads of LDS come ahead of all products of a tile: they go to where the
/// first product takes what they read, if that is before others may write.
void fovea::sinkReads(gpu::GPUFuncOp kernel) {
  if (!readsMuch(kernel))
    return;
  constexpr unsigned kLdsAddressSpace = 3;
  auto readsLds = [](Operation &op) {
    if (isa<ROCDL::ds_read_tr16_b64>(op))
      return true;
    auto load = dyn_cast<LLVM::LoadOp>(op);
    return load && cast<LLVM::LLVMPointerType>(load.getAddr().getType())
                           .getAddressSpace() == kLdsAddressSpace;
  };
  auto isPart = [](Operation &op) {
    return isa<vector::ExtractOp, vector::FromElementsOp, vector::ShuffleOp,
               vector::BitCastOp, LLVM::GEPOp>(op);
  };
  auto sink = [&](Block &block) {
    Operation *boundary = nullptr; // the nearest that reads may not pass
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (!readsLds(op) && !isPart(op)) {
        if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0)
          boundary = &op;
        continue;
      }
      Operation *first = readsLds(op) ? boundary : nullptr;
      bool isLocal = true;
      for (Operation *user : op.getUsers()) {
        Operation *at = block.findAncestorOpInBlock(*user);
        isLocal &= at != nullptr;
        if (at && (!first || at->isBeforeInBlock(first)))
          first = at;
      }
      if (isLocal && first && first != boundary && first != op.getNextNode())
        op.moveBefore(first);
    }
  };
  kernel->walk([&](Block *block) { sink(*block); });
}

void fovea::populateLaneProductPatterns(RewritePatternSet &patterns,
                                        const target::TargetInfo &target) {
  patterns.add<MmaToLaneProducts>(patterns.getContext(), target);
}
