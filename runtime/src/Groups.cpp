//===- Groups.cpp - the table of feature groups of the C interface --------===//

#include "Groups.h"

namespace fovea::rt {
namespace {

Result readWindow(const fovea_group_t *group, Problem &problem,
                  GroupArguments &) {
  fovea_window_t given;
  if (Result result = readVersioned(
          "window.header", reinterpret_cast<const fovea_window_t *>(group),
          kWindowFirstSize, given);
      !result.ok())
    return result;
  for (const auto &[name, alignment] :
       {std::pair("window.left_alignment", given.left_alignment),
        {"window.right_alignment", given.right_alignment}})
    if (alignment != FOVEA_ALIGN_TOP_LEFT &&
        alignment != FOVEA_ALIGN_BOTTOM_RIGHT)
      return invalid(std::string(name) + " is " + std::to_string(alignment) +
                     ", not FOVEA_ALIGN_TOP_LEFT (0) or "
                     "FOVEA_ALIGN_BOTTOM_RIGHT (1)");
  problem.window = {given.left, given.right, Alignment(given.left_alignment),
                    Alignment(given.right_alignment)};
  return Result();
}

constexpr fovea_window_t kNeutralWindow = {
    {sizeof(fovea_window_t), FOVEA_GROUP_WINDOW, nullptr},
    FOVEA_WINDOW_INFINITE,
    FOVEA_WINDOW_INFINITE,
    FOVEA_ALIGN_TOP_LEFT,
    FOVEA_ALIGN_TOP_LEFT};

/// A group of tensors alone.
template <typename Given>
Result readTensors(const char *header, const fovea_group_t *group,
                   uint32_t firstSize, GroupArguments &arguments) {
  Given given;
  if (Result result = readVersioned(
          header, reinterpret_cast<const Given *>(group), firstSize, given);
      !result.ok())
    return result;
  arguments.setTensors(&given);
  return Result();
}

Result readDlse(const fovea_group_t *group, Problem &,
                GroupArguments &arguments) {
  return readTensors<fovea_dlse_t>("dlse.header", group, kDlseFirstSize,
                                   arguments);
}
constexpr fovea_dlse_t kNoDlse = {
    {sizeof(fovea_dlse_t), FOVEA_GROUP_DLSE, nullptr}, nullptr, 0, 0};

Result readSinks(const fovea_group_t *group, Problem &,
                 GroupArguments &arguments) {
  return readTensors<fovea_sinks_t>("sinks.header", group, kSinksFirstSize,
                                    arguments);
}
constexpr fovea_sinks_t kNoSinks = {
    {sizeof(fovea_sinks_t), FOVEA_GROUP_SINKS, nullptr}, nullptr, 0};

Result readDsinks(const fovea_group_t *group, Problem &problem,
                  GroupArguments &arguments) {
  arguments.set(0, problem.sizes.batch);
  return readTensors<fovea_dsinks_t>("dsinks.header", group, kDsinksFirstSize,
                                     arguments);
}
constexpr fovea_dsinks_t kNoDsinks = {
    {sizeof(fovea_dsinks_t), FOVEA_GROUP_DSINKS, nullptr},
    nullptr,
    0,
    nullptr,
    0};

constexpr GroupReader kReaders[] = {
    {FOVEA_GROUP_WINDOW, "FOVEA_GROUP_WINDOW", "window", readWindow,
     &kNeutralWindow.header},
    {FOVEA_GROUP_DLSE, "FOVEA_GROUP_DLSE", "dlse", readDlse, &kNoDlse.header,
     params::kDlseTensors},
    {FOVEA_GROUP_SINKS, "FOVEA_GROUP_SINKS", "sinks", readSinks,
     &kNoSinks.header, params::kSinksTensors},
    {FOVEA_GROUP_DSINKS, "FOVEA_GROUP_DSINKS", "dsinks", readDsinks,
     &kNoDsinks.header, params::kDsinksTensors},
};

} // namespace

spec::Rows<GroupReader> groupReaders() { return kReaders; }

} // namespace fovea::rt
