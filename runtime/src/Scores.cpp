//===- Scores.cpp - score programs of calls -------------------------------===//

#include "Scores.h"

#include "DeviceView.h"
#include "Overlap.h"

#include <cmath>
#include <cstring>

namespace fovea::rt {
namespace {

static_assert(FOVEA_CAPTURE_F32 == int(spec::CaptureElement::F32) + 1 &&
              FOVEA_CAPTURE_F16 == int(spec::CaptureElement::F16) + 1 &&
              FOVEA_CAPTURE_BF16 == int(spec::CaptureElement::BF16) + 1 &&
              FOVEA_CAPTURE_I32 == int(spec::CaptureElement::I32) + 1 &&
              FOVEA_CAPTURE_BOOL == int(spec::CaptureElement::I1) + 1);

const spec::CaptureElementInfo &elementOf(const fovea_capture_t &capture) {
  return spec::kCaptureElements[capture.type - 1];
}

/// A caller's structure may be of a later version, and then longer.
const fovea_capture_t &captureOf(const fovea_score_t &score, size_t number) {
  return *reinterpret_cast<const fovea_capture_t *>(
      reinterpret_cast<const char *>(score.captures) +
      number * score.capture_size);
}

/// "score.captures[1].strides[0]".
std::string fieldOf(size_t number, const char *field, size_t dim) {
  return "score.captures[" + std::to_string(number) + "]." + field + "[" +
         std::to_string(dim) + "]";
}

/// Where the elements of a capture lie, or those of its gradient.
struct Layout {
  const char *data, *strides; ///< fields
  const void *address;
  const int64_t *stride; ///< elements
  int64_t bytes;         ///< of an element
};
Layout layoutOf(const fovea_capture_t &capture) {
  return {"data", "strides", capture.data, capture.strides,
          elementOf(capture).bytes};
}
bool isStored(const fovea_score_t &score, size_t number) {
  return score.stored_gradients >> number & 1;
}
Layout gradientLayoutOf(const fovea_score_t &score, size_t number) {
  const fovea_capture_t &capture = captureOf(score, number);
  return {"gradient", "gradient_strides", capture.gradient,
          capture.gradient_strides,
          isStored(score, number) ? elementOf(capture).bytes
                                  : int64_t(sizeof(float))};
}

/// Checks that distances between elements can be computed at all.
Result checkStrides(const fovea_capture_t &capture, size_t number,
                    const Layout &layout) {
  int64_t bytes = layout.bytes;
  for (int32_t dim = 0; dim != capture.rank; ++dim) {
    const int64_t extent = capture.extents[dim], stride = layout.stride[dim];
    if (stride < 0)
      return invalid(fieldOf(number, layout.strides, dim) + " is " +
                     std::to_string(stride) + ", and must not be negative");
    int64_t distance;
    if (extent > 1 &&
        (stride > int64_t(1) << 56 ||
         __builtin_mul_overflow(extent - 1, stride * layout.bytes, &distance) ||
         __builtin_add_overflow(bytes, distance, &bytes) ||
         bytes > int64_t(1) << 58))
      return invalid("score.captures[" + std::to_string(number) + "]'s " +
                     layout.strides + " and extents span more than 2^58 bytes");
  }
  return Result();
}

Result checkCapture(const fovea_capture_t &capture, size_t number) {
  const std::string name = "score.captures[" + std::to_string(number) + "].";
  if (capture.type < 1 ||
      capture.type > int32_t(std::size(spec::kCaptureElements)))
    return invalid(name + "type is " + std::to_string(capture.type) +
                   ", not a FOVEA_CAPTURE_ value (1 to 5)");
  if (capture.rank < 0 || capture.rank > int32_t(spec::kMaxCaptureRank))
    return invalid(name + "rank is " + std::to_string(capture.rank) +
                   ", not 0 (a scalar) to 4");
  if (capture.rank == 0 && !elementOf(capture).isScalar)
    return invalid(name + "type is " + elementOf(capture).name +
                   " for a scalar, which is FOVEA_CAPTURE_F32 or "
                   "FOVEA_CAPTURE_I32");
  if (capture.rank == 0 && capture.type == FOVEA_CAPTURE_I32 &&
      !(capture.value >= std::numeric_limits<int32_t>::min() &&
        capture.value <= std::numeric_limits<int32_t>::max() &&
        capture.value == std::floor(capture.value)))
    return invalid(name + "value is " + std::to_string(capture.value) +
                   ", no whole number of 32 bits, which FOVEA_CAPTURE_I32 is");
  for (int32_t dim = 0; dim != capture.rank; ++dim)
    if (capture.extents[dim] < 0 ||
        capture.extents[dim] > std::numeric_limits<int32_t>::max())
      return invalid(fieldOf(number, "extents", dim) + " is " +
                     std::to_string(capture.extents[dim]) +
                     ", not in 0 to 2147483647");
  return checkStrides(capture, number, layoutOf(capture));
}

Result checkGradient(const fovea_score_t &score, size_t number, OpKind op) {
  const fovea_capture_t &capture = captureOf(score, number);
  const std::string name =
      "score.captures[" + std::to_string(number) + "].gradient";
  if (!capture.gradient)
    return Result();
  if (op != OpKind::Backward)
    return invalid(name + " is given, and a " + toString(op) +
                   " call has no gradients; set it to NULL");
  if (!spec::CaptureSpec{elementOf(capture).element, {}}.isFloat())
    return invalid(name + " is given of " + elementOf(capture).name +
                   ", which has none; set it to NULL");
  if (isStored(score, number) && elementOf(capture).bytes != 2)
    return invalid(name + " is stored, as score.stored_gradients says, of " +
                   elementOf(capture).name +
                   "; those of f16 and bf16 can be, others are added to f32");
  return checkStrides(capture, number, gradientLayoutOf(score, number));
}

/// Whether types and ranks are those of the program.
bool isFor(const fovea_score_t &score,
           const std::vector<spec::CaptureSpec> &wanted) {
  if (score.capture_count != wanted.size())
    return false;
  for (size_t i = 0; i != wanted.size(); ++i) {
    const fovea_capture_t &given = captureOf(score, i);
    if (elementOf(given).element != wanted[i].element ||
        size_t(given.rank) != wanted[i].dims.size())
      return false;
  }
  return true;
}

/// Whether several elements of a tensor may be read at once, as far as strides
/// and extents tell.
bool isReadByWords(const fovea_capture_t &given) {
  const int64_t bytes = elementOf(given).bytes;
  for (int32_t dim = 0; dim != given.rank; ++dim) {
    const bool isLast = dim + 1 == given.rank;
    const int64_t extent = given.extents[dim], stride = given.strides[dim];
    if (isLast && ((stride != 1 && extent > 1) ||
                   extent * bytes % spec::kCaptureAlignment != 0))
      return false;
    if (!isLast && extent > 1 && stride * bytes % spec::kCaptureAlignment != 0)
      return false;
  }
  return true;
}

/// Tensors that are read so; -1: a call's are not all laid out for it.
int readByWords(const fovea_score_t &score,
                const std::vector<spec::CaptureSpec> &wanted) {
  int count = 0;
  for (size_t i = 0; i != wanted.size(); ++i) {
    if (wanted[i].isScalar() || !wanted[i].dims.back().isUnit)
      continue;
    if (!isReadByWords(captureOf(score, i)))
      return -1;
    ++count;
  }
  return count;
}

/// "f32, bf16 of rank 4".
std::string describe(const fovea_score_t &score) {
  std::string text;
  for (size_t i = 0; i != score.capture_count; ++i) {
    const fovea_capture_t &given = captureOf(score, i);
    text += (i ? ", " : "") + std::string(elementOf(given).name);
    if (given.rank)
      text += " of rank " + std::to_string(given.rank);
  }
  return text.empty() ? "nothing" : text;
}

/// What indexes a dimension as it is, and how much of it a problem has.
struct Indexed {
  spec::CaptureIndex index;
  const char *name;
  spec::Extent extent;
};
constexpr Indexed kIndexed[] = {
    {spec::kByBatch, "batch", spec::Extent::Batch},
    {spec::kByHead, "head", spec::Extent::HeadsQ},
    {spec::kByQuery, "query", spec::Extent::SeqlenQ},
    {spec::kByKey, "key", spec::Extent::SeqlenK}};

/// Checks that a kernel's addresses reach every element.
Result checkReach(const fovea_capture_t &given, size_t number,
                  const spec::CaptureSpec &wanted, const Layout &layout) {
  int64_t span = layout.bytes; // of what is indexed otherwise
  for (size_t dim = 0; dim != wanted.dims.size(); ++dim) {
    const int64_t extent = given.extents[dim], stride = layout.stride[dim];
    const uint8_t indices = wanted.dims[dim].indices;
    if (extent <= 1)
      continue;
    if ((indices & (spec::kByQuery | spec::kByKey)) &&
        stride > spec::maxCaptureStride(layout.bytes))
      return invalid(fieldOf(number, layout.strides, dim) + " is " +
                     std::to_string(stride) + "; it is at most " +
                     std::to_string(spec::maxCaptureStride(layout.bytes)));
    if (indices == 0 && (stride > spec::kMaxCaptureSpan ||
                         (span += (extent - 1) * stride * layout.bytes) >
                             spec::kMaxCaptureSpan))
      return invalid("score.captures[" + std::to_string(number) + "]." +
                     layout.data +
                     " spans more than 2^30 bytes in dimensions that the "
                     "program does not index by batch, head, query or key "
                     "alone");
  }
  return Result();
}

/// Checks a tensor against the program's type of it.
Result checkLayout(const fovea_capture_t &given, size_t number,
                   const spec::CaptureSpec &wanted, const Sizes &sizes,
                   const char *program) {
  const std::string of = std::string("the score program '") + program + "'";
  const int64_t bytes = elementOf(given).bytes;
  const bool isUnit = wanted.dims.back().isUnit;
  for (size_t dim = 0; dim != wanted.dims.size(); ++dim) {
    const int64_t extent = given.extents[dim], stride = given.strides[dim];
    const uint8_t indices = wanted.dims[dim].indices;
    for (const Indexed &row : kIndexed)
      if ((indices & row.index) && extent < sizes.of(row.extent))
        return invalid(fieldOf(number, "extents", dim) + " is " +
                       std::to_string(extent) + ", and " + of +
                       " indexes it by " + row.name + ", of which there are " +
                       std::to_string(sizes.of(row.extent)) +
                       "; where one element serves all, give that extent and "
                       "a stride of 0");
    if (wanted.dims[dim].isUnit && stride != 1 && extent > 1)
      return invalid(fieldOf(number, "strides", dim) + " is " +
                     std::to_string(stride) + ", and " + of +
                     " was compiled for 1; copy the tensor, or compile the "
                     "program with a dynamic stride there");
    if (wanted.dims[dim].isUnit &&
        extent * bytes % spec::kCaptureAlignment != 0)
      return invalid(
          fieldOf(number, "extents", dim) + " is " + std::to_string(extent) +
          " elements of " + std::to_string(bytes) + " bytes, and " + of +
          " reads several at once: it must be a multiple of 4 "
          "bytes; give the extent with the rows' padding, or compile "
          "the program with a dynamic last stride");
    if (isUnit && !wanted.dims[dim].isUnit && extent > 1 &&
        stride * bytes % spec::kCaptureAlignment != 0)
      return invalid(fieldOf(number, "strides", dim) + " is " +
                     std::to_string(stride) + " elements of " +
                     std::to_string(bytes) + " bytes, and " + of +
                     " reads several at once: rows must begin at multiples of "
                     "4 bytes; pad them, or compile the program with a dynamic "
                     "last stride");
  }
  return checkReach(given, number, wanted, layoutOf(given));
}

/// Checks that no two places of a gradient that is stored are one.
Result checkStoredPlaces(const fovea_capture_t &given, size_t number,
                         const spec::CaptureSpec &wanted, const Sizes &sizes) {
  struct Dim {
    size_t number;
    int64_t stride, size;
  };
  std::vector<Dim> dims;
  for (size_t dim = 0; dim != wanted.dims.size(); ++dim)
    for (const Indexed &row : kIndexed)
      if (wanted.dims[dim].indices & row.index)
        dims.push_back(
            {dim, given.gradient_strides[dim], sizes.of(row.extent)});
  return checkNoOverlap(
      std::move(dims), /*reach=*/1, "places of a gradient that is stored",
      [&](const Dim &dim) {
        return fieldOf(number, "gradient_strides", dim.number);
      });
}

/// Checks the strides of a gradient against the program's type of the capture.
Result checkGradientLayout(const fovea_score_t &score, size_t number,
                           const spec::CaptureSpec &wanted, const Sizes &sizes,
                           bool isDeterministic) {
  const fovea_capture_t &given = captureOf(score, number);
  if (isStored(score, number))
    if (Result result = checkStoredPlaces(given, number, wanted, sizes);
        !result.ok())
      return result;
  for (size_t dim = 0; dim != wanted.dims.size(); ++dim)
    if (isDeterministic && given.extents[dim] > 1 &&
        given.gradient_strides[dim] == 0)
      return ofDeterminism(
          invalid(fieldOf(number, "gradient_strides", dim) +
                  " is 0, which sums in any order, and deterministic is 1; "
                  "give each element memory of its own and sum that, or set "
                  "deterministic to 0"));
  return checkReach(given, number, wanted, gradientLayoutOf(score, number));
}

/// Bytes [begin, end); none of what has no elements.
struct Span {
  uint64_t begin = 0, end = 0;

  bool meets(const Span &other) const {
    return begin < other.end && other.begin < end;
  }
};
Span spanOf(const fovea_capture_t &capture, const Layout &layout) {
  if (!layout.address)
    return {};
  const uint64_t begin = addressOf(layout.address);
  Span span{begin, begin + uint64_t(layout.bytes)};
  for (int32_t dim = 0; dim != capture.rank; ++dim) {
    if (capture.extents[dim] == 0)
      return {};
    span.end += uint64_t((capture.extents[dim] - 1) * layout.stride[dim] *
                         layout.bytes);
  }
  return span;
}
Span gradientSpan(const fovea_score_t &score, size_t number) {
  return spanOf(captureOf(score, number), gradientLayoutOf(score, number));
}

Result sharesMemory(const std::string &name, const Span &span,
                    const std::string &other) {
  return invalid(name + " (from " + std::to_string(span.begin) + " on, " +
                 std::to_string(span.end - span.begin) +
                 " bytes) shares memory with " + other +
                 "; give each memory of its own");
}

/// Checks that nothing else of the call is in a gradient's memory, but for the
/// workspace.
Result checkGradientMemory(const fovea_score_t &score, size_t number,
                           const Problem &problem) {
  const std::string name =
      "score.captures[" + std::to_string(number) + "].gradient";
  const Span span = gradientSpan(score, number);
  const int64_t bytes = gradientLayoutOf(score, number).bytes;
  if (span.begin % uint64_t(bytes) != 0)
    return invalid(name + " is " + std::to_string(span.begin) +
                   ", no multiple of " + std::to_string(bytes) + " bytes");
  auto shares = [&](const std::string &other) {
    return sharesMemory(name, span, other);
  };
  for (size_t i = 0; i != problem.tensors.size(); ++i)
    if (span.meets({problem.tensors.begins[i], problem.tensors.ends[i]}))
      return shares(problem.tensors[i].name);
  for (size_t i = 0; i != score.capture_count; ++i) {
    const fovea_capture_t &other = captureOf(score, i);
    const std::string field = "score.captures[" + std::to_string(i) + "].";
    if (other.rank && span.meets(spanOf(other, layoutOf(other))))
      return shares(field + "data");
    if (i < number && span.meets(gradientSpan(score, i)))
      return shares(field + "gradient");
  }
  return Result();
}

/// Checks a tensor's address, and that no kernel writes to it.
Result checkMemory(const fovea_capture_t &given, size_t number, bool isUnit,
                   const Problem &problem) {
  const std::string name =
      "score.captures[" + std::to_string(number) + "].data";
  const int64_t bytes = elementOf(given).bytes,
                alignment =
                    isUnit ? std::max(bytes, spec::kCaptureAlignment) : bytes;
  if (!given.data) {
    for (int32_t dim = 0; dim != given.rank; ++dim)
      if (given.extents[dim] == 0)
        return Result();
    return invalid(name + " is NULL");
  }
  const Span span = spanOf(given, layoutOf(given));
  if (span.begin % uint64_t(alignment) != 0)
    return invalid(name + " is " + std::to_string(span.begin) +
                   ", no multiple of " + std::to_string(alignment) + " bytes");
  for (size_t i = 0; i != problem.tensors.size(); ++i)
    if (problem.tensors[i].written &&
        span.meets({problem.tensors.begins[i], problem.tensors.ends[i]}))
      return sharesMemory(name, span,
                          std::string(problem.tensors[i].name) +
                              ", which the kernels write");
  return Result();
}

} // namespace

Result readScore(const fovea_group_t *group, Problem &problem) {
  fovea_score_t given;
  if (Result result = readVersioned(
          "score.header", reinterpret_cast<const fovea_score_t *>(group),
          kScoreFirstSize, given);
      !result.ok())
    return result;
  if (!given.program || !*given.program)
    return invalid("score.program is NULL or empty; give the name of a program "
                   "or the 16 digits of its key");
  if (given.capture_count > spec::kMaxCaptures)
    return invalid("score.capture_count is " +
                   std::to_string(given.capture_count) + ", not 0 to 8");
  if (given.capture_count > 0 && !given.captures)
    return invalid("score.captures is NULL, and score.capture_count " +
                   std::to_string(given.capture_count));
  if (given.capture_count > 0 && given.capture_size != kCaptureFirstSize)
    return invalid("score.capture_size is " +
                   std::to_string(given.capture_size) +
                   "; set it to sizeof(fovea_capture_t) (" +
                   std::to_string(kCaptureFirstSize) + " in this version)");
  if (given.reserved != 0)
    return invalid("score.reserved is " + std::to_string(given.reserved) +
                   "; set the structure to zero before filling it");
  if (given.stored_gradients >> given.capture_count)
    return invalid("score.stored_gradients is " +
                   std::to_string(given.stored_gradients) +
                   ", with bits of more captures than score.capture_count, " +
                   std::to_string(given.capture_count));
  for (size_t i = 0; i != given.capture_count; ++i) {
    if (Result result = checkCapture(captureOf(given, i), i); !result.ok())
      return result;
    if (Result result = checkGradient(given, i, problem.key.op); !result.ok())
      return result;
  }
  problem.score = given;
  return Result();
}

Result bindScore(const DeviceView &view, Problem &problem, bool isLaunch,
                 bool &missing) {
  const char *program = problem.score.program;
  const uint8_t gradients = gradientsOf(problem.score),
                stored = storedGradientsOf(problem.score);
  const ProblemKey wanted = problem.key.withoutScore();
  const Candidate *found = nullptr, *otherLayout = nullptr;
  int words = -1; // of what is found
  std::string others, offered;
  for (const Candidate *candidate : view.withScore(program)) {
    const ProblemKey &key = candidate->kernel->record->problem;
    ProblemKey bare = key.withoutScore();
    if (holdsRows(key, problem))
      bare.setHeadDims(wanted.headDim, wanted.dimOfV());
    if (bare != wanted ||
        (problem.onDemand && candidate->kernel->origin.empty()))
      continue;
    if (!isFor(problem.score, candidate->captures)) {
      others = toString(candidate->captures);
      if (others.empty())
        others = "nothing";
      continue;
    }
    const uint8_t added = key.scoreGradients & uint8_t(~key.storedGradients);
    if ((stored & ~key.storedGradients) || (gradients & ~stored & ~added) ||
        (gradients && problem.deterministic &&
         !candidate->algorithm->deterministic)) {
      if (!key.scoreGradients)
        continue;
      const std::string set =
          captureNumbers(key.scoreGradients) +
          (key.storedGradients
               ? " (stored " + captureNumbers(key.storedGradients) + ")"
               : "") +
          " by " + candidate->algorithm->name;
      if (offered.find(set) == std::string::npos)
        offered += (offered.empty() ? "" : ", ") + set;
      continue;
    }
    // Of programs that differ in how they read the same tensors, the one that
    // reads most of them several elements at once.
    const int ofThis = readByWords(problem.score, candidate->captures);
    if (ofThis < 0)
      otherLayout = candidate;
    if (ofThis < words || ofThis < 0)
      continue;
    if (found && key.score != problem.key.score && ofThis == words)
      return invalid(std::string("score.program '") + program +
                     "' names several programs that take these captures, " +
                     scoreDigits(problem.key.score) + " and " +
                     scoreDigits(key.score) + "; give the digits of one");
    // Gradients that nobody wants cost something, too.
    if (found && key.score == problem.key.score &&
        __builtin_popcount(key.scoreGradients) >=
            __builtin_popcount(problem.key.scoreGradients))
      continue;
    problem.key.score = key.score;
    problem.key.scoreGradients = key.scoreGradients;
    problem.key.storedGradients = key.storedGradients;
    problem.captures = &candidate->captures;
    found = candidate;
    words = ofThis;
  }
  missing = !found;
  // Which says what is wrong with it.
  if (!found && otherLayout)
    return checkCaptures(problem, otherLayout->captures, isLaunch);
  if (!found && gradients && (others.empty() || !offered.empty()))
    return ofDeterminism(
        {FOVEA_STATUS_NOT_FOUND,
         std::string("no open package has a kernel of the score program '") +
             program + "' for '" + problem.key.str() +
             "' that gives the gradients of captures " +
             captureNumbers(gradients) +
             (stored ? ", stored in their own type those of " +
                           captureNumbers(stored)
                     : "") +
             (problem.deterministic ? " in an order of its own, as "
                                      "deterministic is 1"
                                    : "") +
             (offered.empty() ? "" : "; there are those of " + offered) +
             "; aot-compile --op=backward --score=" + program +
             (stored ? " --stored-gradients makes one"
                     : " --score-gradients makes one")},
        problem.deterministic);
  if (!found && !others.empty())
    return invalid(std::string("the score program '") + program +
                   "' captures " + others + "; the call gives " +
                   describe(problem.score));
  if (!found)
    return Result(FOVEA_STATUS_NOT_FOUND,
                  "no open package has a kernel for '" + problem.key.str() +
                      "' with the score program '" + program +
                      "' that the device can run; aot-compile --score=" +
                      program + " makes one");
  return checkCaptures(problem, found->captures, isLaunch);
}

Result checkCaptures(const Problem &problem,
                     const std::vector<spec::CaptureSpec> &captures,
                     bool isLaunch) {
  const uint8_t gradients = gradientsOf(problem.score);
  if (gradients && problem.sizes.seqlenK > 0 && !(problem.wanted & spec::kDk))
    return invalid("the gradient of capture " + captureNumbers(gradients) +
                   " comes of the launch that gives dk and dv, which are not "
                   "wanted; give dk and dv, too");
  for (size_t i = 0; i != captures.size(); ++i) {
    const spec::CaptureSpec &wanted = captures[i];
    const fovea_capture_t &given = captureOf(problem.score, i);
    if (given.gradient) {
      if (Result result = checkGradientLayout(
              problem.score, i, wanted, problem.sizes, problem.deterministic);
          !result.ok())
        return result;
      if (isLaunch)
        if (Result result = checkGradientMemory(problem.score, i, problem);
            !result.ok())
          return result;
    }
    if (wanted.isScalar())
      continue;
    if (Result result =
            checkLayout(given, i, wanted, problem.sizes, problem.score.program);
        !result.ok())
      return result;
    if (!isLaunch)
      continue;
    if (Result result =
            checkMemory(given, i, wanted.dims.back().isUnit, problem);
        !result.ok())
      return result;
  }
  return Result();
}

Result checkCapturesApart(const fovea_score_t &score, uint64_t begin,
                          uint64_t end) {
  const Span workspace{begin, end};
  for (size_t i = 0; i != score.capture_count; ++i) {
    const fovea_capture_t &given = captureOf(score, i);
    const std::string field = "score.captures[" + std::to_string(i) + "].";
    const Span gradient = gradientSpan(score, i);
    if (gradient.meets(workspace))
      return sharesMemory(field + "gradient", gradient, "workspace");
    const Span data = given.rank ? spanOf(given, layoutOf(given)) : Span();
    if (data.meets(workspace))
      return sharesMemory(field + "data", data,
                          "workspace, which the kernels write");
  }
  return Result();
}

uint8_t gradientsOf(const fovea_score_t &score) {
  uint8_t wanted = 0;
  for (size_t i = 0; i != score.capture_count; ++i)
    if (captureOf(score, i).gradient)
      wanted |= uint8_t(1u << i);
  return wanted;
}

uint8_t storedGradientsOf(const fovea_score_t &score) {
  return uint8_t(gradientsOf(score) & score.stored_gradients);
}

std::string givenCaptures(const fovea_score_t &score) {
  std::vector<spec::CaptureSpec> captures(score.capture_count);
  for (size_t i = 0; i != captures.size(); ++i) {
    const fovea_capture_t &given = captureOf(score, i);
    captures[i].element = elementOf(given).element;
    captures[i].dims.resize(size_t(given.rank));
    if (given.rank)
      captures[i].dims.back().isUnit = isReadByWords(given);
  }
  return toString(captures);
}

std::string layoutOf(const std::vector<spec::CaptureSpec> &captures) {
  std::vector<spec::CaptureSpec> bare = captures;
  for (spec::CaptureSpec &capture : bare)
    for (spec::CaptureDim &dim : capture.dims)
      dim.indices = 0;
  return toString(bare);
}

void fillCapture(const fovea_score_t &score, const ArgumentFill &fill,
                 unsigned char *to) {
  const fovea_capture_t &capture = captureOf(score, fill.index);
  auto put = [to](auto value) { std::memcpy(to, &value, sizeof(value)); };
  switch (fill.source) {
  case spec::Source::CaptureStride:
    return put(capture.strides[fill.dim]);
  case spec::Source::CaptureExtent:
    return put(int32_t(capture.extents[fill.dim]));
  case spec::Source::CaptureGradient:
    return put(addressOf(capture.gradient));
  case spec::Source::CaptureGradientStride:
    return put(capture.gradient_strides[fill.dim]);
  default:
    if (capture.rank)
      return put(addressOf(capture.data));
    if (capture.type == FOVEA_CAPTURE_I32)
      return put(int32_t(capture.value));
    put(float(capture.value));
  }
}

} // namespace fovea::rt
