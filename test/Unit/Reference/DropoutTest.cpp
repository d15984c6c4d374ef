//===- DropoutTest.cpp - which weights are dropped ------------------------===//
//
// The generator's words and the masks of AOTriton's kernels, which others have
// recorded or worked out by its map of counters.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Dropout.h"
#include <gtest/gtest.h>

#include <string>

using namespace fovea::reference;

namespace {

using Words = std::array<uint32_t, 4>;

/// Rows of heads and queries, "1" of what is kept.
std::string maskOf(Dropout dropout) {
  std::string mask;
  for (int64_t head = 0; head != dropout.heads; ++head)
    for (int64_t query = 0; query != dropout.seqQ; ++query) {
      mask += mask.empty() ? "" : " ";
      for (int64_t key = 0; key != dropout.seqK; ++key)
        mask += dropout.keeps(0, head, query, key) ? '1' : '0';
    }
  return mask;
}

} // namespace

TEST(Dropout, HasTheGeneratorsWords) {
  EXPECT_EQ(philox(0, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(0x1bf52, 0x1d4b42),
            (Words{0x6523d56b, 0x109a6721, 0x273e896d, 0x357a7f8d}));
  EXPECT_EQ(philox(0xdeadbeefcafe1234, 0x100000007),
            (Words{0x7c3c466b, 0x353c044d, 0xa5e45111, 0xc647cfe5}));
}

TEST(Dropout, HasTheMasksOfBothOrders) {
  Dropout dropout = {0.5f, 0x1bf52, 0x1d4b42, /*swapsWords=*/true, 2, 2, 8, 0};
  EXPECT_EQ(maskOf(dropout), "11111111 10100101 00101111 00110000");
  dropout.swapsWords = false;
  EXPECT_EQ(maskOf(dropout), "11111111 11000011 01001111 01010000");
  dropout.seqK = 6;
  EXPECT_EQ(maskOf(dropout), "111111 110000 010011 010100");
}

TEST(Dropout, KeepsAboutItsPart) {
  for (float p : {0.1f, 0.5f, 0.9f}) {
    const Dropout dropout = {p, 7, 11, false, 4, 128, 128, 0};
    int64_t kept = 0;
    for (int64_t i = 0; i != 4 * 128 * 128; ++i)
      kept += dropout.keeps(0, i / (128 * 128), i / 128 % 128, i % 128);
    // Five standard deviations.
    EXPECT_NEAR(double(kept) / (4 * 128 * 128), 1 - p, 5 * 0.5 / 256);
  }
  EXPECT_EQ((Dropout{1, 7, 11, false, 1, 8, 8, 0}).factor(), 0);
}
