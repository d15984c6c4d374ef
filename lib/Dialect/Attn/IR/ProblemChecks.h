//===- ProblemChecks.h - what problem-level ops have in common --*- C++ -*-===//

#ifndef FOVEA_LIB_DIALECT_ATTN_IR_PROBLEMCHECKS_H
#define FOVEA_LIB_DIALECT_ATTN_IR_PROBLEMCHECKS_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// A tensor operand and its name in messages.
struct Named {
  llvm::StringRef name;
  mlir::ShapedType type;
};

/// Fails if both extents are static and differ.
llvm::LogicalResult checkSameExtent(mlir::Operation *op,
                                    llvm::StringRef constraint,
                                    llvm::StringRef extent, Named a, int dimA,
                                    Named b, int dimB);

/// (C1) to (C6) of a problem-level op. `likeQ` are tensors with the heads and
/// rows of q beside it, `likeK` with those of k; out comes first of `likeQ`, v
/// of `likeK`.
llvm::LogicalResult checkShapes(mlir::Operation *op, Named q, Named k,
                                llvm::ArrayRef<Named> likeQ,
                                llvm::ArrayRef<Named> likeK);

/// (C7).
llvm::LogicalResult checkLseShape(mlir::Operation *op, Named q, Named lse);

/// (C9).
llvm::LogicalResult checkBounds(mlir::Operation *op, mlir::ArrayAttr visibility,
                                mlir::OperandRange bounds);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_IR_PROBLEMCHECKS_H
