//===- Overlap.cpp - whether tensors share memory -------------------------===//
//
// A byte that is in both regions is a solution of
//   -a.rowBytes < a.begin - b.begin + sum(i * stride) - sum(j * stride)
//               < b.rowBytes
// with each i an index of a and each j one of b. Equal strides of the two are
// one term, whose index is the difference. The terms are tried from the largest
// stride to the smallest, and of each only those indices that the smaller ones
// can still make up for: where dimensions nest that is one or two.
//
//===----------------------------------------------------------------------===//

#include "Overlap.h"

#include <algorithm>

namespace fovea::rt {
namespace {

/// More than nested dimensions need: twice two indices at each of three levels.
constexpr int kMostSteps = 64;

struct Term {
  int64_t stride, least, most;     ///< the index and its limits
  int64_t restLeast, restMost = 0; ///< what the terms after it can add
};

/// Of a positive divisor.
int64_t divideDown(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t divideUp(int64_t a, int64_t b) { return a / b + (a % b > 0); }

class OverlapSearch {
public:
  OverlapSearch(const Region &a, const Region &b)
      : low(1 - a.rowBytes), high(b.rowBytes - 1) {
    for (const Region::Dim &dim : a.dims)
      add(dim.stride, 0, dim.count - 1);
    for (const Region::Dim &dim : b.dims)
      add(dim.stride, 1 - dim.count, 0);
    int64_t least = 0, most = 0;
    for (int i = count; i-- > 0;) {
      terms[i].restLeast = least;
      terms[i].restMost = most;
      least += terms[i].stride * terms[i].least;
      most += terms[i].stride * terms[i].most;
    }
  }

  /// Whether the terms from `level` on bring `distance` between the limits.
  bool finds(int64_t distance, int level = 0) {
    if (level == count)
      return distance >= low && distance <= high;
    const Term &term = terms[level];
    const int64_t first = std::max(
        term.least, divideUp(low - distance - term.restMost, term.stride));
    const int64_t last = std::min(
        term.most, divideDown(high - distance - term.restLeast, term.stride));
    // From the middle, where the terms after it have most to choose from.
    for (int64_t up = first + (last - first) / 2, down = up - 1;
         up <= last || down >= first; ++up, --down) {
      for (const int64_t index : {up, down}) {
        if (index < first || index > last)
          continue;
        if (steps == 0)
          return false;
        --steps;
        if (finds(distance + index * term.stride, level + 1))
          return true;
      }
    }
    return false;
  }

private:
  void add(int64_t stride, int64_t least, int64_t most) {
    if (stride == 0 || least == most) // always 0
      return;
    int at = 0;
    while (at < count && terms[at].stride > stride)
      ++at;
    if (at < count && terms[at].stride == stride) {
      terms[at].least += least;
      terms[at].most += most;
      return;
    }
    std::copy_backward(terms + at, terms + count, terms + count + 1);
    terms[at] = {stride, least, most, 0, 0};
    ++count;
  }

  const int64_t low, high;
  int steps = kMostSteps;
  int count = 0;
  Term terms[6];
};

} // namespace

bool overlap(const Region &a, const Region &b) {
  if (a.end <= b.begin || b.end <= a.begin)
    return false;
  return OverlapSearch(a, b).finds(int64_t(a.begin - b.begin));
}

} // namespace fovea::rt
