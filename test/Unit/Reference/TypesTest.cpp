//===- TypesTest.cpp - conversions, of 16 bits exhaustively ---------------===//

#include "fovea/Reference/Types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace fovea::reference;

namespace {

class Conversions : public testing::TestWithParam<ElemType> {
protected:
  uint16_t infinity() const {
    return GetParam() == ElemType::F16 ? 0x7c00 : 0x7f80;
  }
};

TEST_P(Conversions, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = decode(GetParam(), uint16_t(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(roundTo(GetParam(), value))) << std::hex << bits;
    else
      ASSERT_EQ(encode(GetParam(), value), bits) << std::hex << bits;
  }
}

TEST_P(Conversions, EveryMidpointGoesToEvenAndItsNeighboursToTheNearest) {
  for (uint32_t bits = 0; bits + 1 < infinity(); ++bits) {
    const double low = decode(GetParam(), uint16_t(bits));
    const double high = decode(GetParam(), uint16_t(bits + 1));
    const double middle = (low + high) / 2; // exact in binary64
    const uint16_t even = uint16_t(bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(encode(GetParam(), middle), even) << std::hex << bits;
    ASSERT_EQ(encode(GetParam(), -middle), even | 0x8000) << std::hex << bits;
    ASSERT_EQ(encode(GetParam(), std::nextafter(middle, low)), bits);
    ASSERT_EQ(encode(GetParam(), std::nextafter(middle, high)), bits + 1);
  }
}

TEST_P(Conversions, OverflowStartsHalfAUnitAboveTheLargestValue) {
  const double largest = decode(GetParam(), uint16_t(infinity() - 1));
  const double below = decode(GetParam(), uint16_t(infinity() - 2));
  const double limit = largest + (largest - below) / 2;
  EXPECT_EQ(encode(GetParam(), limit), infinity());
  EXPECT_EQ(encode(GetParam(), std::nextafter(limit, 0)), infinity() - 1);
  EXPECT_EQ(encode(GetParam(), 1e300), infinity());
  EXPECT_EQ(encode(GetParam(), std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(encode(GetParam(), -1e-300), 0x8000);
}

INSTANTIATE_TEST_SUITE_P(Types, Conversions,
                         testing::Values(ElemType::F16, ElemType::BF16),
                         [](const auto &info) {
                           return std::string(elemTypeName(info.param));
                         });

TEST(KnownValues, AreThoseOfTheFormats) {
  EXPECT_EQ(fromF16(0x3c00), 1.0);
  EXPECT_EQ(fromF16(0x7bff), 65504.0);
  EXPECT_EQ(fromF16(0x0001), 0x1p-24);
  EXPECT_EQ(fromBF16(0x3f80), 1.0);
  EXPECT_EQ(fromBF16(0x0001), 0x1p-133);
  EXPECT_EQ(toBF16(3.14159265), 0x4049);
  EXPECT_EQ(toF16(3.14159265), 0x4248);
}

TEST(KnownValues, OfFp32AreTheHosts) {
  const ElemType f32 = ElemType::F32;
  EXPECT_EQ(encode(f32, 1), 0x3f800000u);
  EXPECT_EQ(encode(f32, 1 + 0x1p-24), 0x3f800000u) << "a tie, to even";
  EXPECT_EQ(encode(f32, 1 + 0x1.8p-23), 0x3f800002u) << "a tie, to even";
  EXPECT_EQ(encode(f32, -0x1p-149), 0x80000001u);
  EXPECT_EQ(encode(f32, 1e300), 0x7f800000u);
  EXPECT_EQ(decode(f32, 0x00000001u), 0x1p-149);
  EXPECT_EQ(unitRoundoff(f32), 0x1p-24);
  EXPECT_EQ(leastNormal(f32), 0x1p-126);
  uint32_t words[] = {0, 0, 0};
  const Row row{f32, words};
  row.set(1, -2.5);
  EXPECT_EQ(row[1], -2.5);
  EXPECT_EQ(words[1], 0xc0200000u);
  EXPECT_EQ(words[0] | words[2], 0u);
}

TEST(Layouts, PutEachElementInItsOwnPlace) {
  for (Layout layout : {Layout::BHSD, Layout::BSHD, Layout::SBHD}) {
    const Tensor t = describe(ElemType::F16, layout, 2, 3, 5, 8, 4);
    std::vector<int> seen(size_t(t.span()), 0);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t s = 0; s < 5; ++s)
          for (int64_t d = 0; d < 8; ++d)
            ++seen.at(size_t(t.offset(b, h, s) + d));
    int touched = 0;
    for (int count : seen) {
      EXPECT_LE(count, 1) << layoutName(layout);
      touched += count;
    }
    EXPECT_EQ(touched, 2 * 3 * 5 * 8);
    EXPECT_EQ(t.span(), 2 * 3 * 5 * 12 - 4);
  }
}

} // namespace
