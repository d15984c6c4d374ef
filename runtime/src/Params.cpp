//===- Params.cpp - an operation's parameters -----------------------------===//

#include "Params.h"

#include <cstddef>
#include <cstring>

namespace fovea::rt {
namespace {

#define FOVEA_TENSOR(Params, name)                                             \
  {#name, offsetof(Params, name) + offsetof(fovea_tensor_t, data),             \
   offsetof(Params, name) + offsetof(fovea_tensor_t, stride_batch)}
// What is written has the same fields at the same places.
static_assert(offsetof(fovea_tensor_t, data) ==
                  offsetof(fovea_mutable_tensor_t, data) &&
              offsetof(fovea_tensor_t, stride_batch) ==
                  offsetof(fovea_mutable_tensor_t, stride_batch));

constexpr TensorField kForwardTensors[] = {
    FOVEA_TENSOR(fovea_forward_params_t, q),
    FOVEA_TENSOR(fovea_forward_params_t, k),
    FOVEA_TENSOR(fovea_forward_params_t, v),
    FOVEA_TENSOR(fovea_forward_params_t, out),
    {"lse", offsetof(fovea_forward_params_t, lse),
     offsetof(fovea_forward_params_t, lse_stride_batch)},
};
constexpr TensorField kBackwardTensors[] = {
    FOVEA_TENSOR(fovea_backward_params_t, q),
    FOVEA_TENSOR(fovea_backward_params_t, k),
    FOVEA_TENSOR(fovea_backward_params_t, v),
    FOVEA_TENSOR(fovea_backward_params_t, out),
    FOVEA_TENSOR(fovea_backward_params_t, dout),
    {"lse", offsetof(fovea_backward_params_t, lse),
     offsetof(fovea_backward_params_t, lse_stride_batch)},
    FOVEA_TENSOR(fovea_backward_params_t, dq),
    FOVEA_TENSOR(fovea_backward_params_t, dk),
    FOVEA_TENSOR(fovea_backward_params_t, dv),
    {"workspace", offsetof(fovea_backward_params_t, workspace), 0},
};
#undef FOVEA_TENSOR

template <typename T>
T fieldOf(const void *params, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char *>(params) + offset, sizeof(T));
  return value;
}

/// All zero says that an output is not wanted.
bool isDescribed(const TensorParam &t) {
  return t.data || t.strideBatch != 0 || t.strideHead != 0 || t.strideSeq != 0;
}

TensorParam readTensor(const void *params, const TensorField &field,
                       const spec::TensorSpec &spec, const Problem &problem) {
  const Sizes &sizes = problem.sizes;
  TensorParam tensor{};
  tensor.name = field.name;
  tensor.suffix = spec.shape == spec::Shape::Rows ? ".data" : "";
  tensor.data = fieldOf<const void *>(params, field.data);
  tensor.strideBatch = fieldOf<int64_t>(params, field.strides);
  tensor.strideHead = fieldOf<int64_t>(params, field.strides + 8);
  tensor.batch = sizes.batch;
  tensor.heads = sizes.of(spec.heads);
  if (spec.shape == spec::Shape::Rows) {
    tensor.strideSeq = fieldOf<int64_t>(params, field.strides + 16);
    tensor.rows = sizes.of(spec.rows);
    tensor.rowElements = sizes.headDim;
  } else { // the sequence is contiguous: one row of it a head
    tensor.rows = 1;
    tensor.rowElements = sizes.of(spec.rows);
  }
  tensor.elementBytes = spec.elements == spec::Elements::F32
                            ? int64_t(sizeof(float))
                            : elementSize(problem.key.dtype);
  tensor.written = spec.written;
  tensor.optional = spec.optional;
  return tensor;
}

/// Fills in the tensors and what is wanted of them.
Result readTensors(const void *params, TensorFields fields, Problem &problem) {
  const spec::GroupSpec &base = spec::specOf(problem.key.op).base;
  bool any = false;
  for (size_t i = 0; i != fields.count; ++i) {
    const spec::TensorSpec &spec = base.tensors[i];
    if (spec.shape == spec::Shape::Bytes) {
      TensorParam memory{};
      memory.name = spec.name;
      memory.data = problem.workspace.data;
      memory.unwanted = true; // its bytes are checked when they are known
      problem.tensors.add(memory);
      continue;
    }
    TensorParam tensor = readTensor(params, fields.first[i], spec, problem);
    if (spec.output != spec::kNoOutput) {
      // A single output is always wanted.
      const bool described = spec.output == spec::kOut || isDescribed(tensor);
      tensor.unwanted = !described;
      any |= described;
      if (described && tensor.hasElements())
        problem.wanted |= spec.output;
    }
    problem.tensors.add(tensor);
  }
  if (!any)
    return invalid("dq, dk and dv are all zero, so no gradient is wanted; "
                   "describe those that are");
  return checkStrides(problem.tensors);
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
  return Result();
}

/// What the structures of all operations have, by the same names.
template <typename Params>
Result readCommon(OpKind op, const Params *given, uint32_t firstSize,
                  Params &params, Problem &problem) {
  if (Result result = readVersioned("params", given, firstSize, params);
      !result.ok())
    return result;
  const Params &p = params;
  problem.kernel = p.kernel;
  problem.workspace = {p.workspace, p.workspace_bytes};
  return readSizes(op,
                   {p.scale, p.batch, p.heads_q, p.heads_k, p.seqlen_q,
                    p.seqlen_k, p.head_dim},
                   {p.dtype, p.mask, p.reserved, p.groups}, problem);
}

} // namespace

TensorFields tensorFieldsOf(OpKind op) {
  switch (op) {
  case OpKind::Forward:
    return {kForwardTensors, std::size(kForwardTensors)};
  case OpKind::Backward:
    return {kBackwardTensors, std::size(kBackwardTensors)};
  }
  return {};
}

Result readParams(const fovea_forward_params_t *params, Problem &problem) {
  fovea_forward_params_t known;
  if (Result result = readCommon(OpKind::Forward, params,
                                 kForwardParamsFirstSize, known, problem);
      !result.ok())
    return result;
  return readTensors(&known, tensorFieldsOf(OpKind::Forward), problem);
}

Result readParams(const fovea_backward_params_t *params, Problem &problem) {
  fovea_backward_params_t known;
  if (Result result = readCommon(OpKind::Backward, params,
                                 kBackwardParamsFirstSize, known, problem);
      !result.ok())
    return result;
  if (Result result = checkRows(problem.sizes); !result.ok())
    return result;
  if (known.deterministic > 1)
    return invalid("deterministic is " + std::to_string(known.deterministic) +
                   ", not 0 or 1");
  problem.deterministic = known.deterministic == 1;
  return readTensors(&known, tensorFieldsOf(OpKind::Backward), problem);
}

Result checkLaunchAddresses(Problem &problem) {
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

void putScalar(const Problem &problem, spec::Scalar scalar, unsigned char *to) {
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
  }
}
} // namespace

void fillArguments(const Problem &problem,
                   const std::vector<ArgumentFill> &fills, unsigned char *to) {
  for (const ArgumentFill &fill : fills) {
    unsigned char *at = to + fill.offset;
    if (fill.source == spec::Source::Scalar) {
      putScalar(problem, spec::Scalar(fill.index), at);
      continue;
    }
    if (fill.source == spec::Source::Feature) {
      std::memcpy(at, &problem.features[fill.index], fill.bytes);
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
    case spec::Source::Scalar:
    case spec::Source::Feature:
      break;
    }
  }
}

} // namespace fovea::rt
