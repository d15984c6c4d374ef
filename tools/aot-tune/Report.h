//===- Report.h - what a search found, for people and programs --*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTTUNE_REPORT_H
#define FOVEA_TOOLS_AOTTUNE_REPORT_H

#include "Search.h"

#include <nlohmann/json.hpp>

namespace fovea::tune {

/// A subject with its buckets.
struct Tuned {
  Subject subject;
  std::string by; ///< "predicted", "measured on ..."
  std::vector<Found> buckets;
};

/// A table: a line a bucket, and why what was chosen was chosen.
std::string reportText(const Tuned &tuned);
nlohmann::json reportJson(const Tuned &tuned);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_REPORT_H
