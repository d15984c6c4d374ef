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

/// The first row of a view that is in bounds, i32; null: 0.
inline mlir::Value firstRowOf(mlir::ConversionPatternRewriter &rewriter,
                              mlir::TypedValue<attn::ViewType> view) {
  auto made = view.getDefiningOp<attn::ViewOp>();
  return made && made.getFrom() ? rewriter.getRemappedValue(made.getFrom())
                                : mlir::Value();
}

/// The byte offset of row `row`, or, before row `from`, one beyond all bounds:
/// the sign of what is missing makes it that; conditions would take a pair of
/// scalar registers each where waves have 64 lanes. Ahead of the column, which
/// the instruction adds.
inline mlir::Value offsetFrom(mlir::ImplicitLocOpBuilder &b, LaneContext &lanes,
                              mlir::Value from, mlir::Value row,
                              mlir::Value offset) {
  mlir::Value beyond = mlir::arith::SubIOp::create(b, row, from);
  return mlir::arith::OrIOp::create(
      b, offset,
      mlir::arith::AndIOp::create(b, beyond, lanes.i32(b, kOutOfBounds)));
}

} // namespace fovea

#endif // FOVEA_CONVERSION_ATTNTOLANES_BUFFERACCESS_H
