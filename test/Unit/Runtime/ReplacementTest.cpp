//===- ReplacementTest.cpp - which entry of a cache goes ------------------===//

#include "fovea/Package/Replacement.h"

#include <gtest/gtest.h>

using namespace fovea;

namespace {

constexpr size_t kEntries = 12;

/// A cache of numbers.
struct Cache {
  std::array<int, kEntries> entries{};
  Replacement<kEntries> replacement;

  /// Whether the number was there; if not, it may be from now on.
  bool find(int number) {
    for (size_t i = 0; i != kEntries; ++i)
      if (entries[i] == number) {
        replacement.use(i);
        return true;
      }
    entries[replacement.take()] = number;
    return false;
  }
  int found(int first, int count, int rounds = 1) {
    int sum = 0;
    for (int round = 0; round != rounds; ++round)
      for (int number = first; number != first + count; ++number)
        sum += find(number);
    return sum;
  }
};

TEST(Replacement, FindsMostOfSomewhatMoreThanThereAre) {
  for (int count = 1; count <= 2 * int(kEntries); ++count) {
    Cache cache;
    cache.found(1, count);
    const int all = int(kEntries);
    EXPECT_EQ(cache.found(1, count, 10), 10 * (count <= all ? count : all - 1))
        << count;
  }
}

TEST(Replacement, LetsGoOfWhatIsNotUsedAnyMore) {
  Cache cache;
  cache.found(1, 12, 100);
  cache.found(100, 3, 9); // more than twice as many as there are entries
  EXPECT_EQ(cache.found(100, 3, 5), 15);
}

TEST(Replacement, TakesWhatIsNewEachTime) {
  // As of a sequence that grows, the same for some layers.
  Cache cache;
  for (int number = 1; number != 100; ++number) {
    EXPECT_FALSE(cache.find(number));
    EXPECT_TRUE(cache.find(number));
  }
}

TEST(Replacement, ReplacesWhereNothingWasPut) {
  Replacement<kEntries> replacement;
  for (size_t i = 0; i != kEntries; ++i)
    EXPECT_EQ(replacement.take(), i);
  EXPECT_EQ(replacement.take(), kEntries - 1);
  replacement.leave(5);
  EXPECT_EQ(replacement.take(), 5u);
}

} // namespace
