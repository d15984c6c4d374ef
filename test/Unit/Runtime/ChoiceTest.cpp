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

TEST_F(ChoiceTest, AScoreProgramServesNoProblemWithoutIt) {
  // The better kernel by every rule.
  const KernelRecord capped = makeScoreRecord(0xab, "softcap");
  KernelRecord plain = makeRecord(makeProblem(), 16);
  plain.resources.scratchBytes = 64;
  write({capped, plain});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  const fovea_forward_plan_t plan = select(p, context.get());
  fovea_kernel_info_t info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(fovea_kernel_info(context.get(), plan.kernel, &info),
            FOVEA_STATUS_OK);
  EXPECT_EQ(std::string(info.symbol), plain.symbol);
  p.kernel = 3 - plan.kernel;
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"it is for 'forward;dtype=bf16;head_dim=128;score="
                "00000000000000ab', with the score program 'softcap', which "
                "the call does not have"});
}

TEST_F(ChoiceTest, WithoutAPlainKernelThereIsNone) {
  write({makeScoreRecord(0xab, "softcap")});
  ContextPtr context = makeContext();
  const fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"type or score program"});
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
                  "it is for gfx950", "kernel 3", "needs xnack+",
                  "compile for gfx942 without xnack"});
}

TEST_F(ChoiceTest, NoKernelAtAllSaysWhatThereIs) {
  ContextPtr empty = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward_select(empty.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"no package is open"});
  write({makeRecord(makeProblem(64)), makeRecord(makeProblem(256))});
  ContextPtr context = makeContext();
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"have head_dim 64 256 for this operation and type"});
  p.dtype = FOVEA_DTYPE_F16;
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"2 kernels, of another operation, type or score program"});
  // What other chips have is no alternative.
  fake.archs = {"gfx1100"};
  ContextPtr other = makeContext();
  for (const char *name : {"a.fovea", "b.fovea"}) {
    writeTo(dir.file(name), {makeRecord(makeProblem(64))}, {},
            name[0] == 'a' ? "gfx950" : "gfx12-generic");
    expectStatus(fovea_package_open(other.get(), dir.file(name).c_str()),
                 FOVEA_STATUS_OK);
  }
  expectStatus(fovea_forward_select(other.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"on gfx1100: the open packages have no kernel for the device "
                "at all, but for gfx12-generic gfx942 gfx950; compile one with "
                "aot-compile --target=gfx1100"});
}

// All of a folder may be open: the chip's own package serves it, its generic
// target's what that lacks, and other chips' nothing.
TEST_F(ChoiceTest, OwnPackageBeforeGenericOne) {
  const std::pair<const char *, std::vector<KernelRecord>> packages[] = {
      {"gfx11-generic",
       {makeRecord(makeProblem(128), 128), makeRecord(makeProblem(64), 64)}},
      {"gfx1100", {makeRecord(makeProblem(128), 32)}},
      {"gfx1101", {makeRecord(makeProblem(128), 128)}}};
  for (const auto &[target, records] : packages)
    // The generic one's tuning table has a row for everything.
    writeTo(dir.file(std::string(target) + ".fovea"), records,
            {{makeProblem(128), TuningRow::kAny, TuningRow::kAny,
              TuningRow::kAny, makeRecord(makeProblem(128), 128).schedule}},
            target);
  auto chosen = [&](const char *device, int64_t headDim) {
    fake.archs = {device};
    ContextPtr context = makeContext();
    expectStatus(fovea_package_open(context.get(), dir.path().c_str()),
                 FOVEA_STATUS_OK);
    fovea_forward_params_t p = makeParams();
    p.head_dim = int32_t(headDim);
    fovea_forward_plan_t plan = select(p, context.get());
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context.get(), plan.kernel, &info),
                 FOVEA_STATUS_OK);
    return std::string(info.target) + " " + std::to_string(info.block_m);
  };
  EXPECT_EQ(chosen("gfx1100", 128), "gfx1100 32");
  EXPECT_EQ(chosen("gfx1100", 64), "gfx11-generic 64");
  EXPECT_EQ(chosen("gfx1101", 128), "gfx1101 128");
  EXPECT_EQ(chosen("gfx1151", 128), "gfx11-generic 128");
  fake.archs = {"gfx1201"};
  ContextPtr context = makeContext();
  expectStatus(fovea_package_open(context.get(), dir.path().c_str()),
               FOVEA_STATUS_OK);
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"for gfx11-generic, which is gfx1100, gfx1101", "for gfx1100,",
                "for gfx1101,", "compile for gfx1201 or gfx12-generic"});
  // The caller may still name the generic one.
  fake.archs = {"gfx1100"};
  ContextPtr named = makeContext();
  expectStatus(fovea_package_open(named.get(), dir.path().c_str()),
               FOVEA_STATUS_OK);
  p.kernel = 1; // gfx11-generic.fovea is the first of the folder
  EXPECT_EQ(select(p, named.get()).kernel, 1u) << fovea_last_message();
}

// Devices of several chips in one process.
TEST_F(ChoiceTest, EachDeviceTakesItsOwn) {
  for (const char *target : {"gfx942", "gfx11-generic", "gfx1201"})
    writeTo(dir.file(std::string(target) + ".fovea"),
            {makeRecord(makeProblem(128))}, {}, target);
  fake.archs = {"gfx1201", "gfx942:sramecc+:xnack-", "gfx1103", "gfx90a"};
  ContextPtr context = makeContext(); // it opens gfx942.fovea
  for (const char *name : {"gfx11-generic.fovea", "gfx1201.fovea"})
    expectStatus(fovea_package_open(context.get(), dir.file(name).c_str()),
                 FOVEA_STATUS_OK);
  const char *expected[] = {"gfx1201", "gfx942", "gfx11-generic"};
  fovea_forward_params_t p = makeParams();
  for (int device = 0; device != 3; ++device) {
    fovea_forward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_forward_select(context.get(), &p, device, &plan),
                 FOVEA_STATUS_OK);
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context.get(), plan.kernel, &info),
                 FOVEA_STATUS_OK);
    EXPECT_STREQ(info.target, expected[device]);
  }
  expectStatus(fovea_forward_select(context.get(), &p, 3, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"on gfx90a", "compile for gfx90a"});
}

// Code that pins what the device has is made for it more closely.
TEST_F(ChoiceTest, PinnedFeaturesBeforeAny) {
  write({makeRecord(makeProblem(128), 128)});
  writeTo(dir.file("off.fovea"), {makeRecord(makeProblem(128), 64)}, {},
          "gfx942:xnack-");
  for (const char *device :
       {"gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack+"}) {
    fake.archs = {device};
    ContextPtr context = makeContext();
    expectStatus(
        fovea_package_open(context.get(), dir.file("off.fovea").c_str()),
        FOVEA_STATUS_OK);
    EXPECT_EQ(blockOf(context.get(), 64, 16384, FOVEA_CHOSEN_BY_RULE),
              std::string(device).back() == '-' ? 64 : 128);
  }
}
