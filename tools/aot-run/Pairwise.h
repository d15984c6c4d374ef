//===- Pairwise.h - few combinations that hold every pair -------*- C++ -*-===//
//
// Thins a grid: instead of all combinations of the factors' levels, a set in
// which every two levels of two factors meet at least once.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_PAIRWISE_H
#define FOVEA_TOOLS_AOTRUN_PAIRWISE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fovea::run {

/// Whether level a of factor f and level b of factor g can't be in one row.
using Excludes = std::function<bool(size_t f, size_t a, size_t g, size_t b)>;

/// `levels[f]` is the number of levels of factor f. Each row of the result has
/// a level for each factor; every pair of levels of two factors is in some row.
/// Deterministic. Greedy: a row starts with a pair not yet met and takes,
/// factor by factor, the level that meets most new pairs. Ties are drawn: a
/// fixed order would tie one factor's levels to another's in most rows. Pairs
/// that are excluded are in none; level 0 of a factor goes with all others'.
inline std::vector<std::vector<size_t>>
pairwise(const std::vector<size_t> &levels, uint64_t seed = 1,
         const Excludes &excludes = nullptr) {
  const size_t factors = levels.size();
  std::vector<size_t> first(factors + 1, 0); // number of (factor, 0)
  for (size_t f = 0; f < factors; ++f)
    first[f + 1] = first[f] + levels[f];
  const size_t all = first[factors];
  std::vector<bool> met(all * all, false);
  uint64_t state = seed + 0x9e3779b97f4a7c15u;
  auto draw = [&] { // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  auto isMet = [&](size_t a, size_t b) { return met[a * all + b]; };
  auto factorOf = [&](size_t number) {
    size_t f = 0;
    while (number >= first[f + 1])
      ++f;
    return f;
  };
  auto areExcluded = [&](size_t a, size_t b) {
    if (!excludes)
      return false;
    const size_t f = factorOf(a), g = factorOf(b);
    return excludes(f, a - first[f], g, b - first[g]);
  };

  std::vector<std::vector<size_t>> rows;
  for (size_t f = 0; f < factors; ++f)
    for (size_t g = f + 1; g < factors; ++g)
      for (size_t a = first[f]; a < first[f + 1]; ++a)
        for (size_t b = first[g]; b < first[g + 1]; ++b) {
          if (isMet(a, b) || areExcluded(a, b))
            continue;
          std::vector<size_t> chosen{a, b}; // numbers of (factor, level)
          for (size_t h = 0; h < factors; ++h) {
            if (h == f || h == g)
              continue;
            size_t best = first[h], bestNew = 0, equals = 0;
            for (size_t c = first[h]; c < first[h + 1]; ++c) {
              size_t fresh = 0;
              bool isOut = false;
              for (size_t other : chosen) {
                fresh += !isMet(c, other);
                isOut |= areExcluded(c, other);
              }
              if (isOut)
                continue;
              if (equals == 0 || fresh > bestNew) {
                best = c;
                bestNew = fresh;
                equals = 1;
              } else if (fresh == bestNew && draw() % ++equals == 0) {
                best = c;
              }
            }
            chosen.push_back(best);
          }
          std::vector<size_t> row(factors);
          for (size_t c : chosen) {
            for (size_t h = 0; h < factors; ++h)
              if (c >= first[h] && c < first[h + 1])
                row[h] = c - first[h];
            for (size_t other : chosen)
              met[c * all + other] = true;
          }
          rows.push_back(std::move(row));
        }
  return rows;
}

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_PAIRWISE_H
