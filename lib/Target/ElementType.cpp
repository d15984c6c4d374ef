//===- ElementType.cpp - the table of element types -----------------------===//

#include "fovea/Target/ElementType.h"

namespace fovea::target {

static constexpr ElementTypeInfo kRows[] = {
    {ElementType::F32, "fp32", "f32", 32, 23, /*conversion=*/0},
    {ElementType::F16, "fp16", "f16", 16, 10, /*conversion=*/0},
    {ElementType::BF16, "bf16", "bf16", 16, 7, kCvtPkBf16},
    // OCP's formats, and the one of gfx942, whose exponents are one less.
    {ElementType::F8E4M3FN, "fp8_e4m3fn", "f8E4M3FN", 8, 3, kFp8},
    {ElementType::F8E4M3FNUZ, "fp8_e4m3fnuz", "f8E4M3FNUZ", 8, 3, kFp8Fnuz},
    {ElementType::F8E5M2, "fp8_e5m2", "f8E5M2", 8, 2, kFp8},
};

llvm::ArrayRef<ElementTypeInfo> allElementTypes() { return kRows; }

const ElementTypeInfo &elementTypeInfo(ElementType type) {
  return kRows[static_cast<int>(type)];
}

bool hasConversion(const TargetInfo &target, ElementType type) {
  return target.has(elementTypeInfo(type).conversion);
}

} // namespace fovea::target
