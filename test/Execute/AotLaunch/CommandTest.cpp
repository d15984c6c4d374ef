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
      {"/dev/zero", "cannot read '/dev/zero': it is longer than 64 MiB"},
  };
  for (const auto &[arguments, part] : cases) {
    const Result r = run(arguments);
    EXPECT_EQ(r.exitCode, 2) << arguments << "\n" << r.text;
    EXPECT_TRUE(r.has(part)) << arguments << "\n" << r.text;
  }
}

/// A description like the plain one, changed, in a file of its own.
template <typename Change>
std::string changed(const char *name, Change change) {
  std::ifstream file(FOVEA_DESCRIPTIONS "/plain-forward.json");
  nlohmann::json text = nlohmann::json::parse(file);
  change(text);
  const std::string path = testing::TempDir() + "fovea-" + name + ".json";
  std::ofstream(path) << text;
  return path + " ";
}

// 7 TiB of buffers.
TEST(AotLaunch, MemoryThatIsNotThereIsExitCode2) {
  const std::string large = changed("large", [](nlohmann::json &text) {
    text["variables"]["dim"] = int64_t(1) << 31;
  });
  const Result r = run(large + kPlain);
  EXPECT_EQ(r.exitCode, 2) << r.text;
  EXPECT_TRUE(r.has("memory does not suffice for the buffers of the "
                    "description: 7902739826880 bytes, and this machine has "))
      << r.text;
  // The others run.
  EXPECT_TRUE(r.has("pass  plain forward")) << r.text;
}

TEST(AotLaunch, KernelAndTargetMayBeThoseOfTheCodeObject) {
  const std::string path = changed("nothing", [](nlohmann::json &text) {
    text.erase("target");
    text["launches"][0].erase("kernel");
  });
  const Result r = run(path);
  EXPECT_EQ(r.exitCode, 0) << r.text;
  EXPECT_TRUE(r.has("pass  plain forward")) << r.text;
  // The code object says for which chip it is.
  const Result other = run(path + "--target=gfx90a");
  EXPECT_EQ(other.exitCode, 2) << other.text;
  EXPECT_TRUE(other.has("device 0 is gfx90a:sramecc+:xnack-, not of target "
                        "'gfx942"))
      << other.text;
}

TEST(AotLaunch, ACodeObjectWithoutOneKernelIsNamed) {
  const auto without = [](const char *name, const std::string &codeObject) {
    return run(changed(name, [&](nlohmann::json &text) {
      text["launches"][0].erase("kernel");
      text["launches"][0]["code_object"] = codeObject;
    }));
  };
  const Result several = without("several", FOVEA_SEVERAL_KERNELS);
  EXPECT_EQ(several.exitCode, 2) << several.text;
  EXPECT_TRUE(several.has(" has several kernels; name one of "))
      << several.text;
  const Result none = without("none", FOVEA_DESCRIPTIONS "/plain-forward.json");
  EXPECT_EQ(none.exitCode, 2) << none.text;
  EXPECT_TRUE(none.has("names no kernel, and ")) << none.text;
  EXPECT_TRUE(none.has("code object: ")) << none.text;
  const Result gone = without("gone", "/nonexistent.hsaco");
  EXPECT_EQ(gone.exitCode, 2) << gone.text;
  EXPECT_TRUE(gone.has("cannot read '/nonexistent.hsaco': No such file"))
      << gone.text;
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
