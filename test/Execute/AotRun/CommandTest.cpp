//===- CommandTest.cpp - aot-run as a user calls it -----------------------===//
//
// Exit codes and output of the command on packages of plain kernels that clang
// built (test/Cts): a sound one, and one whose kernels are not what their keys
// say, which stands for every way in which a kernel can be wrong.
//
//===----------------------------------------------------------------------===//

#include "Npy.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace fovea::run;

namespace {

struct Result {
  int exitCode = -1;
  std::string text;
  bool has(const std::string &part) const {
    return text.find(part) != std::string::npos;
  }
};

/// Standard output and error together, or output alone.
/// \param before  a command of the shell that comes first
Result run(const std::string &arguments, bool errorToo = true,
           const std::string &before = "true") {
  const bool hip = arguments.find("--hip=") != std::string::npos;
  const std::string command = before + " && " + FOVEA_AOT_RUN +
                              (hip ? " " : " --hip=sim ") + arguments +
                              (errorToo ? " 2>&1" : " 2>/dev/null");
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

const std::string kSound = "--package=" FOVEA_PLAIN_PACKAGE " ";
const std::string kWrong = "--package=" FOVEA_WRONG_PACKAGE " ";
const std::string kSmall = "--seqlen-q=70 --seqlen-k=90 ";

TEST(AotRun, PassesASoundKernel) {
  const Result r = run(kSound + kSmall +
                       "--dtype=bf16 --head-dim=128 --heads=4 --heads-k=2 "
                       "--mask=causal-bottom-right --layout=sbhd");
  EXPECT_EQ(r.exitCode, 0) << r.text;
  EXPECT_TRUE(r.has("result    pass")) << r.text;
  EXPECT_TRUE(r.has("allowed (plain fp32 algorithm")) << r.text;
  EXPECT_TRUE(r.has("wave instructions")) << r.text;
  EXPECT_TRUE(r.has("not GPU time")) << r.text;
}

TEST(AotRun, JsonHasTheSame) {
  const Result r =
      run(kSound + kSmall + "--dtype=f16 --head-dim=16 --json", false);
  EXPECT_EQ(r.exitCode, 0);
  const auto json = nlohmann::json::parse(r.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << r.text;
  EXPECT_EQ(json["result"], "pass");
  EXPECT_LE(json["error"]["error"], json["error"]["budget"]);
  EXPECT_LE(json["lse"]["error"], json["lse"]["budget"]);
  EXPECT_GT(json["executed"]["instructions"], 0);
  EXPECT_EQ(json["problem"]["seqlen_k"], 90);
}

TEST(AotRun, JudgesEachGradient) {
  const std::string arguments =
      kSound + kSmall +
      "--op=backward --dtype=fp16 --head-dim=16 --heads=4 "
      "--heads-k=2 --dout-scale=256 ";
  const Result r = run(arguments + "--forward-on-device --guards=canary");
  EXPECT_EQ(r.exitCode, 0) << r.text;
  for (const char *part :
       {"backward fp16 d16", "dout*256", "delta grid 4x2x1", "dkdv grid 2x2x1",
        "dq grid 4x2x1", "dq rms", "dk rms", "dv rms", "result    pass"})
    EXPECT_TRUE(r.has(part)) << part << "\n" << r.text;
  const Result j = run(arguments + "--json", false);
  const auto json = nlohmann::json::parse(j.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << j.text;
  EXPECT_EQ(json["problem"]["op"], "backward");
  for (const char *name : {"dq", "dk", "dv"})
    for (const char *rule : {"error", "rms"}) {
      const auto &figure = json["gradients"][name][rule];
      EXPECT_GT(figure["error"], 0) << name << rule;
      EXPECT_LE(figure["error"], figure["budget"]) << name << rule;
    }
}

TEST(AotRun, WrongGradientsAreExitCode1) {
  const Result r = run(kWrong + kSmall +
                       "--op=backward --dtype=fp16 --head-dim=16 "
                       "--mask=causal-top-left");
  EXPECT_EQ(r.exitCode, 1) << r.text;
  for (const char *part : {"dq[0, 0, ", "dk[0, 0, ", "dv[0, 0, ", "expected"})
    EXPECT_TRUE(r.has(part)) << part << "\n" << r.text;
}

TEST(AotRun, WrongNumbersAreExitCode1) {
  const Result r = run(kWrong + kSmall +
                       "--dtype=fp16 --head-dim=16 --mask=causal-top-left");
  EXPECT_EQ(r.exitCode, 1) << r.text;
  EXPECT_TRUE(r.has("MISMATCH")) << r.text;
  EXPECT_TRUE(r.has("expected")) << r.text;
}

TEST(AotRun, WithoutTheCheckTheyPass) {
  const Result r =
      run(kWrong + kSmall +
          "--dtype=fp16 --head-dim=16 --mask=causal-top-left --no-check");
  EXPECT_EQ(r.exitCode, 0) << r.text;
  EXPECT_TRUE(r.has("(not checked)")) << r.text;
  EXPECT_TRUE(r.has(" not checked\n")) << r.text; // the table's row
}

TEST(AotRun, AWriteBetweenRowsIsExitCode1) {
  // A kernel of head dimension 72 under the key of 64; rows lie 16 apart.
  const Result r = run(kWrong + kSmall +
                       "--dtype=fp16 --head-dim=64 --mask=causal-top-left "
                       "--row-padding=16 --guards=canary");
  EXPECT_EQ(r.exitCode, 1) << r.text;
  EXPECT_TRUE(r.has("out was written to at element 64, which belongs to no row"))
      << r.text;
}

TEST(AotRun, AFaultOfTheKernelIsExitCode3) {
  const Result r = run(kWrong + kSmall +
                       "--dtype=fp16 --head-dim=64 --mask=causal-top-left");
  EXPECT_EQ(r.exitCode, 3) << r.text;
  EXPECT_TRUE(r.has("hipErrorIllegalAddress")) << r.text;
  EXPECT_TRUE(r.has("plain_forward")) << r.text;
  EXPECT_TRUE(r.has("lane")) << r.text;
}

TEST(AotRun, UsageIsExitCode2AndSaysWhatIsPossible) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "--package"},
      {kSound + "--dtype=fp8", "bf16"},
      {kSound + "--mask=sliding", "causal-top-left"},
      {kSound + "--head-dim=24", "head_dim"},
      {kSound + "--heads=3 --heads-k=2", "multiple"},
      {kSound + "--colour=red", "--colour"},
      {"--package=/nonexistent", "no such file"},
      {kSound + "--q=/nonexistent.npy", "/nonexistent.npy"},
      {kSound + "--suite=all", "demo"},
      {kSound + "--device=-1", "2147483647"},
      {kSound + "--suite=demo --seqlen-q=17", "--seqlen-q has no effect"},
      {kSound + "--suite=demo --dtype=fp16", "--dtype has no effect"},
      {kSound + "--suite=demo --kernel=1", "--kernel has no effect"},
      {kSound + "--suite=demo --no-lse", "--no-lse has no effect"},
      {kSound + "--suite=demo --op=backward --dout-scale=2",
       "--dout-scale has no effect"},
      {kSound + "--op=gradient", "backward"},
      {kSound + "--dout-scale=2",
       "--dout-scale has no effect with --op=forward"},
      {kSound + "--save-dk=x.npy", "--save-dk has no effect"},
      {kSound + "--op=backward --no-lse", "--no-lse has no effect"},
      {kSound + "--op=backward --save-out=x.npy", "--save-out has no effect"},
      {kSound + "--op=backward --splits=3", "--splits has no effect"},
      {kSound + "--list --mask=none", "--mask has no effect"},
      {kSound + "--list --suite=demo", "--suite has no effect"},
  };
  for (const auto &[arguments, part] : cases) {
    const Result r = run(arguments);
    EXPECT_EQ(r.exitCode, 2) << arguments << ": " << r.text;
    EXPECT_TRUE(r.has(part)) << arguments << ": " << r.text;
  }
}

// The library says what it takes before anything of that size is allocated.
TEST(AotRun, LimitsComeBeforeMemory) {
  const std::pair<std::string, std::string> cases[] = {
      {"--seqlen-q=2147483647", "seqlen_q is 2147483647, not in 0 to"},
      {"--seqlen-k=2147483647", "seqlen_k is 2147483647, not in 0 to"},
      {"--heads=100000 --heads-k=100000 --batch=100000",
       "batch is 100000, not in 0 to 65535"},
      {"--row-padding=2147483647", "stride_seq is 2147483711, not in 0 to"},
      {"--heads=2147483648 --heads-k=2147483648 --batch=2147483648",
       "more than 2^53 elements"},
      {"--heads=2147483647 --heads-k=1 --batch=0 --seqlen-q=2147483647 "
       "--row-padding=2147483647",
       "more than 2^53 elements"},
  };
  for (const char *op : {"--op=forward ", "--op=backward "})
    for (const auto &[sizes, part] : cases) {
      const Result r = run(kSound + "--head-dim=64 " + op + sizes);
      EXPECT_EQ(r.exitCode, 2) << op << sizes << ": " << r.text;
      EXPECT_TRUE(r.has(part)) << op << sizes << ": " << r.text;
    }
}

TEST(AotRun, MemoryThatIsNotThereIsExitCode2) {
  for (const char *op : {"--op=forward ", "--op=backward "}) {
    const Result r =
        run(kSound + "--head-dim=64 --heads=2000000 --heads-k=2000000 " + op);
    EXPECT_EQ(r.exitCode, 2) << r.text;
    EXPECT_TRUE(r.has("memory does not suffice for the problem's tensors: "))
        << r.text;
    EXPECT_TRUE(r.has("000000 bytes, and this machine has ")) << r.text;
  }
}

// Little address space, in steps from too little for the device to enough:
// always an exit code, and a message with it.
TEST(AotRun, NoShortageOfMemoryEndsInASignal) {
  const std::string problem =
      kSound + "--head-dim=64 --seqlen-q=0 --seqlen-k=300000 ";
  int passed = 0, named = 0;
  for (const char *op : {"--op=forward ", "--op=backward "})
    for (int megabytes = 350; megabytes <= 750; megabytes += 200) {
      const Result r = run(problem + op, true,
                           "ulimit -v " + std::to_string(megabytes * 1024));
      EXPECT_TRUE(r.exitCode == 0 || r.exitCode == 2 || r.exitCode == 3)
          << megabytes << " MiB: exit code " << r.exitCode << "\n"
          << r.text;
      passed += r.exitCode == 0;
      if (r.exitCode == 2) {
        EXPECT_TRUE(r.has("aot-run: memory ")) << r.text;
        named += r.has(" bytes; take a smaller problem");
      }
    }
  EXPECT_GT(named, 0);
  EXPECT_LT(passed, 6);
}

TEST(AotRun, MissingDevicesAreExitCode3) {
  EXPECT_EQ(run(kSound + "--device=7 --head-dim=64").exitCode, 3);
  const Result r = run(kSound + "--head-dim=64 --hip=/nonexistent.so");
  EXPECT_EQ(r.exitCode, 3) << r.text;
  EXPECT_TRUE(r.has("/nonexistent.so")) << r.text;
}

TEST(AotRun, TakesAndGivesGradientsAsNumpyFiles) {
  const std::string dir = testing::TempDir();
  const std::string zeros = dir + "fovea-zeros.npy",
                    ramp = dir + "fovea-ramp.npy";
  std::string error;
  std::vector<float> values(3 * 16);
  ASSERT_TRUE(writeNpy(zeros, {1, 1, 3, 16}, values, error)) << error;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(i / 16 * 3); // rows of 0, 3 and 6
  ASSERT_TRUE(writeNpy(ramp, {1, 1, 3, 16}, values, error)) << error;
  const std::string saved[] = {dir + "fovea-dq.npy", dir + "fovea-dk.npy",
                               dir + "fovea-dv.npy"};
  const Result r = run(kSound +
                       "--op=backward --dtype=fp16 --head-dim=16 --seqlen-q=3 "
                       "--seqlen-k=3 --q=" +
                       zeros + " --k=" + zeros + " --v=" + ramp +
                       " --dout=" + ramp + " --save-dq=" + saved[0] +
                       " --save-dk=" + saved[1] + " --save-dv=" + saved[2]);
  EXPECT_EQ(r.exitCode, 0) << r.text;
  for (int i = 0; i < 3; ++i) {
    NpyArray array;
    ASSERT_TRUE(readNpy(saved[i], array, error)) << error;
    EXPECT_EQ(array.shape, (std::vector<int64_t>{1, 1, 3, 16}));
    // All probabilities are 1/3: dv is the mean of dout; q and k are 0.
    for (double value : array.values)
      EXPECT_EQ(value, i == 2 ? 3.0 : 0.0) << saved[i];
  }
}

TEST(AotRun, TakesAndGivesNumpyFiles) {
  const std::string dir = testing::TempDir();
  const std::string in = dir + "fovea-in.npy", out = dir + "fovea-out.npy";
  std::string error;
  // Keys all alike: the output is the mean of the values.
  std::vector<float> values(3 * 16);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(i / 16 * 3); // rows of 0, 3 and 6
  ASSERT_TRUE(writeNpy(in, {1, 1, 3, 16}, values, error)) << error;
  const Result r = run(kSound +
                       "--dtype=fp16 --head-dim=16 --seqlen-q=2 "
                       "--seqlen-k=3 --input=zeros --v=" +
                       in + " --save-out=" + out);
  EXPECT_EQ(r.exitCode, 0) << r.text;
  NpyArray array;
  ASSERT_TRUE(readNpy(out, array, error)) << error;
  EXPECT_EQ(array.shape, (std::vector<int64_t>{1, 1, 2, 16}));
  EXPECT_EQ(array.values, std::vector<double>(32, 3.0));
  const Result wrong =
      run(kSound +
          "--dtype=fp16 --head-dim=16 --seqlen-q=2 --seqlen-k=4 --v=" + in);
  EXPECT_EQ(wrong.exitCode, 2);
  EXPECT_TRUE(wrong.has("[1, 1, 3, 16]")) << wrong.text;
  std::remove(in.c_str());
  std::remove(out.c_str());
}

TEST(AotRun, ListsAndHelps) {
  const Result list = run(kSound + "--list");
  EXPECT_EQ(list.exitCode, 0);
  EXPECT_TRUE(list.has("forward;dtype=bf16;head_dim=128")) << list.text;
  const Result help = run("--help");
  EXPECT_EQ(help.exitCode, 0);
  for (const char *part : {"Examples:", "--layout", "Exit codes", "--suite"})
    EXPECT_TRUE(help.has(part)) << part;
}

} // namespace
