//===- Groups.h - feature groups as IR --------------------------*- C++ -*-===//
//
// What a kernel with a feature group has in its op. The rows are alone in
// Groups.cpp; docs/AddingAFeature.md walks through a new one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_GROUPS_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_GROUPS_H

#include "fovea/Package/OperationSpec.h"
#include "mlir/IR/Attributes.h"

namespace fovea::tools {

struct GroupPart {
  const char *name; ///< of the row in spec::featureGroups()
  /// Its part of the op's visibility.
  mlir::Attribute (*part)(mlir::MLIRContext &context);
};
spec::Rows<GroupPart> groupParts();

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_GROUPS_H
