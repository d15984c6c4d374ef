//===- JsonLines.h - where the values of a JSON text are --------*- C++ -*-===//
//
// llvm::json keeps neither positions nor the first of two values of one key,
// and it recurses as deep as a text is nested. What messages need, and the
// limit of the depth, are here.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_JSONLINES_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_JSONLINES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace fovea::tools {

/// Lines of the values of a JSON text, by path: "dtypes[1]", "[0].masks[2]".
class JsonLines {
public:
  /// \param text  one that llvm::json took
  explicit JsonLines(llvm::StringRef text) : text(text) { value(""); }

  unsigned lineOf(llvm::StringRef path) const { return lines.lookup(path); }

  /// A key that its object has already, and where.
  struct Repeat {
    std::string path;
    unsigned line, firstLine;
  };
  llvm::ArrayRef<Repeat> getRepeats() const { return repeats; }

private:
  char peek();
  std::string string();
  void value(const std::string &path);

  llvm::StringRef text;
  size_t at = 0;
  unsigned line = 1;
  llvm::StringMap<unsigned> lines;
  std::vector<Repeat> repeats;
};

/// The line of the bracket that opens level `maxDepth` + 1, or 0. Any text can
/// be asked about, and should be before it is parsed.
unsigned lineTooDeep(llvm::StringRef text, unsigned maxDepth);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_JSONLINES_H
