//===- MatrixCore.h - matrix instructions by family -------------*- C++ -*-===//
//
// One set of patterns a family of matrix instructions, all over the same table.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_CONVERSION_LANESTOMATRIXCORE_MATRIXCORE_H
#define FOVEA_LIB_CONVERSION_LANESTOMATRIXCORE_MATRIXCORE_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/IR/PatternMatch.h"

namespace fovea {

/// A pattern on attn.mma for the instructions of one family.
class MmaPattern : public mlir::OpRewritePattern<attn::MmaOp> {
public:
  MmaPattern(mlir::MLIRContext *context, const target::TargetInfo &target,
             target::MatrixFamily family)
      : OpRewritePattern(context), target(target), family(family) {}

  mlir::LogicalResult
  matchAndRewrite(attn::MmaOp op,
                  mlir::PatternRewriter &rewriter) const override {
    if (op.getInst().getInfo().family != family)
      return rewriter.notifyMatchFailure(op, "not this family's");
    auto factor = mlir::cast<mlir::VectorType>(op.getA().getType());
    const target::MatrixInstr *inst =
        attn::lookupMatrixInstr(target, op.getInst(), factor.getElementType());
    if (!inst)
      return rewriter.notifyMatchFailure(op, "not this chip's");
    emit(op, *inst, rewriter);
    return mlir::success();
  }

protected:
  virtual void emit(attn::MmaOp op, const target::MatrixInstr &inst,
                    mlir::PatternRewriter &rewriter) const = 0;

private:
  const target::TargetInfo &target;
  target::MatrixFamily family;
};

void populateMfmaPatterns(mlir::RewritePatternSet &patterns,
                          const target::TargetInfo &target);
void populateWmmaPatterns(mlir::RewritePatternSet &patterns,
                          const target::TargetInfo &target);
void sinkReads(mlir::gpu::GPUFuncOp kernel);
void populateLaneProductPatterns(mlir::RewritePatternSet &patterns,
                                 const target::TargetInfo &target);

} // namespace fovea

#endif // FOVEA_LIB_CONVERSION_LANESTOMATRIXCORE_MATRIXCORE_H
