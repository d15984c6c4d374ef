//===- CommandTest.cpp - aot-launch as a user calls it --------------------===//
//
// Exit codes and output of the command on a description of a plain kernel.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace {

namespace fs = std::filesystem;

struct Result {
  int exitCode = -1;
  std::string text;
  bool has(const std::string &part) const {
    return text.find(part) != std::string::npos;
  }
};

Result run(const std::string &arguments, bool errorToo = true) {
  const std::string command = std::string(FOVEA_AOT_LAUNCH " --hip=sim ") +
                              arguments + (errorToo ? " 2>&1" : " 2>/dev/null");
  Result result;
  FILE *pipe = popen(command.c_str(), "r");
  if (!pipe)
    return result;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    result.text.append(buffer, n);
  const int status = pclose(pipe);
  result.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

const std::string kPlain = FOVEA_DESCRIPTIONS "/plain-forward.json ";

TEST(AotLaunch, PassesASoundKernel) {
  const Result r = run(kPlain);
  EXPECT_EQ(r.exitCode, 0) << r.text;
  for (const char *part : {"pass  plain forward", "out: error", "lse: error"})
    EXPECT_TRUE(r.has(part)) << r.text;
}

TEST(AotLaunch, OneDescriptionCoversManyShapes) {
  for (const char *shape :
       {"seqlen_q=1,seqlen_k=200", "seqlen_q=100,seqlen_k=30,heads=2",
        "batch=1 --set heads=6,heads_k=3"}) {
    const Result r = run(kPlain + "--set " + shape);
    EXPECT_EQ(r.exitCode, 0) << shape << "\n" << r.text;
    EXPECT_TRUE(r.has("pass")) << r.text;
  }
}

TEST(AotLaunch, WrongNumbersAreExitCode1) {
  const Result r = run(kPlain + "--set factor=1.02");
  EXPECT_EQ(r.exitCode, 1) << r.text;
  EXPECT_TRUE(r.has("MISMATCH  plain forward")) << r.text;
  EXPECT_TRUE(r.has("expected")) << r.text;
}

TEST(AotLaunch, WithoutTheCheckNothingIsClaimed) {
  const Result r = run(kPlain + "--set factor=1.02 --no-check");
  EXPECT_EQ(r.exitCode, 0) << r.text;
  EXPECT_TRUE(r.has("ran, not compared")) << r.text;
}

TEST(AotLaunch, AFaultIsExitCode3AndTheNextRunsStill) {
  // A pointer far behind the buffer; the sound description comes afterwards.
  const fs::path folder = fs::path(FOVEA_DESCRIPTIONS) / "two";
  fs::create_directories(folder);
  std::ifstream file(FOVEA_DESCRIPTIONS "/plain-forward.json");
  nlohmann::json sound = nlohmann::json::parse(file);
  nlohmann::json faulty = sound;
  faulty["name"] = "faulty";
  faulty["variables"]["plus"] = "1 << 30";
  std::ofstream(folder / "a.json") << faulty;
  std::ofstream(folder / "b.json") << sound;
  const Result r = run(folder.string());
  EXPECT_EQ(r.exitCode, 3) << r.text;
  for (const char *part : {"DEVICE ERROR  faulty", "hipErrorIllegalAddress",
                           "plain_forward", "pass  plain forward"})
    EXPECT_TRUE(r.has(part)) << r.text;
  fs::remove_all(folder);
}

TEST(AotLaunch, ARefusedDescriptionDoesNotStopTheOthers) {
  const fs::path folder = fs::path(FOVEA_DESCRIPTIONS) / "refused";
  fs::create_directories(folder);
  std::ifstream file(FOVEA_DESCRIPTIONS "/plain-forward.json");
  nlohmann::json sound = nlohmann::json::parse(file);
  nlohmann::json even = sound;
  even["require"] = {"seqlen_q % 64 == 0"};
  std::ofstream(folder / "a.json") << even;
  std::ofstream(folder / "b.json") << sound;
  const Result r = run(folder.string());
  EXPECT_EQ(r.exitCode, 2) << r.text;
  for (const char *part : {"a.json: /require/0", "pass  plain forward"})
    EXPECT_TRUE(r.has(part)) << r.text;
  fs::remove_all(folder);
}

TEST(AotLaunch, UsageIsExitCode2AndNamesTheRemedy) {
  const std::pair<std::string, std::string> cases[] = {
      {"/nonexistent.json", "/nonexistent.json: no such file"},
      {kPlain + "--set seqlen=4", "cannot set 'seqlen'"},
      {kPlain + "--set seqlen_q", "name=expression"},
      {kPlain + "--set heads_k=3", "heads % heads_k == 0 does not hold"},
      {kPlain + "--device=7", "no device"},
      {"/", "no kernel description"},
  };
  for (const auto &[arguments, part] : cases) {
    const Result r = run(arguments);
    EXPECT_EQ(r.exitCode, 2) << arguments << "\n" << r.text;
    EXPECT_TRUE(r.has(part)) << arguments << "\n" << r.text;
  }
}

TEST(AotLaunch, AMissingDeviceIsRefused) {
  setenv("FOVEA_SIM_TARGET", "gfx90a", 1);
  const Result r = run(kPlain);
  unsetenv("FOVEA_SIM_TARGET");
  EXPECT_EQ(r.exitCode, 2) << r.text;
  EXPECT_TRUE(r.has("no device of target 'gfx942'")) << r.text;
  EXPECT_TRUE(r.has("gfx90a")) << r.text;
}

TEST(AotLaunch, ListsWithoutRunning) {
  const Result r = run(kPlain + "--list --set factor=1.02");
  EXPECT_EQ(r.exitCode, 0) << r.text;
  for (const char *part : {"factor = 1.02", "q: bf16 [2, 70, 4, 128]",
                           "grid 4 x 2 x 2, block 64 x 1 x 1"})
    EXPECT_TRUE(r.has(part)) << r.text;
}

TEST(AotLaunch, JsonHasTheSame) {
  const Result r = run(kPlain + "--json", false);
  EXPECT_EQ(r.exitCode, 0);
  const auto json = nlohmann::json::parse(r.text, nullptr, false);
  ASSERT_TRUE(json.is_array() && json.size() == 1) << r.text;
  EXPECT_EQ(json[0]["outcome"], "pass");
  EXPECT_EQ(json[0]["checked"], true);
  EXPECT_LE(json[0]["compared"]["out"]["error"],
            json[0]["compared"]["out"]["budget"]);
  EXPECT_EQ(json[0]["variables"]["seqlen_k"], 90);
  EXPECT_EQ(json[0]["launches"][0]["flops"], 4.0 * 2 * 4 * 70 * 90 * 128);
}

} // namespace
