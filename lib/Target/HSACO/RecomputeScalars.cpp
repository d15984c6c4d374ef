//===- RecomputeScalars.cpp - what loops need not hold --------------------===//

#include "RecomputeScalars.h"
#include "KernelArguments.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace fovea::hsaco;

/// AMDGPU's address space of what nobody writes while a kernel runs.
static constexpr unsigned kConstantAddressSpace = 4;
/// Registers of scalars alive at once, by the count below, from which a function
/// is in need. There are 102 on GCN; temporaries, conditions of lanes and gaps
/// between descriptors, which are aligned, come on top.
static constexpr unsigned kManyScalars = 95;

/// Registers that a scalar value takes.
static unsigned registersOf(const Value &value, const DataLayout &layout) {
  Type *type = value.getType();
  if (type->isIntegerTy(1))
    return 2; // a bit for each lane
  if (!type->isSized())
    return 0;
  return divideCeil(layout.getTypeSizeInBits(type).getFixedValue(), 32);
}

namespace {
/// The smallest set of nodes of a graph without cycles that separates sinks from
/// sources, by the largest flow through it.
class SmallestCut {
public:
  int addNode(unsigned weight) {
    const int node = int(count++);
    edges.resize(2 * count);
    addEdge(2 * node, 2 * node + 1, weight);
    return node;
  }
  void follow(int from, int to) { addEdge(2 * from + 1, 2 * to, kInfinite); }
  void setSource(int node) { sources.push_back(2 * node); }
  void setSink(int node) { sinks.push_back(2 * node + 1); }

  /// Of the smallest ones that with the fewest nodes behind it.
  BitVector find() {
    while (augment()) {
    }
    // What still reaches a sink lies behind the cut.
    BitVector behind(2 * count);
    SmallVector<int> work(sinks);
    for (int sink : sinks)
      behind.set(sink);
    while (!work.empty()) {
      const int at = work.pop_back_val();
      for (const Edge &edge : edges[at])
        if (!behind.test(edge.to) && edges[edge.to][edge.back].left) {
          behind.set(edge.to);
          work.push_back(edge.to);
        }
    }
    BitVector cut(count);
    for (unsigned node = 0; node < count; ++node)
      if (!behind.test(2 * node) && behind.test(2 * node + 1))
        cut.set(node);
    return cut;
  }

private:
  struct Edge {
    int to, back;
    unsigned left;
  };
  static constexpr unsigned kInfinite = 1u << 30;

  void addEdge(int from, int to, unsigned capacity) {
    edges[from].push_back({to, int(edges[to].size()), capacity});
    edges[to].push_back({from, int(edges[from].size()) - 1, 0});
  }

  bool augment() {
    SmallVector<std::pair<int, int>> cameBy(edges.size(), {-1, -1});
    BitVector seen(edges.size());
    SmallVector<int> queue(sources);
    for (int source : sources)
      seen.set(source);
    for (size_t i = 0; i < queue.size(); ++i) {
      const int at = queue[i];
      if (is_contained(sinks, at)) {
        unsigned flow = kInfinite;
        for (int node = at; cameBy[node].first >= 0; node = cameBy[node].first)
          flow = std::min(
              flow, edges[cameBy[node].first][cameBy[node].second].left);
        for (int node = at; cameBy[node].first >= 0;
             node = cameBy[node].first) {
          Edge &edge = edges[cameBy[node].first][cameBy[node].second];
          edge.left -= flow;
          edges[node][edge.back].left += flow;
        }
        return flow > 0;
      }
      for (auto [number, edge] : enumerate(edges[at]))
        if (edge.left && !seen.test(edge.to)) {
          seen.set(edge.to);
          cameBy[edge.to] = {at, int(number)};
          queue.push_back(edge.to);
        }
    }
    return false;
  }

  unsigned count = 0;
  SmallVector<SmallVector<Edge>> edges;
  SmallVector<int> sources, sinks;
};

class Recomputation {
public:
  Recomputation(Function &function, DominatorTree &dominators, LoopInfo &loops,
                UniformityInfo &uniformity)
      : function(function), layout(function.getDataLayout()),
        dominators(dominators), loops(loops), uniformity(uniformity),
        arguments(function) {}

  bool run();

private:
  bool isScalar(const Value &value) const {
    if (made.contains(&value))
      return true;
    return (isa<Argument>(value) || isa<Instruction>(value)) &&
           !value.getType()->isVoidTy() && !uniformity.isDivergent(&value);
  }
  bool isRecomputable(const Value &value) const;
  bool isReached(const Use &use, const BasicBlock &point) const;
  bool isBefore(const Value &value, const Loop &loop) const;
  bool isUsedIn(const Value &value, const Loop &loop) const;
  bool staysBehind(const Value &value, const BasicBlock &point) const;
  SmallVector<Value *> liveAt(const BasicBlock &point) const;
  unsigned mostAlive() const;
  void recomputeAt(BasicBlock &point,
                   function_ref<bool(const Value &)> isWanted);
  void visit(Loop &loop);
  void sinkMade();

  Function &function;
  const DataLayout &layout;
  DominatorTree &dominators;
  LoopInfo &loops;
  UniformityInfo &uniformity;
  KernelArguments arguments;
  /// What this made, which is not in the analysis.
  SmallPtrSet<const Value *, 32> made;
};
} // namespace

/// Whether what is read is an argument, which is near: what arguments point to
/// would be waited for each time.
static bool isArgument(const LoadInst &load) {
  const Value *base = load.getPointerOperand();
  while (true) {
    auto *offset = dyn_cast<GEPOperator>(base);
    auto *hidden = dyn_cast<Instruction>(base);
    if (offset && offset->hasAllConstantIndices())
      base = offset->getPointerOperand();
    else if (hidden && isHidden(*hidden))
      base = hidden->getOperand(0);
    else
      break;
  }
  auto *call = dyn_cast<IntrinsicInst>(base);
  return call &&
         call->getIntrinsicID() == Intrinsic::amdgcn_kernarg_segment_ptr;
}

/// Numbers of a workgroup, which are in registers where a kernel begins: to ask
/// for them again is to hold them, and what follows from them with them, since
/// LLVM sees that it is the same.
static bool isOfLaunch(const IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::amdgcn_workgroup_id_x:
  case Intrinsic::amdgcn_workgroup_id_y:
  case Intrinsic::amdgcn_workgroup_id_z:
    return true;
  default:
    return false;
  }
}

bool Recomputation::isRecomputable(const Value &value) const {
  if (isa<Argument>(value))
    return true;
  auto *instruction = dyn_cast<Instruction>(&value);
  if (!instruction || isa<PHINode>(instruction))
    return false;
  if (isHidden(*instruction))
    return true;
  if (auto *load = dyn_cast<LoadInst>(instruction)) {
    if (load->getPointerAddressSpace() != kConstantAddressSpace ||
        !load->hasMetadata(LLVMContext::MD_invariant_load) ||
        !isArgument(*load))
      return false;
  } else if (auto *call = dyn_cast<IntrinsicInst>(instruction)) {
    if (isOfLaunch(*call) || call->isConvergent() ||
        call->mayReadOrWriteMemory() || call->mayHaveSideEffects())
      return false;
  } else if (instruction->mayReadOrWriteMemory() ||
             instruction->mayHaveSideEffects() || isa<CallBase>(instruction) ||
             isa<AllocaInst>(instruction))
    return false;
  // Dozens of instructions.
  if (instruction->isIntDivRem() &&
      !isa<Constant>(instruction->getOperand(1)))
    return false;
  return all_of(instruction->operands(), [&](const Use &operand) {
    return isa<Constant>(operand) || isa<MetadataAsValue>(operand) ||
           isScalar(*operand);
  });
}

/// The block in which a use takes its value.
static BasicBlock *blockOf(const Use &use) {
  auto *user = cast<Instruction>(use.getUser());
  if (auto *phi = dyn_cast<PHINode>(user))
    return phi->getIncomingBlock(use);
  return user->getParent();
}

/// Whether a use takes what a value is where a block begins, and not what it
/// becomes in the next iteration of a loop.
bool Recomputation::isReached(const Use &use, const BasicBlock &point) const {
  SmallPtrSet<BasicBlock *, 1> makes;
  if (auto *instruction = dyn_cast<Instruction>(use.get()))
    makes.insert(instruction->getParent());
  if (makes.contains(blockOf(use)))
    return false;
  return isPotentiallyReachable(&point, blockOf(use), &makes, &dominators,
                                &loops);
}

bool Recomputation::isUsedIn(const Value &value, const Loop &loop) const {
  return any_of(value.uses(), [&](const Use &use) {
    return loop.contains(blockOf(use));
  });
}

/// Whether a value is alive at a point whatever is done there.
bool Recomputation::staysBehind(const Value &value,
                                const BasicBlock &point) const {
  return any_of(value.uses(), [&](const Use &use) {
    return !dominators.dominates(&point, blockOf(use)) && isReached(use, point);
  });
}

/// Scalars that are alive where a block begins.
SmallVector<Value *> Recomputation::liveAt(const BasicBlock &point) const {
  SmallVector<Value *> live;
  auto consider = [&](Value &value) {
    if (isScalar(value) && any_of(value.uses(), [&](const Use &use) {
          return isReached(use, point);
        }))
      live.push_back(&value);
  };
  for (Argument &argument : function.args())
    consider(argument);
  for (BasicBlock &block : function)
    if (dominators.properlyDominates(&block, &point))
      for (Instruction &instruction : block)
        consider(instruction);
  return live;
}

unsigned Recomputation::mostAlive() const {
  DenseMap<const BasicBlock *, SmallPtrSet<const Value *, 32>> in;
  unsigned most = 0;
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (BasicBlock *block : post_order(&function)) {
      SmallPtrSet<const Value *, 32> live;
      for (BasicBlock *next : successors(block)) {
        for (const Value *value : in[next])
          live.insert(value);
        for (PHINode &phi : next->phis())
          if (Value *value = phi.getIncomingValueForBlock(block);
              isScalar(*value))
            live.insert(value);
      }
      unsigned registers = 0;
      for (const Value *value : live)
        registers += registersOf(*value, layout);
      most = std::max(most, registers);
      for (Instruction &instruction : reverse(*block)) {
        if (live.erase(&instruction))
          registers -= registersOf(instruction, layout);
        if (isa<PHINode>(instruction))
          continue;
        for (Value *operand : instruction.operands())
          if (isScalar(*operand) && live.insert(operand).second)
            registers += registersOf(*operand, layout);
        most = std::max(most, registers);
      }
      auto &before = in[block];
      if (live.size() != before.size()) {
        before = std::move(live);
        isChanged = true;
      }
    }
  }
  return most;
}

/// Makes again what is wanted where a block begins, for the uses behind it.
void Recomputation::recomputeAt(BasicBlock &point,
                                function_ref<bool(const Value &)> isWanted) {
  SmallSetVector<Value *, 32> wanted;
  SmallPtrSet<const Value *, 32> held;
  for (Value *value : liveAt(point)) {
    if (isWanted(*value) && !staysBehind(*value, point))
      wanted.insert(value);
    else
      held.insert(value);
  }
  // What they are made of, with what is there anyhow at no cost.
  SmallestCut graph;
  MapVector<Value *, int> nodes;
  SmallVector<Value *> work;
  auto nodeOf = [&](Value *value) {
    auto [at, isNew] = nodes.insert({value, -1});
    if (isNew) {
      at->second = graph.addNode(
          held.contains(value) ? 0 : registersOf(*value, layout));
      work.push_back(value);
    }
    return nodes[value];
  };
  for (Value *value : wanted)
    graph.setSink(nodeOf(value));
  while (!work.empty()) {
    Value *value = work.pop_back_val();
    const int node = nodes[value];
    if (!isRecomputable(*value)) {
      graph.setSource(node);
      continue;
    }
    if (auto *instruction = dyn_cast<Instruction>(value))
      for (Value *operand : instruction->operands())
        if (isa<Instruction>(operand) || isa<Argument>(operand))
          graph.follow(nodeOf(operand), node);
  }
  const BitVector cut = graph.find();

  // As late as can be: in the order of their uses in the block.
  Instruction *end = point.getTerminator();
  auto isReplaced = [&](const Use &use) {
    auto *user = cast<Instruction>(use.getUser());
    return dominators.dominates(&point, blockOf(use)) &&
           !(made.contains(user) && user->getParent() == &point);
  };
  MapVector<Instruction *, SmallVector<Value *>> byUser;
  for (Value *value : wanted) {
    if (cut.test(nodes[value]))
      continue;
    Instruction *first = nullptr;
    for (Use &use : value->uses()) {
      if (!isReplaced(use))
        continue;
      auto *user = cast<Instruction>(use.getUser());
      const bool isHere = user->getParent() == &point && !isa<PHINode>(user);
      if (!first)
        first = end;
      if (isHere && user->comesBefore(first))
        first = user;
    }
    if (first)
      byUser[first].push_back(value);
  }
  auto order = byUser.takeVector();
  sort(order, [](const auto &left, const auto &right) {
    return left.first->comesBefore(right.first);
  });

  IRBuilder<> b(function.getContext());
  DenseMap<Value *, Value *> again;
  auto make = [&](auto &self, Value *value) -> Value * {
    if (!isa<Instruction>(value) && !isa<Argument>(value))
      return value;
    if (Value *done = again.lookup(value))
      return done;
    Value *result = nullptr;
    if (cut.test(nodes[value])) {
      result = canBeHidden(*value, layout) ? hide(b, value) : value;
    } else if (auto *argument = dyn_cast<Argument>(value)) {
      Value *segment = hide(b, arguments.segment());
      made.insert(segment);
      result = arguments.load(b, *argument, segment);
      made.insert(cast<LoadInst>(result)->getPointerOperand());
    } else if (auto *source = cast<Instruction>(value);
               isHidden(*source) && cut.test(nodes[source->getOperand(0)])) {
      result = self(self, source->getOperand(0));
    } else {
      SmallVector<Value *> operands;
      for (Value *operand : source->operands())
        operands.push_back(self(self, operand));
      Instruction *copy = source->clone();
      for (auto [number, operand] : enumerate(operands))
        copy->setOperand(number, operand);
      result = b.Insert(copy, source->getName());
    }
    made.insert(result);
    return again[value] = result;
  };
  for (auto &[first, values] : order)
    for (Value *value : values) {
      b.SetInsertPoint(first);
      Value *copy = make(make, value);
      for (Use &use : make_early_inc_range(value->uses()))
        if (isReplaced(use))
          use.set(copy);
    }
  for (BasicBlock *block : post_order(&function))
    for (Instruction &instruction : make_early_inc_range(reverse(*block)))
      if (isInstructionTriviallyDead(&instruction))
        instruction.eraseFromParent();
}

/// Whether a value is made before a loop is entered.
bool Recomputation::isBefore(const Value &value, const Loop &loop) const {
  auto *instruction = dyn_cast<Instruction>(&value);
  return !instruction || dominators.properlyDominates(instruction->getParent(),
                                                      loop.getHeader());
}

void Recomputation::visit(Loop &loop) {
  // Of an outer loop the body between the inner ones may do it again each time.
  auto isNeeded = [&](const Value &value) {
    if (loop.isInnermost())
      return isUsedIn(value, loop);
    return any_of(loop, [&](const Loop *inner) {
      return isUsedIn(value, *inner);
    });
  };
  SmallVector<BasicBlock *> exits;
  loop.getUniqueExitBlocks(exits);
  if (exits.size() == 1)
    recomputeAt(*exits[0], [&](const Value &value) {
      return isBefore(value, loop) && !isNeeded(value);
    });
  if (loop.isInnermost())
    return;
  for (Loop *inner : reverse(loop))
    visit(*inner);
  recomputeAt(*loop.getHeader(), [&](const Value &value) {
    return isBefore(value, loop) && !isNeeded(value) && isUsedIn(value, loop);
  });
  // And ahead of an inner loop what it alone uses.
  for (Loop *inner : reverse(loop))
    if (BasicBlock *ahead = inner->getLoopPreheader())
      recomputeAt(*ahead, [&](const Value &value) {
        return isBefore(value, loop) && isUsedIn(value, *inner) &&
               none_of(loop, [&](const Loop *other) {
                 return other != inner && isUsedIn(value, *other);
               });
      });
  for (Loop *inner : reverse(loop))
    visit(*inner);
}

/// Moves what was made to its users where these are in one of the blocks behind
/// it, but into no loop. LLVM does so with what is read from arguments, but not
/// with what hides their address, of which two registers each would stay.
void Recomputation::sinkMade() {
  for (BasicBlock *block : post_order(&function))
    for (Instruction &instruction : make_early_inc_range(reverse(*block))) {
      if (!made.contains(&instruction) || instruction.use_empty())
        continue;
      BasicBlock *at = nullptr;
      for (Use &use : instruction.uses())
        at = at ? dominators.findNearestCommonDominator(at, blockOf(use))
                : blockOf(use);
      while (loops.getLoopFor(at) != loops.getLoopFor(block))
        at = dominators.getNode(at)->getIDom()->getBlock();
      if (at == block)
        continue;
      Instruction *first = at->getTerminator();
      for (User *user : instruction.users())
        if (auto *there = cast<Instruction>(user); there->getParent() == at &&
                                                   !isa<PHINode>(there) &&
                                                   there->comesBefore(first))
          first = there;
      instruction.moveBefore(first->getIterator());
    }
}

bool Recomputation::run() {
  if (!function.hasFnAttribute(kRecomputedScalarsAttrName)) {
    if (mostAlive() < kManyScalars)
      return false;
    function.addFnAttr(kRecomputedScalarsAttrName);
  }
  SmallVector<Loop *> outer(loops.begin(), loops.end());
  for (Loop *loop : reverse(outer)) // in the order of the program
    visit(*loop);
  sinkMade();
  return true;
}

bool fovea::hsaco::recomputeScalars(Function &function,
                                    DominatorTree &dominators, LoopInfo &loops,
                                    UniformityInfo &uniformity) {
  return Recomputation(function, dominators, loops, uniformity).run();
}
