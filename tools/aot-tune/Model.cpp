//===- Model.cpp - which timing model this is -----------------------------===//

#include "Model.h"

#include "ModelHash.h.inc" // made from the model's libraries at build time
#include "fovea/Simulator/Timing.h"

using namespace fovea;

std::string tune::modelBuildId() { return FOVEA_MODEL_HASH; }

std::string tune::noModelOf(const std::string &target) {
  const sim::ChipInfo *known = sim::findChip(target);
  if (known && sim::hasTiming(*known))
    return "";
  std::string timed;
  for (const sim::ChipInfo &other : sim::knownChips())
    if (sim::hasTiming(other))
      timed += (timed.empty() ? "" : ", ") + std::string(other.target);
  return "there is no timing model of " + target +
         ", and so nothing to rank "
         "schedules by without such a GPU; there is one of " +
         timed;
}
