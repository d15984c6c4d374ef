//===- Groups.h - feature groups of a case ----------------------*- C++ -*-===//
//
// How a command line gives a feature group, and what it means to the library
// and to the oracle. The rows are alone in Groups.cpp; docs/AddingAFeature.md
// walks through a new one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_GROUPS_H
#define FOVEA_TOOLS_AOTRUN_GROUPS_H

#include "fovea/Package/OperationSpec.h"
#include "fovea/Parameters.h"
#include "fovea/Reference/Backward.h"
#include "fovea/fovea.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::run {

struct GroupOption {
  const char *name;        ///< of the row in spec::featureGroups(); "--name"
  const char *type, *help; ///< "KEYS"; what the option does. Null: another
                           ///< option implies the group
  /// Reads what the option is given; nullopt: that is none.
  std::optional<std::vector<double>> (*parse)(const std::string &text);
  size_t bytes; ///< of the structure in the C interface
  /// Fills in the structure that begins with `group`, all of it but `next` and
  /// `struct_size`.
  void (*fill)(const std::vector<double> &values, fovea_group_t *group);
  /// Keys that row `i` sees; the others that it would see are hidden. Null: the
  /// group hides nothing.
  reference::KeyRange (*sees)(const std::vector<double> &values, int64_t i,
                              int64_t seqlenQ, int64_t seqlenK);
  /// Where the structure has the group's tensors, if there are some, so many
  /// elements of the first, and where the oracle takes them. Others are
  /// written.
  spec::Rows<params::TensorField> tensors = {};
  std::vector<double> (*elements)(const std::vector<double> &values,
                                  int64_t count, uint64_t seed) = nullptr;
  std::vector<double> reference::ForwardProblem::*forward = nullptr;
  std::vector<double> reference::BackwardProblem::*backward = nullptr;
};
/// The group's row in the table of the package library.
inline const spec::GroupSpec &specOf(const GroupOption &option) {
  return spec::featureGroups()[size_t(spec::findGroup(option.name))];
}
/// But for windows, which are the mask of a case.
spec::Rows<GroupOption> groupOptions();
/// By name; null: none.
inline const GroupOption *findOption(std::string_view name) {
  for (const GroupOption &option : groupOptions())
    if (name == option.name)
      return &option;
  return nullptr;
}

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_GROUPS_H
