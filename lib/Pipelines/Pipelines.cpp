//===- Pipelines.cpp - the compiler's stages as pipelines -----------------===//

#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Shape/IR/Shape.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fovea;

namespace {
struct StageInfo {
  Stage stage;
  StringLiteral name;
  StringLiteral pipeline; ///< empty: no passes lead here
  StringLiteral description;
};
} // namespace

static constexpr StageInfo kStages[] = {
    {Stage::Problem, "problem", "", ""},
    {Stage::Scheduled, "scheduled", "attn-to-scheduled",
     "Choose a schedule for each attention op"},
    {Stage::Tiles, "tiles", "attn-scheduled-to-tiles",
     "Write the tile program of each kernel"},
    {Stage::Layouts, "layouts", "attn-tiles-to-layouts",
     "Assign layouts and swizzles"},
    {Stage::Lanes, "lanes", "attn-layouts-to-lanes",
     "Distribute tiles to lanes"},
    {Stage::MatrixCore, "matrix-core", "attn-lanes-to-matrix-core",
     "Select matrix instructions"},
    {Stage::Rocdl, "rocdl", "attn-matrix-core-to-rocdl",
     "Lower to rocdl and llvm"},
    {Stage::Hsaco, "hsaco", "attn-rocdl-to-hsaco", "Compile to a code object"},
};

StringRef fovea::stageName(Stage stage) {
  return kStages[static_cast<int>(stage)].name;
}

std::string fovea::stageNames() {
  return llvm::join(
      llvm::map_range(kStages, [](const StageInfo &info) { return info.name; }),
      ", ");
}

std::optional<Stage> fovea::parseStage(StringRef name) {
  for (const StageInfo &info : kStages)
    if (info.name == name)
      return info.stage;
  return std::nullopt;
}

static void addVerify(OpPassManager &manager, StringRef stage) {
  attn::AttnVerifyStageOptions options;
  options.stage = stage.str();
  manager.addPass(attn::createAttnVerifyStage(options));
}

void fovea::populateStage(OpPassManager &manager, Stage stage,
                          const ScheduleOptions &options) {
  switch (stage) {
  case Stage::Problem:
    return;
  case Stage::Scheduled: {
    attn::AttnChooseScheduleOptions choose;
    choose.chip = options.chip;
    choose.blockM = options.blockM;
    choose.blockN = options.blockN;
    choose.waves = options.waves;
    choose.stages = options.stages;
    choose.inst = options.inst;
    choose.wavesPerSimd = options.wavesPerSimd;
    choose.rescaleThreshold = options.rescaleThreshold;
    choose.valueSplit = options.valueSplit;
    choose.queriesInLds = options.queriesInLds;
    choose.directCopy = options.directCopy;
    choose.columnChunk = options.columnChunk;
    choose.algorithm = options.algorithm;
    llvm::append_range(choose.passedOver, options.passedOver);
    manager.addNestedPass<func::FuncOp>(attn::createAttnChooseSchedule(choose));
    return addVerify(manager, "scheduled");
  }
  case Stage::Tiles: {
    OpPassManager &functions = manager.nest<func::FuncOp>();
    functions.addPass(attn::createAttnDifferentiateScores());
    // What a program is made of shows when all of it is folded.
    functions.addPass(createCanonicalizerPass());
    manager.addPass(attn::createAttnTileForward());
    manager.addPass(attn::createAttnTileBackward());
    manager.addPass(attn::createAttnTileDropoutMask());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    return addVerify(manager, "tiles");
  }
  case Stage::Layouts:
    manager.addNestedPass<gpu::GPUModuleOp>(attn::createAttnAssignLayouts());
    return addVerify(manager, "layouts");
  case Stage::Lanes:
    manager.addNestedPass<gpu::GPUModuleOp>(createConvertAttnToLanes());
    // Address arithmetic of neighbouring accesses repeats itself. From the uses
    // to what they use, which ends in the same in half the time: what is dead
    // or folded into its user is not looked at.
    manager.addPass(createCanonicalizerPass(
        GreedyRewriteConfig().setUseTopDownTraversal(false)));
    manager.addPass(createCSEPass());
    return addVerify(manager, "lanes");
  case Stage::MatrixCore:
    manager.addNestedPass<gpu::GPUModuleOp>(createConvertAttnToMatrixCore());
    return;
  case Stage::Rocdl:
    manager.addNestedPass<gpu::GPUModuleOp>(createLowerAttnKernelToROCDL());
    return addVerify(manager, "rocdl");
  case Stage::Hsaco: {
    SerializeAttnToHsacoOptions serialize;
    serialize.optLevel = options.optLevel;
    manager.addPass(createSerializeAttnToHsaco(serialize));
    return;
  }
  }
}

void fovea::populateStages(OpPassManager &manager, Stage from, Stage to,
                           const ScheduleOptions &options) {
  for (const StageInfo &info : kStages)
    if (info.stage > from && info.stage <= to)
      populateStage(manager, info.stage, options);
}

static void registerPipelines() {
  for (const StageInfo &info : kStages) {
    if (info.pipeline.empty())
      continue;
    Stage stage = info.stage;
    PassPipelineRegistration<ScheduleOptions>(
        info.pipeline, info.description,
        [stage](OpPassManager &manager, const ScheduleOptions &options) {
          populateStage(manager, stage, options);
        });
  }
  PassPipelineRegistration<ScheduleOptions>(
      "attn-to-rocdl", "From attn.forward to rocdl and llvm",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        populateStages(manager, Stage::Problem, Stage::Rocdl, options);
      });
  PassPipelineRegistration<ScheduleOptions>(
      "attn-to-hsaco", "From attn.forward to a code object",
      [](OpPassManager &manager, const ScheduleOptions &options) {
        populateStages(manager, Stage::Problem, Stage::Hsaco, options);
      });
}

void fovea::registerFoveaPasses() {
  attn::registerAttnPasses();
  registerFoveaConversionPasses();
  registerPipelines();
}

void fovea::registerFoveaDialects(DialectRegistry &registry) {
  registry.insert<attn::AttnDialect>();
  attn::registerBufferizationModels(registry);
  // Not all of MLIR, with its other targets, which would be linked along. Those of
  // kernels, and those of host programs that kernels were taken out of.
  registry.insert<
      amdgpu::AMDGPUDialect, arith::ArithDialect, cf::ControlFlowDialect,
      func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect,
      ROCDL::ROCDLDialect, scf::SCFDialect, vector::VectorDialect>();
  registry.insert<affine::AffineDialect, bufferization::BufferizationDialect,
                  complex::ComplexDialect, index::IndexDialect,
                  linalg::LinalgDialect, memref::MemRefDialect,
                  shape::ShapeDialect, tensor::TensorDialect, ub::UBDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  affine::registerValueBoundsOpInterfaceExternalModels(registry);
  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  gpu::registerValueBoundsOpInterfaceExternalModels(registry);
  linalg::registerValueBoundsOpInterfaceExternalModels(registry);
  memref::registerValueBoundsOpInterfaceExternalModels(registry);
  scf::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  vector::registerValueBoundsOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerROCDLDialectTranslation(registry);
}
