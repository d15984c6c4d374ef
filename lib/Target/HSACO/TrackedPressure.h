//===- TrackedPressure.h - schedule by exact pressure -----------*- C++ -*-===//
//
// LLVM's scheduler of AMDGPU estimates how many registers are taken. It can
// also count them, which takes longer and gives other code, by an option of
// llvm::cl, which are the process's. Here it is set for some functions.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_TRACKEDPRESSURE_H
#define FOVEA_LIB_TARGET_HSACO_TRACKEDPRESSURE_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Attribute of LLVM's function: it is scheduled by how many registers are
/// taken, and not by an estimate of that.
inline constexpr llvm::StringLiteral kTrackedPressureAttrName =
    "fovea-tracked-pressure";

/// Of functions with kTrackedPressureAttrName: the option is on while they are
/// scheduled.
void addTrackedPressure(llvm::TargetPassConfig &config);

/// Held while code is generated, by a module with such functions alone. Whoever
/// lets all options be set anew holds it, too.
class OptionsHeld {
public:
  OptionsHeld() : OptionsHeld(/*isAlone=*/false) {}
  explicit OptionsHeld(const llvm::Module &module);
  ~OptionsHeld();
  OptionsHeld(const OptionsHeld &) = delete;
  OptionsHeld &operator=(const OptionsHeld &) = delete;

private:
  explicit OptionsHeld(bool isAlone);
  const bool isAlone;
};

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_TRACKEDPRESSURE_H
