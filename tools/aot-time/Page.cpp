//===- Page.cpp - pages that need no other file ---------------------------===//

#include "Page.h"

using namespace fovea;
using nlohmann::json;

std::string timing::pageWith(const char *page, const json &data) {
  // Names of files are bytes and need not be UTF-8.
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  // Within a script element `</script` ends it and `<!--<script` hides its end;
  // in JSON a `<` is part of a string.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  static const std::string mark = "@DATA@";
  std::string result = page;
  return result.replace(result.find(mark), mark.size(), text);
}
