//===- RuntimeGroups.cpp - the made-up feature of the C interface ---------===//
//
// Takes the place of runtime/src/Groups.cpp, whose rows it has as well.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "horizon.h"

#define groupReaders shippedReaders
#include "Groups.cpp"
#undef groupReaders

namespace fovea::rt {
namespace {

// place: the row of runtime/src/Groups.cpp
Result readHorizon(const fovea_group_t *group, Problem &,
                   GroupArguments &arguments) {
  fovea_horizon_t given;
  if (Result result = readVersioned(
          "horizon.header", reinterpret_cast<const fovea_horizon_t *>(group),
          sizeof(given), given);
      !result.ok())
    return result;
  if (given.keys < 0)
    return invalid("horizon.keys is " + std::to_string(given.keys) +
                   "; it must be 0 or more");
  arguments.set(
      0, std::min<int64_t>(given.keys, std::numeric_limits<int32_t>::max()));
  return Result();
}
constexpr fovea_horizon_t kNeutralHorizon = {
    {sizeof(fovea_horizon_t), FOVEA_GROUP_HORIZON, nullptr},
    std::numeric_limits<int64_t>::max()};
constexpr GroupReader kHorizonReader = {FOVEA_GROUP_HORIZON,
                                        "FOVEA_GROUP_HORIZON", "horizon",
                                        readHorizon, &kNeutralHorizon.header};
// end

} // namespace

spec::Rows<GroupReader> groupReaders() {
  static const GroupReader all[] = {shippedReaders()[0], kHorizonReader};
  return all;
}

} // namespace fovea::rt
