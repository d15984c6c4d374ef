//===- Lds.cpp - DS instructions ------------------------------------------===//
//
// Reads, writes and atomics of the local data share, and the exchanges between
// lanes that go through its crossbar. Offsets beyond the workgroup's LDS end the
// launch. Patterns of ds_swizzle: CDNA3 ISA reference, DS_SWIZZLE_B32.
//
//===----------------------------------------------------------------------===//
#include "exec/Access.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// Addresses are added in 32 bits: compilers use a negative one with an offset
/// that brings it back. Where that is so for lanes of `mask`, adds `first` to the
/// addresses; false when something then still lies outside.
bool wrapAddresses(const Wave &w, uint64_t mask, uint32_t *at, uint32_t first,
                   uint32_t second, uint32_t bytes) {
  const uint64_t size = w.group->ldsBytes;
  bool inside = true;
  forEachLane(mask, [&](int l) {
    inside &= uint64_t(uint32_t(at[l] + first)) + bytes <= size &&
              uint64_t(uint32_t(at[l] + second)) + bytes <= size;
  });
  if (inside)
    forEachLane(mask, [&](int l) { at[l] += first; });
  return inside;
}

/// Whether the highest address with `offset` lies inside, without wrapping.
bool fitsLds(const Wave &w, uint64_t mask, const uint32_t *v, uint32_t offset,
             uint32_t bytes) {
  uint32_t highest = 0;
  if (mask == w.fullMask) {
    for (int l = 0; l < w.lanes; ++l)
      highest = v[l] > highest ? v[l] : highest;
  } else {
    forEachLane(mask, [&](int l) { highest = v[l] > highest ? v[l] : highest; });
  }
  return uint64_t(highest) + offset + bytes <= w.group->ldsBytes;
}

/// Reports the lane that reaches furthest beyond the workgroup's LDS.
void failLds(Wave &w, const MicroOp &op, uint64_t mask, const uint32_t *at,
             uint32_t first, uint32_t second, uint32_t bytes) {
  const uint64_t size = w.group->ldsBytes;
  int bad = -1;
  uint32_t furthest = 0;
  forEachLane(mask, [&](int l) {
    for (uint32_t offset : {first, second})
      if (uint32_t place = at[l] + offset;
          place + uint64_t(bytes) > size && (bad < 0 || place > furthest)) {
        bad = l;
        furthest = place;
      }
  });
  w.fail(ErrorCode::IllegalAddress, op, bad,
         std::to_string(bytes) + " bytes at LDS offset " +
             std::to_string(furthest) + ": the workgroup has " +
             std::to_string(size) + " bytes");
}

} // namespace

void execDs(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  uint64_t mask = w.exec();
  if (!mask)
    return;
  uint32_t bytes = row.flags & kAtomic ? row.param : row.param * row.count;
  // Addresses are copied: a load may overwrite their register.
  uint32_t at[kLaneStride];
  std::memcpy(at, w.vreg(op.s[0].reg), sizeof at);
  uint32_t first = static_cast<uint32_t>(op.offset);
  uint32_t second = static_cast<uint32_t>(op.offset1);
  uint32_t reach = row.flags & kTwo && second > first ? second : first;
  if (!fitsLds(w, mask, at, reach, bytes)) {
    const uint32_t other = row.flags & kTwo ? second : first;
    if (!wrapAddresses(w, mask, at, first, other, bytes))
      return failLds(w, op, mask, at, first, other, bytes);
    second -= first; // may be negative: it is added to a pointer below
    first = 0;
  }
  uint8_t *base = w.group->lds + first,
          *base2 = w.group->lds + int32_t(second);
  auto place = [&](int l) { return base + at[l]; };
  auto place2 = [&](int l) { return base2 + at[l]; };
  // Two equal offsets are one access of a store.
  const bool two =
      (row.flags & kTwo) && !((row.flags & kStore) && op.offset == op.offset1 &&
                              (w.group->chip->traits & kTraitWrite2Once));
  if (!observed(w, op, accessKind(row), mask, place, bytes) ||
      (two && !observed(w, op, accessKind(row), mask, place2, bytes)))
    return;
  if (row.flags & kAtomic) {
    unsigned x = op.s[1].reg;
    unsigned c = op.s[2].kind == Operand::Vgpr ? op.s[2].reg : x;
    // ds_cmpst: comparand first, then the value; ds_cmpstore has them turned.
    if (isCompareSwap(row.count) && !(row.flags & kValueFirst))
      std::swap(x, c);
    int bad = -1;
    if (!atomicAny(w, row, mask, place, x, c, op.d.reg, op.flags & kReturn, bad))
      w.fail(ErrorCode::IllegalAddress, op, bad,
             "LDS atomic on an offset that is not a multiple of " +
                 std::to_string(row.param));
    return;
  }
  if (row.flags & kStore) {
    storeAny(w, row, op.s[1].reg, mask, place);
    if (two)
      storeAny(w, row, op.s[2].reg, mask, place2);
    return;
  }
  loadAny(w, row, op.d.reg, mask, place);
  if (row.flags & kTwo)
    loadAny(w, row, op.d.reg + row.count, mask, place2);
}

namespace {

/// Whether all places at + first (and at + second) lie inside; fails the wave if
/// not. Turns addresses that count on wrapping into ones that do not.
bool checkLds(Wave &w, const MicroOp &op, uint64_t mask, uint32_t *at,
              uint32_t &first, uint32_t &second, uint32_t bytes) {
  if (fitsLds(w, mask, at, std::max(first, second), bytes))
    return true;
  if (!wrapAddresses(w, mask, at, first, second, bytes)) {
    failLds(w, op, mask, at, first, second, bytes);
    return false;
  }
  second -= first;
  first = 0;
  return true;
}
bool checkLds(Wave &w, const MicroOp &op, uint64_t mask, uint32_t *at,
              uint32_t &offset, uint32_t bytes) {
  uint32_t same = offset;
  return checkLds(w, op, mask, at, offset, same, bytes);
}

/// ds_wrxchg2_rtn: two exchanges a lane.
void exchange2(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  uint64_t mask = w.exec();
  if (!mask)
    return;
  uint32_t at[kLaneStride];
  std::memcpy(at, w.vreg(op.s[0].reg), sizeof at);
  unsigned words = row.param / 4;
  uint32_t offset[2] = {static_cast<uint32_t>(op.offset),
                        static_cast<uint32_t>(op.offset1)};
  // Both are checked before either is done; data may lie in the destination.
  if (!checkLds(w, op, mask, at, offset[0], offset[1], row.param))
    return;
  alignas(64) uint32_t data[2][2 * kLaneStride];
  for (unsigned i = 0; i < 2; ++i)
    std::memcpy(data[i], w.vreg(op.s[1 + i].reg), words * kLaneStride * 4);
  for (unsigned i = 0; i < 2; ++i) {
    uint8_t *base = w.group->lds + int32_t(offset[i]);
    auto place = [&](int l) { return base + at[l]; };
    if (!observed(w, op, MemoryAccess::Atomic, mask, place, row.param))
      return;
    forEachLane(mask, [&](int l) {
      uint32_t old[2];
      std::memcpy(old, place(l), row.param);
      uint32_t fresh[2] = {data[i][l], data[i][kLaneStride + unsigned(l)]};
      std::memcpy(place(l), fresh, row.param);
      for (unsigned k = 0; k < words; ++k)
        w.vreg(op.d.reg + i * words + k)[l] = old[k];
    });
  }
}

/// ds_append, ds_consume: the number of active lanes is added to, or taken
/// from, one word at M0; all lanes get the value before.
template <bool APPEND>
void appendConsume(Wave &w, const MicroOp &op) {
  uint64_t mask = w.exec();
  if (!mask)
    return;
  uint32_t at[kLaneStride];
  spread(at, w.s[kM0] & w.group->m0LdsMask);
  uint32_t offset = static_cast<uint32_t>(op.offset);
  uint64_t first = mask & (~mask + 1);
  if (!checkLds(w, op, first, at, offset, 4))
    return;
  uint8_t *base = w.group->lds + offset;
  auto place = [&](int l) { return base + at[l]; };
  if (!observed(w, op, MemoryAccess::Atomic, first, place, 4))
    return;
  uint32_t old, n = static_cast<uint32_t>(__builtin_popcountll(mask));
  std::memcpy(&old, place(0), 4);
  uint32_t fresh = APPEND ? old + n : old - n;
  std::memcpy(place(0), &fresh, 4);
  uint32_t *r = w.buffer[4];
  spread(r, old);
  storeLanes(w, op.d.reg, r, 1, mask);
}

/// ds_read_addtid, ds_write_addtid: consecutive words from M0 on.
template <bool LOAD>
void consecutive(Wave &w, const MicroOp &op) {
  uint64_t mask = w.exec();
  if (!mask)
    return;
  uint32_t at[kLaneStride];
  for (unsigned l = 0; l < kLaneStride; ++l)
    at[l] = (w.s[kM0] & w.group->m0LdsMask) + 4 * l;
  uint32_t offset = static_cast<uint32_t>(op.offset);
  if (!checkLds(w, op, mask, at, offset, 4))
    return;
  uint8_t *base = w.group->lds + offset;
  auto place = [&](int l) { return base + at[l]; };
  if (!observed(w, op, LOAD ? MemoryAccess::Load : MemoryAccess::Store, mask,
                place, 4))
    return;
  if (LOAD)
    loadWords<1>(w, op.d.reg, mask, place);
  else
    storeWords<1>(w, op.s[0].reg, mask, place);
}

/// ds_read_b64_tr_*, ds_read_b96_tr_b6: 16 lanes read a tile row by row, N
/// elements of BITS bits a lane, and each gets one of its 16 columns: element e
/// of lane j is element j % N of lane 16 / N * e + j / N. (CDNA4 ISA document,
/// "LDS transpose loads".)
template <int BITS, int N>
void readTransposed(Wave &w, const MicroOp &op) {
  constexpr int words = BITS * N / 32, lanesPerRow = 16 / N;
  uint64_t mask = w.exec();
  if (!mask)
    return;
  uint32_t at[kLaneStride];
  std::memcpy(at, w.vreg(op.s[0].reg), sizeof at);
  uint32_t offset = static_cast<uint32_t>(op.offset);
  if (!checkLds(w, op, mask, at, offset, 4 * words))
    return;
  uint8_t *base = w.group->lds + offset;
  auto place = [&](int l) { return base + at[l]; };
  if (!observed(w, op, MemoryAccess::Load, mask, place, 4 * words))
    return;
  uint32_t tile[kLaneStride][words + 1] = {};
  forEachLane(mask, [&](int l) { std::memcpy(tile[l], place(l), 4 * words); });
  alignas(64) uint32_t r[words * kLaneStride] = {};
  for (int l = 0; l < w.lanes; ++l)
    for (int e = 0; e < N; ++e) {
      int j = l & 15;
      const uint32_t *from = tile[(l & ~15) + lanesPerRow * e + j / N];
      int bit = j % N * BITS;
      uint64_t both = from[bit / 32] | uint64_t(from[bit / 32 + 1]) << 32;
      uint64_t x = (both >> (bit % 32)) & ((uint64_t(1) << BITS) - 1);
      int to = e * BITS;
      x <<= to % 32;
      r[to / 32 * static_cast<int>(kLaneStride) + l] |= static_cast<uint32_t>(x);
      if (to % 32 + BITS > 32)
        r[(to / 32 + 1) * static_cast<int>(kLaneStride) + l] |=
            static_cast<uint32_t>(x >> 32);
    }
  storeLanes(w, op.d.reg, r, words, mask);
}

/// The lane that byte address \p at names for lane \p l, within its \p lanes.
unsigned target(int l, uint32_t at, unsigned lanes) {
  return (static_cast<unsigned>(l) & ~(lanes - 1)) | ((at >> 2) & (lanes - 1));
}
unsigned permuteLanes(const Wave &w) {
  return w.group->chip->permuteIn32 ? 32 : static_cast<unsigned>(w.lanes);
}

/// Each lane reads the register of the lane that its own address names.
/// ANY: inactive lanes are read as well (ds_bpermute_fi).
template <bool ANY>
void bpermute(Wave &w, const MicroOp &op) {
  uint64_t exec = w.exec();
  unsigned lanes = permuteLanes(w);
  const uint32_t *a = w.vreg(op.s[0].reg), *x = w.vreg(op.s[1].reg);
  uint32_t *r = w.buffer[4];
  uint32_t offset = static_cast<uint32_t>(op.offset);
  for (int l = 0; l < w.lanes; ++l) {
    unsigned from = target(l, a[l] + offset, lanes);
    r[l] = ANY || ((exec >> from) & 1) ? x[from] : 0;
  }
  storeLanes(w, op.d.reg, r, 1, exec);
}

/// Each lane sends its register to the lane that its address names; the
/// highest sender wins.
void permute(Wave &w, const MicroOp &op) {
  uint64_t exec = w.exec();
  unsigned lanes = permuteLanes(w);
  const uint32_t *a = w.vreg(op.s[0].reg), *x = w.vreg(op.s[1].reg);
  uint32_t *r = w.buffer[4];
  spread(r, 0);
  uint32_t offset = static_cast<uint32_t>(op.offset);
  forEachLane(exec, [&](int l) {
    r[target(l, a[l] + offset, lanes)] = x[l];
  });
  storeLanes(w, op.d.reg, r, 1, exec);
}

void swizzle(Wave &w, const MicroOp &op) {
  uint64_t exec = w.exec();
  const uint32_t *x = w.vreg(op.s[0].reg);
  uint32_t *r = w.buffer[4];
  uint32_t pattern = op.aux & 0xffff;
  for (int l = 0; l < w.lanes; ++l) {
    int from;
    if (pattern >= 0xe000) { // FFT: bits of the lane's number turned round
      uint32_t keep = pattern & 31;
      uint32_t turned = bitReverse(static_cast<uint32_t>(l & 31)) >> 27;
      uint32_t moved = turned >> popcount(keep) | (unsigned(l) & keep);
      from = (l & ~31) | static_cast<int>(moved);
    } else if (pattern < 0xc000 && (pattern & 0x8000)) { // quad permute
      from = (l & ~3) | static_cast<int>((pattern >> (2 * (l & 3))) & 3);
    } else if (pattern & 0x8000) { // rotate within 32 lanes
      int n = static_cast<int>((pattern >> 5) & 31);
      int keep = static_cast<int>(pattern & 31);
      int in = l & 31;
      int moved = (pattern >> 10) & 1 ? in - n : in + n;
      from = (l & ~31) | (in & keep) | (moved & 31 & ~keep);
    } else { // and, or, xor masks within 32 lanes
      int in = l & 31;
      in = (((in & static_cast<int>(pattern & 31)) |
             static_cast<int>((pattern >> 5) & 31)) ^
            static_cast<int>((pattern >> 10) & 31)) & 31;
      from = (l & ~31) | in;
    }
    r[l] = (exec >> from) & 1 ? x[from] : 0;
  }
  storeLanes(w, op.d.reg, r, 1, exec);
}

} // namespace

void addLdsRows(std::vector<Row> &rows) {
  auto add = [&](const char *name, uint32_t flags, uint32_t bytes,
                 uint32_t count) {
    rows.push_back(
        memoryRow(name, InstClass::Lds, Form::Ds, execDs, flags, bytes, count));
  };
  add("ds_read_b32", kLoad, 4, 1);
  add("ds_read_b64", kLoad, 4, 2);
  add("ds_read_b96", kLoad, 4, 3);
  add("ds_read_b128", kLoad, 4, 4);
  add("ds_read_u8", kLoad, 1, 1);
  add("ds_read_i8", kLoad | kSigned, 1, 1);
  add("ds_read_u16", kLoad, 2, 1);
  add("ds_read_i16", kLoad | kSigned, 2, 1);
  add("ds_read_u8_d16", kLoad | kD16, 1, 1);
  add("ds_read_u8_d16_hi", kLoad | kD16 | kHigh, 1, 1);
  add("ds_read_i8_d16", kLoad | kD16 | kSigned, 1, 1);
  add("ds_read_i8_d16_hi", kLoad | kD16 | kHigh | kSigned, 1, 1);
  add("ds_read_u16_d16", kLoad | kD16, 2, 1);
  add("ds_read_u16_d16_hi", kLoad | kD16 | kHigh, 2, 1);
  add("ds_read2_b32", kLoad | kTwo, 4, 1);
  add("ds_read2_b64", kLoad | kTwo, 4, 2);
  add("ds_read2st64_b32", kLoad | kTwo | kSt64, 4, 1);
  add("ds_read2st64_b64", kLoad | kTwo | kSt64, 4, 2);
  add("ds_write_b8", kStore, 1, 1);
  add("ds_write_b16", kStore, 2, 1);
  add("ds_write_b8_d16_hi", kStore | kHigh, 1, 1);
  add("ds_write_b16_d16_hi", kStore | kHigh, 2, 1);
  add("ds_write_b32", kStore, 4, 1);
  add("ds_write_b64", kStore, 4, 2);
  add("ds_write_b96", kStore, 4, 3);
  add("ds_write_b128", kStore, 4, 4);
  add("ds_write2_b32", kStore | kTwo, 4, 1);
  add("ds_write2_b64", kStore | kTwo, 4, 2);
  add("ds_write2st64_b32", kStore | kTwo | kSt64, 4, 1);
  add("ds_write2st64_b64", kStore | kTwo | kSt64, 4, 2);
#define ATOMIC(NAME, RTN, OP, BYTES)                                           \
  add(NAME, kAtomic, BYTES, OP);                                               \
  add(RTN, kAtomic, BYTES, OP);
#define INT_ATOMIC(OP, SUFFIX32, SUFFIX64, KIND)                               \
  ATOMIC("ds_" OP "_" SUFFIX32, "ds_" OP "_rtn_" SUFFIX32, KIND, 4)            \
  ATOMIC("ds_" OP "_" SUFFIX64, "ds_" OP "_rtn_" SUFFIX64, KIND, 8)
  INT_ATOMIC("add", "u32", "u64", kAdd)
  INT_ATOMIC("sub", "u32", "u64", kSub)
  ATOMIC("ds_sub_clamp_u32", "ds_sub_clamp_rtn_u32", kSubClamp, 4)
  ATOMIC("ds_cond_sub_u32", "ds_cond_sub_rtn_u32", kCondSub, 4)
  INT_ATOMIC("rsub", "u32", "u64", kRsub)
  INT_ATOMIC("inc", "u32", "u64", kInc)
  INT_ATOMIC("dec", "u32", "u64", kDec)
  INT_ATOMIC("min", "i32", "i64", kSmin)
  INT_ATOMIC("max", "i32", "i64", kSmax)
  INT_ATOMIC("min", "u32", "u64", kUmin)
  INT_ATOMIC("max", "u32", "u64", kUmax)
  INT_ATOMIC("and", "b32", "b64", kAnd)
  INT_ATOMIC("or", "b32", "b64", kOr)
  INT_ATOMIC("xor", "b32", "b64", kXor)
  INT_ATOMIC("mskor", "b32", "b64", kMskor)
  INT_ATOMIC("cmpst", "b32", "b64", kCmpSwap)
  INT_ATOMIC("cmpst", "f32", "f64", kCmpSwapF)
  INT_ATOMIC("cmpstore", "b32", "b64", kCmpSwap)
  INT_ATOMIC("cmpstore", "f32", "f64", kCmpSwapF)
  for (Row &row : rows)
    if (row.mnemonic.substr(0, 11) == "ds_cmpstore")
      row.flags |= kValueFirst;
  add("ds_wrxchg_rtn_b32", kAtomic, 4, kSwap);
  add("ds_wrxchg_rtn_b64", kAtomic, 8, kSwap);
  INT_ATOMIC("add", "f32", "f64", kAddF)
  INT_ATOMIC("min", "f32", "f64", kMinF)
  INT_ATOMIC("max", "f32", "f64", kMaxF)
  INT_ATOMIC("min_num", "f32", "f64", kMinNumF)
  INT_ATOMIC("max_num", "f32", "f64", kMaxNumF)
  ATOMIC("ds_pk_add_f16", "ds_pk_add_rtn_f16", kPkAddF16, 4)
  ATOMIC("ds_pk_add_bf16", "ds_pk_add_rtn_bf16", kPkAddBf16, 4)
  auto exchange = [&](const char *name, Handler handler) {
    add(name, 0, 4, 1);
    rows.back().handler = handler;
  };
  exchange("ds_bpermute_b32", bpermute<false>);
  exchange("ds_bpermute_fi_b32", bpermute<true>);
  add("ds_wrap_rtn_b32", kAtomic, 4, kWrap);
  add("ds_condxchg32_rtn_b64", kAtomic, 8, kCondXchg);
  auto special = [&](const char *name, Handler handler, uint32_t flags,
                     uint32_t bytes, uint32_t count) {
    add(name, flags, bytes, count);
    rows.back().handler = handler;
  };
  special("ds_wrxchg2_rtn_b32", exchange2, kAtomic | kTwo, 4, 1);
  special("ds_wrxchg2_rtn_b64", exchange2, kAtomic | kTwo, 8, 1);
  special("ds_wrxchg2st64_rtn_b32", exchange2, kAtomic | kTwo | kSt64, 4, 1);
  special("ds_wrxchg2st64_rtn_b64", exchange2, kAtomic | kTwo | kSt64, 8, 1);
  special("ds_append", appendConsume<true>, kNoAddress | kLoad, 4, 1);
  special("ds_consume", appendConsume<false>, kNoAddress | kLoad, 4, 1);
  special("ds_read_addtid_b32", consecutive<true>, kNoAddress | kLoad, 4, 1);
  special("ds_write_addtid_b32", consecutive<false>, kNoAddress | kStore, 4, 1);
  special("ds_read_b64_tr_b16", readTransposed<16, 4>, kLoad, 4, 2);
  special("ds_read_b64_tr_b8", readTransposed<8, 8>, kLoad, 4, 2);
  special("ds_read_b64_tr_b4", readTransposed<4, 16>, kLoad, 4, 2);
  special("ds_read_b96_tr_b6", readTransposed<6, 16>, kLoad, 4, 3);
  exchange("ds_permute_b32", permute);
  exchange("ds_swizzle_b32", swizzle);
}

} // namespace fovea::sim::FOVEA_VARIANT
