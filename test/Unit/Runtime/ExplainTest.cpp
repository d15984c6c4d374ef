//===- ExplainTest.cpp - a choice explains itself -------------------------===//

#include "RuntimeTest.h"

#include <map>
#include <random>
#include <set>

using namespace fovea;
using namespace fovea::test;

namespace {

/// A step as the callback saw it.
struct Seen {
  uint32_t kernel;
  int32_t state;
  std::string name, reason;
};

class ExplainTest : public RuntimeTest {
protected:
  static void keep(void *user, const fovea_candidate_t *candidate) {
    EXPECT_EQ(candidate->struct_size, sizeof(*candidate));
    EXPECT_EQ(candidate->reserved, 0u);
    static_cast<std::vector<Seen> *>(user)->push_back(
        {candidate->kernel, candidate->state, candidate->name,
         candidate->reason});
  }
  std::vector<Seen> explain(fovea_context_t *context,
                            const fovea_forward_params_t &p,
                            fovea_status_t wanted = FOVEA_STATUS_OK) {
    std::vector<Seen> steps;
    expectStatus(fovea_forward_explain(context, &p, 0, keep, &steps), wanted);
    return steps;
  }
  static void expectStep(const Seen &step, uint32_t kernel, int32_t state,
                         std::initializer_list<const char *> parts) {
    EXPECT_EQ(step.kernel, kernel) << step.name << ": " << step.reason;
    EXPECT_EQ(step.state, state) << step.name << ": " << step.reason;
    const std::string text = step.name + ": " + step.reason;
    for (const char *part : parts)
      EXPECT_NE(text.find(part), std::string::npos)
          << "'" << part << "' is not in: " << text;
  }
};

} // namespace

// Kernels are ordered by their schedules' texts: 128, 32, 64 rows.
TEST_F(ExplainTest, CandidatesInTheOrderOfTheRule) {
  KernelRecord spills = makeRecord(makeProblem(128), 64);
  spills.resources.scratchBytes = 48;
  KernelRecord old = makeRecord(makeProblem(128), 16);
  old.abiVersion = 77;
  write({makeRecord(makeProblem(128), 128), old,
         makeRecord(makeProblem(128), 32), spills});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  p.batch = 1;
  p.seqlen_q = 1024;
  p.out.stride_head = 1024 * 128;
  const std::vector<Seen> steps = explain(context.get(), p);
  ASSERT_EQ(steps.size(), 4u);
  expectStep(steps[0], 3, FOVEA_CANDIDATE_CHOSEN,
             {"kernel 3 'kernel_m32'", "chosen by the rule: cost 64"});
  expectStep(steps[1], 1, FOVEA_CANDIDATE_ACCEPTED,
             {"its cost is more than an eighth above the least", "cost 256"});
  expectStep(steps[2], 4, FOVEA_CANDIDATE_ACCEPTED,
             {"it uses scratch memory", "48 bytes of scratch"});
  expectStep(steps[3], 2, FOVEA_CANDIDATE_REFUSED,
             {"argument layout has version 77", "build the package again"});
  // The order is the one in which they would be chosen.
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK, {"kernel 3", "chosen by the rule"});
}

TEST_F(ExplainTest, TuningRowsThatAreMissedAreTold) {
  KernelRecord old = makeRecord(makeProblem(128), 16);
  old.abiVersion = 77;
  write({makeRecord(makeProblem(128), 128), old},
        {{makeProblem(128), 100, TuningRow::kAny, TuningRow::kAny,
          makeRecord(makeProblem(128), 128).schedule},
         {makeProblem(128), 200, TuningRow::kAny, 16, old.schedule},
         {makeProblem(128), 400, 500, TuningRow::kAny, "waves=99"}});
  writeTo(dir.file("more.fovea"), {makeRecord(makeProblem(128), 64)},
          {{makeProblem(128), TuningRow::kAny, TuningRow::kAny, TuningRow::kAny,
            makeRecord(makeProblem(128), 64).schedule}});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  std::vector<Seen> steps = explain(context.get(), p);
  ASSERT_EQ(steps.size(), 3u);
  expectStep(steps[0], 0, FOVEA_CANDIDATE_TUNING_MISSED,
             {"tuning row seqlen_q <= 400, seqlen_k <= 500 of package",
              path.c_str(), "names the schedule 'waves=99'",
              "the package does not have", "tune again"});
  expectStep(steps[1], 1, FOVEA_CANDIDATE_CHOSEN, {"chosen by the rule"});
  expectStep(steps[2], 2, FOVEA_CANDIDATE_REFUSED, {"version 77"});
  // A launch's own message says so too: no fallback is silent.
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK,
               {"chosen by the rule", "'waves=99'", "was missed"});
  // The next package's table is asked.
  expectStatus(
      fovea_package_open(context.get(), dir.file("more.fovea").c_str()),
      FOVEA_STATUS_OK);
  steps = explain(context.get(), p);
  ASSERT_EQ(steps.size(), 4u);
  expectStep(steps[0], 0, FOVEA_CANDIDATE_TUNING_MISSED, {"waves=99"});
  expectStep(
      steps[1], 3, FOVEA_CANDIDATE_CHOSEN,
      {"chosen by the tuning row for all sizes of package", "more.fovea"});
  expectStep(steps[2], 1, FOVEA_CANDIDATE_ACCEPTED,
             {"the tuning table names another"});
  expectStep(steps[3], 2, FOVEA_CANDIDATE_REFUSED, {"version 77"});
  // A row whose kernel is there but refused says why.
  p.seqlen_q = 150;
  steps = explain(context.get(), p);
  expectStep(steps.at(0), 0, FOVEA_CANDIDATE_TUNING_MISSED,
             {"batch * heads_q <= 16", "that of kernel 2", "version 77"});
}

TEST_F(ExplainTest, RefusedOnesComeWithTheirReasonsAndTheStatus) {
  write({makeRecord(makeProblem(128), 128)}, {}, "gfx950");
  ContextPtr context = makeContext();
  const std::vector<Seen> steps =
      explain(context.get(), makeParams(), FOVEA_STATUS_NOT_FOUND);
  ASSERT_EQ(steps.size(), 1u);
  expectStep(steps[0], 1, FOVEA_CANDIDATE_REFUSED, {"it is for gfx950"});
  fovea_forward_params_t none = makeParams();
  none.head_dim = 64;
  EXPECT_TRUE(explain(context.get(), none, FOVEA_STATUS_NOT_FOUND).empty());
  EXPECT_NE(std::string(fovea_last_message()).find("no kernel for"),
            std::string::npos);
  none.batch = 0;
  EXPECT_TRUE(explain(context.get(), none).empty());
  expectStatus(fovea_forward_explain(context.get(), &none, 0, nullptr, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"explain is NULL"});
}

TEST_F(ExplainTest, PassedOverForACloserPackage) {
  writeTo(dir.file("generic.fovea"), {makeRecord(makeProblem(128), 128)}, {},
          "gfx9-4-generic");
  write({makeRecord(makeProblem(128), 32)});
  ContextPtr context = makeContext();
  expectStatus(
      fovea_package_open(context.get(), dir.file("generic.fovea").c_str()),
      FOVEA_STATUS_OK);
  const std::vector<Seen> steps = explain(context.get(), makeParams());
  ASSERT_EQ(steps.size(), 2u);
  expectStep(steps[0], 1, FOVEA_CANDIDATE_CHOSEN, {});
  expectStep(steps[1], 2, FOVEA_CANDIDATE_ACCEPTED,
             {"kernel 1 is made more closely for the device (gfx942 against "
              "gfx9-4-generic)"});
}

// Launches choose by other code than explanations, of as many kernels as nobody
// compiles; both must come to the same.
TEST_F(ExplainTest, TheFirstIsTheOneThatIsTaken) {
  std::minstd_rand random(1);
  auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  std::vector<KernelRecord> records;
  std::vector<TuningRow> tuning;
  for (int i = 0; i != 24; ++i) {
    KernelRecord record =
        makeRecord(makeProblem(128), pick({1, 16, 32, 64, 96, 128}), 16 + i);
    record.symbol = "kernel_" + std::to_string(i);
    record.resources.occupancy = pick({1, 2, 3});
    record.resources.scratchBytes = pick({0, 0, 8});
    records.push_back(record);
    if (i % 3 == 0)
      tuning.push_back({record.problem, pick({1, 300, 5000}),
                        pick({1, 300, 5000}), pick({1, 8, 64}),
                        i % 2 ? record.schedule : "not there"});
  }
  write(records, tuning);
  ContextPtr context = makeContext();
  std::map<int, int> chosenBy;
  std::set<uint32_t> kernels;
  for (int round = 0; round != 300; ++round) {
    fovea_forward_params_t p = makeParams();
    p.batch = pick({1, 2, 64});
    p.seqlen_q = pick({1, 100, 300, 2000, 70000});
    p.seqlen_k = pick({1, 200, 4000});
    p.out = {p.out.data, 8 * p.seqlen_q * 128, p.seqlen_q * 128, 128};
    fovea_forward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_forward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK);
    ++chosenBy[plan.chosen_by];
    kernels.insert(plan.kernel);
    // So must launches, which remember some of their choices.
    fake.launches.clear();
    expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context.get(), plan.kernel, &info),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(fake.launches.at(0).function, info.symbol);
    for (int i : {0, 1, 2})
      EXPECT_EQ(fake.launches[0].grid[i], plan.grid[i]);
    std::map<int, int> states;
    for (const Seen &step : explain(context.get(), p)) {
      ++states[step.state];
      if (step.state == FOVEA_CANDIDATE_CHOSEN) {
        EXPECT_EQ(step.kernel, plan.kernel) << step.reason;
      }
    }
    EXPECT_EQ(states[FOVEA_CANDIDATE_CHOSEN], 1);
    EXPECT_EQ(states[FOVEA_CANDIDATE_CHOSEN] +
                  states[FOVEA_CANDIDATE_ACCEPTED] +
                  states[FOVEA_CANDIDATE_REFUSED],
              24);
    EXPECT_LE(states[FOVEA_CANDIDATE_TUNING_MISSED], 1);
  }
  EXPECT_GT(chosenBy[FOVEA_CHOSEN_BY_TUNING], 10);
  EXPECT_GT(chosenBy[FOVEA_CHOSEN_BY_RULE], 10);
  EXPECT_GT(kernels.size(), 3u);
}

TEST_F(ExplainTest, KernelThatTheCallerNames) {
  write({makeRecord(makeProblem(128)), makeRecord(makeProblem(64))});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  for (uint32_t id : {1u, 2u}) { // ordered by problem text: 128, 64
    p.kernel = id;
    const std::vector<Seen> steps = explain(
        context.get(), p, id == 1 ? FOVEA_STATUS_OK : FOVEA_STATUS_NOT_FOUND);
    ASSERT_EQ(steps.size(), 1u);
    if (id == 1)
      expectStep(steps[0], 1, FOVEA_CANDIDATE_CHOSEN, {"named by the caller"});
    else
      expectStep(steps[0], 2, FOVEA_CANDIDATE_REFUSED, {"head_dim=64'"});
  }
}

// The callback is a caller's code: it may call back, and throw.
TEST_F(ExplainTest, CallbacksMayCallAndThrow) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  const fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward_explain(
                   context.get(), &p, 0,
                   [](void *user, const fovea_candidate_t *candidate) {
                     fovea_kernel_info_t info{};
                     info.struct_size = sizeof(info);
                     EXPECT_EQ(
                         fovea_kernel_info(static_cast<fovea_context_t *>(user),
                                           candidate->kernel, &info),
                         FOVEA_STATUS_OK);
                   },
                   context.get()),
               FOVEA_STATUS_OK, {"chosen by the rule, grid"});
  expectStatus(fovea_forward_explain(
                   context.get(), &p, 0,
                   [](void *, const fovea_candidate_t *) { throw 1; }, nullptr),
               FOVEA_STATUS_INTERNAL, {"explain function"});
}

TEST_F(ExplainTest, LogTellsEachNewChoiceOnce) {
  write({makeRecord(makeProblem(128), 128), makeRecord(makeProblem(128), 32)},
        {{makeProblem(128), TuningRow::kAny, TuningRow::kAny, TuningRow::kAny,
          "waves=99"}});
  std::string lines;
  const ContextPtr context = makeContext(FAKE_HIP6, &lines);
  fovea_forward_params_t p = makeParams();
  auto count = [&](const std::string &part) {
    size_t found = 0;
    for (size_t at = 0; (at = lines.find(part, at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  for (int round = 0; round != 3; ++round)
    expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(count("fovea:   missed tuning row for all sizes"), 1u) << lines;
  EXPECT_EQ(count("fovea:   chosen kernel 2"), 1u) << lines;
  EXPECT_EQ(count("fovea:   accepted kernel 1"), 1u) << lines;
  p.batch = 64; // another kernel, another choice
  p.seqlen_q = 16384;
  p.out = {p.out.data, 8 * 16384 * 128, 16384 * 128, 128};
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(count("fovea:   chosen kernel 1"), 1u) << lines;
  EXPECT_EQ(count("fovea:   chosen kernel 2"), 1u) << lines;
}
