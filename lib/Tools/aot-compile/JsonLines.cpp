//===- JsonLines.cpp - where the values of a JSON text are ----------------===//

#include "JsonLines.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace fovea::tools;
namespace json = llvm::json;

/// The next character that is not space, and the end as 0.
char JsonLines::peek() {
  while (at < text.size() && llvm::isSpace(text[at]))
    line += text[at++] == '\n';
  return at < text.size() ? text[at] : '\0';
}

/// The string that starts here, its escapes resolved.
std::string JsonLines::string() {
  size_t begin = at++;
  while (at < text.size() && text[at] != '"')
    at += text[at] == '\\' ? 2 : 1;
  llvm::Expected<json::Value> value = json::parse(text.slice(begin, ++at));
  return llvm::cantFail(std::move(value)).getAsString()->str();
}

void JsonLines::value(const std::string &path) {
  char first = peek();
  lines.try_emplace(path, line);
  if (first == '"') {
    string();
  } else if (first == '{' || first == '[') {
    ++at;
    llvm::StringMap<unsigned> keys; // and their lines
    for (unsigned i = 0; peek() != '}' && peek() != ']' && peek(); ++i) {
      if (peek() == ',') {
        ++at;
        peek();
      }
      std::string inner = path;
      if (first == '[') {
        inner += "[" + std::to_string(i) + "]";
      } else {
        const std::string key = string();
        inner += (path.empty() ? "" : ".") + key;
        if (auto [first, isNew] = keys.try_emplace(key, line); !isNew)
          repeats.push_back({inner, line, first->second});
        peek();
        ++at; // the colon
      }
      value(inner);
    }
    ++at;
  } else {
    while (at < text.size() && !llvm::isSpace(text[at]) &&
           !llvm::StringRef(",]}").contains(text[at]))
      ++at;
  }
}

unsigned fovea::tools::lineTooDeep(llvm::StringRef text, unsigned maxDepth) {
  unsigned depth = 0, line = 1;
  bool inString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    line += c == '\n';
    if (inString && c == '\\')
      ++at; // whatever is escaped ends no string
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > maxDepth)
      return line;
    else if (!inString && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return 0;
}
