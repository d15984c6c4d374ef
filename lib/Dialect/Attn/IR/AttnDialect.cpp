//===- AttnDialect.cpp - registration of the attn dialect -----------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
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
  StringRef name = attribute.getName();
  if (name == kTargetAttrName && isa<TargetAttr>(attribute.getValue()))
    return success();
  if (name == kScheduleAttrName && isa<ScheduleAttr>(attribute.getValue()))
    return success();
  if (auto names = dyn_cast<ArrayAttr>(attribute.getValue());
      name == hsaco::kArgumentNamesAttrName && names &&
      llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return success();
  if ((name == kKernelsAttrName || name == kTextAttrName) &&
      isa<UnitAttr>(attribute.getValue()))
    return success();
  if (name == kKernelAttrName && isa<SymbolRefAttr>(attribute.getValue()))
    return success();
  if (name == kKeyAttrName && isa<StringAttr>(attribute.getValue()))
    return success();
  if ((name == kScoreKindAttrName || name == kScoreSummaryAttrName ||
       name == kScoreVariantAttrName) &&
      isa<StringAttr>(attribute.getValue()))
    return success();
  return op->emitError("attribute '")
         << name << "' has no meaning with the value " << attribute.getValue()
         << "; known are '" << kTargetAttrName << "' (#attn.target), '"
         << kKernelsAttrName << "' and '" << kTextAttrName << "' (unit), '"
         << kKernelAttrName << "' (a symbol), '" << kKeyAttrName
         << "' (a string), '" << kScheduleAttrName << "' (#attn.schedule), '"
         << kScoreKindAttrName << "', '" << kScoreSummaryAttrName << "' and '"
         << kScoreVariantAttrName << "' (strings) and '"
         << hsaco::kArgumentNamesAttrName << "' (an array of strings)";
}

bool fovea::attn::isTileShape(ArrayRef<int64_t> shape) {
  return shape.size() == 2 && llvm::all_of(shape, [](int64_t extent) {
           return extent >= 1 && extent <= kMaxTileExtent;
         });
}

Type fovea::attn::getElementType(MLIRContext *context,
                                 target::ElementType type) {
  switch (type) {
  case target::ElementType::F32:
    return Float32Type::get(context);
  case target::ElementType::F16:
    return Float16Type::get(context);
  case target::ElementType::BF16:
    return BFloat16Type::get(context);
  case target::ElementType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case target::ElementType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case target::ElementType::F8E5M2:
    return Float8E5M2Type::get(context);
  }
  llvm_unreachable("all types are listed");
}

const target::ElementTypeInfo *fovea::attn::lookupElementType(Type type) {
  for (const target::ElementTypeInfo &row : target::allElementTypes())
    if (type == getElementType(type.getContext(), row.type))
      return &row;
  return nullptr;
}

int64_t fovea::attn::bytesOf(Type elementType) {
  return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
}

const target::MatrixInstr *
fovea::attn::lookupMatrixInstr(const target::TargetInfo &target, StringRef name,
                               Type elementType) {
  const target::ElementTypeInfo *type = lookupElementType(elementType);
  return type ? target::lookupMatrixInstr(target, name, type->type) : nullptr;
}

const target::MatrixInstr *
fovea::attn::lookupMatrixInstr(const target::TargetInfo &target, InstAttr inst,
                               Type elementType) {
  return lookupMatrixInstr(target, inst.getName(), elementType);
}

InFlightDiagnostic fovea::attn::emitNoMatrixInstr(
    llvm::function_ref<InFlightDiagnostic()> emitError,
    const target::TargetInfo &target, InstAttr inst, Type elementType) {
  const target::ElementTypeInfo *type = lookupElementType(elementType);
  std::string known = type ? target::matrixInstrNames(target, type->type) : "";
  InFlightDiagnostic diagnostic = emitError();
  diagnostic << target.name << " has no matrix instruction '" << inst.getName()
             << "' for " << elementType << "; it has "
             << (known.empty() ? "none for this type" : known);
  return diagnostic;
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

Value fovea::attn::makeOpaque(OpBuilder &builder, Location loc, Value scalar) {
  return LLVM::InlineAsmOp::create(
             builder, loc, scalar.getType(), ValueRange{scalar},
             /*asm_string=*/"", /*constraints=*/"=s,0",
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, /*asm_dialect=*/LLVM::AsmDialectAttr(),
             /*operand_attrs=*/ArrayAttr())
      .getResult(0);
}
