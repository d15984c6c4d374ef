//===- CopyLayoutsTest.cpp - copies to LDS, wide accesses, swizzles -------===//

#include "LayoutTest.h"
#include "fovea/Target/LdsModels.h"
#include <map>
#include <set>

using namespace fovea;
using namespace fovea::layout;
using namespace fovea::test;

/// LDS of most tests: 32 banks of 4 bytes, reads of 16 bytes in CDNA's order.
static const LdsModel &kLds = target::kLdsCdna;

static int64_t alignUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

/// Checks, by enumeration, that accesses partition the registers of a fragment
/// into runs of consecutive columns, and that no wider ones would do.
static void checkWide(const TileLayout &layout, int maxWidth) {
  WideAccesses accesses = wideAccesses(layout, maxWidth);
  ASSERT_LE(accesses.width, maxWidth);
  std::set<int64_t> used;
  for (const auto &regs : accesses.regs) {
    ASSERT_EQ(int(regs.size()), accesses.width);
    for (int64_t reg : regs)
      ASSERT_TRUE(used.insert(reg).second);
    for (uint32_t lane = 0; lane < numberOf(layout, Space::Lane); ++lane) {
      Coord first = layout.map(regs[0], lane, 0);
      ASSERT_EQ(first[1] % accesses.width, 0) << "unaligned: " << layout.str();
      for (int element = 0; element < accesses.width; ++element)
        ASSERT_EQ(layout.map(regs[element], lane, 0),
                  (Coord{first[0], first[1] + element}));
    }
  }
  ASSERT_EQ(int(used.size()), layout.elementsPerFragment());
  if (accesses.width == maxWidth)
    return;
  // Some register's next run of this width is not in the lane.
  std::set<std::pair<int, int>> held;
  for (int reg = 0; reg < layout.elementsPerFragment(); ++reg) {
    Coord at = layout.map(reg, 0, 0);
    held.insert({at[0], at[1]});
  }
  bool widerFits = true;
  for (auto [row, column] : held)
    widerFits &= held.count({row, column ^ accesses.width}) != 0;
  EXPECT_FALSE(widerFits) << layout.str();
}

TEST(WideAccesses, AreTheWidestRuns) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round)
    for (int maxWidth : {1, 2, 4, 8})
      checkWide(randomLayout(random, 3, 4, 3, 0, false, 0, {1, 1}), maxWidth);
}

TEST(WideAccesses, FindRunsInAnyRegisterBit) {
  WideAccesses accesses =
      wideAccesses(TileLayout({{1, 0}, {0, 1}, {0, 2}}, {}, {}), 8);
  EXPECT_EQ(accesses.width, 4);
  ASSERT_EQ(accesses.regs.size(), 2u);
  EXPECT_EQ(accesses.regs[0], (llvm::SmallVector<int64_t, 8>{0, 2, 4, 6}));
  EXPECT_EQ(accesses.regs[1], (llvm::SmallVector<int64_t, 8>{1, 3, 5, 7}));
}

TEST(CopyLayout, HoldsEveryElementOnce) {
  for (int headDim = 16; headDim <= 256; headDim += 8)
    for (int rows : {32, 64, 128})
      for (int waveBits : {0, 1, 2, 3})
        for (bool transposed : {false, true}) {
          int columns = alignUp(headDim, 32);
          TileLayout layout =
              chooseCopyLayout(rows, columns, 2, 6, waveBits, transposed);
          SCOPED_TRACE(testing::Message()
                       << rows << "x" << columns << ", " << waveBits
                       << " wave bits, transposed " << transposed);
          ASSERT_EQ(layout.shape(), (Coord{rows, columns}));
          ASSERT_EQ(layout.lanes().size(), 6u);
          ASSERT_EQ(int(layout.waves().size()), waveBits);
          ASSERT_EQ(layout.replicatedBits(Space::Register), 0u);
          int expected = replicas(layout);
          for (int count : holders(layout))
            ASSERT_EQ(count, expected) << layout.str();
          // Lanes repeat one another only when a unit has less than two
          // elements for each of them.
          Coord unit = layout.unit();
          if (expected > 1) {
            EXPECT_LT(unit[0] * unit[1],
                      (transposed ? 4 : 2) * (64 << waveBits));
          }
          checkWide(layout, 8);
          checkWide(layout.transposed(), 8);
          if (HasFailure())
            return;
        }
}

TEST(CopyLayout, IsWideOnBothSides) {
  // 64x128 over four waves: 32 elements a lane, 16 bytes of a row each.
  EXPECT_EQ(wideAccesses(chooseCopyLayout(64, 128, 2, 6, 2, false), 8).width,
            8);
  // Turned, 8 bytes of a row from memory and 16 bytes of a column to LDS.
  TileLayout turned = chooseCopyLayout(64, 128, 2, 6, 2, true);
  EXPECT_EQ(wideAccesses(turned, 8).width, 4);
  EXPECT_EQ(wideAccesses(turned.transposed(), 8).width, 8);
}

TEST(CopyLayout, NeighbouringLanesReadNeighbouringColumns) {
  TileLayout layout = chooseCopyLayout(64, 128, 2, 6, 2, false);
  for (int lane = 0; lane < 16; ++lane)
    EXPECT_EQ(layout.map(0, lane, 0), (Coord{0, 8 * lane}));
  EXPECT_EQ(layout.map(0, 16, 0), (Coord{1, 0}));
}

//===----------------------------------------------------------------------===//
// LDS tiles
//===----------------------------------------------------------------------===//

TEST(Swizzle, ExchangesChunksOfARow) {
  Swizzle swizzle;
  swizzle.chunks = 4;
  swizzle.shifts = {0, 2};
  // f(r) = (r ^ r >> 2) mod 4.
  EXPECT_EQ(swizzle.rowXor(0), 0);
  EXPECT_EQ(swizzle.rowXor(3), 3);
  EXPECT_EQ(swizzle.rowXor(4), 1);
  EXPECT_EQ(swizzle.rowXor(7), 2);
  LdsShape shape = {8, 64, 2, kLds};
  EXPECT_EQ(ldsAddress(shape, swizzle, {0, 9}), 18);
  EXPECT_EQ(ldsAddress(shape, swizzle, {3, 9}), 3 * 128 + (18 ^ 48));
  EXPECT_EQ(ldsAddress(shape, Swizzle(), {3, 9}), 3 * 128 + 18);
}

TEST(Swizzle, JoinsShortRowsToLines) {
  // Two rows of 64 bytes make a line of 8 chunks, turned by the line's number.
  Swizzle swizzle;
  swizzle.chunks = 8;
  swizzle.shifts = {0};
  LdsShape shape = {8, 32, 2, kLds};
  EXPECT_EQ(swizzle.lineRowBits(64), 1);
  EXPECT_EQ(swizzle.lineRowBits(128), 0);
  EXPECT_EQ(ldsAddress(shape, swizzle, {1, 9}), 64 + 18);
  EXPECT_EQ(ldsAddress(shape, swizzle, {3, 9}), 128 + ((64 + 18) ^ 16));
  EXPECT_EQ(ldsAddress(shape, Swizzle(), {3, 9}), 3 * 64 + 18);
}

TEST(BankConflicts, CountsKnownPatterns) {
  // 16 bytes a lane, 8 lanes a clock.
  TileLayout rows({{0, 1}, {0, 2}, {0, 4}},
                  {{1, 0}, {2, 0}, {4, 0}, {0, 8}, {0, 16}, {0, 32}}, {});
  // Rows of 128 bytes: 8 rows start in the same bank, 8 clocks for 1.
  EXPECT_EQ(bankConflicts({8, 64, 2, kLds}, Swizzle(), {rows, true}), 8 * 7);
  // A chunk turned by the row number puts each row elsewhere.
  Swizzle turn;
  turn.chunks = 8;
  turn.shifts = {0};
  EXPECT_EQ(bankConflicts({8, 64, 2, kLds}, turn, {rows, true}), 0);
  // A whole row at a time has none.
  TileLayout columns({{0, 1}, {0, 2}, {0, 4}},
                     {{0, 8}, {0, 16}, {0, 32}, {1, 0}, {2, 0}, {4, 0}}, {});
  EXPECT_EQ(bankConflicts({8, 64, 2, kLds}, Swizzle(), {columns, true}), 0);
  // Lanes that read the same word are served together.
  TileLayout same({{0, 1}}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}},
                  {});
  EXPECT_EQ(bankConflicts({1, 64, 2, kLds}, Swizzle(), {same, false}), 0);
}

TEST(BankConflicts, FollowTheOrderOfLanes) {
  // Lanes 0-3 read the first half of a row, lanes 4-7 that of the next one, and
  // lanes 16 on the second halves: reads of 16 bytes take 0-3 with 20-23.
  TileLayout halves({{0, 1}, {0, 2}, {0, 4}},
                    {{0, 8}, {0, 16}, {1, 0}, {2, 0}, {0, 32}, {4, 0}}, {});
  EXPECT_EQ(bankConflicts({8, 64, 2, kLds}, Swizzle(), {halves, false}), 0);
  EXPECT_EQ(bankConflicts({8, 64, 2, kLds}, Swizzle(), {halves, true}), 8);
  // 64 banks: two rows at a time, of which consecutive lanes take equal halves.
  EXPECT_EQ(
      bankConflicts({8, 64, 2, target::kLdsCdna4}, Swizzle(), {halves, false}),
      0);
  EXPECT_EQ(bankConflicts({8, 64, 2, target::kLdsGfx1250}, Swizzle(),
                          {halves, false}),
            4);
}

namespace {
/// One LDS tile of the forward kernel and how it is accessed.
struct LdsTile {
  LdsShape shape;
  LdsAccess write, read;
  Swizzle swizzle;
};
} // namespace

/// K and V tile of a schedule, as attn-assign-layouts sees them.
static std::array<LdsTile, 2> ldsTiles(const target::MatrixInstr &row,
                                       int headDim, int blockM, int blockN,
                                       int waves, const LdsModel &lds = kLds) {
  auto dots = forwardDots(row, headDim, blockM, blockN, waves);
  EXPECT_TRUE(dots);
  int waveBits = llvm::countr_zero(unsigned(waves));
  int64_t dim = alignUp(headDim, 32);
  LdsTile k = {{blockN, dim, 2, lds},
               {chooseCopyLayout(blockN, dim, 2, 6, waveBits, false), true},
               {dots->scores.a, false},
               {}};
  LdsShape turned = {dim, blockN, 2, lds};
  LdsAccess read = {dots->values.a, false};
  LdsTile v = {turned,
               {chooseTransposedCopyLayout(turned, 6, waveBits, {read}), true},
               read,
               {}};
  for (LdsTile *tile : {&k, &v})
    tile->swizzle = chooseSwizzle(tile->shape, {tile->write, tile->read});
  return {k, v};
}

TEST(Swizzle, GivesEveryElementAPlaceOfItsOwn) {
  for (const target::MatrixInstr &row : mfmaRows())
    for (int headDim = 16; headDim <= 256; headDim += 8)
      for (int blockN : {32, 64, 128})
        for (const LdsTile &tile :
             ldsTiles(row, headDim, row.n * 4, blockN, 4)) {
          int64_t elements = tile.shape.rows * tile.shape.columns;
          std::vector<bool> taken(elements, false);
          for (int32_t r = 0; r < tile.shape.rows; ++r)
            for (int32_t c = 0; c < tile.shape.columns; ++c) {
              int64_t address = ldsAddress(tile.shape, tile.swizzle, {r, c});
              ASSERT_EQ(address % 2, 0);
              ASSERT_LT(address, 2 * elements);
              ASSERT_FALSE(taken[address / 2]);
              taken[address / 2] = true;
            }
        }
}

TEST(Swizzle, KeepsWideAccessesWhole) {
  for (const target::MatrixInstr &row : mfmaRows())
    for (int headDim : {16, 40, 64, 96, 128, 160, 256})
      for (const LdsTile &tile : ldsTiles(row, headDim, row.n * 4, 64, 4))
        for (const TileLayout *layout :
             {&tile.write.layout, &tile.read.layout}) {
          WideAccesses accesses = wideAccesses(*layout, 8);
          for (const auto &regs : accesses.regs)
            for (uint32_t lane = 0; lane < 64; ++lane) {
              Coord at = layout->map(regs[0], lane, 0);
              // Halves in the order that the access knows of, or its own.
              bool swapped =
                  accesses.width == 8 && tile.swizzle.swapsHalves(at[0]);
              int flip = swapped ? 4 : 0;
              int64_t first =
                  ldsAddress(tile.shape, tile.swizzle, at) - 2 * flip;
              ASSERT_EQ(first % (accesses.width * 2), 0);
              if (swapped)
                ASSERT_TRUE(
                    tile.swizzle.swapsHalves(layout->map(regs[0], 0, 0)[0]));
              for (int element = 0; element < accesses.width; ++element)
                ASSERT_EQ(ldsAddress(tile.shape, tile.swizzle,
                                     {at[0], at[1] + element}),
                          first + 2 * (element ^ flip));
            }
        }
}

TEST(Swizzle, IsChosenOnlyWhereItHelps) {
  TileLayout columns({{0, 1}, {0, 2}, {0, 4}},
                     {{0, 8}, {0, 16}, {0, 32}, {1, 0}, {2, 0}, {4, 0}}, {});
  for (bool write : {false, true}) {
    Swizzle chosen = chooseSwizzle({8, 64, 2, target::kLdsRdna4},
                                   {LdsAccess{columns, write}});
    EXPECT_TRUE(chosen.shifts.empty());
  }
}

TEST(Swizzle, NeverMakesItWorse) {
  for (const target::MatrixInstr &row : mfmaRows())
    for (int headDim = 16; headDim <= 256; headDim += 16)
      for (const LdsTile &tile : ldsTiles(row, headDim, row.n * 4, 64, 4)) {
        auto sum = [&](const Swizzle &swizzle) {
          return bankConflicts(tile.shape, swizzle, tile.write) +
                 bankConflicts(tile.shape, swizzle, tile.read);
        };
        EXPECT_LE(sum(tile.swizzle), sum(Swizzle()));
      }
}

//===----------------------------------------------------------------------===//
// Trades ahead of stores by whole lines
//===----------------------------------------------------------------------===//

/// Sums of products of 32 x 32, [rows, columns]: a lane has a row's every other
/// four columns, the other half of the lanes those between.
static TileLayout sumsOf(int columns) {
  return TileLayout({{0, 1}, {0, 2}, {0, 8}, {0, 16}},
                    {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 4}},
                    {{32, 0}, {64, 0}}, {1, columns / 32});
}

/// Of f32, 8 columns on are 32 bytes and 16 are 64: with these in lanes 4 and 8
/// on, a run of 16 bytes a lane is a line of 128 bytes over 8 lanes.
TEST(TradesForLines, LanesOfARowOfDppHoldALine) {
  auto trades = tradesForLines(sumsOf(128), 4);
  ASSERT_EQ(trades.size(), 2u);
  EXPECT_EQ(trades[0],
            TileLayout({{0, 1}, {0, 2}, {4, 0}, {0, 16}},
                       {{1, 0}, {2, 0}, {0, 8}, {8, 0}, {16, 0}, {0, 4}},
                       {{32, 0}, {64, 0}}, {1, 4}));
  EXPECT_EQ(trades[1],
            TileLayout({{0, 1}, {0, 2}, {4, 0}, {8, 0}},
                       {{1, 0}, {2, 0}, {0, 8}, {0, 16}, {16, 0}, {0, 4}},
                       {{32, 0}, {64, 0}}, {1, 4}));
}

/// Of either size: nothing is lost or held twice, registers that a
/// store writes at once stay, and a trade is of one register bit with lane 4
/// or 8.
TEST(TradesForLines, EachIsOneExchange) {
  for (int elementBytes : {2, 4})
    for (int columns : {32, 64, 96, 128, 256}) {
      SCOPED_TRACE(testing::Message()
                   << elementBytes << " bytes, " << columns << " columns");
      TileLayout last = sumsOf(columns);
      auto trades = tradesForLines(last, elementBytes);
      ASSERT_FALSE(trades.empty());
      for (const TileLayout &next : trades) {
        EXPECT_EQ(next.shape(), last.shape());
        for (int count : holders(next))
          ASSERT_EQ(count, 1);
        EXPECT_EQ(next.contiguousColumnsLog2(), 2);
        int changed = 0;
        for (auto [was, is] : llvm::zip_equal(last.lanes(), next.lanes()))
          changed += was != is;
        EXPECT_EQ(changed, 1);
        EXPECT_TRUE(last.lanes()[2] != next.lanes()[2] ||
                    last.lanes()[3] != next.lanes()[3]);
        EXPECT_EQ(next.waves(), last.waves());
        // The first may have made units taller, whose bits are behind.
        changed = 0;
        for (auto [was, is] : llvm::zip(last.registers(), next.registers()))
          changed += was != is;
        EXPECT_EQ(changed, 1);
        last = next;
      }
    }
}

/// A line is whole already, or lanes 4 and 8 on are of the same row.
TEST(TradesForLines, NoneWhereNothingIsGained) {
  TileLayout whole({{0, 1}, {0, 2}}, {{0, 4}, {0, 8}, {0, 16}, {1, 0}, {2, 0}},
                   {}, {1, 1});
  EXPECT_TRUE(tradesForLines(whole, 4).empty());
  TileLayout sameRow({{0, 1}, {0, 2}, {0, 16}},
                     {{1, 0}, {2, 0}, {0, 4}, {0, 8}, {4, 0}}, {}, {1, 1});
  EXPECT_TRUE(tradesForLines(sameRow, 4).empty());
}

//===----------------------------------------------------------------------===//
// Bank conflicts of the default schedules
//===----------------------------------------------------------------------===//

/// Whatever the head dimension and the keys of a row of V's tile; products of
/// 16 x 16 read V in pieces of 8 bytes, which takes swaps of halves.
TEST(Swizzle, LeavesNoConflicts) {
  for (const LdsModel *lds : {&target::kLdsCdna, &target::kLdsCdna4})
    for (const target::MatrixInstr &row : mfmaRows())
      for (int headDim : {16, 32, 64, 72, 96, 128, 136, 192, 256, 320, 512})
        for (int blockN : {32, 64}) {
          SCOPED_TRACE(testing::Message() << nameOf(row) << ", " << headDim
                                          << ", " << blockN << " keys");
          for (const LdsTile &tile :
               ldsTiles(row, headDim, 128, blockN, 4, *lds))
            for (const LdsAccess &access : {tile.write, tile.read})
              EXPECT_EQ(bankConflicts(tile.shape, tile.swizzle, access), 0);
        }
}
