//===- Params.cpp - an operation's parameters -----------------------------===//

#include "Params.h"

#include "Scores.h"

#include <cstring>

namespace fovea::rt {
namespace {

/// A workspace as a tensor.
TensorParam memoryOf(const spec::TensorSpec &spec, const Problem &problem) {
  TensorParam memory{};
  memory.name = spec.name;
  memory.data = problem.workspace.data;
  memory.place = kWorkspacePlace;
  memory.unwanted = true; // its bytes are checked when they are known
  return memory;
}

/// Fills in the base group's tensors and what is wanted of them, and checks the
/// strides of all.
Result readTensors(const void *params, Problem &problem) {
  const OpKind op = problem.key.op;
  const spec::GroupSpec &base = spec::specOf(op).base;
  const spec::Rows<params::TensorField> fields = params::tensorFieldsOf(op);
  bool any = problem.describesOutputs;
  for (size_t i = 0; i != base.tensors.size(); ++i) {
    const spec::TensorSpec &spec = base.tensors[i];
    if (spec.shape == spec::Shape::Bytes) {
      problem.tensors[i] = memoryOf(spec, problem);
      continue;
    }
    TensorParam tensor = readTensor(params, fields[i], spec, problem);
    tensor.place = uint8_t(i);
    if (spec.output != spec::kNoOutput) {
      // A single output is always wanted.
      const bool described = spec.output == spec::kOut ||
                             spec.output == spec::kMask || tensor.isDescribed();
      tensor.unwanted = !described;
      any |= described;
      if (described && tensor.hasElements())
        problem.wanted |= spec.output;
    }
    problem.tensors[i] = tensor;
  }
  for (const spec::AlgorithmSpec &algorithm : spec::specOf(op).algorithms)
    for (const spec::TensorSpec &spec : algorithm.own.tensors) {
      problem.tensors.resize(problem.tensors.size() + 1);
      problem.tensors[problem.tensors.size() - 1] = memoryOf(spec, problem);
    }
  if (!any)
    return invalid("dq, dk and dv are all zero, so no gradient is wanted; "
                   "describe those that are");
  return checkStrides(problem);
}

Result checkRows(const Sizes &sizes) {
  // Bounds the workspace and the kernels' row numbers. An output is no bound:
  // it may be unwanted, and the other tensors broadcast.
  int64_t rows = 0;
  if (__builtin_mul_overflow(sizes.batch * sizes.headsQ, sizes.seqlenQ,
                             &rows) ||
      rows > int64_t(1) << 50)
    return invalid("batch x heads_q x seqlen_q (" +
                   std::to_string(sizes.batch) + " x " +
                   std::to_string(sizes.headsQ) + " x " +
                   std::to_string(sizes.seqlenQ) + ") is more than 2^50");
  // Those of packed sequences are the tensors', however short each is.
  if (sizes.packedQ > 0 &&
      (__builtin_mul_overflow(sizes.headsQ, sizes.packedQ, &rows) ||
       rows > int64_t(1) << 50))
    return invalid("heads_q x varlen.q.total (" + std::to_string(sizes.headsQ) +
                   " x " + std::to_string(sizes.packedQ) +
                   ") is more than 2^50");
  return Result();
}

/// What the structures of all operations have, by the same names.
template <typename Params>
Result readCommon(const Params *given, uint32_t firstSize, Params &known,
                  Problem &problem) {
  if (Result result = readVersioned("params", given, firstSize, known);
      !result.ok())
    return result;
  const Params &p = known;
  problem.kernel = p.kernel;
  problem.workspace = {p.workspace, p.workspace_bytes};
  problem.stream = p.stream;
  Sizes sizes;
  sizes.scale = p.scale;
  for (const spec::Extent extent : spec::kExtents)
    sizes.of(extent) = p.*params::sizeField<Params>(extent);
  return readSizes(params::Interface<Params>::op, sizes,
                   {p.dtype, p.mask, p.reserved, p.groups}, problem);
}

/// Whether the rows of all heads that share a key head can be numbered and
/// addressed as those of one.
bool canPackHeads(const Problem &problem) {
  const Sizes &sizes = problem.sizes;
  if (sizes.headsQ <= sizes.headsK || problem.headsDiffer ||
      problem.queriesDiffer)
    return false;
  const TensorParam &q = problem.tensors[0];
  const int64_t group = sizes.headsQ / sizes.headsK;
  const double elements =
      double(group - 1) * double(q.strideHead) +
      double(sizes.seqlenQ) * double(q.strideSeq) + double(sizes.headDim);
  return group * sizes.seqlenQ <= spec::kMaxGridYZ &&
         elements * double(q.elementBytes) < 0x1p31;
}

Result checkReserved2(uint32_t reserved2) {
  if (reserved2 == 0)
    return Result();
  return invalid("reserved2 is " + std::to_string(reserved2) +
                 "; set the structure to zero before filling it");
}

} // namespace

Result readParams(const fovea_forward_params_t *params, Problem &problem) {
  fovea_forward_params_t known;
  if (Result result =
          readCommon(params, kForwardParamsFirstSize, known, problem);
      !result.ok())
    return result;
  if (known.splits > uint32_t(spec::kMaxSplits))
    return invalid("splits is " + std::to_string(known.splits) +
                   ", not in 0 to " + std::to_string(spec::kMaxSplits));
  if (Result result = checkReserved2(known.reserved2); !result.ok())
    return result;
  problem.splits = int32_t(known.splits);
  if (Result result = readTensors(&known, problem); !result.ok())
    return result;
  problem.headsCanPack = canPackHeads(problem);
  return Result();
}

Result readParams(const fovea_dropout_mask_params_t *params, Problem &problem) {
  fovea_dropout_mask_params_t known;
  if (Result result =
          readVersioned("params", params, kDropoutMaskParamsFirstSize, known);
      !result.ok())
    return result;
  problem.kernel = known.kernel;
  problem.stream = known.stream;
  Sizes sizes;
  sizes.batch = known.batch;
  sizes.headsQ = sizes.headsK = known.heads_q;
  sizes.seqlenQ = known.seqlen_q;
  sizes.seqlenK = known.seqlen_k;
  if (Result result = readSizes(
          OpKind::DropoutMask, sizes,
          {known.dtype, FOVEA_MASK_NONE, known.reserved, known.groups},
          problem);
      !result.ok())
    return result;
  // Its kernels always have it, neutral where nothing is dropped.
  problem.key.groups = spec::neededGroups(problem.key.op);
  if (Result result = readTensors(&known, problem); !result.ok())
    return result;
  return checkRows(sizes);
}

Result readParams(const fovea_backward_params_t *params, Problem &problem) {
  fovea_backward_params_t known;
  if (Result result =
          readCommon(params, kBackwardParamsFirstSize, known, problem);
      !result.ok())
    return result;
  if (Result result = checkRows(problem.sizes); !result.ok())
    return result;
  if (known.deterministic > 1)
    return invalid("deterministic is " + std::to_string(known.deterministic) +
                   ", not 0 or 1");
  problem.deterministic = known.deterministic == 1;
  if (Result result = checkReserved2(known.reserved2); !result.ok())
    return result;
  if (known.narrow_sums > 1)
    return invalid("narrow_sums is " + std::to_string(known.narrow_sums) +
                   ", not 0 or 1");
  problem.narrowSums = known.narrow_sums == 1;
  if (problem.deterministic && problem.narrowSums)
    return invalid("deterministic and narrow_sums are 1, but narrow sums have "
                   "other bits in every run; ask for one of them");
  return readTensors(&known, problem);
}

Result checkLaunchAddresses(Problem &problem) {
  problem.mostWorkspace = problem.workspace.data ? problem.workspace.bytes : 0;
  if (Result result = checkAddresses(problem.tensors); !result.ok()) {
    // The only tensors that may be left out.
    for (const spec::TensorSpec &spec :
         spec::specOf(problem.key.op).base.tensors)
      if (spec.output != spec::kNoOutput && spec.output != spec::kOut &&
          result.message == spec.name + std::string(".data is NULL"))
        result.message +=
            "; a gradient that is not wanted has strides of 0 as well";
    return result;
  }
  return checkAddress("workspace", "", problem.workspace.data,
                      spec::kWorkspaceAlignment, "its alignment",
                      /*needed=*/false);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {
template <typename T>
void put(unsigned char *to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

void putScalar(const Problem &problem, int32_t splits, bool packsHeads,
               spec::Scalar scalar, unsigned char *to) {
  const Sizes &sizes = problem.sizes;
  // To a key head, no queries are the same as no query heads, which would make
  // a group of none.
  const bool hasHeads = sizes.headsQ != 0;
  const int64_t headsQ = hasHeads ? sizes.headsQ : sizes.headsK;
  switch (scalar) {
  case spec::Scalar::SeqlenQ:
    return put(to, hasHeads ? int32_t(sizes.seqlenQ) : 0);
  case spec::Scalar::SeqlenK:
    return put(to, int32_t(sizes.seqlenK));
  case spec::Scalar::HeadsQ:
    return put(to, int32_t(headsQ));
  case spec::Scalar::GroupSize:
    return put(to, int32_t(headsQ / sizes.headsK));
  case spec::Scalar::Scale:
    return put(to, sizes.scale);
  case spec::Scalar::Splits:
    return put(to, splits);
  case spec::Scalar::PackedHeads:
    return put(to, packsHeads ? int32_t(headsQ / sizes.headsK) : 1);
  }
}
} // namespace

void fillArguments(const Problem &problem, int32_t splits, bool packsHeads,
                   const std::vector<ArgumentFill> &fills, unsigned char *to) {
  for (const ArgumentFill &fill : fills) {
    unsigned char *at = to + fill.offset;
    if (fill.source == spec::Source::Scalar) {
      putScalar(problem, splits, packsHeads, spec::Scalar(fill.index), at);
      continue;
    }
    if (fill.source == spec::Source::Feature) {
      std::memcpy(at, &problem.features[fill.index], fill.bytes);
      continue;
    }
    if (!spec::isOfTensor(fill.source)) {
      fillCapture(problem.score, fill, at);
      continue;
    }
    const TensorParam &tensor = problem.tensors[fill.index];
    switch (fill.source) {
    case spec::Source::Address:
      put(at, addressOf(tensor.data));
      break;
    case spec::Source::StrideBatch:
      put(at, tensor.strideBatch);
      break;
    case spec::Source::StrideHead:
      put(at, tensor.strideHead);
      break;
    case spec::Source::StrideSeq:
      put(at, tensor.strideSeq);
      break;
    default:
      break;
    }
  }
}

} // namespace fovea::rt
