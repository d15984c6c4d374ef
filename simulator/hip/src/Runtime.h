//===- Runtime.h - state of the simulated HIP library -----------*- C++ -*-===//
//
// The devices, their streams and faults, the settings, the last error of each
// thread, and the guard that every entry point runs in. One instance a process,
// never destroyed: streams' threads may outlive main().
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_RUNTIME_H
#define FOVEA_HIPSIM_RUNTIME_H

#include "LaunchLog.h"
#include "Stream.h"

#include "fovea/HipAbi.h"
#include "fovea/HipSim.h"
#include "fovea/Simulator/Device.h"
#include "fovea/Simulator/Launch.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

/// Marks a function of the HIP API: exported under its own name.
#define HIP_ENTRY extern "C" FOVEA_SIM_API

namespace fovea::hipsim {

/// A HIP status and, when it is an error, why.
struct Result {
  hipError_t code = hipSuccess;
  std::string why;
  Result(hipError_t code = hipSuccess, std::string why = {})
      : code(code), why(std::move(why)) {}
  bool ok() const { return code == hipSuccess; }
};

/// The HIP status that stands for a simulator error.
hipError_t toHip(sim::ErrorCode code);

/// One simulated device.
struct DeviceState {
  int index = 0;
  std::shared_ptr<sim::Device> device;

  /// First fault of a kernel since the last reset; hipSuccess: none. While it
  /// is set no work runs and every call that would start or await some returns
  /// it.
  std::atomic<hipError_t> fault{hipSuccess};

  std::mutex countersMutex;
  sim::Counters counters;
  uint64_t launches = 0;

  /// Guards the set of streams and the order of submissions between them.
  std::mutex streamsMutex;
  std::unique_ptr<Stream> nullStream;
  std::set<Stream *> streams; // without the null stream
};

struct Settings {
  sim::LaunchOptions launch;
  bool quiet = false;
  std::shared_ptr<LaunchLog> log; ///< null: none
  bool time = false; ///< launches' times are predicted, for the log
  /// Empty, or why the settings do not go together.
  std::string conflict() const;
};

class Runtime {
public:
  static Runtime &get();

  /// Empty when there are devices; otherwise why not.
  const std::string &startError() const { return error; }
  std::vector<std::unique_ptr<DeviceState>> &devices() { return all; }
  const std::string &description() const { return text; }

  Settings settings();
  Result set(const std::string &name, const std::string &value);

  /// Keeps `why` as the last report, and prints it when it is `loud`.
  void report(const std::string &why, bool loud);
  std::string lastReport();

private:
  Runtime();
  void start();
  std::string error, text, last;
  std::vector<std::unique_ptr<DeviceState>> all;
  Settings current;
  std::mutex mutex;
};

/// The calling thread's device, 0 until it sets another.
int &currentDevice();

/// Notes an error for hipGetLastError and the report, and returns its code.
hipError_t finish(const char *function, const Result &result);

/// Runs an entry point's body: refuses when there are no devices or the process
/// is a fork of one that used them, and lets no exception out.
template <typename Body>
hipError_t enter(const char *function, Body body) noexcept {
  try {
    if (Stream::isForked())
      return finish(
          function,
          {hipErrorNotInitialized,
           "this process is a fork of one that used the device, which "
           "does not come along; call HIP first in the process that "
           "uses it"});
    if (!Runtime::get().startError().empty())
      return finish(function, {hipErrorNoDevice, Runtime::get().startError()});
    return finish(function, body());
  } catch (const std::bad_alloc &) {
    return finish(function, {hipErrorOutOfMemory, "the host's memory is full"});
  } catch (const std::exception &e) {
    return finish(function, {hipErrorUnknown, e.what()});
  }
}

/// Workgroups that a grid may have in a dimension (0: x). HIP promises 65535 in
/// y and z; a launch with more is refused although some devices would take it.
constexpr uint64_t maxGridSize(unsigned dimension) {
  return dimension == 0 ? 2147483647 : 65535;
}

/// The device with that number, or null.
DeviceState *deviceAt(int index);
/// The calling thread's device.
DeviceState &thisDevice();

/// Finds the stream of a handle (the null stream for 0 and hipStreamLegacy).
Result findStream(hipStream_t handle, DeviceState *&device, Stream *&stream);

/// Runs an entry point's `body(device, stream)` for a stream handle.
template <typename Body>
hipError_t onStream(const char *function, hipStream_t handle, Body body) {
  return enter(function, [&]() -> Result {
    DeviceState *device;
    Stream *stream;
    if (Result found = findStream(handle, device, stream); !found.ok())
      return found;
    return body(*device, *stream);
  });
}

/// Submits work in the order that HIP promises: the null stream waits for all
/// blocking streams of its device, and they wait for it. After a fault the work
/// is passed over unless `evenAfterFault`. A captured stream keeps the work for
/// its graph and gives a point that is reached.
Point submit(DeviceState &device, Stream &stream, std::function<void()> work,
             std::vector<Point> after = {}, bool evenAfterFault = false);

/// The device's fault as a result of the calling function.
Result faultOf(const DeviceState &device);

/// Waits for everything submitted to any stream of the device.
void drain(DeviceState &device);

/// What belongs to a device and goes with hipDeviceReset.
void unloadModulesOf(int device);
void forgetMemoryOf(int device);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_RUNTIME_H
