//===- OrdersTest.cpp - orders of sums are told apart ---------------------===//

#include "Orders.h"
#include "ProbeRun.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace fovea::qualify;

namespace {

std::vector<DotProduct> products(unsigned k, size_t count) {
  std::mt19937_64 random(k);
  // As many bits as fp16 has.
  auto draw = [&] {
    return std::ldexp(float(1024 + random() % 1024) / 1024,
                      int(random() % 13) - 6) *
           (random() % 2 ? 1.0f : -1.0f);
  };
  std::vector<DotProduct> all(count);
  for (DotProduct &product : all) {
    for (unsigned i = 0; i != k; ++i) {
      product.a.push_back(draw());
      product.b.push_back(draw());
    }
    product.c = draw();
  }
  return all;
}

// Each order is found from its results alone; where two give the same, the
// first is.
TEST(Orders, EachIsFound) {
  for (unsigned k : {4u, 16u}) {
    const std::vector<DotProduct> inputs = products(k, 100);
    std::set<std::vector<float>> seen;
    size_t distinct = 0;
    for (const SumOrder &order : sumOrders(k)) {
      std::vector<float> results;
      for (const DotProduct &product : inputs)
        results.push_back(order.sum(product));
      const bool isNew = seen.insert(results).second;
      distinct += isNew;
      const OrderMatch match = findOrder(inputs, results, k);
      EXPECT_EQ(match.matches, match.of) << order.text();
      if (isNew) {
        EXPECT_EQ(match.order.text(), order.text());
      }
    }
    EXPECT_GT(distinct, k == 4 ? 20u : 60u);
  }
}

TEST(Orders, NoneIsMadeUp) {
  const std::vector<DotProduct> inputs = products(8, 100);
  std::vector<float> results;
  for (const DotProduct &product : inputs)
    results.push_back(std::nextafter(sumOrders(8)[0].sum(product), 1e9f));
  const OrderMatch match = findOrder(inputs, results, 8);
  EXPECT_LT(match.matches, match.of);
}

TEST(Ulps, AreCounted) {
  EXPECT_EQ(ulpsBetween(1.0f, 1.0f), 0u);
  EXPECT_EQ(ulpsBetween(1.0f, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(ulpsBetween(-0.0f, 0.0f), 0u);
  EXPECT_EQ(ulpsBetween(-1e-45f, 1e-45f), 2u);
  UlpHistogram histogram;
  for (uint64_t ulps : {0u, 1u, 2u, 3u, 4u, 5u, 1000000u})
    histogram.add(ulps);
  const std::vector<uint64_t> counts = histogram.toJson()["counts"];
  EXPECT_EQ(std::vector<uint64_t>(counts.begin(), counts.begin() + 5),
            (std::vector<uint64_t>{1, 1, 1, 2, 1}));
  EXPECT_EQ(counts.back(), 1u);
}

} // namespace
