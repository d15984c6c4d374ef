//===- BackwardTest.cpp - backward parameters, choice and launches --------===//

#include "BackwardTest.h"
#include "../../Support/KernelArgs.h"
#include "fovea/Package/OperationSpec.h"

#include <cstring>

using namespace fovea;
using namespace fovea::test;

static const fovea_mutable_tensor_t kUnwanted = {};

TEST_F(BackwardTest, LaunchesCarryGridsStreamAndArguments) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  int stream;
  expectStatus(fovea_backward(context.get(), &p, &stream), FOVEA_STATUS_OK);
  EXPECT_STREQ(fovea_last_message(), "");
  const struct {
    const char *function;
    unsigned grid[3], threads;
  } expected[] = {{"bwd_delta", {8, 5, 2}, 256},
                  {"bwd_dkdv", {2, 8, 2}, 512}, // key heads and rows
                  {"bwd_dq", {8, 3, 2}, 128}};
  ASSERT_EQ(fake.launches.size(), 3u);
  for (size_t i = 0; i != 3; ++i) {
    const FakeLaunch &launch = fake.launches[i];
    SCOPED_TRACE(expected[i].function);
    EXPECT_EQ(launch.function, expected[i].function);
    for (int d = 0; d != 3; ++d)
      EXPECT_EQ(launch.grid[d], expected[i].grid[d]);
    EXPECT_EQ(launch.block[0], expected[i].threads);
    EXPECT_EQ(launch.block[1], 1u);
    EXPECT_EQ(launch.block[2], 1u);
    EXPECT_EQ(launch.sharedBytes, 0u);
    EXPECT_EQ(launch.stream, &stream);
    ASSERT_EQ(launch.argumentBytes, 312u);
    const fovea::test::BackwardArgs &args = launch.backwardArgs;
    const uint64_t pointers[] = {args.q,    args.k,        args.v,  args.out,
                                 args.dout, args.lse,      args.dq, args.dk,
                                 args.dv,   args.workspace};
    for (size_t n = 0; n != std::size(pointers); ++n)
      EXPECT_EQ(pointers[n], kBetweenPlaces * (n + 1));
    EXPECT_EQ(args.qStrideBatch, 8 * 300 * 128);
    EXPECT_EQ(args.qStrideHead, 300 * 128);
    EXPECT_EQ(args.qStrideSeq, 128);
    EXPECT_EQ(args.kStrideHead, 500 * 128);
    EXPECT_EQ(args.vStrideBatch, 2 * 500 * 128);
    EXPECT_EQ(args.outStrideHead, 300 * 128);
    EXPECT_EQ(args.doutStrideBatch, 300 * 8 * 128);
    EXPECT_EQ(args.doutStrideHead, 128);
    EXPECT_EQ(args.doutStrideSeq, 8 * 128);
    EXPECT_EQ(args.dqStrideHead, 300 * 128);
    EXPECT_EQ(args.dkStrideHead, 500 * 128);
    EXPECT_EQ(args.dvStrideSeq, 128);
    EXPECT_EQ(args.lseStrideBatch, 8 * 304);
    EXPECT_EQ(args.lseStrideHead, 304);
    EXPECT_EQ(args.seqlenQ, 300);
    EXPECT_EQ(args.seqlenK, 500);
    EXPECT_EQ(args.headsQ, 8);
    EXPECT_EQ(args.groupSize, 4);
    EXPECT_EQ(args.scale, 0.125f);
  }
}

// The launch of a group, behind those of the algorithm: a workgroup a head.
TEST_F(BackwardTest, SinkGradientsAreALaunchMore) {
  KernelRecord record = makeRows();
  record.problem.groups[size_t(spec::findGroup("dsinks"))] = 1;
  record.launches.push_back({"dsinks", 1, 1024});
  writeBackward(record);
  ContextPtr context = makeContext();
  fovea_dsinks_t dsinks = {{sizeof(dsinks), FOVEA_GROUP_DSINKS, nullptr},
                           static_cast<const float *>(place(11)),
                           3,
                           static_cast<float *>(place(12)),
                           2};
  Params p = makeBackward();
  auto launch = [&] {
    fake.launches.clear();
    return fovea_backward(context.get(), &p, nullptr);
  };
  // Without the group, or with one that wants nothing, as ever.
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dkdv bwd_dq");
  const fovea_dsinks_t none = {
      {sizeof(none), FOVEA_GROUP_DSINKS, nullptr}, nullptr, 0, nullptr, 0};
  p.groups = &none.header;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dkdv bwd_dq");

  p.groups = &dsinks.header;
  expectStatus(launch(), FOVEA_STATUS_OK);
  ASSERT_EQ(fake.launches.size(), 4u);
  const FakeLaunch &last = fake.launches[3];
  EXPECT_EQ(last.function, "bwd_dsinks");
  EXPECT_EQ(last.grid[0], 8u);
  EXPECT_EQ(last.grid[1], 1u);
  EXPECT_EQ(last.grid[2], 1u);
  EXPECT_EQ(last.block[0], 1024u);
  EXPECT_EQ(passed<uint64_t>(record, "sinks", 3), kBetweenPlaces * 11);
  EXPECT_EQ(passed<uint64_t>(record, "sinks_stride_head", 3), 3u);
  EXPECT_EQ(passed<uint64_t>(record, "dsinks", 3), kBetweenPlaces * 12);
  EXPECT_EQ(passed<uint64_t>(record, "dsinks_stride_head", 3), 2u);
  EXPECT_EQ(passed<uint32_t>(record, "batches", 3), 2u);
  fovea_backward_plan_t plan = {};
  plan.struct_size = sizeof(plan);
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_OK);
  EXPECT_EQ(plan.launch_count, 4u);
  EXPECT_EQ(plan.launches[3].grid[0], 8u);

  // Alone; and zeros where there are no rows.
  Params whole = p;
  p.dq = p.dk = p.dv = kUnwanted;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dsinks");
  p = whole;
  p.seqlen_q = 0;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_dkdv bwd_dsinks");
  p = whole;
  p.batch = 0;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_dsinks");

  p = whole;
  dsinks.dsinks_stride_head = 0;
  expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"dsinks.dsinks.stride_head is 0", "overlap"});
  dsinks.dsinks_stride_head = 1;
  dsinks.dsinks = static_cast<float *>(place(11, 4));
  expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"dsinks.dsinks (from ", "dsinks.sinks (from ", "share memory"});
  dsinks.dsinks = static_cast<float *>(place(10));
  expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"workspace (from ", "dsinks.dsinks (from "});
  // Sinks alone are of a forward call.
  const fovea_sinks_t sinks = {
      {sizeof(sinks), FOVEA_GROUP_SINKS, nullptr}, nullptr, 0};
  p.groups = &sinks.header;
  expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"FOVEA_GROUP_SINKS", "of forward alone", "backward call"});
}

TEST_F(BackwardTest, SinkGradientsNeedAKernel) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  const fovea_dsinks_t dsinks = {{sizeof(dsinks), FOVEA_GROUP_DSINKS, nullptr},
                                 static_cast<const float *>(place(11)),
                                 1,
                                 static_cast<float *>(place(12)),
                                 1};
  Params p = makeBackward();
  p.groups = &dsinks.header;
  expectStatus(fovea_backward(context.get(), &p, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"without dsinks", "--groups"});
}

TEST_F(BackwardTest, PlanSaysWorkspaceAndLaunches) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  // Before anything is allocated.
  p.q.data = p.k.data = p.v.data = p.out.data = p.dout.data = nullptr;
  p.dq.data = p.dk.data = p.dv.data = p.workspace = nullptr;
  p.lse = nullptr;
  p.workspace_bytes = 0;
  fovea_backward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_OK,
               {"chosen by the rule", "delta grid 8x5x2 of 256 work-items",
                "dkdv grid 2x8x2 of 512", "dq grid 8x3x2 of 128"});
  EXPECT_EQ(plan.kernel, 1u);
  EXPECT_EQ(plan.chosen_by, FOVEA_CHOSEN_BY_RULE);
  EXPECT_EQ(plan.workspace_bytes, 2u * 8 * 300 * 4);
  ASSERT_EQ(plan.launch_count, 3u);
  EXPECT_EQ(plan.launches[1].grid[0], 2u);
  EXPECT_EQ(plan.launches[1].grid[1], 8u);
  EXPECT_EQ(plan.launches[2].threads, 128u);
}

// With the workspace of what is loaded, which the launch takes too.
TEST_F(BackwardTest, PlansForACapture) {
  writeBackward(makeRows());
  writeBackward(makeAtomicRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  auto select = [&](auto function) {
    fovea_backward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(function(context.get(), &p, 0, &plan), FOVEA_STATUS_OK);
    return plan;
  };
  const fovea_backward_plan_t better = select(fovea_backward_select);
  p.kernel = 3 - better.kernel;
  const fovea_backward_plan_t other = select(fovea_backward_prepare);
  EXPECT_NE(other.workspace_bytes, better.workspace_bytes);
  p.kernel = 0;
  p.stream = fake.capturing = at(0x77);
  const fovea_backward_plan_t plan = select(fovea_backward_select);
  EXPECT_EQ(plan.kernel, other.kernel);
  EXPECT_EQ(plan.provisional, 1u);
  EXPECT_EQ(plan.workspace_bytes, other.workspace_bytes);
  p.workspace_bytes = plan.workspace_bytes;
  expectStatus(fovea_backward(context.get(), &p, p.stream), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), plan.launch_count);
  p.stream = fake.capturing = nullptr;
  EXPECT_EQ(select(fovea_backward_prepare).provisional, 0u);
}

TEST_F(BackwardTest, EveryRuleIsChecked) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  auto call = [&](const Params *p) {
    return fovea_backward(context.get(), p, nullptr);
  };
  expectRefused(commonRules<Params>(), makeBackward, call);
  const std::vector<Rule<Params>> rules = {
      {[](Params &p) { p.deterministic = 2; },
       "deterministic is 2, not 0 or 1"},
      {[](Params &p) { p.narrow_sums = 2; }, "narrow_sums is 2, not 0 or 1"},
      {[](Params &p) { p.deterministic = p.narrow_sums = 1; },
       "deterministic and narrow_sums are 1, but narrow sums have other bits "
       "in "
       "every run; ask for one of them"},
      {[](Params &p) { p.reserved2 = 1; }, "reserved2 is 1"},
      {[](Params &p) {
         p.batch = 65535;
         p.heads_q = p.heads_k = p.seqlen_q = int64_t(1) << 30;
       },
       "is more than 2^50"},
      {[](Params &p) { p.dout.stride_seq = 4194304; },
       "dout.stride_seq is 4194304, not in 0 to 4194303"},
      {[](Params &p) { p.out.stride_batch = kHuge; }, "out spans more"},
      {[](Params &p) { p.lse_stride_head = -1; }, "lse.stride_head is -1"},
      {[](Params &p) { p.dq.stride_seq = 0; },
       "dq.stride_seq is 0: rows would overlap"},
      {[](Params &p) { p.dk.stride_head = 127; },
       "dk.stride_head is 127: rows would overlap"},
      {[](Params &p) { p.dv.stride_batch = 128; }, "rows would overlap"},
      {[](Params &p) { p.dq = p.dk = p.dv = kUnwanted; },
       "dq, dk and dv are all zero"},
      {[](Params &p) { p.dout.data = nullptr; }, "dout.data is NULL"},
      {[](Params &p) { p.lse = nullptr; }, "lse is NULL"},
      {[](Params &p) { p.dq.data = nullptr; },
       "dq.data is NULL; a gradient that is not wanted has strides of 0"},
      {[](Params &p) { p.dk.data = nullptr; }, "dk.data is NULL; a gradient"},
      {[](Params &p) { p.dv.data = place(9, 1); },
       "dv.data is 158329674399745, no"},
      {[](Params &p) { p.lse = static_cast<float *>(place(6, 2)); },
       "lse is 105553116266498, no multiple of the element size (4 bytes)"},
      {[](Params &p) { p.workspace = place(10, 8); },
       "workspace is 175921860444168, no multiple of its alignment (16 bytes)"},
      {[](Params &p) { p.workspace = nullptr; },
       "workspace is NULL; kernel 1 'bwd'"},
      {[](Params &p) { --p.workspace_bytes; },
       "workspace_bytes is 19199; kernel 1 'bwd'"},
      {[](Params &p) { p.workspace_bytes = 0; }, "needs 19200 for"},
  };
  expectRefused(rules, makeBackward, call);
  EXPECT_TRUE(fake.launches.empty());
  // Inputs and log-sum-exp may be broadcast.
  Params p = makeBackward();
  p.q.stride_seq = p.out.stride_head = p.dout.stride_batch = 0;
  p.lse_stride_batch = p.lse_stride_head = 0;
  p.deterministic = 1;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dkdv bwd_dq");
}

// No two gradients, and none with an input or the workspace.
TEST_F(BackwardTest, WrittenMemoryIsSharedWithNothing) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  auto call = [&](const Params *p) {
    return fovea_backward(context.get(), p, nullptr);
  };
  const std::vector<Rule<Params>> shared = {
      {[](Params &p) { p.dk.data = p.dq.data; },
       "dq (from 123145302310912 on, 1228800 bytes) and dk (from "
       "123145302310912 on, 512000 bytes) share memory, and the kernels write "
       "dq and dk; give each memory of its own"},
      {[](Params &p) { p.dv.data = p.dk.data; }, "write dk and dv"},
      {[](Params &p) { p.dq.data = place(1); }, "write dq while they read q"},
      {[](Params &p) { p.dv.data = place(3, 2); },
       "write dv while they read v"},
      {[](Params &p) { p.dq.data = place(4); }, "write dq while they read out"},
      {[](Params &p) { p.dq.data = place(5, 2); }, "while they read dout"},
      {[](Params &p) { p.dk.data = place(6, 2); }, "while they read lse"},
      {[](Params &p) { p.workspace = place(6); },
       "workspace (from 105553116266496 on, 19200 bytes) and lse (from "
       "105553116266496 on, 19440 bytes) share memory, and the kernels write "
       "workspace while they read lse"},
      {[](Params &p) { p.workspace = place(2, 511984); }, "while they read k"},
      {[](Params &p) { p.workspace = place(7, 16); }, "write workspace and dq"},
      // Packed, one head too far: the first of dk is the last of dq.
      {[](Params &p) {
         const int64_t row = 12 * 128, batch = 500 * row;
         p.dq = {place(7), batch, 128, row};
         p.dk = {place(7, 7 * 128 * 2), batch, 128, row};
         p.dv = {place(7, 10 * 128 * 2), batch, 128, row};
       },
       "write dq and dk"},
  };
  expectRefused(shared, makeBackward, call);
  EXPECT_TRUE(fake.launches.empty());

  const std::function<void(Params &)> apart[] = {
      [](Params &p) { p.q.data = p.out.data = p.dout.data; },
      // (batch, sequence, heads of q, k and v, head_dim), of two lengths.
      [](Params &p) {
        const int64_t row = 12 * 128, batch = 500 * row;
        p.dq = {place(7), batch, 128, row};
        p.dk = {place(7, 8 * 128 * 2), batch, 128, row};
        p.dv = {place(7, 10 * 128 * 2), batch, 128, row};
      },
      // (sequence, batch, heads, 2, head_dim).
      [](Params &p) {
        p.dk = {place(8), 2 * 2 * 128, 2 * 128, 2 * 2 * 2 * 128};
        p.dv = p.dk;
        p.dv.data = place(8, 128 * 2);
      },
      // Of the workspace what is used counts.
      [](Params &p) {
        p.workspace = place(1, 1228800);
        p.workspace_bytes = uint64_t(1) << 63;
      },
      // Nothing of it is used.
      [](Params &p) {
        p.dk = p.dv = kUnwanted;
        p.dq.data = place(8);
      },
  };
  for (const auto &change : apart) {
    Params p = makeBackward();
    change(p);
    expectStatus(call(&p), FOVEA_STATUS_OK);
  }
}

// What has no elements needs no launch; what has some gets its zeros.
TEST_F(BackwardTest, EmptyProblems) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  const struct {
    std::function<void(Params &)> change;
    const char *launches;
  } cases[] = {
      {[](Params &p) { p.batch = 0; }, ""},
      {[](Params &p) { p.heads_q = p.heads_k = 0; }, ""},
      {[](Params &p) { p.seqlen_q = p.seqlen_k = 0; }, ""},
      {[](Params &p) { p.heads_q = 0; }, "bwd_dkdv"},
      {[](Params &p) {
         p.seqlen_q = 0;
         p.q.data = p.out.data = p.dout.data = nullptr;
         p.dq.data = p.workspace = nullptr;
         p.lse = nullptr;
         p.workspace_bytes = 0;
       },
       "bwd_dkdv"},
      {[](Params &p) {
         p.seqlen_k = 0;
         p.k.data = p.v.data = nullptr;
         p.dk.data = p.dv.data = nullptr;
       },
       "bwd_delta bwd_dq"},
  };
  for (const auto &c : cases) {
    Params p = makeBackward();
    c.change(p);
    expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), c.launches);
    fovea_backward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK, {*c.launches ? "" : "nothing to compute"});
    EXPECT_EQ(plan.kernel, *c.launches ? 1u : 0u);
  }
  // No query heads: a group of none would divide by zero.
  Params p = makeBackward();
  p.heads_q = 0;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  ASSERT_EQ(fake.launches.size(), 1u);
  const fovea::test::BackwardArgs &args = fake.launches[0].backwardArgs;
  EXPECT_EQ(args.headsQ, 2);
  EXPECT_EQ(args.groupSize, 1);
  EXPECT_EQ(args.seqlenQ, 0);
  EXPECT_EQ(args.seqlenK, 500);
}

TEST_F(BackwardTest, GradientsThatAreNotWanted) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.dq = kUnwanted;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dkdv");
  p = makeBackward();
  p.dk = p.dv = kUnwanted;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dq");
  fovea_backward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_OK);
  EXPECT_EQ(plan.launch_count, 2u);
  for (auto member : {&Params::dk, &Params::dv}) {
    p = makeBackward();
    p.*member = kUnwanted;
    expectStatus(fovea_backward(context.get(), &p, nullptr),
                 FOVEA_STATUS_NOT_FOUND,
                 {"one launch computes dk and dv, but d",
                  "is not wanted; ask for all or none of them"});
  }
  // What is wanted has no elements.
  p = makeBackward();
  p.dk = p.dv = kUnwanted;
  p.seqlen_q = 0;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "");
}

TEST_F(BackwardTest, GradientsOfCaptures) {
  constexpr const char *kText = "score 1 captures(f32, bf16[batch:?, head:?, "
                                "query:?, key:?], i32)\nyield x";
  auto record = [&](KernelRecord of, uint8_t gradients) {
    of.problem.score = 0xab;
    of.problem.scoreGradients = gradients;
    of.score = {"mine", kText};
    of.symbol += std::to_string(int(gradients));
    return of;
  };
  writeBackward(record(makeRows(), 0));
  writeBackward(record(makeRows(), 2));
  writeBackward(record(makeAtomicRows(), 3));
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.workspace_bytes = 3 << 20;
  fovea_capture_t cap = {}, bias = {}, number = {};
  cap.type = FOVEA_CAPTURE_F32;
  cap.value = 1;
  number.type = FOVEA_CAPTURE_I32;
  bias.type = FOVEA_CAPTURE_BF16;
  bias.rank = 4;
  bias.data = place(20);
  const int64_t extents[] = {p.batch, p.heads_q, p.seqlen_q, p.seqlen_k};
  for (int64_t dim = 3, stride = 1; dim >= 0; stride *= extents[dim--]) {
    bias.extents[dim] = extents[dim];
    bias.strides[dim] = bias.gradient_strides[dim] = stride;
  }
  auto call = [&](fovea_status_t status,
                  std::initializer_list<const char *> texts = {}) {
    fovea_capture_t captures[] = {cap, bias, number};
    fovea_score_t score = {};
    score.header = {sizeof(score), FOVEA_GROUP_SCORE, nullptr};
    score.program = "mine";
    score.captures = captures;
    score.capture_count = 3;
    score.capture_size = sizeof(fovea_capture_t);
    p.groups = &score.header;
    expectStatus(fovea_backward(context.get(), &p, nullptr), status, texts);
  };
  // Kernels with more gradients serve those who want fewer, but come last.
  call(FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd0_delta bwd0_dkdv bwd0_dq");
  bias.gradient = place(21);
  bias.gradient_strides[1] = 7;
  call(FOVEA_STATUS_OK);
  ASSERT_EQ(fake.launches.size(), 3u);
  const KernelRecord made = record(makeRows(), 2);
  const spec::Signature signature = spec::signatureOf(
      made.problem, spec::specOf(OpKind::Backward).algorithms.begin(),
      *spec::capturesOfProgram(kText));
  const FakeLaunch &launch = fake.launches[1];
  EXPECT_EQ(signature.find("dcapture0"), nullptr);
  EXPECT_EQ(passedIn<void *>(launch, signature, "dcapture1"), place(21));
  EXPECT_EQ(passedIn<int64_t>(launch, signature, "dcapture1_stride1"), 7);
  EXPECT_EQ(launched(), "bwd2_delta bwd2_dkdv bwd2_dq");
  cap.gradient = place(22);
  call(FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd3_prepare bwd3_fused bwd3_convert");

  const auto refused = FOVEA_STATUS_INVALID_ARGUMENT;
  p.deterministic = 1;
  call(FOVEA_STATUS_NOT_FOUND,
       {"gradients of captures 0+1", "deterministic is 1",
        "those of 0+1 by atomic, 1 by deterministic"});
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_DETERMINISTIC);
  cap.gradient = nullptr;
  call(FOVEA_STATUS_OK);
  launched();
  bias.gradient_strides[1] = 0;
  call(refused, {"score.captures[1].gradient_strides[1] is 0", "any order"});
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_DETERMINISTIC);
  p.deterministic = 0;
  call(FOVEA_STATUS_OK);
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_NONE);
  launched();
  bias.gradient_strides[2] = -1;
  call(refused, {"score.captures[1].gradient_strides[2] is -1"});
  bias.gradient_strides[2] = int64_t(1) << 30;
  call(refused, {"score.captures[1].gradient_strides[2]", "it is at most"});
  bias.gradient_strides[2] = 300;
  number.gradient = place(23);
  call(refused, {"score.captures[2].gradient is given of i32"});
  number.gradient = nullptr;
  bias.gradient = static_cast<char *>(place(21)) + 2;
  call(refused, {"score.captures[1].gradient is", "no multiple of 4"});
  for (const auto &[other, name] :
       {std::pair<const void *, const char *>{p.q.data, "with q"},
        {p.dv.data, "with dv"},
        {bias.data, "score.captures[1].data"}}) {
    bias.gradient = const_cast<void *>(other);
    call(refused, {"score.captures[1].gradient", "shares memory", name});
  }
  bias.gradient = cap.gradient = place(21);
  call(refused, {"score.captures[1].gradient", "shares memory",
                 "score.captures[0].gradient"});
  cap.gradient = nullptr;
  p.dk = p.dv = kUnwanted;
  call(refused, {"the gradient of capture 1", "give dk and dv"});
  EXPECT_EQ(launched(), "");
}

TEST_F(BackwardTest, RecordsThatAreRefused) {
  const struct {
    std::function<void(KernelRecord &)> change;
    const char *part;
  } cases[] = {
      {[](KernelRecord &r) { ++r.abiVersion; },
       "its argument layout has version 2, this library's is 1"},
      {[](KernelRecord &r) { r.launches[1].suffix = "merged"; },
       "its kernel 'merged' is unknown to this library; update libfovea"},
      {[](KernelRecord &r) { r.launches.pop_back(); },
       "its record has no launch that writes dq; build the package again"},
      {[](KernelRecord &r) { r.launches[1].suffix = "fused"; },
       "its record mixes launches of 'deterministic' and 'atomic'; build the "
       "package again"},
  };
  for (const auto &c : cases) {
    KernelRecord record = makeRows();
    c.change(record);
    writeBackward(record);
    ContextPtr context = makeContext();
    Params p = makeBackward();
    expectStatus(fovea_backward(context.get(), &p, nullptr),
                 FOVEA_STATUS_NOT_FOUND, {c.part});
    p.kernel = 1;
    expectStatus(fovea_backward(context.get(), &p, nullptr),
                 FOVEA_STATUS_NOT_FOUND, {"can't run", c.part});
  }
  // A forward kernel is none for the backward pass, nor the reverse.
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.kernel = 2;
  expectStatus(fovea_backward(context.get(), &p, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"it is for 'forward;"});
  fovea_forward_params_t forward = makeParams();
  forward.kernel = 1;
  expectStatus(fovea_forward(context.get(), &forward, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"it is for 'backward;"});
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(BackwardTest, GridLimitsAreReasons) {
  writeBackward(makeRows(16, 16));
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.seqlen_k = 65535 * 16;
  p.dk.stride_head = p.dv.stride_head = (p.seqlen_k + 1) * 128;
  p.dk.stride_batch = p.dv.stride_batch = 2 * p.dk.stride_head;
  expectStatus(fovea_backward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK);
  ++p.seqlen_k;
  expectStatus(
      fovea_backward_select(context.get(), &p, 0, nullptr),
      FOVEA_STATUS_NOT_FOUND,
      {"seqlen_k 1048561 makes 65536 blocks of 16 rows, more than 65535"});
  // Not where the kernel of that grid is not needed.
  p.dk = p.dv = kUnwanted;
  expectStatus(fovea_backward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK);
  p = makeBackward();
  p.heads_q = p.heads_k = int64_t(1) << 23;
  p.batch = 1;
  expectStatus(fovea_backward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"heads_k 8388608 x 512 work-items is more than 2^32 - 1"});
}

// Smaller blocks where large ones would leave compute units idle, by the sum
// over the launches.
TEST_F(BackwardTest, RuleAddsUpTheLaunches) {
  KernelRecord large = makeRows(128, 128), small = makeRows(32, 32);
  small.schedule += ",small";
  writeBackward(large);
  writeBackward(small);
  ContextPtr context = makeContext();
  Params p = makeBackward();
  fovea_backward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  p.seqlen_q = 256; // without padding
  for (int64_t batch : {2, 600}) {
    p.batch = batch;
    expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK, {batch == 2 ? ",small" : "chosen by"});
    EXPECT_EQ(plan.launches[2].grid[1], batch == 2 ? 8u : 2u);
  }
}

// Sums of dQ are in the workspace; dQ needs the kernel of dK and dV.
TEST_F(BackwardTest, AtomicKernelsHaveTheirOwnLaunchesAndWorkspace) {
  writeBackward(makeAtomicRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  fovea_backward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_OK,
               {"prepare grid 8x5x2 of 256", "fused grid 2x8x2 of 512",
                "convert grid 8x5x2 of 128"});
  EXPECT_EQ(plan.workspace_bytes, 2u * 8 * 300 * (128 + 1) * 4);
  p.workspace_bytes = plan.workspace_bytes - 1;
  expectStatus(fovea_backward(context.get(), &p, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"workspace"});
  const struct {
    std::function<void(Params &)> change;
    const char *launches;
  } cases[] = {
      {[](Params &) {}, "bwd_prepare bwd_fused bwd_convert"},
      {[](Params &p) { p.dq = kUnwanted; }, "bwd_prepare bwd_fused"},
      {[](Params &p) { p.seqlen_q = 0; }, "bwd_fused"},
      {[](Params &p) { p.seqlen_k = 0; }, "bwd_prepare bwd_convert"},
  };
  for (const auto &c : cases) {
    p = makeBackward();
    p.workspace_bytes = plan.workspace_bytes;
    c.change(p);
    expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), c.launches);
  }
  p = makeBackward();
  p.dk = p.dv = kUnwanted;
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_NOT_FOUND,
               {"one launch computes dk and dv, but dk and dv is not wanted"});
  EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_NONE);
  // Rows of a batch are rounded up.
  p = makeBackward();
  p.heads_q = p.heads_k = 1;
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_OK);
  EXPECT_EQ(plan.workspace_bytes, 2u * 304 * (128 + 1) * 4);
}

// What has to be the same in every run is never done with atomics.
TEST_F(BackwardTest, DeterministicIsHonouredOrRefused) {
  writeBackward(makeAtomicRows());
  {
    ContextPtr context = makeContext();
    Params p = makeBackward();
    p.deterministic = 1;
    for (uint32_t kernel : {0, 1}) {
      p.kernel = kernel;
      expectStatus(fovea_backward(context.get(), &p, nullptr),
                   FOVEA_STATUS_NOT_FOUND,
                   {"its algorithm is 'atomic'", "deterministic is 1",
                    "--algorithm=deterministic"});
      EXPECT_EQ(fovea_last_cause(), FOVEA_CAUSE_DETERMINISTIC);
    }
    EXPECT_EQ(launched(), "");
  }
  writeBackward(makeRows(64, 64));
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.workspace_bytes = uint64_t(1) << 40;
  p.deterministic = 1;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_dkdv bwd_dq");
}

// Else the algorithm of fewer products is taken, unless its additions take
// longer than what it spares: the fewer keys a block has the more there are,
// and some chips are slower at them beside products.
TEST_F(BackwardTest, FewerProductsAreTakenWhereAdditionsAllow) {
  const struct {
    const char *chip;
    int32_t rows;
    bool isAtomic;
  } cases[] = {{"gfx942", 64, false},  {"gfx942", 128, false},
               {"gfx942", 192, true},  {"gfx942", 256, true},
               {"gfx950", 128, false}, {"gfx950", 192, false},
               {"gfx950", 256, true},  {"gfx90a", 64, true}};
  for (const auto &one : cases) {
    SCOPED_TRACE(one.chip + std::string(", ") + std::to_string(one.rows));
    std::filesystem::remove(path);
    fake.archs = {one.chip + std::string(":sramecc+:xnack-")};
    writeBackward(makeAtomicRows(one.rows), one.chip);
    writeBackward(makeRows(one.rows, one.rows), one.chip);
    ContextPtr context = makeContext();
    Params p = makeBackward();
    p.workspace_bytes = uint64_t(1) << 40;
    expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), one.isAtomic ? "bwd_prepare bwd_fused bwd_convert"
                                       : "bwd_delta bwd_dkdv bwd_dq");
  }
}

// All kernels are there before the first is launched.
TEST_F(BackwardTest, FailuresLaunchNothingOrSayWhere) {
  writeBackward(makeRows());
  for (int nth : {1, 2, 3}) {
    ContextPtr context = makeContext();
    Params p = makeBackward();
    fail("hipModuleGetFunction", nth, 500);
    expectStatus(fovea_backward(context.get(), &p, nullptr),
                 FOVEA_STATUS_HIP_ERROR,
                 {"hipModuleGetFunction failed", "its kernel 'bwd_d"});
    EXPECT_EQ(launched(), "");
    expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), "bwd_delta bwd_dkdv bwd_dq");
    fail("hipModuleLaunchKernel", nth, 719);
    const char *names[] = {"'bwd_delta'", "'bwd_dkdv'", "'bwd_dq'"};
    expectStatus(
        fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_HIP_ERROR,
        {"hipModuleLaunchKernel failed", names[nth - 1], "lengths 300x500"});
    EXPECT_EQ(fake.launches.size(), size_t(nth - 1));
    launched();
  }
  EXPECT_EQ(fake.liveModules, 0);
}

TEST_F(BackwardTest, AResetAmongTheLaunchesBeginsAgain) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  launched();
  fake.resetCountdown = 2;
  expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "bwd_delta bwd_delta bwd_dkdv bwd_dq");
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 2);
  EXPECT_EQ(fake.liveModules, 1);
}

TEST_F(BackwardTest, StructuresOfOtherVersions) {
  writeBackward(makeRows());
  ContextPtr context = makeContext();
  struct {
    Params known;
    uint64_t later;
  } params{makeBackward(), 0};
  params.known.struct_size = sizeof(params);
  expectStatus(fovea_backward(context.get(), &params.known, nullptr),
               FOVEA_STATUS_OK);
  params.later = 1;
  expectStatus(fovea_backward(context.get(), &params.known, nullptr),
               FOVEA_STATUS_INCOMPATIBLE,
               {"params uses fields of a later version"});
  Params p = makeBackward();
  p.struct_size = 376 - 8; // of the first version
  expectStatus(fovea_backward(context.get(), &p, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"params.struct_size is 368"});
  fovea_backward_plan_t plan{};
  plan.struct_size = 12;
  p = makeBackward();
  expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
               FOVEA_STATUS_INVALID_ARGUMENT, {"plan.struct_size is 12"});
}
