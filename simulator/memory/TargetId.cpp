//===- TargetId.cpp - A target and its features ---------------------------===//
//
// Parses target names and compares them with chips.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/TargetId.h"

#include <utility>

namespace fovea::sim {

bool parseTargetId(std::string_view text, TargetId &id) {
  id = {};
  size_t colon = text.find(':');
  id.processor = text.substr(0, colon);
  while (colon != std::string_view::npos) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    std::string_view feature = text.substr(0, colon);
    if (feature.empty() || (feature.back() != '+' && feature.back() != '-'))
      return false;
    const auto setting = feature.back() == '+' ? TargetId::Setting::On
                                               : TargetId::Setting::Off;
    feature.remove_suffix(1);
    TargetId::Setting *place = feature == "xnack"     ? &id.xnack
                               : feature == "sramecc" ? &id.sramecc
                                                      : nullptr;
    if (!place || *place != TargetId::Setting::Any)
      return false;
    *place = setting;
  }
  return !id.processor.empty();
}

unsigned suitability(const TargetId &id, const ChipInfo &chip) {
  const bool own = id.processor == chip.target;
  if (!own &&
      (chip.genericTarget.empty() || id.processor != chip.genericTarget))
    return 0;
  unsigned points = own ? 4 : 1;
  for (auto [asked, has] : {std::pair(id.xnack, chip.xnack),
                            std::pair(id.sramecc, chip.sramecc)}) {
    if (asked == TargetId::Setting::Any)
      continue;
    if (has == Feature::Unsupported ||
        (asked == TargetId::Setting::On) != (has == Feature::On))
      return 0;
    ++points;
  }
  return points;
}

} // namespace fovea::sim
