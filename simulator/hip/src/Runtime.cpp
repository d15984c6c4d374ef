//===- Runtime.cpp - state of the simulated HIP library -------------------===//
//
// Start-up from the environment, settings, reports, and submission order.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

thread_local hipError_t lastError = hipSuccess;

/// A whole decimal number in [0, most].
bool parseNumber(const std::string &text, uint64_t most, uint64_t &value) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  errno = 0;
  value = std::strtoull(text.c_str(), nullptr, 10);
  return errno == 0 && value <= most;
}

struct FaultName {
  const char *name;
  sim::MfmaFault fault;
};
constexpr FaultName kMfmaFaults[] = {
    {"none", sim::MfmaFault::None},
    {"swap-rows-of-a", sim::MfmaFault::SwapRowsOfA},
    {"rotate-k", sim::MfmaFault::RotateK},
    {"swap-blocks-of-d", sim::MfmaFault::SwapBlocksOfD},
};

/// A setting: how its text is read, and what it takes.
struct SettingRow {
  const char *name;
  const char *variable; // of the environment
  const char *takes; // null: the names of checks
  bool (*apply)(Settings &, const std::string &);
};

template <bool Settings::*Field>
bool applyFlag(Settings &s, const std::string &text) {
  uint64_t value;
  if (!parseNumber(text, 1, value))
    return false;
  s.*Field = value != 0;
  return true;
}

constexpr SettingRow kSettings[] = {
    {"threads", "FOVEA_SIM_THREADS",
     "a number of host threads from 0 (one for each CPU) to 1024",
     [](Settings &s, const std::string &text) {
       uint64_t value;
       if (!parseNumber(text, 1024, value))
         return false;
       s.launch.threads = unsigned(value);
       return true;
     }},
    {"order", "FOVEA_SIM_ORDER", "forward or reverse",
     [](Settings &s, const std::string &text) {
       s.launch.reverse = text == "reverse";
       return s.launch.reverse || text == "forward";
     }},
    {"budget", "FOVEA_SIM_BUDGET",
     "a number of instructions for each wave, 0 for no limit",
     [](Settings &s, const std::string &text) {
       return parseNumber(text, UINT64_MAX, s.launch.waveBudget);
     }},
    {"poison", "FOVEA_SIM_POISON", "0 or 1",
     [](Settings &s, const std::string &text) {
       uint64_t value;
       if (!parseNumber(text, 1, value))
         return false;
       s.launch.poison = value != 0;
       return true;
     }},
    {"mfma-fault", "FOVEA_SIM_MFMA_FAULT",
     "none, swap-rows-of-a, rotate-k or swap-blocks-of-d",
     [](Settings &s, const std::string &text) {
       for (const FaultName &row : kMfmaFaults)
         if (text == row.name) {
           s.launch.mfmaFault = row.fault;
           return true;
         }
       return false;
     }},
    {"check", "FOVEA_SIM_CHECK", nullptr,
     [](Settings &s, const std::string &text) {
       return bool(sim::parseChecks(text, s.launch.checks));
     }},
    {"quiet", "FOVEA_SIM_QUIET", "0 or 1", applyFlag<&Settings::quiet>},
    {"log", "FOVEA_SIM_LOG", "the name of a file that can be written to",
     [](Settings &s, const std::string &text) {
       s.log = LaunchLog::open(text);
       return s.log != nullptr;
     }},
    {"time", "FOVEA_SIM_TIME", "0 or 1", applyFlag<&Settings::time>},
};

std::string takes(const SettingRow &row) {
  if (row.takes)
    return row.takes;
  std::string text = "all, none, or names with commas between them (a '-' "
                     "before one takes it away):";
  for (const sim::CheckInfo &check : sim::knownChecks())
    text += " " + std::string(check.name);
  return text;
}

/// The parts between commas; empty ones too, so that these are refused.
std::vector<std::string> splitTargets(const std::string &text) {
  std::vector<std::string> names;
  for (size_t start = 0;;) {
    const size_t comma = text.find(',', start);
    names.push_back(text.substr(start, comma - start));
    if (comma == std::string::npos)
      return names;
    start = comma + 1;
  }
}

} // namespace

hipError_t fovea::hipsim::toHip(sim::ErrorCode code) {
  switch (code) {
  case sim::ErrorCode::None:
    return hipSuccess;
  case sim::ErrorCode::InvalidArgument:
    return hipErrorInvalidValue;
  case sim::ErrorCode::OutOfMemory:
    return hipErrorOutOfMemory;
  case sim::ErrorCode::InvalidImage:
    return hipErrorInvalidImage;
  case sim::ErrorCode::TargetMismatch:
    return hipErrorNoBinaryForGpu;
  case sim::ErrorCode::NotFound:
    return hipErrorNotFound;
  case sim::ErrorCode::IllegalAddress:
    return hipErrorIllegalAddress;
  case sim::ErrorCode::BudgetExceeded:
    return hipErrorLaunchTimeOut;
  case sim::ErrorCode::LaunchFailure:
  case sim::ErrorCode::IllegalInstruction:
  case sim::ErrorCode::Trap:
  case sim::ErrorCode::Deadlock:
  case sim::ErrorCode::CheckFailed:
    return hipErrorLaunchFailure;
  }
  return hipErrorUnknown;
}

std::string Settings::conflict() const {
  return time && !log ? "predicted times go to the log, and there is none: name "
                        "one first, by FOVEA_SIM_LOG or the setting log"
                      : "";
}

Runtime &Runtime::get() {
  static Runtime *instance = new Runtime;
  return *instance;
}

Runtime::Runtime() {
  start();
  if (!current.log)
    return;
  std::vector<std::string> chips;
  for (const auto &state : all)
    chips.push_back(std::string(state->device->chip().target));
  current.log->process(chips, error);
}

void Runtime::start() {
  for (const SettingRow &row : kSettings)
    if (const char *value = std::getenv(row.variable))
      if (!row.apply(current, value)) {
        error = std::string(row.variable) + " is '" + value + "'; it takes " +
                takes(row);
        return;
      }
  error = current.conflict();
  if (!error.empty())
    return;
  const char *targets = std::getenv("FOVEA_SIM_TARGET");
  text = "fovea simulated HIP:";
  for (const std::string &name :
       splitTargets(targets ? targets : FOVEA_SIM_DEFAULT_TARGET)) {
    if (name.empty()) {
      error = "FOVEA_SIM_TARGET is '" + std::string(targets) +
              "'; it takes chips with single commas between them, of " +
              std::string(sim::chipList());
      all.clear();
      return;
    }
    auto state = std::make_unique<DeviceState>();
    state->index = int(all.size());
    if (sim::Status made = sim::Device::create(name, state->device); !made) {
      error =
          (made.code() == sim::ErrorCode::OutOfMemory ? ""
                                                      : "FOVEA_SIM_TARGET: ") +
          made.message();
      all.clear();
      return;
    }
    state->device->memory().setOwner("device " + std::to_string(state->index));
    state->nullStream = std::make_unique<Stream>(state->index, 0, 0);
    text += (all.empty() ? " " : ", ") + name;
    all.push_back(std::move(state));
  }
}

Settings Runtime::settings() {
  std::lock_guard<std::mutex> lock(mutex);
  return current;
}

Result Runtime::set(const std::string &name, const std::string &value) {
  std::string known;
  for (const SettingRow &row : kSettings) {
    known += (known.empty() ? "" : ", ") + std::string(row.name);
    if (name != row.name)
      continue;
    std::lock_guard<std::mutex> lock(mutex);
    Settings changed = current;
    if (!row.apply(changed, value))
      return {hipErrorInvalidValue, "setting " + name + " takes " + takes(row) +
                                        ", not '" + value + "'"};
    if (std::string conflict = changed.conflict(); !conflict.empty())
      return {hipErrorInvalidValue, "setting " + name + ": " + conflict};
    current = std::move(changed);
    return hipSuccess;
  }
  return {hipErrorInvalidValue,
          "no setting is named '" + name + "'; there are " + known};
}

void Runtime::report(const std::string &why, bool loud) {
  std::lock_guard<std::mutex> lock(mutex);
  last = why;
  if (loud && !current.quiet)
    std::fprintf(stderr, "fovea hipsim: %s\n", why.c_str());
}

std::string Runtime::lastReport() {
  std::lock_guard<std::mutex> lock(mutex);
  return last;
}

int &fovea::hipsim::currentDevice() {
  thread_local int device = 0;
  return device;
}

hipError_t fovea::hipsim::finish(const char *function, const Result &result) {
  // "Not ready" answers a question; it is no error to remember.
  if (result.code == hipSuccess || result.code == hipErrorNotReady)
    return result.code;
  lastError = result.code;
  if (!result.why.empty()) {
    // What only the report says (a refused image) is printed; a wrong argument
    // already has its status.
    // Without a device every call fails for the one reason: once is enough.
    static std::atomic<bool> noDeviceTold{false};
    const bool loud =
        result.code == hipErrorInvalidImage ||
        result.code == hipErrorNoBinaryForGpu ||
        (result.code == hipErrorNoDevice && !noDeviceTold.exchange(true));
    const std::string why = std::string(function) + ": " + result.why;
    Runtime::get().report(why, loud);
    if (loud)
      if (const std::shared_ptr<LaunchLog> log = Runtime::get().settings().log)
        log->refusal(why);
  }
  return result.code;
}

DeviceState *fovea::hipsim::deviceAt(int index) {
  auto &all = Runtime::get().devices();
  return index >= 0 && size_t(index) < all.size() ? all[size_t(index)].get()
                                                  : nullptr;
}

DeviceState &fovea::hipsim::thisDevice() { return *deviceAt(currentDevice()); }

Point fovea::hipsim::submit(DeviceState &device, Stream &stream,
                            std::function<void()> work,
                            std::vector<Point> after, bool evenAfterFault) {
  if (recordStep(stream, work))
    return {};
  auto guarded = [&device, evenAfterFault, work = std::move(work)] {
    if (!work || (!evenAfterFault && device.fault != hipSuccess))
      return;
    try {
      work();
    } catch (const std::bad_alloc &) {
      hipError_t none = hipSuccess;
      if (device.fault.compare_exchange_strong(none, hipErrorOutOfMemory))
        Runtime::get().report("the host's memory is full", /*loud=*/true);
    }
  };
  std::lock_guard<std::mutex> lock(device.streamsMutex);
  if (&stream == device.nullStream.get()) {
    for (Stream *other : device.streams)
      if (!(other->flags & hipStreamNonBlocking))
        after.push_back(other->tail());
  } else if (!(stream.flags & hipStreamNonBlocking)) {
    after.push_back(device.nullStream->tail());
  }
  return stream.submit(std::move(guarded), std::move(after));
}

Result fovea::hipsim::faultOf(const DeviceState &device) {
  // The report of the fault itself stays the last one.
  return device.fault.load();
}

void fovea::hipsim::drain(DeviceState &device) {
  std::vector<Point> ends;
  {
    std::lock_guard<std::mutex> lock(device.streamsMutex);
    for (Stream *stream : device.streams)
      ends.push_back(stream->tail());
    ends.push_back(device.nullStream->tail());
  }
  for (const Point &end : ends)
    end.wait();
}

//===----------------------------------------------------------------------===//
// Errors of the calling thread.
//===----------------------------------------------------------------------===//

HIP_ENTRY hipError_t hipGetLastError() {
  const hipError_t error = lastError;
  lastError = hipSuccess;
  return error;
}

HIP_ENTRY hipError_t hipExtGetLastError() { return hipGetLastError(); }

HIP_ENTRY hipError_t hipPeekAtLastError() { return lastError; }

//===----------------------------------------------------------------------===//
// What the library adds to HIP.
//===----------------------------------------------------------------------===//

const char *fovea_sim_last_report() {
  thread_local std::string copy;
  copy = Runtime::get().lastReport();
  return copy.c_str();
}

const char *fovea_sim_describe() {
  Runtime &runtime = Runtime::get();
  return runtime.startError().empty() ? runtime.description().c_str()
                                      : runtime.startError().c_str();
}

int fovea_sim_set(const char *name, const char *value) {
  return enter("fovea_sim_set", [&]() -> Result {
    if (!name || !value)
      return {hipErrorInvalidValue, "name or value is null"};
    return Runtime::get().set(name, value);
  });
}
