//===- Captures.cpp - what score programs capture -------------------------===//

#include "fovea/Package/Captures.h"

namespace fovea::spec {
namespace {

const struct {
  CaptureIndex index;
  std::string_view name;
} kIndices[] = {{kByBatch, "batch"},
                {kByHead, "head"},
                {kByQuery, "query"},
                {kByKey, "key"}};

/// Reads one after the other; the first thing that is none ends it.
class Reader {
public:
  explicit Reader(std::string_view text) : rest(text) {}

  bool atEnd() const { return rest.empty(); }
  size_t left() const { return rest.size(); }
  bool take(std::string_view token) {
    if (rest.substr(0, token.size()) != token)
      return false;
    rest.remove_prefix(token.size());
    return true;
  }
  bool capture(CaptureSpec &spec);

private:
  bool dim(CaptureDim &dim);

  std::string_view rest;
};

bool Reader::dim(CaptureDim &dim) {
  for (;;) {
    bool found = false;
    for (const auto &[index, name] : kIndices)
      if (index > dim.indices && take(name)) {
        dim.indices |= index;
        found = true;
        break;
      }
    if (!found) {
      if (dim.indices)
        return false;
      break;
    }
    if (take(":"))
      break;
    if (!take("+"))
      return false;
  }
  dim.isUnit = take("1");
  return dim.isUnit || take("?");
}

bool Reader::capture(CaptureSpec &spec) {
  const CaptureElementInfo *info = nullptr;
  for (const CaptureElementInfo &row : kCaptureElements)
    if (!info && take(row.name))
      info = &row;
  if (!info)
    return false;
  spec.element = info->element;
  if (!take("["))
    return info->isScalar;
  do {
    if (spec.dims.size() == kMaxCaptureRank ||
        (!spec.dims.empty() && spec.dims.back().isUnit))
      return false;
    spec.dims.emplace_back();
    if (!dim(spec.dims.back()))
      return false;
  } while (take(", "));
  return take("]");
}

} // namespace

std::string CaptureSpec::str() const {
  std::string text = infoOf(element).name;
  if (isScalar())
    return text;
  const char *separator = "[";
  for (const CaptureDim &dim : dims) {
    text += separator;
    separator = ", ";
    const char *plus = "";
    for (const auto &[index, name] : kIndices)
      if (dim.indices & index) {
        text.append(plus).append(name);
        plus = "+";
      }
    if (dim.indices)
      text += ":";
    text += dim.isUnit ? "1" : "?";
  }
  return text + "]";
}

bool CaptureSpec::hasElementOfEach() const {
  uint8_t seen = 0;
  for (const CaptureDim &dim : dims) {
    // Of several in one dimension it is not known which reads are which.
    if (dim.indices & (dim.indices - 1))
      return false;
    seen |= dim.indices;
  }
  return seen == (kByBatch | kByHead | kByQuery | kByKey);
}

std::string toString(const std::vector<CaptureSpec> &captures) {
  std::string text;
  for (const CaptureSpec &capture : captures)
    text += (text.empty() ? "" : ", ") + capture.str();
  return text;
}

Expected<std::vector<CaptureSpec>> parseCaptures(std::string_view text) {
  std::vector<CaptureSpec> captures;
  Reader reader(text);
  while (!reader.atEnd()) {
    captures.emplace_back();
    const bool isFirst = captures.size() == 1;
    if (captures.size() > kMaxCaptures || (!isFirst && !reader.take(", ")) ||
        !reader.capture(captures.back()))
      return Status(StatusCode::InvalidArgument,
                    "captures '" + std::string(text) + "': no capture at '" +
                        std::string(text.substr(text.size() - reader.left())) +
                        "'; one is like f32 or bf16[batch:?, head:?, query:?, "
                        "key:1], and there are at most " +
                        std::to_string(kMaxCaptures));
  }
  return captures;
}

Expected<std::vector<CaptureSpec>> capturesOfProgram(std::string_view text) {
  constexpr std::string_view kBegin = " captures(";
  std::string_view line = text.substr(0, text.find('\n'));
  const size_t at = line.find(kBegin);
  if (at == std::string_view::npos)
    return std::vector<CaptureSpec>();
  line.remove_prefix(at + kBegin.size());
  return parseCaptures(line.substr(0, line.rfind(')')));
}

} // namespace fovea::spec
