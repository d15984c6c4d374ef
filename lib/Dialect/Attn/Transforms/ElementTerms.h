//===- ElementTerms.h - what an element of a tensor is ----------*- C++ -*-===//
//
// Programs on tensors say one thing in many ways: transposed, reshaped, in one
// generic or in five. Asked what one element of a tensor is, all of them come
// to the same term. Terms are made step by step, as far as someone looks.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_ELEMENTTERMS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_ELEMENTTERMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include <deque>

namespace fovea::attn {

/// A scalar, in terms of the dimensions that `Terms` has given numbers.
struct Term {
  enum Kind {
    Constant, ///< `constant`: of floating point, or of i1
    Index,    ///< the integer `index`
    Element,  ///< that of `value` at `indices`, not looked into yet
    Scalar,   ///< `value`
    Apply,    ///< `op` on `terms`
    Reduce,   ///< `op` over terms[0] of all values of `dim`, from terms[1]
  };
  Kind kind;
  mlir::Type type;
  mlir::TypedAttr constant;
  mlir::AffineExpr index;
  mlir::Value value;
  llvm::SmallVector<mlir::AffineExpr> indices;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<const Term *> terms;
  unsigned dim = 0;

  Term(Kind kind, mlir::Type type) : kind(kind), type(type) {}
};

class Terms {
public:
  using Ops = llvm::SetVector<mlir::Operation *>;
  using Renamed = llvm::SmallVector<std::pair<unsigned, unsigned>>;

  explicit Terms(mlir::MLIRContext *context) : context(context) {}

  /// A dimension of an extent, which may be dynamic.
  mlir::AffineExpr newDim(int64_t extent);
  int64_t extentOf(unsigned dim) const { return extents[dim]; }

  /// The element of a tensor.
  const Term *at(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);
  /// What an element is made of, which may be an element; null: nothing that
  /// is known here.
  const Term *expand(const Term *element);
  /// The same until it is no element.
  const Term *look(const Term *term);
  /// Whether they are the same once dimensions of `a` are renamed.
  bool isSame(const Term *a, const Term *b, const Renamed &renamed);

  mlir::AffineExpr simplify(mlir::AffineExpr index) const;

  /// Where the ops are noted that are looked into; never null.
  Ops *noted = &others;
  /// Ops that are looked into beside what matters.
  Ops others;

  /// A dimension of a tensor.
  struct Dim {
    mlir::Value tensor;
    int64_t number;
  };
  /// Whether extents, or a size and an extent, are known to be equal.
  static bool areEqual(Dim a, Dim b);
  static bool areEqual(mlir::Value size, Dim dim);
  /// Extents that were taken to be equal: whoever believes the terms sees to
  /// it.
  llvm::SmallVector<std::pair<Dim, Dim>> taken;

private:
  class Body;
  const Term *keep(Term term);
  const Term *constant(mlir::TypedAttr value);
  /// A constant that an op outside makes, or a scalar.
  const Term *outside(mlir::Value scalar);
  /// Of a reshape that joins or parts leading static dimensions.
  const Term *expandReshape(mlir::tensor::ReshapeOp op,
                            llvm::ArrayRef<mlir::AffineExpr> indices);
  const Term *expandLinalg(mlir::linalg::LinalgOp op, unsigned result,
                           llvm::ArrayRef<mlir::AffineExpr> indices);
  /// The largest value that an index takes; none: not known.
  std::optional<int64_t> largest(mlir::AffineExpr index) const;

  mlir::MLIRContext *context;
  std::deque<Term> kept;
  llvm::SmallVector<int64_t> extents;
  unsigned compared = 0;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_ELEMENTTERMS_H
