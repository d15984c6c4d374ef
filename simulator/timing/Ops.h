//===- Ops.h - Instructions as the timing model sees them -------*- C++ -*-===//
//
// Unit, cost, registers and waits of each instruction of a program, worked out
// once. Registers are numbered in one space: vector registers first, then scalar
// ones, then SCC.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_OPS_H
#define FOVEA_SIMULATOR_TIMING_OPS_H

#include "decode/Program.h"
#include "fovea/Simulator/Timing.h"
#include "isa/Row.h"
#include "timing/Constants.h"

#include <array>
#include <memory>
#include <vector>

namespace fovea::sim {

enum class Unit : uint8_t {
  Valu,
  Matrix,
  Salu,
  Smem,
  Vmem,
  Lds,
  Branch,
  Wait,
  Nop,
  Barrier,
  Priority,
  End,
  Signal,     ///< the first half of a split barrier; Barrier is the second
  Invalidate, ///< empties an L1
  Hint,       ///< takes no clock
};

/// The unit that executes an instruction.
Unit unitOf(const Row &row);

/// Clocks that a vector instruction holds its SIMD, and to the issue of a
/// reader.
struct VectorCost {
  unsigned clocks, latency;
};
VectorCost vectorCost(const TimingConstants &chip, Rate rate);

constexpr unsigned kTimedScalars = kVectorRegs;
constexpr unsigned kTimedScc = kTimedScalars + kScalarRegs + 8;
constexpr unsigned kTimedRegs = kTimedScc + 1;

struct TimedRange {
  uint16_t first = 0, count = 0;
};

struct TimedOp {
  Unit unit = Unit::Salu;
  InstClass cls = InstClass::Other;
  uint8_t counts = 0;        ///< bits of WaitCounter
  bool packed = false;       ///< packed fp32
  bool trans = false;        ///< runs on the transcendental unit
  bool dual = false;         ///< two vector instructions in one
  bool forwards = false;     ///< it reads what it writes
  bool split = false;        ///< a barrier's wait, whose arrival is a Signal
  bool small = false;        ///< a product of 16 x 16
  bool excludesVector = false; ///< an MFMA that keeps the vector ALU idle
  bool isStore = false, writesExec = false;
  uint16_t clocks = 4;       ///< its unit, or the wave (Nop)
  uint16_t port = 4;         ///< a vector instruction its SIMD
  uint16_t pipe = 0;         ///< the matrix core
  uint16_t clash = 0;        ///< of `pipe`: for operands in one register bank
  uint16_t latency = 4;      ///< issue to the issue of a reader
  /// The same of scalar registers: to the scalar unit.
  uint16_t scalarLatency = 4;
  uint8_t size = 1;          ///< dwords
  uint8_t readCount = 0, writeCount = 0;
  int8_t accumulator = -1;   ///< index of C among `reads`
  std::array<TimedRange, 8> reads;
  std::array<TimedRange, 4> writes;
  std::array<uint8_t, kWaitCounters> waits;
  int32_t value = 0;         ///< priority; clocks of s_sleep
  double flops = 0;          ///< of a matrix instruction
};

/// All instructions of a program that have been looked at; the others are made
/// when first asked for. Not thread-safe.
class TimedProgram {
public:
  TimedProgram(Program &program, const TimingConstants &chip);
  const TimedOp &at(uint32_t index) {
    if (!Ops[index])
      Ops[index] = make(index);
    return *Ops[index];
  }
  Program &program() { return Prog; }
  /// Places that a program has here: its dwords, and some behind the last
  /// instruction, where there is none.
  static size_t placesOf(const Program &program);
  uint32_t dwords() const { return static_cast<uint32_t>(Ops.size()); }

private:
  std::unique_ptr<TimedOp> make(uint32_t index);
  Program &Prog;
  const TimingConstants &Chip;
  std::vector<std::unique_ptr<TimedOp>> Ops;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_OPS_H
