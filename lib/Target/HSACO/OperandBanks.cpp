//===- OperandBanks.cpp - operands of WMMA in banks of their own ----------===//

#include "OperandBanks.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"
#include <array>

using namespace llvm;

static constexpr StringLiteral kWmmaPrefix = "V_WMMA_";
static constexpr StringLiteral kSparsePrefix = "V_SWMMAC_";
/// Banks of the register file: register v is in bank v % 4.
static constexpr unsigned kBanks = 4;
/// Two factors and a sum.
static constexpr unsigned kOperands = 3;
/// How much more a loop's clash costs than one outside of it.
static constexpr uint64_t kClashesOfLoop = 16;
/// A kind of hint that LLVM's target has not.
static constexpr unsigned kHintKind = 64;
/// Rounds in which registers change to a better bank; few need a second.
static constexpr int kRounds = 4;

namespace {
/// An operand of a WMMA: `offset` registers into a virtual register.
struct Operand {
  Register reg;
  unsigned offset;
};

/// Two operands that are not to begin in one bank, seen from one of them.
struct Clash {
  Register other;
  unsigned distance; ///< from the bank of the other register to the forbidden
  uint64_t weight;
};

class OperandBanks : public MachineFunctionPass {
public:
  static char ID;
  explicit OperandBanks(StringSet<> &hinted)
      : MachineFunctionPass(ID), hinted(hinted) {}

  StringRef getPassName() const override {
    return "Put operands of WMMA in banks of their own";
  }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<MachineLoopInfoWrapperPass>();
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  bool isProduct(const MachineInstr &instruction) const;
  SmallVector<Operand, kOperands>
  operandsOf(const MachineInstr &instruction) const;
  void chooseBanks();
  void hint(const MachineFunction &function, Register reg, unsigned bank);

  StringSet<> &hinted; ///< functions
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *registers = nullptr;
  MachineRegisterInfo *values = nullptr;
  /// In the order of the code, so that the same code gets the same banks.
  MapVector<Register, SmallVector<Clash>> clashes;
  DenseMap<Register, unsigned> banks;
};
} // namespace

char OperandBanks::ID;

bool OperandBanks::isProduct(const MachineInstr &instruction) const {
  StringRef name = instructions->getName(instruction.getOpcode());
  return name.starts_with(kWmmaPrefix) || name.starts_with(kSparsePrefix);
}

/// The virtual registers that a WMMA reads; a sum of zeros is a constant.
SmallVector<Operand, kOperands>
OperandBanks::operandsOf(const MachineInstr &instruction) const {
  SmallVector<Operand, kOperands> found;
  for (const MachineOperand &use : instruction.explicit_uses())
    if (use.isReg() && use.getReg().isVirtual() && found.size() < kOperands)
      found.push_back({use.getReg(),
                       use.getSubReg()
                           ? registers->getSubRegIdxOffset(use.getSubReg()) / 32
                           : 0});
  return found;
}

/// Each register takes the bank with the least clashes with those that have
/// one; of several the one of its place in products.
void OperandBanks::chooseBanks() {
  for (int round = 0; round < kRounds; ++round) {
    bool isChanged = false;
    for (const auto &[reg, all] : clashes) {
      std::array<uint64_t, kBanks> cost = {};
      for (const Clash &clash : all)
        if (auto other = banks.find(clash.other); other != banks.end())
          cost[(other->second + clash.distance) % kBanks] += clash.weight;
      unsigned best = banks.lookup(reg);
      for (unsigned bank = 0; bank < kBanks; ++bank)
        if (cost[bank] < cost[best])
          best = bank;
      isChanged |= best != banks[reg];
      banks[reg] = best;
    }
    if (!isChanged)
      return;
  }
}

/// Hints of a target: those of none are dropped where a register is copied, as
/// sums are that several loops carry. Of these the first is for whoever knows the
/// kind, and all others are for everybody.
void OperandBanks::hint(const MachineFunction &function, Register reg,
                        unsigned bank) {
  bool isFirst = true;
  for (MCPhysReg choice :
       values->getRegClass(reg)->getRawAllocationOrder(function)) {
    if (registers->getEncodingValue(choice) % kBanks != bank)
      continue;
    if (isFirst)
      values->setRegAllocationHint(reg, kHintKind, choice);
    values->addRegAllocationHint(reg, choice);
    isFirst = false;
  }
}

bool OperandBanks::runOnMachineFunction(MachineFunction &function) {
  if (function.getFunction().hasFnAttribute(
          fovea::hsaco::kAnyBanksAttrName))
    return false;
  instructions = function.getSubtarget().getInstrInfo();
  registers = function.getSubtarget().getRegisterInfo();
  values = &function.getRegInfo();
  clashes.clear();
  banks.clear();
  const auto &loops = getAnalysis<MachineLoopInfoWrapperPass>().getLI();
  for (const MachineBasicBlock &block : function) {
    uint64_t weight = 1;
    for (unsigned depth = loops.getLoopDepth(&block); depth; --depth)
      weight *= kClashesOfLoop;
    for (const MachineInstr &instruction : block) {
      if (!isProduct(instruction))
        continue;
      SmallVector<Operand, kOperands> operands = operandsOf(instruction);
      for (auto [place, operand] : enumerate(operands)) {
        banks.try_emplace(operand.reg,
                          (place + kBanks - operand.offset % kBanks) % kBanks);
        for (const Operand &other : operands)
          if (other.reg != operand.reg)
            clashes[operand.reg].push_back(
                {other.reg,
                 (other.offset + kBanks - operand.offset % kBanks) % kBanks,
                 weight});
      }
    }
  }
  if (clashes.empty())
    return false;
  chooseBanks();
  for (const auto &[reg, all] : clashes)
    hint(function, reg, banks[reg]);
  hinted.insert(function.getName());
  return true;
}

void fovea::hsaco::addOperandBanks(TargetPassConfig &config,
                                   StringSet<> &hinted) {
  config.insertPass(&MachineSchedulerID, new OperandBanks(hinted));
}
