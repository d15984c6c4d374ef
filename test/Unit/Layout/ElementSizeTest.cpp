//===- ElementSizeTest.cpp - layouts and LDS tiles by size of element -----===//
//
// What the compiler generates has factors of 2 bytes. The algebra works in
// bytes for elements of any size that a matrix instruction or a view has.
//
//===----------------------------------------------------------------------===//

#include "LayoutTest.h"
#include "fovea/Layout/LdsAccess.h"
#include "fovea/Target/LdsModels.h"
#include <algorithm>
#include <set>

using namespace fovea;
using namespace fovea::layout;
using namespace fovea::test;

namespace {
class ElementSize : public testing::TestWithParam<int> {
protected:
  const int bytes = GetParam();
  const int wide = kWideBytes / bytes; ///< elements of the widest access

  LdsShape shape(int64_t rows, int64_t rowBytes,
                 const LdsModel &lds = target::kLdsCdna) const {
    return {rows, rowBytes / bytes, bytes, lds};
  }
  /// Register bits of one wide access along a row.
  Bases run() const {
    Bases registers;
    for (int column = 1; column < wide; column <<= 1)
      registers.push_back({0, column});
    return registers;
  }
};
} // namespace

INSTANTIATE_TEST_SUITE_P(Bytes, ElementSize, testing::Values(1, 2, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(ElementSize, CopiesAreWideOnBothSides) {
  TileLayout straight = chooseCopyLayout(64, 128, bytes, 6, 0, false);
  EXPECT_EQ(wideAccesses(straight, wide).width, wide);
  TileLayout turned = chooseCopyLayout(64, 128, bytes, 6, 0, true);
  EXPECT_EQ(wideAccesses(turned.transposed(), wide).width, wide);
  EXPECT_GE(wideAccesses(turned, wide).width * bytes, kWideBytes / 2);
  for (const TileLayout &layout : {straight, turned}) {
    EXPECT_EQ(layout.shape(), (Coord{64, 128}));
    for (int count : holders(layout))
      ASSERT_EQ(count, 1);
  }
}

TEST_P(ElementSize, LanesRepeatOneAnotherWhereATileIsSmall) {
  for (int rows : {16, 64})
    for (int columns : {16, 32})
      for (bool transposed : {false, true}) {
        TileLayout layout =
            chooseCopyLayout(rows, columns, bytes, 6, 3, transposed);
        for (int count : holders(layout))
          ASSERT_EQ(count, replicas(layout)) << layout.str();
      }
}

TEST_P(ElementSize, RowsShorterThanAChunkHaveNoSwizzle) {
  LdsShape tile = {32, std::max(kHalfChunk / bytes, 1), bytes,
                   target::kLdsCdna};
  TileLayout column({}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 0}}, {},
                    {1, int32_t(tile.columns)});
  EXPECT_TRUE(chooseSwizzle(tile, {LdsAccess{column, true}}).shifts.empty());
}

TEST_P(ElementSize, ReadsAreOfAChunkOrEightElementsOfARow) {
  TileLayout rows({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}},
                  {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {32, 0}}, {});
  EXPECT_EQ(chooseLdsRead(rows, bytes, nullptr).accesses.width, wide);
  TileLayout row({{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}},
                 {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}, {});
  EXPECT_EQ(chooseLdsRead(row, bytes, nullptr).accesses.width,
            std::max(wide, 8));
}

TEST_P(ElementSize, DirectCopiesFillLdsInTheOrderOfLanes) {
  const int64_t columns = 256 / bytes;
  TileLayout layout = chooseDirectCopyLayout(32, columns, bytes, 6, 1);
  EXPECT_TRUE(layout.isExact());
  WideAccesses accesses = wideAccesses(layout, wide);
  ASSERT_EQ(accesses.width, wide);
  for (const auto &regs : accesses.regs)
    for (int wave : {0, 1})
      for (int lane = 0; lane < 64; ++lane) {
        Coord first = layout.map(regs[0], 0, wave),
              at = layout.map(regs[0], lane, wave);
        ASSERT_EQ(((at[0] - first[0]) * columns + at[1] - first[1]) * bytes,
                  kWideBytes * lane);
      }
}

TEST_P(ElementSize, SwizzlesGiveEachElementAPlaceAndKeepChunksWhole) {
  Swizzle swizzle;
  swizzle.chunks = 8;
  swizzle.shifts = {0, 2};
  for (int64_t rowBytes : {64, 128, 256})
    for (int32_t halfBit : {-1, 1}) {
      swizzle.halfBit = halfBit;
      LdsShape tile = shape(16, rowBytes);
      std::set<int64_t> taken;
      for (int32_t row = 0; row < tile.rows; ++row)
        for (int32_t column = 0; column < tile.columns; ++column) {
          int64_t address = ldsAddress(tile, swizzle, {row, column});
          ASSERT_EQ(address % bytes, 0);
          ASSERT_LT(address, tile.rows * rowBytes);
          ASSERT_TRUE(taken.insert(address).second);
          int half = kHalfChunk / bytes;
          if (column % half != 0)
            ASSERT_EQ(address,
                      ldsAddress(tile, swizzle, {row, column - 1}) + bytes);
        }
    }
}

TEST_P(ElementSize, BankConflictsAreCountedInBytes) {
  // Eight lanes a clock, each 16 bytes at the start of a row of 128 bytes.
  TileLayout rows(
      run(), {{1, 0}, {2, 0}, {4, 0}, {0, wide}, {0, 2 * wide}, {0, 4 * wide}},
      {});
  LdsShape tile = shape(8, 128);
  EXPECT_EQ(bankConflicts(tile, Swizzle(), {rows, true}), 8 * 7);
  Swizzle found = chooseSwizzle(tile, {LdsAccess{rows, true}});
  EXPECT_EQ(bankConflicts(tile, found, {rows, true}), 0);
  // One row at a time has none, and gets no swizzle.
  TileLayout columns(
      run(), {{0, wide}, {0, 2 * wide}, {0, 4 * wide}, {1, 0}, {2, 0}, {4, 0}},
      {});
  EXPECT_EQ(bankConflicts(tile, Swizzle(), {columns, true}), 0);
  EXPECT_TRUE(chooseSwizzle(tile, {LdsAccess{columns, true}}).shifts.empty());
}

TEST_P(ElementSize, RowsShorterThanTheBanksJoinToLines) {
  TileLayout rows(
      run(), {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, wide}, {0, 2 * wide}}, {});
  LdsShape tile = shape(16, 64);
  Swizzle found = chooseSwizzle(tile, {LdsAccess{rows, true}});
  EXPECT_EQ(found.lineRowBits(tile.rowBytes()), 1);
  EXPECT_EQ(lineOf(tile.rowBytes(), bytes, found, {3, 5 % wide}),
            (Coord{1, 64 / bytes + 5 % wide}));
  EXPECT_EQ(bankConflicts(tile, found, {rows, true}), 0);
}

TEST_P(ElementSize, TurnedCopiesMeetFewConflicts) {
  // The rows of the LDS tile are read 16 bytes a lane, by 16 lanes a column.
  TileLayout reads(run(),
                   {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, wide}, {0, 2 * wide}},
                   {}, {4, int32_t(128 / bytes / (4 * wide))});
  LdsShape tile = shape(64, 128);
  TileLayout writes =
      chooseTransposedCopyLayout(tile, 6, 0, {LdsAccess{reads, false}});
  EXPECT_EQ(writes.shape(), (Coord{64, int32_t(tile.columns)}));
  for (int count : holders(writes))
    ASSERT_EQ(count, 1);
  std::vector<LdsAccess> both = {{reads, false}, {writes, true}};
  Swizzle swizzle = chooseSwizzle(tile, both);
  for (const LdsAccess &access : both)
    EXPECT_LE(bankConflicts(tile, swizzle, access),
              bankConflicts(tile, Swizzle(), access));
}

TEST(ElementSizes, ProductsOfEveryTypeRead16BytesALane) {
  for (const target::MatrixInstr &row : target::allMatrixInstrs()) {
    SCOPED_TRACE(nameOf(row));
    int bytes = elementTypeInfo(row.type).bytes(), wide = kWideBytes / bytes;
    auto dots = forwardDots(row, 128, 4 * row.n, 64, 4);
    ASSERT_TRUE(dots);
    EXPECT_EQ(row.layouts().elementBytes, bytes);
    EXPECT_EQ(wideAccesses(dots->scores.a, wide).width, wide);
    EXPECT_EQ(wideAccesses(dots->scores.b.transposed(), wide).width, wide);
    LdsShape keys = {64, 128, bytes, target::kLdsCdna};
    std::vector<LdsAccess> accesses = {
        {chooseCopyLayout(64, 128, bytes,
                          llvm::countr_zero(unsigned(row.waveSize)), 2, false),
         true},
        {dots->scores.a, false}};
    Swizzle swizzle = chooseSwizzle(keys, accesses);
    for (const LdsAccess &access : accesses)
      EXPECT_LE(bankConflicts(keys, swizzle, access),
                bankConflicts(keys, Swizzle(), access));
  }
}
