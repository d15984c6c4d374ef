//===- Description.cpp - kernels of this project described ----------------===//
//
// The arguments, buffers and launches of an operation's kernels, from the
// tables that compiler and runtime share.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Description.h"
#include "fovea/Package/BackwardAbi.h"
#include "fovea/Package/Chips.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace fovea;
using json = nlohmann::ordered_json;

namespace {

/// Where a tensor's axes lie: strides of batch, head and row for tensors of
/// `heads` heads and `rows` rows.
struct Strides {
  std::string batch, head, row;
};

Strides stridesOf(const std::string &layout, const std::string &heads,
                  const std::string &rows) {
  if (layout == "bshd")
    return {heads + "*dim*" + rows, "dim", heads + "*dim"};
  if (layout == "sbhd")
    return {heads + "*dim", "dim", "batch*" + heads + "*dim"};
  return {heads + "*dim*" + rows, "dim*" + rows, "dim"};
}

/// Key-query pairs of one head that count, for the credited operations: the
/// half of a square is usual for causal masks.
std::string pairsOf(MaskKind mask) {
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
  bool ownsKeys; ///< grid and rows are those of K and V, or else of Q
  int products;  ///< matrix products that it is credited with
};

/// Products of the kernels of a backward pass: of the five that the gradients
/// take. What a kernel computes again is not credited.
int creditedProducts(const abi::BackwardLaunch &launch) {
  constexpr int ofQ = 1, ofKV = 4;
  return launch.products == 0 ? 0
         : launch.writes & abi::kGradientQ
             ? ofQ
             : ofKV + (launch.feeds & abi::kGradientQ ? ofQ : 0);
}

Expected<std::vector<Launch>> launchesOf(const KernelRecord &record) {
  std::vector<Launch> launches;
  if (record.launches.empty())
    launches.push_back({record.symbol, record.blockM, record.threads,
                        /*ownsKeys=*/false, /*products=*/2});
  for (const LaunchRecord &launch : record.launches) {
    const abi::BackwardLaunch *known =
        abi::findBackwardKernel(launch.suffix).launch;
    if (!known)
      return Status(StatusCode::Incompatible,
                    "the kernel '" + launch.suffix +
                        "' is unknown to this program");
    launches.push_back({record.symbolOf(launch), launch.blockRows,
                        launch.threads, known->ownsKeys,
                        creditedProducts(*known)});
  }
  return launches;
}

/// Whether a tensor has the heads and rows of K and V, or else of Q.
bool isOfKeys(const std::string &tensor) {
  return tensor == "k" || tensor == "v" || tensor == "dk" || tensor == "dv";
}

/// The value of an argument that is not an address.
std::string valueOf(const std::string &layout, const std::string &name) {
  static const std::map<std::string, std::string> values = {
      {"lse_stride_batch", "heads*seqlen_q"},
      {"lse_stride_head", "seqlen_q"},
      {"seqlen_q", "seqlen_q"},
      {"seqlen_k", "seqlen_k"},
      {"heads_q", "heads"},
      {"group_size", "heads / heads_k"},
      {"scale", "1 / sqrt(dim)"}};
  if (auto found = values.find(name); found != values.end())
    return found->second;
  const size_t end = name.find("_stride_");
  const bool ofKeys = isOfKeys(name.substr(0, end));
  const Strides strides = stridesOf(layout, ofKeys ? "heads_k" : "heads",
                                    ofKeys ? "seqlen_k" : "seqlen_q");
  const std::string axis = name.substr(end + std::strlen("_stride_"));
  return axis == "batch"  ? strides.batch
         : axis == "head" ? strides.head
                          : strides.row;
}

/// The buffer of a pointer argument.
json bufferOf(const KernelRecord &record, const std::string &layout,
              const std::string &name, json fill) {
  json shape = {"batch", "heads", "seqlen_q"};
  std::string type = "f32";
  if (name != "lse" && name != "workspace") {
    type = record.problem.dtype == DataType::F16 ? "f16" : "bf16";
    const std::string keys = isOfKeys(name) ? "_k" : "";
    const std::map<char, std::string> axes = {
        {'b', "batch"},
        {'h', "heads" + keys},
        {'s', keys.empty() ? "seqlen_q" : "seqlen_k"},
        {'d', "dim"}};
    shape = json::array();
    for (char axis : layout)
      shape.push_back(axes.at(axis));
  }
  return {{"type", type}, {"shape", shape}, {"fill", std::move(fill)}};
}

json checkOf(const KernelRecord &record, const std::string &layout) {
  const bool forward = record.problem.op == Operation::Forward;
  json check = {{"kind", forward ? "attention-forward" : "attention-backward"}};
  for (const char *name : {"q", "k", "v", "out", "lse"})
    check[name] = name;
  if (!forward)
    for (const char *name : {"dout", "dq", "dk", "dv"})
      check[name] = name;
  std::string mask = toString(record.problem.mask);
  std::replace(mask.begin(), mask.end(), '_', '-');
  check["mask"] = mask;
  check["axes"] = layout;
  check["scale"] = valueOf(layout, "scale");
  return check;
}

} // namespace

Expected<std::string> fovea::describeKernel(const KernelRecord &record,
                                            const std::string &target,
                                            const std::string &codeObject,
                                            const DescriptionOptions &options) {
  const bool forward = record.problem.op == Operation::Forward;
  const int32_t version = abiVersionOf(record.problem.op);
  if (record.abiVersion != version)
    return Status(StatusCode::Incompatible,
                  "the kernel takes arguments of version " +
                      std::to_string(record.abiVersion) +
                      ", this program knows " + std::to_string(version) +
                      "; compile it again");
  const Expected<std::vector<Launch>> launches = launchesOf(record);
  if (!launches)
    return launches.status();
  std::vector<abi::ArgInfo> infos;
  std::set<std::string> outputs, forwards;
  if (forward) {
    infos.assign(std::begin(abi::kForwardArgs), std::end(abi::kForwardArgs));
    outputs = {"out", "lse"};
  } else {
    infos.assign(std::begin(abi::kBackwardArgs), std::end(abi::kBackwardArgs));
    outputs = {"dq", "dk", "dv", "workspace"};
    forwards = {"out", "lse"};
  }

  // Sums of dQ beside delta.
  const bool sums = !forward && !record.launches.empty() &&
                    !abi::findBackwardKernel(record.launches.front().suffix)
                         .algorithm->deterministic;
  json arguments = json::array(), buffers = json::object();
  int seed = 0;
  for (const abi::ArgInfo &info : infos) {
    static const char *const kinds[] = {"buffer", "i64", "i32", "f32"};
    std::string value = info.name;
    if (info.kind == abi::ArgKind::Pointer) {
      json fill = "nan"; // what is not written shows
      if (!outputs.count(info.name))
        fill = {{"kind", "normal"}, {"seed", ++seed}};
      if (options.isChecked && forwards.count(info.name))
        fill = "reference";
      buffers[info.name] =
          bufferOf(record, options.layout, info.name, std::move(fill));
    } else {
      value = valueOf(options.layout, info.name);
    }
    if (sums && value == "workspace")
      buffers[value]["shape"] = {"batch",
                                 "align(heads * seqlen_q, " +
                                     std::to_string(abi::kWorkspaceRowStep) +
                                     ")",
                                 "dim + 1"};
    arguments.push_back({{"offset", info.offset},
                         {"kind", kinds[int(info.kind)]},
                         {"name", info.name},
                         {"value", value}});
  }
  json described = json::array();
  for (const Launch &launch : *launches) {
    const std::string rows = launch.ownsKeys ? "seqlen_k" : "seqlen_q";
    described.push_back(
        {{"code_object", codeObject},
         {"kernel", launch.kernel},
         {"grid",
          {launch.ownsKeys ? "heads_k" : "heads",
           "ceildiv(" + rows + ", " + std::to_string(launch.blockRows) + ")",
           "batch"}},
         {"block", {launch.threads, 1, 1}},
         {"arguments", arguments},
         {"work",
          {{"flops", std::to_string(2 * launch.products) +
                         ".0 * batch * heads * dim * " +
                         pairsOf(record.problem.mask)}}}});
  }
  const std::string dim = std::to_string(record.problem.headDim);
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
                              {"dim", record.problem.headDim}};
  description["require"] = {"heads_k > 0 && heads % heads_k == 0",
                            "dim == " + dim};
  description["buffers"] = buffers;
  description["launches"] = described;
  if (options.isChecked)
    description["check"] = checkOf(record, options.layout);
  try {
    return description.dump(1) + "\n";
  } catch (const json::exception &) {
    return Status(StatusCode::InvalidArgument,
                  "'" + codeObject + "' is not UTF-8, as JSON must be");
  }
}
