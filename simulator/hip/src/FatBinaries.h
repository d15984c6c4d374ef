//===- FatBinaries.h - device variables of registered programs --*- C++ -*-===//
//
// Finds the device's counterpart of a registered host variable. Kernels are
// found through Module.h.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_FATBINARIES_H
#define FOVEA_HIPSIM_FATBINARIES_H

#include "Runtime.h"

namespace fovea::hipsim {

/// The address and size in bytes of a registered variable on a device, whose
/// module is loaded when it is not yet there.
Result symbolOf(const void *hostVariable, DeviceState &device, void *&address,
                uint64_t &size);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_FATBINARIES_H
