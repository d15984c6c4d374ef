//===- LayoutTest.h - layouts for tests, and what they mean -----*- C++ -*-===//
//
// Shared by the tests of the layout algebra: names of rows for messages, random
// layouts from a fixed seed, and the forward kernel's products.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_LAYOUT_LAYOUTTEST_H
#define FOVEA_TEST_UNIT_LAYOUT_LAYOUTTEST_H

#include "fovea/Layout/DotLayouts.h"
#include "fovea/Target/MatrixInstr.h"
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace fovea::test {

using layout::Bases;
using layout::Coord;
using layout::DotLayouts;
using layout::Space;
using layout::TileLayout;

/// A row of the instruction table as GoogleTest spells parameters.
inline std::string nameOf(const target::MatrixInstr &row) {
  return row.name.str() + "_" + elementTypeInfo(row.type).name.str() +
         (row.feature == target::kWmmaRepeated ? "_repeated" : "");
}

inline uint32_t numberOf(const TileLayout &layout, Space space) {
  return 1u << layout.get(space).size();
}

/// Registers of a lane, through all fragments.
inline int registersOf(const TileLayout &layout) {
  return layout.fragments() * layout.elementsPerFragment();
}

/// Tile coordinates of a register, counted through all fragments.
inline Coord elementAt(const TileLayout &layout, int reg, uint32_t lane,
                       uint32_t wave) {
  Coord origin = layout.fragmentOrigin(reg / layout.elementsPerFragment());
  Coord inside = layout.map(reg % layout.elementsPerFragment(), lane, wave);
  return {origin[0] + inside[0], origin[1] + inside[1]};
}

/// How often each element of the tile, row-major, is held.
inline std::vector<int> holders(const TileLayout &layout) {
  Coord shape = layout.shape();
  std::vector<int> count(size_t(shape[0]) * shape[1], 0);
  for (uint32_t wave = 0; wave < numberOf(layout, Space::Wave); ++wave)
    for (uint32_t lane = 0; lane < numberOf(layout, Space::Lane); ++lane)
      for (int reg = 0; reg < registersOf(layout); ++reg) {
        Coord at = elementAt(layout, reg, lane, wave);
        ++count.at(size_t(at[0]) * shape[1] + at[1]);
      }
  return count;
}

/// Lanes and waves that hold one element.
inline int replicas(const TileLayout &layout) {
  return 1 << (llvm::popcount(layout.replicatedBits(Space::Lane)) +
               llvm::popcount(layout.replicatedBits(Space::Wave)) +
               llvm::popcount(layout.replicatedBits(Space::Register)));
}

/// An exact layout of a tile with units of 2^rowBits x 2^columnBits, its bits
/// dealt to `laneBits` lanes, `waveBits` waves and registers at random.
/// `mixed`: bases are sums of coordinate bits; else each is one bit.
/// `replicated`: so many lane or wave bits repeat elements.
inline TileLayout randomLayout(std::mt19937 &random, int rowBits,
                               int columnBits, int laneBits, int waveBits,
                               bool mixed, int replicated, Coord grid) {
  Bases bits;
  for (int bit = 0; bit < rowBits; ++bit)
    bits.push_back({1 << bit, 0});
  for (int bit = 0; bit < columnBits; ++bit)
    bits.push_back({0, 1 << bit});
  if (mixed)
    // Adding one basis to another keeps them independent.
    for (int step = 0; step < 8; ++step) {
      size_t from = random() % bits.size(), to = random() % bits.size();
      if (from == to)
        continue;
      bits[to][0] ^= bits[from][0];
      bits[to][1] ^= bits[from][1];
    }
  std::shuffle(bits.begin(), bits.end(), random);
  Bases across(bits.begin(), bits.begin() + laneBits + waveBits - replicated);
  Bases registers(bits.begin() + across.size(), bits.end());
  across.append(replicated, Coord{0, 0});
  std::shuffle(across.begin(), across.end(), random);
  return TileLayout(registers, Bases(across.begin(), across.begin() + laneBits),
                    Bases(across.begin() + laneBits, across.end()), grid);
}

/// The MFMA rows whose results feed the next product as they stand.
inline std::vector<target::MatrixInstr> mfmaRows() {
  std::vector<target::MatrixInstr> rows;
  for (const target::MatrixInstr &row : target::allMatrixInstrs())
    if (row.feature & (target::kMfmaF16 | target::kMfmaBf16_1k))
      rows.push_back(row);
  return rows;
}

/// Layouts of the forward kernel's two products, the second fed by the first.
struct ForwardDots {
  DotLayouts scores; ///< [block_n, score_dim] x [score_dim, block_m]
  DotLayouts values; ///< [value_dim, block_n] x [block_n, block_m]
};

inline std::optional<ForwardDots> forwardDots(const target::MatrixInstr &row,
                                              int64_t headDim, int64_t blockM,
                                              int64_t blockN, int waves) {
  auto up = [](int64_t value, int64_t to) {
    return (value + to - 1) / to * to;
  };
  layout::WaveSplit split{waves};
  auto scores = layout::chooseDotLayouts(
      row.layouts(), blockN,
      up(headDim, layout::contractionUnit(row.layouts())), blockM, split,
      nullptr);
  if (!scores)
    return std::nullopt;
  auto choose = [&](const TileLayout *b) {
    return layout::chooseDotLayouts(row.layouts(), up(headDim, row.m), blockN,
                                    blockM, split, b);
  };
  // As attn-assign-layouts does: the accumulator as it stands, then several of
  // its units together, then whatever the instruction likes best.
  std::optional<DotLayouts> values;
  for (std::optional<TileLayout> given = scores->acc; given && !values;
       given = given->withTallerUnit())
    values = choose(&*given);
  if (!values)
    values = choose(nullptr);
  if (!values)
    return std::nullopt;
  return ForwardDots{*scores, *values};
}

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_LAYOUT_LAYOUTTEST_H
