//===- SourceCheck.cpp - text that MLIR's parser does not survive ---------===//

#include "fovea/Pipelines/SourceCheck.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace fovea;
using llvm::StringRef;

namespace {
/// Looks at one text, token by token as far as brackets go.
class Scan {
public:
  explicit Scan(StringRef text) : text(text) {}

  /// What is wrong with the text, at `at`; empty: nothing.
  std::string run();
  size_t at = 0;

private:
  StringRef rest() const { return text.drop_front(at); }
  void skipString();
  std::string open(char bracket);
  void close(char bracket);
  std::string checkShape() const;

  StringRef text;
  llvm::SmallVector<char> opened;
  unsigned minuses = 0; ///< in a row
};
} // namespace

static std::string tooLarge() {
  return llvm::formatv("a vector or tensor has {0} elements at most",
                       kMaxElements)
      .str();
}

void Scan::skipString() {
  // A string ends with its line at the latest.
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    at += text[at] == '\\';
}

std::string Scan::open(char bracket) {
  opened.push_back(bracket);
  if (opened.size() <= kMaxNesting)
    return {};
  return llvm::formatv("brackets nest deeper than {0} levels", kMaxNesting)
      .str();
}

/// Closes up to the last bracket of the kind, if there is one: a '<' or '>'
/// need not be a bracket.
void Scan::close(char bracket) {
  for (size_t open = opened.size(); open-- > 0;) {
    if (opened[open] == bracket)
      return opened.truncate(open);
    if (bracket == '<')
      return; // never past another kind's
  }
}

/// The extents of the type that starts here, if one does.
std::string Scan::checkShape() const {
  StringRef shape = rest();
  if (!shape.consume_front("vector") && !shape.consume_front("tensor"))
    return {};
  shape = shape.ltrim();
  if (!shape.consume_front("<"))
    return {};
  // Scalable extents are in brackets of their own.
  auto isSpace = [](char c) {
    return llvm::isSpace(c) || c == '[' || c == ']';
  };
  for (uint64_t elements = 1;;) {
    shape = shape.drop_while(isSpace);
    StringRef digits = shape.take_while(llvm::isDigit);
    uint64_t extent = 1;
    if (digits.empty() ? !shape.consume_front("?")
                       : digits.getAsInteger(10, extent))
      return digits.empty() ? "" : tooLarge();
    elements = llvm::SaturatingMultiply(elements, extent);
    if (elements > kMaxElements)
      return tooLarge();
    shape = shape.drop_front(digits.size()).drop_while(isSpace);
    if (!shape.consume_front("x"))
      return {};
  }
}

std::string Scan::run() {
  for (; at < text.size(); ++at) {
    const char c = text[at];
    std::string wrong;
    if (c == '-' && ++minuses > kMaxNesting)
      return llvm::formatv("more than {0} minus signs in a row", kMaxNesting)
          .str();
    if (c != '-' && !llvm::isSpace(c))
      minuses = 0;
    switch (c) {
    case '"':
      skipString();
      break;
    case '/':
      if (rest().starts_with("//"))
        at = std::min(text.find('\n', at), text.size());
      break;
    case '{':
    case '[':
    case '(':
    case '<':
      wrong = open(c);
      break;
    case '}':
      close('{');
      break;
    case ']':
      close('[');
      break;
    case ')':
      close('(');
      break;
    case '-':
      // An arrow's '>' is no bracket.
      if (rest().starts_with("->")) {
        ++at;
        minuses = 0;
      }
      break;
    case '>':
      close('<');
      break;
    case 'v':
    case 't':
      wrong = checkShape();
      break;
    }
    if (!wrong.empty())
      return wrong;
  }
  return {};
}

llvm::Error fovea::checkSource(llvm::MemoryBufferRef source,
                               StringRef splitMarker) {
  if (mlir::isBytecode(source))
    return llvm::Error::success();
  const StringRef whole = source.getBuffer();
  for (StringRef rest = whole; !rest.empty();) {
    StringRef text = rest;
    if (splitMarker.empty())
      rest = {};
    else
      std::tie(text, rest) = rest.split(splitMarker);
    Scan scan(text);
    std::string wrong = scan.run();
    if (wrong.empty())
      continue;
    StringRef before =
        whole.take_front(size_t(text.data() - whole.data()) + scan.at);
    return llvm::createStringError(
        llvm::formatv("{0}:{1}:{2}: error: {3}", source.getBufferIdentifier(),
                      before.count('\n') + 1,
                      before.size() - (before.rfind('\n') + 1) + 1, wrong)
            .str());
  }
  return llvm::Error::success();
}
