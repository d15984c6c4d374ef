//===- Lds.cpp - Clocks and bank conflicts of LDS accesses ----------------===//
//
// Sources: phases and banks of reads, nod-ai's LDS measurements (MI300X, MI355X,
// RDNA3, RDNA4) and HipKittens' (MI350X); bytes a clock, ROCm compute profiler's
// documentation. Assumed, since nobody published it: gfx908 and gfx90a are as
// gfx942; reads of 12 bytes are everywhere as on gfx950, but in order on RDNA4;
// writes take lanes in order; waves of 64 lanes on RDNA are two of 32.
//
//===----------------------------------------------------------------------===//
#include "timing/Lds.h"

#include <algorithm>

namespace fovea::sim {

namespace {

constexpr uint8_t kHalvesInTurn[64] = { // phases of 8, of each half in turn
    0,  1,  2,  3,  20, 21, 22, 23, 32, 33, 34, 35, 52, 53, 54, 55,
    4,  5,  6,  7,  16, 17, 18, 19, 36, 37, 38, 39, 48, 49, 50, 51,
    8,  9,  10, 11, 28, 29, 30, 31, 40, 41, 42, 43, 60, 61, 62, 63,
    12, 13, 14, 15, 24, 25, 26, 27, 44, 45, 46, 47, 56, 57, 58, 59};
constexpr uint8_t kSixteen[64] = { // phases of 16
    0,  1,  2,  3,  12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27,
    32, 33, 34, 35, 44, 45, 46, 47, 52, 53, 54, 55, 56, 57, 58, 59,
    4,  5,  6,  7,  8,  9,  10, 11, 16, 17, 18, 19, 28, 29, 30, 31,
    36, 37, 38, 39, 40, 41, 42, 43, 48, 49, 50, 51, 60, 61, 62, 63};
constexpr uint8_t kHalfByHalf[64] = { // phases of 8, one half after the other
    0,  1,  2,  3,  20, 21, 22, 23, 4,  5,  6,  7,  16, 17, 18, 19,
    8,  9,  10, 11, 28, 29, 30, 31, 12, 13, 14, 15, 24, 25, 26, 27,
    32, 33, 34, 35, 52, 53, 54, 55, 36, 37, 38, 39, 48, 49, 50, 51,
    40, 41, 42, 43, 60, 61, 62, 63, 44, 45, 46, 47, 56, 57, 58, 59};

constexpr LdsShape kShapes[] = {
    {LdsKind::Cdna, 128, 32, kHalfByHalf, kHalvesInTurn},
    {LdsKind::Cdna4, 256, 64, kHalfByHalf, kSixteen},
    {LdsKind::Rdna3, 128, 32, kHalfByHalf, kHalfByHalf},
    {LdsKind::Rdna4, 128, 32, nullptr, nullptr},
};

} // namespace

const LdsShape &ldsShape(const ChipInfo &chip) {
  return *std::find_if(
      std::begin(kShapes), std::end(kShapes) - 1,
      [&](const LdsShape &shape) { return shape.kind == chip.ldsKind; });
}

unsigned ldsClocks(const LdsShape &shape, const uint64_t *address, uint64_t mask,
                   unsigned lanes, uint32_t bytes, bool store,
                   unsigned &conflicts) {
  // In a phase every bank gives one word; lanes that want the same word share
  // it, and lanes that want others of the same bank cost a clock more each.
  // Phases without active lanes take their clock too. Writes see the 32 banks
  // and 128 bytes a clock of the older chips on all.
  unsigned width = bytes <= 4 ? 4 : bytes <= 8 ? 8 : bytes <= 12 ? 12 : 16;
  bool narrow = store || width == 12;
  unsigned rate = narrow ? std::min(128u, shape.readBytes) : shape.readBytes;
  unsigned banks = narrow ? std::min(32u, shape.readBanks) : shape.readBanks;
  unsigned phase = width == 12 ? 8 : rate / width;
  const uint8_t *order = store         ? nullptr
                         : width == 12 ? shape.read96
                         : width == 16 ? shape.read128
                                       : nullptr;
  unsigned total = 0, least = 0;
  constexpr unsigned kMaxBanks = 64, kMaxWords = 64;
  for (unsigned first = 0; first < lanes; first += phase) {
    uint64_t words[kMaxBanks][kMaxWords];
    uint8_t counts[kMaxBanks] = {};
    unsigned worst = 1;
    for (unsigned i = first; i < first + phase && i < lanes; ++i) {
      unsigned l = order ? order[i] : i;
      if (!((mask >> l) & 1))
        continue;
      for (uint64_t word = address[l] / 4; word * 4 < address[l] + bytes; ++word) {
        unsigned bank = static_cast<unsigned>(word % banks);
        bool known = false;
        for (unsigned k = 0; k < counts[bank]; ++k)
          known |= words[bank][k] == word;
        if (known || counts[bank] == kMaxWords)
          continue;
        words[bank][counts[bank]] = word;
        worst = std::max<unsigned>(worst, ++counts[bank]);
      }
    }
    total += worst;
    ++least;
  }
  conflicts = total - least;
  return total;
}

} // namespace fovea::sim
