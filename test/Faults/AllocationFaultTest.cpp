//===- AllocationFaultTest.cpp - every allocation of the runtime fails ----===//
//
// Each step of a program's use of the runtime is repeated with the first, the
// second, ... allocation failing, once and for good, in a thread of its own,
// until none is left to fail. A step has to end as without a fault, or say that
// memory ran out and do its work when called again; nothing is lost.
//
//===----------------------------------------------------------------------===//

#include "Allocations.h"
#include "FaultHip.h"

#include "../Unit/Runtime/RuntimeTest.h"

#include <thread>

using namespace fovea;
using namespace fovea::test;

namespace {

/// What a step gave, as text, to compare with what it gives without a fault.
struct Given {
  fovea_status_t status = FOVEA_STATUS_OK;
  std::string message, result;
};

struct Step {
  const char *name;
  /// The call that is tested, and nothing else that allocates.
  std::function<fovea_status_t(std::string &result)> call;
  fovea_status_t wanted = FOVEA_STATUS_OK;
  /// What comes before it, without faults.
  std::function<void()> before = nullptr;
};

class AllocationFault : public RuntimeTest {
protected:
  static void SetUpTestSuite() {
    folder = new TempDir;
    // Large enough for a dictionary.
    auto payload = [](const std::string &symbols, uint32_t seed) {
      std::string text = symbols;
      for (uint32_t i = 0; i != 4; ++i)
        text += " " + codeLikePayload(seed + i);
      return text;
    };
    Expected<PackageWriter> writer =
        PackageWriter::open(package(), *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer) << writer.status().message();
    for (int32_t dim : {64, 96, 128}) {
      const KernelRecord record = makeRecord(makeProblem(dim));
      FOVEA_ASSERT_OK(
          putFake(*writer, record, payload(record.symbol, uint32_t(dim))));
    }
    KernelRecord backward = makeBackwardRecord();
    backward.abiVersion = fovea::abiVersionOf(fovea::OpKind::Backward);
    std::string symbols;
    for (const LaunchRecord &launch : backward.launches)
      symbols += backward.symbolOf(launch) + " ";
    FOVEA_ASSERT_OK(putFake(*writer, backward, payload(symbols, 1)));
    TuningRow row;
    row.problem = makeProblem(128);
    row.maxSeqlenQ = row.maxSeqlenK = row.maxBatchHeads = 1 << 20;
    row.schedule = makeRecord(makeProblem(128)).schedule;
    FOVEA_ASSERT_OK(writer->putTuning(row));
    FOVEA_ASSERT_OK(writer->pack());
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }
  static std::string package() { return folder->file("gfx942.fovea"); }
  static TempDir *folder;

  void SetUp() override {
    void *library = dlopen(FOVEA_FAULTHIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    hip = reinterpret_cast<FaultHipStateFn>(
        dlsym(library, "fovea_fault_hip_state"))();
    hip->library = dlopen(FAKE_HIP6, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(hip->library) << dlerror();
    // What the HIP library allocates is no concern of the runtime's.
    hip->inside = [](bool enters) {
      (enters ? spareAllocations : endSparing)();
    };
  }
  void TearDown() override { hip->inside = nullptr; }

  std::vector<Step> steps();
  void begin();
  void end();
  static void take(const Step &step, Given &given);
  /// Takes a step while an allocation fails, and once more if that has made it
  /// fail. \param tried  receives the number of allocations
  Given takeWithFault(const Step &step, long nth, bool forEver, long &tried);

  const std::string folderPath = folder->path();
  FaultHipState *hip = nullptr;
  fovea_context_t *context = nullptr;
  fovea_forward_params_t forward = makeParams(), other = makeParams(),
                         wrong = makeParams();
  fovea_backward_params_t backward{};
  std::map<std::string, long> codes; ///< of the failures, by step and status
};

TempDir *AllocationFault::folder = nullptr;

void ignoreLine(void *, const char *) {}
void ignoreStep(void *steps, const fovea_candidate_t *candidate) {
  Unharmed unharmed;
  *static_cast<std::string *>(steps) +=
      std::string(candidate->name) + ": " + candidate->reason + "\n";
}

template <typename Plan>
std::string describe(const Plan &plan) {
  Unharmed unharmed;
  return "kernel " + std::to_string(plan.kernel) + " by " +
         std::to_string(plan.chosen_by);
}

std::vector<Step> AllocationFault::steps() {
  auto launched = [this](std::string &result, fovea_status_t status) {
    Unharmed unharmed;
    result.clear();
    for (const FakeLaunch &launch : fake.launches)
      result += launch.function + " ";
    return status;
  };
  auto forget = [this] { fake.launches.clear(); };
  return {
      {"create a context",
       [this](std::string &) {
         fovea_context_options_t options{};
         options.struct_size = sizeof(options);
         options.hip_library = FOVEA_FAULTHIP_LIBRARY;
         options.log = "dispatch";
         options.log_fn = ignoreLine;
         return fovea_context_create(&options, &context);
       }},
      {"open the HIP library",
       [this](std::string &result) {
         fovea_hip_library_info_t info{};
         info.struct_size = sizeof(info);
         const fovea_status_t status = fovea_hip_library_info(context, &info);
         Unharmed unharmed;
         if (status == FOVEA_STATUS_OK)
           result = std::string(info.path) + info.reason +
                    std::to_string(info.runtime_version) +
                    std::to_string(info.device_count);
         return status;
       }},
      {"describe a device",
       [this](std::string &result) {
         fovea_device_info_t info{};
         info.struct_size = sizeof(info);
         const fovea_status_t status = fovea_device_info(context, 0, &info);
         Unharmed unharmed;
         if (status == FOVEA_STATUS_OK)
           result = info.arch + std::to_string(info.compute_units);
         return status;
       }},
      {"open a package",
       [this](std::string &result) {
         const fovea_status_t status =
             fovea_package_open(context, folderPath.c_str());
         Unharmed unharmed;
         if (status == FOVEA_STATUS_OK) // or it would have the last message
           result = std::to_string(fovea_kernel_count(context));
         return status;
       }},
      {"select a forward kernel",
       [this](std::string &result) {
         fovea_forward_plan_t plan{};
         plan.struct_size = sizeof(plan);
         const fovea_status_t status =
             fovea_forward_select(context, &forward, -1, &plan);
         result = describe(plan);
         return status;
       }},
      {"explain the choice",
       [this](std::string &result) {
         return fovea_forward_explain(context, &forward, 0, ignoreStep,
                                      &result);
       }},
      {"select backward kernels",
       [this](std::string &result) {
         fovea_backward_plan_t plan{};
         plan.struct_size = sizeof(plan);
         const fovea_status_t status =
             fovea_backward_select(context, &backward, 0, &plan);
         result = describe(plan) + std::to_string(plan.launch_count);
         return status;
       }},
      {"select for a problem without kernels",
       [this](std::string &) {
         return fovea_forward_select(context, &wrong, 0, nullptr);
       },
       FOVEA_STATUS_NOT_FOUND},
      {"prepare a kernel",
       [this](std::string &result) {
         fovea_forward_plan_t plan{};
         plan.struct_size = sizeof(plan);
         const fovea_status_t status =
             fovea_forward_prepare(context, &other, -1, &plan);
         result = describe(plan);
         return status;
       }},
      {"prepare it on another device",
       [this](std::string &result) {
         fovea_forward_plan_t plan{};
         plan.struct_size = sizeof(plan);
         const fovea_status_t status =
             fovea_forward_prepare(context, &other, 1, &plan);
         Unharmed unharmed;
         result = describe(plan) + ", then device " +
                  std::to_string(fake.currentDevice);
         return status;
       }},
      {"first launch",
       [=](std::string &result) {
         return launched(result, fovea_forward(context, &forward, nullptr));
       },
       FOVEA_STATUS_OK, forget},
      {"second launch",
       [=](std::string &result) {
         return launched(result, fovea_forward(context, &forward, nullptr));
       },
       FOVEA_STATUS_OK, forget},
      {"gradients",
       [=](std::string &result) {
         return launched(result, fovea_backward(context, &backward, nullptr));
       },
       FOVEA_STATUS_OK, forget},
      {"launch after a reset",
       [=](std::string &result) {
         return launched(result, fovea_forward(context, &forward, nullptr));
       },
       FOVEA_STATUS_OK,
       [this] {
         fake.launches.clear();
         fake.reset();
         hip->modules.clear();
       }},
      {"launch that HIP refuses",
       [this](std::string &) {
         return fovea_forward(context, &forward, nullptr);
       },
       FOVEA_STATUS_HIP_ERROR,
       [this] {
         HipFault fault;
         fault.function = "hipModuleLaunchKernel";
         fault.forEver = true;
         fault.error = 719;
         hip->faults = {fault};
       }},
      {"look for a function of HIP",
       [this](std::string &result) {
         void *address = fovea_hip_symbol(context, "hipGetDeviceCount");
         Unharmed unharmed;
         result = address ? "found" : "missing";
         return fovea_status_t(address ? FOVEA_STATUS_OK
                                       : FOVEA_STATUS_OUT_OF_MEMORY);
       },
       FOVEA_STATUS_OK, [this] { hip->faults.clear(); }},
      {"end a context whose modules stay",
       [this](std::string &) {
         fovea_context_destroy(context);
         context = nullptr;
         return fovea_status_t(FOVEA_STATUS_OK);
       },
       FOVEA_STATUS_OK,
       [this] {
         HipFault fault;
         fault.function = "hipModuleUnload";
         fault.error = 1;
         hip->faults = {fault};
       }},
  };
}

void AllocationFault::begin() {
  hip->faults.clear();
  hip->calls.clear();
  hip->failed.clear();
  hip->modules.clear();
  hip->everLoaded.clear();
  hip->badUnloads = 0;
  fake.launches.clear();
  fake.liveModules = 0;
  fake.archs.assign(2, "gfx942:sramecc+:xnack-");
  fake.currentDevice = 0;
}

void AllocationFault::end() {
  hip->faults.clear();
  fovea_context_destroy(context);
  context = nullptr;
  EXPECT_LE(
      hip->modules.size(),
      std::count(hip->failed.begin(), hip->failed.end(), "hipModuleUnload"));
  EXPECT_EQ(hip->badUnloads, 0);
  for (const auto &[module, device] : hip->modules)
    reinterpret_cast<int (*)(void *)>(dlsym(hip->library, "hipModuleUnload"))(
        module);
}

void AllocationFault::take(const Step &step, Given &given) {
  given = Given();
  if (step.before)
    step.before();
  given.status = step.call(given.result);
  given.message = fovea_last_message();
}

Given AllocationFault::takeWithFault(const Step &step, long nth, bool forEver,
                                     long &tried) {
  Given given;
  if (step.before)
    step.before();
  failAllocation(nth, forEver);
  given.status = step.call(given.result);
  tried = allocationsTried();
  given.message = fovea_last_message();
  if (nth == 0 || given.status == step.wanted)
    return given;
  const Given failed = given;
  ++codes[std::string(step.name) + ": " + fovea_status_name(failed.status)];
  EXPECT_STREQ(fovea_status_name(failed.status), "FOVEA_STATUS_OUT_OF_MEMORY")
      << failed.message;
  EXPECT_NE(failed.message.find("memory"), std::string::npos)
      << "'" << failed.message << "'";
  take(step, given); // with memory
  EXPECT_EQ(given.status, step.wanted)
      << "after " << failed.message << ": " << given.message;
  return given;
}

} // namespace

TEST_F(AllocationFault, EachAllocationOfEachStepFails) {
  other.head_dim = 64;
  wrong.head_dim = 200;
  for (fovea_forward_params_t *p : {&other, &wrong})
    for (fovea_tensor_t *t : {&p->q, &p->k, &p->v})
      t->stride_seq = 512;
  other.out.stride_seq = wrong.out.stride_seq = 512;
  other.q.stride_head = 300 * 512;
  other.out.stride_head = wrong.out.stride_head = 300 * 512;
  other.out.stride_batch = wrong.out.stride_batch = 8 * 300 * 512;
  backward = makeProblemParams<fovea_backward_params_t>();
  backward.dout = {place(5), 300 * 8 * 128, 128, 8 * 128};
  backward.lse = static_cast<float *>(place(6));
  backward.lse_stride_batch = 8 * 304;
  backward.lse_stride_head = 304;
  auto gradient = [](int n, const fovea_tensor_t &like) {
    return fovea_mutable_tensor_t{place(n), like.stride_batch, like.stride_head,
                                  like.stride_seq};
  };
  backward.dq = gradient(7, backward.q);
  backward.dk = gradient(8, backward.k);
  backward.dv = gradient(9, backward.v);
  backward.workspace = place(10);
  backward.workspace_bytes = 2 * 8 * 300 * 4;

  const std::vector<Step> all = steps();
  long cases = 0;
  Given known;
  for (size_t tested = 0; tested != all.size(); ++tested) {
    const Step &step = all[tested];
    SCOPED_TRACE(step.name);
    // One run of the scenario up to the step; how many allocations that had.
    auto run = [&](long nth, bool forEver) {
      SCOPED_TRACE("allocation " + std::to_string(nth) +
                   (forEver ? " and all that follow" : ""));
      begin();
      long tried = 0;
      Given given;
      for (size_t i = 0; i != tested && !HasFailure(); ++i) {
        take(all[i], given);
        EXPECT_EQ(given.status, all[i].wanted)
            << all[i].name << ": " << given.message;
      }
      // A thread's first call has allocations that later ones don't have.
      std::thread([&] {
        given = takeWithFault(step, nth, forEver, tried);
      }).join();
      EXPECT_EQ(given.status, step.wanted) << given.message;
      if (nth == 0)
        known = given;
      EXPECT_EQ(given.result, known.result);
      end();
      return tried;
    };
    const long allocations = run(0, false);
    for (const bool forEver : {false, true})
      for (long nth = 1; !HasFailure() && run(nth, forEver) >= nth; ++nth)
        ++cases;
    std::printf("%s: %ld allocations\n", step.name, allocations);
    ASSERT_FALSE(HasFailure());
  }
  for (const auto &[what, count] : codes)
    std::printf("%5ld %s\n", count, what.c_str());
  std::printf("%ld cases: an allocation fails\n", cases);
  RecordProperty("cases", int(cases));
}

int main(int argc, char **argv) {
  fovea::test::prepareAllocations();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
