//===- Targets.h - chips by name, by family, or all -------------*- C++ -*-===//
//
// What `--target` and "targets" may say: names of the chip table, beginnings of
// chips' names (gfx11), and `all`.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_TARGETS_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_TARGETS_H

#include "Axes.h"

namespace fovea::tools {

/// A target that was asked for.
struct Selected {
  const target::TargetInfo *target;
  bool byName; ///< by its own name, not as one of a family
};

/// The targets of a list, in its order, families in the order of the table. A
/// target that a family holds and that is there already is left out; one that
/// is named twice is a complaint, as is what names nothing.
std::vector<Selected> selectTargets(const std::vector<Item> &items,
                                    Complaints &complaints);

/// The table of chips, for `--list-targets`.
std::string targetTable();

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_TARGETS_H
