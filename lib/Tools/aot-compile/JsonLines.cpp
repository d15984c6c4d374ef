//===- JsonLines.cpp - where the values of a JSON text are ----------------===//

#include "JsonLines.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/YAMLParser.h"

using namespace fovea::tools;
namespace yaml = llvm::yaml;

JsonLines::JsonLines(llvm::StringRef text) : text(text) {
  // What is wrong with a text, llvm::json has said.
  sources.setDiagHandler([](const llvm::SMDiagnostic &, void *) {});
  yaml::Stream stream(text, sources, /*ShowColors=*/false);
  visit(stream.begin()->getRoot(), "");
}

unsigned JsonLines::lineOf(llvm::StringRef path) const {
  auto found = lines.find(path);
  while (found == lines.end() && !path.empty()) {
    const size_t last = path.find_last_of(".[");
    path = path.take_front(last == llvm::StringRef::npos ? 0 : last);
    found = lines.find(path);
  }
  return found == lines.end() ? 1 : found->second;
}

unsigned JsonLines::lineOf(const yaml::Node &node) const {
  const char *start = node.getSourceRange().Start.getPointer();
  // Of lists and objects the parser tells where what follows the bracket is.
  if (!llvm::isa<yaml::ScalarNode>(node))
    start = llvm::StringRef(text.data(), start - text.data()).rtrim().end() - 1;
  return sources.getLineAndColumn(llvm::SMLoc::getFromPointer(start)).first;
}

void JsonLines::visit(yaml::Node *node, const std::string &path) {
  if (!node)
    return;
  lines.try_emplace(path, lineOf(*node));
  if (auto *list = llvm::dyn_cast<yaml::SequenceNode>(node)) {
    unsigned i = 0;
    for (yaml::Node &element : *list)
      visit(&element, path + "[" + std::to_string(i++) + "]");
  } else if (auto *object = llvm::dyn_cast<yaml::MappingNode>(node)) {
    llvm::StringMap<unsigned> keys; // and their lines
    for (yaml::KeyValueNode &pair : *object) {
      auto *key = llvm::dyn_cast_or_null<yaml::ScalarNode>(pair.getKey());
      if (!key)
        continue;
      llvm::SmallString<32> storage;
      const llvm::StringRef name = key->getValue(storage);
      const std::string inner = path + (path.empty() ? "" : ".") + name.str();
      const unsigned line = lineOf(*key);
      if (auto [first, isNew] = keys.try_emplace(name, line); !isNew)
        repeats.push_back({inner, line, first->second});
      visit(pair.getValue(), inner);
    }
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
