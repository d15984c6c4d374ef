//===- Mfma.cpp - attn.mma as MFMA ----------------------------------------===//

#include "MatrixCore.h"

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
        op.getA(), op.getB(), op.getC(), /*cbsz=*/0, /*abid=*/0,
        amdgpu::MFMAPermB::none);
  }
};
} // namespace

void fovea::populateMfmaPatterns(RewritePatternSet &patterns,
                                 const target::TargetInfo &target) {
  patterns.add<MmaToMfma>(patterns.getContext(), target);
}
