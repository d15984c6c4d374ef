//===- Fragments.h - what lowerings of tiles share --------------*- C++ -*-===//
//
// A tile of a lane is a range of fragments, one vector a unit of its layout.
// How those are taken apart and put together, the wide accesses of a tile in
// memory, and the patterns that go through a tile fragment by fragment or
// element by element.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_ATTNTOLANES_FRAGMENTS_H
#define FOVEA_CONVERSION_ATTNTOLANES_FRAGMENTS_H

#include "LaneContext.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fovea {

/// Layout of a tile; the pass's pre-condition is that there is one.
inline const layout::TileLayout layoutOf(mlir::Value tile) {
  return attn::getTileLayout(tile.getType()).getLayout();
}

/// The vector of one fragment.
mlir::VectorType fragmentType(mlir::Type tile);

/// Elements of a register, and of what buffer instructions look at at once.
inline int64_t elementsOfWord(mlir::Type element) {
  return std::max<int64_t>(4 / attn::bytesOf(element), 1);
}

/// An element of a vector.
mlir::Value element(mlir::ImplicitLocOpBuilder &b, mlir::Value vector,
                    int64_t index);

/// A fragment of what `make` gives for each element of another.
mlir::Value mapElements(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment,
                        llvm::function_ref<mlir::Value(mlir::Value)> make);

/// All fragments of a tile, of what `make` gives for each register of each.
llvm::SmallVector<mlir::Value>
makeFragments(mlir::ImplicitLocOpBuilder &b, mlir::Type tile,
              llvm::function_ref<mlir::Value(int fragment, int reg)> make);

/// The same value, by way of a vector register.
/// \param hasSideEffects  it stays where it is
mlir::Value passVectorRegister(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                               bool hasSideEffects);

/// The same value, by way of accumulation registers; it stays where it is.
mlir::Value passAccumulators(mlir::ImplicitLocOpBuilder &b, mlir::Value value);

/// A call of an intrinsic of LLVM with one result.
mlir::Value callIntrinsic(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                          llvm::StringRef name, mlir::ValueRange arguments);

/// v_perm_b32: four bytes of two words, each chosen by a byte of the selector;
/// 0 to 3 are those of `low`, 4 to 7 those of `high`.
mlir::Value permuteBytes(mlir::ImplicitLocOpBuilder &b, mlir::Value high,
                         mlir::Value low, int64_t selector);

/// `bytes` behind an address of the same allocation.
mlir::Value addBytes(mlir::ImplicitLocOpBuilder &b, mlir::Value address,
                     mlir::LLVM::GEPArg bytes);

/// `elements` of a fragment, as one vector.
mlir::Value gather(mlir::ImplicitLocOpBuilder &b, mlir::Value fragment,
                   llvm::ArrayRef<int64_t> elements);

/// The largest column of a lane's first element.
int64_t lastColumn(const layout::TileLayout &layout);

/// The wide accesses of a tile in memory, in the order of fragments.
class TileAccesses {
public:
  /// The widest accesses of a tile in this layout.
  TileAccesses(const layout::TileLayout &layout, mlir::Type elementType);
  /// Given ones.
  TileAccesses(const layout::TileLayout &layout, mlir::Type elementType,
               const layout::WideAccesses &accesses);

  int width() const { return accesses.width; }            ///< in elements
  int64_t bytes() const { return accesses.width * size; } ///< of one access
  /// What one access moves.
  mlir::VectorType type() const;

  using Registers = llvm::SmallVector<int64_t, 8>;
  /// Calls `access` with the registers of a fragment and the tile coordinates,
  /// but for those of the lane, of the first.
  void forEach(
      llvm::function_ref<void(int fragment, const Registers &, layout::Coord)>
          access) const;

  /// Fragments of what `read` gives for each access.
  llvm::SmallVector<mlir::Value>
  read(mlir::ImplicitLocOpBuilder &b,
       llvm::function_ref<mlir::Value(layout::Coord)> read) const;

private:
  mlir::Value scatter(mlir::ImplicitLocOpBuilder &b,
                      mlir::ValueRange parts) const;

  layout::TileLayout layout;
  mlir::Type elementType;
  int64_t size; ///< bytes of an element
  layout::WideAccesses accesses;
};

/// A pattern with one kernel's context; tiles come as ranges of fragments.
template <typename Op>
struct LanePattern : public mlir::OpConversionPattern<Op> {
  LanePattern(mlir::TypeConverter &converter, LaneContext &context)
      : mlir::OpConversionPattern<Op>(converter,
                                      context.getKernel().getContext(),
                                      /*benefit=*/2),
        lanes(context) {}
  using Adaptor = typename mlir::OpConversionPattern<Op>::OneToNOpAdaptor;
  LaneContext &lanes;
};

/// A pattern on ops that make each fragment of one tile into one of another.
template <typename Op>
struct FragmentPattern : public LanePattern<Op> {
  using LanePattern<Op>::LanePattern;
  using typename LanePattern<Op>::Adaptor;

  /// Fails, with a reason, if the op is not to be lowered so.
  virtual mlir::LogicalResult check(Op,
                                    mlir::ConversionPatternRewriter &) const {
    return mlir::success();
  }
  virtual mlir::Value lowerFragment(mlir::ImplicitLocOpBuilder &b, Op op,
                                    mlir::Value fragment) const = 0;

  mlir::LogicalResult
  matchAndRewrite(Op op, Adaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const final {
    if (failed(check(op, rewriter)))
      return mlir::failure();
    mlir::ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    llvm::SmallVector<mlir::Value> fragments;
    for (mlir::Value fragment : adaptor.getODSOperands(0).front())
      fragments.push_back(lowerFragment(b, op, fragment));
    rewriter.replaceOpWithMultiple(op, {fragments});
    return mlir::success();
  }
};

/// The same, element by element: what keeps the element type.
template <typename Op>
struct ElementPattern : public FragmentPattern<Op> {
  using FragmentPattern<Op>::FragmentPattern;

  virtual mlir::Value lowerElement(mlir::ImplicitLocOpBuilder &b,
                                   mlir::Value value) const = 0;

  mlir::Value lowerFragment(mlir::ImplicitLocOpBuilder &b, Op,
                            mlir::Value fragment) const final {
    return mapElements(
        b, fragment, [&](mlir::Value value) { return lowerElement(b, value); });
  }
};

} // namespace fovea

#endif // FOVEA_CONVERSION_ATTNTOLANES_FRAGMENTS_H
