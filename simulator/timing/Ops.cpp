//===- Ops.cpp - Instructions as the timing model sees them ---------------===//
//
// Classes of cost by mnemonic; matrix instructions by LLVM's scheduling model,
// which has AMD's tables of passes.
//
//===----------------------------------------------------------------------===//
#include "timing/Ops.h"
#include "decode/Parser.h"
#include "isa/Row.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fovea::sim {

namespace {

bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

bool isQuarterRate(std::string_view m) {
  return m == "v_mul_lo_u32" || m == "v_mul_hi_u32" || m == "v_mul_hi_i32" ||
         m == "v_mad_u64_u32" || m == "v_mad_i64_i32" || m == "v_mul_lo_i32";
}
bool isPackedFloat(std::string_view m) {
  return startsWith(m, "v_pk_") && contains(m, "_f32") && !contains(m, "cvt");
}
bool isDouble(std::string_view m) {
  return m.size() > 4 && m.substr(m.size() - 4) == "_f64" &&
         !startsWith(m, "v_cmp") && !startsWith(m, "v_cvt");
}

/// Multiply-adds * 2 of "v_mfma_f32_32x32x8_f16" and its relatives.
double matrixFlops(std::string_view m) {
  size_t at = m.find('x');
  if (at == m.npos)
    return 0;
  size_t begin = at;
  while (begin > 0 && m[begin - 1] >= '0' && m[begin - 1] <= '9')
    --begin;
  std::string text(m.substr(begin));
  char *end = nullptr;
  double rows = double(std::strtoul(text.c_str(), &end, 10));
  double columns = *end == 'x' ? double(std::strtoul(end + 1, &end, 10)) : 0;
  double depth = *end == 'x' ? double(std::strtoul(end + 1, &end, 10)) : 0;
  double blocks = 1;
  if (size_t b = m.find("b_"); b != m.npos && b > 1 && m[b - 1] >= '0' &&
                               m[b - 1] <= '9') {
    size_t first = b;
    while (m[first - 1] >= '0' && m[first - 1] <= '9')
      --first;
    blocks = double(std::strtoul(std::string(m.substr(first)).c_str(), nullptr, 10));
  }
  // Sparse instructions execute half of what their names say.
  double density = contains(m, "smfmac") ? 0.5 : 1;
  return 2 * rows * columns * depth * blocks * density;
}

} // namespace

TimedProgram::TimedProgram(Program &program, const TimingConstants &chip)
    : Prog(program), Chip(chip), Ops(program.dwords() + 8) {}

std::unique_ptr<TimedOp> TimedProgram::make(uint32_t index) {
  auto op = std::make_unique<TimedOp>();
  op->waits.fill(0xff);
  if (index >= Prog.dwords())
    return op;
  const InstInfo &info = Prog.info(index);
  const MicroOp &micro = Prog.ops()[index];
  std::string_view m = info.mnemonic;
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
  op->clocks = static_cast<uint16_t>(slot);
  op->latency = static_cast<uint16_t>(Chip.scalarLatency);
  auto setClocks = [&](unsigned clocks, unsigned latency) {
    op->clocks = static_cast<uint16_t>(clocks);
    op->latency = static_cast<uint16_t>(std::max(clocks, latency));
  };
  auto operandValue = [&]() -> int64_t {
    ParsedInst inst = parseInstruction(Prog.text(index));
    return inst.operands.empty() ? 0 : inst.operands.back().integer;
  };

  if (op->cls == InstClass::Mfma) {
    op->unit = Unit::Matrix;
    op->pipe = static_cast<uint16_t>(info.schedThroughput * 4 + 0.5);
    op->latency = static_cast<uint16_t>(op->pipe + Chip.matrixLatency);
    op->clocks = static_cast<uint16_t>(Chip.matrixIssue);
    op->flops = matrixFlops(m);
    op->wide = contains(m, "32x32");
    op->excludesVector = Chip.wideExcludesVector &&
                         (contains(m, "_f64") || contains(m, "f32_16x16x4_f32") ||
                          contains(m, "x2_f32") || contains(m, "b_f32"));
    // D = A * B + C: C is the third vector operand.
    unsigned vectors = 0;
    for (unsigned i = 0; i < op->readCount; ++i)
      if (op->reads[i].first < kTimedScalars && ++vectors == 3)
        op->accumulator = static_cast<int8_t>(i);
  } else if (startsWith(m, "v_")) {
    op->unit = Unit::Valu;
    op->packed = isPackedFloat(m);
    if (op->cls == InstClass::Trans)
      setClocks(Chip.transClocks, Chip.transLatency);
    else if (isQuarterRate(m))
      setClocks(Chip.quarterClocks, Chip.quarterClocks);
    else if (isDouble(m))
      setClocks(Chip.doubleClocks, Chip.doubleClocks + Chip.valuLatency - slot);
    else if (op->packed)
      setClocks(Chip.packedClocks, Chip.packedClocks + Chip.valuLatency - slot);
    else if (startsWith(m, "v_permlane") && contains(m, "_swap"))
      setClocks(Chip.swapClocks, Chip.swapClocks);
    else
      setClocks(Chip.valuClocks, Chip.valuLatency);
  } else if (startsWith(m, "ds_")) {
    op->unit = Unit::Lds;
  } else if (op->cls == InstClass::Vmem) {
    op->unit = Unit::Vmem;
  } else if (op->cls == InstClass::Smem) {
    op->unit = op->counts ? Unit::Smem : Unit::Salu;
  } else if (startsWith(m, "s_barrier") && m != "s_barrier_signal") {
    op->unit = Unit::Barrier;
  } else if (startsWith(m, "s_waitcnt") || startsWith(m, "s_wait_")) {
    op->unit = Unit::Wait;
    op->clocks = static_cast<uint16_t>(Chip.waitClocks);
  } else if (m == "s_nop") {
    op->unit = Unit::Nop;
    op->clocks = static_cast<uint16_t>(slot * (unsigned(operandValue() & 15) + 1));
  } else if (m == "s_sleep") {
    op->unit = Unit::Nop;
    op->clocks = static_cast<uint16_t>(
        std::min<int64_t>(64 * (operandValue() & 127), 8128) + slot);
  } else if (m == "s_setprio") {
    op->unit = Unit::Priority;
    op->value = static_cast<int32_t>(operandValue() & 3);
  } else if (m == "s_endpgm") {
    op->unit = Unit::End;
  } else if (op->cls == InstClass::Branch) {
    op->unit = Unit::Branch;
  } else if (op->cls == InstClass::Sync || m.empty()) {
    op->unit = Unit::Nop; // hints: a slot of the wave and nothing else
  } else {
    op->unit = Unit::Salu;
  }
  // A lane mask or a lane's value that goes to scalar registers takes longer.
  if (op->unit == Unit::Valu)
    for (unsigned i = 0; i < op->writeCount; ++i)
      if (op->writes[i].first >= kTimedScalars)
        op->latency = static_cast<uint16_t>(
            std::max<unsigned>(op->latency, Chip.maskLatency));
  return op;
}

} // namespace fovea::sim
