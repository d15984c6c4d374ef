//===- GuardedTensor.cpp - device memory with its surroundings ------------===//
//
// Finds words that changed although they may not.
//
//===----------------------------------------------------------------------===//

#include "GuardedTensor.h"

#include <algorithm>

using namespace fovea;
using namespace fovea::run;

int64_t Rows::span() const {
  if (batch == 0 || heads == 0 || seq == 0 || row == 0)
    return 0;
  return (batch - 1) * strideBatch + (heads - 1) * strideHead +
         (seq - 1) * strideSeq + row;
}

/// Of an odd number of 16-bit elements, below 8, the last word is half a row's,
/// and read as a whole (docs/HeadDimensions.md).
template <typename Word>
int64_t GuardedTensor<Word>::spareOf(const Rows &rows) {
  return sizeof(Word) == 2 && rows.row < 8 ? rows.row % 2 : 0;
}

template <typename Word>
GuardedTensor<Word>::GuardedTensor(const char *name, Role role,
                                   const Rows &rows, int64_t guard,
                                   int64_t offset)
    : name(name), role(role), rows(rows), front(guard + offset) {
  const auto count =
      uint64_t(front + rows.span() + std::max(guard, spareOf(rows)));
  words = tool::allocating(name, count * sizeof(Word), [&] {
    return std::vector<Word>(size_t(count), kNaN);
  });
  if (role == Role::Input)
    return;
  const std::vector<bool> element = elements();
  for (size_t i = 0; i < words.size(); ++i)
    if (!element[i])
      words[i] = kCanary;
}

/// Which words are elements.
template <typename Word>
std::vector<bool> GuardedTensor<Word>::elements() const {
  std::vector<bool> element(words.size(), false);
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t h = 0; h < rows.heads; ++h)
      for (int64_t s = 0; s < rows.seq; ++s) {
        if (!rows.isUsed(b, s))
          continue;
        const int64_t first = front + b * rows.strideBatch +
                              h * rows.strideHead + s * rows.strideSeq;
        for (int64_t d = 0; d < rows.row; ++d)
          element[size_t(first + d)] = true;
      }
  return element;
}

template <typename Word>
std::string GuardedTensor<Word>::changes() const {
  const bool written = role == Role::Output;
  const std::vector<bool> mayChange =
      written ? elements() : std::vector<bool>(words.size(), false);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == before[i] || mayChange[i])
      continue;
    const int64_t at = int64_t(i) - front;
    std::string where;
    if (at < 0)
      where = std::to_string(-at) + " elements before its start";
    else if (at >= rows.span())
      where = std::to_string(at - rows.span()) + " elements past its end";
    else
      where = "at element " + std::to_string(at) +
              (written ? ", which belongs to no row" : ", an input");
    return name + " was written to " + where;
  }
  return {};
}

template class fovea::run::GuardedTensor<uint16_t>;
template class fovea::run::GuardedTensor<uint32_t>;
