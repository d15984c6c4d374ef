//===- RecomputeLanes.cpp - what a lane knows of itself -------------------===//

#include "RecomputeLanes.h"
#include "KernelArguments.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace llvm;
using namespace fovea::hsaco;

/// Lanes of the smallest wave: what is below is the lane's own number, and not
/// that of the work-item.
static constexpr uint64_t kLanes = 32;
/// Instructions that a value may take from the lane's number on.
static constexpr size_t kMostPerLane = 8;
/// Instructions from a value on to the comparison that it is for.
static constexpr int kMostSteps = 4;

/// Bits of the lane's number, of the work-item's.
static bool isOfLane(const Instruction &instruction) {
  if (instruction.getOpcode() != Instruction::And)
    return false;
  auto *item = dyn_cast<IntrinsicInst>(instruction.getOperand(0));
  auto *bits = dyn_cast<ConstantInt>(instruction.getOperand(1));
  return item && item->getIntrinsicID() == Intrinsic::amdgcn_workitem_id_x &&
         bits && bits->getValue().ult(kLanes);
}

static bool isCheap(const Instruction &instruction) {
  return isa<BinaryOperator, CastInst, ICmpInst, SelectInst, MinMaxIntrinsic>(
             instruction) &&
         instruction.getType()->isIntegerTy() && !instruction.isIntDivRem();
}

/// Whether an instruction is there to compare, as those that mask are, in loops
/// that take a small part of the time.
static bool isToCompare(const Instruction &instruction,
                        int steps = kMostSteps) {
  if (isa<ICmpInst>(instruction))
    return true;
  return steps > 0 && isa<BinaryOperator>(instruction) &&
         !instruction.use_empty() &&
         all_of(instruction.users(), [&](const User *user) {
           return isToCompare(*cast<Instruction>(user), steps - 1);
         });
}

namespace {
/// Of one function.
class LaneValues {
public:
  bool recompute(Function &function, FunctionAnalysisManager &analyses);

private:
  bool follows(Instruction &instruction, const UniformityInfo &uniformity);
  Value *again(Value *value, BasicBlock &block);

  /// Instructions that follow from a lane's number, and how many it takes.
  MapVector<Instruction *, size_t> found;
  /// What was made of them again, by block.
  DenseMap<std::pair<BasicBlock *, Value *>, Value *> made;
};

struct RecomputeLanes : PassInfoMixin<RecomputeLanes> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (!function.hasFnAttribute(kRecomputedLanesAttrName))
      return PreservedAnalyses::all();
    if (LaneValues().recompute(function, analyses))
      return PreservedAnalyses::none();
    // By which Emit sees that the code would be the same.
    function.removeFnAttr(kRecomputedLanesAttrName);
    return PreservedAnalyses::all();
  }
};
} // namespace

bool LaneValues::follows(Instruction &instruction,
                         const UniformityInfo &uniformity) {
  if (isOfLane(instruction)) {
    found[&instruction] = 1;
    return true;
  }
  if (!isCheap(instruction))
    return false;
  size_t takes = 1;
  for (Value *operand : instruction.operands()) {
    if (isa<Function>(operand))
      continue;
    if (auto *other = dyn_cast<Instruction>(operand);
        other && found.contains(other))
      takes += found[other];
    else if (!isa<Constant>(operand) && !uniformity.isUniform(operand))
      return false;
  }
  if (takes == 1 || takes > kMostPerLane)
    return false;
  found[&instruction] = takes;
  return true;
}

/// The value at the start of a block, where LLVM does not know that it was
/// there before.
Value *LaneValues::again(Value *value, BasicBlock &block) {
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || !found.contains(instruction))
    return value;
  Value *&result = made[{&block, value}];
  if (result)
    return result;
  SmallVector<Value *> operands;
  if (isOfLane(*instruction)) {
    Value *&lane = made[{&block, nullptr}];
    if (!lane) {
      IRBuilder<> b(&block, block.getFirstInsertionPt());
      Type *type = b.getInt32Ty();
      // LLVM would take a count below all ones for the work-item's number,
      // which a register holds.
      Value *all = hide(b, ConstantInt::getAllOnesValue(type));
      Value *low = b.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_lo,
                                     {all, ConstantInt::get(type, 0)});
      Value *number = b.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_hi, {all, low});
      lane = b.CreateCall(InlineAsm::get(FunctionType::get(type, {type}, false),
                                         "", "=v,0",
                                         /*hasSideEffects=*/true),
                          {number});
    }
    operands = {lane, instruction->getOperand(1)};
  } else {
    for (Value *operand : instruction->operands())
      operands.push_back(again(operand, block));
  }
  Instruction *copy = instruction->clone();
  copy->dropLocation();
  BasicBlock::iterator at = block.getFirstInsertionPt();
  for (auto [i, operand] : enumerate(operands)) {
    copy->setOperand(i, operand);
    if (auto *before = dyn_cast<Instruction>(operand);
        before && before->getParent() == &block && !before->comesBefore(&*at))
      at = std::next(before->getIterator());
  }
  copy->insertBefore(at);
  return made[{&block, value}] = copy;
}

bool LaneValues::recompute(Function &function,
                           FunctionAnalysisManager &analyses) {
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &uniformity = analyses.getResult<UniformityInfoAnalysis>(function);
  ReversePostOrderTraversal<Function *> blocks(&function);
  for (BasicBlock *block : blocks)
    if (!loops.getLoopFor(block))
      for (Instruction &instruction : *block)
        follows(instruction, uniformity);
  // Whether the way from one block to the other may lead through a loop, or
  // into one.
  auto isBehindLoop = [&](BasicBlock *from, BasicBlock *to) {
    return from != to && any_of(loops, [&](const Loop *loop) {
             return isPotentiallyReachable(from, loop->getHeader(), nullptr,
                                           &dominators, &loops) &&
                    isPotentiallyReachable(loop->getHeader(), to, nullptr,
                                           &dominators, &loops);
           });
  };
  SmallVector<std::pair<Use *, BasicBlock *>> uses;
  for (auto &[instruction, takes] : found)
    for (Use &use : instruction->uses()) {
      auto *user = cast<Instruction>(use.getUser());
      BasicBlock *at = user->getParent();
      if (isa<PHINode>(user))
        continue;
      Loop *loop = loops.getLoopFor(at);
      if (loop && loop->isInnermost() && !isToCompare(*user)) {
        at = loop->getOutermostLoop()->getLoopPreheader();
        if (!at)
          continue;
      }
      if (isBehindLoop(instruction->getParent(), at))
        uses.push_back({&use, at});
    }
  // What follows from others first: a copy is made of none that is one itself.
  for (auto [use, at] : reverse(uses))
    use->set(again(use->get(), *at));
  return !uses.empty();
}

void fovea::hsaco::addRecomputeLanes(FunctionPassManager &passes) {
  passes.addPass(RecomputeLanes());
}
