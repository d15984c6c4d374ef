//===- Uncertainty.cpp - How far predictions are off ----------------------===//
//
// One row a kind; docs/Timing.md lists the points.
//
//===----------------------------------------------------------------------===//
#include "timing/Uncertainty.h"

#include <algorithm>
#include <limits>

namespace fovea::sim {

namespace {
struct ResidualRow {
  std::string_view target; ///< begins with this
  bool addsInMemory;
  double maxSeconds; ///< launches that take longer have a row of their own
  Uncertainty uncertainty;
};
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr ResidualRow kResiduals[] = {
    {"gfx942", false, 1e-3, {0.20, 0.17, 0.05}},
    {"gfx942", false, kAny, {0.17, 0.12, 0.05}},
    {"gfx942", true, 1e-3, {0.27, 0.27, 0.15}},
    {"gfx942", true, kAny, {0.18, 0.18, 0.15}},
    {"gfx950", false, 1e-3, {0.17, 0.17, 0.05}},
    {"gfx950", false, kAny, {0.10, 0.08, 0.05}},
    {"gfx950", true, 1e-3, {0.19, 0.19, 0.15}},
    {"gfx950", true, kAny, {0.13, 0.12, 0.15}},
    {"gfx1100", false, kAny, {0.5, 0.5, 0.65, true}},
    {"gfx1201", false, kAny, {0.5, 0.5, 0.65, true}},
    {"gfx11", false, kAny, {1, 0.5, 0.65, true}},
    {"gfx12", false, kAny, {1, 0.5, 0.65, true}},
    {"gfx1", true, kAny, {2, 1, 1, true}},
    {"", false, kAny, {0.5, 0.25, 0.15, true}},
    {"", true, kAny, {1, 0.5, 0.3, true}},
};
/// Of a time on a board of which no kernel's time was published.
constexpr double kUnknownBoard = 1;
} // namespace

Uncertainty uncertaintyOf(std::string_view target, const LaunchKind &kind) {
  Uncertainty found{1, 1, 1, true};
  for (const ResidualRow &row : kResiduals)
    if (target.substr(0, row.target.size()) == row.target &&
        row.addsInMemory == kind.addsInMemory &&
        kind.seconds <= row.maxSeconds) {
      found = row.uncertainty;
      break;
    }
  // Two kernels on one board have its clock and memory in common.
  if (!kind.onKnownBoard)
    found.time = std::max(found.time, kUnknownBoard);
  return found;
}

} // namespace fovea::sim
