//===- SmallFloatTest.cpp - fp8, bf8, fp6, bf6, fp4, sparse and scaled ----===//
//
// Conversions of the small float formats, and the matrix instructions that take
// them, against values worked out here from the definitions of the formats: the
// FNUZ formats of gfx942, OCP's of gfx950. Operand layouts: formulas of AMD's
// matrix instruction calculator for the sparse instructions of gfx942; those of
// gfx950 in runs of 16 bytes, as its ISA document draws them.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "HostBits.h"
#include "KernelTest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

enum class Format { Fp8Fnuz, Bf8Fnuz, Fp8, Bf8, Fp6, Bf6, Fp4 };
int bitsOf(Format f) {
  return f == Format::Fp4 ? 4 : f == Format::Fp6 || f == Format::Bf6 ? 6 : 8;
}
int mantissaOf(Format f) {
  switch (f) {
  case Format::Fp4:
    return 1;
  case Format::Bf8:
  case Format::Bf8Fnuz:
  case Format::Bf6:
    return 2;
  default:
    return 3;
  }
}
/// The value of a pattern, by the definition of its format.
double value(Format f, u32 raw) {
  int bits = bitsOf(f), mant = mantissaOf(f), exp = bits - 1 - mant;
  bool fnuz = f == Format::Fp8Fnuz || f == Format::Bf8Fnuz;
  int bias = (1 << (exp - 1)) - 1 + (fnuz ? 1 : 0);
  bool negative = (raw >> (bits - 1)) & 1;
  u32 e = (raw >> mant) & ((1u << exp) - 1), m = raw & ((1u << mant) - 1);
  if (fnuz && raw == 0x80)
    return std::nan("");
  if (f == Format::Fp8 && (raw & 0x7f) == 0x7f)
    return std::nan("");
  if (f == Format::Bf8 && e == 31)
    return m ? std::nan("") : negative ? -INFINITY : INFINITY;
  double x = e ? std::ldexp(1 + m / double(1 << mant), int(e) - bias)
               : std::ldexp(m / double(1 << mant), 1 - bias);
  return negative ? -x : x;
}
/// The finite pattern nearest to x, ties to the even one; x within range.
u32 nearest(Format f, double x) {
  u32 best = 0;
  double error = INFINITY;
  for (u32 raw = 0; raw < (1u << (bitsOf(f) - 1)); ++raw) {
    double v = value(f, raw);
    if (!std::isfinite(v))
      continue;
    double d = std::fabs(v - std::fabs(x));
    if (d < error || (d == error && !(raw & 1))) {
      error = d;
      best = raw;
    }
  }
  bool fnuz = f == Format::Fp8Fnuz || f == Format::Bf8Fnuz;
  if (std::signbit(x) && !(fnuz && best == 0))
    best |= 1u << (bitsOf(f) - 1);
  return best;
}
double largest(Format f) {
  double most = 0;
  for (u32 raw = 0; raw < (1u << bitsOf(f)); ++raw)
    if (std::isfinite(value(f, raw)))
      most = std::max(most, value(f, raw));
  return most;
}

class SmallFloat : public KernelTest {
protected:
  void start(const std::string &target, std::vector<AsmKernel> kernels) {
    use(target);
    load(assemble(asmModule(kernels, 64, target), target));
    for (u64 *&x : P) {
      x = buffer<u64>(64);
      std::memset(x, 0, 512);
    }
  }
  void go(const std::string &name) {
    Status status =
        run(name, 1, 64, Args().add(P[0]).add(P[1]).add(P[2]).add(P[3]));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  u64 *P[4];
};

TEST_F(SmallFloat, AllPatternsToFp32) {
  struct {
    const char *target, *inst;
    Format format;
  } cases[] = {{"gfx942", "v_cvt_f32_fp8", Format::Fp8Fnuz},
               {"gfx942", "v_cvt_f32_bf8", Format::Bf8Fnuz},
               {"gfx950", "v_cvt_f32_fp8", Format::Fp8},
               {"gfx950", "v_cvt_f32_bf8", Format::Bf8}};
  for (const auto &test : cases) {
    std::string inst = test.inst, pair = "v_cvt_pk_f32_" + inst.substr(10);
    start(test.target,
          {{"byte0", vectorBody(inst + " v8, v2")},
           {"byte2", vectorBody(inst + "_sdwa v8, v2 src0_sel:BYTE_2")},
           {"word0", vectorBody(pair + " v[8:9], v2")},
           {"word1", vectorBody(pair + "_sdwa v[8:9], v2 src0_sel:WORD_1")}});
    auto agree = [&](u32 got, u32 raw) {
      double want = value(test.format, raw & 0xff);
      float x = asFloat(got);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(x)
                                   : static_cast<double>(x) == want)
          << test.target << " " << inst << " of " << raw << ": " << x;
    };
    for (u32 first = 0; first < 256; first += 64) {
      for (u32 l = 0; l < 64; ++l)
        P[0][l] = (first + l) | ((first + l) ^ 0x55u) << 8 |
                  ((first + l) ^ 0xffu) << 16 | ((first + l) ^ 0x0fu) << 24;
      for (const char *name : {"byte0", "byte2", "word0", "word1"}) {
        go(name);
        for (u32 l = 0; l < 64; ++l) {
          u32 lowAt =
              std::string(name) == "byte0" || std::string(name) == "word0" ? 0
                                                                           : 16;
          agree(static_cast<u32>(P[3][l]), static_cast<u32>(P[0][l]) >> lowAt);
          if (name[0] == 'w')
            agree(static_cast<u32>(P[3][l] >> 32),
                  static_cast<u32>(P[0][l]) >> (lowAt + 8));
        }
      }
    }
  }
}

TEST_F(SmallFloat, RoundingOverflowAndPlaces) {
  struct {
    const char *target, *type;
    Format format;
    u32 overflow; ///< what a number that is too large becomes
  } cases[] = {{"gfx942", "fp8", Format::Fp8Fnuz, 0x80},
               {"gfx942", "bf8", Format::Bf8Fnuz, 0x80},
               {"gfx950", "fp8", Format::Fp8, 0x7f},
               {"gfx950", "bf8", Format::Bf8, 0x7c}};
  std::mt19937 rng(3);
  for (const auto &test : cases) {
    std::string pack = "v_cvt_pk_" + std::string(test.type) + "_f32 v8, v2, v4";
    std::string random =
        "v_cvt_sr_" + std::string(test.type) + "_f32 v8, v2, v4";
    start(test.target,
          {{"low", vectorBody(pack)},
           {"high", vectorBody(pack + " op_sel:[0,0,1]")},
           {"neg", vectorBody("v_cvt_pk_" + std::string(test.type) +
                              "_f32 v8, -|v2|, v4")},
           {"saturate",
            vectorBody("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n  " +
                       pack)},
           {"random3", vectorBody(random + " op_sel:[0,0,1,1]")}});
    double most = largest(test.format);
    for (int l = 0; l < 64; ++l) {
      double x =
          std::ldexp(1.0 + (rng() % 4096) / 4096.0, int(rng() % 20) - 12);
      x = std::min(x, most) * (rng() & 1 ? 1 : -1);
      P[0][l] = asWord(static_cast<float>(x));
      P[1][l] = asWord(static_cast<float>(l == 0   ? most * 4
                                          : l == 1 ? 0.0
                                                   : x / 3));
      P[3][l] = 0x11223344;
    }
    auto a = [&](int l) {
      return static_cast<double>(asFloat(static_cast<u32>(P[0][l])));
    };
    auto b = [&](int l) {
      return static_cast<double>(asFloat(static_cast<u32>(P[1][l])));
    };
    auto code = [&](double x) { return nearest(test.format, x); };
    go("low");
    for (int l = 0; l < 64; ++l) {
      u32 want = code(a(l)) | (l == 0 ? test.overflow : code(b(l))) << 8;
      EXPECT_EQ(static_cast<u32>(P[3][l]), 0x11220000 | want)
          << test.target << test.type << " of " << a(l) << " and " << b(l);
      P[3][l] = 0x11223344;
    }
    go("high");
    for (int l = 1; l < 64; ++l) {
      EXPECT_EQ(static_cast<u32>(P[3][l]),
                0x3344 | (code(a(l)) | code(b(l)) << 8) << 16);
      P[3][l] = 0x11223344;
    }
    go("neg");
    for (int l = 1; l < 64; ++l)
      EXPECT_EQ(static_cast<u32>(P[3][l]) & 0xff, code(-std::fabs(a(l))));
    go("saturate");
    EXPECT_EQ((P[3][0] >> 8) & 0xff, code(most));
    // Stochastic: between the neighbours, up as often as the distance says.
    for (int l = 0; l < 64; ++l) {
      P[0][l] =
          asWord(1.0f + 0.25f * std::ldexp(1.0f, -mantissaOf(test.format)));
      P[1][l] = (u64(l) << 26) | 0x3ffffff;
      P[3][l] = 0x11223344;
    }
    go("random3");
    int up = 0;
    for (int l = 0; l < 64; ++l) {
      EXPECT_EQ(P[3][l] & 0xffffff, 0x223344u);
      u32 got = static_cast<u32>(P[3][l]) >> 24;
      EXPECT_TRUE(got == code(1.0) || got == code(1.0) + 1) << got;
      up += got == code(1.0) + 1;
    }
    EXPECT_EQ(up, 16); // a quarter of the seeds
  }
}

TEST_F(SmallFloat, ScaledConversions) {
  start(
      "gfx950",
      {{"to8",
        vectorBody(
            "v_cvt_scalef32_pk_fp8_f32 v8, v2, v3, v4 op_sel:[0,0,0,1]")},
       {"to8h", vectorBody("v_cvt_scalef32_pk_bf8_f16 v8, v6, v4")},
       {"to4",
        vectorBody(
            "v_cvt_scalef32_pk_fp4_f32 v8, v2, v3, v4 op_sel:[0,0,1,0]")},
       {"to4b",
        vectorBody("v_cvt_scalef32_pk_fp4_bf16 v8, v7, v4 op_sel:[0,0,0,1]")},
       {"sr8",
        vectorBody(
            "v_cvt_scalef32_sr_fp8_f32 v8, v2, v5, v4 op_sel:[0,0,1,0]")},
       {"from8",
        vectorBody("v_cvt_scalef32_f32_fp8 v8, v5, v4 op_sel:[0,1,0]")},
       {"from8h",
        vectorBody("v_cvt_scalef32_f16_bf8 v8, v5, v4 op_sel:[1,0,1]")},
       {"pair8",
        vectorBody("v_cvt_scalef32_pk_f32_fp8 v[8:9], v5, v4 op_sel:[1,0,0]")},
       {"pair4",
        vectorBody("v_cvt_scalef32_pk_f32_fp4 v[8:9], v5, v4 op_sel:[1,1,0]")},
       {"pair4b", vectorBody("v_cvt_scalef32_pk_bf16_fp4 v8, v5, v4")}});
  // v2, v3: numbers; v4: the scale; v5: bytes; v6: halves; v7: bf16.
  std::mt19937 rng(8);
  const u32 old = 0xa1b2c3d4;
  auto half = [](float x) {
    _Float16 h = static_cast<_Float16>(x);
    uint16_t raw;
    std::memcpy(&raw, &h, 2);
    return u32(raw);
  };
  double x[64], y[64], scale[64];
  u32 bytes[64];
  auto fill = [&] {
    for (int l = 0; l < 64; ++l) {
      scale[l] = std::ldexp(1.0, int(rng() % 9) - 4);
      // Numbers that all formats of the test, bf16 and fp16 hold exactly.
      x[l] = (int(rng() % 13) - 6) * 0.5 * scale[l];
      y[l] = (int(rng() % 9) - 4) * 0.5 * scale[l];
      bytes[l] = rng() & 0x3f3f3f3f;
      P[0][l] = asWord(float(x[l])) | u64(asWord(float(y[l]))) << 32;
      // The mantissa of a scale does not count.
      P[1][l] = asWord(float(scale[l] * 1.5)) | u64(bytes[l]) << 32;
      P[2][l] =
          half(float(x[l])) | half(float(y[l])) << 16 |
          u64(asWord(float(x[l])) >> 16 | (asWord(float(y[l])) & 0xffff0000))
              << 32;
      P[3][l] = old;
    }
  };
  auto c8 = [&](double v) { return nearest(Format::Fp8, v); };
  auto each = [&](const char *name, auto want) {
    fill();
    go(name);
    for (int l = 0; l < 64; ++l)
      EXPECT_EQ(P[3][l], want(l))
          << name << " lane " << l << " x " << x[l] << " scale " << scale[l]
          << " bytes " << bytes[l];
  };
  each("to8", [&](int l) {
    return u64((old & 0xffff) | c8(x[l] / scale[l]) << 16 |
               c8(y[l] / scale[l]) << 24);
  });
  each("to8h", [&](int l) {
    return u64((old & 0xffff0000) | nearest(Format::Bf8, x[l] / scale[l]) |
               nearest(Format::Bf8, y[l] / scale[l]) << 8);
  });
  each("to4", [&](int l) {
    return u64((old & 0xffff00ff) | (nearest(Format::Fp4, x[l] / scale[l]) |
                                     nearest(Format::Fp4, y[l] / scale[l]) << 4)
                                        << 8);
  });
  each("to4b", [&](int l) {
    return u64((old & 0xff00ffff) | (nearest(Format::Fp4, x[l] / scale[l]) |
                                     nearest(Format::Fp4, y[l] / scale[l]) << 4)
                                        << 16);
  });
  each("sr8", [&](int l) { // exact numbers are not changed by random bits
    return u64((old & 0xffff00ff) | c8(x[l] / scale[l]) << 8);
  });
  each("from8", [&](int l) {
    return u64(
        asWord(float(value(Format::Fp8, (bytes[l] >> 16) & 0xff) * scale[l])));
  });
  each("from8h", [&](int l) {
    float v = float(value(Format::Bf8, (bytes[l] >> 8) & 0xff) * scale[l]);
    return u64((old & 0xffff) | half(v) << 16);
  });
  each("pair8", [&](int l) {
    return asWord(
               float(value(Format::Fp8, (bytes[l] >> 16) & 0xff) * scale[l])) |
           u64(asWord(float(value(Format::Fp8, bytes[l] >> 24) * scale[l])))
               << 32;
  });
  each("pair4", [&](int l) {
    return asWord(float(value(Format::Fp4, (bytes[l] >> 24) & 15) * scale[l])) |
           u64(asWord(float(value(Format::Fp4, bytes[l] >> 28) * scale[l])))
               << 32;
  });
  each("pair4b", [&](int l) {
    return u64(
        asWord(float(value(Format::Fp4, bytes[l] & 15) * scale[l])) >> 16 |
        (asWord(float(value(Format::Fp4, (bytes[l] >> 4) & 15) * scale[l])) &
         0xffff0000));
  });
}

TEST_F(SmallFloat, ThirtyTwoOfSixBits) {
  // 2xpk16 takes its numbers from two operands in turns; pk32 gives them back.
  std::string convert;
  for (int i = 0; i < 32; ++i) {
    int n = i < 16 ? i : -(i - 16);
    convert += "  v_mov_b32 v" + std::to_string(32 + i) + ", " +
               std::to_string(n) + "\n  v_cvt_f32_i32 v" +
               std::to_string(32 + i) + ", v" + std::to_string(32 + i) +
               "\n  v_mul_f32 v" + std::to_string(32 + i) + ", v2, v" +
               std::to_string(32 + i) + "\n";
  }
  std::string body =
      convert +
      "  v_cvt_scalef32_2xpk16_fp6_f32 v[64:69], v[32:47], v[48:63], v4\n"
      "  v_cvt_scalef32_pk32_f32_fp6 v[80:111], v[64:69], v4\n";
  auto pick = [&](int element) {
    return vectorBody(body + "  v_mov_b32 v8, v" +
                      std::to_string(80 + element) + "\n  v_mov_b32 v9, v" +
                      std::to_string(64 + element % 6));
  };
  std::vector<AsmKernel> kernels;
  for (int e = 0; e < 32; ++e)
    kernels.push_back({"e" + std::to_string(e), pick(e)});
  start("gfx950", kernels);
  for (int e = 0; e < 32; ++e) {
    for (int l = 0; l < 64; ++l) {
      P[0][l] = asWord(0.5f);
      P[1][l] = asWord(1.0f);
    }
    go("e" + std::to_string(e));
    double x = e % 2 ? -(e / 2) * 0.5 : e / 2 * 0.5;
    double want = value(Format::Fp6, nearest(Format::Fp6, x));
    EXPECT_EQ(static_cast<double>(asFloat(static_cast<u32>(P[3][5]))), want)
        << e;
  }
}

//===-- Matrices ----------------------------------------------------------===//

class Matrices : public SmallFloat {
protected:
  /// Words of a lane: A in v[2:9], B in v[10:17], index or scales in v18 and
  /// v19, D in v[32:47].
  static std::string body(const std::string &inst) {
    std::string text = "  s_load_dwordx4 s[8:11], s[0:1], 0x0\n"
                       "  v_and_b32 v0, 0x3ff, v0\n"
                       "  v_mul_u32_u24 v1, 0x60, v0\n"
                       "  s_waitcnt lgkmcnt(0)\n";
    for (int i = 0; i < 24; i += 4)
      text += "  global_load_dwordx4 v[" + std::to_string(2 + i) + ":" +
              std::to_string(5 + i) +
              "], v1, s[8:9] offset:" + std::to_string(4 * i) + "\n";
    text += "  v_lshlrev_b32 v1, 6, v0\n";
    for (const char *op : {"load", "store"}) {
      if (*op == 's')
        text += "  s_waitcnt vmcnt(0)\n  " + inst + "\n";
      for (int i = 0; i < 16; i += 4) {
        std::string regs =
            "v[" + std::to_string(32 + i) + ":" + std::to_string(35 + i) + "]";
        text +=
            *op == 'l'
                ? "  global_load_dwordx4 " + regs + ", v1, s[10:11] offset:"
                : "  global_store_dwordx4 v1, " + regs + ", s[10:11] offset:";
        text += std::to_string(4 * i) + "\n";
      }
    }
    return text;
  }
  /// A kernel for each instruction, named by it.
  void startMatrices(const std::string &target,
                     const std::vector<std::string> &instructions) {
    use(target);
    Names = instructions;
    std::vector<AsmKernel> kernels;
    for (const std::string &inst : instructions)
      kernels.push_back({"k" + std::to_string(kernels.size()), body(inst)});
    load(assemble(asmModule(kernels, 64, target), target));
    In = buffer<u32>(64 * 24);
    D = buffer<u32>(64 * 16);
  }
  /// Puts \p bits bits at element \p e of the operand that starts at \p first.
  void put(int lane, int first, int e, int bits, u32 raw) {
    int at = e * bits;
    u32 *word = In + 24 * lane + first + at / 32;
    u64 both = word[0] | u64(word[1]) << 32;
    u64 field = ((u64(1) << bits) - 1) << (at % 32);
    both = (both & ~field) | u64(raw) << (at % 32);
    word[0] = static_cast<u32>(both);
    if (at % 32 + bits > 32)
      word[1] = static_cast<u32>(both >> 32);
  }
  void multiply(const std::string &inst) {
    auto at = std::find(Names.begin(), Names.end(), inst) - Names.begin();
    Status status = run("k" + std::to_string(at), 1, 64, Args().add(In).add(D));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  /// D[i][j]: groups of four rows go to the lane groups in turn.
  double d(int m, int i, int j) const {
    int groups = 64 / m;
    int lane = j + m * ((i / 4) % groups), reg = 4 * (i / 4 / groups) + i % 4;
    return static_cast<double>(asFloat(D[16 * lane + reg]));
  }
  u32 *In = nullptr, *D = nullptr;
  std::vector<std::string> Names;
};

/// Lane group and element of k in an operand whose lane groups hold runs of k
/// in turns.
void placeOf(int m, int k, int run, int &group, int &element) {
  int groups = 64 / m;
  group = k / run % groups;
  element = k / run / groups * run + k % run;
}

TEST_F(Matrices, DenseFp8) {
  struct {
    const char *target;
    Format fp8, bf8;
  } chips[] = {{"gfx942", Format::Fp8Fnuz, Format::Bf8Fnuz},
               {"gfx950", Format::Fp8, Format::Bf8}};
  std::mt19937 rng(4);
  auto instruction = [](int m, int types) {
    std::string size = std::to_string(m), d = m == 16 ? "v[32:35]" : "v[32:47]";
    return "v_mfma_f32_" + size + "x" + size + "x" + std::to_string(512 / m) +
           (types & 1 ? "_bf8" : "_fp8") + (types & 2 ? "_bf8 " : "_fp8 ") + d +
           ", v[2:3], v[10:11], " + d;
  };
  std::vector<std::string> all;
  for (int m : {16, 32})
    for (int types = 0; types < 4; ++types)
      all.push_back(instruction(m, types));
  for (const auto &chip : chips) {
    startMatrices(chip.target, all);
    for (int m : {16, 32})
      for (int types = 0; types < 4; ++types) {
        int k = 512 / m;
        Format fa = types & 1 ? chip.bf8 : chip.fp8,
               fb = types & 2 ? chip.bf8 : chip.fp8;
        std::string name = instruction(m, types);
        std::memset(In, 0, 64 * 24 * 4);
        std::vector<double> a(m * k), b(m * k);
        for (int i = 0; i < m; ++i)
          for (int n = 0; n < k; ++n) {
            a[i * k + n] = int(rng() % 9) - 4;
            b[i * k + n] = int(rng() % 9) - 4;
            int lane = i + m * (n / 8);
            put(lane, 0, n % 8, 8, nearest(fa, a[i * k + n]));
            put(lane, 8, n % 8, 8, nearest(fb, b[i * k + n]));
          }
        for (int w = 0; w < 64 * 16; ++w)
          D[w] = asWord(0.5f);
        multiply(name);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < m; ++j) {
            double want = 0.5;
            for (int n = 0; n < k; ++n)
              want += a[i * k + n] * b[j * k + n];
            ASSERT_EQ(d(m, i, j), want)
                << chip.target << " " << name << " " << i << " " << j;
          }
      }
  }
}

TEST_F(Matrices, F8F6F4WithAndWithoutScales) {
  const Format formats[] = {Format::Fp8, Format::Bf8, Format::Fp6, Format::Bf6,
                            Format::Fp4};
  std::mt19937 rng(9);
  auto regs = [](int first, int n) {
    return "v[" + std::to_string(first) + ":" + std::to_string(first + n - 1) +
           "]";
  };
  // Byte 2 of A's scale register, byte 1 of B's.
  auto instruction = [&](int m, int fa, int fb, int scaled) {
    std::string d = m == 16 ? "v[32:35]" : "v[32:47]";
    return std::string("v_mfma_") + (scaled ? "scale_" : "") +
           (m == 16 ? "f32_16x16x128_f8f6f4 " : "f32_32x32x64_f8f6f4 ") + d +
           ", " + regs(2, bitsOf(formats[fa])) + ", " +
           regs(10, bitsOf(formats[fb])) + ", " + d +
           (scaled ? ", v18, v19 op_sel:[0,1,0] op_sel_hi:[1,0,0]" : "") +
           " cbsz:" + std::to_string(fa) + " blgp:" + std::to_string(fb);
  };
  std::vector<std::string> all;
  for (int m : {16, 32})
    for (int fa = 0; fa < 5; ++fa)
      for (int fb = 0; fb < 5; ++fb)
        for (int scaled = 0; scaled < 2; ++scaled)
          all.push_back(instruction(m, fa, fb, scaled));
  startMatrices("gfx950", all);
  for (int m : {16, 32})
    for (int fa = 0; fa < 5; ++fa)
      for (int fb = 0; fb < 5; ++fb)
        for (int scaled = 0; scaled < 2; ++scaled) {
          int k = m == 16 ? 128 : 64;
          int bitsA = bitsOf(formats[fa]), bitsB = bitsOf(formats[fb]);
          std::string inst = instruction(m, fa, fb, scaled);
          std::memset(In, 0, 64 * 24 * 4);
          std::vector<double> a(m * k), b(m * k), sa(m * k / 32),
              sb(m * k / 32);
          for (int i = 0; i < m; ++i) {
            for (int n = 0; n < k; ++n) {
              a[i * k + n] = (int(rng() % 7) - 3) * 0.5;
              b[i * k + n] = (int(rng() % 7) - 3) * 0.5;
              int group, e;
              placeOf(m, n, bitsA == 8 ? 16 : 32, group, e);
              put(i + m * group, 0, e, bitsA,
                  nearest(formats[fa], a[i * k + n]));
              placeOf(m, n, bitsB == 8 ? 16 : 32, group, e);
              put(i + m * group, 8, e, bitsB,
                  nearest(formats[fb], b[i * k + n]));
            }
            for (int block = 0; block < k / 32; ++block) {
              int ea = int(rng() % 5) - 2, eb = int(rng() % 5) - 2;
              sa[i * (k / 32) + block] = scaled ? std::ldexp(1.0, ea) : 1;
              sb[i * (k / 32) + block] = scaled ? std::ldexp(1.0, eb) : 1;
              In[24 * (i + m * block) + 16] = 0x11000033 | u32(127 + ea) << 16;
              In[24 * (i + m * block) + 17] = 0x11220033 | u32(127 + eb) << 8;
            }
          }
          for (int w = 0; w < 64 * 16; ++w)
            D[w] = asWord(0.25f);
          multiply(inst);
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) {
              double want = 0.25;
              for (int n = 0; n < k; ++n)
                want += a[i * k + n] * b[j * k + n] *
                        sa[i * (k / 32) + n / 32] * sb[j * (k / 32) + n / 32];
              ASSERT_EQ(d(m, i, j), want) << inst << " " << i << " " << j;
            }
        }
}

TEST_F(Matrices, Sparse) {
  struct {
    const char *target, *mnemonic;
    int m, k, bits; ///< bits: 16 fp16, 17 bf16, 8 fp8, 7 int8
  } cases[] = {{"gfx942", "v_smfmac_f32_16x16x32_f16", 16, 32, 16},
               {"gfx942", "v_smfmac_f32_32x32x16_bf16", 32, 16, 17},
               {"gfx942", "v_smfmac_i32_16x16x64_i8", 16, 64, 7},
               {"gfx942", "v_smfmac_f32_32x32x32_fp8_fp8", 32, 32, 8},
               {"gfx950", "v_smfmac_f32_16x16x64_fp8_fp8", 16, 64, 9},
               {"gfx950", "v_smfmac_f32_16x16x64_f16", 16, 64, 16},
               {"gfx950", "v_smfmac_f32_32x32x32_bf16", 32, 32, 17},
               {"gfx950", "v_smfmac_i32_32x32x64_i8", 32, 64, 7},
               {"gfx950", "v_smfmac_f32_16x16x128_fp8_fp8", 16, 128, 9}};
  std::mt19937 rng(12);
  for (const auto &test : cases)
    for (int set = 0; set < 4; ++set) {
      int m = test.m, k = test.k, bits = test.bits >= 16 ? 16 : 8,
          groups = 64 / m;
      int perLaneA = k / 2 / groups, indexBits = 2 * perLaneA;
      if (set * indexBits >= 32)
        continue;
      int wordsA = perLaneA * bits / 32, wordsB = 2 * wordsA;
      std::string dRegs = m == 16 ? "v[32:35]" : "v[32:47]";
      std::string inst = std::string(test.mnemonic) + " " + dRegs +
                         ", v[2:" + std::to_string(1 + wordsA) +
                         "], v[10:" + std::to_string(9 + wordsB) + "], v18" +
                         (set ? " abid:" + std::to_string(set) : "");
      startMatrices(test.target, {inst});
      std::memset(In, 0, 64 * 24 * 4);
      auto raw = [&](int x) -> u32 {
        _Float16 h = static_cast<_Float16>(x);
        uint16_t bitsOfHalf;
        std::memcpy(&bitsOfHalf, &h, 2);
        switch (test.bits) {
        case 16:
          return bitsOfHalf;
        case 17:
          return asWord(float(x)) >> 16;
        case 7:
          return static_cast<uint8_t>(x);
        case 8:
          return nearest(Format::Fp8Fnuz, x);
        default:
          return nearest(Format::Fp8, x);
        }
      };
      // A row by row: two of every four, in ascending places.
      std::vector<int> a(m * k, 0), b(m * k);
      for (int i = 0; i < m; ++i)
        for (int quad = 0; quad < k / 4; ++quad) {
          int first = int(rng() % 3),
              second = first + 1 + int(rng() % (3 - first));
          int at[2] = {first, second};
          int lane = i + m * (quad / (perLaneA / 2)),
              e = quad % (perLaneA / 2) * 2;
          for (int n = 0; n < 2; ++n) {
            int x = int(rng() % 9) - 4;
            a[i * k + 4 * quad + at[n]] = x;
            put(lane, 0, e + n, bits, raw(x));
            put(lane, 16, 0, 32,
                (In[24 * lane + 16] &
                 ~(3u << (set * indexBits + 2 * (e + n)))) |
                    u32(at[n]) << (set * indexBits + 2 * (e + n)));
          }
        }
      int run = std::min(k / groups, 128 / bits);
      for (int j = 0; j < m; ++j)
        for (int n = 0; n < k; ++n) {
          b[j * k + n] = int(rng() % 9) - 4;
          int group, e;
          placeOf(m, n, run, group, e);
          put(j + m * group, 8, e, bits, raw(b[j * k + n]));
        }
      std::memset(D, 0, 64 * 16 * 4);
      multiply(inst);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) {
          int want = 0;
          for (int n = 0; n < k; ++n)
            want += a[i * k + n] * b[j * k + n];
          double got = d(m, i, j);
          if (test.bits == 7) {
            int lane = j + m * ((i / 4) % groups),
                reg = 4 * (i / 4 / groups) + i % 4;
            got = static_cast<int>(D[16 * lane + reg]);
          }
          ASSERT_EQ(got, want) << inst << " " << i << " " << j;
        }
    }
}

TEST_F(SmallFloat, EachElementHasARandomNumber) {
  // 1.25 in fp4 and 1.0625 in fp6 lie in the middle of two numbers: the highest
  // bit of the random number decides.
  start("gfx950",
        {{"fp4", vectorBody("v_cvt_scalef32_sr_pk_fp4_f32 v8, v[2:3], v4, v6")},
         {"fp6", vectorBody("v_mov_b32 v12, 0x3f883f88\n" +
                            [] {
                              std::string text;
                              for (int i = 13; i < 28; ++i)
                                text += "  v_mov_b32 v" + std::to_string(i) +
                                        ", v12\n";
                              return text;
                            }() +
                            "  v_cvt_scalef32_sr_pk32_fp6_bf16 v[32:37], "
                            "v[12:27], v4, v6\n  v_mov_b32 v8, v32\n  "
                            "v_mov_b32 v9, v33")}});
  for (u32 l = 0; l < 64; ++l) {
    P[0][l] = asWord(1.25f) * 0x100000001u;
    P[1][l] = 0x9e3779b9u * (l + 1);
    P[2][l] = asWord(1.0f);
    P[3][l] = 0;
  }
  go("fp4");
  auto bitsOfSeed = [](u32 x, int e) {
    for (; e; --e)
      x = (x << 1) ^ (x >> 31 ? 0xc5 : 0);
    return x >> 31;
  };
  for (u32 l = 0; l < 64; ++l) {
    u32 seed = static_cast<u32>(P[1][l]);
    EXPECT_EQ(P[3][l] & 0xff,
              (2 + bitsOfSeed(seed, 0)) | (2 + bitsOfSeed(seed, 1)) << 4);
  }
  go("fp6");
  for (u32 l = 0; l < 64; ++l) {
    u32 seed = static_cast<u32>(P[1][l]);
    for (int e = 0; e < 10; ++e)
      EXPECT_EQ((P[3][l] >> (6 * e)) & 63, 8 + bitsOfSeed(seed, e)) << e;
  }
}

} // namespace
