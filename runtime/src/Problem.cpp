//===- Problem.cpp - checks of an operation's parameters ------------------===//
//
// Every rule of docs/KernelAbi.md that a launcher must check, with a message
// that names the parameter, its value and the limit.
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include "Groups.h"
#include "Overlap.h"
#include "Scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace fovea::rt {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

Result outOfRange(const std::string &name, int64_t value, int64_t least,
                  int64_t most) {
  return invalid(name + " is " + std::to_string(value) + ", not in " +
                 std::to_string(least) + " to " + std::to_string(most));
}

/// Fills in the extent; false on overflow.
bool measure(TensorParam &tensor) {
  int64_t &elements = tensor.extent = tensor.rowElements;
  const std::pair<int64_t, int64_t> dims[] = {
      {tensor.batch, tensor.strideBatch},
      {tensor.heads, tensor.strideHead},
      {tensor.rows, tensor.strideSeq}};
  for (const auto &[size, stride] : dims) {
    int64_t distance;
    if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &distance) ||
                     __builtin_add_overflow(elements, distance, &elements)))
      return false;
  }
  return true;
}

/// One dimension of a tensor.
struct Dimension {
  const char *name;
  int64_t stride, size, most;
};

Result checkStrides(TensorParam &tensor) {
  const int64_t mostOfRows = spec::maxSeqStride(tensor.elementBytes);
  // To the next of a single row it may be any: a view of a tensor of many
  // heads.
  if (tensor.rows <= 1 && tensor.strideSeq > mostOfRows)
    tensor.strideSeq = 0;
  const std::array<Dimension, 3> dims = {{
      {".stride_batch", tensor.strideBatch, tensor.batch,
       std::numeric_limits<int64_t>::max()},
      {".stride_head", tensor.strideHead, tensor.heads,
       std::numeric_limits<int64_t>::max()},
      {tensor.rowStride, tensor.strideSeq, tensor.rows, mostOfRows},
  }};
  for (const Dimension &dim : dims) {
    if (dim.stride < 0 || dim.stride > dim.most)
      return outOfRange(std::string(tensor.name) + dim.name, dim.stride, 0,
                        dim.most);
  }
  // Longer rows of an odd number end with the word before (attn.view's again).
  constexpr int64_t kChunk = 16, kWord = 4;
  const int64_t rowBytes = tensor.rowElements * tensor.elementBytes;
  tensor.lacksWords = tensor.hasWords && tensor.rows > 1 && rowBytes < kChunk &&
                      rowBytes % kWord &&
                      tensor.strideSeq * tensor.elementBytes % kWord;
  if (!measure(tensor) || tensor.extent > (int64_t(1) << 56))
    return invalid(std::string(tensor.name) +
                   " spans more than 2^56 elements by its strides and shape");
  if (!tensor.written || !tensor.hasElements())
    return Result();
  return checkNoOverlap(dims, tensor.rowElements, "rows",
                        [&](const Dimension &dim) {
                          return std::string(tensor.name) + dim.name;
                        });
}

uint64_t endOf(const TensorParam &tensor) {
  uint64_t end;
  return __builtin_add_overflow(addressOf(tensor.data),
                                tensor.extent * tensor.elementBytes, &end)
             ? std::numeric_limits<uint64_t>::max()
             : end;
}

Region regionOf(const TensorParam &tensor) {
  const int64_t bytes = tensor.elementBytes;
  return {addressOf(tensor.data),
          endOf(tensor),
          tensor.rowElements * bytes,
          {{tensor.strideBatch * bytes, tensor.batch},
           {tensor.strideHead * bytes, tensor.heads},
           {tensor.strideSeq * bytes, tensor.rows}}};
}

/// Checks two tensors whose ranges meet.
Result checkApart(const TensorParam &written, const TensorParam &other) {
  if (!overlap(regionOf(written), regionOf(other)))
    return Result();
  auto place = [](const TensorParam &tensor) {
    return std::string(tensor.name) + " (from " +
           std::to_string(addressOf(tensor.data)) + " on, " +
           std::to_string(tensor.extent * tensor.elementBytes) + " bytes)";
  };
  return invalid(place(written) + " and " + place(other) +
                 " share memory, and the kernels write " + written.name +
                 (other.written ? " and " : " while they read ") + other.name +
                 "; give each memory of its own");
}

/// Checks that `written`, from `begin` to `end`, shares no memory with the
/// tensors that `counts` wants, given their numbers.
template <typename Counts>
Result checkApart(const TensorParam &written, uint64_t begin, uint64_t end,
                  const TensorParams &tensors, Counts counts) {
  for (size_t i = 0; i != tensors.size(); ++i)
    if (begin < tensors.ends[i] && tensors.begins[i] < end && counts(i))
      if (Result result = checkApart(written, tensors[i]); !result.ok())
        return result;
  return Result();
}

/// Type and head dimension, of an operation that is known.
Result readKey(const Sizes &p, int32_t dtype, ProblemKey &key) {
  const DataTypeInfo *info = std::find_if(
      std::begin(kDataTypes), std::end(kDataTypes),
      [dtype](const DataTypeInfo &row) { return row.number == dtype; });
  if (info == std::end(kDataTypes)) {
    std::string known;
    for (const DataTypeInfo &row : kDataTypes)
      known += std::string(known.empty() ? "" : " or ") + row.symbol + " (" +
               std::to_string(row.number) + ")";
    return invalid("dtype is " + std::to_string(dtype) + ", not " + known);
  }
  key.dtype = info->type;
  if (!spec::specOf(key.op).isAttention)
    return Result();
  if (p.headDim < 1 || p.headDim > kMaxHeadDim)
    return outOfRange("head_dim", p.headDim, 1, kMaxHeadDim);
  return Result();
}

// The numbers of the C interface are those of the tables.
static_assert(FOVEA_DTYPE_F16 == dataTypeInfo(DataType::F16).number &&
              FOVEA_DTYPE_BF16 == dataTypeInfo(DataType::BF16).number &&
              FOVEA_DTYPE_F32 == dataTypeInfo(DataType::F32).number);
static_assert(FOVEA_MASK_NONE == int(MaskKind::None) &&
              FOVEA_MASK_CAUSAL_TOP_LEFT == int(MaskKind::CausalTopLeft) &&
              FOVEA_MASK_CAUSAL_BOTTOM_RIGHT ==
                  int(MaskKind::CausalBottomRight) &&
              FOVEA_ALIGN_TOP_LEFT == int(Alignment::TopLeft) &&
              FOVEA_ALIGN_BOTTOM_RIGHT == int(Alignment::BottomRight) &&
              FOVEA_WINDOW_INFINITE == Window::kInfinite);

/// The scalars and tensors of all feature groups as they are where none is
/// given.
struct Neutral {
  std::vector<uint64_t> scalars;
  std::vector<TensorParam> tensors;
};
Neutral makeNeutral() {
  Neutral all;
  for (const spec::GroupSpec &group : spec::featureGroups()) {
    for (const spec::ScalarSpec &scalar : group.scalars)
      all.scalars.push_back(argumentBits(scalar.kind, scalar.neutral));
    for (const spec::TensorSpec &spec : group.tensors) {
      TensorParam tensor{};
      tensor.name = spec.name;
      tensor.unwanted = true;
      all.tensors.push_back(tensor);
    }
  }
  return all;
}

Result twice(const char *symbol) {
  return invalid(std::string("groups has ") + symbol +
                 " twice; each group may be there once");
}

/// Reads one of the groups of a call, if it is one of those.
/// \param given  a bit for each row that the call has had
Result readGroup(const fovea_group_t *group, bool shapesTensors,
                 uint64_t &given, Problem &problem) {
  if (group->group == FOVEA_GROUP_SCORE) { // of the key, not of the arguments
    if (!spec::specOf(problem.key.op).isAttention)
      return invalid(std::string("groups has FOVEA_GROUP_SCORE, which is of "
                                 "attention alone; leave it out of a ") +
                     toString(problem.key.op) + " call");
    if (shapesTensors)
      return Result();
    if (problem.score.program)
      return twice("FOVEA_GROUP_SCORE");
    return readScore(group, problem);
  }
  const ReaderRow *found = findReader(group->group);
  if (!found)
    return Result(FOVEA_STATUS_INCOMPATIBLE,
                  "groups has group " + std::to_string(group->group) +
                      ", which this version of libfovea (" +
                      std::to_string(FOVEA_VERSION) +
                      ") does not know; update it, or leave the group out");
  const GroupReader *reader = found->reader;
  if (reader->shapesTensors != shapesTensors)
    return Result();
  const size_t row = found->row;
  // The key's version may be 0 all the same: what changes nothing.
  if (given >> row & 1)
    return twice(reader->symbol);
  given |= uint64_t(1) << row;
  const spec::GroupSpec &spec = spec::featureGroups()[row];
  if (!spec.isOf(problem.key.op))
    return invalid(std::string("groups has ") + reader->symbol +
                   ", which is of " + spec::operationsOf(spec) +
                   " alone; leave it out of a " + toString(problem.key.op) +
                   " call");
  problem.key.groups[row] = spec.version;
  GroupArguments arguments(row, problem, reader->tensors, reader->varying);
  return reader->read(group, problem, arguments);
}

/// Reads the groups that are linked behind one another; the key receives their
/// versions.
Result readGroups(const fovea_group_t *group, Problem &problem) {
  static const Neutral &neutral = *new Neutral(makeNeutral());
  std::copy(neutral.scalars.begin(), neutral.scalars.end(),
            problem.features.begin());
  const size_t count = spec::specOf(problem.key.op).base.tensors.size();
  problem.tensors.resize(count + neutral.tensors.size());
  std::copy(neutral.tensors.begin(), neutral.tensors.end(),
            problem.tensors.begin() + count);
  uint64_t given = 0;
  static_assert(kMaxGroups <= 64);
  size_t linked = 0;
  for (const fovea_group_t *first = group; first; first = first->next) {
    if (++linked > kMaxGroups)
      return invalid("groups has more than " + std::to_string(kMaxGroups) +
                     " behind one another; is one behind itself?");
    if (Result result =
            readGroup(first, /*shapesTensors=*/true, given, problem);
        !result.ok())
      return result;
  }
  for (; group; group = group->next)
    if (Result result =
            readGroup(group, /*shapesTensors=*/false, given, problem);
        !result.ok())
      return result;
  return Result();
}

/// The scalars of the window, which a mask may have given.
void setWindow(Problem &problem) {
  GroupArguments window(kWindowGroup, problem);
  window.set(0, windowArgument(problem.window.left));
  window.set(1, windowArgument(problem.window.right));
  window.set(2, windowAlignment(problem.window));
}

/// How long rows are, of which a group may have said something.
void setHeadDims(Problem &problem) {
  static_assert(kMinHeadDim == kHeadDimStep);
  const Sizes &sizes = problem.sizes;
  auto columnsFor = [](int64_t dim) {
    return int32_t((dim + kHeadDimStep - 1) / kHeadDimStep * kHeadDimStep);
  };
  problem.key.setHeadDims(columnsFor(sizes.headDim),
                          columnsFor(sizes.headDimV));
  problem.key.groups[kHeadDimsGroup] =
      sizes.headDim == problem.key.headDim &&
              sizes.headDimV == problem.key.dimOfV()
          ? 0
          : kHeadDimsVersion;
  // A library of other groups, as tests link, has no arguments for it.
  if (kHeadDimsGroup >= spec::featureGroups().size())
    return;
  GroupArguments dims(kHeadDimsGroup, problem);
  dims.set(0, int32_t(sizes.headDim));
  dims.set(1, int32_t(sizes.headDimV));
}

/// What the queries see, by a mask or by the window of a group.
Result readVisibility(const CommonParams &common, Problem &problem) {
  if (common.mask < 0 || common.mask >= int32_t(std::size(kMasks)))
    return invalid("mask is " + std::to_string(common.mask) +
                   ", not a FOVEA_MASK_ value (0 to 2)");
  if (Result result = readGroups(common.groups, problem); !result.ok())
    return result;
  if (problem.sizes.headDimV > kMaxHeadDimV)
    return invalid(
        "head_dim is " + std::to_string(problem.sizes.headDim) +
        ", and so is that of v without FOVEA_GROUP_HEAD_DIMS, not in "
        "1 to " +
        std::to_string(kMaxHeadDimV));
  setHeadDims(problem);
  const MaskKind mask = MaskKind(common.mask);
  if (!problem.key.takesWindow())
    problem.window = maskInfo(mask).window;
  else if (mask != MaskKind::None)
    return invalid(std::string("mask is ") + toString(mask) +
                   " beside a window; say with the window what is seen, and "
                   "leave mask FOVEA_MASK_NONE");
  setWindow(problem);
  const Sizes &sizes = problem.sizes;
  problem.key.groups[kWindowGroup] = kWindowVersion;
  for (const MaskInfo &info : kMasks) {
    // For all lengths, where they differ.
    const bool isSameWindow = info.window == problem.window;
    if (isSameWindow ||
        (!problem.lengthsDiffer &&
         isSame(info.kind, problem.window, sizes.seqlenQ, sizes.seqlenK)))
      problem.masks |= 1u << int(info.kind);
    if (isSameWindow) {
      problem.key.mask = info.kind;
      problem.key.groups[kWindowGroup] = 0;
    }
  }
  return Result();
}

Result checkShape(const Sizes &p, uint32_t reserved) {
  const struct {
    const char *name;
    int64_t value, least, most;
  } sizes[] = {
      {"batch", p.batch, 0, spec::kMaxGridYZ}, // the grid's z extent
      {"heads_q", p.headsQ, 0, kInt32Max},
      {"heads_k", p.headsK, 0, kInt32Max},
      {"seqlen_q", p.seqlenQ, 0, spec::kMaxSeqlen},
      {"seqlen_k", p.seqlenK, 0, spec::kMaxSeqlen},
  };
  for (const auto &size : sizes)
    if (size.value < size.least || size.value > size.most)
      return outOfRange(size.name, size.value, size.least, size.most);
  if (p.headsQ > 0 && (p.headsK == 0 || p.headsQ % p.headsK != 0))
    return invalid("heads_q (" + std::to_string(p.headsQ) +
                   ") must be a multiple of heads_k (" +
                   std::to_string(p.headsK) + ")");
  if (!(std::fabs(p.scale) <= spec::kMostScale)) { // NaN is not either
    char text[96];
    std::snprintf(text, sizeof(text),
                  "scale is %g; it must be a number from %g to %g",
                  double(p.scale), -spec::kMostScale, spec::kMostScale);
    return invalid(text);
  }
  if (reserved != 0)
    return invalid("reserved is " + std::to_string(reserved) +
                   "; set the structure to zero before filling it");
  return Result();
}

} // namespace

const ReaderRow *findReader(uint32_t group) {
  static const auto &rows = *new std::vector<ReaderRow>([] {
    std::vector<ReaderRow> all;
    for (const GroupReader &reader : groupReaders()) {
      const size_t row = size_t(spec::findGroup(reader.name));
      all.push_back(
          {&reader, row, spec::firstTensorOf(row), spec::firstScalarOf(row)});
    }
    return all;
  }());
  for (const ReaderRow &row : rows)
    if (row.reader->group == group)
      return &row;
  return nullptr;
}

Result readSizes(OpKind op, const Sizes &sizes, const CommonParams &common,
                 Problem &problem) {
  problem.key.op = op;
  problem.sizes = sizes;
  problem.sizes.headDimV = sizes.headDim;
  if (Result result = readKey(sizes, common.dtype, problem.key); !result.ok())
    return result;
  if (Result result = checkShape(sizes, common.reserved); !result.ok())
    return result;
  return readVisibility(common, problem);
}

ProblemKey compiledKeyOf(const Problem &problem) {
  ProblemKey key = problem.key.base();
  key.groups = problem.key.groups;
  // As aot-compile's own default: one kernel for every mask and window.
  if (spec::specOf(key.op).isAttention)
    key.groups[kWindowGroup] = kWindowVersion;
  return key;
}

Sizes packHeads(const Sizes &sizes) {
  Sizes packed = sizes;
  packed.seqlenQ *= sizes.headsQ / sizes.headsK;
  packed.headsQ = sizes.headsK;
  return packed;
}

Result checkStrides(Problem &problem) {
  problem.lacksWords = problem.lacksWordsOfV = false;
  for (TensorParam &tensor : problem.tensors) {
    if (tensor.unwanted || (!tensor.data && tensor.optional))
      continue;
    if (Result result = checkStrides(tensor); !result.ok())
      return result;
    (tensor.isOfV ? problem.lacksWordsOfV : problem.lacksWords) |=
        tensor.lacksWords;
  }
  return Result();
}

Result checkAddress(const char *name, const char *suffix, const void *data,
                    int64_t alignment, const char *what, bool needed) {
  if (needed && !data)
    return invalid(std::string(name) + suffix + " is NULL");
  // Alignments are powers of two.
  if ((addressOf(data) & uint64_t(alignment - 1)) != 0)
    return invalid(std::string(name) + suffix + " is " +
                   std::to_string(addressOf(data)) + ", no multiple of " +
                   what + " (" + std::to_string(alignment) + " bytes)");
  return Result();
}

Result checkAddresses(TensorParams &tensors) {
  const size_t count = tensors.size();
  for (size_t i = 0; i != count; ++i) {
    const TensorParam &tensor = tensors[i];
    tensors.begins[i] = tensors.ends[i] = 0;
    if (tensor.unwanted)
      continue;
    const bool elements = tensor.hasElements();
    if (Result result = checkAddress(tensor.name, tensor.suffix, tensor.data,
                                     tensor.elementBytes, "the element size",
                                     elements && !tensor.optional);
        !result.ok())
      return result;
    tensors.begins[i] = addressOf(tensor.data);
    tensors.ends[i] = tensor.data && elements ? endOf(tensor) : 0;
  }
  for (size_t i = 0; i != count; ++i) {
    if (!tensors[i].written || tensors.ends[i] == 0)
      continue;
    // Of two that are written the later one: they are one pair.
    auto counts = [&](size_t other) {
      return !tensors[other].written || other > i;
    };
    if (Result result = checkApart(tensors[i], tensors.begins[i],
                                   tensors.ends[i], tensors, counts);
        !result.ok())
      return result;
  }
  return Result();
}

Result checkWorkspaceApart(const Problem &problem, uint64_t bytes) {
  TensorParam workspace{};
  workspace.name = "workspace";
  workspace.data = problem.workspace.data;
  workspace.batch = workspace.heads = workspace.rows = 1;
  workspace.elementBytes = 1;
  workspace.written = true;
  workspace.rowElements = workspace.extent = int64_t(bytes);
  const uint64_t begin = addressOf(workspace.data), end = endOf(workspace);
  if (Result result = checkApart(workspace, begin, end, problem.tensors,
                                 [](size_t) { return true; });
      !result.ok())
    return result;
  return checkCapturesApart(problem.score, begin, end);
}

std::string describe(const Problem &problem) {
  const Sizes &sizes = problem.sizes;
  std::string text = "'" + problem.key.str() + "', ";
  if (problem.key.takesWindow())
    text += toString(problem.window) + ", ";
  if (problem.lengthsDiffer)
    text += "lengths that differ, ";
  if (problem.key.cutsColumns())
    text += "rows of " + std::to_string(sizes.headDim) + " and, of V, " +
            std::to_string(sizes.headDimV) + " elements, ";
  return text + "batch " + std::to_string(sizes.batch) + ", heads " +
         std::to_string(sizes.headsQ) + "/" + std::to_string(sizes.headsK) +
         ", lengths " + std::to_string(sizes.seqlenQ) + "x" +
         std::to_string(sizes.seqlenK);
}

} // namespace fovea::rt
