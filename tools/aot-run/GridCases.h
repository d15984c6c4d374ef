//===- GridCases.h - problems of every kind, thinned ------------*- C++ -*-===//
//
// The factors that grids of problems combine, and the combinations in which
// every two levels of two factors meet. Shared by the execution tests and
// aot-qualify.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_GRIDCASES_H
#define FOVEA_TOOLS_AOTRUN_GRIDCASES_H

#include "ForwardRun.h"
#include "Pairwise.h"

#include <vector>

namespace fovea::run {

inline const reference::ElemType kTypes[] = {reference::ElemType::BF16,
                                             reference::ElemType::F16};
inline const reference::Mask kNamedMasks[] = {
    reference::Mask::CausalBottomRight, reference::Mask::CausalTopLeft,
    reference::Mask::None};
/// What each query sees: named masks; bounds within a block, at its edges, on
/// one side, on the other side of the diagonal; nothing at all; beyond all
/// lengths; each side aligned its own way.
inline const Window kWindows[] = {
    reference::Mask::CausalBottomRight,
    reference::Mask::CausalTopLeft,
    reference::Mask::None,
    {63, 64, Alignment::BottomRight, Alignment::BottomRight},
    {5, 0, Alignment::TopLeft, Alignment::TopLeft},
    {-3, 40, Alignment::BottomRight, Alignment::BottomRight},
    {40, -3, Alignment::TopLeft, Alignment::TopLeft},
    {20, Window::kInfinite, Alignment::BottomRight, Alignment::BottomRight},
    {0, 0, Alignment::BottomRight, Alignment::BottomRight},
    {7, 0, Alignment::TopLeft, Alignment::BottomRight},
    {-10, 3, Alignment::BottomRight, Alignment::BottomRight},
    {INT64_MAX - 1, 130, Alignment::TopLeft, Alignment::BottomRight}};
inline const reference::InputKind kInputs[] = {
    reference::InputKind::Normal, reference::InputKind::Uniform,
    reference::InputKind::Large,  reference::InputKind::OnesV,
    reference::InputKind::Spike,  reference::InputKind::Zeros,
    reference::InputKind::Masked, reference::InputKind::Huge};
inline const Guards kGuards[] = {Guards::Auto, Guards::Canary};

struct Heads {
  int64_t batch, heads, headsK;
};
inline const Heads kHeads[] = {{1, 4, 1}, {2, 2, 2}, {1, 6, 3}};

/// Order of the dimensions, elements between rows, elements off alignment.
struct Place {
  reference::Layout layout;
  int64_t padding, offset;
};
inline const Place kPlaces[] = {{reference::Layout::BHSD, 0, 0},
                                {reference::Layout::BSHD, 0, 0},
                                {reference::Layout::SBHD, 0, 0},
                                {reference::Layout::BSHD, 24, 8},
                                {reference::Layout::BHSD, 3, 1}};

/// How much is run. The package has the kernels of every head dimension here,
/// in all types and masks.
struct Grid {
  const char *name;
  uint64_t rounds; ///< each holds all pairs; together they hold most triples
  std::vector<int64_t> lengths, headDims;
};

/// A problem of the grid. Factors of a program's own follow the common ones.
struct GridCase {
  ForwardCase problem;
  Guards guards;
  std::vector<size_t> own; ///< a level of each own factor
};

/// Combinations in which every two levels of two factors meet, in each round.
inline std::vector<GridCase> thinnedGrid(const Grid &grid,
                                         const std::vector<size_t> &ownLevels,
                                         const std::vector<Window> &masks) {
  // Lengths come first: their pairs are the most, so they lead the rows.
  std::vector<size_t> levels = {
      grid.lengths.size(), grid.lengths.size(), grid.headDims.size(),
      std::size(kInputs),  std::size(kPlaces),  masks.size(),
      std::size(kHeads),   std::size(kTypes),   std::size(kGuards)};
  const size_t common = levels.size();
  levels.insert(levels.end(), ownLevels.begin(), ownLevels.end());
  std::vector<GridCase> cases;
  for (uint64_t round = 0; round < grid.rounds; ++round)
    for (const std::vector<size_t> &row : pairwise(levels, round)) {
      ForwardCase c;
      c.seqQ = grid.lengths[row[0]];
      c.seqK = grid.lengths[row[1]];
      c.headDim = grid.headDims[row[2]];
      c.input = kInputs[row[3]];
      c.layout = kPlaces[row[4]].layout;
      c.rowPadding = kPlaces[row[4]].padding;
      c.offset = kPlaces[row[4]].offset;
      c.mask = masks[row[5]];
      c.batch = kHeads[row[6]].batch;
      c.heads = kHeads[row[6]].heads;
      c.headsK = kHeads[row[6]].headsK;
      c.type = kTypes[row[7]];
      c.seed = cases.size() + 1;
      cases.push_back({c,
                       kGuards[row[8]],
                       {row.begin() + std::ptrdiff_t(common), row.end()}});
    }
  return cases;
}

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_GRIDCASES_H
