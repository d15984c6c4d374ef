//===- AttnDialect.cpp - registration of the attn dialect -----------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fovea::attn;

#include "fovea/Dialect/Attn/IR/AttnDialect.cpp.inc"
#include "fovea/Dialect/Attn/IR/AttnEnums.cpp.inc"

void AttnDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "fovea/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
}

LogicalResult AttnDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != kTargetAttrName)
    return op->emitError("unknown attribute '") << attribute.getName() << "'";
  if (!isa<TargetAttr>(attribute.getValue()))
    return op->emitError("'") << kTargetAttrName
                              << "' must be an #attn.target, found "
                              << attribute.getValue();
  return success();
}

LayoutAttr fovea::attn::getTileLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : nullptr;
}

RankedTensorType fovea::attn::withLayout(RankedTensorType type,
                                         const layout::TileLayout &layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               LayoutAttr::get(type.getContext(), layout));
}
