//===- LdsToLanes.cpp - LDS for lanes -------------------------------------===//

#include "BufferAccess.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Layout/LdsAccess.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::Coord;
using layout::kWideBytes;
using layout::TileLayout;
using layout::WideAccesses;

/// Registers of a wide access with its halves exchanged.
static TileAccesses::Registers swapHalves(TileAccesses::Registers regs) {
  std::rotate(regs.begin(), regs.begin() + regs.size() / 2, regs.end());
  return regs;
}

namespace {

/// Accesses of a tile in LDS: a base a lane, and constant offsets.
class LdsAddress {
public:
  LdsAddress(Operation *op, LaneContext &lanes, const TileLayout &layout,
             LdsType type)
      : op(op), lanes(lanes), layout(layout), type(type),
        swizzle(getSwizzle(type)), bytes(bytesOf(type.getElementType())),
        rowBytes(type.getColumns() * bytes) {
    // Bits of the byte column that differ between lanes; what falls outside
    // them can be added instead of XORed, and so become an immediate offset.
    if (!swizzle.shifts.empty())
      laneBits = (swizzle.chunks - 1) * 16;
    if (swizzle.halfBit >= 0)
      laneBits |= layout::kHalfChunk;
    for (auto space : {layout::Space::Lane, layout::Space::Wave})
      for (const Coord &basis : layout.get(space))
        laneBits |= layout::lineOf(rowBytes, bytes, swizzle, basis)[1] * bytes;
  }

  /// Whether an access of `width` elements at register coordinates `at` meets
  /// the halves of its chunk in reverse order.
  bool isSwapped(Coord at, int width) const {
    return width * bytes > layout::kHalfChunk && swizzle.swapsHalves(at[0]);
  }

  /// Address of such an access in the tile at `buffer`. The constant is the
  /// last step, so that it ends up in the instruction.
  Value pointer(ImplicitLocOpBuilder &b, Value buffer, Coord at, int width) {
    Coord line = layout::lineOf(rowBytes, bytes, swizzle, at);
    int64_t flip = line[1] * bytes ^ swizzle.rowXor(line[0]) * 16;
    if (swizzle.swapsHalves(at[0]) && !isSwapped(at, width))
      flip ^= layout::kHalfChunk;
    int64_t lineBytes = rowBytes << swizzle.lineRowBits(rowBytes);
    int64_t constant = line[0] * lineBytes + (flip & ~laneBits);
    auto place = buffer.getDefiningOp<LLVM::GEPOp>();
    if (!lanes.isLdsFar() || !place) {
      Value base = lanes.ldsBase(op, layout, type, flip & laneBits);
      return addBytes(b, addBytes(b, buffer, base), int32_t(constant));
    }
    Value of = addBytes(b,
                        lanes.farLdsBase(op, place.getBase(), layout, type,
                                         flip & laneBits),
                        place.getDynamicIndices().empty()
                            ? LLVM::GEPArg(place.getRawConstantIndices()[0])
                            : LLVM::GEPArg(place.getDynamicIndices()[0]));
    return addBytes(b, of, int32_t(constant));
  }

private:
  Operation *op;
  LaneContext &lanes;
  const TileLayout &layout;
  LdsType type;
  layout::Swizzle swizzle;
  int64_t bytes, rowBytes;
  int64_t laneBits = 0;
};

/// attn.alloc_lds: a global of the module in LDS.
struct LowerAllocLds : public LanePattern<AllocLdsOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(AllocLdsOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    gpu::GPUFuncOp kernel = lanes.getKernel();
    auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
    auto type = LLVM::LLVMArrayType::get(rewriter.getI8Type(),
                                         op.getLds().getType().getBytes() *
                                             op.getBuffers());
    std::string name;
    int number = 0;
    do
      name = llvm::formatv("{0}_lds{1}", kernel.getName(), number++);
    while (module.lookupSymbol(name));
    LLVM::GlobalOp global;
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(kernel);
      global = LLVM::GlobalOp::create(
          rewriter, op.getLoc(), type, /*isConstant=*/false,
          LLVM::Linkage::Internal, name, /*value=*/Attribute(),
          /*alignment=*/kWideBytes, kLdsAddressSpace);
    }
    rewriter.replaceOpWithNewOp<LLVM::AddressOfOp>(op, global);
    return success();
  }
};

/// attn.lds_buffer: buffers follow one another.
struct LowerLdsBuffer : public LanePattern<LdsBufferOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(LdsBufferOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value bytes = lanes.i32(b, op.getLds().getType().getBytes());
    Value offset = arith::MulIOp::create(b, op.getNumber(), bytes);
    rewriter.replaceOp(op, addBytes(b, adaptor.getLds()[0], offset));
    return success();
  }
};

/// attn.copy_lds: loads to LDS. An access of a wave fills consecutive places of
/// LDS, lane by lane, so the swizzle is in the choice of what each fetches.
struct LowerCopyLds : public LanePattern<CopyLdsOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(CopyLdsOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getLayout())
      return op.emitOpError("has no layout; run attn-assign-layouts first");
    const auto end = rowEndOf(rewriter, op.getView());
    if (end.columns || end.again)
      return op.emitOpError("can't cut columns that are known at run time; "
                            "schedules of such kernels have direct_copy = 0");
    if (!lanes.getTarget().has(target::kLoadToLds128))
      return op.emitOpError() << lanes.getTarget().name
                              << " has no loads of 16 bytes a lane to LDS";
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = op.getLayout()->getLayout();
    LdsType type = op.getLds().getType();
    layout::Swizzle swizzle = getSwizzle(type);
    int64_t bytes = bytesOf(type.getElementType());
    int64_t rowBytes = type.getBytes() / type.getRows();
    if (swizzle.halfBit >= 0 || swizzle.lineRowBits(rowBytes) > 0)
      return op.emitOpError() << "fills whole chunks of 16 bytes in the rows "
                                 "that they are of, which "
                              << type.getSwizzle() << " does not leave them in";
    WideAccesses accesses = wideAccesses(layout, kWideBytes / bytes);
    if (accesses.width * bytes != kWideBytes || layout.fragments() != 1)
      return op.emitOpError()
             << "layout <" << layout.str()
             << "> does not give each lane runs of " << kWideBytes << " bytes";
    auto i32 = [&](int64_t value) { return lanes.i32(b, value); };
    Value resource = adaptor.getView()[kResource],
          stride = adaptor.getView()[kStride];
    Value zero = i32(0);
    // Where the wave's accesses go.
    Value start = arith::AddIOp::create(
        b,
        arith::MulIOp::create(b, lanes.waveCoordinate(op, layout, 0),
                              i32(rowBytes)),
        arith::MulIOp::create(b, lanes.waveCoordinate(op, layout, 1),
                              i32(bytes)));
    Value places = addBytes(b, adaptor.getLds()[0], start);
    // What this lane fetches. A column outside the view puts it out of bounds,
    // whatever rows are added.
    Value number = lanes.coordinate(op, layout, 0);
    Value row = arith::MulIOp::create(b, number, stride);
    const Value from = firstRowOf(rewriter, op.getView());
    int64_t viewBytes = op.getView().getType().getColumns() * bytes;
    for (const auto &regs : accesses.regs) {
      Coord at = layout.map(regs[0], 0, 0);
      int64_t flip = at[1] * bytes ^ swizzle.rowXor(at[0]) * kWideBytes;
      Value column = lanes.swizzledColumn(op, layout, type, flip);
      Value offset = arith::AddIOp::create(b, row, column);
      if (viewBytes < rowBytes) {
        Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                             column, i32(viewBytes));
        offset = offsetIf(b, lanes, inside, offset);
      }
      if (at[0] != 0)
        offset = arith::AddIOp::create(
            b, offset, arith::MulIOp::create(b, stride, i32(at[0])));
      if (from)
        offset =
            offsetFrom(b, lanes, from,
                       arith::AddIOp::create(b, number, i32(at[0])), offset);
      auto load = ROCDL::RawPtrBufferLoadLdsOp::create(
          b, TypeRange{},
          ValueRange{
              resource,
              addBytes(b, places, int32_t(at[0] * rowBytes + at[1] * bytes)),
              i32(kWideBytes), offset, zero, zero, zero});
      load.setAliasScopesAttr(lanes.getCopyScope());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Fails unless the accesses of a tile in this layout know in advance which
/// chunks of the LDS tile have their halves swapped.
static LogicalResult checkHalves(Operation *op, const TileLayout &layout,
                                 LdsType type) {
  if (layout::canSwapHalves(layout, bytesOf(type.getElementType()),
                            getSwizzle(type)))
    return success();
  return op->emitOpError()
         << "layout <" << layout.str() << "> has lanes that differ in whether "
         << type.getSwizzle()
         << " swaps the halves of what they access at once; a register bit "
            "has to decide";
}

struct LowerStoreLds : public LanePattern<StoreLdsOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(StoreLdsOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getTile());
    LdsType type = op.getLds().getType();
    if (failed(checkHalves(op, layout, type)))
      return failure();
    TileAccesses accesses(layout, type.getElementType());
    LdsAddress address(op, lanes, layout, type);
    accesses.forEach([&](int fragment, const auto &regs, Coord at) {
      bool swapped = address.isSwapped(at, accesses.width());
      Value part = gather(b, adaptor.getTile()[fragment],
                          swapped ? swapHalves(regs) : regs);
      LLVM::StoreOp::create(
          b, part,
          address.pointer(b, adaptor.getLds()[0], at, accesses.width()),
          accesses.bytes());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerLoadLds : public LanePattern<LoadLdsOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(LoadLdsOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    LdsType type = op.getLds().getType();
    int64_t bytes = bytesOf(type.getElementType());
    layout::LdsRead way = layout::chooseLdsRead(
        layoutOf(op.getTile()), bytes,
        target::ldsTransposedRead(lanes.getTarget(), bytes));
    if (failed(checkHalves(op, way.addresses, type)))
      return failure();
    TileAccesses accesses(way.addresses, type.getElementType(), way.accesses);
    LdsAddress address(op, lanes, way.addresses, type);
    auto read = [&](Coord at) -> Value {
      Value place =
          address.pointer(b, adaptor.getLds()[0], at, accesses.width());
      if (way.transposed) {
        auto load = ROCDL::ds_read_tr16_b64::create(b, accesses.type(), place);
        load.setNoaliasScopesAttr(lanes.getCopyScope());
        return load;
      }
      auto load =
          LLVM::LoadOp::create(b, accesses.type(), place, accesses.bytes());
      load.setNoaliasScopesAttr(lanes.getCopyScope());
      if (!address.isSwapped(at, accesses.width()))
        return load;
      auto order = llvm::to_vector<8>(llvm::seq<int64_t>(accesses.width()));
      return vector::ShuffleOp::create(b, load, load, swapHalves(order));
    };
    rewriter.replaceOpWithMultiple(op, {accesses.read(b, read)});
    return success();
  }
};

} // namespace

void fovea::populateLdsToLanesPatterns(TypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       LaneContext &context) {
  patterns.add<LowerAllocLds, LowerLdsBuffer, LowerCopyLds, LowerStoreLds,
               LowerLoadLds>(converter, context);
}
