//===- VisibilityContext.h - what parts of visibility see -------*- C++ -*-===//
//
// Values that the methods of VisibilityAttrInterface are given and give.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_VISIBILITYCONTEXT_H
#define FOVEA_DIALECT_ATTN_IR_VISIBILITYCONTEXT_H

#include "fovea/Package/Keys.h"
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

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_VISIBILITYCONTEXT_H
