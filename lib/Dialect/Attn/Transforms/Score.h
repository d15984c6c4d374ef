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
#include "llvm/ADT/MapVector.h"
#include <memory>

namespace fovea::attn {

/// Where a tile of scores lies in its problem; all i32.
struct ScorePlace {
  mlir::Value batch, head;
  mlir::Value row, column; ///< of the tile's first element, in its sequence
  bool hasKeyRows;         ///< rows are keys, and columns queries; or reverse
  /// The program's predicate is known to be true of all the tile: lists say so.
  bool isSeen = false;
  /// The first row may be any, and not all rows of the tile need be there.
  bool isUnaligned = false;
};

class Score {
  class Tiles;

public:
  /// \param argument  gives the kernel's argument of a name
  Score(AttentionOpInterface op, mlir::ImplicitLocOpBuilder &b,
        llvm::function_ref<mlir::Value(llvm::StringRef)> argument);

  /// Of the sequence: i32, before anything else.
  void setLengths(mlir::Value q, mlir::Value k) {
    seqlenQ = q;
    seqlenK = k;
  }

  /// Whether scores are anything but products times the scale.
  bool isProgram() const { return !program.empty(); }
  /// Whether scores have the scale in them, and are logits of the natural
  /// logarithm; else it is multiplied with where exponents are taken, for
  /// nothing.
  bool isScaled() const { return scaled; }

  struct Result {
    mlir::Value score; ///< -infinity where the program's predicate is false
    /// The derivative for the scaled product, if the program yields it; null: 1
    /// throughout.
    mlir::Value slope = nullptr;
    /// i1 tile: the predicate. Null: it has none, or was not to be asked.
    mlir::Value seen = nullptr;
    /// What addGradients() goes on with; null without gradients of captures.
    std::shared_ptr<Tiles> tiles = nullptr;
  };
  /// Tiles that a program reads, in the types of memory or as words, by what
  /// reads them, in the program's order.
  using Fetched = llvm::MapVector<mlir::Operation *, mlir::Value>;
  /// Begins to read what of a tile can be known ahead of its scores.
  /// \param elementwise  also what takes a load an element, as neighbours of a
  ///   row are
  Fetched fetch(mlir::RankedTensorType tile, const ScorePlace &place,
                bool elementwise = false);
  /// \param products  f32 tile of queries times keys, not scaled
  /// \param scale     f32, not negative, to multiply with where isScaled()
  Result apply(mlir::Value products, mlir::Value scale, const ScorePlace &place,
               const Fetched &fetched = Fetched());

  //===--- gradients of captures ------------------------------------------===//
  // Of tiles whose rows are queries. What a whole tile, or a column of it, adds
  // to one element is not added in memory but to a sum that goes with the
  // workgroup, [groups of rows, columns].

  bool hasGradients() const { return !gradients.empty(); }
  /// How many such sums there are; they begin as zeros.
  size_t countSums() const;
  /// Adds what a tile gives to memory and to sums.
  /// \param result  of the tile; its program yields all derivatives
  /// \param ds      f32 tile: gradients of the program's scores
  /// \param hidden  i1 tile of what adds nothing, whatever it holds; null: no
  ///   place
  void addGradients(const Result &result, mlir::Value ds, mlir::Value hidden,
                    llvm::MutableArrayRef<mlir::Value> sums);
  /// Whether some are stored: a place of queries and keys each, by tiles that
  /// are given to addGradients(), or else as 0.
  bool storesGradients() const;
  /// Stores zeros to the places of a tile that there are.
  /// \param end  i32: keys from here on are left out
  void storeZeros(mlir::RankedTensorType tile, const ScorePlace &place,
                  mlir::Value end);
  /// Adds the sums to memory.
  /// \param place  of the tiles; their rows do not matter
  void addSums(llvm::ArrayRef<mlir::Value> sums, ScorePlace place);

private:
  /// The values of the program that a tile needs.
  llvm::SmallDenseSet<mlir::Value> neededBy(const ScorePlace &place) const;

  /// What the kernel is passed of a capture.
  struct Captured {
    mlir::Value value;                               ///< or the address
    llvm::SmallVector<mlir::Value> strides, extents; ///< i64, i32
  };
  /// What of a tile an element of a captured tensor belongs to.
  enum class Owner { Tile, Column, Row, Place };
  struct Gradient {
    AtOp at; ///< what reads the element; null: of a scalar
    Captured to;
    mlir::Value derivative; ///< of the score for the element
    Owner owner;
    mlir::Type stored; ///< what it is stored in; null: it is added, in f32
    bool isSummed() const { return owner <= Owner::Column; }
  };
  void findGradients(BackwardOp op,
                     llvm::function_ref<mlir::Value(llvm::StringRef)> argument);
  Owner ownerOf(AtOp at) const;

  mlir::Region &program;
  bool scaled;
  bool ofProduct; ///< or the score is of constants and places alone
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value seqlenQ, seqlenK;
  llvm::SmallVector<Captured> captured;
  llvm::SmallVector<Gradient> gradients;
};

/// Whether a forward kernel waits, where its scores are, for tiles of what the
/// program reads: elements of each key that are not fetched ahead.
bool readsTiles(mlir::Region &program);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCORE_H
