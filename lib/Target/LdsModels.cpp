//===- LdsModels.cpp - the LDS of the chips -------------------------------===//
//
// Banks and groups of lanes as measured on each generation: AMD's lab notes on
// LDS (nod-ai/amd-shark-ai, docs/empirical-lds) and, for CDNA 4,
// HazyResearch/HipKittens, analysis of phases. CDNA 1 and 2 have not been
// measured and are taken to do as CDNA 3.
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/LdsModels.h"

namespace fovea::target {

// Lanes of a group stand together.
static constexpr uint8_t kWideCdna[] = { // groups of 8
    0,  1,  2,  3,  20, 21, 22, 23, 32, 33, 34, 35, 52, 53, 54, 55,
    4,  5,  6,  7,  16, 17, 18, 19, 36, 37, 38, 39, 48, 49, 50, 51,
    8,  9,  10, 11, 28, 29, 30, 31, 40, 41, 42, 43, 60, 61, 62, 63,
    12, 13, 14, 15, 24, 25, 26, 27, 44, 45, 46, 47, 56, 57, 58, 59};
static constexpr uint8_t kWideCdna4[] = { // groups of 16
    0,  1,  2,  3,  12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27,
    32, 33, 34, 35, 44, 45, 46, 47, 52, 53, 54, 55, 56, 57, 58, 59,
    4,  5,  6,  7,  8,  9,  10, 11, 16, 17, 18, 19, 28, 29, 30, 31,
    36, 37, 38, 39, 40, 41, 42, 43, 48, 49, 50, 51, 60, 61, 62, 63};
static constexpr uint8_t kWideRdna3[] = { // groups of 8
    0, 1, 2,  3,  20, 21, 22, 23, 4,  5,  6,  7,  16, 17, 18, 19,
    8, 9, 10, 11, 28, 29, 30, 31, 12, 13, 14, 15, 24, 25, 26, 27};

const layout::LdsModel kLdsCdna = {{32, 128, kWideCdna}, {32, 128, {}}};
const layout::LdsModel kLdsCdna4 = {{64, 256, kWideCdna4}, {32, 128, {}}};
const layout::LdsModel kLdsRdna3 = {{32, 128, kWideRdna3}, {32, 128, {}}};
const layout::LdsModel kLdsRdna4 = {{32, 128, {}}, {32, 128, {}}};
const layout::LdsModel kLdsGfx1250 = {{64, 256, {}}, {64, 256, {}}};

} // namespace fovea::target
