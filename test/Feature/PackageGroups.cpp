//===- PackageGroups.cpp - the made-up feature among feature groups -------===//
//
// Takes the place of package/src/Groups.cpp, whose rows it has as well.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/OperationSpec.h"

#define featureGroups shippedGroups
#include "Groups.cpp"
#undef featureGroups

namespace fovea::spec {
namespace {

// place: the row of package/src/Groups.cpp
constexpr ScalarSpec kHorizon[] = {
    {"horizon",
     ArgKind::I32,
     "keys",
     "keys from this number on are hidden",
     {},
     std::numeric_limits<int32_t>::max()},
};
constexpr GroupSpec kHorizonGroup = {"horizon", 1, {}, kHorizon};
// end

} // namespace

Rows<GroupSpec> featureGroups() {
  static const GroupSpec all[] = {shippedGroups()[0], kHorizonGroup};
  return all;
}

} // namespace fovea::spec
