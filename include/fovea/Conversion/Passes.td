//===- Passes.td - conversions from the attn dialect -------*- tablegen -*-===//

#ifndef FOVEA_CONVERSION_PASSES_TD
#define FOVEA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToLanes : Pass<"convert-attn-to-lanes", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Distribute tiles to the registers of lanes";
  let description = [{
    A tile becomes one vector a unit of its layout: what one lane holds. Loads
    and stores of global memory become raw-buffer accesses, LDS tiles become
    globals in LDS, reductions combine registers and then lanes, and
    `attn.dot` becomes one `attn.mma` a matrix instruction.

    Pre-condition: every tile has a layout (`attn-verify-stage=layouts`).
    Post-condition: no tiles; of the attn dialect only `attn.mma` is left.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::ROCDL::ROCDLDialect",
    "::mlir::vector::VectorDialect"];
}

def ConvertAttnToMatrixCore : Pass<"convert-attn-to-matrix-core", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Rewrite attn.mma as MFMA or WMMA instructions, or by lanes";
  let description = [{
    Pre-condition: lanes (`convert-attn-to-lanes`).
    Post-condition: no `attn.mma`.
  }];
  let dependentDialects = ["::mlir::amdgpu::AMDGPUDialect",
    "::mlir::math::MathDialect", "::mlir::ROCDL::ROCDLDialect",
    "::mlir::vector::VectorDialect"];
}

def LowerAttnKernelToROCDL : Pass<"attn-lower-to-rocdl", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower the kernels of a module to the rocdl and llvm dialects";
  let description = [{
    Runs the upstream conversions for the module's chip, with 32-bit indices
    (addresses of tensors are 64 bits by themselves), and sets workgroup size
    and occupancy on each kernel from its schedule.

    Pre-condition: no `attn.mma` (`convert-attn-to-matrix-core`).
    Post-condition: llvm and rocdl ops only; `attn.target` is left on the
    module.
  }];
  let dependentDialects = ["::mlir::ROCDL::ROCDLDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect",
    "::mlir::amdgpu::AMDGPUDialect", "::mlir::LLVM::LLVMDialect"];
}

def SerializeAttnToHsaco : Pass<"attn-serialize-to-hsaco", "::mlir::ModuleOp"> {
  let summary = "Compile each gpu.module to a code object, in process";
  let description = [{
    LLVM's AMDGPU backend and lld run as libraries; no ROCm installation is
    needed. The `gpu.module` becomes a `gpu.binary` with the HSACO as its object.
    Emits a remark with registers and LDS (`--remarks-filter=attn`).

    Pre-condition: llvm and rocdl ops only (`attn-lower-to-rocdl`).
    Post-condition: no `gpu.module` with a target is left.
  }];
  let options = [
    Option<"optLevel", "O", "int32_t", "3", "Optimisation level, 0 to 3">,
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
    "::mlir::ROCDL::ROCDLDialect"];
}

#endif // FOVEA_CONVERSION_PASSES_TD
