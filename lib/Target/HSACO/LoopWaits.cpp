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
#include <set>
#include <tuple>
#include <vector>

using namespace llvm;

static constexpr StringRef kFile = "LoopWaits.cpp";
static constexpr StringRef kLegalizer = "si-memory-legalizer";

namespace {
/// A wait that LLVM may drop, and the same one that it keeps.
struct Wait {
  StringRef soft, kept;
};
constexpr Wait kWaits[] = {{"S_WAITCNT_soft", "S_WAITCNT"},
                           {"S_WAIT_DSCNT_soft", "S_WAIT_DSCNT"}};

/// The target's instructions, looked through once.
struct Instructions {
  enum Kind : uint8_t { Other, Lds, Barrier };
  std::vector<Kind> kinds;           ///< by opcode
  DenseMap<unsigned, unsigned> kept; ///< by waits that LLVM may drop
  StringRef missing;                 ///< of kWaits, in this LLVM

  explicit Instructions(const TargetInstrInfo &info) {
    for (unsigned opcode = 0; opcode != info.getNumOpcodes(); ++opcode) {
      StringRef name = info.getName(opcode);
      kinds.push_back(name.starts_with("DS_")         ? Lds
                      : name.starts_with("S_BARRIER") ? Barrier
                                                      : Other);
    }
    auto find = [&](StringRef name) {
      auto opcode = fovea::hsaco::opcodeNamed(name, info);
      if (!opcode)
        missing = name;
      return opcode.value_or(0);
    };
    for (const Wait &wait : kWaits)
      kept[find(wait.soft)] = find(wait.kept);
  }
};

/// Writes to LDS, or reads of it, that loops have under way at a place of a
/// program. Those ahead of loops are not among them: LLVM knows of these.
struct Accesses {
  bool isAny = false;
  /// One of an iteration before: LLVM knows of others when it first looks.
  bool isCarried = false;
  /// Results of accesses that are the last of these, or behind it, on every way
  /// here: accesses of LDS are done in their order, so that what uses one of
  /// these has waited for all.
  std::set<Register> doneBy;

  auto tied() const { return std::tie(isAny, isCarried, doneBy); }
  bool operator==(const Accesses &other) const {
    return tied() == other.tied();
  }
  void join(const Accesses &other, bool isBack) {
    if (other.isAny) {
      if (isAny)
        set_intersect(doneBy, other.doneBy);
      else
        doneBy = other.doneBy;
    }
    isAny |= other.isAny;
    isCarried |= isBack ? other.isAny : other.isCarried;
  }
};

struct Lds {
  Accesses writes, reads;

  bool isCarried() const { return writes.isCarried || reads.isCarried; }
  bool operator==(const Lds &other) const {
    return writes == other.writes && reads == other.reads;
  }
  void join(const Lds &other, bool isBack) {
    writes.join(other.writes, isBack);
    reads.join(other.reads, isBack);
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
    const TargetInstrInfo *info = function.getSubtarget().getInstrInfo();
    static const Instructions found(*info);
    instructions = &found;
    registers = function.getSubtarget().getRegisterInfo();
    loops = &getAnalysis<MachineLoopInfoWrapperPass>().getLI();
    StringRef missing = isPlaced ? found.missing : kLegalizer;
    if (!missing.empty()) {
      fovea::hsaco::reportMissing(missing, kFile, function);
      return false;
    }
    ends.clear();
    Waits waits;
    for (bool isDone = false; !isDone;) {
      const Ends before = ends;
      waits = walk(function);
      isDone = before == ends;
    }
    bool isChanged = false;
    for (auto [instruction, isCarried] : waits)
      if (isCarried) {
        instruction->setDesc(
            info->get(found.kept.lookup(instruction->getOpcode())));
        isChanged = true;
      }
    return isChanged;
  }

private:
  /// Waits that LLVM may drop, and whether an access is carried there.
  using Waits = MapVector<MachineInstr *, bool>;
  using Ends = std::map<const MachineBasicBlock *, Lds>; ///< of blocks

  Waits walk(MachineFunction &function) {
    Waits waits;
    ReversePostOrderTraversal<MachineFunction *> order(&function);
    SmallPtrSet<const MachineBasicBlock *, 32> ahead;
    for (MachineBasicBlock *block : order) {
      Lds lds;
      for (const MachineBasicBlock *from : block->predecessors())
        lds.join(ends[from], /*isBack=*/!ahead.count(from));
      for (MachineInstr &instruction : *block) {
        if (instructions->kept.count(instruction.getOpcode()))
          waits[&instruction] = lds.isCarried();
        pass(instruction, lds, loops->getLoopFor(block));
      }
      ends[block] = std::move(lds);
      ahead.insert(block);
    }
    return waits;
  }

  /// Whether LLVM waits ahead of the instruction for one of `results`: of what
  /// it waits for, what is read without doubt.
  bool takes(const MachineInstr &instruction,
             const std::set<Register> &results) const {
    return !instruction.isMetaInstruction() &&
           any_of(instruction.explicit_uses(), [&](const MachineOperand &use) {
             return use.isReg() && use.isUse() && use.getReg() &&
                    !use.isUndef() && !use.isTied() &&
                    any_of(results, [&](Register result) {
                      return registers->regsOverlap(use.getReg(), result);
                    });
           });
  }

  void pass(const MachineInstr &instruction, Lds &lds, bool isInLoop) const {
    const auto kind = instructions->kinds[instruction.getOpcode()];
    const bool isBarrier = kind == Instructions::Barrier ||
                           (instruction.isInlineAsm() &&
                            StringRef(instruction.getOperand(0).getSymbolName())
                                .contains("s_barrier"));
    // Atomics are both; exchanges of lanes are neither, but are done in order.
    auto follow = [&](Accesses &accesses, bool isOne) {
      if (isBarrier || takes(instruction, accesses.doneBy))
        accesses = Accesses();
      if (kind != Instructions::Lds)
        return;
      if (isOne) {
        accesses.isAny |= isInLoop;
        accesses.doneBy.clear();
      }
      if (accesses.isAny)
        for (const MachineOperand &result : instruction.defs())
          accesses.doneBy.insert(result.getReg());
    };
    follow(lds.writes, instruction.mayStore());
    follow(lds.reads, instruction.mayLoad());
  }

  const bool isPlaced;
  const MachineLoopInfo *loops = nullptr;
  const Instructions *instructions = nullptr;
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
