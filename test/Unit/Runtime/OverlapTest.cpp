//===- OverlapTest.cpp - whether tensors share memory ---------------------===//

#include "Overlap.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using fovea::rt::overlap;
using fovea::rt::Region;

namespace {

Region make(uint64_t begin, int64_t rowBytes, Region::Dim d0, Region::Dim d1,
            Region::Dim d2) {
  Region region{begin, begin + uint64_t(rowBytes), rowBytes, {d0, d1, d2}};
  for (const Region::Dim &dim : region.dims)
    region.end += uint64_t((dim.count - 1) * dim.stride);
  return region;
}

std::set<uint64_t> bytesOf(const Region &region) {
  std::set<uint64_t> bytes;
  for (int64_t i = 0; i != region.dims[0].count; ++i)
    for (int64_t j = 0; j != region.dims[1].count; ++j)
      for (int64_t k = 0; k != region.dims[2].count; ++k)
        for (int64_t byte = 0; byte != region.rowBytes; ++byte)
          bytes.insert(region.begin +
                       uint64_t(i * region.dims[0].stride +
                                j * region.dims[1].stride +
                                k * region.dims[2].stride + byte));
  return bytes;
}

/// Whether they share a byte, by looking at each.
bool shares(const Region &a, const Region &b) {
  const std::set<uint64_t> of = bytesOf(a);
  for (uint64_t byte : bytesOf(b))
    if (of.count(byte))
      return true;
  return false;
}

class Numbers {
public:
  int64_t operator()(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(generator);
  }

private:
  std::mt19937_64 generator{1};
};

} // namespace

// A yes is always true; of small dimensions, so is a no.
TEST(OverlapTest, AsByLookingAtEachByte) {
  Numbers number;
  int yes = 0, no = 0;
  for (int round = 0; round != 4000; ++round) {
    auto region = [&] {
      return make(uint64_t(1000 + number(0, 60)), number(1, 5),
                  {number(0, 40), number(1, 3)}, {number(0, 20), number(1, 4)},
                  {number(0, 9), number(1, 4)});
    };
    const Region a = region(), b = region();
    const bool truth = shares(a, b);
    ASSERT_EQ(overlap(a, b), truth) << "round " << round;
    ASSERT_EQ(overlap(b, a), truth) << "round " << round;
    ++(truth ? yes : no);
  }
  EXPECT_GT(yes, 500);
  EXPECT_GT(no, 500);
}

// Equal strides that nest, of any counts and begins: as gradients in a buffer.
TEST(OverlapTest, NestedDimensionsOfOneBuffer) {
  Numbers number;
  int yes = 0, no = 0;
  for (int round = 0; round != 2000; ++round) {
    const int64_t row = number(2, 6), rows = number(1, 7), heads = number(1, 5);
    const int64_t inner = row + number(0, 8), mid = inner * rows + number(0, 9);
    const int64_t outer = mid * heads + number(0, 20);
    auto region = [&] {
      return make(uint64_t(number(0, outer)), number(1, row),
                  {outer, number(1, 4)}, {inner, number(1, rows)},
                  {mid, number(1, heads)});
    };
    const Region a = region(), b = region();
    const bool truth = shares(a, b);
    ASSERT_EQ(overlap(a, b), truth) << "round " << round;
    ++(truth ? yes : no);
  }
  EXPECT_GT(yes, 300);
  EXPECT_GT(no, 300);
}

// Tensors without gaps, their dimensions in any order: where the ranges of
// addresses meet, so do the tensors.
TEST(OverlapTest, TensorsWithoutGaps) {
  Numbers number;
  int yes = 0;
  for (int round = 0; round != 20000; ++round) {
    auto region = [&] {
      const int64_t row = 2 * 8 * number(2, 32);
      int64_t stride = row;
      Region::Dim dims[3];
      for (Region::Dim &dim : dims) {
        dim = {stride, number(0, 3) ? number(1, 700) : 1};
        stride *= dim.count;
      }
      return make(uint64_t(2 * number(1, 1 << number(1, 30))), row, dims[0],
                  dims[1], dims[2]);
    };
    const Region a = region(), b = region();
    const bool meet = a.begin < b.end && b.begin < a.end;
    ASSERT_EQ(overlap(a, b), meet) << "round " << round;
    yes += meet;
  }
  EXPECT_GT(yes, 5000);
}

// Whatever the strides, the search ends, and a yes has a byte to show.
TEST(OverlapTest, UnlikeStridesEnd) {
  const int64_t many = int64_t(1) << 20;
  const Region odd = make(1, 1, {6, many}, {10, many}, {14, many});
  const Region even = make(0, 1, {4, many}, {8, many}, {22, many});
  EXPECT_FALSE(overlap(odd, even));
  // The first bytes are the same.
  Region other = even;
  other.begin = odd.begin;
  EXPECT_TRUE(overlap(odd, other));
  // At the end of the address space.
  const Region last = make(UINT64_MAX - 8, 8, {1, 1}, {1, 1}, {1, 1});
  EXPECT_TRUE(overlap(last, last));
  EXPECT_FALSE(overlap(last, odd));
}
