//===- LaneContext.cpp - what a lane knows of itself ----------------------===//

#include "LaneContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
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
  }
  return swizzle;
}

LaneContext::LaneContext(gpu::GPUFuncOp kernel,
                         const target::TargetInfo &target)
    : kernel(kernel), target(target),
      entry(kernel.getLoc(), kernel.getContext()) {
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
      while (end < bases.size() &&
             bases[end][dim] == basis << (end - bit))
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

Value LaneContext::coordinate(const TileLayout &layout, int dim) {
  auto key = std::pair(attn::LayoutAttr::get(entry.getContext(), layout), dim);
  Value &value = coordinates[key];
  if (value)
    return value;
  Value byLane = bitsOf(entry, layout.lanes(), dim, lane);
  Value byWave = bitsOf(entry, layout.waves(), dim, wave);
  if (byLane && byWave)
    value = arith::AddIOp::create(entry, byLane, byWave);
  else if (byLane || byWave)
    value = byLane ? byLane : byWave;
  else
    value = i32(entry, entry.getLoc(), 0);
  return value;
}

Value LaneContext::isFirstHolder(const TileLayout &layout) {
  Value result;
  for (auto [space, index] : {std::pair(layout::Space::Lane, lane),
                              {layout::Space::Wave, wave}}) {
    uint32_t mask = layout.replicatedBits(space);
    if (mask == 0)
      continue;
    Value bits = arith::AndIOp::create(entry, index,
                                       i32(entry, entry.getLoc(), mask));
    Value first =
        arith::CmpIOp::create(entry, arith::CmpIPredicate::eq, bits,
                              i32(entry, entry.getLoc(), 0));
    result = result ? Value(arith::AndIOp::create(entry, result, first)) : first;
  }
  return result;
}

Value LaneContext::ldsBase(const TileLayout &layout, attn::LdsType type,
                           int64_t xorBytes) {
  Value &value = ldsBases[{
      attn::LayoutAttr::get(entry.getContext(), layout), type, xorBytes}];
  if (value)
    return value;
  Location loc = entry.getLoc();
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  Value row = coordinate(layout, 0);
  Value column = arith::MulIOp::create(entry, coordinate(layout, 1),
                                       i32(entry, loc, elementBytes));
  layout::Swizzle swizzle = getSwizzle(type);
  for (int32_t shift : swizzle.shifts) {
    Value bits = arith::ShRUIOp::create(entry, row, i32(entry, loc, shift));
    bits = arith::AndIOp::create(entry, bits,
                                 i32(entry, loc, swizzle.chunks - 1));
    bits = arith::MulIOp::create(entry, bits, i32(entry, loc, 16));
    column = arith::XOrIOp::create(entry, column, bits);
  }
  if (xorBytes != 0)
    column = arith::XOrIOp::create(entry, column, i32(entry, loc, xorBytes));
  Value start = arith::MulIOp::create(
      entry, row, i32(entry, loc, type.getColumns() * elementBytes));
  value = arith::AddIOp::create(entry, start, column);
  return value;
}

Value LaneContext::exchange(OpBuilder &b, Location loc, Value value, int mask) {
  Value &address = exchangeAddresses[mask];
  if (!address) {
    Value other = arith::XOrIOp::create(
        entry, lane, i32(entry, entry.getLoc(), mask));
    address = arith::MulIOp::create(entry, other,
                                    i32(entry, entry.getLoc(), 4));
  }
  Type type = value.getType();
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  Value moved =
      ROCDL::DsBpermuteOp::create(b, loc, b.getI32Type(), address, bits);
  return arith::BitcastOp::create(b, loc, type, moved);
}
