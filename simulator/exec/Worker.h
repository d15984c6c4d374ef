//===- Worker.h - Running workgroups on a host thread -----------*- C++ -*-===//
//
// The waves of a workgroup take turns on one thread: each runs until a barrier,
// its end or the end of its time slice.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_WORKER_H
#define FOVEA_SIMULATOR_EXEC_WORKER_H

#include "exec/InitialState.h"
#include "exec/LaunchRun.h"
#include "exec/Observer.h"

#include <cstdlib>

namespace fovea::sim {

/// Registers, LDS and scratch of the workgroup that a thread runs; kept for the
/// thread's next workgroup.
class Worker {
public:
  explicit Worker(Run &run);

  /// Runs workgroups of the launch until none is left or one has failed, and
  /// adds to the launch's counters.
  void runWorkgroups();

private:
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };

  void shareLaunch();
  void setUp(uint64_t index);
  void runGroup();
  bool takeTurns();
  bool goOn();
  bool passBarrier();
  bool failedAtAnother();
  void runSlice(Wave &w);
  void runSliceObserved(Wave &w);
  void addCounters();

  Run &run;
  Group group;
  Counters total;
  std::unique_ptr<Observer> observer;
  std::unique_ptr<uint8_t, Free> registers; ///< of all waves
  std::unique_ptr<Wave[]> waves;
  std::vector<uint8_t> lds, scratch;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_WORKER_H
