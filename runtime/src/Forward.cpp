//===- Forward.cpp - parameters of a forward pass -------------------------===//

#include "Forward.h"

namespace fovea::rt {

Result readForward(const fovea_forward_params_t *params,
                   ForwardProblem &problem) {
  if (Result result = readParams(Operation::Forward, params,
                                 kForwardParamsFirstSize, problem);
      !result.ok())
    return result;
  const fovea_forward_params_t &p = problem.params;
  auto tensor = tensorsOf(problem);
  TensorParams &tensors = problem.tensors;
  tensors.add(tensor("q", p.q, p.heads_q, p.seqlen_q, false));
  tensors.add(tensor("k", p.k, p.heads_k, p.seqlen_k, false));
  tensors.add(tensor("v", p.v, p.heads_k, p.seqlen_k, false));
  tensors.add(tensor("out", p.out, p.heads_q, p.seqlen_q, true));
  tensors.add(lseParam(p.lse, p.lse_stride_batch, p.lse_stride_head, problem,
                       /*written=*/true, /*optional=*/true));
  if (p.batch > 0 && p.heads_q > 0 && p.seqlen_q > 0)
    problem.wanted = kOut;
  return checkStrides(tensors);
}

Result checkAddresses(ForwardProblem &problem) {
  return checkAddresses(problem.tensors);
}

abi::ForwardArgs makeForwardArgs(const ForwardProblem &problem) {
  const fovea_forward_params_t &p = problem.params;
  abi::ForwardArgs args{};
  FOVEA_TENSOR_ARGS(args, p, q);
  FOVEA_TENSOR_ARGS(args, p, k);
  FOVEA_TENSOR_ARGS(args, p, v);
  FOVEA_TENSOR_ARGS(args, p, out);
  args.lse = addressOf(p.lse);
  args.lseStrideBatch = p.lse_stride_batch;
  args.lseStrideHead = p.lse_stride_head;
  args.seqlenQ = int32_t(p.seqlen_q);
  args.seqlenK = int32_t(p.seqlen_k);
  args.headsQ = int32_t(p.heads_q);
  args.groupSize = int32_t(p.heads_q / p.heads_k);
  args.scale = p.scale;
  return args;
}

} // namespace fovea::rt
