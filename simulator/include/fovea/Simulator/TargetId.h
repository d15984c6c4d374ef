//===- TargetId.h - A target and its features -------------------*- C++ -*-===//
//
// Names like "gfx942:sramecc+:xnack-", which code objects, offload bundles and
// the user's choice of devices share. Source: LLVM's "User Guide for AMDGPU
// Backend", section on target IDs.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TARGETID_H
#define FOVEA_SIMULATOR_TARGETID_H

#include "fovea/Simulator/Chip.h"

#include <string>
#include <string_view>

namespace fovea::sim {

/// A parsed target name. A feature that is not named fits either setting.
struct TargetId {
  enum class Setting { Any, Off, On };
  std::string processor; ///< "gfx942", "gfx9-4-generic"
  Setting xnack = Setting::Any;
  Setting sramecc = Setting::Any;
};

/// Takes \p text apart; false when it has a part that is no feature, or one
/// feature twice.
bool parseTargetId(std::string_view text, TargetId &id);

/// How well code for \p id suits \p chip: 0 when it cannot run there; more for
/// the chip's own code than for that of its generic target, and for each
/// feature that is named.
unsigned suitability(const TargetId &id, const ChipInfo &chip);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TARGETID_H
