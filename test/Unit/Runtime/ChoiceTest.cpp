//===- ChoiceTest.cpp - which kernel, and why not -------------------------===//

#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

class ChoiceTest : public RuntimeTest {
protected:
  fovea_forward_plan_t select(const fovea_forward_params_t &params,
                              fovea_context_t *context) {
    fovea_forward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_forward_select(context, &params, 0, &plan),
                 FOVEA_STATUS_OK);
    return plan;
  }
  /// block_m of the kernel that is chosen for `batch` x 8 heads x `rows`.
  int blockOf(fovea_context_t *context, int64_t batch, int64_t rows,
              int chosenBy) {
    fovea_forward_params_t p = makeParams();
    p.batch = batch;
    p.seqlen_q = rows;
    p.out.stride_head = rows * 128;
    p.out.stride_batch = 8 * rows * 128;
    fovea_forward_plan_t plan = select(p, context);
    EXPECT_EQ(plan.chosen_by, chosenBy) << fovea_last_message();
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context, plan.kernel, &info),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(plan.grid[1], (rows + info.block_m - 1) / info.block_m);
    return info.block_m;
  }
};

} // namespace

TEST_F(ChoiceTest, TuningTableComesFirst) {
  const KernelRecord small = makeRecord(makeProblem(128), 32),
                     large = makeRecord(makeProblem(128), 128),
                     many = makeRecord(makeProblem(128), 64);
  write(
      {small, large, many},
      {{makeProblem(128), 512, TuningRow::kAny, 16, large.schedule},
       {makeProblem(128), 512, TuningRow::kAny, TuningRow::kAny, many.schedule},
       {makeProblem(128), 8192, TuningRow::kAny, TuningRow::kAny,
        small.schedule},
       {makeProblem(128), 9000, TuningRow::kAny, TuningRow::kAny,
        "not in the package"}});
  ContextPtr context = makeContext();
  EXPECT_EQ(blockOf(context.get(), 2, 512, FOVEA_CHOSEN_BY_TUNING), 128);
  EXPECT_EQ(blockOf(context.get(), 3, 512, FOVEA_CHOSEN_BY_TUNING), 64);
  EXPECT_EQ(blockOf(context.get(), 2, 513, FOVEA_CHOSEN_BY_TUNING), 32);
  EXPECT_EQ(blockOf(context.get(), 2, 8193, FOVEA_CHOSEN_BY_RULE), 64);
  EXPECT_EQ(blockOf(context.get(), 2, 9001, FOVEA_CHOSEN_BY_RULE), 128);
}

TEST_F(ChoiceTest, RuleFillsTheChipThenPrefersLargeBlocks) {
  write({makeRecord(makeProblem(128), 32), makeRecord(makeProblem(128), 64),
         makeRecord(makeProblem(128), 128)});
  ContextPtr context = makeContext(); // 304 compute units
  // 8 heads x 32 blocks of 32 rows fit the chip at once; 128 rows would leave
  // most of it idle.
  EXPECT_EQ(blockOf(context.get(), 1, 1024, FOVEA_CHOSEN_BY_RULE), 32);
  EXPECT_EQ(blockOf(context.get(), 1, 1, FOVEA_CHOSEN_BY_RULE), 32);
  // Enough work for many rounds: the largest block.
  EXPECT_EQ(blockOf(context.get(), 64, 16384, FOVEA_CHOSEN_BY_RULE), 128);
}

TEST_F(ChoiceTest, RuleAvoidsScratch) {
  KernelRecord spills = makeRecord(makeProblem(128), 128);
  spills.resources.scratchBytes = 64;
  write({spills, makeRecord(makeProblem(128), 64)});
  ContextPtr context = makeContext();
  EXPECT_EQ(blockOf(context.get(), 64, 16384, FOVEA_CHOSEN_BY_RULE), 64);
}

TEST_F(ChoiceTest, RuleBreaksTiesByOccupancyThenBlockN) {
  KernelRecord slow = makeRecord(makeProblem(128), 64, 128),
               fast = makeRecord(makeProblem(128), 64, 64),
               wide = makeRecord(makeProblem(128), 64, 96);
  slow.resources.occupancy = 1;
  write({slow, fast, wide});
  ContextPtr context = makeContext();
  expectStatus(fovea_forward_select(
                   context.get(), std::array{makeParams()}.data(), 0, nullptr),
               FOVEA_STATUS_OK, {"block_n=96"});
}

TEST_F(ChoiceTest, CallerNamesAKernel) {
  write({makeRecord(makeProblem(128), 128), makeRecord(makeProblem(128), 32),
         makeRecord(makeProblem(64), 64)});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  p.kernel = 1;
  fovea_forward_plan_t plan = select(p, context.get());
  EXPECT_EQ(plan.kernel, 1u);
  EXPECT_EQ(plan.chosen_by, FOVEA_CHOSEN_BY_CALLER);
  EXPECT_EQ(plan.threads, 256u);
  p.kernel = 3;
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"kernel 3", "it is for 'forward;dtype=bf16;head_dim=64'"});
}

TEST_F(ChoiceTest, EachCandidateSaysWhyNot) {
  KernelRecord old = makeRecord(makeProblem(128), 128);
  old.abiVersion = 77;
  write({old});
  writeTo(dir.file("other.fovea"), {makeRecord(makeProblem(128), 64)}, {},
          "gfx950");
  writeTo(dir.file("xnack.fovea"), {makeRecord(makeProblem(128), 32)}, {},
          "gfx942:xnack+");
  ContextPtr context = makeContext();
  for (const char *name : {"other.fovea", "xnack.fovea"})
    expectStatus(fovea_package_open(context.get(), dir.file(name).c_str()),
                 FOVEA_STATUS_OK);
  fovea_forward_params_t p = makeParams();
  for (fovea_status_t status :
       {fovea_forward_select(context.get(), &p, 0, nullptr),
        fovea_forward(context.get(), &p, nullptr)})
    expectStatus(status, FOVEA_STATUS_NOT_FOUND,
                 {"forward;dtype=bf16;head_dim=128", "gfx942:sramecc+:xnack-",
                  "kernel 1", "argument layout has version 77", "kernel 2",
                  "it is for gfx950", "kernel 3", "it needs xnack on"});
}

TEST_F(ChoiceTest, NoKernelAtAllSaysWhatThereIs) {
  ContextPtr empty = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward_select(empty.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"no package is open"});
  write({makeRecord(makeProblem(64)), makeRecord(makeProblem(256))});
  ContextPtr context = makeContext();
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"have head_dim 64 256 for this type"});
  p.mask = FOVEA_MASK_CAUSAL_TOP_LEFT;
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"have another type or mask"});
}
