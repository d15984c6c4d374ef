//===- ChooseSchedule.cpp - attn-choose-schedule --------------------------===//

#include "Score.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
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
    auto walked = getOperation().walk([&](Operation *op) -> WalkResult {
      if (auto forward = dyn_cast<ForwardOp>(op))
        return choose(forward);
      if (auto backward = dyn_cast<BackwardOp>(op))
        return choose(backward);
      if (auto mask = dyn_cast<DropoutMaskOp>(op))
        return choose(mask);
      return success();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Puts the chip on the function; null, with an error, if there is none.
  TargetAttr setTarget(Operation *op) {
    auto target = TargetAttr::getChecked([&] { return op->emitOpError(); },
                                         &getContext(), StringRef(chip));
    if (target)
      getOperation()->setAttr(kTargetAttrName, target);
    return target;
  }

  void remarkOn(AttentionOpInterface op, StringRef key) {
    remark::analysis(op->getLoc(),
                     remark::RemarkOpts::name("schedule").category("attn"))
        << llvm::formatv("head_dim {0} on {1}: {2}", HeadDims(op).str(), chip,
                         key)
               .str();
  }

  LogicalResult choose(ForwardOp op) {
    TargetAttr target = setTarget(op);
    if (!target)
      return failure();
    KernelNeeds needs = needsOf(op);
    if (op.getCombine() || algorithm == "split")
      needs |= kSplitsKeys;
    ScheduleAttr schedule = op.getSchedule().value_or(chooseForwardSchedule(
        &getContext(), target.getInfo(), op.getElementType(), HeadDims(op),
        needs, passedOver.empty() ? 0 : passedOver[0]));
    if (!schedule)
      return op.emitOpError()
             << "no schedule for head dimension " << HeadDims(op).str()
             << " in " << op.getElementType() << " on " << target.getChip()
             << whatThereIs(op.getElementType(), [&](Type type) {
                  return largestForwardHeadDim(target.getInfo(), type);
                });
    schedule = override(op, schedule);
    if (!schedule || failed(checkForwardSchedule(
                         [&] { return op.emitOpError(); }, target.getInfo(),
                         op.getElementType(), HeadDims(op), schedule)))
      return failure();
    op.setScheduleAttr(schedule);
    if (failed(chooseCombine(op, target.getInfo())))
      return failure();
    remarkOn(op, op.getScheduleKey());
    return success();
  }

  /// For messages, where there is no schedule of a type, or no more.
  /// \param largest  head dimension that there is one for; 0: there is none
  std::string whatThereIs(Type wanted, function_ref<int64_t(Type)> largest) {
    if (!passedOver.empty())
      return " behind those of passed-over=" +
             llvm::join(
                 llvm::map_range(passedOver,
                                 [](int32_t n) { return std::to_string(n); }),
                 ",");
    if (int64_t most = largest(wanted))
      return "; the largest is " + std::to_string(most);
    return ", nor for any other" + othersThan(wanted, largest);
  }

  /// The types that there are schedules of.
  std::string othersThan(Type wanted, function_ref<int64_t(Type)> largest) {
    Builder b(&getContext());
    std::string others;
    llvm::raw_string_ostream os(others);
    for (Type type : {Type(b.getF16Type()), Type(b.getBF16Type()),
                      Type(b.getF32Type())})
      if (type != wanted && largest(type))
        os << (others.empty() ? "; there are some in " : ", ") << "'" << type
           << "'";
    return others;
  }

  /// The schedule of the kernel that combines, where the option asks for one or
  /// one is there.
  LogicalResult chooseCombine(ForwardOp op, const target::TargetInfo &target) {
    const auto &known = spec::specOf(fovea::OpKind::Forward);
    if (!algorithm.empty() && !known.findAlgorithm(algorithm.getValue()))
      return op.emitOpError()
             << "unknown algorithm '" << algorithm.getValue()
             << "'; known: " << spec::namesOf(known.algorithms);
    StringRef own = op.getAlgorithm().name;
    if (op.getCombine() && !algorithm.empty() && own != algorithm.getValue())
      return op.emitOpError()
             << "has schedules of algorithm '" << own
             << "', but option algorithm asks for '" << algorithm.getValue()
             << "'; leave one of them out";
    if (!op.getCombine() && (algorithm.empty() || own == algorithm.getValue()))
      return success();
    if (!op.getCombine())
      op.setCombineAttr(chooseCombineSchedule(
          &getContext(), target, *op.getSchedule(), op.getHeadDimV()));
    return checkCombineSchedule([&] { return op.emitOpError(); }, target,
                                op.getElementType(), op.getHeadDimV(),
                                *op.getCombine());
  }

  LogicalResult choose(BackwardOp op) {
    TargetAttr target = setTarget(op);
    if (!target)
      return failure();
    FailureOr<BackwardAlgorithm> wanted = algorithmOf(op);
    if (failed(wanted))
      return failure();
    BackwardScheduleAttr schedule =
        op.getSchedule().value_or(chooseBackwardSchedule(
            &getContext(), *wanted, target.getInfo(), op.getElementType(),
            HeadDims(op), needsOf(op), passedOver));
    StringRef name = stringifyBackwardAlgorithm(*wanted);
    if (!schedule)
      return op.emitOpError()
             << "no " << name << " schedule for gradients of head dimension "
             << HeadDims(op).str() << " in " << op.getElementType() << " on "
             << target.getChip()
             << whatThereIs(op.getElementType(), [&](Type type) {
                  return largestBackwardHeadDim(*wanted, target.getInfo(),
                                                type);
                });
    // Options are about the kernels with matrix products.
    SmallVector<ScheduleAttr> kernels(schedule.getKernels());
    for (auto [launch, kernel] :
         llvm::zip_equal(specOf(*wanted).launches, kernels))
      if (launch.products > 0 && !(kernel = override(op, kernel)))
        return failure();
    schedule = BackwardScheduleAttr::get(&getContext(), *wanted, kernels);
    if (failed(checkBackwardSchedule([&] { return op.emitOpError(); },
                                     target.getInfo(), op.getElementType(),
                                     HeadDims(op), schedule)) ||
        failed(checkScoreGradients(op, target.getInfo(), *wanted)))
      return failure();
    op.setScheduleAttr(schedule);
    remarkOn(op, schedule.getKey());
    return success();
  }

  LogicalResult choose(DropoutMaskOp op) {
    TargetAttr target = setTarget(op);
    if (!target)
      return failure();
    if (!op.getSchedule())
      op.setScheduleAttr(chooseMaskSchedule(&getContext(), target.getInfo(),
                                            op.getElementType()));
    if (!op.getSchedule())
      return op.emitOpError()
             << "no schedule for " << op.getElementType() << " on "
             << target.getChip()
             << othersThan(op.getElementType(), [&](Type type) {
                  return largestForwardHeadDim(target.getInfo(), type);
                });
    return checkMaskSchedule([&] { return op.emitOpError(); }, target.getInfo(),
                             *op.getSchedule());
  }

  /// The algorithm that the option names, or the schedule that is there, or the
  /// one that every caller can use.
  FailureOr<BackwardAlgorithm> algorithmOf(BackwardOp op) {
    std::optional<BackwardScheduleAttr> given = op.getSchedule();
    if (algorithm.empty())
      return given ? given->getAlgorithm() : BackwardAlgorithm::Deterministic;
    std::optional<BackwardAlgorithm> wanted =
        symbolizeBackwardAlgorithm(StringRef(algorithm));
    if (!wanted)
      return op.emitOpError()
             << "unknown algorithm '" << algorithm.getValue() << "'; known: "
             << spec::namesOf(spec::specOf(OpKind::Backward).algorithms);
    if (given && given->getAlgorithm() != *wanted)
      return op.emitOpError()
             << "has a schedule of algorithm '"
             << stringifyBackwardAlgorithm(given->getAlgorithm())
             << "', but option algorithm asks for '" << algorithm.getValue()
             << "'; leave one of them out";
    return *wanted;
  }

  /// The schedule with the pass's options in place of its parameters; null,
  /// with an error, if one of them is out of range.
  ScheduleAttr override(Operation *op, ScheduleAttr schedule) {
    auto pick = [](int32_t option, int32_t value) {
      return option ? option : value;
    };
    auto pickFlag = [](int32_t option, int32_t value) {
      return option != -1 ? option : value;
    };
    auto emitError = [&] { return op->emitOpError(); };
    InstAttr instruction = schedule.getInst();
    if (!inst.empty())
      instruction =
          InstAttr::getChecked(emitError, &getContext(), StringRef(inst));
    if (!instruction)
      return {};
    return ScheduleAttr::getChecked(
        emitError, &getContext(), pick(blockM, schedule.getBlockM()),
        pick(blockN, schedule.getBlockN()), pick(waves, schedule.getWaves()),
        instruction, pick(stages, schedule.getStages()),
        pick(wavesPerSimd, schedule.getWavesPerSimd()),
        pickFlag(rescaleThreshold, schedule.getRescaleThreshold()),
        pick(valueSplit, schedule.getValueSplit()),
        pickFlag(queriesInLds, schedule.getQueriesInLds()),
        pickFlag(directCopy, schedule.getDirectCopy()),
        pickFlag(columnChunk, schedule.getColumnChunk()));
  }
};
} // namespace

fovea::attn::KernelNeeds fovea::attn::needsOf(AttentionOpInterface op) {
  KernelNeeds needs = 0;
  if (ArrayAttr visible = op.getVisibilityAttr())
    if (llvm::any_of(visible, llvm::IsaPred<WindowAttr>))
      needs |= kTakesWindow;
  if (!op.getLists().empty())
    needs |= kReadsLists;
  if (!op.getScore().empty())
    needs |= kHasProgram;
  if (readsTiles(op.getScore()))
    needs |= kReadsTiles;
  if (!op.getDropout().empty())
    needs |= kDropsWeights;
  if (!op.getHeadDims().empty())
    needs |= kCutsColumns;
  if (op.getHeadDim() != op.getHeadDimV())
    needs |= kColumnsDiffer;
  return needs;
}
