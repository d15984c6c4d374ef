//===- ChooseSchedule.cpp - attn-choose-schedule --------------------------===//

#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNCHOOSESCHEDULE
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

struct ChooseSchedule
    : public fovea::attn::impl::AttnChooseScheduleBase<ChooseSchedule> {
  using AttnChooseScheduleBase::AttnChooseScheduleBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    auto walked = func.walk([&](ForwardOp op) -> WalkResult {
      auto emitError = [&] { return op.emitOpError(); };
      TargetAttr target =
          TargetAttr::getChecked(emitError, &getContext(), StringRef(chip));
      if (!target)
        return failure();
      func->setAttr(kTargetAttrName, target);
      ScheduleAttr schedule =
          override(op, op.getSchedule().value_or(chooseForwardSchedule(
                           &getContext(), target.getInfo(), op.getElementType(),
                           op.getHeadDim())));
      if (!schedule || failed(checkForwardSchedule(emitError, target.getInfo(),
                                                   op.getElementType(),
                                                   op.getHeadDim(), schedule)))
        return failure();
      op.setScheduleAttr(schedule);
      remark::analysis(op.getLoc(),
                       remark::RemarkOpts::name("schedule").category("attn"))
          << llvm::formatv("head_dim {0} on {1}: {2}", op.getHeadDim(), chip,
                           schedule.getKey())
                 .str();
      return success();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

private:
  /// The schedule with the pass's options in place of its parameters.
  ScheduleAttr override(ForwardOp op, ScheduleAttr schedule) {
    auto pick = [](int32_t option, int32_t value) {
      return option ? option : value;
    };
    auto pickFlag = [](int32_t option, int32_t value) {
      return option >= 0 ? option : value;
    };
    return ScheduleAttr::getChecked(
        [&] { return op.emitOpError(); }, &getContext(),
        pick(blockM, schedule.getBlockM()), pick(blockN, schedule.getBlockN()),
        pick(waves, schedule.getWaves()),
        inst.empty() ? schedule.getInst()
                     : StringAttr::get(&getContext(), StringRef(inst)),
        pick(stages, schedule.getStages()),
        pick(wavesPerSimd, schedule.getWavesPerSimd()),
        pickFlag(rescaleThreshold, schedule.getRescaleThreshold()),
        pick(valueSplit, schedule.getValueSplit()),
        pickFlag(queriesInLds, schedule.getQueriesInLds()),
        pickFlag(directCopy, schedule.getDirectCopy()));
  }
};
} // namespace
