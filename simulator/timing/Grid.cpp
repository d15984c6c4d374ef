//===- Grid.cpp - A chip working through a grid ---------------------------===//
//
// Interpolates work over the grid, and simulates the dispatcher.
//
//===----------------------------------------------------------------------===//
#include "timing/Grid.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace fovea::sim {

namespace {
bool close(double a, double b) {
  return std::abs(a - b) <= 0.01 * std::max(std::abs(a), std::abs(b)) + 1;
}
} // namespace

WorkMap::WorkMap(const uint32_t *grid, uint64_t total)
    : Grid{grid[0], grid[1], grid[2]}, Total(total) {}

uint64_t WorkMap::pointId(unsigned dim, uint32_t at) const {
  uint32_t p[3] = {0, 0, 0};
  p[dim] = at;
  return p[0] + uint64_t(Grid[0]) * (p[1] + uint64_t(Grid[1]) * p[2]);
}

bool WorkMap::regroup(const std::map<uint64_t, uint64_t> &counts) {
  for (uint32_t run = 1; run < Grid[0] && Grid[0] % run == 0; run *= 2) {
    if (counts.at(run) == counts.at(0))
      continue;
    Grid[2] *= Grid[0] / run;
    Grid[0] = run;
    return true;
  }
  return false;
}

void WorkMap::setTiles(uint64_t total,
                       const std::map<uint64_t, uint64_t> &points) {
  Total = total;
  Counts = points;
  Spread = true;
  Stage = ~0u;
}

std::vector<uint64_t> WorkMap::wanted(const std::map<uint64_t, uint64_t> &counts) {
  std::vector<uint64_t> result;
  auto want = [&](uint64_t id) {
    if (!counts.count(id))
      result.push_back(id);
  };
  while (true) {
    result.clear();
    if (Stage == 0) { // both ends and places between in each dimension
      for (unsigned d = 0; d < 3; ++d)
        for (uint64_t i : {0, 1, 2, 3, 4})
          want(pointId(d, static_cast<uint32_t>(i * (Grid[d] - 1) / 4)));
    } else if (Stage == 1) { // dimensions that matter: more points
      for (unsigned d = 0; d < 3; ++d) {
        bool matters = false;
        double first = double(counts.at(pointId(d, 0)));
        for (uint64_t i : {1, 2, 3, 4})
          matters |= !close(first, double(counts.at(pointId(
                                       d, static_cast<uint32_t>(i * (Grid[d] - 1) / 4)))));
        if (!matters)
          continue;
        for (uint64_t i = 0; i <= 8; ++i)
          want(pointId(d, static_cast<uint32_t>(i * (Grid[d] - 1) / 8)));
      }
    } else if (Stage == 2) { // does it hold elsewhere?
      finish(counts);
      uint64_t state = 0x9e3779b97f4a7c15u;
      Checks.clear();
      for (int i = 0; i < 4; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        Checks.push_back((state >> 20) % Total);
      }
      // Lines hide best what lies where work changes most, such as the end of
      // one head's blocks and the beginning of the next one's.
      for (unsigned d = 0; d < 3; ++d)
        if (std::optional<uint32_t> at = withinSteepest(d))
          Checks.push_back(pointId(d, *at));
      for (uint64_t id : Checks)
        want(id);
    } else if (Stage == 3) {
      finish(counts);
      double worst = 0;
      for (uint64_t id : Checks)
        worst = std::max(worst, std::abs(work(id) - double(counts.at(id))) /
                                    std::max(1.0, double(counts.at(id))));
      if (worst > 0.05 && Total > 16 && !Regrouped) {
        for (uint32_t run = 1; run < Grid[0] && Grid[0] % run == 0; run *= 2)
          want(run);
        if (!result.empty())
          return result;
        Regrouped = true;
        if (regroup(counts)) {
          Stage = 0;
          continue;
        }
      }
      if (worst > 0.05 && Total > 16) {
        Spread = true;
        uint64_t state = 12345;
        uint64_t n = std::min<uint64_t>(32, Total);
        for (uint64_t i = 0; i < n; ++i) { // one of each n-th, at random
          state = state * 6364136223846793005u + 1442695040888963407u;
          uint64_t begin = Total * i / n, end = Total * (i + 1) / n;
          Strata[begin] = begin + (state >> 20) % (end - begin);
          want(Strata[begin]);
        }
        Note = "the work of workgroups follows no dimension of the grid; " +
               std::to_string(n) + " of them, spread over it, stand for all";
      }
    } else {
      return {};
    }
    ++Stage;
    if (!result.empty()) {
      std::sort(result.begin(), result.end());
      result.erase(std::unique(result.begin(), result.end()), result.end());
      return result;
    }
  }
}

void WorkMap::finish(const std::map<uint64_t, uint64_t> &counts) {
  Counts = counts;
  Base = std::max(1.0, double(counts.at(0)));
  for (unsigned d = 0; d < 3; ++d) {
    Points[d].clear();
    for (uint64_t i = 0; i <= 8; ++i) {
      uint32_t at = static_cast<uint32_t>(i * (Grid[d] - 1) / 8);
      auto it = counts.find(pointId(d, at));
      if (it != counts.end())
        Points[d][at] = double(it->second);
    }
    for (uint64_t i : {1, 3}) {
      uint32_t at = static_cast<uint32_t>(i * (Grid[d] - 1) / 4);
      auto it = counts.find(pointId(d, at));
      if (it != counts.end())
        Points[d][at] = double(it->second);
    }
  }
}

std::optional<uint32_t> WorkMap::withinSteepest(unsigned dim) const {
  const auto &points = Points[dim];
  std::optional<uint32_t> result;
  double most = 0;
  for (auto it = points.begin(); it != points.end(); ++it) {
    auto next = std::next(it);
    if (next == points.end())
      break;
    const double change = std::abs(next->second - it->second);
    if (next->first - it->first < 2 || close(next->second, it->second) ||
        change <= most)
      continue;
    most = change;
    result = it->first + (next->first - it->first) / 2;
  }
  return result;
}

double WorkMap::along(unsigned dim, uint32_t at) const {
  const auto &points = Points[dim];
  auto upper = points.lower_bound(at);
  if (upper == points.end())
    return points.rbegin()->second;
  if (upper->first == at || upper == points.begin())
    return upper->second;
  auto lower = std::prev(upper);
  double t = double(at - lower->first) / double(upper->first - lower->first);
  return lower->second + t * (upper->second - lower->second);
}

double WorkMap::work(uint64_t group) const {
  if (!Strata.empty())
    return double(Counts.at(std::prev(Strata.upper_bound(group))->second));
  if (Spread) {
    auto it = Counts.upper_bound(group);
    return double(it == Counts.begin() ? it->second : std::prev(it)->second);
  }
  uint32_t p[3] = {static_cast<uint32_t>(group % Grid[0]),
                   static_cast<uint32_t>(group / Grid[0] % Grid[1]),
                   static_cast<uint32_t>(group / Grid[0] / Grid[1])};
  double result = Base;
  for (unsigned d = 0; d < 3; ++d)
    result *= along(d, p[d]) / Base;
  return result;
}

std::vector<uint64_t> WorkMap::levels(unsigned n) const {
  std::vector<std::pair<uint64_t, uint64_t>> byWork;
  for (const auto &[id, work] : Counts)
    byWork.emplace_back(work, id);
  std::sort(byWork.begin(), byWork.end());
  std::vector<uint64_t> result;
  double least = double(byWork.front().first), most = double(byWork.back().first);
  if (n < 2 || close(least, most))
    return {byWork.back().second};
  for (unsigned i = 0; i < n; ++i) {
    double target = least + (most - least) * i / (n - 1);
    auto nearest = std::min_element(
        byWork.begin(), byWork.end(), [&](const auto &a, const auto &b) {
          return std::abs(double(a.first) - target) <
                 std::abs(double(b.first) - target);
        });
    if (std::find(result.begin(), result.end(), nearest->second) == result.end())
      result.push_back(nearest->second);
  }
  return result;
}

uint64_t WorkMap::usual() const {
  constexpr uint64_t kLooked = 63;
  std::vector<std::pair<double, uint64_t>> groups;
  for (uint64_t i = 0; i < std::min(kLooked, Total); ++i) {
    const uint64_t group = (2 * i + 1) * Total / (2 * std::min(kLooked, Total));
    groups.emplace_back(work(group), group);
  }
  auto middle = groups.begin() + int64_t(groups.size() / 2);
  std::nth_element(groups.begin(), middle, groups.end());
  return middle->second;
}

namespace {

/// Clocks for an amount of work, from paces in order of work.
double clocksFor(const std::vector<Pace> &paces, double work, bool full) {
  auto of = [&](const Pace &p) { return full ? p.clocksFull : p.clocksAlone; };
  if (paces.size() == 1)
    return of(paces[0]) * work / std::max(1.0, paces[0].work);
  size_t i = 1;
  while (i + 1 < paces.size() && work > paces[i].work)
    ++i;
  const Pace &a = paces[i - 1], &b = paces[i];
  double span = b.work - a.work;
  if (span <= 0)
    return of(b);
  double t = (work - a.work) / span;
  return std::max(1.0, of(a) + t * (of(b) - of(a)));
}

} // namespace

GridResult runGrid(const WorkMap &work, const std::vector<Pace> &unsorted,
                   unsigned units, unsigned xcds, unsigned engines,
                   unsigned resident, unsigned interval) {
  std::vector<Pace> paces = unsorted;
  std::sort(paces.begin(), paces.end(),
            [](const Pace &a, const Pace &b) { return a.work < b.work; });
  GridResult result;
  // A workgroup's share of its own duration that is done in a clock depends on
  // how many others are there. Between alone and full, linearly.
  struct Running {
    double left; ///< share
    double rateFull, rateAlone;
  };
  struct UnitState {
    std::vector<Running> running;
    double time = 0;
    uint64_t version = 0;
  };
  std::vector<UnitState> unit(units);
  auto rate = [&](const Running &r, size_t together) {
    if (resident <= 1)
      return r.rateFull;
    double t = double(together - 1) / double(resident - 1);
    return 1 / (1 / r.rateAlone + t * (1 / r.rateFull - 1 / r.rateAlone));
  };
  struct Event {
    double time;
    unsigned unit;
    uint64_t version;
    bool operator>(const Event &other) const { return time > other.time; }
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
  auto advance = [&](UnitState &u, double now) {
    for (Running &r : u.running)
      r.left -= (now - u.time) * rate(r, u.running.size());
    u.time = now;
  };
  auto schedule = [&](unsigned index) {
    UnitState &u = unit[index];
    ++u.version;
    double soonest = -1;
    for (const Running &r : u.running) {
      double t = u.time + std::max(0.0, r.left) / rate(r, u.running.size());
      if (soonest < 0 || t < soonest)
        soonest = t;
    }
    if (soonest >= 0)
      events.push({soonest, index, u.version});
  };

  uint64_t total = work.total();
  // A queue an engine: of the workgroups of its XCD (every xcds-th) each
  // engines-th. Its compute units are consecutive here; where an XCD's do not
  // divide evenly, the later engines have one more.
  struct Queue {
    uint64_t next, firstUnit, endUnit;
  };
  std::vector<Queue> queues;
  std::vector<unsigned> queueOf(units);
  for (unsigned x = 0; x < xcds; ++x) {
    uint64_t begin = uint64_t(units) * x / xcds;
    uint64_t size = uint64_t(units) * (x + 1) / xcds - begin;
    for (unsigned e = 0; e < engines; ++e) {
      uint64_t share = size / engines + (e >= engines - size % engines ? 1 : 0);
      for (uint64_t i = begin; i < begin + share; ++i)
        queueOf[i] = static_cast<unsigned>(queues.size());
      queues.push_back({x + uint64_t(xcds) * e, begin, begin + share});
      begin += share;
    }
  }
  uint64_t stride = uint64_t(xcds) * engines;
  double placeClocks = 0;
  auto start = [&](unsigned index, Queue &queue, double now) {
    double w = work.work(queue.next);
    queue.next += stride;
    result.instructions += w;
    UnitState &u = unit[index];
    advance(u, now);
    double full = clocksFor(paces, w, true), alone = clocksFor(paces, w, false);
    u.running.push_back({1, 1 / full, 1 / std::min(full, alone)});
  };
  // The first workgroups, one for each unit in turn.
  for (Queue &queue : queues) {
    double now = 0;
    for (unsigned round = 0; round < resident; ++round)
      for (uint64_t i = queue.firstUnit;
           i < queue.endUnit && queue.next < total; ++i) {
        start(static_cast<unsigned>(i), queue, now);
        now += double(interval) * engines;
      }
    for (uint64_t i = queue.firstUnit; i < queue.endUnit; ++i)
      schedule(static_cast<unsigned>(i));
  }
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    UnitState &u = unit[event.unit];
    if (event.version != u.version)
      continue;
    size_t before = u.running.size();
    double from = u.time;
    advance(u, event.time);
    placeClocks += (event.time - from) * double(before);
    u.running.erase(std::remove_if(u.running.begin(), u.running.end(),
                                   [](const Running &r) { return r.left <= 1e-9; }),
                    u.running.end());
    result.clocks = std::max(result.clocks, event.time);
    Queue &queue = queues[queueOf[event.unit]];
    while (u.running.size() < resident && queue.next < total)
      start(event.unit, queue, event.time);
    schedule(event.unit);
  }
  double places = double(units) * resident * result.clocks;
  result.busyShare = places > 0 ? std::min(1.0, placeClocks / places) : 0;
  return result;
}

} // namespace fovea::sim
