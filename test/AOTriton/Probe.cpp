//===- Probe.cpp - one call of each kind, and what came of it -------------===//
//
// FoveaAotritonProbe WHAT: prints status and message of a call, and whether its
// result is right, for tests of what the process's environment changes. WHAT is
// check, check-again (the same three times, then without FOVEA_TEST_FAIL),
// forward, dropout, fault (a forward pass after one that left its memory),
// backward, deterministic, accumulate (a backward pass that brings a DQ_ACC
// twice as large as a client's), or allocations, allocations-dims,
// allocations-own and allocations-kinds (how often calls that have been made
// before ask for memory; on a HIP library that asks for none; with a head
// dimension of V's own, without a workspace, and of three kinds in turn), or
// exit (calls that threads make while the process ends).
//
//===----------------------------------------------------------------------===//

#include "../Support/LeavingProcess.h"
#include "Client.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <new>
#include <unistd.h>
#include <vector>

using namespace client;

namespace {
std::atomic<long> allocations{0};
} // namespace

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

/// Of whichever library serves the calls; a stand-in for AOTriton has none.
std::string lastMessage() {
  auto *get = reinterpret_cast<const char *(*)()>(
      dlsym(RTLD_DEFAULT, "fovea_aotriton_last_message"));
  return get ? get() : "(not Fovea's library)";
}

void report(const char *call, hipError_t status, const std::string &judged) {
  std::printf("%s: status %d%s%s; %s\n", call, int(status),
              status == hipSuccess ? "" : ", ",
              status == hipSuccess ? "" : lastMessage().c_str(),
              status != hipSuccess ? "no result"
              : judged.empty()     ? "right"
                                   : judged.c_str());
}

void countAllocations(int64_t dimV, bool bringsWorkspace) {
  Shape shape;
  shape.dimV = dimV;
  Problem problem(shape);
  Lazy unused;
  Floats delta(2, 70);
  const v3::attn_fwd_params forward = forwardParams(problem);
  v3::attn_bwd_params backward = backwardParams(problem, unused);
  backward.D = {};
  if (bringsWorkspace)
    backward.D.eager = delta.view();
  long before = 0;
  int failures = 0;
  for (int round = 0; round < 12; ++round) {
    if (round == 2)
      before = allocations;
    failures += attnFwd(forward) != hipSuccess;
    failures += attnBwd(backward) != hipSuccess;
  }
  std::printf("20 calls: %ld allocations; %d failures\n", allocations - before,
              failures);
}

/// Of layers in turn, as where queries see their own sequence and another one.
void countAllocationsOfKinds() {
  std::vector<std::unique_ptr<Problem>> problems;
  std::vector<v3::attn_fwd_params> forward;
  std::vector<v3::attn_bwd_params> backward;
  std::deque<Lazy> unused;
  std::deque<Floats> deltas;
  for (int64_t keys = 64; keys != 67; ++keys) {
    Shape shape;
    shape.seqlenK = keys;
    problems.push_back(std::make_unique<Problem>(shape));
    forward.push_back(forwardParams(*problems.back()));
    backward.push_back(backwardParams(*problems.back(), unused.emplace_back()));
    backward.back().D = {};
    backward.back().D.eager = deltas.emplace_back(2, 70).view();
  }
  long before = 0;
  int failures = 0;
  for (int round = 0; round != 6; ++round) {
    if (round == 3)
      before = allocations;
    for (size_t i = 0; i != problems.size(); ++i) {
      failures += attnFwd(forward[i]) != hipSuccess;
      failures += attnBwd(backward[i]) != hipSuccess;
    }
  }
  std::printf("18 calls: %ld allocations; %d failures\n", allocations - before,
              failures);
}

/// One call that is served and one that is refused, over and over.
void callAndLeave() {
  const fovea::test::LeavingProcess process([](int wrong, bool areEnough) {
    std::printf("exit: %s; %d wrong\n", areEnough ? "enough" : "too few",
                wrong);
    std::fflush(stdout);
    ::_exit(0);
  });
  static Problem problem({});
  static v3::attn_fwd_params served = forwardParams(problem), refused = served;
  refused.dropout_p = 0.5f;
  process.leaveDuring([](int64_t) {
    return attnFwd(served) == hipSuccess &&
           attnFwd(refused) == hipErrorNotSupported &&
           lastMessage().find("dropout_p is") != std::string::npos;
  });
}

void probe(const std::string &what) {
  if (what == "exit")
    return callAndLeave();
  if (what == "allocations")
    return countAllocations(0, true);
  if (what == "allocations-kinds")
    return countAllocationsOfKinds();
  if (what == "allocations-dims")
    return countAllocations(32, true);
  if (what == "allocations-own")
    return countAllocations(0, false);
  if (what == "check" || what == "check-again") {
    report("check", aotriton::v2::flash::check_gpu(nullptr), "");
    if (what == "check")
      return;
    for (const char *name : {"second", "third", "fourth", "fifth", "sixth"}) {
      if (name == std::string("fourth"))
        (void)::unsetenv("FOVEA_TEST_FAIL");
      report(name, aotriton::v2::flash::check_gpu(nullptr), "");
    }
    return;
  }
  Problem problem({});
  if (what == "forward" || what == "dropout" || what == "fault") {
    v3::attn_fwd_params params = forwardParams(problem);
    if (what == "fault") {
      params.K = aotriton::TensorView<4>(64, params.K.sizes(),
                                         params.K.strides(), params.K.dtype());
      (void)attnFwd(params);
      (void)hipStreamSynchronize(nullptr);
      params = forwardParams(problem);
    }
    if (what == "dropout")
      params.dropout_p = 0.5f;
    const hipError_t status = attnFwd(params);
    report(what.c_str(), status,
           status == hipSuccess ? problem.judgeForward() : "");
    return;
  }
  problem.fillForwardResults();
  Lazy delta, accumulator;
  v3::attn_bwd_params params = backwardParams(problem, delta);
  accumulator.rows = delta.rows * delta.columns;
  accumulator.columns = problem.shape.dim * (what == "accumulate" ? 2 : 1);
  params.DQ_ACC = accumulator.tensor<4>();
  v3::attn_options options;
#if AOTRITON_VERSION_MINOR >= 12
  options.deterministic = what == "deterministic";
#endif
  const hipError_t status = attnBwd(params, {}, &options);
  report(what.c_str(), status,
         status == hipSuccess ? problem.judgeBackward() : "");
}

} // namespace

int main(int argc, char **argv) {
  try {
    probe(argc > 1 ? argv[1] : "forward");
  } catch (const std::exception &thrown) {
    std::printf("thrown: %s\n", thrown.what());
  }
}
