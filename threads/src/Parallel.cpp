//===- Parallel.cpp - work on several host threads ------------------------===//
//
// A pool of threads ("helpers") that join in the work of those who call. It
// grows with what is asked of it at once, and is never destroyed: helpers may
// be at work when the process ends.
//
//===----------------------------------------------------------------------===//

#include "fovea/Threads/Parallel.h"

#include <cfenv>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <vector>

namespace fovea {

namespace {

/// One call of runTogether(), on its caller's stack. The pool's mutex guards
/// it.
struct Task {
  explicit Task(const std::function<void()> &work) : work(work) {
    std::fegetenv(&environment);
  }

  const std::function<void()> &work;
  std::fenv_t environment;
  unsigned open = 0;   ///< helpers that have yet to join
  unsigned joined = 0; ///< helpers at work
  std::condition_variable left;
  std::exception_ptr thrown;
};

class Pool {
public:
  /// Performs \p task on the calling thread and on up to \p helpers others.
  void run(Task &task, unsigned helpers) {
    offer(task, helpers);
    perform(task);
    std::unique_lock<std::mutex> lock(mutex);
    withdraw(task);
    task.left.wait(lock, [&] { return task.joined == 0; });
  }

  void lockForFork() { mutex.lock(); }
  void unlockAfterFork() { mutex.unlock(); }

private:
  /// Lets \p helpers join \p task: such as wait for work, and new ones. Where
  /// there is no memory for so many, those that there are do it all.
  void offer(Task &task, unsigned helpers) {
    if (helpers == 0)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    const unsigned woken = std::min(idle(), helpers);
    unsigned found = woken;
    try {
      tasks.push_back(&task);
      for (; found != helpers; ++found)
        addHelper();
    } catch (const std::bad_alloc &) {
    } catch (const std::system_error &) {
    }
    if (tasks.empty() || tasks.back() != &task)
      return;
    if (found == 0)
      return tasks.pop_back();
    task.open = found;
    open += found;
    for (unsigned i = 0; i != woken; ++i)
      wake.notify_one();
  }

  void addHelper() {
    std::thread([this] { help(); }).detach();
    ++waiting;
  }

  /// Lets no further helper join \p task.
  void withdraw(Task &task) {
    if (task.open == 0)
      return;
    open -= task.open;
    task.open = 0;
    tasks.erase(std::find(tasks.begin(), tasks.end(), &task));
  }

  /// What a helper does as long as it lives.
  void help() {
    std::unique_lock<std::mutex> lock(mutex);
    do {
      wake.wait(lock, [&] { return open != 0; });
      Task &task = join();
      lock.unlock();
      std::fesetenv(&task.environment);
      perform(task);
      lock.lock();
      if (--task.joined == 0)
        task.left.notify_one(); // with the lock, or the task might be gone
      ++waiting;
    } while (idle() <= kept);
    --waiting;
  }

  /// Puts a waiting helper to the task that has waited longest for one.
  Task &join() {
    Task &task = *tasks.front();
    --waiting;
    --open;
    ++task.joined;
    if (--task.open == 0)
      tasks.erase(tasks.begin());
    return task;
  }

  void perform(Task &task) {
    try {
      task.work();
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!task.thrown)
        task.thrown = std::current_exception();
    }
  }

  /// Helpers that wait and are promised to no task.
  unsigned idle() const { return waiting - open; }

  std::mutex mutex; ///< guards what follows
  std::condition_variable wake;
  std::vector<Task *> tasks; ///< those that helpers may join, oldest first
  unsigned waiting = 0;      ///< helpers at no task
  unsigned open = 0;         ///< sum over `tasks`; at most `waiting`
  /// Idle helpers beyond these end.
  const unsigned kept = threadsFor(0);
};

alignas(Pool) unsigned char storage[sizeof(Pool)];

/// The process's pool. A child of fork() has none of its threads, and whoever
/// waited on its condition variable is gone: it begins with a new one.
Pool &pool() {
  static Pool &instance = []() -> Pool & {
    Pool &made = *new (storage) Pool;
    (void)pthread_atfork([] { pool().lockForFork(); },
                         [] { pool().unlockAfterFork(); },
                         [] { new (storage) Pool; });
    return made;
  }();
  return instance;
}

} // namespace

unsigned threadsFor(unsigned asked) {
  return asked ? asked : std::max(1u, std::thread::hardware_concurrency());
}

void runTogether(unsigned threads, const std::function<void()> &work) {
  if (threads <= 1)
    return work();
  Task task(work);
  pool().run(task, threads - 1);
  if (task.thrown)
    std::rethrow_exception(task.thrown);
}

} // namespace fovea
