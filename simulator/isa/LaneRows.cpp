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

/// v_permlane16_swap, v_permlane32_swap: the upper half of each group of 2 * N
/// lanes of the first register and the lower half of the second change places.
template <int N>
void permlaneSwap(Wave &w, const MicroOp &op) {
  uint64_t exec = w.exec();
  bool fetchInactive = op.aux & 2, zero = op.flags & kBoundCtrl;
  uint32_t *d = w.vreg(op.d.reg), *s = w.vreg(op.s[0].reg);
  for (int base = 0; base < w.lanes; base += 2 * N)
    for (int i = 0; i < N; ++i) {
      int lower = base + i, upper = base + N + i;
      uint32_t fromD = d[upper], fromS = s[lower];
      bool low = (exec >> lower) & 1, high = (exec >> upper) & 1;
      if (high && (low || fetchInactive || zero))
        d[upper] = low || fetchInactive ? fromS : 0;
      if (low && (high || fetchInactive || zero))
        s[lower] = high || fetchInactive ? fromD : 0;
    }
}

/// v_bitop3: each bit is looked up in a truth table of eight bits.
uint32_t bitop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < 8; ++i)
    if ((table >> i) & 1)
      r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}
void bitop3Word(Wave &w, const MicroOp &op) {
  const uint32_t *a = lanesOf(w, op.s[0], 0), *b = lanesOf(w, op.s[1], 1);
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l)
    r[l] = bitop3(a[l], b[l], c[l], static_cast<uint32_t>(op.offset));
  storeLanes(w, op.d.reg, r, 1, w.exec());
}
/// Writes 16 bits to the half that bit 3 of op_sel names.
void storeHalf(Wave &w, const MicroOp &op, uint32_t *r) {
  const uint32_t *old = w.vreg(op.d.reg);
  for (int l = 0; l < w.lanes; ++l)
    r[l] = op.aux & 8 ? (old[l] & 0xffff) | r[l] << 16
                      : (old[l] & 0xffff0000) | (r[l] & 0xffff);
  storeLanes(w, op.d.reg, r, 1, w.exec());
}
void bitop3Half(Wave &w, const MicroOp &op) {
  const uint32_t *p[3];
  for (int i = 0; i < 3; ++i)
    p[i] = lanesOf(w, op.s[i], i);
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l)
    r[l] = bitop3(p[0][l] >> (op.aux & 1 ? 16 : 0), p[1][l] >> (op.aux & 2 ? 16 : 0),
                  p[2][l] >> (op.aux & 4 ? 16 : 0),
                  static_cast<uint32_t>(op.offset));
  storeHalf(w, op, r);
}
/// v_ashr_pk_{i8,u8}_i32: two shifted numbers, saturated to a byte each.
template <int LOW, int HIGH>
void shiftPack(Wave &w, const MicroOp &op) {
  const uint32_t *a = lanesOf(w, op.s[0], 0), *b = lanesOf(w, op.s[1], 1);
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l) {
    auto byte = [&](uint32_t x) {
      int32_t y = static_cast<int32_t>(x) >> (c[l] & 31);
      return static_cast<uint32_t>(imed3(y, LOW, HIGH)) & 0xff;
    };
    r[l] = byte(a[l]) | byte(b[l]) << 8;
  }
  storeHalf(w, op, r);
}

/// v_mqsad_u32_u8: as v_mqsad_pk_u16_u8 on sums of 32 bits.
void mqsadWide(Wave &w, const MicroOp &op) {
  const uint32_t *a = lanesOf(w, op.s[0], 0), *b = lanesOf(w, op.s[1], 1);
  // A constant is two words; the upper sums start from 0 then.
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  bool vector = op.s[2].kind == Operand::Vgpr;
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l) {
    uint64_t bytes = U64::load(a, l);
    for (int i = 0; i < 4; ++i)
      r[i * static_cast<int>(kLaneStride) + l] =
          msadU8(static_cast<uint32_t>(bytes >> (8 * i)), b[l],
                 vector ? c[i * static_cast<int>(kLaneStride) + l] : 0);
  }
  storeLanes(w, op.d.reg, r, 4, w.exec());
}

} // namespace

void addLaneRows(std::vector<Row> &rows) {
  auto add = [&](const char *name, Handler handler, Ty d, Ty a, Ty b, Ty c) {
    rows.push_back(
        valueRow(name, InstClass::Valu, Form::Custom, handler, d, a, b, c));
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
  add("v_permlane16_swap_b32", permlaneSwap<16>, W, W, N, N);
  rows.back().rate = Rate::Swap;
  add("v_permlane32_swap_b32", permlaneSwap<32>, W, W, N, N);
  rows.back().rate = Rate::Swap;
  add("v_mqsad_u32_u8", mqsadWide, Ty::B128, Ty::B64, W, Ty::B128);
  add("v_bitop3_b32", bitop3Word, W, W, W, W);
  add("v_bitop3_b16", bitop3Half, W, Ty::U16, Ty::U16, Ty::U16);
  add("v_ashr_pk_i8_i32", shiftPack<-128, 127>, W, W, W, W);
  add("v_ashr_pk_u8_i32", shiftPack<0, 255>, W, W, W, W);
  for (Row &row : rows)
    if (row.mnemonic.substr(0, 8) == "v_bitop3" ||
        row.mnemonic.substr(0, 9) == "v_ashr_pk")
      row.form = Form::Convert;
}

} // namespace fovea::sim::FOVEA_VARIANT
