//===- ScalarPressure.cpp - where scalars are alive, and how many ---------===//

#include "ScalarPressure.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;
using namespace fovea::hsaco;

// The target's tables are private to LLVM, but their names are not.
static constexpr StringLiteral kConditionName = "SCC";
static constexpr StringLiteral kLanesOnPrefix = "EXEC";
static constexpr StringLiteral kScalarPrefixes[] = {"SReg_", "SGPR_"};

bool ScalarPressure::isOfScalars(const TargetRegisterClass &type) const {
  return scalarClasses[type.getID()];
}

bool ScalarPressure::isScalar(Register reg) const {
  return reg.isVirtual() && isOfScalars(*values->getRegClass(reg));
}

unsigned ScalarPressure::registersOf(Register reg, LaneBitmask lanes) const {
  const TargetRegisterClass *type = values->getRegClass(reg);
  const LaneBitmask all = type->getLaneMask();
  const unsigned size = divideCeil(registers->getRegSizeInBits(*type), 32);
  return divideCeil(size * (lanes & all).getNumLanes(), all.getNumLanes());
}

LaneBitmask ScalarPressure::lanesOf(const MachineOperand &operand) const {
  return operand.getSubReg()
             ? registers->getSubRegIndexLaneMask(operand.getSubReg())
             : values->getMaxLaneMaskForVReg(operand.getReg());
}

/// The first point at a slot or behind it.
size_t ScalarPressure::pointOf(SlotIndex slot) const {
  const SlotIndex base = slot.getBaseIndex();
  const size_t number = lower_bound(slots, base) - slots.begin();
  if (number == slots.size() || slots[number] != base ||
      slot <= base.getRegSlot(/*EC=*/true))
    return 2 * number;
  return 2 * number + (slot <= base.getRegSlot() ? 1 : 2);
}

SlotIndex ScalarPressure::slotOf(size_t point) const {
  return slots[point / 2].getRegSlot(/*EC=*/point % 2 == 0);
}

/// Which lanes are on where, by the last one to change that.
void ScalarPressure::countLanes() {
  constexpr size_t kUnknown = ~size_t(0);
  auto writes = [&](const MachineInstr &instruction) {
    return any_of(lanesOnRegisters, [&](MCRegister reg) {
      return instruction.modifiesRegister(reg, registers);
    });
  };
  DenseMap<const MachineBasicBlock *, size_t> out;
  lanesOn.assign(order.size() + 1, kUnknown);
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (const MachineBasicBlock *block :
         ReversePostOrderTraversal<MachineFunction *>(function)) {
      auto [first, last] = blocks.lookup(block);
      size_t on = block->pred_empty() ? order.size() : kUnknown;
      for (const MachineBasicBlock *before : block->predecessors()) {
        auto found = out.find(before);
        if (found == out.end() || found->second == on)
          continue;
        on = on == kUnknown ? found->second : order.size() + 1 + first;
      }
      for (size_t i = first; i < last; ++i) {
        lanesOn[i] = on;
        if (writes(*order[i]))
          on = i;
      }
      auto [at, isNew] = out.try_emplace(block, on);
      isChanged |= isNew || at->second != on;
      at->second = on;
    }
  }
}

void ScalarPressure::count() {
  order.clear();
  slots.clear();
  numbers.clear();
  blocks.clear();
  for (MachineBasicBlock &block : *function) {
    const size_t first = order.size();
    for (MachineInstr &instruction : block.instrs()) {
      if (instruction.isDebugInstr() || instruction.isBundledWithPred())
        continue;
      numbers[&instruction] = order.size();
      order.push_back(&instruction);
      slots.push_back(intervals->getInstructionIndex(instruction));
    }
    blocks[&block] = {first, order.size()};
  }
  scalars.clear();
  pressure.assign(2 * order.size() + 1, 0);
  auto add = [&](const LiveRange &range, unsigned size) {
    for (const LiveRange::Segment &segment : range) {
      pressure[pointOf(segment.start)] += size;
      pressure[pointOf(segment.end)] -= size;
    }
  };
  for (unsigned i = 0, n = values->getNumVirtRegs(); i < n; ++i) {
    const Register reg = Register::index2VirtReg(i);
    if (values->reg_nodbg_empty(reg) || !intervals->hasInterval(reg) ||
        !isScalar(reg))
      continue;
    scalars.push_back(reg);
    const LiveInterval &interval = intervals->getInterval(reg);
    if (!interval.hasSubRanges())
      add(interval, registersOf(reg, LaneBitmask::getAll()));
    for (const LiveInterval::SubRange &part : interval.subranges())
      add(part, registersOf(reg, part.LaneMask));
  }
  crowdedBefore.assign(pressure.size() + 1, 0);
  int alive = 0;
  for (size_t point = 0; point < pressure.size(); ++point) {
    alive += pressure[point];
    pressure[point] = alive;
    crowdedBefore[point + 1] = crowdedBefore[point] + (alive > int(limit));
  }
  mostPressure.clear();
  for (auto [block, range] : blocks) {
    int &most = mostPressure[block];
    for (size_t point = 2 * range.first; point < 2 * range.second; ++point)
      most = std::max(most, pressure[point]);
  }
  conditionAlive.clear();
  conditionAlive.resize(order.size() + 1);
  for (MachineBasicBlock &block : *function) {
    bool isAlive = any_of(block.successors(), [&](MachineBasicBlock *next) {
      return next->isLiveIn(condition);
    });
    auto [first, last] = blocks.lookup(&block);
    for (size_t i = last; i-- > first;) {
      if (order[i]->readsRegister(condition, registers))
        isAlive = true;
      else if (order[i]->modifiesRegister(condition, registers))
        isAlive = false;
      conditionAlive[i] = isAlive;
    }
  }
  countLanes();
}

/// The last point ahead of another one at which a range is alive.
std::optional<size_t> ScalarPressure::lastOf(const LiveRange &range,
                                             size_t to) const {
  if (to == 0)
    return std::nullopt;
  auto segment = range.find(slotOf(to - 1)); // the first that ends behind it
  if (segment != range.end() && segment->start <= slotOf(to - 1))
    return to - 1;
  while (segment != range.begin()) {
    --segment;
    const size_t end = pointOf(segment->end);
    if (pointOf(segment->start) < end) // some lie between two points
      return end - 1;
  }
  return std::nullopt;
}

std::optional<size_t> ScalarPressure::lastAlive(Register reg, LaneBitmask lanes,
                                                size_t from, size_t to) const {
  const LiveInterval &interval = intervals->getInterval(reg);
  SmallVector<const LiveRange *, 4> parts;
  if (!interval.hasSubRanges()) {
    parts.push_back(&interval);
    lanes = LaneBitmask::getNone();
  }
  for (const LiveInterval::SubRange &part : interval.subranges())
    if ((part.LaneMask & lanes).any()) {
      parts.push_back(&part);
      lanes &= ~part.LaneMask;
    }
  if (lanes.any())
    return std::nullopt;
  // Back to where each part is alive, until all are at one point.
  for (size_t before = to + 1; before != to;) {
    before = to;
    for (const LiveRange *part : parts) {
      const std::optional<size_t> last = lastOf(*part, to);
      if (!last || *last < from)
        return std::nullopt;
      to = *last + 1;
    }
  }
  return to - 1;
}

/// Whether a register has one value where two instructions read.
bool ScalarPressure::isSame(Register reg, LaneBitmask lanes,
                            const MachineInstr &here,
                            const MachineInstr &there) const {
  const LiveInterval &interval = intervals->getInterval(reg);
  auto isSameIn = [&](const LiveRange &range) {
    const VNInfo *value =
        range.Query(intervals->getInstructionIndex(here)).valueIn();
    return value &&
           value ==
               range.Query(intervals->getInstructionIndex(there)).valueIn();
  };
  if (!interval.hasSubRanges())
    return isSameIn(interval);
  for (const LiveInterval::SubRange &part : interval.subranges())
    if ((part.LaneMask & lanes).any()) {
      if (!isSameIn(part))
        return false;
      lanes &= ~part.LaneMask;
    }
  return lanes.none();
}

/// Whether registers lack on the way from an instruction to another one, which
/// it dominates.
bool ScalarPressure::isCrowdedBetween(const MachineInstr &from,
                                      const MachineInstr &to) const {
  const size_t begin = 2 * numbers.lookup(&from) + 2;
  const size_t end = 2 * numbers.lookup(&to);
  if (from.getParent() == to.getParent())
    return isCrowded(std::min(begin, end), end);
  if (isCrowded(2 * blocks.lookup(to.getParent()).first, end) ||
      isCrowded(begin, 2 * blocks.lookup(from.getParent()).second))
    return true;
  SmallPtrSet<const MachineBasicBlock *, 16> seen = {from.getParent()};
  SmallVector<const MachineBasicBlock *> work(to.getParent()->predecessors());
  while (!work.empty()) {
    const MachineBasicBlock *block = work.pop_back_val();
    if (!seen.insert(block).second)
      continue;
    auto [first, last] = blocks.lookup(block);
    if (isCrowded(2 * first, 2 * last))
      return true;
    append_range(work, block->predecessors());
  }
  return false;
}

void ScalarPressure::enter(MachineFunction &of, LiveIntervals &ofFunction) {
  function = &of;
  registers = of.getSubtarget().getRegisterInfo();
  values = &of.getRegInfo();
  intervals = &ofFunction;
  scalarClasses.clear();
  scalarClasses.resize(registers->getNumRegClasses());
  for (const TargetRegisterClass *type : registers->regclasses()) {
    StringRef name = registers->getRegClassName(type);
    if (any_of(kScalarPrefixes,
               [&](StringRef prefix) { return name.starts_with(prefix); }))
      scalarClasses.set(type->getID());
  }
  condition = MCRegister();
  lanesOnRegisters.clear();
  for (unsigned reg = 1; reg < registers->getNumRegs(); ++reg) {
    StringRef name = registers->getName(reg);
    if (name == kConditionName)
      condition = MCRegister(reg);
    if (name.starts_with(kLanesOnPrefix))
      lanesOnRegisters.insert(MCRegister(reg));
  }
  RegisterClassInfo allocatable;
  allocatable.runOnMachineFunction(*function);
  limit = 0;
  for (const TargetRegisterClass *type : registers->regclasses())
    if (registers->getRegSizeInBits(*type) == 32 && isOfScalars(*type))
      limit = std::max<unsigned>(limit, allocatable.getOrder(type).size());
}
