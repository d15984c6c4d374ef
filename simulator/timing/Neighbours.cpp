//===- Neighbours.cpp - What workgroups at work together share ------------===//
//
// Compares the lines of one workgroup with those of a few around it.
//
//===----------------------------------------------------------------------===//
#include "timing/Neighbours.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

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

/// \p lines: those looked for.
Places placesOf(const GroupTrace &trace,
                const std::unordered_set<uint64_t> &lines) {
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

/// Workgroups that are asked about a user of a cache, which has a line if one
/// of them touches it.
using Asked = std::vector<uint64_t>;

/// How often a cache must fetch a line that \p middle touches, by those of its
/// other users that were \p asked. A line that others touch not more than a
/// window of own lines earlier or later is fetched by one of them: workgroups
/// that start together go through their data at one pace. The less is fetched,
/// the longer does the cache hold a line.
Status measureMisses(const Sampler &sampler, const GroupTrace &middle,
                     const std::vector<Asked> &asked, const SharedCache &cache,
                     MissShares &result) {
  const std::unordered_set<uint64_t> looked(middle.lines.begin(),
                                            middle.lines.end());
  std::vector<std::vector<Places>> others;
  for (const Asked &groups : asked) {
    others.emplace_back();
    for (uint64_t group : groups) {
      std::unique_ptr<GroupTrace> trace;
      if (Status status = sampler.trace(group, trace, kLines); !status)
        return status;
      others.back().push_back(placesOf(*trace, looked));
    }
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
    for (size_t i = 0; i < middle.lines.size(); ++i) {
      unsigned common = 0;
      for (const std::vector<Places> &other : others)
        common +=
            std::any_of(other.begin(), other.end(), [&](const Places &places) {
              auto it = places.find(middle.lines[i]);
              return it != places.end() && isNear(it->second, i, window);
            });
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

/// How much of what the levels before \p level fetch it must fetch as well.
double shareBehind(const GroupTrace &middle, const Sharing &sharing,
                   size_t level) {
  double before = 0, behind = 0;
  for (uint32_t op : opsOfLines(middle)) {
    double share = 1;
    for (size_t i = 0; i != level; ++i)
      share *= sharing.misses[i].of(op);
    before += share;
    behind += share * sharing.misses[level].of(op);
  }
  return before > 0 ? behind / before : 1;
}

/// Of each of the others that may share a line in one of \p caches to which
/// workgroups go in turn one number: all of them, or some near and far
/// (stepsToNeighbours). Of a grid that the chip
/// holds they lie before \p middle as well as behind it, and are all asked as a
/// rule, since the few that share what is split among the others are easily
/// missed; of other grids they are those that follow or, towards the end,
/// precede.
std::vector<Asked> besideInCache(const Neighbourhood &around, uint64_t middle,
                                 unsigned caches, uint64_t neighbours) {
  const uint64_t most = around.atOnce ? 160 : 48;
  const uint64_t inCache =
      (around.total - middle % caches + caches - 1) / caches;
  std::set<uint64_t> used{middle};
  std::vector<Asked> result;
  for (uint64_t step : stepsToNeighbours(neighbours, most)) {
    const uint64_t distance = step * caches;
    uint64_t other = middle + distance;
    if (other >= around.total) {
      const uint64_t back =
          around.atOnce ? inCache * caches - distance : distance;
      if (back > middle)
        continue;
      other = middle - back;
    }
    if (used.insert(other).second)
      result.push_back({other});
  }
  return result;
}

/// ... in that of the chip: of each other die the one that follows or, of a
/// grid that the chip holds, those on either side.
std::vector<Asked> besideOnChip(const Neighbourhood &around, uint64_t middle) {
  std::vector<Asked> result;
  for (uint64_t step = 1; step < around.xcds; ++step) {
    Asked die;
    if (middle + step < around.total)
      die.push_back(middle + step);
    else if (middle >= step && !around.atOnce)
      die.push_back(middle - step);
    if (around.atOnce && middle >= around.xcds - step)
      die.push_back(middle - (around.xcds - step));
    if (!die.empty())
      result.push_back(std::move(die));
  }
  return result;
}

/// Turns shares of all first touches into shares of those that the levels
/// \p before let through, a share \p reached of all in the mean. Returns what
/// the level itself lets through of all.
double ofThoseThatReach(MissShares &misses,
                        const std::vector<MissShares> &before, double reached) {
  const double through = std::min(reached, misses.mean);
  if (before.empty())
    return through;
  for (uint32_t op = 0; op < misses.byOp.size(); ++op) {
    double share = 1;
    for (const MissShares &level : before)
      share *= level.of(op);
    if (misses.byOp[op] >= 0)
      misses.byOp[op] = float(std::min(1.0, misses.byOp[op] / share));
  }
  misses.mean = through / reached;
  return through;
}

/// How many caches of a kind the chip has, and the compute units at work that
/// share one.
struct Shared {
  unsigned caches;
  double units;
};
Shared sharedBy(Scope scope, const Neighbourhood &around,
                const Sharing &sharing, unsigned l1s) {
  switch (scope) {
  case Scope::Unit:
    return {around.units * l1s, 1.0 / l1s};
  case Scope::Array:
    return {around.arrays, sharing.unitsOfArray};
  case Scope::Die:
    return {around.xcds, sharing.unitsOfDie};
  case Scope::Chip:
    break;
  }
  return {1, sharing.units};
}

} // namespace

std::vector<uint64_t> stepsToNeighbours(uint64_t neighbours, uint64_t most) {
  std::vector<uint64_t> steps;
  if (neighbours <= most) {
    for (uint64_t step = 1; step < neighbours; ++step)
      steps.push_back(step);
    return steps;
  }
  constexpr uint64_t kShort = 2;
  const bool isLong = neighbours - 1 > kShort * most;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (uint64_t i = 1, before = 0; i <= most; ++i) {
    const uint64_t end = i * (neighbours - 1) / most;
    state = state * 6364136223846793005u + 1442695040888963407u;
    steps.push_back(isLong ? before + 1 + (state >> 33) % (end - before)
                           : end ^ (i & 1));
    before = end;
  }
  return steps;
}

Status measureSharing(const Sampler &sampler, const TimingConstants &chip,
                      const Neighbourhood &around, uint64_t middle,
                      Sharing &sharing, std::string &note) {
  std::unique_ptr<GroupTrace> trace;
  if (Status status = sampler.trace(middle, trace, kLines); !status)
    return status;
  const unsigned xcds = around.xcds;
  sharing.units = std::min<double>(around.units, double(around.total));
  sharing.unitsShare = sharing.units / double(around.units);
  sharing.unitsOfDie = std::max(1.0, sharing.units / xcds);
  sharing.unitsOfArray = std::max(1.0, sharing.units / around.arrays);
  // Workgroups that one of so many caches has.
  const auto neighboursOf = [&](double units, unsigned caches) {
    return std::min(uint64_t(units * around.resident),
                    (around.total + caches - 1) / caches);
  };
  const uint64_t neighbours = neighboursOf(sharing.unitsOfDie, xcds);
  note = std::to_string(neighbours) + " workgroups are at work behind an L2";
  double reached = 1; // of the lines, this level
  for (const MemoryLevel &level : chip.levels) {
    if (!level.bytes)
      continue;
    const double lines = double(level.bytes / chip.lineBytes);
    // What dies share they each fetch once; below, workgroups share.
    const bool ofDies = level.scope == Scope::Chip && xcds > 1;
    const Shared shared = sharedBy(level.scope, around, sharing, chip.l1s);
    const uint64_t users = neighboursOf(shared.units, shared.caches);
    const SharedCache cache =
        ofDies ? SharedCache{double(xcds), lines, double(neighbours) * xcds}
               : SharedCache{double(users), lines, double(users)};
    MissShares misses;
    if (Status status = measureMisses(
            sampler, *trace,
            ofDies ? besideOnChip(around, middle)
                   : besideInCache(around, middle, shared.caches, users),
            cache, misses);
        !status)
      return status;
    if (!ofDies)
      reached = ofThoseThatReach(misses, sharing.misses, reached);
    sharing.misses.push_back(std::move(misses));
    const size_t index = sharing.misses.size() - 1;
    const double share = shareBehind(*trace, sharing, index);
    note += "; the " + std::string(level.name) + " fetches " +
            std::to_string(int(100 * share + 0.5)) + " % of " +
            (index ? "these" : "the lines that one of them touches first");
  }
  return Status::success();
}

} // namespace fovea::sim
