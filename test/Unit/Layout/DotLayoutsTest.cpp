//===- DotLayoutsTest.cpp - layouts of matrix products --------------------===//
//
// Computes products the way the lowering of attn.dot does, instruction by
// instruction, on integers, with the hardware's operand layouts written down a
// second time from AMD's documents.
//
//===----------------------------------------------------------------------===//

#include "LayoutTest.h"
#include <functional>
#include <limits>

using namespace fovea;
using namespace fovea::layout;
using namespace fovea::test;
using target::MatrixFamily;
using target::MatrixInstr;

namespace {

/// Where an instruction keeps its operands, written from AMD's instruction set
/// documents: "Matrix element storage" of CDNA1 to CDNA4, "Wave matrix multiply
/// accumulate" of RDNA3 and RDNA4. Lanes come in groups of as many as D has
/// columns. gfx1250 has no document yet: its K = 32 is two of gfx12's K = 16.
struct Hardware {
  const MatrixInstr &row;

  int lanes() const { return row.waveSize; }
  int groups() const { return lanes() / row.n; }
  bool repeats() const { return row.feature == target::kWmmaRepeated; }
  bool isByLanes() const { return row.family == MatrixFamily::Lanes; }
  int factorsA() const {
    return row.m * row.k / (isByLanes() ? 1 : repeats() ? 16 : lanes());
  }
  int factorsB() const { return row.k * row.n / (repeats() ? 16 : lanes()); }
  int sums() const { return row.m * row.n / lanes(); }

  /// Place along the contraction of an element of a lane's A or B.
  int k(int lane, int element) const {
    int group = lane / row.n;
    if (repeats())
      return element;
    if (row.family == MatrixFamily::Mfma)
      return group * factorsA() + element;
    return 16 * (element / 8) + 8 * group + element % 8;
  }
  Coord a(int lane, int element) const {
    if (isByLanes())
      return {element / row.k, element % row.k};
    return {lane % row.m, k(lane, element)};
  }
  Coord b(int lane, int element) const {
    return {isByLanes() ? element : k(lane, element), lane % row.n};
  }
  Coord d(int lane, int reg) const {
    int group = lane / row.n;
    if (repeats())
      return {2 * reg + group, lane % row.n};
    if (row.family == MatrixFamily::Mfma)
      return {4 * (group + groups() * (reg / 4)) + reg % 4, lane % row.n};
    return {8 * group + reg, lane % row.n};
  }
};

using Registers = std::vector<int>;           ///< of one lane
using WaveRegisters = std::vector<Registers>; ///< by lane

/// D += A B by the hardware's layouts; `first` is the first register used.
/// Lanes that repeat an element must agree on it.
void execute(const Hardware &hardware, const WaveRegisters &a, int firstA,
             const WaveRegisters &b, int firstB, WaveRegisters &d, int firstD) {
  const MatrixInstr &row = hardware.row;
  constexpr int kUnset = std::numeric_limits<int>::min();
  std::vector<int> left(row.m * row.k, kUnset), right(row.k * row.n, kUnset);
  auto give = [](int &element, int value) {
    EXPECT_TRUE(element == kUnset || element == value)
        << "lanes differ in what they should repeat";
    element = value;
  };
  for (int lane = 0; lane < hardware.lanes(); ++lane) {
    for (int element = 0; element < hardware.factorsA(); ++element) {
      Coord at = hardware.a(lane, element);
      give(left[at[0] * row.k + at[1]], a[lane][firstA + element]);
    }
    for (int element = 0; element < hardware.factorsB(); ++element) {
      Coord at = hardware.b(lane, element);
      give(right[at[0] * row.n + at[1]], b[lane][firstB + element]);
    }
  }
  for (int lane = 0; lane < hardware.lanes(); ++lane)
    for (int reg = 0; reg < hardware.sums(); ++reg) {
      Coord at = hardware.d(lane, reg);
      int sum = 0;
      for (int k = 0; k < row.k; ++k)
        sum += left[at[0] * row.k + k] * right[k * row.n + at[1]];
      d[lane][firstD + reg] += sum;
    }
}

struct Matrix {
  int rows, columns;
  std::vector<int> elements;
  Matrix(int rows, int columns)
      : rows(rows), columns(columns), elements(size_t(rows) * columns) {}
  int &at(int r, int c) { return elements.at(size_t(r) * columns + c); }
  int at(int r, int c) const { return elements.at(size_t(r) * columns + c); }
};

Matrix randomMatrix(std::mt19937 &random, int rows, int columns) {
  Matrix matrix(rows, columns);
  for (int &element : matrix.elements)
    element = int(random() % 17) - 8;
  return matrix;
}

Matrix multiply(const Matrix &a, const Matrix &b) {
  Matrix product(a.rows, b.columns);
  for (int i = 0; i < a.rows; ++i)
    for (int k = 0; k < a.columns; ++k)
      for (int j = 0; j < b.columns; ++j)
        product.at(i, j) += a.at(i, k) * b.at(k, j);
  return product;
}

/// What the lanes of a wave hold of a matrix.
WaveRegisters distribute(const TileLayout &layout, const Matrix &matrix,
                         int wave) {
  int lanes = numberOf(layout, Space::Lane);
  WaveRegisters result(lanes, Registers(registersOf(layout)));
  for (int lane = 0; lane < lanes; ++lane)
    for (int reg = 0; reg < registersOf(layout); ++reg) {
      Coord at = elementAt(layout, reg, lane, wave);
      result[lane][reg] = matrix.at(at[0], at[1]);
    }
  return result;
}

/// One wave's part of the product, in the order of the lowering of attn.dot
/// (lib/Conversion/AttnToLanes/ComputeToLanes.cpp, LowerDot).
WaveRegisters lowerDot(const MatrixInstr &row, const DotLayouts &layouts,
                       const WaveRegisters &a, const WaveRegisters &b) {
  Hardware hardware = {row};
  WaveRegisters sums(row.waveSize, Registers(registersOf(layouts.acc)));
  int widthA = row.a.elementsPerFragment(),
      widthB = row.b.elementsPerFragment();
  int perA = layouts.a.elementsPerFragment(),
      perB = layouts.b.elementsPerFragment(),
      perD = layouts.acc.elementsPerFragment();
  EXPECT_EQ(perA / widthA, perB / widthB);
  EXPECT_EQ(perD, row.d.elementsPerFragment());
  EXPECT_EQ(layouts.a.grid()[1], layouts.b.grid()[0]);
  EXPECT_EQ(layouts.a.grid()[0], layouts.acc.grid()[0]);
  EXPECT_EQ(layouts.b.grid()[1], layouts.acc.grid()[1]);
  for (int k = 0; k < layouts.a.grid()[1]; ++k)
    for (int step = 0; step < perA / widthA; ++step)
      for (int m = 0; m < layouts.acc.grid()[0]; ++m)
        for (int n = 0; n < layouts.acc.grid()[1]; ++n)
          execute(hardware, a,
                  (m * layouts.a.grid()[1] + k) * perA + step * widthA, b,
                  (k * layouts.b.grid()[1] + n) * perB + step * widthB, sums,
                  (m * layouts.acc.grid()[1] + n) * perD);
  return sums;
}

class InstrTest : public testing::TestWithParam<MatrixInstr> {
protected:
  const MatrixInstr &row = GetParam();
  std::mt19937 random{7};

  /// Expects that `have` holds a product as `layout` says.
  void expectHeld(const TileLayout &layout, const WaveRegisters &have,
                  const Matrix &product, int wave) {
    EXPECT_EQ(distribute(layout, product, wave), have);
  }

  void checkProduct(int m, int k, int n, int waves) {
    SCOPED_TRACE(testing::Message()
                 << m << "x" << k << "x" << n << " over " << waves << " waves");
    auto layouts =
        chooseDotLayouts(row.layouts(), m, k, n, WaveSplit{waves}, nullptr);
    ASSERT_TRUE(layouts);
    EXPECT_EQ(layouts->a.shape(), (Coord{m, k}));
    EXPECT_EQ(layouts->b.shape(), (Coord{k, n}));
    EXPECT_EQ(layouts->acc.shape(), (Coord{m, n}));
    for (const TileLayout &layout : {layouts->a, layouts->b, layouts->acc})
      EXPECT_TRUE(layout.isExact()) << layout.str();
    EXPECT_EQ(replicas(layouts->acc), 1);
    EXPECT_EQ(replicas(layouts->b), replicas(row.b));
    EXPECT_EQ(replicas(layouts->a), waves * replicas(row.a))
        << "each wave reads all of A";
    Matrix a = randomMatrix(random, m, k), b = randomMatrix(random, k, n);
    Matrix product = multiply(a, b);
    for (int wave = 0; wave < waves; ++wave)
      expectHeld(layouts->acc,
                 lowerDot(row, *layouts, distribute(layouts->a, a, wave),
                          distribute(layouts->b, b, wave)),
                 product, wave);
  }
};

/// What lanes hold after a conversion inside a wave.
WaveRegisters convert(const Conversion &conversion, const WaveRegisters &have,
                      uint32_t wave) {
  auto parity = [](uint32_t bits) { return llvm::popcount(bits) & 1; };
  WaveRegisters result(have.size());
  for (uint32_t lane = 0; lane < have.size(); ++lane) {
    unsigned laneClass = 0;
    for (auto [bit, mask] : llvm::enumerate(conversion.parities))
      laneClass |= (parity(lane & mask.lanes) ^ parity(wave & mask.waves))
                   << bit;
    for (int source : conversion.source)
      result[lane].push_back(have[lane][source]);
    for (size_t at = laneClass; at < conversion.moves.size();
         at += size_t(1) << conversion.parities.size()) {
      auto [source, laneXor] = conversion.moves[at];
      result[lane].push_back(have[lane ^ laneXor][source]);
    }
  }
  return result;
}
} // namespace

TEST_P(InstrTest, TableHasTheHardwaresLayouts) {
  Hardware hardware = {row};
  ASSERT_EQ(row.a.elementsPerFragment(), hardware.factorsA());
  ASSERT_EQ(row.b.elementsPerFragment(), hardware.factorsB());
  ASSERT_EQ(row.d.elementsPerFragment(), hardware.sums());
  for (int lane = 0; lane < hardware.lanes(); ++lane) {
    for (int element = 0; element < hardware.factorsA(); ++element)
      EXPECT_EQ(row.a.map(element, lane, 0), hardware.a(lane, element));
    for (int element = 0; element < hardware.factorsB(); ++element)
      EXPECT_EQ(row.b.map(element, lane, 0), hardware.b(lane, element));
    for (int reg = 0; reg < hardware.sums(); ++reg)
      EXPECT_EQ(row.d.map(reg, lane, 0), hardware.d(lane, reg));
  }
}

TEST_P(InstrTest, TableLayoutsAreExactAndInvert) {
  const std::pair<const TileLayout *, Coord> operands[] = {
      {&row.a, {row.m, row.k}},
      {&row.b, {row.k, row.n}},
      {&row.d, {row.m, row.n}}};
  for (auto [layout, shape] : operands) {
    EXPECT_EQ(layout->shape(), shape);
    EXPECT_TRUE(layout->isExact());
    InverseLayout inverse(*layout);
    for (int r = 0; r < shape[0]; ++r)
      for (int c = 0; c < shape[1]; ++c) {
        auto holder = inverse.find({r, c});
        ASSERT_TRUE(holder);
        EXPECT_EQ(layout->map(holder->reg, holder->lane, holder->wave),
                  (Coord{r, c}));
      }
  }
}

TEST_P(InstrTest, ComputesTheProduct) {
  for (int waves : {1, 2, 4, 8})
    for (int m : {1, 2, 3})
      for (int k : {1, 3, 5})
        for (int n : {1, 2, 3}) {
          checkProduct(m * row.m, k * contractionUnit(row.layouts()),
                       n * row.n * waves, waves);
          if (HasFailure())
            return;
        }
}

// But for gfx11, whose lanes hold half of what they have to repeat.
TEST_P(InstrTest, SecondProductTakesTheFirstsAccumulatorAsItIs) {
  for (int waves : {1, 2, 4, 8})
    for (int headDim : {16, 40, 64, 80, 96, 128, 192, 256})
      for (int blockN : {32, 64, 128}) {
        SCOPED_TRACE(testing::Message()
                     << "head_dim " << headDim << ", block_n " << blockN << ", "
                     << waves << " waves");
        int blockM = 2 * row.n * waves;
        auto dots = forwardDots(row, headDim, blockM, blockN, waves);
        ASSERT_TRUE(dots);
        Conversion conversion =
            classifyConversion(dots->scores.acc, dots->values.b);
        // At most, several units of the scores become one.
        if (row.feature == target::kWmmaRepeated)
          EXPECT_EQ(conversion.kind, Conversion::Kind::Lane);
        else
          EXPECT_LE(conversion.kind, Conversion::Kind::Register);
        // The contraction comes in one order on both sides.
        const TileLayout &a = dots->values.a, &b = dots->values.b;
        const bool hasRows = row.family == MatrixFamily::Lanes; // A, in a lane
        for (int reg = 0; !hasRows && reg < a.elementsPerFragment(); ++reg)
          EXPECT_EQ(a.map(reg, 0, 0)[1], b.map(reg, 0, 0)[0]);
        // One chain on numbers is enough a shape; wave by wave is the same.
        if (headDim > 96 || blockN > 64)
          continue;
        Matrix keys = randomMatrix(random, blockN, dots->scores.a.shape()[1]);
        Matrix queries = randomMatrix(random, keys.columns, blockM);
        Matrix values = randomMatrix(random, a.shape()[0], blockN);
        Matrix scores = multiply(keys, queries);
        Matrix result = multiply(values, scores);
        int wave = waves - 1;
        WaveRegisters held =
            lowerDot(row, dots->scores, distribute(dots->scores.a, keys, wave),
                     distribute(dots->scores.b, queries, wave));
        expectHeld(dots->scores.acc, held, scores, wave);
        held = convert(conversion, held, wave);
        expectHeld(dots->values.b, held, scores, wave);
        // The lowering slices fragments of 2^n registers the same way.
        expectHeld(
            dots->values.acc,
            lowerDot(row, dots->values, distribute(a, values, wave), held),
            result, wave);
        if (HasFailure())
          return;
      }
}

TEST_P(InstrTest, LanesReadFactorsWide) {
  auto dots = forwardDots(row, 128, row.n * 4, 64, 4);
  ASSERT_TRUE(dots);
  // 16 bytes of K and of Q (whose rows are the contraction) at once.
  const int wide = std::min(8, kWideBytes / row.layouts().elementBytes);
  EXPECT_EQ(wideAccesses(dots->scores.a, wide).width, wide);
  EXPECT_EQ(wideAccesses(dots->scores.b.transposed(), wide).width, wide);
  // V follows the accumulator's order of keys: as many as D has in a run.
  EXPECT_EQ(wideAccesses(dots->values.a, wide).width,
            std::min(wide, row.d.elementsPerFragment()));
}

TEST_P(InstrTest, RefusesWhatDoesNotDivide) {
  auto choose = [&](int m, int k, int n, int waves) {
    return chooseDotLayouts(row.layouts(), m, k, n, WaveSplit{waves}, nullptr)
        .has_value();
  };
  int k = contractionUnit(row.layouts());
  EXPECT_TRUE(choose(row.m, k, row.n, 1));
  EXPECT_FALSE(choose(row.m / 2, k, row.n, 1));
  EXPECT_FALSE(choose(row.m, k / 2, row.n, 1)) << "half a read";
  EXPECT_FALSE(choose(row.m, k, row.n, 2)) << "a wave without columns";
}

TEST_P(InstrTest, RefusesARightOperandInAnotherDistribution) {
  int m = row.m, k = contractionUnit(row.layouts()), n = 2 * row.n;
  auto layouts =
      chooseDotLayouts(row.layouts(), m, k, n, WaveSplit{2}, nullptr);
  ASSERT_TRUE(layouts);
  auto accepts = [&](const TileLayout &b) {
    return chooseDotLayouts(row.layouts(), m, k, n, WaveSplit{2}, &b)
        .has_value();
  };
  const TileLayout &b = layouts->b;
  EXPECT_TRUE(accepts(b));
  Bases registers(b.registers()), lanes(b.lanes()), waves(b.waves());
  Bases exchanged = lanes;
  std::swap(exchanged.front(), exchanged.back());
  EXPECT_FALSE(accepts(TileLayout(registers, exchanged, waves, b.grid())));
  EXPECT_FALSE(accepts(TileLayout(registers, lanes, {{0, 0}}, b.grid())));
  EXPECT_FALSE(accepts(layouts->a.transposed()));
  // Another order of the contraction is no obstacle.
  std::swap(registers.front(), registers.back());
  EXPECT_TRUE(accepts(TileLayout(registers, lanes, waves, b.grid())));
}

INSTANTIATE_TEST_SUITE_P(Table, InstrTest,
                         testing::ValuesIn(target::allMatrixInstrs().vec()),
                         [](const testing::TestParamInfo<MatrixInstr> &info) {
                           return nameOf(info.param);
                         });
