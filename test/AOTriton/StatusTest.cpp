//===- StatusTest.cpp - statuses of HIP that are handed on ----------------===//
//
// Calls on a HIP library that fails on request (test/Faults/FaultHip.h): what
// the client is given is what HIP gave.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include "../Faults/FaultHip.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>

using namespace client;
using fovea::test::FaultHipState;

namespace {

constexpr int kInsufficientDriver = 35, kAssert = 710;

const char *why() { return fovea_aotriton_last_message(); }

/// The library that fails, which is the process's as much as the simulated one.
FaultHipState &faultHip() {
  static FaultHipState &state = []() -> FaultHipState & {
    void *library = dlopen(std::getenv("FOVEA_HIP_LIBRARY"), RTLD_NOW);
    auto *get = reinterpret_cast<fovea::test::FaultHipStateFn>(
        dlsym(library, "fovea_fault_hip_state"));
    Dl_info sim;
    dladdr(reinterpret_cast<void *>(&hipMalloc), &sim);
    get()->library = dlopen(sim.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    return *get();
  }();
  return state;
}

/// Both passes on a stream of device 1 where device 0 is the current one; the
/// backward pass brings no workspace and has zeros to write.
class Calls {
public:
  Calls() {
    EXPECT_EQ(hipSetDevice(1), hipSuccess);
    problem = std::make_unique<Problem>(shape());
    bias = std::make_shared<Bias>(ref::ElemType::F32, Bias::Four{1, 2, 70, 70},
                                  Bias::Four{9800, 4900, 70, 1});
    problem->score = bias;
    gradient = std::make_unique<Buffer>(ref::ElemType::F32, ref::Layout::BHSD,
                                        1, 2, 70, 70);
    problem->fillForwardResults();
    EXPECT_EQ(hipStreamCreate(&stream), hipSuccess);
  }
  ~Calls() {
    (void)hipStreamDestroy(stream);
    (void)hipSetDevice(0);
  }

  std::array<hipError_t, 2> make() {
    EXPECT_EQ(hipSetDevice(0), hipSuccess);
    v3::attn_fwd_params forward = forwardParams(*problem);
    forward.B = bias->view();
    v3::attn_bwd_params backward = backwardParams(*problem, delta);
    backward.B = bias->view();
    backward.DB = gradient->view();
    backward.D = {};
    const std::array<hipError_t, 2> statuses = {attnFwd(forward, stream),
                                                attnBwd(backward, stream)};
    EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
    return statuses;
  }
  void expectRight() {
    EXPECT_EQ(problem->judgeForward(), "");
    EXPECT_EQ(problem->judgeBackward(), "");
  }

private:
  static Shape shape() {
    Shape result;
    result.type = ref::ElemType::F32;
    return result;
  }
  std::unique_ptr<Problem> problem;
  std::shared_ptr<Bias> bias;
  std::unique_ptr<Buffer> gradient;
  Lazy delta;
  hipStream_t stream = nullptr;
};

/// A function, each call of which fails once; or of what is done once, its
/// first.
struct Row {
  const char *function;
  bool onlyFirst = false;
};
const Row kRows[] = {
    {"hipModuleLoadData", true},
    {"hipModuleGetFunction", true},
    {"hipGetDevice"},
    {"hipStreamGetDevice"},
    {"hipSetDevice"},
    {"hipStreamIsCapturing"},
    {"hipMallocAsync"},
    {"hipMemset2DAsync"},
    {"hipModuleLaunchKernel"},
    {"hipFreeAsync"},
};

TEST(Statuses, AreThoseOfHip) {
  FaultHipState &hip = faultHip();
  Calls calls;
  for (const auto &[function, onlyFirst] : kRows)
    for (long nth = 1; nth == 1 || !onlyFirst; ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth) + " of " + function);
      hip.failed.clear();
      hip.faults = {{function, nth, /*forEver=*/false, kAssert, 0}};
      const std::array<hipError_t, 2> statuses = calls.make();
      hip.faults.clear();
      if (hip.failed.empty()) {
        EXPECT_GT(nth, 1) << "there is none";
        EXPECT_EQ(statuses, (std::array{hipSuccess, hipSuccess})) << why();
        break;
      }
      // One of the two, by HIP's status.
      EXPECT_EQ(int(statuses[0]) + int(statuses[1]), kAssert) << why();
      if (statuses[1] != hipSuccess) {
        EXPECT_NE(std::string(why()).find(function), std::string::npos)
            << why();
      }
    }
  calls.expectRight();
}

/// Kernels that split keys work in memory of ours; where there is none, others
/// serve.
TEST(Statuses, FewRowsDoWithoutMemory) {
  FaultHipState &hip = faultHip();
  Shape shape;
  shape.headsQ = 8;
  shape.seqlenQ = 3;
  shape.seqlenK = 4000;
  Problem problem(shape);
  auto run = [&](int status) {
    hip.failed.clear();
    hip.faults.clear();
    if (status)
      hip.faults = {{"hipMallocAsync", 1, /*forEver=*/false, status, 0}};
    const hipError_t given = attnFwd(forwardParams(problem));
    hip.faults.clear();
    EXPECT_EQ(hip.failed.empty(), status == 0);
    EXPECT_EQ(hipStreamSynchronize(nullptr), hipSuccess);
    return given;
  };
  ASSERT_EQ(run(0), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(), "");
  const std::vector<float> split = problem.lse.download();
  for (const hipError_t none : {hipErrorOutOfMemory, hipErrorNotSupported}) {
    ASSERT_EQ(run(none), hipSuccess) << why();
    EXPECT_EQ(problem.judgeForward(), "");
    EXPECT_NE(problem.lse.download(), split);
  }
  EXPECT_EQ(int(run(kAssert)), kAssert) << why();
}

/// To be run alone: the library is opened once.
TEST(Opening, CannotCountDevices) {
  FaultHipState &hip = faultHip();
  hip.faults = {
      {"hipGetDeviceCount", 1, /*forEver=*/true, kInsufficientDriver, 0}};
  EXPECT_EQ(int(aotriton::v2::flash::check_gpu(nullptr)), kInsufficientDriver)
      << why();
  EXPECT_EQ(fovea_aotriton_hip_symbol("hipMalloc"), nullptr);
  EXPECT_EQ(fovea_aotriton_last_status(), kInsufficientDriver) << why();
  hip.faults.clear();
  EXPECT_EQ(fovea_aotriton_hip_symbol("hipNothing"), nullptr);
  EXPECT_EQ(fovea_aotriton_last_status(),
            int(hipErrorSharedObjectSymbolNotFound));
  EXPECT_EQ(aotriton::v2::flash::check_gpu(nullptr), hipSuccess) << why();
}

TEST(Opening, CannotDescribeADevice) {
  FaultHipState &hip = faultHip();
  hip.faults = {{"hipDeviceGetAttribute", 1, /*forEver=*/true, kAssert, 0}};
  EXPECT_EQ(int(aotriton::v2::flash::check_gpu(nullptr)), kAssert) << why();
  EXPECT_EQ(aotriton::getMultiProcessorCount(nullptr), 0);
  EXPECT_EQ(fovea_aotriton_last_status(), kAssert) << why();
}

} // namespace
