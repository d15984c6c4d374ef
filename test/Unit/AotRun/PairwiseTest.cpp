//===- PairwiseTest.cpp - the thinned grid still holds every pair ---------===//

#include "Pairwise.h"

#include <gtest/gtest.h>

#include <set>

namespace {

TEST(Pairwise, HoldsEveryPairInFewRows) {
  const std::vector<size_t> levels{12, 12, 8, 7, 5, 3, 3, 2, 2, 2};
  const auto rows = fovea::test::pairwise(levels);
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g) {
      std::set<std::pair<size_t, size_t>> pairs;
      for (const auto &row : rows) {
        ASSERT_LT(row[f], levels[f]);
        pairs.insert({row[f], row[g]});
      }
      EXPECT_EQ(pairs.size(), levels[f] * levels[g]) << f << ", " << g;
    }
  EXPECT_GE(rows.size(), 144u);
  EXPECT_LE(rows.size(), 200u);
  EXPECT_EQ(rows, fovea::test::pairwise(levels));
}

} // namespace
