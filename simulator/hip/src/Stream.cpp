//===- Stream.cpp - work in order, beside the caller ----------------------===//
//
// The queue and thread of one stream.
//
//===----------------------------------------------------------------------===//

#include "Stream.h"

#include <atomic>
#include <pthread.h>

using namespace fovea::hipsim;

static std::atomic<bool> forked{false};

bool Stream::isForked() { return forked; }

bool Timeline::reached(uint64_t point) const {
  std::lock_guard<std::mutex> lock(mutex);
  return completed >= point;
}

void Timeline::waitFor(uint64_t point) const {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return completed >= point; });
}

void Timeline::advance() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++completed;
  }
  changed.notify_all();
}

Stream::~Stream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (isForked() && thread.joinable())
    thread.detach(); // it is the other process's
  if (thread.joinable())
    thread.join();
}

Point Stream::submit(std::function<void()> work, std::vector<Point> after) {
  Point end;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!thread.joinable()) {
      static const int handled =
          pthread_atfork(nullptr, nullptr, [] { forked = true; });
      (void)handled; // but for memory, of which the thread needs more
      thread = std::thread([this] { run(); });
    }
    queue.push_back({std::move(work), std::move(after)});
    end = {timeline, ++submitted};
  }
  changed.notify_all();
  return end;
}

Point Stream::tail() const {
  std::lock_guard<std::mutex> lock(mutex);
  return {timeline, submitted};
}

void Stream::run() {
  for (;;) {
    Operation next;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty())
        return;
      next = std::move(queue.front());
      queue.pop_front();
    }
    for (const Point &point : next.after)
      point.wait();
    if (next.work)
      next.work();
    // Release what the operation held (a code object, arguments) before anyone
    // hears that it is done.
    next = {};
    timeline->advance();
  }
}
