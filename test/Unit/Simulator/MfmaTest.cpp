//===- MfmaTest.cpp - Operand layouts of the matrix instructions ----------===//
//
// Every element of A, B and D of every instruction, one at a time: where an
// element lies is taken from the formulas that AMD's matrix instruction
// calculator prints ("simplified register layout"), from element to place, the
// opposite direction of the simulator's own.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"

#include <cmath>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

enum class In { F16, Bf16, F32, I8, F64 };
/// Chips that have an instruction.
enum Chip { k908 = 1, k90a = 2, k942 = 4, k950 = 8, kOld = 3, kNew = 12 };
struct Shape {
  const char *mnemonic;
  int m, k, blocks;
  In in;
  unsigned chips = kNew;
};
const Shape kShapes[] = {
    {"v_mfma_f32_32x32x8_f16", 32, 8, 1, In::F16},
    {"v_mfma_f32_16x16x16_f16", 16, 16, 1, In::F16},
    {"v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, In::F16},
    {"v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, In::F16},
    {"v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, In::F16},
    {"v_mfma_f32_32x32x8_bf16", 32, 8, 1, In::Bf16},
    {"v_mfma_f32_16x16x16_bf16", 16, 16, 1, In::Bf16},
    {"v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, In::Bf16},
    {"v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, In::Bf16},
    {"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, In::Bf16},
    {"v_mfma_f32_32x32x2_f32", 32, 2, 1, In::F32},
    {"v_mfma_f32_16x16x4_f32", 16, 4, 1, In::F32},
    {"v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, In::F32},
    {"v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, In::F32},
    {"v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, In::F32},
    {"v_mfma_i32_32x32x16_i8", 32, 16, 1, In::I8},
    {"v_mfma_i32_16x16x32_i8", 16, 32, 1, In::I8},
    {"v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, In::I8},
    {"v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, In::I8},
    {"v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, In::I8},
    {"v_mfma_f64_16x16x4_f64", 16, 4, 1, In::F64},
    {"v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, In::F64},
    {"v_mfma_f32_32x32x8f16", 32, 8, 1, In::F16, kOld},
    {"v_mfma_f32_16x16x16f16", 16, 16, 1, In::F16, kOld},
    {"v_mfma_f32_32x32x4f16", 32, 4, 2, In::F16, kOld},
    {"v_mfma_f32_16x16x4f16", 16, 4, 4, In::F16, kOld},
    {"v_mfma_f32_4x4x4f16", 4, 4, 16, In::F16, kOld},
    {"v_mfma_f32_32x32x4bf16", 32, 4, 1, In::Bf16, kOld},
    {"v_mfma_f32_16x16x8bf16", 16, 8, 1, In::Bf16, kOld},
    {"v_mfma_f32_32x32x2bf16", 32, 2, 2, In::Bf16, kOld},
    {"v_mfma_f32_16x16x2bf16", 16, 2, 4, In::Bf16, kOld},
    {"v_mfma_f32_4x4x2bf16", 4, 2, 16, In::Bf16, kOld},
    {"v_mfma_f32_32x32x8bf16_1k", 32, 8, 1, In::Bf16, k90a},
    {"v_mfma_f32_16x16x16bf16_1k", 16, 16, 1, In::Bf16, k90a},
    {"v_mfma_f32_32x32x4bf16_1k", 32, 4, 2, In::Bf16, k90a},
    {"v_mfma_f32_16x16x4bf16_1k", 16, 4, 4, In::Bf16, k90a},
    {"v_mfma_f32_4x4x4bf16_1k", 4, 4, 16, In::Bf16, k90a},
    {"v_mfma_f32_32x32x2f32", 32, 2, 1, In::F32, kOld},
    {"v_mfma_f32_16x16x4f32", 16, 4, 1, In::F32, kOld},
    {"v_mfma_f32_32x32x1f32", 32, 1, 2, In::F32, kOld},
    {"v_mfma_f32_16x16x1f32", 16, 1, 4, In::F32, kOld},
    {"v_mfma_f32_4x4x1f32", 4, 1, 16, In::F32, kOld},
    {"v_mfma_i32_32x32x8i8", 32, 8, 1, In::I8, kOld},
    {"v_mfma_i32_16x16x16i8", 16, 16, 1, In::I8, kOld},
    {"v_mfma_i32_32x32x4i8", 32, 4, 2, In::I8, kOld},
    {"v_mfma_i32_16x16x4i8", 16, 4, 4, In::I8, kOld},
    {"v_mfma_i32_4x4x4i8", 4, 4, 16, In::I8, kOld},
    {"v_mfma_f64_16x16x4f64", 16, 4, 1, In::F64, k90a},
    {"v_mfma_f64_4x4x4f64", 4, 4, 4, In::F64, k90a},
    {"v_mfma_f32_32x32x4_xf32", 32, 4, 1, In::F32, k942},
    {"v_mfma_f32_16x16x8_xf32", 16, 8, 1, In::F32, k942},
    {"v_mfma_f32_32x32x16_f16", 32, 16, 1, In::F16, k950},
    {"v_mfma_f32_16x16x32_f16", 16, 32, 1, In::F16, k950},
    {"v_mfma_f32_32x32x16_bf16", 32, 16, 1, In::Bf16, k950},
    {"v_mfma_f32_16x16x32_bf16", 16, 32, 1, In::Bf16, k950},
    {"v_mfma_i32_32x32x32_i8", 32, 32, 1, In::I8, k950},
    {"v_mfma_i32_16x16x64_i8", 16, 64, 1, In::I8, k950},
};

struct Place {
  int lane, element; ///< element of the lane: of 8, 16, 32 or 64 bits
};

/// Where A[i][k] (and by symmetry B[k][i]) of a block lies.
Place operand(const Shape &s, int block, int i, int k) {
  int perLane = s.m * s.k * s.blocks / 64;
  return {i + s.m * block + s.m * s.blocks * (k / perLane), k % perLane};
}

/// Where D[i][j] of a block lies. Groups of four rows go to lane groups in turn;
/// blocks of 32 x 32 and 16 x 16 follow each other in registers, blocks of
/// 4 x 4 in lanes. fp64 deals single rows.
Place result(const Shape &s, int block, int i, int j) {
  if (s.in == In::F64)
    return s.m == 16 ? Place{j + 16 * (i % 4), i / 4}
                     : Place{j + 4 * block + 16 * i, 0};
  switch (s.m) {
  case 32: return {j + 32 * ((i / 4) % 2), 16 * block + 4 * (i / 8) + i % 4};
  case 16: return {j + 16 * (i / 4), 4 * block + i % 4};
  default: return {j + 4 * block, i};
  }
}

int bytesOf(In in) {
  return in == In::I8 ? 1 : in == In::F32 ? 4 : in == In::F64 ? 8 : 2;
}
int inRegs(const Shape &s) {
  return s.m * s.k * s.blocks / 64 * bytesOf(s.in) / 4;
}
int outRegs(const Shape &s) {
  return s.m * s.m * s.blocks / 64 * (s.in == In::F64 ? 2 : 1);
}

std::string range(char file, int first, int count) {
  return count == 1 ? file + std::to_string(first)
                    : file + ("[" + std::to_string(first) + ":") +
                          std::to_string(first + count - 1) + "]";
}

/// Loads A (8 words a lane) and B into v[2:..], v[10:..], C of 32 words into
/// \p file 32.., executes, and stores D, which begins \p shift registers after C.
AsmKernel kernelFor(const Shape &s, char file, const std::string &modifiers,
                    const std::string &name, bool moves = false,
                    int shift = 0) {
  std::string text = "  s_load_dwordx4 s[8:11], s[0:1], 0x0\n"
                     "  s_load_dwordx2 s[12:13], s[0:1], 0x10\n"
                     "  v_and_b32 v0, 0x3ff, v0\n  v_lshlrev_b32 v1, 5, v0\n"
                     "  s_waitcnt lgkmcnt(0)\n";
  for (int i = 0; i < 8; i += 4) {
    std::string offset = " offset:" + std::to_string(4 * i) + "\n";
    text += "  global_load_dwordx4 " + range('v', 2 + i, 4) + ", v1, s[8:9]" + offset;
    text += "  global_load_dwordx4 " + range('v', 10 + i, 4) + ", v1, s[10:11]" + offset;
  }
  text += "  v_lshlrev_b32 v1, 7, v0\n";
  // gfx908 reaches AGPRs by moves alone.
  char direct = moves ? 'v' : file;
  auto eachMoved = [&](const char *move, char to, char from, int first) {
    for (int i = first; direct != file && i < first + 32; ++i)
      text += std::string("  v_accvgpr_") + move + " " + range(to, i, 1) +
              ", " + range(from, i, 1) + "\n";
  };
  for (int i = 0; i < 32; i += 4)
    text += "  global_load_dwordx4 " + range(direct, 32 + i, 4) +
            ", v1, s[12:13] offset:" + std::to_string(4 * i) + "\n";
  text += "  s_waitcnt vmcnt(0)\n";
  eachMoved("write_b32", file, direct, 32);
  text += "  " + std::string(s.mnemonic) + " " +
          range(file, 32 + shift, outRegs(s)) + ", " + range('v', 2, inRegs(s)) + ", " +
          range('v', 10, inRegs(s)) + ", " + range(file, 32, outRegs(s)) +
          modifiers + "\n";
  eachMoved("read_b32", direct, file, 32 + shift);
  for (int i = 0; i < 32; i += 4)
    text += "  global_store_dwordx4 v1, " + range(direct, 32 + shift + i, 4) +
            ", s[12:13] offset:" + std::to_string(4 * i) + "\n";
  return {name, text};
}

class Mfma : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    A = buffer<uint32_t>(64 * 8);
    B = buffer<uint32_t>(64 * 8);
    C = buffer<uint32_t>(64 * 32);
  }
  static void put(uint32_t *base, int wordsPerLane, const Shape &s, Place p,
                  int value) {
    auto *bytes = reinterpret_cast<uint8_t *>(base + wordsPerLane * p.lane);
    int size = bytesOf(s.in);
    bytes += size * p.element;
    uint64_t raw = 0;
    float x = static_cast<float>(value);
    double y = value;
    _Float16 h = static_cast<_Float16>(x);
    switch (s.in) {
    case In::F16: std::memcpy(&raw, &h, 2); break;
    case In::Bf16: std::memcpy(&raw, &x, 4); raw >>= 16; break;
    case In::F32: std::memcpy(&raw, &x, 4); break;
    case In::I8: raw = static_cast<uint8_t>(value); break;
    case In::F64: std::memcpy(&raw, &y, 8); break;
    }
    std::memcpy(bytes, &raw, static_cast<size_t>(size));
  }
  static double get(const uint32_t *base, const Shape &s, Place p) {
    const uint32_t *word = base + 32 * p.lane + p.element * (s.in == In::F64 ? 2 : 1);
    if (s.in == In::I8)
      return static_cast<int32_t>(*word);
    if (s.in == In::F64) {
      double x;
      std::memcpy(&x, word, 8);
      return x;
    }
    float x;
    std::memcpy(&x, word, 4);
    return x;
  }
  static void putC(uint32_t *base, const Shape &s, Place p, int value) {
    uint32_t *word = base + 32 * p.lane + p.element * (s.in == In::F64 ? 2 : 1);
    if (s.in == In::I8) {
      *word = static_cast<uint32_t>(value);
    } else if (s.in == In::F64) {
      double x = value;
      std::memcpy(word, &x, 8);
    } else {
      float x = static_cast<float>(value);
      std::memcpy(word, &x, 4);
    }
  }
  Status go(const std::string &name, MfmaFault fault = MfmaFault::None) {
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.options.threads = 1;
    config.options.mfmaFault = fault;
    return run(name, config, Args().add(A).add(B).add(C));
  }
  /// Random small integers in A, B and C; how many elements of D come out
  /// other than they should.
  int wrongElements(const Shape &s, const std::string &name, MfmaFault fault,
                    std::mt19937 &rng) {
    std::vector<int> a(s.blocks * s.m * s.k), b(a.size());
    std::vector<int> c(s.blocks * s.m * s.m);
    for (int block = 0; block < s.blocks; ++block)
      for (int i = 0; i < s.m; ++i) {
        for (int k = 0; k < s.k; ++k) {
          int at = (block * s.m + i) * s.k + k;
          a[at] = static_cast<int>(rng() % 17) - 8;
          b[at] = static_cast<int>(rng() % 17) - 8;
          put(A, 8, s, operand(s, block, i, k), a[at]);
          put(B, 8, s, operand(s, block, i, k), b[at]);
        }
        for (int j = 0; j < s.m; ++j) {
          int at = (block * s.m + i) * s.m + j;
          c[at] = static_cast<int>(rng() % 101) - 50;
          putC(C, s, result(s, block, i, j), c[at]);
        }
      }
    Status status = go(name, fault);
    EXPECT_TRUE(status.ok()) << status.message();
    int wrong = 0;
    for (int block = 0; block < s.blocks; ++block)
      for (int i = 0; i < s.m; ++i)
        for (int j = 0; j < s.m; ++j) {
          int want = c[(block * s.m + i) * s.m + j];
          for (int k = 0; k < s.k; ++k)
            want += a[(block * s.m + i) * s.k + k] * b[(block * s.m + j) * s.k + k];
          wrong += get(C, s, result(s, block, i, j)) != want;
        }
    return wrong;
  }
  void loadAll(const std::string &target = "gfx942", unsigned chip = k942) {
    std::vector<AsmKernel> kernels;
    for (const Shape &s : kShapes)
      for (char file : {'v', 'a'})
        if (s.chips & chip && (file == 'a' || chip != k908))
          kernels.push_back(kernelFor(s, file, "",
                                      file + std::string(s.mnemonic),
                                      chip == k908));
    load(assemble(asmModule(kernels, 64, target), target));
  }

  uint32_t *A = nullptr, *B = nullptr, *C = nullptr;
};

struct OnChip {
  const char *target;
  unsigned bit;
};
class MfmaOn : public Mfma, public ::testing::WithParamInterface<OnChip> {
protected:
  void SetUp() override {
    use(GetParam().target);
    A = buffer<uint32_t>(64 * 8);
    B = buffer<uint32_t>(64 * 8);
    C = buffer<uint32_t>(64 * 32);
    loadAll(GetParam().target, GetParam().bit);
  }
};
INSTANTIATE_TEST_SUITE_P(Chips, MfmaOn,
                         ::testing::Values(OnChip{"gfx908", k908},
                                           OnChip{"gfx90a", k90a},
                                           OnChip{"gfx942", k942},
                                           OnChip{"gfx950", k950}),
                         [](const auto &info) {
                           return std::string(info.param.target);
                         });

TEST_P(MfmaOn, OneHotElementsOfEveryInstruction) {
  for (const Shape &s : kShapes)
    for (int block = 0; s.chips & GetParam().bit && block < s.blocks; ++block)
      for (int i = 0; i < s.m; ++i)
        for (int k = 0; k < s.k; ++k) {
          // A[i][k] = 2, B[k][j] = 3 for one j: only D[i][j] of the block is 6.
          int j = (i * 7 + k * 3 + block) % s.m;
          std::memset(A, 0, 64 * 8 * 4);
          std::memset(B, 0, 64 * 8 * 4);
          std::memset(C, 0, 64 * 32 * 4);
          put(A, 8, s, operand(s, block, i, k), 2);
          put(B, 8, s, operand(s, block, j, k), 3);
          Status status = go("a" + std::string(s.mnemonic));
          ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_EQ(get(C, s, result(s, block, i, j)), 6)
              << s.mnemonic << " block " << block << " A[" << i << "][" << k
              << "] B[" << k << "][" << j << "]";
          putC(C, s, result(s, block, i, j), 0);
          for (int w = 0; w < 64 * 32; ++w)
            ASSERT_EQ(C[w], 0u) << s.mnemonic << " word " << w;
        }
}

TEST_P(MfmaOn, RandomMatricesInBothFiles) {
  std::mt19937 rng(5);
  for (const Shape &s : kShapes)
    for (char file : {'v', 'a'})
      if (s.chips & GetParam().bit && (file == 'a' || GetParam().bit != k908)) {
        EXPECT_EQ(wrongElements(s, file + std::string(s.mnemonic),
                                MfmaFault::None, rng),
                  0)
            << s.mnemonic << " in " << file;
      }
}

/// C is read before D is written: results of up to four registers may lie over
/// a part of it.
TEST_P(MfmaOn, ResultOverPartOfC) {
  const OnChip &chip = GetParam();
  struct Case {
    const Shape &shape;
    int shift;
    std::string name;
  };
  std::vector<Case> cases;
  std::vector<AsmKernel> kernels;
  for (const Shape &s : kShapes)
    for (int shift : {-2, 2})
      if (s.chips & chip.bit && outRegs(s) == 4) {
        cases.push_back({s, shift, s.mnemonic + std::to_string(shift + 2)});
        kernels.push_back(kernelFor(s, 'a', "", cases.back().name,
                                    /*moves=*/chip.bit == k908, shift));
      }
  ASSERT_FALSE(cases.empty());
  load(assemble(asmModule(kernels, 64, chip.target), chip.target));
  std::mt19937 rng(7);
  for (const Case &test : cases)
    EXPECT_EQ(wrongElements(test.shape, test.name, MfmaFault::None, rng), 0)
        << test.shape.mnemonic << ", D " << test.shift << " registers after C";
}

TEST_F(Mfma, PlantedFaultsAreCaught) {
  loadAll();
  std::mt19937 rng(6);
  const Shape &s = kShapes[0];
  for (MfmaFault fault : {MfmaFault::SwapRowsOfA, MfmaFault::RotateK,
                          MfmaFault::SwapBlocksOfD})
    EXPECT_GT(wrongElements(s, "v" + std::string(s.mnemonic), fault, rng), 0);
}

TEST_F(Mfma, BroadcastAndPermutation) {
  // cbsz:1 abid:1: blocks 2n and 2n + 1 both take A of block 2n + 1.
  // blgp:3: lane l takes B of lane (l + 16) % 64; blgp:4..7: of 16 lanes.
  const Shape &s = kShapes[3]; // 16x16x4, four blocks
  std::vector<AsmKernel> kernels = {kernelFor(s, 'v', " cbsz:1 abid:1", "cbsz"),
                                    kernelFor(s, 'v', " cbsz:2 abid:3", "cbsz2"),
                                    kernelFor(s, 'v', " blgp:1", "b1"),
                                    kernelFor(s, 'v', " blgp:2", "b2"),
                                    kernelFor(s, 'v', " blgp:3", "b3"),
                                    kernelFor(s, 'v', " blgp:6", "b6")};
  load(assemble(asmModule(kernels)));
  struct {
    const char *name;
    int a[4], b[4]; ///< blocks that A and B come from
  } cases[] = {{"cbsz", {1, 1, 3, 3}, {0, 1, 2, 3}},
               {"cbsz2", {3, 3, 3, 3}, {0, 1, 2, 3}},
               {"b1", {0, 1, 2, 3}, {0, 1, 0, 1}},
               {"b2", {0, 1, 2, 3}, {2, 3, 2, 3}},
               {"b3", {0, 1, 2, 3}, {1, 2, 3, 0}},
               {"b6", {0, 1, 2, 3}, {2, 2, 2, 2}}};
  for (const auto &test : cases) {
    for (int block = 0; block < 4; ++block)
      for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 4; ++k) {
          put(A, 8, s, operand(s, block, i, k), k == 0 ? block + 1 : 0);
          put(B, 8, s, operand(s, block, i, k), k == 0 ? 10 * (block + 1) : 0);
        }
    std::memset(C, 0, 64 * 32 * 4);
    Status status = go(test.name);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int block = 0; block < 4; ++block)
      EXPECT_EQ(get(C, s, result(s, block, 3, 5)),
                (test.a[block] + 1) * 10 * (test.b[block] + 1))
          << test.name << " block " << block;
  }
}

TEST_F(Mfma, RoundingDenormalsAndNan) {
  loadAll();
  const Shape &s = kShapes[0];
  std::memset(A, 0, 64 * 8 * 4);
  std::memset(B, 0, 64 * 8 * 4);
  std::memset(C, 0, 64 * 32 * 4);
  auto raw = [&](uint32_t *base, int k, uint16_t bits) {
    Place p = operand(s, 0, 0, k);
    std::memcpy(reinterpret_cast<uint8_t *>(base + 8 * p.lane) + 2 * p.element,
                &bits, 2);
  };
  std::string name = "v" + std::string(s.mnemonic);
  raw(A, 0, 0x0001); // the smallest fp16 denormal is kept
  raw(B, 0, 0x3c00);
  ASSERT_TRUE(go(name).ok());
  EXPECT_EQ(get(C, s, result(s, 0, 0, 0)), 0x1p-24);
  // 1 + 2^-24: accumulated in fp32, ties to even.
  raw(A, 0, 0x1000); // 2^-11
  raw(B, 0, 0x0800); // 2^-13
  float one = 1;
  std::memcpy(C, &one, 4);
  ASSERT_TRUE(go(name).ok());
  EXPECT_EQ(get(C, s, result(s, 0, 0, 0)), 1.0);
  raw(A, 0, 0x7c00); // infinity times zero
  raw(B, 0, 0);
  ASSERT_TRUE(go(name).ok());
  EXPECT_TRUE(std::isnan(get(C, s, result(s, 0, 0, 0))));
}

TEST_F(Mfma, OlderChipsAddProductsInPairs) {
  struct Chip {
    const char *target;
    unsigned bit;
    float denormal; ///< of the smallest fp16 number times one
  } chips[] = {{"gfx908", k908, 0x1p-24f}, {"gfx90a", k90a, 0.0f}};
  for (const Chip &chip : chips) {
    use(chip.target);
    A = buffer<uint32_t>(64 * 8);
    B = buffer<uint32_t>(64 * 8);
    C = buffer<uint32_t>(64 * 32);
    loadAll(chip.target, chip.bit);
    const Shape *shape = nullptr;
    for (const Shape &s : kShapes)
      if (std::string(s.mnemonic) == "v_mfma_f32_32x32x4f16")
        shape = &s;
    const Shape &s = *shape;
    auto one = [&](const uint16_t (&a)[4], float c) {
      std::memset(A, 0, 64 * 8 * 4);
      std::memset(B, 0, 64 * 8 * 4);
      std::memset(C, 0, 64 * 32 * 4);
      std::memcpy(C, &c, 4);
      for (int k = 0; k < 4; ++k) {
        Place p = operand(s, 0, 0, k);
        std::memcpy(reinterpret_cast<uint8_t *>(A + 8 * p.lane) + 2 * p.element,
                    &a[k], 2);
        put(B, 8, s, p, 1);
      }
      Status status = go("a" + std::string(s.mnemonic));
      EXPECT_TRUE(status.ok()) << status.message();
      return static_cast<float>(get(C, s, result(s, 0, 0, 0)));
    };
    // 4 * 2^-14 to 1024 (numbers are 2^-13 apart there): alone each is half a
    // distance and lost to even; together they are two distances.
    EXPECT_EQ(one({0x0400, 0x0400, 0x0400, 0x0400}, 1024.0f),
              1024.0f + 0x1p-12f) << chip.target;
    // (p0 + p1) + (p2 + p3): 60000 + 2^-14 is 60000 in fp32, and -60000 + 2^-14
    // as well, so that the small ones are lost.
    EXPECT_EQ(one({0x7b53, 0x0400, 0xfb53, 0x0400}, 0.0f), 0.0f) << chip.target;
    EXPECT_EQ(one({0x7b53, 0xfb53, 0x0400, 0x0400}, 0.0f), 0x1p-13f)
        << chip.target;
    EXPECT_EQ(one({0x0001, 0, 0, 0}, 0.0f), chip.denormal) << chip.target;
    // Denormals of C: gfx90a takes them for zero.
    EXPECT_EQ(one({0, 0, 0, 0}, 0x1p-130f), chip.bit == k908 ? 0x1p-130f : 0.0f);
  }
}

TEST_F(Mfma, NegationAndXf32) {
  const Shape *f64 = nullptr, *xf32 = nullptr;
  for (const Shape &s : kShapes) {
    if (std::string(s.mnemonic) == "v_mfma_f64_16x16x4_f64")
      f64 = &s;
    if (std::string(s.mnemonic) == "v_mfma_f32_32x32x4_xf32")
      xf32 = &s;
  }
  load(assemble(asmModule({kernelFor(*f64, 'v', " neg:[1,0,0]", "na"),
                           kernelFor(*f64, 'v', " neg:[0,1,0]", "nb"),
                           kernelFor(*f64, 'v', " neg:[1,0,1]", "nac"),
                           kernelFor(*xf32, 'v', "", "x")})));
  struct {
    const char *name;
    double want;
  } cases[] = {{"na", 5 - 6}, {"nb", 5 - 6}, {"nac", -5 - 6}};
  for (const auto &test : cases) {
    std::memset(A, 0, 64 * 8 * 4);
    std::memset(B, 0, 64 * 8 * 4);
    std::memset(C, 0, 64 * 32 * 4);
    put(A, 8, *f64, operand(*f64, 0, 3, 2), 2);
    put(B, 8, *f64, operand(*f64, 0, 7, 2), 3);
    putC(C, *f64, result(*f64, 0, 3, 7), 5);
    ASSERT_TRUE(go(test.name).ok());
    EXPECT_EQ(get(C, *f64, result(*f64, 0, 3, 7)), test.want) << test.name;
  }
  // xf32 keeps ten bits of mantissa: 1 + 2^-10 is one, 1 + 2^-11 is not.
  std::memset(A, 0, 64 * 8 * 4);
  std::memset(B, 0, 64 * 8 * 4);
  std::memset(C, 0, 64 * 32 * 4);
  put(B, 8, *xf32, operand(*xf32, 0, 0, 0), 1);
  float values[2] = {1 + 0x1p-10f + 0x1p-11f, 1 + 0x1p-11f};
  for (int i = 0; i < 2; ++i)
    std::memcpy(A + 8 * operand(*xf32, 0, i, 0).lane, &values[i], 4);
  ASSERT_TRUE(go("x").ok());
  EXPECT_EQ(get(C, *xf32, result(*xf32, 0, 0, 0)), 1 + 0x1p-10);
  EXPECT_EQ(get(C, *xf32, result(*xf32, 0, 1, 0)), 1.0);
}

} // namespace
