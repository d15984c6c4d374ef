//===- ExitTest.cpp - launches while the process ends ---------------------===//

#include "../../Support/LeavingProcess.h"
#include "LaunchLoad.h"

#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::test;

namespace {

/// What a call gave, in words.
std::string call(fovea_context_t *context, int64_t headDim, int64_t seqlenQ,
                 const char *program) {
  fovea_score_t score = {};
  score.header = {sizeof(score), FOVEA_GROUP_SCORE, nullptr};
  score.program = program;
  score.capture_size = sizeof(fovea_capture_t);
  fovea_window_t window = {};
  window.header = {sizeof(window), FOVEA_GROUP_WINDOW,
                   program ? &score.header : nullptr};
  window.left = FOVEA_WINDOW_INFINITE;
  fovea_forward_params_t p = makeForwardLoad();
  p.groups = &window.header;
  p.head_dim = headDim;
  p.seqlen_q = seqlenQ;
  const fovea_status_t status = fovea_forward(context, &p, nullptr);
  return fovea_status_name(status) + std::string(" ") + fovea_last_message();
}

/// Runs in a process of its own, in which nothing has been called.
[[noreturn]] void launchAndLeave(const std::string &package) {
  const LeavingProcess process([](int wrong, bool areEnough) {
    ::_exit(wrong ? 1 : areEnough ? 0 : 2);
  });
  fovea_context_t *context = makeLoadContext(package);
  // Lengths that no launch before had: they are chosen for anew.
  auto round = [context](int64_t n) {
    return call(context, 128, 1 + n % 1000, nullptr) + "; " +
           call(context, 64, 16, nullptr) + "; " +
           call(context, 128, 16, "none");
  };
  const std::string expected = round(0);
  for (const char *part :
       {"FOVEA_STATUS_OK ; ", "no kernel for 'forward;", "'none'"})
    if (expected.find(part) == std::string::npos) {
      std::fprintf(stderr, "%s lacks %s\n", expected.c_str(), part);
      ::_exit(3);
    }
  process.leaveDuring([&](int64_t n) { return round(n) == expected; });
}

TEST(ExitTest, ThreadsGoOnLaunching) {
  TempDir dir;
  const std::string package = dir.file("gfx942.fovea");
  writeLibrary(package, {128});
  for (int i = 0; i != 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0)
      launchAndLeave(package);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "1: other results, 2: too few; signals: crashes";
  }
}

} // namespace
