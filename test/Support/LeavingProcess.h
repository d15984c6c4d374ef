//===- LeavingProcess.h - calls while a process ends ------------*- C++ -*-===//
//
// Threads that call a library while their process is in exit(): from then on
// nothing that a call reads may be gone.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_SUPPORT_LEAVINGPROCESS_H
#define FOVEA_TEST_SUPPORT_LEAVINGPROCESS_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace fovea::test {

/// Of a process, one; made before the first call, so that all that calls make
/// is destroyed ahead of its end.
class LeavingProcess {
public:
  /// \param ended  is told how many calls were wrong since the process began to
  ///   end, and whether there were enough of them; it ends the process
  explicit LeavingProcess(void (*ended)(int wrong, bool areEnough)) {
    tell = ended;
    std::atexit([] {
      isLeaving = true;
      for (int waited = 0; waited != 1000 && rounds < kRounds; ++waited)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      tell(wrong, rounds >= kRounds);
    });
  }

  /// Has two threads call, over and over, and then ends the process.
  /// \param isRight  calls; is told how often the thread did before
  template <typename Call>
  [[noreturn]] static void leaveDuring(Call isRight) {
    static std::atomic<int> before{0};
    for (int thread = 0; thread != 2; ++thread)
      std::thread([&isRight] {
        for (int64_t n = 0;; ++n) {
          const bool right = isRight(n);
          if (isLeaving) {
            wrong += !right;
            ++rounds;
          } else {
            ++before;
          }
        }
      }).detach();
    while (before < 50)
      std::this_thread::yield();
    std::exit(EXIT_FAILURE); // unless that which is told ends it
  }

private:
  static constexpr int kRounds = 500;
  static inline void (*tell)(int, bool);
  static inline std::atomic<bool> isLeaving{false};
  static inline std::atomic<int> wrong{0}, rounds{0}; ///< since then
};

} // namespace fovea::test

#endif // FOVEA_TEST_SUPPORT_LEAVINGPROCESS_H
