//===- LdsAccessTest.cpp - transposing reads and direct copies ------------===//

#include "fovea/Layout/LdsAccess.h"
#include "LayoutTest.h"
#include "fovea/Target/LdsModels.h"
#include "fovea/Target/MatrixInstr.h"
#include <set>

using namespace fovea;
using namespace fovea::layout;
using namespace fovea::test;

static constexpr TransposedRead kRead = {/*elementBytes=*/2, /*elementBits=*/2,
                                         /*laneBits=*/4};

/// What lane `lane` gets as element `element` of access `regs` if all lanes
/// address `addresses`. CDNA4 ISA, DS_READ_B64_TR_B16: of 16 lanes, element e
/// of lane j is element j % 4 of what lane 4 e + j / 4 addresses.
static Coord transposedRead(const TileLayout &addresses,
                            llvm::ArrayRef<int64_t> regs, int lane,
                            int element) {
  int within = lane % 16;
  int from = lane - within + 4 * element + within / 4;
  Coord first = addresses.map(regs[0], from, 0);
  return {first[0], first[1] + within % 4};
}

TEST(TransposedRead, GivesLanesTheLayoutThatIsWanted) {
  for (const target::MatrixInstr &inst : target::allMatrixInstrs()) {
    if (inst.waveSize != 64 ||
        elementTypeInfo(inst.type).bytes() != kRead.elementBytes)
      continue;
    // V^T as the left factor, keys contracted in the order that the scores'
    // accumulator leaves.
    InstrLayouts layouts = inst.layouts();
    std::optional<DotLayouts> scores =
        chooseDotLayouts(layouts, 64, 64, 4 * inst.n, {4, 1, 1}, nullptr);
    ASSERT_TRUE(scores.has_value());
    std::optional<DotLayouts> output;
    for (std::optional<TileLayout> p = scores->acc; p && !output;
         p = p->withTallerUnit())
      output = chooseDotLayouts(layouts, 128, 64, 4 * inst.n, {4, 1, 1}, &*p);
    ASSERT_TRUE(output.has_value()) << inst.name.str();
    TileLayout wanted = output->a.transposed();
    LdsRead read = chooseLdsRead(wanted, 2, &kRead);
    ASSERT_TRUE(read.transposed) << wanted.str();
    EXPECT_TRUE(read.addresses.isExact());
    EXPECT_EQ(read.addresses.grid(), wanted.grid());
    ASSERT_EQ(read.accesses.width, 4);
    for (const auto &regs : read.accesses.regs)
      for (int lane = 0; lane < 64; ++lane)
        for (int element = 0; element < 4; ++element)
          ASSERT_EQ(transposedRead(read.addresses, regs, lane, element),
                    wanted.map(regs[element], lane, 0))
              << inst.name.str() << " lane " << lane;
  }
}

TEST(TransposedRead, LeavesRowsToPlainReads) {
  TileLayout rows({{0, 1}, {0, 2}, {0, 4}},
                  {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 8}}, {});
  EXPECT_FALSE(chooseLdsRead(rows, 2, &kRead).transposed);
  EXPECT_EQ(chooseLdsRead(rows, 2, &kRead).addresses, rows);
  EXPECT_FALSE(transposedReadAddresses(rows, kRead).has_value());
}

TEST(TransposedRead, NeedsTheInstruction) {
  TileLayout columns({{1, 0}, {2, 0}},
                     {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}, {});
  EXPECT_FALSE(chooseLdsRead(columns, 2, nullptr).transposed);
  EXPECT_TRUE(chooseLdsRead(columns, 2, &kRead).transposed);
  // Too few registers, or lanes that do not follow one another in memory.
  TileLayout few({{1, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {2, 0}, {4, 0}},
                 {});
  EXPECT_FALSE(transposedReadAddresses(few, kRead).has_value());
  TileLayout apart({{1, 0}, {2, 0}},
                   {{0, 2}, {0, 1}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}, {});
  EXPECT_FALSE(transposedReadAddresses(apart, kRead).has_value());
}

TEST(DirectCopy, FillsLdsInTheOrderOfLanes) {
  for (int64_t rows : {16, 32, 64, 128})
    for (int64_t columns : {32, 64, 128, 256, 512})
      for (int waveBits : {0, 1, 2, 3}) {
        TileLayout layout =
            chooseDirectCopyLayout(rows, columns, 2, 6, waveBits);
        EXPECT_EQ(layout.shape(), (Coord{int32_t(rows), int32_t(columns)}));
        EXPECT_TRUE(layout.isExact());
        EXPECT_EQ(layout.fragments(), 1);
        WideAccesses accesses = wideAccesses(layout, 8);
        ASSERT_EQ(accesses.width, 8);
        std::set<int64_t> filled;
        for (const auto &regs : accesses.regs)
          for (int wave = 0; wave < 1 << waveBits; ++wave) {
            auto place = [&](int lane) {
              Coord at = layout.map(regs[0], lane, wave);
              return (at[0] * columns + at[1]) * 2;
            };
            int64_t first = place(0);
            for (int lane = 0; lane < 64; ++lane) {
              if ((lane & layout.replicatedBits(Space::Lane)) == 0)
                ASSERT_EQ(place(lane), first + 16 * lane);
              filled.insert(place(lane));
            }
          }
        EXPECT_EQ(int64_t(filled.size()), rows * columns / 8);
      }
}

TEST(Swizzle, ShiftsLeftByWhatIsNegative) {
  Swizzle swizzle;
  swizzle.chunks = 16;
  swizzle.shifts = {-2};
  EXPECT_EQ(swizzle.rowXor(1), 4);
  EXPECT_EQ(swizzle.rowXor(3), 12);
  EXPECT_EQ(swizzle.rowXor(4), 0);
}

TEST(Swizzle, SparesTransposingReadsConflicts) {
  // Four rows of a block, 32 columns: 256 bytes, one clock of 64 banks.
  TileLayout columns({{1, 0}, {2, 0}},
                     {{0, 1}, {0, 2}, {0, 8}, {0, 4}, {0, 16}, {4, 0}}, {});
  TileLayout addresses = chooseLdsRead(columns, 2, &kRead).addresses;
  for (int64_t row : {32, 64, 128, 256}) {
    LdsShape shape = {64, row, 2, target::kLdsCdna4, /*wholeChunks=*/true};
    LdsAccess read = {addresses, /*write=*/false};
    Swizzle swizzle = chooseSwizzle(shape, {read});
    EXPECT_EQ(swizzle.lineRowBits(2 * row), 0);
    EXPECT_EQ(swizzle.halfBit, -1);
    EXPECT_EQ(bankConflicts(shape, swizzle, read), 0) << row;
  }
}
