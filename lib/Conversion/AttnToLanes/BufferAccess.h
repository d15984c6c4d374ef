//===- BufferAccess.h - offsets in buffer resources -------------*- C++ -*-===//
//
// What accesses of global memory have in common with copies from there to LDS:
// lanes that access nothing have an offset that is out of bounds.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_ATTNTOLANES_BUFFERACCESS_H
#define FOVEA_CONVERSION_ATTNTOLANES_BUFFERACCESS_H

#include "Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fovea {

/// A byte offset that no buffer resource contains: sizes are less.
inline constexpr int64_t kOutOfBounds = int64_t(1) << 31;

/// A byte offset; where `guard` (if any) is false, one that is out of bounds.
inline mlir::Value offsetIf(mlir::ImplicitLocOpBuilder &b, LaneContext &lanes,
                            mlir::Value guard, mlir::Value offset) {
  if (!guard)
    return offset;
  return mlir::arith::SelectOp::create(b, guard, offset,
                                       lanes.i32(b, kOutOfBounds));
}

/// The values of a lowered view: its buffer resource, and the distance of rows
/// in bytes, i32: as what LLVM knows only where it is used, and as what it may
/// compute with ahead of loops.
enum LoweredView { kResource, kStride, kHoistedStride };

/// What is known of the rows of a view at run time, i32; null: nothing.
struct RowEnd {
  mlir::Value columns; ///< if accesses have to look at them
  mlir::Value again;   ///< 1: kColumnSeenAgain is the column before it; or 0
};
inline RowEnd rowEndOf(mlir::ConversionPatternRewriter &rewriter,
                       mlir::TypedValue<attn::ViewType> view) {
  auto made = view.getDefiningOp<attn::ViewOp>();
  if (!made || !made.getColumns())
    return {};
  auto remapped = [&](mlir::Value value) {
    return value ? rewriter.getRemappedValue(value) : value;
  };
  return {made.getLoose() ? mlir::Value() : remapped(made.getColumns()),
          remapped(made.getAgain())};
}

} // namespace fovea

#endif // FOVEA_CONVERSION_ATTNTOLANES_BUFFERACCESS_H
