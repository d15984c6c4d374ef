//===- LaneContext.cpp - what a lane knows of itself ----------------------===//

#include "LaneContext.h"
#include "Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using layout::Coord;
using layout::TileLayout;

layout::Swizzle fovea::getSwizzle(attn::LdsType type) {
  layout::Swizzle swizzle;
  if (attn::SwizzleAttr attr = type.getSwizzle()) {
    swizzle.chunks = attr.getChunks();
    swizzle.shifts.assign(attr.getShifts().begin(), attr.getShifts().end());
    swizzle.halfBit = attr.getHalf();
  }
  return swizzle;
}

LaneContext::LaneContext(gpu::GPUFuncOp kernel,
                         const target::TargetInfo &target)
    : kernel(kernel), target(target) {
  ImplicitLocOpBuilder entry(kernel.getLoc(), kernel.getContext());
  entry.setInsertionPointToStart(&kernel.getBody().front());
  Value thread = gpu::ThreadIdOp::create(entry, gpu::Dimension::x);
  thread = arith::IndexCastOp::create(entry, entry.getI32Type(), thread);
  int laneBits = llvm::countr_zero(uint32_t(target.waveSize));
  lane = arith::AndIOp::create(entry, thread,
                               i32(entry, entry.getLoc(), target.waveSize - 1));
  wave = arith::ShRUIOp::create(entry, thread,
                                i32(entry, entry.getLoc(), laneBits));
  // The same for all lanes of a wave: keep it in a scalar register.
  wave = ROCDL::ReadfirstlaneOp::create(entry, wave.getType(), wave);
  constexpr int kMostRegisters = 256; // that instructions can name
  if (auto schedule =
          kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName)) {
    isTight =
        target.registersPerSimdLane /
            (target.registerFile == target::RegisterFile::Separate ? 2 : 1) /
            schedule.getWavesPerSimd() <
        kMostRegisters;
    isForward = schedule.getRescaleThreshold() > 0;
    waves = schedule.getWaves();
    int64_t tiles = 0;
    kernel.walk([&](attn::AllocLdsOp op) {
      tiles += op.getLds().getType().getBytes() * op.getBuffers();
    });
    const int64_t together =
        llvm::divideCeil(schedule.getWavesPerSimd() * target.simdsPerCu, waves);
    readsBlocks =
        kernel
            .walk([](attn::GatherOp op) {
              return op.getIndex() && op->getParentOfType<LoopLikeOpInterface>()
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted();
    // Beside queries in LDS no register is left for the addresses in it.
    if (!schedule.getQueriesInLds())
      ldsLeft = std::max<int64_t>(0, target.ldsBytes / together - tiles);
    constexpr int kLanes = 32;
    const auto shape = target::lookupMatrixShape(schedule.getInst().getName());
    hasTwoTiles = target.waveSize == kLanes && isForward &&
                  schedule.getBlockM() * schedule.getValueSplit() >=
                      2 * shape->n * schedule.getWaves();
  }
  if (kernel.walk([](attn::CopyLdsOp) { return WalkResult::interrupt(); })
          .wasInterrupted()) {
    auto domain = LLVM::AliasScopeDomainAttr::get(
        entry.getContext(), entry.getStringAttr(kernel.getName()));
    copyScope = entry.getArrayAttr(LLVM::AliasScopeAttr::get(
        domain, entry.getStringAttr("copies to LDS")));
    // Others have no registers for bases of what is far: tiles come by way of
    // them.
    constexpr int64_t kFarthestOffset = 1 << 16;
    int64_t ldsBytes = 0;
    kernel.walk([&](attn::AllocLdsOp op) {
      ldsBytes += op.getLds().getType().getBytes() * op.getBuffers();
    });
    hasFarLds = ldsBytes > kFarthestOffset;
  }
}

Value LaneContext::i32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, int32_t(value), 32).getResult();
}

Value LaneContext::bitsOf(ImplicitLocOpBuilder &b, ArrayRef<Coord> bases,
                          int dim, Value index) {
  Value result;
  auto add = [&](Value part) {
    result = result ? arith::XOrIOp::create(b, result, part) : part;
  };
  for (size_t bit = 0; bit < bases.size();) {
    int32_t basis = bases[bit][dim];
    // A run of bits that keep their distance is one shift and mask.
    size_t end = bit + 1;
    if (llvm::isPowerOf2_32(basis))
      while (end < bases.size() && bases[end][dim] == basis << (end - bit))
        ++end;
    if (basis != 0) {
      uint32_t mask = ((1u << (end - bit)) - 1) << bit;
      Value part = arith::AndIOp::create(b, index, i32(b, b.getLoc(), mask));
      int from = bit, to = llvm::Log2_32(basis);
      if (llvm::isPowerOf2_32(basis)) {
        if (to > from)
          part = arith::ShLIOp::create(b, part, i32(b, b.getLoc(), to - from));
        else if (from > to)
          part = arith::ShRUIOp::create(b, part, i32(b, b.getLoc(), from - to));
      } else {
        part = arith::ShRUIOp::create(b, part, i32(b, b.getLoc(), from));
        part = arith::MulIOp::create(b, part, i32(b, b.getLoc(), basis));
      }
      add(part);
    }
    bit = end;
  }
  return result;
}

Value LaneContext::ldsOfWave(Operation *op, int64_t bytes, uint32_t laneBits) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  const std::string name =
      kernel.getName().str() + "_lds_of_waves_" + std::to_string(bytes);
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  const auto type = LLVM::LLVMArrayType::get(
      IntegerType::get(kernel.getContext(), 8), bytes * waves);
  if (!global) {
    OpBuilder before(kernel);
    global = LLVM::GlobalOp::create(
        before, kernel.getLoc(), type, /*isConstant=*/false,
        LLVM::Linkage::Internal, name, /*value=*/Attribute(),
        /*alignment=*/layout::kWideBytes, kLdsAddressSpace);
  }
  ImplicitLocOpBuilder b = builderBefore(op);
  auto i32 = [&](int64_t value) { return this->i32(b, value); };
  Value ofLane =
      arith::MulIOp::create(b, arith::AndIOp::create(b, lane, i32(laneBits)),
                            i32(layout::kWideBytes));
  Value ofWave = arith::MulIOp::create(b, wave, i32(bytes));
  Value start = LLVM::AddressOfOp::create(b, global);
  return addBytes(b, start,
                  arith::AddIOp::create(b, ofWave, ofLane).getResult());
}

ImplicitLocOpBuilder LaneContext::builderBefore(Operation *op) {
  while (op->getParentOp() != kernel.getOperation() &&
         !op->getParentOp()->hasAttr(attn::kTextAttrName))
    op = op->getParentOp();
  return ImplicitLocOpBuilder(op->getLoc(), op);
}

Value LaneContext::coordinate(Operation *op, const TileLayout &layout,
                              int dim) {
  ImplicitLocOpBuilder b = builderBefore(op);
  // Where results are stored, what was known before the loops is worked out
  // once more if its register is wanted in them.
  auto store = dyn_cast<attn::StoreOp>(op);
  const bool isAnew = isTight && store;
  // Rows that may end anywhere take many comparisons of it, all of them there.
  auto view = isAnew ? store.getView().getDefiningOp<attn::ViewOp>() : nullptr;
  Value byLane =
      bitsOf(b, layout.lanes(), dim,
             view && view.getColumns()
                 ? passVectorRegister(b, lane, /*hasSideEffects=*/false)
                 : lane);
  Value byWave = bitsOf(b, layout.waves(), dim,
                        isAnew ? attn::makeOpaque(b, b.getLoc(), wave) : wave);
  if (byLane && byWave)
    return arith::AddIOp::create(b, byLane, byWave);
  if (byLane || byWave)
    return byLane ? byLane : byWave;
  return i32(b, b.getLoc(), 0);
}

Value LaneContext::waveCoordinate(Operation *op, const TileLayout &layout,
                                  int dim) {
  ImplicitLocOpBuilder b = builderBefore(op);
  Value byWave = bitsOf(b, layout.waves(), dim, wave);
  return byWave ? byWave : i32(b, b.getLoc(), 0);
}

Value LaneContext::isFirstHolder(Operation *op, const TileLayout &layout) {
  ImplicitLocOpBuilder b = builderBefore(op);
  Value result;
  for (auto [space, index] :
       {std::pair(layout::Space::Lane, lane), {layout::Space::Wave, wave}}) {
    uint32_t mask = layout.replicatedBits(space);
    if (mask == 0)
      continue;
    Value bits = arith::AndIOp::create(b, index, i32(b, b.getLoc(), mask));
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits,
                                        i32(b, b.getLoc(), 0));
    result = result ? Value(arith::AndIOp::create(b, result, first)) : first;
  }
  return result;
}

Value LaneContext::swizzledColumn(Operation *op, const TileLayout &layout,
                                  attn::LdsType type, int64_t xorBytes) {
  Value row = coordinate(op, layout, 0), column = coordinate(op, layout, 1);
  ImplicitLocOpBuilder b = builderBefore(op);
  auto constant = [&](int64_t value) { return i32(b, b.getLoc(), value); };
  int64_t elementBytes = attn::bytesOf(type.getElementType());
  column = arith::MulIOp::create(b, column, constant(elementBytes));
  layout::Swizzle swizzle = getSwizzle(type);
  int64_t rowBytes = type.getColumns() * elementBytes;
  if (swizzle.halfBit >= 0) {
    Value bit = arith::ShRUIOp::create(b, row, constant(swizzle.halfBit));
    bit = arith::AndIOp::create(b, bit, constant(1));
    column = arith::XOrIOp::create(
        b, column, arith::MulIOp::create(b, bit, constant(layout::kHalfChunk)));
  }
  if (int bits = swizzle.lineRowBits(rowBytes)) {
    Value inLine = arith::AndIOp::create(b, row, constant((1 << bits) - 1));
    column = arith::AddIOp::create(
        b, arith::MulIOp::create(b, inLine, constant(rowBytes)), column);
    row = arith::ShRUIOp::create(b, row, constant(bits));
  }
  for (int32_t shift : swizzle.shifts) {
    Value bits = shift < 0
                     ? Value(arith::ShLIOp::create(b, row, constant(-shift)))
                     : Value(arith::ShRUIOp::create(b, row, constant(shift)));
    bits = arith::AndIOp::create(b, bits, constant(swizzle.chunks - 1));
    bits = arith::MulIOp::create(b, bits, constant(16));
    column = arith::XOrIOp::create(b, column, bits);
  }
  if (xorBytes != 0)
    column = arith::XOrIOp::create(b, column, constant(xorBytes));
  return column;
}

Value LaneContext::ldsBase(Operation *op, const TileLayout &layout,
                           attn::LdsType type, int64_t xorBytes) {
  Value row = coordinate(op, layout, 0);
  Value column = swizzledColumn(op, layout, type, xorBytes);
  ImplicitLocOpBuilder b = builderBefore(op);
  int64_t rowBytes = type.getBytes() / type.getRows();
  if (int bits = getSwizzle(type).lineRowBits(rowBytes)) {
    row = arith::ShRUIOp::create(b, row, i32(b, b.getLoc(), bits));
    rowBytes <<= bits;
  }
  Value start = arith::MulIOp::create(b, row, i32(b, b.getLoc(), rowBytes));
  return arith::AddIOp::create(b, start, column);
}

Value LaneContext::farLdsBase(Operation *op, Value lds,
                              const TileLayout &layout, attn::LdsType type,
                              int64_t xorBytes) {
  Value &found = farBases[{lds.getAsOpaquePointer(), layout.str(),
                           type.getAsOpaquePointer(), xorBytes}];
  if (found)
    return found;
  Value base = ldsBase(op, layout, type, xorBytes);
  ImplicitLocOpBuilder b = builderBefore(op);
  Value start =
      LLVM::PtrToIntOp::create(b, b.getI32Type(), addBytes(b, lds, base));
  start = passVectorRegister(b, start, /*hasSideEffects=*/false);
  return found = LLVM::IntToPtrOp::create(b, lds.getType(), start);
}

std::pair<Value, Value> LaneContext::exchangePair(OpBuilder &b, Operation *op,
                                                  Value value, int mask) {
  constexpr int kRows[] = {16, 32}; // lanes that v_permlane*_swap trade
  if (!target.has(target::kPermlaneSwap) || !llvm::is_contained(kRows, mask))
    return {value, exchange(b, op, value, mask)};
  // The upper rows of the one operand trade places with the lower rows of the
  // other. With the same value in both, one result is that of the lower row in
  // all lanes, the other that of the upper row.
  Location loc = op->getLoc();
  Type type = value.getType(), word = b.getI32Type();
  Value bits = arith::BitcastOp::create(b, loc, word, value);
  auto both = LLVM::LLVMStructType::getLiteral(b.getContext(), {word, word});
  Value rows =
      mask == 16
          ? Value(ROCDL::Permlane16SwapOp::create(
                b, loc, both, bits, bits, /*fi=*/false, /*boundControl=*/false))
          : Value(ROCDL::Permlane32SwapOp::create(b, loc, both, bits, bits,
                                                  /*fi=*/false,
                                                  /*boundControl=*/false));
  auto part = [&](int64_t which) -> Value {
    Value bits = LLVM::ExtractValueOp::create(b, loc, rows, which);
    return arith::BitcastOp::create(b, loc, type, bits);
  };
  return {part(0), part(1)};
}

Value LaneContext::isLateWave(ImplicitLocOpBuilder &b) {
  auto schedule =
      kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, wave,
                               i32(b, schedule.getWaves() / 2));
}

Value LaneContext::hasParity(Operation *op, layout::Conversion::Parity parity) {
  ImplicitLocOpBuilder b = builderBefore(op);
  Value odd;
  for (auto [index, mask] :
       {std::pair(lane, parity.lanes), std::pair(wave, parity.waves)})
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      Value bit = arith::AndIOp::create(b, index,
                                        i32(b, b.getLoc(), rest & (~rest + 1)));
      Value set = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit,
                                        i32(b, b.getLoc(), 0));
      odd = odd ? Value(arith::XOrIOp::create(b, odd, set)) : set;
    }
  return odd;
}

Value LaneContext::exchange(OpBuilder &b, Operation *op, Value value,
                            int mask) {
  constexpr int kRowLanes = 16; // lanes that DPP and v_permlane call a row
  constexpr int kQuadLanes = 4;
  Location loc = op->getLoc();
  Type type = value.getType(), word = b.getI32Type();
  Value bits = value;
  if (type != word)
    bits = arith::BitcastOp::create(b, loc, word, value);
  Value moved;
  if (mask < kRowLanes && target.has(target::kDppRowXmask)) {
    constexpr uint32_t kRowXmask = 0x160, kAll = 0xf;
    Value old = LLVM::PoisonOp::create(b, loc, word);
    moved =
        ROCDL::DPPUpdateOp::create(b, loc, word, old, bits, kRowXmask | mask,
                                   kAll, kAll, /*boundCtrl=*/true);
  } else if (mask < kRowLanes) {
    // Half a row further round, or mirrored, within a half or a row, which
    // takes lanes of a quad in the other order.
    constexpr uint32_t kMirror = 0x140, kHalfMirror = 0x141, kHalfRound = 0x128;
    constexpr uint32_t kAll = 0xf;
    auto move = [&](uint32_t control) {
      Value old = LLVM::PoisonOp::create(b, loc, word);
      moved =
          ROCDL::DPPUpdateOp::create(b, loc, word, old, moved ? moved : bits,
                                     control, kAll, kAll, /*boundCtrl=*/true);
    };
    int ofQuad = mask % kQuadLanes;
    if (mask & kQuadLanes) {
      move(mask & 2 * kQuadLanes ? kMirror : kHalfMirror);
      ofQuad ^= kQuadLanes - 1;
    } else if (mask & 2 * kQuadLanes) {
      move(kHalfRound);
    }
    uint32_t selectors = 0; // two bits a lane
    for (int laneOfQuad = 0; laneOfQuad < kQuadLanes; ++laneOfQuad)
      selectors |= uint32_t(laneOfQuad ^ ofQuad) << 2 * laneOfQuad;
    if (ofQuad != 0 || !moved)
      move(selectors);
  } else if (mask < 2 * kRowLanes && mask >= kRowLanes &&
             target.has(target::kPermlaneX16)) {
    // For each lane of a row, four bits: which lane of the other row it takes.
    uint64_t selectors = 0;
    for (uint64_t laneOfRow = 0; laneOfRow < kRowLanes; ++laneOfRow)
      selectors |= (laneOfRow ^ (mask % kRowLanes)) << 4 * laneOfRow;
    Value old = LLVM::PoisonOp::create(b, loc, word);
    moved = ROCDL::PermlaneX16Op::create(
        b, loc, word, old, bits, i32(b, loc, selectors & 0xffffffff),
        i32(b, loc, selectors >> 32), /*fi=*/false, /*boundControl=*/false);
  } else {
    ImplicitLocOpBuilder before = builderBefore(op);
    Value other = arith::XOrIOp::create(before, lane, i32(before, loc, mask));
    Value address = arith::MulIOp::create(before, other, i32(before, loc, 4));
    moved = ROCDL::DsBpermuteOp::create(b, loc, word, address, bits);
  }
  return type == word ? moved
                      : Value(arith::BitcastOp::create(b, loc, type, moved));
}
