//===- Grid.h - A chip working through a grid -------------------*- C++ -*-===//
//
// How much work each workgroup of a grid has, from a few that were executed, and
// how long the chip's compute units take for all of them.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_GRID_H
#define FOVEA_SIMULATOR_TIMING_GRID_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fovea::sim {

/// Work (wave instructions) of every workgroup. Along a dimension of the grid
/// that matters, points are executed until lines between them predict the next
/// points; dimensions multiply. Where that fails, the same is tried of an order
/// that kernels make of the grid's: all blocks of some heads, not one block of
/// each head. Where that fails, too, the grid is cut into runs of groups, of
/// each of which one stands for all.
class WorkMap {
public:
  WorkMap(const uint32_t *grid, uint64_t total);
  /// Workgroups whose work should be counted next; empty when it is enough.
  std::vector<uint64_t> wanted(const std::map<uint64_t, uint64_t> &counts);
  /// In place of workgroups, \p total tiles that those on the chip take in order;
  /// \p points: the work of some.
  void setTiles(uint64_t total, const std::map<uint64_t, uint64_t> &points);
  void finish(const std::map<uint64_t, uint64_t> &counts);
  double work(uint64_t group) const;
  /// Groups that were counted, for up to \p n amounts of work from least to most.
  std::vector<uint64_t> levels(unsigned n) const;
  /// A group with as much work as half of the groups exceed.
  uint64_t usual() const;
  uint64_t total() const { return Total; }
  const std::string &note() const { return Note; }

private:
  uint64_t pointId(unsigned dim, uint32_t at) const;
  double along(unsigned dim, uint32_t at) const;
  /// Between the neighbouring points of a dimension whose work differs most.
  std::optional<uint32_t> withinSteepest(unsigned dim) const;
  /// Cuts x into runs of as many groups as have the same work, for each of
  /// which y is gone through before the next one. Whether there are such.
  bool regroup(const std::map<uint64_t, uint64_t> &counts);
  uint32_t Grid[3];
  bool Regrouped = false; ///< has been tried
  uint64_t Total;
  unsigned Stage = 0;
  std::map<uint32_t, double> Points[3];
  std::vector<uint64_t> Checks;
  std::map<uint64_t, uint64_t> Counts;
  bool Spread = false; ///< by the linear index instead
  std::map<uint64_t, uint64_t> Strata; ///< first of a run: who stands for it
  double Base = 1;
  std::string Note;
};

/// What a replay says about workgroups of one amount of work.
struct Pace {
  double work = 0;
  double clocksFull = 0;  ///< for one, while the compute unit is full
  double clocksAlone = 0; ///< with the compute unit to itself
};

struct GridResult {
  double clocks = 0;
  double busyShare = 0;    ///< of places
  double instructions = 0; ///< of all workgroups
};

/// Workgroups go to the XCDs in turn, in each to its shader engines in turn, and
/// wait there for a compute unit with room. Those that share a compute unit go at
/// the pace that their number has. \p engines: of an XCD.
GridResult runGrid(const WorkMap &work, const std::vector<Pace> &paces,
                   unsigned units, unsigned xcds, unsigned engines,
                   unsigned resident, unsigned interval);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_GRID_H
