//===- Stream.h - work in order, beside the caller --------------*- C++ -*-===//
//
// A stream runs its operations one after the other on a thread of its own. An
// operation may wait for points of other streams; such a point is always one
// that was submitted before, so no cycle can arise.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_STREAM_H
#define FOVEA_HIPSIM_STREAM_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea::hipsim {

/// How far a stream has come; outlives the stream for those who wait on it.
class Timeline {
public:
  bool reached(uint64_t point) const;
  void waitFor(uint64_t point) const;
  void advance();

private:
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  uint64_t completed = 0;
};

/// The end of one operation.
struct Point {
  std::shared_ptr<Timeline> timeline;
  uint64_t position = 0;
  bool reached() const { return !timeline || timeline->reached(position); }
  void wait() const {
    if (timeline)
      timeline->waitFor(position);
  }
};

/// One queue and its thread. Submissions may come from any thread.
class Stream {
public:
  Stream(int device, unsigned flags, int priority)
      : device(device), flags(flags), priority(priority) {}
  /// Runs what was submitted to its end first.
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  /// Appends `work`, to run after everything before it and after `after`.
  Point submit(std::function<void()> work, std::vector<Point> after = {});
  /// The end of what was submitted so far.
  Point tail() const;

  /// Whether this is a fork of a process in which a stream had work: threads do
  /// not come along, so that nothing that was, or is, submitted would end.
  static bool isForked();

  const int device;
  const unsigned flags;
  const int priority;

private:
  struct Operation {
    std::function<void()> work;
    std::vector<Point> after;
  };
  void run();

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Operation> queue;
  uint64_t submitted = 0;
  bool stopping = false;
  std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();
  std::thread thread; // started by the first submission
};

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_STREAM_H
