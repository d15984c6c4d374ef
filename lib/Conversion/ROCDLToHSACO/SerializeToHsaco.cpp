//===- SerializeToHsaco.cpp - attn-serialize-to-hsaco ---------------------===//

#include "fovea/Conversion/Passes.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/HSACO/BackendMessages.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_SERIALIZEATTNTOHSACO
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

namespace {
using namespace fovea;

struct SerializeAttnToHsaco
    : public fovea::impl::SerializeAttnToHsacoBase<SerializeAttnToHsaco> {
  using SerializeAttnToHsacoBase::SerializeAttnToHsacoBase;

  void runOnOperation() override {
    if (optLevel < 0 || optLevel > 3) {
      emitError(getOperation().getLoc())
          << "optimisation level must be in [0, 3], found "
          << optLevel.getValue();
      return signalPassFailure();
    }
    for (auto module : llvm::make_early_inc_range(
             getOperation().getOps<gpu::GPUModuleOp>())) {
      auto target =
          module->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
      if (!target)
        continue; // nothing of ours
      llvm::Expected<std::string> image = compile(module, target.getInfo());
      if (!image) {
        module.emitOpError() << llvm::toString(image.takeError());
        return signalPassFailure();
      }
      OpBuilder b(module);
      auto object = gpu::ObjectAttr::get(
          &getContext(),
          ROCDL::ROCDLTargetAttr::get(&getContext(), /*O=*/optLevel,
                                      "amdgcn-amd-amdhsa", target.getChip()),
          gpu::CompilationTarget::Binary, b.getStringAttr(*image),
          /*properties=*/DictionaryAttr(), /*kernels=*/gpu::KernelTableAttr());
      gpu::BinaryOp::create(b, module.getLoc(), module.getName(),
                            /*offloadingHandler=*/nullptr,
                            b.getArrayAttr({object}));
      module.erase();
    }
  }

private:
  llvm::Expected<std::string> compile(gpu::GPUModuleOp module,
                                      const target::TargetInfo &target) {
    auto machine = hsaco::createTargetMachine(target, optLevel);
    if (!machine)
      return machine.takeError();
    llvm::LLVMContext context;
    hsaco::BackendMessages said(context);
    auto ir = hsaco::translate(module, context, **machine);
    if (!ir)
      return said.check(ir.takeError());
    if (llvm::Error error =
            said.check(hsaco::optimize(**ir, **machine, optLevel)))
      return error;
    auto object = hsaco::emitObject(**ir, **machine);
    if (llvm::Error error =
            said.check(object ? llvm::Error::success() : object.takeError()))
      return error;
    for (const std::string &warning : said.warnings())
      module.emitWarning() << "LLVM: " << warning;
    auto image = hsaco::link(*object);
    if (!image)
      return image;
    auto kernels = hsaco::readResources(*image, target);
    if (!kernels)
      return kernels.takeError();
    for (const hsaco::KernelResources &kernel : *kernels) {
      if (kernel.scratchBytes > 0)
        module.emitWarning()
            << "kernel '" << kernel.name << "' spills " << kernel.scratchBytes
            << " bytes a lane to memory; a smaller block_m or block_n, or "
               "fewer "
               "waves_per_simd, fit the registers";
      if (said.missesOccupancy(kernel.name))
        module.emitWarning()
            << "kernel '" << kernel.name
            << "': " << target::wavesPerSimd(target, kernel.use(target))
            << " waves fit a SIMD, fewer than the waves_per_simd of its "
               "schedule; registers or LDS do not allow more";
      remark::analysis(module.getLoc(),
                       remark::RemarkOpts::name("resources").category("attn"))
          << hsaco::describe(kernel, target);
    }
    return image;
  }
};
} // namespace
