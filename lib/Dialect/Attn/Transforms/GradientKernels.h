//===- GradientKernels.h - the kernels of a backward pass -------*- C++ -*-===//
//
// Each writes the tile program of one kernel (docs/Backward.md). In each the
// scores are oriented so that their rows are what the products after them sum
// over: keys in the kernel of dQ, queries in that of dK and dV. P and dS are
// then the right operands of those products as they stand.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTKERNELS_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTKERNELS_H

#include "TileBuilder.h"

namespace fovea::attn {

/// Fills `kernel`, which makeKernel() made with these arguments and schedule.
using BuildGradients = void(BackwardOp op, mlir::gpu::GPUFuncOp kernel,
                            const target::TargetInfo &target,
                            const KernelArguments &arguments,
                            ScheduleAttr schedule);

/// delta = rowsum(out * dout) - dlse; where dQ is added up in memory, its sums
/// begin as zeros.
BuildGradients buildRowSums;
/// dK and dV, and, with the algorithms that add it up in memory, dQ.
BuildGradients buildKeyGradients;
/// dQ.
BuildGradients buildQueryGradient;
/// dQ from its sums in memory.
BuildGradients buildConvert;
/// The gradient of the sinks.
BuildGradients buildSinkGradient;

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTKERNELS_H
