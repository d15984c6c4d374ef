//===- TileLayoutTest.cpp - the layout algebra ----------------------------===//
//
// Every question that the algebra answers from bases is answered a second time
// by enumerating elements.
//
//===----------------------------------------------------------------------===//

#include "LayoutTest.h"
#include <map>
#include <set>

using namespace fovea;
using namespace fovea::layout;
using namespace fovea::test;

TEST(TileLayout, AppliesBasesByXor) {
  Bases bases = {{1, 0}, {3, 4}, {0, 4}};
  EXPECT_EQ(applyBases(bases, 0), (Coord{0, 0}));
  EXPECT_EQ(applyBases(bases, 0b011), (Coord{2, 4}));
  EXPECT_EQ(applyBases(bases, 0b111), (Coord{2, 0}));
}

TEST(TileLayout, NumbersFragmentsRowByRow) {
  TileLayout layout({{1, 0}}, {{0, 1}, {0, 2}}, {}, {3, 2});
  EXPECT_EQ(layout.unit(), (Coord{2, 4}));
  EXPECT_EQ(layout.shape(), (Coord{6, 8}));
  EXPECT_EQ(layout.fragments(), 6);
  EXPECT_EQ(layout.fragmentOrigin(0), (Coord{0, 0}));
  EXPECT_EQ(layout.fragmentOrigin(1), (Coord{0, 4}));
  EXPECT_EQ(layout.fragmentOrigin(4), (Coord{4, 0}));
}

TEST(TileLayout, TransposesElementsAndFragments) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    TileLayout layout = randomLayout(random, 4, 3, 3, 1, round % 2, 1, {3, 2});
    TileLayout turned = layout.transposed();
    EXPECT_EQ(turned.transposed(), layout);
    for (int reg = 0; reg < registersOf(layout); ++reg) {
      int per = layout.elementsPerFragment();
      int other = layout.transposeFragment(reg / per) * per + reg % per;
      for (uint32_t lane = 0; lane < 8; ++lane) {
        Coord at = elementAt(layout, reg, lane, 1);
        EXPECT_EQ(elementAt(turned, other, lane, 1), (Coord{at[1], at[0]}));
      }
    }
  }
}

TEST(TileLayout, KnowsWhatIsExact) {
  // Each element once.
  EXPECT_TRUE(TileLayout({{1, 0}}, {{0, 1}, {0, 2}}, {}).isExact());
  // Sums of bits, still independent.
  EXPECT_TRUE(TileLayout({{1, 1}}, {{0, 1}, {0, 2}}, {}).isExact());
  // Replicated over a lane bit and a wave bit.
  EXPECT_TRUE(TileLayout({{1, 0}}, {{0, 1}, {0, 0}}, {{0, 0}}).isExact());
  // Twice the same basis: half of the unit is held by nobody.
  EXPECT_FALSE(TileLayout({{1, 0}, {1, 0}}, {{0, 2}}, {}).isExact());
  // A hole: columns 1 and 3 are missing.
  EXPECT_FALSE(TileLayout({{1, 0}}, {{0, 2}}, {}).isExact());
  // As many bases as bits, but dependent.
  EXPECT_FALSE(TileLayout({{1, 0}, {0, 1}}, {{1, 1}, {0, 2}}, {}).isExact());
}

TEST(TileLayout, ExactMeansEveryElementEquallyOften) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    int replicated = round % 3;
    TileLayout layout =
        randomLayout(random, 4, 4, 4, 1, round % 2, replicated, {1, 2});
    ASSERT_TRUE(layout.isExact()) << layout.str();
    for (int count : holders(layout))
      ASSERT_EQ(count, 1 << replicated) << layout.str();
    // With one basis replaced by another nothing is exact any more.
    Bases registers(layout.registers()), lanes(layout.lanes());
    if (lanes[0] == Coord{0, 0} || lanes[1] == Coord{0, 0})
      continue;
    lanes[0] = lanes[1];
    EXPECT_FALSE(TileLayout(registers, lanes, Bases(layout.waves())).isExact());
  }
}

TEST(TileLayout, InverseFindsAHolderOfEveryElement) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    TileLayout layout =
        randomLayout(random, 4, 5, 5, 2, round % 2, round % 3, {1, 1});
    InverseLayout inverse(layout);
    Coord unit = layout.unit();
    for (int32_t row = 0; row < unit[0]; ++row)
      for (int32_t column = 0; column < unit[1]; ++column) {
        std::optional<Holder> holder = inverse.find({row, column});
        ASSERT_TRUE(holder) << layout.str();
        ASSERT_EQ(layout.map(holder->reg, holder->lane, holder->wave),
                  (Coord{row, column}));
        // Of several holders the first is named.
        ASSERT_EQ(holder->lane & layout.replicatedBits(Space::Lane), 0u);
        ASSERT_EQ(holder->wave & layout.replicatedBits(Space::Wave), 0u);
      }
  }
}

TEST(TileLayout, InverseSaysThatNobodyHoldsAnElement) {
  InverseLayout inverse(TileLayout({{1, 0}}, {{0, 2}}, {}));
  EXPECT_TRUE(inverse.find({1, 2}));
  EXPECT_FALSE(inverse.find({0, 1}));
  EXPECT_FALSE(inverse.find({4, 0}));
}

TEST(TileLayout, CountsContiguousColumns) {
  EXPECT_EQ(
      TileLayout({{0, 1}, {0, 2}, {1, 0}}, {}, {}).contiguousColumnsLog2(), 2);
  EXPECT_EQ(TileLayout({{1, 0}, {0, 1}}, {}, {}).contiguousColumnsLog2(), 0);
  EXPECT_EQ(TileLayout({{0, 1}, {0, 4}}, {}, {}).contiguousColumnsLog2(), 1);
}

TEST(TileLayout, PrintsAsTheAttributeIsWritten) {
  TileLayout layout({{1, 0}}, {{0, 1}, {2, 0}}, {{0, 0}}, {2, 1});
  EXPECT_EQ(layout.str(), "reg = [[1, 0]], lane = [[0, 1], [2, 0]], "
                          "wave = [[0, 0]], grid = [2, 1]");
}

//===----------------------------------------------------------------------===//
// Reduction of rows
//===----------------------------------------------------------------------===//

/// Checks `layout.reducedRows(groups)` by enumeration: each lane's reduced
/// register stands for the rows, of its column, that lanes of its group hold.
static void checkReduced(const TileLayout &layout, int groups) {
  std::optional<TileLayout> reduced = layout.reducedRows(groups);
  ASSERT_TRUE(reduced) << layout.str() << " to " << groups;
  Coord shape = layout.shape();
  ASSERT_EQ(reduced->shape(), (Coord{groups, shape[1]}));
  ASSERT_EQ(numberOf(*reduced, Space::Lane), numberOf(layout, Space::Lane));
  ASSERT_EQ(numberOf(*reduced, Space::Wave), numberOf(layout, Space::Wave));
  // Rows that went into (group, column), by lane; a fold across lanes combines
  // those that differ in rowLaneBits.
  uint32_t folded = 0;
  if (groups == 1)
    for (int bit : layout.rowLaneBits())
      folded |= 1u << bit;
  std::map<std::pair<int, int>, std::set<int>> rowsOf;
  for (uint32_t wave = 0; wave < numberOf(layout, Space::Wave); ++wave)
    for (uint32_t lane = 0; lane < numberOf(layout, Space::Lane); ++lane) {
      std::set<int> columns;
      for (int reg = 0; reg < registersOf(*reduced); ++reg) {
        Coord at = elementAt(*reduced, reg, lane, wave);
        // No column twice in a lane.
        ASSERT_TRUE(columns.insert(at[1]).second) << layout.str();
        std::set<int> rows;
        for (uint32_t other = 0; other < numberOf(layout, Space::Lane);
             ++other) {
          if ((other & ~folded) != (lane & ~folded))
            continue;
          for (int from = 0; from < registersOf(layout); ++from) {
            Coord element = elementAt(layout, from, other, wave);
            if (element[1] == at[1])
              rows.insert(element[0]);
          }
        }
        ASSERT_FALSE(rows.empty()) << layout.str();
        auto [it, isNew] = rowsOf.try_emplace({at[0], at[1]}, rows);
        // Lanes of one group hold the same rows.
        ASSERT_EQ(it->second, rows) << layout.str() << " lane " << lane;
      }
    }
  // Groups split the rows of each column.
  for (int column = 0; column < shape[1]; ++column) {
    std::set<int> all;
    size_t sum = 0;
    for (int group = 0; group < groups; ++group) {
      auto it = rowsOf.find({group, column});
      ASSERT_NE(it, rowsOf.end()) << layout.str();
      all.insert(it->second.begin(), it->second.end());
      sum += it->second.size();
    }
    ASSERT_EQ(all.size(), size_t(shape[0])) << layout.str();
    ASSERT_EQ(sum, size_t(shape[0])) << layout.str();
  }
}

TEST(ReducedRows, MatchesEnumeration) {
  std::mt19937 random(4);
  int checked = 0;
  for (int round = 0; round < 300; ++round) {
    TileLayout layout = randomLayout(random, 3, 4, 4, 1, false, round % 3,
                                     {1 + round % 3, 1 + round % 2});
    bool rowsOverWaves = false;
    for (const Coord &basis : layout.waves())
      rowsOverWaves |= basis[0] != 0;
    if (rowsOverWaves) {
      EXPECT_FALSE(layout.reducedRows(1)) << layout.str();
      continue;
    }
    ++checked;
    checkReduced(layout, 1);
    if (HasFatalFailure())
      return;
    checkReduced(layout, 1 << layout.rowLaneBits().size());
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(checked, 100);
}

TEST(ReducedRows, MatchesEnumerationForEveryAccumulator) {
  for (const target::MatrixInstr &row : target::allMatrixInstrs())
    for (int waves : {1, 2, 4, 8}) {
      auto dots = forwardDots(row, 96, waves * row.n, 64, waves);
      ASSERT_TRUE(dots);
      for (const TileLayout &acc : {dots->scores.acc, dots->values.acc}) {
        checkReduced(acc, 1);
        checkReduced(acc, row.waveSize / row.n);
      }
    }
}

TEST(ReducedRows, RefusesWhatDoesNotFold) {
  TileLayout layout({{1, 0}}, {{0, 1}, {2, 0}}, {});
  EXPECT_TRUE(layout.reducedRows(2));
  EXPECT_FALSE(layout.reducedRows(4)) << "there are two groups of lanes";
  EXPECT_FALSE(layout.reducedRows(3));
  EXPECT_FALSE(TileLayout({{1, 1}}, {{0, 1}}, {}).reducedRows(1))
      << "a basis mixes the dimensions";
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// The cheapest kind by enumeration. Registers are named in the code, so a
/// register move takes the same one in every lane.
static Conversion::Kind cheapest(const TileLayout &from, const TileLayout &to) {
  using Kind = Conversion::Kind;
  if (from.shape() != to.shape())
    return Kind::Impossible;
  int columns = to.shape()[1];
  uint32_t lanes = numberOf(to, Space::Lane), waves = numberOf(to, Space::Wave);
  auto key = [&](Coord at) { return at[0] * columns + at[1]; };
  // Elements that each wave holds.
  std::vector<std::set<int>> held(waves);
  for (uint32_t wave = 0; wave < waves; ++wave)
    for (uint32_t lane = 0; lane < lanes; ++lane)
      for (int reg = 0; reg < registersOf(from); ++reg)
        held[wave].insert(key(elementAt(from, reg, lane, wave)));
  auto sameEverywhere = [&](int source, int reg) {
    for (uint32_t wave = 0; wave < waves; ++wave)
      for (uint32_t lane = 0; lane < lanes; ++lane)
        if (elementAt(from, source, lane, wave) !=
            elementAt(to, reg, lane, wave))
          return false;
    return true;
  };
  Kind kind = Kind::Identity;
  for (int reg = 0; reg < registersOf(to); ++reg) {
    if (reg < registersOf(from) && sameEverywhere(reg, reg))
      continue;
    kind = std::max(kind, Kind::Register);
    bool found = false;
    for (int source = 0; source < registersOf(from) && !found; ++source)
      found = sameEverywhere(source, reg);
    if (found)
      continue;
    kind = std::max(kind, Kind::Lane);
    for (uint32_t wave = 0; wave < waves; ++wave)
      for (uint32_t lane = 0; lane < lanes; ++lane)
        if (!held[wave].count(key(elementAt(to, reg, lane, wave))))
          return Kind::Shared;
  }
  return kind;
}

/// Every lane gets the right element of the right lane of its own wave, and no
/// two classes of lanes could have been one.
static void checkMoves(const Conversion &conversion, const TileLayout &from,
                       const TileLayout &to) {
  unsigned classes = 1u << conversion.parities.size();
  ASSERT_EQ(conversion.moves.size(), registersOf(to) * classes);
  auto parity = [](uint32_t bits) { return llvm::popcount(bits) % 2; };
  std::vector<int> members(classes, 0);
  for (uint32_t wave = 0; wave < numberOf(to, Space::Wave); ++wave)
    for (uint32_t lane = 0; lane < numberOf(to, Space::Lane); ++lane) {
      unsigned laneClass = 0;
      for (auto [bit, mask] : llvm::enumerate(conversion.parities))
        laneClass |=
            unsigned(parity(lane & mask.lanes) ^ parity(wave & mask.waves))
            << bit;
      ++members[laneClass];
      for (int reg = 0; reg < registersOf(to); ++reg) {
        Conversion::Move move = conversion.move(reg, laneClass);
        ASSERT_LT(move.source, registersOf(from));
        ASSERT_LT(lane ^ move.laneXor, numberOf(to, Space::Lane));
        ASSERT_EQ(elementAt(from, move.source, lane ^ move.laneXor, wave),
                  elementAt(to, reg, lane, wave))
            << "from <" << from.str() << "> to <" << to.str() << ">: register "
            << reg << " of lane " << lane << " of wave " << wave;
      }
    }
  auto same = [&](unsigned x, unsigned y) {
    for (int reg = 0; reg < registersOf(to); ++reg)
      if (conversion.move(reg, x).source != conversion.move(reg, y).source ||
          conversion.move(reg, x).laneXor != conversion.move(reg, y).laneXor)
        return false;
    return true;
  };
  for (unsigned laneClass = 0; laneClass < classes; ++laneClass) {
    EXPECT_EQ(members[laneClass], members[0]);
    for (unsigned other = 0; other < laneClass; ++other)
      EXPECT_FALSE(same(laneClass, other))
          << "from <" << from.str() << "> to <" << to.str() << ">";
  }
}

static void checkConversion(const TileLayout &from, const TileLayout &to,
                            std::map<Conversion::Kind, int> &seen) {
  Conversion conversion = classifyConversion(from, to);
  Conversion::Kind expected = cheapest(from, to);
  ASSERT_EQ(int(conversion.kind), int(expected))
      << "from <" << from.str() << "> to <" << to.str() << ">";
  ++seen[expected];
  if (expected == Conversion::Kind::Lane)
    checkMoves(conversion, from, to);
  else
    EXPECT_TRUE(conversion.moves.empty() && conversion.parities.empty());
  if (expected > Conversion::Kind::Register) {
    EXPECT_TRUE(conversion.source.empty());
    return;
  }
  ASSERT_EQ(int(conversion.source.size()), registersOf(to));
  for (int reg = 0; reg < registersOf(to); ++reg)
    for (uint32_t wave = 0; wave < numberOf(to, Space::Wave); ++wave)
      for (uint32_t lane = 0; lane < numberOf(to, Space::Lane); ++lane)
        ASSERT_EQ(elementAt(from, conversion.source[reg], lane, wave),
                  elementAt(to, reg, lane, wave));
}

/// The layout with some of its bases exchanged, so that all kinds turn up.
static TileLayout disturb(std::mt19937 &random, const TileLayout &layout) {
  std::array<Bases, 3> bases = {Bases(layout.registers()),
                                Bases(layout.lanes()), Bases(layout.waves())};
  auto pick = [&](int space) -> Coord & {
    return bases[space][random() % bases[space].size()];
  };
  // Within registers, within lanes, registers with lanes, lanes with waves.
  static constexpr std::pair<int, int> exchanges[] = {
      {0, 0}, {1, 1}, {0, 1}, {1, 2}, {0, 2}};
  auto [x, y] = exchanges[random() % 5];
  std::swap(pick(x), pick(y));
  return TileLayout(bases[0], bases[1], bases[2], layout.grid());
}

TEST(Conversion, MatchesEnumeration) {
  std::mt19937 random(5);
  std::map<Conversion::Kind, int> seen;
  for (int round = 0; round < 1500; ++round) {
    bool mixed = round % 2;
    int replicated = round % 3;
    TileLayout from = randomLayout(random, 3, 3, 3, 1, mixed, replicated,
                                   {1 + round % 2, 1 + round % 3});
    TileLayout to = disturb(random, from);
    if (to.unit() != from.unit())
      continue;
    checkConversion(from, to, seen);
    if (HasFatalFailure())
      return;
    TileLayout other =
        randomLayout(random, 3, 3, 3, 1, mixed, replicated, from.grid());
    checkConversion(from, other, seen);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(seen[Conversion::Kind::Identity], 20);
  EXPECT_GT(seen[Conversion::Kind::Register], 20);
  EXPECT_GT(seen[Conversion::Kind::Lane], 20);
  EXPECT_GT(seen[Conversion::Kind::Shared], 20);
}

TEST(Conversion, MatchesEnumerationBetweenUnitsOfDifferentSize) {
  std::mt19937 random(6);
  std::map<Conversion::Kind, int> seen;
  // The same 16x16 tile as one unit, or as a grid of smaller ones.
  const std::pair<Coord, Coord> cuts[] = {
      {{4, 4}, {1, 1}}, {{3, 4}, {2, 1}}, {{4, 3}, {1, 2}}, {{3, 3}, {2, 2}}};
  for (int round = 0; round < 600; ++round) {
    auto layoutOf = [&](const std::pair<Coord, Coord> &cut) {
      return randomLayout(random, cut.first[0], cut.first[1], 2, 1, round % 2,
                          0, cut.second);
    };
    checkConversion(layoutOf(cuts[random() % 4]), layoutOf(cuts[random() % 4]),
                    seen);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(seen[Conversion::Kind::Lane], 20);
  // A unit split in registers only is the same distribution.
  TileLayout whole({{0, 1}, {0, 4}}, {{1, 0}, {0, 2}}, {});
  TileLayout halves({{0, 1}}, {{1, 0}, {0, 2}}, {}, {1, 2});
  EXPECT_EQ(whole.shape(), halves.shape());
  EXPECT_EQ(classifyConversion(whole, halves).kind, Conversion::Kind::Identity);
  EXPECT_EQ(classifyConversion(halves, whole).kind, Conversion::Kind::Identity);
}

TEST(Conversion, CountsRepeatedRegisters) {
  TileLayout once({{1, 0}}, {{0, 1}}, {});
  TileLayout twice({{0, 0}, {1, 0}}, {{0, 1}}, {});
  Conversion repeat = classifyConversion(once, twice);
  EXPECT_EQ(repeat.kind, Conversion::Kind::Register);
  EXPECT_EQ(repeat.source, (llvm::SmallVector<int>{0, 0, 1, 1}));
  Conversion drop = classifyConversion(twice, once);
  EXPECT_EQ(drop.kind, Conversion::Kind::Register);
  EXPECT_EQ(drop.source, (llvm::SmallVector<int>{0, 2}));
}

// What gfx11 needs between its products: the halves of a wave hold eight rows
// each and shall both hold all sixteen.
TEST(Conversion, SpreadsHalvesOfAWaveOverBoth) {
  Bases columns = {{0, 1}, {0, 2}, {0, 4}, {0, 8}};
  Bases lower = columns, both = columns;
  lower.push_back({8, 0});
  both.push_back({0, 0});
  TileLayout from({{1, 0}, {2, 0}, {4, 0}}, lower, {});
  TileLayout to({{1, 0}, {2, 0}, {4, 0}, {8, 0}}, both, {});
  Conversion conversion = classifyConversion(from, to);
  ASSERT_EQ(conversion.kind, Conversion::Kind::Lane);
  ASSERT_EQ(conversion.parities.size(), 1u);
  EXPECT_EQ(conversion.parities[0].lanes, 16u);
  EXPECT_EQ(conversion.parities[0].waves, 0u);
  for (int reg = 0; reg < 16; ++reg)
    for (unsigned upper : {0, 1}) {
      Conversion::Move move = conversion.move(reg, upper);
      EXPECT_EQ(move.source, reg % 8);
      EXPECT_EQ(move.laneXor, reg / 8 == int(upper) ? 0u : 16u);
    }
  // The way back drops what the other half holds.
  Conversion back = classifyConversion(to, from);
  ASSERT_EQ(back.kind, Conversion::Kind::Lane);
  EXPECT_EQ(back.move(3, 0).source, 3);
  EXPECT_EQ(back.move(3, 1).source, 11);
  EXPECT_EQ(back.move(3, 1).laneXor, 0u);
}

TEST(Conversion, NeedsOneShape) {
  TileLayout small({{1, 0}}, {{0, 1}}, {}),
      wide({{1, 0}}, {{0, 1}}, {}, {1, 2});
  EXPECT_EQ(classifyConversion(small, wide).kind, Conversion::Kind::Impossible);
}
