//===- VisibilityContext.h - what parts of visibility see -------*- C++ -*-===//
//
// Values that the methods of VisibilityAttrInterface are given and give.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_VISIBILITYCONTEXT_H
#define FOVEA_DIALECT_ATTN_IR_VISIBILITYCONTEXT_H

#include "fovea/Package/OperationSpec.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::attn {

/// Where a part emits its ops, and the lengths of the sequence.
struct VisibilityContext {
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value seqlenQ, seqlenK; ///< i32
};

/// Rows or keys [begin, end); null: no bound.
struct Bounds {
  mlir::Value begin, end;
};

/// What some, and what all, of a block see or are seen by.
struct SeenBounds {
  Bounds any, all;
};

/// The scalars that a part with this group takes, by their rows; none if the
/// group is empty.
spec::Rows<spec::ScalarSpec> boundsOf(llvm::StringRef group);

/// The type in which kernels take an argument.
mlir::Type scalarType(mlir::MLIRContext *context, spec::ArgKind kind);

/// Adds a group to a key; false: there is no such group, or the key has it, or
/// has a mask where this is the group of windows.
bool describeGroup(llvm::StringRef group, ProblemKey &key);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_VISIBILITYCONTEXT_H
