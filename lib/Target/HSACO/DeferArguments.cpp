//===- DeferArguments.cpp - read arguments where they are used ------------===//

#include "DeferArguments.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/Transforms/Scalar/Sink.h"

using namespace llvm;
using namespace fovea;

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

namespace {
class DeferArguments : public PassInfoMixin<DeferArguments> {
public:
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (function.getCallingConv() != CallingConv::AMDGPU_KERNEL)
      return PreservedAnalyses::all();
    auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
    auto &loops = analyses.getResult<LoopAnalysis>(function);
    const DataLayout &layout = function.getDataLayout();
    CallInst *segment = nullptr;
    uint64_t offset = 0;
    for (Argument &argument : function.args()) {
      Type *type = argument.getType();
      const Align alignment = layout.getABITypeAlign(type);
      offset = alignTo(offset, alignment);
      const uint64_t at = offset;
      offset += layout.getTypeAllocSize(type);
      BasicBlock *block = blockOfUsers(argument, dominators, loops);
      if (!block || block == &function.getEntryBlock())
        continue;
      if (!segment) {
        BasicBlock &entry = function.getEntryBlock();
        IRBuilder<> b(&entry, entry.getFirstInsertionPt());
        segment = b.CreateIntrinsic(Intrinsic::amdgcn_kernarg_segment_ptr, {});
        segment->addRetAttr(
            Attribute::getWithAlignment(b.getContext(), Align(16)));
      }
      IRBuilder<> b(block, block->getFirstInsertionPt());
      Value *address = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), segment, at);
      LoadInst *load = b.CreateAlignedLoad(
          type, address, commonAlignment(Align(16), at), argument.getName());
      load->setMetadata(LLVMContext::MD_invariant_load,
                        MDNode::get(b.getContext(), {}));
      argument.replaceAllUsesWith(load);
    }
    return PreservedAnalyses::none();
  }
};
} // namespace

void fovea::hsaco::addDeferArguments(FunctionPassManager &passes) {
  passes.addPass(SinkingPass());
  passes.addPass(DeferArguments());
}
