//===- MemoryToLanes.cpp - global memory for lanes ------------------------===//

#include "BufferAccess.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::Coord;
using layout::kWideBytes;
using layout::TileLayout;

/// Columns of tiles up to which a lane's first offset is kept throughout loops.
static constexpr int64_t kHoistedColumns = 128;
/// Columns up to which a wave of 32 lanes has scalar registers beside two tiles
/// of queries' output, or LLVM spills vectors for their sake.
static constexpr int64_t kRoomyColumns = 64;

/// Cache policy of an access that the whole device sees, on chips whose memory
/// instructions name a scope: SCOPE_DEV in bits 3 and 4.
static constexpr int64_t kDeviceScope = 2 << 3;

/// The type in which a raw-buffer access moves that many bytes.
static Type transferType(OpBuilder &b, int64_t bytes) {
  if (bytes < 4)
    return b.getIntegerType(bytes * 8);
  if (bytes == 4)
    return b.getI32Type();
  return VectorType::get({bytes / 4}, b.getI32Type());
}

namespace {

/// attn.view: a raw buffer resource over the rows, and their distance in bytes.
struct LowerView : public LanePattern<ViewOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(ViewOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ViewType type = op.getView().getType();
    int64_t bytes = bytesOf(type.getElementType());
    auto i32 = [&](int64_t value) { return lanes.i32(b, value); };
    Value stride = arith::MulIOp::create(b, op.getStride(), i32(bytes));
    // The size is 32 bits: rows beyond these are not addressed anyway.
    Value rows = arith::MinSIOp::create(b, op.getRows(), i32(kMostViewedRows));
    Value last = arith::SubIOp::create(b, rows, i32(1));
    Value columns = i32(type.getColumns());
    // Instructions look at words: one that is in bounds in part may be out of
    // bounds as a whole.
    const int64_t ofWord = elementsOfWord(type.getElementType());
    if (op.getSingle())
      columns = op.getColumns();
    else if (op.getColumns())
      columns = arith::AndIOp::create(
          b, arith::AddIOp::create(b, op.getColumns(), i32(ofWord - 1)),
          i32(-ofWord));
    Value size =
        arith::AddIOp::create(b, arith::MulIOp::create(b, last, stride),
                              arith::MulIOp::create(b, columns, i32(bytes)));
    if (ValueRange runs = op.getRuns(); !runs.empty()) {
      Value others =
          arith::SubIOp::create(b, runs[ViewOp::Count], i32(1));
      Value before = arith::MulIOp::create(
          b, arith::MulIOp::create(b, others, runs[ViewOp::Distance]),
          i32(bytes));
      Value behind = arith::SubIOp::create(b, runs[ViewOp::Length], i32(1));
      size = arith::AddIOp::create(
          b,
          arith::AddIOp::create(b, before,
                                arith::MulIOp::create(b, behind, stride)),
          arith::MulIOp::create(b, columns, i32(bytes)));
    }
    Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                       op.getRows(), i32(0));
    size = arith::SelectOp::create(b, some, size, i32(0));
    Value size64 = arith::ExtUIOp::create(b, b.getI64Type(), size);
    Value base = LLVM::GEPOp::create(
        b, op.getBase().getType(), type.getElementType(), op.getBase(),
        ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(op.getOffset())});
    Value noStride = arith::ConstantIntOp::create(b, 0, 16).getResult();
    Value resource = ROCDL::MakeBufferRsrcOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), 8), base, noStride,
        size64, i32(lanes.getTarget().bufferFlags));
    // Copies past registers leave room for their few offsets.
    bool onlyCopied = llvm::all_of(op->getUsers(), llvm::IsaPred<CopyLdsOp>);
    // Offsets of rows are then computed where they are used, one add each,
    // instead of each holding a register throughout the loop. Those of a lane's
    // first row do hold one, where registers are to spare: in waves of 64 lanes
    // and forward, and not beside wide tiles, whose loads then come too late.
    // In waves of 32 lanes a row's offset is a multiplication of 64 bits, four
    // times as long as another instruction.
    Value late = stride;
    if (op->getParentOfType<LoopLikeOpInterface>() && !onlyCopied &&
        !matchPattern(op.getStride(), m_Constant()))
      late = makeOpaque(b, op.getLoc(), stride);
    const bool hasRegisters =
        (lanes.getTarget().waveSize == 64 || lanes.isSteady()) &&
        type.getColumns() <= kHoistedColumns;
    rewriter.replaceOpWithMultiple(
        op, {{resource, late, hasRegisters ? stride : late}});
    return success();
  }
};

/// Offsets of the accesses of a tile in a view.
class BufferAddress {
public:
  /// \param end  of the view's rows; nothing known: as many columns as its type
  ///            has
  /// \param from  the first row of the view that is not out of bounds; null: 0
  BufferAddress(ImplicitLocOpBuilder &b, Operation *op, LaneContext &lanes,
                const TileLayout &layout, ViewType view, ValueRange lowered,
                RowEnd end, Value from = nullptr, ViewOp runs = nullptr)
      : b(b), lanes(lanes), view(view), stride(lowered[kStride]),
        end(end), from(from), runs(runs),
        bytes(bytesOf(view.getElementType())), maxColumn(lastColumn(layout)),
        row(lanes.coordinate(op, layout, 0)),
        column(lanes.coordinate(op, layout, 1)) {
    base = arith::AddIOp::create(
        b, arith::MulIOp::create(b, row, lowered[kHoistedStride]),
        arith::MulIOp::create(b, column, i32(bytes)));
  }

  /// Makes offsets here anew: LLVM would otherwise make all of them ahead of a
  /// loop, and keep each, where instructions add what is constant.
  void keepTogether() {
    base = passVectorRegister(b, base, /*hasSideEffects=*/true);
  }

  /// Whether no lane's access at this place is inside the view.
  bool isOutside(Coord at) const { return at[1] >= view.getColumns(); }

  /// i32 byte offset of register coordinates `at`; out of bounds in lanes whose
  /// column is, or for which `guard` (if any) is false.
  Value offset(Coord at, Value guard) {
    Value result = end.columns ? cutBase(at[1]) : base;
    if (runs)
      result = inRuns(result, at[0]);
    else if (at[0] != 0)
      result = arith::AddIOp::create(b, result, toRow(at[0]));
    if (from)
      result = offsetFrom(b, lanes, from,
                          arith::AddIOp::create(b, row, i32(at[0])), result);
    if (!end.columns) {
      // Ahead of the column, which the instruction adds: LLVM joins accesses
      // that differ by it alone.
      if (guard && at[1] != 0) {
        result = offsetIf(b, lanes, guard, result);
        guard = nullptr;
      }
      if (at[1] != 0)
        result = arith::AddIOp::create(b, result, i32(at[1] * bytes));
      result = late(result, at[1]);
      if (at[1] + maxColumn >= view.getColumns()) {
        Value inside =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                                  i32(view.getColumns() - at[1]));
        guard = guard ? Value(arith::AndIOp::create(b, guard, inside)) : inside;
      }
    }
    return offsetIf(b, lanes, guard, result);
  }

  /// The same of one element to be written: a column that is seen again is
  /// written once.
  Value offsetOfElement(Coord at, Value guard) {
    constexpr int64_t again = ViewOp::kColumnSeenAgain;
    if (end.again && at[1] <= again && at[1] + maxColumn >= again) {
      Value isOwn = arith::OrIOp::create(
          b, isColumn(arith::CmpIPredicate::ne, again, at[1]),
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, end.again,
                                i32(0)));
      guard = guard ? Value(arith::AndIOp::create(b, guard, isOwn)) : isOwn;
    }
    return offset(at, guard);
  }

private:
  Value i32(int64_t value) { return lanes.i32(b, value); }

  /// What is between a row and the one that is so many behind it: for other
  /// numbers than powers of two LLVM would multiply once more in each lane.
  Value toRow(int64_t rows) {
    Value distance = arith::MulIOp::create(b, stride, i32(rows));
    const bool isRoomy =
        lanes.isSteady() &&
        view.getColumns() <=
            (lanes.holdsTwoTiles() ? kRoomyColumns : kHoistedColumns);
    if (lanes.getTarget().waveSize == 32 && isRoomy &&
        !llvm::isPowerOf2_64(rows) && !matchPattern(stride, m_Constant()))
      distance = makeOpaque(b, b.getLoc(), distance);
    return distance;
  }

  /// An offset in row `row`, moved to the run of row `row` + `more`, or, where
  /// the view has no such row, beyond all bounds: runs may lie in one another.
  Value inRuns(Value offset, int64_t more) {
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddIOp::create(b, x, y);
    };
    auto sub = [&](Value x, Value y) -> Value {
      return arith::SubIOp::create(b, x, y);
    };
    auto mul = [&](Value x, Value y) -> Value {
      return arith::MulIOp::create(b, x, y);
    };
    Value first = runs.getRuns()[ViewOp::First],
          length = runs.getRuns()[ViewOp::Length];
    Value own = add(row, i32(more));
    // LLVM divides numbers of 16 bits in few instructions.
    auto narrow = [&](Value value) -> Value {
      return arith::AndIOp::create(b, value, i32(0xffff));
    };
    Value run = arith::DivUIOp::create(b, narrow(add(own, first)),
                                       narrow(length));
    Value distance = mul(runs.getRuns()[ViewOp::Distance], i32(bytes));
    Value toRow = mul(add(first, i32(more)), stride);
    Value toRun = mul(run, sub(distance, mul(length, stride)));
    Value beyond = sub(sub(runs.getRows(), i32(1)), own);
    return arith::OrIOp::create(
        b, add(offset, add(toRow, toRun)),
        arith::AndIOp::create(b, beyond, i32(kOutOfBounds)));
  }
  Value isColumn(arith::CmpIPredicate predicate, int64_t of, int64_t more) {
    return arith::CmpIOp::create(b, predicate, column, i32(of - more));
  }

  /// The offset of the lane's column with so many more: where one is seen
  /// again, those ahead of it lie one element behind their place.
  Value late(Value offset, int64_t more) {
    constexpr int64_t from = ViewOp::kColumnSeenAgain;
    if (!end.again || more >= from)
      return offset;
    Value behind = arith::AddIOp::create(
        b, offset, arith::MulIOp::create(b, end.again, i32(bytes)));
    if (more + maxColumn < from)
      return behind;
    return arith::SelectOp::create(
        b, isColumn(arith::CmpIPredicate::slt, from, more), behind, offset);
  }

  /// The base with so many columns more; where they are not there, one that is
  /// out of bounds whatever rows are added: in the place of the columns, which
  /// loops find in a register, so that they have nothing more to do.
  Value cutBase(int64_t more) {
    Value inside =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                              arith::SubIOp::create(b, end.columns, i32(more)));
    Value place =
        late(arith::MulIOp::create(
                 b, arith::AddIOp::create(b, column, i32(more)), i32(bytes)),
             more);
    return arith::AddIOp::create(b, arith::MulIOp::create(b, row, stride),
                                 offsetIf(b, lanes, inside, place));
  }

  ImplicitLocOpBuilder &b;
  LaneContext &lanes;
  ViewType view;
  Value stride;
  RowEnd end;
  Value from;
  ViewOp runs; ///< null: rows lie at one distance
  int64_t bytes, maxColumn;
  Value row, column, base;
};

/// Where a view comes from, if its rows lie in runs.
static ViewOp viewInRuns(Value view) {
  auto made = view.getDefiningOp<ViewOp>();
  return made && !made.getRuns().empty() ? made : ViewOp();
}

struct LowerLoad : public LanePattern<LoadOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getTile());
    Type element = op.getTile().getType().getElementType();
    auto view = op.getView().getDefiningOp<ViewOp>();
    const auto accesses =
        view && view.getSingle()
            ? TileAccesses(layout, element, wideAccesses(layout, 1))
            : TileAccesses(layout, element);
    Value resource = adaptor.getView()[kResource];
    BufferAddress address(b, op, lanes, layout, op.getView().getType(),
                          adaptor.getView(), rowEndOf(rewriter, op.getView()),
                          firstRowOf(rewriter, op.getView()),
                          viewInRuns(op.getView()));
    Value zero = lanes.i32(b, 0);
    auto read = [&](Coord at) -> Value {
      at[0] += int32_t(op.getRow());
      at[1] += int32_t(op.getColumn());
      if (address.isOutside(at))
        return arith::ConstantOp::create(b, b.getZeroAttr(accesses.type()));
      Value loaded = ROCDL::RawPtrBufferLoadOp::create(
          b, TypeRange{transferType(b, accesses.bytes())},
          ValueRange{resource, address.offset(at, nullptr), zero, zero});
      return LLVM::BitcastOp::create(b, accesses.type(), loaded);
    };
    rewriter.replaceOpWithMultiple(op, {accesses.read(b, read)});
    return success();
  }
};

/// The device sees an atomic where an instruction does not name a scope.
static Value devicePolicy(ImplicitLocOpBuilder &b, LaneContext &lanes) {
  return lanes.i32(
      b, lanes.getTarget().has(target::kMemoryScopes) ? kDeviceScope : 0);
}

/// The `size` elements that lie `offset` behind `base`.
static Value resourceOf(ImplicitLocOpBuilder &b, LaneContext &lanes, Value base,
                        Value offset, Value size, Type element) {
  auto i32 = [&](int64_t value) { return lanes.i32(b, value); };
  // Between two bounds LLVM makes a vector instruction of it, and accesses
  // whose resource is in vector registers go one by one.
  size = ROCDL::ReadfirstlaneOp::create(b, size.getType(), size);
  size = arith::MulIOp::create(b, size, i32(bytesOf(element)));
  Value start =
      LLVM::GEPOp::create(b, base.getType(), element, base,
                          ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(offset)});
  Value noStride = arith::ConstantIntOp::create(b, 0, 16).getResult();
  return ROCDL::MakeBufferRsrcOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 8), start, noStride,
      arith::ExtUIOp::create(b, b.getI64Type(), size),
      i32(lanes.getTarget().bufferFlags));
}

/// attn.gather: a load an element, or a run of rows.
struct LowerGather : public LanePattern<GatherOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(GatherOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type element = getElementTypeOrSelf(op.getResult().getType());
    const int64_t bytes = bytesOf(element);
    auto i32 = [&](int64_t value) { return lanes.i32(b, value); };
    Value resource = resourceOf(b, lanes, op.getBase(), op.getOffset(),
                                op.getSize(), element);
    auto load = [&](Value offset, int64_t count) -> Value {
      return ROCDL::RawPtrBufferLoadOp::create(
          b, TypeRange{transferType(b, count * bytes)},
          ValueRange{resource, offset, i32(0), i32(0)});
    };
    if (!op.getIndex()) {
      rewriter.replaceOp(op, uniform(b, load(i32(0), 1), element));
      return success();
    }
    auto indexOf = [&](int fragment, int reg) -> Value {
      return arith::MulIOp::create(
          b, elementOf(b, adaptor.getIndex()[fragment], reg), i32(bytes));
    };
    TileLayout layout = layoutOf(op.getResult());
    // Of whole words runs may begin anywhere.
    bool isShifted = op.getUnaligned() && bytes < kWordBytes;
    int run = op.getDown() ? runOf(layout, bytes, isShifted) : 1;
    if (isShifted && run * bytes % kWordBytes != 0) {
      isShifted = false;
      run = 1;
    }
    // The word behind the last has what is not in the others.
    auto loadShifted = [&](Value offset) -> Value {
      const int words = int(run * bytes / kWordBytes);
      Value loaded = load(arith::AndIOp::create(b, offset, i32(-kWordBytes)),
                          (words + 1) * kWordBytes / bytes);
      SmallVector<Value> shifted;
      for (int i = 0; i < words; ++i)
        shifted.push_back(
            callIntrinsic(b, b.getI32Type(), "llvm.amdgcn.alignbyte",
                          {vector::ExtractOp::create(b, loaded, i + 1),
                           vector::ExtractOp::create(b, loaded, i), offset}));
      return vector::FromElementsOp::create(
          b, VectorType::get({words}, b.getI32Type()), shifted);
    };
    SmallVector<Value> fragments;
    for (int fragment = 0; fragment < layout.fragments(); ++fragment) {
      SmallVector<Value> elements;
      for (int reg = 0; reg < layout.elementsPerFragment(); reg += run) {
        Value offset = indexOf(fragment, reg);
        Value loaded = isShifted ? loadShifted(offset) : load(offset, run);
        auto type = VectorType::get({run}, element);
        Value part = LLVM::BitcastOp::create(b, type, loaded);
        for (int i = 0; i < run; ++i)
          elements.push_back(vector::ExtractOp::create(b, part, i));
      }
      fragments.push_back(vector::FromElementsOp::create(
          b, VectorType::get({int64_t(elements.size())}, element), elements));
    }
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }

private:
  static constexpr int64_t kWordBytes = 4;

  static Value elementOf(ImplicitLocOpBuilder &b, Value fragment, int reg) {
    return element(b, fragment, reg);
  }

  /// Rows that follow one another in a lane's registers and fit a load, or, of
  /// what is shifted, one with a word more.
  static int runOf(const TileLayout &layout, int64_t bytes, bool isShifted) {
    const int rows = 1 << layout.transposed().contiguousColumnsLog2();
    const int64_t most = isShifted ? kWideBytes / 2 : kWideBytes;
    return int(std::min<int64_t>(rows, most / bytes));
  }

  /// What all lanes loaded, in a scalar register.
  static Value uniform(ImplicitLocOpBuilder &b, Value loaded, Type element) {
    const bool isWord = loaded.getType().isInteger(32);
    Value word = loaded;
    if (!isWord)
      word = arith::ExtUIOp::create(b, b.getI32Type(), word);
    word = ROCDL::ReadfirstlaneOp::create(b, b.getI32Type(), word);
    if (!isWord)
      word = arith::TruncIOp::create(b, loaded.getType(), word);
    return LLVM::BitcastOp::create(b, element, word);
  }
};

struct LowerStore : public LanePattern<StoreOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getTile());
    Type element = op.getTile().getType().getElementType();
    const auto end = rowEndOf(rewriter, op.getView());
    BufferAddress address(b, op, lanes, layout, op.getView().getType(),
                          adaptor.getView(), end);
    Value resource = adaptor.getView()[kResource];
    Value first = lanes.isFirstHolder(op, layout);
    Value zero = lanes.i32(b, 0);
    auto store = [&](const TileAccesses &accesses) {
      Type moved = transferType(b, accesses.bytes());
      accesses.forEach([&](int fragment, const auto &regs, Coord at) {
        at[1] += int32_t(op.getColumn());
        if (address.isOutside(at))
          return;
        Value part = gather(b, adaptor.getTile()[fragment], regs);
        Value offset = accesses.width() == 1
                           ? address.offsetOfElement(at, first)
                           : address.offset(at, first);
        ROCDL::RawPtrBufferStoreOp::create(
            b, TypeRange{},
            ValueRange{LLVM::BitcastOp::create(b, moved, part), resource,
                       offset, zero, zero});
      });
    };
    TileAccesses accesses(layout, element);
    if (!end.columns || accesses.width() == 1) {
      store(accesses);
      rewriter.eraseOp(op);
      return success();
    }
    // An access that is in bounds in part must leave what is behind a row.
    Value partial = arith::AndIOp::create(b, end.columns,
                                          lanes.i32(b, accesses.width() - 1));
    if (end.again)
      partial = arith::OrIOp::create(b, partial, end.again);
    Value isWhole =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, partial, zero);
    auto branch = scf::IfOp::create(b, isWhole, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    store(accesses);
    b.setInsertionPointToStart(branch.elseBlock());
    store(TileAccesses(layout, element, wideAccesses(layout, 1)));
    rewriter.eraseOp(op);
    return success();
  }
};

/// attn.scatter: a store an element.
struct LowerScatter : public LanePattern<ScatterOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(ScatterOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout layout = layoutOf(op.getTile());
    Type type = cast<RankedTensorType>(op.getTile().getType()).getElementType();
    const int64_t bytes = bytesOf(type);
    Value resource =
        resourceOf(b, lanes, op.getBase(), op.getOffset(), op.getSize(), type);
    Value first = lanes.isFirstHolder(op, layout), zero = lanes.i32(b, 0);
    Type moved = transferType(b, bytes);
    TileAccesses single(layout, type, wideAccesses(layout, 1));
    single.forEach([&](int fragment, const auto &regs, Coord) {
      Value index = element(b, adaptor.getIndex()[fragment], regs[0]);
      Value offset =
          offsetIf(b, lanes, first,
                   arith::MulIOp::create(b, index, lanes.i32(b, bytes)));
      Value value = element(b, adaptor.getTile()[fragment], regs[0]);
      ROCDL::RawPtrBufferStoreOp::create(
          b, TypeRange{},
          ValueRange{LLVM::BitcastOp::create(b, moved, value), resource, offset,
                     zero, zero});
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// attn.scatter_add: an addition a register, or one of what lanes have added
/// up.
struct LowerScatterAdd : public LanePattern<ScatterAddOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(ScatterAddOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (!lanes.getTarget().has(target::kBufferAtomicAddF32))
      return op.emitOpError()
             << lanes.getTarget().name << " cannot add f32 in memory";
    TileLayout layout = layoutOf(op.getTile());
    Value resource = resourceOf(b, lanes, op.getBase(), op.getOffset(),
                                op.getSize(), b.getF32Type());
    Value zero = lanes.i32(b, 0), policy = devicePolicy(b, lanes);
    auto add = [&](Value value, Value index, Value guard) {
      Value offset = offsetIf(b, lanes, guard,
                              arith::MulIOp::create(b, index, lanes.i32(b, 4)));
      ROCDL::RawPtrBufferAtomicFaddOp::create(
          b, TypeRange{}, ValueRange{value, resource, offset, zero, policy});
    };
    auto indexOf = [&](int fragment, int64_t reg) {
      return element(b, adaptor.getIndex()[fragment], reg);
    };
    TileAccesses single(layout, b.getF32Type(), wideAccesses(layout, 1));
    if (op.getIndex() && !op.getByRow() && !op.getByColumn()) {
      Value first = lanes.isFirstHolder(op, layout);
      single.forEach([&](int fragment, const auto &regs, Coord) {
        add(element(b, adaptor.getTile()[fragment], regs[0]),
            indexOf(fragment, regs[0]), first);
      });
      rewriter.eraseOp(op);
      return success();
    }

    // What the sums run along: dimensions, and lanes.
    const bool along[] = {!op.getByRow(), !op.getByColumn()};
    auto isSummed = [&](const Coord &basis) {
      return (along[0] && basis[0] != 0) || (along[1] && basis[1] != 0);
    };
    layout::Bases summedOut(layout.lanes());
    SmallVector<int> laneBits;
    for (auto [bit, basis] : llvm::enumerate(summedOut)) {
      if (!isSummed(basis))
        continue;
      if ((!along[0] && basis[0] != 0) || (!along[1] && basis[1] != 0))
        return op.emitOpError() << "sums along one dimension, which lanes of "
                                   "layout <"
                                << layout.str() << "> share with the other";
      laneBits.push_back(bit);
      basis = {0, 0};
    }
    struct Sum {
      Value value, index;
    };
    llvm::MapVector<std::pair<int32_t, int32_t>, Sum> sums;
    single.forEach([&](int fragment, const auto &regs, Coord at) {
      Sum &sum = sums[{along[0] ? 0 : at[0], along[1] ? 0 : at[1]}];
      Value value = element(b, adaptor.getTile()[fragment], regs[0]);
      sum.value =
          sum.value ? Value(arith::AddFOp::create(b, sum.value, value)) : value;
      if (!sum.index)
        sum.index = op.getIndex() ? indexOf(fragment, regs[0]) : zero;
    });
    TileLayout left(layout::Bases(layout.registers()), summedOut,
                    layout::Bases(layout.waves()), layout.grid());
    Value first = lanes.isFirstHolder(op, left);
    Value none = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0f));
    for (auto &[at, sum] : sums) {
      Value value = sum.value;
      for (int bit : laneBits) {
        auto [x, y] = lanes.exchangePair(rewriter, op, value, 1 << bit);
        value = arith::AddFOp::create(b, x, y);
      }
      Value guard =
          arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, none);
      if (first)
        guard = arith::AndIOp::create(b, guard, first);
      add(value, sum.index, guard);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// attn.atomic_add: an addition a register, of all lanes at once.
struct LowerAtomicAdd : public LanePattern<AtomicAddOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(AtomicAddOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (!op.getTile().getType().getElementType().isF32())
      return addPairs(b, op, adaptor, rewriter);
    if (!lanes.getTarget().has(target::kBufferAtomicAddF32))
      return op.emitOpError()
             << lanes.getTarget().name << " cannot add f32 in memory";
    TileLayout layout = layoutOf(op.getTile());
    BufferAddress address(b, op, lanes, layout, op.getView().getType(),
                          adaptor.getView(),
                          rowEndOf(rewriter, op.getView()));
    if (lanes.getTarget().waveSize == 64) // others have no register to spare
      address.keepTogether();
    Value first = lanes.isFirstHolder(op, layout);
    Value zero = lanes.i32(b, 0), policy = devicePolicy(b, lanes);
    TileAccesses single(layout, b.getF32Type(), wideAccesses(layout, 1));
    single.forEach([&](int fragment, const auto &regs, Coord at) {
      if (address.isOutside(at))
        return;
      ROCDL::RawPtrBufferAtomicFaddOp::create(
          b, TypeRange{},
          ValueRange{element(b, adaptor.getTile()[fragment], regs[0]),
                     adaptor.getView()[kResource],
                     address.offsetOfElement(at, first), zero, policy});
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The layout of pairs of rows, of which a lane holds both halves in
  /// registers of which the second follows the first; none: another has one.
  static std::optional<TileLayout> layoutOfPairs(const TileLayout &layout) {
    layout::Bases bases[3];
    for (auto space :
         {layout::Space::Register, layout::Space::Lane, layout::Space::Wave})
      for (const Coord &basis : layout.get(space))
        bases[static_cast<int>(space)].push_back({basis[0] / 2, basis[1]});
    auto isOdd = [](const Coord &basis) { return basis[0] % 2 != 0; };
    if (layout.registers().empty() || layout.registers()[0] != Coord{1, 0} ||
        llvm::any_of(layout.registers().drop_front(), isOdd) ||
        llvm::any_of(layout.lanes(), isOdd) ||
        llvm::any_of(layout.waves(), isOdd))
      return std::nullopt;
    bases[0].erase(bases[0].begin());
    return TileLayout(bases[0], bases[1], bases[2], layout.grid());
  }

  /// 16-bit elements, two rows at a time.
  LogicalResult addPairs(ImplicitLocOpBuilder &b, AtomicAddOp op,
                         Adaptor adaptor,
                         ConversionPatternRewriter &rewriter) const {
    const target::TargetInfo &target = lanes.getTarget();
    Type type = op.getTile().getType().getElementType();
    if (!target.addsPairs(type.isBF16()))
      return op.emitOpError()
             << target.name << " cannot add pairs of " << type << " in memory";
    TileLayout full = layoutOf(op.getTile());
    std::optional<TileLayout> layout = layoutOfPairs(full);
    auto view = op.getView().getDefiningOp<ViewOp>();
    APInt stride;
    if (!layout || lanes.isFirstHolder(op, full))
      return op.emitOpError() << "adds rows 2r and 2r + 1 of one lane, once; "
                                 "layout <"
                              << full.str() << "> has them elsewhere";
    if (!view || !matchPattern(view.getStride(), m_ConstantInt(&stride)))
      return op.emitOpError("adds pairs to rows at a constant distance");
    const bool byAddress =
        type.isBF16() && !target.has(target::kBufferAtomicPkAddBf16);
    if (rowEndOf(rewriter, op.getView()).columns)
      return op.emitOpError("adds pairs to as many columns as the view's type "
                            "has");
    BufferAddress address(b, op, lanes, *layout, op.getView().getType(),
                          adaptor.getView(), RowEnd());
    if (target.waveSize == 64)
      address.keepTogether();
    Value zero = lanes.i32(b, 0), policy = devicePolicy(b, lanes), base;
    if (byAddress)
      base = placeOfLane(b, view.getView().getType(),
                         rewriter.getRemappedValue(view.getBase()),
                         rewriter.getRemappedValue(view.getOffset()),
                         address.offset({0, 0}, nullptr));
    TileAccesses single(*layout, b.getI32Type(), wideAccesses(*layout, 1));
    single.forEach([&](int fragment, const auto &regs, Coord at) {
      Value values = vector::ShuffleOp::create(
          b, adaptor.getTile()[fragment], adaptor.getTile()[fragment],
          ArrayRef<int64_t>{2 * regs[0], 2 * regs[0] + 1});
      if (byAddress)
        return addByAddress(
            b, values,
            addBytes(b, base,
                     int32_t(4 * (at[0] * stride.getSExtValue() + at[1]))));
      ROCDL::RawPtrBufferAtomicFaddOp::create(
          b, TypeRange{},
          ValueRange{values, adaptor.getView()[kResource],
                     address.offset(at, nullptr), zero, policy});
    });
    rewriter.eraseOp(op);
    return success();
  }

  /// What lies `bytes`, i32, behind the beginning of a view.
  static Value placeOfLane(ImplicitLocOpBuilder &b, ViewType view, Value base,
                           Value offset, Value bytes) {
    Value start =
        LLVM::GEPOp::create(b, base.getType(), view.getElementType(), base,
                            ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(offset)});
    Value wide = arith::ExtUIOp::create(b, b.getI64Type(), bytes);
    return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), start,
                               ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(wide)});
  }
  static void addByAddress(ImplicitLocOpBuilder &b, Value pair, Value place) {
    auto add =
        LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::fadd, place, pair,
                                  LLVM::AtomicOrdering::monotonic, "agent");
    // Or it would be a loop of compare-and-swap: the host's memory may lack it.
    auto *rocdl = b.getContext()->getLoadedDialect<ROCDL::ROCDLDialect>();
    rocdl->getNoFineGrainedMemoryAttrHelper().setAttr(add, b.getUnitAttr());
    rocdl->getNoRemoteMemoryAttrHelper().setAttr(add, b.getUnitAttr());
  }
};

} // namespace

void fovea::populateMemoryToLanesPatterns(TypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          LaneContext &context) {
  patterns.add<LowerView, LowerLoad, LowerGather, LowerScatter, LowerScatterAdd,
               LowerStore, LowerAtomicAdd>(converter, context);
}
