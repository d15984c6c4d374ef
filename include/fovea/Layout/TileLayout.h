//===- TileLayout.h - linear layouts of tiles over bits ---------*- C++ -*-===//
//
// How the elements of a two-dimensional tile spread over registers, lanes and
// waves. A layout is a linear map over GF(2): each bit of the register, lane
// and wave number contributes one vector of tile coordinates, and contributions
// are XORed. The algebra here is the only place that turns one layout into
// another; no pass holds a lane formula of its own.
//
// Tiles need not be powers of two: a tile is a grid of equal power-of-two
// units, the linear map describes one unit, and the units follow one another in
// registers (docs/Rationale.md, "Layouts").
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LAYOUT_TILELAYOUT_H
#define FOVEA_LAYOUT_TILELAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace fovea::layout {

/// A position in a tile, or an extent: {dimension 0, dimension 1}.
using Coord = std::array<int32_t, 2>;

/// What an index bit selects.
enum class Space { Register, Lane, Wave };

/// Basis vectors of one index space, lowest bit first.
using Bases = llvm::SmallVector<Coord, 8>;

/// Coordinates of `index` under `bases`: the XOR of the bases of its set bits.
Coord applyBases(llvm::ArrayRef<Coord> bases, uint32_t index);

/// A layout of one tile. A zero basis vector means that the bit does not change
/// the element: the element is replicated over that bit.
class TileLayout {
public:
  TileLayout() = default;
  TileLayout(Bases registers, Bases lanes, Bases waves, Coord grid = {1, 1})
      : bases{std::move(registers), std::move(lanes), std::move(waves)},
        gridExtent(grid) {}

  llvm::ArrayRef<Coord> get(Space space) const {
    return bases[static_cast<int>(space)];
  }
  llvm::ArrayRef<Coord> registers() const { return get(Space::Register); }
  llvm::ArrayRef<Coord> lanes() const { return get(Space::Lane); }
  llvm::ArrayRef<Coord> waves() const { return get(Space::Wave); }

  /// Units along each dimension.
  Coord grid() const { return gridExtent; }
  /// Extent of one unit; powers of two.
  Coord unit() const;
  /// Extent of the tile: unit times grid.
  Coord shape() const;

  /// Elements of one unit that a lane holds.
  int elementsPerFragment() const { return 1 << registers().size(); }
  /// Units in the tile. Unit (i, j) is fragment number i * grid[1] + j.
  int fragments() const { return gridExtent[0] * gridExtent[1]; }
  /// Tile coordinates of the first element of a fragment.
  Coord fragmentOrigin(int fragment) const;

  /// Coordinates, inside a unit, of a register of a lane of a wave.
  Coord map(uint32_t reg, uint32_t lane, uint32_t wave) const;

  /// The same distribution with the two dimensions exchanged. Fragments are
  /// then numbered along the other dimension; `transposeFragment` says how.
  TileLayout transposed() const;
  /// The number in `transposed()` of this layout's fragment.
  int transposeFragment(int fragment) const;

  /// The same distribution with twice the rows in a unit: what was the next
  /// unit down is the highest register bit. Fails if the units down are odd.
  std::optional<TileLayout> withTallerUnit() const;

  /// The layout of the tile's rows after reducing dimension 0 to `groups` rows
  /// (a power of two), which lanes keep apart: groups of lanes become the rows,
  /// everything else along dimension 0 is folded. groups = 1: fully reduced and
  /// replicated. Fails if the lanes do not form that many groups.
  std::optional<TileLayout> reducedRows(int groups) const;

  /// The layout of one row that is the same for all rows of the tile.
  std::optional<TileLayout> repeatedRow() const;

  /// Lane bits whose basis lies in dimension 0 only, i.e. which part of the
  /// lane number has to be combined to reduce along dimension 0.
  llvm::SmallVector<int> rowLaneBits() const;

  /// Mask of lane (or wave) bits over which elements are replicated.
  uint32_t replicatedBits(Space space) const;

  /// log2 of the number of consecutive registers that hold consecutive elements
  /// along dimension 1.
  int contiguousColumnsLog2() const;

  /// Every element of a unit is held by some register of some lane of some
  /// wave, and by only one but for replicated bits.
  bool isExact() const;

  bool operator==(const TileLayout &other) const {
    return bases == other.bases && gridExtent == other.gridExtent;
  }
  bool operator!=(const TileLayout &other) const { return !(*this == other); }

  std::string str() const;

private:
  std::optional<TileLayout> foldRows(int groups) const;

  std::array<Bases, 3> bases;
  Coord gridExtent = {1, 1};
};

/// The cheapest way from one layout of a tile to another.
struct Conversion {
  enum class Kind {
    Identity,   ///< the same element in the same register of the same lane
    Register,   ///< stays in its lane, moves between registers
    Lane,       ///< stays in its wave, moves between lanes
    Shared,     ///< crosses waves: a round trip through LDS
    Impossible, ///< the tiles differ in shape
  };
  /// Lanes and waves that have an odd number of ones in `lane & lanes` and
  /// `wave & waves` together.
  struct Parity {
    uint32_t lanes, waves;
  };
  /// A lane takes what register `source` of lane `lane ^ laneXor` holds.
  struct Move {
    int source;
    uint32_t laneXor;
  };

  Kind kind = Kind::Impossible;
  /// Identity and Register: for each register of the destination, counted
  /// through all fragments, the source register that holds its element.
  llvm::SmallVector<int> source;
  /// Lane: where an element comes from differs between classes of lanes; bit i
  /// of a lane's class is whether it has parity i. As few as there can be.
  llvm::SmallVector<Parity> parities;
  /// Lane: the move of each register of the destination in each class of lanes,
  /// register by register; see `move`.
  llvm::SmallVector<Move> moves;

  /// Lane: how lanes of a class get a register of the destination.
  Move move(int reg, unsigned laneClass) const {
    return moves[size_t(reg) << parities.size() | laneClass];
  }
};

/// Computes the conversion of a tile held as `from` into `to`.
Conversion classifyConversion(const TileLayout &from, const TileLayout &to);

/// Which register, lane and wave hold a given element of a unit: the inverse
/// map, by Gaussian elimination over GF(2). Replicated bits come back as 0.
struct Holder {
  uint32_t reg, lane, wave;
};
class InverseLayout {
public:
  explicit InverseLayout(const TileLayout &layout);
  /// None if nobody holds the element.
  std::optional<Holder> find(Coord element) const;

private:
  struct Row {
    uint64_t element; ///< coordinates packed: dimension 0 high, 1 low
    Holder holder;
  };
  llvm::SmallVector<Row, 16> rows;
};

} // namespace fovea::layout

#endif // FOVEA_LAYOUT_TILELAYOUT_H
