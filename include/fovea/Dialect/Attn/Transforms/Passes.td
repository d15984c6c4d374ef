//===- Passes.td - transformations on the attn dialect -----*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnRecognizeSdpa
    : Pass<"attn-recognize-sdpa", "::mlir::func::FuncOp"> {
  let summary = "Find attention in linalg on tensors";
  let description = [{
    Puts `attn.sdpa` in the place of a result of f16 or bf16, of rank 4 or 3, that
    is scaled dot-product attention: the softmax over keys of the scaled products
    of queries and keys, times values, computed in f32 and rounded. It does not
    go by ops, but by what an element comes to: reshapes, transpositions,
    repeated heads, generics that are merged or split, and a scale on either
    factor, both, or the product make no difference. docs/Tensors.md has the
    formula, its variants, and what a kernel rounds otherwise.

    Post-condition: what is not such attention for certain, or computes something
    that is used beside it, is as it was.
  }];
  let dependentDialects = ["::fovea::attn::AttnDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numRecognized", "recognized",
                              "Attentions that were recognised">];
}

def AttnOutlineKernels : Pass<"attn-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Rewrite attn.sdpa on buffers as calls of kernels";
  let description = [{
    Each `attn.sdpa` becomes a `func.call` of a declared function that stands for
    the launch, and its kernel, an `attn.forward` on a function's arguments, goes
    to a nested module with the attribute `attn.kernels`, which `aot-compile`
    compiles, whatever stands beside it. All extents and strides are arguments,
    so ops of one type, head dimension, visibility and score share a kernel.

    The declared function has `attn.kernel`, the kernel's symbol; `attn.key`, the
    text of the problem's key, by which packages are asked; and
    `llvm.emit_c_interface`, so that a C function can do the launch. Its
    arguments are q, k, v, out, the log-sum-exp where it is wanted, the scale, the
    bounds and the mask (docs/Tensors.md), which the kernel captures.

    Pre-condition: `attn.sdpa` is on buffers (`one-shot-bufferize`), and the last
    stride of each but the mask is 1; else an error that says so.
    Post-condition: no `attn.sdpa`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::memref::MemRefDialect"];
}

def AttnChooseSchedule : Pass<"attn-choose-schedule", "::mlir::func::FuncOp"> {
  let summary = "Give every attention op a target and a schedule";
  let description = [{
    Sets `attn.target` on the function and a schedule on each `attn.forward`
    that has none, from the table of schedules by chip and head dimension. A
    schedule that is there already is checked against chip, type and head
    dimension and kept. Options other than 0 replace single parameters.
    `passed-over` takes later rows of the table, for kernels whose first leaves
    values without registers; there is an error where there are no more.

    Emits a remark with the tile sizes (`--remarks-filter=attn`).

    Pre-condition: `attn.forward` verifies.
    Post-condition: every `attn.forward` has a schedule that the chip can run,
    the function has `attn.target`; else an error that names value and limit.
  }];
  let options = [
    Option<"chip", "chip", "std::string",
           "::fovea::target::kDefaultTarget.str()",
           "Chip to generate code for">,
    Option<"blockM", "block-m", "int32_t", "0",
           "Query rows of a workgroup (0: choose)">,
    Option<"blockN", "block-n", "int32_t", "0", "Keys of an iteration (0: choose)">,
    Option<"waves", "waves", "int32_t", "0", "Waves of a workgroup (0: choose)">,
    Option<"stages", "stages", "int32_t", "0",
           "1: no prefetch, 2: prefetch one key block, 3: and its scores, 4: segments (0: choose)">,
    Option<"inst", "inst", "std::string", "\"\"",
           "Matrix instruction (empty: choose)">,
    Option<"wavesPerSimd", "waves-per-simd", "int32_t", "0",
           "Occupancy to allocate registers for (0: choose)">,
    Option<"rescaleThreshold", "rescale-threshold", "int32_t", "-1",
           "Growth of the maximum, in powers of two, that triggers a rescale (-1: choose)">,
    Option<"valueSplit", "value-split", "int32_t", "0",
           "Waves that share queries and split the output (0: choose)">,
    Option<"queriesInLds", "queries-in-lds", "int32_t", "-1",
           "Keep the queries in LDS (-1: choose)">,
    Option<"directCopy", "direct-copy", "int32_t", "-1",
           "Load keys and values to LDS without registers (-1: choose)">,
    Option<"columnChunk", "column-chunk", "int32_t", "-1",
           "Columns that come through LDS at a time, of gradients (0: all, -1: choose)">,
    Option<"algorithm", "algorithm", "std::string", "\"\"",
           "Of attn.forward flash or split, of attn.backward deterministic or "
           "atomic or atomic16 (empty: the former)">,
    ListOption<"passedOver", "passed-over", "int32_t",
               "Of each kernel of the op, how many schedules of the table are not "
               "taken, but a later one">,
  ];
}

def AttnDifferentiateScores
    : Pass<"attn-differentiate-scores", "::mlir::func::FuncOp"> {
  let summary = "Add derivatives to the score programs of attn.backward";
  let description = [{
    A program that yields a score alone yields its derivative for the scaled
    product of query and key beside it, by reverse mode: each op has its rule in
    a table. Behind it come those for the captures that `gradients` names, of
    tensors for the element that is read. One without (docs/ScorePrograms.md) is
    an error where the score depends on any of them through it. Where a score is
    not smooth, the derivative is that of the side that was taken.

    Post-condition: score programs of `attn.backward` yield two values, and one
    for each of `gradients`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def AttnTileForward : Pass<"attn-tile-forward", "::mlir::ModuleOp"> {
  let summary = "Rewrite attn.forward as the tile program of one workgroup";
  let description = [{
    Each function with an `attn.forward` becomes a `gpu.module` of its name with
    one kernel, or two where keys are split: a loop over key blocks with online softmax on tiles, in the
    transposed form S^T = K Q^T, O^T = V^T P^T. Full blocks run without a mask,
    masked blocks are peeled into a second loop, empty blocks are not visited.
    Kernel arguments are those of docs/KernelAbi.md.

    Pre-condition: schedules are chosen, the function holds one `attn.forward`
    on its own arguments and nothing else.
    Post-condition: no `attn.forward` is left; tiles have no layouts yet.
  }];
  let dependentDialects = ["::mlir::amdgpu::AMDGPUDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::ROCDL::ROCDLDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnTileDropoutMask : Pass<"attn-tile-dropout-mask", "::mlir::ModuleOp"> {
  let summary = "Rewrite attn.dropout_mask as the tile program of its kernel";
  let description = [{
    A function with one `attn.dropout_mask` on its arguments becomes a
    `gpu.module` with one kernel, whose workgroups own a block of queries of a
    head each and walk through all keys.

    Pre-condition: schedules are chosen.
    Post-condition: no `attn.dropout_mask` is left; tiles have no layouts yet.
  }];
  let dependentDialects = ["::mlir::amdgpu::AMDGPUDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::ROCDL::ROCDLDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnTileBackward : Pass<"attn-tile-backward", "::mlir::ModuleOp"> {
  let summary = "Rewrite attn.backward as the tile programs of its kernels";
  let description = [{
    A function with one `attn.backward` on its arguments becomes a `gpu.module`
    with the kernels that its schedule's algorithm wants, each with the arguments
    of docs/KernelAbi.md. docs/Backward.md describes the kernels.

    Pre-condition: `attn-choose-schedule`.
    Post-condition: no `attn.backward`.
  }];
  let dependentDialects = ["::mlir::amdgpu::AMDGPUDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnAssignLayouts : Pass<"attn-assign-layouts", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Give every tile a layout and every LDS tile a swizzle";
  let description = [{
    Operand layouts of `attn.dot` come from the instruction table. They spread
    through ops by `LayoutOpInterface`, and element-wise ops of any dialect; the
    right operand of the second product takes the layout that the first product
    leaves, and the left operand follows with the same order of the contraction.
    Copies from global memory to LDS get layouts of their own, wide on both
    sides; the swizzle of an LDS tile is the one with the fewest bank conflicts
    over its writes and reads.

    Pre-condition: tile IR (`attn-tile-forward`).
    Post-condition: every tile has a layout; `attn.convert_layout` stands where
    two layouts meet.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def AttnVerifyStage : Pass<"attn-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Check that a module is in the form that a stage promises";
  let description = [{
    | stage | form |
    |---|---|
    | `scheduled` | every `attn.forward` has a schedule and a target |
    | `tiles` | no `attn.forward`; kernels have a target |
    | `layouts` | every tile has a layout |
    | `lanes` | no tiles; of attn only `attn.mma` and `attn.interleave` |
    | `rocdl` | only `llvm`, `rocdl` and `gpu.module` |

    Fails at the first op that is not of the form.
  }];
  let options = [Option<"stage", "stage", "std::string", "\"\"",
                        "scheduled, tiles, layouts, lanes or rocdl">];
}

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_PASSES_TD
