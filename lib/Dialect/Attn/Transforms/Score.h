//===- Score.h - score programs on tiles ------------------------*- C++ -*-===//
//
// A problem's score program as kernels need it: a tile of products of queries
// and keys becomes one of scores. What depends on the query alone, the key
// alone or neither is computed once a row, a column or a workgroup.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCORE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCORE_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::attn {

/// Where a tile of scores lies in its problem; all i32.
struct ScorePlace {
  mlir::Value batch, head;
  mlir::Value row, column; ///< of the tile's first element, in its sequence
  bool hasKeyRows;         ///< rows are keys, and columns queries; or reverse
};

class Score {
public:
  /// \param argument  gives the kernel's argument of a name
  Score(AttentionOpInterface op, mlir::ImplicitLocOpBuilder &b,
        llvm::function_ref<mlir::Value(llvm::StringRef)> argument);

  /// Whether scores are anything but products times the scale.
  bool isProgram() const { return !program.empty(); }
  /// Whether scores have the scale in them, and are logits of the natural
  /// logarithm; else it is multiplied with where exponents are taken, for
  /// nothing.
  bool isScaled() const { return scaled; }

  struct Result {
    mlir::Value score;
    /// The derivative for the scaled product, if the program yields it; null: 1
    /// throughout.
    mlir::Value slope;
  };
  /// \param products  f32 tile of queries times keys, not scaled
  /// \param scale     f32, not negative, to multiply with where isScaled()
  Result apply(mlir::Value products, mlir::Value scale,
               const ScorePlace &place);

private:
  class Tiles;
  /// What the kernel is passed of a capture.
  struct Captured {
    mlir::Value value;                               ///< or the address
    llvm::SmallVector<mlir::Value> strides, extents; ///< i64, i32
  };

  mlir::Region &program;
  bool scaled;
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value seqlenQ, seqlenK;
  llvm::SmallVector<Captured> captured;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCORE_H
