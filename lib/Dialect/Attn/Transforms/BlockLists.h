//===- BlockLists.h - which blocks lists name -------------------*- C++ -*-===//
//
// Lists of blocks that a kernel reads when it runs, in place of segments of
// blocks that follow one another: from the number of a loop's iteration to the
// block that it visits (docs/BlockLists.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_BLOCKLISTS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_BLOCKLISTS_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// What a workgroup's block is listed to see, or to be seen by. Blocks are the
/// kernel's own, of the side that is visited. Numbers [0, first) are those of
/// one list and [first, end) those of the other. All i32 but for addresses.
struct BlockList {
  mlir::Value first, end;
  /// i64: of the entry of number 0 in either list, were it there.
  mlir::Value addresses[2];
  mlir::Value looked; ///< numbers below this are looked up: `end`, or none
  /// Bits to add to a number that is not looked up: none where every block is
  /// listed, for there are no lists; all elsewhere, which is past the last.
  mlir::Value beyond;
  mlir::Value ratio;      ///< the kernel's own blocks in a listed one
  mlir::Value inverse;    ///< ceil(2^31 / ratio): divides by a product
  mlir::Value past;       ///< the first block behind the sequence
  mlir::Value listedPast; ///< the same of blocks as they are listed
};

class BlockLists {
public:
  /// \param argument  gives the kernel's argument of a name
  BlockLists(AttentionOpInterface op, mlir::ImplicitLocOpBuilder &b,
             llvm::function_ref<mlir::Value(llvm::StringRef)> argument);

  /// Of the sequence: i32, before anything else.
  void setLengths(mlir::Value seqlenQ, mlir::Value seqlenK);

  /// Whether the kernel reads lists.
  bool isThere() const { return bool(address); }

  /// The keys that the queries around `row` see, blocks that are seen in whole
  /// first.
  /// \param head   of the queries
  /// \param block  keys that an iteration visits
  BlockList keysOf(mlir::Value batch, mlir::Value head, mlir::Value row,
                   int64_t block);
  /// The queries of a head that see the keys around `key`, blocks that see in
  /// part first.
  BlockList queriesOf(mlir::Value batch, mlir::Value head, mlir::Value key,
                      int64_t block);

  /// The block that is visited as that of a number, at most one past the last:
  /// which it is for numbers from `end` on, where no list is read.
  mlir::Value blockOf(const BlockList &list, mlir::Value number);

private:
  /// The tensors and scalars of one list.
  struct Tensors {
    mlir::Value counts, entries;                             ///< i64 addresses
    mlir::Value countsBatch, countsHead, batch, head, block; ///< i64 strides
    mlir::Value size; ///< entries of a row
  };
  struct Side {
    mlir::Value block, length; ///< of a listed block, and of the sequence
    Tensors part, full;
  };
  mlir::Value i32(int64_t value);
  mlir::Value i64(mlir::Value value);
  mlir::Value divide(mlir::Value number, mlir::Value by);
  BlockList listOf(const Side &listed, mlir::Value batch, mlir::Value head,
                   mlir::Value ownBlock, int64_t block, bool isFullFirst);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Value address; ///< i64, of 4 bytes that may be read; null: no lists
  Side keys, queries;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_BLOCKLISTS_H
