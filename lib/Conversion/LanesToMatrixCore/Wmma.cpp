//===- Wmma.cpp - attn.mma as WMMA ----------------------------------------===//

#include "MatrixCore.h"

using namespace mlir;
using namespace fovea;

namespace {
struct MmaToWmma : public MmaPattern {
  MmaToWmma(MLIRContext *context, const target::TargetInfo &target)
      : MmaPattern(context, target, target::MatrixFamily::Wmma) {}

  void emit(attn::MmaOp op, const target::MatrixInstr &inst,
            PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<amdgpu::WMMAOp>(
        op, op.getResult().getType(), inst.m, inst.n, inst.k, op.getA(),
        op.getB(), op.getC());
  }
};
} // namespace

void fovea::populateWmmaPatterns(RewritePatternSet &patterns,
                                 const target::TargetInfo &target) {
  patterns.add<MmaToWmma>(patterns.getContext(), target);
}
