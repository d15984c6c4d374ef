//===- Keys.cpp - canonical texts of problems ---------------------------===//
//
// The spellings and the problem's features are tables: a new feature is a field
// of ProblemKey and a row of kFeatures.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Keys.h"

#include <charconv>

namespace fovea {
namespace {

template <typename T>
struct Spelling {
  T value;
  const char *text;
};

constexpr Spelling<Operation> kOperations[] = {
    {Operation::Forward, "forward"}, {Operation::Backward, "backward"}};
constexpr Spelling<DataType> kDataTypes[] = {{DataType::F16, "fp16"},
                                             {DataType::BF16, "bf16"}};
constexpr Spelling<MaskKind> kMasks[] = {
    {MaskKind::None, "none"},
    {MaskKind::CausalTopLeft, "causal_top_left"},
    {MaskKind::CausalBottomRight, "causal_bottom_right"}};

template <typename T, size_t N>
const char *spell(const Spelling<T> (&table)[N], T value) {
  for (const Spelling<T> &row : table)
    if (row.value == value)
      return row.text;
  return "?";
}

template <typename T, size_t N>
bool lookUp(const Spelling<T> (&table)[N], std::string_view text, T &value) {
  for (const Spelling<T> &row : table)
    if (text == row.text) {
      value = row.value;
      return true;
    }
  return false;
}

bool readHeadDim(ProblemKey &key, std::string_view text) {
  int32_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return false;
  key.headDim = value;
  return value >= kMinHeadDim && value <= kMaxHeadDim &&
         value % kHeadDimStep == 0;
}

/// One `key=value` of a problem's text; rows in alphabetical order.
struct Feature {
  const char *name;
  bool required;
  const char *accepted; ///< for the message about a value not accepted
  std::string (*print)(const ProblemKey &); ///< empty: the default, left out
  bool (*read)(ProblemKey &, std::string_view);
};

constexpr Feature kFeatures[] = {
    {"dtype", true, "fp16 or bf16",
     [](const ProblemKey &key) { return std::string(toString(key.dtype)); },
     [](ProblemKey &key, std::string_view text) {
       return lookUp(kDataTypes, text, key.dtype);
     }},
    {"head_dim", true, "16 to 512 in steps of 8",
     [](const ProblemKey &key) { return std::to_string(key.headDim); },
     readHeadDim},
    {"mask", false, "none, causal_top_left or causal_bottom_right",
     [](const ProblemKey &key) {
       return key.mask == MaskKind::None ? std::string()
                                         : std::string(toString(key.mask));
     },
     [](ProblemKey &key, std::string_view text) {
       return lookUp(kMasks, text, key.mask);
     }},
};

Status invalid(std::string message) {
  return Status(StatusCode::InvalidArgument, std::move(message));
}

/// Cuts `text` at the first `separator`; the rest stays in `text`.
std::string_view takeUntil(std::string_view &text, char separator) {
  size_t at = text.find(separator);
  std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

} // namespace

const char *toString(Operation op) { return spell(kOperations, op); }
const char *toString(DataType dtype) { return spell(kDataTypes, dtype); }
const char *toString(MaskKind mask) { return spell(kMasks, mask); }

int64_t elementSize(DataType) { return 2; }

std::string ProblemKey::str() const {
  std::string text = toString(op);
  for (const Feature &feature : kFeatures)
    if (std::string value = feature.print(*this); !value.empty())
      text.append(";").append(feature.name).append("=").append(value);
  return text;
}

Expected<ProblemKey> ProblemKey::parse(std::string_view text) {
  const std::string whole(text);
  auto fail = [&](const std::string &why) {
    return invalid("problem '" + whole + "': " + why);
  };
  ProblemKey key;
  std::string_view rest = text;
  std::string_view op = takeUntil(rest, ';');
  if (!lookUp(kOperations, op, key.op))
    return fail("unknown operation '" + std::string(op) +
                "'; known: forward, backward");

  bool seen[std::size(kFeatures)] = {};
  while (!rest.empty()) {
    std::string_view value = takeUntil(rest, ';');
    if (value.find('=') == std::string_view::npos)
      return fail("'" + std::string(value) + "' is not of the form key=value");
    const std::string name(takeUntil(value, '='));
    size_t index = 0;
    while (index != std::size(kFeatures) && name != kFeatures[index].name)
      ++index;
    if (index == std::size(kFeatures))
      return fail("unknown key '" + name + "'; known: dtype, head_dim, mask");
    if (seen[index])
      return fail("key '" + name + "' is given twice");
    seen[index] = true;
    if (!kFeatures[index].read(key, value))
      return fail(name + " '" + std::string(value) + "' is not " +
                  kFeatures[index].accepted);
  }
  for (size_t index = 0; index != std::size(kFeatures); ++index)
    if (kFeatures[index].required && !seen[index])
      return fail(std::string("key '") + kFeatures[index].name +
                  "' is missing");
  return key;
}

} // namespace fovea
