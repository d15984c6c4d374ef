//===- Groups.cpp - the table of feature groups of a case -----------------===//

#include "Groups.h"

namespace fovea::run {

// None yet.
spec::Rows<GroupOption> groupOptions() { return {}; }

} // namespace fovea::run
