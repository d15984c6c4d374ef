//===- Mfma.cpp - convert-attn-to-mfma ------------------------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_CONVERTATTNTOMFMA
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

namespace {
using namespace fovea;

struct MmaToMfma : public OpRewritePattern<attn::MmaOp> {
  MmaToMfma(MLIRContext *context, const target::TargetInfo &target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(attn::MmaOp op,
                                PatternRewriter &rewriter) const override {
    auto factor = cast<VectorType>(op.getA().getType()).getElementType();
    const target::MatrixInstr *inst = target::lookupMatrixInstr(
        target, op.getInst(), attn::factorType(factor));
    if (!inst || inst->family != target::MatrixFamily::Mfma)
      return rewriter.notifyMatchFailure(op, "not an MFMA of this chip");
    rewriter.replaceOpWithNewOp<amdgpu::MFMAOp>(
        op, op.getResult().getType(), inst->m, inst->n, inst->k, /*blocks=*/1,
        op.getA(), op.getB(), op.getC(), /*cbsz=*/0, /*abid=*/0,
        amdgpu::MFMAPermB::none);
    return success();
  }

  const target::TargetInfo &target;
};

struct ConvertAttnToMfma
    : public fovea::impl::ConvertAttnToMfmaBase<ConvertAttnToMfma> {
  void runOnOperation() override {
    auto target =
        getOperation()->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
    if (!target)
      return; // nothing of ours
    RewritePatternSet patterns(&getContext());
    patterns.add<MmaToMfma>(&getContext(), target.getInfo());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation().walk([&](attn::MmaOp op) {
      op.emitOpError() << target.getInfo().name << " has no MFMA '"
                       << op.getInst() << "'";
      signalPassFailure();
    });
  }
};
} // namespace
