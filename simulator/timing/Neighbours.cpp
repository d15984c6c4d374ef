//===- Neighbours.cpp - What workgroups at work together share ------------===//
//
// Compares the lines of one workgroup with those of a few around it.
//
//===----------------------------------------------------------------------===//
#include "timing/Neighbours.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace fovea::sim {

namespace {

/// The share of the lines of \p own that \p other touches as well, not more
/// than
/// \p window lines of its own earlier or later: workgroups that start together
/// go through their data at one pace.
double commonShare(const std::vector<uint64_t> &own,
                   const std::vector<uint64_t> &other, double window) {
  if (own.empty())
    return 1;
  std::unordered_map<uint64_t, std::vector<size_t>> places;
  for (size_t i = 0; i < other.size(); ++i)
    places[other[i]].push_back(i);
  size_t step = own.size() / 20000 + 1, common = 0, looked = 0;
  for (size_t i = 0; i < own.size(); i += step) {
    ++looked;
    auto it = places.find(own[i]);
    if (it == places.end())
      continue;
    for (size_t at : it->second)
      if (std::abs(double(at) - double(i)) <= window) {
        ++common;
        break;
      }
  }
  return double(common) / double(looked);
}

/// A cache, and the workgroups that use it.
struct SharedCache {
  double users;  ///< that may share a line, the sample among them
  double lines;  ///< it holds
  double groups; ///< that fill it
};

/// How many of the users of a cache touch a line while it holds it (\p result),
/// by the workgroups that are \p steps away from \p middle. The more do, the
/// longer does it hold a line.
Status countSharers(const Sampler &sampler, const GroupTrace &middle,
                    uint64_t total, const std::vector<uint64_t> &steps,
                    const SharedCache &cache, double &result) {
  std::vector<std::unique_ptr<GroupTrace>> others;
  std::set<uint64_t> used{middle.id};
  for (uint64_t step : steps) {
    uint64_t other = middle.id + step < total ? middle.id + step
                     : middle.id >= step      ? middle.id - step
                                              : total;
    if (other >= total || !used.insert(other).second)
      continue;
    others.emplace_back();
    if (Status status = sampler.trace(other, others.back()); !status)
      return status;
  }
  result = 1;
  for (int pass = 0; pass < 3 && !others.empty(); ++pass) {
    double window = cache.lines / std::max(1.0, cache.groups) * result, sum = 0;
    for (const auto &other : others)
      sum += commonShare(middle.lines, other->lines, window);
    result = 1 + sum / double(others.size()) * std::max(0.0, cache.users - 1);
  }
  return Status::success();
}

} // namespace

Status measureSharing(const Sampler &sampler, const TimingConstants &chip,
                      const Neighbourhood &around, const GroupTrace &middle,
                      Sharing &sharing, std::string &note) {
  const unsigned xcds = around.xcds;
  sharing.units = std::min<double>(around.units, double(around.total));
  sharing.unitsPerL2 = std::max(1.0, sharing.units / xcds);
  const uint64_t neighbours =
      std::min(uint64_t(sharing.unitsPerL2 * around.resident),
               (around.total + xcds - 1) / xcds);
  // Near and far, odd and even: heads and blocks alternate in many ways.
  std::vector<uint64_t> steps;
  for (uint64_t step : {uint64_t(1), uint64_t(2), neighbours / 3 | 1,
                        neighbours * 2 / 3 & ~uint64_t(1), neighbours - 1})
    if (step && step < neighbours)
      steps.push_back(xcds * step);
  double near = 1, far = 1;
  const SharedCache l2{double(neighbours),
                       double(chip.l2Bytes / chip.lineBytes),
                       double(neighbours)};
  if (Status status =
          countSharers(sampler, middle, around.total, steps, l2, near);
      !status)
    return status;
  if (xcds > 1 && chip.farBytes) {
    const SharedCache last{double(xcds), double(chip.farBytes / chip.lineBytes),
                           double(neighbours) * xcds};
    if (Status status = countSharers(sampler, middle, around.total,
                                     {1, xcds / 2, xcds - 1}, last, far);
        !status)
      return status;
  }
  sharing.l2Miss = 1 / near;
  sharing.farMiss = 1 / far;
  note = "of " + std::to_string(neighbours) +
         " workgroups behind an L2, about " + std::to_string(int(near + 0.5)) +
         " use a line together; of " + std::to_string(xcds) + " L2s, about " +
         std::to_string(int(far + 0.5));
  return Status::success();
}

} // namespace fovea::sim
