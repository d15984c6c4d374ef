//===- RecomputeAtUses.cpp - scalars where they are used ------------------===//

#include "RecomputeAtUses.h"
#include "ScalarPressure.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/IR/Function.h"
#include <optional>

using namespace llvm;
using fovea::hsaco::ScalarPressure;

/// Instructions of which a value is made again at most, at one place.
static constexpr size_t kMostInstructions = 12;
/// How much more an instruction costs in a loop than ahead of it.
static constexpr double kLoopWeight = 16;
/// What reading memory costs, in instructions.
static constexpr double kLoadCost = 6;
/// Blocks through which a value that others are made of may be held for longer.
static constexpr size_t kMostBlocks = 64;
/// Values that are made again at most.
static constexpr int kMostValues = 400;

namespace {
/// What is inserted at one place to make a value again.
struct Piece {
  MachineInstr *at = nullptr; ///< it comes before this one
  SmallVector<MachineInstr *> copied;
  /// What is read in place of a register that hides it.
  DenseMap<Register, Register> aliases;
  DenseSet<Register> made, begun;
  SmallVector<MachineOperand *> uses; ///< that read it
  MachineInstr *condition = nullptr;  ///< copied last of those that set it
};

/// How a value is made again.
struct Plan {
  Register reg;
  SmallVector<MachineInstr *> definitions;
  SmallVector<Piece> pieces;
  double cost = 0; ///< in instructions; in the end for each register
};

class RecomputeAtUses : public MachineFunctionPass, ScalarPressure {
public:
  static char ID;
  RecomputeAtUses() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override {
    return "Work scalars out where they are used";
  }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<LiveIntervalsWrapperPass>();
    usage.addRequired<MachineLoopInfoWrapperPass>();
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  bool mayBeHeld(Register reg, LaneBitmask lanes, const MachineInstr &at) const;
  SmallVector<MachineInstr *> definitionsOf(Register reg) const;
  Register hiddenBy(Register reg) const;
  bool isRecomputable(const MachineInstr &instruction) const;

  bool want(Piece &piece, const MachineOperand &operand,
            const MachineInstr &user);
  bool make(Piece &piece, Register reg);
  bool copy(Piece &piece, MachineInstr &instruction, Register self);
  std::optional<Piece> pieceAt(Register reg, MachineInstr &at);
  double costOf(const Piece &piece) const;
  double weightOf(const MachineBasicBlock &block) const;
  std::optional<Plan> planFor(Register reg, size_t point);
  Register insert(const Piece &piece, Register reg,
                  SmallSetVector<Register, 16> &changed);
  void apply(const Plan &plan);
  void removeUnused(Register reg, SmallSetVector<Register, 16> &changed);
  std::optional<size_t> mostCrowded() const;
  std::optional<Plan> cheapestAt(size_t point);

  MachineDominatorTree *dominators = nullptr;
  MachineLoopInfo *loops = nullptr;
  DenseSet<Register> copies; ///< what was made again, which is not once more
  /// Points where nothing can be: an instruction, and which of its two.
  DenseSet<std::pair<const MachineInstr *, size_t>> hopeless;
};
} // namespace

char RecomputeAtUses::ID;
/// Whether a register may be alive for longer, up to an instruction that its
/// only definition dominates.
bool RecomputeAtUses::mayBeHeld(Register reg, LaneBitmask lanes,
                                const MachineInstr &at) const {
  if (!isScalar(reg) || definitionsOf(reg).empty())
    return false;
  const int size = registersOf(reg, lanes);
  // Whether the register is alive in between, and if not, whether it may.
  auto walk = [&](const MachineBasicBlock *block,
                  size_t to) -> std::optional<bool> {
    const size_t from = 2 * blocks.lookup(block).first;
    const std::optional<size_t> alive = lastAlive(reg, lanes, from, to);
    if (mostPressure.lookup(block) + size > int(limit)) // somewhere in it
      for (size_t point = to; point > (alive ? *alive + 1 : from); --point)
        if (pressure[point - 1] + size > int(limit))
          return false;
    return alive ? std::optional(true) : std::nullopt;
  };
  SmallPtrSet<const MachineBasicBlock *, 16> seen;
  if (auto found = walk(at.getParent(), 2 * numbers.lookup(&at) + 1))
    return *found;
  SmallVector<const MachineBasicBlock *> work(at.getParent()->predecessors());
  while (!work.empty()) {
    const MachineBasicBlock *block = work.pop_back_val();
    if (!seen.insert(block).second)
      continue;
    if (block->pred_empty() || seen.size() > kMostBlocks)
      return false;
    if (auto found = walk(block, 2 * blocks.lookup(block).second)) {
      if (!*found)
        return false;
      continue;
    }
    append_range(work, block->predecessors());
  }
  return true;
}

static bool isEmptyAssembly(const MachineInstr &instruction) {
  return instruction.isInlineAsm() &&
         StringRef(
             instruction.getOperand(InlineAsm::MIOp_AsmString).getSymbolName())
             .empty();
}

/// The instructions that make a register, all in one block, if each of its
/// lanes is made once. Empty: they are others.
SmallVector<MachineInstr *> RecomputeAtUses::definitionsOf(Register reg) const {
  SmallVector<MachineInstr *> found;
  LaneBitmask done;
  for (MachineOperand &operand : values->def_operands(reg)) {
    MachineInstr *instruction = operand.getParent();
    if (isEmptyAssembly(*instruction) && operand.isTied())
      continue; // it hides what was copied
    const LaneBitmask lanes = lanesOf(operand);
    if ((done & lanes).any() || instruction->isBundled() ||
        (!found.empty() &&
         found.front()->getParent() != instruction->getParent()))
      return {};
    done |= lanes;
    found.push_back(instruction);
  }
  sort(found, [&](MachineInstr *a, MachineInstr *b) {
    return numbers.lookup(a) < numbers.lookup(b);
  });
  return found;
}

/// The register whose value another one hides from LLVM.
Register RecomputeAtUses::hiddenBy(Register reg) const {
  const SmallVector<MachineInstr *> definitions = definitionsOf(reg);
  if (definitions.size() != 1 || !definitions[0]->isFullCopy() ||
      !definitions[0]->getOperand(1).getReg().isVirtual())
    return {};
  return definitions[0]->getOperand(1).getReg();
}

bool RecomputeAtUses::isRecomputable(const MachineInstr &instruction) const {
  if (instruction.isInlineAsm() || instruction.isCall() ||
      instruction.isTerminator() || instruction.isPosition() ||
      instruction.isPHI() || instruction.mayStore() ||
      instruction.hasUnmodeledSideEffects() || instruction.isConvergent() ||
      instruction.isBundled() || instruction.isImplicitDef())
    return false;
  if (instruction.mayLoad() &&
      (instruction.memoperands_empty() ||
       any_of(instruction.memoperands(), [](const MachineMemOperand *memory) {
         return !memory->isInvariant() || memory->isVolatile() ||
                memory->isAtomic() || memory->isStore();
       })))
    return false;
  return all_of(instruction.operands(), [&](const MachineOperand &operand) {
    if (operand.isRegMask())
      return false;
    if (!operand.isReg() || !operand.isDef())
      return true;
    return operand.getReg().isVirtual()
               ? isScalar(operand.getReg()) && !operand.isTied()
               : operand.getReg() == condition;
  });
}

/// Sees to it that what an instruction reads can be read at a place.
bool RecomputeAtUses::want(Piece &piece, const MachineOperand &operand,
                           const MachineInstr &user) {
  const Register reg = operand.getReg();
  const LaneBitmask lanes = lanesOf(operand);
  if (operand.isUndef() || piece.made.contains(reg))
    return true;
  if (isSame(reg, lanes, user, *piece.at) || mayBeHeld(reg, lanes, *piece.at))
    return true;
  for (Register from = hiddenBy(reg); from; from = hiddenBy(from)) {
    if (values->getRegClass(from) != values->getRegClass(reg) ||
        definitionsOf(from).empty())
      continue;
    const LaneBitmask all = values->getMaxLaneMaskForVReg(from);
    if (!isAlive(from, all, 2 * numbers.lookup(piece.at)) &&
        !mayBeHeld(from, all, *piece.at))
      continue;
    piece.aliases[reg] = from;
    return true;
  }
  return make(piece, reg);
}

/// Copies what makes a register: first what all of it is made of, since what
/// sets the condition may be in between.
bool RecomputeAtUses::make(Piece &piece, Register reg) {
  const SmallVector<MachineInstr *> definitions = definitionsOf(reg);
  if (definitions.empty() || !piece.begun.insert(reg).second)
    return false;
  for (MachineInstr *definition : definitions)
    for (const MachineOperand &use : definition->all_uses())
      if (use.getReg().isVirtual() && use.getReg() != reg &&
          !want(piece, use, *definition))
        return false;
  for (MachineInstr *definition : definitions)
    if (!copy(piece, *definition, reg))
      return false;
  piece.made.insert(reg);
  return true;
}

/// Copies an instruction to a place, and what it is made of.
bool RecomputeAtUses::copy(Piece &piece, MachineInstr &instruction,
                           Register self) {
  if (!isRecomputable(instruction) || piece.copied.size() >= kMostInstructions)
    return false;
  bool isConditional = false;
  for (const MachineOperand &use : instruction.all_uses()) {
    const Register reg = use.getReg();
    if (reg.isVirtual()) {
      if (reg != self && !want(piece, use, instruction))
        return false;
    } else if (reg == condition) {
      isConditional = true;
    } else if (lanesOnRegisters.contains(reg)) {
      if (lanesOn[numbers.lookup(&instruction)] !=
          lanesOn[numbers.lookup(piece.at)])
        return false;
    } else if (!values->isConstantPhysReg(reg) &&
               !(values->isReserved(reg) && values->def_empty(reg))) {
      return false; // what a kernel is started with is there at its start alone
    }
  }
  if (isConditional) {
    const size_t first = blocks.lookup(instruction.getParent()).first;
    size_t number = numbers.lookup(&instruction);
    MachineInstr *setter = nullptr;
    while (!setter && number > first)
      if (MachineInstr *before = order[--number];
          before->modifiesRegister(condition, registers))
        setter = before;
    if (!setter)
      return false;
    if (piece.condition != setter) {
      if (any_of(setter->all_defs(), [](const MachineOperand &definition) {
            return definition.getSubReg() != 0;
          }))
        return false;
      if (!copy(piece, *setter, /*self=*/Register()))
        return false;
      for (const MachineOperand &definition : setter->all_defs())
        if (definition.getReg().isVirtual() &&
            definitionsOf(definition.getReg()).size() == 1)
          piece.made.insert(definition.getReg());
    }
  }
  piece.copied.push_back(&instruction);
  if (instruction.modifiesRegister(condition, registers))
    piece.condition = &instruction;
  return true;
}

/// What makes a register again ahead of an instruction.
std::optional<Piece> RecomputeAtUses::pieceAt(Register reg, MachineInstr &at) {
  auto [first, last] = blocks.lookup(at.getParent());
  size_t number = numbers.lookup(&at);
  while (conditionAlive[number]) {
    if (number == first)
      return std::nullopt;
    --number;
  }
  const MachineInstr *made = definitionsOf(reg).back();
  if (made->getParent() == at.getParent() && number <= numbers.lookup(made))
    return std::nullopt;
  Piece piece;
  piece.at = order[number];
  if (!make(piece, reg))
    return std::nullopt;
  return piece;
}

double RecomputeAtUses::weightOf(const MachineBasicBlock &block) const {
  double weight = 1;
  for (unsigned depth = loops->getLoopDepth(&block); depth; --depth)
    weight *= kLoopWeight;
  return weight;
}

double RecomputeAtUses::costOf(const Piece &piece) const {
  double cost = 0;
  for (const MachineInstr *instruction : piece.copied)
    cost += instruction->mayLoad() ? kLoadCost : 1;
  return cost * weightOf(*piece.at->getParent());
}

/// How a register is made again, so that it is not alive at a point.
std::optional<Plan> RecomputeAtUses::planFor(Register reg, size_t point) {
  Plan plan;
  plan.reg = reg;
  plan.definitions = definitionsOf(reg);
  if (plan.definitions.empty() || !all_of(plan.definitions, [&](auto *made) {
        return isRecomputable(*made);
      }))
    return std::nullopt;
  const MachineInstr *made = plan.definitions.back();
  for (MachineInstr &definition : values->def_instructions(reg))
    if (numbers.lookup(&definition) > numbers.lookup(made))
      made = &definition; // which hides it
  SmallVector<MachineOperand *> uses;
  for (MachineOperand &use : values->use_nodbg_operands(reg)) {
    MachineInstr *user = use.getParent();
    if (user->isBundled())
      return std::nullopt;
    if (use.isUndef())
      continue;
    if (user->getParent() == made->getParent()
            ? numbers.lookup(user) <= numbers.lookup(made)
            : !dominators->dominates(made->getParent(), user->getParent())) {
      if (user->getParent() != made->getParent())
        return std::nullopt;
      continue; // of what there is of it by then
    }
    if (use.isTied())
      return std::nullopt;
    uses.push_back(&use);
  }
  auto placeOf = [&](const MachineOperand *use) {
    const MachineInstr *user = use->getParent();
    return std::pair(dominators->getNode(user->getParent())->getDFSNumIn(),
                     numbers.lookup(user));
  };
  sort(uses, [&](auto *a, auto *b) { return placeOf(a) < placeOf(b); });
  bool isHeld = false;
  for (MachineOperand *use : uses) {
    MachineInstr *user = use->getParent();
    // From where the value is made, or made again already.
    Piece *from = nullptr;
    for (Piece &piece : reverse(plan.pieces)) {
      const bool isThere =
          piece.at->getParent() == user->getParent()
              ? numbers.lookup(piece.at) <= numbers.lookup(user)
              : dominators->dominates(piece.at->getParent(), user->getParent());
      if (isThere &&
          (piece.at == user || !isCrowdedBetween(*piece.at, *user))) {
        from = &piece;
        break;
      }
    }
    if (from) {
      from->uses.push_back(use);
      continue;
    }
    if (!isCrowdedBetween(*made, *user)) {
      isHeld = true;
      continue;
    }
    std::optional<Piece> best = pieceAt(reg, *user);
    for (auto *node = dominators->getNode(user->getParent());
         node->getBlock() != made->getParent();) {
      node = node->getIDom();
      MachineBasicBlock *block = node->getBlock();
      if (best && weightOf(*block) >= weightOf(*best->at->getParent()))
        continue;
      auto end = block->getFirstTerminator();
      if (end == block->end())
        continue;
      if (isCrowdedBetween(*end, *user))
        break;
      if (std::optional<Piece> piece = pieceAt(reg, *end);
          piece && (!best || costOf(*piece) < costOf(*best)))
        best = std::move(piece);
    }
    if (!best || (best->at->getParent() == user->getParent() &&
                  point >= 2 * numbers.lookup(best->at) &&
                  point < 2 * numbers.lookup(user)))
      return std::nullopt;
    best->uses.push_back(use);
    plan.pieces.push_back(std::move(*best));
  }
  if (plan.pieces.empty())
    return std::nullopt;
  for (const Piece &piece : plan.pieces)
    plan.cost += costOf(piece);
  if (!isHeld)
    plan.cost -= double(plan.definitions.size()) * weightOf(*made->getParent());
  return plan;
}

/// Drops what makes a register that nothing reads.
void RecomputeAtUses::removeUnused(Register reg,
                                   SmallSetVector<Register, 16> &changed) {
  if (!values->use_nodbg_empty(reg))
    return;
  SmallVector<MachineInstr *> unused;
  for (MachineInstr &definition : values->def_instructions(reg)) {
    if (!isEmptyAssembly(definition) && !isRecomputable(definition))
      return;
    for (const MachineOperand &other : definition.all_defs())
      if (other.getReg().isVirtual() ? other.getReg() != reg : !other.isDead())
        return;
    unused.push_back(&definition);
  }
  if (unused.empty())
    return;
  values->markUsesInDebugValueAsUndef(reg);
  SmallVector<Register> read;
  for (MachineInstr *instruction : unused) {
    for (const MachineOperand &use : instruction->all_uses())
      if (use.getReg().isVirtual() && use.getReg() != reg)
        read.push_back(use.getReg());
    intervals->RemoveMachineInstrFromMaps(*instruction);
    instruction->eraseFromParent();
  }
  intervals->removeInterval(reg);
  changed.remove(reg);
  for (Register other : read) {
    changed.insert(other);
    removeUnused(other, changed);
  }
}

/// Inserts the copies of a piece. \return the register that they make
Register RecomputeAtUses::insert(const Piece &piece, Register reg,
                                 SmallSetVector<Register, 16> &changed) {
  DenseMap<Register, Register> made;
  MachineInstr *setter = nullptr; // of the condition, as long as none reads it
  auto endCondition = [&] {
    if (setter)
      setter->addRegisterDead(condition, registers);
    setter = nullptr;
  };
  for (MachineInstr *instruction : piece.copied) {
    MachineInstr *copy = function->CloneMachineInstr(instruction);
    copy->setDebugLoc(DebugLoc());
    for (MachineOperand &use : copy->all_uses()) {
      use.setIsKill(false);
      if (use.getReg() == condition)
        setter = nullptr;
      if (!use.getReg().isVirtual())
        continue;
      if (Register other = made.lookup(use.getReg()))
        use.setReg(other);
      else if (Register alias = piece.aliases.lookup(use.getReg()))
        use.setReg(alias);
      changed.insert(use.getReg());
    }
    for (MachineOperand &definition : copy->all_defs()) {
      definition.setIsDead(false);
      if (!definition.getReg().isVirtual())
        continue;
      Register &fresh = made[definition.getReg()];
      if (!fresh || definition.getSubReg() == 0)
        fresh = values->createVirtualRegister(
            values->getRegClass(definition.getReg()));
      definition.setReg(fresh);
      changed.insert(fresh);
      copies.insert(fresh);
    }
    piece.at->getParent()->insert(piece.at->getIterator(), copy);
    intervals->InsertMachineInstrInMaps(*copy);
    if (copy->modifiesRegister(condition, registers)) {
      endCondition();
      setter = copy;
    }
  }
  endCondition();
  return made.lookup(reg);
}

void RecomputeAtUses::apply(const Plan &plan) {
  SmallSetVector<Register, 16> changed;
  changed.insert(plan.reg);
  for (const Piece &piece : plan.pieces) {
    const Register made = insert(piece, plan.reg, changed);
    for (MachineOperand *use : piece.uses)
      use->setReg(made);
  }
  removeUnused(plan.reg, changed);
  intervals->removeAllRegUnitsForPhysReg(condition);
  for (Register reg : changed) {
    values->clearKillFlags(reg);
    if (intervals->hasInterval(reg))
      intervals->removeInterval(reg);
    if (values->reg_nodbg_empty(reg))
      continue;
    LiveInterval &interval = intervals->createAndComputeVirtRegInterval(reg);
    SmallVector<LiveInterval *> parts;
    intervals->splitSeparateComponents(interval, parts);
  }
}

/// The point where most registers are alive, of those where they lack.
std::optional<size_t> RecomputeAtUses::mostCrowded() const {
  std::optional<size_t> most;
  for (size_t point = 0; point < 2 * order.size(); ++point)
    if (isCrowded(point, point + 1) &&
        (!most || pressure[point] > pressure[*most]) &&
        !hopeless.contains({order[point / 2], point % 2}))
      most = point;
  return most;
}

/// What costs least of what is alive at a point, and not read or written there.
std::optional<Plan> RecomputeAtUses::cheapestAt(size_t point) {
  const MachineInstr &at = *order[point / 2];
  const SlotIndex slot = slotOf(point);
  std::optional<Plan> best;
  for (Register reg : scalars) {
    const LiveInterval &interval = intervals->getInterval(reg);
    if (copies.contains(reg) || !interval.liveAt(slot) ||
        (point % 2 == 0 ? at.readsVirtualRegister(reg)
                        : at.modifiesRegister(reg, registers)))
      continue;
    LaneBitmask alive = interval.hasSubRanges() ? LaneBitmask::getNone()
                                                : LaneBitmask::getAll();
    for (const LiveInterval::SubRange &part : interval.subranges())
      if (part.liveAt(slot))
        alive |= part.LaneMask;
    std::optional<Plan> plan = planFor(reg, point);
    if (!plan)
      continue;
    plan->cost /= std::max(registersOf(reg, alive), 1u);
    if (!best || plan->cost < best->cost)
      best = std::move(plan);
  }
  return best;
}
bool RecomputeAtUses::runOnMachineFunction(MachineFunction &ofModule) {
  unsigned left = 0;
  if (ofModule.getFunction()
          .getFnAttribute(fovea::hsaco::kRecomputedAtUsesAttrName)
          .getValueAsString()
          .getAsInteger(10, left))
    return false;
  enter(ofModule, getAnalysis<LiveIntervalsWrapperPass>().getLIS());
  dominators = &intervals->getDomTree();
  dominators->updateDFSNumbers();
  loops = &getAnalysis<MachineLoopInfoWrapperPass>().getLI();
  if (!condition || left >= limit)
    return false;
  limit -= left;
  copies.clear();
  hopeless.clear();
  bool isChanged = false;
  for (int value = 0; value < kMostValues; ++value) {
    count();
    std::optional<Plan> plan;
    while (std::optional<size_t> point = mostCrowded()) {
      plan = cheapestAt(*point);
      if (plan)
        break;
      hopeless.insert({order[*point / 2], *point % 2});
    }
    if (!plan)
      break;
    apply(*plan);
    isChanged = true;
  }
  return isChanged;
}

void fovea::hsaco::addRecomputeAtUses(TargetPassConfig &config) {
  config.insertPass(&MachineSchedulerID, new RecomputeAtUses());
}
