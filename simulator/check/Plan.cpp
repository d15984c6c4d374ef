//===- Plan.cpp - Instructions as checkers see them -----------------------===//
//
// Plans follow from what LLVM says of an instruction (decode/InstInfo.h) and
// from how the engine bound it.
//
//===----------------------------------------------------------------------===//
#include "check/Plan.h"
#include "check/Shadow.h"
#include "fovea/Simulator/Chip.h"
#include "isa/Table.h"

namespace fovea::sim {

namespace {
/// First bit of a range in a RegSet, or -1 for what is not followed.
int firstBit(const RegRange &range) {
  switch (range.file) {
  case RegRange::Vector:
    return range.reg;
  case RegRange::Scalar:
    return int(kVectorRegs) + range.reg;
  case RegRange::Scc:
    return int(kSccBit);
  }
  return -1;
}
template <class F>
void forEachBit(const RegRange &range, F f) {
  int first = firstBit(range);
  if (first < 0)
    return;
  for (unsigned i = 0; i < range.words; ++i)
    if (unsigned bit = unsigned(first) + i; bit < kRegWords * 64)
      f(bit);
}
/// v_mov_b32 from the first source of \p op to the spare register, with its
/// DPP.
std::unique_ptr<MicroOp> moverOf(const MicroOp &op) {
  const IsaTable *table = IsaTable::get();
  const Row *move = table ? table->find("v_mov_b32", 0) : nullptr;
  if (!move || op.s[0].kind != Operand::Vgpr)
    return nullptr;
  auto mover = std::make_unique<MicroOp>();
  mover->fn.store(table->variant().vectorSlow, std::memory_order_relaxed);
  mover->loop = move->loop;
  mover->row = move;
  mover->d.kind = Operand::Vgpr;
  mover->d.reg = kSpareReg;
  mover->s[0].kind = Operand::Vgpr;
  mover->s[0].reg = op.s[0].reg;
  mover->aux = op.aux;
  mover->size = op.size;
  mover->cls = op.cls;
  mover->rowMask = op.rowMask;
  mover->bankMask = op.bankMask;
  mover->flags = op.flags & (kModified | kDpp | kBoundCtrl | kFetchInactive);
  return mover;
}
bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}
} // namespace

void RegSet::add(const RegRange &range) {
  forEachBit(range,
             [&](unsigned b) { word[b / 64] |= uint64_t(1) << (b % 64); });
}
void RegSet::remove(const RegRange &range) {
  forEachBit(range,
             [&](unsigned b) { word[b / 64] &= ~(uint64_t(1) << (b % 64)); });
}
bool RegSet::any() const {
  uint64_t all = 0;
  for (uint64_t w : word)
    all |= w;
  return all != 0;
}

std::string registerName(RegRange::File file, unsigned reg) {
  if (file == RegRange::Scc)
    return "scc";
  if (file == RegRange::Vector)
    return reg >= kAgprBase ? "a" + std::to_string(reg - kAgprBase)
                            : "v" + std::to_string(reg);
  switch (reg) {
  case kVcc:
    return "vcc_lo";
  case kVcc + 1:
    return "vcc_hi";
  case kExec:
    return "exec_lo";
  case kExec + 1:
    return "exec_hi";
  case kM0:
    return "m0";
  default:
    break;
  }
  if (reg >= kTtmp0 && reg < kTtmp0 + 16)
    return "ttmp" + std::to_string(reg - kTtmp0);
  return "s" + std::to_string(reg);
}
std::string registerName(unsigned bit) {
  return bit < kVectorRegs ? registerName(RegRange::Vector, bit)
                           : registerName(RegRange::Scalar, bit - kVectorRegs);
}

PlanTable::PlanTable(Program &program) : Prog(program) {
  // Zeros that the host hands out page by page: most code is never executed.
  size_t count = size_t(program.dwords()) + 8;
  Plans.reset(static_cast<std::atomic<const InstPlan *> *>(
      std::calloc(count, sizeof(std::atomic<const InstPlan *>))));
}

PlanTable &PlanTable::of(Program &program) {
  return *static_cast<PlanTable *>(
      program
          .extension([](Program &p) -> std::shared_ptr<void> {
            return std::make_shared<PlanTable>(p);
          })
          .get());
}

const InstPlan &PlanTable::make(uint32_t index) {
  std::lock_guard<std::mutex> lock(Mutex);
  if (const InstPlan *plan = Plans[index].load(std::memory_order_relaxed))
    return *plan;
  InstPlan &plan = Pool.emplace_back();
  plan.index = index;
  plan.op = &Prog.ops()[index];
  plan.info = &Prog.info(index);
  const InstInfo &info = *plan.info;
  RegSet touched;
  for (const auto *list : {&info.reads, &info.writes})
    for (const RegRange &range : *list)
      touched.add(range);
  for (uint32_t i = 0; i < kRegWords; ++i)
    if (touched.word[i])
      plan.touched[plan.touchedParts++] = {touched.word[i], i};
  for (uint8_t wait : info.waits)
    plan.waits |= wait != 0xff;
  const std::string &name = info.mnemonic;
  plan.flat = name.compare(0, 5, "flat_") == 0;
  plan.unordered =
      info.counts && (name.compare(0, 2, "s_") == 0 ||
                      (plan.flat && Prog.chip().target.substr(0, 4) == "gfx9"));
  auto cls = static_cast<InstClass>(plan.op->cls);
  plan.shared = (cls == InstClass::Vmem || cls == InstClass::Lds) &&
                name.compare(0, 8, "scratch_") != 0;
  if (const MicroOp *halves = plan.op->halves) {
    plan.rule = shadowRule(halves[0], name);
    plan.rule2 = shadowRule(halves[1], name);
  } else {
    plan.rule = shadowRule(*plan.op, name);
  }
  if (plan.op->flags & kDpp)
    plan.mover = moverOf(*plan.op);
  plan.namedBarrier = name.compare(0, 14, "s_barrier_init") == 0 ||
                      name.compare(0, 14, "s_barrier_join") == 0;
  if (info.mayLoad || info.mayStore) {
    std::string text = Prog.text(index);
    for (const char *modifier : {" sc1", " glc", "SCOPE_DEV", "SCOPE_SYS"})
      plan.deviceScope |= contains(text, modifier);
  }
  Plans[index].store(&plan, std::memory_order_release);
  return plan;
}

} // namespace fovea::sim
