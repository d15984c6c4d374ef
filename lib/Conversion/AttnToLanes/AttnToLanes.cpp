//===- AttnToLanes.cpp - convert-attn-to-lanes ----------------------------===//

#include "Fragments.h"
#include "fovea/Conversion/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fovea {
#define GEN_PASS_DEF_CONVERTATTNTOLANES
#include "fovea/Conversion/Passes.h.inc"
} // namespace fovea

namespace {
using namespace fovea;

/// Tiles become fragments; views a resource and a row distance; LDS tiles
/// an address.
class LaneTypeConverter : public TypeConverter {
public:
  LaneTypeConverter() {
    addConversion([](Type type) { return type; });
    addConversion(
        [](RankedTensorType type,
           SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          attn::LayoutAttr layout = attn::getTileLayout(type);
          if (!layout)
            return std::nullopt;
          types.append(layout.getLayout().fragments(), fragmentType(type));
          return success();
        });
    addConversion(
        [](attn::ViewType type,
           SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          types.push_back(LLVM::LLVMPointerType::get(type.getContext(), 8));
          types.append(2, IntegerType::get(type.getContext(), 32));
          return success();
        });
    addConversion([](attn::LdsType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext(), 3);
    });
  }
};

struct ConvertAttnToLanes
    : public fovea::impl::ConvertAttnToLanesBase<ConvertAttnToLanes> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    auto target =
        module->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
    for (auto kernel : module.getOps<gpu::GPUFuncOp>()) {
      if (!kernel->hasAttr(attn::kScheduleAttrName))
        continue; // not a kernel of ours
      if (!target) {
        module.emitOpError() << "has no '" << attn::kTargetAttrName << "'";
        return signalPassFailure();
      }
      if (failed(convert(kernel, target.getInfo())))
        return signalPassFailure();
    }
  }

private:
  /// Fails unless all that `op` has is dealt to the lanes and waves there are.
  static LogicalResult checkTiles(Operation *op, int lanes, int waves) {
    auto check = [&](attn::LayoutAttr attr) -> LogicalResult {
      const layout::TileLayout &layout = attr.getLayout();
      if (1 << layout.lanes().size() == lanes &&
          1 << layout.waves().size() == waves)
        return success();
      return op->emitOpError()
             << "has a layout of " << (1 << layout.waves().size())
             << " waves of " << (1 << layout.lanes().size())
             << " lanes, but the kernel has " << waves << " of " << lanes;
    };
    if (auto copy = dyn_cast<attn::CopyLdsOp>(op);
        copy && copy.getLayout() && failed(check(*copy.getLayout())))
      return failure();
    for (Type type :
         llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                  llvm::to_vector(op->getResultTypes()))) {
      if (!isa<RankedTensorType>(type))
        continue;
      attn::LayoutAttr attr = attn::getTileLayout(type);
      if (!attr)
        return op->emitOpError() << "has a tile without a layout, " << type
                                 << "; run attn-assign-layouts first";
      Type element = cast<RankedTensorType>(type).getElementType();
      if (!LLVM::isCompatibleType(element))
        return op->emitOpError()
               << "has a tile of " << element
               << ", whose elements no later "
                  "stage computes with; use integers, f16, bf16, f32 or f64";
      if (failed(check(attr)))
        return failure();
    }
    return success();
  }

  /// A kernel with clamps begins by clearing the mode by which they make NaN 0:
  /// MODE.DX10_CLAMP. The backend's own attribute for this would keep it from
  /// making clamps a part of other instructions.
  void letClampsKeepNaN(gpu::GPUFuncOp kernel) {
    if (!kernel.walk([](attn::SaturateOp) { return WalkResult::interrupt(); })
             .wasInterrupted())
      return;
    auto b = ImplicitLocOpBuilder::atBlockBegin(kernel.getLoc(),
                                                &kernel.getBody().front());
    // hwreg(HW_REG_MODE, 8, 1): number, first bit, bits less one.
    constexpr int64_t bit = 1 | 8 << 6 | 0 << 11;
    auto i32 = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, value, 32).getResult();
    };
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.amdgcn.s.setreg"),
                                  ValueRange{i32(bit), i32(0)});
  }

  LogicalResult convert(gpu::GPUFuncOp kernel, const target::TargetInfo &info) {
    auto schedule =
        kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName);
    auto walked = kernel.walk([&](Operation *op) -> WalkResult {
      return checkTiles(op, info.waveSize, schedule.getWaves());
    });
    if (walked.wasInterrupted())
      return failure();
    if (info.has(target::kClampsKeepNaN))
      letClampsKeepNaN(kernel);
    MLIRContext *context = &getContext();
    LaneTypeConverter converter;
    ConversionTarget legality(*context);
    legality.addIllegalDialect<attn::AttnDialect, tensor::TensorDialect>();
    legality.addLegalOp<attn::MmaOp, attn::InterleaveOp>();
    legality.markUnknownOpDynamicallyLegal([&](Operation *op) {
      auto legal = [&](Type type) { return !attn::getTileLayout(type); };
      return llvm::all_of(op->getOperandTypes(), legal) &&
             llvm::all_of(op->getResultTypes(), legal);
    });
    LaneContext lanes(kernel, info);
    RewritePatternSet patterns(context);
    populateMemoryToLanesPatterns(converter, patterns, lanes);
    populateLdsToLanesPatterns(converter, patterns, lanes);
    populateComputeToLanesPatterns(converter, patterns, lanes);
    populateDropoutToLanesPatterns(converter, patterns, lanes);
    populateMovesToLanesPatterns(converter, patterns, lanes);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         legality);
    return applyPartialConversion(kernel, legality, std::move(patterns));
  }
};
} // namespace
