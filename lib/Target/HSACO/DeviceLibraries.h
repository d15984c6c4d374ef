//===- DeviceLibraries.h - ROCm's device libraries, if needed ---*- C++ -*-===//

#ifndef FOVEA_LIB_TARGET_HSACO_DEVICELIBRARIES_H
#define FOVEA_LIB_TARGET_HSACO_DEVICELIBRARIES_H

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace fovea::hsaco {

/// Makes a module self-contained: functions of ROCm's device libraries
/// (__ocml_*, __ockl_*) that it calls are linked in, as internal functions.
/// Does not look for the libraries if nothing is called. Fails if a function is
/// called that is not theirs, or if they are needed and not found.
///
/// Looked for in the folder that FOVEA_DEVICE_LIBS names, else in
/// $ROCM_PATH/amdgcn/bitcode, /opt/rocm/amdgcn/bitcode and where Debian's
/// rocm-device-libs puts them.
llvm::Error linkDeviceLibraries(llvm::Module &module,
                                const llvm::TargetMachine &machine);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_DEVICELIBRARIES_H
