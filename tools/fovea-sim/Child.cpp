//===- Child.cpp - the program that is run --------------------------------===//

#include "Child.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea::foveasim;

namespace {

volatile std::sig_atomic_t theChild = 0;
sigset_t original; ///< signals that were held when this process began

void handOn(int signal) {
  if (theChild > 0)
    (void)kill(pid_t(theChild), signal);
}

struct Handled {
  int signal;
  void (*handler)(int);
};
/// The terminal sends its signals to the program, too; others know this process
/// alone.
const Handled kSignals[] = {{SIGINT, SIG_IGN},  {SIGQUIT, SIG_IGN},
                                {SIGTERM, handOn},  {SIGHUP, handOn},
                                {SIGUSR1, handOn},  {SIGUSR2, handOn}};

} // namespace

void fovea::foveasim::holdSignals() {
  sigset_t handled;
  (void)sigemptyset(&handled);
  for (const Handled &row : kSignals)
    (void)sigaddset(&handled, row.signal);
  (void)sigprocmask(SIG_BLOCK, &handled, &original);
}

bool fovea::foveasim::runProgram(const std::string &path,
                                 const std::vector<std::string> &arguments,
                                 Ending &ending, std::string &error) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);

  // The program has the signals as this process found them.
  sigset_t defaults;
  (void)sigemptyset(&defaults);
  (void)sigaddset(&defaults, SIGXFSZ); // tool::run() ignores it
  for (const Handled &row : kSignals) {
    struct sigaction before, mine = {};
    mine.sa_handler = row.handler;
    (void)sigaction(row.signal, &mine, &before);
    if (before.sa_handler != SIG_IGN)
      (void)sigaddset(&defaults, row.signal);
  }
  posix_spawnattr_t attributes;
  (void)posix_spawnattr_init(&attributes);
  (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
  (void)posix_spawnattr_setsigmask(&attributes, &original);
  (void)posix_spawnattr_setflags(&attributes,
                                 POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t id = 0;
  const int failed = posix_spawn(&id, path.c_str(), nullptr, &attributes,
                                 argv.data(), environ);
  (void)posix_spawnattr_destroy(&attributes);
  theChild = failed ? 0 : id;
  (void)sigprocmask(SIG_SETMASK, &original, nullptr);
  if (failed) {
    error = "'" + path + "' cannot be started: " + std::strerror(failed);
    return false;
  }
  int status = 0;
  while (waitpid(id, &status, 0) < 0 && errno == EINTR)
    ;
  theChild = 0;
  ending.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return true;
}
