//===- DotLayouts.h - layouts for products and copies -----------*- C++ -*-===//
//
// Derives the layouts of a tile product from one matrix instruction, of copies
// from global memory to LDS, and the swizzle of an LDS tile.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LAYOUT_DOTLAYOUTS_H
#define FOVEA_LAYOUT_DOTLAYOUTS_H

#include "fovea/Layout/LdsModel.h"
#include "fovea/Layout/TileLayout.h"

namespace fovea::layout {

/// Bytes of the widest access of LDS and global memory: what a lane should hold
/// in one piece.
inline constexpr int kWideBytes = 16;

/// Operand layouts of one matrix instruction: A {m, k}, B {k, n}, D {m, n}.
struct InstrLayouts {
  const TileLayout &a, &b, &d;
  int elementBytes; ///< of A and B
};

/// Layouts of result[M, N] = a[M, K] * b[K, N].
struct DotLayouts {
  TileLayout a, b, acc;
};

/// How the waves of a workgroup share a product: the lowest bits of the wave
/// number select columns, the others rows; or, for a product that they all
/// need, nothing. All are powers of two.
struct WaveSplit {
  int columns = 1, rows = 1, repeated = 1;
};

/// Elements of the contraction that one read of all lanes covers: the
/// contraction of a product must be a multiple.
int64_t contractionUnit(const InstrLayouts &instr);

/// Chooses the layouts of a product.
///
/// Rows of the product and the contraction index may be permuted freely as long
/// as both sides agree. Rows are permuted so that a lane holds runs of 16 bytes
/// of factors: the result, rounded to them, can then be stored, and used as the
/// contraction of a next product, 16 bytes at a time.
///
/// \param b  the right operand's layout if it has one already; the order of the
///           contraction then follows it. Fails if it cannot be fed to the
///           instruction without moving between lanes.
std::optional<DotLayouts> chooseDotLayouts(const InstrLayouts &instr, int64_t m,
                                           int64_t k, int64_t n,
                                           WaveSplit waves,
                                           const TileLayout *b);

/// An LDS tile, row-major.
struct LdsShape {
  int64_t rows, columns;
  int elementBytes;
  const LdsModel &lds;
  /// Filled by copies in the order of addresses: chunks stay in their rows, and
  /// whole.
  bool wholeChunks = false;

  int64_t rowBytes() const { return columns * elementBytes; }
  /// Elements of the widest access.
  int wideElements() const { return kWideBytes / elementBytes; }
};

/// A tile's way into LDS, or out of it.
struct LdsAccess {
  TileLayout layout;
  bool write = false;
};

/// The layout of a [rows, columns] tile on its way from global memory, where
/// rows are contiguous, to LDS. `transposed`: LDS holds it column by column, so
/// lanes hold runs along both dimensions.
/// \param maxColumnBits  log2 of the columns that lanes and waves may share;
/// the
///                       others follow in registers
/// \param rowBits  how many of the lowest lane bits take rows before columns
///                 follow: neighbouring lanes then fill one row of the
///                 transposed tile, at the price of shorter runs in memory
TileLayout chooseCopyLayout(int64_t rows, int64_t columns, int elementBytes,
                            int laneBits, int waveBits, bool transposed,
                            int rowBits = 0, int maxColumnBits = 31);

/// The layouts, one after the other, through which lanes trade what they hold
/// of a tile in the order of memory, [rows, columns], until neighbours have as
/// much of a cache line between them as lanes 4 and 8 on hold: each differs
/// from the one ahead of it by a bit of the register number that trades places
/// with one of the lane's.
llvm::SmallVector<TileLayout> tradesForLines(const TileLayout &layout,
                                             int elementBytes);

/// The layout, in LDS's orientation, of a tile that is transposed on its way to
/// the LDS tile of this shape: of the ways to deal it to lanes, the one that
/// meets the fewest bank conflicts beside the given reads.
TileLayout chooseTransposedCopyLayout(const LdsShape &shape, int laneBits,
                                      int waveBits,
                                      llvm::ArrayRef<LdsAccess> reads);

/// Registers of a fragment that make up one wide access: element e of access a
/// is register regs[a][e], and the elements of an access follow one another
/// along dimension 1.
struct WideAccesses {
  int width; ///< elements of one access
  llvm::SmallVector<llvm::SmallVector<int64_t, 8>> regs;
};
/// The widest accesses, up to `maxWidth` elements (a power of two).
WideAccesses wideAccesses(const TileLayout &layout, int maxWidth);

/// Bytes that a swap of a chunk's halves moves.
inline constexpr int kHalfChunk = 8;

/// Row permutation of an LDS tile (attn.swizzle).
struct Swizzle {
  /// Chunks of 16 bytes that trade places. Rows with fewer join to lines with
  /// as many, and the permutation is one of lines.
  int chunks = 1;
  llvm::SmallVector<int32_t, 2> shifts;
  /// Bit of the row number that swaps the halves of its chunks; -1: none.
  int32_t halfBit = -1;

  /// Whether the halves of the chunks of row `r` are swapped.
  bool swapsHalves(int32_t row) const {
    return halfBit >= 0 && (row >> halfBit & 1) != 0;
  }
  /// Rows of a line, as bits.
  int lineRowBits(int64_t rowBytes) const {
    int bits = 0;
    while (!shifts.empty() && (rowBytes << bits) < chunks * 16)
      ++bits;
    return bits;
  }
  /// Chunk at which chunk `c` of line `r` is stored, XOR c. A line's number is
  /// shifted right, or left by what is negative.
  int32_t rowXor(int32_t row) const {
    int32_t result = 0;
    for (int32_t shift : shifts)
      result ^= shift < 0 ? row << -shift : row >> shift;
    return result & (chunks - 1);
  }
};

/// Line of an element and its place there, in elements.
Coord lineOf(int64_t rowBytes, int elementBytes, const Swizzle &swizzle,
             Coord at);

/// Whether a tile in this layout can be accessed where swaps of halves are
/// known: a wide access has to know them in advance, so that it can order its
/// registers.
bool canSwapHalves(const TileLayout &layout, int elementBytes,
                   const Swizzle &swizzle);

/// Byte address of an element.
int64_t ldsAddress(const LdsShape &shape, const Swizzle &swizzle, Coord at);

/// Clocks beyond the least possible that a wave's accesses of a whole tile take
/// because lanes of one clock meet in a bank.
int64_t bankConflicts(const LdsShape &shape, const Swizzle &swizzle,
                      const LdsAccess &access);

/// The swizzle with the fewest conflicts over all given accesses.
Swizzle chooseSwizzle(const LdsShape &shape,
                      llvm::ArrayRef<LdsAccess> accesses);

} // namespace fovea::layout

#endif // FOVEA_LAYOUT_DOTLAYOUTS_H
