//===- Passes.h - conversions from the attn dialect -------------*- C++ -*-===//

#ifndef FOVEA_CONVERSION_PASSES_H
#define FOVEA_CONVERSION_PASSES_H

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace fovea {
#define GEN_PASS_DECL
#include "fovea/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

#endif // FOVEA_CONVERSION_PASSES_H
