//===- Parallel.h - a parallel loop with per-thread state -------*- C++ -*-===//
//
// Runs independent pieces of work on a few threads, each of which keeps a state
// of its own from piece to piece.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_PARALLEL_H
#define FOVEA_REFERENCE_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fovea::reference {

/// Calls body(state, index) for each index in [0, count); `makeState()` is
/// called once on each thread. `threads` 0: one for each hardware thread. What
/// is thrown on any of them, comes out here.
template <typename MakeState, typename Body>
void parallelFor(int64_t count, unsigned threads, MakeState makeState,
                 Body body) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  threads = unsigned(std::min<int64_t>(threads, std::max<int64_t>(count, 1)));
  std::atomic<int64_t> next{0};
  std::exception_ptr thrown;
  std::mutex mutex;
  auto work = [&] {
    try {
      auto state = makeState();
      for (int64_t i = next++; i < count; i = next++)
        body(state, i);
    } catch (...) {
      next = count;
      std::lock_guard<std::mutex> lock(mutex);
      thrown = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(threads);
  try {
    while (pool.size() + 1 < threads)
      pool.emplace_back(work);
  } catch (const std::system_error &) {
    // No memory for so many stacks: those that there are do it all.
  }
  work();
  for (std::thread &thread : pool)
    thread.join();
  if (thrown)
    std::rethrow_exception(thrown);
}

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_PARALLEL_H
