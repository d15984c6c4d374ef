//===- Wave.h - The state of a wave and its workgroup -----------*- C++ -*-===//
//
// Registers as the engine keeps them: vector registers as arrays over lanes,
// scalar registers by hardware index (VCC, M0 and EXEC among them).
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_WAVE_H
#define FOVEA_SIMULATOR_EXEC_WAVE_H

#include "exec/MicroOp.h"
#include "fovea/Simulator/DeviceMemory.h"
#include "fovea/Simulator/Launch.h"

#include <cstring>

namespace fovea::sim {

class Program;
class Observer;

/// Aperture bases of FLAT addresses: the upper 32 bits tell LDS and scratch
/// from memory, as the Linux driver sets them up on GFX9.
constexpr uint64_t kSharedBase = uint64_t(0x1000000) << 32;
constexpr uint64_t kPrivateBase = uint64_t(0x2000000) << 32;
/// Base of the buffer resource through which kernels without flat scratch
/// instructions reach their scratch (48 bits, in no allocation). Buffer
/// instructions know it, as FLAT ones know kPrivateBase: a lane's bytes are kept
/// together, whatever the swizzle that the resource asks for.
constexpr uint64_t kScratchBuffer = uint64_t(0xfffe) << 32;

/// The last allocations that a host thread's accesses fell into.
struct MemoryCache {
  const DeviceMemory *memory = nullptr;
  uint64_t generation = 0;
  struct Range {
    uint64_t begin = 1, end = 0;
  } ranges[8];
  unsigned next = 0;

  /// Whether [begin, end) lies in one allocation.
  bool covers(uint64_t begin, uint64_t end) {
    if (generation == memory->generation())
      for (const Range &range : ranges)
        if (begin >= range.begin && end <= range.end && begin < end)
          return true;
    return lookUp(begin, end);
  }
  bool lookUp(uint64_t begin, uint64_t end);
};

enum class WaveState : uint8_t { Running, Barrier, Ended, Faulted };

/// A barrier in two halves: see exec/Barrier.h.
struct SplitBarrier {
  uint32_t members = 0; ///< of a named one
  uint32_t arrived = 0; ///< since it last completed
};

/// What the waves of one workgroup share, and the launch behind it.
struct Group {
  const ChipInfo *chip = nullptr;
  Program *program = nullptr;
  MicroOp *ops = nullptr;
  MemoryCache cache;
  uint8_t *lds = nullptr;
  uint32_t ldsBytes = 0;
  uint32_t m0LdsMask = 0xffff; ///< bits of M0 that are an LDS address
  uint32_t privateBytes = 0; ///< a lane
  uint32_t id[3] = {0, 0, 0};
  uint64_t grid[3] = {1, 1, 1}; ///< workgroups of the launch
  uint64_t number = 0;          ///< of this one: x + y * X + z * X * Y
  Wave *waves = nullptr; ///< those of the workgroup
  unsigned waveCount = 0;
  SplitBarrier barriers[18]; ///< workgroup, trap, named 1 to 16
  uint64_t textBegin = 0;
  uint32_t textDwords = 0;
  MfmaFault mfmaFault = MfmaFault::None;
  Observer *observer = nullptr; ///< null in launches that nobody watches
  uint64_t bytesLoaded = 0, bytesStored = 0;
  /// Decodes the instruction at a wave's program counter.
  void (*decodeAt)(Wave &) = nullptr;
  Handler undecoded = nullptr; ///< the handler of what is not decoded yet
  uint64_t counts[kInstClasses] = {};
};

struct Fault {
  ErrorCode code = ErrorCode::None;
  const MicroOp *op = nullptr;
  int lane = -1;
  uint64_t lanes = 0; ///< all lanes at fault, when a checker knows them
  std::string what;
};

struct Wave {
  uint32_t *v = nullptr; ///< kVectorFile arrays of kLaneStride words
  alignas(64) uint32_t s[kScalarRegs + 8];
  uint32_t pc = 0;       ///< in dwords from the start of the code
  int64_t slice = 0;     ///< instructions until the scheduler looks again
  bool scc = false;
  bool indexing = false;  ///< VGPR indexing is on
  /// MODE asks for flushing, another rounding, or the largest number instead of
  /// infinities.
  bool slowFloat = false;
  WaveState state = WaveState::Running;
  uint8_t barrierDone = 0, barrierWait = 0; ///< of split barriers, by kind
  int joined = 0;         ///< the named barrier that the wave takes part in
  uint32_t mode = 0;
  int lanes = 64;
  uint64_t fullMask = ~uint64_t(0);
  unsigned index = 0;    ///< in its workgroup
  uint8_t *scratch = nullptr; ///< lane l's bytes start at l * privateBytes
  Group *group = nullptr;
  uint64_t executed = 0;
  unsigned initialVgprs = 0, initialSgprs = 0; ///< that the launch set up
  Fault fault;
  /// Sources spread over lanes, and results before they are masked.
  alignas(64) uint32_t buffer[6][4 * kLaneStride];

  uint64_t s64(unsigned reg) const {
    uint64_t value;
    std::memcpy(&value, &s[reg], 8);
    return value;
  }
  void setS64(unsigned reg, uint64_t value) {
    std::memcpy(&s[reg], &value, 8);
  }
  uint64_t exec() const { return s64(kExec) & fullMask; }
  uint64_t vcc() const { return s64(kVcc); }
  void setExec(uint64_t value) { setS64(kExec, value); }
  uint32_t *vreg(unsigned reg) { return v + size_t(reg) * kLaneStride; }

  /// Ends execution with an error; the instruction and the place are added by
  /// the launch.
  void fail(ErrorCode code, const MicroOp &op, int lane, std::string what);
  void stop(WaveState why) {
    state = why;
    slice = 0;
  }
  void setMode(uint32_t value) {
    mode = value;
    // Bits 0-3: rounding, 0 is nearest even. Bits 4-7: denormals kept.
    slowFloat = (value & 0xff) != 0xf0 || limitsOverflow();
  }
  /// MODE.FP16_OVFL: results too large for their type become its largest
  /// number.
  bool limitsOverflow() const { return (mode >> 23) & 1; }
};

/// Scalar reads and writes by operand.
inline uint32_t readS32(const Wave &w, const Operand &o) {
  if (o.kind == Operand::Sgpr)
    return w.s[o.reg];
  if (o.kind == Operand::Const)
    return o.lanes[0];
  if (o.kind == Operand::Special) {
    switch (o.reg) {
    case kSrcVccz: return w.vcc() == 0;
    case kSrcExecz: return w.exec() == 0;
    default: return w.scc;
    }
  }
  if (o.kind == Operand::Mask)
    return w.s[o.reg];
  if (o.kind == Operand::Vgpr) // the first lane: uniform uses of VGPRs
    return w.v[size_t(o.reg) * kLaneStride];
  return 0;
}
inline uint64_t readS64(const Wave &w, const Operand &o) {
  if (o.kind == Operand::Sgpr || o.kind == Operand::Mask)
    return w.s64(o.reg);
  if (o.kind == Operand::Const)
    return o.value();
  return readS32(w, o);
}
inline void writeS32(Wave &w, const Operand &o, uint32_t value) {
  w.s[o.reg] = value;
  w.s[kNull] = 0;
}
inline void writeS64(Wave &w, const Operand &o, uint64_t value) {
  w.setS64(o.reg, value);
  w.setS64(kNull, 0);
}

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_WAVE_H
