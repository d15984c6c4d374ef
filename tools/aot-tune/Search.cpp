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
  double distance; ///< from the default's schedule
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
  struct Verdict {
    double estimate = 0; ///< the mean gain over the conditions
    double gain = 0;     ///< the least of the ensemble; 0: it is no choice
    std::string why;
  };
  Verdict judge(const Tried &candidate);
  /// Sets the gain of a verdict, which has passed without it.
  void askEnsemble(const Tried &candidate, double error, Verdict &verdict);

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
  std::vector<std::string> wanted;
  std::vector<Tried> fresh;
  for (const ScheduleChoice &choice : choices) {
    const std::string schedule = evaluator.plan(choice);
    if (schedule.empty())
      continue;
    wanted.push_back(schedule);
    if (all.count(schedule) ||
        std::any_of(fresh.begin(), fresh.end(), [&](const Tried &other) {
          return other.schedule == schedule;
        }))
      continue;
    fresh.push_back(
        {choice, schedule, base ? distance(schedule, base->schedule) : 0, {}});
  }
  // What a budget leaves out is what is farthest from the default.
  std::stable_sort(
      fresh.begin(), fresh.end(),
      [](const Tried &a, const Tried &b) { return a.distance < b.distance; });
  std::vector<ScheduleChoice> asked;
  for (const Tried &tried : fresh)
    asked.push_back(tried.choice);
  const std::vector<Timing> timings =
      evaluator.times(asked, size, conditions.front(), /*isLast=*/false);
  areAllAnswered = true;
  for (size_t i = 0; i != fresh.size(); ++i) {
    fresh[i].timing = timings[i];
    if (!timings[i].isKnown() && timings[i].refused.empty())
      areAllAnswered = false;
    else
      all[fresh[i].schedule] = fresh[i];
  }
  const Tried *best = nullptr;
  for (const std::string &schedule : wanted) {
    const auto at = all.find(schedule);
    if (at != all.end() && at->second.timing.isKnown() &&
        (!best || at->second.timing.seconds < best->timing.seconds))
      best = &at->second;
  }
  return best;
}

BucketSearch::Verdict BucketSearch::judge(const Tried &candidate) {
  Verdict verdict;
  double logs = 0, error = 0;
  for (const Condition &condition : conditions) {
    const std::vector<Timing> pair =
        evaluator.times({candidate.choice, base->choice}, size, condition,
                        /*isLast=*/true);
    if (!pair[0].isKnown() || !pair[1].isKnown()) {
      verdict.why = pair[0].refused.empty()
                        ? "not tried under mask " + condition.mask
                        : pair[0].refused;
      return verdict;
    }
    const double ratio = pair[1].seconds / pair[0].seconds;
    if (ratio < 1) {
      verdict.why = "slower under mask " + condition.mask +
                    (condition.clockGHz > 0 ? " at a fixed clock" : "");
      return verdict;
    }
    logs += std::log(ratio);
    error = std::max({error, pair[0].tieError, pair[1].tieError});
  }
  verdict.estimate = std::exp(logs / double(conditions.size()));
  if (verdict.estimate <= 1 + error)
    verdict.why = "a tie over all masks and clocks";
  else if (evaluator.hasEnsemble())
    askEnsemble(candidate, error, verdict);
  else
    verdict.gain = verdict.estimate;
  return verdict;
}

void BucketSearch::askEnsemble(const Tried &candidate, double error,
                               Verdict &verdict) {
  Evaluator::Members logs; // of gains, in place of seconds
  double masks = 0;
  for (const Condition &condition : conditions) {
    if (condition.clockGHz > 0) // clocks are the ensemble's as well
      continue;
    const std::vector<Evaluator::Members> pair =
        evaluator.members({candidate.choice, base->choice}, size, condition);
    if (pair[0].empty() || pair[0].size() != pair[1].size()) {
      verdict.why =
          "not held against the ensemble under mask " + condition.mask;
      return;
    }
    const sim::RatioRange range = sim::ratioOverMembers(pair[1], pair[0]);
    if (range.least < 1) {
      verdict.why =
          "slower under mask " + condition.mask + " with " + range.leastBy;
      return;
    }
    logs.resize(pair[0].size());
    for (size_t i = 0; i != logs.size(); ++i) {
      logs[i].name = pair[0][i].name;
      logs[i].seconds += std::log(pair[1][i].seconds / pair[0][i].seconds);
    }
    ++masks;
  }
  const sim::MemberTime &least =
      *std::min_element(logs.begin(), logs.end(),
                        [](const sim::MemberTime &a, const sim::MemberTime &b) {
                          return a.seconds < b.seconds;
                        });
  const double gain = std::exp(least.seconds / masks);
  const std::string how = percent(gain) + " with " + least.name;
  if (gain > 1 + error) {
    verdict.gain = gain;
    verdict.why = "at least " + how;
  } else {
    verdict.why = "a tie: " + how;
  }
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
    const Verdict verdict = judge(*winner);
    std::string why = verdict.gain > 0 ? "" : verdict.why;
    std::set<std::string> masks;
    for (const Condition &condition : conditions)
      if (why.empty() && masks.insert(condition.mask).second)
        why = evaluator.check(winner->choice, condition.mask);
    if (why.empty()) {
      found.chosen = simplified(winner->choice, evaluator, /*forReaders=*/true);
      found.parameters = simplified(winner->choice, evaluator);
      found.schedule = winner->schedule;
      found.isBaseline = false;
      found.gain = verdict.gain;
      found.estimate = verdict.estimate;
      found.why = isUsed(winner) && winner != best
                      ? "ties with the fastest, and has a row already"
                      : "faster than the default beyond a tie";
      if (!verdict.why.empty())
        found.why += ", " + verdict.why;
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
