//===- Orders.cpp - in which order a product was summed -------------------===//

#include "Orders.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fovea::qualify;

namespace {

float chain(const DotProduct &p, bool backwards) {
  float sum = p.c;
  const size_t count = p.a.size();
  for (size_t i = 0; i != count; ++i) {
    const size_t k = backwards ? count - 1 - i : i;
    sum = std::fma(p.a[k], p.b[k], sum);
  }
  return sum;
}

float pairs(const DotProduct &p, unsigned group) {
  float sum = p.c;
  std::vector<float> terms(group);
  for (size_t k = 0; k < p.a.size(); k += group) {
    for (unsigned i = 0; i != group; ++i)
      terms[i] = float(double(p.a[k + i]) * double(p.b[k + i]));
    for (unsigned step = 1; step < group; step *= 2)
      for (unsigned i = 0; i < group; i += 2 * step)
        terms[i] = float(double(terms[i]) + double(terms[i + step]));
    sum = float(double(sum) + double(terms[0]));
  }
  return sum;
}

long double cut(long double value, int lowest, bool floors) {
  const long double scaled = std::ldexp(value, -lowest);
  return std::ldexp(floors ? std::floor(scaled) : std::trunc(scaled), lowest);
}

float grouped(const DotProduct &p, const SumOrder &order) {
  float sum = p.c;
  std::vector<long double> terms;
  for (size_t k = 0; k < p.a.size(); k += order.group) {
    terms.assign(1, sum);
    for (unsigned i = 0; i != order.group; ++i)
      terms.push_back((long double)p.a[k + i] * (long double)p.b[k + i]);
    if (order.kind == SumOrder::Aligned) {
      int largest = -1000;
      for (long double term : terms)
        if (term != 0)
          largest = std::max(largest, std::ilogb(term));
      for (long double &term : terms)
        if (term != 0)
          term = cut(term, largest - int(order.bits), order.floors);
    }
    long double all = 0;
    for (long double term : terms)
      all += term;
    sum = float(all);
  }
  return sum;
}

} // namespace

/// The same with k in runs of both halves in turn.
static DotProduct inRuns(const DotProduct &product, unsigned run) {
  DotProduct turned = product;
  const size_t half = product.a.size() / 2;
  size_t to = 0;
  for (size_t from = 0; from < half; from += run)
    for (size_t side : {size_t(0), half})
      for (size_t i = 0; i != run; ++i, ++to) {
        turned.a[to] = product.a[side + from + i];
        turned.b[to] = product.b[side + from + i];
      }
  return turned;
}

std::string SumOrder::text() const {
  if (run) {
    SumOrder plain = *this;
    plain.run = 0;
    return plain.text() + "; k in runs of " + std::to_string(run) +
           " of its lower and its upper half in turn";
  }
  const std::string products =
      group == 1 ? "one product after the other"
                 : std::to_string(group) + " products at a time";
  switch (kind) {
  case Chain:
    return std::string("one fused multiply-add after the other, from the ") +
           (backwards ? "last k to the first" : "first k to the last");
  case Pairs:
    return products + ": rounded, added in pairs and pairs of pairs, then to C";
  case Exact:
    return products + " and C, exactly, rounded to nearest even once";
  case Aligned:
    return products + " and C, each cut " + (floors ? "down " : "") + "at " +
           std::to_string(bits) + " bits below the largest, added, rounded";
  }
  return "";
}

float SumOrder::sum(const DotProduct &product) const {
  if (run) {
    SumOrder plain = *this;
    plain.run = 0;
    return plain.sum(inRuns(product, run));
  }
  switch (kind) {
  case Chain:
    return chain(product, backwards);
  case Pairs:
    return pairs(product, group);
  default:
    return grouped(product, *this);
  }
}

std::vector<SumOrder> fovea::qualify::sumOrders(unsigned k) {
  std::vector<SumOrder> orders;
  for (bool backwards : {false, true})
    orders.push_back({SumOrder::Chain, 1, 0, false, backwards});
  for (unsigned group = 2; group <= k && group <= 4; group *= 2)
    orders.push_back({SumOrder::Pairs, group});
  // A group of one, exactly, is the chain.
  for (unsigned group = 2; group <= k; group *= 2)
    orders.push_back({SumOrder::Exact, group});
  for (unsigned group = 1; group <= k; group *= 2)
    for (unsigned bits : {23u, 24u, 25u, 26u})
      for (bool floors : {false, true})
        orders.push_back({SumOrder::Aligned, group, bits, floors});
  const std::vector<SumOrder> plain = orders;
  for (unsigned run = 4; run >= 2 && 4 * run <= k; run /= 2)
    for (SumOrder order : plain) {
      order.run = run;
      orders.push_back(order);
    }
  return orders;
}

OrderMatch fovea::qualify::findOrder(const std::vector<DotProduct> &products,
                                     const std::vector<float> &results,
                                     unsigned k) {
  OrderMatch best;
  for (const SumOrder &order : sumOrders(k)) {
    OrderMatch match{order, 0, products.size()};
    // As long as it may be better than the best so far.
    for (size_t i = 0; i != products.size() &&
                       i - match.matches + best.matches < match.of;
         ++i) {
      const float sum = order.sum(products[i]);
      match.matches += std::memcmp(&sum, &results[i], sizeof sum) == 0;
    }
    if (best.of == 0 || match.matches > best.matches)
      best = match;
    if (best.matches == best.of)
      break;
  }
  return best;
}
