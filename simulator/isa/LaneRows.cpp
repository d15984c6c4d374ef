//===- LaneRows.cpp - Instructions that cross or count lanes --------------===//
//
// Reads and writes of single lanes, bit counts over lane masks, and the few
// vector instructions that do not fit the form of VectorOps.def.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

void readLane(Wave &w, const MicroOp &op) {
  unsigned lane = readS32(w, op.s[1]) & (w.lanes - 1);
  writeS32(w, op.d, lanesOf(w, op.s[0], 0)[lane]);
}

void readFirstLane(Wave &w, const MicroOp &op) {
  uint64_t exec = w.exec();
  unsigned lane = exec ? __builtin_ctzll(exec) : 0;
  writeS32(w, op.d, lanesOf(w, op.s[0], 0)[lane]);
}

void writeLane(Wave &w, const MicroOp &op) {
  unsigned lane = readS32(w, op.s[1]) & (w.lanes - 1);
  w.vreg(op.d.reg)[lane] = readS32(w, op.s[0]);
}

/// Adds to b the number of bits of a below this lane, in the lower (mbcnt_lo)
/// or upper 32 lanes.
template <int FIRST>
void mbcnt(Wave &w, const MicroOp &op) {
  const uint32_t *a = lanesOf(w, op.s[0], 0), *b = lanesOf(w, op.s[1], 1);
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l) {
    int below = l - FIRST;
    uint32_t mask = below <= 0 ? 0 : below >= 32 ? ~0u : (1u << below) - 1;
    r[l] = b[l] + static_cast<uint32_t>(__builtin_popcount(a[l] & mask));
  }
  storeLanes(w, op.d.reg, r, 1, w.exec());
}

void swapRegisters(Wave &w, const MicroOp &op) {
  uint64_t exec = w.exec();
  uint32_t *t = w.buffer[4];
  copyLanes(t, w.vreg(op.d.reg));
  storeLanes(w, op.d.reg, w.vreg(op.s[0].reg), 1, exec);
  storeLanes(w, op.s[0].reg, t, 1, exec);
}

template <class T>
void divFmasOp(Wave &w, const MicroOp &op) {
  const uint32_t *p[3];
  for (int i = 0; i < 3; ++i)
    p[i] = lanesOf(w, op.s[i], i);
  uint64_t vcc = w.vcc();
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l) {
    typename T::T x[3];
    for (int i = 0; i < 3; ++i) {
      x[i] = T::load(p[i], l);
      if (op.s[i].abs)
        x[i] = std::fabs(x[i]);
      if (op.s[i].neg)
        x[i] = -x[i];
    }
    T::store(r, l, divFmas(x[0], x[1], x[2], (vcc >> l) & 1));
  }
  storeLanes(w, op.d.reg, r, wordsOf(T::ty), w.exec());
}

void movrels(Wave &w, const MicroOp &op) {
  unsigned reg = op.s[0].reg + w.s[kM0];
  if (reg >= kVectorRegs)
    return w.fail(ErrorCode::IllegalInstruction, op, -1,
                  "M0 points outside the vector registers");
  copyLanes(w.buffer[4], w.vreg(reg));
  storeLanes(w, op.d.reg, w.buffer[4], 1, w.exec());
}
void movreld(Wave &w, const MicroOp &op) {
  unsigned reg = op.d.reg + w.s[kM0];
  if (reg >= kVectorRegs)
    return w.fail(ErrorCode::IllegalInstruction, op, -1,
                  "M0 points outside the vector registers");
  copyLanes(w.buffer[4], lanesOf(w, op.s[0], 0));
  storeLanes(w, reg, w.buffer[4], 1, w.exec());
}

/// Each word of the result from the half of its source that op_sel names.
void pkMov(Wave &w, const MicroOp &op) {
  const uint32_t *a = lanesOf(w, op.s[0], 0), *b = lanesOf(w, op.s[1], 1);
  uint32_t *r = w.buffer[4];
  copyLanes(r, a + (op.s[0].selLo ? kLaneStride : 0));
  copyLanes(r + kLaneStride, b + (op.s[1].selLo ? kLaneStride : 0));
  storeLanes(w, op.d.reg, r, 2, w.exec());
}

} // namespace

void addLaneRows(std::vector<Row> &rows) {
  auto add = [&](const char *name, Handler handler, Ty d, Ty a, Ty b, Ty c) {
    Row row;
    row.mnemonic = name;
    row.cls = InstClass::Valu;
    row.form = Form::Custom;
    row.handler = handler;
    row.d = d;
    row.s[0] = a;
    row.s[1] = b;
    row.s[2] = c;
    rows.push_back(row);
  };
  constexpr Ty N = Ty::None, W = Ty::B32;
  add("v_readlane_b32", readLane, W, W, W, N);
  add("v_readfirstlane_b32", readFirstLane, W, W, N, N);
  add("v_writelane_b32", writeLane, W, W, W, N);
  add("v_mbcnt_lo_u32_b32", mbcnt<0>, W, W, W, N);
  add("v_mbcnt_hi_u32_b32", mbcnt<32>, W, W, W, N);
  add("v_swap_b32", swapRegisters, W, W, N, N);
  add("v_div_fmas_f32", divFmasOp<F32>, Ty::F32, Ty::F32, Ty::F32, Ty::F32);
  add("v_div_fmas_f64", divFmasOp<F64>, Ty::F64, Ty::F64, Ty::F64, Ty::F64);
  add("v_pk_mov_b32", pkMov, Ty::B64, Ty::B64, Ty::B64, N);
  add("v_movrels_b32", movrels, W, W, N, N);
  add("v_movreld_b32", movreld, W, W, N, N);
}

} // namespace fovea::sim::FOVEA_VARIANT
