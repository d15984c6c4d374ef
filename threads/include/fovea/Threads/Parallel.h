//===- Parallel.h - work on several host threads ----------------*- C++ -*-===//
//
// Runs one piece of work, or the passes of a loop, on several threads at once.
// The threads beside the caller's are kept for the next call. Calls may come
// from any number of threads and from within such work.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_THREADS_PARALLEL_H
#define FOVEA_THREADS_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace fovea {

/// How many threads a request for \p asked means; 0: one for each hardware
/// thread.
unsigned threadsFor(unsigned asked);

/// Calls \p work on the calling thread and meanwhile on up to `threads - 1`
/// others, in the caller's floating-point environment; returns when all calls
/// have.
///
/// The calls share out what there is to do: the caller's alone must be able to
/// do it all, since others begin only while that one runs, and are fewer where
/// the system has no more threads. What \p work throws comes out once all calls
/// have ended (of several exceptions, the first).
///
/// A process forked off has no threads of this but what it starts anew; a
/// fork() within \p work must not return from it in the child.
void runTogether(unsigned threads, const std::function<void()> &work);

/// Calls body(state, index) for each index in [0, count); `makeState()` is
/// called once on each thread. \p threads as for threadsFor(). What is thrown
/// on any of them ends the loop and comes out here.
template <typename MakeState, typename Body>
void parallelFor(int64_t count, unsigned threads, MakeState makeState,
                 Body body) {
  std::atomic<int64_t> next{0};
  auto work = [&] {
    try {
      auto state = makeState();
      for (int64_t i = next++; i < count; i = next++)
        body(state, i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  runTogether(unsigned(std::min<int64_t>(threadsFor(threads),
                                         std::max<int64_t>(count, 1))),
              std::ref(work)); // by reference: nothing is allocated
}

} // namespace fovea

#endif // FOVEA_THREADS_PARALLEL_H
