//===- PrepareTest.cpp - kernels that are loaded ahead of launches --------===//

#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

class PrepareTest : public RuntimeTest {
protected:
  fovea_status_t prepare(fovea_context_t *context, int32_t device) {
    const fovea_forward_params_t p = makeParams();
    return fovea_forward_prepare(context, &p, device, nullptr);
  }
  fovea_status_t launch(fovea_context_t *context, void *stream = nullptr) {
    const fovea_forward_params_t p = makeParams();
    return fovea_forward(context, &p, stream);
  }
};

} // namespace

TEST_F(PrepareTest, LoadsOnTheDeviceAndNothingElse) {
  write({makeRecord(makeProblem(128), 128)});
  fake.archs = {"gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-"};
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  p.q.data = p.k.data = p.v.data = nullptr; // addresses are of no interest
  p.out.data = nullptr;
  fovea_forward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  expectStatus(fovea_forward_prepare(context.get(), &p, 1, &plan),
               FOVEA_STATUS_OK, {"chosen by the rule, grid 8x3x2"});
  EXPECT_EQ(plan.kernel, 1u);
  EXPECT_EQ(plan.grid[1], 3u);
  EXPECT_EQ(fake.currentDevice, 0); // as before
  EXPECT_EQ(fake.calls["hipSetDevice"], 2);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 1);
  EXPECT_TRUE(fake.launches.empty());
  fake.currentDevice = 1;
  expectStatus(launch(context.get()), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 1);
  // The other device has its own.
  expectStatus(prepare(context.get(), -1), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 1);
  expectStatus(prepare(context.get(), 0), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 2);
  expectStatus(prepare(context.get(), 2), FOVEA_STATUS_INVALID_ARGUMENT,
               {"device is 2"});
}

TEST_F(PrepareTest, SupportIncludesTheImage) {
  {
    Expected<PackageWriter> writer =
        PackageWriter::open(path, *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer);
    FOVEA_ASSERT_OK(
        putFake(*writer, makeRecord(makeProblem(128)), "another_kernel"));
  }
  ContextPtr context = makeContext();
  const fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK);
  fovea_forward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  expectStatus(fovea_forward_prepare(context.get(), &p, 0, &plan),
               FOVEA_STATUS_HIP_ERROR, {"kernel 1", "hipErrorNotFound"});
  EXPECT_EQ(plan.kernel, 0u); // not filled in
  fail("hipModuleLoadData", 1, 719);
  expectStatus(fovea_forward_prepare(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_HIP_ERROR, {"kernel 1"});
}

TEST_F(PrepareTest, NothingToComputeNeedsNothing) {
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  p.seqlen_q = 0;
  expectStatus(fovea_forward_prepare(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK, {"nothing to compute"});
  p.seqlen_q = 1;
  expectStatus(fovea_forward_prepare(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"no package is open"});
}

TEST_F(PrepareTest, FailuresOfTheDeviceCalls) {
  write({makeRecord(makeProblem(128), 128)});
  fake.archs = {"gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-"};
  ContextPtr context = makeContext();
  fail("hipSetDevice", 1, 3);
  expectStatus(prepare(context.get(), 1), FOVEA_STATUS_HIP_ERROR,
               {"device 1: hipSetDevice failed"});
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 0);
  fail("hipSetDevice", 2, 3);
  expectStatus(prepare(context.get(), 1), FOVEA_STATUS_OK); // tried again
  EXPECT_EQ(fake.currentDevice, 0);
  fail("hipGetDevice", 1, 3);
  expectStatus(prepare(context.get(), 1), FOVEA_STATUS_HIP_ERROR,
               {"hipGetDevice failed"});
}

// NOT_FOUND is for problems without a kernel, with which programs go elsewhere.
TEST_F(PrepareTest, KernelThatABuildHasReplaced) {
  KernelRecord record = makeRecord(makeProblem(128), 128);
  write({record});
  ContextPtr context = makeContext();
  record.symbol = "fwd_newer"; // which the image has
  write({record});
  for (int i = 0; i != 2; ++i) {
    expectStatus(prepare(context.get(), 0), FOVEA_STATUS_IO,
                 {"is no longer there: a build has replaced the kernel",
                  "open the package again"});
    expectStatus(launch(context.get(), nullptr), FOVEA_STATUS_IO,
                 {"open the package again"});
  }
}

// HIP permits no loading into a capture; prepared launches need none.
TEST_F(PrepareTest, LaunchesIntoACapture) {
  write({makeRecord(makeProblem(128), 128), makeRecord(makeProblem(64), 128)});
  ContextPtr context = makeContext();
  void *stream = at(0x77), *other = at(0x88);
  fake.capturing = stream;
  expectStatus(launch(context.get(), stream), FOVEA_STATUS_INVALID_ARGUMENT,
               {"the stream is being captured", "kernel 1", "is not loaded",
                "call fovea_forward_prepare"});
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_CAPTURED);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 0);
  EXPECT_TRUE(fake.launches.empty());
  // Meanwhile modules may be loaded, in the relaxed mode.
  expectStatus(prepare(context.get(), -1), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.captureMode, 0); // as before
  expectStatus(launch(context.get(), stream), FOVEA_STATUS_OK);
  fovea_forward_params_t p = makeParams();
  p.head_dim = 64;
  expectStatus(fovea_forward(context.get(), &p, other), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 2u);
  // Asked for only when something must be loaded.
  EXPECT_EQ(fake.calls["hipStreamIsCapturing"], 2);
  fake.capturing = nullptr;
  fail("hipStreamIsCapturing", 1, 906);
  ContextPtr fresh = makeContext();
  expectStatus(launch(fresh.get(), stream), FOVEA_STATUS_HIP_ERROR,
               {"kernel 1", "hipStreamIsCapturing failed"});
}

// Who tells the stream is given a plan that serves while it is captured.
TEST_F(PrepareTest, PlansForACapture) {
  write({makeRecord(makeProblem(128), 128), makeRecord(makeProblem(128), 32)});
  ContextPtr context = makeContext();
  auto p = makeParams();
  auto select = [&](auto function) {
    fovea_forward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(function(context.get(), &p, 0, &plan), FOVEA_STATUS_OK);
    return plan;
  };
  const uint32_t better = select(fovea_forward_select).kernel;
  const uint32_t other = 3 - better;
  void *stream = at(0x77);
  fake.capturing = stream;
  p.stream = stream;
  const char *const why = "the stream is being captured, and it is not loaded "
                          "on the device; call fovea_forward_prepare";
  for (auto plan : {fovea_forward_select, fovea_forward_prepare}) {
    expectStatus(plan(context.get(), &p, 0, nullptr),
                 FOVEA_STATUS_INVALID_ARGUMENT, {"kernel 1", "kernel 2", why});
    EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_CAPTURED);
  }
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 0);
  // What is not captured, or said to be, has the better one.
  for (void *given : {at(0x88), static_cast<void *>(nullptr)}) {
    p.stream = given;
    const fovea_forward_plan_t plan = select(fovea_forward_select);
    EXPECT_EQ(plan.kernel, better);
    EXPECT_EQ(plan.provisional, 0u);
  }
  p.kernel = other;
  EXPECT_EQ(select(fovea_forward_prepare).kernel, other);
  p.kernel = 0;
  p.stream = stream;
  for (auto function : {fovea_forward_select, fovea_forward_prepare}) {
    const fovea_forward_plan_t plan = select(function);
    EXPECT_EQ(plan.kernel, other);
    EXPECT_EQ(plan.provisional, 1u);
  }
  std::string refused;
  expectStatus(fovea_forward_explain(
                   context.get(), &p, 0,
                   [](void *user, const fovea_candidate_t *candidate) {
                     if (candidate->state == FOVEA_CANDIDATE_REFUSED)
                       *static_cast<std::string *>(user) += candidate->reason;
                   },
                   &refused),
               FOVEA_STATUS_OK);
  EXPECT_NE(refused.find(why), std::string::npos) << refused;
  expectStatus(fovea_forward(context.get(), &p, stream), FOVEA_STATUS_OK);
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 1);
  p.kernel = better;
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {why});
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_CAPTURED);
  p.kernel = 0;
  fail("hipStreamIsCapturing", 1, 906);
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_HIP_ERROR, {"hipStreamIsCapturing failed"});
  // HIP is not asked when the choice is loaded, whatever was taken before.
  p.stream = nullptr;
  EXPECT_EQ(select(fovea_forward_prepare).kernel, better);
  const long calls = fake.calls["hipStreamIsCapturing"];
  p.stream = stream;
  const fovea_forward_plan_t plan = select(fovea_forward_select);
  EXPECT_EQ(plan.kernel, better);
  EXPECT_EQ(plan.provisional, 0u);
  expectStatus(fovea_forward(context.get(), &p, stream), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 2u);
  EXPECT_NE(fake.launches[0].grid[1], fake.launches[1].grid[1]);
  EXPECT_EQ(fake.calls["hipStreamIsCapturing"], calls);
}

// Whether one may be compiled that splits the keys, HIP tells.
TEST_F(PrepareTest, FailsWhereHipDoesNotTellOfCaptures) {
  write({makeRecord(makeProblem(128), 128)});
  ::setenv("FOVEA_COMPILE", "auto", 1);
  ::setenv("FOVEA_COMPILER_LIBRARY", "/there-is/none.so", 1);
  ContextPtr context = makeContext();
  ::unsetenv("FOVEA_COMPILE");
  ::unsetenv("FOVEA_COMPILER_LIBRARY");
  fovea_forward_params_t p = makeParams();
  p.batch = p.heads_q = p.heads_k = p.seqlen_q = 1;
  p.seqlen_k = 8192;
  p.k.stride_batch = p.k.stride_head = 8192 * 128;
  p.v.stride_batch = p.v.stride_head = 8192 * 128;
  p.workspace = place(10);
  p.workspace_bytes = 1 << 20;
  fail("hipStreamIsCapturing", 1, 906);
  expectStatus(fovea_forward(context.get(), &p, nullptr),
               FOVEA_STATUS_HIP_ERROR,
               {"compiling on demand", "hipStreamIsCapturing failed"});
  EXPECT_TRUE(fake.launches.empty());
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 1u);
  // Nor is it asked again when there is no compiler.
  const long calls = fake.calls["hipStreamIsCapturing"];
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipStreamIsCapturing"], calls);
}

// A reset takes modules; what a capture would have to load again is refused.
TEST_F(PrepareTest, ResetBeforeACapture) {
  write({makeRecord(makeProblem(128), 128)});
  ContextPtr context = makeContext();
  expectStatus(prepare(context.get(), 0), FOVEA_STATUS_OK);
  fake.reset();
  void *stream = at(0x77);
  fake.capturing = stream;
  expectStatus(launch(context.get(), stream), FOVEA_STATUS_INVALID_ARGUMENT,
               {"the stream is being captured", "fovea_forward_prepare"});
  expectStatus(prepare(context.get(), 0), FOVEA_STATUS_OK);
  expectStatus(launch(context.get(), stream), FOVEA_STATUS_OK);
  // A reset that no launch has met is noticed when kernels are prepared.
  fake.reset();
  expectStatus(prepare(context.get(), 0), FOVEA_STATUS_OK);
  expectStatus(launch(context.get(), stream), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 3);
}

// Another thread may reset the device between the loading of a module and the
// look into it.
TEST_F(PrepareTest, ResetWhileLoading) {
  write({makeRecord(makeProblem(128), 128)});
  for (bool launches : {false, true}) {
    ContextPtr context = makeContext();
    auto load = [&] {
      return launches ? launch(context.get()) : prepare(context.get(), 0);
    };
    fake.calls.clear();
    fake.resetsAfterLoads = 2;
    expectStatus(load(), FOVEA_STATUS_HIP_ERROR,
                 {"kernel 1", "hipModuleGetFunction", "(400)"});
    EXPECT_EQ(fake.calls["hipModuleLoadData"], 2);
    fake.resetsAfterLoads = 1;
    expectStatus(load(), FOVEA_STATUS_OK);
    EXPECT_EQ(fake.calls["hipModuleLoadData"], 4);
    EXPECT_EQ(fake.liveModules, 1);
  }
}
