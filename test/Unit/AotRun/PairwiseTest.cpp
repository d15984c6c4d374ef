//===- PairwiseTest.cpp - the thinned grid still holds every pair ---------===//

#include "Pairwise.h"

#include <gtest/gtest.h>

#include <set>

namespace {

TEST(Pairwise, HoldsEveryPairInFewRows) {
  const std::vector<size_t> levels{12, 12, 8, 7, 5, 3, 3, 2, 2, 2};
  const auto rows = fovea::run::pairwise(levels);
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
  EXPECT_EQ(rows, fovea::run::pairwise(levels));
}

TEST(Pairwise, LeavesOutWhatIsExcluded) {
  const std::vector<size_t> levels{3, 2, 4, 2, 2};
  // Of the first and third factor the last levels, and all of the last two.
  auto excludes = [](size_t f, size_t a, size_t g, size_t b) {
    if (f > g) {
      std::swap(f, g);
      std::swap(a, b);
    }
    return (f == 0 && g == 2 && a == 2 && b == 3) ||
           (f == 3 && g == 4 && a == 1 && b == 1);
  };
  const auto rows = fovea::run::pairwise(levels, 1, excludes);
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g) {
      std::set<std::pair<size_t, size_t>> pairs;
      for (const auto &row : rows)
        pairs.insert({row[f], row[g]});
      for (size_t a = 0; a < levels[f]; ++a)
        for (size_t b = 0; b < levels[g]; ++b)
          EXPECT_NE(pairs.count({a, b}), excludes(f, a, g, b))
              << f << ":" << a << ", " << g << ":" << b;
    }
}

} // namespace
