//===- Visibility.h - which blocks a kernel visits --------------*- C++ -*-===//
//
// What a problem's queries see, as kernels need it: for a block of queries the
// segments of keys to walk, for a block of keys those of queries, and the mask
// of what is partly seen. Kernels know no mask by name.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_VISIBILITY_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_VISIBILITY_H

#include "fovea/Dialect/Attn/IR/Attn.h"

namespace fovea::attn {

/// The blocks that count of a sequence, numbered from its row (or key)
/// `origin` on: [0, head) and [full, end) are seen in part, [head, full) in
/// whole. All i32.
struct Segments {
  mlir::Value origin;
  mlir::Value count; ///< rows from the origin to the last that counts
  mlir::Value head, full, end;
  /// Whether the head may hold a block, and the tail one for another reason
  /// than that the rows end in it: known when the kernel is compiled.
  bool hasHead, hasTail;
  /// i32: from the origin on so many rows do not count, which it was rounded
  /// down by; null: none.
  mlir::Value hidden = nullptr;
};

class Visibility {
public:
  /// \param argument  gives the kernel's argument of a name
  Visibility(AttentionOpInterface op, mlir::ImplicitLocOpBuilder &b,
             llvm::function_ref<mlir::Value(llvm::StringRef)> argument);
  /// Of the sequence: i32, before anything else.
  void setLengths(mlir::Value seqlenQ, mlir::Value seqlenK) {
    context.seqlenQ = seqlenQ;
    context.seqlenK = seqlenK;
  }

  /// Whether queries may see less than all keys.
  bool isPartial() const { return !parts.empty(); }

  /// Of queries [first, last]: the keys to visit.
  /// \param originStep  the origin is a multiple of it
  Segments keysOfRows(mlir::Value first, mlir::Value last, int64_t block,
                      int64_t originStep = 1);
  /// Of keys [first, last]: the queries to visit, likewise.
  Segments rowsOfKeys(mlir::Value first, mlir::Value last, int64_t block,
                      int64_t originStep = 1);

  /// For each of `columns` queries from `first` on the keys that it sees,
  /// relative to the segments' origin: begin null if no part has one, else
  /// tiles [1, columns].
  /// \param places  i32 tile: by how much each lies behind the first one, less
  ///   than `columns`; null: by its column
  Bounds keysOfEachRow(const Segments &segments, mlir::Value first,
                       int64_t columns, mlir::Value places = nullptr);
  /// The queries that see each of `columns` keys; either may be null.
  Bounds rowsOfEachKey(const Segments &segments, mlir::Value first,
                       int64_t columns);

  /// Scores [block, columns], of the block that begins at `start` behind the
  /// origin, masked by the bounds that there are.
  mlir::Value apply(mlir::Value scores, Bounds bounds, mlir::Value start);

  /// The keys that every one of queries [first, last] sees, i32; a bound that
  /// is null is none, and others may lie outside the sequence.
  Bounds keysOfAll(mlir::Value first, mlir::Value last);

  /// The keys that any query of the sequence sees; i32. Begin null: from the
  /// first on. End not below 0.
  Bounds seenKeys();

private:
  struct Part {
    VisibilityAttrInterface attr;
    llvm::SmallVector<mlir::Value> bounds;
  };
  mlir::Value constant(int64_t value);
  Segments segments(llvm::function_ref<SeenBounds(const Part &)> of,
                    mlir::Value length, int64_t block, int64_t originStep = 1);
  Bounds columns(llvm::function_ref<Bounds(const Part &)> of);

  llvm::SmallVector<Part> parts;
  VisibilityContext context;
  mlir::ImplicitLocOpBuilder &b;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_VISIBILITY_H
