//===- DotLayoutsTest.cpp - layouts of matrix products --------------------===//
//
// Computes products the way the lowering of attn.dot does, instruction by
// instruction, on integers, with the hardware's operand layouts written down a
// second time from AMD's documents.
//
//===----------------------------------------------------------------------===//

#include "LayoutTest.h"
#include <functional>

using namespace fovea;
using namespace fovea::layout;
using namespace fovea::test;
using target::MatrixFamily;
using target::MatrixInstr;

namespace {

/// Where an MFMA of one block on a wave of 64 keeps its operands, from the
/// CDNA3 instruction set document, "Matrix element storage".
struct MfmaHardware {
  const MatrixInstr &row;
  int factors() const { return row.m * row.k / 64; }
  int sums() const { return row.m * row.n / 64; }
  Coord a(int lane, int element) const {
    return {lane % row.m, lane / row.m * factors() + element};
  }
  Coord b(int lane, int element) const {
    return {lane / row.n * factors() + element, lane % row.n};
  }
  Coord d(int lane, int reg) const {
    return {4 * (lane / row.n + 64 / row.n * (reg / 4)) + reg % 4,
            lane % row.n};
  }
};

using Registers = std::vector<int>;           ///< of one lane
using WaveRegisters = std::vector<Registers>; ///< by lane

/// D += A B by the hardware's layouts; `first` is the first register used.
void execute(const MfmaHardware &mfma, const WaveRegisters &a, int firstA,
             const WaveRegisters &b, int firstB, WaveRegisters &d, int firstD) {
  const MatrixInstr &row = mfma.row;
  std::vector<int> left(row.m * row.k), right(row.k * row.n);
  for (int lane = 0; lane < 64; ++lane)
    for (int element = 0; element < mfma.factors(); ++element) {
      Coord at = mfma.a(lane, element);
      left[at[0] * row.k + at[1]] = a[lane][firstA + element];
      at = mfma.b(lane, element);
      right[at[0] * row.n + at[1]] = b[lane][firstB + element];
    }
  for (int lane = 0; lane < 64; ++lane)
    for (int reg = 0; reg < mfma.sums(); ++reg) {
      Coord at = mfma.d(lane, reg);
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
  WaveRegisters result(64, Registers(registersOf(layout)));
  for (int lane = 0; lane < 64; ++lane)
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
  MfmaHardware mfma = {row};
  WaveRegisters sums(64, Registers(registersOf(layouts.acc)));
  int width = row.a.elementsPerFragment();
  int perA = layouts.a.elementsPerFragment(),
      perB = layouts.b.elementsPerFragment(),
      perD = layouts.acc.elementsPerFragment();
  EXPECT_EQ(perA, perB);
  EXPECT_EQ(perD, row.d.elementsPerFragment());
  EXPECT_EQ(layouts.a.grid()[1], layouts.b.grid()[0]);
  EXPECT_EQ(layouts.a.grid()[0], layouts.acc.grid()[0]);
  EXPECT_EQ(layouts.b.grid()[1], layouts.acc.grid()[1]);
  for (int k = 0; k < layouts.a.grid()[1]; ++k)
    for (int step = 0; step < perA / width; ++step)
      for (int m = 0; m < layouts.acc.grid()[0]; ++m)
        for (int n = 0; n < layouts.acc.grid()[1]; ++n)
          execute(mfma, a, (m * layouts.a.grid()[1] + k) * perA + step * width,
                  b, (k * layouts.b.grid()[1] + n) * perB + step * width, sums,
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
        chooseDotLayouts(layoutsOf(row), m, k, n, WaveSplit{waves}, nullptr);
    ASSERT_TRUE(layouts);
    EXPECT_EQ(layouts->a.shape(), (Coord{m, k}));
    EXPECT_EQ(layouts->b.shape(), (Coord{k, n}));
    EXPECT_EQ(layouts->acc.shape(), (Coord{m, n}));
    for (const TileLayout &layout : {layouts->a, layouts->b, layouts->acc})
      EXPECT_TRUE(layout.isExact()) << layout.str();
    EXPECT_EQ(replicas(layouts->acc), 1);
    EXPECT_EQ(replicas(layouts->b), 1);
    EXPECT_EQ(replicas(layouts->a), waves) << "each wave reads all of A";
    Matrix a = randomMatrix(random, m, k), b = randomMatrix(random, k, n);
    Matrix product = multiply(a, b);
    for (int wave = 0; wave < waves; ++wave)
      expectHeld(layouts->acc,
                 lowerDot(row, *layouts, distribute(layouts->a, a, wave),
                          distribute(layouts->b, b, wave)),
                 product, wave);
  }
};
} // namespace

TEST_P(InstrTest, TableHasTheHardwaresLayouts) {
  ASSERT_EQ(row.family, MatrixFamily::Mfma);
  ASSERT_EQ(row.waveSize, 64);
  MfmaHardware mfma = {row};
  ASSERT_EQ(row.a.elementsPerFragment(), mfma.factors());
  ASSERT_EQ(row.b.elementsPerFragment(), mfma.factors());
  ASSERT_EQ(row.d.elementsPerFragment(), mfma.sums());
  for (int lane = 0; lane < 64; ++lane) {
    for (int element = 0; element < mfma.factors(); ++element) {
      EXPECT_EQ(row.a.map(element, lane, 0), mfma.a(lane, element));
      EXPECT_EQ(row.b.map(element, lane, 0), mfma.b(lane, element));
    }
    for (int reg = 0; reg < mfma.sums(); ++reg)
      EXPECT_EQ(row.d.map(reg, lane, 0), mfma.d(lane, reg));
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
      for (int k : {2, 6, 10})
        for (int n : {1, 2, 3}) {
          checkProduct(m * row.m, k * row.k, n * row.n * waves, waves);
          if (HasFailure())
            return;
        }
}

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
        EXPECT_EQ(classifyConversion(dots->scores.acc, dots->values.b).kind,
                  Conversion::Kind::Identity);
        // The contraction comes in one order on both sides.
        const TileLayout &a = dots->values.a, &b = dots->values.b;
        for (int reg = 0; reg < a.elementsPerFragment(); ++reg)
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
  EXPECT_EQ(wideAccesses(dots->scores.a, 8).width, 8);
  EXPECT_EQ(wideAccesses(dots->scores.b.transposed(), 8).width, 8);
  // V follows the accumulator's order of keys: as many as D has in a run.
  EXPECT_EQ(wideAccesses(dots->values.a, 8).width,
            std::min(8, row.d.elementsPerFragment()));
}

TEST_P(InstrTest, RefusesWhatDoesNotDivide) {
  auto choose = [&](int m, int k, int n, int waves) {
    return chooseDotLayouts(layoutsOf(row), m, k, n, WaveSplit{waves}, nullptr)
        .has_value();
  };
  EXPECT_TRUE(choose(row.m, 2 * row.k, row.n, 1));
  EXPECT_FALSE(choose(row.m / 2, 2 * row.k, row.n, 1));
  EXPECT_FALSE(choose(row.m, row.k, row.n, 1)) << "half a read of 16 bytes";
  EXPECT_FALSE(choose(row.m, 2 * row.k, row.n, 2)) << "a wave without columns";
}

TEST_P(InstrTest, RefusesARightOperandInAnotherDistribution) {
  int m = row.m, k = 2 * row.k, n = 2 * row.n;
  auto layouts =
      chooseDotLayouts(layoutsOf(row), m, k, n, WaveSplit{2}, nullptr);
  ASSERT_TRUE(layouts);
  auto accepts = [&](const TileLayout &b) {
    return chooseDotLayouts(layoutsOf(row), m, k, n, WaveSplit{2}, &b)
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
  std::swap(registers[0], registers[2]);
  EXPECT_TRUE(accepts(TileLayout(registers, lanes, waves, b.grid())));
}

INSTANTIATE_TEST_SUITE_P(Table, InstrTest, testing::ValuesIn(mfmaRows()),
                         [](const testing::TestParamInfo<MatrixInstr> &info) {
                           return nameOf(info.param);
                         });
