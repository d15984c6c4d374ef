//===- Context.h - packages, devices and modules ----------------*- C++ -*-===//
//
// What a fovea_context_t is: the catalog of kernels, the HIP library with its
// devices, and the modules loaded on each. Shared by threads. A launch of a
// kernel that is loaded only reads: the library and the device's view through
// an atomic each, the kernel's functions through a third. What these point to
// is kept until the context ends, since a reader says nowhere that it has done
// with it; there is a view for each time that a device was used after packages
// were opened, and a set of functions for each time that a kernel was loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_CONTEXT_H
#define FOVEA_RUNTIME_SRC_CONTEXT_H

#include "Explain.h"
#include "HipApi.h"
#include "LaunchCache.h"
#include "Log.h"
#include "OnDemand.h"

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace fovea::rt {

/// A kernel's functions on a device, one for each of its launches.
struct LoadedKernel {
  HipFunction functions[spec::kMaxLaunches] = {};
};

/// A device of the HIP library and what is loaded on it.
struct Device {
  int number = 0;
  /// Whether `traits` and `arch` are read; they do not change any more then.
  std::atomic<bool> usable{false};
  Result status; ///< why they could not be, last time
  DeviceTraits traits;
  std::string arch; ///< HIP's name of the chip

  std::atomic<const DeviceView *> view{nullptr}; ///< the newest
  std::mutex viewMutex; ///< held while a view is made; guards the next two
  std::deque<std::unique_ptr<const DeviceView>> views;
  std::deque<FunctionSlot> slots; ///< by kernel id - 1

  /// A loaded code object. HIP may read the image as long as the module lives.
  struct Module {
    ImageHash hash;
    HipModule handle;
    std::vector<uint8_t> image;
    std::string symbol; ///< of a kernel in it
  };
  /// Held while a module is loaded or forgotten, and taken before viewMutex;
  /// guards the next two and the writing of slots.
  std::mutex loadMutex;
  std::deque<Module> modules;
  std::deque<LoadedKernel> loaded;
};

/// What HIP refused of a plan's launches.
struct FailedLaunch {
  HipError error = 0; ///< 0: nothing
  const Plan *plan = nullptr;
  const LoadedKernel *functions = nullptr;
  const PlannedLaunch *launch = nullptr; ///< of the plan
};

/// How far launchAgain() came: what HIP has said is not asked once more.
struct Attempt {
  bool hasDevice = false;
  HipError deviceError = 0;
  int32_t device = -1; ///< the current one
  FailedLaunch failed;
};

/// The opened HIP library and its devices. Not changed once made, but for what
/// Device's own locks guard and devices that could not be read at first.
struct Hip {
  HipApi api;
  std::deque<Device> devices;
};

class Context {
public:
  Context() = default;
  ~Context();

  /// Reads options and variables; called once, first.
  Result configure(const fovea_context_options_t *options);

  /// The HIP library, opened at the first call. A failure is not kept: the next
  /// call tries again, and so does one that finds it without devices.
  /// \param opened  becomes true when this call has opened it
  Result hip(Hip *&library, bool *opened = nullptr);

  /// A usable device; -1: the calling thread's current one.
  Result device(int32_t number, Hip *&library, Device *&found);

  Result openPackage(const std::string &path);
  std::shared_ptr<const Catalog> catalog() const;

  /// Chooses for a problem that is not empty on a device.
  /// \param load  also loads the chosen kernel
  /// \param text  receives the choice in words
  Result select(Problem &problem, int32_t device, bool load, Plan &plan,
                std::string &text);
  /// Calls `visit` with each step of the choice for a problem that is not
  /// empty.
  Result explain(Problem &problem, int32_t device,
                 const std::function<void(const Step &)> &visit);
  /// Launches all kernels of a problem that is not empty and whose addresses
  /// have been checked, each with the same argument segment. None is launched
  /// before all are loaded.
  /// \param call  of the problem; the launch is remembered with it
  /// \param before  what launchAgain() did
  Result launch(Problem &problem, const Call &call, HipStream stream,
                const Attempt &before);
  /// The same of a call that is like one that the thread has launched on the
  /// device before, if it has (LaunchCache.h). False: nothing was launched, or
  /// HIP failed, and launch() is to go on.
  bool launchAgain(const Call &call, HipStream stream, Attempt &attempt);

  /// Whether kernels that are missing are compiled.
  bool compiles() const { return onDemand.mode() != OnDemand::Mode::Never; }
  /// Whether kernels of packages are passed over where none is named.
  bool compilesAlways() const {
    return onDemand.mode() == OnDemand::Mode::Always;
  }

  /// The canonical text of a score program, which stays as long as the context.
  Result scoreText(int32_t dtype, const char *program, const char *text,
                   const char *&canonical);

private:
  /// Finds a call's score program among the kernels of a device or, where
  /// kernels are compiled, by the compiler, and puts it into the problem's key.
  Result bindProgram(Device &device, Problem &problem, bool isLaunch);
  /// What was chosen for a problem.
  struct Chosen {
    const Plan *plan = nullptr; ///< null: there is no kernel
    const DeviceView *view = nullptr;
    Result compiled; ///< why a kernel could not be compiled, or nothing
  };
  /// Chooses for a problem, and before that compiles what it lacks, if that is
  /// wanted, or waits for the thread that does. While the stream is captured
  /// nothing is compiled, and only what is loaded is taken: HIP is asked where
  /// that matters.
  /// \param query  is told then
  /// \param stream  of the launch; null: it is not captured
  /// \param choose  gives null where there is no kernel, else a plan that
  ///   holds until it is called again
  /// \return a failure of HIP's to tell of the stream
  template <typename Choose>
  Result chooseCompiling(const Hip &library, Device &device, Query &query,
                         const HipStream *stream, Choose choose,
                         Chosen &chosen);
  /// The same for calls that plan, on the problem's stream.
  Result choosePlan(const Hip &library, Device &device, Query &query,
                    Plan &plan, Chosen &chosen);
  /// launch() on a device.
  /// \param wasReset  becomes true where it has been reset, which took the
  ///   kernel, and nothing is launched; null: that is a failure
  Result launchOn(const Hip &library, Device &device, const Problem &problem,
                  const Call &call, HipStream stream, bool *wasReset);
  /// Launches a plan's kernels, one after the other until one fails.
  static FailedLaunch enqueue(const HipApi &api, const Plan &plan,
                              const LoadedKernel &functions, void *arguments,
                              size_t argumentBytes, HipStream stream);
  /// Says why a launch failed, or forgets what a reset has taken.
  /// \param wasReset  as of launchOn()
  Result explainFailure(const Hip &library, Device &device,
                        const Problem &problem, const FailedLaunch &failed,
                        bool *wasReset);
  /// Compiles a kernel that a problem lacks.
  Result compileFor(const Device &device, const Problem &problem,
                    Missing missing, Failure &failure);
  /// Keeps that a kernel could not be compiled, where another serves: for good,
  /// or for some calls if it may pass.
  void doWithout(const Device &device, const Problem &problem, Missing missing,
                 const std::string &why, Failure failure);
  Result openLibrary();
  /// Reads what is not yet known of a device. The caller holds hipMutex.
  void readDevice(const Hip &library, Device &device);
  /// The device's view of the packages that are open now.
  const DeviceView &viewOf(Device &device);
  /// The same if it has been made; else null.
  const DeviceView *newestView(const Device &device) const;
  const DeviceView &makeView(Device &device);

  /// The functions of a kernel, which are loaded if they are not yet. The
  /// device must be the thread's current one.
  Result load(const Hip &library, Device &device, const Candidate &candidate,
              const LoadedKernel *&functions);
  /// \param again  a reset has taken what was loaded; another one is a failure
  Result loadLocked(const Hip &library, Device &device,
                    const Candidate &candidate, bool again = false);
  /// Adds a kernel's module to those of the device, which has none of its
  /// image.
  Result loadModule(const Hip &library, Device &device, const Kernel &kernel);
  /// The same on whatever device, with the current one as before.
  Result loadElsewhere(const Hip &library, Device &device,
                       const Candidate &candidate);
  /// Drops a kernel's module, and what is known of all functions, if the device
  /// has been reset and does not know it any more; not if another thread has
  /// done so since `stale` was read. HIP_ERROR if HIP does not tell.
  Result forgetModule(const Hip &library, Device &device,
                      const Candidate &candidate, const LoadedKernel *stale);
  /// Logs a choice, once.
  void logChoice(const DeviceView &view, const Device &device,
                 const Query &query, const Plan &plan);

  Log log;
  std::string hipChoice;
  OnDemand onDemand;

  std::mutex hipMutex;
  std::unique_ptr<Hip> hipOwner;
  std::unique_ptr<Hip> hipFormer; ///< one without devices, before it had some
  std::atomic<Hip *> hipReady{nullptr};

  mutable std::mutex catalogMutex; ///< held while `current` is changed or read
  std::shared_ptr<const Catalog> current = std::make_shared<Catalog>();
  /// Number of times that it has been changed.
  std::atomic<uint64_t> generation{0};

  std::mutex loggedMutex;
  std::set<std::string> logged; ///< choices that have been logged

  std::mutex textMutex;
  std::set<std::string> texts; ///< that callers have
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_CONTEXT_H
