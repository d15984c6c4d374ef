//===- SumRegisters.cpp - sums of products in accumulators ----------------===//

#include "SumRegisters.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"

using namespace llvm;

// The target's tables of instructions are private to LLVM, but their names are
// not: "V_MFMA_…_vgprcd_e64" is the form with results in vector registers of
// "V_MFMA_…_e64".
static constexpr StringLiteral kMatrixPrefix = "V_MFMA_";
static constexpr StringLiteral kVectorForm = "_vgprcd";

namespace {
class SumRegisters : public MachineFunctionPass {
public:
  static char ID;
  SumRegisters() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override {
    return "Keep carried sums in accumulation registers";
  }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  /// The other form of an instruction; 0: it has none.
  unsigned accumulatorForm(unsigned opcode);
  /// The register of a matrix instruction's sum so far, its last use of one;
  /// null: it is a constant.
  MachineOperand *sumSoFar(MachineInstr &product) const;
  void useElsewhere(MachineOperand &use, const TargetRegisterClass *before);

  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *registers = nullptr;
  MachineRegisterInfo *values = nullptr;
  StringMap<unsigned> accumulatorForms; ///< by name, once they are needed
};
} // namespace

char SumRegisters::ID;

unsigned SumRegisters::accumulatorForm(unsigned opcode) {
  StringRef name = instructions->getName(opcode);
  auto [before, after] = name.split(kVectorForm);
  if (!name.starts_with(kMatrixPrefix) || before == name)
    return 0;
  if (accumulatorForms.empty())
    for (unsigned other = 0; other < instructions->getNumOpcodes(); ++other)
      if (StringRef form = instructions->getName(other);
          form.starts_with(kMatrixPrefix))
        accumulatorForms[form] = other;
  return accumulatorForms.lookup((before + after).str());
}

MachineOperand *SumRegisters::sumSoFar(MachineInstr &product) const {
  // Behind the result and two factors.
  MachineOperand &sum = product.getOperand(3);
  return sum.isReg() && !sum.getSubReg() ? &sum : nullptr;
}

/// A use that takes vector registers: of a copy ahead of it.
void SumRegisters::useElsewhere(MachineOperand &use,
                                const TargetRegisterClass *before) {
  MachineInstr &user = *use.getParent();
  const TargetRegisterClass *type = before;
  const unsigned part = use.getSubReg();
  if (part)
    type = registers->getSubRegisterClass(before, part);
  Register copy = values->createVirtualRegister(type);
  BuildMI(*user.getParent(), user, user.getDebugLoc(),
          instructions->get(TargetOpcode::COPY), copy)
      .addReg(use.getReg(), /*Flags=*/{}, part);
  use.setReg(copy);
  use.setSubReg(0);
}

bool SumRegisters::runOnMachineFunction(MachineFunction &function) {
  if (!function.getFunction().hasFnAttribute(
          fovea::hsaco::kCarriedSumsAttrName))
    return false;
  instructions = function.getSubtarget().getInstrInfo();
  registers = function.getSubtarget().getRegisterInfo();
  values = &function.getRegInfo();

  // Registers that hold one sum, as products and loops hand it on.
  EquivalenceClasses<unsigned> sums;
  SmallVector<MachineInstr *> products, loops, moves;
  auto isWhole = [&](const MachineOperand &operand) {
    return operand.isReg() && operand.getReg().isVirtual() &&
           !operand.getSubReg();
  };
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      if (accumulatorForm(instruction.getOpcode())) {
        products.push_back(&instruction);
        Register result = instruction.getOperand(0).getReg();
        sums.insert(result.id());
        if (MachineOperand *before = sumSoFar(instruction))
          sums.unionSets(result.id(), before->getReg().id());
      }
    }
  if (products.empty())
    return false;
  // Those of the same registers, where a loop or a move joins two.
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      if (instruction.isPHI())
        loops.push_back(&instruction);
      else if (instruction.isCopy() && isWhole(instruction.getOperand(0)) &&
               isWhole(instruction.getOperand(1)))
        moves.push_back(&instruction);
    }
  auto isSum = [&](Register reg) {
    return sums.findLeader(reg.id()) != sums.member_end();
  };
  // Zeros that sums begin with are one value for all: none of them.
  auto isHanded = [&](Register reg) {
    const MachineInstr *source = values->getVRegDef(reg);
    return !source->isRegSequence() && !source->isImplicitDef();
  };
  SmallVector<MachineInstr *> joins = loops;
  joins.append(moves);
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (MachineInstr *join : joins) {
      Register result = join->getOperand(0).getReg();
      bool touches = isSum(result);
      for (const MachineOperand &operand : join->uses())
        touches |= isWhole(operand) && isSum(operand.getReg());
      if (!touches)
        continue;
      for (const MachineOperand &operand : join->uses())
        if (isWhole(operand) && isHanded(operand.getReg()) &&
            registers->getCommonSubClass(
                values->getRegClass(operand.getReg()),
                values->getRegClass(result)) &&
            !sums.isEquivalent(operand.getReg().id(), result.id())) {
          sums.unionSets(operand.getReg().id(), result.id());
          isChanged = true;
        }
    }
  }
  SmallSet<unsigned, 16> carried; // leaders
  for (MachineInstr *loop : loops)
    if (Register sum = loop->getOperand(0).getReg(); isSum(sum))
      carried.insert(*sums.findLeader(sum.id()));
  auto isCarried = [&](Register reg) {
    return reg.isVirtual() && isSum(reg) &&
           carried.contains(*sums.findLeader(reg.id()));
  };

  MapVector<unsigned, const TargetRegisterClass *> before; // by leaders
  for (MachineInstr *product : products) {
    if (!isCarried(product->getOperand(0).getReg()))
      continue;
    product->setDesc(instructions->get(accumulatorForm(product->getOpcode())));
    const unsigned leader =
        *sums.findLeader(product->getOperand(0).getReg().id());
    const TargetRegisterClass *now =
        instructions->getRegClass(product->getDesc(), 0);
    if (before.contains(leader))
      continue;
    before[leader] = values->getRegClass(product->getOperand(0).getReg());
    for (auto member = sums.findLeader(leader); member != sums.member_end();
         ++member)
      values->setRegClass(Register(*member), now);
  }
  for (auto [leader, type] : before)
    for (auto member = sums.findLeader(leader); member != sums.member_end();
         ++member) {
      Register reg(*member);
      // What else makes it, makes it where it did; parts are moved one by one.
      MachineInstr *source = values->getVRegDef(reg);
      if (!source->isPHI() && !source->isCopy() && !source->isRegSequence() &&
          !StringRef(instructions->getName(source->getOpcode()))
               .starts_with(kMatrixPrefix)) {
        Register made = values->createVirtualRegister(type);
        // Of inline assembly the first operand is its text.
        for (MachineOperand &result : source->all_defs())
          if (result.getReg() == reg)
            result.setReg(made);
        BuildMI(*source->getParent(), std::next(source->getIterator()),
                source->getDebugLoc(), instructions->get(TargetOpcode::COPY),
                reg)
            .addReg(made);
      }
      for (MachineOperand &use :
           make_early_inc_range(values->use_operands(reg))) {
        MachineInstr *user = use.getParent();
        if (user->isPHI() || user->isCopy() ||
            (StringRef(instructions->getName(user->getOpcode()))
                 .starts_with(kMatrixPrefix) &&
             user->getOperandNo(&use) == 3))
          continue;
        useElsewhere(use, type);
      }
    }
  return !before.empty();
}

void fovea::hsaco::addSumRegisters(TargetPassConfig &config) {
  config.insertPass(&FinalizeISelID, new SumRegisters());
}
