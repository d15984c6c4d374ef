//===- CountingCompiler.cpp - the compiler's library, with faults ---------===//
//
// Hands calls on to libfovea_compiler.
// FOVEA_TEST_COUNT: a file that gets a line for each compilation that begins,
//   the problem and the schedule that is asked for;
// FOVEA_TEST_REFUSE: a schedule that is refused;
// FOVEA_TEST_FAIL: one whose compilation fails for now, by input or output;
// FOVEA_TEST_FAIL_SCORE: score programs cannot be looked up for now, likewise;
// FOVEA_TEST_KILL: the process is killed in the middle of one;
// FOVEA_TEST_VERSION: the version that it tells.
//
//===----------------------------------------------------------------------===//

#include "fovea/compiler.h"

#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace {
void *real(const char *name) {
  static void *library = dlopen(REAL_COMPILER, RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}
} // namespace
#define REAL(name) reinterpret_cast<decltype(&name)>(real(#name))

uint32_t fovea_compiler_version(void) {
  const char *version = std::getenv("FOVEA_TEST_VERSION");
  return version ? uint32_t(std::atoi(version))
                 : REAL(fovea_compiler_version)();
}
const char *fovea_compiler_build_id(void) {
  return REAL(fovea_compiler_build_id)();
}
static thread_local bool refused;
const char *fovea_compiler_last_message(void) {
  if (refused)
    return "refused for a test";
  return REAL(fovea_compiler_last_message)();
}
fovea_compiler_status_t fovea_compile(const fovea_compile_request_t *request,
                                      fovea_compiled_t **compiled) {
  if (const char *path = std::getenv("FOVEA_TEST_COUNT")) {
    const std::string line = std::string(request->problem) + " " +
                             (request->schedule ? request->schedule : "") +
                             "\n";
    const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (::write(file, line.data(), line.size()) != ssize_t(line.size()))
      std::abort();
    (void)::close(file);
  }
  if (std::getenv("FOVEA_TEST_KILL"))
    (void)::kill(::getpid(), SIGKILL);
  auto isOfSchedule = [&](const char *variable) {
    const char *schedule = std::getenv(variable);
    return schedule && request->schedule &&
           std::string(request->schedule) == schedule;
  };
  refused = isOfSchedule("FOVEA_TEST_REFUSE");
  if (refused || isOfSchedule("FOVEA_TEST_FAIL")) {
    *compiled = nullptr;
    return refused ? FOVEA_COMPILER_STATUS_UNSUPPORTED
                   : FOVEA_COMPILER_STATUS_IO;
  }
  return REAL(fovea_compile)(request, compiled);
}
fovea_compiler_status_t
fovea_compile_find_score(const fovea_compile_request_t *request,
                         fovea_compiled_t **found) {
  refused = false;
  if (std::getenv("FOVEA_TEST_FAIL_SCORE")) {
    *found = nullptr;
    return FOVEA_COMPILER_STATUS_IO;
  }
  return REAL(fovea_compile_find_score)(request, found);
}
fovea_compiler_status_t fovea_compiled_info(const fovea_compiled_t *compiled,
                                            fovea_compiled_info_t *info) {
  return REAL(fovea_compiled_info)(compiled, info);
}
void fovea_compiled_destroy(fovea_compiled_t *compiled) {
  REAL(fovea_compiled_destroy)(compiled);
}
