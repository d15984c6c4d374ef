//===- AssignLayouts.cpp - attn-assign-layouts ----------------------------===//

#include "ForwardPipeline.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "fovea/Layout/LdsAccess.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using layout::TileLayout;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNASSIGNLAYOUTS
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

/// Whether a tile that `op` makes, if any does, holds one value throughout.
static bool isOneValue(Operation *op) {
  return op &&
         (op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::SplatOp>(op));
}

/// Follows a layout from one tile of an op to the others.
static LogicalResult relateLayouts(Operation *op, Value known,
                                   const TileLayout &layout, SetLayout set) {
  if (auto relating = dyn_cast<LayoutOpInterface>(op))
    return relating.relateLayouts(known, layout, set);
  if (op->hasTrait<OpTrait::Elementwise>())
    return keepLayout(op, layout, set);
  return success();
}

/// The same for what a terminator gives: the op around it passes it on.
static LogicalResult relateGiven(Operation *terminator, Value known,
                                 const TileLayout &layout, SetLayout set) {
  Operation *around = terminator->getParentOp();
  if (isa<FunctionOpInterface>(around))
    return success();
  if (!isa<LayoutOpInterface>(around))
    return around->emitOpError(
        "gives a tile; of control flow, scf.for and scf.if may");
  return relateLayouts(around, known, layout, set);
}

/// What comes straight from memory, and is at most cut, once more; null: it
/// does not.
static Value loadAgain(Value tile) {
  if (auto load = tile.getDefiningOp<LoadOp>())
    return cast<LoadOp>(OpBuilder(load).clone(*load)).getTile();
  auto cut = tile.getDefiningOp<CutOp>();
  Value again = cut ? loadAgain(cut.getTile()) : Value();
  if (!again)
    return nullptr;
  auto other = cast<CutOp>(OpBuilder(cut).clone(*cut));
  other.getTileMutable().assign(again);
  return other.getResult();
}

/// Layouts of values, spread along the ops that relate them.
class Layouts {
public:
  const TileLayout *find(Value value) const {
    auto it = map.find(value);
    return it == map.end() ? nullptr : &it->second;
  }

  /// Gives `value` a layout and follows it. Fails, with an error, where a value
  /// would get a second layout.
  LogicalResult assign(Value value, const TileLayout &layout) {
    if (failed(set(value, layout)))
      return failure();
    while (!worklist.empty()) {
      Value next = worklist.pop_back_val();
      if (failed(spread(next)))
        return failure();
    }
    return success();
  }

private:
  LogicalResult set(Value value, const TileLayout &layout) {
    auto [it, isNew] = map.try_emplace(value, layout);
    if (isNew) {
      worklist.push_back(value);
      return success();
    }
    if (it->second == layout)
      return success();
    InFlightDiagnostic diagnostic = emitError(value.getLoc())
                                    << "tile would need two layouts: <"
                                    << it->second.str() << "> and <"
                                    << layout.str() << ">";
    return diagnostic;
  }

  LogicalResult spread(Value value) {
    const TileLayout layout = map.find(value)->second;
    auto follow = [&](Value tile, const TileLayout &layout) {
      return set(tile, layout);
    };
    Operation *source = value.getDefiningOp();
    if (!source)
      source = cast<BlockArgument>(value).getOwner()->getParentOp();
    if (failed(relateLayouts(source, value, layout, follow)))
      return failure();
    for (Operation *user : value.getUsers())
      if (failed(user->hasTrait<OpTrait::IsTerminator>()
                     ? relateGiven(user, value, layout, follow)
                     : relateLayouts(user, value, layout, follow)))
        return failure();
    return success();
  }

  DenseMap<Value, TileLayout> map;
  SmallVector<Value> worklist;
};

struct AssignLayouts
    : public fovea::attn::impl::AttnAssignLayoutsBase<AssignLayouts> {
  void getDependentDialects(DialectRegistry &registry) const override {
    AttnAssignLayoutsBase::getDependentDialects(registry);
    registerLayoutModels(registry);
  }

  void runOnOperation() override {
    for (auto func : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(assign(func)))
        return signalPassFailure();
  }

private:
  LogicalResult assign(gpu::GPUFuncOp func);
  LogicalResult assignDot(DotOp dot);
  LogicalResult assignCopy(StoreLdsOp store);
  /// The layout of one wave in each, the next one's `step` further on.
  TileLayout inAllWaves(const TileLayout &ofWave,
                        layout::Coord step = {0, 0});
  LogicalResult assignDirectCopy(CopyLdsOp copy);
  /// Layouts in which an LDS tile is written and read, as far as known.
  LogicalResult ldsAccesses(Value lds,
                            SmallVectorImpl<layout::LdsAccess> &accesses);
  LogicalResult tradeForLines(StoreOp store);
  LogicalResult assignSwizzle(AllocLdsOp alloc);
  LogicalResult applyTypes(gpu::GPUFuncOp func);

  const target::TargetInfo *target = nullptr;
  ScheduleAttr schedule;
  int laneBits = 0; ///< of a wave
  int waveBits = 0; ///< of a workgroup
  /// Of a kernel without products whose waves share the columns of rows: each has
  /// its own of all rows, and all have what is a single row or column.
  bool sharesColumns = false;
  /// Bytes of the kernel's narrowest elements in memory. Copies give lanes runs
  /// of 16 bytes of these: what is wider is rounded to them on the way, or
  /// small.
  int factorBytes = 0;
  Layouts layouts;
};
} // namespace

LogicalResult AssignLayouts::assignDot(DotOp dot) {
  auto factor = cast<RankedTensorType>(dot.getA().getType());
  auto acc = cast<RankedTensorType>(dot.getAcc().getType());
  const target::MatrixInstr *inst =
      lookupMatrixInstr(*target, dot.getInst(), factor.getElementType());
  if (!inst)
    return emitNoMatrixInstr([&] { return dot.emitOpError(); }, *target,
                             dot.getInst(), factor.getElementType());
  layout::InstrLayouts instr = inst->layouts();
  int64_t m = acc.getDimSize(0), k = factor.getDimSize(1),
          n = acc.getDimSize(1);
  const TileLayout *given = layouts.find(dot.getB());
  layout::WaveSplit waves;
  waves.columns = schedule.getWaves() / schedule.getValueSplit();
  (dot.getSplitRows() ? waves.rows : waves.repeated) = schedule.getValueSplit();
  if (std::optional<uint32_t> columns = dot.getColumnWaves()) {
    if (schedule.getWaves() % *columns != 0)
      return dot.emitOpError()
             << "column_waves must divide the " << schedule.getWaves()
             << " waves, found " << *columns;
    waves = {int(*columns), int(schedule.getWaves() / *columns),
             /*repeated=*/1};
  }
  std::optional<layout::DotLayouts> chosen =
      layout::chooseDotLayouts(instr, m, k, n, waves, given);
  if (!chosen && given) {
    // The right operand has to move first. An instruction with a longer
    // contraction than the fragments that it finds takes several of them, which
    // moves nothing between lanes.
    for (std::optional<TileLayout> taller = given->withTallerUnit();
         taller && !chosen; taller = taller->withTallerUnit())
      chosen = layout::chooseDotLayouts(instr, m, k, n, waves, &*taller);
    if (!chosen)
      chosen = layout::chooseDotLayouts(instr, m, k, n, waves, nullptr);
    if (Value again = chosen ? loadAgain(dot.getB()) : Value()) {
      dot.getBMutable().assign(again);
    } else if (chosen) {
      OpBuilder builder(dot);
      dot.getBMutable().assign(ConvertLayoutOp::create(
          builder, dot.getLoc(), dot.getB().getType(), dot.getB()));
    }
  }
  if (!chosen)
    return dot.emitOpError()
           << "tiles of " << m << "x" << k << " and " << k << "x" << n
           << " do not divide into " << dot.getInst().getName() << " over "
           << schedule.getWaves() << " waves";
  if (failed(layouts.assign(dot.getA(), chosen->a)) ||
      failed(layouts.assign(dot.getB(), chosen->b)))
    return failure();
  return layouts.assign(dot.getAcc(), chosen->acc);
}

/// Whether copies without registers fill an LDS tile.
static bool isCopiedTo(Value lds) {
  return llvm::any_of(lds.getUsers(), [](Operation *user) {
    auto buffer = dyn_cast<LdsBufferOp>(user);
    return isa<CopyLdsOp>(user) || (buffer && isCopiedTo(buffer.getBuffer()));
  });
}

/// The LDS tile's shape, for the layout algebra.
static layout::LdsShape ldsShape(Value lds, const target::TargetInfo &target) {
  auto type = cast<LdsType>(lds.getType());
  return {type.getRows(), type.getColumns(),
          int(bytesOf(type.getElementType())), *target.lds, isCopiedTo(lds)};
}

LogicalResult
AssignLayouts::ldsAccesses(Value lds,
                           SmallVectorImpl<layout::LdsAccess> &accesses) {
  auto add = [&](const TileLayout &layout, bool write) {
    if (llvm::none_of(accesses, [&](const layout::LdsAccess &access) {
          return access.write == write && access.layout == layout;
        }))
      accesses.push_back({layout, write});
  };
  for (Operation *user : lds.getUsers()) {
    if (auto buffer = dyn_cast<LdsBufferOp>(user)) {
      if (failed(ldsAccesses(buffer.getBuffer(), accesses)))
        return failure();
    } else if (auto store = dyn_cast<StoreLdsOp>(user)) {
      if (const TileLayout *layout = layouts.find(store.getTile()))
        add(*layout, /*write=*/true);
    } else if (auto load = dyn_cast<LoadLdsOp>(user)) {
      if (const TileLayout *layout = layouts.find(load.getTile())) {
        int bytes = bytesOf(load.getLds().getType().getElementType());
        add(layout::chooseLdsRead(*layout, bytes,
                                  target::ldsTransposedRead(*target, bytes))
                .addresses,
            /*write=*/false);
      }
    } else if (!isa<CopyLdsOp>(user)) { // fills LDS in order of addresses
      return user->emitOpError("uses an LDS tile otherwise than by "
                               "attn.store_lds, attn.load_lds, attn.copy_lds "
                               "or attn.lds_buffer");
    }
  }
  return success();
}

LogicalResult AssignLayouts::assignDirectCopy(CopyLdsOp copy) {
  LdsType type = copy.getLds().getType();
  if (!llvm::isPowerOf2_32(type.getRows()) ||
      !llvm::isPowerOf2_32(type.getColumns()))
    return copy.emitOpError() << "fills tiles whose extents are powers of two, "
                                 "found "
                              << type;
  TileLayout layout = layout::chooseDirectCopyLayout(
      type.getRows(), type.getColumns(), bytesOf(type.getElementType()),
      laneBits, waveBits);
  auto checked = LayoutAttr::getChecked([&] { return copy.emitOpError(); },
                                        &getContext(), layout);
  if (!checked)
    return failure();
  copy.setLayoutAttr(checked);
  return success();
}

/// Whether the tile is turned on its way to LDS. A single row is not: it has
/// nothing to gather.
static bool isTransposed(StoreLdsOp store) {
  return store.getTile().getDefiningOp<TransposeOp>() &&
         cast<RankedTensorType>(store.getTile().getType()).getDimSize(0) > 1;
}

TileLayout AssignLayouts::inAllWaves(const TileLayout &ofWave,
                                     layout::Coord step) {
  layout::Bases waves;
  for (int bit = 0; bit < waveBits; ++bit)
    waves.push_back({step[0] << bit, step[1] << bit});
  return TileLayout(layout::Bases(ofWave.registers()),
                    layout::Bases(ofWave.lanes()), waves, ofWave.grid());
}

LogicalResult AssignLayouts::assignCopy(StoreLdsOp store) {
  if (layouts.find(store.getTile()))
    return success();
  auto type = cast<RankedTensorType>(store.getTile().getType());
  if (sharesColumns)
    return layouts.assign(store.getTile(),
                          inAllWaves(layout::chooseCopyLayout(
                              type.getDimSize(0), type.getDimSize(1),
                              factorBytes, laneBits, /*waveBits=*/0, false)));
  if (!isTransposed(store))
    return layouts.assign(
        store.getTile(),
        layout::chooseCopyLayout(type.getDimSize(0), type.getDimSize(1),
                                 factorBytes, laneBits, waveBits, false));
  SmallVector<layout::LdsAccess> reads;
  if (failed(ldsAccesses(store.getLds(), reads)))
    return failure();
  return layouts.assign(store.getTile(), layout::chooseTransposedCopyLayout(
                                             ldsShape(store.getLds(), *target),
                                             laneBits, waveBits, reads));
}

LogicalResult AssignLayouts::tradeForLines(StoreOp store) {
  Value tile = store.getTile();
  const TileLayout *layout = layouts.find(tile);
  if (!store.getLines() || !layout)
    return success();
  OpBuilder builder(store);
  for (const TileLayout &next : layout::tradesForLines(
           *layout, int(bytesOf(getElementTypeOrSelf(tile.getType()))))) {
    tile =
        ConvertLayoutOp::create(builder, store.getLoc(), tile.getType(), tile);
    if (failed(layouts.assign(tile, next)))
      return failure();
  }
  store.getTileMutable().assign(tile);
  store.setLines(false);
  return success();
}

LogicalResult AssignLayouts::assignSwizzle(AllocLdsOp alloc) {
  LdsType type = alloc.getLds().getType();
  if (type.getRows() == 1)
    return success(); // nothing to permute
  SmallVector<layout::LdsAccess> accesses;
  if (failed(ldsAccesses(alloc.getLds(), accesses)))
    return failure();
  layout::Swizzle swizzle =
      layout::chooseSwizzle(ldsShape(alloc.getLds(), *target), accesses);
  if (swizzle.shifts.empty())
    return success();
  auto swizzled = LdsType::get(
      &getContext(), type.getRows(), type.getColumns(), type.getElementType(),
      SwizzleAttr::get(&getContext(), swizzle.chunks, swizzle.shifts,
                       swizzle.halfBit));
  SmallVector<Value> same = {alloc.getLds()};
  while (!same.empty()) {
    Value lds = same.pop_back_val();
    lds.setType(swizzled);
    for (Operation *user : lds.getUsers())
      if (auto buffer = dyn_cast<LdsBufferOp>(user))
        same.push_back(buffer.getBuffer());
  }
  return success();
}

LogicalResult AssignLayouts::applyTypes(gpu::GPUFuncOp func) {
  auto apply = [&](Value value) -> LogicalResult {
    if (!isTile(value))
      return success();
    const TileLayout *layout = layouts.find(value);
    if (!layout)
      return emitError(value.getLoc()) << "no layout was found for this tile";
    auto type = cast<RankedTensorType>(value.getType());
    layout::Coord shape = layout->shape();
    if (type.getDimSize(0) != shape[0] || type.getDimSize(1) != shape[1])
      return emitError(value.getLoc())
             << "layout <" << layout->str() << "> does not cover " << type;
    auto error = [&] { return emitError(value.getLoc()); };
    if (!LayoutAttr::getChecked(error, &getContext(), *layout))
      return failure();
    value.setType(withLayout(type, *layout));
    return success();
  };
  auto walked = func.walk([&](Operation *op) -> WalkResult {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (failed(apply(argument)))
            return failure();
    for (Value result : op->getResults())
      if (failed(apply(result)))
        return failure();
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        constant.setValueAttr(
            SplatElementsAttr::get(cast<ShapedType>(constant.getType()),
                                   splat.getSplatValue<Attribute>()));
    return success();
  });
  return failure(walked.wasInterrupted());
}

/// Bytes of the narrowest elements that a kernel keeps in memory or LDS.
static int narrowestBytes(gpu::GPUFuncOp func) {
  int64_t bytes = layout::kWideBytes;
  auto consider = [&](Value value) {
    if (auto view = dyn_cast<ViewType>(value.getType()))
      bytes = std::min(bytes, bytesOf(view.getElementType()));
    else if (auto lds = dyn_cast<LdsType>(value.getType()))
      bytes = std::min(bytes, bytesOf(lds.getElementType()));
  };
  llvm::for_each(func.getArguments(), consider);
  func.walk([&](Operation *op) { llvm::for_each(op->getResults(), consider); });
  return bytes;
}

LogicalResult AssignLayouts::assign(gpu::GPUFuncOp func) {
  schedule = func->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  auto targetAttr = getOperation()->getAttrOfType<TargetAttr>(kTargetAttrName);
  if (!schedule)
    return success(); // not a kernel of ours
  if (!targetAttr)
    return func.emitOpError()
           << "stands in a gpu.module without '" << kTargetAttrName << "'";
  target = &targetAttr.getInfo();
  laneBits = llvm::countr_zero(uint32_t(target->waveSize));
  waveBits = llvm::countr_zero(uint32_t(schedule.getWaves()));
  factorBytes = narrowestBytes(func);
  layouts = {};
  sharesColumns = false;

  // Swizzles are counted out over whole tiles: of those that a chip can hold.
  auto fits = func.walk([&](AllocLdsOp alloc) -> WalkResult {
    int64_t bytes = alloc.getLds().getType().getBytes() * alloc.getBuffers();
    if (bytes <= target->ldsBytes)
      return success();
    return alloc.emitOpError() << "takes " << bytes << " bytes of LDS, but "
                               << target->name << " has " << target->ldsBytes;
  });
  if (fits.wasInterrupted())
    return failure();

  // What nobody uses has no layout to follow.
  IRRewriter rewriter(&getContext());
  (void)runRegionDCE(rewriter, func.getBody());

  // A constant or splat that is used in two layouts has to be two values, and
  // what is read from LDS as it is and turned two reads.
  SmallVector<Operation *> sources;
  func.walk([&](Operation *op) {
    if (isa<LoadLdsOp>(op) || (isOneValue(op) && isTile(op->getResult(0))))
      sources.push_back(op);
  });
  for (Operation *source : sources) {
    OpBuilder builder(source);
    for (OpOperand &use : llvm::make_early_inc_range(source->getUses()))
      if (&use != &*source->getResult(0).use_begin())
        use.set(builder.clone(*source)->getResult(0));
  }

  SmallVector<DotOp> dots;
  SmallVector<StoreLdsOp> stores;
  func.walk([&](DotOp dot) { dots.push_back(dot); });
  func.walk([&](StoreLdsOp store) { stores.push_back(store); });
  // Of fewer rows a workgroup than products have; the gradient of sinks, which
  // has none, gathers.
  const bool loads = func.walk([](LoadOp) { return WalkResult::interrupt(); })
                         .wasInterrupted();
  sharesColumns =
      dots.empty() && loads && schedule.getBlockM() <= kMostCombinedRows;
  // Products that nothing was summed up in before decide how what follows from
  // them lies, in whatever order a loop has them. Those that share waves out
  // otherwise load what they need once more.
  auto rank = [](DotOp dot) {
    if (dot.getColumnWaves())
      return 2;
    return dot.getRowsAlike() || isOneValue(dot.getAcc().getDefiningOp()) ? 0
                                                                          : 1;
  };
  llvm::stable_sort(dots, [&](DotOp x, DotOp y) { return rank(x) < rank(y); });
  for (DotOp dot : dots)
    if (failed(assignDot(dot)))
      return failure();
  // A tile that is stored both ways has the layout of the harder one.
  std::stable_partition(stores.begin(), stores.end(), isTransposed);
  for (StoreLdsOp store : stores)
    if (failed(assignCopy(store)))
      return failure();
  // What nothing else has laid out goes to places of its own as copies do.
  auto scattered = func.walk([&](ScatterOp scatter) -> WalkResult {
    if (layouts.find(scatter.getTile()))
      return success();
    auto type = cast<RankedTensorType>(scatter.getTile().getType());
    return layouts.assign(
        scatter.getTile(),
        layout::chooseCopyLayout(type.getDimSize(0), type.getDimSize(1),
                                 int(bytesOf(type.getElementType())), laneBits,
                                 waveBits, false));
  });
  if (scattered.wasInterrupted())
    return failure();
  // What is only reduced, or stored as one value throughout: rows to the lanes
  // of one wave each; columns after what is wider, whose rows they may be of.
  auto assignLoaded = [&](Operation *op, bool isColumn) -> WalkResult {
    Value tile;
    if (auto load = dyn_cast<LoadOp>(op))
      tile = load.getTile();
    else if (auto store = dyn_cast<StoreOp>(op);
             store && isOneValue(store.getTile().getDefiningOp()))
      tile = store.getTile();
    if (!tile || layouts.find(tile))
      return success();
    auto type = cast<RankedTensorType>(tile.getType());
    if ((type.getDimSize(1) == 1) != isColumn)
      return success();
    // What waves combine, a lane reads 4 columns of a row at once, 16 bytes in
    // f32, so that few rows' columns meet in exchanges of lanes.
    const int bytes = sharesColumns ? 4 : factorBytes;
    int pieceBits = llvm::countr_zero(uint32_t(kCopyBytes / bytes));
    auto choose = [&](int64_t columns, int ofWaves) {
      return layout::chooseCopyLayout(type.getDimSize(0), columns, bytes,
                                      laneBits, ofWaves, false, /*rowBits=*/0,
                                      /*maxColumnBits=*/laneBits + pieceBits);
    };
    const int64_t columns = type.getDimSize(1);
    if (!sharesColumns)
      return layouts.assign(tile, choose(columns, waveBits));
    if (columns % schedule.getWaves() != 0)
      return layouts.assign(tile, inAllWaves(choose(columns, 0)));
    const TileLayout ofWave = choose(columns / schedule.getWaves(), 0);
    return layouts.assign(
        tile, inAllWaves(ofWave, layout::Coord{0, ofWave.unit()[1]}));
  };
  for (bool isColumn : {false, true})
    if (func.walk([&](Operation *op) { return assignLoaded(op, isColumn); })
            .wasInterrupted())
      return failure();
  // What is read from LDS to be reduced: each wave reads all of it.
  auto read = func.walk([&](LoadLdsOp load) -> WalkResult {
    if (layouts.find(load.getTile()))
      return success();
    auto type = load.getTile().getType();
    return layouts.assign(
        load.getTile(), inAllWaves(layout::chooseCopyLayout(
                            type.getDimSize(0), type.getDimSize(1), factorBytes,
                            laneBits, /*waveBits=*/0, false)));
  });
  if (read.wasInterrupted())
    return failure();
  auto walked = func.walk([&](Operation *op) -> WalkResult {
    if (auto store = dyn_cast<StoreOp>(op))
      return tradeForLines(store);
    if (auto alloc = dyn_cast<AllocLdsOp>(op))
      return assignSwizzle(alloc);
    if (auto copy = dyn_cast<CopyLdsOp>(op))
      return assignDirectCopy(copy);
    return success();
  });
  if (walked.wasInterrupted())
    return failure();
  return applyTypes(func);
}
