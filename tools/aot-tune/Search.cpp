//===- Search.cpp - from times of schedules to a choice -------------------===//

#include "Search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

using namespace fovea;
using namespace fovea::tune;

namespace {

/// A step must promise at least this, or a descent would wander among equals.
constexpr double kStep = 0.002;
/// How many schedules are held against the baseline under all conditions.
constexpr size_t kFinalists = 3;

struct Tried {
  ScheduleChoice choice;
  std::string schedule;
  Timing timing;
};

std::string percent(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * (factor - 1));
  return text;
}

class BucketSearch {
public:
  BucketSearch(const std::vector<Axis> &axes,
               const std::vector<Condition> &conditions, const Size &size,
               Evaluator &evaluator)
      : axes(axes), conditions(conditions), size(size), evaluator(evaluator) {}

  Found run(const ScheduleChoice &baseline,
            const std::vector<ScheduleChoice> &seeds);

private:
  /// Times what is new of the choices; the best of them, as they are or were.
  const Tried *tryAll(const std::vector<ScheduleChoice> &choices);
  void choose(const std::vector<ScheduleChoice> &seeds, Found &found);
  /// The mean gain over the conditions; 0 if it is no choice, with the reason.
  double judge(const Tried &candidate, std::string &why);

  const std::vector<Axis> &axes;
  const std::vector<Condition> &conditions;
  Size size;
  Evaluator &evaluator;
  std::map<std::string, Tried> all; ///< by schedule
  const Tried *base = nullptr;
  bool areAllAnswered = false; ///< of the last tryAll()
};

} // namespace

const Tried *BucketSearch::tryAll(const std::vector<ScheduleChoice> &choices) {
  std::vector<ScheduleChoice> fresh;
  std::vector<std::string> wanted, freshNames;
  for (const ScheduleChoice &choice : choices) {
    const std::string schedule = evaluator.plan(choice);
    if (schedule.empty())
      continue;
    wanted.push_back(schedule);
    if (all.count(schedule) ||
        std::count(freshNames.begin(), freshNames.end(), schedule))
      continue;
    fresh.push_back(choice);
    freshNames.push_back(schedule);
  }
  const std::vector<Timing> timings =
      evaluator.times(fresh, size, conditions.front(), /*isLast=*/false);
  areAllAnswered = true;
  for (size_t i = 0; i != fresh.size(); ++i)
    if (!timings[i].isKnown() && timings[i].refused.empty())
      areAllAnswered = false;
    else
      all[freshNames[i]] = {fresh[i], freshNames[i], timings[i]};
  const Tried *best = nullptr;
  for (const std::string &schedule : wanted) {
    const auto at = all.find(schedule);
    if (at != all.end() && at->second.timing.isKnown() &&
        (!best || at->second.timing.seconds < best->timing.seconds))
      best = &at->second;
  }
  return best;
}

double BucketSearch::judge(const Tried &candidate, std::string &why) {
  double logs = 0, error = 0;
  for (const Condition &condition : conditions) {
    const std::vector<Timing> pair =
        evaluator.times({candidate.choice, base->choice}, size, condition,
                        /*isLast=*/true);
    if (!pair[0].isKnown() || !pair[1].isKnown()) {
      why = pair[0].refused.empty() ? "not tried under mask " + condition.mask
                                    : pair[0].refused;
      return 0;
    }
    const double ratio = pair[1].seconds / pair[0].seconds;
    if (ratio < 1) {
      why = "slower under mask " + condition.mask +
            (condition.clockGHz > 0 ? " at a fixed clock" : "");
      return 0;
    }
    logs += std::log(ratio);
    error = std::max({error, pair[0].tieError, pair[1].tieError});
  }
  const double gain = std::exp(logs / double(conditions.size()));
  if (gain > 1 + error)
    return gain;
  why = "a tie over all masks and clocks";
  return 0;
}

void BucketSearch::choose(const std::vector<ScheduleChoice> &seeds,
                          Found &found) {
  std::vector<const Tried *> known;
  for (const auto &[schedule, tried] : all) {
    found.refused += !tried.timing.refused.empty();
    if (tried.timing.isKnown())
      known.push_back(&tried);
  }
  found.tried = all.size();
  const Tried *best = *std::min_element(
      known.begin(), known.end(), [](const Tried *a, const Tried *b) {
        return a->timing.seconds < b->timing.seconds;
      });
  found.best = best->timing;
  found.bestChoice = best->choice;
  for (const Tried *tried : known)
    found.ties += tried != best && isTie(tried->timing, best->timing);
  found.baselineTies = base == best || isTie(base->timing, best->timing);
  if (found.baselineTies) {
    found.why = base == best
                    ? "the default is the fastest"
                    : "the default ties with the fastest, " +
                          percent(base->timing.seconds / best->timing.seconds) +
                          " faster";
    return;
  }
  std::vector<std::string> used;
  for (const ScheduleChoice &seed : seeds)
    used.push_back(evaluator.plan(seed));
  auto isUsed = [&](const Tried *tried) {
    return isTie(tried->timing, best->timing) &&
           std::count(used.begin(), used.end(), tried->schedule) > 0;
  };
  std::vector<const Tried *> winners;
  for (const Tried *tried : known)
    if (tried->timing.seconds < base->timing.seconds &&
        !isTie(tried->timing, base->timing))
      winners.push_back(tried);
  std::sort(winners.begin(), winners.end(),
            [&](const Tried *a, const Tried *b) {
              return std::make_tuple(!isUsed(a), a->timing.seconds) <
                     std::make_tuple(!isUsed(b), b->timing.seconds);
            });
  winners.resize(std::min(winners.size(), kFinalists));
  for (const Tried *winner : winners) {
    std::string why;
    const double gain = judge(*winner, why);
    std::set<std::string> masks;
    for (const Condition &condition : conditions)
      if (gain > 0 && why.empty() && masks.insert(condition.mask).second)
        why = evaluator.check(winner->choice, condition.mask);
    if (gain > 0 && why.empty()) {
      found.chosen = simplified(winner->choice, evaluator, /*forReaders=*/true);
      found.parameters = simplified(winner->choice, evaluator);
      found.schedule = winner->schedule;
      found.isBaseline = false;
      found.gain = gain;
      found.why = isUsed(winner) && winner != best
                      ? "ties with the fastest, and has a row already"
                      : "faster than the default beyond a tie";
      return;
    }
    found.why +=
        (found.why.empty() ? "" : "; ") + toString(winner->choice) + ": " + why;
  }
}

Found BucketSearch::run(const ScheduleChoice &baseline,
                        const std::vector<ScheduleChoice> &seeds) {
  Found found;
  found.size = size;
  found.chosen = baseline;
  found.parameters = simplified(baseline, evaluator);
  found.schedule = evaluator.plan(baseline);
  base = tryAll({baseline});
  if (!base) {
    const auto at = all.find(found.schedule);
    found.why = at == all.end() ? "not tried"
                                : "the default: " + at->second.timing.refused;
    return found;
  }
  found.baseline = base->timing;
  const Tried *current = base;
  if (const Tried *seed = tryAll(seeds);
      seed && seed->timing.seconds < current->timing.seconds)
    current = seed;
  found.isDecided = areAllAnswered;
  // What is known already is followed for free when the budget is spent.
  while (true) {
    const Tried *next = tryAll(neighbours(current->choice, axes));
    if (!next || next->timing.seconds >= current->timing.seconds * (1 - kStep))
      break;
    current = next;
  }
  found.isComplete = areAllAnswered;
  choose(seeds, found);
  return found;
}

Found tune::searchBucket(const std::vector<Axis> &axes,
                         const ScheduleChoice &baseline,
                         const std::vector<ScheduleChoice> &seeds,
                         const Size &size,
                         const std::vector<Condition> &conditions,
                         Evaluator &evaluator) {
  return BucketSearch(axes, conditions, size, evaluator).run(baseline, seeds);
}

ScheduleChoice tune::simplified(ScheduleChoice choice, Evaluator &evaluator,
                                bool forReaders) {
  const std::string schedule = evaluator.plan(choice);
  auto dropFrom = [&](auto member) {
    const auto keys = choice.*member;
    for (const auto &[key, value] : keys) {
      if (forReaders && key == "algorithm")
        continue;
      ScheduleChoice less = choice;
      (less.*member).erase(key);
      if (evaluator.plan(less) == schedule)
        choice = less;
    }
  };
  dropFrom(&ScheduleChoice::numbers);
  dropFrom(&ScheduleChoice::names);
  return choice;
}
