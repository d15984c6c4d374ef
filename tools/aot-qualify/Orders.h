//===- Orders.h - in which order a product was summed -----------*- C++ -*-===//
//
// Models of how matrix instructions add up, from the exact sum of a group of
// products to one rounding a step. The one whose results have all bits of those
// of a device says how that device adds.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTQUALIFY_ORDERS_H
#define FOVEA_TOOLS_AOTQUALIFY_ORDERS_H

#include <cstddef>
#include <string>
#include <vector>

namespace fovea::qualify {

/// C + A * B of one element of a result: factors in order of k. Factors are
/// numbers of at most 24 bits whose exponents are near one another: sums in
/// long double are exact.
struct DotProduct {
  std::vector<float> a, b;
  float c = 0;
};

/// A way to add.
struct SumOrder {
  enum Kind {
    Chain,   ///< a fused multiply-add each
    Pairs,   ///< rounded products, in pairs, pairs of pairs, then to the sum
    Exact,   ///< a group and the sum so far exactly, rounded to nearest even
    Aligned, ///< the same, but each cut at `bits` below the largest before
  } kind = Chain;
  unsigned group = 1;
  unsigned bits = 0;
  bool floors = false; ///< Aligned: towards minus infinity, not towards zero
  bool backwards = false; ///< from the last k to the first
  /// Not 0: so many of the lower half of k, then of the upper half, in turn. A
  /// layout may hand k out in another order than the hardware counts it.
  unsigned run = 0;

  std::string text() const; ///< "4 products at a time, exactly, ..."
  float sum(const DotProduct &product) const;
};

/// The models for instructions of that k, the likelier ones first.
std::vector<SumOrder> sumOrders(unsigned k);

/// How many of the results a model gives, bit for bit.
struct OrderMatch {
  SumOrder order;
  size_t matches = 0, of = 0;
};
/// The model that gives most of `results`; the first of several.
OrderMatch findOrder(const std::vector<DotProduct> &products,
                     const std::vector<float> &results, unsigned k);

} // namespace fovea::qualify

#endif // FOVEA_TOOLS_AOTQUALIFY_ORDERS_H
