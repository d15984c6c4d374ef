//===- Contract.cpp - the launch contract of a kernel ---------------------===//

#include "Contract.h"
#include "fovea/Package/ForwardAbi.h"
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
static std::vector<std::string> launchConditions(const Job &job) {
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

std::string
fovea::tools::contractJson(const Job &job,
                           const hsaco::KernelResources &resources) {
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
    json.attribute("abi_version", abi::kForwardAbiVersion);
    json.attribute("block_m", job.blockM);
    json.attribute("wave_size", job.target->waveSize);
    json.attributeObject("grid", [&] {
      json.attribute("unit", "workgroups");
      json.attribute("x", "heads_q");
      json.attribute("y", "ceil(seqlen_q / block_m)");
      json.attribute("z", "batch");
    });
    json.attributeArray("workgroup_size", [&] {
      for (int64_t extent : {int64_t(job.threads), int64_t(1), int64_t(1)})
        json.value(extent);
    });
    json.attribute("lds_bytes", resources.ldsBytes);
    json.attribute("dynamic_lds_bytes", 0);
    json.attribute("kernarg_bytes", resources.kernargBytes);
    json.attributeArray("arguments", [&] {
      for (const abi::ArgInfo &argument : abi::kForwardArgs)
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
    json.attributeArray("conditions", [&] {
      for (const std::string &condition : launchConditions(job))
        json.value(condition);
    });
  });
  os << "\n";
  return text;
}
