//===- Module.h - loaded code objects and their kernels ---------*- C++ -*-===//
//
// What module and function handles stand for, and how kernels are found: by
// handle, or by the host function that clang registered for them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_MODULE_H
#define FOVEA_HIPSIM_MODULE_H

#include "Runtime.h"

#include "fovea/Simulator/CodeObject.h"
#include "fovea/Simulator/FatBinary.h"

namespace fovea::hipsim {

/// One kernel of a module.
struct Function {
  hipFunction_t handle = nullptr;
  std::shared_ptr<sim::CodeObject> code;
  const sim::KernelInfo *kernel = nullptr;
  int device = 0;
  /// What its launches take, by what tells them apart (Launch.cpp).
  mutable std::map<std::string, PredictedTime> times;
  mutable std::mutex timesMutex;
};

/// A code object on one device. Functions' handles are good while it lives.
struct Module {
  std::shared_ptr<sim::CodeObject> code;
  std::map<std::string, std::shared_ptr<Function>> functions;
  Module() = default;
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  ~Module();
};

/// Loads the code object in `image` that suits the device.
Result loadModule(DeviceState &device, const sim::ImageBytes &image,
                  std::shared_ptr<Module> &module);

/// The function of a live handle.
Result findFunction(hipFunction_t handle, std::shared_ptr<Function> &function);

/// The kernel of a registered host function on a device, whose module is loaded
/// when it is not yet there; a handle is taken too, if it is of that device.
Result kernelOf(const void *hostFunction, DeviceState &device,
                std::shared_ptr<Function> &function);

/// "forward_kernel of device 0".
std::string describe(const Function &function);

/// Names for messages about one that is not there: "a, b, c".
template <typename List>
std::string namesOf(const List &list) {
  std::string names;
  for (const auto &entry : list)
    names += (names.empty() ? "" : ", ") + entry.name;
  return names.empty() ? "none" : names;
}

/// Drops what registered fat binaries have loaded on a device (hipDeviceReset);
/// it is loaded again when it is next used.
void unloadFatBinariesOf(int device);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_MODULE_H
