//===- TileBackward.cpp - attn-tile-backward ------------------------------===//
//
// Writes the tile programs of the backward kernels, those of the schedule's
// algorithm.
//
//===----------------------------------------------------------------------===//

#include "GradientKernels.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"

using namespace mlir;
using namespace fovea;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEBACKWARD
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

struct TileBackward
    : public fovea::attn::impl::AttnTileBackwardBase<TileBackward> {
  void runOnOperation() override {
    if (failed(tileFunctions<BackwardOp>(getOperation(), tileFunction)))
      signalPassFailure();
  }

private:
  /// What writes each of an algorithm's kernels, in the order of their launch.
  static ArrayRef<BuildGradients *> buildersOf(BackwardAlgorithm algorithm) {
    static constexpr BuildGradients *deterministic[] = {
        buildRowSums, buildKeyGradients, buildQueryGradient};
    static constexpr BuildGradients *atomic[] = {
        buildRowSums, buildKeyGradients, buildConvert};
    switch (algorithm) {
    case BackwardAlgorithm::Deterministic:
      return deterministic;
    case BackwardAlgorithm::Atomic:
    case BackwardAlgorithm::Atomic16:
      return atomic;
    }
    llvm_unreachable("all algorithms are listed");
  }

  static LogicalResult tileFunction(func::FuncOp func, BackwardOp op,
                                    const target::TargetInfo &target) {
    BackwardScheduleAttr schedule = *op.getSchedule();
    if (failed(checkBackwardSchedule([&] { return op.emitOpError(); }, target,
                                     op.getElementType(), HeadDims(op),
                                     schedule)) ||
        failed(checkScoreGradients(op, target, schedule.getAlgorithm())))
      return failure();
    if (!op.getGradients().empty() &&
        yieldOf(op.getScore()).getDerivatives().empty())
      return op.emitOpError("has gradients of captures and no derivatives in "
                            "its score program; run attn-differentiate-scores "
                            "first");
    FailureOr<KernelArguments> arguments = argumentsOf(op);
    if (failed(arguments))
      return failure();
    gpu::GPUModuleOp module = makeKernelModule(func);
    BackwardAlgorithm algorithm = schedule.getAlgorithm();
    for (auto [build, launch, part] :
         llvm::zip_equal(buildersOf(algorithm), specOf(algorithm).launches,
                         schedule.getKernels())) {
      std::string name = (module.getName() + "_" + launch.suffix).str();
      build(op, makeKernel(module, name, *arguments, part), target, *arguments,
            part);
    }
    if (op.getDsinks()) {
      ScheduleAttr part = sinkSumSchedule(schedule);
      buildSinkGradient(op,
                        makeKernel(module, (module.getName() + "_dsinks").str(),
                                   *arguments, part),
                        target, *arguments, part);
    }
    return success();
  }
};
} // namespace
