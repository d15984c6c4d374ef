//===- LoopOrder.cpp - the order of a loop's instructions -----------------===//

#include "LoopOrder.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/Analysis/AliasAnalysis.h"
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
#include <limits>

using namespace llvm;

namespace {
/// What an instruction takes, in clocks.
struct Cost {
  int issue = 4;   ///< of the wave
  int latency = 8; ///< until its result can be used
  int pipe = 0;    ///< of the matrix core
  bool isHeldBack = false; ///< takes registers if it is early
};

/// Blocks with many products, between barriers: products in their order, as the
/// matrix core takes them, and between them what is due.
class LoopOrder : public MachineFunctionPass {
public:
  static char ID;
  LoopOrder() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Order loops of products"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<AAResultsWrapperPass>();
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  using Run = SmallVector<MachineInstr *>;
  Cost costOf(const MachineInstr &instruction) const;
  bool isBoundary(const MachineInstr &instruction) const;
  void order(const Run &run);
  StringRef nameOf(const MachineInstr &instruction) const {
    return instructions->getName(instruction.getOpcode());
  }

  const TargetInstrInfo *instructions = nullptr;
  AAResults *aliases = nullptr;
  unsigned fence = 0; ///< that LLVM's scheduler moves nothing over
  bool isDouble = false; ///< products take two issues
};
} // namespace

char LoopOrder::ID;

// Few products are no loop that counts.
static constexpr int kFewProducts = 16;
// That a loop has beside those of what each element is hidden by.
static constexpr int kManyComparisons = 6;
// LDS answers after so many clocks, where it is as busy as in these loops.
static constexpr int kReadLatency = 160;
// What is ahead by more than these clocks takes registers for nothing: reads
// and scalars, and what else there is.
static constexpr int kReadAhead = 120, kAhead = 600;
// Vector registers of a wave without those of sums, but for a few that are in
// use for a moment.
static constexpr int kMostRegisters = 222;
// Of the work that is left, what each product that is left has beside it at
// least.
static constexpr double kShareBeside = 0.5;
// Products that may overtake one whose operands are not there yet.
static constexpr int kLookahead = 4;

Cost LoopOrder::costOf(const MachineInstr &instruction) const {
  if (instruction.isCopyLike() || instruction.isRegSequence() ||
      instruction.isImplicitDef() || instruction.isInlineAsm() ||
      instruction.isMetaInstruction() || instruction.isInsertSubreg() ||
      instruction.isSubregToReg())
    return {0, 0};
  StringRef name = nameOf(instruction);
  if (name.starts_with("V_MFMA_")) {
    const bool isWide = name.contains("32X32X");
    const int pipe = isWide ? 32 : 16;
    return {isDouble ? 8 : 4, pipe + (isWide ? 36 : 20), pipe};
  }
  if (name.starts_with("DS_READ"))
    return {8, kReadLatency, 0, true};
  if (name.starts_with("DS_WRITE"))
    return {8, 0};
  if (name.starts_with("V_EXP_F32"))
    return {isDouble ? 8 : 16, isDouble ? 16 : 24};
  if (name.starts_with("BUFFER_") || name.starts_with("GLOBAL_"))
    return {4, instruction.mayLoad() && !instruction.mayStore() ? 800 : 0};
  const bool isScalar = name.starts_with("S_");
  return {4, isScalar ? 4 : 8, 0, isScalar};
}

bool LoopOrder::isBoundary(const MachineInstr &instruction) const {
  if (instruction.isTerminator() || instruction.isPHI() ||
      instruction.isCall() || instruction.isPosition())
    return true;
  StringRef name = nameOf(instruction);
  return name.starts_with("S_BARRIER") || name.starts_with("S_SETREG") ||
         name.starts_with("S_SETPRIO") || name.starts_with("S_WAITCNT");
}

void LoopOrder::order(const Run &run) {
  const int count = int(run.size());
  SmallVector<Cost> costs;
  SmallVector<SmallVector<int>> users(count), sources(count);
  auto follow = [&](int source, int user) {
    if (source == user || is_contained(users[source], user))
      return;
    users[source].push_back(user);
    sources[user].push_back(source);
  };
  DenseMap<Register, int> makers;
  DenseMap<unsigned, int> touched; // units of scalar state, by whom last
  const MachineFunction &function = *run[0]->getMF();
  const MachineRegisterInfo &values = function.getRegInfo();
  const TargetRegisterInfo &registers =
      *function.getSubtarget().getRegisterInfo();
  SmallVector<int> accesses;
  int lastMemory = -1;
  for (int i = 0; i < count; ++i) {
    MachineInstr &instruction = *run[i];
    costs.push_back(costOf(instruction));
    for (const MachineOperand &operand : instruction.operands()) {
      if (!operand.isReg() || !operand.getReg())
        continue;
      Register reg = operand.getReg();
      if (reg.isVirtual()) {
        if (operand.isDef())
          makers[reg] = i;
        else if (auto maker = makers.find(reg); maker != makers.end())
          follow(maker->second, i);
        continue;
      }
      // Of EXEC and MODE nothing here makes another.
      StringRef name = registers.getName(reg.asMCReg());
      if (values.isConstantPhysReg(reg) || name.starts_with("EXEC") ||
          name == "MODE")
        continue;
      for (auto unit : registers.regunits(reg.asMCReg())) {
        auto [last, isNew] = touched.try_emplace(static_cast<unsigned>(unit), i);
        if (!isNew) {
          follow(last->second, i);
          last->second = i;
        }
      }
    }
    if (!instruction.mayLoadOrStore() || instruction.isInlineAsm())
      continue;
    const bool isLds = nameOf(instruction).starts_with("DS_");
    if (!isLds) {
      if (nameOf(instruction).starts_with("S_LOAD")) // what no kernel writes
        continue;
      if (lastMemory >= 0)
        follow(lastMemory, i);
      lastMemory = i;
      continue;
    }
    for (int before : accesses)
      if ((instruction.mayStore() || run[before]->mayStore()) &&
          instruction.mayAlias(aliases, *run[before], /*UseTBAA=*/false))
        follow(before, i);
    accesses.push_back(i);
  }

  // When products should be under way, if the matrix core is the limit, or else
  // as the issue of all lets them.
  int pipe = 0, issue = 0;
  for (const Cost &cost : costs) {
    pipe += cost.pipe;
    issue += cost.issue;
  }
  const double stretch = std::max(1.0, double(issue) / std::max(pipe, 1));
  SmallVector<double> anchor(count), due(count);
  double at = 0;
  for (int i = 0; i < count; ++i) {
    anchor[i] = at;
    at += costs[i].pipe * stretch;
  }
  const double end = at;
  for (int i = count - 1; i >= 0; --i) {
    due[i] = costs[i].pipe || users[i].empty() ? anchor[i] : end;
    for (int user : users[i])
      due[i] = std::min(due[i], due[user] - costs[i].latency);
  }

  SmallVector<int> missing(count);
  SmallVector<double> ready(count, 0.0);
  SmallVector<bool> isDone(count, false);
  for (int i = 0; i < count; ++i)
    missing[i] = int(sources[i].size());
  SmallVector<int> products;
  for (int i = 0; i < count; ++i)
    if (costs[i].pipe)
      products.push_back(i);
  // Vector registers that are in use: what comes from outside all the time, what
  // is made here until it is used for the last time.
  auto sizeOf = [&](Register reg) {
    const TargetRegisterClass *type = values.getRegClass(reg);
    StringRef name = registers.getRegClassName(type);
    if (!name.starts_with("V") && !name.starts_with("AV"))
      return 0;
    return int(registers.getRegSizeInBits(*type) / 32);
  };
  SmallVector<SmallVector<Register>> uses(count);
  DenseMap<Register, int> usesLeft;
  int base = 0;
  for (int i = 0; i < count; ++i)
    for (const MachineOperand &operand : run[i]->uses())
      if (operand.isReg() && operand.getReg().isVirtual() &&
          !is_contained(uses[i], operand.getReg())) {
        Register reg = operand.getReg();
        uses[i].push_back(reg);
        auto [left, isNew] = usesLeft.try_emplace(reg, 0);
        ++left->second;
        if (isNew && !makers.contains(reg))
          base += sizeOf(reg);
      }
  for (auto [reg, maker] : makers)
    for (const MachineInstr &user : values.use_nodbg_instructions(reg))
      if (user.getParent() != run[0]->getParent() || user.isPHI())
        usesLeft[reg] = count; // lives on
  int live = base;
  auto growth = [&](int i) {
    int grows = 0;
    for (const MachineOperand &operand : run[i]->defs())
      if (operand.isReg() && operand.getReg().isVirtual())
        grows += sizeOf(operand.getReg());
    for (Register reg : uses[i])
      if (makers.contains(reg) && usesLeft[reg] == 1)
        grows -= sizeOf(reg);
    return grows;
  };
  SmallVector<int> result;
  double now = 0, pipeFree = 0;
  // Work that is left is spread evenly over the products that are left.
  double left = 0, since = 0;
  for (const Cost &cost : costs)
    left += cost.pipe ? 0 : cost.issue;
  int productsLeft = int(products.size());
  auto take = [&](int i) {
    live += growth(i);
    for (Register reg : uses[i])
      --usesLeft[reg];
    result.push_back(i);
    isDone[i] = true;
    now = std::max(now, ready[i]);
    if (costs[i].pipe) {
      now = std::max(now, pipeFree);
      pipeFree = now + costs[i].pipe;
      --productsLeft;
      since = 0;
    } else {
      left -= costs[i].issue;
      since += costs[i].issue;
    }
    for (int user : users[i]) {
      --missing[user];
      ready[user] = std::max(ready[user], now + costs[i].latency);
    }
    now += costs[i].issue;
  };
  size_t firstProduct = 0;
  while (int(result.size()) < count) {
    while (firstProduct < products.size() && isDone[products[firstProduct]])
      ++firstProduct;
    // A product, if the matrix core waits for one.
    int best = -1;
    if (pipeFree <= now + 4) {
      int seen = 0;
      for (size_t p = firstProduct; p < products.size() && seen < kLookahead;
           ++p) {
        int i = products[p];
        if (isDone[i])
          continue;
        ++seen;
        if (missing[i] == 0 && ready[i] <= now + 4) {
          best = i;
          break;
        }
      }
    }
    const int product = best;
    best = -1;
    if (product >= 0 && since * productsLeft >= left * kShareBeside) {
      take(product);
      continue;
    }
    // Or what is due first of what can be had. How far the matrix core is, is
    // the clock that counts.
    const double position = firstProduct < products.size()
                                ? anchor[products[firstProduct]]
                                : end;
    double earliest = std::numeric_limits<double>::max();
    int next = -1;
    for (int i = 0; i < count; ++i) {
      if (isDone[i] || missing[i] || costs[i].pipe)
        continue;
      if (due[i] > position + (costs[i].isHeldBack ? kReadAhead : kAhead))
        continue;
      if (const int grows = growth(i); grows > 0 && live + grows > kMostRegisters)
        continue;
      if (ready[i] > now) {
        if (ready[i] < earliest) {
          earliest = ready[i];
          next = i;
        }
        continue;
      }
      if (best < 0 || due[i] < due[best])
        best = i;
    }
    if (best < 0)
      best = product;
    if (best >= 0) {
      take(best);
      continue;
    }
    // Nothing can be had at once: the first product, or what comes first.
    if (firstProduct < products.size())
      if (int i = products[firstProduct];
          missing[i] == 0 && std::max(ready[i], pipeFree) <= earliest)
        next = i;
    if (next < 0) // reads that are held back
      for (int i = 0; i < count; ++i)
        if (!isDone[i] && missing[i] == 0 &&
            (next < 0 || due[i] < due[next]))
          next = i;
    take(next);
  }

  // LLVM's scheduler keeps what is between two fences there.
  MachineBasicBlock &block = *run[0]->getParent();
  auto place = std::next(run.back()->getIterator());
  for (int i : result) {
    MachineInstr &instruction = *run[i];
    block.splice(place, &block, instruction.getIterator());
    if (costs[i].pipe)
      BuildMI(block, place, instruction.getDebugLoc(), instructions->get(fence))
          .addImm(0);
  }
  for (int i : result)
    for (MachineOperand &operand : run[i]->operands())
      if (operand.isReg() && operand.isUse())
        operand.setIsKill(false);
}

bool LoopOrder::runOnMachineFunction(MachineFunction &function) {
  if (!function.getFunction().hasFnAttribute(
          fovea::hsaco::kOrderedLoopsAttrName))
    return false;
  instructions = function.getSubtarget().getInstrInfo();
  aliases = &getAnalysis<AAResultsWrapperPass>().getAAResults();
  isDouble = function.getSubtarget().getCPU() == "gfx950";
  for (unsigned opcode = 0; opcode < instructions->getNumOpcodes(); ++opcode)
    if (instructions->getName(opcode) == "SCHED_BARRIER")
      fence = opcode;
  bool isChanged = false;
  for (MachineBasicBlock &block : function) {
    int products = 0, comparisons = 0;
    for (const MachineInstr &instruction : block) {
      products += nameOf(instruction).starts_with("V_MFMA_");
      comparisons += nameOf(instruction).starts_with("V_CMP");
    }
    // Loops that mask are few iterations, and have no register to spare.
    if (products < kFewProducts || comparisons > kManyComparisons ||
        !block.isSuccessor(&block))
      continue;
    SmallVector<MachineInstr *> fences;
    Run run;
    SmallVector<Run> runs;
    auto finish = [&] {
      if (run.size() > 1)
        runs.push_back(run);
      run.clear();
    };
    for (MachineInstr &instruction : block) {
      if (nameOf(instruction).starts_with("SCHED_")) {
        fences.push_back(&instruction);
        continue;
      }
      if (isBoundary(instruction))
        finish();
      else
        run.push_back(&instruction);
    }
    finish();
    for (MachineInstr *instruction : fences)
      instruction->eraseFromParent();
    for (const Run &each : runs)
      order(each);
    isChanged = true;
  }
  return isChanged;
}

void fovea::hsaco::addLoopOrder(TargetPassConfig &config) {
  config.insertPass(&DetectDeadLanesID, new LoopOrder());
}
