//===- OperationSpec.cpp - the tables of the operations -------------------===//

#include "fovea/Package/OperationSpec.h"

#include "fovea/Package/Package.h"

#include <cassert>

namespace fovea::spec {
namespace {

constexpr TensorSpec ofRows(const char *name, const char *title, Extent heads,
                            Extent rows, Extent columns, bool written,
                            Output output) {
  return {name,        title,
          Shape::Rows, heads,
          rows,        Elements::Problem,
          written,     /*optional=*/false,
          output,      "",
          columns};
}
constexpr TensorSpec ofQueries(const char *name, const char *title,
                               Extent columns, bool written = false,
                               Output output = kNoOutput) {
  return ofRows(name, title, Extent::HeadsQ, Extent::SeqlenQ, columns, written,
                output);
}
constexpr TensorSpec ofKeys(const char *name, const char *title, Extent columns,
                            bool written = false, Output output = kNoOutput) {
  return ofRows(name, title, Extent::HeadsK, Extent::SeqlenK, columns, written,
                output);
}
constexpr TensorSpec logSumExp(bool written, bool optional, const char *note) {
  return {"lse",           "lse",         Shape::Vector, Extent::HeadsQ,
          Extent::SeqlenQ, Elements::F32, written,       optional,
          kNoOutput,       note};
}

//===----------------------------------------------------------------------===//
// Base groups
//===----------------------------------------------------------------------===//

constexpr ScalarSpec kSizes[] = {
    {"seqlen_q", ArgKind::I32, "rows", "query rows, >= 0", Scalar::SeqlenQ},
    {"seqlen_k", ArgKind::I32, "rows", "key rows, >= 0", Scalar::SeqlenK},
    {"heads_q", ArgKind::I32, "heads", "query heads", Scalar::HeadsQ},
    {"group_size", ArgKind::I32, "heads",
     "query heads that share a key head: heads_q / heads_k", Scalar::GroupSize},
    {"scale", ArgKind::F32, "factor", "multiplies q.k^T before the softmax",
     Scalar::Scale},
};

constexpr TensorSpec kForwardTensors[] = {
    ofQueries("q", "Q", Extent::HeadDim),
    ofKeys("k", "K", Extent::HeadDim),
    ofKeys("v", "V", Extent::HeadDimV),
    ofQueries("out", "the output", Extent::HeadDimV, /*written=*/true, kOut),
    logSumExp(/*written=*/true, /*optional=*/true,
              "f32, the natural logarithm; null: not written"),
};

constexpr TensorSpec kWorkspace = {
    "workspace",      "the workspace",
    Shape::Bytes,     Extent::HeadsQ,
    Extent::SeqlenQ,  Elements::F32,
    /*written=*/true, /*optional=*/false,
    kNoOutput,        "aligned to 16; holds nothing before or after"};

constexpr TensorSpec kBackwardTensors[] = {
    ofQueries("q", "Q", Extent::HeadDim),
    ofKeys("k", "K", Extent::HeadDim),
    ofKeys("v", "V", Extent::HeadDimV),
    ofQueries("out", "the output of the forward pass", Extent::HeadDimV),
    ofQueries("dout", "the gradient of the output", Extent::HeadDimV),
    logSumExp(/*written=*/false, /*optional=*/false,
              "f32 of the forward pass, the natural logarithm"),
    ofQueries("dq", "the gradient of Q", Extent::HeadDim, /*written=*/true,
              kDq),
    ofKeys("dk", "the gradient of K", Extent::HeadDim, /*written=*/true, kDk),
    ofKeys("dv", "the gradient of V", Extent::HeadDimV, /*written=*/true, kDv),
    kWorkspace,
};

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

constexpr LaunchSpec kOnePass[] = {{"", false, kOut, 0, 2, 2, 1}};
constexpr LaunchSpec kDeterministic[] = {
    {"delta", false, 0, kDq | kDk | kDv | kDsinks, 0, 0, 0},
    {"dkdv", true, kDk | kDv, 0, 4, 4, 2},
    {"dq", false, kDq, 0, 3, 1, 0},
};
constexpr LaunchSpec kAtomic[] = {
    {"prepare", false, 0, kDq | kDk | kDv | kDsinks, 0, 0, 0},
    {"fused", true, kDk | kDv, kDq, 5, 5, 2},
    {"convert", false, kDq, 0, 0, 0, 0},
};

constexpr LaunchSpec kAtomic16[] = {
    {"prepare16", false, 0, kDq | kDk | kDv | kDsinks, 0, 0, 0},
    {"fused16", true, kDk | kDv, kDq, 5, 5, 2},
    {"convert16", false, kDq, 0, 0, 0, 0},
};

constexpr LaunchSpec kSplit[] = {
    {"share", false, 0, kOut, 2, 2, 1, /*splitsKeys=*/true},
    {"combine_v2", false, kOut, 0, 0, 0, 0, /*splitsKeys=*/false,
     /*ownsHeads=*/false, /*sharesOfBlock=*/16},
};
constexpr LaunchSpec kEarlierSplit[] = {
    {"combine", false, kOut, 0, 0, 0, 0, /*splitsKeys=*/false,
     /*ownsHeads=*/false, /*sharesOfBlock=*/8},
};

constexpr TensorSpec kSplitTensors[] = {kWorkspace};
constexpr ScalarSpec kSplitScalars[] = {
    {"splits", ArgKind::I32, "shares",
     "shares of the keys that each block of rows sees, 1 to 1024",
     Scalar::Splits},
    {"packed_heads", ArgKind::I32, "heads",
     "1, or group_size: the rows of the heads that share a key head follow one "
     "another as those of one",
     Scalar::PackedHeads}};

constexpr AlgorithmSpec kForwardAlgorithms[] = {
    {"flash", true, kOnePass, {}},
    // Of each batch the sums of all rows and shares, then for each of those its
    // maximum, reference, sum and total.
    {"split",
     true,
     kSplit,
     {4, Extent::HeadDimV, 1, /*splits=*/true},
     {"split", 1, kSplitTensors, kSplitScalars},
     kEarlierSplit},
};
constexpr AlgorithmSpec kBackwardAlgorithms[] = {
    // The row sums of out * dout.
    {"deterministic", true, kDeterministic, {1, std::nullopt, 1}},
    // Of each batch, so that its part begins on a line of 64 bytes: sums of dQ,
    // then the row sums.
    {"atomic", false, kAtomic, {1, Extent::HeadDim, 16}},
    // The same in pairs of rows. A head's are whole blocks of queries, and one
    // more for what is added of none.
    {"atomic16",
     false,
     kAtomic16,
     {1, Extent::HeadDim, 32, /*splits=*/false, /*pairStep=*/64,
      /*spareRows=*/32}},
};

constexpr TensorSpec kMaskTensors[] = {
    {"mask", "the mask", Shape::Places, Extent::HeadsQ, Extent::SeqlenQ,
     Elements::Problem, /*written=*/true, /*optional=*/false, kMask,
     "0.5 where a weight is kept, -0.5 where it is dropped"}};

constexpr ScalarSpec kMaskSizes[] = {kSizes[0], kSizes[1], kSizes[2]};

constexpr LaunchSpec kMaskPass[] = {{"", false, kMask, 0, 0, 0, 0}};

constexpr AlgorithmSpec kMaskAlgorithms[] = {{"philox", true, kMaskPass, {}}};

constexpr OperationSpec kOperations[] = {
    {OpKind::Forward,
     "forward",
     {"base", 1, kForwardTensors, kSizes},
     kForwardAlgorithms},
    {OpKind::Backward,
     "backward",
     {"base", 1, kBackwardTensors, kSizes},
     kBackwardAlgorithms},
    {OpKind::DropoutMask,
     "dropout_mask",
     {"base", 1, kMaskTensors, kMaskSizes},
     kMaskAlgorithms,
     /*isAttention=*/false,
     /*needs=*/"dropout"},
};

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

/// Appends arguments one by one.
class SignatureBuilder {
public:
  void add(const std::vector<const TensorSpec *> &tensors);
  void add(const ScalarSpec &scalar, Source source, size_t index) {
    add(scalar.name, scalar.kind, scalar.unit, scalar.meaning, source, index);
  }
  void add(const CaptureSpec &capture, size_t number);
  void addGradient(const CaptureSpec &capture, size_t number, bool isStored);
  Signature take() {
    signature.bytes = aligned(8);
    return std::move(signature);
  }

private:
  uint32_t aligned(uint32_t to) const { return (next + to - 1) / to * to; }
  void add(std::string name, ArgKind kind, const char *unit,
           std::string meaning, Source source, size_t index, size_t dim = 0) {
    const uint32_t offset = aligned(sizeOf(kind));
    next = offset + sizeOf(kind);
    signature.arguments.push_back({std::move(name), kind, offset, unit,
                                   std::move(meaning), source, uint8_t(index),
                                   uint8_t(dim)});
  }
  void addStrides(Shape shape, size_t from);

  Signature signature;
  uint32_t next = 0;
};

std::string withoutArticle(std::string title) {
  return title.rfind("the ", 0) == 0 ? title.substr(4) : title;
}

void SignatureBuilder::add(const std::vector<const TensorSpec *> &tensors) {
  const size_t from = signature.tensors.size();
  for (const TensorSpec *tensor : tensors) {
    std::string meaning = withoutArticle(tensor->title);
    if (tensor->shape != Shape::Bytes)
      meaning += " " + shapeOf(*tensor);
    if (*tensor->note)
      meaning += std::string(", ") + tensor->note;
    add(tensor->name, ArgKind::Pointer, "address", std::move(meaning),
        Source::Address, signature.tensors.size());
    signature.tensors.push_back(tensor);
  }
  addStrides(Shape::Rows, from);
  addStrides(Shape::Places, from);
  addStrides(Shape::Vector, from);
  addStrides(Shape::Heads, from);
  addStrides(Shape::BlockLists, from);
  addStrides(Shape::BlockCounts, from);
}

/// What has no rows, or no batches, has no distance of them.
bool hasStride(Shape shape, Source stride) {
  switch (shape) {
  case Shape::Rows:
  case Shape::Places:
  case Shape::BlockLists:
    return true;
  case Shape::Vector:
  case Shape::BlockCounts:
    return stride != Source::StrideSeq;
  case Shape::Heads:
    return stride == Source::StrideHead;
  case Shape::Bytes:
  case Shape::Sequences:
  case Shape::Number:
    return false;
  }
  return false;
}

void SignatureBuilder::addStrides(Shape shape, size_t from) {
  const bool isOfBlocks = shape == Shape::BlockLists;
  const struct {
    Source source;
    const char *name, *things;
  } strides[] = {{Source::StrideBatch, "batch", "batches"},
                 {Source::StrideHead, "head", "heads"},
                 {Source::StrideSeq, isOfBlocks ? "block" : "seq",
                  isOfBlocks ? "blocks" : "rows"}};
  for (size_t i = from; i != signature.tensors.size(); ++i) {
    const TensorSpec &tensor = *signature.tensors[i];
    if (tensor.shape != shape)
      continue;
    for (const auto &stride : strides)
      if (hasStride(shape, stride.source))
        add(tensor.name + std::string("_stride_") + stride.name, ArgKind::I64,
            "elements",
            std::string("distance of ") + stride.things + " in " + tensor.title,
            stride.source, i);
  }
}

void SignatureBuilder::add(const CaptureSpec &capture, size_t number) {
  const std::string name = "capture" + std::to_string(number);
  const std::string title = "what the score program captures as number " +
                            std::to_string(number) + ", " + capture.str();
  if (capture.isScalar())
    return add(name,
               capture.element == CaptureElement::F32 ? ArgKind::F32
                                                      : ArgKind::I32,
               "value", title, Source::Capture, number);
  add(name, ArgKind::Pointer, "address", title, Source::Capture, number);
  for (size_t dim = 0; dim != capture.dims.size(); ++dim)
    add(name + "_stride" + std::to_string(dim), ArgKind::I64, "elements",
        "distance along its dimension " + std::to_string(dim),
        Source::CaptureStride, number, dim);
  for (size_t dim = 0; dim != capture.dims.size(); ++dim)
    add(name + "_extent" + std::to_string(dim), ArgKind::I32, "elements",
        "extent of its dimension " + std::to_string(dim), Source::CaptureExtent,
        number, dim);
}

void SignatureBuilder::addGradient(const CaptureSpec &capture, size_t number,
                                   bool isStored) {
  const std::string name = "dcapture" + std::to_string(number);
  add(name, ArgKind::Pointer, "address",
      "what the gradient of capture " + std::to_string(number) +
          (isStored ? " is stored to, of the capture's type and extents"
                    : " is added to, f32 of the capture's extents") +
          "; null: it is not wanted",
      Source::CaptureGradient, number);
  for (size_t dim = 0; dim != capture.dims.size(); ++dim)
    add(name + "_stride" + std::to_string(dim), ArgKind::I64, "elements",
        "distance along its dimension " + std::to_string(dim),
        Source::CaptureGradientStride, number, dim);
}

} // namespace

const char *toString(Extent extent) {
  constexpr const char *names[] = {"batch",     "heads_q",  "heads_k",
                                   "seqlen_q",  "seqlen_k", "head_dim",
                                   "head_dim_v"};
  return names[size_t(extent)];
}

const AlgorithmSpec *OperationSpec::findAlgorithm(std::string_view name) const {
  for (const AlgorithmSpec &algorithm : algorithms)
    if (name == algorithm.name)
      return &algorithm;
  return nullptr;
}

OperationSpec::Found OperationSpec::findLaunch(std::string_view suffix) const {
  for (const AlgorithmSpec &algorithm : algorithms)
    for (Rows<LaunchSpec> launches : {algorithm.launches, algorithm.earlier})
      for (const LaunchSpec &launch : launches)
        if (suffix == launch.suffix)
          return {&launch, &algorithm};
  for (const GroupSpec &group : featureGroups())
    for (const LaunchSpec &launch : group.launches)
      if (group.isOf(op) && suffix == launch.suffix)
        return {&launch, nullptr};
  return {};
}

Rows<OperationSpec> allOperations() { return kOperations; }
const OperationSpec &specOf(OpKind op) { return kOperations[size_t(op)]; }

std::vector<std::string> operationNames(bool attention) {
  std::vector<std::string> names;
  for (const OperationSpec &operation : kOperations)
    if (operation.isAttention || !attention)
      names.push_back(operation.name);
  return names;
}

std::vector<std::string> dataTypeNames() {
  std::vector<std::string> names;
  for (const DataTypeInfo &info : kDataTypes)
    names.push_back(info.name);
  return names;
}

const Argument *Signature::find(std::string_view name) const {
  for (const Argument &argument : arguments)
    if (name == argument.name)
      return &argument;
  return nullptr;
}

int Signature::tensor(std::string_view name) const {
  for (size_t i = 0; i != tensors.size(); ++i)
    if (name == tensors[i]->name)
      return int(i);
  return -1;
}

std::vector<const GroupSpec *> groupsOf(const ProblemKey &key,
                                        const AlgorithmSpec *algorithm) {
  std::vector<const GroupSpec *> groups = {&specOf(key.op).base};
  for (size_t row = 0; row != featureGroups().size(); ++row)
    if (key.groups[row])
      groups.push_back(&featureGroups()[row]);
  if (algorithm && algorithm->own.name)
    groups.push_back(&algorithm->own);
  return groups;
}

std::vector<const LaunchSpec *> launchesOf(const ProblemKey &key,
                                           const AlgorithmSpec &algorithm) {
  std::vector<const LaunchSpec *> launches;
  for (const LaunchSpec &launch : algorithm.launches)
    launches.push_back(&launch);
  for (const GroupSpec *group : groupsOf(key))
    for (const LaunchSpec &launch : group->launches)
      launches.push_back(&launch);
  return launches;
}

int findGroup(std::string_view name) {
  for (const GroupSpec &group : featureGroups())
    if (name == group.name)
      return int(&group - featureGroups().begin());
  return -1;
}

GroupVersions neededGroups(OpKind op) {
  GroupVersions versions{};
  if (const char *needs = specOf(op).needs) {
    const size_t row = size_t(findGroup(needs));
    versions[row] = featureGroups()[row].version;
  }
  return versions;
}

const GroupSpec *foreignGroup(OpKind op, const GroupVersions &versions) {
  for (size_t row = 0; row != featureGroups().size(); ++row)
    if (versions[row] && !featureGroups()[row].isOf(op))
      return &featureGroups()[row];
  return nullptr;
}

std::string operationsOf(const GroupSpec &group) {
  std::string text;
  for (const OperationSpec &operation : kOperations)
    if (group.isOf(operation.op))
      text += (text.empty() ? "" : ", ") + std::string(operation.name);
  return text;
}

std::string groupNames(const GroupVersions &versions) {
  std::string text;
  for (size_t row = 0; row != featureGroups().size(); ++row)
    if (versions[row])
      text +=
          (text.empty() ? "" : "+") + std::string(featureGroups()[row].name);
  return text;
}

size_t firstScalarOf(size_t row) {
  size_t count = 0;
  for (size_t before = 0; before != row; ++before)
    count += featureGroups()[before].scalars.size();
  return count;
}

size_t firstTensorOf(size_t row) {
  size_t count = 0;
  for (size_t before = 0; before != row; ++before)
    count += featureGroups()[before].tensors.size();
  return count;
}

size_t numberOf(OpKind op, const TensorSpec &tensor) {
  size_t number = 0;
  auto isAmong = [&](const GroupSpec &group) {
    for (const TensorSpec &other : group.tensors) {
      if (&other == &tensor)
        return true;
      ++number;
    }
    return false;
  };
  if (isAmong(specOf(op).base))
    return number;
  for (const GroupSpec &group : featureGroups())
    if (isAmong(group))
      return number;
  for (const AlgorithmSpec &algorithm : specOf(op).algorithms)
    if (isAmong(algorithm.own))
      break;
  return number;
}

namespace {
std::vector<const TensorSpec *> tensorsOf(const GroupSpec &group) {
  std::vector<const TensorSpec *> tensors;
  for (const TensorSpec &tensor : group.tensors)
    tensors.push_back(&tensor);
  return tensors;
}
} // namespace

bool isStandard(const ProblemKey &key,
                const std::vector<const TensorSpec *> &tensors) {
  return tensors == tensorsOf(specOf(key.op).base);
}

Signature signatureOf(const ProblemKey &key, const AlgorithmSpec *algorithm,
                      const std::vector<CaptureSpec> &captures) {
  return signatureOf(key, tensorsOf(specOf(key.op).base), algorithm, captures);
}

Signature signatureOf(const ProblemKey &key,
                      const std::vector<const TensorSpec *> &tensors,
                      const AlgorithmSpec *algorithm,
                      const std::vector<CaptureSpec> &captures) {
  SignatureBuilder builder;
  builder.add(tensors);
  for (const ScalarSpec &scalar : specOf(key.op).base.scalars)
    builder.add(scalar, Source::Scalar, size_t(scalar.value));
  for (size_t row = 0; row != featureGroups().size(); ++row) {
    if (!key.groups[row])
      continue;
    const GroupSpec &group = featureGroups()[row];
    builder.add(tensorsOf(group));
    size_t index = firstScalarOf(row);
    for (const ScalarSpec &scalar : group.scalars)
      builder.add(scalar, Source::Feature, index++);
  }
  for (size_t number = 0; number != captures.size(); ++number)
    builder.add(captures[number], number);
  for (size_t number = 0; number != captures.size(); ++number)
    if (key.scoreGradients >> number & 1)
      builder.addGradient(captures[number], number,
                          key.storedGradients >> number & 1);
  if (algorithm) {
    builder.add(tensorsOf(algorithm->own));
    for (const ScalarSpec &scalar : algorithm->own.scalars)
      builder.add(scalar, Source::Scalar, size_t(scalar.value));
  }
  Signature signature = builder.take();
  assert(signature.tensors.size() <= kMaxTensors &&
         signature.bytes <= kMaxArgumentBytes);
  return signature;
}

std::string shapeOf(const TensorSpec &tensor) {
  if (tensor.shape == Shape::Heads)
    return std::string("[") + toString(tensor.heads) + "]";
  if (tensor.shape == Shape::Sequences)
    return "[batch]";
  if (tensor.shape == Shape::Number)
    return "[1]";
  std::string shape = std::string("[batch, ") + toString(tensor.heads) + ", ";
  if (tensor.shape == Shape::BlockCounts || tensor.shape == Shape::BlockLists)
    return shape + "blocks of " + toString(tensor.rows) +
           (tensor.shape == Shape::BlockLists ? ", entries]" : "]");
  shape += toString(tensor.rows);
  return shape + (tensor.shape == Shape::Rows     ? ", head_dim]"
                  : tensor.shape == Shape::Places ? ", seqlen_k]"
                                                  : "]");
}

} // namespace fovea::spec

int32_t fovea::abiVersionOf(OpKind op) { return spec::specOf(op).base.version; }
