//===- ModuleCalls.h - the HIP calls that run code objects ------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTLAUNCH_MODULECALLS_H
#define FOVEA_TOOLS_AOTLAUNCH_MODULECALLS_H

#include "Description.h"
#include "HipCalls.h"

namespace fovea::launch {

using run::HipCalls;
using run::HipStatus;

/// The calls beyond those of HipCalls.
struct ModuleCalls {
  HipStatus (*load)(void **, const void *) = nullptr;
  HipStatus (*unload)(void *) = nullptr;
  HipStatus (*function)(void **, void *, const char *) = nullptr;
  HipStatus (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, unsigned, void *, void **, void **) = nullptr;

  bool find(fovea_context_t *context, std::string &error);
  /// Launches a function with the buffers at `addresses`.
  HipStatus launchOf(void *function, const describe::Launch &launch,
                     const std::vector<void *> &addresses) const;
};

} // namespace fovea::launch

#endif // FOVEA_TOOLS_AOTLAUNCH_MODULECALLS_H
