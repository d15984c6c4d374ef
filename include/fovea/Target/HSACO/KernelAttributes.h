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

/// Attribute of LLVM's function: which scalars are worked out again where they
/// are needed, instead of being held. Without it none.
inline constexpr llvm::StringLiteral kRecomputedScalarsAttrName =
    "fovea-recomputed-scalars";
/// Its values: those that a loop does not use, behind it, ahead of it or in the
/// body of the outer loop; and also, in inner loops, what follows
/// from a value that is made there, for each round of its uses.
inline constexpr llvm::StringLiteral kScalarsOutsideLoops = "outside-loops",
                                     kScalarsOfRounds = "rounds";

} // namespace fovea::hsaco

#endif // FOVEA_TARGET_HSACO_KERNELATTRIBUTES_H
