//===- Keys.cpp - canonical texts of problems ---------------------------===//
//
// The spellings and the problem's features are tables: a feature that is
// compiled in is a field of ProblemKey and a row here; feature groups follow
// from their own table.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Keys.h"

#include "fovea/Package/OperationSpec.h"

#include <algorithm>
#include <charconv>
#include <functional>

namespace fovea {
namespace {

/// A whole number in a text without anything else; -1: it is none.
int32_t readNumber(std::string_view text) {
  int32_t value = -1;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

/// One `key=value` of a problem's text.
struct KeyFeature {
  std::string name;
  bool required;
  std::string accepted; ///< for the message about a value not accepted
  /// Empty: the default, left out.
  std::function<std::string(const ProblemKey &)> print;
  std::function<bool(ProblemKey &, std::string_view)> read;
  bool isOfAttention = true; ///< alone
};

/// A head dimension; where it may be left out, 0 stands for that.
KeyFeature headDimFeature(const char *name, int32_t ProblemKey::*dim,
                          int32_t most, bool required) {
  return {name,
          required,
          std::to_string(kMinHeadDim) + " to " + std::to_string(most) +
              " in steps of " + std::to_string(kHeadDimStep),
          [dim](const ProblemKey &key) {
            return key.*dim ? std::to_string(key.*dim) : std::string();
          },
          [dim, most](ProblemKey &key, std::string_view text) {
            const int32_t value = key.*dim = readNumber(text);
            return value >= kMinHeadDim && value <= most &&
                   value % kHeadDimStep == 0;
          }};
}

/// The version of a feature group.
KeyFeature featureOf(const spec::GroupSpec &group, size_t row) {
  const int32_t latest = group.version;
  return {group.name,
          false,
          "a version that this build knows, 0 (none) or " +
              std::to_string(latest),
          [row](const ProblemKey &key) {
            return key.groups[row] ? std::to_string(key.groups[row])
                                   : std::string();
          },
          [row, latest](ProblemKey &key, std::string_view text) {
            key.groups[row] = readNumber(text);
            return key.groups[row] == 0 || key.groups[row] == latest;
          },
          /*isOfAttention=*/false};
}

/// All of them, in alphabetical order.
std::vector<KeyFeature> makeFeatures() {
  std::vector<KeyFeature> all = {
      {"dtype", true, "fp16, bf16 or fp32",
       [](const ProblemKey &key) { return std::string(toString(key.dtype)); },
       [](ProblemKey &key, std::string_view text) {
         const DataTypeInfo *info = findDataType(text);
         if (!info || text != info->name)
           return false;
         key.dtype = info->type;
         return true;
       },
       /*isOfAttention=*/false},
      headDimFeature("head_dim", &ProblemKey::headDim, kMaxHeadDim,
                     /*required=*/true),
      headDimFeature("head_dim_v", &ProblemKey::headDimV, kMaxHeadDimV,
                     /*required=*/false),
      {"mask", false, "none, causal_top_left or causal_bottom_right",
       [](const ProblemKey &key) {
         return key.mask == MaskKind::None ? std::string()
                                           : std::string(toString(key.mask));
       },
       [](ProblemKey &key, std::string_view text) {
         const MaskInfo *info = findMask(text);
         if (!info || text != info->name)
           return false;
         key.mask = info->kind;
         return true;
       }},
      {"score", false, "16 hexadecimal digits of a score program, not all 0",
       [](const ProblemKey &key) {
         return key.score ? scoreDigits(key.score) : std::string();
       },
       [](ProblemKey &key, std::string_view text) {
         key.score = parseScoreDigits(text).value_or(0);
         return key.score != 0;
       }},
      {"score_gradients", false,
       "numbers of captures, 0 to 7, that rise and are joined by '+'",
       [](const ProblemKey &key) { return captureNumbers(key.scoreGradients); },
       [](ProblemKey &key, std::string_view text) {
         key.scoreGradients = parseCaptureNumbers(text).value_or(0);
         return key.scoreGradients != 0;
       }},
      {"stored_gradients", false,
       "numbers of captures, 0 to 7, that rise and are joined by '+'",
       [](const ProblemKey &key) {
         return captureNumbers(key.storedGradients);
       },
       [](ProblemKey &key, std::string_view text) {
         key.storedGradients = parseCaptureNumbers(text).value_or(0);
         return key.storedGradients != 0;
       }},
  };
  for (size_t row = 0; row != spec::featureGroups().size(); ++row)
    all.push_back(featureOf(spec::featureGroups()[row], row));
  std::sort(
      all.begin(), all.end(),
      [](const KeyFeature &a, const KeyFeature &b) { return a.name < b.name; });
  return all;
}

/// As all that calls read of the libraries' static objects, never destroyed:
/// exit() destroys those while other threads, which the process does not wait
/// for, go on calling. Their memory is found from here, and so is no leak.
const std::vector<KeyFeature> &features() {
  static const auto &all = *new std::vector<KeyFeature>(makeFeatures());
  return all;
}

Status invalidProblem(std::string message) {
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

const char *toString(OpKind op) { return spec::specOf(op).name; }

std::string scoreDigits(uint64_t score) {
  static const char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (auto at = text.rbegin(); at != text.rend(); ++at, score >>= 4)
    *at = digits[score & 15];
  return text;
}

std::optional<uint64_t> parseScoreDigits(std::string_view text) {
  uint64_t score = 0;
  const char *end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, score, 16);
  // Small letters and all digits, so that there is one spelling.
  if (error != std::errc() || at != end || score == 0 ||
      scoreDigits(score) != text)
    return std::nullopt;
  return score;
}

static_assert(spec::kMaxCaptures == 8, "a bit and a digit for each");

std::string captureNumbers(uint8_t captures) {
  std::string text;
  for (int number = 0; number != int(spec::kMaxCaptures); ++number)
    if (captures >> number & 1)
      text += (text.empty() ? "" : "+") + std::to_string(number);
  return text;
}

std::optional<uint8_t> parseCaptureNumbers(std::string_view text) {
  uint8_t captures = 0;
  for (char digit : text)
    if (digit >= '0' && digit < char('0' + spec::kMaxCaptures))
      captures |= uint8_t(1 << (digit - '0'));
  if (captureNumbers(captures) != text)
    return std::nullopt;
  return captures;
}

/// "128:0, bottom_right", or with another separator and other names.
static std::string sidesOf(const Window &window, const char *separator,
                           const char *const (&alignments)[2]) {
  auto side = [](int64_t bound) {
    return bound == Window::kInfinite ? "inf" : std::to_string(bound);
  };
  auto alignment = [&](Alignment a) { return alignments[int(a)]; };
  std::string text = side(window.left) + ":" + side(window.right) + separator +
                     alignment(window.leftAlignment);
  if (window.leftAlignment != window.rightAlignment)
    text += std::string(":") + alignment(window.rightAlignment);
  return text;
}

std::string toString(const Window &window) {
  if (const MaskInfo *mask = findMask(window))
    return mask->name;
  return "window(" + sidesOf(window, ", ", {"top_left", "bottom_right"}) + ")";
}

std::string optionOf(const Window &window) {
  if (const MaskInfo *mask = findMask(window))
    return mask->option;
  return sidesOf(window, ",", {"top-left", "bottom-right"});
}

std::optional<Window> parseWindow(std::string_view text) {
  if (const MaskInfo *info = findMask(text))
    return info->window;
  std::string_view alignments = text, left = takeUntil(alignments, ',');
  std::string_view right = left;
  left = takeUntil(right, ':');
  auto side = [](std::string_view text) -> std::optional<int64_t> {
    if (text == "inf")
      return Window::kInfinite;
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() ||
        end != text.data() + text.size())
      return std::nullopt;
    return value;
  };
  auto alignment = [](std::string_view text) -> std::optional<Alignment> {
    if (text == "top-left" || text == "top_left")
      return Alignment::TopLeft;
    if (text == "bottom-right" || text == "bottom_right")
      return Alignment::BottomRight;
    return std::nullopt;
  };
  std::optional<Alignment> ofLeft = Alignment::BottomRight, ofRight = ofLeft;
  if (text.find(',') != std::string_view::npos) {
    const bool both = alignments.find(':') == std::string_view::npos;
    ofLeft = alignment(takeUntil(alignments, ':'));
    ofRight = both ? ofLeft : alignment(alignments);
  }
  const std::optional<int64_t> l = side(left), r = side(right);
  if (!l || !r || !ofLeft || !ofRight)
    return std::nullopt;
  return Window(*l, *r, *ofLeft, *ofRight);
}

std::string ProblemKey::str() const {
  std::string text = toString(op);
  for (const KeyFeature &feature : features())
    if (std::string value = feature.print(*this); !value.empty())
      text.append(";").append(feature.name).append("=").append(value);
  return text;
}

Expected<ProblemKey> ProblemKey::parse(std::string_view text) {
  const std::string whole(text);
  auto fail = [&](const std::string &why) {
    return invalidProblem("problem '" + whole + "': " + why);
  };
  ProblemKey key;
  std::string_view rest = text;
  std::string_view op = takeUntil(rest, ';');
  const spec::OperationSpec *known = nullptr;
  for (const spec::OperationSpec &spec : spec::allOperations())
    if (op == spec.name)
      known = &spec;
  if (!known)
    return fail("unknown operation '" + std::string(op) +
                "'; known: " + spec::namesOf(spec::allOperations()));
  key.op = known->op;

  std::vector<bool> seen(features().size());
  while (!rest.empty()) {
    std::string_view value = takeUntil(rest, ';');
    if (value.find('=') == std::string_view::npos)
      return fail("'" + std::string(value) + "' is not of the form key=value");
    const std::string name(takeUntil(value, '='));
    size_t index = 0;
    while (index != features().size() && name != features()[index].name)
      ++index;
    if (index == features().size())
      return fail("unknown key '" + name + "'; known: " + spec::namesOf(features()));
    if (seen[index])
      return fail("key '" + name + "' is given twice");
    seen[index] = true;
    if (!features()[index].read(key, value))
      return fail(name + " '" + std::string(value) + "' is not " +
                  features()[index].accepted);
  }
  for (size_t index = 0; index != features().size(); ++index) {
    const KeyFeature &feature = features()[index];
    const bool isLeftOut = !known->isAttention && feature.isOfAttention;
    if (feature.required && !isLeftOut && !seen[index])
      return fail("key '" + feature.name + "' is missing");
    if (isLeftOut && seen[index] && !feature.print(key).empty())
      return fail(feature.name + " is not of " + known->name);
  }
  key.setHeadDims(key.headDim, key.dimOfV());
  if (key.dimOfV() > kMaxHeadDimV)
    return fail("head_dim_v is head_dim, " + std::to_string(key.headDim) +
                ", and at most " + std::to_string(kMaxHeadDimV));
  if (const spec::GroupSpec *group = spec::foreignGroup(key.op, key.groups))
    return fail(std::string(group->name) + " is a feature group of " +
                spec::operationsOf(*group) + " alone");
  if (known->needs && !key.groups[size_t(spec::findGroup(known->needs))])
    return fail(std::string("key '") + known->needs + "' is missing");
  if (key.scoreGradients && key.op != OpKind::Backward)
    return fail("score_gradients are of backward alone");
  if (key.scoreGradients && !key.score)
    return fail("score_gradients are of what a score program captures, and "
                "key 'score' is missing");
  if (key.storedGradients & ~key.scoreGradients)
    return fail("stored_gradients " + captureNumbers(key.storedGradients) +
                " are not all among score_gradients");
  if (key.takesWindow() && key.mask != MaskKind::None)
    return fail("a kernel takes its window at run time or has a mask compiled "
                "in, not both");
  return key;
}

} // namespace fovea
