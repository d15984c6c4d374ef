//===- Fields.h - a kernel's record by name ---------------------*- C++ -*-===//
//
// The one list of what a record says, for printing and comparing.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTPACKAGE_FIELDS_H
#define FOVEA_TOOLS_AOTPACKAGE_FIELDS_H

#include "fovea/Package/Package.h"

#include <nlohmann/json.hpp>

namespace fovea::pkg {

struct Field {
  const char *name;  ///< of the package's column
  bool isPartOfDiff; ///< false: it may differ between two builds of the same
  nlohmann::ordered_json (*value)(const KernelRecord &record);
  bool isOfScore = false; ///< only kernels with a score program have it

  bool isOf(const KernelRecord &record) const {
    return !isOfScore || record.problem.score != 0;
  }
};

const std::vector<Field> &kernelFields();

/// A row's limits by name; one that is without a limit is null.
nlohmann::ordered_json toJson(const TuningRow &row);

} // namespace fovea::pkg

#endif // FOVEA_TOOLS_AOTPACKAGE_FIELDS_H
