//===- LoopWaits.cpp - waits that loops need ------------------------------===//

#include "LoopWaits.h"
#include "Opcodes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include <map>
#include <optional>
#include <set>
#include <tuple>

using namespace llvm;

namespace {
/// A wait that LLVM may drop, and the same one that it keeps.
struct Wait {
  StringRef soft, kept;
};
} // namespace

static constexpr Wait kWaits[] = {{"S_WAITCNT_soft", "S_WAITCNT"},
                                  {"S_WAIT_DSCNT_soft", "S_WAIT_DSCNT"}};
static constexpr StringRef kLegalizer = "si-memory-legalizer";

namespace {
/// What loops have under way at a place of a program. Writes ahead of them are
/// not among it: LLVM knows of these.
struct Lds {
  bool isReached = false, isWriting = false;
  /// A write of an iteration before: LLVM knows of others when it first looks.
  bool isCarried = false;
  /// Results of reads behind the last write on every way here: accesses of LDS
  /// are done in their order, so that what uses one of these has waited for it.
  std::set<Register> readBehind;

  bool operator==(const Lds &other) const {
    return std::tie(isReached, isWriting, isCarried, readBehind) ==
           std::tie(other.isReached, other.isWriting, other.isCarried,
                    other.readBehind);
  }
  void join(const Lds &other, bool isBack) {
    if (!other.isReached)
      return;
    if (other.isWriting) {
      if (isWriting)
        set_intersect(readBehind, other.readBehind);
      else
        readBehind = other.readBehind;
    }
    isWriting |= other.isWriting;
    isCarried |= isBack ? other.isWriting : other.isCarried;
    isReached = true;
  }
};

class LoopWaits : public MachineFunctionPass {
public:
  static char ID;
  explicit LoopWaits(bool isPlaced)
      : MachineFunctionPass(ID), isPlaced(isPlaced) {}

  StringRef getPassName() const override { return "Keep waits of loops"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<MachineLoopInfoWrapperPass>();
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    info = function.getSubtarget().getInstrInfo();
    registers = function.getSubtarget().getRegisterInfo();
    loops = &getAnalysis<MachineLoopInfoWrapperPass>().getLI();
    static const std::optional<Opcodes> found = opcodes(*info);
    if (!isPlaced || !found) {
      fovea::hsaco::reportMissing(isPlaced ? "soft wait" : kLegalizer,
                                  "LoopWaits.cpp", function);
      return false;
    }
    ends.clear();
    Waits waits;
    for (bool isDone = false; !isDone;) {
      const Ends before = ends;
      waits = walk(function, *found);
      isDone = before == ends;
    }
    bool isChanged = false;
    for (auto [instruction, isCarried] : waits)
      if (isCarried) {
        instruction->setDesc(
            info->get(found->lookup(instruction->getOpcode())));
        isChanged = true;
      }
    return isChanged;
  }

private:
  /// By waits that LLVM may drop those that it keeps.
  using Opcodes = DenseMap<unsigned, unsigned>;
  /// Waits that LLVM may drop, and whether a write is carried there.
  using Waits = MapVector<MachineInstr *, bool>;
  using Ends = std::map<const MachineBasicBlock *, Lds>; ///< of blocks

  /// None: this LLVM has other names.
  static std::optional<Opcodes> opcodes(const TargetInstrInfo &info) {
    Opcodes all;
    for (const Wait &wait : kWaits) {
      auto soft = fovea::hsaco::opcodeNamed(wait.soft, info);
      auto kept = fovea::hsaco::opcodeNamed(wait.kept, info);
      if (!soft || !kept)
        return std::nullopt;
      all[*soft] = *kept;
    }
    return all;
  }

  Waits walk(MachineFunction &function, const Opcodes &soft) {
    Waits waits;
    ReversePostOrderTraversal<MachineFunction *> order(&function);
    SmallPtrSet<const MachineBasicBlock *, 32> ahead;
    for (MachineBasicBlock *block : order) {
      Lds lds;
      lds.isReached = block == &function.front();
      for (const MachineBasicBlock *from : block->predecessors())
        lds.join(ends[from], /*isBack=*/!ahead.count(from));
      for (MachineInstr &instruction : *block) {
        if (soft.count(instruction.getOpcode()))
          waits[&instruction] = lds.isCarried;
        pass(instruction, lds, loops->getLoopFor(block));
      }
      ends[block] = std::move(lds);
      ahead.insert(block);
    }
    return waits;
  }

  void pass(const MachineInstr &instruction, Lds &lds, bool isInLoop) const {
    StringRef name = info->getName(instruction.getOpcode());
    auto is = [&](StringRef beginning) { return name.starts_with(beginning); };
    if (is("S_BARRIER") ||
        (instruction.isInlineAsm() &&
         StringRef(instruction.getOperand(0).getSymbolName())
             .contains("s_barrier")) ||
        any_of(lds.readBehind, [&](Register read) {
          return instruction.readsRegister(read, registers);
        })) {
      lds.isWriting = lds.isCarried = false;
      lds.readBehind.clear();
    }
    if (is("DS_WRITE") || is("DS_STORE")) {
      lds.isWriting |= isInLoop;
      lds.readBehind.clear();
    } else if (lds.isWriting && (is("DS_READ") || is("DS_LOAD"))) {
      for (const MachineOperand &result : instruction.defs())
        lds.readBehind.insert(result.getReg());
    }
  }

  const bool isPlaced;
  const MachineLoopInfo *loops = nullptr;
  const TargetInstrInfo *info = nullptr;
  const TargetRegisterInfo *registers = nullptr;
  Ends ends;
};
} // namespace

char LoopWaits::ID;

void fovea::hsaco::addLoopWaits(TargetPassConfig &config) {
  // Which makes the waits; those of registers come behind it.
  const PassInfo *legalizer =
      PassRegistry::getPassRegistry()->getPassInfo(kLegalizer);
  config.insertPass(legalizer ? legalizer->getTypeInfo()
                              : &BranchRelaxationPassID,
                    new LoopWaits(/*isPlaced=*/legalizer));
}
