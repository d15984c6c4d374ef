//===- ForwardShares.h - keys that workgroups share out ---------*- C++ -*-===//
//
// Where the keys of a block of queries are split, a first kernel takes a share
// of them in each workgroup and a second one combines what these leave in the
// workspace: for each row and share the sums of weighted values, not divided,
// and what they are relative to.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDSHARES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDSHARES_H

#include "TileBuilder.h"

namespace fovea::attn {

/// What is kept of a row and share beside the sums, in the order of memory.
enum class ShareTerm {
  Max,       ///< that exponents are relative to; the lowest number: no key seen
  Reference, ///< the same times the factor, as rounded; +inf: not rounded
  Sum,       ///< of the weights
  Total,     ///< of the weights before rounding
};

/// A kernel of queries that knows the workspace.
class ShareBuilder : public QueryBlockBuilder {
protected:
  using QueryBlockBuilder::QueryBlockBuilder;

  /// The sums of this head's rows in one share, as [seqlen_q, head_dim] of f32.
  Rows sumsOfShare(Value share);
  Rows termsOfShare(ShareTerm term, Value share);
  /// The sums of one row in all shares, as [splits, head_dim] of f32.
  Rows sumsOfRow(Value row);
  Rows termsOfRow(ShareTerm term, Value row);

private:
  Value i64Constant(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 64).getResult();
  }
  Value cells(Value rows);
  Value batchOffset();
  Value termOffset(ShareTerm term);
};

/// Writes the kernel that combines.
void buildCombine(ForwardOp op, mlir::gpu::GPUFuncOp kernel,
                  const target::TargetInfo &target,
                  const KernelArguments &arguments);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDSHARES_H
