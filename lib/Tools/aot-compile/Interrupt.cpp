//===- Interrupt.cpp - SIGINT and SIGTERM of a build ----------------------===//

#include "Interrupt.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>

using namespace fovea::tools;

static std::atomic<int> received;
static_assert(std::atomic<int>::is_always_lock_free);

static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGXFSZ};

/// What the signals did before: LLVM's handlers, which remove temporary files.
static struct sigaction previous[std::size(kSignals)];

static void onSignal(int signal) {
  const int error = errno;
  if (received.exchange(signal) != 0)
    for (size_t i = 0; i < std::size(kSignals); ++i)
      if (kSignals[i] == signal) {
        sigaction(signal, &previous[i], nullptr);
        raise(signal);
      }
  errno = error;
}

Interrupt::Interrupt() {
  received = 0;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action = {};
    action.sa_handler = kSignals[i] == SIGXFSZ ? SIG_IGN : onSignal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], nullptr, &previous[i]);
    // Who started us may have had it ignored, as nohup and shells do.
    if (previous[i].sa_handler != SIG_IGN)
      sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &previous[i], nullptr);
}

int Interrupt::signal() const { return received; }
