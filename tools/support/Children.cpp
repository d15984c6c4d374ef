//===- Children.cpp - work in processes of its own ------------------------===//

#include "Children.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea::tool;

namespace {

struct Child {
  size_t place;
  pid_t id;
  int pipe; ///< what it says
  std::string output;
};

constexpr int kThrew = 3;

[[noreturn]] void runChild(const std::function<std::string()> &work, int pipe,
                           pid_t parent) {
  // It ends with its parent, whatever ends that; the terminal's signals are
  // the parent's to see to.
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_DFL);
  if (getppid() != parent)
    _exit(kThrew);
  std::string text;
  int code = 0;
  try {
    text = work();
  } catch (const std::exception &error) {
    text = error.what();
    code = kThrew;
  }
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(pipe, &text[done], text.size() - done);
    if (wrote <= 0)
      _exit(kThrew);
    done += size_t(wrote);
  }
  std::fflush(stdout);
  _exit(code); // what the parent would do at its end is not this one's
}

bool begin(size_t place, const std::function<std::string()> &work,
           std::vector<Child> &running, std::string &error) {
  int ends[2];
  std::fflush(nullptr); // or both would write what is buffered
  const pid_t parent = getpid();
  if (pipe(ends) != 0) {
    error = std::string("pipe: ") + std::strerror(errno);
    return false;
  }
  const pid_t id = fork();
  if (id < 0) {
    error = std::string("fork: ") + std::strerror(errno);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return false;
  }
  if (id == 0) {
    (void)close(ends[0]);
    runChild(work, ends[1], parent);
  }
  (void)close(ends[1]);
  running.push_back({place, id, ends[0], ""});
  return true;
}

ChildResult finish(Child &child) {
  (void)close(child.pipe);
  int status = 0;
  while (waitpid(child.id, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status))
    return {"", std::string("ended by signal ") + strsignal(WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0)
    return {"", child.output.empty()
                    ? "exit status " + std::to_string(WEXITSTATUS(status))
                    : child.output};
  return {std::move(child.output), ""};
}

} // namespace

void fovea::tool::runChildren(
    const std::vector<std::function<std::string()>> &work, unsigned atATime,
    const std::function<void(size_t, ChildResult)> &done,
    const std::function<bool()> &stops, const std::function<bool()> &kills) {
  std::vector<Child> running;
  size_t next = 0;
  while (true) {
    while (running.size() < atATime && next < work.size() && !stops()) {
      std::string error;
      if (!begin(next, work[next], running, error))
        done(next, {"", error});
      ++next;
    }
    if (running.empty())
      return;
    std::vector<pollfd> polled;
    for (const Child &child : running)
      polled.push_back({child.pipe, POLLIN, 0});
    (void)poll(polled.data(), polled.size(), /*milliseconds=*/200);
    if (kills()) {
      for (Child &child : running) {
        (void)kill(child.id, SIGKILL);
        (void)finish(child);
      }
      return;
    }
    for (size_t i = running.size(); i-- > 0;) {
      if (!(polled[i].revents & (POLLIN | POLLHUP)))
        continue;
      char buffer[4096];
      const ssize_t got = read(running[i].pipe, buffer, sizeof buffer);
      if (got > 0) {
        running[i].output.append(buffer, size_t(got));
        continue;
      }
      Child child = std::move(running[i]);
      running.erase(running.begin() + ptrdiff_t(i));
      done(child.place, finish(child));
    }
  }
}
