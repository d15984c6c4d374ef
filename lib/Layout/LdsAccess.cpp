//===- LdsAccess.cpp - reads of LDS tiles, copies to them -----------------===//

#include "fovea/Layout/LdsAccess.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cassert>

namespace fovea::layout {

/// Elements of a tile of one row that a lane reads at once.
static constexpr int kRowElements = 8;

std::optional<TileLayout> transposedReadAddresses(const TileLayout &wanted,
                                                  TransposedRead read) {
  size_t elements = read.elementBits, across = read.laneBits;
  llvm::ArrayRef<Coord> registers = wanted.registers(), lanes = wanted.lanes();
  if (registers.size() < elements || lanes.size() < across)
    return std::nullopt;
  // A block in the order of memory: its columns go to lanes, its rows to
  // registers. In the same order lanes address it, some elements each.
  Bases block(lanes.take_front(across));
  block.append(registers.begin(), registers.begin() + elements);
  for (size_t bit = 0; bit < elements; ++bit)
    if (block[bit] != Coord{0, 1 << bit})
      return std::nullopt;
  Bases addressRegisters(block.begin(), block.begin() + elements);
  llvm::append_range(addressRegisters, registers.drop_front(elements));
  Bases addressLanes(block.begin() + elements, block.end());
  llvm::append_range(addressLanes, lanes.drop_front(across));
  return TileLayout(addressRegisters, addressLanes, Bases(wanted.waves()),
                    wanted.grid());
}

LdsRead chooseLdsRead(const TileLayout &wanted, int elementBytes,
                      const TransposedRead *read) {
  // No swizzle divides a single row: the backend splits a longer load of it.
  int elements = kWideBytes / elementBytes;
  if (wanted.shape()[0] == 1)
    elements = std::max(elements, kRowElements);
  LdsRead plain = {wanted, wideAccesses(wanted, elements), false};
  assert((!read || read->elementBytes == elementBytes) &&
         "reads transpose elements of one size");
  if (!read || plain.accesses.width >= 1 << read->elementBits)
    return plain;
  std::optional<TileLayout> addresses = transposedReadAddresses(wanted, *read);
  if (!addresses)
    return plain;
  return {*addresses, wideAccesses(*addresses, 1 << read->elementBits), true};
}

TileLayout chooseDirectCopyLayout(int64_t rows, int64_t columns,
                                  int elementBytes, int laneBits,
                                  int waveBits) {
  // Coordinate bits in the order of LDS addresses.
  Bases order;
  for (int32_t column = 1; column < columns; column <<= 1)
    order.push_back({0, column});
  for (int32_t row = 1; row < rows; row <<= 1)
    order.push_back({row, 0});
  size_t elementBits = llvm::countr_zero(uint32_t(kWideBytes / elementBytes));
  size_t needed = elementBits + laneBits + waveBits;
  if (order.size() < needed)
    order.resize(needed, Coord{0, 0});
  auto next = order.begin();
  auto take = [&](size_t bits) {
    Bases bases(next, next + bits);
    next += bits;
    return bases;
  };
  Bases registers = take(elementBits), lanes = take(laneBits),
        waves = take(waveBits);
  registers.append(next, order.end());
  return TileLayout(registers, lanes, waves);
}

} // namespace fovea::layout
