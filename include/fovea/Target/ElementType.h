//===- ElementType.h - the table of element types ---------------*- C++ -*-===//
//
// One row a type that tiles may have: what layouts, LDS tiles, memory accesses
// and schedules ask of it. Which matrix instructions multiply it says the table
// of those (MatrixInstr.h); code is generated for fp16, bf16 and fp32 factors.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_ELEMENTTYPE_H
#define FOVEA_TARGET_ELEMENTTYPE_H

#include "fovea/Target/TargetInfo.h"

namespace fovea::target {

enum class ElementType { F32, F16, BF16, F8E4M3FN, F8E4M3FNUZ, F8E5M2 };

struct ElementTypeInfo {
  ElementType type;
  llvm::StringRef name; ///< as options and packages spell it, or would
  llvm::StringRef mlir; ///< as MLIR prints it
  int bits;
  int mantissaBits; ///< without the implied one
  /// What a chip must have to round f32 to the type, to nearest even, in an
  /// instruction (a pair of elements, for 16 bits and fewer); 0: every chip
  /// has it.
  uint32_t conversion;

  int bytes() const { return bits / 8; }
};

/// All types, in the order of the enumeration.
llvm::ArrayRef<ElementTypeInfo> allElementTypes();

const ElementTypeInfo &elementTypeInfo(ElementType type);

/// Whether the chip rounds f32 to the type in an instruction.
bool hasConversion(const TargetInfo &target, ElementType type);

} // namespace fovea::target

#endif // FOVEA_TARGET_ELEMENTTYPE_H
