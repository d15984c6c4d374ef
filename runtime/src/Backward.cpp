//===- Backward.cpp - parameters of a backward pass -----------------------===//

#include "Backward.h"

namespace fovea::rt {
namespace {

/// What the kernels have a workspace aligned to, in bytes.
constexpr int64_t kWorkspaceAlignment = 16;

/// All zero says that the gradient is not wanted.
bool isDescribed(const fovea_mutable_tensor_t &t) {
  return t.data || t.stride_batch != 0 || t.stride_head != 0 ||
         t.stride_seq != 0;
}

Result checkRows(const Sizes &sizes) {
  // Bounds the workspace and the kernels' row numbers. dq is no bound: it may
  // be unwanted, and the other tensors broadcast.
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

} // namespace

Result readBackward(const fovea_backward_params_t *params,
                    BackwardProblem &problem) {
  if (Result result = readParams(Operation::Backward, params,
                                 kBackwardParamsFirstSize, problem);
      !result.ok())
    return result;
  const fovea_backward_params_t &p = problem.params;
  if (Result result = checkRows(problem.sizes); !result.ok())
    return result;
  if (p.deterministic > 1)
    return invalid("deterministic is " + std::to_string(p.deterministic) +
                   ", not 0 or 1");
  problem.deterministic = p.deterministic == 1;
  problem.workspace = {p.workspace, p.workspace_bytes};

  auto tensor = tensorsOf(problem);
  TensorParams &tensors = problem.tensors;
  tensors.add(tensor("q", p.q, p.heads_q, p.seqlen_q, false));
  tensors.add(tensor("k", p.k, p.heads_k, p.seqlen_k, false));
  tensors.add(tensor("v", p.v, p.heads_k, p.seqlen_k, false));
  tensors.add(tensor("out", p.out, p.heads_q, p.seqlen_q, false));
  tensors.add(tensor("dout", p.dout, p.heads_q, p.seqlen_q, false));
  tensors.add(lseParam(p.lse, p.lse_stride_batch, p.lse_stride_head, problem,
                       /*written=*/false, /*optional=*/false));
  const struct {
    const char *name;
    const fovea_mutable_tensor_t &tensor;
    int64_t heads, rows;
    Output output;
  } gradients[] = {{"dq", p.dq, p.heads_q, p.seqlen_q, kDq},
                   {"dk", p.dk, p.heads_k, p.seqlen_k, kDk},
                   {"dv", p.dv, p.heads_k, p.seqlen_k, kDv}};
  bool any = false;
  for (const auto &gradient : gradients) {
    if (!isDescribed(gradient.tensor))
      continue;
    any = true;
    const TensorParam param = tensor(gradient.name, gradient.tensor,
                                     gradient.heads, gradient.rows, true);
    if (param.hasElements())
      problem.wanted |= gradient.output;
    tensors.add(param);
  }
  if (!any)
    return invalid("dq, dk and dv are all zero, so no gradient is wanted; "
                   "describe those that are");
  return checkStrides(tensors);
}

Result checkAddresses(BackwardProblem &problem) {
  if (Result result = checkAddresses(problem.tensors); !result.ok()) {
    // The only tensors that may be left out.
    for (const char *name : {"dq.", "dk.", "dv."})
      if (result.message == name + std::string("data is NULL"))
        result.message +=
            "; a gradient that is not wanted has strides of 0 as well";
    return result;
  }
  return checkAddress("workspace", "", problem.workspace.data,
                      kWorkspaceAlignment, "its alignment", /*needed=*/false);
}

abi::BackwardArgs makeBackwardArgs(const BackwardProblem &problem) {
  const fovea_backward_params_t &p = problem.params;
  abi::BackwardArgs args{};
  FOVEA_TENSOR_ARGS(args, p, q);
  FOVEA_TENSOR_ARGS(args, p, k);
  FOVEA_TENSOR_ARGS(args, p, v);
  FOVEA_TENSOR_ARGS(args, p, out);
  FOVEA_TENSOR_ARGS(args, p, dout);
  FOVEA_TENSOR_ARGS(args, p, dq);
  FOVEA_TENSOR_ARGS(args, p, dk);
  FOVEA_TENSOR_ARGS(args, p, dv);
  args.lse = addressOf(p.lse);
  args.workspace = addressOf(p.workspace);
  args.lseStrideBatch = p.lse_stride_batch;
  args.lseStrideHead = p.lse_stride_head;
  args.seqlenQ = int32_t(p.seqlen_q);
  args.seqlenK = int32_t(p.seqlen_k);
  args.headsQ = int32_t(p.heads_q);
  if (p.heads_q == 0) {
    // To a key head, no queries are the same as no query heads, which would
    // make a group of none.
    args.headsQ = int32_t(p.heads_k);
    args.seqlenQ = 0;
  }
  args.groupSize = int32_t(args.headsQ / p.heads_k);
  args.scale = p.scale;
  return args;
}

} // namespace fovea::rt
