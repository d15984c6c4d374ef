//===- Text.h - texts of command lines --------------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_SUPPORT_TEXT_H
#define FOVEA_TOOLS_SUPPORT_TEXT_H

#include <string>
#include <vector>

namespace fovea::tool {

/// What lies between separators, one word more than there are of them.
inline std::vector<std::string> splitAt(const std::string &text,
                                        char separator) {
  std::vector<std::string> words(1);
  for (char c : text)
    if (c == separator)
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

} // namespace fovea::tool

#endif // FOVEA_TOOLS_SUPPORT_TEXT_H
