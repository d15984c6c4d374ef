//===- VerifyStage.cpp - attn-verify-stage --------------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNVERIFYSTAGE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

/// Null if `op` may stand in a module of this stage, else what is wrong.
using Check = const char *(*)(Operation * op);

static const char *checkScheduled(Operation *op) {
  if (!isa<AttentionOpInterface>(op))
    return nullptr;
  if (!op->hasAttr("schedule"))
    return "has no schedule";
  auto func = op->getParentOfType<func::FuncOp>();
  if (!func)
    return "stands outside a func.func";
  return func->hasAttr(kTargetAttrName)
             ? nullptr
             : "stands in a function without a target";
}

static const char *checkTiles(Operation *op) {
  if (isa<AttentionOpInterface>(op))
    return "is not tiled";
  if (isa<gpu::GPUModuleOp>(op) && !op->hasAttr(kTargetAttrName))
    return "has no target";
  return nullptr;
}

static const char *checkLayouts(Operation *op) {
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()) &&
        !getTileLayout(result.getType()))
      return "gives a tile without a layout";
  return checkTiles(op);
}

static const char *checkLanes(Operation *op) {
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()))
      return "still works on tiles";
  if (op->getDialect()->getNamespace() == "attn" &&
      !isa<MmaOp, InterleaveOp>(op))
    return "is not distributed to lanes";
  return checkTiles(op);
}

static const char *checkRocdl(Operation *op) {
  if (isa<ModuleOp, gpu::GPUModuleOp>(op) ||
      isa<LLVM::LLVMDialect, ROCDL::ROCDLDialect>(op->getDialect()))
    return nullptr;
  return "is neither llvm nor rocdl";
}

struct VerifyStage
    : public fovea::attn::impl::AttnVerifyStageBase<VerifyStage> {
  using AttnVerifyStageBase::AttnVerifyStageBase;

  void runOnOperation() override {
    static constexpr std::pair<StringLiteral, Check> stages[] = {
        {"scheduled", checkScheduled},
        {"tiles", checkTiles},
        {"layouts", checkLayouts},
        {"lanes", checkLanes},
        {"rocdl", checkRocdl}};
    for (auto [name, check] : stages) {
      if (name != stage)
        continue;
      auto walked =
          getOperation().walk([&, check = check](Operation *op) -> WalkResult {
            const char *wrong = check(op);
            if (!wrong)
              return success();
            return op->emitOpError() << wrong << " (stage '" << stage << "')";
          });
      if (walked.wasInterrupted())
        signalPassFailure();
      return;
    }
    emitError(getOperation().getLoc())
        << "unknown stage '" << stage
        << "'; known: scheduled, tiles, layouts, lanes, rocdl";
    signalPassFailure();
  }
};
} // namespace
