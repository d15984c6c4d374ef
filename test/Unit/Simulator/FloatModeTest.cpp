//===- FloatModeTest.cpp - What MODE and constants do to floats -----------===//
//
// Rounding, denormals, overflow and output modifiers as AMD's ISA documents
// have them by chip, and the constants that operands of 16 bits can be.
//
//===----------------------------------------------------------------------===//
#include "HostBits.h"
#include "KernelTest.h"
#include "RdnaAsm.h"

#include <cmath>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

using u64 = uint64_t;
using u32 = uint32_t;

class FloatMode : public KernelTest {
protected:
  /// What \p inst makes of a in v[2:3], b in v[4:5], c in v[6:7] and d in
  /// v[8:9], which are the same in all lanes: v[8:9] of lane 0.
  u64 cdna(const std::string &chip, const std::string &inst, u64 a, u64 b = 0,
           u64 c = 0, u64 d = 0) {
    use(chip);
    load(assemble(asmModule({{"k", vectorBody(inst), 1024}}, 64, chip), chip));
    u64 *p[4];
    for (auto [i, x] : {std::pair(0, a), {1, b}, {2, c}, {3, d}})
      p[i] = buffer(std::vector<u64>(64, x));
    expectRun(64, Args().add(p[0]).add(p[1]).add(p[2]).add(p[3]), inst);
    return p[3][0];
  }
  /// The same of v8 = a, v16 = b, v24 = c, and v9, v17, v25 with \p high: v24
  /// and v25.
  u64 rdna(const std::string &chip, const std::string &inst, u64 a, u64 b = 0,
           u64 c = 0) {
    use(chip);
    RdnaTarget target{chip, 32};
    load(assembleRdna(target, {{"k", rdnaVectorBody(target, inst), 1024}}));
    u32 *p[4];
    for (auto [i, x] : {std::pair(0, a), {1, b}, {2, c}, {3, u64(0)}}) {
      std::vector<u32> words(512, static_cast<u32>(x));
      std::fill(words.begin() + 64, words.end(), static_cast<u32>(x >> 32));
      p[i] = buffer(words);
    }
    expectRun(32, Args().add(p[0]).add(p[1]).add(p[2]).add(p[3]), inst);
    return p[3][0] | u64(p[3][64]) << 32;
  }

private:
  void expectRun(unsigned block, const Args &args, const std::string &inst) {
    ASSERT_TRUE(Code) << inst;
    EXPECT_EQ(Code->unsupportedInstructions(), std::vector<std::string>());
    Status status = run("k", 1, block, args);
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

/// The low word of a result.
u32 low(u64 x) { return static_cast<u32>(x); }

TEST_F(FloatMode, ConstantsOfBf16AreUpperHalvesOfFp32) {
  // 2 * 1 in the low halves; the constant's upper half is 0.
  EXPECT_EQ(
      low(rdna("gfx1100", "v_dot2_f32_bf16 v24, v8, 1.0, v16", 0x40004000)),
      asWord(2.0f));
  EXPECT_EQ(low(rdna("gfx1201", "v_dot2_bf16_bf16 v24, v8, v16, -4.0", 0)),
            0xc080u);
  EXPECT_EQ(
      low(rdna("gfx1201", "v_dot2_bf16_bf16 v24, v8, 0.15915494, 0", 0x3f80)),
      0x3e22u);
  EXPECT_EQ(low(rdna("gfx1100",
                     "v_wmma_bf16_16x16x16_bf16 v[24:31], v[8:15], v[16:23], "
                     "1.0",
                     0)) &
                0xffff,
            0x3f80u);
  EXPECT_EQ(low(cdna("gfx950", "v_dot2c_f32_bf16 v8, 0.5, v2", 0x40004000)),
            asWord(1.0f));
  EXPECT_EQ(low(cdna("gfx950", "v_cvt_f32_bf16 v8, 2.0", 0)), asWord(2.0f));
  // Two elements of fp4: 1 and 0.
  for (const char *type : {"f16", "bf16"})
    EXPECT_EQ(
        low(cdna("gfx950",
                 std::string("v_cvt_scalef32_pk_fp4_") + type + " v8, 1.0, v2",
                 asWord(1.0f))),
        2u)
        << type;
  // fp16 has its own.
  EXPECT_EQ(
      low(rdna("gfx1100", "v_dot2_f32_f16 v24, v8, 1.0, v16", 0x40004000)),
      asWord(2.0f));
}

TEST_F(FloatMode, DotProductsWithoutDenormals) {
  // A denormal factor, a denormal addend, a denormal sum.
  struct Case {
    u32 a, b, c, kept;
  };
  const Case cases[] = {{0x03000300, 0x3c003c00, 0, asWord(0x1.8p-14f)},
                        {0, 0, 0x00400000, 0x00400000},
                        {0x3c00, 0x3c00, 0x00400000, asWord(1.0f)}};
  for (const Case &x : cases)
    for (const char *chip : {"gfx90a", "gfx942"}) {
      bool flush = std::string(chip) == "gfx90a" && x.kept != asWord(1.0f);
      EXPECT_EQ(low(cdna(chip, "v_dot2_f32_f16 v8, v2, v4, v6", x.a, x.b, x.c)),
                flush ? 0 : x.kept)
          << chip;
      EXPECT_EQ(low(cdna(chip, "v_dot2c_f32_f16 v8, v2, v4", x.a, x.b, 0, x.c)),
                flush ? 0 : x.kept)
          << chip;
    }
  EXPECT_EQ(low(rdna("gfx1100", "v_dot2_bf16_bf16 v24.l, v8, v16, 0", 0x8040,
                     0x3f80)),
            0u);
  EXPECT_EQ(low(rdna("gfx1100", "v_dot2_bf16_bf16 v24.l, v8, v16, v17.l", 0,
                     u64(0x0040) << 32)),
            0u);
  EXPECT_EQ(low(rdna("gfx1100", "v_dot2_bf16_bf16 v24.l, v8, v16, 0", 0x0100,
                     0x3e00)),
            0u);
}

TEST_F(FloatMode, RoundingToEvenIgnoresTheMode) {
  for (const char *mode : {"0x5", "0xf"}) {
    std::string set =
        std::string("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), ") + mode +
        "\n  s_nop 1\n  ";
    for (double x : {1.75, 2.5}) {
      double even = std::nearbyint(x);
      EXPECT_EQ(low(cdna("gfx942", set + "v_rndne_f32 v8, v2",
                         asWord(static_cast<float>(x)))),
                asWord(static_cast<float>(even)));
      EXPECT_EQ(low(cdna("gfx942", set + "v_rndne_f16 v8, v2", toHalf(x))),
                toHalf(even));
      EXPECT_EQ(cdna("gfx942", set + "v_rndne_f64 v[8:9], v[2:3]", as<u64>(x)),
                as<u64>(even));
    }
  }
}

/// MODE.FP16_OVFL.
const std::string kLimit = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n"
                           "  s_nop 1\n  ";

TEST_F(FloatMode, OverflowOfFp16IsLimited) {
  struct Case {
    const char *inst;
    u32 a, b, want, plain; ///< with and without the bit
  };
  const u32 big = toHalf(60000), negative = toHalf(-60000);
  const u32 pair = big | negative << 16;
  const Case cases[] = {
      {"v_mul_f16 v8, v2, v4", big, big, 0x7bff, 0x7c00},
      {"v_mul_f16 v8, v2, v4", big, negative, 0xfbff, 0xfc00},
      {"v_add_f16 v8, v2, v4", 0x7c00, big, 0x7c00, 0x7c00},
      {"v_cvt_f16_f32 v8, v2", asWord(1e6f), 0, 0x7bff, 0x7c00},
      {"v_cvt_f16_f32 v8, v2", 0x7f800000, 0, 0x7c00, 0x7c00},
      {"v_cvt_f16_u16 v8, v2", 0xffff, 0, 0x7bff, 0x7c00},
      {"v_rcp_f16 v8, v2", 0x0001, 0, 0x7bff, 0x7c00},
      {"v_rcp_f16 v8, v2", 0x8000, 0, 0xfc00, 0xfc00},
      {"v_pk_mul_f16 v8, v2, v4", pair, big | big << 16, 0xfbff7bff,
       0xfc007c00},
      {"v_pk_add_f16 v8, v2, v4", 0x7c000000 | big, big | big << 16, 0x7c007bff,
       0x7c007c00},
      {"v_fma_mixlo_f16 v8, v2, v4, 0", asWord(1e6f), asWord(1.0f), 0x7bff,
       0x7c00},
  };
  for (const Case &x : cases) {
    EXPECT_EQ(low(cdna("gfx942", kLimit + x.inst, x.a, x.b)), x.want) << x.inst;
    EXPECT_EQ(low(cdna("gfx942", x.inst, x.a, x.b)), x.plain) << x.inst;
  }
  EXPECT_EQ(low(cdna("gfx950", kLimit + "v_cvt_pk_f16_f32 v8, v2, v4",
                     asWord(1e6f), 0xff800000)),
            0xfc007bffu);
  // 2^10 * 2^10 in fp8 (bf8: 0x64 is 1024) scaled by 2^10.
  EXPECT_EQ(low(cdna("gfx950", kLimit + "v_cvt_scalef32_pk_f16_bf8 v8, v2, v4",
                     0x7c64, asWord(1024.0f))),
            0x7c007bffu);
  EXPECT_EQ(low(rdna("gfx1100",
                     kLimit + "v_wmma_f16_16x16x16_f16 v[24:31], v[8:15], "
                              "v[16:23], 0",
                     (big | big << 16) * 0x100000001u, 0x3c003c003c003c00)) &
                0xffff,
            0x7bffu);
}

TEST_F(FloatMode, OverflowOfMatrixCoresIsLimited) {
  const u64 huge = asWord(3e38f);
  const u32 infinity = 0x7f800000, largest = 0x7f7fffff;
  auto product = [&](const char *chip, const std::string &mode,
                     const std::string &inst, u64 a, u64 b) {
    return low(cdna(chip,
                    mode +
                        "v_mov_b32 v12, 0\n  v_mov_b32 v13, 0\n  "
                        "v_mov_b32 v14, 0\n  v_mov_b32 v15, 0\n  s_nop "
                        "4\n  " +
                        inst + "\n  s_nop 15\n  v_mov_b32 v8, v12",
                    a, b));
  };
  const std::string f32 = "v_mfma_f32_16x16x4_f32 v[12:15], v2, v4, v[12:15]";
  EXPECT_EQ(product("gfx942", "", f32, huge, huge), infinity);
  EXPECT_EQ(product("gfx942", kLimit, f32, huge, huge), largest);
  EXPECT_EQ(product("gfx942", kLimit, f32, huge, asWord(-10.0f)),
            0x80000000 | largest);
  EXPECT_EQ(product("gfx942", kLimit, f32, infinity, huge), infinity);
  // CDNA2's manual has no clamp of matrix instructions.
  EXPECT_EQ(product("gfx90a", kLimit,
                    "v_mfma_f32_16x16x4f32 v[12:15], v2, v4, v[12:15]", huge,
                    huge),
            infinity);
  const std::string i8 = "v_mov_b32 v12, 0x7fffff00\n  s_nop 4\n  "
                         "v_mfma_i32_16x16x32_i8 v[12:15], v[2:3], v[4:5], "
                         "v[12:15]";
  const u64 ones = 0x0101010101010101, tens = 10 * ones;
  EXPECT_EQ(product("gfx942", kLimit, i8, ones, tens), 0x7fffffffu);
  EXPECT_EQ(product("gfx942", "", i8, ones, tens), 0x7fffff00u + 320);
}

/// Flushes denormals of fp32, or of fp16 and fp64.
const std::string kFlush32 = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n"
                             "  s_nop 1\n  ";
const std::string kFlush64 = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 0\n"
                             "  s_nop 1\n  ";
/// Takes MODE.IEEE away.
const std::string kNoIeee = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0\n"
                            "  s_nop 1\n  ";

TEST_F(FloatMode, PackedFp32TakesDenormalsByMode) {
  const u64 denormal = 0x0040000000400000, big = asWord(0x1p40f) * 0x100000001u;
  for (const char *inst :
       {"v_pk_mul_f32 v[8:9], v[2:3], v[4:5]",
        "v_pk_fma_f32 v[8:9], v[2:3], v[4:5], v[6:7]",
        "v_pk_fma_f32 v[8:9], v[2:3], v[4:5], v[6:7] neg_lo:[1,0,0] "
        "neg_hi:[1,0,0]"}) {
    EXPECT_EQ(cdna("gfx942", kFlush32 + inst, denormal, big) &
                  0x7fffffff7fffffff,
              0u);
    EXPECT_NE(cdna("gfx942", inst, denormal, big) & 0x7fffffff7fffffff, 0u);
  }
  EXPECT_EQ(cdna("gfx942", kFlush32 + "v_pk_add_f32 v[8:9], v[2:3], v[4:5]",
                 denormal, denormal),
            0u);
}

TEST_F(FloatMode, Fp64TakesDenormalsByMode) {
  const u64 denormal = u64(1) << 51, big = as<u64>(1024.0);
  const u64 small = as<u64>(0x1p-1022), half = as<u64>(0.5);
  const std::string mul = "v_mul_f64 v[8:9], v[2:3], v[4:5]";
  EXPECT_EQ(cdna("gfx942", mul, denormal, big), as<u64>(0x1p-1013));
  EXPECT_EQ(cdna("gfx942", kFlush64 + mul, denormal, big), 0u);
  EXPECT_EQ(cdna("gfx942", kFlush32 + mul, denormal, big), as<u64>(0x1p-1013));
  EXPECT_EQ(cdna("gfx942", mul, small, half), denormal);
  EXPECT_EQ(cdna("gfx942", kFlush64 + mul, small, half), 0u);
}

TEST_F(FloatMode, OutputModifiersNeedFlushingWithoutIeee) {
  const u32 one = asWord(1.0f), four = asWord(4.0f);
  const std::string mul = "v_mul_f32 v8, v2, v4 mul:4";
  EXPECT_EQ(low(cdna("gfx942", mul, one, one)), one);
  EXPECT_EQ(low(cdna("gfx942", kNoIeee + mul, one, one)), one);
  EXPECT_EQ(low(cdna("gfx942", kFlush32 + mul, one, one)), one);
  EXPECT_EQ(low(cdna("gfx942", kNoIeee + kFlush32 + mul, one, one)), four);
  // -0 becomes +0.
  EXPECT_EQ(low(cdna("gfx942", kNoIeee + kFlush32 + mul, 0x80000000, one)), 0u);
  // GFX12 has no MODE.IEEE.
  const std::string rdnaMul = "v_mul_f32 v24, v8, v16 mul:4";
  EXPECT_EQ(low(rdna("gfx1201", rdnaMul, one, one)), one);
  EXPECT_EQ(low(rdna("gfx1201", kFlush32 + rdnaMul, one, one)), four);
  EXPECT_EQ(low(rdna("gfx1100", kFlush32 + rdnaMul, one, one)), one);
  EXPECT_EQ(
      low(cdna("gfx942", kNoIeee + kFlush64 + "v_add_f16 v8, v2, v4 div:2",
               toHalf(1), toHalf(2))),
      toHalf(1.5));
}

TEST_F(FloatMode, AtomicsOnLdsTakeDenormalsByMode) {
  // d: what LDS holds; the first lane alone accesses it.
  auto lds = [&](const std::string &mode, const std::string &inst, u64 held,
                 u64 b, u64 c = 0) {
    return cdna("gfx942",
                mode +
                    "s_mov_b64 exec, 1\n  v_mov_b32 v12, 0\n  ds_write_b64 "
                    "v12, v[2:3]\n  " +
                    inst +
                    "\n  s_waitcnt lgkmcnt(0)\n  ds_read_b64 v[8:9], v12\n  "
                    "s_waitcnt lgkmcnt(0)\n  s_mov_b64 exec, -1",
                held, b, c);
  };
  const u64 denormal = 0x00100000, wide = u64(1) << 40;
  EXPECT_EQ(lds("", "ds_add_f32 v12, v4", denormal, denormal), 2 * denormal);
  EXPECT_EQ(lds(kFlush32, "ds_add_f32 v12, v4", denormal, denormal), 0u);
  EXPECT_EQ(lds(kFlush64, "ds_add_f64 v12, v[4:5]", wide, wide), 2 * wide);
  // What the smaller of two zeros was stays as it is.
  EXPECT_EQ(lds(kFlush32, "ds_min_f32 v12, v4", denormal, 0x80000001),
            0x80000001u);
  EXPECT_EQ(lds(kFlush64, "ds_pk_add_f16 v12, v4", 0x03003c00, 0x03003c00),
            0x00004000u);
  // Compare and swap: +0 is -0, and a NaN is nothing.
  const std::string swap = "ds_cmpst_f32 v12, v4, v6";
  EXPECT_EQ(lds("", swap, 0, 0x80000000, 7), 7u);
  EXPECT_EQ(lds("", swap, 0x7fc00000, 0x7fc00000, 7), 0x7fc00000u);
  EXPECT_EQ(lds("", swap, asWord(1.0f), asWord(1.0f), 7), 7u);
  EXPECT_EQ(lds(kFlush32, swap, denormal, 2 * denormal, asWord(3.0f)),
            asWord(3.0f));
  EXPECT_EQ(lds("", "ds_cmpst_f64 v12, v[4:5], v[6:7]", 0, u64(1) << 63, 7),
            7u);
  // Memory flushes what is added, but on GFX12.
  for (auto [chip, want] :
       {std::pair("gfx1100", asWord(0.0f)), {"gfx1201", u32(2 * denormal)}}) {
    const std::string wait = rdnaWait({chip, 32});
    EXPECT_EQ(
        low(rdna(chip,
                 "global_store_b32 v1, v8, s[10:11]\n" + wait +
                     (std::string(chip) == "gfx1201"
                          ? "  s_wait_storecnt 0x0\n"
                          : "  s_waitcnt_vscnt null, 0x0\n") +
                     "  global_atomic_add_f32 v24, v1, v8, s[10:11] " +
                     (std::string(chip) == "gfx1201" ? "th:TH_ATOMIC_RETURN\n"
                                                     : "glc\n") +
                     wait + "  global_load_b32 v24, v1, s[10:11]\n" + wait,
                 denormal)),
        want)
        << chip;
  }
}

TEST_F(FloatMode, Gfx12PrefersNumbersToAnyNan) {
  const u32 signalling = 0x7fa00000, quiet = 0x7fc00001, one = asWord(1.0f);
  for (const char *inst :
       {"v_max_num_f32 v24, v8, v16", "v_min_num_f32 v24, v8, v16",
        "v_max3_num_f32 v24, v8, v16, v8", "v_med3_num_f32 v24, v8, v16, v16",
        "v_minmax_num_f32 v24, v16, v8, v8"}) {
    EXPECT_EQ(low(rdna("gfx1201", inst, signalling, one)), one) << inst;
    EXPECT_EQ(low(rdna("gfx1201", inst, quiet, one)), one) << inst;
  }
  // Of two NaNs the first, quiet.
  EXPECT_EQ(
      low(rdna("gfx1201", "v_max_num_f32 v24, v8, v16", signalling, quiet)),
      0x7fe00000u);
  EXPECT_EQ(rdna("gfx1201", "v_min_num_f64 v[24:25], v[8:9], v[16:17]",
                 0x7ff4000000000000, as<u64>(2.0)),
            as<u64>(2.0));
  // Others give the signalling one.
  EXPECT_EQ(low(rdna("gfx1100", "v_max_f32 v24, v8, v16", signalling, one)),
            0x7fe00000u);
  EXPECT_EQ(low(rdna("gfx1201",
                     "ds_store_b32 v1, v8\n  ds_max_num_rtn_f32 v24, v1, v16\n"
                     "  ds_load_b32 v24, v1\n  s_wait_dscnt 0x0",
                     signalling, one)),
            one);
}

} // namespace
