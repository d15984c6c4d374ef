//===- TargetInfoTest.cpp - the tables of chips and instructions ----------===//

#include "fovea/Target/TargetInfo.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <set>

using namespace fovea::target;

namespace {
const TargetInfo &gfx942() { return *lookupTarget("gfx942"); }
} // namespace

TEST(TargetInfo, IsFoundByName) {
  const TargetInfo *target = lookupTarget("gfx942");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->name, "gfx942");
  EXPECT_EQ(target->waveSize, 64);
  EXPECT_EQ(target->ldsBytes, 64 * 1024);
  EXPECT_EQ(target->computeUnits, 304);
  EXPECT_EQ(target->xcds, 8);
  for (llvm::StringRef name : {"", "gfx94", "gfx9422", "GFX942", "gfx000"})
    EXPECT_FALSE(lookupTarget(name)) << name.str();
}

TEST(TargetInfo, NamesAreUniqueAndListed) {
  std::set<llvm::StringRef> names;
  std::string listed = targetNames();
  for (const TargetInfo &target : allTargets()) {
    EXPECT_TRUE(names.insert(target.name).second) << target.name.str();
    EXPECT_NE(listed.find(target.name.str()), std::string::npos);
    EXPECT_EQ(lookupTarget(target.name), &target);
  }
  EXPECT_FALSE(names.empty());
}

TEST(TargetInfo, RowsHoldTogether) {
  for (const TargetInfo &target : allTargets()) {
    SCOPED_TRACE(target.name.str());
    EXPECT_TRUE(target.waveSize == 32 || target.waveSize == 64);
    EXPECT_GT(target.ldsBytes, 0);
    ASSERT_NE(target.lds, nullptr);
    for (const fovea::layout::LdsPort &port : {target.lds->read, target.lds->write}) {
      EXPECT_EQ(port.banks * 4, port.bytesPerClock);
      EXPECT_TRUE(port.wideOrder.empty() ||
                  int(port.wideOrder.size()) == target.waveSize);
      std::set<int> lanes(port.wideOrder.begin(), port.wideOrder.end());
      EXPECT_EQ(lanes.size(), port.wideOrder.size());
    }
    EXPECT_LE(target.maxRegistersPerWave, target.registersPerSimdLane);
    EXPECT_EQ(target.computeUnits % target.xcds, 0);
  }
}

// Rows of schedules hold only where the same tables choose from the same
// registers.
TEST(TargetInfo, IsTunedAsAChipWithItsRegistersAndInstructions) {
  for (const TargetInfo &target : allTargets()) {
    if (target.tunedAs.empty())
      continue;
    SCOPED_TRACE(target.name.str());
    const TargetInfo *like = lookupTarget(target.tunedAs);
    ASSERT_NE(like, nullptr);
    EXPECT_TRUE(like->tunedAs.empty());
    EXPECT_EQ(like->generic, target.generic);
    EXPECT_EQ(like->registersPerSimdLane, target.registersPerSimdLane);
    EXPECT_EQ(like->features | kScalarFloat, target.features | kScalarFloat);
  }
}

TEST(TargetInfo, HasAllBitsAskedFor) {
  TargetInfo target = gfx942();
  target.features = kMfmaF16;
  EXPECT_TRUE(target.has(kMfmaF16));
  EXPECT_FALSE(target.has(kMfmaBf16_1k));
  EXPECT_FALSE(target.has(kMfmaF16 | kMfmaBf16_1k)) << "one of two is not all";
  EXPECT_TRUE(target.has(0));
}

TEST(WavesPerSimd, IsLimitedByRegistersInGranules) {
  const TargetInfo &target = gfx942();
  EXPECT_EQ(wavesPerSimd(target, {512, 0, 0, 4}), 1);
  EXPECT_EQ(wavesPerSimd(target, {257, 0, 0, 4}), 1);
  EXPECT_EQ(wavesPerSimd(target, {256, 0, 0, 4}), 2);
  EXPECT_EQ(wavesPerSimd(target, {169, 0, 0, 4}), 2) << "rounds up to 176";
  EXPECT_EQ(wavesPerSimd(target, {168, 0, 0, 4}), 3);
  EXPECT_EQ(wavesPerSimd(target, {128, 0, 0, 4}), 4);
  EXPECT_EQ(wavesPerSimd(target, {65, 0, 0, 4}), 7) << "rounds up to 72";
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 0, 4}), 8);
  EXPECT_EQ(wavesPerSimd(target, {1, 0, 0, 4}), 8)
      << "never more than the chip has";
  EXPECT_EQ(wavesPerSimd(target, {0, 0, 0, 4}), 8);
}

TEST(WavesPerSimd, IsLimitedByLds) {
  const TargetInfo &target = gfx942();
  // Four waves of a workgroup are one a SIMD.
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 65536, 4}), 1);
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 32768, 4}), 2);
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 32769, 4}), 1);
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 16384, 4}), 4);
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 32768, 8}), 4);
  // A workgroup smaller than a compute unit still puts a wave on some SIMD.
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 65536, 1}), 1);
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 65536, 2}), 1);
  // Whichever is less.
  EXPECT_EQ(wavesPerSimd(target, {256, 0, 16384, 4}), 2);
  EXPECT_EQ(wavesPerSimd(target, {64, 0, 65537, 4}), 0)
      << "does not fit at all";
}

TEST(WavesPerSimd, TakesEachOfTwoRegisterFilesAlone) {
  const TargetInfo &target = *lookupTarget("gfx908");
  EXPECT_EQ(wavesPerSimd(target, {128, 128, 0, 4}), 2);
  EXPECT_EQ(wavesPerSimd(target, {128, 0, 0, 4}), 2) << "AGPRs do not help";
  EXPECT_EQ(wavesPerSimd(target, {129, 0, 0, 4}), 1);
  EXPECT_EQ(wavesPerSimd(target, {64, 132, 0, 4}), 1);
  EXPECT_EQ(wavesPerSimd(target, {24, 0, 0, 4}), 10);
}

TEST(RegistersPerWave, AreWholeGranules) {
  EXPECT_EQ(registersPerWave(gfx942(), 1), 512);
  EXPECT_EQ(registersPerWave(gfx942(), 3), 168);
  EXPECT_EQ(registersPerWave(*lookupTarget("gfx1100"), 4), 256);
  EXPECT_EQ(registersPerWave(*lookupTarget("gfx1100"), 7), 216);
  EXPECT_EQ(registersPerWave(*lookupTarget("gfx1102"), 5), 192);
}

TEST(MatrixInstr, RowsHoldTogether) {
  std::set<std::tuple<llvm::StringRef, ElementType, uint32_t>> rows;
  for (const MatrixInstr &row : allMatrixInstrs()) {
    SCOPED_TRACE(row.name.str());
    EXPECT_TRUE(rows.insert({row.name, row.type, row.feature}).second);
    EXPECT_EQ(1 << row.a.lanes().size(), row.waveSize);
    auto lanes = [&](const fovea::layout::TileLayout &layout) {
      return row.waveSize >>
             llvm::popcount(layout.replicatedBits(fovea::layout::Space::Lane));
    };
    EXPECT_EQ(row.m * row.k, row.a.elementsPerFragment() * lanes(row.a));
    EXPECT_EQ(row.k * row.n, row.b.elementsPerFragment() * lanes(row.b));
    EXPECT_EQ(row.m * row.n, row.d.elementsPerFragment() * row.waveSize);
    for (const fovea::layout::TileLayout *layout : {&row.a, &row.b, &row.d})
      EXPECT_TRUE(layout->isExact());
    llvm::StringRef family = row.family == MatrixFamily::Mfma   ? "mfma"
                             : row.family == MatrixFamily::Wmma ? "wmma"
                                                                : "lanes";
    EXPECT_EQ(row.name.str(), family.str() + "_" + std::to_string(row.m) + "x" +
                                  std::to_string(row.n) + "x" +
                                  std::to_string(row.k));
  }
}

TEST(MatrixInstr, NamesStandForFamilyAndShape) {
  for (const MatrixInstr &row : allMatrixInstrs()) {
    const MatrixShape *shape = lookupMatrixShape(row.name);
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->name, row.name);
    EXPECT_EQ(shape->family, row.family);
    EXPECT_EQ(std::tuple(shape->m, shape->n, shape->k),
              std::tuple(row.m, row.n, row.k));
  }
  EXPECT_FALSE(lookupMatrixShape("mfma_32x32"));
  EXPECT_FALSE(lookupMatrixShape(""));
  EXPECT_EQ(matrixInstrNames(),
            "mfma_32x32x16, mfma_16x16x32, mfma_32x32x8, mfma_16x16x16, "
            "mfma_32x32x4, mfma_16x16x8, mfma_32x32x2, mfma_16x16x4, "
            "wmma_16x16x16, wmma_16x16x32, lanes_8x32x4");
}

TEST(MatrixInstr, EveryChipMultipliesBothTypes) {
  for (const TargetInfo &target : allTargets())
    for (ElementType type : {ElementType::F16, ElementType::BF16}) {
      SCOPED_TRACE(target.name.str());
      EXPECT_FALSE(matrixInstrNames(target, type).empty());
      std::set<llvm::StringRef> names;
      for (const MatrixInstr &row : allMatrixInstrs())
        if (row.type == type && row.waveSize == target.waveSize &&
            target.has(row.feature))
          EXPECT_TRUE(names.insert(row.name).second)
              << row.name.str() << " would be two instructions";
    }
}

TEST(MatrixInstr, IsFoundByChipNameAndType) {
  for (ElementType type : {ElementType::F16, ElementType::BF16}) {
    const MatrixInstr *row = lookupMatrixInstr(gfx942(), "mfma_32x32x8", type);
    ASSERT_TRUE(row);
    EXPECT_EQ(row->type, type);
    EXPECT_EQ(row->k, 8);
    EXPECT_EQ(matrixInstrNames(gfx942(), type), "mfma_32x32x8, mfma_16x16x16");
    EXPECT_FALSE(lookupMatrixInstr(gfx942(), "mfma_32x32x16", type));
    EXPECT_FALSE(lookupMatrixInstr(gfx942(), "", type));
  }
}

TEST(MatrixInstr, NeedsTheChipsFeatureAndWaveSize) {
  TargetInfo target = gfx942();
  target.features = kMfmaF16;
  EXPECT_TRUE(lookupMatrixInstr(target, "mfma_32x32x8", ElementType::F16));
  EXPECT_FALSE(lookupMatrixInstr(target, "mfma_32x32x8", ElementType::BF16));
  EXPECT_EQ(matrixInstrNames(target, ElementType::BF16), "");
  target.features = ~0u;
  target.waveSize = 32;
  EXPECT_FALSE(lookupMatrixInstr(target, "mfma_32x32x8", ElementType::F16));
}
