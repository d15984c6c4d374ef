//===- IllegalCopies.cpp - copies that no instruction does ----------------===//

#include "IllegalCopies.h"
#include "Opcodes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

static constexpr StringRef kCopy = "SI_ILLEGAL_COPY";

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
    static const std::optional<unsigned> opcode = fovea::hsaco::opcodeNamed(
        kCopy, *function.getSubtarget().getInstrInfo());
    if (!opcode) {
      fovea::hsaco::reportMissing(kCopy, "IllegalCopies.cpp", function);
      return false;
    }
    bool isChanged = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &instruction : make_early_inc_range(block.instrs()))
        if (instruction.getOpcode() == *opcode) {
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
