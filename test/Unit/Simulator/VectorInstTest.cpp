//===- VectorInstTest.cpp - Single vector instructions --------------------===//
//
// Each case is an instruction and its meaning on the host, written from the ISA
// reference and not from the simulator's table. Inputs are random bits and the
// special values of the operand type; results agree to the bit, NaN with NaN.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "HostBits.h"
#include "KernelTest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using i32 = int32_t;
using i64 = int64_t;

float f(u64 x) { return as<float>(static_cast<u32>(x)); }
double d(u64 x) { return as<double>(x); }
u32 u(float x) { return as<u32>(x); }
u64 u(double x) { return as<u64>(x); }
float h(u64 x) { return fromHalf(static_cast<u32>(x)); }
u32 hu(float x) { return toHalf(x); }
u32 lo(u64 x) { return static_cast<u32>(x); }
u32 hi(u64 x) { return static_cast<u32>(x >> 32); }
i32 s(u64 x) { return static_cast<i32>(x); }
int16_t s16(u64 x) { return static_cast<int16_t>(x); }
uint16_t u16(u64 x) { return static_cast<uint16_t>(x); }
u32 pk(u32 a, u32 b) { return (a & 0xffff) | b << 16; }

/// What a result is, for the comparison: NaNs of a type are all the same.
enum class As { Bits, F32, F64, F16, PkF16, PkF32 };

struct Case {
  const char *inst;
  As type;
  /// Sources, the old destination; the new value of v[8:9].
  std::function<u64(u64 a, u64 b, u64 c, u64 old)> want;
};

/// Result in the low word; the high word of the destination stays.
u64 low(u64 old, u32 x) { return (old & 0xffffffff00000000u) | x; }

#define W(EXPR) [](u64 a, u64 b, u64 c, u64 old) -> u64 {                      \
    (void)a; (void)b; (void)c; (void)old; return low(old, EXPR); }
#define Q(EXPR) [](u64 a, u64 b, u64 c, u64 old) -> u64 {                      \
    (void)a; (void)b; (void)c; (void)old; return EXPR; }

bool signalling(float x) { return std::isnan(x) && !(u(x) & 0x400000); }
bool signalling(double x) { return std::isnan(x) && !(u(x) >> 51 & 1); }
template <class T>
T maxNum(T a, T b) {
  if (signalling(a) || signalling(b)) return std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <class T>
T minNum(T a, T b) {
  if (signalling(a) || signalling(b)) return std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
i64 clampInt(double x, double low, double high) {
  if (std::isnan(x)) return 0;
  return static_cast<i64>(std::trunc(std::min(std::max(x, low), high)));
}
u32 rtz(float x) {
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return x > 0 ? 0x7c00 : 0xfc00;
  u32 sign = std::signbit(x) ? 0x8000 : 0;
  double m = std::fabs(static_cast<double>(x));
  for (u32 r = 0x7bff;; --r) // the largest half not above
    if (static_cast<double>(h(r)) <= m)
      return sign | r;
}
u32 permByte(u64 data, u32 sel) {
  if (sel < 8) return (data >> (8 * sel)) & 0xff;
  if (sel == 12) return 0;
  if (sel > 12) return 0xff;
  int bit[] = {15, 31, 47, 63};
  return (data >> bit[sel - 8]) & 1 ? 0xff : 0;
}
u32 permWord(u64 a, u64 b, u64 c) {
  u64 data = a << 32 | lo(b);
  u32 r = 0;
  for (int i = 0; i < 4; ++i)
    r |= permByte(data, (c >> (8 * i)) & 0xff) << (8 * i);
  return r;
}
template <class T>
T med(T a, T b, T c) {
  T x[3] = {a, b, c};
  std::sort(x, x + 3);
  return x[1];
}

u32 bf16(float x) {
  if (std::isnan(x)) return (u(x) >> 16) | 0x40;
  u32 r = u(x);
  return (r + 0x7fff + ((r >> 16) & 1)) >> 16;
}
/// The face of a cube that (x, y, z) points to: its axis, 0 to 2.
int cubeAxis(float x, float y, float z) {
  x = std::fabs(x), y = std::fabs(y), z = std::fabs(z);
  if (z >= x && z >= y) return 2;
  return y >= x ? 1 : 0;
}
/// Differences of four bytes of a, from each of four places on, and of b.
u64 sumsOfDifferences(u64 a, u32 b, u64 c, bool masked) {
  u64 r = 0;
  for (int place = 0; place < 4; ++place) {
    u32 sum = static_cast<u32>(c >> (16 * place)) & 0xffff;
    for (int i = 0; i < 4; ++i) {
      int p = static_cast<int>(a >> (8 * (place + i))) & 0xff;
      int q = static_cast<int>(b >> (8 * i)) & 0xff;
      sum += masked && q == 0 ? 0 : static_cast<u32>(std::abs(p - q));
    }
    r |= u64(sum & 0xffff) << (16 * place);
  }
  return r;
}
/// 53 bits of 2 / pi, whose first digits are known from Payne and Hanek's
/// reduction, from bit 53 * segment on.
double twoOverPi(double x, int segment) {
  const u64 words[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                       0xdb6295993c439041, 0xfe5163abdebbc561};
  int exponent = static_cast<int>(u(x) >> 52) & 0x7ff;
  if (segment > 2 || exponent > 1077)
    return -1;
  double sum = 0;
  for (int i = 53 * segment; i < 53 * segment + 53; ++i)
    if ((words[i / 64] >> (63 - i % 64)) & 1)
      sum += std::ldexp(1.0, -1 - i);
  return sum;
}
float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}
i64 dot8(u64 a, u64 b) {
  i64 sum = 0;
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return sum;
}
u32 saturate(i64 x) {
  return static_cast<u32>(std::min<i64>(std::max<i64>(x, INT32_MIN), INT32_MAX));
}
u32 shiftedByte(i32 x, u32 by, i32 low, i32 high) {
  return static_cast<u32>(std::min(std::max(x >> (by & 31), low), high)) & 0xff;
}
float maximum(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return a > b || (a == b && std::signbit(b)) ? a : b;
}

const Case kCases[] = {
    // What only some of the chips have.
    {"v_bitop3_b32 v8, v2, v4, v6 bitop3:0x5a", As::Bits, W(lo(a ^ c))},
    {"v_bitop3_b32 v8, v2, v4, v6 bitop3:0xe8", As::Bits, W(lo((a & b) | (a & c) | (b & c)))},
    {"v_bitop3_b16 v8, v2, v4, v6 bitop3:0x3c op_sel:[1,0,0,0]", As::Bits, W((lo(old) & 0xffff0000) | (((a >> 16) ^ b) & 0xffff))},
    {"v_bitop3_b16 v8, v2, v4, v6 bitop3:0x3c op_sel:[0,1,0,1]", As::Bits, W((lo(old) & 0xffff) | ((lo(a) ^ (lo(b) >> 16)) << 16))},
    {"v_prng_b32 v8, v2", As::Bits, W(lo(a) << 1 ^ (s(a) < 0 ? 197u : 0))},
    {"v_ashr_pk_i8_i32 v8, v2, v4, v6", As::Bits, W((lo(old) & 0xffff0000) | shiftedByte(s(a), lo(c), -128, 127) | shiftedByte(s(b), lo(c), -128, 127) << 8)},
    {"v_ashr_pk_u8_i32 v8, v2, v4, v6 op_sel:[0,0,0,1]", As::Bits, W((lo(old) & 0xffff) | shiftedByte(s(a), lo(c), 0, 255) << 16 | shiftedByte(s(b), lo(c), 0, 255) << 24)},
    {"v_cvt_pk_bf16_f32 v8, v2, v4", As::Bits, W(bf16(f(a)) | bf16(f(b)) << 16)},
    {"v_cvt_pk_bf16_f32 v8, -|v2|, v4", As::Bits, W(bf16(-std::fabs(f(a))) | bf16(f(b)) << 16)},
    {"v_cvt_f32_bf16 v8, v2", As::F32, W(lo(a) << 16)},
    {"v_cvt_f32_bf16_sdwa v8, v2 src0_sel:WORD_1", As::F32, W(lo(a) & 0xffff0000)},
    {"v_maximum3_f32 v8, v2, v4, v6", As::F32, W(u(maximum(maximum(f(a), f(b)), f(c))))},
    {"v_minimum3_f32 v8, v2, -v4, v6", As::F32, W(u(-maximum(maximum(-f(a), f(b)), -f(c))))},
    {"v_cubeid_f32 v8, v2, v4, v6", As::F32, W([&] { int x = cubeAxis(f(a), f(b), f(c)); float v = x == 2 ? f(c) : x == 1 ? f(b) : f(a); return u(static_cast<float>(2 * x + (v < 0 ? 1 : 0))); }())},
    {"v_cubema_f32 v8, v2, v4, v6", As::F32, W([&] { int x = cubeAxis(f(a), f(b), f(c)); return u(2 * (x == 2 ? f(c) : x == 1 ? f(b) : f(a))); }())},
    {"v_cubesc_f32 v8, v2, v4, v6", As::F32, W([&] { int x = cubeAxis(f(a), f(b), f(c)); return u(x == 2 ? (f(c) < 0 ? -f(a) : f(a)) : x == 1 ? f(a) : f(a) < 0 ? f(c) : -f(c)); }())},
    {"v_cubetc_f32 v8, v2, v4, v6", As::F32, W([&] { int x = cubeAxis(f(a), f(b), f(c)); return u(x != 1 ? -f(b) : f(b) < 0 ? -f(c) : f(c)); }())},
    {"v_mov_b32 v10, 0x40490fdb\n  v_mov_b32 v11, 0x40490fdb\n  v_and_b32 v12, 1, v4\n  v_trig_preop_f64 v[8:9], v[10:11], v12", As::F64, Q(u(twoOverPi(3.0, static_cast<int>(b & 1))))},
    {"v_qsad_pk_u16_u8 v[8:9], v[2:3], v4, v[6:7]", As::Bits, Q(sumsOfDifferences(a, lo(b), c, false))},
    {"v_mqsad_pk_u16_u8 v[8:9], v[2:3], v4, v[6:7]", As::Bits, Q(sumsOfDifferences(a, lo(b), c, true))},
    {"v_dot4_i32_i8 v8, v2, v4, v6 clamp", As::Bits, W(saturate(dot8(a, b) + s(c)))},
    {"v_dot4c_i32_i8 v8, v2, v4", As::Bits, W(static_cast<u32>(dot8(a, b) + s(old)))},
    {"v_mad_i32_i24 v8, v2, v4, v6 clamp", As::Bits, W(saturate(i64(s(a << 8) >> 8) * (s(b << 8) >> 8) + s(c)))},
    {"v_madak_f32 v8, v2, v4, 0x40490fdb", As::F32, W(u(flush(flush(f(a)) * flush(f(b))) + f(0x40490fdb)))},
    // Moves and bits.
    {"v_mov_b32 v8, v2", As::Bits, W(lo(a))},
    {"v_mov_b64 v[8:9], v[2:3]", As::Bits, Q(a)},
    {"v_not_b32 v8, v2", As::Bits, W(~lo(a))},
    {"v_and_b32 v8, v2, v4", As::Bits, W(lo(a & b))},
    {"v_or_b32 v8, v2, v4", As::Bits, W(lo(a | b))},
    {"v_xor_b32 v8, v2, v4", As::Bits, W(lo(a ^ b))},
    {"v_xnor_b32 v8, v2, v4", As::Bits, W(~lo(a ^ b))},
    {"v_lshlrev_b32 v8, v2, v4", As::Bits, W(lo(b) << (a & 31))},
    {"v_lshrrev_b32 v8, v2, v4", As::Bits, W(lo(b) >> (a & 31))},
    {"v_ashrrev_i32 v8, v2, v4", As::Bits, W(static_cast<u32>(s(b) >> (a & 31)))},
    {"v_lshlrev_b64 v[8:9], v2, v[4:5]", As::Bits, Q(b << (a & 63))},
    {"v_lshrrev_b64 v[8:9], v2, v[4:5]", As::Bits, Q(b >> (a & 63))},
    {"v_ashrrev_i64 v[8:9], v2, v[4:5]", As::Bits, Q(static_cast<u64>(static_cast<i64>(b) >> (a & 63)))},
    {"v_bfe_u32 v8, v2, v4, v6", As::Bits, W((lo(a) >> (b & 31)) & ((1u << (c & 31)) - 1))},
    {"v_bfe_i32 v8, v2, 4, 8", As::Bits, W(static_cast<u32>(static_cast<int8_t>(s(a) >> 4)))},
    {"v_bfi_b32 v8, v2, v4, v6", As::Bits, W((lo(a) & lo(b)) | (~lo(a) & lo(c)))},
    {"v_bfrev_b32 v8, v2", As::Bits, W([&] { u32 r = 0; for (int i = 0; i < 32; ++i) r |= ((a >> i) & 1) << (31 - i); return r; }())},
    {"v_alignbit_b32 v8, v2, v4, v6", As::Bits, W(lo((a << 32 | lo(b)) >> (c & 31)))},
    {"v_alignbyte_b32 v8, v2, v4, v6", As::Bits, W(lo((a << 32 | lo(b)) >> (8 * (c & 3))))},
    {"v_perm_b32 v8, v2, v4, v6", As::Bits, W(permWord(a, b, c))},
    {"v_bcnt_u32_b32 v8, v2, v4", As::Bits, W(static_cast<u32>(__builtin_popcount(lo(a))) + lo(b))},
    {"v_ffbh_u32 v8, v2", As::Bits, W(lo(a) ? static_cast<u32>(__builtin_clz(lo(a))) : ~0u)},
    {"v_ffbl_b32 v8, v2", As::Bits, W(lo(a) ? static_cast<u32>(__builtin_ctz(lo(a))) : ~0u)},
    {"v_and_or_b32 v8, v2, v4, v6", As::Bits, W(lo((a & b) | c))},
    {"v_or3_b32 v8, v2, v4, v6", As::Bits, W(lo(a | b | c))},
    {"v_lshl_or_b32 v8, v2, v4, v6", As::Bits, W((lo(a) << (b & 31)) | lo(c))},
    {"v_pack_b32_f16 v8, v2, v4", As::PkF16, W(pk(lo(a), lo(b)))},
    // Integer arithmetic.
    {"v_add_u32 v8, v2, v4", As::Bits, W(lo(a + b))},
    {"v_sub_u32 v8, v2, v4", As::Bits, W(lo(a - b))},
    {"v_subrev_u32 v8, v2, v4", As::Bits, W(lo(b - a))},
    {"v_add_u32_e64 v8, v2, v4 clamp", As::Bits, W(lo(std::min<u64>(u64(lo(a)) + lo(b), 0xffffffff)))},
    {"v_sub_u32_e64 v8, v2, v4 clamp", As::Bits, W(lo(a) < lo(b) ? 0u : lo(a) - lo(b))},
    {"v_add_i32 v8, v2, v4 clamp", As::Bits, W(static_cast<u32>(std::clamp<i64>(i64(s(a)) + s(b), INT32_MIN, INT32_MAX)))},
    {"v_add3_u32 v8, v2, v4, v6", As::Bits, W(lo(a + b + c))},
    {"v_lshl_add_u32 v8, v2, v4, v6", As::Bits, W((lo(a) << (b & 31)) + lo(c))},
    {"v_add_lshl_u32 v8, v2, v4, v6", As::Bits, W(lo(a + b) << (c & 31))},
    {"v_xad_u32 v8, v2, v4, v6", As::Bits, W(lo(a ^ b) + lo(c))},
    {"v_lshl_add_u64 v[8:9], v[2:3], 3, v[6:7]", As::Bits, Q((a << 3) + c)},
    {"v_mul_lo_u32 v8, v2, v4", As::Bits, W(lo(a) * lo(b))},
    {"v_mul_hi_u32 v8, v2, v4", As::Bits, W(hi(u64(lo(a)) * lo(b)))},
    {"v_mul_hi_i32 v8, v2, v4", As::Bits, W(hi(static_cast<u64>(i64(s(a)) * s(b))))},
    {"v_mul_u32_u24 v8, v2, v4", As::Bits, W(lo((a & 0xffffff) * (b & 0xffffff)))},
    {"v_mul_i32_i24 v8, v2, v4", As::Bits, W(lo(static_cast<u64>(i64(s(a << 8) >> 8) * (s(b << 8) >> 8))))},
    {"v_mul_hi_u32_u24 v8, v2, v4", As::Bits, W(hi((a & 0xffffff) * (b & 0xffffff)))},
    {"v_mad_u32_u24 v8, v2, v4, v6", As::Bits, W(lo((a & 0xffffff) * (b & 0xffffff) + c))},
    {"v_mad_u64_u32 v[8:9], vcc, v2, v4, v[6:7]", As::Bits, Q(u64(lo(a)) * lo(b) + c)},
    {"v_mad_i64_i32 v[10:11], vcc, v2, v4, v[6:7]\n  v_cndmask_b32 v8, 0, 1, vcc", As::Bits,
     W(static_cast<u32>(static_cast<unsigned __int128>(__int128(i64(s(a)) * s(b)) + static_cast<i64>(c)) >> 64) & 1)},
    {"v_mad_i64_i32 v[8:9], vcc, v2, v4, v[6:7]", As::Bits, Q(static_cast<u64>(i64(s(a)) * s(b)) + c)},
    {"v_min_i32 v8, v2, v4", As::Bits, W(static_cast<u32>(std::min(s(a), s(b))))},
    {"v_max_u32 v8, v2, v4", As::Bits, W(std::max(lo(a), lo(b)))},
    {"v_med3_i32 v8, v2, v4, v6", As::Bits, W(static_cast<u32>(med(s(a), s(b), s(c))))},
    {"v_max3_u32 v8, v2, v4, v6", As::Bits, W(std::max({lo(a), lo(b), lo(c)}))},
    {"v_sad_u32 v8, v2, v4, v6", As::Bits, W((lo(a) > lo(b) ? lo(a - b) : lo(b - a)) + lo(c))},
    {"v_sad_u16 v8, v2, v4, v6", As::Bits, W(lo(c) + static_cast<u32>(std::abs(int(u16(a)) - u16(b)) + std::abs(int(lo(a) >> 16) - int(lo(b) >> 16))))},
    {"v_msad_u8 v8, v2, v4, v6", As::Bits, W([&] { u32 r = lo(c); for (int i = 0; i < 32; i += 8) { int x = (a >> i) & 255; int y = (b >> i) & 255; r += y ? static_cast<u32>(std::abs(x - y)) : 0; } return r; }())},
    {"v_sad_u8 v8, v2, v4, v6", As::Bits, W([&] { u32 r = lo(c); for (int i = 0; i < 32; i += 8) r += static_cast<u32>(std::abs(int((a >> i) & 255) - int((b >> i) & 255))); return r; }())},
    // Carries, compares, selects.
    {"v_add_co_u32 v8, vcc, v2, v4\n  v_addc_co_u32 v9, vcc, v3, v5, vcc", As::Bits, Q(a + b)},
    {"v_sub_co_u32 v8, vcc, v2, v4\n  v_subb_co_u32 v9, vcc, v3, v5, vcc", As::Bits, Q(a - b)},
    {"v_subrev_co_u32 v8, vcc, v2, v4\n  v_subbrev_co_u32 v9, vcc, v3, v5, vcc", As::Bits, Q(b - a)},
    {"v_cmp_lt_i32 vcc, v2, v4\n  v_cndmask_b32 v8, v6, v7, vcc", As::Bits, W(s(a) < s(b) ? hi(c) : lo(c))},
    {"v_cmp_ge_u64 s[20:21], v[2:3], v[4:5]\n  v_cndmask_b32_e64 v8, 0, 1, s[20:21]", As::Bits, W(a >= b)},
    {"v_cmp_lt_f32 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(f(a) < f(b))},
    {"v_cmp_nlt_f32 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(!(f(a) < f(b)))},
    {"v_cmp_lg_f32 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(f(a) < f(b) || f(a) > f(b))},
    {"v_cmp_u_f32 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(std::isnan(f(a)) || std::isnan(f(b)))},
    {"v_cmp_gt_f32_e64 vcc, |v2|, -v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(std::fabs(f(a)) > -f(b))},
    {"v_cmp_le_f64 vcc, v[2:3], v[4:5]\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(d(a) <= d(b))},
    {"v_cmp_eq_u16 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(u16(a) == u16(b))},
    {"v_cmp_lt_i16 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(s16(a) < s16(b))},
    {"v_cmp_lt_f16 vcc, v2, v4\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(h(a) < h(b))},
    {"v_mov_b32 v10, 0x204\n  v_cmp_class_f32 vcc, v2, v10\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(std::isinf(f(a)))},
    {"v_mov_b32 v10, 3\n  v_cmp_class_f32 vcc, v2, v10\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(std::isnan(f(a)))},
    {"v_mov_b32 v10, 0x90\n  v_cmp_class_f32 vcc, v2, v10\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(std::fpclassify(f(a)) == FP_SUBNORMAL)},
    {"v_mov_b32 v10, 0x60\n  v_cmp_class_f64 vcc, v[2:3], v10\n  v_cndmask_b32_e64 v8, 0, 1, vcc", As::Bits, W(d(a) == 0)},
    // fp32.
    {"v_add_f32 v8, v2, v4", As::F32, W(u(f(a) + f(b)))},
    {"v_sub_f32 v8, v2, v4", As::F32, W(u(f(a) - f(b)))},
    {"v_subrev_f32 v8, v2, v4", As::F32, W(u(f(b) - f(a)))},
    {"v_mul_f32 v8, v2, v4", As::F32, W(u(f(a) * f(b)))},
    // Output modifiers are ignored where results keep denormals.
    {"v_mul_f32 v8, -|v2|, v4 mul:2", As::F32, W(u(-std::fabs(f(a)) * f(b)))},
    {"v_add_f32 v8, v2, |v4| clamp", As::F32, W(u([&] { float x = f(a) + std::fabs(f(b)); return x > 0 ? std::min(x, 1.0f) : 0.0f; }()))},
    {"v_mul_f32 v8, 0.15915494, v4", As::F32, W(u(as<float>(0x3e22f983u) * f(b)))},
    {"v_add_f32 v8, 0x42280000, v4", As::F32, W(u(42.0f + f(b)))},
    {"v_fma_f32 v8, v2, v4, v6", As::F32, W(u(std::fma(f(a), f(b), f(c))))},
    {"v_fma_f32 v8, -v2, v4, 1.0", As::F32, W(u(std::fma(-f(a), f(b), 1.0f)))},
    {"v_fmac_f32 v8, v2, v4", As::F32, W(u(std::fma(f(a), f(b), f(old))))},
    {"v_fmamk_f32 v8, v2, 0x40490fdb, v4", As::F32, W(u(std::fma(f(a), as<float>(0x40490fdbu), f(b))))},
    {"v_fmaak_f32 v8, v2, v4, 0x40490fdb", As::F32, W(u(std::fma(f(a), f(b), as<float>(0x40490fdbu))))},
    {"v_max_f32 v8, v2, v4", As::F32, W(u(maxNum(f(a), f(b))))},
    {"v_min_f32 v8, v2, v4", As::F32, W(u(minNum(f(a), f(b))))},
    {"v_max3_f32 v8, v2, v4, v6", As::F32, W(u(maxNum(maxNum(f(a), f(b)), f(c))))},
    {"v_min3_f32 v8, v2, v4, v6", As::F32, W(u(minNum(minNum(f(a), f(b)), f(c))))},
    {"v_trunc_f32 v8, v2", As::F32, W(u(std::trunc(f(a))))},
    {"v_ceil_f32 v8, v2", As::F32, W(u(std::ceil(f(a))))},
    {"v_floor_f32 v8, v2", As::F32, W(u(std::floor(f(a))))},
    {"v_rndne_f32 v8, v2", As::F32, W(u(std::nearbyint(f(a))))},
    {"v_sqrt_f32 v8, v2", As::F32, W(u([&] { float x = std::fpclassify(f(a)) == FP_SUBNORMAL ? std::copysign(0.0f, f(a)) : f(a); return std::sqrt(x); }()))},
    {"v_ldexp_f32 v8, v2, v4", As::F32, W(u(std::ldexp(f(a), std::clamp(s(b), -1000, 1000))))},
    {"v_frexp_exp_i32_f32 v8, v2", As::Bits, W([&] { int e = 0; if (std::isfinite(f(a)) && f(a) != 0) (void)std::frexp(f(a), &e); return static_cast<u32>(e); }())},
    // fp64.
    {"v_add_f64 v[8:9], v[2:3], v[4:5]", As::F64, Q(u(d(a) + d(b)))},
    {"v_mul_f64 v[8:9], v[2:3], -v[4:5]", As::F64, Q(u(d(a) * -d(b)))},
    {"v_fma_f64 v[8:9], v[2:3], v[4:5], v[6:7]", As::F64, Q(u(std::fma(d(a), d(b), d(c))))},
    {"v_max_f64 v[8:9], v[2:3], |v[4:5]|", As::F64, Q(u(maxNum(d(a), std::fabs(d(b)))))},
    {"v_mul_f64 v[8:9], v[2:3], 0.5", As::F64, Q(u(d(a) * 0.5))},
    {"v_ldexp_f64 v[8:9], v[2:3], v4", As::F64, Q(u(std::ldexp(d(a), std::clamp(s(b), -5000, 5000))))},
    {"v_rndne_f64 v[8:9], v[2:3]", As::F64, Q(u(std::nearbyint(d(a))))},
    // fp16: the upper half of the register is cleared, or kept by VOP3-only forms.
    {"v_add_f16 v8, v2, v4", As::F16, W(hu(h(a) + h(b)))},
    {"v_mul_f16 v8, v2, v4", As::F16, W(hu(h(a) * h(b)))},
    {"v_max_f16 v8, v2, v4", As::F16, W(hu(maxNum(h(a), h(b))))},
    {"v_sub_f16_e64 v8, v2, |v4| clamp", As::F16, W(hu([&] { float x = h(hu(h(a) - std::fabs(h(b)))); return x > 0 ? std::min(x, 1.0f) : 0.0f; }()))},
    {"v_fma_f16 v8, v2, v4, v6", As::F16, W(pk(as<uint16_t>(static_cast<_Float16>(std::fma(static_cast<long double>(h(a)), static_cast<long double>(h(b)), static_cast<long double>(h(c))))), lo(old) >> 16))},
    // Packed.
    {"v_pk_add_f16 v8, v2, v4", As::PkF16, W(pk(hu(h(a) + h(b)), hu(h(a >> 16) + h(b >> 16))))},
    {"v_pk_mul_f16 v8, v2, v4 op_sel:[1,0] op_sel_hi:[0,1]", As::PkF16, W(pk(hu(h(a >> 16) * h(b)), hu(h(a) * h(b >> 16))))},
    {"v_pk_add_f16 v8, v2, v4 neg_lo:[0,1] neg_hi:[1,0]", As::PkF16, W(pk(hu(h(a) - h(b)), hu(-h(a >> 16) + h(b >> 16))))},
    {"v_pk_max_f16 v8, v2, v4", As::PkF16, W(pk(hu(maxNum(h(a), h(b))), hu(maxNum(h(a >> 16), h(b >> 16)))))},
    {"v_pk_mul_f16 v8, v2, 0.5 op_sel_hi:[1,0]", As::PkF16, W(pk(hu(h(a) * 0.5f), hu(h(a >> 16) * 0.5f)))},
    {"v_pk_add_u16 v8, v2, v4", As::Bits, W(pk(lo(a + b), (lo(a) >> 16) + (lo(b) >> 16)))},
    {"v_pk_mul_lo_u16 v8, v2, v4", As::Bits, W(pk(lo(a) * lo(b), (lo(a) >> 16) * (lo(b) >> 16)))},
    {"v_pk_lshlrev_b16 v8, v2, v4", As::Bits, W(pk(u32(u16(b)) << (a & 15), (lo(b) >> 16) << ((a >> 16) & 15)))},
    {"v_pk_max_i16 v8, v2, v4", As::Bits, W(pk(static_cast<u32>(std::max(s16(a), s16(b))), static_cast<u32>(std::max(s16(a >> 16), s16(b >> 16)))))},
    {"v_pk_mad_u16 v8, v2, v4, v6", As::Bits, W(pk(lo(a) * lo(b) + lo(c), (lo(a) >> 16) * (lo(b) >> 16) + (lo(c) >> 16)))},
    {"v_pk_add_f32 v[8:9], v[2:3], v[4:5]", As::PkF32, Q(u64(u(f(a) + f(b))) | u64(u(f(a >> 32) + f(b >> 32))) << 32)},
    {"v_pk_mul_f32 v[8:9], v[2:3], v[4:5] op_sel_hi:[1,0]", As::PkF32, Q(u64(u(f(a) * f(b))) | u64(u(f(a >> 32) * f(b))) << 32)},
    {"v_pk_fma_f32 v[8:9], v[2:3], v[4:5], v[6:7] op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[0,0,1] neg_hi:[0,0,1]", As::PkF32, Q(u64(u(std::fma(f(a >> 32), f(b), -f(c)))) | u64(u(std::fma(f(a), f(b >> 32), -f(c >> 32)))) << 32)},
    {"v_pk_mov_b32 v[8:9], v[2:3], v[4:5] op_sel:[1,0]", As::Bits, Q(u64(hi(a)) | u64(lo(b)) << 32)},
    {"v_fma_mix_f32 v8, v2, v4, v6 op_sel:[1,0,0] op_sel_hi:[1,0,1]", As::F32, W(u(std::fma(h(a >> 16), f(b), h(c))))},
    {"v_fma_mixlo_f16 v8, v2, v4, v6 op_sel_hi:[1,1,1]", As::PkF16, W(pk(hu(std::fma(h(a), h(b), h(c))), lo(old) >> 16))},
    {"v_fma_mixhi_f16 v8, v2, v4, v6", As::PkF16, W(pk(lo(old), hu(std::fma(f(a), f(b), f(c)))))},
    // 16-bit integers.
    {"v_add_u16 v8, v2, v4", As::Bits, W(u16(a + b))},
    {"v_mul_lo_u16 v8, v2, v4", As::Bits, W(u16(u64(u16(a)) * u16(b)))},
    {"v_max_i16 v8, v2, v4", As::Bits, W(u16(static_cast<u64>(std::max(s16(a), s16(b)))))},
    {"v_lshrrev_b16 v8, v2, v4", As::Bits, W(u32(u16(b)) >> (a & 15))},
    {"v_mad_u16 v8, v2, v4, v6", As::Bits, W(pk(lo(a) * lo(b) + lo(c), lo(old) >> 16))},
    {"v_mad_u16 v8, v2, v4, v6 op_sel:[1,0,0,1]", As::Bits, W(pk(lo(old), (lo(a) >> 16) * lo(b) + lo(c)))},
    {"v_mad_u32_u16 v8, v2, v4, v6", As::Bits, W(u32(u16(a)) * u16(b) + lo(c))},
    // Conversions.
    {"v_cvt_f32_i32 v8, v2", As::F32, W(u(static_cast<float>(s(a))))},
    {"v_cvt_f32_u32 v8, v2", As::F32, W(u(static_cast<float>(lo(a))))},
    {"v_cvt_i32_f32 v8, v2", As::Bits, W(static_cast<u32>(clampInt(f(a), INT32_MIN, INT32_MAX)))},
    {"v_cvt_u32_f32 v8, v2", As::Bits, W(static_cast<u32>(clampInt(f(a), 0, UINT32_MAX)))},
    {"v_cvt_f16_f32 v8, v2", As::F16, W(hu(f(a)))},
    {"v_cvt_f32_f16 v8, v2", As::F32, W(u(h(a)))},
    {"v_cvt_pkrtz_f16_f32 v8, v2, v4", As::PkF16, W(pk(rtz(f(a)), rtz(f(b))))},
    {"v_cvt_f64_f32 v[8:9], v2", As::F64, Q(u(static_cast<double>(f(a))))},
    {"v_cvt_f32_f64 v8, v[2:3]", As::F32, W(u(static_cast<float>(d(a))))},
    {"v_cvt_i32_f64 v8, v[2:3]", As::Bits, W(static_cast<u32>(clampInt(d(a), INT32_MIN, INT32_MAX)))},
    {"v_cvt_f64_u32 v[8:9], v2", As::F64, Q(u(static_cast<double>(lo(a))))},
    {"v_cvt_f16_u16 v8, v2", As::F16, W(hu(static_cast<float>(u16(a))))},
    {"v_cvt_i16_f16 v8, v2", As::Bits, W(u16(static_cast<u64>(clampInt(h(a), -32768, 32767))))},
    {"v_cvt_f32_ubyte2 v8, v2", As::F32, W(u(static_cast<float>((a >> 16) & 0xff)))},
    {"v_cvt_pk_i16_i32 v8, v2, v4", As::Bits, W(pk(static_cast<u32>(std::clamp(s(a), -32768, 32767)), static_cast<u32>(std::clamp(s(b), -32768, 32767))))},
    {"v_cvt_f16_f32_sdwa v8, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", As::PkF16, W(pk(lo(old), hu(f(a))))},
    // SDWA.
    {"v_add_u32_sdwa v8, v2, v4 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1", As::Bits, W(((lo(a) >> 8) & 0xff) + (lo(b) >> 16))},
    {"v_add_u32_sdwa v8, sext(v2), v4 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD", As::Bits, W(static_cast<u32>(s16(a)) + lo(b))},
    {"v_or_b32_sdwa v8, v2, v4 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_3", As::Bits, W((lo(old) & 0xff00ffff) | ((lo(a) & 0xff) | lo(b) >> 24) << 16)},
    {"v_mul_f16_sdwa v8, v2, v4 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0", As::PkF16, W(hu(h(a >> 16) * h(b)) << 16)},
    // Dot products, AGPRs.
    {"v_dot4_i32_i8 v8, v2, v4, v6", As::Bits, W([&] { u32 r = lo(c); for (int i = 0; i < 32; i += 8) r += static_cast<u32>(int(static_cast<int8_t>(a >> i)) * static_cast<int8_t>(b >> i)); return r; }())},
    {"v_accvgpr_write_b32 a200, v2\n  v_accvgpr_mov_b32 a3, a200\n  v_accvgpr_read_b32 v8, a3", As::Bits, W(lo(a))},
    {"v_swap_b32 v8, v2", As::Bits, W(lo(a))},
    {"v_mbcnt_lo_u32_b32 v8, -1, 0\n  v_mbcnt_hi_u32_b32 v8, -1, v8\n  v_sub_u32 v8, v8, v0", As::Bits, W(0u)},
};

class VectorInst : public KernelTest {
protected:
  static u64 sample(std::mt19937_64 &rng, As type) {
    static const u32 f32[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                              0xff800000, 0x7fc00000, 1, 0x807fffff, 0x7f7fffff, 0x7f800001,
                              0x00800000, 0x40490fdb, 0x4f000000, 0xcf000000,
                              0x477fe000, 0x33800000, 0x3effffff, 0x4b000001};
    static const u32 f16[] = {0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                              1, 0x83ff, 0x7bff, 0x0400, 0x4248, 0x3555, 0xc900};
    static const u64 f64[] = {0, u64(1) << 63, 0x3ff0000000000000,
                              0x7ff0000000000000, 0x7ff8000000000000, 1,
                              0x7fefffffffffffff, 0x41e0000000000000,
                              0xc1e0000000000001, 0x3fe0000000000000};
    u64 r = rng();
    unsigned pick = rng() % 4;
    if (pick == 0)
      return r;
    auto word = [&](u32 special) -> u32 {
      return pick == 1 ? special
                       : u(static_cast<float>(static_cast<i64>(rng() % 20001) - 10000) / 64);
    };
    switch (type) {
    case As::F64:
      return pick == 1 ? f64[r % std::size(f64)]
                       : u(static_cast<double>(static_cast<i64>(rng() % 2000001) - 1000000) / 128);
    case As::F16:
    case As::PkF16: {
      if (pick == 3) // fp32 in the range of halves
        return word(0);
      u64 x = 0;
      for (int i = 0; i < 64; i += 16)
        x |= u64(pick == 1 ? f16[rng() % std::size(f16)]
                           : hu(static_cast<float>(static_cast<int>(rng() % 2001) - 1000) / 32)) << i;
      return x;
    }
    case As::Bits:
      if (pick == 2)
        return (r & 0xff) | (u64(rng() & 0xff) << 32);
      [[fallthrough]];
    default:
      return u64(word(f32[rng() % std::size(f32)])) << 32 | word(f32[r % std::size(f32)]);
    }
  }

  static bool same(u64 x, u64 y, As type) {
    auto sameF32 = [](u32 p, u32 q) {
      return p == q || (std::isnan(f(p)) && std::isnan(f(q)));
    };
    auto sameF16 = [](u32 p, u32 q) {
      return u16(p) == u16(q) || (std::isnan(h(p)) && std::isnan(h(q)));
    };
    switch (type) {
    case As::F32: return sameF32(lo(x), lo(y)) && hi(x) == hi(y);
    case As::PkF32: return sameF32(lo(x), lo(y)) && sameF32(hi(x), hi(y));
    case As::F64: return x == y || (std::isnan(d(x)) && std::isnan(d(y)));
    case As::F16: return sameF16(lo(x), lo(y)) && lo(x) >> 16 == lo(y) >> 16 && hi(x) == hi(y);
    case As::PkF16: return sameF16(lo(x), lo(y)) && sameF16(lo(x) >> 16, lo(y) >> 16) && hi(x) == hi(y);
    default: return x == y;
    }
  }
};

TEST_F(VectorInst, FloatModes) {
  // The MODE register: flushed denormals, and the four roundings of fp32.
  std::vector<AsmKernel> kernels;
  kernels.push_back({"flush", vectorBody("v_mul_f32 v8, v2, v4"), 0, 0, 0});
  for (unsigned mode = 0; mode < 4; ++mode)
    kernels.push_back({"round" + std::to_string(mode),
                       vectorBody("v_fma_f32 v8, v2, v4, v6"), 0, 3, mode});
  kernels.push_back(
      {"setreg", vectorBody("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3\n"
                            "  v_add_f32 v8, v2, v4\n"
                            "  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n"
                            "  s_getreg_b32 s20, hwreg(HW_REG_MODE, 4, 4)\n"
                            "  v_mov_b32 v9, s20")});
  load(assemble(asmModule(kernels)));
  u64 *p[4];
  for (u64 *&x : p)
    x = buffer<u64>(64);
  auto one = [&](const std::string &name, float a, float b, float c) {
    p[0][0] = u(a);
    p[1][0] = u(b);
    p[2][0] = u(c);
    Status status =
        run(name, 1, 64, Args().add(p[0]).add(p[1]).add(p[2]).add(p[3]));
    EXPECT_TRUE(status.ok()) << status.message();
    return f(p[3][0]);
  };
  EXPECT_EQ(u(one("flush", 0x1p-130f, 2.0f, 0)), 0u);         // input
  EXPECT_EQ(u(one("flush", -0x1p-100f, 0x1p-40f, 0)), 0x80000000u); // result
  EXPECT_EQ(one("flush", 0x1p-126f, 2.0f, 0), 0x1p-125f);
  // 1 + 2^-30 lies just above 1.
  EXPECT_EQ(one("round0", 1, 1, 0x1p-30f), 1.0f);
  EXPECT_EQ(one("round1", 1, 1, 0x1p-30f), std::nextafter(1.0f, 2.0f));
  EXPECT_EQ(one("round2", 1, 1, 0x1p-30f), 1.0f);
  EXPECT_EQ(one("round2", -1, 1, -0x1p-30f), -std::nextafter(1.0f, 2.0f));
  EXPECT_EQ(one("round3", 1, 1, -0x1p-30f), std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(one("setreg", -1, 0x1p-30f, 0), -std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(hi(p[3][0]), 15u);
  EXPECT_EQ(std::nearbyint(2.5), 2.0) << "the host's rounding was not restored";
}

class VectorInstOn : public VectorInst,
                     public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override { use(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Chips, VectorInstOn,
                         ::testing::Values("gfx908", "gfx90a", "gfx942",
                                           "gfx950"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(VectorInstOn, AgreeWithTheHost) {
  std::vector<std::string> lines;
  for (const Case &test : kCases)
    lines.push_back(test.inst);
  std::vector<bool> known = assembles(lines, GetParam());
  std::vector<AsmKernel> kernels;
  for (size_t i = 0; i < std::size(kCases); ++i)
    if (known[i])
      kernels.push_back({"k" + std::to_string(i), vectorBody(kCases[i].inst)});
  EXPECT_GT(kernels.size(), std::size(kCases) * 8 / 10);
  load(assemble(asmModule(kernels, 64, GetParam()), GetParam()));
  ASSERT_TRUE(Code);
  EXPECT_TRUE(Code->unsupportedInstructions().empty())
      << Code->unsupportedInstructions().front();
  std::mt19937_64 rng(7);
  u64 *p[4];
  for (u64 *&x : p)
    x = buffer<u64>(64);
  for (size_t i = 0; i < std::size(kCases); ++i)
    for (int round = 0; known[i] && round < 20; ++round) {
      const Case &test = kCases[i];
      // Rounds with part of the lanes switched off: a smaller workgroup.
      unsigned lanes = round % 4 == 3 ? 37 : 64;
      u64 in[4][64];
      for (int k = 0; k < 4; ++k)
        for (int l = 0; l < 64; ++l)
          p[k][l] = in[k][l] = sample(rng, test.type);
      Status status = run("k" + std::to_string(i), 1, lanes,
                          Args().add(p[0]).add(p[1]).add(p[2]).add(p[3]));
      ASSERT_TRUE(status.ok()) << status.message();
      for (unsigned l = 0; l < 64; ++l) {
        u64 a = in[0][l], b = in[1][l], c = in[2][l], old = in[3][l];
        u64 want = l < lanes ? test.want(a, b, c, old) : old;
        if (same(p[3][l], want, test.type))
          continue;
        ADD_FAILURE()
            << test.inst << std::hex << "\n lane " << l << " a " << a << " b "
            << b << " c " << c << " old " << old << "\n got  " << p[3][l]
            << "\n want " << want;
        round = 1000; // one report an instruction is enough
        break;
      }
    }
}

} // namespace
