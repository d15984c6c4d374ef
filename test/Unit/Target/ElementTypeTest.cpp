//===- ElementTypeTest.cpp - the table of element types -------------------===//

#include "fovea/Target/ElementType.h"
#include "fovea/Target/MatrixInstr.h"
#include "gtest/gtest.h"
#include <set>

using namespace fovea;
using namespace fovea::target;

TEST(ElementType, RowsFollowTheEnumeration) {
  std::set<llvm::StringRef> names, mlir;
  for (const ElementTypeInfo &row : allElementTypes()) {
    EXPECT_EQ(&elementTypeInfo(row.type), &row);
    EXPECT_EQ(row.bytes() * 8, row.bits);
    EXPECT_LT(row.mantissaBits, row.bits);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(mlir.insert(row.mlir).second);
  }
  EXPECT_EQ(elementTypeInfo(ElementType::F32).bytes(), 4);
  EXPECT_EQ(elementTypeInfo(ElementType::BF16).bytes(), 2);
  EXPECT_EQ(elementTypeInfo(ElementType::F8E5M2).bytes(), 1);
}

/// The chips with a conversion, as "gfx942 ...".
static std::string chipsThatConvert(ElementType type) {
  std::string chips;
  for (const TargetInfo &target : allTargets())
    if (hasConversion(target, type))
      chips += (chips.empty() ? "" : " ") + target.name.str();
  return chips;
}

TEST(ElementType, IsConvertedByTheChipsThatHaveTheInstruction) {
  for (const TargetInfo &target : allTargets())
    EXPECT_TRUE(hasConversion(target, ElementType::F16)) << target.name.str();
  EXPECT_EQ(chipsThatConvert(ElementType::BF16), "gfx950 gfx1250");
  EXPECT_EQ(chipsThatConvert(ElementType::F8E4M3FNUZ), "gfx942");
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2})
    EXPECT_EQ(chipsThatConvert(type),
              "gfx950 gfx1200 gfx1201 gfx1250 gfx12-generic");
}

TEST(ElementType, IsMultipliedByTheChipsThatHaveTheInstruction) {
  auto names = [](const char *chip, ElementType type) {
    return matrixInstrNames(*lookupTarget(chip), type);
  };
  EXPECT_EQ(names("gfx90a", ElementType::F8E4M3FN), "");
  EXPECT_EQ(names("gfx942", ElementType::F8E4M3FN), "");
  EXPECT_EQ(names("gfx942", ElementType::F8E4M3FNUZ),
            "mfma_32x32x16, mfma_16x16x32");
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2}) {
    EXPECT_EQ(names("gfx950", type), "mfma_32x32x16, mfma_16x16x32");
    EXPECT_EQ(names("gfx1201", type), "wmma_16x16x16");
    EXPECT_EQ(names("gfx1100", type), "");
    EXPECT_EQ(names("gfx1250", type), "") << "its own are K = 64 and 128";
    EXPECT_EQ(names("gfx9-4-generic", type), "");
  }
  for (const TargetInfo &target : allTargets())
    EXPECT_EQ(matrixInstrNames(target, ElementType::F32),
              target.waveSize == 64      ? "mfma_32x32x2, mfma_16x16x4"
              : target.name == "gfx1250" ? ""
                                         : "lanes_8x32x4")
        << target.name.str();
}
