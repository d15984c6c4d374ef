//===- LoopOrder.cpp - the order of a loop's instructions -----------------===//

#include "LoopOrder.h"
#include "Opcodes.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"
#include <optional>
#include <tuple>

using namespace llvm;

namespace {
/// What an instruction takes, in clocks.
struct Cost {
  int issue = 4;   ///< of the wave, with a wait for what it reads of LDS
  int latency = 8; ///< until its result can be used
  int pipe = 0;    ///< of the matrix core
  int port = 0;    ///< of the vector ALU
};

/// Instructions between two boundaries, what each waits for, and how far they
/// are placed.
struct Dependences {
  SmallVector<Cost> costs;
  SmallVector<SmallVector<int>> users, sources;
  DenseSet<std::pair<int, int>> results; ///< that a user takes, not only follows
  DenseMap<Register, int> makers;
  SmallVector<bool> isGone; ///< no instruction, nor has it users here

  void follow(int source, int user) {
    if (source == user || is_contained(users[source], user))
      return;
    users[source].push_back(user);
    sources[user].push_back(source);
  }
  void take(int source, int user) {
    follow(source, user);
    results.insert({source, user});
  }
};

/// Blocks with many products, between barriers: from the end, all as late as
/// what needs it, the matrix core and the issue of the wave let it be.
class LoopOrder : public MachineFunctionPass {
public:
  static char ID;
  LoopOrder() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Order loops of products"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<AAResultsWrapperPass>();
    usage.addRequired<MachineLoopInfoWrapperPass>();
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  using Run = SmallVector<MachineInstr *>;
  Cost costOf(const MachineInstr &instruction) const;
  bool isBoundary(const MachineInstr &instruction) const;
  Dependences dependencesOf(const Run &run);
  void keepCarried(const Run &run, Dependences &of);
  void order(const Run &run);
  StringRef nameOf(const MachineInstr &instruction) const {
    return instructions->getName(instruction.getOpcode());
  }

  const TargetInstrInfo *instructions = nullptr;
  AAResults *aliases = nullptr;
  unsigned fence = 0;    ///< kFence
  bool isDouble = false; ///< products take two issues
};
} // namespace

char LoopOrder::ID;

// LLVM's scheduler moves nothing over it.
static constexpr StringRef kFence = "SCHED_BARRIER";
// Few products are no loop that counts.
static constexpr int kFewProducts = 8;
// That a loop has beside those of what each element is hidden by.
static constexpr int kManyComparisons = 6;
// LDS answers after so many clocks, where it is as busy as in these loops, and
// takes an access of a wave every so many.
static constexpr int kReadLatency = 160, kBetweenReads = 12;
// Ahead of the end of a loop: what is written to LDS, which the barrier waits
// for, and what is loaded, which the next iteration stores.
static constexpr int kWrittenAhead = 100, kLoadedAhead = 500;
// Loads are so far apart: together, with what makes their addresses, they take
// the places of what exponentials wait for.
static constexpr int kBetweenLoads = 48, kBetweenLoadsOfDouble = 32;
// Behind the result that they add: what is loaded waits for additions too.
static constexpr int kAddedBehind = 100;
// Vector registers without those of sums that are not to be filled: a few are in
// use for a moment, and LLVM does not place all without gaps.
static constexpr int kSpare = 44;
// Products among which the latest is chosen.
static constexpr int kWindow = 8;
// Room between products beyond what is counted: waits that LLVM adds.
static constexpr double kRoom = 1.0, kRoomOfDouble = 1.03;

Cost LoopOrder::costOf(const MachineInstr &instruction) const {
  if (instruction.isCopyLike() || instruction.isRegSequence() ||
      instruction.isImplicitDef() || instruction.isInlineAsm() ||
      instruction.isMetaInstruction() || instruction.isInsertSubreg() ||
      instruction.isSubregToReg())
    return {0, 0};
  StringRef name = nameOf(instruction);
  const int access = isDouble ? 6 : 8;
  if (name.starts_with("V_MFMA_")) {
    const bool isWide = name.contains("32X32X");
    const int pipe = isWide ? 32 : 16, issue = isDouble ? 8 : 4;
    return {issue, pipe + (isWide ? 36 : 20), pipe, issue};
  }
  if (name.starts_with("DS_"))
    return {access, instruction.mayStore() ? 0 : kReadLatency};
  if (name.starts_with("V_EXP_F32")) {
    const int busy = isDouble ? 8 : 16;
    return {4, busy + 8, 0, busy};
  }
  if (name.starts_with("BUFFER_") || name.starts_with("GLOBAL_"))
    return {4, instruction.mayLoad() && !instruction.mayStore() ? 800 : 0};
  if (name.starts_with("S_"))
    return {4, 4};
  return {4, 8, 0, 4};
}

bool LoopOrder::isBoundary(const MachineInstr &instruction) const {
  if (instruction.isTerminator() || instruction.isPHI() ||
      instruction.isCall() || instruction.isPosition())
    return true;
  // The barrier that waits for nothing is written so.
  if (instruction.isInlineAsm() && instruction.mayLoadOrStore())
    return true;
  StringRef name = nameOf(instruction);
  return name.starts_with("S_BARRIER") || name.starts_with("S_SETREG") ||
         name.starts_with("S_SETPRIO") || name.starts_with("S_WAITCNT") ||
         name == "ATOMIC_FENCE";
}

/// Registers for all but sums: vector registers, and what sums leave of the
/// accumulation registers.
static int mostRegisters(const MachineFunction &function) {
  constexpr int kRegisters = 512;
  const MachineRegisterInfo &values = function.getRegInfo();
  const TargetRegisterInfo &registers =
      *function.getSubtarget().getRegisterInfo();
  int most = 0;
  for (const MachineBasicBlock &block : function) {
    int sums = 0;
    for (const MachineInstr &phi : block.phis()) {
      const TargetRegisterClass *type =
          values.getRegClass(phi.getOperand(0).getReg());
      if (StringRef(registers.getRegClassName(type)).starts_with("A") &&
          !StringRef(registers.getRegClassName(type)).starts_with("AV"))
        sums += int(registers.getRegSizeInBits(*type) / 32);
    }
    most = std::max(most, sums);
  }
  return kRegisters - most;
}

/// What goes round a loop in registers is written behind the last use of what
/// they held, or LLVM moves it at the end, and waits there for loads.
void LoopOrder::keepCarried(const Run &run, Dependences &of) {
  const MachineBasicBlock &block = *run[0]->getParent();
  const MachineRegisterInfo &values = block.getParent()->getRegInfo();
  DenseMap<const MachineInstr *, int> number;
  for (auto [index, instruction] : llvm::enumerate(run))
    number[instruction] = int(index);
  for (const MachineInstr &phi : block.phis())
    for (unsigned k = 1; k + 1 < phi.getNumOperands(); k += 2) {
      auto maker = of.makers.find(phi.getOperand(k).getReg());
      if (phi.getOperand(k + 1).getMBB() != &block || maker == of.makers.end())
        continue;
      // Behind what is no instruction in the end.
      SmallVector<int> writers, open = {maker->second};
      DenseSet<int> met;
      while (!open.empty()) {
        const int i = open.pop_back_val();
        if (!met.insert(i).second)
          continue;
        if (of.costs[i].issue) {
          writers.push_back(i);
          continue;
        }
        for (const MachineOperand &operand : run[i]->uses())
          if (operand.isReg())
            if (auto source = of.makers.find(operand.getReg());
                source != of.makers.end())
              open.push_back(source->second);
      }
      SmallVector<Register> held = {phi.getOperand(0).getReg()};
      DenseSet<Register> metHeld;
      while (!held.empty())
        for (const MachineInstr &user :
             values.use_nodbg_instructions(held.pop_back_val())) {
          if (!user.isPHI() && !costOf(user).issue)
            for (const MachineOperand &made : user.defs())
              if (made.getReg().isVirtual() &&
                  metHeld.insert(made.getReg()).second)
                held.push_back(made.getReg());
          auto found = number.find(&user);
          if (found == number.end())
            continue;
          for (int writer : writers)
            if (found->second < writer)
              of.follow(found->second, writer);
        }
    }
}

/// What each waits for: makers of registers, and memory that it may share.
Dependences LoopOrder::dependencesOf(const Run &run) {
  const int count = int(run.size());
  const MachineFunction &function = *run[0]->getMF();
  const MachineRegisterInfo &values = function.getRegInfo();
  const TargetRegisterInfo &registers =
      *function.getSubtarget().getRegisterInfo();
  Dependences of;
  of.users.resize(count);
  of.sources.resize(count);
  DenseMap<unsigned, int> touched; // units of scalar state, by whom last
  SmallVector<int> accesses;
  int lastMemory = -1;
  for (int i = 0; i < count; ++i) {
    MachineInstr &instruction = *run[i];
    of.costs.push_back(costOf(instruction));
    for (const MachineOperand &operand : instruction.operands()) {
      if (!operand.isReg() || !operand.getReg())
        continue;
      Register reg = operand.getReg();
      if (reg.isVirtual()) {
        if (operand.isDef())
          of.makers[reg] = i;
        else if (auto maker = of.makers.find(reg); maker != of.makers.end())
          of.take(maker->second, i);
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
          of.take(last->second, i);
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
        of.follow(lastMemory, i);
      lastMemory = i;
      continue;
    }
    for (int before : accesses)
      if ((instruction.mayStore() || run[before]->mayStore()) &&
          instruction.mayAlias(aliases, *run[before], /*UseTBAA=*/false))
        of.follow(before, i);
    accesses.push_back(i);
  }
  keepCarried(run, of);
  of.isGone.resize(count);
  for (int i = count - 1; i >= 0; --i)
    of.isGone[i] =
        !of.costs[i].issue &&
        llvm::all_of(of.users[i], [&](int user) { return of.isGone[user]; });
  return of;
}

void LoopOrder::order(const Run &run) {
  const int count = int(run.size());
  MachineBasicBlock &block = *run[0]->getParent();
  const MachineFunction &function = *block.getParent();
  const MachineRegisterInfo &values = function.getRegInfo();
  const TargetRegisterInfo &registers =
      *function.getSubtarget().getRegisterInfo();
  const Dependences of = dependencesOf(run);
  const SmallVector<Cost> &costs = of.costs;
  auto delay = [&](int source, int user) {
    // A sum goes on as soon as the matrix core is free.
    if (costs[source].pipe && costs[user].pipe) {
      const MachineOperand &sum = run[user]->getOperand(3);
      if (sum.isReg() && sum.getReg() == run[source]->getOperand(0).getReg())
        return costs[source].pipe;
    }
    // What goes round the loop is there when it comes back.
    const bool isResult = of.results.contains({source, user}) &&
                          (costs[source].pipe || !of.isGone[user]);
    return isResult ? costs[source].latency : costs[source].issue;
  };

  // When each can be had at the earliest, with the products in their order.
  SmallVector<int> products;
  SmallVector<double> earliest(count, 0.0);
  double issue = 0, pipe = 0, free = 0;
  for (int i = 0; i < count; ++i) {
    for (int source : of.sources[i])
      earliest[i] = std::max(earliest[i], earliest[source] + delay(source, i));
    issue += costs[i].port > costs[i].issue ? costs[i].port : costs[i].issue;
    pipe += costs[i].pipe;
    if (!costs[i].pipe)
      continue;
    products.push_back(i);
    earliest[i] = std::max(earliest[i], free);
    free = earliest[i] + costs[i].pipe;
  }
  // How far apart products are for all else to fit between them.
  const double apart = std::max(1.0, issue / std::max(pipe, 1.0)) *
                       (isDouble ? kRoomOfDouble : kRoom);

  // Of a loop of several blocks the next waits for what was read for it. What
  // goes round a loop of one is there when it comes back.
  const bool goesOn = !block.isSuccessor(&block);
  auto readsForLater = [&](int i) {
    return goesOn && llvm::all_of(of.users[i],
                                  [&](int user) { return of.isGone[user]; });
  };

  // From the end, which is clock 0.
  SmallVector<double> latest(count, 0.0), start(count, 0.0);
  int loaded = -kLoadedAhead;
  for (int i = count - 1; i >= 0; --i) {
    StringRef name = nameOf(*run[i]);
    if (name.starts_with("DS_") && run[i]->mayStore())
      latest[i] = -kWrittenAhead;
    else if (name.starts_with("DS_") && readsForLater(i))
      latest[i] = -kReadLatency;
    else if (name.contains("_ATOMIC_"))
      latest[i] = earliest[i] + kAddedBehind - pipe * apart;
    else if (name.starts_with("BUFFER_") || name.starts_with("GLOBAL_")) {
      latest[i] = loaded;
      loaded -= isDouble ? kBetweenLoadsOfDouble : kBetweenLoads;
    }
  }

  // Copies to LDS have until the barrier behind the next to arrive. Where they
  // are close to one another, all else of the wave waits behind them.
  SmallVector<int> copies;
  for (int i = 0; i < count; ++i)
    if (nameOf(*run[i]).starts_with("BUFFER_LOAD_") && run[i]->mayStore())
      copies.push_back(i);
  const double eachCopy = pipe * apart / std::max<size_t>(copies.size(), 1);
  for (auto [behind, copy] : llvm::enumerate(llvm::reverse(copies)))
    latest[copy] = -(double(behind) + 0.5) * eachCopy;

  // Vector registers that are in use: what comes from outside all the time, what
  // is made here from where it is to its last use.
  auto sizeOf = [&](Register reg) {
    const TargetRegisterClass *type = values.getRegClass(reg);
    StringRef name = registers.getRegClassName(type);
    if (!name.starts_with("V") && !name.starts_with("AV"))
      return 0;
    return int(registers.getRegSizeInBits(*type) / 32);
  };
  int live = 0;
  DenseSet<Register> isLive;
  SmallVector<SmallVector<Register>> uses(count);
  for (int i = 0; i < count; ++i)
    for (const MachineOperand &operand : run[i]->uses())
      if (operand.isReg() && operand.getReg().isVirtual() &&
          !is_contained(uses[i], operand.getReg())) {
        Register reg = operand.getReg();
        uses[i].push_back(reg);
        if (!of.makers.contains(reg) && isLive.insert(reg).second)
          live += sizeOf(reg);
      }
  const DenseSet<const MachineInstr *> here(run.begin(), run.end());
  for (auto [reg, maker] : of.makers)
    for (const MachineInstr &user : values.use_nodbg_instructions(reg))
      if (!here.contains(&user) && isLive.insert(reg).second)
        live += sizeOf(reg);
  auto growth = [&](int i) {
    int grows = 0;
    for (const MachineOperand &operand : run[i]->defs())
      if (operand.isReg() && isLive.contains(operand.getReg()))
        grows -= sizeOf(operand.getReg());
    for (Register reg : uses[i])
      if (!isLive.contains(reg))
        grows += sizeOf(reg);
    return grows;
  };
  const int most = mostRegisters(function) - kSpare;

  double now = 0, pipeFrom = 0, portFrom = 0, ldsFrom = 0;
  double ahead = 1; // of the clock: an exponential issues there
  auto isLong = [&](int i) { return costs[i].port > costs[i].issue; };
  auto startOf = [&](int i) {
    double at = std::min(latest[i], now - costs[i].issue);
    if (costs[i].port)
      at = std::min(at, portFrom - costs[i].port);
    if (costs[i].pipe)
      at = std::min(at, pipeFrom - costs[i].pipe * apart);
    if (nameOf(*run[i]).starts_with("DS_"))
      at = std::min(at, ldsFrom - kBetweenReads);
    if (at + costs[i].issue > ahead && at < ahead + 4)
      at = std::min(at, ahead - costs[i].issue);
    return at;
  };
  SmallVector<int> result, placedUsers(count, 0);
  SmallVector<bool> isPlaced(count, false);
  auto isReady = [&](int i) {
    return !isPlaced[i] && placedUsers[i] == int(of.users[i].size());
  };
  auto place = [&](int i) {
    const double at = start[i] = startOf(i);
    isPlaced[i] = true;
    live += growth(i);
    for (const MachineOperand &operand : run[i]->defs())
      if (operand.isReg())
        isLive.erase(operand.getReg());
    isLive.insert(uses[i].begin(), uses[i].end());
    if (costs[i].issue) {
      // What needs no vector ALU may be beside an exponential.
      if (isLong(i) && at < now - costs[i].issue)
        ahead = at;
      else
        now = at;
    }
    if (costs[i].port)
      portFrom = at;
    if (costs[i].pipe)
      pipeFrom = at;
    if (nameOf(*run[i]).starts_with("DS_"))
      ldsFrom = at;
    for (int source : of.sources[i]) {
      ++placedUsers[source];
      latest[source] = std::min(latest[source], at - delay(source, i));
    }
    result.push_back(i);
  };
  int last = int(products.size()) - 1;
  while (int(result.size()) < count) {
    while (last >= 0 && isPlaced[products[last]])
      --last;
    // A product, if the matrix core waits for one.
    int product = -1, seen = 0;
    for (int p = last; p >= 0 && seen < kWindow; --p) {
      const int i = products[p];
      if (isPlaced[i])
        continue;
      ++seen;
      if (isReady(i) && (product < 0 || startOf(i) > startOf(product)))
        product = i;
    }
    if (product >= 0 && startOf(product) >= now - costs[product].issue - 4) {
      place(product);
      continue;
    }
    // Or, of what can be here, what has most before it; where registers are
    // short, what frees most of them.
    const bool isFull = live > most;
    auto isBetter = [&](int i, int other) {
      if (const int here = growth(i), there = growth(other);
          isFull && here != there)
        return here < there;
      return std::tuple(earliest[i], i) > std::tuple(earliest[other], other);
    };
    int best = -1, later = -1;
    for (int i = 0; i < count; ++i) {
      if (costs[i].pipe || !isReady(i))
        continue;
      const bool canWait = isLong(i) && ahead >= now;
      if (startOf(i) < now - (canWait ? costs[i].port : costs[i].issue) ||
          (isFull && growth(i) > 0)) {
        if (later < 0 || startOf(i) > startOf(later))
          later = i;
        continue;
      }
      if (!costs[i].issue) {
        best = i;
        break;
      }
      if (best < 0 || isBetter(i, best))
        best = i;
    }
    if (best < 0)
      best = product >= 0 && (later < 0 || startOf(product) >= startOf(later))
                 ? product
                 : later;
    place(best);
  }
  std::reverse(result.begin(), result.end());
  llvm::stable_sort(result,
                    [&](int i, int other) { return start[i] < start[other]; });

  // LLVM's scheduler keeps what is between two fences there.
  auto end = std::next(run.back()->getIterator());
  for (int i : result) {
    MachineInstr &instruction = *run[i];
    block.splice(end, &block, instruction.getIterator());
    if (costs[i].pipe)
      BuildMI(block, end, instruction.getDebugLoc(), instructions->get(fence))
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
  static const std::optional<unsigned> opcode =
      fovea::hsaco::opcodeNamed(kFence, *instructions);
  if (!opcode) {
    fovea::hsaco::reportMissing(kFence, "LoopOrder.cpp", function);
    return false;
  }
  fence = *opcode;
  const MachineLoopInfo &loops =
      getAnalysis<MachineLoopInfoWrapperPass>().getLI();
  bool isChanged = false;
  for (MachineBasicBlock &block : function) {
    int products = 0, comparisons = 0;
    for (const MachineInstr &instruction : block) {
      products += nameOf(instruction).starts_with("V_MFMA_");
      comparisons += nameOf(instruction).starts_with("V_CMP");
    }
    // Loops that mask are few iterations, and have no register to spare.
    if (products < kFewProducts || comparisons > kManyComparisons ||
        !loops.getLoopFor(&block))
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
