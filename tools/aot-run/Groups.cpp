//===- Groups.cpp - the table of feature groups of a case -----------------===//

#include "Groups.h"

#include "fovea/Reference/Inputs.h"

#include <charconv>
#include <cmath>

namespace fovea::run {
namespace {

/// Numbers with commas between them; -inf too.
std::optional<std::vector<double>> parseNumbers(const std::string &text) {
  std::vector<double> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    float value = 0; // as it is stored
    const auto [at, error] =
        std::from_chars(text.data() + begin, text.data() + end, value);
    if (begin == end || error != std::errc() || at != text.data() + end ||
        std::isnan(value) || value == INFINITY)
      return std::nullopt;
    values.push_back(value);
    begin = end + 1;
  }
  return values;
}

std::optional<std::vector<double>> parseSize(const std::string &text) {
  auto values = parseNumbers(text);
  return values && values->size() == 1 && std::isfinite(values->front())
             ? values
             : std::nullopt;
}

/// A stream of its own, beside those of the other tensors.
std::vector<double> randomNumbers(const std::vector<double> &values,
                                  int64_t count, uint64_t seed) {
  reference::Random random(seed ^ 0x6c7365);
  std::vector<double> elements(static_cast<size_t>(count));
  for (double &element : elements)
    element = float(values[0] * random.normal());
  return elements;
}

std::vector<double> inTurn(const std::vector<double> &values, int64_t count,
                           uint64_t) {
  std::vector<double> elements;
  for (int64_t i = 0; i != count; ++i)
    elements.push_back(float(values[size_t(i) % values.size()]));
  return elements;
}

constexpr GroupOption kOptions[] = {
    {"dlse", "SIZE",
     "Backward: a gradient of the log-sum-exp too, random numbers of this "
     "standard deviation",
     parseSize, sizeof(fovea_dlse_t),
     [](const std::vector<double> &, fovea_group_t *group) {
       group->group = FOVEA_GROUP_DLSE;
     },
     nullptr, params::kDlseTensors, randomNumbers, nullptr,
     &reference::BackwardProblem::dlse},
    {"sinks", "LOGIT,...",
     "A sink for each query head: these in turn, -inf for none; backward, "
     "where a kernel has the group dsinks, with its gradient",
     parseNumbers, sizeof(fovea_sinks_t),
     [](const std::vector<double> &, fovea_group_t *group) {
       group->group = FOVEA_GROUP_SINKS;
     },
     nullptr, params::kSinksTensors, inTurn, &reference::ForwardProblem::sinks,
     nullptr},
    {"dsinks", nullptr, nullptr, nullptr, sizeof(fovea_dsinks_t),
     [](const std::vector<double> &, fovea_group_t *group) {
       group->group = FOVEA_GROUP_DSINKS;
     },
     nullptr, params::kDsinksTensors, inTurn, nullptr, nullptr},
};

} // namespace

spec::Rows<GroupOption> groupOptions() { return kOptions; }

} // namespace fovea::run
