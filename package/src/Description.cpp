//===- Description.cpp - kernels of this project described ----------------===//
//
// The arguments, buffers and launches of an operation's kernels, from the
// tables that compiler and runtime share.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Description.h"
#include "fovea/Package/Chips.h"
#include "fovea/Package/OperationSpec.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

using namespace fovea;
using json = nlohmann::ordered_json;

namespace {

/// Where a tensor's axes lie: strides of batch, head and row for tensors of
/// `heads` heads and `rows` rows.
struct Strides {
  std::string batch, head, row;
};

Strides stridesOf(const std::string &layout, const std::string &heads,
                  const std::string &rows, const std::string &dim) {
  const std::string ofHeads = heads + "*" + dim;
  if (layout == "bshd")
    return {ofHeads + "*" + rows, dim, ofHeads};
  if (layout == "sbhd")
    return {ofHeads, dim, "batch*" + ofHeads};
  return {ofHeads + "*" + rows, dim + "*" + rows, dim};
}

/// Key-query pairs of one head that count, for the credited operations: the
/// half of a square is usual for causal masks, and of a window what its band
/// holds away from the corners.
std::string pairsOf(const ProblemKey &key, const Window &window) {
  MaskKind mask = key.mask;
  if (key.takesWindow()) {
    const MaskInfo *named = findMask(window);
    if (!named)
      return "(1.0 * seqlen_q * max(0, min(seqlen_k, min(seqlen_k, "
             "window_left) + min(seqlen_k, window_right) + 1)))";
    mask = named->kind;
  }
  switch (mask) {
  case MaskKind::None:
    return "(1.0 * seqlen_q * seqlen_k)";
  case MaskKind::CausalTopLeft:
    return "(seqlen_q <= seqlen_k ? seqlen_q * seqlen_q / 2.0"
           " : seqlen_q * seqlen_k - seqlen_k * seqlen_k / 2.0)";
  case MaskKind::CausalBottomRight:
    return "(seqlen_q <= seqlen_k ? seqlen_q * seqlen_k - seqlen_q * seqlen_q "
           "/ 2.0"
           " : seqlen_k * seqlen_k / 2.0)";
  }
  return "";
}

/// A kernel that an operation launches.
struct Launch {
  std::string kernel;
  int32_t blockRows, threads;
  const spec::LaunchSpec *spec;
};

struct Launches {
  const spec::AlgorithmSpec *algorithm = nullptr;
  std::vector<Launch> all;
};

/// Rows that a workgroup owns, as an expression.
std::string rowsOf(const Launch &launch) {
  std::string block = std::to_string(launch.blockRows);
  const int few = launch.spec->sharesOfBlock;
  return few ? "(splits <= " + std::to_string(few) + " ? " + block + " : 1)"
             : block;
}

Expected<Launches> launchesOf(const KernelRecord &record) {
  const spec::OperationSpec &operation = spec::specOf(record.problem.op);
  Launches launches;
  auto add = [&](const std::string &suffix, Launch launch) -> Status {
    const auto [found, algorithm] = operation.findLaunch(suffix);
    if (!found)
      return Status(StatusCode::Incompatible, "the kernel '" + suffix +
                                                  "' is unknown to this "
                                                  "program");
    launch.spec = found;
    if (algorithm)
      launches.algorithm = algorithm;
    launches.all.push_back(std::move(launch));
    return Status();
  };
  Status status;
  if (record.launches.empty())
    status = add("", {record.symbol, record.blockM, record.threads, nullptr});
  for (const LaunchRecord &launch : record.launches)
    if (status.ok())
      status = add(launch.suffix, {record.symbolOf(launch), launch.blockRows,
                                   launch.threads, nullptr});
  if (!status.ok())
    return status;
  if (!launches.algorithm)
    return Status(StatusCode::Incompatible,
                  "the record of '" + record.symbol +
                      "' has no launch of an algorithm; build the package "
                      "again");
  return launches;
}

/// The variable of an extent.
std::string variableOf(spec::Extent extent) {
  switch (extent) {
  case spec::Extent::HeadsQ:
    return "heads";
  case spec::Extent::HeadDim:
    return "dim";
  case spec::Extent::HeadDimV:
    return "dim_v";
  default:
    return spec::toString(extent);
  }
}

/// What a launch is credited with, for a query and key.
std::string flopsOf(const spec::LaunchSpec &launch) {
  auto products = [](int count, const char *dim) {
    return std::to_string(2 * count) + ".0 * " + dim;
  };
  return "(" + products(launch.credited - launch.creditedV, "dim") + " + " +
         products(launch.creditedV, "dim_v") + ")";
}

/// What a scalar argument is by default.
std::string valueOf(spec::Scalar scalar) {
  switch (scalar) {
  case spec::Scalar::SeqlenQ:
    return "seqlen_q";
  case spec::Scalar::SeqlenK:
    return "seqlen_k";
  case spec::Scalar::HeadsQ:
    return "heads";
  case spec::Scalar::GroupSize:
    return "heads / heads_k";
  case spec::Scalar::Scale:
    return "1 / sqrt(dim)";
  case spec::Scalar::Splits:
    return "splits";
  case spec::Scalar::PackedHeads:
    return "packed_heads";
  }
  return "";
}

/// The value of an argument that is not an address.
std::string valueOf(const std::string &layout, const spec::Signature &signature,
                    const spec::Argument &argument) {
  if (argument.source == spec::Source::Scalar)
    return valueOf(spec::Scalar(argument.index));
  if (argument.source == spec::Source::Feature)
    return argument.name; // a variable, neutral unless it is replaced
  const spec::TensorSpec &tensor = *signature.tensors[argument.index];
  const std::string heads = variableOf(tensor.heads),
                    rows = variableOf(tensor.rows);
  if (tensor.shape == spec::Shape::Heads)
    return "1";
  if (tensor.shape == spec::Shape::BlockCounts ||
      tensor.shape == spec::Shape::BlockLists)
    return "0"; // which are left out
  if (tensor.shape == spec::Shape::Vector)
    return argument.source == spec::Source::StrideBatch ? heads + "*" + rows
                                                        : rows;
  if (tensor.shape == spec::Shape::Places)
    return argument.source == spec::Source::StrideBatch
               ? heads + "*" + rows + "*seqlen_k"
           : argument.source == spec::Source::StrideHead ? rows + "*seqlen_k"
                                                         : "seqlen_k";
  const Strides strides =
      stridesOf(layout, heads, rows, variableOf(tensor.columns));
  return argument.source == spec::Source::StrideBatch  ? strides.batch
         : argument.source == spec::Source::StrideHead ? strides.head
                                                       : strides.row;
}

/// Whether it is left out: of the tensors that only kernels with a feature
/// group have, those that may be.
bool isLeftOut(const KernelRecord &record, const spec::TensorSpec &tensor) {
  for (const spec::GroupSpec *group : spec::groupsOf(record.problem))
    for (const spec::TensorSpec &other : group->tensors)
      if (&other == &tensor)
        return tensor.optional &&
               group != &spec::specOf(record.problem.op).base;
  return false;
}

/// The buffer of a tensor.
json bufferOf(const KernelRecord &record, const spec::TensorSpec &tensor,
              const spec::WorkspaceSpec &workspace, const std::string &layout,
              json fill) {
  const std::string dim = variableOf(tensor.columns);
  json shape = {"batch", variableOf(tensor.heads), variableOf(tensor.rows)};
  if (tensor.shape == spec::Shape::Rows) {
    const std::map<char, std::string> axes = {{'b', "batch"},
                                              {'h', variableOf(tensor.heads)},
                                              {'s', variableOf(tensor.rows)},
                                              {'d', dim}};
    shape = json::array();
    for (char axis : layout)
      shape.push_back(axes.at(axis));
  } else if (tensor.shape == spec::Shape::Places) {
    shape.push_back("seqlen_k");
  } else if (tensor.shape == spec::Shape::Heads) {
    shape = {variableOf(tensor.heads)};
  } else if (tensor.shape == spec::Shape::Sequences) {
    shape = {"batch + 1"};
  } else if (tensor.shape == spec::Shape::Number) {
    shape = {"1"};
  } else if (tensor.shape == spec::Shape::Bytes && workspace.pairStep) {
    shape = {"batch", "heads",
             "align(seqlen_q, " + std::to_string(workspace.rowStep) + ") + " +
                 std::to_string(workspace.spareRows),
             std::to_string(workspace.columns) + " + align(dim, " +
                 std::to_string(workspace.pairStep) + ") / 2"};
  } else if (tensor.shape == spec::Shape::Bytes && workspace.headDim) {
    shape = {"batch",
             "align(heads * seqlen_q, " + std::to_string(workspace.rowStep) +
                 ")" + (workspace.splits ? " * splits" : ""),
             variableOf(*workspace.headDim) + " + " +
                 std::to_string(workspace.columns)};
  }
  const char *type = tensor.elements == spec::Elements::F32
                         ? "f32"
                         : dataTypeInfo(record.problem.dtype).ir;
  return {{"type", type}, {"shape", shape}, {"fill", std::move(fill)}};
}

/// The extent of a captured tensor's dimension: what indexes it says it, or
/// else there are some elements.
std::string extentOf(const spec::CaptureSpec &capture, size_t dim) {
  constexpr std::pair<spec::CaptureIndex, const char *> variables[] = {
      {spec::kByBatch, "batch"},
      {spec::kByHead, "heads"},
      {spec::kByQuery, "seqlen_q"},
      {spec::kByKey, "seqlen_k"}};
  std::string extent;
  for (const auto &[index, variable] : variables)
    if (capture.dims[dim].indices & index)
      extent =
          extent.empty() ? variable : "max(" + extent + ", " + variable + ")";
  if (extent.empty())
    return "256";
  return capture.dims[dim].isUnit
             ? "align(" + extent + ", " +
                   std::to_string(spec::kCaptureAlignment) + ")"
             : extent;
}

std::string strideOf(const spec::CaptureSpec &capture, size_t dim) {
  std::string stride = "1";
  while (++dim != capture.dims.size())
    stride += " * " + extentOf(capture, dim);
  return stride;
}

json captureBuffer(const spec::CaptureSpec &capture, int seed) {
  json shape = json::array(), fill = {{"kind", "normal"}, {"seed", seed}};
  for (size_t dim = 0; dim != capture.dims.size(); ++dim)
    shape.push_back(extentOf(capture, dim));
  const char *type = spec::infoOf(capture.element).name;
  switch (capture.element) {
  case spec::CaptureElement::I1: // true in three of four
    type = "u8";
    [[fallthrough]];
  case spec::CaptureElement::I32:
    fill = {{"kind", "uniform"}, {"seed", seed}, {"low", 0}, {"high", 4}};
    break;
  default:
    break;
  }
  return {{"type", type}, {"shape", shape}, {"fill", fill}};
}

json checkOf(const KernelRecord &record, const std::string &arch,
             const Launches &launches, const spec::Signature &signature,
             const std::vector<spec::CaptureSpec> &captures,
             const std::string &layout) {
  const spec::AlgorithmSpec &algorithm = *launches.algorithm;
  json check = {
      {"kind", std::string("attention-") + toString(record.problem.op)}};
  for (const spec::TensorSpec *tensor : signature.tensors)
    if (tensor->shape != spec::Shape::Bytes && !isLeftOut(record, *tensor))
      check[tensor->name] = tensor->name;
  if (!record.problem.takesWindow())
    check["mask"] = maskInfo(record.problem.mask).option;
  // What other groups pass leaves results as they are.
  if (record.problem.takesWindow())
    for (const spec::ScalarSpec &scalar :
         spec::featureGroups()[kWindowGroup].scalars)
      check[scalar.name] = scalar.name;
  if (!record.score.text.empty()) {
    check["score"] = record.score.text;
    check["captures"] = json::array();
    for (const spec::Argument &argument : signature.arguments)
      if (argument.source == spec::Source::Capture)
        check["captures"].push_back(captures[argument.index].isScalar()
                                        ? json({{"value", argument.name}})
                                        : json({{"buffer", argument.name}}));
  }
  if (algorithm.splitsKeys())
    check["shares"] = "splits";
  if (algorithm.sumsNarrowly())
    for (const Launch &launch : launches.all)
      if (launch.spec->feeds != 0 && launch.spec->products > 0)
        check["narrow_sum_keys"] = launch.blockRows;
  if (record.problem.op == OpKind::Backward &&
      flushesSubnormals(arch, record.problem.dtype)) {
    check["flush_subnormals"] = 1;
    // What is scaled first is lost nowhere; sums in memory are not.
    if (std::any_of(launches.all.begin(), launches.all.end(),
                    [](const Launch &launch) {
                      return launch.spec->feeds && launch.spec->products;
                    }))
      check["flush_score_gradients"] = 1;
  }
  check["axes"] = layout;
  check["scale"] = valueOf(spec::Scalar::Scale);
  return check;
}

} // namespace

Expected<std::string> fovea::describeKernel(const KernelRecord &record,
                                            const std::string &target,
                                            const std::string &codeObject,
                                            const DescriptionOptions &options) {
  const int32_t version = abiVersionOf(record.problem.op);
  if (record.abiVersion != version)
    return Status(StatusCode::Incompatible,
                  "the kernel takes arguments of version " +
                      std::to_string(record.abiVersion) +
                      ", this program knows " + std::to_string(version) +
                      "; compile it again");
  const Expected<Launches> launches = launchesOf(record);
  if (!launches)
    return launches.status();
  const spec::AlgorithmSpec &algorithm = *launches->algorithm;
  const Expected<std::vector<spec::CaptureSpec>> captures =
      spec::capturesOfProgram(record.score.text);
  if (!captures)
    return captures.status();
  const spec::Signature signature =
      spec::signatureOf(record.problem, &algorithm, *captures);

  json arguments = json::array(), buffers = json::object();
  int seed = 0;
  for (const spec::Argument &argument : signature.arguments) {
    std::string value = argument.name;
    bool isNull = false;
    if (argument.source == spec::Source::Address &&
        isLeftOut(record, *signature.tensors[argument.index])) {
      isNull = true;
      value = "0";
    } else if (argument.source == spec::Source::Address) {
      const spec::TensorSpec &tensor = *signature.tensors[argument.index];
      json fill = "nan"; // what is not written shows
      if (!tensor.written)
        fill = {{"kind", "normal"}, {"seed", ++seed}};
      // What a forward pass makes, where it is given.
      if (options.isChecked && !tensor.written &&
          (value == "out" || value == "lse"))
        fill = "reference";
      buffers[argument.name] = bufferOf(record, tensor, algorithm.workspace,
                                        options.layout, std::move(fill));
    } else if (argument.source == spec::Source::Capture) {
      if (const spec::CaptureSpec &capture = (*captures)[argument.index];
          !capture.isScalar())
        buffers[argument.name] = captureBuffer(capture, ++seed);
    } else if (argument.source == spec::Source::CaptureGradient) {
      const spec::CaptureSpec &capture = (*captures)[argument.index];
      json buffer = captureBuffer(capture, 0);
      buffer["type"] = "f32";
      buffer["fill"] = "zeros"; // it is added to
      buffers[argument.name] = std::move(buffer);
    } else if (argument.source == spec::Source::CaptureStride ||
               argument.source == spec::Source::CaptureGradientStride) {
      value = strideOf((*captures)[argument.index], argument.dim);
    } else if (argument.source == spec::Source::CaptureExtent) {
      value = extentOf((*captures)[argument.index], argument.dim);
    } else {
      value = valueOf(options.layout, signature, argument);
    }
    static const char *const kinds[] = {"buffer", "i64", "i32", "f32"};
    arguments.push_back({{"offset", argument.offset},
                         {"kind", isNull ? "i64" : kinds[int(argument.kind)]},
                         {"name", argument.name},
                         {"value", value}});
  }
  json described = json::array();
  for (const Launch &launch : launches->all) {
    described.push_back(
        {{"code_object", codeObject},
         {"kernel", launch.kernel},
         {"grid",
          {variableOf(launch.spec->heads()) +
               (launch.spec->splitsKeys ? " / packed_heads" : ""),
           launch.spec->ownsHeads
               ? "1"
               : "ceildiv(" + variableOf(launch.spec->rows()) +
                     (launch.spec->splitsKeys ? " * packed_heads" : "") + ", " +
                     rowsOf(launch) + ")",
           launch.spec->ownsHeads    ? "1"
           : launch.spec->splitsKeys ? "batch * splits"
                                     : "batch"}},
         {"block", {launch.threads, 1, 1}},
         {"arguments", arguments},
         {"work",
          {{"flops", flopsOf(*launch.spec) + " * batch * heads * " +
                         pairsOf(record.problem, options.window)}}}});
  }
  json description = {{"version", 1}};
  if (!options.name.empty())
    description["name"] = options.name;
  // Code for a family runs on any member; no device is called by its name.
  const std::string arch = target.substr(0, target.find(':'));
  if (const Chip *chip = findChip(arch); !chip || !chip->isGeneric())
    description["target"] = arch;
  description["variables"] = {{"batch", 1},
                              {"heads", options.heads},
                              {"heads_k", "heads"},
                              {"seqlen", options.seqlen},
                              {"seqlen_q", "seqlen"},
                              {"seqlen_k", "seqlen"},
                              {"dim", record.problem.headDim},
                              {"dim_v", record.problem.dimOfV()}};
  if (algorithm.splitsKeys()) {
    description["variables"]["splits"] = options.splits;
    description["variables"]["packed_heads"] = 1;
  }
  for (const spec::GroupSpec *group : spec::groupsOf(record.problem))
    if (group != &spec::specOf(record.problem.op).base)
      for (const spec::ScalarSpec &scalar : group->scalars)
        description["variables"][scalar.name] = scalar.neutral;
  for (size_t i = 0; i != captures->size(); ++i)
    if ((*captures)[i].isScalar())
      description["variables"]["capture" + std::to_string(i)] =
          (*captures)[i].element == spec::CaptureElement::F32 ? json(1.0)
                                                              : json(1);
  if (record.problem.takesWindow())
    for (const auto &[name, value] :
         {std::pair("window_left", windowArgument(options.window.left)),
          {"window_right", windowArgument(options.window.right)},
          {"window_alignment", windowAlignment(options.window)}})
      description["variables"][name] = value;
  description["require"] = {"heads_k > 0 && heads % heads_k == 0",
                            "dim == " + std::to_string(record.problem.headDim),
                            "dim_v == " +
                                std::to_string(record.problem.dimOfV())};
  description["buffers"] = buffers;
  description["launches"] = described;
  if (options.isChecked && spec::specOf(record.problem.op).isAttention)
    description["check"] =
        checkOf(record, arch, *launches, signature, *captures, options.layout);
  try {
    return description.dump(1) + "\n";
  } catch (const json::exception &) {
    return Status(StatusCode::InvalidArgument,
                  "'" + codeObject + "' is not UTF-8, as JSON must be");
  }
}
