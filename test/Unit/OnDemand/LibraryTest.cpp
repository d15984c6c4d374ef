//===- LibraryTest.cpp - the compiler's C interface -----------------------===//

#include "../Package/TestPackage.h"

#include "fovea/compiler.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using fovea::test::TempDir;

namespace {

using Compiled =
    std::unique_ptr<fovea_compiled_t, void (*)(fovea_compiled_t *)>;

fovea_compile_request_t request(const char *target, const char *problem,
                                const char *schedule = nullptr) {
  fovea_compile_request_t made = {};
  made.struct_size = sizeof made;
  made.target = target;
  made.problem = problem;
  made.schedule = schedule;
  return made;
}

Compiled compile(const fovea_compile_request_t &request,
                 fovea_compiler_status_t wanted = FOVEA_COMPILER_STATUS_OK) {
  fovea_compiled_t *made = nullptr;
  const fovea_compiler_status_t status = fovea_compile(&request, &made);
  EXPECT_STREQ(fovea_compiler_status_name(status),
               fovea_compiler_status_name(wanted))
      << fovea_compiler_last_message();
  EXPECT_EQ(made != nullptr, status == FOVEA_COMPILER_STATUS_OK);
  return Compiled(made, fovea_compiled_destroy);
}

void expectMessage(const char *part) {
  const std::string message = fovea_compiler_last_message();
  EXPECT_NE(message.find(part), std::string::npos)
      << "'" << part << "' is not in: " << message;
}

fovea_compiled_info_t infoOf(const Compiled &compiled) {
  fovea_compiled_info_t info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(fovea_compiled_info(compiled.get(), &info),
            FOVEA_COMPILER_STATUS_OK);
  return info;
}

std::string imageOf(const Compiled &compiled) {
  const fovea_compiled_info_t info = infoOf(compiled);
  return std::string(static_cast<const char *>(info.image), info.image_bytes);
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// What a child process ends with that does no more than `run`; -1: by a
/// signal.
template <typename Run>
int statusOfChild(Run run) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(run());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// 0 where the compiler makes that image again.
int makesAgain(const fovea_compile_request_t &wanted,
               const std::string &image) {
  fovea_compiled_t *made = nullptr;
  if (fovea_compile(&wanted, &made) != FOVEA_COMPILER_STATUS_OK) {
    std::fprintf(stderr, "%s\n", fovea_compiler_last_message());
    return 1;
  }
  return imageOf(Compiled(made, fovea_compiled_destroy)) == image ? 0 : 2;
}

/// What lld makes is in no file: it would map that, and where a disk has no
/// room left the process would end. A limit below its size stands for such a
/// disk.
TEST(LibraryTest, TheOutputIsNoFile) {
  const fovea_compile_request_t wanted =
      request("gfx942", "forward;dtype=bf16;head_dim=16;window=1");
  const Compiled first = compile(wanted);
  ASSERT_TRUE(first);
  const std::string image = imageOf(first);
  EXPECT_EQ(statusOfChild([&] {
              (void)std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {image.size() - 1, image.size() - 1};
              return ::setrlimit(RLIMIT_FSIZE, &limit) != 0
                         ? 1
                         : makesAgain(wanted, image);
            }),
            0);
}

/// A program without standard streams that writes there all the same.
TEST(LibraryTest, StandardStreamsMayBeClosed) {
  const fovea_compile_request_t wanted =
      request("gfx942", "forward;dtype=bf16;head_dim=16;window=1");
  const Compiled first = compile(wanted);
  ASSERT_TRUE(first);
  const std::string image = imageOf(first);
  EXPECT_EQ(statusOfChild([&] {
              for (int file = 0; file != 3; ++file)
                (void)::close(file);
              std::thread([] {
                for (;;)
                  for (int file = 0; file != 3; ++file)
                    if (::write(file, "a line that is lost\n", 20) < 0)
                      std::this_thread::yield();
              }).detach();
              return makesAgain(wanted, image);
            }),
            0);
}

bool isOpen(int file) { return ::fcntl(file, F_GETFD) >= 0; }

/// A program without standard streams, of which a thread makes some meanwhile.
TEST(LibraryTest, StandardStreamsThatAreMadeMeanwhileStay) {
  const fovea_compile_request_t wanted =
      request("gfx942", "forward;dtype=bf16;head_dim=16;window=1");
  ASSERT_TRUE(compile(wanted));
  const int status = statusOfChild([&]() -> int {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int log = ::memfd_create("log", MFD_CLOEXEC);
    for (int file = 0; file != 3; ++file)
      (void)::close(file);
    std::atomic<bool> made{false};
    std::thread([&] {
      while (!isOpen(STDOUT_FILENO) || !isOpen(STDERR_FILENO))
        ;
      (void)::dup2(log, STDOUT_FILENO);
      (void)::dup2(null, STDERR_FILENO);
      made = true;
    }).detach();
    // The numbers are taken for no more than milliseconds of each.
    for (int tries = 0; tries != 50 && !made; ++tries) {
      fovea_compiled_t *compiled = nullptr;
      if (fovea_compile(&wanted, &compiled) != FOVEA_COMPILER_STATUS_OK)
        ::_exit(1);
      fovea_compiled_destroy(compiled);
    }
    // Here, while the thread's variables live.
    ::_exit(!made                                        ? 2
            : ::write(STDOUT_FILENO, "a line\n", 7) != 7 ? 3
            : ::lseek(log, 0, SEEK_CUR) != 7             ? 4
            : !isOpen(STDERR_FILENO)                     ? 5
            : isOpen(STDIN_FILENO)                       ? 6
                                                         : 0);
  });
  EXPECT_EQ(status, 0);
}

/// As in a folder that is all that a process sees.
TEST(LibraryTest, NeedsNoProc) {
  const fovea_compile_request_t wanted =
      request("gfx942", "forward;dtype=bf16;head_dim=16;window=1");
  const Compiled first = compile(wanted);
  ASSERT_TRUE(first);
  const std::string image = imageOf(first);
  const TempDir root;
  constexpr int kNotAllowed = 77;
  const int status = statusOfChild([&] {
    // Users other than root may do it in a space of their own, if at all.
    if (::geteuid() != 0)
      (void)::unshare(CLONE_NEWUSER);
    if (::chroot(root.path().c_str()) != 0 || ::chdir("/") != 0)
      return kNotAllowed;
    (void)::setenv("TMPDIR", "/", 1);
    return makesAgain(wanted, image);
  });
  if (status == kNotAllowed)
    GTEST_SKIP() << "chroot() is not allowed";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

TEST(LibraryTest, BytesAreThoseOfAotCompile) {
  TempDir dir;
  struct {
    const char *target, *problem, *schedule, *options;
  } const rows[] = {
      {"gfx942", "forward;dtype=bf16;head_dim=64;window=1", nullptr,
       "--op=forward --dtype=bf16 --head-dim=64"},
      {"gfx1100", "forward;dtype=fp16;head_dim=32;mask=causal_top_left",
       "algorithm=split",
       "--op=forward --dtype=fp16 --head-dim=32 --mask=causal-top-left "
       "--algorithm=split"},
      {"gfx90a", "backward;dtype=fp16;head_dim=16;window=1", nullptr,
       "--op=backward --dtype=fp16 --head-dim=16"},
  };
  for (const auto &row : rows) {
    const Compiled compiled =
        compile(request(row.target, row.problem, row.schedule));
    ASSERT_TRUE(compiled);
    const std::string path = dir.path() + "/k";
    const std::string command = std::string(AOT_COMPILE " --target=") +
                                row.target + " " + row.options + " -q -o " +
                                path;
    ASSERT_EQ(std::system((command + ".hsaco --emit=hsaco").c_str()), 0);
    // Each form is compiled anew, so one contract has to do.
    if (&row == rows)
      ASSERT_EQ(std::system((command + ".json --emit=contract").c_str()), 0);
    EXPECT_EQ(imageOf(compiled), contentOf(path + ".hsaco")) << row.problem;
    const fovea_compiled_info_t info = infoOf(compiled);
    if (&row == rows)
      EXPECT_EQ(info.contract, contentOf(path + ".json"));
    EXPECT_STREQ(info.problem, row.problem);
    EXPECT_STREQ(info.target, row.target);
    EXPECT_NE(std::string(info.report).find(fovea_compiler_build_id()),
              std::string::npos);
  }
}

constexpr const char *kMlir = R"(
func.func @mine(%q: memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>) {
  attn.forward %q
  return
}
)";

TEST(LibraryTest, BadMlirGivesDiagnostics) {
  fovea_compile_request_t bad = request("gfx942", nullptr);
  bad.mlir = kMlir;
  bad.mlir_name = "mine.mlir";
  compile(bad, FOVEA_COMPILER_STATUS_INVALID_ARGUMENT);
  expectMessage("mine.mlir:3:");
  const std::string deep(100000, '(');
  bad.mlir = deep.c_str();
  compile(bad, FOVEA_COMPILER_STATUS_INVALID_ARGUMENT);
  expectMessage("mine.mlir:");
  bad.mlir = "";
  compile(bad, FOVEA_COMPILER_STATUS_INVALID_ARGUMENT);
  expectMessage("no function");
}

TEST(LibraryTest, MlirIsTheProblemThatItSays) {
  TempDir dir;
  const std::string path = dir.path() + "/p.mlir";
  ASSERT_EQ(std::system((AOT_COMPILE
                         " --target=gfx942 --op=forward --dtype=fp16 "
                         "--head-dim=16 --emit=mlir --stage=problem -q -o " +
                         path)
                            .c_str()),
            0);
  const std::string text = contentOf(path);
  fovea_compile_request_t given = request("gfx942", nullptr);
  given.mlir = text.c_str();
  const Compiled mine = compile(given);
  const Compiled same =
      compile(request("gfx942", "forward;dtype=fp16;head_dim=16;window=1"));
  ASSERT_TRUE(mine && same);
  EXPECT_STREQ(infoOf(mine).problem, infoOf(same).problem);
  EXPECT_EQ(imageOf(mine), imageOf(same));
}

TEST(LibraryTest, ScoreProgramsHaveNames) {
  fovea_compile_request_t given =
      request("gfx942", "forward;dtype=fp16;head_dim=16");
  given.score = "softcap";
  const Compiled compiled = compile(given);
  ASSERT_TRUE(compiled);
  const fovea_compiled_info_t info = infoOf(compiled);
  EXPECT_STREQ(info.score_name, "softcap");
  EXPECT_EQ(std::string(info.score_text).find("score 1 captures(f32)"), 0u);
  TempDir dir;
  const std::string path = dir.path() + "/k.hsaco";
  ASSERT_EQ(std::system((AOT_COMPILE " --target=gfx942 --op=forward "
                                     "--dtype=fp16 --head-dim=16 --mask=none "
                                     "--score=softcap -q --emit=hsaco -o " +
                         path)
                            .c_str()),
            0);
  EXPECT_EQ(imageOf(compiled), contentOf(path));

  // Found without a chip, and without compiling.
  given.target = nullptr;
  fovea_compiled_t *found = nullptr;
  ASSERT_EQ(fovea_compile_find_score(&given, &found), FOVEA_COMPILER_STATUS_OK)
      << fovea_compiler_last_message();
  const Compiled owner(found, fovea_compiled_destroy);
  EXPECT_STREQ(infoOf(owner).problem, info.problem);
  EXPECT_STREQ(infoOf(owner).score_text, info.score_text);
  EXPECT_EQ(infoOf(owner).image_bytes, 0u);

  const auto invalid = FOVEA_COMPILER_STATUS_INVALID_ARGUMENT;
  given.target = "gfx942";
  given.problem = "forward;dtype=fp16;head_dim=16;score=0123456789abcdef";
  compile(given, invalid);
  expectMessage("another score program than 'softcap'");
  given.problem = "forward;dtype=fp16;head_dim=16";
  given.captures = "i32";
  compile(given, invalid);
  expectMessage("takes i32 from the call on: softcap captures cap: f32");
  given.captures = "f32[";
  compile(given, invalid);
  expectMessage("no capture at");
  given.score = nullptr;
  compile(given, invalid);
  expectMessage("captures is given without score");
  // A caller of the first version.
  fovea_compile_request_t old =
      request("gfx942", "forward;dtype=fp16;head_dim=16");
  old.score = "none";
  old.struct_size = 56;
  compile(old);
}

TEST(LibraryTest, WrongRequestsAreRefused) {
  const auto invalid = FOVEA_COMPILER_STATUS_INVALID_ARGUMENT;
  const char *problem = "forward;dtype=fp16;head_dim=16";
  compile(request("gfx942", nullptr), invalid);
  expectMessage("problem and mlir are NULL");
  compile(request(nullptr, problem), invalid);
  expectMessage("target is NULL");
  compile(request("gfx943", problem), invalid);
  expectMessage("unknown chip 'gfx943'; known: gfx908");
  compile(request("gfx942", "forward;dtype=fp8;head_dim=16"), invalid);
  expectMessage("fp8");
  compile(request("gfx942",
                  "forward;dtype=fp16;head_dim=16;score=0123456789abcdef"),
          invalid);
  expectMessage("give its MLIR");
  for (const char *schedule :
       {"block_m", "block_m=x", "block_z=1", "algorithm=atomic",
        "block_m=64;block_m=32", ";"})
    compile(request("gfx942", problem, schedule), invalid);
  fovea_compile_request_t grown[2] = {request("gfx942", problem), {}};
  grown[0].struct_size = sizeof(grown[0]) + 8;
  grown[1].struct_size = 1;
  compile(grown[0], invalid);
  expectMessage("update libfovea_compiler");
  grown[0].struct_size = 8;
  compile(grown[0], invalid);
  expectMessage("struct_size is 8");
  EXPECT_EQ(fovea_compile(nullptr, nullptr), invalid);
  compile(request("gfx1100", "backward;dtype=fp16;head_dim=512",
                  "algorithm=atomic"),
          FOVEA_COMPILER_STATUS_UNSUPPORTED);
  expectMessage("the largest is 384");
}

TEST(LibraryTest, Cancellation) {
  const std::unique_ptr<fovea_compiler_cancel_t,
                        void (*)(fovea_compiler_cancel_t *)>
      cancel(fovea_compiler_cancel_create(), fovea_compiler_cancel_destroy);
  fovea_compile_request_t wanted =
      request("gfx942", "backward;dtype=bf16;head_dim=256;window=1");
  wanted.cancel = cancel.get();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fovea_compiler_cancel(cancel.get());
  });
  compile(wanted, FOVEA_COMPILER_STATUS_CANCELLED);
  expectMessage("cancelled");
  later.join();
  compile(wanted, FOVEA_COMPILER_STATUS_CANCELLED);
  // A handle that nobody has used changes no byte.
  const std::unique_ptr<fovea_compiler_cancel_t,
                        void (*)(fovea_compiler_cancel_t *)>
      unused(fovea_compiler_cancel_create(), fovea_compiler_cancel_destroy);
  fovea_compile_request_t small =
      request("gfx942", "forward;dtype=fp16;head_dim=16");
  const std::string bytes = imageOf(compile(small));
  small.cancel = unused.get();
  EXPECT_EQ(bytes, imageOf(compile(small)));
}

} // namespace
