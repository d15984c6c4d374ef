//===- KernelAttributes.h - what kernels tell the back end ------*- C++ -*-===//

#ifndef FOVEA_TARGET_HSACO_KERNELATTRIBUTES_H
#define FOVEA_TARGET_HSACO_KERNELATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace fovea::hsaco {

/// Attribute of a kernel, an array of strings: its arguments' names, which the
/// code object's metadata repeats.
inline constexpr llvm::StringLiteral kArgumentNamesAttrName =
    "attn.argument_names";

/// Attribute of LLVM's function: sums of matrix products that loops carry are
/// in accumulation registers, other results of products in vector registers.
inline constexpr llvm::StringLiteral kCarriedSumsAttrName =
    "fovea-carried-sums";

/// Attribute of LLVM's function: loops of products are ordered by what their
/// instructions take, not by LLVM.
inline constexpr llvm::StringLiteral kOrderedLoopsAttrName =
    "fovea-ordered-loops";

/// Attribute of LLVM's function: operands of WMMA begin in whatever bank of the
/// registers.
inline constexpr llvm::StringLiteral kAnyBanksAttrName = "fovea-any-banks";

/// Attribute of LLVM's function: what follows from a lane's number is worked
/// out again behind loops, instead of being held through them.
inline constexpr llvm::StringLiteral kRecomputedLanesAttrName =
    "fovea-recomputed-lanes";

/// Attribute of LLVM's function: scalars that a loop does not use are worked
/// out again behind it, ahead of it or in the body of the outer loop.
inline constexpr llvm::StringLiteral kRecomputedScalarsAttrName =
    "fovea-recomputed-scalars";

/// Attribute of LLVM's function: scalars are worked out again where they are
/// used, as soon as more registers are alive than all but so many. Its value is
/// that number.
inline constexpr llvm::StringLiteral kRecomputedAtUsesAttrName =
    "fovea-recomputed-at-uses";

} // namespace fovea::hsaco

#endif // FOVEA_TARGET_HSACO_KERNELATTRIBUTES_H
