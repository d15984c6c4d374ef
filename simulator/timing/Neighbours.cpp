//===- Neighbours.cpp - What workgroups at work together share ------------===//
//
// Compares the lines of one workgroup with those of a few around it.
//
//===----------------------------------------------------------------------===//
#include "timing/Neighbours.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace fovea::sim {

namespace {

/// The instruction (dword) of each line of a trace.
std::vector<uint32_t> opsOfLines(const GroupTrace &trace) {
  std::vector<uint32_t> ops(trace.lines.size());
  for (const auto &wave : trace.waves)
    for (const TraceStep &step : wave) {
      const MemoryUse &use = trace.uses[step.use];
      if (step.use)
        std::fill_n(ops.begin() + int64_t(use.firstLine), use.lines, step.op);
    }
  return ops;
}

/// Where a trace touches each of some lines: places in the order of its lines.
using Places = std::unordered_map<uint64_t, std::vector<size_t>>;

/// \p lines: those looked for, which are its keys.
Places placesOf(const GroupTrace &trace, const Places &lines) {
  Places places;
  for (size_t i = 0; i < trace.lines.size(); ++i)
    if (lines.count(trace.lines[i]))
      places[trace.lines[i]].push_back(i);
  return places;
}

/// Whether one of the places is not more than \p window from \p at.
bool isNear(const std::vector<size_t> &places, size_t at, double window) {
  const double from = std::max(0.0, double(at) - window);
  auto next = std::lower_bound(places.begin(), places.end(), size_t(from));
  return next != places.end() && double(*next) <= double(at) + window;
}

/// A cache, and the workgroups that use it.
struct SharedCache {
  double users;  ///< that may share a line, the sample among them
  double lines;  ///< it holds
  double groups; ///< that fill it
};

/// Lines of a workgroup that tell what it shares: what it reads once, and some
/// rounds of what it goes through.
constexpr size_t kLines = 8192;

/// How often a cache must fetch a line that \p middle touches, by the
/// workgroups
/// \p steps away from it. A line that others touch not more than a window of
/// own lines earlier or later is fetched by one of them: workgroups that start
/// together go through their data at one pace. The less is fetched, the longer
/// does the cache hold a line.
Status measureMisses(const Sampler &sampler, const GroupTrace &middle,
                     uint64_t total, const std::vector<uint64_t> &steps,
                     const SharedCache &cache, MissShares &result) {
  const size_t lines = std::min(kLines, middle.lines.size());
  Places looked;
  for (size_t i = 0; i < lines; ++i)
    looked[middle.lines[i]];
  std::vector<Places> others;
  std::set<uint64_t> used{middle.id};
  for (uint64_t distance : steps) {
    uint64_t other = middle.id + distance < total ? middle.id + distance
                     : middle.id >= distance      ? middle.id - distance
                                                  : total;
    if (other >= total || !used.insert(other).second)
      continue;
    std::unique_ptr<GroupTrace> trace;
    if (Status status = sampler.trace(other, trace, kLines); !status)
      return status;
    others.push_back(placesOf(*trace, looked));
  }
  result = MissShares();
  if (others.empty() || middle.lines.empty())
    return Status::success();
  const std::vector<uint32_t> ops = opsOfLines(middle);
  const double more = std::max(0.0, cache.users - 1) / double(others.size());
  struct Sum {
    double misses = 0, lines = 0;
  };
  std::map<uint32_t, Sum> byOp;
  for (int pass = 0; pass < 3; ++pass) {
    const double window =
        cache.lines / std::max(1.0, cache.groups) / result.mean;
    byOp.clear();
    Sum all;
    for (size_t i = 0; i < lines; ++i) {
      unsigned common = 0;
      for (const Places &other : others)
        if (auto it = other.find(middle.lines[i]); it != other.end())
          common += isNear(it->second, i, window);
      const double misses = 1 / (1 + common * more);
      for (Sum *sum : {&all, &byOp[ops[i]]}) {
        sum->misses += misses;
        sum->lines += 1;
      }
    }
    result.mean = all.misses / all.lines;
  }
  result.byOp.assign(byOp.rbegin()->first + 1, -1);
  for (const auto &[op, sum] : byOp)
    result.byOp[op] = float(sum.misses / sum.lines);
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
  // All of them, or some near and far, odd and even: heads and blocks alternate
  // in many ways.
  constexpr uint64_t kMost = 48;
  std::vector<uint64_t> steps;
  if (neighbours <= kMost) {
    for (uint64_t step = 1; step < neighbours; ++step)
      steps.push_back(xcds * step);
  } else {
    for (uint64_t i = 1; i <= kMost; ++i)
      steps.push_back(xcds * ((i * (neighbours - 1) / kMost) ^ (i & 1)));
  }
  std::vector<uint64_t> dies(xcds - 1);
  std::iota(dies.begin(), dies.end(), 1);
  const SharedCache l2{double(neighbours),
                       double(chip.l2Bytes / chip.lineBytes),
                       double(neighbours)};
  if (Status status =
          measureMisses(sampler, middle, around.total, steps, l2, sharing.l2);
      !status)
    return status;
  if (xcds > 1 && chip.farBytes) {
    const SharedCache last{double(xcds), double(chip.farBytes / chip.lineBytes),
                           double(neighbours) * xcds};
    if (Status status = measureMisses(sampler, middle, around.total, dies, last,
                                      sharing.far);
        !status)
      return status;
  }
  auto percent = [](double share) {
    return std::to_string(int(100 * share + 0.5)) + " %";
  };
  note =
      "an L2, behind which " + std::to_string(neighbours) +
      " workgroups are at work, fetches " + percent(sharing.l2.mean) +
      " of the lines that one of them touches first; the memory-side cache " +
      percent(sharing.far.mean) + " of these";
  return Status::success();
}

} // namespace fovea::sim
