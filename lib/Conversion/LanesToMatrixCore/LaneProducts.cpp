//===- LaneProducts.cpp - attn.mma as fused multiply-adds -----------------===//

#include "MatrixCore.h"
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

void fovea::populateLaneProductPatterns(RewritePatternSet &patterns,
                                        const target::TargetInfo &target) {
  patterns.add<MmaToLaneProducts>(patterns.getContext(), target);
}
