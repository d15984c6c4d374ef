//===- Contract.cpp - the launch contract of a kernel ---------------------===//

#include "Contract.h"
#include "fovea/Package/OperationSpec.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fovea;
using namespace fovea::tools;

/// As C's <stdint.h> spells it.
static StringRef typeOf(spec::ArgKind kind) {
  static constexpr StringLiteral types[] = {"global pointer", "int64_t",
                                            "int32_t", "float"};
  return types[static_cast<size_t>(kind)];
}

/// The names of tensors that `wanted` takes, in words: "q, k and v".
template <typename Wanted>
static std::string tensorNames(const spec::Signature &signature,
                               Wanted wanted) {
  SmallVector<StringRef> names;
  for (const spec::TensorSpec *tensor : signature.tensors)
    if (wanted(*tensor))
      names.push_back(tensor->name);
  if (names.size() < 2)
    return llvm::join(names, "");
  std::string last = names.pop_back_val().str();
  return llvm::join(names, ", ") + " and " + last;
}

/// docs/KernelAbi.md, "Launch" and "Limits that the launcher checks".
static std::vector<std::string> conditionsOf(const Job &job,
                                             const spec::Signature &signature) {
  auto isRows = [](const spec::TensorSpec &tensor) {
    return tensor.shape == spec::Shape::Rows ||
           tensor.shape == spec::Shape::Places;
  };
  auto isVector = [](const spec::TensorSpec &tensor) {
    return tensor.shape == spec::Shape::Vector;
  };
  auto isWord = [](const spec::TensorSpec &tensor) {
    return tensor.shape != spec::Shape::Bytes &&
           tensor.elements != spec::Elements::Problem;
  };
  auto isOfBlocks = [](const spec::TensorSpec &tensor) {
    return tensor.shape == spec::Shape::BlockCounts ||
           tensor.shape == spec::Shape::BlockLists;
  };
  auto isWritten = [](const spec::TensorSpec &tensor) {
    return tensor.written;
  };
  // The first blocks to run out of a grid's y are the smallest, of any number
  // of shares.
  std::optional<int32_t> least[2]; // of queries, of keys
  for (const Launch &launch : job.launches) {
    if (launch.kind->ownsHeads)
      continue;
    std::optional<int32_t> &rows = least[launch.kind->ownsKeys];
    const int32_t own =
        launch.kind->rowsOf(launch.record.blockRows, spec::kMaxSplits);
    rows = std::min(rows.value_or(own), own);
  }
  std::string lengths;
  constexpr StringLiteral names[] = {"seqlen_q", "seqlen_k"};
  for (auto [rows, name] : zip_equal(least, names))
    if (rows)
      lengths += formatv("{0} <= {1}, ", name, spec::kMaxGridYZ * *rows).str();

  std::vector<std::string> conditions;
  if (!job.isOneLaunch())
    conditions.push_back("the launches run in the order given, each after the "
                         "one before it has ended, with the same arguments");
  conditions.push_back(
      job.isOneLaunch()
          ? "batch, heads_q and seqlen_q are at least 1; with one of them 0 "
            "there is nothing to launch"
          : "batch, heads_q and heads_k are at least 1; with one of them 0 "
            "there is nothing to launch; a launch whose grid has an extent of "
            "0 is left out");
  if (spec::specOf(job.problem.op).isAttention) {
    conditions.push_back("heads_q is a multiple of heads_k, and group_size is "
                         "heads_q / heads_k");
    conditions.push_back(
        "the head dimension of " + tensorNames(signature, isRows) +
        ", and the sequence dimension of " + tensorNames(signature, isVector) +
        ", are contiguous "
        "(stride 1, not passed)");
  } else {
    conditions.push_back("the keys of " + tensorNames(signature, isWritten) +
                         " are contiguous (stride 1, not passed)");
  }
  conditions.push_back(
      "all strides are >= 0, in elements; those of the "
      "sequence at most " +
      std::to_string(spec::maxSeqStride(elementSize(job.problem.dtype))));
  conditions.push_back(
      formatv("addresses of {0} are multiples of {1} bytes, of {2} of 4, of a "
              "workspace of {3}; multiples of 16 are the fast case",
              tensorNames(signature, isRows), elementSize(job.problem.dtype),
              tensorNames(signature, isWord), spec::kWorkspaceAlignment)
          .str());
  if (std::string lists = tensorNames(signature, isOfBlocks); !lists.empty())
    conditions.push_back(
        formatv("the last dimension of {0} is contiguous; q_block and "
                "kv_block are multiples of {1} up to 2^30, and the entries of "
                "a row times the size of their blocks less than 2^31, where "
                "the size is no power of two times its square less than 2^37",
                lists, spec::kListBlockUnit)
            .str());
  conditions.push_back(
      formatv("the grid's y and z are at most {0}: {1}{2} <= {0}",
              spec::kMaxGridYZ, lengths,
              job.algorithm->splitsKeys() ? "batch * splits" : "batch")
          .str());
  if (job.algorithm->splitsKeys())
    conditions.push_back(
        formatv("splits is at least 1 and at most {0}; heads_q, and blocks of "
                "{1} keys, are at most {2}",
                spec::kMaxSplits, job.blockN, spec::kMostOfSplitLaunch)
            .str());
  if (job.algorithm->splitsKeys())
    conditions.push_back(
        formatv("packed_heads is 1, or, without dropout, lengths of queries, "
                "lists of blocks or a score program, group_size: rows of a "
                "head are then at most {0}, packed_heads times as many at most "
                "{1}, and span less than 2^31 bytes of q",
                job.blockM, spec::kMaxGridYZ)
            .str());
  conditions.push_back(
      formatv("seqlen_q and seqlen_k are at most {0}", spec::kMaxSeqlen).str());
  if (job.problem.op == OpKind::Forward)
    conditions.push_back("scale is finite");
  if (job.problem.op == OpKind::Backward)
    conditions.push_back("scale is finite, and it is that of the forward pass; "
                         "out and lse are its results");
  conditions.push_back(tensorNames(signature, isWritten) +
                       " overlap no input and not one another");
  conditions.push_back("the launch passes 0 bytes of dynamic LDS");
  return conditions;
}

/// The grid of one launch. \param rows  what has the rows of a block
static void writeGrid(json::OStream &json, const spec::LaunchSpec &launch,
                      StringRef rows) {
  json.attributeObject("grid", [&] {
    json.attribute("unit", "workgroups");
    json.attribute("x", formatv("{0}{1}", spec::toString(launch.heads()),
                                launch.splitsKeys ? " / packed_heads" : "")
                            .str());
    std::string blocks =
        formatv("ceil({0}{1} / {2})", spec::toString(launch.rows()),
                launch.splitsKeys ? " * packed_heads" : "", rows);
    if (launch.sharesOfBlock)
      blocks = formatv("splits <= {0} ? {1} : {2}", launch.sharesOfBlock,
                       blocks, spec::toString(launch.rows()));
    json.attribute("y", launch.ownsHeads ? "1" : blocks);
    json.attribute("z", launch.ownsHeads    ? "1"
                        : launch.splitsKeys ? "batch * splits"
                                            : "batch");
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

static void writeArguments(json::OStream &json,
                           const spec::Signature &signature) {
  json.attributeArray("arguments", [&] {
    for (const spec::Argument &argument : signature.arguments)
      json.object([&] {
        json.attribute("name", argument.name);
        json.attribute("type", typeOf(argument.kind));
        json.attribute("offset", int64_t(argument.offset));
        json.attribute("size", int64_t(spec::sizeOf(argument.kind)));
        json.attribute("unit", argument.unit);
        json.attribute("meaning", argument.meaning);
      });
  });
}

/// The groups of arguments and their versions.
static void writeGroups(json::OStream &json, const Job &job) {
  json.attribute("abi_version", spec::specOf(job.problem.op).base.version);
  json.attributeObject("argument_groups", [&] {
    for (const spec::GroupSpec *group :
         spec::groupsOf(job.problem, job.algorithm))
      json.attribute(group->name, group->version);
  });
}

/// The only launch of an operation, as fields of the contract.
static void writeLaunch(json::OStream &json, const Job &job,
                        const CompiledKernel &kernel) {
  json.attribute("block_m", job.blockM);
  json.attribute("wave_size", job.target->waveSize);
  writeGrid(json, job.algorithm->launches[0], "block_m");
  writeSizes(json, job.launches.front(), kernel.resources);
}

static void writeLaunches(json::OStream &json, const Job &job,
                          const CompiledKernel &kernel) {
  json.attribute("wave_size", job.target->waveSize);
  json.attributeArray("launches", [&] {
    for (auto [launch, figures] : zip_equal(job.launches, kernel.launches))
      json.object([&, &launch = launch, &figures = figures] {
        json.attribute("kernel", launch.symbol);
        json.attribute("block_rows", launch.record.blockRows);
        writeGrid(json, *launch.kind, "block_rows");
        writeSizes(json, launch, figures.resources);
      });
  });
  json.attribute("algorithm", job.algorithm->name);
  const spec::WorkspaceSpec &workspace = job.algorithm->workspace;
  int64_t row = workspace.bytesOfRow(workspace.dimOf(job.problem));
  json.attribute("workspace_bytes",
                 workspace.pairStep
                     ? formatv("{0} * batch * heads_q * (ceil(seqlen_q / {1}) "
                               "* {1} + {2})",
                               row, workspace.rowStep, workspace.spareRows)
                           .str()
                 : workspace.rowStep == 1
                     ? formatv("{0} * batch * heads_q * seqlen_q{1}", row,
                               workspace.splits ? " * splits" : "")
                           .str()
                     : formatv("{0} * batch * ceil(heads_q * seqlen_q / {1}) * "
                               "{1}",
                               row, workspace.rowStep)
                           .str());
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
    if (spec::specOf(job.problem.op).isAttention) {
      json.attribute("head_dim", job.problem.headDim);
      if (job.problem.headDimV)
        json.attribute("head_dim_v", job.problem.headDimV);
      json.attribute("mask", job.problem.takesWindow()
                                 ? "any, by window arguments"
                                 : toString(job.problem.mask));
    }
    json.attribute("problem", job.problem.str());
    json.attribute("schedule", job.schedule);
    const spec::Signature signature = job.signature();
    writeGroups(json, job);
    if (job.isOneLaunch())
      writeLaunch(json, job, kernel);
    else
      writeLaunches(json, job, kernel);
    writeArguments(json, signature);
    json.attributeArray("conditions", [&] {
      for (const std::string &condition : conditionsOf(job, signature))
        json.value(condition);
    });
  });
  os << "\n";
  return text;
}
