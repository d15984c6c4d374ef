//===- WmmaTest.cpp - Matrix instructions of RDNA -------------------------===//
//
// Every WMMA and SWMMAC instruction in waves of 32 and 64 lanes: matrices are
// placed in registers by formulas from AMD's matrix instruction calculator that
// go from an element to its register, and every element of D is compared with
// the host.
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

struct Place {
  int reg, bit, lane;
};

/// Dense operands: row (or column) i of A (or B), element k.
Place densePlace(bool gfx12, int lanes, int bits, int depth, int i, int k) {
  int perWord = 32 / bits;
  if (!gfx12)
    return {k / perWord, k % perWord * bits, i};
  if (bits == 16)
    return lanes == 32 ? Place{2 * (k / 8) + k / 2 % 2, 16 * (k % 2),
                               16 * (k / 4 % 2) + i}
                       : Place{k / 2 % 2, 16 * (k % 2),
                               32 * (k / 8 % 2) + 16 * (k / 4 % 2) + i};
  if (bits == 8)
    return lanes == 32
               ? Place{k / 4 % 2, 8 * (k % 4), 16 * (k / 8) + i}
               : Place{0, 8 * (k % 4), 32 * (k / 4 % 2) + 16 * (k / 8) + i};
  if (depth == 16)
    return {0, 4 * (k % 8), 16 * (k / 8) + i};
  return lanes == 32
             ? Place{k / 8 % 2, 4 * (k % 8), 16 * (k / 16) + i}
             : Place{0, 4 * (k % 8), 32 * (k / 8 % 2) + 16 * (k / 16) + i};
}

/// B of sparse instructions.
Place wideBPlace(int lanes, int bits, int depth, int j, int k) {
  bool small = lanes == 32;
  if (bits == 16)
    return small ? Place{4 * (k / 16) + k / 2 % 4, 16 * (k % 2),
                         16 * (k / 8 % 2) + j}
                 : Place{k / 2 % 4, 16 * (k % 2), 16 * (k / 8) + j};
  if (bits == 8)
    return small ? Place{k / 4 % 4, 8 * (k % 4), 16 * (k / 16) + j}
                 : Place{k / 4 % 2, 8 * (k % 4),
                         32 * (k / 8 % 2) + 16 * (k / 16) + j};
  if (depth == 32)
    return small ? Place{k / 8 % 2, 4 * (k % 8), 16 * (k / 16) + j}
                 : Place{0, 4 * (k % 8), 32 * (k / 8 % 2) + 16 * (k / 16) + j};
  return small ? Place{k / 8 % 4, 4 * (k % 8), 16 * (k / 32) + j}
               : Place{k / 8 % 2, 4 * (k % 8),
                       32 * (k / 16 % 2) + 16 * (k / 32) + j};
}

/// The pair that a sparse A stores for k..k+3, and the place of its index.
Place pairPlace(int lanes, int bits, int depth, int i, int k) {
  bool small = lanes == 32;
  if (bits == 16)
    return small ? Place{2 * (k / 16) + k / 4 % 2, 0, 16 * (k / 8 % 2) + i}
                 : Place{k / 4 % 2, 0, 16 * (k / 8) + i};
  if (bits == 8)
    return small ? Place{k / 8 % 2, 16 * (k / 4 % 2), 16 * (k / 16) + i}
                 : Place{0, 16 * (k / 4 % 2),
                         32 * (k / 8 % 2) + 16 * (k / 16) + i};
  if (depth == 32)
    return {0, 8 * (k / 4 % 4), 16 * (k / 16) + i};
  return small
             ? Place{k / 16 % 2, 8 * (k / 4 % 4), 16 * (k / 32) + i}
             : Place{0, 8 * (k / 4 % 4), 32 * (k / 16 % 2) + 16 * (k / 32) + i};
}
Place indexPlace(int lanes, int bits, int depth, int i, int k) {
  bool small = lanes == 32;
  if (bits == 16)
    return small
               ? Place{0, 8 * (k / 16) + 4 * (k / 4 % 2), 16 * (k / 8 % 2) + i}
               : Place{0, 4 * (k / 4 % 2), 16 * (k / 8) + i};
  if (bits == 8)
    return small ? Place{0, 4 * (k / 4 % 4), 16 * (k / 16) + i}
                 : Place{0, 4 * (k / 4 % 2),
                         32 * (k / 8 % 2) + 16 * (k / 16) + i};
  if (depth == 32)
    return {0, 4 * (k / 4 % 4), 16 * (k / 16) + i};
  return small
             ? Place{0, 4 * (k / 4 % 8), 16 * (k / 32) + i}
             : Place{0, 4 * (k / 4 % 4), 32 * (k / 16 % 2) + 16 * (k / 32) + i};
}

Place resultPlace(bool gfx12, int lanes, int bits, int i, int j) {
  if (!gfx12)
    return {i / (lanes / 16), 0, 16 * i % lanes + j};
  int lane =
      lanes == 32 ? 16 * (i / 8) + j : 32 * (i / 4 % 2) + 16 * (i / 8) + j;
  if (bits == 16)
    return {i / 2 % (lanes == 32 ? 4 : 2), 16 * (i % 2), lane};
  return {i % (lanes == 32 ? 8 : 4), 0, lane};
}

//===-- Element types -----------------------------------------------------===//

uint32_t encode(const std::string &type, double x) {
  if (type == "f32" || type == "bf16") {
    uint32_t u = asWord(static_cast<float>(x));
    return type == "f32" ? u : u >> 16; // exact by choice
  }
  if (type == "f16")
    return toHalf(x);
  if (type == "fp8" || type == "bf8") { // small integers and halves
    int mant = type == "fp8" ? 3 : 2, bias = type == "fp8" ? 7 : 15;
    if (x == 0)
      return 0;
    int e;
    double m = std::frexp(std::fabs(x), &e); // [1/2, 1)
    auto fraction = static_cast<uint32_t>((2 * m - 1) * (1 << mant));
    return (x < 0 ? 0x80u : 0) | static_cast<uint32_t>(e - 1 + bias) << mant |
           fraction;
  }
  return static_cast<uint32_t>(static_cast<int32_t>(x)); // integers
}
double decode(const std::string &type, uint32_t u) {
  if (type == "i32")
    return static_cast<int32_t>(u);
  if (type == "f16")
    return fromHalf(u);
  return asFloat(type == "bf16" ? u << 16 : u);
}
int bitsOf(const std::string &type) {
  if (type == "f32" || type == "i32")
    return 32;
  if (type == "f16" || type == "bf16")
    return 16;
  return type == "iu4" ? 4 : 8;
}

struct Case {
  const char *mnemonic;
  const char *a, *b, *d;
  int depth;
  bool sparse;
  bool gfx11, gfx12;
};
const Case kCases[] = {
    {"v_wmma_f32_16x16x16_f16", "f16", "f16", "f32", 16, false, true, true},
    {"v_wmma_f32_16x16x16_bf16", "bf16", "bf16", "f32", 16, false, true, true},
    {"v_wmma_f16_16x16x16_f16", "f16", "f16", "f16", 16, false, true, true},
    {"v_wmma_bf16_16x16x16_bf16", "bf16", "bf16", "bf16", 16, false, true,
     true},
    {"v_wmma_i32_16x16x16_iu8", "iu8", "iu8", "i32", 16, false, true, true},
    {"v_wmma_i32_16x16x16_iu4", "iu4", "iu4", "i32", 16, false, true, true},
    {"v_wmma_i32_16x16x32_iu4", "iu4", "iu4", "i32", 32, false, false, true},
    {"v_wmma_f32_16x16x16_fp8_fp8", "fp8", "fp8", "f32", 16, false, false,
     true},
    {"v_wmma_f32_16x16x16_fp8_bf8", "fp8", "bf8", "f32", 16, false, false,
     true},
    {"v_wmma_f32_16x16x16_bf8_fp8", "bf8", "fp8", "f32", 16, false, false,
     true},
    {"v_wmma_f32_16x16x16_bf8_bf8", "bf8", "bf8", "f32", 16, false, false,
     true},
    {"v_swmmac_f32_16x16x32_f16", "f16", "f16", "f32", 32, true, false, true},
    {"v_swmmac_f32_16x16x32_bf16", "bf16", "bf16", "f32", 32, true, false,
     true},
    {"v_swmmac_f16_16x16x32_f16", "f16", "f16", "f16", 32, true, false, true},
    {"v_swmmac_bf16_16x16x32_bf16", "bf16", "bf16", "bf16", 32, true, false,
     true},
    {"v_swmmac_i32_16x16x32_iu8", "iu8", "iu8", "i32", 32, true, false, true},
    {"v_swmmac_i32_16x16x32_iu4", "iu4", "iu4", "i32", 32, true, false, true},
    {"v_swmmac_i32_16x16x64_iu4", "iu4", "iu4", "i32", 64, true, false, true},
    {"v_swmmac_f32_16x16x32_fp8_fp8", "fp8", "fp8", "f32", 32, true, false,
     true},
    {"v_swmmac_f32_16x16x32_fp8_bf8", "fp8", "bf8", "f32", 32, true, false,
     true},
    {"v_swmmac_f32_16x16x32_bf8_fp8", "bf8", "fp8", "f32", 32, true, false,
     true},
    {"v_swmmac_f32_16x16x32_bf8_bf8", "bf8", "bf8", "f32", 32, true, false,
     true},
};

/// The registers of one operand: eight of 64 lanes.
using Words = std::vector<uint32_t>;
void put(Words &words, Place p, int bits, uint32_t value) {
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  uint32_t &word = words[static_cast<size_t>(p.reg * 64 + p.lane)];
  word = (word & ~(mask << p.bit)) | (value & mask) << p.bit;
}

class Wmma : public KernelTest,
             public ::testing::WithParamInterface<RdnaTarget> {
protected:
  void SetUp() override {
    ASSERT_TRUE(Device::create(GetParam().chip, Dev).ok());
  }
  int lanes() const { return static_cast<int>(GetParam().lanes); }

  static std::string registers(int first, int count) {
    return count == 1 ? "v" + std::to_string(first)
                      : "v[" + std::to_string(first) + ":" +
                            std::to_string(first + count - 1) + "]";
  }
  int registersOf(const char *type, int depth) const {
    int count = depth * bitsOf(type) / 32;
    if (GetParam().gfx12())
      count = std::max(1, count * 16 / lanes());
    return count;
  }
  int registersOfD(const Case &c) const {
    int count = 256 / lanes();
    return GetParam().gfx12() && bitsOf(c.d) == 16 ? count / 2 : count;
  }
  std::string text(const Case &c, const std::string &modifiers) const {
    std::string d = registers(24, registersOfD(c));
    std::string a =
        registers(8, registersOf(c.a, c.sparse ? c.depth / 2 : c.depth));
    std::string b = registers(16, registersOf(c.b, c.depth));
    return std::string(c.mnemonic) + " " + d + ", " + a + ", " + b + ", " +
           (c.sparse ? "v32" : d) + " " + modifiers;
  }

  struct Variant {
    std::string modifiers;
    bool signedA = false, signedB = false, clamp = false;
    bool high = false; ///< GFX11: the upper halves of a 16-bit D
    int negateA = 0;   ///< bit 0: even k, bit 1: odd
    bool negateC = false, absC = false;
    int indexKey = 0;
  };

  void check(const Case &c, const std::string &kernel, const Variant &v);
};

void Wmma::check(const Case &c, const std::string &kernel, const Variant &v) {
  bool gfx12 = GetParam().gfx12(), integer = std::string(c.d) == "i32";
  int n = lanes(), bitsA = bitsOf(c.a), bitsB = bitsOf(c.b), depth = c.depth;
  std::mt19937 random(static_cast<unsigned>(depth + bitsA));
  auto number = [&](const char *type, bool isSigned) -> double {
    if (!integer)
      return static_cast<int>(random() % 7) - 3;
    int span = 1 << bitsOf(type);
    return static_cast<int>(random() % static_cast<unsigned>(span)) -
           (isSigned ? span / 2 : 0);
  };
  std::vector<double> a(16 * 64), b(64 * 16), cc(256);
  Words wa(8 * 64, 0x7ff77ff7), wb = wa, wc = wa, wi = wa;
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < depth; k += c.sparse ? 4 : 1) {
      if (!c.sparse) {
        double x = number(c.a, v.signedA);
        a[static_cast<size_t>(i * 64 + k)] = x;
        Place p = densePlace(gfx12, n, bitsA, depth, i, k);
        // GFX11: each group of 16 lanes holds the same.
        for (int lane = p.lane; lane < (gfx12 ? p.lane + 1 : n); lane += 16)
          put(wa, {p.reg, p.bit, lane}, bitsA, encode(c.a, x));
        continue;
      }
      int first = static_cast<int>(random() % 3);
      int second =
          first + 1 +
          static_cast<int>(random() % static_cast<unsigned>(3 - first));
      double x = number(c.a, v.signedA), y = number(c.a, v.signedA);
      a[static_cast<size_t>(i * 64 + k + first)] = x;
      a[static_cast<size_t>(i * 64 + k + second)] = y;
      Place p = pairPlace(n, bitsA, depth, i, k);
      put(wa, p, bitsA, encode(c.a, x));
      put(wa, {p.reg, p.bit + bitsA, p.lane}, bitsA, encode(c.a, y));
      Place q = indexPlace(n, bitsA, depth, i, k);
      int set = depth / 4 * 4 / (bitsA == 4 && depth == 32 ? 2 : n / 16);
      put(wi, {0, q.bit + v.indexKey * set, q.lane}, 4,
          static_cast<uint32_t>(first | second << 2));
    }
    for (int k = 0; k < depth; ++k) {
      double x = number(c.b, v.signedB);
      b[static_cast<size_t>(k * 16 + i)] = x;
      Place p = c.sparse ? wideBPlace(n, bitsB, depth, i, k)
                         : densePlace(gfx12, n, bitsB, depth, i, k);
      for (int lane = p.lane; lane < (gfx12 ? p.lane + 1 : n); lane += 16)
        put(wb, {p.reg, p.bit, lane}, bitsB, encode(c.b, x));
    }
    for (int j = 0; j < 16; ++j) {
      double x = static_cast<int>(random() % 33) - 16;
      if (v.clamp)
        x = i % 2 ? 2147483647.0 - j : -2147483648.0 + j;
      cc[static_cast<size_t>(i * 16 + j)] = x;
      Place p = resultPlace(gfx12, n, bitsOf(c.d), i, j);
      put(wc, {p.reg, p.bit + (v.high ? 16 : 0), p.lane}, bitsOf(c.d),
          encode(c.d, x));
    }
  }
  uint32_t *pa = buffer(wa), *pb = buffer(wb), *pc = buffer(wc),
           *pi = buffer(wi);
  uint32_t *out = buffer<uint32_t>(8 * 64);
  Status status = run(kernel, 1, GetParam().lanes,
                      Args().add(pa).add(pb).add(pc).add(out).add(pi));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      double sum = cc[static_cast<size_t>(i * 16 + j)];
      sum = v.absC ? std::fabs(sum) : sum;
      sum = v.negateC ? -sum : sum;
      for (int k = 0; k < depth; ++k) {
        // With a sparse A, signs go by the place in the stored pair.
        double x = a[static_cast<size_t>(i * 64 + k)];
        if (v.negateA >> (k & 1) & 1)
          x = -x;
        sum += x * b[static_cast<size_t>(k * 16 + j)];
      }
      if (v.clamp)
        sum = std::min(2147483647.0, std::max(-2147483648.0, sum));
      Place p = resultPlace(gfx12, n, bitsOf(c.d), i, j);
      uint32_t word = out[p.reg * 64 + p.lane];
      uint32_t raw = word >> (p.bit + (v.high ? 16 : 0));
      if (bitsOf(c.d) == 16)
        raw &= 0xffff;
      ASSERT_EQ(decode(c.d, raw), sum)
          << c.mnemonic << " " << v.modifiers << " D[" << i << "][" << j << "]";
      // GFX11 leaves the other half of a 16-bit result alone.
      if (bitsOf(c.d) == 16 && !gfx12)
        ASSERT_EQ(v.high ? word & 0xffff : word >> 16, 0x7ff7u);
    }
}

TEST_P(Wmma, EveryInstruction) {
  bool gfx12 = GetParam().gfx12();
  struct Job {
    const Case *c;
    std::string kernel;
    Variant variant;
  };
  std::vector<Job> jobs;
  std::vector<AsmKernel> kernels;
  auto add = [&](const Case &c, const Variant &v) {
    std::string name = "k" + std::to_string(jobs.size());
    std::string body = rdnaVectorBody(
        GetParam(), "s_load_b64 s[16:17], s[0:1], 0x20\n" +
                        rdnaWait(GetParam()) +
                        "  global_load_b32 v32, v1, s[16:17]\n" +
                        rdnaWait(GetParam()) + "  " + text(c, v.modifiers));
    kernels.push_back({name, body});
    jobs.push_back({&c, name, v});
  };
  for (const Case &c : kCases) {
    if (gfx12 ? !c.gfx12 : !c.gfx11)
      continue;
    bool integer = std::string(c.d) == "i32";
    add(c, {});
    if (integer) {
      add(c, {"neg_lo:[1,0,0]", true, false});
      add(c, {"neg_lo:[0,1,0]", false, true});
      add(c, {"neg_lo:[1,1,0] clamp", true, true, true});
    }
    Variant v;
    if (!gfx12 && bitsOf(c.d) == 16) {
      v.modifiers = "op_sel:[0,0,1]";
      v.high = true;
      add(c, v);
    }
    v = Variant();
    if (!integer && bitsOf(c.a) == 16 && !c.sparse) {
      v.modifiers = "neg_lo:[1,0,0] neg_hi:[0,0,0]";
      v.negateA = 1;
      add(c, v);
      v.modifiers = "neg_lo:[0,0,1] neg_hi:[1,0,0]";
      v.negateA = 2;
      v.negateC = true;
      add(c, v);
      v.modifiers = "neg_hi:[0,0,1]";
      v.negateA = 0;
      v.negateC = false;
      v.absC = true;
      add(c, v);
    }
    v = Variant();
    if (c.sparse && !(c.depth == 64 && lanes() == 32)) {
      v.modifiers = "index_key:1";
      v.indexKey = 1;
      add(c, v);
    }
  }
  load(assembleRdna(GetParam(), kernels));
  ASSERT_TRUE(Code);
  EXPECT_EQ(Code->unsupportedInstructions(), std::vector<std::string>());
  for (const Job &job : jobs)
    check(*job.c, job.kernel, job.variant);
}

TEST_P(Wmma, ConstantsAndRounding) {
  // D = 1.0 + sum of 16 products of 1 + 2^-10: rounded once in fp16.
  const Case &c = kCases[2];
  std::string d = registers(24, registersOfD(c));
  int count = registersOf("f16", 16);
  std::string line = "v_wmma_f16_16x16x16_f16 " + d + ", " +
                     registers(8, count) + ", " + registers(16, count) +
                     ", 1.0";
  load(assembleRdna(GetParam(), {{"k", rdnaVectorBody(GetParam(), line)}}));
  uint32_t *a = buffer(Words(512, 0x3c013c01)),
           *b = buffer(Words(512, 0x3c003c00));
  uint32_t *out = buffer<uint32_t>(512);
  Status status =
      run("k", 1, GetParam().lanes, Args().add(a).add(b).add(a).add(out));
  ASSERT_TRUE(status.ok()) << status.message();
  auto expected = static_cast<_Float16>(17 + 16.0 / 1024);
  EXPECT_EQ(decode("f16", out[0] & 0xffff), static_cast<double>(expected));
}

TEST_P(Wmma, PlantedFaultsAreCaught) {
  std::vector<AsmKernel> kernels;
  for (int i : {0, 4}) // fp16, and bytes
    kernels.push_back({"k" + std::to_string(i),
                       rdnaVectorBody(GetParam(), text(kCases[i], ""))});
  load(assembleRdna(GetParam(), kernels));
  // Small numbers in either type, no two rows or columns alike.
  Words words(512);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = 0x3c003c00 + static_cast<uint32_t>(i * 0x00170029 % 0x01000100);
  uint32_t *in = buffer(words), *zero = buffer(Words(512));
  for (const AsmKernel &kernel : kernels) {
    auto result = [&](MfmaFault fault) {
      LaunchConfig config;
      config.block = {GetParam().lanes, 1, 1};
      config.options.mfmaFault = fault;
      uint32_t *out = buffer<uint32_t>(512);
      Status status =
          run(kernel.name, config, Args().add(in).add(in).add(zero).add(out));
      EXPECT_TRUE(status.ok()) << status.message();
      return Words(out, out + 256);
    };
    const Words right = result(MfmaFault::None);
    for (MfmaFault fault : {MfmaFault::SwapRowsOfA, MfmaFault::RotateK,
                            MfmaFault::SwapBlocksOfD})
      EXPECT_NE(result(fault), right) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Wmma,
                         ::testing::Values(RdnaTarget{"gfx1100", 32},
                                           RdnaTarget{"gfx1151", 64},
                                           RdnaTarget{"gfx1200", 64},
                                           RdnaTarget{"gfx1201", 32}),
                         [](const auto &info) { return info.param.name(); });

} // namespace
