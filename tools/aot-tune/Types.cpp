//===- Types.cpp - what is tuned, and what comes of it --------------------===//

#include "Types.h"

#include <algorithm>

using namespace fovea;
using namespace fovea::tune;

bool tune::isTie(const Timing &a, const Timing &b) {
  return a.isKnown() && b.isKnown() &&
         std::max(a.seconds / b.seconds, b.seconds / a.seconds) <=
             1 + std::max(a.tieError, b.tieError);
}

std::string tune::toString(const ScheduleChoice &choice) {
  std::string text;
  auto add = [&](const std::string &key, const std::string &value) {
    text += (text.empty() ? "" : " ") + key + "=" + value;
  };
  for (const auto &[key, value] : choice.names)
    add(key, value);
  for (const auto &[key, value] : choice.numbers)
    add(key, std::to_string(value));
  return text.empty() ? "default" : text;
}
