//===- SearchTest.cpp - choices of schedules by their times ---------------===//

#include "Search.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace fovea::tune;

namespace {

/// Schedules of two numbers, a from 1 to 4 and b 1 or 2; the compiler's choice
/// is a=2,b=1. Times are what a function says.
class Fake : public Evaluator {
public:
  using Times = std::function<Timing(int a, int b, const Condition &)>;
  explicit Fake(Times timesOf) : timesOf(std::move(timesOf)) {}

  static int numberOf(const ScheduleChoice &choice, const char *key,
                      int chosen) {
    const auto at = choice.numbers.find(key);
    return at == choice.numbers.end() ? chosen : at->second;
  }
  std::string plan(const ScheduleChoice &choice) override {
    const int a = numberOf(choice, "a", 2), b = numberOf(choice, "b", 1);
    return a > 4 ? "" : "a=" + std::to_string(a) + ",b=" + std::to_string(b);
  }
  std::vector<Timing> times(const std::vector<ScheduleChoice> &choices,
                            const Size &, const Condition &condition,
                            bool isLast) override {
    std::vector<Timing> all;
    for (const ScheduleChoice &choice : choices) {
      all.emplace_back();
      if (!isLast && isSpent())
        continue;
      ++asked;
      order.push_back(plan(choice));
      all.back() = timesOf(numberOf(choice, "a", 2), numberOf(choice, "b", 1),
                           condition);
    }
    return all;
  }
  std::vector<Members> members(const std::vector<ScheduleChoice> &choices,
                               const Size &,
                               const Condition &condition) override {
    std::vector<Members> all;
    for (const ScheduleChoice &choice : choices)
      all.push_back(ensemble(numberOf(choice, "a", 2), condition));
    return all;
  }
  bool hasEnsemble() const override { return bool(ensemble); }
  std::string check(const ScheduleChoice &, const std::string &mask) override {
    checked.push_back(mask);
    return wrong;
  }
  bool isSpent() override { return asked >= most; }

  std::string wrong;
  std::function<Members(int a, const Condition &)> ensemble; ///< none: null
  std::vector<std::string> checked; ///< masks
  size_t asked = 0, most = 1000;
  std::vector<std::string> order; ///< of what was asked

private:
  Times timesOf;
};

Timing seconds(double value) { return {"", value, 0.1, false}; }

std::vector<Axis> axes() {
  Axis a{"a", {"a"}, {}}, b{"b", {"b"}, {}};
  for (int value : {1, 2, 3, 4, 5})
    a.values.emplace_back().numbers["a"] = value;
  for (int value : {1, 2})
    b.values.emplace_back().numbers["b"] = value;
  return {a, b};
}

Found search(Fake &fake, const std::vector<Condition> &conditions = {{}},
             const std::vector<ScheduleChoice> &seeds = {}) {
  return searchBucket(axes(), {}, seeds, Size(), conditions, fake);
}

} // namespace

TEST(Search, TakesWhatIsFasterBeyondATie) {
  // Two steps away: a=4, then b=2.
  Fake fake([](int a, int b, const Condition &) {
    return seconds(10.0 - a - (a == 4 ? 2 * b : 0));
  });
  const Found found = search(fake);
  EXPECT_FALSE(found.isBaseline);
  EXPECT_EQ(found.schedule, "a=4,b=2");
  EXPECT_TRUE(found.isComplete);
  EXPECT_NEAR(found.gain, 8.0 / 2.0, 1e-9);
}

TEST(Search, KeepsTheDefaultAmongTies) {
  Fake fake([](int a, int b, const Condition &) {
    return seconds(a == 3 ? 0.95 : 1);
  });
  const Found found = search(fake);
  EXPECT_TRUE(found.isBaseline);
  EXPECT_TRUE(found.baselineTies);
  EXPECT_EQ(found.bestChoice.numbers.at("a"), 3);
  EXPECT_EQ(found.why, "the default ties with the fastest, 5 % faster");
  EXPECT_EQ(found.chosen.size(), 0u);
}

TEST(Search, TakesASeedThatTiesWithTheFastest) {
  Fake fake([](int a, int b, const Condition &) {
    return seconds(a == 3 ? 0.52 : a == 4 ? 0.5 : 1);
  });
  ScheduleChoice seed;
  seed.numbers["a"] = 3;
  const Found found = search(fake, {{}}, {seed});
  EXPECT_EQ(found.schedule, "a=3,b=1");
  EXPECT_EQ(found.why, "ties with the fastest, and has a row already");
}

TEST(Search, TakesNothingThatIsSlowerUnderACondition) {
  Fake fake([](int a, int b, const Condition &condition) {
    if (condition.mask == "causal-top-left")
      return seconds(a == 4 ? 1.01 : a == 3 ? 0.7 : 1);
    return seconds(a == 4 ? 0.5 : a == 3 ? 0.6 : 1);
  });
  Found found = search(fake, {{}, {"none", 1.2}, {"causal-top-left", 0}});
  EXPECT_EQ(found.schedule, "a=3,b=1");
  EXPECT_EQ(fake.checked,
            (std::vector<std::string>{"none", "causal-top-left"}));
  EXPECT_NEAR(found.gain, 1 / std::cbrt(0.6 * 0.6 * 0.7), 1e-9);
}

TEST(Search, TakesNothingThatTiesInTheMean) {
  Fake fake([](int a, int b, const Condition &condition) {
    return seconds(a == 4 && condition.mask == "none" ? 0.9 : 1);
  });
  const Found found = search(fake, {{}, {"causal-top-left", 0}});
  EXPECT_TRUE(found.isBaseline);
  EXPECT_NE(found.why.find("a tie over all masks and clocks"),
            std::string::npos)
      << found.why;
}

TEST(Search, TakesNothingThatComputesWrong) {
  Fake fake([](int a, int b, const Condition &) { return seconds(5.0 - a); });
  fake.wrong = "out differs";
  const Found found = search(fake);
  EXPECT_TRUE(found.isBaseline);
  EXPECT_NE(found.why.find("out differs"), std::string::npos);
}

TEST(Search, CountsWhatIsRefused) {
  Fake fake([](int a, int b, const Condition &) {
    return a == 4 ? Timing{"3 vector registers spilled"} : seconds(1);
  });
  const Found found = search(fake);
  EXPECT_EQ(found.refused, 1u);
  EXPECT_EQ(found.tried, 5u); // all of a, which 5 is not of, and b=2
  EXPECT_EQ(found.ties, 3u);
}

TEST(Search, EndsWithTheBudgetAndTakesTheBestSoFar) {
  Fake fake([](int a, int b, const Condition &) {
    return seconds(10.0 - 2 * a - 1.9 * b);
  });
  fake.most = 5;
  const Found found = search(fake);
  EXPECT_FALSE(found.isComplete);
  EXPECT_TRUE(found.isDecided);
  EXPECT_EQ(found.schedule, "a=4,b=1");
  fake.asked = 5;
  const Found none = search(fake);
  EXPECT_TRUE(none.isBaseline);
  EXPECT_FALSE(none.isDecided);
  EXPECT_EQ(none.why, "not tried");
  // What has a row is to be held against the default before it goes.
  fake.asked = 4;
  ScheduleChoice seed;
  seed.numbers["a"] = 3;
  EXPECT_FALSE(search(fake, {{}}, {seed}).isDecided);
}

/// Neighbours as near as others keep the order of axes.
TEST(Search, TriesWhatIsNearestToTheDefaultFirst) {
  Fake fake(
      [](int a, int, const Condition &) { return seconds(a == 3 ? 0.5 : 1); });
  fake.most = 2;
  EXPECT_EQ(search(fake).schedule, "a=3,b=1");
  fake.most = 1000;
  fake.order.clear();
  fake.asked = 0;
  search(fake);
  EXPECT_EQ(fake.order.front(), "a=2,b=1");
  fake.order.resize(5);
  EXPECT_EQ(fake.order,
            (std::vector<std::string>{"a=2,b=1", "a=3,b=1", "a=1,b=1",
                                      "a=4,b=1", "a=2,b=2"}));
}

TEST(Search, DistancesAreDoublingsAndWhatElseDiffers) {
  const std::string one = "block_m=128,block_n=64,waves=4,inst=a,stages=4";
  auto with = [](const std::string &rows, const std::string &others) {
    return rows + ",block_n=64," + others;
  };
  EXPECT_EQ(distance(one, one), 0);
  // Half of the rows by half of the waves, and by as many: of 16 rows each.
  EXPECT_EQ(distance(one, with("block_m=64", "waves=2,inst=a,stages=4")), 1);
  EXPECT_EQ(distance(one, with("block_m=64", "waves=4,inst=a,stages=4")), 2);
  EXPECT_EQ(distance(with("block_m=64", "waves=4,inst=a,stages=4"), one), 2);
  EXPECT_NEAR(distance(one, with("block_m=128", "waves=4,inst=b,stages=3")),
              1 + std::log2(4 / 3.0), 1e-12);
  // A parameter that only one says, and places, which are no numbers.
  EXPECT_EQ(distance(one, one + ",value_split=2"), 1);
  for (const char *place : {"0", "1"})
    EXPECT_EQ(
        distance(one + ",queries_in_lds=" + place, one + ",queries_in_lds=3"),
        1);
  // Launches.
  const std::string sums = "deterministic;dkdv:block_n=64;dq:block_n=64";
  EXPECT_EQ(distance(sums, "deterministic;dkdv:block_n=32;dq:block_n=16"), 3);
  EXPECT_EQ(distance(sums, "atomic;dkdv:block_n=64"), 2);
  EXPECT_EQ(distance("atomic;dkdv:block_n=64", sums), 2);
  EXPECT_GT(distance(one, ""), 0);
}

TEST(Search, SaysOnlyWhatMattersOfAChoice) {
  Fake fake([](int, int, const Condition &) { return seconds(1); });
  ScheduleChoice choice;
  choice.numbers = {{"a", 3}, {"b", 1}};
  EXPECT_EQ(toString(simplified(choice, fake)), "a=3");
}

namespace {

/// a=3 is 1.43 times as fast by the model itself.
Fake ofEnsemble(decltype(Fake::ensemble) ensemble) {
  Fake fake(
      [](int a, int, const Condition &) { return seconds(a == 3 ? 0.7 : 1); });
  fake.ensemble = std::move(ensemble);
  return fake;
}

} // namespace

TEST(Search, AGainThatOneConstantExplainsIsATie) {
  Fake fake = ofEnsemble([](int a, const Condition &) {
    return Evaluator::Members{{"clock x 0.87", a == 3 ? 0.7 : 1},
                              {"L2 latency x 0.8", a == 3 ? 0.98 : 1}};
  });
  const Found found = search(fake, {{}, {"none", 1.2}});
  EXPECT_TRUE(found.isBaseline);
  EXPECT_NE(found.why.find("a tie: 2 % with L2 latency x 0.8"),
            std::string::npos)
      << found.why;
}

TEST(Search, AGainThatHoldsInAllMembersIsOne) {
  Fake fake = ofEnsemble([](int a, const Condition &condition) {
    const double most = condition.mask == "none" ? 0.6 : 0.5;
    return Evaluator::Members{{"clock x 0.87", a == 3 ? most : 1},
                              {"L2 latency x 0.8", a == 3 ? 0.8 : 1}};
  });
  const Found found = search(fake, {{}, {"none", 1.2}, {"causal-top-left", 0}});
  EXPECT_EQ(found.schedule, "a=3,b=1");
  EXPECT_NEAR(found.gain, 1 / 0.8, 1e-9);
  EXPECT_NEAR(found.estimate, 1 / 0.7, 1e-9);
  EXPECT_EQ(found.why, "faster than the default beyond a tie, at least 25 % "
                       "with L2 latency x 0.8");
}

TEST(Search, WhatAMemberHasSlowerUnderAMaskIsNoGain) {
  Fake fake = ofEnsemble([](int a, const Condition &condition) {
    const bool isCausal = condition.mask != "none";
    return Evaluator::Members{{"LDS rate x 0.7", a != 3     ? 1
                                                 : isCausal ? 1.01
                                                            : 0.3}};
  });
  const Found found = search(fake, {{}, {"causal-top-left", 0}});
  EXPECT_TRUE(found.isBaseline);
  EXPECT_NE(
      found.why.find("slower under mask causal-top-left with LDS rate x 0.7"),
      std::string::npos)
      << found.why;
}

TEST(Search, WhatTheEnsembleDoesNotKnowIsNoGain) {
  Fake fake = ofEnsemble([](int a, const Condition &) {
    return a == 3 ? Evaluator::Members() : Evaluator::Members{{"clock", 1}};
  });
  EXPECT_TRUE(search(fake).isBaseline);
}
