//===- Facts.h - what a machine's HIP and chips are -------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTQUALIFY_FACTS_H
#define FOVEA_TOOLS_AOTQUALIFY_FACTS_H

#include "ForwardRun.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fovea::qualify {

/// The variables that decide what runs where, each with its value, if it is
/// set, and what it means: [{"name", "value", "means", "warns"}].
nlohmann::json environmentFacts();

/// The chips that the kernel driver knows, "gfx942", by the folder of its
/// topology; what HSA_OVERRIDE_GFX_VERSION says does not change them.
std::vector<std::string>
chipsOfDriver(const std::string &topology =
                  "/sys/class/kfd/kfd/topology/nodes");

/// "gfx942" of the driver's 90402; empty for 0, which is a CPU.
std::string chipOfVersion(unsigned version);

/// HIP library, driver and device of a session, with warnings about what does
/// not go together.
nlohmann::json deviceFacts(const run::Session &session, int device);

} // namespace fovea::qualify

#endif // FOVEA_TOOLS_AOTQUALIFY_FACTS_H
