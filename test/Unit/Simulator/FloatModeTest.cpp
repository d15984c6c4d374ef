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
  for (const char *mode : {"0x5", "0xa", "0xf"}) {
    std::string set =
        std::string("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), ") + mode +
        "\n  s_nop 1\n  ";
    for (double x : {1.75, 2.5, 3.5, -0.25}) {
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

} // namespace
