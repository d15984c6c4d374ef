//===- Contract.cpp - the launch contract of a kernel ---------------------===//

#include "Contract.h"
#include "fovea/Package/BackwardAbi.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fovea;
using namespace fovea::tools;

namespace {
struct KindInfo {
  abi::ArgKind kind;
  StringLiteral type; ///< as C's <stdint.h> spells it
  int64_t size;       ///< bytes
};
} // namespace

static constexpr KindInfo kKinds[] = {
    {abi::ArgKind::Pointer, "global pointer", 8},
    {abi::ArgKind::I64, "int64_t", 8},
    {abi::ArgKind::I32, "int32_t", 4},
    {abi::ArgKind::F32, "float", 4},
};

static const KindInfo &kindInfo(abi::ArgKind kind) {
  return *llvm::find_if(
      kKinds, [&](const KindInfo &info) { return info.kind == kind; });
}

/// docs/KernelAbi.md, "Launch" and "Limits that the launcher checks".
static std::vector<std::string> forwardConditions(const Job &job) {
  return {
      "batch, heads_q and seqlen_q are at least 1; with one of them 0 there is "
      "nothing to launch",
      "heads_q is a multiple of heads_k, and group_size is heads_q / heads_k",
      "the head dimension of q, k, v and out, and the sequence dimension of "
      "lse, are contiguous (stride 1, not passed)",
      "all strides are >= 0, in elements",
      formatv("q_stride_seq, k_stride_seq, v_stride_seq and out_stride_seq are "
              "at most {0}",
              abi::kMaxSeqStride)
          .str(),
      formatv("addresses of q, k, v and out are multiples of {0} bytes, of lse "
              "of 4; multiples of 16 are the fast case",
              elementSize(job.problem.dtype))
          .str(),
      formatv("the grid's y and z are at most 65535: seqlen_q <= {0}, batch <= "
              "65535",
              int64_t(65535) * job.blockM)
          .str(),
      formatv("seqlen_q and seqlen_k are at most {0}", abi::kMaxSeqlen).str(),
      "scale is finite",
      "out and lse overlap no input",
      "the launch passes 0 bytes of dynamic LDS",
  };
}

/// docs/KernelAbi.md, "Backward".
static std::vector<std::string> backwardConditions(const Job &job) {
  // The first blocks to run out of a grid's y are the smallest.
  int32_t least[] = {256, 256}; // of queries, of keys
  for (auto [launch, info] : zip_equal(job.launches, job.algorithm->launches))
    least[info.ownsKeys] =
        std::min(least[info.ownsKeys], launch.record.blockRows);
  return {
      "the launches run in the order given, each after the one before it has "
      "ended, with the same arguments",
      "batch, heads_q and heads_k are at least 1; with one of them 0 there is "
      "nothing to launch; a launch whose grid has an extent of 0 is left out",
      "heads_q is a multiple of heads_k, and group_size is heads_q / heads_k",
      "the head dimension of all tensors, and the sequence dimension of lse, "
      "are contiguous (stride 1, not passed)",
      "all strides are >= 0, in elements",
      formatv("all strides of the sequence are at most {0}", abi::kMaxSeqStride)
          .str(),
      formatv("addresses of all tensors are multiples of {0} bytes, of lse of "
              "4, of workspace of 16; multiples of 16 are the fast case",
              elementSize(job.problem.dtype))
          .str(),
      formatv("the grid's y and z are at most 65535: seqlen_q <= {0}, seqlen_k "
              "<= {1}, batch <= 65535",
              int64_t(65535) * least[0], int64_t(65535) * least[1])
          .str(),
      formatv("seqlen_q and seqlen_k are at most {0}", abi::kMaxSeqlen).str(),
      "scale is finite, and it is that of the forward pass; out and lse are "
      "its results",
      "dq, dk, dv and workspace overlap no input and not one another",
      "the launch passes 0 bytes of dynamic LDS",
  };
}

/// The grid of one launch. \param ownsKeys  its workgroups share out K's rows.
static void writeGrid(json::OStream &json, bool ownsKeys, StringRef rows) {
  json.attributeObject("grid", [&] {
    json.attribute("unit", "workgroups");
    json.attribute("x", ownsKeys ? "heads_k" : "heads_q");
    json.attribute("y", formatv("ceil({0} / {1})",
                                ownsKeys ? "seqlen_k" : "seqlen_q", rows)
                            .str());
    json.attribute("z", "batch");
  });
}

/// What the code object says of one launch.
static void writeSizes(json::OStream &json, const Launch &launch,
                       const hsaco::KernelResources &resources) {
  json.attributeArray("workgroup_size", [&] {
    for (int64_t extent :
         {int64_t(launch.record.threads), int64_t(1), int64_t(1)})
      json.value(extent);
  });
  json.attribute("lds_bytes", resources.ldsBytes);
  json.attribute("dynamic_lds_bytes", 0);
  json.attribute("kernarg_bytes", resources.kernargBytes);
}

static void writeArguments(json::OStream &json, ArrayRef<abi::ArgInfo> all) {
  json.attributeArray("arguments", [&] {
    for (const abi::ArgInfo &argument : all)
      json.object([&] {
        const KindInfo &kind = kindInfo(argument.kind);
        json.attribute("name", argument.name);
        json.attribute("type", kind.type);
        json.attribute("offset", int64_t(argument.offset));
        json.attribute("size", kind.size);
        json.attribute("unit", argument.unit);
        json.attribute("meaning", argument.meaning);
      });
  });
}

static void writeConditions(json::OStream &json,
                            ArrayRef<std::string> conditions) {
  json.attributeArray("conditions", [&] {
    for (const std::string &condition : conditions)
      json.value(condition);
  });
}

static void writeForward(json::OStream &json, const Job &job,
                         const CompiledKernel &kernel) {
  json.attribute("abi_version", abi::kForwardAbiVersion);
  json.attribute("block_m", job.blockM);
  json.attribute("wave_size", job.target->waveSize);
  writeGrid(json, /*ownsKeys=*/false, "block_m");
  writeSizes(json, job.launches.front(), kernel.resources);
  writeArguments(json, abi::kForwardArgs);
  writeConditions(json, forwardConditions(job));
}

static void writeBackward(json::OStream &json, const Job &job,
                          const CompiledKernel &kernel) {
  json.attribute("abi_version", abi::kBackwardAbiVersion);
  json.attribute("wave_size", job.target->waveSize);
  json.attributeArray("launches", [&] {
    for (auto [launch, figures, info] :
         zip_equal(job.launches, kernel.launches, job.algorithm->launches))
      json.object([&, &launch = launch, &figures = figures, &info = info] {
        json.attribute("kernel", launch.symbol);
        json.attribute("block_rows", launch.record.blockRows);
        writeGrid(json, info.ownsKeys, "block_rows");
        writeSizes(json, launch, figures.resources);
      });
  });
  json.attribute("algorithm", job.algorithm->name);
  int64_t row =
      abi::backwardWorkspaceBytes(*job.algorithm, 1, 1, abi::kWorkspaceRowStep,
                                  job.problem.headDim) /
      abi::kWorkspaceRowStep;
  json.attribute("workspace_bytes",
                 job.algorithm->deterministic
                     ? formatv("{0} * batch * heads_q * seqlen_q", row).str()
                     : formatv("{0} * batch * ceil(heads_q * seqlen_q / {1}) * "
                               "{1}",
                               row, abi::kWorkspaceRowStep)
                           .str());
  writeArguments(json, abi::kBackwardArgs);
  writeConditions(json, backwardConditions(job));
}

std::string fovea::tools::contractJson(const Job &job,
                                       const CompiledKernel &kernel) {
  std::string text;
  raw_string_ostream os(text);
  json::OStream json(os, 2);
  json.object([&] {
    json.attribute("kernel", job.symbol);
    json.attribute("target", job.target->name);
    json.attribute("op", toString(job.problem.op));
    json.attribute("dtype", toString(job.problem.dtype));
    json.attribute("head_dim", job.problem.headDim);
    json.attribute("mask", toString(job.problem.mask));
    json.attribute("problem", job.problem.str());
    json.attribute("schedule", job.schedule);
    switch (job.problem.op) {
    case Operation::Forward:
      return writeForward(json, job, kernel);
    case Operation::Backward:
      return writeBackward(json, job, kernel);
    }
  });
  os << "\n";
  return text;
}
