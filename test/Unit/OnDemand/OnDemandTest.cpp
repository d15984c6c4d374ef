//===- OnDemandTest.cpp - kernels that are compiled when they are missing -===//
//
// libfovea and aot-run on the simulated device, with the compiler's library
// behind one that counts what it is asked for.
//
//===----------------------------------------------------------------------===//

#include "OnDemandTest.h"

#include <atomic>
#include <csignal>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

using namespace fovea::test;

namespace {

TEST_F(OnDemandTest, ThreadsCompileEachOnce) {
  const ContextPtr shared = context();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i != 64; ++i)
    threads.emplace_back([&, i] {
      const fovea_forward_params_t p = forward(16 + 8 * (i % 3));
      fovea_forward_plan_t plan = {};
      plan.struct_size = sizeof plan;
      if (fovea_forward_prepare(shared.get(), &p, 0, &plan) || plan.kernel == 0)
        ++failures;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(compiled().size(), 3u);
  EXPECT_EQ(fovea_kernel_count(shared.get()), 3u);
  // Another context has them from the cache; masks are all the same kernel's.
  const ContextPtr next = context();
  fovea_forward_params_t p = forward(16);
  p.mask = FOVEA_MASK_NONE;
  EXPECT_EQ(fovea_forward_select(next.get(), &p, 0, nullptr), FOVEA_STATUS_OK);
  EXPECT_NE(std::string(fovea_last_message()).find("from the cache"),
            std::string::npos)
      << fovea_last_message();
  EXPECT_EQ(compiled().size(), 3u);
}

TEST_F(OnDemandTest, ProcessesCompileOnce) {
  (void)package();
  std::vector<std::FILE *> pipes;
  for (int i = 0; i != 4; ++i)
    pipes.push_back(::popen(command().c_str(), "r"));
  for (std::FILE *pipe : pipes)
    expectPass(finish(pipe), "compiled on demand");
  EXPECT_EQ(compiled().size(), 1u);
}

TEST_F(OnDemandTest, KilledProcessLeavesAUsableCache) {
  const Ended killed = run(command("FOVEA_TEST_KILL=1"));
  EXPECT_NE(killed.status, 0) << killed.text;
  EXPECT_EQ(killed.text.find("result"), std::string::npos) << killed.text;
  expectPass(run(command()), "kept in the cache");
  expectPass(run(command()), "from the cache");
  EXPECT_EQ(compiled().size(), 2u);
}

TEST_F(OnDemandTest, ProcessKilledWhileItStoresLeavesAUsableCache) {
  expectPass(run(command()), "kept in the cache");
  const std::string path = cached();
  // A transaction whose pages are in the file already.
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3 *database = nullptr;
    if (sqlite3_open(path.c_str(), &database) == SQLITE_OK &&
        sqlite3_exec(database,
                     "PRAGMA cache_size=1; BEGIN IMMEDIATE; "
                     "UPDATE kernel SET compile_ms=0; "
                     "CREATE TABLE half(done); "
                     "INSERT INTO half VALUES(randomblob(100000))",
                     nullptr, nullptr, nullptr) == SQLITE_OK)
      (void)::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(::access((path + "-journal").c_str(), F_OK), 0);
  expectPass(run(command()), "from the cache");
  EXPECT_EQ(compiled().size(), 1u);
}

TEST_F(OnDemandTest, DamagedPackageIsBegunAnew) {
  expectPass(run(command()), "kept in the cache");
  {
    std::ofstream(cached(), std::ios::in | std::ios::out) << "damage";
  }
  expectPass(run(command()), "kept in the cache");
  expectPass(run(command()), "from the cache");
}

TEST_F(OnDemandTest, FullDiskStillLaunches) {
  // Room for the linker's files, but not for the package.
  expectPass(run(command("ulimit -f " FILE_BLOCKS "; ")), "in memory alone");
  expectPass(run(command()), "kept in the cache");
}

TEST_F(OnDemandTest, LimitOfFileSizesDoesNotEndTheProcess) {
  // aot-run ignores the signal, other programs do not.
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit = {24576, 24576};
    const fovea_forward_params_t p = forward(16);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0)
      ::_exit(1);
    const ContextPtr c = context();
    if (fovea_forward_select(c.get(), &p, 0, nullptr) != FOVEA_STATUS_OK)
      ::_exit(2);
    ::_exit(std::string(fovea_last_message()).find("in memory alone") ==
                    std::string::npos
                ? 3
                : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(OnDemandTest, FolderThatCannotBeMadeStillLaunches) {
  {
    std::ofstream(cache()) << "no folder";
  }
  expectPass(run(command()), "in memory alone: the cache's lock");
}

TEST_F(OnDemandTest, RoomIsBounded) {
  // Nothing of ours, which stays; and a package of another build, used earlier.
  expectPass(run(command()), "kept in the cache");
  const std::string mine = cache() + "/mine.fovea";
  const std::string other = cache() + "/gfx942-0123456789abcdef.fovea";
  run("truncate -s 2M " + mine + "; truncate -s 2M " + other +
      "; touch -d '2 days ago' " + mine + " " + other);
  expectPass(run(command("FOVEA_CACHE_MIB=1", "--head-dim=24")),
             "kept in the cache");
  EXPECT_EQ(linesOfCommand("ls " + cache() + "/*.fovea").size(), 2u);
  EXPECT_NE(::access(mine.c_str(), F_OK), -1);
  EXPECT_EQ(::access(other.c_str(), F_OK), -1);
}

TEST_F(OnDemandTest, NothingIsCompiledDuringACapture) {
  const ContextPtr c = context();
  auto find = [&](const char *name, auto *&function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        fovea_hip_symbol(c.get(), name));
    ASSERT_TRUE(function) << fovea_last_message();
  };
  int (*create)(void **);
  int (*begin)(void *, int);
  int (*end)(void *, void **);
  find("hipStreamCreate", create);
  find("hipStreamBeginCapture", begin);
  find("hipStreamEndCapture", end);
  void *stream = nullptr, *graph = nullptr;
  ASSERT_EQ(create(&stream), 0);
  ASSERT_EQ(begin(stream, 0), 0);
  fovea_forward_params_t p = forward(16);
  p.q.data = reinterpret_cast<void *>(0x10000000);
  p.k.data = p.v.data = reinterpret_cast<void *>(0x20000000);
  p.out.data = reinterpret_cast<void *>(0x30000000);
  EXPECT_EQ(fovea_forward(c.get(), &p, stream), FOVEA_STATUS_NOT_FOUND);
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_CAPTURED);
  EXPECT_NE(std::string(fovea_last_message()).find("fovea_forward_prepare"),
            std::string::npos)
      << fovea_last_message();
  EXPECT_EQ(end(stream, &graph), 0);
  EXPECT_TRUE(compiled().empty());
}

// Programs can tell what may pass from what cannot be made.
TEST_F(OnDemandTest, FailureThatMayPassIsTold) {
  const fovea_forward_params_t p = forward(16);
  const ContextPtr c = context();
  auto expect = [&](fovea_status_t status, int32_t cause) {
    EXPECT_EQ(fovea_forward_select(c.get(), &p, 0, nullptr), status);
    EXPECT_EQ(fovea_last_cause(), cause) << fovea_last_message();
  };
  set("FOVEA_TEST_FAIL", "");
  expect(FOVEA_STATUS_NOT_FOUND, FOVEA_CAUSE_NOT_COMPILED);
  ::unsetenv("FOVEA_TEST_FAIL");
  expect(FOVEA_STATUS_OK, FOVEA_CAUSE_NONE);
  set("FOVEA_TEST_REFUSE", "");
  const ContextPtr fresh = context();
  fovea_forward_params_t other = forward(24);
  EXPECT_EQ(fovea_forward_select(fresh.get(), &other, 0, nullptr),
            FOVEA_STATUS_NOT_FOUND);
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_NONE) << fovea_last_message();
  set("FOVEA_COMPILER_LIBRARY", "/there-is/none.so");
  const ContextPtr without = context();
  other = forward(32);
  EXPECT_EQ(fovea_forward_select(without.get(), &other, 0, nullptr),
            FOVEA_STATUS_NOT_FOUND);
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_NOT_COMPILED)
      << fovea_last_message();
}

//===----------------------------------------------------------------------===//
// Score programs
//===----------------------------------------------------------------------===//

namespace {

constexpr const char *kMine = R"(
func.func @mine(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                %seqlen_q: i32, %seqlen_k: i32, %most: f32) -> f32 {
  %s = arith.minimumf %x, %most : f32
  return %s : f32
}
)";
// Another spelling of the same.
constexpr const char *kYours = R"(
func.func @yours(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32,
                 %n: i32, %most: f32) -> f32 {
  %unused = arith.addf %most, %most : f32
  %s = arith.minimumf %score, %most : f32
  return %s : f32
}
)";

fovea_capture_t scalarOf(double value) {
  fovea_capture_t capture = {};
  capture.type = FOVEA_CAPTURE_F32;
  capture.value = value;
  return capture;
}

/// A bias of the problems of forward(), rows `last` elements apart.
fovea_capture_t biasOf(int32_t type, int64_t last = 1) {
  fovea_capture_t capture = {};
  capture.type = type;
  capture.rank = 4;
  for (int dim = 0; dim != 4; ++dim) {
    capture.extents[dim] = dim < 2 ? 1 : 32;
    capture.strides[dim] = dim < 2    ? 32 * 32 * last
                           : dim == 2 ? 32 * last
                                      : last;
  }
  return capture;
}

class OnDemandScoreTest : public OnDemandTest {
protected:
  /// Selects a kernel; what was said of it. \param kernel  receives its id
  std::string select(fovea_context_t *context, const char *program,
                     const std::vector<fovea_capture_t> &captures,
                     fovea_status_t status = FOVEA_STATUS_OK,
                     const char *text = nullptr, uint32_t *kernel = nullptr) {
    fovea_score_t score = {};
    score.header.struct_size = sizeof score;
    score.header.group = FOVEA_GROUP_SCORE;
    score.program = program;
    score.captures = captures.data();
    score.capture_count = uint32_t(captures.size());
    score.capture_size = sizeof(fovea_capture_t);
    score.text = text;
    fovea_forward_params_t p = forward(16);
    p.groups = &score.header;
    fovea_forward_plan_t plan = {};
    plan.struct_size = sizeof plan;
    EXPECT_EQ(fovea_forward_select(context, &p, 0, &plan), status)
        << program << ": " << fovea_last_message();
    if (kernel)
      *kernel = plan.kernel;
    return fovea_last_message();
  }
};

void expectParts(const std::string &said,
                 std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

} // namespace

TEST_F(OnDemandScoreTest, NamesAndCompositionsAreCompiledOnce) {
  const ContextPtr c = context();
  expectParts(select(c.get(), "softcap", {scalarOf(30)}), {"on demand in"});
  expectParts(select(c.get(), "softcap", {scalarOf(20)}), {"on demand in"});
  EXPECT_EQ(compiled().size(), 1u);
  const std::vector<fovea_capture_t> both = {scalarOf(30),
                                             biasOf(FOVEA_CAPTURE_F16)};
  std::vector<std::thread> threads;
  for (int i = 0; i != 8; ++i)
    threads.emplace_back([&] { select(c.get(), "softcap,bias", both); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(compiled().size(), 2u);
  // Other contexts have them from the cache.
  const ContextPtr next = context();
  expectParts(select(next.get(), "softcap,bias", both), {"from the cache"});
  EXPECT_EQ(compiled().size(), 2u);
}

// What is captured decides among the variants of a program.
TEST_F(OnDemandScoreTest, VariantsAreThoseOfTheCaptures) {
  const ContextPtr c = context();
  uint32_t kernels[3] = {}, again = 0;
  const fovea_capture_t given[] = {biasOf(FOVEA_CAPTURE_F16),
                                   biasOf(FOVEA_CAPTURE_F32),
                                   biasOf(FOVEA_CAPTURE_F16, 2)};
  for (int i = 0; i != 3; ++i)
    select(c.get(), "bias", {given[i]}, FOVEA_STATUS_OK, nullptr, &kernels[i]);
  EXPECT_EQ((std::set<uint32_t>(kernels, kernels + 3).size()), 3u);
  // Where both would do, the one that reads several elements at once.
  for (int i = 0; i != 3; ++i) {
    select(c.get(), "bias", {given[i]}, FOVEA_STATUS_OK, nullptr, &again);
    EXPECT_EQ(again, kernels[i]) << i;
  }
  EXPECT_EQ(compiled().size(), 3u);
  expectParts(select(c.get(), "bias", {biasOf(FOVEA_CAPTURE_I32)},
                     FOVEA_STATUS_INVALID_ARGUMENT),
              {"'bias'", "i32[?, ?, ?, 1]", "bias captures", "bias_f32",
               "bias_strided"});
}

TEST_F(OnDemandScoreTest, WrongCapturesAndNamesAreRefused) {
  const ContextPtr c = context();
  const auto invalid = FOVEA_STATUS_INVALID_ARGUMENT;
  expectParts(select(c.get(), "softcap", {}, invalid),
              {"'softcap'", "takes nothing", "cap: f32"});
  expectParts(select(c.get(), "softcap", {scalarOf(1), scalarOf(2)}, invalid),
              {"captures 1 things", "gives 2", "f32"});
  fovea_capture_t tensor = biasOf(FOVEA_CAPTURE_F32);
  tensor.rank = 2;
  expectParts(select(c.get(), "softcap", {tensor}, invalid), {"f32[?, 1]"});
  expectParts(select(c.get(), "none", {}, invalid),
              {"unknown score program 'none'; known: ", "softcap"});
  fovea_capture_t small = biasOf(FOVEA_CAPTURE_F16);
  small.extents[2] = 31;
  expectParts(select(c.get(), "bias", {small}, invalid),
              {"score.captures[0].extents[2] is 31", "indexes it by query"});
  expectParts(select(c.get(), "0123456789abcdef", {}, FOVEA_STATUS_NOT_FOUND),
              {"'0123456789abcdef'"});
  EXPECT_TRUE(compiled().empty());
}

TEST_F(OnDemandScoreTest, FailureThatMayPassIsTold) {
  const ContextPtr c = context();
  set("FOVEA_TEST_FAIL_SCORE", "1");
  select(c.get(), "softcap", {scalarOf(3)}, FOVEA_STATUS_IO);
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_NOT_COMPILED);
  ::unsetenv("FOVEA_TEST_FAIL_SCORE");
  select(c.get(), "none", {}, FOVEA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_NONE);
  select(c.get(), "softcap", {scalarOf(3)});
}

TEST_F(OnDemandScoreTest, OnesOwnTextIsCompiled) {
  const ContextPtr c = context();
  const auto invalid = FOVEA_STATUS_INVALID_ARGUMENT;
  uint32_t mine = 0, yours = 0;
  expectParts(
      select(c.get(), "mine", {scalarOf(3)}, FOVEA_STATUS_OK, kMine, &mine),
      {"on demand in"});
  // The program decides, not its name.
  select(c.get(), "yours", {scalarOf(3)}, FOVEA_STATUS_OK, kYours, &yours);
  EXPECT_EQ(mine, yours);
  EXPECT_EQ(compiled().size(), 1u);
  select(c.get(), "mine,softcap", {scalarOf(3), scalarOf(30)}, FOVEA_STATUS_OK,
         kMine);
  EXPECT_EQ(compiled().size(), 2u);
  // Once it is there its name will do.
  select(c.get(), "mine", {scalarOf(3)}, FOVEA_STATUS_OK, nullptr, &yours);
  EXPECT_EQ(mine, yours);

  expectParts(select(c.get(), "mine", {scalarOf(3)}, invalid,
                     "func.func @mine(%x: f32) -> f32 {\n  return %y : f32\n}"),
              {"score.text:2:"});
  std::string other = kMine;
  other.replace(other.find("arith.minimumf %x, %most"), 24, "math.sin %x");
  expectParts(select(c.get(), "mine", {scalarOf(3)}, invalid, other.c_str()),
              {"score.text:4:", "math.sin", "no program may hold"});
  expectParts(select(c.get(), "mine", {}, invalid, kMine), {"takes nothing"});
  expectParts(select(c.get(), "softcap", {scalarOf(3)}, invalid, "("),
              {"score.text:"});
  EXPECT_EQ(compiled().size(), 2u);
  const char *text = nullptr;
  EXPECT_EQ(fovea_score_text(c.get(), FOVEA_DTYPE_F16, "mine", kMine, &text),
            FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(std::string(text).substr(0, 22), "score 1 captures(f32)\n");
}

TEST_F(OnDemandScoreTest, NeverAsksNoCompiler) {
  set("FOVEA_COMPILE", "never");
  const ContextPtr c = context();
  expectParts(select(c.get(), "softcap", {scalarOf(3)}, FOVEA_STATUS_NOT_FOUND),
              {"FOVEA_COMPILE=auto"});
  const char *text = nullptr;
  EXPECT_EQ(
      fovea_score_text(c.get(), FOVEA_DTYPE_F16, "softcap", nullptr, &text),
      FOVEA_STATUS_NOT_FOUND);
  expectParts(fovea_last_message(), {"FOVEA_COMPILE is never"});
}

// Gradients of what is captured are compiled for the captures that a call wants
// them of, by the algorithm that can give them.
TEST_F(OnDemandScoreTest, GradientsAreThoseThatAreWanted) {
  const ContextPtr c = context();
  fovea_capture_t captures[] = {scalarOf(30), biasOf(FOVEA_CAPTURE_F16)};
  auto select = [&](bool cap, bool bias, bool deterministic,
                    fovea_status_t status = FOVEA_STATUS_OK) {
    // Nothing is launched.
    void *const somewhere = reinterpret_cast<void *>(uintptr_t(4096));
    captures[0].gradient = cap ? static_cast<float *>(somewhere) : nullptr;
    captures[1].gradient = bias ? static_cast<float *>(somewhere) : nullptr;
    for (int dim = 0; dim != 4; ++dim)
      captures[1].gradient_strides[dim] = captures[1].strides[dim];
    fovea_score_t score = {};
    score.header.struct_size = sizeof score;
    score.header.group = FOVEA_GROUP_SCORE;
    score.program = "softcap,bias";
    score.captures = captures;
    score.capture_count = 2;
    score.capture_size = sizeof(fovea_capture_t);
    const fovea_forward_params_t f = forward(16);
    fovea_backward_params_t p = {};
    p.struct_size = sizeof p;
    p.dtype = f.dtype;
    p.mask = f.mask;
    p.scale = f.scale;
    p.batch = f.batch;
    p.heads_q = p.heads_k = f.heads_q;
    p.seqlen_q = p.seqlen_k = f.seqlen_q;
    p.head_dim = f.head_dim;
    p.q = f.q;
    p.k = p.v = f.k;
    p.dout = p.out = f.q;
    p.dq = p.dk = p.dv = f.out;
    p.lse_stride_head = p.lse_stride_batch = 32;
    p.deterministic = deterministic;
    p.groups = &score.header;
    fovea_backward_plan_t plan = {};
    plan.struct_size = sizeof plan;
    EXPECT_EQ(fovea_backward_select(c.get(), &p, 0, &plan), status)
        << fovea_last_message();
    return std::string(fovea_last_message());
  };
  expectParts(select(false, true, true), {"on demand in"});
  EXPECT_EQ(compiled().size(), 1u);
  expectParts(select(true, true, true, FOVEA_STATUS_INVALID_ARGUMENT),
              {"score.captures[0].gradient", "deterministic is 1"});
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_DETERMINISTIC);
  EXPECT_EQ(compiled().size(), 1u);
  select(true, true, false);
  select(true, false, false); // kernels that give more serve it
  select(false, true, true);
  EXPECT_EQ(compiled().size(), 2u);
}

TEST_F(OnDemandScoreTest, GradientsAreRight) {
  for (const char *program : {"bias", "softcap,alibi --captures=30,0.1"})
    expectPass(run(command("", std::string("--op=backward --head-dim=16 "
                                           "--score=") +
                                   program)),
               "compiled on demand");
}

TEST_F(OnDemandScoreTest, ProcessesCompileAProgramOnce) {
  (void)package();
  const std::string file = dir.path() + "/mine.mlir";
  std::ofstream(file) << kMine;
  std::vector<std::FILE *> pipes;
  for (int i = 0; i != 2; ++i)
    pipes.push_back(::popen(
        command("", "--head-dim=16 --score=mine,softcap --score-file=" + file +
                        " --captures=2,5")
            .c_str(),
        "r"));
  for (std::FILE *pipe : pipes)
    expectPass(finish(pipe), "compiled on demand");
  EXPECT_EQ(compiled().size(), 1u);
}

TEST_F(OnDemandTest, AlwaysPassesOverPackages) {
  const ContextPtr c = context();
  set("FOVEA_COMPILE", "always");
  const ContextPtr always = context();
  for (const ContextPtr *one : {&c, &always}) {
    ASSERT_EQ(fovea_package_open(one->get(), package().c_str()),
              FOVEA_STATUS_OK);
    fovea_forward_params_t p = forward(32);
    fovea_forward_plan_t plan = {};
    plan.struct_size = sizeof plan;
    EXPECT_EQ(fovea_forward_select(one->get(), &p, 0, &plan), FOVEA_STATUS_OK);
    EXPECT_EQ(plan.kernel, one == &c ? 1u : 2u);
    p.kernel = 1;
    EXPECT_EQ(fovea_forward_select(one->get(), &p, 0, &plan), FOVEA_STATUS_OK);
    EXPECT_EQ(plan.kernel, 1u);
  }
  const fovea_forward_params_t p = forward(32);
  std::string steps;
  EXPECT_EQ(fovea_forward_explain(
                always.get(), &p, 0,
                [](void *user, const fovea_candidate_t *step) {
                  *static_cast<std::string *>(user) +=
                      std::to_string(step->state) + step->reason + "\n";
                },
                &steps),
            FOVEA_STATUS_OK);
  EXPECT_NE(steps.find("; it was compiled on demand in"), std::string::npos)
      << steps;
  EXPECT_NE(steps.find("FOVEA_COMPILE is always"), std::string::npos) << steps;
}

TEST_F(OnDemandTest, Refusals) {
  auto expectRefused = [&](const std::vector<const char *> &parts,
                           int64_t headDim = 16) {
    const ContextPtr c = context();
    const fovea_forward_params_t p = forward(headDim);
    for (int i = 0; i != 2; ++i) {
      EXPECT_EQ(fovea_forward_select(c.get(), &p, 0, nullptr),
                FOVEA_STATUS_NOT_FOUND);
      const std::string message = fovea_last_message();
      for (const char *part : parts)
        EXPECT_NE(message.find(part), std::string::npos) << part << "\n"
                                                         << message;
    }
  };
  set("FOVEA_COMPILER_LIBRARY", dir.path() + "/none.so");
  expectRefused({"no kernel for", "none.so", "set FOVEA_COMPILER_LIBRARY"});
  set("FOVEA_COMPILER_LIBRARY", LIBFOVEA);
  expectRefused({"no kernel for", "lacks fovea_compiler_version"});
  set("FOVEA_COMPILER_LIBRARY", COUNTING_COMPILER);
  set("FOVEA_TEST_VERSION", "10203");
  expectRefused({"is of version 1.2.3, libfovea of 0.2.0"});
  ::unsetenv("FOVEA_TEST_VERSION");
  set("FOVEA_COMPILE", "never");
  expectRefused({"no kernel for", "FOVEA_COMPILE=auto compiles"});
  EXPECT_TRUE(compiled().empty());

  for (const auto &[name, value] : {std::pair("FOVEA_COMPILE", "yes"),
                                    {"FOVEA_CACHE_MIB", "-1"},
                                    {"FOVEA_CACHE_DIR", "here"}}) {
    set("FOVEA_COMPILE", "auto");
    set(name, value);
    fovea_context_t *made = nullptr;
    EXPECT_EQ(fovea_context_create(nullptr, &made),
              FOVEA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(fovea_last_message()).find(name), std::string::npos);
    ::unsetenv(name);
  }
}

TEST_F(OnDemandTest, WhatTheCompilerRefusesIsAskedOnce) {
  const ContextPtr c = context();
  fovea_backward_params_t p = {};
  p.struct_size = sizeof p;
  p.dtype = FOVEA_DTYPE_BF16;
  p.scale = 1;
  p.batch = p.heads_q = p.heads_k = 1;
  p.seqlen_q = p.seqlen_k = 32;
  p.head_dim = 512;
  p.narrow_sums = 1;
  auto stride = [](auto &tensor) {
    tensor.stride_seq = 512;
    tensor.stride_head = tensor.stride_batch = 32 * 512;
  };
  stride(p.q);
  stride(p.k);
  stride(p.v);
  stride(p.out);
  stride(p.dout);
  stride(p.dq);
  stride(p.dk);
  stride(p.dv);
  for (int i = 0; i != 2; ++i) {
    // gfx1100 adds no pairs in memory.
    EXPECT_EQ(fovea_backward_select(c.get(), &p, /*device=*/1, nullptr),
              FOVEA_STATUS_NOT_FOUND);
    EXPECT_NE(std::string(fovea_last_message()).find("no atomic16 schedule"),
              std::string::npos)
        << fovea_last_message();
  }
  EXPECT_EQ(compiled().size(), 1u);
}

} // namespace
