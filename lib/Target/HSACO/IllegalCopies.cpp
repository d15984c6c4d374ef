//===- IllegalCopies.cpp - copies that no instruction does ----------------===//

#include "IllegalCopies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace {
class IllegalCopies : public MachineFunctionPass {
public:
  static char ID;
  IllegalCopies() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Drop illegal copies"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    bool isChanged = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &instruction : make_early_inc_range(block.instrs()))
        if (info.getName(instruction.getOpcode()) == "SI_ILLEGAL_COPY") {
          instruction.eraseFromBundle();
          isChanged = true;
        }
    return isChanged;
  }
};
} // namespace

char IllegalCopies::ID;

void fovea::hsaco::addIllegalCopies(TargetPassConfig &config) {
  config.insertPass(&BranchRelaxationPassID, new IllegalCopies());
}
