//===- ScalarOps.cpp - Scalar ALU, branches and program control -----------===//
//
// SOP1, SOP2, SOPC, SOPK and SOPP. Semantics: AMD's "CDNA3 Instruction Set
// Architecture" reference; the names are the disassembler's.
//
//===----------------------------------------------------------------------===//
#include "exec/Wave.h"
#include "fovea/Simulator/Chip.h"
#include "isa/Table.h"

#include <chrono>

namespace fovea::sim {

namespace {

inline uint32_t a32(const Wave &w, const MicroOp &op) { return readS32(w, op.s[0]); }
inline uint32_t b32(const Wave &w, const MicroOp &op) { return readS32(w, op.s[1]); }
inline uint64_t a64(const Wave &w, const MicroOp &op) { return readS64(w, op.s[0]); }
inline uint64_t b64(const Wave &w, const MicroOp &op) { return readS64(w, op.s[1]); }

int64_t sext(uint64_t x, unsigned bits) {
  return static_cast<int64_t>(x << (64 - bits)) >> (64 - bits);
}

/// The 16-bit literal of SOPK forms, which the disassembler prints unsigned.
int32_t k16(uint32_t x) { return static_cast<int16_t>(x); }

template <class T>
T bfe(T x, uint32_t control, unsigned offsetBits) {
  using U = std::make_unsigned_t<T>;
  unsigned offset = control & ((1u << offsetBits) - 1);
  unsigned width = (control >> 16) & 0x7f;
  constexpr unsigned size = sizeof(T) * 8;
  if (width == 0)
    return 0;
  if (width > size - offset)
    width = size - offset; // bits above the operand: none
  U shifted = static_cast<U>(x >> offset);
  if (width >= size)
    return static_cast<T>(shifted);
  U field = shifted & ((U(1) << width) - 1);
  if (std::is_signed_v<T> && (field >> (width - 1)) & 1)
    field |= ~U(0) << width;
  return static_cast<T>(field);
}

uint64_t quadMask(uint64_t x, bool whole) {
  uint64_t any = (x | x >> 1 | x >> 2 | x >> 3) & 0x1111111111111111u;
  if (whole)
    return any * 15;
  uint64_t r = 0;
  for (int i = 0; i < 16; ++i)
    r |= ((any >> (4 * i)) & 1) << i;
  return r;
}

template <class T>
int32_t signCount(T x) {
  using U = std::make_unsigned_t<T>;
  U y = static_cast<U>(x < 0 ? ~x : x);
  if (y == 0)
    return -1;
  return sizeof(T) == 8 ? __builtin_clzll(y) : __builtin_clz(static_cast<uint32_t>(y));
}

/// Jumps to a device address; the program counter counts dwords.
void jump(Wave &w, const MicroOp &op, uint64_t address) {
  uint64_t offset = address - w.group->textBegin;
  if (address % 4 || offset / 4 >= w.group->textDwords) {
    char text[96];
    std::snprintf(text, sizeof text,
                  "jump to 0x%llx, outside the code object's code",
                  static_cast<unsigned long long>(address));
    w.fail(ErrorCode::IllegalAddress, op, -1, text);
    return;
  }
  w.pc = static_cast<uint32_t>(offset / 4);
}
uint64_t nextAddress(const Wave &w) {
  return w.group->textBegin + uint64_t(w.pc) * 4;
}

void branchIf(Wave &w, const MicroOp &op, bool taken) {
  if (!taken)
    return;
  if (op.offset < 0 || uint32_t(op.offset) >= w.group->textDwords) {
    w.fail(ErrorCode::IllegalAddress, op, -1,
           "branch to outside the code object's code");
    return;
  }
  w.pc = static_cast<uint32_t>(op.offset);
}

/// What clocks of the device count from: nanoseconds of the host.
uint64_t clockCount() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// Registers that are not here read as 0.
uint32_t hwRegister(Wave &w, uint32_t id) {
  const ChipInfo &chip = *w.group->chip;
  switch (id) {
  case 1: return w.mode;
  case 2: return (w.scc ? 1 : 0) | (w.exec() == 0 ? 1 << 9 : 0) | (w.vcc() == 0 ? 1 << 10 : 0);
  case 4: return w.index & 0xf;      // HW_ID: wave slot
  case 6: return w.group->ldsBytes / 256 << 12;
  case 15: // SH_MEM_BASES, which GFX12 does not have
    if (chip.modeHasIeee)
      return static_cast<uint32_t>(kSharedBase >> 48 << 16 |
                                   kPrivateBase >> 48);
    return 0;
  case 29: // SHADER_CYCLES, 20 bits on GFX11; the lower half on GFX12
    if (chip.waveSize == 32)
      return static_cast<uint32_t>(clockCount()) &
             (chip.modeHasIeee ? 0xfffffu : ~0u);
    return 0;
  case 30:
    if (chip.waveSize == 32 && !chip.modeHasIeee)
      return static_cast<uint32_t>(clockCount() >> 32);
    return 0;
  default: return 0;
  }
}

// One function an instruction. D32/D64 write the destination.
#define OP(NAME, ...)                                                          \
  void NAME(Wave &w, const MicroOp &op) { __VA_ARGS__ }
#define D32(X) writeS32(w, op.d, static_cast<uint32_t>(X))
#define D64(X) writeS64(w, op.d, static_cast<uint64_t>(X))
#define A a32(w, op)
#define B b32(w, op)
#define SA static_cast<int32_t>(A)
#define SB static_cast<int32_t>(B)
#define AA a64(w, op)
#define BB b64(w, op)

// Arithmetic.
OP(s_add_u32, uint64_t r = uint64_t(A) + B; D32(r); w.scc = r >> 32;)
OP(s_addc_u32, uint64_t r = uint64_t(A) + B + w.scc; D32(r); w.scc = r >> 32;)
OP(s_sub_u32, uint64_t r = uint64_t(A) - B; D32(r); w.scc = r >> 63;)
OP(s_subb_u32, uint64_t r = uint64_t(A) - B - w.scc; D32(r); w.scc = r >> 63;)
OP(s_add_i32, int32_t r; w.scc = __builtin_add_overflow(SA, SB, &r); D32(r);)
OP(s_sub_i32, int32_t r; w.scc = __builtin_sub_overflow(SA, SB, &r); D32(r);)
OP(s_mul_i32, D32(A * B);)
OP(s_mul_hi_u32, D32((uint64_t(A) * B) >> 32);)
OP(s_mul_hi_i32, D32((int64_t(SA) * SB) >> 32);)
OP(s_min_i32, int32_t a = SA; int32_t b = SB; D32(a < b ? a : b); w.scc = a < b;)
OP(s_max_i32, int32_t a = SA; int32_t b = SB; D32(a > b ? a : b); w.scc = a > b;)
OP(s_min_u32, uint32_t a = A; uint32_t b = B; D32(a < b ? a : b); w.scc = a < b;)
OP(s_max_u32, uint32_t a = A; uint32_t b = B; D32(a > b ? a : b); w.scc = a > b;)
OP(s_abs_i32, int32_t a = SA; uint32_t r = a < 0 ? 0u - uint32_t(a) : uint32_t(a); D32(r); w.scc = r != 0;)
OP(s_absdiff_i32, uint32_t r = A - B; if (SA < SB) r = 0u - r; if (int32_t(r) < 0) r = 0u - r; D32(r); w.scc = r != 0;)
template <int N>
OP(s_lshl_add, uint64_t r = (uint64_t(A) << N) + B; D32(r); w.scc = (r >> 32) != 0;)
// Logic.
#define LOGIC(NAME, EXPR32)                                                    \
  OP(s_##NAME##_b32, uint32_t a = A; uint32_t b = B; uint32_t r = EXPR32;      \
     D32(r); w.scc = r != 0;)                                                  \
  OP(s_##NAME##_b64, uint64_t a = AA; uint64_t b = BB; uint64_t r = EXPR32;    \
     D64(r); w.scc = r != 0;)                                                  \
  OP(s_##NAME##_saveexec_b32, uint32_t a = A; uint32_t b = w.s[kExec];         \
     uint32_t r = EXPR32; D32(b); w.s[kExec] = r; w.scc = r != 0;)             \
  OP(s_##NAME##_saveexec_b64, uint64_t a = AA; uint64_t b = w.exec();          \
     uint64_t r = EXPR32; D64(b); w.setExec(r); w.scc = r != 0;)
LOGIC(and, a & b)
LOGIC(or, a | b)
LOGIC(xor, a ^ b)
LOGIC(nand, ~(a & b))
LOGIC(nor, ~(a | b))
LOGIC(xnor, ~(a ^ b))
LOGIC(andn2, a & ~b)
LOGIC(orn2, a | ~b)
OP(s_andn1_saveexec_b64, uint64_t e = w.exec(); uint64_t r = ~AA & e; D64(e); w.setExec(r); w.scc = r != 0;)
OP(s_orn1_saveexec_b64, uint64_t e = w.exec(); uint64_t r = ~AA | e; D64(e); w.setExec(r); w.scc = r != 0;)
OP(s_andn1_wrexec_b64, uint64_t r = ~AA & w.exec(); w.setExec(r); D64(r); w.scc = r != 0;)
OP(s_andn2_wrexec_b64, uint64_t r = AA & ~w.exec(); w.setExec(r); D64(r); w.scc = r != 0;)
OP(s_andn1_saveexec_b32, uint32_t e = w.s[kExec]; uint32_t r = ~A & e; D32(e); w.s[kExec] = r; w.scc = r != 0;)
OP(s_orn1_saveexec_b32, uint32_t e = w.s[kExec]; uint32_t r = ~A | e; D32(e); w.s[kExec] = r; w.scc = r != 0;)
OP(s_andn1_wrexec_b32, uint32_t r = ~A & w.s[kExec]; w.s[kExec] = r; D32(r); w.scc = r != 0;)
OP(s_andn2_wrexec_b32, uint32_t r = A & ~w.s[kExec]; w.s[kExec] = r; D32(r); w.scc = r != 0;)
OP(s_not_b32, uint32_t r = ~A; D32(r); w.scc = r != 0;)
OP(s_not_b64, uint64_t r = ~AA; D64(r); w.scc = r != 0;)
OP(s_lshl_b32, uint32_t r = A << (B & 31); D32(r); w.scc = r != 0;)
OP(s_lshr_b32, uint32_t r = A >> (B & 31); D32(r); w.scc = r != 0;)
OP(s_ashr_i32, int32_t r = SA >> (B & 31); D32(r); w.scc = r != 0;)
OP(s_lshl_b64, uint64_t r = AA << (B & 63); D64(r); w.scc = r != 0;)
OP(s_lshr_b64, uint64_t r = AA >> (B & 63); D64(r); w.scc = r != 0;)
OP(s_ashr_i64, int64_t r = int64_t(AA) >> (B & 63); D64(r); w.scc = r != 0;)
OP(s_bfm_b32, D32(((1u << (A & 31)) - 1) << (B & 31));)
OP(s_bfm_b64, D64(((uint64_t(1) << (A & 63)) - 1) << (B & 63));)
OP(s_bfe_u32, uint32_t r = bfe<uint32_t>(A, B, 5); D32(r); w.scc = r != 0;)
OP(s_bfe_i32, int32_t r = bfe<int32_t>(SA, B, 5); D32(r); w.scc = r != 0;)
OP(s_bfe_u64, uint64_t r = bfe<uint64_t>(AA, B, 6); D64(r); w.scc = r != 0;)
OP(s_bfe_i64, int64_t r = bfe<int64_t>(int64_t(AA), B, 6); D64(r); w.scc = r != 0;)
OP(s_pack_ll_b32_b16, D32((A & 0xffff) | B << 16);)
OP(s_pack_lh_b32_b16, D32((A & 0xffff) | (B & 0xffff0000));)
OP(s_pack_hl_b32_b16, D32(A >> 16 | B << 16);)
OP(s_pack_hh_b32_b16, D32(A >> 16 | (B & 0xffff0000));)
// Moves and bits.
OP(s_mov_b32, D32(A);)
OP(s_mov_b64, D64(AA);)
OP(s_cmov_b32, if (w.scc) D32(A);)
OP(s_cmov_b64, if (w.scc) D64(AA);)
OP(s_cselect_b32, D32(w.scc ? A : B);)
OP(s_cselect_b64, D64(w.scc ? AA : BB);)
OP(s_brev_b32, uint32_t x = A; uint32_t r = 0; for (int i = 0; i < 32; ++i) r |= ((x >> i) & 1) << (31 - i); D32(r);)
OP(s_brev_b64, uint64_t x = AA; uint64_t r = 0; for (int i = 0; i < 64; ++i) r |= ((x >> i) & 1) << (63 - i); D64(r);)
OP(s_bcnt0_i32_b32, uint32_t r = uint32_t(__builtin_popcount(~A)); D32(r); w.scc = r != 0;)
OP(s_bcnt0_i32_b64, uint32_t r = uint32_t(__builtin_popcountll(~AA)); D32(r); w.scc = r != 0;)
OP(s_bcnt1_i32_b32, uint32_t r = uint32_t(__builtin_popcount(A)); D32(r); w.scc = r != 0;)
OP(s_bcnt1_i32_b64, uint32_t r = uint32_t(__builtin_popcountll(AA)); D32(r); w.scc = r != 0;)
OP(s_ff0_i32_b32, uint32_t x = ~A; D32(x ? __builtin_ctz(x) : -1);)
OP(s_ff0_i32_b64, uint64_t x = ~AA; D32(x ? __builtin_ctzll(x) : -1);)
OP(s_ff1_i32_b32, uint32_t x = A; D32(x ? __builtin_ctz(x) : -1);)
OP(s_ff1_i32_b64, uint64_t x = AA; D32(x ? __builtin_ctzll(x) : -1);)
OP(s_flbit_i32_b32, uint32_t x = A; D32(x ? __builtin_clz(x) : -1);)
OP(s_flbit_i32_b64, uint64_t x = AA; D32(x ? __builtin_clzll(x) : -1);)
OP(s_flbit_i32, D32(signCount(SA));)
OP(s_flbit_i32_i64, D32(signCount(int64_t(AA)));)
OP(s_sext_i32_i8, D32(sext(A, 8));)
OP(s_sext_i32_i16, D32(sext(A, 16));)
OP(s_bitset0_b32, D32(w.s[op.d.reg] & ~(1u << (A & 31)));)
OP(s_bitset1_b32, D32(w.s[op.d.reg] | 1u << (A & 31));)
OP(s_bitset0_b64, D64(w.s64(op.d.reg) & ~(uint64_t(1) << (A & 63)));)
OP(s_bitset1_b64, D64(w.s64(op.d.reg) | uint64_t(1) << (A & 63));)
OP(s_quadmask_b32, uint32_t r = uint32_t(quadMask(A, false)); D32(r); w.scc = r != 0;)
OP(s_quadmask_b64, uint64_t r = quadMask(AA, false); D64(r); w.scc = r != 0;)
OP(s_wqm_b32, uint32_t r = uint32_t(quadMask(A, true)); D32(r); w.scc = r != 0;)
OP(s_wqm_b64, uint64_t r = quadMask(AA, true); D64(r); w.scc = r != 0;)
OP(s_bitreplicate_b64_b32, uint64_t r = 0; uint32_t x = A; for (int i = 0; i < 32; ++i) if ((x >> i) & 1) r |= uint64_t(3) << (2 * i); D64(r);)
OP(s_movrels_b32, D32(w.s[(op.s[0].reg + w.s[kM0]) & 127]);)
OP(s_movreld_b32, w.s[(op.d.reg + w.s[kM0]) & 127] = A;)
OP(s_movrels_b64, D64(w.s64((op.s[0].reg + w.s[kM0]) & 126));)
OP(s_movreld_b64, w.setS64((op.d.reg + w.s[kM0]) & 126, AA);)
// SOPK.
OP(s_movk_i32, D32(k16(A));)
OP(s_cmovk_i32, if (w.scc) D32(k16(A));)
OP(s_addk_i32, int32_t r; w.scc = __builtin_add_overflow(int32_t(w.s[op.d.reg]), k16(A), &r); D32(r);)
OP(s_mulk_i32, D32(int32_t(w.s[op.d.reg]) * int64_t(k16(A)));)
// Compares.
#define CMP(NAME, EXPR)                                                        \
  OP(s_cmp_##NAME##_i32, int32_t a = SA; int32_t b = SB; w.scc = EXPR;)        \
  OP(s_cmp_##NAME##_u32, uint32_t a = A; uint32_t b = B; w.scc = EXPR;)        \
  OP(s_cmpk_##NAME##_i32, int32_t a = SA; int32_t b = k16(B); w.scc = EXPR;)   \
  OP(s_cmpk_##NAME##_u32, uint32_t a = A; uint32_t b = B & 0xffff; w.scc = EXPR;)
CMP(eq, a == b)
CMP(lg, a != b)
CMP(gt, a > b)
CMP(ge, a >= b)
CMP(lt, a < b)
CMP(le, a <= b)
OP(s_cmp_eq_u64, w.scc = AA == BB;)
OP(s_cmp_lg_u64, w.scc = AA != BB;)
OP(s_bitcmp0_b32, w.scc = !((A >> (B & 31)) & 1);)
OP(s_bitcmp1_b32, w.scc = (A >> (B & 31)) & 1;)
OP(s_bitcmp0_b64, w.scc = !((AA >> (B & 63)) & 1);)
OP(s_bitcmp1_b64, w.scc = (AA >> (B & 63)) & 1;)
// Hardware registers: aux is id | offset << 6 | (width - 1) << 11.
OP(s_getreg_b32, uint32_t width = ((op.aux >> 11) & 31) + 1;
   uint32_t x = hwRegister(w, op.aux & 63) >> ((op.aux >> 6) & 31);
   D32(width == 32 ? x : x & ((1u << width) - 1));)
void setRegister(Wave &w, uint32_t control, uint32_t value) {
  if ((control & 63) != 1) // MODE is the only one with an effect here
    return;
  uint32_t offset = (control >> 6) & 31, width = ((control >> 11) & 31) + 1;
  uint32_t mask = (width == 32 ? ~0u : (1u << width) - 1) << offset;
  w.setMode((w.mode & ~mask) | ((value << offset) & mask));
}
OP(s_setreg_b32, setRegister(w, op.aux, A);)
// VGPR indexing: while it is on, M0 moves the vector registers of instructions.
void copyMoved(MicroOp &to, const MicroOp &op, uint32_t index, uint32_t mode) {
  to.loop = op.loop;
  to.row = op.row;
  to.d = op.d;
  to.sd = op.sd;
  for (int i = 0; i < 4; ++i)
    to.s[i] = op.s[i];
  to.offset = op.offset;
  to.offset1 = op.offset1;
  to.aux = op.aux;
  to.size = op.size;
  to.cls = op.cls;
  to.omod = op.omod;
  to.rowMask = op.rowMask;
  to.bankMask = op.bankMask;
  to.dstSel = op.dstSel;
  to.flags = op.flags;
  for (int i = 0; i < 3; ++i)
    if (((mode >> i) & 1) && to.s[i].kind == Operand::Vgpr)
      to.s[i].reg = static_cast<uint16_t>(to.s[i].reg + index);
  if (((mode >> 3) & 1) && to.d.kind == Operand::Vgpr)
    to.d.reg = static_cast<uint16_t>(to.d.reg + index);
}
/// Runs what follows until indexing is switched off.
void runIndexed(Wave &w, const MicroOp &on) {
  MicroOp moved;
  w.indexing = true;
  for (int steps = 0; w.indexing && w.state == WaveState::Running; ++steps) {
    if (steps == 4096 || w.pc >= w.group->textDwords)
      return w.fail(ErrorCode::IllegalInstruction, on, -1,
                    "VGPR indexing is not switched off");
    const MicroOp &op = w.group->ops[w.pc];
    if (op.fn.load(std::memory_order_acquire) == w.group->undecoded)
      w.group->decodeAt(w);
    Handler handler = op.fn.load(std::memory_order_acquire);
    ++w.group->counts[op.cls];
    w.pc += op.size;
    bool vector = op.row && (op.row->form == Form::Vector ||
                             op.row->form == Form::Compare ||
                             op.row->form == Form::Custom);
    if (!vector) {
      handler(w, op);
      continue;
    }
    uint32_t index = w.s[kM0] & 0xff, mode = (w.s[kM0] >> 12) & 15;
    copyMoved(moved, op, index, mode);
    for (const Operand *o : {&moved.d, &moved.s[0], &moved.s[1], &moved.s[2]})
      if (o->kind == Operand::Vgpr && o->reg + o->words > kAgprBase &&
          index && !(o->reg - index >= kAgprBase))
        return w.fail(ErrorCode::IllegalInstruction, op, -1,
                      "M0 = " + std::to_string(index) +
                          " points outside the vector registers");
    handler(w, moved);
  }
}
OP(s_set_gpr_idx_on, w.s[kM0] = (w.s[kM0] & 0xffff0f00u) | (A & 0xff) | (op.aux >> 8 & 15) << 12; if (!w.indexing) runIndexed(w, op);)
OP(s_set_gpr_idx_off, (void)op; w.indexing = false;)
OP(s_set_gpr_idx_idx, w.s[kM0] = (w.s[kM0] & 0xffffff00u) | (A & 0xff);)
OP(s_set_gpr_idx_mode, w.s[kM0] = (w.s[kM0] & 0xffff0fffu) | (op.aux & 15) << 12;)
// Program control.
OP(s_getpc_b64, D64(nextAddress(w));)
OP(s_setpc_b64, jump(w, op, AA);)
OP(s_swappc_b64, uint64_t to = AA; D64(nextAddress(w)); jump(w, op, to);)
OP(s_call_b64, D64(nextAddress(w)); branchIf(w, op, true);)
OP(s_branch, branchIf(w, op, true);)
OP(s_cbranch_scc0, branchIf(w, op, !w.scc);)
OP(s_cbranch_scc1, branchIf(w, op, w.scc);)
OP(s_cbranch_vccz, branchIf(w, op, (w.vcc() & w.fullMask) == 0);)
OP(s_cbranch_vccnz, branchIf(w, op, (w.vcc() & w.fullMask) != 0);)
OP(s_cbranch_execz, branchIf(w, op, w.exec() == 0);)
OP(s_cbranch_execnz, branchIf(w, op, w.exec() != 0);)
OP(s_endpgm, w.stop(WaveState::Ended);)
OP(s_barrier, w.stop(WaveState::Barrier);)
// Trap 3 is for debuggers; without one the handler returns (LLVM AMDGPUUsage, "Trap Handler ABI").
OP(s_trap, if ((op.aux & 0xff) != 3) w.fail(ErrorCode::Trap, op, -1, "the kernel executed s_trap " + std::to_string(op.aux) + (op.aux == 2 ? " (abort or a failed assertion)" : ""));)
OP(s_sethalt, w.fail(ErrorCode::Trap, op, -1, "the kernel halted the wave");)
// A wave that waits for others gives them the processor.
OP(s_sleep, w.slice = w.slice > 1 ? 1 : w.slice;)
OP(s_memtime, D64(clockCount());)
OP(s_memrealtime, D64(clockCount() / 10);)
OP(s_nop, (void)w; (void)op;)

struct Entry {
  const char *name;
  Handler handler;
};

} // namespace

void addScalarRows(std::vector<Row> &rows) {
  auto add = [&](const char *name, Handler handler, Form form, InstClass cls,
                 Ty d, Ty a, Ty b) {
    rows.push_back(valueRow(name, cls, form, handler, d, a, b));
  };
  constexpr Ty N = Ty::None, W = Ty::B32, Q = Ty::B64, QI = Ty::I64;
#define ROW(NAME, D_, A_, B_)                                                  \
  add(#NAME, NAME, Form::Scalar, InstClass::Salu, D_, A_, B_);
#define ROWN(NAME, A_, B_)                                                     \
  add(#NAME, NAME, Form::ScalarNoDst, InstClass::Salu, N, A_, B_);
#define ROWB(NAME)                                                             \
  add(#NAME, NAME, Form::Branch, InstClass::Branch, N, N, N);
#define ROWL(NAME)                                                             \
  ROW(s_##NAME##_b32, W, W, W)                                                 \
  ROW(s_##NAME##_b64, Q, Q, Q)                                                 \
  ROW(s_##NAME##_saveexec_b32, W, W, N)                                        \
  ROW(s_##NAME##_saveexec_b64, Q, Q, N)
#define ROWC(NAME)                                                             \
  ROWN(s_cmp_##NAME##_i32, W, W)                                               \
  ROWN(s_cmp_##NAME##_u32, W, W)                                               \
  ROWN(s_cmpk_##NAME##_i32, W, W)                                              \
  ROWN(s_cmpk_##NAME##_u32, W, W)
  ROW(s_add_u32, W, W, W) ROW(s_addc_u32, W, W, W) ROW(s_sub_u32, W, W, W)
  ROW(s_subb_u32, W, W, W) ROW(s_add_i32, W, W, W) ROW(s_sub_i32, W, W, W)
  ROW(s_mul_i32, W, W, W) ROW(s_mul_hi_u32, W, W, W) ROW(s_mul_hi_i32, W, W, W)
  ROW(s_min_i32, W, W, W) ROW(s_max_i32, W, W, W) ROW(s_min_u32, W, W, W)
  ROW(s_max_u32, W, W, W) ROW(s_abs_i32, W, W, N) ROW(s_absdiff_i32, W, W, W)
  add("s_lshl1_add_u32", s_lshl_add<1>, Form::Scalar, InstClass::Salu, W, W, W);
  add("s_lshl2_add_u32", s_lshl_add<2>, Form::Scalar, InstClass::Salu, W, W, W);
  add("s_lshl3_add_u32", s_lshl_add<3>, Form::Scalar, InstClass::Salu, W, W, W);
  add("s_lshl4_add_u32", s_lshl_add<4>, Form::Scalar, InstClass::Salu, W, W, W);
  ROWL(and) ROWL(or) ROWL(xor) ROWL(nand) ROWL(nor) ROWL(xnor) ROWL(andn2)
  ROWL(orn2)
  ROW(s_andn1_saveexec_b32, W, W, N) ROW(s_orn1_saveexec_b32, W, W, N)
  ROW(s_andn1_wrexec_b32, W, W, N) ROW(s_andn2_wrexec_b32, W, W, N)
  ROW(s_andn1_saveexec_b64, Q, Q, N) ROW(s_orn1_saveexec_b64, Q, Q, N)
  ROW(s_andn1_wrexec_b64, Q, Q, N) ROW(s_andn2_wrexec_b64, Q, Q, N)
  ROW(s_not_b32, W, W, N) ROW(s_not_b64, Q, Q, N)
  ROW(s_lshl_b32, W, W, W) ROW(s_lshr_b32, W, W, W) ROW(s_ashr_i32, W, W, W)
  ROW(s_lshl_b64, Q, Q, W) ROW(s_lshr_b64, Q, Q, W) ROW(s_ashr_i64, Q, QI, W)
  ROW(s_bfm_b32, W, W, W) ROW(s_bfm_b64, Q, W, W)
  ROW(s_bfe_u32, W, W, W) ROW(s_bfe_i32, W, W, W)
  ROW(s_bfe_u64, Q, Q, W) ROW(s_bfe_i64, Q, QI, W)
  ROW(s_pack_ll_b32_b16, W, W, W) ROW(s_pack_lh_b32_b16, W, W, W)
  ROW(s_pack_hh_b32_b16, W, W, W) ROW(s_pack_hl_b32_b16, W, W, W)
  ROW(s_mov_b32, W, W, N) ROW(s_mov_b64, Q, Q, N) ROW(s_cmov_b32, W, W, N)
  ROW(s_cmov_b64, Q, Q, N) ROW(s_cselect_b32, W, W, W)
  ROW(s_cselect_b64, Q, Q, Q) ROW(s_brev_b32, W, W, N) ROW(s_brev_b64, Q, Q, N)
  ROW(s_bcnt0_i32_b32, W, W, N) ROW(s_bcnt0_i32_b64, W, Q, N)
  ROW(s_bcnt1_i32_b32, W, W, N) ROW(s_bcnt1_i32_b64, W, Q, N)
  ROW(s_ff0_i32_b32, W, W, N) ROW(s_ff0_i32_b64, W, Q, N)
  ROW(s_ff1_i32_b32, W, W, N) ROW(s_ff1_i32_b64, W, Q, N)
  ROW(s_flbit_i32_b32, W, W, N) ROW(s_flbit_i32_b64, W, Q, N)
  ROW(s_flbit_i32, W, W, N) ROW(s_flbit_i32_i64, W, QI, N)
  ROW(s_sext_i32_i8, W, W, N) ROW(s_sext_i32_i16, W, W, N)
  ROW(s_bitset0_b32, W, W, N) ROW(s_bitset1_b32, W, W, N)
  ROW(s_bitset0_b64, Q, W, N) ROW(s_bitset1_b64, Q, W, N)
  ROW(s_quadmask_b32, W, W, N) ROW(s_quadmask_b64, Q, Q, N)
  ROW(s_wqm_b32, W, W, N) ROW(s_wqm_b64, Q, Q, N)
  ROW(s_bitreplicate_b64_b32, Q, W, N)
  ROW(s_movrels_b32, W, W, N) ROW(s_movreld_b32, W, W, N)
  ROW(s_movrels_b64, Q, Q, N) ROW(s_movreld_b64, Q, Q, N)
  ROW(s_movk_i32, W, W, N) ROW(s_cmovk_i32, W, W, N) ROW(s_addk_i32, W, W, N)
  ROW(s_mulk_i32, W, W, N)
  ROWC(eq) ROWC(lg) ROWC(gt) ROWC(ge) ROWC(lt) ROWC(le)
  ROWN(s_cmp_eq_u64, Q, Q) ROWN(s_cmp_lg_u64, Q, Q)
  ROWN(s_bitcmp0_b32, W, W) ROWN(s_bitcmp1_b32, W, W)
  ROWN(s_bitcmp0_b64, Q, W) ROWN(s_bitcmp1_b64, Q, W)
  ROW(s_getreg_b32, W, N, N)
  ROWN(s_set_gpr_idx_on, W, N) ROWN(s_set_gpr_idx_idx, W, N)
  add("s_set_gpr_idx_off", s_set_gpr_idx_off, Form::Nop, InstClass::Salu, N, N, N);
  add("s_set_gpr_idx_mode", s_set_gpr_idx_mode, Form::Nop, InstClass::Salu, N, N, N);
  ROWN(s_setreg_b32, W, N)
  add("s_setreg_imm32_b32", s_setreg_b32, Form::ScalarNoDst, InstClass::Salu, N, W, N);
  add("s_getpc_b64", s_getpc_b64, Form::Scalar, InstClass::Branch, Q, N, N);
  add("s_setpc_b64", s_setpc_b64, Form::ScalarNoDst, InstClass::Branch, N, Q, N);
  add("s_swappc_b64", s_swappc_b64, Form::Scalar, InstClass::Branch, Q, Q, N);
  add("s_call_b64", s_call_b64, Form::Branch, InstClass::Branch, Q, N, N);
  ROWB(s_branch) ROWB(s_cbranch_scc0) ROWB(s_cbranch_scc1)
  ROWB(s_cbranch_vccz) ROWB(s_cbranch_vccnz) ROWB(s_cbranch_execz)
  ROWB(s_cbranch_execnz)
  add("s_endpgm", s_endpgm, Form::Nop, InstClass::Branch, N, N, N);
  add("s_endpgm_saved", s_endpgm, Form::Nop, InstClass::Branch, N, N, N);
  add("s_barrier", s_barrier, Form::Nop, InstClass::Sync, N, N, N);
  add("s_trap", s_trap, Form::Nop, InstClass::Other, N, N, N);
  add("s_sethalt", s_sethalt, Form::Nop, InstClass::Other, N, N, N);
  add("s_sleep", s_sleep, Form::Nop, InstClass::Sync, N, N, N);
  add("s_memtime", s_memtime, Form::Scalar, InstClass::Smem, Q, N, N);
  add("s_memrealtime", s_memrealtime, Form::Scalar, InstClass::Smem, Q, N, N);
  for (const char *name :
       {"s_nop", "s_waitcnt", "s_setprio", "s_wakeup", "s_icache_inv",
        "s_sendmsg", "s_ttracedata", "s_ttracedata_imm", "s_incperflevel", "s_decperflevel",
        "s_waitcnt_vscnt", "s_waitcnt_depctr",
        "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol",
        "s_inst_prefetch", "s_set_inst_prefetch_distance", "s_delay_alu",
        "s_waitcnt_vmcnt", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt", "s_wait_idle",
        "s_wait_event", "s_wait_alu", "s_wait_loadcnt", "s_wait_storecnt",
        "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt", "s_wait_dscnt",
        "s_wait_kmcnt", "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt",
        "s_version", "s_prefetch_inst", "s_prefetch_inst_pc_rel",
        "s_prefetch_data", "s_prefetch_data_pc_rel", "s_buffer_prefetch_data",
        "buffer_gl0_inv", "buffer_gl1_inv", "global_inv", "global_wb",
        "global_wbinv", "s_gl1_inv", "s_clause", "s_code_end", "buffer_wbl2",
        "buffer_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2",
        "s_dcache_discard", "s_dcache_discard_x2", "s_atc_probe",
        "s_atc_probe_buffer", "s_cbranch_cdbgsys", "s_cbranch_cdbguser",
        "s_cbranch_cdbgsys_and_user", "s_cbranch_cdbgsys_or_user",
        "ds_nop", "v_nop"})
    add(name, s_nop, Form::Nop, InstClass::Sync, N, N, N);
}

} // namespace fovea::sim
