//===- MachineImpl.h - a HIP library's calls and devices --------*- C++ -*-===//
//
// Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTLAUNCH_MACHINEIMPL_H
#define FOVEA_TOOLS_AOTLAUNCH_MACHINEIMPL_H

#include "LaunchRun.h"
#include "ModuleCalls.h"

#include <map>

namespace fovea::launch {

/// What a run holds on the device, until it ends.
class OnDevice {
protected:
  OnDevice(const HipCalls &hip, const ModuleCalls &modules)
      : hip(hip), modules(modules) {}
  virtual ~OnDevice();
  OnDevice(const OnDevice &) = delete;

  /// Whether a call succeeded; notes why not.
  virtual bool call(HipStatus status, const std::string &what) = 0;

  /// Adds a buffer to `addresses`. One without elements still has an address.
  bool upload(const std::vector<uint8_t> &bytes);
  bool createEvents();

  const HipCalls &hip;
  const ModuleCalls &modules;
  std::vector<void *> addresses;
  std::map<std::string, void *> loaded; ///< modules by file
  void *start = nullptr, *stop = nullptr;
};

struct Machine::Impl {
  fovea_context_t *context = nullptr;
  HipCalls hip;
  ModuleCalls modules;
  std::vector<std::string> arches; ///< of the devices: "gfx942:sramecc+:xnack-"

  ~Impl() { fovea_context_destroy(context); }
  /// The first that runs the target's code; -1: none does.
  int findDevice(const std::string &target) const;
};

/// A code object. False with `error` set when it can't be read, or is empty.
bool readImage(const std::string &path, std::string &bytes, std::string &error);

} // namespace fovea::launch

#endif // FOVEA_TOOLS_AOTLAUNCH_MACHINEIMPL_H
