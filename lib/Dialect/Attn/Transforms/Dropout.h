//===- Dropout.h - weights dropped by chance --------------------*- C++ -*-===//
//
// Which weights a kernel drops, from the seeds that it is passed
// (docs/Dropout.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_DROPOUT_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_DROPOUT_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

class Dropout {
public:
  /// \param argument  gives the kernel's argument of a name
  Dropout(AttentionOpInterface op, mlir::ImplicitLocOpBuilder &b,
          llvm::function_ref<mlir::Value(llvm::StringRef)> argument);

  bool isThere() const { return bool(threshold); }

  /// Reads seed and offset, before any loop.
  void prepare();
  /// Stores them where the caller wants them.
  void store();

  /// Where a tile of weights begins; i32. Its first key is a multiple of
  /// kKeyStep.
  struct Place {
    mlir::Value batch, head, query, key;
    bool queriesAreRows;
  };
  static constexpr int64_t kKeyStep = 4;
  /// The weights that are kept, 0 in the place of others or, with `negates`,
  /// their negatives.
  mlir::Value apply(mlir::Value weights, const Place &place, bool negates);

  mlir::Value scale; ///< f32: what is kept counts so much more

private:
  mlir::Value i32(int64_t value);
  mlir::Value i64(mlir::Value value);
  mlir::Value addIfThere(mlir::Value pointer, mlir::Value number);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Value seedPointer, offsetPointer, seedOut, offsetOut;
  mlir::Value threshold, flags, seed, offset; ///< i32 and i64
  mlir::Value headsQ, seqlenQ, seqlenK;       ///< i32, of the call
  mlir::Value groups;                         ///< i32: calls for a query
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_DROPOUT_H
