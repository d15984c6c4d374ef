//===- LanesToMatrixCore.cpp - convert-attn-to-matrix-core ----------------===//

#include "MatrixCore.h"
#include "fovea/Conversion/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_CONVERTATTNTOMATRIXCORE
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

namespace {
using namespace fovea;

struct ConvertAttnToMatrixCore
    : public fovea::impl::ConvertAttnToMatrixCoreBase<ConvertAttnToMatrixCore> {
  void runOnOperation() override {
    auto target =
        getOperation()->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
    if (!target)
      return; // nothing of ours
    RewritePatternSet patterns(&getContext());
    populateMfmaPatterns(patterns, target.getInfo());
    populateWmmaPatterns(patterns, target.getInfo());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation().walk([&](attn::MmaOp op) {
      op.emitOpError() << target.getInfo().name
                       << " has no matrix instruction '" << op.getInst()
                       << "' for " << op.getA().getType();
      signalPassFailure();
    });
  }
};
} // namespace
