//===- HipFaultTest.cpp - every HIP call fails, and the runtime copes -----===//
//
// A scenario of all that a program does with the runtime, on two simulated
// devices, is run again and again, with another HIP call failing each time.
// Every fault has to come out as a status that names the call and says what to
// do, or be harmless and in the log. A launch that succeeds has the right
// results, the next call works again, and no module is lost.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <set>

using namespace fovea::test;

namespace {

constexpr int kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200,
              kInvalidHandle = 400, kLaunchFailure = 719, kUnknown = 999;

/// What one run of the scenario came to.
struct Outcome {
  std::vector<std::string> calls; ///< all HIP calls
  /// The call that went wrong, and the step of the scenario; empty: none did.
  std::string failed, step;
  bool told = false; ///< by a status
  std::vector<std::string> log;
  bool logged(const std::string &part) const {
    return std::any_of(log.begin(), log.end(), [&](const std::string &line) {
      return line.find(part) != std::string::npos;
    });
  }
};

class Scenario {
public:
  explicit Scenario(std::vector<HipFault> faults = {})
      : faults(std::move(faults)) {}

  Outcome run();

private:
  struct Step {
    const char *name;
    std::function<fovea_status_t()> call;
    std::function<bool()> right; ///< of its results; may be empty
  };
  std::vector<Step> steps();
  void makeMemory();
  void freeMemory();
  void take(const Step &step);
  void expectTold(fovea_status_t status, int32_t hipError,
                  const std::string &message, size_t failedBefore);

  std::vector<HipFault> faults;
  Outcome outcome;
  FaultHipState &state = faultHip();
  const SimHip &sim = simHip();
  fovea_context_t *context = nullptr;

  /// On the two devices.
  std::unique_ptr<Attention> small, large, otherSmall, otherLarge;
  void *streams[2] = {};
};

void Scenario::makeMemory() {
  small = std::make_unique<Attention>(Shape{});
  large = std::make_unique<Attention>(Shape{FOVEA_DTYPE_BF16, 64});
  for (void *&stream : streams)
    EXPECT_EQ(sim.hipStreamCreate(&stream), 0);
}

void Scenario::freeMemory() {
  for (void *stream : streams)
    EXPECT_EQ(sim.hipStreamDestroy(stream), 0);
  small.reset();
  large.reset();
}

std::vector<Scenario::Step> Scenario::steps() {
  auto forward = [this](const char *name, std::unique_ptr<Attention> &pass,
                        int stream) {
    return Step{name,
                [this, &pass, stream] {
                  pass->poison();
                  const fovea_forward_params_t p = pass->forward();
                  return fovea_forward(context, &p,
                                       stream < 0 ? nullptr : streams[stream]);
                },
                [&pass] { return pass->forwardIsRight(); }};
  };
  auto backward = [this](const char *name, std::unique_ptr<Attention> &pass,
                         int stream) {
    return Step{name,
                [this, &pass, stream] {
                  pass->poison();
                  const fovea_backward_params_t p = pass->backward();
                  return fovea_backward(context, &p,
                                        stream < 0 ? nullptr : streams[stream]);
                },
                [&pass] { return pass->backwardIsRight(); }};
  };
  auto deviceInfo = [this](const char *name, int number) {
    return Step{name,
                [this, number] {
                  fovea_device_info_t info{};
                  info.struct_size = sizeof(info);
                  const fovea_status_t status =
                      fovea_device_info(context, number, &info);
                  if (status == FOVEA_STATUS_OK) {
                    EXPECT_STREQ(info.arch, "gfx942:sramecc+:xnack-");
                  }
                  return status;
                },
                nullptr};
  };
  auto onDevice = [this](const char *name, int number) {
    return Step{name,
                [this, number] {
                  EXPECT_EQ(sim.hipSetDevice(number), 0);
                  return fovea_status_t(FOVEA_STATUS_OK);
                },
                nullptr};
  };
  auto prepare = [this] {
    const fovea_forward_params_t p = large->forward();
    const fovea_status_t status =
        fovea_forward_prepare(context, &p, 1, nullptr);
    int device = -1;
    EXPECT_EQ(sim.hipGetDevice(&device), 0);
    // Where HIP refuses to go back the message says so, and here it did.
    if (status == FOVEA_STATUS_OK) {
      EXPECT_EQ(device, 0);
    }
    EXPECT_EQ(sim.hipSetDevice(0), 0);
    return status;
  };
  return {
      {"create a context",
       [this] {
         fovea_context_options_t options{};
         options.struct_size = sizeof(options);
         options.hip_library = FOVEA_FAULTHIP_LIBRARY;
         options.log = "dispatch";
         options.log_user = &outcome.log;
         options.log_fn = [](void *user, const char *line) {
           static_cast<std::vector<std::string> *>(user)->push_back(line);
         };
         return fovea_context_create(&options, &context);
       },
       nullptr},
      {"describe the HIP library",
       [this] {
         fovea_hip_library_info_t info{};
         info.struct_size = sizeof(info);
         return fovea_hip_library_info(context, &info);
       },
       nullptr},
      deviceInfo("describe device 0", 0),
      deviceInfo("describe device 1", 1),
      {"open a package",
       [this] { return fovea_package_open(context, FOVEA_PLAIN_PACKAGE); },
       nullptr},
      {"select a forward kernel",
       [this] {
         const fovea_forward_params_t p = small->forward();
         return fovea_forward_select(context, &p, -1, nullptr);
       },
       nullptr},
      {"select backward kernels",
       [this] {
         const fovea_backward_params_t p = small->backward();
         return fovea_backward_select(context, &p, 0, nullptr);
       },
       nullptr},
      {"prepare device 1 from device 0", prepare, nullptr},
      {"prepare it again", prepare, nullptr},
      forward("first launch", small, -1),
      forward("second launch", small, -1),
      forward("another kernel on a stream", large, 0),
      backward("gradients on another stream", small, 1),
      onDevice("go to device 1", 1),
      forward("prepared launch on device 1", otherLarge, -1),
      backward("gradients on device 1", otherSmall, -1),
      onDevice("go back to device 0", 0),
      {"reset device 0",
       [this] {
         freeMemory();
         EXPECT_EQ(sim.hipDeviceReset(), 0);
         for (auto it = state.modules.begin(); it != state.modules.end();)
           it = it->second == 0 ? state.modules.erase(it) : std::next(it);
         makeMemory();
         return fovea_status_t(FOVEA_STATUS_OK);
       },
       nullptr},
      forward("launch after the reset", small, 1),
      backward("gradients after the reset", small, 0),
      forward("the other kernel after the reset", large, -1),
      {"end the context",
       [this] {
         fovea_context_destroy(context);
         context = nullptr;
         return fovea_status_t(FOVEA_STATUS_OK);
       },
       nullptr},
  };
}

/// A status of a fault: which it is, the call, the error, and what to do.
void Scenario::expectTold(fovea_status_t status, int32_t hipError,
                          const std::string &message, size_t failedBefore) {
  const HipFault &fault = faults.front();
  if (status != FOVEA_STATUS_HIP_ERROR || fault.error != 0) {
    EXPECT_EQ(hipError, status == FOVEA_STATUS_HIP_ERROR ? fault.error : 0);
  } else { // nonsense
    EXPECT_TRUE(hipError == 0 || hipError == kUnknown) << hipError;
  }
  if (fault.error == kNoDevice && state.failed.back() == "hipGetDeviceCount") {
    EXPECT_EQ(status, FOVEA_STATUS_NO_DEVICE);
  } else if (fault.error != 0) {
    EXPECT_EQ(status, FOVEA_STATUS_HIP_ERROR);
  }
  // Of several calls that failed, the one that the others came of.
  bool named = false;
  for (size_t i = failedBefore; i != state.failed.size(); ++i)
    named = named || message.find(state.failed[i]) != std::string::npos;
  // That a stream is being captured is no failure, but an answer.
  EXPECT_TRUE(named ||
              (fault.error == 0 && fault.function == "hipStreamIsCapturing"))
      << outcome.failed << " is not in: " << message;
  if (fault.error != 0) {
    EXPECT_NE(message.find("(" + std::to_string(fault.error) + ")"),
              std::string::npos)
        << message;
  }
  const size_t remedy = message.rfind("; ");
  EXPECT_TRUE(remedy != std::string::npos && message.size() - remedy > 10)
      << "no remedy: " << message;
}

void Scenario::take(const Step &step) {
  SCOPED_TRACE(step.name);
  const size_t failedBefore = state.failed.size();
  fovea_status_t status = step.call();
  const int32_t hipError = fovea_last_hip_error();
  const std::string message = fovea_last_message();
  if (state.failed.size() > failedBefore && outcome.failed.empty()) {
    outcome.failed = state.failed[failedBefore];
    outcome.step = step.name;
  }
  if (status != FOVEA_STATUS_OK) {
    outcome.told = true;
    if (state.failed.empty())
      ADD_FAILURE() << "without a fault: " << message;
    else
      expectTold(status, hipError, message, failedBefore);
    if (step.right) {
      EXPECT_EQ(sim.hipDeviceSynchronize(), 0); // what was launched before
    }
    if (faults.front().forEver) {
      EXPECT_NE(step.call(), FOVEA_STATUS_OK) << "though the fault stays";
      if (step.right) {
        EXPECT_EQ(sim.hipDeviceSynchronize(), 0);
      }
      state.faults.clear();
    }
    status = step.call();
    EXPECT_EQ(status, FOVEA_STATUS_OK)
        << "the fault is over, but: " << fovea_last_message();
    EXPECT_EQ(fovea_last_hip_error(), 0);
  }
  if (status == FOVEA_STATUS_OK && step.right) {
    EXPECT_TRUE(step.right()) << "wrong results";
  }
}

Outcome Scenario::run() {
  EXPECT_EQ(sim.hipSetDevice(1), 0);
  otherSmall = std::make_unique<Attention>(Shape{});
  otherLarge = std::make_unique<Attention>(Shape{FOVEA_DTYPE_BF16, 64});
  EXPECT_EQ(sim.hipSetDevice(0), 0);
  makeMemory();
  state.calls.clear();
  state.failed.clear();
  state.modules.clear();
  state.everLoaded.clear();
  state.badUnloads = 0;
  state.faults = faults;
  for (const Step &step : steps())
    take(step);
  state.faults.clear();
  // What HIP did not unload is still there, and nothing else is.
  EXPECT_LE(
      long(state.modules.size()),
      std::count(state.failed.begin(), state.failed.end(), "hipModuleUnload"));
  EXPECT_EQ(state.badUnloads, 0);
  for (const auto &[module, device] : state.modules)
    EXPECT_EQ(sim.hipModuleUnload(module), 0);
  freeMemory();
  otherSmall.reset();
  otherLarge.reset();
  outcome.calls = state.calls;
  return outcome;
}

/// Calls whose failure need not be told by a status, since nothing is lost by
/// it: what became of them is in the log, if it says so here.
struct Harmless {
  const char *function;
  int error;        ///< -1: any
  const char *step; ///< null: any
  const char *logged;
};
constexpr Harmless kHarmless[] = {
    {"hipRuntimeGetVersion", -1, nullptr, "does not tell its version"},
    // The next call that needs a device asks again.
    {"hipGetDeviceCount", kNoDevice, "describe the HIP library", "; 0 devices"},
    {"hipGetDeviceCount", 0, "describe the HIP library", "; 0 devices"},
    // Told to whoever asks for that device.
    {"hipGetDevicePropertiesR0600", -1, "describe the HIP library",
     "hipGetDevicePropertiesR0600"},
    {"hipDeviceGetAttribute", -1, "describe the HIP library",
     "hipDeviceGetAttribute"},
    // Going back to the current device, which is tried twice.
    {"hipSetDevice", -1, "prepare device 1 from device 0", nullptr},
    {"hipSetDevice", -1, "prepare it again", nullptr},
    {"hipThreadExchangeStreamCaptureMode", -1, nullptr,
     "going back to the thread's mode"},
    // Nobody to tell.
    {"hipModuleUnload", -1, "end the context", "hipModuleUnload failed"},
    // Of a module that is gone.
    {"hipModuleUnload", -1, nullptr, nullptr},
    // Taken for a reset: the launch is done again.
    {"hipModuleLaunchKernel", kInvalidHandle, nullptr, nullptr},
    // Taken for a reset: the module is loaded again.
    {"hipModuleGetFunction", kInvalidHandle, nullptr, nullptr},
    // Asked whether the device still knows a module.
    {"hipModuleGetFunction", -1, "prepare it again", nullptr},
    {"hipModuleGetFunction", -1, "launch after the reset", nullptr},
    {"hipModuleGetFunction", -1, "gradients after the reset", nullptr},
    {"hipModuleGetFunction", -1, "the other kernel after the reset", nullptr},
};

/// Runs the scenario with one fault; false when it did not come to it.
bool runWith(const HipFault &fault) {
  SCOPED_TRACE("call " + std::to_string(fault.nth) + " of " +
               (fault.function.empty() ? "all" : fault.function) + ", error " +
               std::to_string(fault.error) + ", value " +
               std::to_string(fault.value) +
               (fault.forEver ? ", and all after it" : ""));
  const Outcome outcome = Scenario({fault}).run();
  if (outcome.failed.empty())
    return false;
  SCOPED_TRACE(outcome.failed + " failed in: " + outcome.step);
  if (outcome.told)
    return true;
  for (const Harmless &row : kHarmless)
    if (outcome.failed == row.function &&
        (row.error == -1 || row.error == fault.error) &&
        (!row.step || outcome.step == row.step)) {
      if (row.logged) {
        EXPECT_TRUE(outcome.logged(row.logged))
            << "'" << row.logged << "' is not in the log";
      }
      return true;
    }
  ADD_FAILURE() << "the fault went unnoticed";
  return true;
}

void printCount(const char *what, long cases) {
  std::printf("%ld cases: %s\n", cases, what);
  testing::Test::RecordProperty("cases", int(cases));
}

} // namespace

TEST(HipFault, WithoutFaultsAllIsRight) {
  const Outcome outcome = Scenario().run();
  EXPECT_EQ(outcome.failed, "");
  EXPECT_FALSE(outcome.told);
  // It is the whole table of functions that fails below.
  const std::set<std::string> functions(outcome.calls.begin(),
                                        outcome.calls.end());
  for (const char *function :
       {"hipGetDeviceCount", "hipGetDevice", "hipSetDevice",
        "hipDeviceGetAttribute", "hipRuntimeGetVersion",
        "hipGetDevicePropertiesR0600", "hipModuleLoadData", "hipModuleUnload",
        "hipModuleGetFunction", "hipModuleLaunchKernel", "hipStreamIsCapturing",
        "hipThreadExchangeStreamCaptureMode"})
    EXPECT_EQ(functions.count(function), 1u) << function;
  printCount("HIP calls in the scenario", long(outcome.calls.size()));
}

TEST(HipFault, EachCallFailsOnce) {
  long cases = 0;
  HipFault fault;
  fault.error = kLaunchFailure;
  for (fault.nth = 1; runWith(fault); ++fault.nth)
    ++cases;
  printCount("a HIP call fails once", cases);
}

// What other errors are treated as depends on the function alone, so its first
// calls stand for the others.
TEST(HipFault, EachFunctionFailsWithEachError) {
  long cases = 0;
  const std::vector<std::string> calls = Scenario().run().calls;
  for (const std::string &function :
       std::set<std::string>(calls.begin(), calls.end()))
    for (int error : {kOutOfMemory, kNoDevice, kInvalidImage, kInvalidHandle}) {
      HipFault fault;
      fault.function = function;
      fault.error = error;
      for (fault.nth = 1; fault.nth <= 3 && runWith(fault); ++fault.nth)
        ++cases;
    }
  printCount("the first calls of each HIP function fail with 4 more errors",
             cases);
}

// As when a device is lost: the runtime says so each time, and goes on when it
// is back.
TEST(HipFault, AllCallsFailFromOneOn) {
  long cases = 0;
  HipFault fault;
  fault.error = kLaunchFailure;
  fault.forEver = true;
  for (fault.nth = 1; runWith(fault); ++fault.nth)
    ++cases;
  printCount("all HIP calls fail from one on", cases);
}

TEST(HipFault, CallsSucceedWithNonsense) {
  const struct {
    const char *function;
    std::vector<int> values;
  } rows[] = {
      {"hipGetDeviceCount", {0, -1, 1 << 30}},
      {"hipGetDevice", {-1, 2, 1 << 30}},
      {"hipDeviceGetAttribute", {0, -1, 7}},
      {"hipRuntimeGetVersion", {0, -1}},
      {"hipGetDevicePropertiesR0600", {0}},
      {"hipModuleLoadData", {0}},
      {"hipModuleGetFunction", {0}},
      {"hipStreamIsCapturing", {1, 2}},
  };
  long cases = 0;
  for (const auto &row : rows)
    for (int value : row.values) {
      HipFault fault;
      fault.function = row.function;
      fault.value = value;
      for (fault.nth = 1; runWith(fault); ++fault.nth)
        ++cases;
    }
  printCount("a HIP call succeeds and gives nonsense", cases);
}

// HIP may not know its own errors.
TEST(HipFault, ErrorsWithoutNameOrText) {
  HipFault fault, name, text;
  fault.function = "hipModuleLaunchKernel";
  fault.error = 12345;
  name.function = "hipGetErrorName";
  text.function = "hipGetErrorString";
  const Outcome outcome = Scenario({fault, name, text}).run();
  EXPECT_EQ(outcome.failed, "hipModuleLaunchKernel");
  EXPECT_TRUE(outcome.told);
}
