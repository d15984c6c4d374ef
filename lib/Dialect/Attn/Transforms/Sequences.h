//===- Sequences.h - where each sequence lies -------------------*- C++ -*-===//
//
// The lengths of a workgroup's sequence and the rows with which it begins:
// those of the call, or what the kernel reads where they differ
// (docs/VariableLengths.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SEQUENCES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SEQUENCES_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

class Sequences {
public:
  /// \param argument  gives the kernel's argument of a name
  Sequences(AttentionOpInterface op, mlir::ImplicitLocOpBuilder &b,
            llvm::function_ref<mlir::Value(llvm::StringRef)> argument);

  /// Whether they may differ.
  bool differ() const { return bool(memory); }

  /// The queries or keys of a sequence.
  struct Side {
    mlir::Value length; ///< i32 rows
    mlir::Value start;  ///< i64, the row of the first; null: 0
  };
  /// Those of the call, or of the sequence that enter() was last given.
  Side q, k;
  /// Of log-sum-exps: i64, the row of the first, null: 0; i32, the distance of
  /// rows.
  mlir::Value lseStart, lseStride;
  /// Of a workspace: i64 rows of a head; i64, by how many batches this one is
  /// behind the first; and i64, the row of the first, null: 0.
  mlir::Value workspaceRows, workspaceBatch, workspaceStart;

  /// Reads those of sequence `number`, i32 and the same in all lanes.
  void enter(mlir::Value number);

  /// A sequence, and a block of rows of it; i32.
  struct Block {
    mlir::Value sequence, block;
  };
  /// The one of a workgroup: what the grid's y and z say by themselves, or,
  /// where y counts the blocks of all sequences, the one of that number. A
  /// sequence then has as many numbers as multiples of `rows` lie between its
  /// start and the next one's, and one more: so many suffice, and no sums of
  /// numbers of blocks are needed to find it.
  /// \param ofGrid      as the grid's place says
  /// \param fromTheEnd  the sequence's last block comes first
  Block find(mlir::Value y, Block ofGrid, int64_t rows, bool ofKeys,
             bool fromTheEnd);

private:
  struct Source {
    mlir::Value lengths, starts; ///< i64 addresses
    mlir::Value most;            ///< i32
    int32_t cumulative;          ///< bit among the flags
  };
  Side read(const Source &source, mlir::Value number);
  mlir::Value load(mlir::Value address, mlir::Value index, mlir::Value isNull);
  mlir::Value has(int32_t flag);
  mlir::Value i32(int64_t value);
  mlir::Value i64(mlir::Value value);
  mlir::Value isZero(mlir::Value value);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Value memory; ///< i64, of 4 bytes that may be read; null: all are alike
  mlir::Value flags, packedRows, count;
  Source queries, keys;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SEQUENCES_H
