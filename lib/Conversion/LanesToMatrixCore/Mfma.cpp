//===- Mfma.cpp - attn.mma as MFMA ----------------------------------------===//

#include "MatrixCore.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fovea;

namespace {
struct MmaToMfma : public MmaPattern {
  MmaToMfma(MLIRContext *context, const target::TargetInfo &target)
      : MmaPattern(context, target, target::MatrixFamily::Mfma) {}

  void emit(attn::MmaOp op, const target::MatrixInstr &inst,
            PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<amdgpu::MFMAOp>(
        op, op.getResult().getType(), inst.m, inst.n, inst.k, /*blocks=*/1,
        factor(rewriter, op.getA()), factor(rewriter, op.getB()), op.getC(),
        /*cbsz=*/0, /*abid=*/0, amdgpu::MFMAPermB::none);
  }

private:
  /// One element of 32 bits is no vector.
  static Value factor(PatternRewriter &rewriter, Value vector) {
    if (cast<VectorType>(vector.getType()).getNumElements() > 1)
      return vector;
    return vector::ExtractOp::create(rewriter, vector.getLoc(), vector, 0);
  }
};
} // namespace

void fovea::populateMfmaPatterns(RewritePatternSet &patterns,
                                 const target::TargetInfo &target) {
  patterns.add<MmaToMfma>(patterns.getContext(), target);
}
