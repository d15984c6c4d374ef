//===- Engine.h - Handlers of the vector engine -----------------*- C++ -*-===//
//
// The handlers that rows refer to, one set for each build of the engine.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_ENGINE_H
#define FOVEA_SIMULATOR_EXEC_ENGINE_H

#include "exec/Simd.h"
#include "exec/Wave.h"
#include "isa/Row.h"

#include <vector>

namespace fovea::sim::FOVEA_VARIANT {

/// Runs a row's loop on unmodified operands under EXEC.
void execVector(Wave &w, const MicroOp &op);
/// The same with modifiers, DPP, SDWA and the float modes.
void execVectorSlow(Wave &w, const MicroOp &op);
void execCompare(Wave &w, const MicroOp &op);
void execCompareSlow(Wave &w, const MicroOp &op);
/// Memory instructions, by the row's flags.
void execFlat(Wave &w, const MicroOp &op);
void execBuffer(Wave &w, const MicroOp &op);
void execBufferFormat(Wave &w, const MicroOp &op);
void execTransposed(Wave &w, const MicroOp &op);
void execDs(Wave &w, const MicroOp &op);
void execMfma(Wave &w, const MicroOp &op);
/// Both halves of a dual-issue instruction.
void execDual(Wave &w, const MicroOp &op);

void addVectorRows(std::vector<Row> &rows);
void addCompareRows(std::vector<Row> &rows);
void addLaneRows(std::vector<Row> &rows);
void addLaneRowsGfx11(std::vector<Row> &rows);
void addConvertRows(std::vector<Row> &rows);
void addMemoryRows(std::vector<Row> &rows);
void addMfmaRows(std::vector<Row> &rows);
void addWmmaRows(std::vector<Row> &rows);
void addScalarAtomicRows(std::vector<Row> &rows);

/// The lanes of an operand: its own registers, its constant, or a spread copy
/// in buffer \p slot.
inline const uint32_t *lanesOf(Wave &w, const Operand &o, int slot) {
  if (o.kind == Operand::Vgpr)
    return w.vreg(o.reg);
  if (o.kind == Operand::Const)
    return o.lanes;
  uint32_t *p = w.buffer[slot];
  if (o.kind == Operand::Mask) {
    spreadMask(p, w.s64(o.reg), w.lanes);
  } else if (o.words > 1) {
    uint64_t value = readS64(w, o);
    spread(p, static_cast<uint32_t>(value), w.lanes);
    spread(p + kLaneStride, static_cast<uint32_t>(value >> 32), w.lanes);
  } else if (o.kind != Operand::None) {
    spread(p, readS32(w, o), w.lanes);
  }
  return p;
}

/// Writes \p words words a lane to registers under \p mask.
inline void storeLanes(Wave &w, unsigned reg, const uint32_t *from,
                       unsigned words, uint64_t mask) {
  for (unsigned i = 0; i < words; ++i)
    if (mask == w.fullMask)
      copyLanes(w.vreg(reg + i), from + i * kLaneStride, w.lanes);
    else
      storeMasked(w.vreg(reg + i), from + i * kLaneStride, mask, w.lanes);
}

/// Writes a lane mask result: bits of inactive lanes become 0. Waves of 32 lanes
/// have masks of one register.
inline void storeMaskResult(Wave &w, const Operand &o, uint64_t bits) {
  if (o.words == 1)
    writeS32(w, o, static_cast<uint32_t>(bits));
  else
    writeS64(w, o, bits);
}

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_EXEC_ENGINE_H
