//===- BenchTest.cpp - times of schedules, by a device that is made up ----===//
//
// What is tried, and what is written down of it, where kernels are measured.
// They are compiled; their times are their rows a workgroup.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::tune;
using nlohmann::json;

namespace {

int rowsOf(const std::string &schedule) {
  return std::stoi(schedule.substr(schedule.find('=') + 1));
}

/// Schedules of 32 rows bring the device down, alone or beside others.
json measureMadeUp(const std::vector<const tools::BuiltKernel *> &kernels,
                   const std::vector<std::string> &, const std::string &,
                   const Size &, const Condition &, const std::string &) {
  json all = json::array();
  for (const tools::BuiltKernel *kernel : kernels) {
    if (rowsOf(kernel->record.schedule) == 32)
      return {{"error", "the device is gone"}};
    all.push_back(
        {{"seconds", rowsOf(kernel->record.schedule)}, {"tie_error", 0.01}});
  }
  return all;
}

json breaks(const std::vector<const tools::BuiltKernel *> &,
            const std::vector<std::string> &, const std::string &, const Size &,
            const Condition &, const std::string &) {
  return {{"error", "the device is gone"}};
}

class BenchTest : public testing::Test {
protected:
  BenchTest() {
    session.method = {/*isMeasured=*/true, "a GPU", "auto"};
    session.measure = measureMadeUp;
    session.folder = scratch.path();
    session.isInterrupted = [] { return false; };
    session.tell = [this](const std::string &line) { told.push_back(line); };
    Expected<ProblemKey> key =
        ProblemKey::parse("forward;dtype=bf16;head_dim=32;window=1");
    subject = {"gfx942", key ? *key : ProblemKey(), ""};
  }
  static ScheduleChoice rows(int number) {
    ScheduleChoice choice;
    choice.numbers = {{"block_m", number}, {"waves", number / 32}};
    return choice;
  }
  std::vector<Timing> times(Bench &bench, bool isLast = false) {
    return bench.times({rows(64), rows(32), rows(128)}, Size(), Condition(),
                       isLast);
  }

  tool::TemporaryFolder scratch{"bench-test"};
  Session session;
  Subject subject;
  std::vector<std::string> told;
};

} // namespace

TEST_F(BenchTest, WhatFailsOnTheDeviceCostsItselfAlone) {
  Bench bench(subject, rows(64), session);
  for (int run = 0; run != 2; ++run) {
    const std::vector<Timing> all = times(bench);
    EXPECT_EQ(session.error, "");
    EXPECT_EQ(all[0].seconds, 64);
    EXPECT_EQ(all[1].refused, "fails on the device: the device is gone");
    EXPECT_EQ(all[2].seconds, 128);
    EXPECT_EQ(session.tried, 3u); // the second run knows it all
  }
  EXPECT_EQ(session.known, 3u);
}

TEST_F(BenchTest, ADeviceOnWhichAllFailIsAnError) {
  session.measure = breaks;
  Bench bench(subject, rows(64), session);
  (void)times(bench);
  EXPECT_EQ(session.error, "measuring on the GPU failed: the device is gone");
  EXPECT_EQ(session.state.size(), 0u);
}

// What decides is of one measurement, not of two that lie days apart.
TEST_F(BenchTest, AChoiceAndTheDefaultAreMeasuredTogether) {
  Bench bench(subject, rows(64), session);
  auto pair = [&](bool isLast) {
    return bench.times({rows(128), rows(64)}, Size(), Condition(), isLast);
  };
  EXPECT_EQ(pair(false)[0].seconds, 128);
  EXPECT_EQ(session.tried, 2u);
  EXPECT_EQ(pair(true)[0].seconds, 128);
  EXPECT_EQ(session.tried, 4u);
  EXPECT_EQ(pair(true)[1].seconds, 64);
  EXPECT_EQ(session.tried, 4u);
}

TEST_F(BenchTest, ABudgetOfSchedulesIsNotOverspent) {
  ASSERT_TRUE(session.budget.parse("2"));
  session.budget.beginShare(1);
  Bench bench(subject, rows(64), session);
  const std::vector<Timing> all =
      bench.times({rows(64), rows(128), rows(256)}, Size(), Condition(), false);
  EXPECT_TRUE(all[0].isKnown());
  EXPECT_TRUE(all[1].isKnown());
  EXPECT_FALSE(all[2].isKnown());
  EXPECT_EQ(all[2].refused, "");
}

// Which schedule is the default depends on the run.
TEST_F(BenchTest, WhatSpillsIsRefusedButAsTheDefault) {
  session.method = Method();
  const Size size{1, 1, 1, 64};
  const std::string spilled = "vector registers spilled";
  // With half of the waves 256 rows do not fit.
  ScheduleChoice tight;
  tight.numbers = {{"block_m", 256}, {"block_n", 64}, {"waves", 4}};
  auto ask = [&](const ScheduleChoice &baseline) {
    Bench bench(subject, baseline, session);
    return bench.times({tight}, size, Condition(), false)[0];
  };
  EXPECT_NE(ask(rows(64)).refused.find(spilled), std::string::npos);
  EXPECT_TRUE(ask(tight).isKnown());
  EXPECT_NE(ask(rows(64)).refused.find(spilled), std::string::npos);
}
