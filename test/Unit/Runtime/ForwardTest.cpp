//===- ForwardTest.cpp - parameters, checks and launches ------------------===//

#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {
using ForwardTest = RuntimeTest;
using Params = fovea_forward_params_t;
} // namespace

TEST_F(ForwardTest, LaunchCarriesGridStreamAndArguments) {
  write({makeRecord(makeProblem(128), 128)});
  ContextPtr context = makeContext();
  Params p = makeParams();
  float lse;
  p.lse = &lse;
  p.lse_stride_batch = 8 * 300;
  p.lse_stride_head = 300;
  int stream;
  expectStatus(fovea_forward(context.get(), &p, &stream), FOVEA_STATUS_OK);
  EXPECT_STREQ(fovea_last_message(), "");
  ASSERT_EQ(fake.launches.size(), 1u);
  const FakeLaunch &launch = fake.launches[0];
  EXPECT_EQ(launch.function, "kernel_m128");
  EXPECT_EQ(launch.grid[0], 8u);
  EXPECT_EQ(launch.grid[1], 3u); // ceil(300 / 128)
  EXPECT_EQ(launch.grid[2], 2u);
  EXPECT_EQ(launch.block[0], 256u);
  EXPECT_EQ(launch.block[1], 1u);
  EXPECT_EQ(launch.block[2], 1u);
  EXPECT_EQ(launch.sharedBytes, 0u);
  EXPECT_EQ(launch.stream, &stream);
  EXPECT_EQ(launch.argumentBytes, 176u);
  const fovea::abi::ForwardArgs &args = launch.args;
  EXPECT_EQ(args.q, 0x10000u);
  EXPECT_EQ(args.k, 0x20000u);
  EXPECT_EQ(args.v, 0x30000u);
  EXPECT_EQ(args.out, 0x40000u);
  EXPECT_EQ(args.lse, reinterpret_cast<uintptr_t>(&lse));
  EXPECT_EQ(args.qStrideBatch, 8 * 300 * 128);
  EXPECT_EQ(args.qStrideHead, 300 * 128);
  EXPECT_EQ(args.qStrideSeq, 128);
  EXPECT_EQ(args.kStrideBatch, 2 * 500 * 128);
  EXPECT_EQ(args.kStrideHead, 500 * 128);
  EXPECT_EQ(args.kStrideSeq, 128);
  EXPECT_EQ(args.vStrideBatch, 2 * 500 * 128);
  EXPECT_EQ(args.outStrideHead, 300 * 128);
  EXPECT_EQ(args.lseStrideBatch, 8 * 300);
  EXPECT_EQ(args.lseStrideHead, 300);
  EXPECT_EQ(args.seqlenQ, 300);
  EXPECT_EQ(args.seqlenK, 500);
  EXPECT_EQ(args.headsQ, 8);
  EXPECT_EQ(args.groupSize, 4);
  EXPECT_EQ(args.scale, 0.125f);
}

TEST_F(ForwardTest, ModuleIsLoadedOnceADevice) {
  write({makeRecord(makeProblem(128), 128)});
  fake.archs = {"gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-"};
  {
    ContextPtr context = makeContext();
    Params p = makeParams();
    for (int device : {0, 1, 0, 1, 0}) {
      fake.currentDevice = device;
      expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    }
    EXPECT_EQ(fake.calls["hipModuleLoadData"], 2);
    EXPECT_EQ(fake.calls["hipModuleGetFunction"], 2);
    EXPECT_EQ(fake.launches.size(), 5u);
    EXPECT_EQ(fake.liveModules, 2);
  }
  EXPECT_EQ(fake.liveModules, 0);
}

TEST_F(ForwardTest, NothingToDoLaunchesNothing) {
  ContextPtr context = makeContext(); // no package is needed either
  for (auto member : {&Params::batch, &Params::heads_q, &Params::seqlen_q}) {
    Params p = makeParams();
    p.*member = 0;
    expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    fovea_forward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_forward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK, {"nothing to compute"});
    EXPECT_EQ(plan.kernel, 0u);
  }
  EXPECT_TRUE(fake.launches.empty());
}

// Rows without keys still get their zeros and -inf from the kernel.
TEST_F(ForwardTest, NoKeysLaunches) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  Params p = makeParams();
  p.seqlen_k = 0;
  p.k.data = p.v.data = nullptr;
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].args.seqlenK, 0);
}

TEST_F(ForwardTest, EveryRuleIsChecked) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  auto call = [&](const Params *p) {
    return fovea_forward(context.get(), p, nullptr);
  };
  expectRefused(commonRules<Params>(), makeParams, call);
  const std::vector<Rule<Params>> rules = {
      {[](Params &p) { p.out.stride_seq = 0; },
       "out.stride_seq is 0: rows would overlap"},
      {[](Params &p) { p.out.stride_head = 127; },
       "out.stride_head is 127: rows would overlap"},
      {[](Params &p) { p.out.stride_head = p.out.stride_seq; },
       "is 128: rows would overlap"},
      {[](Params &p) { p.out.stride_batch = 300 * 128; }, "rows would overlap"},
      {[](Params &p) {
         p.lse = static_cast<float *>(at(16));
         p.lse_stride_batch = 2400;
         p.lse_stride_head = 299;
       },
       "lse.stride_head is 299: rows would overlap"},
      {[](Params &p) {
         p.lse = static_cast<float *>(at(18));
         p.lse_stride_batch = 2400;
         p.lse_stride_head = 300;
       },
       "lse is 18, no multiple of the element size (4 bytes)"},
  };
  expectRefused(rules, makeParams, call);
  EXPECT_TRUE(fake.launches.empty());
}

// Broadcast inputs, and the limit of the row stride itself, are fine.
TEST_F(ForwardTest, LimitsThemselvesAreAllowed) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  Params p = makeParams();
  p.q.stride_seq = fovea::abi::kMaxSeqStride;
  p.k.stride_batch = p.k.stride_head = p.k.stride_seq = 0;
  p.out.stride_seq = 128 * 16; // (batch, sequence, head, head_dim)
  p.out.stride_head = 128;
  p.out.stride_batch = 128 * 16 * 300;
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 1u);
}

TEST_F(ForwardTest, GridLimitsAreReasons) {
  write({makeRecord(makeProblem(128), 16)});
  ContextPtr context = makeContext();
  Params p = makeParams();
  p.seqlen_q = 65535 * 16;
  p.batch = 1;
  p.out.stride_head = p.seqlen_q * 128;
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  ++p.seqlen_q;
  p.out.stride_head += 128;
  expectStatus(fovea_forward(context.get(), &p, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"65536 blocks of 16 rows, more than 65535"});
  p = makeParams();
  p.heads_q = p.heads_k = int64_t(1) << 24;
  p.batch = 1;
  expectStatus(fovea_forward(context.get(), &p, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"heads_q 16777216 x 256 work-items is more than 2^32 - 1"});
}

// A thread remembers choices; whatever a choice depends on must tell them
// apart.
TEST_F(ForwardTest, ShapesThatDifferInOneNumber) {
  std::vector<KernelRecord> records;
  std::vector<TuningRow> tuning;
  for (int i = 0; i != 8; ++i) {
    records.push_back(makeRecord(makeProblem(128), 128, 16 + 8 * i));
    records.back().symbol = "kernel_" + std::to_string(i);
    tuning.push_back({makeProblem(128), TuningRow::kAny, 10 * (i + 1),
                      TuningRow::kAny, records.back().schedule});
  }
  write(records, tuning);
  ContextPtr context = makeContext();
  auto expectAsSelected = [&](const fovea_forward_params_t &p) {
    fovea_forward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_forward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK);
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context.get(), plan.kernel, &info),
                 FOVEA_STATUS_OK);
    fake.launches.clear();
    expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(fake.launches.at(0).function, info.symbol);
    for (int i : {0, 1, 2})
      EXPECT_EQ(fake.launches[0].grid[i], plan.grid[i]);
  };
  const std::function<void(fovea_forward_params_t &, int)> changes[] = {
      [](auto &p, int n) { p.seqlen_q = 100 + 128 * n; },
      [](auto &p, int n) { p.seqlen_k = 5 + 10 * (n % 8); },
      [](auto &p, int n) { p.batch = n; },
      [](auto &p, int n) { p.heads_q = 2 * n; },
      [](auto &p, int n) { p.kernel = uint32_t(n % 9); },
  };
  for (const auto &change : changes)
    for (int n = 1; n <= 64; ++n) {
      fovea_forward_params_t p = makeParams();
      p.seqlen_k = 25;
      change(p, n);
      p.out.stride_head = p.seqlen_q * 128;
      p.out.stride_batch = p.heads_q * p.out.stride_head;
      expectAsSelected(p);
    }
  // And the packages that are open, and the context.
  fovea_forward_params_t p = makeParams();
  p.seqlen_k = 25;
  KernelRecord better = makeRecord(makeProblem(128), 128, 32);
  better.symbol = "better";
  writeTo(dir.file("better.fovea"), {better}, {}, "gfx942:xnack-");
  expectStatus(
      fovea_package_open(context.get(), dir.file("better.fovea").c_str()),
      FOVEA_STATUS_OK);
  expectAsSelected(p);
  EXPECT_EQ(fake.launches.at(0).function, "better");
  context = makeContext();
  expectAsSelected(p);
  EXPECT_EQ(fake.launches.at(0).function, "kernel_2");
}
