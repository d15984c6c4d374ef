//===- ForwardTest.cpp - parameters, checks and launches ------------------===//

#include "../../Support/KernelArgs.h"
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
  const fovea::test::ForwardArgs &args = launch.args;
  EXPECT_EQ(args.q, kBetweenPlaces);
  EXPECT_EQ(args.k, 2 * kBetweenPlaces);
  EXPECT_EQ(args.v, 3 * kBetweenPlaces);
  EXPECT_EQ(args.out, 4 * kBetweenPlaces);
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

// Kernels read inputs while they write: what is written has memory of its own.
TEST_F(ForwardTest, WrittenMemoryIsSharedWithNothing) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  auto call = [&](const Params *p) {
    return fovea_forward(context.get(), p, nullptr);
  };
  auto withLse = [](Params &p, void *address) {
    p.lse = static_cast<float *>(address);
    p.lse_stride_batch = 8 * 300;
    p.lse_stride_head = 300;
  };
  const std::vector<Rule<Params>> shared = {
      {[](Params &p) { p.out.data = place(1); },
       "out (from 17592186044416 on, 1228800 bytes) and q (from 17592186044416 "
       "on, 1228800 bytes) share memory, and the kernels write out while they "
       "read q; give each memory of its own"},
      {[](Params &p) { p.out.data = place(2, 511990); }, "and k (from"},
      // The last element of one is the first of the other.
      {[](Params &p) { p.v.data = place(4, 1228798); }, "and v (from"},
      // Rows between rows that reach into them.
      {[](Params &p) {
         p.q = {place(4, 254), 8 * 300 * 256, 300 * 256, 256};
         p.out = {place(4), 8 * 300 * 256, 300 * 256, 256};
       },
       "and q (from"},
      // Other strides: (batch, sequence, head, head_dim) over the packed order.
      {[](Params &p) { p.out = {place(1, 2560), 8 * 300 * 128, 128, 8 * 128}; },
       "and q (from"},
      {[&](Params &p) { withLse(p, place(4, 1228796)); },
       "out (from 70368744177664 on, 1228800 bytes) and lse (from "
       "70368745406460 on, 19200 bytes) share memory, and the kernels write "
       "out and lse"},
      {[&](Params &p) { withLse(p, place(3, 4)); },
       "write lse while they read v"},
  };
  expectRefused(shared, makeParams, call);
  EXPECT_TRUE(fake.launches.empty());

  const std::function<void(Params &)> apart[] = {
      // What is only read may be shared.
      [](Params &p) { p.v = p.k; },
      [](Params &p) { p.k.data = p.v.data = p.q.data; },
      // Directly behind one another.
      [](Params &p) { p.out.data = place(1, 1228800); },
      [](Params &p) { p.q.data = place(4, 1228800); },
      [&](Params &p) { withLse(p, place(4, 1228800)); },
      // (batch, sequence, 4, heads, head_dim), of two lengths.
      [](Params &p) {
        p.heads_k = 8;
        const int64_t row = 4 * 8 * 128, batch = 500 * row;
        p.q = {place(1), batch, 128, row};
        p.k = {place(1, 8 * 128 * 2), batch, 128, row};
        p.v = {place(1, 2 * 8 * 128 * 2), batch, 128, row};
        p.out = {place(1, 3 * 8 * 128 * 2), batch, 128, row};
      },
      // A batch's q, k, v and out behind one another.
      [](Params &p) {
        const int64_t longs = 8 * 300 * 128, shorts = 2 * 500 * 128;
        const int64_t batch = 2 * (longs + shorts);
        p.q = {place(1), batch, 128, 8 * 128};
        p.k = {place(1, uintptr_t(2 * longs)), batch, 128, 2 * 128};
        p.v = {place(1, uintptr_t(2 * (longs + shorts))), batch, 128, 2 * 128};
        p.out = {place(1, uintptr_t(2 * (longs + 2 * shorts))), batch,
                 300 * 128, 128};
      },
      // Nothing is in them.
      [](Params &p) {
        p.seqlen_k = 0;
        p.k.data = p.v.data = p.out.data;
      },
  };
  for (const auto &change : apart) {
    Params p = makeParams();
    change(p);
    expectStatus(call(&p), FOVEA_STATUS_OK);
  }
  EXPECT_EQ(fake.launches.size(), std::size(apart));
}

// Broadcast inputs, and the limit of the row stride itself, are fine.
TEST_F(ForwardTest, LimitsThemselvesAreAllowed) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  Params p = makeParams();
  p.q.stride_seq = fovea::spec::maxSeqStride(2);
  p.k.stride_batch = p.k.stride_head = p.k.stride_seq = 0;
  p.out.stride_seq = 128 * 16; // (batch, sequence, head, head_dim)
  p.out.stride_head = 128;
  p.out.stride_batch = 128 * 16 * 300;
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 1u);
  // There is no next row: one of (1, 32768, 128) as rows, heads, head_dim.
  p.seqlen_q = 1;
  p.q.stride_seq = p.out.stride_seq = 32768 * 128;
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 2u);
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
