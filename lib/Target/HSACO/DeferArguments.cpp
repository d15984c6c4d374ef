//===- DeferArguments.cpp - read arguments where they are used ------------===//

#include "DeferArguments.h"
#include "KernelArguments.h"
#include "RecomputeScalars.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Scalar/Sink.h"

using namespace llvm;
using namespace fovea;
using namespace fovea::hsaco;

/// The innermost block outside of loops that all users of a value lie behind.
/// Null: it has no user.
static BasicBlock *blockOfUsers(Value &value, DominatorTree &dominators,
                                LoopInfo &loops) {
  BasicBlock *block = nullptr;
  for (Use &use : value.uses()) {
    auto *user = cast<Instruction>(use.getUser());
    BasicBlock *at = user->getParent();
    if (auto *phi = dyn_cast<PHINode>(user))
      at = phi->getIncomingBlock(use);
    block = block ? dominators.findNearestCommonDominator(block, at) : at;
  }
  while (block && loops.getLoopFor(block))
    block = dominators.getNode(block)->getIDom()->getBlock();
  return block;
}

/// Where a value is needed in a block at the latest.
static Instruction *firstUserIn(BasicBlock &block, const Value &value) {
  Instruction *first = block.getTerminator();
  for (const User *user : value.users()) {
    auto *at = cast<Instruction>(user);
    if (at->getParent() == &block && !isa<PHINode>(at) && at->comesBefore(first))
      first = const_cast<Instruction *>(at);
  }
  return first;
}

namespace {
class DeferArguments : public PassInfoMixin<DeferArguments> {
public:
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (function.getCallingConv() != CallingConv::AMDGPU_KERNEL)
      return PreservedAnalyses::all();
    auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
    auto &loops = analyses.getResult<LoopAnalysis>(function);
    // Sinking comes before: it would undo part of this.
    const bool isInNeed = recomputeScalars(
        function, dominators, loops,
        analyses.getResult<UniformityInfoAnalysis>(function));
    KernelArguments arguments(function);
    for (Argument &argument : function.args()) {
      BasicBlock *block = blockOfUsers(argument, dominators, loops);
      if (!block || block == &function.getEntryBlock())
        continue;
      Value *segment = arguments.segment();
      IRBuilder<> b(block, block->getFirstInsertionPt());
      if (isInNeed) {
        // One by one, where LLVM would read up to 16 registers' worth at once,
        // before all else that is done there.
        b.SetInsertPoint(firstUserIn(*block, argument));
        segment = hide(b, segment);
      }
      argument.replaceAllUsesWith(arguments.load(b, argument, segment));
    }
    return PreservedAnalyses::none();
  }
};
} // namespace

void fovea::hsaco::addDeferArguments(FunctionPassManager &passes) {
  passes.addPass(SinkingPass());
  passes.addPass(DeferArguments());
}
