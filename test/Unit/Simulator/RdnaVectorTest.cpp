//===- RdnaVectorTest.cpp - Vector instructions of GFX11 and GFX12 --------===//
//
// What the GFX9 chips do not have: dual issue, halves of registers, DPP8 and
// the new DPP16 controls, permutations of rows, masks of one register, and new
// instructions. Each case says on the host what the ISA documents say.
//
//===----------------------------------------------------------------------===//
#include "HostBits.h"
#include "KernelTest.h"
#include "RdnaAsm.h"

#include <cmath>
#include <functional>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

float brain(uint32_t u) { return asFloat(u << 16); }
uint32_t lo(uint32_t x) { return x & 0xffff; }
uint32_t hi(uint32_t x) { return x >> 16; }

/// The operands: words by register and lane. Registers 0 to 3 of a (v8...) and
/// b (v16...) hold integers, 4 fp32, 5 two fp16, 6 two bf16; c (v24...) is also
/// the destination and holds integers, fp32 in register 4.
struct Inputs {
  uint32_t a[8][64], b[8][64], c[8][64];
  int lanes;
};
/// Changes d, a copy of c's registers of one lane.
using Meaning = std::function<void(const Inputs &in, int lane, uint32_t *d)>;

struct Case {
  const char *text;
  Meaning means;
  const char *chips = "gfx11 gfx12"; ///< prefixes of those that have it
};

/// The lane that DPP and permutations read must be there.
uint32_t at(const uint32_t (&reg)[64], int lane) { return reg[lane]; }

#define D [](const Inputs &in, int l, uint32_t *d)

const Case kCases[] = {
    // Dual issue: both halves read before either writes.
    {"v_dual_mov_b32 v24, v25 :: v_dual_mov_b32 v25, v24",
     D{d[0] = in.c[1][l], d[1] = in.c[0][l];
} // namespace
}
, {"v_dual_mov_b32 v24, v17 :: v_dual_add_nc_u32 v25, v8, v24",
   D{d[0] = in.b[1][l], d[1] = in.a[0][l] + in.c[0][l];
}
}
, {"v_dual_mov_b32 v24, v8 :: v_dual_lshlrev_b32 v25, 3, v9",
   D{d[0] = in.a[0][l], d[1] = in.a[1][l] << 3;
}
}
, {"v_dual_mov_b32 v24, v8 :: v_dual_and_b32 v25, v9, v17",
   D{d[0] = in.a[0][l], d[1] = in.a[1][l] & in.b[1][l];
}
}
, {"v_dual_fmac_f32 v28, v12, v21 :: v_dual_mul_f32 v25, v21, v28",
   D{d[4] = asWord(std::fma(asFloat(in.a[4][l]), asFloat(in.b[5][l]),
                            asFloat(in.c[4][l])));
d[1] = asWord(asFloat(in.b[5][l]) * asFloat(in.c[4][l]));
}
}
, {"v_dual_fmaak_f32 v24, v12, v20, 0x40400000 :: v_dual_fmamk_f32 v25, v21, "
   "0x40400000, v13",
   D{float x = asFloat(in.a[4][l]), y = asFloat(in.b[4][l]);
d[0] = asWord(std::fma(x, y, 3.0f)),
    d[1] = asWord(std::fma(asFloat(in.b[5][l]), 3.0f, asFloat(in.a[5][l])));
}
}
, {"v_cmp_lt_i32 vcc_lo, v8, v16\n  v_dual_cndmask_b32 v24, v9, v17 :: "
   "v_dual_sub_f32 v25, v12, v20",
   D{d[0] = int32_t(in.a[0][l]) < int32_t(in.b[0][l]) ? in.b[1][l] : in.a[1][l];
d[1] = asWord(asFloat(in.a[4][l]) - asFloat(in.b[4][l]));
}
}
, {"v_dual_dot2acc_f32_f16 v28, v13, v21 :: v_dual_mov_b32 v25, v8",
   D{uint32_t x = in.a[5][l], y = in.b[5][l];
d[4] = asWord(fromHalf(lo(x)) * fromHalf(lo(y)) +
              fromHalf(hi(x)) * fromHalf(hi(y)) + asFloat(in.c[4][l]));
d[1] = in.a[0][l];
}
}
,
    // Halves of registers.
    {"v_mov_b16 v24.l, v8.h",
     D{d[0] = (in.c[0][l] & 0xffff0000) | hi(in.a[0][l]);
}
}
, {"v_mov_b16 v24.h, 0x1234", D{d[0] = lo(in.c[0][l]) | 0x12340000;
}
}
, {"v_add_f16 v24.h, v13.l, v21.h",
   D{d[0] = lo(in.c[0][l]) |
            toHalf(fromHalf(lo(in.a[5][l])) + fromHalf(hi(in.b[5][l]))) << 16;
}
}
, {"v_mul_f16 v24.l, -v13.h, v21.l",
   D{d[0] = (in.c[0][l] & 0xffff0000) |
            toHalf(-fromHalf(hi(in.a[5][l])) * fromHalf(lo(in.b[5][l])));
}
}
, {"v_fma_f16 v24.h, v13.l, v21.h, -|v13.h|",
   D{double x = fromHalf(lo(in.a[5][l])), y = fromHalf(hi(in.b[5][l])),
     z = fromHalf(hi(in.a[5][l]));
d[0] = lo(in.c[0][l]) | toHalf(x * y - std::fabs(z)) << 16;
}
}
, {"v_cvt_f32_f16 v24, v13.h", D{d[0] = asWord(fromHalf(hi(in.a[5][l])));
}
}
, {"v_cvt_f16_f32 v24.h, v12",
   D{d[0] = lo(in.c[0][l]) | toHalf(asFloat(in.a[4][l])) << 16;
}
}
, {"v_and_b16 v24.l, v8.l, v16.h",
   D{d[0] = (in.c[0][l] & 0xffff0000) | (lo(in.a[0][l]) & hi(in.b[0][l]));
}
}
, {"v_xor_b16 v24.h, v8.l, v16.l",
   D{d[0] = lo(in.c[0][l]) | lo(in.a[0][l] ^ in.b[0][l]) << 16;
}
}
, {"v_not_b16 v24.h, v8.h",
   D{d[0] = lo(in.c[0][l]) | (~in.a[0][l] & 0xffff0000);
}
}
, {"v_add_nc_u16 v24.l, v8.h, v16.l",
   D{d[0] = (in.c[0][l] & 0xffff0000) | lo(hi(in.a[0][l]) + lo(in.b[0][l]));
}
}
, {"v_mul_lo_u16 v24.h, v8.l, v16.h",
   D{d[0] = lo(in.c[0][l]) | (lo(in.a[0][l]) * hi(in.b[0][l])) << 16;
}
}
, {"v_lshlrev_b16 v24.l, 3, v16.h",
   D{d[0] = (in.c[0][l] & 0xffff0000) | lo(hi(in.b[0][l]) << 3);
}
}
, {"v_max_i16 v24.l, v8.l, v16.h", D{auto x = static_cast<int16_t>(in.a[0][l]),
                                     y = static_cast<int16_t>(hi(in.b[0][l]));
d[0] = (in.c[0][l] & 0xffff0000) | lo(static_cast<uint32_t>(x > y ? x : y));
}
}
, {"v_mad_u16 v24.h, v8.l, v16.h, v9.h",
   D{d[0] = lo(in.c[0][l]) |
            lo(lo(in.a[0][l]) * hi(in.b[0][l]) + hi(in.a[1][l])) << 16;
}
}
, {"v_mad_u32_u16 v24, v8.h, v16.l, v9",
   D{d[0] = hi(in.a[0][l]) * lo(in.b[0][l]) + in.a[1][l];
}
}
, {"v_cvt_i32_i16 v24, v8.h",
   D{d[0] = static_cast<uint32_t>(static_cast<int16_t>(hi(in.a[0][l])));
}
}
, {"v_cvt_u32_u16 v24, v8.l", D{d[0] = lo(in.a[0][l]);
}
}
, {"v_sat_pk_u8_i16 v24.h, v8", D{auto clamp = [](int x) {
     return static_cast<uint32_t>(x < 0 ? 0 : x > 255 ? 255 : x);
   };
uint32_t x = in.a[0][l];
d[0] =
    lo(in.c[0][l]) |
    (clamp(static_cast<int16_t>(x)) | clamp(static_cast<int16_t>(hi(x))) << 8)
        << 16;
}
}
, {"v_pack_b32_f16 v24, v13.h, v21.l",
   D{d[0] = hi(in.a[5][l]) | in.b[5][l] << 16;
}
}
, {"v_swap_b16 v24.l, v25.h",
   D{d[0] = (in.c[0][l] & 0xffff0000) | hi(in.c[1][l]);
d[1] = lo(in.c[1][l]) | in.c[0][l] << 16;
}
}
, {"v_cmp_lt_u16 vcc_lo, v8.h, v16.l\n  v_cndmask_b16 v24.h, v9.l, v17.h, "
   "vcc_lo",
   D{d[0] = lo(in.c[0][l]) |
            (hi(in.a[0][l]) < lo(in.b[0][l]) ? hi(in.b[1][l]) : lo(in.a[1][l]))
                << 16;
}
}
,
    // DPP.
    {"v_mov_b32_dpp v24, v8 dpp8:[7,6,5,4,3,2,1,0]",
     D{d[0] = at(in.a[0], (l & ~7) | (7 - (l & 7)));
}
}
, {"v_add_nc_u32_dpp v24, v8, v16 dpp8:[1,1,2,0,5,4,7,6]",
   D{static const int sel[] = {1, 1, 2, 0, 5, 4, 7, 6};
d[0] = in.a[0][(l & ~7) | sel[l & 7]] + in.b[0][l];
}
}
, {"v_mov_b32_dpp v24, v8 row_share:5 row_mask:0xf bank_mask:0xf",
   D{d[0] = in.a[0][(l & ~15) | 5];
}
}
, {"v_mov_b32_dpp v24, v8 row_xmask:6 row_mask:0xf bank_mask:0xf",
   D{d[0] = in.a[0][l ^ 6];
}
}
, {"v_mov_b32_dpp v24, v8 row_shr:3 row_mask:0xf bank_mask:0xf",
   D{d[0] = (l & 15) >= 3 ? in.a[0][l - 3] : in.c[0][l];
}
}
, {"v_mov_b32_dpp v24, v8 row_shl:2 row_mask:0x1 bank_mask:0x3 bound_ctrl:1",
   D{bool written = l < 16 && (l & 15) < 8;
d[0] = written ? ((l & 15) < 14 ? in.a[0][l + 2] : 0) : in.c[0][l];
}
}
, {"v_add3_u32_e64_dpp v24, v8, v16, v9 row_ror:4 row_mask:0xf bank_mask:0xf",
   D{d[0] = in.a[0][(l & ~15) | ((l - 4) & 15)] + in.b[0][l] + in.a[1][l];
}
}
, {"v_mad_u32_u24_e64_dpp v24, v8, v16, v9 quad_perm:[3,2,1,0] row_mask:0xf "
   "bank_mask:0xf",
   D{d[0] = (in.a[0][l ^ 3] & 0xffffff) * (in.b[0][l] & 0xffffff) + in.a[1][l];
}
}
, {"s_mov_b32 exec_lo, 0xfffffffe\n  v_mov_b32_dpp v24, v8 row_share:0 "
   "row_mask:0xf bank_mask:0xf\n"
   "  v_mov_b32_dpp v25, v8 row_share:0 row_mask:0xf bank_mask:0xf fi:1\n  "
   "s_mov_b32 exec_lo, -1",
   D{if (l == 0) return;
d[0] = l < 16 ? in.c[0][l] : in.a[0][l & ~15]; // lane 0 is inactive
d[1] = in.a[0][l & ~15];
}
}
,
    // Rows.
    {"s_mov_b32 s20, 0x76543210\n  s_mov_b32 s21, 0xfedcba98\n  "
     "v_permlanex16_b32 v24, v8, s20, s21",
     D{d[0] = in.a[0][l ^ 16];
}
}
, {"s_mov_b32 s20, 0x33221100\n  s_mov_b32 s21, 0xf0f0f0f0\n  v_permlane16_b32 "
   "v24, v8, s20, s21",
   D{int i = l & 15;
d[0] = in.a[0][(l & ~15) | (i < 8 ? i / 2 : i & 1 ? 15 : 0)];
}
}
, {"s_mov_b32 exec_lo, 0xffff7fff\n  v_permlane16_b32 v24, v8, -1, -1\n"
   "  v_permlane16_b32 v25, v8, -1, -1 op_sel:[1,0]\n"
   "  v_permlane16_b32 v26, v8, -1, -1 op_sel:[0,1]\n  s_mov_b32 exec_lo, -1",
   D{if (l == 15) return;
bool inactive = l < 16;
uint32_t x = in.a[0][l | 15];
d[0] = inactive ? in.c[0][l] : x;
d[1] = x;
d[2] = inactive ? 0 : x;
}
}
, {"v_permlane16_var_b32 v24, v8, v9",
   D{d[0] = in.a[0][(l & ~15) | (in.a[1][l] & 15)];
}
, "gfx12"
}
, {"v_permlanex16_var_b32 v24, v8, v9",
   D{d[0] = in.a[0][((l ^ 16) & ~15) | (in.a[1][l] & 15)];
}
, "gfx12"
}
, {"v_permlane64_b32 v24, v8",
   D{d[0] = in.lanes == 64 ? in.a[0][l ^ 32] : in.c[0][l];
}
}
, {"v_readlane_b32 s20, v8, 17\n  v_mov_b32 v24, s20",
   D{(void)l, d[0] = in.a[0][17];
}
}
, {"s_mov_b32 s20, 99\n  v_writelane_b32 v24, s20, 5",
   D{(void)in, d[0] = l == 5 ? 99 : in.c[0][l];
}
}
,
    // Integers.
    {"v_xor3_b32 v24, v8, v16, v9",
     D{d[0] = in.a[0][l] ^ in.b[0][l] ^ in.a[1][l];
}
}
, {"v_maxmin_i32 v24, v8, v16, v9",
   D{auto x = int32_t(in.a[0][l]), y = int32_t(in.b[0][l]),
     z = int32_t(in.a[1][l]);
d[0] = static_cast<uint32_t>(std::min(std::max(x, y), z));
}
}
, {"v_minmax_u32 v24, v8, v16, v9",
   D{d[0] = std::max(std::min(in.a[0][l], in.b[0][l]), in.a[1][l]);
}
}
, {"v_add_co_u32 v24, vcc_lo, v8, v16\n  v_add_co_ci_u32 v25, vcc_lo, v9, v17, "
   "vcc_lo",
   D{uint64_t x = in.a[0][l] | uint64_t(in.a[1][l]) << 32,
     y = in.b[0][l] | uint64_t(in.b[1][l]) << 32;
d[0] = static_cast<uint32_t>(x + y),
    d[1] = static_cast<uint32_t>((x + y) >> 32);
}
}
, {"v_sub_co_u32 v24, s20, v8, v16\n  v_sub_co_ci_u32_e64 v25, s20, v9, v17, "
   "s20",
   D{uint64_t x = in.a[0][l] | uint64_t(in.a[1][l]) << 32,
     y = in.b[0][l] | uint64_t(in.b[1][l]) << 32;
d[0] = static_cast<uint32_t>(x - y),
    d[1] = static_cast<uint32_t>((x - y) >> 32);
}
, "wave32"
}
, {"v_mad_u64_u32 v[24:25], null, v8, v16, v[10:11]",
   D{uint64_t r = uint64_t(in.a[0][l]) * in.b[0][l] +
                  (in.a[2][l] | uint64_t(in.a[3][l]) << 32);
d[0] = static_cast<uint32_t>(r), d[1] = static_cast<uint32_t>(r >> 32);
}
, "gfx11"
}
, {"v_mad_co_u64_u32 v[24:25], null, v8, v16, v[10:11]",
   D{uint64_t r = uint64_t(in.a[0][l]) * in.b[0][l] +
                  (in.a[2][l] | uint64_t(in.a[3][l]) << 32);
d[0] = static_cast<uint32_t>(r), d[1] = static_cast<uint32_t>(r >> 32);
}
, "gfx12"
}
, {"v_clz_i32_u32 v24, v8",
   D{d[0] = in.a[0][l] ? static_cast<uint32_t>(__builtin_clz(in.a[0][l])) : ~0u;
}
}
, {"v_add_nc_i32 v24, v8, v16 clamp",
   D{int64_t r = int64_t(int32_t(in.a[0][l])) + int32_t(in.b[0][l]);
d[0] = static_cast<uint32_t>(
    std::min<int64_t>(std::max<int64_t>(r, INT32_MIN), INT32_MAX));
}
}
, {"v_lshlrev_b64 v[24:25], 5, v[8:9]",
   D{uint64_t r = (in.a[0][l] | uint64_t(in.a[1][l]) << 32) << 5;
d[0] = static_cast<uint32_t>(r), d[1] = static_cast<uint32_t>(r >> 32);
}
}
,
    // Compares and EXEC.
    {"v_cmp_gt_i32 s20, v8, v16\n  v_cndmask_b32 v24, v9, v17, s20",
     D{d[0] =
           int32_t(in.a[0][l]) > int32_t(in.b[0][l]) ? in.b[1][l] : in.a[1][l];
}
, "wave32"
}
, {"s_mov_b32 vcc_lo, 0\n  v_cmpx_gt_i32 v8, v16\n  v_mov_b32 v24, v9\n  "
   "s_mov_b32 exec_lo, -1\n"
   "  v_mov_b32 v25, vcc_lo",
   D{d[0] = int32_t(in.a[0][l]) > int32_t(in.b[0][l]) ? in.a[1][l] : in.c[0][l];
d[1] = 0; // VCC is not written
}
, "wave32"
}
, {"v_cmp_eq_u32 vcc_lo, v8, v8\n  v_cndmask_b32 v24, v9, v17, vcc_lo",
   D{d[0] = in.b[1][l];
}
}
,
    // Floats.
    {"v_fma_dx9_zero_f32 v24, v12, 0, v20", D{d[0] = in.b[4][l];
}
}
, {"v_maxmin_f32 v24, v12, v20, 1.0",
   D{d[0] = asWord(
         std::fmin(std::fmax(asFloat(in.a[4][l]), asFloat(in.b[4][l])), 1.0f));
}
, "gfx11"
}
, {"v_minmax_num_f32 v24, v12, v20, 1.0",
   D{d[0] = asWord(
         std::fmax(std::fmin(asFloat(in.a[4][l]), asFloat(in.b[4][l])), 1.0f));
}
, "gfx12"
}
, {"v_maximum_f32 v24, v12, v20",
   D{d[0] = asWord(std::fmax(asFloat(in.a[4][l]), asFloat(in.b[4][l])));
}
, "gfx12"
}
, {"v_mov_b32 v25, 0x7fc00000\n  v_minimum_f32 v24, v12, v25\n  v_min_num_f32 "
   "v26, v12, v25",
   D{d[1] = d[0] = 0x7fc00000, d[2] = in.a[4][l];
}
, "gfx12"
}
, {"v_pk_minimum_f16 v24, v13, v21", D{uint32_t x = in.a[5][l], y = in.b[5][l];
d[0] = toHalf(std::fmin(fromHalf(lo(x)), fromHalf(lo(y)))) |
       toHalf(std::fmin(fromHalf(hi(x)), fromHalf(hi(y)))) << 16;
}
, "gfx12"
}
, {"v_cvt_pk_i16_f32 v24, v12, v20", D{auto convert = [](float x) {
     return lo(static_cast<uint32_t>(static_cast<int32_t>(x)));
   };
d[0] = convert(asFloat(in.a[4][l])) | convert(asFloat(in.b[4][l])) << 16;
}
}
, {"v_fma_mix_f32 v24, v13, |v12|, -v21 op_sel:[1,0,0] op_sel_hi:[1,0,1]",
   D{d[0] = asWord(std::fma(fromHalf(hi(in.a[5][l])),
                            std::fabs(asFloat(in.a[4][l])),
                            -fromHalf(lo(in.b[5][l]))));
}
}
, {"v_fma_mixhi_f16 v24, v13, v21, 1.0 op_sel_hi:[1,1,0]",
   D{d[0] = lo(in.c[0][l]) | toHalf(std::fma(fromHalf(lo(in.a[5][l])),
                                             fromHalf(lo(in.b[5][l])), 1.0f))
                                 << 16;
}
}
,
    // Dot products.
    {"v_dot2_f32_f16 v28, v13, v21, v28",
     D{uint32_t x = in.a[5][l], y = in.b[5][l];
d[4] = asWord(fromHalf(lo(x)) * fromHalf(lo(y)) +
              fromHalf(hi(x)) * fromHalf(hi(y)) + asFloat(in.c[4][l]));
}
}
, {"v_dot2_f32_bf16 v28, v14, v22, v28 neg_lo:[1,0,0]",
   D{uint32_t x = in.a[6][l], y = in.b[6][l];
d[4] = asWord(-brain(lo(x)) * brain(lo(y)) + brain(hi(x)) * brain(hi(y)) +
              asFloat(in.c[4][l]));
}
}
, {"v_dot2_f16_f16 v24.h, v13, v21, v13.l",
   D{uint32_t x = in.a[5][l], y = in.b[5][l];
d[0] =
    lo(in.c[0][l]) | toHalf(fromHalf(lo(x)) * fromHalf(lo(y)) +
                            fromHalf(hi(x)) * fromHalf(hi(y)) + fromHalf(lo(x)))
                         << 16;
}
}
, {"v_dot4_i32_iu8 v24, v8, v16, v9 neg_lo:[1,0,0]",
   D{uint32_t sum = in.a[1][l];
for (int i = 0; i < 32; i += 8)
  sum += static_cast<uint32_t>(static_cast<int8_t>(in.a[0][l] >> i) *
                               static_cast<int32_t>((in.b[0][l] >> i) & 255));
d[0] = sum;
}
}
, {"v_dot8_i32_iu4 v24, v8, v16, v9 neg_lo:[0,1,0]",
   D{uint32_t sum = in.a[1][l];
for (int i = 0; i < 32; i += 4)
  sum +=
      ((in.a[0][l] >> i) & 15) *
      static_cast<uint32_t>(static_cast<int32_t>(in.b[0][l] << (28 - i)) >> 28);
d[0] = sum;
}
}
, {"v_dot4_u32_u8 v24, v8, v16, v9", D{d[0] = in.a[1][l];
for (int i = 0; i < 32; i += 8)
  d[0] += ((in.a[0][l] >> i) & 255) * ((in.b[0][l] >> i) & 255);
}
}
,
    // fp8 of OCP's format, by byte and by half.
    {"v_and_b32 v8, 0x77777777, v8\n  v_cvt_f32_fp8_e64 v24, v8 byte_sel:2\n  "
     "v_cvt_f32_fp8 v25, v8",
     D{auto decode = [](uint32_t x) {
       int e = static_cast<int>(x >> 3) & 15, m = static_cast<int>(x & 7);
       return asWord(
           std::ldexp(static_cast<float>(e ? m + 8 : m), (e ? e : 1) - 10));
     };
uint32_t x = in.a[0][l] & 0x77777777;
d[0] = decode((x >> 16) & 255), d[1] = decode(x & 255);
}
, "gfx12"
}
,
    // Moves relative to M0.
    {"s_mov_b32 m0, 1\n  v_movrels_b32 v24, v8", D{d[0] = in.a[1][l];
}
}
, {"s_mov_b32 m0, 0x20001\n  v_movrelsd_2_b32 v24, v8", D{d[2] = in.a[1][l];
}
}
,
}
;
#undef D

class RdnaVector : public KernelTest,
                   public ::testing::WithParamInterface<RdnaTarget> {
protected:
  void SetUp() override {
    ASSERT_TRUE(Device::create(GetParam().chip, Dev).ok());
  }
  bool has(const Case &c) const {
    std::string chips = c.chips;
    if (chips == "wave32")
      return GetParam().lanes == 32;
    // Dual issue is for waves of 32 lanes.
    if (std::string(c.text).find("v_dual_") != std::string::npos &&
        GetParam().lanes != 32)
      return false;
    // LLVM's assembler takes halves for GFX12 only with a feature switched on.
    std::string text = c.text;
    if (GetParam().gfx12() && (text.find(".l") != std::string::npos ||
                               text.find(".h") != std::string::npos))
      return false;
    return chips.find(GetParam().chip.substr(0, 5)) != std::string::npos;
  }
  /// Masks are pairs of registers in waves of 64 lanes.
  std::string forWave(std::string text) const {
    if (GetParam().lanes == 32)
      return text;
    for (size_t i = 0; (i = text.find("vcc_lo", i)) != std::string::npos; ++i)
      text.replace(i, 6, "vcc");
    return text;
  }
};

TEST_P(RdnaVector, Instructions) {
  std::vector<AsmKernel> kernels;
  for (const Case &c : kCases)
    if (has(c))
      kernels.push_back({"k" + std::to_string(kernels.size()),
                         rdnaVectorBody(GetParam(), forWave(c.text))});
  load(assembleRdna(GetParam(), kernels));
  ASSERT_TRUE(Code);
  EXPECT_EQ(Code->unsupportedInstructions(), std::vector<std::string>());

  static Inputs in;
  in.lanes = static_cast<int>(GetParam().lanes);
  std::mt19937 random(11);
  auto number = [&] {
    return (static_cast<int>(random() % 2001) - 1000) / 64.0f;
  };
  for (auto *file : {&in.a, &in.b, &in.c})
    for (int r = 0; r < 8; ++r)
      for (int l = 0; l < 64; ++l) {
        uint32_t &x = (*file)[r][l];
        x = static_cast<uint32_t>(random());
        if (r == 4)
          x = asWord(number());
        else if (r == 5)
          x = toHalf(number()) | toHalf(number()) << 16;
        else if (r == 6)
          x = (asWord(number()) >> 16) | (asWord(number()) & 0xffff0000);
      }
  auto words = [](const uint32_t (&file)[8][64]) {
    return std::vector<uint32_t>(&file[0][0], &file[0][0] + 512);
  };
  uint32_t *a = buffer(words(in.a)), *b = buffer(words(in.b)),
           *c = buffer(words(in.c));
  uint32_t *out = buffer<uint32_t>(512);
  size_t next = 0;
  for (const Case &test : kCases) {
    if (!has(test))
      continue;
    Status status = run("k" + std::to_string(next++), 1, GetParam().lanes,
                        Args().add(a).add(b).add(c).add(out));
    ASSERT_TRUE(status.ok()) << status.message();
    for (int l = 0; l < in.lanes; ++l) {
      uint32_t expected[8];
      for (int r = 0; r < 8; ++r)
        expected[r] = in.c[r][l];
      test.means(in, l, expected);
      for (int r = 0; r < 8; ++r)
        ASSERT_EQ(out[64 * r + l], expected[r])
            << test.text << "\nregister " << r << ", lane " << l;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RdnaVector,
                         ::testing::Values(RdnaTarget{"gfx1100", 32},
                                           RdnaTarget{"gfx1150", 64},
                                           RdnaTarget{"gfx1201", 32},
                                           RdnaTarget{"gfx1200", 64}),
                         [](const auto &info) { return info.param.name(); });

} // namespace
