//===- LoopWaits.cpp - waits that loops need ------------------------------===//

#include "LoopWaits.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace {
/// A wait that LLVM may drop, and the same one that it keeps.
struct Wait {
  StringRef soft, kept;
};
} // namespace

static constexpr Wait kWaits[] = {{"S_WAITCNT_soft", "S_WAITCNT"},
                                  {"S_WAIT_DSCNT_soft", "S_WAIT_DSCNT"}};

namespace {
class LoopWaits : public MachineFunctionPass {
public:
  static char ID;
  LoopWaits() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Keep waits of loops"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<MachineLoopInfoWrapperPass>();
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    const MachineLoopInfo &loops =
        getAnalysis<MachineLoopInfoWrapperPass>().getLI();
    bool isChanged = false;
    for (MachineBasicBlock &block : function) {
      if (!loops.isLoopHeader(&block) ||
          !endsWriting(*loops.getLoopFor(&block)))
        continue;
      for (MachineInstr &instruction : block) {
        StringRef name = info.getName(instruction.getOpcode());
        if (name.starts_with("S_BARRIER"))
          break;
        for (const Wait &wait : kWaits)
          if (name == wait.soft) {
            instruction.setDesc(info.get(opcodeOf(info, wait.kept)));
            isChanged = true;
          }
      }
    }
    return isChanged;
  }

private:
  /// Whether an iteration may end with a write to LDS under way: accesses of
  /// LDS are done in their order, so that what uses a later read waits for it.
  static bool endsWriting(const MachineLoop &loop) {
    const MachineFunction &function = *loop.getHeader()->getParent();
    const TargetInstrInfo &info = *function.getSubtarget().getInstrInfo();
    const TargetRegisterInfo &registers =
        *function.getSubtarget().getRegisterInfo();
    auto is = [&](const MachineInstr &instruction,
                  std::initializer_list<StringRef> beginnings) {
      StringRef name = info.getName(instruction.getOpcode());
      return any_of(beginnings, [&](StringRef beginning) {
        return name.starts_with(beginning);
      });
    };
    bool isWriting = false;
    SmallVector<Register> readBehind;
    for (const MachineBasicBlock &block : function) {
      if (!loop.contains(&block))
        continue;
      const bool isSure =
          &block == loop.getHeader() || loop.isLoopLatch(&block);
      for (const MachineInstr &instruction : block) {
        if (is(instruction, {"DS_WRITE", "DS_STORE"})) {
          isWriting = true;
          readBehind.clear();
        } else if (isSure && isWriting &&
                   (is(instruction, {"S_BARRIER"}) ||
                    any_of(readBehind, [&](Register read) {
                      return instruction.readsRegister(read, &registers);
                    }))) {
          isWriting = false;
        } else if (is(instruction, {"DS_READ", "DS_LOAD"})) {
          for (const MachineOperand &result : instruction.defs())
            readBehind.push_back(result.getReg());
        }
      }
    }
    return isWriting;
  }

  static unsigned opcodeOf(const TargetInstrInfo &info, StringRef name) {
    unsigned opcode = 0;
    while (info.getName(opcode) != name)
      ++opcode;
    return opcode;
  }
};
} // namespace

char LoopWaits::ID;

void fovea::hsaco::addLoopWaits(TargetPassConfig &config) {
  // Which makes the waits; those of registers come behind it.
  const PassInfo *legalizer = PassRegistry::getPassRegistry()->getPassInfo(
      StringRef("si-memory-legalizer"));
  if (legalizer)
    config.insertPass(legalizer->getTypeInfo(), new LoopWaits());
}
