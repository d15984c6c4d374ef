//===- LaunchBenchmark.cpp - what a launch costs --------------------------===//
//
// Measures fovea_forward and fovea_backward of loaded kernels beside the HIP
// calls that they make, against a HIP library that does nothing, and the first
// launch of a context: opening the package, reading and loading the image. The
// table at the end is their differences. What HIP was given is compared with
// what it must be after each measurement; a wrong one has no speed.
//
//   launch-benchmark --benchmark_repetitions=5
//
//===----------------------------------------------------------------------===//

#include "LaunchLoad.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <map>
#include <memory>

using namespace fovea;
using namespace fovea::test;

namespace {

/// Launches must cost at most this more than the HIP calls in them, in ns of
/// one thread: what the project promises.
constexpr double kPromisedNanoseconds = 300;

using LaunchFn = int (*)(void *, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, unsigned, void *, void **,
                         void **);

std::string package;
fovea_context_t *context;

void *streamOf(int thread) {
  return reinterpret_cast<void *>(uintptr_t(0x100 + thread));
}
uintptr_t shiftOf(int thread) { return uintptr_t(thread) << 32; }

struct Launch {
  uint32_t grid[3], threads;
};

/// What differs between the operations.
struct Forward {
  using Params = fovea_forward_params_t;
  static Params params(int thread) { return makeForwardLoad(shiftOf(thread)); }
  static fovea_status_t run(const Params &p, void *stream) {
    return fovea_forward(context, &p, stream);
  }
  static fovea_status_t prepare(const Params &p) {
    return fovea_forward_prepare(context, &p, -1, nullptr);
  }
  /// By the rule the largest blocks: ceil(1000 / 128) of a head.
  static std::vector<Launch> launches() { return {{{16, 8, 2}, 256}}; }
};
struct Backward {
  using Params = fovea_backward_params_t;
  static Params params(int thread) {
    Params p = makeBackwardLoad(shiftOf(thread));
    p.deterministic = 1;
    return p;
  }
  static fovea_status_t run(const Params &p, void *stream) {
    return fovea_backward(context, &p, stream);
  }
  static fovea_status_t prepare(const Params &p) {
    return fovea_backward_prepare(context, &p, -1, nullptr);
  }
  static std::vector<Launch> launches() {
    return {{{16, 16, 2}, 256}, {{4, 8, 2}, 256}, {{16, 8, 2}, 512}};
  }
};

template <typename Op>
void check(benchmark::State &state, const typename Op::Params &p,
           uint64_t before, void *stream, int device) {
  const std::vector<Launch> launches = Op::launches();
  const Launch &last = launches.back();
  const std::string wrong = checkLaunches(
      emptyHipThread(), before, uint64_t(state.iterations()) * launches.size(),
      expectedArgs(p), last.grid, last.threads, stream, device);
  if (!wrong.empty())
    state.SkipWithError(("HIP was given " + wrong).c_str());
}

/// The HIP calls of a pass, made directly.
template <typename Op>
void hipCalls(benchmark::State &state) {
  const int thread = state.thread_index();
  const auto p = Op::params(thread);
  auto args = expectedArgs(p);
  size_t bytes = sizeof(args);
  void *extra[] = {reinterpret_cast<void *>(1), &args,
                   reinterpret_cast<void *>(2), &bytes,
                   reinterpret_cast<void *>(3)};
  void *module = nullptr, *function = nullptr, *stream = streamOf(thread);
  emptyHip<int (*)(int)>("hipSetDevice")(0);
  emptyHip<int (*)(void **, const void *)>("hipModuleLoadData")(&module, "");
  emptyHip<int (*)(void **, void *, const char *)>("hipModuleGetFunction")(
      &function, module, "kernel");
  const auto launch = emptyHip<LaunchFn>("hipModuleLaunchKernel");
  const std::vector<Launch> launches = Op::launches();
  const uint64_t before = emptyHipThread().launches;
  for (auto _ : state)
    for (const Launch &l : launches)
      if (launch(function, l.grid[0], l.grid[1], l.grid[2], l.threads, 1, 1, 0,
                 stream, nullptr, extra) != 0)
        state.SkipWithError("the HIP library refused a launch");
  check<Op>(state, p, before, stream, 0);
  emptyHip<int (*)(void *)>("hipModuleUnload")(module);
}

/// The same through fovea, on `devices` devices in turn by thread.
template <typename Op>
void passes(benchmark::State &state, int devices) {
  const int thread = state.thread_index(), device = thread % devices;
  const auto p = Op::params(thread);
  void *stream = streamOf(thread);
  emptyHip<int (*)(int)>("hipSetDevice")(device);
  if (Op::prepare(p) != FOVEA_STATUS_OK)
    state.SkipWithError(fovea_last_message());
  const uint64_t before = emptyHipThread().launches;
  for (auto _ : state)
    if (Op::run(p, stream) != FOVEA_STATUS_OK)
      state.SkipWithError(fovea_last_message());
  check<Op>(state, p, before, stream, device);
}

/// The same of shapes that change from launch to launch, so that each is chosen
/// anew. The block of 128 rows stays the one to choose.
void forwardShapes(benchmark::State &state) {
  auto p = Forward::params(0);
  emptyHip<int (*)(int)>("hipSetDevice")(0);
  const uint64_t before = emptyHipThread().launches;
  for (auto _ : state) {
    p.seqlen_k = p.seqlen_k % 900 + 1;
    if (Forward::run(p, streamOf(0)) != FOVEA_STATUS_OK)
      state.SkipWithError(fovea_last_message());
  }
  check<Forward>(state, p, before, streamOf(0), 0);
}

/// A context's whole life: open the package, choose, decompress, load, launch.
template <typename Op>
void firstLaunch(benchmark::State &state) {
  const auto p = Op::params(0);
  emptyHip<int (*)(int)>("hipSetDevice")(0);
  fovea_context_t *shared = context;
  const uint64_t before = emptyHipThread().launches;
  for (auto _ : state) {
    context = makeLoadContext(package);
    if (Op::run(p, streamOf(0)) != FOVEA_STATUS_OK)
      state.SkipWithError(fovea_last_message());
    fovea_context_destroy(context);
  }
  context = shared;
  check<Op>(state, p, before, streamOf(0), 0);
}

/// Prints what google-benchmark does, and keeps the least time of each name:
/// what other processes do only ever adds to it.
class Report : public benchmark::ConsoleReporter {
public:
  Report() : ConsoleReporter(::isatty(1) ? OO_Defaults : OO_Tabular) {}
  void ReportRuns(const std::vector<Run> &runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run &run : runs) {
      failed |= run.error_occurred;
      if (run.error_occurred || run.run_type != Run::RT_Iteration)
        continue;
      const std::string name =
          run.run_name.function_name + run.run_name.threads;
      auto [found, isNew] = least.try_emplace(name, run.GetAdjustedCPUTime());
      if (!isNew)
        found->second = std::min(found->second, run.GetAdjustedCPUTime());
    }
  }

  /// Cost of `name` beside the HIP calls in it, CPU time of a thread.
  void compare(const std::string &name, const std::string &hip) const {
    for (int threads : {1, 2, 4}) {
      const std::string suffix = "threads:" + std::to_string(threads);
      auto mine = least.find(name + suffix), theirs = least.find(hip + suffix);
      if (mine == least.end() || theirs == least.end())
        continue;
      std::printf("%-17s %d threads: %7.1f ns, HIP alone %6.1f ns, difference "
                  "%6.1f ns (promised %.0f), ratio %.1f\n",
                  name.c_str(), threads, mine->second, theirs->second,
                  mine->second - theirs->second, kPromisedNanoseconds,
                  mine->second / theirs->second);
    }
  }

  bool failed = false;

private:
  std::map<std::string, double> least;
};

} // namespace

int main(int argc, char **argv) {
  TempDir dir;
  package = dir.file("gfx942.fovea");
  writeLibrary(package, {64, 128});
  context = makeLoadContext(package);
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("hip_forward", hipCalls<Forward>)->ThreadRange(1, 4);
  RegisterBenchmark("forward", [](auto &s) {
    passes<Forward>(s, 1);
  })->ThreadRange(1, 4);
  RegisterBenchmark("forward_devices", [](auto &s) {
    passes<Forward>(s, kEmptyHipDevices);
  })->ThreadRange(1, 4);
  RegisterBenchmark("forward_shapes", forwardShapes)->Threads(1);
  RegisterBenchmark("hip_backward", hipCalls<Backward>)->ThreadRange(1, 4);
  RegisterBenchmark("backward", [](auto &s) {
    passes<Backward>(s, 1);
  })->ThreadRange(1, 4);
  RegisterBenchmark("first_forward", firstLaunch<Forward>)
      ->Unit(benchmark::kMillisecond);
  RegisterBenchmark("first_backward", firstLaunch<Backward>)
      ->Unit(benchmark::kMillisecond);

  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  Report report;
  benchmark::RunSpecifiedBenchmarks(&report);
  std::printf("\n");
  report.compare("forward", "hip_forward");
  report.compare("forward_devices", "hip_forward");
  report.compare("forward_shapes", "hip_forward");
  report.compare("backward", "hip_backward");
  fovea_context_destroy(context);
  if (report.failed || ::testing::Test::HasFailure()) {
    std::fprintf(stderr, "launch-benchmark: a launch was wrong, see above\n");
    return 1;
  }
  return 0;
}
