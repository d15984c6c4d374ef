//===- Probe.cpp - one call of each kind, and what came of it -------------===//
//
// FoveaAotritonProbe WHAT: prints status and message of a call, and whether its
// result is right, for tests of what the process's environment changes. WHAT is
// check, forward, dropout, fault (a forward pass after one that left its
// memory), backward, deterministic or accumulate (a backward pass that brings a
// DQ_ACC twice as large as a client's).
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <exception>

using namespace client;

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

void probe(const std::string &what) {
  if (what == "check") {
    report("check", aotriton::v2::flash::check_gpu(nullptr), "");
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
