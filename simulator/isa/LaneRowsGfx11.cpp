//===- LaneRowsGfx11.cpp - Lane instructions of GFX11 and GFX12 -----------===//
//
// Permutations within and between rows of 16 lanes, swaps, moves relative to M0
// and dot products with signs by operand. Sources: AMD's RDNA3 and RDNA4 ISA
// documents.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// Each lane reads the lane of its row (or, with OTHER, of the row beside it)
/// that four bits of a selector name: of {s2, s1} by place in the row, or (VAR)
/// of a vector register. op_sel: read inactive lanes; inactive lanes read 0.
template <bool OTHER, bool VAR>
void permlane16(Wave &w, const MicroOp &op) {
  const uint32_t *from = lanesOf(w, op.s[0], 0);
  const uint32_t *selectors = VAR ? lanesOf(w, op.s[1], 1) : nullptr;
  uint64_t packed =
      VAR ? 0 : readS32(w, op.s[1]) | uint64_t(readS32(w, op.s[2])) << 32;
  bool fetchInactive = op.s[0].selLo, zero = op.s[1].selLo;
  uint64_t exec = w.exec(), write = exec;
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < w.lanes; ++l) {
    unsigned select =
        VAR ? selectors[l] & 15
            : static_cast<unsigned>(packed >> (4 * (l & 15))) & 15;
    int source = ((OTHER ? l ^ 16 : l) & ~15) | static_cast<int>(select);
    bool active = fetchInactive || ((exec >> source) & 1);
    r[l] = active ? from[source] : 0;
    if (!active && !zero)
      write &= ~(uint64_t(1) << l);
  }
  storeLanes(w, op.d.reg, r, 1, write);
}

/// Exchanges the halves of a wave of 64 lanes; EXEC of the source is ignored.
/// Waves of 32 lanes have nothing to exchange.
void permlane64(Wave &w, const MicroOp &op) {
  if (w.lanes == 32)
    return;
  const uint32_t *from = lanesOf(w, op.s[0], 0);
  uint32_t *r = w.buffer[4];
  for (int l = 0; l < 64; ++l)
    r[l] = from[l ^ 32];
  storeLanes(w, op.d.reg, r, 1, w.exec());
}

/// Exchanges halves of registers.
void swapHalves(Wave &w, const MicroOp &op) {
  unsigned to = op.flags & kDstHigh ? 16 : 0, from = op.s[0].selLo ? 16 : 0;
  uint32_t *a = w.vreg(op.d.reg), *b = w.vreg(op.s[0].reg);
  forEachLane(w.exec(), [&](int l) {
    uint32_t x = (a[l] >> to) & 0xffff, y = (b[l] >> from) & 0xffff;
    a[l] = (a[l] & ~(0xffffu << to)) | y << to;
    b[l] = (b[l] & ~(0xffffu << from)) | x << from;
  });
}

bool movedRegister(Wave &w, const MicroOp &op, unsigned reg, unsigned by,
                   unsigned &moved) {
  moved = reg + by;
  if (moved < kAgprBase)
    return true;
  w.fail(ErrorCode::IllegalInstruction, op, -1,
         "M0 points outside the vector registers");
  return false;
}
/// Moves and swaps of registers whose numbers M0 is added to; the _2 forms have
/// an offset for each side.
template <bool TWO, bool SWAP>
void moveRelative(Wave &w, const MicroOp &op) {
  uint32_t m0 = w.s[kM0];
  unsigned byD = TWO ? (m0 >> 16) & 0xff : m0, byS = TWO ? m0 & 0xff : m0;
  unsigned d, s;
  if (!movedRegister(w, op, op.d.reg, byD, d) ||
      !movedRegister(w, op, op.s[0].reg, byS, s))
    return;
  uint32_t *t = w.buffer[4];
  copyLanes(t, w.vreg(d));
  storeLanes(w, d, w.vreg(s), 1, w.exec());
  if (SWAP)
    storeLanes(w, s, t, 1, w.exec());
}

/// Dot products of bytes or nibbles; neg_lo says which operand is signed.
template <int BITS>
void dotSigns(Wave &w, const MicroOp &op) {
  const uint32_t *a = lanesOf(w, op.s[0], 0), *b = lanesOf(w, op.s[1], 1);
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  bool signedA = op.s[0].negLo, signedB = op.s[1].negLo;
  uint32_t *r = w.buffer[4];
  auto element = [](uint32_t x, int at, bool isSigned) -> int64_t {
    uint32_t top = x << (32 - BITS - at);
    return isSigned ? int64_t(static_cast<int32_t>(top) >> (32 - BITS))
                    : int64_t(top >> (32 - BITS));
  };
  for (int l = 0; l < w.lanes; ++l) {
    int64_t sum = static_cast<int32_t>(c[l]);
    for (int at = 0; at < 32; at += BITS)
      sum += element(a[l], at, signedA) * element(b[l], at, signedB);
    if (op.flags & kClamp)
      sum = imed3(sum, int64_t(INT32_MIN), int64_t(INT32_MAX));
    r[l] = static_cast<uint32_t>(sum);
  }
  storeLanes(w, op.d.reg, r, 1, w.exec());
}

} // namespace

void addLaneRowsGfx11(std::vector<Row> &rows) {
  auto add = [&](const char *name, Handler handler, Ty a, Ty b, Ty c,
                 uint32_t flags) {
    rows.push_back(valueRow(name, InstClass::Valu, Form::Custom, handler,
                            Ty::B32, a, b, c));
    rows.back().flags = flags;
  };
  constexpr Ty N = Ty::None, W = Ty::B32;
  add("v_permlane16_b32", permlane16<false, false>, W, W, W, kOwnModifiers);
  add("v_permlanex16_b32", permlane16<true, false>, W, W, W, kOwnModifiers);
  add("v_permlane16_var_b32", permlane16<false, true>, W, W, N, kOwnModifiers);
  add("v_permlanex16_var_b32", permlane16<true, true>, W, W, N, kOwnModifiers);
  add("v_permlane64_b32", permlane64, W, N, N, 0);
  add("v_swap_b16", swapHalves, W, N, N, 0);
  add("v_movrelsd_b32", moveRelative<false, false>, W, N, N, 0);
  add("v_movrelsd_2_b32", moveRelative<true, false>, W, N, N, 0);
  add("v_swaprel_b32", moveRelative<true, true>, W, N, N, 0);
  add("v_dot4_i32_iu8", dotSigns<8>, W, W, W, kOwnModifiers);
  add("v_dot8_i32_iu4", dotSigns<4>, W, W, W, kOwnModifiers);
}

} // namespace fovea::sim::FOVEA_VARIANT
