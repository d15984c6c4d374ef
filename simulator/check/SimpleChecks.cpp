//===- SimpleChecks.cpp - Alignment and barriers --------------------------===//
//
// See SimpleChecks.h and docs/Checkers.md.
//
//===----------------------------------------------------------------------===//
#include "check/SimpleChecks.h"
#include "isa/Row.h"

namespace fovea::sim {

void AlignCheck::before(Wave &wave, const InstPlan &plan) {
  const MicroOp &op = *plan.op;
  if (!Hardware || !op.row || op.row->form != Form::Smem ||
      !(op.row->flags & kLoad))
    return;
  uint64_t address = readS32(wave, op.s[0]) + static_cast<uint64_t>(op.offset);
  if (op.s[1].kind != Operand::None)
    address += readS32(wave, op.s[1]);
  const std::string &name = plan.info->mnemonic;
  auto endsIn = [&](std::string_view end) {
    return name.size() > end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  if (endsIn("u8") || endsIn("i8"))
    return;
  unsigned need = endsIn("u16") || endsIn("i16") ? 2 : 4;
  if (address % need)
    Out.fail(wave, op, kCheckAlign, 0,
             "the address ends in " + std::to_string(address % need) + " of " +
                 std::to_string(need) + " bytes; a scalar load drops that");
}

void AlignCheck::access(Wave &wave, const InstPlan &plan,
                        const MemoryAccess &access) {
  if (access.bytes < 2 || access.scalar)
    return;
  // Two places in one instruction lie at multiples of the element.
  bool pair = plan.op->row && plan.op->row->flags & kTwo;
  bool natural = !pair;
  if (natural ? !Natural : !Hardware)
    return;
  uint64_t need = pair ? access.bytes : access.bytes % 4 ? 2 : 4, low = 0;
  uint64_t bad = 0;
  for (uint64_t left = access.mask; left; left &= left - 1)
    low |= access.address[__builtin_ctzll(left)];
  if (!(low & (need - 1)))
    return;
  for (uint64_t left = access.mask; left; left &= left - 1) {
    int lane = __builtin_ctzll(left);
    if (access.address[lane] & (need - 1))
      bad |= uint64_t(1) << lane;
  }
  uint64_t address = access.address[__builtin_ctzll(bad)];
  std::string where =
      access.space == MemoryAccess::Global
          ? Reporter::memoryPlace(*wave.group->cache.memory, address,
                                  access.bytes)
          : std::to_string(access.bytes) + " bytes at " +
                (access.space == MemoryAccess::Lds ? "LDS" : "scratch") +
                " offset " + hexText(address);
  Out.fail(wave, *plan.op, natural ? kCheckAlignNatural : kCheckAlign, bad,
           where + ", no multiple of " + std::to_string(need));
}

void BarrierCheck::beginGroup(Wave *waves, unsigned count) {
  First = waves;
  Count = count;
  Waves.assign(count, State());
  for (unsigned i = 0; i < count; ++i)
    Waves[i].initial = waves[i].exec();
}

void BarrierCheck::before(Wave &wave, const InstPlan &plan) {
  State &s = Waves[wave.index];
  if (__builtin_expect(s.missed == 0, 1) || !plan.shared)
    return;
  if (uint64_t back = s.missed & wave.exec())
    Out.fail(wave, *s.barrier->op, kCheckBarrier, back,
             "these lanes did not take part, and go on after it with " +
                 Out.place(plan.index));
}

void BarrierCheck::after(Wave &wave, const InstPlan &plan) {
  if (wave.state != WaveState::Barrier)
    return;
  State &s = Waves[wave.index];
  s.barrier = &plan;
  s.missed |= s.initial & ~wave.exec();
}

void BarrierCheck::barrier() {
  const InstPlan *first = nullptr;
  unsigned firstWave = 0;
  for (unsigned i = 0; i < Count; ++i) {
    if (First[i].state != WaveState::Barrier)
      continue;
    if (!first) {
      first = Waves[i].barrier;
      firstWave = i;
    } else if (Waves[i].barrier != first) {
      return Out.fail(First[i], *Waves[i].barrier->op, kCheckBarrier, 0,
                      "wave " + std::to_string(firstWave) +
                          " of the workgroup waits at another barrier, " +
                          Out.place(first->index));
    }
  }
}

} // namespace fovea::sim
