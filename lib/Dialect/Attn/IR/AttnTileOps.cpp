//===- AttnTileOps.cpp - tile and lane ops of the attn dialect ------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

// Of the assembly format of attn.backward.

/// "0 = %dbias, 2 = %dslopes : type, type".
static ParseResult
parseGradients(OpAsmParser &parser,
               SmallVectorImpl<OpAsmParser::UnresolvedOperand> &gradients,
               SmallVectorImpl<Type> &types, DenseI32ArrayAttr &numbers) {
  SmallVector<int32_t> values;
  auto one = [&]() -> ParseResult {
    return failure(parser.parseInteger(values.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(gradients.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(one) || parser.parseColonTypeList(types))
    return failure();
  numbers = parser.getBuilder().getDenseI32ArrayAttr(values);
  return success();
}

static void printGradients(OpAsmPrinter &printer, Operation *,
                           OperandRange gradients, TypeRange types,
                           DenseI32ArrayAttr numbers) {
  llvm::interleaveComma(llvm::zip(numbers.asArrayRef(), gradients), printer,
                        [&](const auto &row) {
                          printer << std::get<0>(row) << " = "
                                  << std::get<1>(row);
                        });
  printer << " : " << types;
}

#define GET_OP_CLASSES
#include "fovea/Dialect/Attn/IR/AttnOps.cpp.inc"

static RankedTensorType tile(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Gives `value` the row that is left of a tile with `layout`, if one is.
static LogicalResult setRow(Value value, const layout::TileLayout &layout,
                            const std::optional<layout::TileLayout> &row,
                            SetLayout set) {
  if (!row)
    return emitError(value.getLoc())
           << "layout <" << layout.str() << "> cannot be reduced to "
           << tile(value).getDimSize(0) << " rows";
  return set(value, *row);
}

/// Fails unless both types hold the same kind of element.
static LogicalResult checkElements(Operation *op, Type a, Type b) {
  if (a == b)
    return success();
  return op->emitOpError() << "element types differ: " << a << " and " << b;
}

LogicalResult ViewOp::verify() {
  if (getFrom()) {
    if (!getRuns().empty())
      return emitOpError("has rows in runs, which begin with the first");
    for (Operation *user : getOperation()->getUsers())
      if (!isa<LoadOp, CopyLdsOp>(user))
        return emitOpError("has rows out of bounds ahead of others, which are "
                           "only loaded from");
  }
  if (getRuns().empty())
    return success();
  if (getRuns().size() != RunOperands)
    return emitOpError("has ")
           << getRuns().size()
           << " numbers of runs, not four: first, length, count, distance";
  for (Operation *user : getOperation()->getUsers())
    if (!isa<LoadOp>(user))
      return emitOpError("has rows in runs, which are only loaded from");
  return success();
}

/// What lies beyond reads as zeros and is not stored.
static LogicalResult checkRows(Operation *op, int64_t end) {
  if (end <= kMostViewedRows)
    return success();
  return op->emitOpError() << "goes to row " << end
                           << " of its view, which has at most "
                           << kMostViewedRows;
}

LogicalResult LoadOp::verify() {
  if (failed(
          checkRows(*this, int64_t(getRow()) + tile(getTile()).getDimSize(0))))
    return failure();
  return checkElements(*this, getView().getType().getElementType(),
                       tile(getTile()).getElementType());
}

/// Elements that memory accesses of a lane have.
static bool isAccessed(Type element) {
  return element.isIntOrFloat() &&
         llvm::is_contained({8u, 16u, 32u}, element.getIntOrFloatBitWidth());
}

LogicalResult GatherOp::verify() {
  auto whole = dyn_cast<RankedTensorType>(getResult().getType());
  if (Type element = whole ? whole.getElementType() : getResult().getType();
      !isAccessed(element))
    return emitOpError() << "gives numbers of 8, 16 or 32 bits, alone or in a "
                            "tile, found "
                         << getResult().getType();
  if (!getIndex())
    return whole ? emitOpError("gives a tile and has no index") : success();
  if (getUnaligned() && !getDown())
    return emitOpError("is unaligned and does not go down");
  if (!whole || whole.getShape() != getIndex().getType().getShape())
    return emitOpError() << "gives " << getResult().getType()
                         << " for an index of " << getIndex().getType();
  return success();
}

LogicalResult ScatterAddOp::verify() {
  if ((getByRow() || getByColumn()) &&
      (!getIndex() || getByRow() == getByColumn()))
    return emitOpError("takes an index by_row or by_column");
  if (getIndex() &&
      getIndex().getType().getShape() != getTile().getType().getShape())
    return emitOpError() << "adds " << getTile().getType() << " at an index of "
                         << getIndex().getType();
  return success();
}

LogicalResult ScatterOp::verify() {
  RankedTensorType stored = tile(getTile());
  if (!isAccessed(stored.getElementType()))
    return emitOpError() << "stores numbers of 8, 16 or 32 bits, found "
                         << stored;
  if (getIndex().getType().getShape() != stored.getShape())
    return emitOpError() << "stores " << stored << " at an index of "
                         << getIndex().getType();
  return success();
}

LogicalResult StoreOp::verify() {
  if (failed(checkRows(*this, tile(getTile()).getDimSize(0))))
    return failure();
  return checkElements(*this, tile(getTile()).getElementType(),
                       getView().getType().getElementType());
}

LogicalResult AtomicAddOp::verify() {
  RankedTensorType added = tile(getTile());
  if (failed(checkRows(*this, added.getDimSize(0))))
    return failure();
  ViewType view = getView().getType();
  Type type = added.getElementType();
  if (type.isF32())
    return checkElements(*this, type, view.getElementType());
  if (!type.isF16() && !type.isBF16())
    return emitOpError() << "adds f32, f16 or bf16, found " << type;
  if (!view.getElementType().isInteger(32))
    return emitOpError() << "adds pairs of " << type
                         << " to a view of i32, found " << view;
  if (added.getDimSize(0) % 2 != 0 || added.getDimSize(1) > view.getColumns())
    return emitOpError() << "adds pairs of rows to a view that holds them all; "
                         << added << " does not fit " << view;
  return success();
}

LogicalResult AllocLdsOp::verify() {
  int64_t bytes = getLds().getType().getBytes();
  if (bytes > std::numeric_limits<int32_t>::max() / int64_t(getBuffers()))
    return emitOpError() << "reserves less than 2^31 bytes, found "
                         << getBuffers() << " buffers of " << bytes;
  return success();
}

LogicalResult StoreLdsOp::verify() {
  LdsType lds = getLds().getType();
  RankedTensorType type = tile(getTile());
  if (type.getDimSize(0) != lds.getRows() ||
      type.getDimSize(1) != lds.getColumns())
    return emitOpError() << "stores " << type << " to " << lds
                         << "; the shapes must agree";
  return checkElements(*this, type.getElementType(), lds.getElementType());
}

LogicalResult CopyLdsOp::verify() {
  LdsType lds = getLds().getType();
  if (failed(checkRows(*this, lds.getRows())))
    return failure();
  if (std::optional<LayoutAttr> layout = getLayout()) {
    layout::Coord shape = layout->getLayout().shape();
    if (shape[0] != lds.getRows() || shape[1] != lds.getColumns())
      return emitOpError() << "layout of " << shape[0] << "x" << shape[1]
                           << " elements does not cover " << lds;
  }
  return checkElements(*this, getView().getType().getElementType(),
                       lds.getElementType());
}

LogicalResult LoadLdsOp::verify() {
  LdsType lds = getLds().getType();
  RankedTensorType type = tile(getTile());
  if (type.getDimSize(0) > lds.getRows() ||
      type.getDimSize(1) > lds.getColumns())
    return emitOpError() << "loads " << type << " from the smaller " << lds;
  return checkElements(*this, lds.getElementType(), type.getElementType());
}

LogicalResult DotOp::verify() {
  RankedTensorType a = tile(getA()), b = tile(getB()), acc = tile(getAcc());
  if (failed(checkElements(*this, a.getElementType(), b.getElementType())))
    return failure();
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOpError() << "contracts " << a.getDimSize(1) << " columns of a "
                         << "with " << b.getDimSize(0) << " rows of b";
  if (a.getDimSize(0) != acc.getDimSize(0) ||
      b.getDimSize(1) != acc.getDimSize(1))
    return emitOpError() << "the product is " << a.getDimSize(0) << "x"
                         << b.getDimSize(1) << ", but the accumulator "
                         << acc.getDimSize(0) << "x" << acc.getDimSize(1);
  return success();
}

LogicalResult DotOp::relateLayouts(Value known,
                                   const layout::TileLayout &layout,
                                   SetLayout set) {
  // The layouts of factors are chosen, together with that of the sums.
  if (known != getAcc() && known != getResult())
    return success();
  if (failed(set(getAcc(), layout)))
    return failure();
  return set(getResult(), layout);
}

LogicalResult TransposeOp::relateLayouts(Value known,
                                         const layout::TileLayout &layout,
                                         SetLayout set) {
  return set(known == getTile() ? getResult() : getTile(), layout.transposed());
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  // Asked by the parser, before anything is verified.
  auto type = dyn_cast<RankedTensorType>(adaptor.getTile().getType());
  if (!type || !isTileShape(type.getShape()))
    return emitOptionalError(loc, "'", getOperationName(),
                             "' op takes a tile, found ",
                             adaptor.getTile().getType());
  Attribute encoding = type.getEncoding();
  if (LayoutAttr layout = getTileLayout(type))
    encoding =
        LayoutAttr::get(type.getContext(), layout.getLayout().transposed());
  results.push_back(
      RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)},
                            type.getElementType(), encoding));
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType from = tile(getTile()), to = tile(getResult());
  if (from.getDimSize(1) != to.getDimSize(1))
    return emitOpError() << "keeps " << from.getDimSize(1)
                         << " columns, but the result has " << to.getDimSize(1);
  LayoutAttr have = getTileLayout(from), result = getTileLayout(to);
  if (!have || !result)
    return success();
  std::optional<layout::TileLayout> expected =
      have.getLayout().reducedRows(to.getDimSize(0));
  if (!expected || *expected != result.getLayout())
    return emitOpError() << "the operand's layout reduced to "
                         << to.getDimSize(0)
                         << " rows is not the result's layout";
  return success();
}

LogicalResult ReduceOp::relateLayouts(Value known,
                                      const layout::TileLayout &layout,
                                      SetLayout set) {
  // Many layouts reduce to one.
  if (known != getTile())
    return success();
  return setRow(getResult(), layout,
                layout.reducedRows(getResult().getType().getDimSize(0)), set);
}

/// Whether `row` is how one row of `tile` is held, the same for all its rows.
static bool repeatsRow(LayoutAttr tile, LayoutAttr row) {
  std::optional<layout::TileLayout> expected = tile.getLayout().repeatedRow();
  return expected && *expected == row.getLayout();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tile(getTile()), to = tile(getResult());
  if (from.getDimSize(0) != 1 || from.getDimSize(1) != to.getDimSize(1))
    return emitOpError() << "repeats one row of the result's width, found "
                         << from << " and " << to;
  LayoutAttr have = getTileLayout(from), result = getTileLayout(to);
  if (have && result && !repeatsRow(result, have))
    return emitOpError() << "the result's layout reduced to one row is not "
                            "the operand's layout";
  return checkElements(*this, from.getElementType(), to.getElementType());
}

LogicalResult BroadcastOp::relateLayouts(Value known,
                                         const layout::TileLayout &layout,
                                         SetLayout set) {
  if (known != getResult())
    return success();
  return setRow(getTile(), layout, layout.repeatedRow(), set);
}

LogicalResult MaskOp::verify() {
  RankedTensorType scores = tile(getTile());
  for (Value bounds : {getBegin(), getEnd()}) {
    if (!bounds)
      continue;
    RankedTensorType limit = tile(bounds);
    if (limit.getDimSize(0) != 1 || limit.getDimSize(1) != scores.getDimSize(1))
      return emitOpError() << "needs one limit a column of " << scores
                           << ", found " << limit;
    LayoutAttr have = getTileLayout(limit), result = getTileLayout(scores);
    if (have && result && !repeatsRow(result, have))
      return emitOpError() << "the tile's layout reduced to one row is not "
                              "that of the limits";
  }
  return success();
}

LogicalResult MaskOp::relateLayouts(Value known,
                                    const layout::TileLayout &layout,
                                    SetLayout set) {
  if (known == getBegin() || known == getEnd())
    return success();
  if (failed(set(getTile(), layout)) || failed(set(getResult(), layout)))
    return failure();
  for (Value limit : {getBegin(), getEnd()})
    if (limit && failed(setRow(limit, layout, layout.repeatedRow(), set)))
      return failure();
  return success();
}

LogicalResult RoundOp::verify() {
  if (tile(getTile()).getShape() != tile(getResult()).getShape() ||
      tile(getTile()).getEncoding() != tile(getResult()).getEncoding())
    return emitOpError("changes the element type only");
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  if (tile(getTile()).getShape() != tile(getResult()).getShape())
    return emitOpError("changes the layout only");
  return checkElements(*this, tile(getTile()).getElementType(),
                       tile(getResult()).getElementType());
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  return getTile().getType() == getResult().getType() ? getTile() : Value();
}

LogicalResult MmaOp::verify() {
  auto a = cast<VectorType>(getA().getType());
  auto b = cast<VectorType>(getB().getType());
  auto c = cast<VectorType>(getC().getType());
  const target::ElementTypeInfo *type = lookupElementType(a.getElementType());
  // Chips that share an instruction's name may hold its operands differently.
  std::string sizes;
  for (const target::MatrixInstr &row : target::allMatrixInstrs()) {
    if (row.name != getInst().getName() || !type || row.type != type->type)
      continue;
    if (a.getNumElements() == row.a.elementsPerFragment() &&
        b.getNumElements() == row.b.elementsPerFragment() &&
        b.getElementType() == a.getElementType() &&
        c.getNumElements() == row.d.elementsPerFragment())
      return success();
    sizes +=
        llvm::formatv("{0}factors of {1} and sums of {2} elements a lane",
                      sizes.empty() ? "" : ", or ", row.a.elementsPerFragment(),
                      row.d.elementsPerFragment());
  }
  if (!sizes.empty())
    return emitOpError() << "'" << getInst().getName() << "' takes " << sizes
                         << ", found " << a << ", " << b << " and " << c;
  llvm::SmallSetVector<StringRef, 4> factors;
  for (const target::MatrixInstr &row : target::allMatrixInstrs())
    if (row.name == getInst().getName())
      factors.insert(target::elementTypeInfo(row.type).mlir);
  return emitOpError() << "no instruction '" << getInst().getName() << "' for "
                       << a.getElementType() << "; its factors are "
                       << llvm::join(factors, ", ");
}
