//===- LanesToROCDL.cpp - attn-lower-to-rocdl -----------------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/Conversion/GPUToROCDL/GPUToROCDLPass.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_LOWERATTNKERNELTOROCDL
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

namespace {
using namespace fovea;

struct LowerAttnKernelToROCDL
    : public fovea::impl::LowerAttnKernelToROCDLBase<LowerAttnKernelToROCDL> {
  void runOnOperation() override {
    auto target =
        getOperation()->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
    if (!target)
      return; // nothing of ours
    OpPassManager pipeline(gpu::GPUModuleOp::getOperationName());
    pipeline.addPass(createSCFToControlFlowPass());
    ConvertGpuOpsToROCDLOpsOptions options;
    options.chipset = target.getInfo().chipset.str();
    options.indexBitwidth = 32;
    pipeline.addPass(createConvertGpuOpsToROCDLOps(options));
    pipeline.addPass(createReconcileUnrealizedCastsPass());
    pipeline.addPass(createCanonicalizerPass());
    pipeline.addPass(createCSEPass());
    if (failed(runPipeline(pipeline, getOperation())))
      return signalPassFailure();
    for (auto kernel : getOperation().getOps<LLVM::LLVMFuncOp>())
      setKernelAttributes(kernel, target.getInfo());
  }

private:
  /// What the backend allocates registers by.
  void setKernelAttributes(LLVM::LLVMFuncOp kernel,
                           const target::TargetInfo &target) {
    auto schedule =
        kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName);
    if (!schedule)
      return;
    Builder b(&getContext());
    auto *rocdl = getContext().getOrLoadDialect<ROCDL::ROCDLDialect>();
    int32_t threads = schedule.getWaves() * target.waveSize;
    rocdl->getReqdWorkGroupSizeAttrHelper().setAttr(
        kernel, b.getDenseI32ArrayAttr({threads, 1, 1}));
    rocdl->getFlatWorkGroupSizeAttrHelper().setAttr(
        kernel,
        b.getStringAttr(llvm::Twine(threads) + "," + llvm::Twine(threads)));
    rocdl->getWavesPerEuAttrHelper().setAttr(
        kernel, b.getI32IntegerAttr(schedule.getWavesPerSimd()));
    // Without the mode that quiets signalling NaNs, a maximum needs no
    // canonicalising copy of each operand.
    SmallVector<Attribute> others = {
        b.getStrArrayAttr({"amdgpu-ieee", "false"})};
    // Where segments have all registers, half of them are for sums: LLVM would
    // keep these in the other half, and what else there is in neither, or all
    // results of products, which vector instructions then want moved. Of 32x32
    // products there is room for the sums in either, unless they fill one.
    constexpr int kSegments = 4, kLate = 5;
    const bool isWide =
        target::lookupMatrixShape(schedule.getInst().getName())->m == 32;
    const bool readsMuch = schedule.getQueriesInLds() == 3;
    if (schedule.getStages() >= kSegments && schedule.getWavesPerSimd() == 1) {
      if (!isWide || readsMuch)
        others.push_back(target.has(target::kMfmaBf16_1k)
                             ? Attribute(b.getStringAttr(
                                   hsaco::kCarriedSumsAttrName))
                             : b.getStrArrayAttr({"amdgpu-agpr-alloc", "256"}));
      if (readsMuch || schedule.getStages() == kLate ||
          schedule.getDirectCopy())
        others.push_back(b.getStringAttr(hsaco::kOrderedLoopsAttrName));
    }
    kernel.setPassthroughAttr(b.getArrayAttr(others));
    kernel->removeAttr(attn::kScheduleAttrName);
  }
};
} // namespace
