//===- Ops.cpp - Instructions as the timing model sees them ---------------===//
//
// Unit and rate are columns of the instruction's row, in clocks of the chip's;
// matrix instructions take the passes of LLVM's scheduling model.
//
//===----------------------------------------------------------------------===//
#include "timing/Ops.h"
#include "decode/Parser.h"
#include "isa/Row.h"

#include <algorithm>
#include <string_view>

namespace fovea::sim {

namespace {

/// Instructions whose unit their row's form does not tell.
struct NamedUnit {
  std::string_view mnemonic;
  Unit unit;
};
constexpr NamedUnit kNamedUnits[] = {
    {"s_endpgm", Unit::End},
    {"s_endpgm_saved", Unit::End},
    {"s_barrier", Unit::Barrier},
    {"s_barrier_signal", Unit::Signal},
    {"s_barrier_signal_isfirst", Unit::Signal},
    {"s_barrier_wait", Unit::Barrier},
    {"buffer_gl0_inv", Unit::Invalidate},
    {"global_inv", Unit::Invalidate},
    {"s_delay_alu", Unit::Hint},
    {"s_setprio", Unit::Priority},
    {"s_nop", Unit::Nop},
    {"s_sleep", Unit::Nop},
    {"v_nop", Unit::Valu},
    {"s_waitcnt", Unit::Wait},
    {"s_waitcnt_vmcnt", Unit::Wait},
    {"s_waitcnt_vscnt", Unit::Wait},
    {"s_waitcnt_expcnt", Unit::Wait},
    {"s_waitcnt_lgkmcnt", Unit::Wait},
    {"s_waitcnt_depctr", Unit::Wait},
    {"s_wait_idle", Unit::Wait},
    {"s_wait_event", Unit::Wait},
    {"s_wait_alu", Unit::Wait},
    {"s_wait_loadcnt", Unit::Wait},
    {"s_wait_storecnt", Unit::Wait},
    {"s_wait_samplecnt", Unit::Wait},
    {"s_wait_bvhcnt", Unit::Wait},
    {"s_wait_expcnt", Unit::Wait},
    {"s_wait_dscnt", Unit::Wait},
    {"s_wait_kmcnt", Unit::Wait},
    {"s_wait_loadcnt_dscnt", Unit::Wait},
    {"s_wait_storecnt_dscnt", Unit::Wait},
};

/// Clocks that a matrix instruction keeps the matrix core. LLVM's scheduling
/// model has AMD's tables of passes, in which all of v_mfma_*_f8f6f4 are as
/// fast as with elements of six and four bits: eight bits on either side take
/// twice as long (CDNA4 ISA document; the data sheet's peak of fp8 is half that
/// of fp4).
unsigned matrixPasses(const MicroOp &op, double passes) {
  unsigned clocks = static_cast<unsigned>(passes * 4 + 0.5);
  if (op.row->form != Form::MfmaSmall)
    return clocks;
  constexpr unsigned kFirstOfSixBits = 2; // formats: fp8, bf8, fp6, bf6, fp4
  unsigned a = op.aux & 15, b = op.aux >> 8 & 7;
  return std::min(a, b) < kFirstOfSixBits ? 2 * clocks : clocks;
}

/// Names of element types in mnemonics, the factors' behind the result's.
struct NamedBits {
  std::string_view suffix;
  unsigned TimingConstants::*flops; ///< operations a clock
};
constexpr NamedBits kNamedBits[] = {
    {"f16", &TimingConstants::matrixFlops16}, // and bf16
    {"iu8", &TimingConstants::matrixFlops8},
    {"fp8", &TimingConstants::matrixFlops8},
    {"bf8", &TimingConstants::matrixFlops8},
    {"iu4", &TimingConstants::matrixFlops4},
};

/// Operations a clock on the types of a matrix instruction, where the chip's row
/// has them: LLVM's scheduling model has none for WMMA.
unsigned flopsPerClock(const TimingConstants &chip, std::string_view mnemonic) {
  for (const NamedBits &named : kNamedBits)
    if (mnemonic.size() > named.suffix.size() &&
        mnemonic.substr(mnemonic.size() - named.suffix.size()) == named.suffix)
      return chip.*named.flops;
  return chip.matrixFlops16;
}

unsigned matrixClocks(const TimingConstants &chip, const MicroOp &op,
                      double passes) {
  const unsigned flops = flopsPerClock(chip, op.row->mnemonic);
  // Products of 16x16x16 on four bits take as long as on eight, on RDNA4.
  constexpr unsigned kFewest = 8;
  return flops ? std::max(2 * op.row->count / flops, kFewest)
               : matrixPasses(op, passes);
}

bool readsWhatItWrites(const TimedOp &op) {
  for (unsigned i = 0; i < op.readCount; ++i)
    for (unsigned j = 0; j < op.writeCount; ++j)
      if (op.reads[i].first < op.writes[j].first + op.writes[j].count &&
          op.writes[j].first < op.reads[i].first + op.reads[i].count)
        return true;
  return false;
}

/// Whether two of the first three vector operands begin in one bank.
bool operandsClash(const TimedOp &op, unsigned banks) {
  unsigned seen = 0, vectors = 0;
  for (unsigned i = 0; i < op.readCount && vectors < 3; ++i) {
    if (op.reads[i].first >= kTimedScalars)
      continue;
    ++vectors;
    const unsigned bank = 1u << op.reads[i].first % banks;
    if (seen & bank)
      return true;
    seen |= bank;
  }
  return false;
}

} // namespace

Unit unitOf(const Row &row) {
  for (const NamedUnit &named : kNamedUnits)
    if (named.mnemonic == row.mnemonic)
      return named.unit;
  switch (row.form) {
  case Form::Mfma:
  case Form::Smfmac:
  case Form::MfmaSmall:
    return Unit::Matrix;
  case Form::Flat:
  case Form::Buffer:
    return Unit::Vmem;
  case Form::Ds:
    return Unit::Lds;
  case Form::Branch:
    return Unit::Branch;
  default:
    break;
  }
  switch (row.cls) {
  case InstClass::Mfma:
    return Unit::Matrix;
  case InstClass::Valu:
  case InstClass::Trans:
    return Unit::Valu;
  case InstClass::Vmem:
    return Unit::Vmem;
  case InstClass::Lds:
    return Unit::Lds;
  case InstClass::Smem:
    return Unit::Smem;
  case InstClass::Branch:
    return Unit::Branch;
  case InstClass::Sync:
    return Unit::Nop; // hints: a slot of the wave and nothing else
  default:
    return Unit::Salu;
  }
}

VectorCost vectorCost(const TimingConstants &chip, Rate rate) {
  auto longer = [&](unsigned clocks) {
    return VectorCost{clocks, clocks + chip.valuLatency - chip.slot};
  };
  switch (rate) {
  case Rate::Transcendental:
    return {chip.transClocks, chip.transLatency};
  case Rate::Quarter:
    return {chip.quarterClocks, chip.quarterClocks};
  case Rate::Double:
    return longer(chip.doubleClocks);
  case Rate::Packed:
    return longer(chip.packedClocks);
  case Rate::Swap:
    return {chip.swapClocks, chip.swapClocks};
  case Rate::Full:
  case Rate::Alone:
    break;
  }
  return {chip.valuClocks, chip.valuLatency};
}

size_t TimedProgram::placesOf(const Program &program) {
  constexpr size_t kBehind = 8;
  return program.dwords() + kBehind;
}

TimedProgram::TimedProgram(Program &program, const TimingConstants &chip)
    : Prog(program), Chip(chip), Ops(placesOf(program)) {}

std::unique_ptr<TimedOp> TimedProgram::make(uint32_t index) {
  auto op = std::make_unique<TimedOp>();
  op->waits.fill(0xff);
  if (index >= Prog.dwords())
    return op;
  const InstInfo &info = Prog.info(index);
  const MicroOp &micro = Prog.ops()[index];
  op->cls = static_cast<InstClass>(micro.cls);
  op->size = micro.size ? micro.size : 1;
  op->counts = info.counts;
  op->waits = info.waits;
  op->isStore = info.mayStore && !info.mayLoad;

  auto flat = [](const RegRange &r) {
    unsigned base = r.file == RegRange::Vector   ? 0
                    : r.file == RegRange::Scalar ? kTimedScalars
                                                 : kTimedScc;
    return TimedRange{static_cast<uint16_t>(base + r.reg), r.words};
  };
  for (const RegRange &r : info.reads)
    if (op->readCount < op->reads.size())
      op->reads[op->readCount++] = flat(r);
  for (const RegRange &r : info.writes) {
    op->writesExec |= r.file == RegRange::Scalar && r.reg >= kExec;
    if (op->writeCount < op->writes.size())
      op->writes[op->writeCount++] = flat(r);
  }

  unsigned slot = Chip.slot;
  op->clocks = op->port = static_cast<uint16_t>(slot);
  op->latency = static_cast<uint16_t>(Chip.scalarToVector);
  op->scalarLatency = static_cast<uint16_t>(Chip.scalarLatency);
  auto operandValue = [&]() -> int64_t {
    ParsedInst inst = parseInstruction(Prog.text(index));
    return inst.operands.empty() ? 0 : inst.operands.back().integer;
  };

  op->unit = micro.row ? unitOf(*micro.row) : Unit::Nop;
  switch (op->unit) {
  case Unit::Matrix: {
    if (Chip.registerBanks && operandsClash(*op, Chip.registerBanks))
      op->clash = static_cast<uint16_t>(Chip.matrixClash);
    op->pipe = static_cast<uint16_t>(
        matrixClocks(Chip, micro, info.schedThroughput) + op->clash);
    op->latency = static_cast<uint16_t>(op->pipe + Chip.matrixLatency);
    op->clocks = op->port = static_cast<uint16_t>(Chip.matrixIssue);
    op->flops = 2.0 * micro.row->count;
    op->small = micro.row->mnemonic.find("_16x16x") != std::string_view::npos;
    op->excludesVector =
        Chip.matrixExcludesVector ||
        (Chip.wideExcludesVector && micro.row->rate == Rate::Alone);
    // D = A * B + C: C is the third vector operand.
    unsigned vectors = 0;
    for (unsigned i = 0; i < op->readCount; ++i)
      if (op->reads[i].first < kTimedScalars && ++vectors == 3)
        op->accumulator = static_cast<int8_t>(i);
    break;
  }
  case Unit::Valu: {
    op->packed = micro.row->rate == Rate::Packed;
    op->trans = micro.row->rate == Rate::Transcendental;
    op->dual = micro.halves != nullptr;
    op->forwards = op->dual && readsWhatItWrites(*op);
    VectorCost cost = vectorCost(Chip, micro.row->rate);
    // Longer waves go through the unit several times.
    const unsigned passes = std::max(1u, Prog.waveSize() / Chip.waveLanes);
    const unsigned clocks = passes * cost.clocks;
    op->clocks = static_cast<uint16_t>(clocks);
    op->port = static_cast<uint16_t>(op->trans ? passes * Chip.transPort : clocks);
    op->latency = static_cast<uint16_t>(
        std::max(clocks, cost.latency + clocks - cost.clocks) +
        ((micro.flags & kDpp) ? Chip.laneLatency : 0));
    op->scalarLatency = op->latency;
    break;
  }
  case Unit::Smem:
    if (!op->counts)
      op->unit = Unit::Salu;
    break;
  case Unit::Wait:
    op->clocks = static_cast<uint16_t>(Chip.waitClocks);
    break;
  case Unit::Nop:
    if (info.mnemonic == "s_nop")
      op->clocks =
          static_cast<uint16_t>(slot * (unsigned(operandValue() & 15) + 1));
    else if (info.mnemonic == "s_sleep")
      op->clocks = static_cast<uint16_t>(
          std::min<int64_t>(64 * (operandValue() & 127), 8128) + slot);
    break;
  case Unit::Invalidate:
    if (Chip.countsInvalidates)
      op->counts |= 1u << VmCnt;
    break;
  case Unit::Priority:
    op->value = static_cast<int32_t>(operandValue() & 3);
    break;
  default:
    break;
  }
  // A lane mask or a lane's value that goes to scalar registers takes longer.
  if (op->unit == Unit::Valu)
    for (unsigned i = 0; i < op->writeCount; ++i)
      if (op->writes[i].first >= kTimedScalars) {
        op->latency = static_cast<uint16_t>(
            std::max<unsigned>(op->latency, Chip.maskLatency));
        op->scalarLatency = static_cast<uint16_t>(
            std::max<unsigned>(op->scalarLatency, Chip.maskToScalar));
      }
  op->split = info.mnemonic == "s_barrier_wait";
  return op;
}

} // namespace fovea::sim
