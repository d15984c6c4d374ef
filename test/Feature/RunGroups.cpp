//===- RunGroups.cpp - the made-up feature of aot-run's cases -------------===//
//
// Takes the place of tools/aot-run/Groups.cpp.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "horizon.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace fovea::run {
namespace {

// place: the row of tools/aot-run/Groups.cpp
std::optional<std::vector<double>> parse(const std::string &text) {
  int64_t keys = 0;
  const char *end = text.data() + text.size();
  if (auto [at, error] = std::from_chars(text.data(), end, keys);
      text.empty() || error != std::errc() || at != end)
    return std::nullopt;
  return std::vector<double>{double(keys)};
}

void fill(const std::vector<double> &values, fovea_group_t *group) {
  group->group = FOVEA_GROUP_HORIZON;
  reinterpret_cast<fovea_horizon_t *>(group)->keys = int64_t(values[0]);
}

reference::KeyRange sees(const std::vector<double> &values, int64_t, int64_t,
                         int64_t seqlenK) {
  // A wrong oracle must be found.
  const int64_t fault = std::getenv("FOVEA_TEST_HORIZON_FAULT") ? 1 : 0;
  return {0, std::clamp<int64_t>(int64_t(values[0]) + fault, 0, seqlenK)};
}

constexpr GroupOption kHorizonOption = {"horizon",
                                        "KEYS",
                                        "Hide keys from this number on",
                                        parse,
                                        sizeof(fovea_horizon_t),
                                        fill,
                                        sees};
// end

} // namespace

spec::Rows<GroupOption> groupOptions() {
  static const GroupOption all[] = {kHorizonOption};
  return all;
}

} // namespace fovea::run
