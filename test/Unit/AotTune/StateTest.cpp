//===- StateTest.cpp - answers that outlive a run -------------------------===//

#include "State.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/resource.h>

using namespace fovea::tune;
using nlohmann::json;

namespace {

class StateTest : public testing::Test {
protected:
  StateTest() { std::filesystem::remove(path); }
  ~StateTest() override { std::filesystem::remove(path); }
  void append(const std::string &text) {
    std::ofstream(path, std::ios::app) << text;
  }
  std::string path = testing::TempDir() + "/aot-tune.state", error;
};

} // namespace

TEST_F(StateTest, AnswersAreKept) {
  {
    State state;
    ASSERT_TRUE(state.open(path, error)) << error;
    ASSERT_TRUE(state.add({{"schedule", "a"}}, {{"seconds", 1.5}}, error));
    ASSERT_TRUE(state.add({{"schedule", "b"}}, {{"refused", "no"}}, error));
  }
  State state;
  ASSERT_TRUE(state.open(path, error)) << error;
  EXPECT_EQ(state.size(), 2u);
  ASSERT_TRUE(state.find({{"schedule", "a"}}));
  EXPECT_EQ(state.find({{"schedule", "a"}})->value("seconds", 0.0), 1.5);
  EXPECT_FALSE(state.find({{"schedule", "c"}}));
}

TEST_F(StateTest, ALineThatWasCutOffIsDropped) {
  {
    State state;
    ASSERT_TRUE(state.open(path, error)) << error;
    ASSERT_TRUE(state.add("q", {{"seconds", 1}}, error));
  }
  append("{\"question\": \"half");
  {
    State state;
    ASSERT_TRUE(state.open(path, error)) << error;
    EXPECT_EQ(state.size(), 1u);
    ASSERT_TRUE(state.add("r", {{"seconds", 2}}, error));
  }
  State state;
  ASSERT_TRUE(state.open(path, error)) << error;
  EXPECT_EQ(state.size(), 2u);
}

// Half a line of a run that was killed, while another has the file open.
TEST_F(StateTest, ALineGoesBehindTheLastWholeOne) {
  State one, two;
  ASSERT_TRUE(one.open(path, error)) << error;
  ASSERT_TRUE(two.open(path, error)) << error;
  ASSERT_TRUE(one.add("q", {{"seconds", 1}}, error));
  append("{\"question\": \"half");
  ASSERT_TRUE(two.add("r", {{"seconds", 2}}, error));
  ASSERT_TRUE(one.add("s", {{"seconds", 3}}, error));
  State all;
  ASSERT_TRUE(all.open(path, error)) << error;
  EXPECT_EQ(all.size(), 3u);
}

TEST_F(StateTest, OtherFilesAreRefused) {
  for (const char *second :
       {"no state", "{\"question\": 2, \"answer\": 5}",
        "{\"question\": 2, \"answer\": {\"seconds\": \"x\"}}"}) {
    std::filesystem::remove(path);
    append("{\"question\": 1, \"answer\": {}}\n" + std::string(second) + "\n");
    State state;
    EXPECT_FALSE(state.open(path, error)) << second;
    EXPECT_NE(error.find(path + ":2: is no line of aot-tune's"),
              std::string::npos)
        << error;
  }
  EXPECT_FALSE(State().open(testing::TempDir(), error));
}

TEST_F(StateTest, WhatCannotGrowIsAnError) {
  State state;
  ASSERT_TRUE(state.open(path, error)) << error;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  (void)std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  EXPECT_FALSE(state.add("q", {{"seconds", 1}}, error));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(error.find("cannot write '" + path), std::string::npos) << error;
  EXPECT_FALSE(State().open("/dev/null", error));
  EXPECT_NE(error.find("is no file"), std::string::npos) << error;
}
