//===- TileLayout.cpp - linear layouts of tiles over bits -----------------===//

#include "fovea/Layout/TileLayout.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"

namespace fovea::layout {

Coord applyBases(llvm::ArrayRef<Coord> bases, uint32_t index) {
  Coord result = {0, 0};
  for (auto [bit, basis] : llvm::enumerate(bases)) {
    if (!(index >> bit & 1))
      continue;
    result[0] ^= basis[0];
    result[1] ^= basis[1];
  }
  return result;
}

Coord TileLayout::unit() const {
  Coord covered = {0, 0};
  for (const Bases &space : bases)
    for (const Coord &basis : space)
      for (int dim : {0, 1})
        covered[dim] |= basis[dim];
  return {int32_t(llvm::bit_ceil(uint32_t(covered[0]) + 1)),
          int32_t(llvm::bit_ceil(uint32_t(covered[1]) + 1))};
}

Coord TileLayout::shape() const {
  Coord extent = unit();
  return {extent[0] * gridExtent[0], extent[1] * gridExtent[1]};
}

Coord TileLayout::fragmentOrigin(int fragment) const {
  Coord extent = unit();
  return {fragment / gridExtent[1] * extent[0],
          fragment % gridExtent[1] * extent[1]};
}

Coord TileLayout::map(uint32_t reg, uint32_t lane, uint32_t wave) const {
  Coord result = applyBases(registers(), reg);
  for (Coord part : {applyBases(lanes(), lane), applyBases(waves(), wave)}) {
    result[0] ^= part[0];
    result[1] ^= part[1];
  }
  return result;
}

TileLayout TileLayout::transposed() const {
  TileLayout result = *this;
  for (Bases &space : result.bases)
    for (Coord &basis : space)
      std::swap(basis[0], basis[1]);
  std::swap(result.gridExtent[0], result.gridExtent[1]);
  return result;
}

int TileLayout::transposeFragment(int fragment) const {
  int row = fragment / gridExtent[1], column = fragment % gridExtent[1];
  return column * gridExtent[0] + row;
}

std::optional<TileLayout> TileLayout::withTallerUnit() const {
  if (gridExtent[0] % 2 != 0)
    return std::nullopt;
  TileLayout result = *this;
  result.bases[static_cast<int>(Space::Register)].push_back({unit()[0], 0});
  result.gridExtent[0] /= 2;
  return result;
}

llvm::SmallVector<int> TileLayout::rowLaneBits() const {
  llvm::SmallVector<int> bits;
  for (auto [bit, basis] : llvm::enumerate(lanes()))
    if (basis[0] != 0 && basis[1] == 0)
      bits.push_back(bit);
  return bits;
}

std::optional<TileLayout> TileLayout::reducedRows(int groups) const {
  llvm::SmallVector<int> laneBits = rowLaneBits();
  if (groups != 1 && groups != 1 << laneBits.size())
    return std::nullopt;
  // Reducing across waves is not a matter of layouts alone.
  for (const Coord &basis : waves())
    if (basis[0] != 0)
      return std::nullopt;
  return foldRows(groups);
}

std::optional<TileLayout> TileLayout::repeatedRow() const {
  return foldRows(1);
}

std::optional<TileLayout> TileLayout::foldRows(int groups) const {
  TileLayout result;
  result.gridExtent = {1, gridExtent[1]};
  int32_t group = 1;
  for (Space space : {Space::Register, Space::Lane, Space::Wave}) {
    for (const Coord &basis : get(space)) {
      if (basis[0] != 0 && basis[1] != 0)
        return std::nullopt; // mixes the dimensions
      Bases &out = result.bases[static_cast<int>(space)];
      if (basis[0] == 0) {
        // Registers that replicate would only repeat the reduced value.
        if (space != Space::Register || basis[1] != 0)
          out.push_back(basis);
        continue;
      }
      if (space == Space::Register)
        continue; // folded inside the lane
      out.push_back({groups == 1 ? 0 : group, 0});
      group <<= 1;
    }
  }
  return result;
}

uint32_t TileLayout::replicatedBits(Space space) const {
  uint32_t mask = 0;
  for (auto [bit, basis] : llvm::enumerate(get(space)))
    if (basis[0] == 0 && basis[1] == 0)
      mask |= 1u << bit;
  return mask;
}

int TileLayout::contiguousColumnsLog2() const {
  int bits = 0;
  while (bits < int(registers().size()) &&
         registers()[bits] == Coord{0, 1 << bits})
    ++bits;
  return bits;
}

static uint64_t pack(Coord coord) {
  return uint64_t(uint32_t(coord[0])) << 32 | uint32_t(coord[1]);
}

bool TileLayout::isExact() const {
  int nonZero = 0;
  for (const Bases &space : bases)
    for (const Coord &basis : space)
      nonZero += basis[0] != 0 || basis[1] != 0;
  Coord extent = unit();
  // As many independent vectors as the unit has coordinate bits: one holder.
  if (nonZero != llvm::countr_zero(uint32_t(extent[0])) +
                     llvm::countr_zero(uint32_t(extent[1])))
    return false;
  InverseLayout inverse(*this);
  for (int dim : {0, 1})
    for (int32_t bit = 1; bit < extent[dim]; bit <<= 1) {
      Coord element = {0, 0};
      element[dim] = bit;
      if (!inverse.find(element))
        return false;
    }
  return true;
}

std::string TileLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  const char *names[] = {"reg", "lane", "wave"};
  for (auto [name, space] : llvm::zip(names, bases)) {
    os << name << " = [";
    llvm::interleaveComma(space, os, [&](const Coord &basis) {
      os << '[' << basis[0] << ", " << basis[1] << ']';
    });
    os << "], ";
  }
  os << "grid = [" << gridExtent[0] << ", " << gridExtent[1] << ']';
  return text;
}

InverseLayout::InverseLayout(const TileLayout &layout) {
  auto add = [&](Coord basis, Holder holder) {
    Row row = {pack(basis), holder};
    for (const Row &have : rows)
      if (row.element & llvm::bit_floor(have.element)) {
        row.element ^= have.element;
        row.holder.reg ^= have.holder.reg;
        row.holder.lane ^= have.holder.lane;
        row.holder.wave ^= have.holder.wave;
      }
    if (row.element == 0)
      return; // replicated, or a combination of earlier ones
    // Keep the leading bits unique in every row, so that one pass of `find`
    // reduces any element.
    uint64_t lead = llvm::bit_floor(row.element);
    for (Row &have : rows)
      if (have.element & lead) {
        have.element ^= row.element;
        have.holder.reg ^= row.holder.reg;
        have.holder.lane ^= row.holder.lane;
        have.holder.wave ^= row.holder.wave;
      }
    rows.push_back(row);
  };
  for (auto [bit, basis] : llvm::enumerate(layout.registers()))
    add(basis, {1u << bit, 0, 0});
  for (auto [bit, basis] : llvm::enumerate(layout.lanes()))
    add(basis, {0, 1u << bit, 0});
  for (auto [bit, basis] : llvm::enumerate(layout.waves()))
    add(basis, {0, 0, 1u << bit});
}

std::optional<Holder> InverseLayout::find(Coord element) const {
  uint64_t rest = pack(element);
  Holder holder = {0, 0, 0};
  for (const Row &row : rows)
    if (rest & llvm::bit_floor(row.element)) {
      rest ^= row.element;
      holder.reg ^= row.holder.reg;
      holder.lane ^= row.holder.lane;
      holder.wave ^= row.holder.wave;
    }
  if (rest != 0)
    return std::nullopt;
  return holder;
}

namespace {
/// Finds the holders of elements of a tile.
class TileInverse {
public:
  explicit TileInverse(const TileLayout &layout)
      : layout(layout), inverse(layout), unit(layout.unit()) {}

  /// The register is counted through all fragments.
  std::optional<Holder> find(Coord element) const {
    std::optional<Holder> holder = findInUnit(element);
    if (holder)
      holder->reg +=
          layout.elementsPerFragment() *
          (element[0] / unit[0] * layout.grid()[1] + element[1] / unit[1]);
    return holder;
  }

  /// Unit, register and lane that hold an element which somebody does hold: a
  /// number that is linear in the element's coordinates.
  uint64_t place(Coord element, uint32_t laneXor, uint32_t laneMask) const {
    Holder holder = *findInUnit(element);
    return uint64_t(element[0] / unit[0]) << 48 |
           uint64_t(element[1] / unit[1]) << 32 | uint64_t(holder.reg) << 16 |
           ((holder.lane ^ laneXor) & laneMask);
  }

private:
  std::optional<Holder> findInUnit(Coord element) const {
    return inverse.find({element[0] % unit[0], element[1] % unit[1]});
  }

  const TileLayout &layout;
  InverseLayout inverse;
  Coord unit;
};
} // namespace

static Coord plus(Coord x, Coord y) { return {x[0] + y[0], x[1] + y[1]}; }

/// Fills in a conversion that keeps to its wave. The holder of a lane's element
/// differs from that of lane 0's by what is linear in the lane number, so lanes
/// fall into classes by a few parities.
static void findMoves(const TileLayout &from, const TileLayout &to,
                      const TileInverse &inverse, Conversion &result) {
  uint32_t anyLane = from.replicatedBits(Space::Lane);
  struct Vector {
    uint64_t change; ///< what a bit of the lane or wave number changes
    uint32_t pivots; ///< parities that this change sums up
  };
  llvm::SmallVector<Vector> rows;
  llvm::SmallVector<std::pair<Space, int>> pivotBits;
  auto addBit = [&](Space space, int bit, Coord basis) {
    uint64_t change = inverse.place(basis, space == Space::Lane ? 1u << bit : 0,
                                    ~anyLane & 0xffff);
    uint32_t pivots = 0;
    for (const Vector &row : rows)
      if (change & llvm::bit_floor(row.change)) {
        change ^= row.change;
        pivots ^= row.pivots;
      }
    if (change != 0) {
      uint32_t pivot = 1u << pivotBits.size();
      pivotBits.push_back({space, bit});
      result.parities.push_back({0, 0});
      rows.push_back({change, pivots ^ pivot});
      pivots = pivot;
    }
    for (auto [number, parity] : llvm::enumerate(result.parities))
      if (pivots >> number & 1)
        (space == Space::Lane ? parity.lanes : parity.waves) |= 1u << bit;
  };
  for (Space space : {Space::Lane, Space::Wave})
    for (auto [bit, basis] : llvm::enumerate(to.get(space)))
      addBit(space, bit, basis);

  for (int fragment = 0; fragment < to.fragments(); ++fragment)
    for (int reg = 0; reg < to.elementsPerFragment(); ++reg)
      for (uint32_t laneClass = 0; laneClass < 1u << pivotBits.size();
           ++laneClass) {
        // Any lane of the class stands for all of them.
        uint32_t lane = 0, wave = 0;
        for (auto [number, bit] : llvm::enumerate(pivotBits))
          if (laneClass >> number & 1)
            (bit.first == Space::Lane ? lane : wave) |= 1u << bit.second;
        Holder holder = *inverse.find(
            plus(to.fragmentOrigin(fragment), to.map(reg, lane, wave)));
        result.moves.push_back(
            {int(holder.reg), (holder.lane ^ lane) & ~anyLane});
      }
}

Conversion classifyConversion(const TileLayout &from, const TileLayout &to) {
  Conversion result;
  if (from.shape() != to.shape())
    return result;
  TileInverse inverse(from);
  // A lane or wave bit moves if the element that it selects in `to` sits, in
  // `from`, under another lane or wave number. The maps are linear, so single
  // bits decide for all numbers.
  using Kind = Conversion::Kind;
  Kind kind = Kind::Identity;
  auto raise = [&](Kind atLeast) { kind = std::max(kind, atLeast); };
  // Where `from` replicates, any number will do.
  auto differs = [&](uint32_t number, uint32_t wanted, Space space) {
    return ((number ^ wanted) & ~from.replicatedBits(space)) != 0;
  };
  for (Space space : {Space::Lane, Space::Wave})
    for (auto [bit, basis] : llvm::enumerate(to.get(space))) {
      std::optional<Holder> holder = inverse.find(basis);
      if (!holder)
        return result;
      uint32_t lane = space == Space::Lane ? 1u << bit : 0;
      uint32_t wave = space == Space::Wave ? 1u << bit : 0;
      if (differs(holder->wave, wave, Space::Wave))
        raise(Kind::Shared);
      else if (holder->reg != 0 || differs(holder->lane, lane, Space::Lane))
        raise(Kind::Lane);
    }
  for (int fragment = 0; fragment < to.fragments(); ++fragment)
    for (int reg = 0; reg < to.elementsPerFragment(); ++reg) {
      std::optional<Holder> holder =
          inverse.find(plus(to.fragmentOrigin(fragment), to.map(reg, 0, 0)));
      if (!holder)
        return result;
      if (holder->wave != 0)
        raise(Kind::Shared);
      else if (holder->lane != 0)
        raise(Kind::Lane);
      if (int(holder->reg) != int(result.source.size()))
        raise(Kind::Register);
      result.source.push_back(holder->reg);
    }
  result.kind = kind;
  if (kind > Kind::Register)
    result.source.clear();
  if (kind == Kind::Lane)
    findMoves(from, to, inverse, result);
  return result;
}

} // namespace fovea::layout
