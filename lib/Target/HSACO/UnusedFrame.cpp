//===- UnusedFrame.cpp - frames that nothing touches ----------------------===//

#include "UnusedFrame.h"
#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineMemOperand.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/PseudoSourceValue.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/Function.h"

using namespace llvm;

/// AMDGPU's address space of what each lane has to itself.
static constexpr unsigned kPrivateAddressSpace = 5;
/// And of pointers that may point to any.
static constexpr unsigned kFlatAddressSpace = 0;

static bool mayTouchFrame(const MachineInstr &instruction) {
  if (instruction.isCall())
    return true;
  // What is written by hand names no memory of a lane's own.
  if (!instruction.mayLoadOrStore() || instruction.isInlineAsm())
    return false;
  // What says nothing of its memory may be anything, but for barriers and
  // their like, which LLVM models as touching all of it.
  if (instruction.memoperands_empty())
    return instruction.mayLoad() != instruction.mayStore();
  return any_of(instruction.memoperands(), [](const MachineMemOperand *memory) {
    const PseudoSourceValue *place = memory->getPseudoValue();
    return memory->getAddrSpace() == kPrivateAddressSpace ||
           memory->getAddrSpace() == kFlatAddressSpace ||
           (place && (place->isStack() ||
                      place->kind() == PseudoSourceValue::FixedStack));
  });
}

namespace {
class UnusedFrame : public MachineFunctionPass {
public:
  static char ID;
  UnusedFrame() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Drop unused frames"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    MachineFrameInfo &frame = function.getFrameInfo();
    if (frame.getStackSize() == 0 || frame.hasVarSizedObjects() ||
        function.getFunction().getCallingConv() != CallingConv::AMDGPU_KERNEL)
      return false;
    for (const MachineBasicBlock &block : function)
      if (any_of(block.instrs(), mayTouchFrame))
        return false;
    frame.setStackSize(0);
    return true;
  }
};
} // namespace

char UnusedFrame::ID;

void fovea::hsaco::addUnusedFrame(TargetPassConfig &config) {
  config.insertPass(&BranchRelaxationPassID, new UnusedFrame());
}
