//===- LdsAccess.h - reads of LDS tiles, copies to them ---------*- C++ -*-===//
//
// How lanes address an LDS tile to get a layout, where the read itself may
// transpose, and which part of a tile each lane fetches when global memory is
// copied to LDS without passing registers.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LAYOUT_LDSACCESS_H
#define FOVEA_LAYOUT_LDSACCESS_H

#include "fovea/Layout/DotLayouts.h"

namespace fovea::layout {

/// A read that transposes blocks of elements among lanes. 2^laneBits
/// neighbouring lanes address 2^elementBits consecutive elements each; put
/// behind one another these are 2^elementBits rows of 2^laneBits elements, and
/// each lane gets a column.
struct TransposedRead {
  int elementBytes, elementBits, laneBits;
};

/// The layout that lanes have to address for such reads to give them `wanted`,
/// element by element in the same registers. None if a lane would have to
/// address elements that do not follow one another along dimension 1.
std::optional<TileLayout> transposedReadAddresses(const TileLayout &wanted,
                                                  TransposedRead read);

/// How a tile is read from LDS.
struct LdsRead {
  TileLayout addresses; ///< what lanes address; what they get unless transposed
  WideAccesses accesses; ///< registers of both
  bool transposed;
};

/// The widest reads that give lanes `wanted`, transposing if that is wider.
/// \param read  the chip's transposing read for elements of this size; null if
///              it has none
LdsRead chooseLdsRead(const TileLayout &wanted, int elementBytes,
                      const TransposedRead *read);

/// The layout of a tile that is copied to LDS without passing registers: an
/// access of a wave fills 16 bytes a lane, in the order of lanes, from one
/// address on. Rows and columns are those of LDS before its swizzle; both
/// extents are powers of two. Waves that nothing is left for repeat others.
TileLayout chooseDirectCopyLayout(int64_t rows, int64_t columns,
                                  int elementBytes, int laneBits, int waveBits);

} // namespace fovea::layout

#endif // FOVEA_LAYOUT_LDSACCESS_H
