//===- PackageDescription.cpp - kernels of packages described -------------===//
//
// The arguments, buffers and launches of an operation's kernels, from the
// tables that compiler and runtime share.
//
//===----------------------------------------------------------------------===//

#include "TimeRun.h"

#include "fovea/Package/BackwardAbi.h"
#include "fovea/Package/Package.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;

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
std::string pairsOf(const std::string &mask) {
  if (mask == "causal-top-left")
    return "(seqlen_q <= seqlen_k ? seqlen_q * seqlen_q / 2.0"
           " : seqlen_q * seqlen_k - seqlen_k * seqlen_k / 2.0)";
  if (mask == "causal-bottom-right")
    return "(seqlen_q <= seqlen_k ? seqlen_q * seqlen_k - seqlen_q * seqlen_q "
           "/ 2.0"
           " : seqlen_k * seqlen_k / 2.0)";
  return "(1.0 * seqlen_q * seqlen_k)";
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

bool launchesOf(const KernelRecord &record, std::vector<Launch> &launches,
                std::string &error) {
  if (record.launches.empty())
    launches.push_back({record.symbol, record.blockM, record.threads,
                        /*ownsKeys=*/false, /*products=*/2});
  for (const LaunchRecord &launch : record.launches) {
    const abi::BackwardLaunch *known =
        abi::findBackwardKernel(launch.suffix).launch;
    if (!known) {
      error = "the kernel '" + launch.suffix + "' is unknown to this program";
      return false;
    }
    launches.push_back({record.symbolOf(launch), launch.blockRows,
                        launch.threads, known->ownsKeys,
                        creditedProducts(*known)});
  }
  return true;
}

/// Whether a tensor has the heads and rows of K and V, or else of Q.
bool isOfKeys(const std::string &tensor) {
  return tensor == "k" || tensor == "v" || tensor == "dk" || tensor == "dv";
}

/// The value of an argument that is not an address.
std::string valueOf(const PackageQuery &query, const std::string &name) {
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
  const Strides strides = stridesOf(query.layout, ofKeys ? "heads_k" : "heads",
                                    ofKeys ? "seqlen_k" : "seqlen_q");
  const std::string axis = name.substr(end + std::strlen("_stride_"));
  return axis == "batch"  ? strides.batch
         : axis == "head" ? strides.head
                          : strides.row;
}

/// The buffer of a pointer argument.
/// \param seed  of its values; 0: the kernels write it
json bufferOf(const PackageQuery &query, const std::string &name, int seed) {
  json fill = "nan";
  if (seed)
    fill = {{"kind", "normal"}, {"seed", seed}};
  json shape = {"batch", "heads", "seqlen_q"};
  std::string type = "f32";
  if (name != "lse" && name != "workspace") {
    type = query.dtype == "fp16" ? "f16" : "bf16";
    shape = isOfKeys(name) ? json{"batch", "heads_k", "seqlen_k", "dim"}
                           : json{"batch", "heads", "seqlen_q", "dim"};
  }
  return {{"type", type}, {"shape", shape}, {"fill", fill}};
}

} // namespace

bool timing::packageDescription(const PackageQuery &query,
                                const std::string &target,
                                const std::string &codeObject,
                                const KernelRecord &record, std::string &text,
                                std::string &error) {
  const bool forward = record.problem.op == Operation::Forward;
  const int32_t version = abiVersionOf(record.problem.op);
  if (record.abiVersion != version) {
    error = "the kernel takes arguments of version " +
            std::to_string(record.abiVersion) + ", this program knows " +
            std::to_string(version) + "; compile it again";
    return false;
  }
  std::vector<Launch> launches;
  if (!launchesOf(record, launches, error))
    return false;
  std::vector<abi::ArgInfo> infos;
  std::set<std::string> outputs;
  if (forward) {
    infos.assign(std::begin(abi::kForwardArgs), std::end(abi::kForwardArgs));
    outputs = {"out", "lse"};
  } else {
    infos.assign(std::begin(abi::kBackwardArgs), std::end(abi::kBackwardArgs));
    outputs = {"dq", "dk", "dv", "workspace"};
  }

  // Sums of dQ beside delta.
  const bool sums = !forward && !launches.empty() &&
                    !abi::findBackwardKernel(record.launches.front().suffix)
                         .algorithm->deterministic;
  json arguments = json::array(), buffers = json::object();
  int seed = 0;
  for (const abi::ArgInfo &info : infos) {
    static const char *const kinds[] = {"buffer", "i64", "i32", "f32"};
    std::string value = info.name;
    if (info.kind == abi::ArgKind::Pointer)
      buffers[info.name] =
          bufferOf(query, info.name, outputs.count(info.name) ? 0 : ++seed);
    else
      value = valueOf(query, info.name);
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
  for (const Launch &launch : launches) {
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
                         pairsOf(query.mask)}}}});
  }
  const json description = {{"version", 1},
                            {"target", target.substr(0, target.find(':'))},
                            {"variables",
                             {{"batch", 1},
                              {"heads", 16},
                              {"heads_k", "heads"},
                              {"seqlen", 4096},
                              {"seqlen_q", "seqlen"},
                              {"seqlen_k", "seqlen"},
                              {"dim", query.headDim}}},
                            {"require",
                             {"heads_k > 0 && heads % heads_k == 0",
                              "dim == " + std::to_string(query.headDim)}},
                            {"buffers", buffers},
                            {"launches", described}};
  text = description.dump(1);
  return true;
}
