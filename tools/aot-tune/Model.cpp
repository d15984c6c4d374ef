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
  return sim::noTimingOf(target) +
         "; without one, and without such a GPU, there is nothing to rank "
         "schedules by";
}
