//===- Launches.cpp - the launches of a kernel row as a text --------------===//
//
// `suffix:rows:threads` for each, with commas between. What is read is printed
// and compared, so that every list has one text and every text one list.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Package.h"

#include <algorithm>
#include <charconv>

namespace fovea {
namespace {

constexpr size_t kMaxLaunches = 8, kMaxSuffix = 32; // no operation is near

/// A whole number from 1 to `most`, or 0.
int32_t readNumber(std::string_view text, int32_t most) {
  int32_t value = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last && value <= most
             ? std::max(value, 0)
             : 0;
}

bool isSuffix(std::string_view text) {
  auto isLetter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= kMaxSuffix && isLetter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return isLetter(c) || c == '_' || (c >= '0' && c <= '9');
         });
}

} // namespace

std::string toString(const std::vector<LaunchRecord> &launches) {
  std::string text;
  for (const LaunchRecord &launch : launches)
    text += (text.empty() ? "" : ",") + launch.suffix + ":" +
            std::to_string(launch.blockRows) + ":" +
            std::to_string(launch.threads);
  return text;
}

Expected<std::vector<LaunchRecord>> parseLaunches(std::string_view text) {
  auto fail = [&](const std::string &why) {
    return Status(StatusCode::InvalidArgument,
                  "launches '" + std::string(text) + "': " + why);
  };
  std::vector<LaunchRecord> launches;
  for (size_t begin = 0; !text.empty() && begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = item.find(':'), second = item.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos)
      return fail("'" + std::string(item) +
                  "' is not of the form suffix:rows:threads");
    LaunchRecord launch;
    launch.suffix = item.substr(0, first);
    launch.blockRows =
        readNumber(item.substr(first + 1, second - first - 1), 256);
    launch.threads = readNumber(item.substr(second + 1), 1024);
    if (!isSuffix(launch.suffix) || !launch.blockRows || !launch.threads)
      return fail("in '" + std::string(item) +
                  "' the suffix is not of small letters, digits and '_', the "
                  "rows are not in 1 to 256 or the threads not in 1 to 1024");
    if (std::any_of(launches.begin(), launches.end(),
                    [&](const LaunchRecord &other) {
                      return other.suffix == launch.suffix;
                    }))
      return fail("'" + launch.suffix + "' is there twice");
    launches.push_back(std::move(launch));
  }
  if (launches.size() > kMaxLaunches)
    return fail("more than " + std::to_string(kMaxLaunches) + " launches");
  if (toString(launches) != text)
    return fail("it is not canonical");
  return launches;
}

} // namespace fovea
