//===- ForwardShares.h - keys that workgroups share out ---------*- C++ -*-===//
//
// Where the keys of a block of queries are split, a first kernel takes a share
// of them in each workgroup and a second one combines what these leave in the
// workspace: for each row and share the sums of weighted values and what they
// are relative to.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDSHARES_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDSHARES_H

#include "TileBuilder.h"

namespace fovea::attn {

/// What is kept of a row and share beside the sums: the columns of its terms.
enum class ShareTerm {
  Max,       ///< that exponents are relative to; of no key, or of scores that
             ///< are -inf, the lowest number
  Reference, ///< the same times the factor, as rounded; +inf: not rounded
  Sum,       ///< of the weights
  Total,     ///< of the weights before rounding, where that is another
};
inline constexpr int64_t kShareTerms = 4;

/// A kernel of queries that knows the workspace.
class ShareBuilder : public QueryBlockBuilder {
protected:
  ShareBuilder(ForwardOp op, mlir::gpu::GPUFuncOp kernel,
               const target::TargetInfo &target,
               const KernelArguments &arguments);

  /// The sums of the workgroup's rows in one share, as [rows, head_dim_v] of
  /// sumsType.
  Rows sumsOfShare(Value share);
  /// Their terms, as [rows, kShareTerms] of f32.
  Rows termsOfShare(Value share);
  /// The sums of one row in all shares, as [splits, head_dim_v] of sumsType.
  Rows sumsOfRow(Value row);
  /// Its terms, as [splits, kShareTerms].
  Rows termsOfRow(Value row);

  /// Whether sums are rounded, once they are divided by those of the weights:
  /// f16 has the range of values, not of their sums, and what all values of a
  /// column are, the output is as well.
  bool sumsAreRounded() const { return !sumsType.isF32(); }

  //===--- sinks ----------------------------------------------------------===//
  /// A sink among the sums of a row, whose reference it may be above: these
  /// are multiplied by `factor` then. All but the logit [1, rows].
  struct Sink {
    Value logit;   ///< f32
    Value isAbove; ///< i1: it is the reference from now on
    Value factor, weight;
  };
  /// The head's sink. That of -infinity changes no bit of anything, and none is
  /// one of -infinity.
  /// \param sum  of the row's weights
  /// \param max, reference  that these are relative to; where `isLarge`, to the
  ///   maximum itself, as if that had the reference `zeroReference` (f32)
  Sink sinkBeside(Value sum, Value max, Value reference, Value isLarge,
                  Value zeroReference);
  /// What sums of weights are with the sink.
  Value withSink(Value sum, const Sink &sink) {
    return fadd(fmul(sum, sink.factor), sink.weight);
  }
  /// The log-sum-exp.
  /// \param natural  of sums that were relative to the reference
  /// \param log2     of their total with the sink
  Value lseWithSink(Value natural, Value log2, const Sink &sink);

  mlir::Type sumsType; ///< of shares' sums in the workspace

private:
  Value i64Constant(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 64).getResult();
  }
  Value cells(Value rows);
  Value batchOffset();
  Value sumsOffset();
  Value rowsBefore();
  Value termsOffset();
};

/// Writes the kernel that combines.
void buildCombine(ForwardOp op, mlir::gpu::GPUFuncOp kernel,
                  const target::TargetInfo &target,
                  const KernelArguments &arguments);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDSHARES_H
