//===- CommandLine.h - reading a command line with CLI11 --------*- C++ -*-===//
//
// What CLI11 2.1 lets pass: options without a value, numbers that are none, and
// negative ones in place of large ones.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_SUPPORT_COMMANDLINE_H
#define FOVEA_TOOLS_SUPPORT_COMMANDLINE_H

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace fovea::tool {

/// A finite number from `least` to `most`; NaN is in every CLI::Range.
inline CLI::Validator finite(double least, double most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        double value;
        if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
            value >= least && value <= most)
          return std::string();
        char range[64];
        std::snprintf(range, sizeof(range), "%g to %g", least, most);
        return "'" + text + "' is no number from " + range;
      },
      "");
}

/// A whole number from 0 on that 64 bits hold; CLI11 takes -1 for the largest.
inline CLI::Validator whole() {
  return CLI::Validator(
      [](std::string &text) {
        uint64_t value;
        const char *end = text.data() + text.size();
        const std::from_chars_result read =
            std::from_chars(text.data(), end, value);
        return read.ec == std::errc() && read.ptr == end
                   ? std::string()
                   : "'" + text + "' is no whole number from 0 to 2^64 - 1";
      },
      "");
}

/// Reads the command line. An exit code when that is all: help was asked for
/// (0), or the line is wrong (`usage`).
inline std::optional<int> parse(CLI::App &app, int argc,
                                const char *const *argv, int usage) {
  // Nothing takes an empty value. CLI11 would read `--name= --next` as a value
  // of `--next`.
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool isOption =
        argument.size() > 3 && argument.compare(0, 2, "--") == 0;
    std::string name;
    if (argument.empty())
      name = argv[i - 1][0] == '-' ? argv[i - 1] : "an argument";
    else if (isOption && argument.find('=') == argument.size() - 1)
      name = argument.substr(0, argument.size() - 1);
    if (name.empty())
      continue;
    app.exit(CLI::ValidationError(
        name, "its value is empty; give one, or leave it out"));
    return usage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usage;
  }
  return std::nullopt;
}

} // namespace fovea::tool

#endif // FOVEA_TOOLS_SUPPORT_COMMANDLINE_H
