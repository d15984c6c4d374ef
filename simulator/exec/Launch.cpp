//===- Launch.cpp - Running a kernel over a grid --------------------------===//
//
// Checks a launch, builds what the command processor would, and lets host
// threads run its workgroups.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Launch.h"
#include "check/CheckObserver.h"
#include "decode/CodeObjectImpl.h"
#include "exec/Dispatch.h"
#include "exec/LaunchRun.h"
#include "exec/Worker.h"
#include "fovea/Threads/Parallel.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

namespace fovea::sim {

namespace {

/// Puts the checks that the launch asks for between it and its own observers.
void watch(Run &run, std::optional<CheckFactory> &checks) {
  const LaunchOptions &options = run.config.options;
  WrittenMap &written = run.code.device()->memory().written();
  // What this launch writes is not seen by a later one that watches memory.
  if (!(options.checks & kCheckUninitMem) && !options.trial)
    written.forgetAll();
  if (!(options.checks & ~kAlwaysChecked))
    return;
  checks.emplace(run.code.impl().program(run.kernel.waveSize), run.kernel,
                 run.chip, options.checks, written, options.observers);
  run.observers = &*checks;
}

void runOnThreads(Run &run) {
  const uint64_t threads = std::min<uint64_t>(
      threadsFor(run.config.options.threads), run.groupsToRun());
  runTogether(static_cast<unsigned>(threads), [&run] {
    try {
      Worker(run).runWorkgroups();
    } catch (const std::bad_alloc &) {
      run.fail({ErrorCode::OutOfMemory, "the host's memory is full"});
    }
  });
}

} // namespace

Status launch(const CodeObject &code, const KernelInfo &kernel,
              const LaunchConfig &config, Counters *counters) {
  if (counters)
    *counters = Counters();
  auto start = std::chrono::steady_clock::now();
  Run run(code, kernel, config);
  if (Status s = checkLimits(run); !s)
    return s;
  Dispatch dispatch(code.device()->memory());
  if (Status s = dispatch.create(run); !s)
    return s;
  std::optional<CheckFactory> checks;
  watch(run, checks);
  runOnThreads(run);
  run.counters.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (counters)
    *counters = run.counters;
  return run.failed ? run.status : Status::success();
}

//===-- Counters ----------------------------------------------------------===//

std::string_view name(InstClass cls) {
  static constexpr std::string_view names[] = {
      "valu", "trans", "mfma",   "salu", "smem",
      "vmem", "lds",   "branch", "sync", "other"};
  return names[static_cast<unsigned>(cls)];
}

Counters &Counters::operator+=(const Counters &other) {
  for (unsigned i = 0; i < kInstClasses; ++i)
    byClass[i] += other.byClass[i];
  instructions += other.instructions;
  workgroups += other.workgroups;
  waves += other.waves;
  barriers += other.barriers;
  bytesLoaded += other.bytesLoaded;
  bytesStored += other.bytesStored;
  seconds += other.seconds;
  return *this;
}

} // namespace fovea::sim
