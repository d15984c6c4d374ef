//===- AttnInterfaces.cpp - interfaces of the attn dialect ----------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::TileLayout;

#include "fovea/Dialect/Attn/IR/AttnAttrInterfaces.cpp.inc"
#include "fovea/Dialect/Attn/IR/AttnInterfaces.cpp.inc"

bool fovea::attn::isTile(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2;
}

/// Gives the tiles among some values one layout.
static LogicalResult setAll(ValueRange values, const TileLayout &layout,
                            SetLayout set) {
  return success(llvm::all_of(values, [&](Value value) {
    return !isTile(value) || succeeded(set(value, layout));
  }));
}

LogicalResult fovea::attn::keepLayout(Operation *op, const TileLayout &layout,
                                      SetLayout set) {
  if (failed(setAll(op->getOperands(), layout, set)))
    return failure();
  return setAll(op->getResults(), layout, set);
}

namespace {
/// What a loop carries has one layout before, in and behind it.
struct ForLayouts
    : public LayoutOpInterface::ExternalModel<ForLayouts, scf::ForOp> {
  LogicalResult relateLayouts(Operation *op, Value known,
                              const TileLayout &layout, SetLayout set) const {
    auto loop = cast<scf::ForOp>(op);
    for (auto [init, argument, yielded, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                         loop.getYieldedValues(), loop.getResults())) {
      Value same[] = {init, argument, yielded, result};
      if (llvm::is_contained(same, known) && failed(setAll(same, layout, set)))
        return failure();
    }
    return success();
  }
};

/// Both branches give what the result has.
struct IfLayouts
    : public LayoutOpInterface::ExternalModel<IfLayouts, scf::IfOp> {
  LogicalResult relateLayouts(Operation *op, Value known,
                              const TileLayout &layout, SetLayout set) const {
    auto branch = cast<scf::IfOp>(op);
    for (OpResult result : branch.getResults()) {
      unsigned number = result.getResultNumber();
      Value same[] = {result, branch.thenYield().getOperand(number),
                      branch.elseYield().getOperand(number)};
      if (llvm::is_contained(same, known) && failed(setAll(same, layout, set)))
        return failure();
    }
    return success();
  }
};
} // namespace

void fovea::attn::registerLayoutModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::ForOp::attachInterface<ForLayouts>(*context);
    scf::IfOp::attachInterface<IfLayouts>(*context);
  });
}
