//===- RdnaScalarTest.cpp - Scalar instructions of GFX11 and GFX12 --------===//
//
// EXEC and masks of one register, renamed and new integer instructions, floats
// in scalar registers, narrow loads, and barriers in two halves.
//
//===----------------------------------------------------------------------===//
#include "HostBits.h"
#include "KernelTest.h"
#include "RdnaAsm.h"

#include <cmath>
#include <functional>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

/// s[16:31], then SCC, VCC and EXEC.
struct State {
  uint32_t s[16];
  uint32_t scc, vcc, vccHi, exec, execHi;
  uint64_t pair(int i) const { return s[i] | uint64_t(s[i + 1]) << 32; }
  void setPair(int i, uint64_t x) {
    s[i] = static_cast<uint32_t>(x);
    s[i + 1] = static_cast<uint32_t>(x >> 32);
  }
};
/// s16 and s17 are integers, s18 a small one, s19 negative, s20 = 1.5, s21 =
/// -2.75, s22 fp16 {0.5, -3}, s[24:25] and s[26:27] 64-bit numbers.
const State kStart = {{0x0ff01234, 0x12345678, 5, 0xfffffff0, 0x3fc00000,
                       0xc0300000, 0xc2003800, 0x7fc00000, 0x89abcdef,
                       0x01234567, 0xfedcba98, 0x76543210, 0x80000000,
                       0xffffffff, 1, 0},
                      0,
                      0,
                      0,
                      0xffffffff,
                      0};

struct Case {
  const char *text;
  std::function<void(State &)> means;
  const char *chips = "gfx11 gfx12";
};
#define S [](State & x)
const Case kCases[] = {
    // Masks of one register.
    {"s_and_saveexec_b32 s30, s16",
     S{x.s[14] = x.exec, x.exec &= x.s[0], x.scc = 1;
} // namespace
}
, {"s_mov_b32 exec_lo, 0xff\n  s_and_not1_saveexec_b32 s30, s16",
   S{x.s[14] = 0xff, x.exec = x.s[0] & ~0xffu, x.scc = 1;
}
}
, {"s_mov_b32 exec_lo, 0xf0\n  s_or_saveexec_b32 s30, 0x0f",
   S{x.s[14] = 0xf0, x.exec = 0xff, x.scc = 1;
}
}
, {"s_mov_b32 exec_lo, 0xf0\n  s_and_not0_saveexec_b32 s30, 0x30",
   S{x.s[14] = 0xf0, x.exec = 0xc0, x.scc = 1;
}
}
, {"s_xor_b32 exec_lo, exec_lo, 0xff", S{x.exec = 0xffffff00, x.scc = 1;
}
}
, {"s_and_not1_wrexec_b32 s30, s16", S{x.s[14] = x.exec = 0, x.scc = 0;
}
}
, {"s_and_not1_b32 vcc_lo, s17, s16", S{x.vcc = x.s[1] & ~x.s[0], x.scc = 1;
}
}
, {"s_or_not1_b32 s30, s17, s16", S{x.s[14] = x.s[1] | ~x.s[0], x.scc = 1;
}
}
, {"s_cselect_b32 s30, s16, s17", S{x.s[14] = x.s[1];
}
}
,
    // The null register swallows results and reads 0.
    {"s_and_b64 null, s[24:25], s[26:27]", S{x.scc = 1;
}
}
, {"s_mov_b64 s[30:31], null", S{x.setPair(14, 0);
}
}
,
    // Integers.
    {"s_ctz_i32_b32 s30, s16", S{x.s[14] = 2;
}
}
, {"s_clz_i32_u32 s30, s17", S{x.s[14] = 3;
}
}
, {"s_cls_i32 s30, s19", S{x.s[14] = 28;
}
}
, {"s_pack_hl_b32_b16 s30, s16, s17", S{x.s[14] = 0x0ff0 | 0x5678u << 16;
}
}
, {"s_add_co_u32 s30, s24, s26\n  s_add_co_ci_u32 s31, s25, s27",
   S{x.setPair(14, x.pair(8) + x.pair(10)), x.scc = 0;
}
, "gfx12"
}
, {"s_add_u32 s30, s24, s26\n  s_addc_u32 s31, s25, s27",
   S{x.setPair(14, x.pair(8) + x.pair(10)), x.scc = 0;
}
, "gfx11"
}
, {"s_add_nc_u64 s[30:31], s[24:25], s[26:27]",
   S{x.setPair(14, x.pair(8) + x.pair(10));
}
, "gfx12"
}
, {"s_sub_nc_u64 s[30:31], s[24:25], s[26:27]",
   S{x.setPair(14, x.pair(8) - x.pair(10));
}
, "gfx12"
}
, {"s_mul_u64 s[30:31], s[24:25], s[26:27]",
   S{x.setPair(14, x.pair(8) * x.pair(10));
}
, "gfx12"
}
, {"s_getpc_b64 s[30:31]\n  s_sub_u32 s30, s30, s30\n  s_mov_b32 s31, 0",
   S{x.setPair(14, 0), x.scc = 0;
}
, "gfx11"
}
,
    // MODE: rounding up, then back.
    {"s_round_mode 0x1\n  s_getreg_b32 s30, hwreg(HW_REG_MODE, 0, 4)\n  "
     "s_round_mode 0x0",
     S{x.s[14] = 1;
}
, "gfx11"
}
, {"s_denorm_mode 0xc\n  s_getreg_b32 s30, hwreg(HW_REG_MODE, 4, 4)",
   S{x.s[14] = 12;
}
, "gfx11"
}
,
    // Floats.
    {"s_add_f32 s30, s20, s21", S{x.s[14] = asWord(-1.25f);
}
, "gfx115 gfx12"
}
, {"s_mul_f32 s30, s20, s21", S{x.s[14] = asWord(1.5f * -2.75f);
}
, "gfx115 gfx12"
}
, {"s_fmac_f32 s20, s20, s21", S{x.s[4] = asWord(1.5f * -2.75f + 1.5f);
}
, "gfx115 gfx12"
}
, {"s_fmaak_f32 s30, s20, s21, 0x40000000",
   S{x.s[14] = asWord(1.5f * -2.75f + 2);
}
, "gfx115 gfx12"
}
, {"s_fmamk_f32 s30, s20, 0x40000000, s21",
   S{x.s[14] = asWord(1.5f * 2 - 2.75f);
}
, "gfx115 gfx12"
}
, {"s_min_f32 s30, s20, s21", S{x.s[14] = asWord(-2.75f);
}
, "gfx115"
}
, {"s_max_num_f32 s30, s20, s23", S{x.s[14] = asWord(1.5f);
}
, "gfx12"
}
, {"s_maximum_f32 s30, s20, s23", S{x.s[14] = 0x7fc00000;
}
, "gfx12"
}
, {"s_floor_f32 s30, s21\n  s_trunc_f32 s31, s21",
   S{x.s[14] = asWord(-3), x.s[15] = asWord(-2);
}
, "gfx115 gfx12"
}
, {"s_cvt_i32_f32 s30, s21\n  s_cvt_u32_f32 s31, s21",
   S{x.s[14] = static_cast<uint32_t>(-2), x.s[15] = 0;
}
, "gfx115 gfx12"
}
, {"s_cvt_f32_i32 s30, s19\n  s_cvt_f32_u32 s31, s18",
   S{x.s[14] = asWord(-16), x.s[15] = asWord(5);
}
, "gfx115 gfx12"
}
, {"s_cvt_f16_f32 s30, s21\n  s_cvt_f32_f16 s31, s22",
   S{x.s[14] = toHalf(-2.75), x.s[15] = asWord(0.5f);
}
, "gfx115 gfx12"
}
, {"s_cvt_hi_f32_f16 s30, s22\n  s_cvt_pk_rtz_f16_f32 s31, s20, s21",
   S{x.s[14] = asWord(-3), x.s[15] = toHalf(1.5) | toHalf(-2.75) << 16;
}
, "gfx115 gfx12"
}
, {"s_add_f16 s30, s22, 1.0", S{x.s[14] = toHalf(1.5);
}
, "gfx115 gfx12"
}
, {"s_cmp_lt_f32 s21, s20", S{x.scc = 1;
}
, "gfx115 gfx12"
}
, {"s_cmp_nlt_f32 s20, s23", S{x.scc = 1;
}
, "gfx115 gfx12"
}
, {"s_cmp_u_f32 s20, s23", S{x.scc = 1;
}
, "gfx115 gfx12"
}
, {"v_s_rcp_f32 s30, -s20 mul:2\n  v_s_exp_f32 s31, 3.0 clamp",
   S{x.s[14] = asWord(1 / -1.5f), x.s[15] = asWord(1);
}
, "gfx12"
}
, {"v_s_sqrt_f16 s30, 4.0", S{x.s[14] = toHalf(2);
}
, "gfx12"
}
,
    // Narrow loads, from the words that s16... came from.
    {"s_load_u8 s28, s[8:9], 0x3\n  s_load_i8 s29, s[8:9], 0xc\n  s_load_u16 "
     "s30, s[8:9], 0x2\n"
     "  s_load_i16 s31, s[8:9], 0xe\n  s_wait_kmcnt 0x0",
     S{x.s[12] = 0x0f, x.s[13] = 0xfffffff0, x.s[14] = 0x0ff0,
       x.s[15] = 0xffffffff;
}
, "gfx12"
}
, {"s_load_b96 s[28:30], s[8:9], 0x4\n  s_wait_kmcnt 0x0",
   S{x.s[12] = x.s[1], x.s[13] = x.s[2], x.s[14] = x.s[3];
}
, "gfx12"
}
,
}
;
#undef S

class RdnaScalar : public KernelTest,
                   public ::testing::WithParamInterface<RdnaTarget> {
protected:
  void SetUp() override {
    ASSERT_TRUE(Device::create(GetParam().chip, Dev).ok());
  }
  bool has(const Case &c) const {
    // "gfx11" is all of GFX11, "gfx115" GFX11.5 alone.
    std::string chips = std::string(c.chips) + " ";
    for (size_t length : {5u, 6u})
      if (chips.find(GetParam().chip.substr(0, length) + " ") !=
          std::string::npos)
        return true;
    return false;
  }
};

TEST_P(RdnaScalar, Instructions) {
  std::vector<AsmKernel> kernels;
  for (const Case &c : kCases)
    if (has(c))
      kernels.push_back({"k" + std::to_string(kernels.size()),
                         rdnaScalarBody(GetParam(), c.text)});
  load(assembleRdna(GetParam(), kernels));
  ASSERT_TRUE(Code);
  EXPECT_EQ(Code->unsupportedInstructions(), std::vector<std::string>());
  uint32_t *in = buffer(std::vector<uint32_t>(kStart.s, kStart.s + 16));
  uint32_t *out = buffer<uint32_t>(32);
  size_t next = 0;
  for (const Case &c : kCases) {
    if (!has(c))
      continue;
    Status status =
        run("k" + std::to_string(next++), 1, 32, Args().add(in).add(out));
    ASSERT_TRUE(status.ok()) << status.message();
    State expected = kStart;
    c.means(expected);
    State got;
    std::memcpy(&got, out, sizeof got);
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(got.s[i], expected.s[i]) << c.text << "\ns" << 16 + i;
    EXPECT_EQ(got.scc, expected.scc) << c.text;
    EXPECT_EQ(got.vcc, expected.vcc) << c.text;
    EXPECT_EQ(got.exec, expected.exec) << c.text;
  }
}

/// Barriers in two halves: wave w of 8 does w + 1 steps of work before it
/// signals; what is stored before is read after by the next wave.
std::string splitBarrierBody(const RdnaTarget &target,
                             const std::string &signal, const std::string &wait,
                             const std::string &setup) {
  return "  s_load_b64 s[8:9], s[0:1], 0x0\n  v_and_b32 v0, 0x3ff, v0\n"
         "  v_lshlrev_b32 v1, 2, v0\n" +
         rdnaWait(target) + setup +
         "  v_add_nc_u32 v2, v0, 7\n  ds_store_b32 v1, v2\n  s_wait_dscnt "
         "0x0\n" +
         signal +
         // Work between the halves.
         "  v_readfirstlane_b32 s20, v0\n  s_lshr_b32 s20, s20, 5\n"
         ".Lwork%:\n  s_sleep 1\n  s_sub_co_u32 s20, s20, 1\n  s_cmp_gt_i32 "
         "s20, 0\n"
         "  s_cbranch_scc1 .Lwork%\n" +
         wait +
         "  v_add_nc_u32 v3, 32, v0\n  v_and_b32 v3, 255, v3\n  v_lshlrev_b32 "
         "v3, 2, v3\n"
         "  ds_load_b32 v4, v3\n  s_wait_dscnt 0x0\n"
         "  global_store_b32 v1, v4, s[8:9]\n";
}

/// GFX11 has s_barrier alone.
class Gfx12Barriers : public RdnaScalar {};

TEST_P(Gfx12Barriers, InTwoHalves) {
  // Barrier 3 with as many members as there are waves.
  std::string named =
      "  s_mov_b32 m0, " + std::to_string(256 / GetParam().lanes << 16 | 3) +
      "\n  s_barrier_init m0\n  s_barrier_signal -1\n  s_barrier_wait -1\n"
      "  s_barrier_join m0\n";
  auto body = [&](int n, const char *signal, const char *wait,
                  const std::string &setup) {
    std::string text = splitBarrierBody(GetParam(), signal, wait, setup);
    for (size_t i; (i = text.find('%')) != std::string::npos;)
      text.replace(i, 1, std::to_string(n));
    return text;
  };
  load(assembleRdna(
      GetParam(),
      {{"workgroup",
        body(0, "  s_barrier_signal -1\n", "  s_barrier_wait -1\n", ""), 1024},
       {"named",
        body(1, "  s_barrier_signal m0\n", "  s_barrier_wait 1\n", named),
        1024},
       {"first", "  s_load_b64 s[8:9], s[0:1], 0x0\n  v_mov_b32 v0, 0\n  "
                 "v_mov_b32 v1, 1\n"
                 "  s_wait_kmcnt 0x0\n  s_barrier_signal_isfirst -1\n  "
                 "s_cbranch_scc0 .Lskip\n"
                 "  s_mov_b32 exec_hi, 0\n  s_mov_b32 exec_lo, 1\n  "
                 "global_atomic_add_u32 v0, v1, s[8:9]\n"
                 ".Lskip:\n  s_barrier_wait -1\n"},
       {"stuck", "  s_barrier_wait -1\n"}}));
  ASSERT_TRUE(Code);
  EXPECT_EQ(Code->unsupportedInstructions(), std::vector<std::string>());
  for (const char *kernel : {"workgroup", "named"}) {
    uint32_t *out = buffer(std::vector<uint32_t>(256, 0));
    Status status = run(kernel, 1, 256, Args().add(out));
    ASSERT_TRUE(status.ok()) << status.message();
    for (uint32_t i = 0; i < 256; ++i)
      ASSERT_EQ(out[i], (i + 32) % 256 + 7) << kernel << " " << i;
  }
  uint32_t *count = buffer(std::vector<uint32_t>(1, 0));
  Status status = run("first", 1, 256, Args().add(count));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*count, 1u);
  status = run("stuck", 1, 256, Args().add(count));
  EXPECT_EQ(status.code(), ErrorCode::LaunchFailure);
  EXPECT_NE(status.message().find("no other wave will complete"),
            std::string::npos)
      << status.message();
}

INSTANTIATE_TEST_SUITE_P(Targets, RdnaScalar,
                         ::testing::Values(RdnaTarget{"gfx1101", 32},
                                           RdnaTarget{"gfx1152", 32},
                                           RdnaTarget{"gfx1201", 32},
                                           RdnaTarget{"gfx1200", 64}),
                         [](const auto &info) { return info.param.name(); });
INSTANTIATE_TEST_SUITE_P(Targets, Gfx12Barriers,
                         ::testing::Values(RdnaTarget{"gfx1200", 64},
                                           RdnaTarget{"gfx1201", 32}),
                         [](const auto &info) { return info.param.name(); });

} // namespace
