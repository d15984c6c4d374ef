//===- JsonLines.h - where the values of a JSON text are --------*- C++ -*-===//
//
// llvm::json keeps neither positions nor the first of two values of one key,
// and it recurses as deep as a text is nested. What messages need is asked of
// LLVM's parser of YAML, of which JSON is a part, and the limit of the depth is
// here.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_JSONLINES_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_JSONLINES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SourceMgr.h"
#include <string>
#include <vector>

namespace llvm::yaml {
class Node;
} // namespace llvm::yaml

namespace fovea::tools {

/// Lines of the values of a JSON text, by path: "dtypes[1]", "[0].masks[2]".
class JsonLines {
public:
  /// \param text  one that llvm::json took
  explicit JsonLines(llvm::StringRef text);

  /// Of a key that YAML spells otherwise (pairs of surrogates) that of what it
  /// is in.
  unsigned lineOf(llvm::StringRef path) const;

  /// A key that its object has already, and where.
  struct Repeat {
    std::string path;
    unsigned line, firstLine;
  };
  llvm::ArrayRef<Repeat> getRepeats() const { return repeats; }

private:
  unsigned lineOf(const llvm::yaml::Node &node) const;
  void visit(llvm::yaml::Node *node, const std::string &path);

  llvm::StringRef text;
  llvm::SourceMgr sources;
  llvm::StringMap<unsigned> lines;
  std::vector<Repeat> repeats;
};

/// The line of the bracket that opens level `maxDepth` + 1, or 0. Any text can
/// be asked about, and should be before it is parsed.
unsigned lineTooDeep(llvm::StringRef text, unsigned maxDepth);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_JSONLINES_H
