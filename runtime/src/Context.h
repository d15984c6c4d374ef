//===- Context.h - packages, devices and modules ----------------*- C++ -*-===//
//
// What a fovea_context_t is: the catalog of kernels, the HIP library with its
// devices, and the modules loaded on each. Shared by threads; a launch of a
// kernel that is already loaded takes two short locks and no SQL.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_CONTEXT_H
#define FOVEA_RUNTIME_SRC_CONTEXT_H

#include "Choice.h"
#include "HipApi.h"
#include "Log.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <shared_mutex>

namespace fovea::rt {

/// A device of the HIP library and what is loaded on it.
struct Device {
  Result status; ///< why it can't be used, if so
  DeviceTraits traits;
  std::string arch; ///< HIP's name of the chip

  /// A loaded code object. HIP may read the image as long as the module lives.
  struct Module {
    ImageHash hash;
    HipModule handle;
    std::vector<uint8_t> image;
  };
  std::shared_mutex functionsMutex;
  /// By kernel id: one for each of its launches.
  std::unordered_map<uint32_t, std::vector<HipFunction>> functions;
  std::mutex loadMutex; ///< held while a module is loaded; guards `modules`
  std::deque<Module> modules;
};

/// The opened HIP library and its devices. Not changed once made, but for what
/// Device's own locks guard.
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
  /// call tries again.
  Result hip(Hip *&library);

  /// A usable device; -1: the calling thread's current one.
  Result device(int32_t number, Hip *&library, Device *&found);

  Result openPackage(const std::string &path);
  std::shared_ptr<const Catalog> catalog() const;

  /// Plans; what `plan` points to stays valid as long as `catalog`.
  Result select(const Problem &problem, int32_t device,
                std::shared_ptr<const Catalog> &catalog, Plan &plan);
  /// Launches all kernels of a problem that is not empty and whose addresses
  /// have been checked, each with the same argument segment. None is launched
  /// before all are loaded.
  Result launch(const Problem &problem, void *arguments, size_t argumentBytes,
                HipStream stream);

private:
  Result openLibrary();
  Result functionsOf(const Hip &library, Device &device, const Kernel &kernel,
                     std::vector<HipFunction> &functions);
  /// Drops what is loaded on a device that has been reset; HIP has freed it.
  void forgetModules(Device &device);
  Result loadFunctions(const Hip &library, Device &device, const Kernel &kernel,
                       std::vector<HipFunction> &functions);

  Log log;
  std::string hipChoice;

  std::mutex hipMutex;
  std::unique_ptr<Hip> hipOwner;
  std::atomic<Hip *> hipReady{nullptr};

  mutable std::mutex catalogMutex;
  std::shared_ptr<const Catalog> current = std::make_shared<Catalog>();
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_CONTEXT_H
