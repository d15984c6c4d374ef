//===- RobustnessTest.cpp - Code that makes no sense ----------------------===//
//
// Kernels with bits flipped in their code, and code of random words, end in a
// status and never in a crash. (The build with sanitizers gives this its teeth.)
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "InstructionSampler.h"
#include "KernelTest.h"

#include <random>
#include <set>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class Robustness : public KernelTest {
protected:
  Status go(const std::string &name) {
    LaunchConfig config;
    config.block = {100, 1, 1};
    config.options.threads = 1;
    config.options.waveBudget = 20000;
    return run(name, config, Args().add(P).add(P).add(P).add(P));
  }
  uint64_t *P = nullptr;
};

TEST_F(Robustness, FlippedBits) {
  // A little of everything, so that a flip lands near a valid instruction.
  std::vector<char> image = assemble(asmModule({{"k", vectorBody(R"(
  s_mov_b32 s4, s8
  s_mov_b32 s5, s9
  s_movk_i32 s6, 0x200
  s_mov_b32 s7, 0x20000
  buffer_load_dwordx4 v[12:15], v1, s[4:7], 0 offen
  ds_write_b64 v1, v[2:3]
  ds_read2_b32 v[16:17], v1 offset1:1
  ds_bpermute_b32 v18, v1, v2
  v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15]
  v_mfma_f32_4x4x4_16b_f16 v[20:23], v[2:3], v[4:5], 0
  v_pk_fma_f32 v[24:25], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1]
  v_add_u32_sdwa v26, v2, v4 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:WORD_1
  v_mov_b32_dpp v27, v2 row_shr:1 row_mask:0xf bank_mask:0xf
  v_cmp_lt_u32 vcc, 40, v0
  s_and_saveexec_b64 s[20:21], vcc
  v_div_scale_f32 v28, vcc, v2, v4, v2
  v_mad_u64_u32 v[30:31], vcc, v2, v4, v[6:7]
  s_or_b64 exec, exec, s[20:21]
  s_cmp_eq_u32 s2, 5
  s_cbranch_scc1 .Lskip
  s_set_gpr_idx_on s2, gpr_idx(SRC0,DST)
  v_mov_b32 v33, v34
  s_set_gpr_idx_off
  s_getpc_b64 s[22:23]
  s_barrier
.Lskip:
  global_atomic_add v35, v1, v2, s[8:9] sc0
  flat_load_dword v36, v[2:3]
  scratch_store_dword off, v2, off
  s_bfe_u64 s[24:25], s[8:9], 0x100008)"), 1024}}));
  P = buffer<uint64_t>(512);
  std::mt19937 rng(11);
  int codes[16] = {};
  for (int round = 0; round < 600; ++round) {
    load(image);
    ASSERT_TRUE(Code);
    uint64_t entry = Code->findKernel("k")->entryAddress;
    auto *words = reinterpret_cast<uint32_t *>(entry);
    for (unsigned n = 1 + rng() % 3; n; --n)
      words[rng() % 80] ^= 1u << (rng() % 32);
    Status status = go("k");
    ++codes[static_cast<int>(status.code())];
    EXPECT_EQ(status.ok(), status.message().empty());
  }
  EXPECT_GT(codes[static_cast<int>(ErrorCode::IllegalAddress)], 0);
  EXPECT_GT(codes[static_cast<int>(ErrorCode::IllegalInstruction)], 0);
}

TEST_F(Robustness, RandomWords) {
  std::vector<char> image =
      assemble(asmModule({{"k", ".rept 64\n  s_nop 0\n.endr\n", 1024}}));
  P = buffer<uint64_t>(512);
  std::mt19937 rng(12);
  // Leading bytes of the encodings: vector ALU, VOP3, scalar, LDS, memory.
  const uint32_t leads[] = {0x00, 0x20, 0x40, 0x7e, 0x7c, 0xd1, 0xd2, 0xd3, 0x80,
                            0xbe, 0xbf, 0xb0, 0xd8, 0xda, 0xdc, 0xdd, 0xe0, 0xc0};
  for (int round = 0; round < 600; ++round) {
    load(image);
    ASSERT_TRUE(Code);
    auto *words = reinterpret_cast<uint32_t *>(Code->findKernel("k")->entryAddress);
    for (int i = 0; i < 60; ++i)
      words[i] = rng() % 2 ? static_cast<uint32_t>(rng())
                           : leads[rng() % std::size(leads)] << 24 | (rng() & 0xffffff);
    Status status = go("k");
    EXPECT_EQ(status.ok(), status.message().empty());
  }
}

class RobustnessOn : public Robustness,
                     public ::testing::WithParamInterface<const char *> {
protected:
  void SetUp() override { use(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Chips, RobustnessOn,
                         ::testing::Values("gfx908", "gfx90a", "gfx942",
                                           "gfx950"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(RobustnessOn, OneInstructionOfEveryForm) {
  // Places of instruction and s_endpgm, each executed by itself on registers
  // that hold poison, so that most of the accesses are refused.
  constexpr size_t kPlace = 6, kPlaces = 20000;
  std::string space = ".rept " + std::to_string(kPlace * kPlaces) + "\n  s_nop 0\n.endr\n";
  load(assemble(asmModule({{"k", space, 1024}}, 64, GetParam()), GetParam()));
  ASSERT_TRUE(Code);
  KernelInfo kernel = *Code->findKernel("k");
  auto *words = reinterpret_cast<uint32_t *>(kernel.entryAddress);
  std::set<std::string> seen;
  sampleInstructions(GetParam(), 1,
                     [&](const std::string &text, const std::vector<uint32_t> &code) {
                       if (seen.size() == kPlaces ||
                           !seen.insert(formOf(parseInstruction(text))).second)
                         return;
                       uint32_t *at = words + kPlace * (seen.size() - 1);
                       std::copy(code.begin(), code.end(), at);
                       at[code.size()] = 0xbf810000; // s_endpgm
                     });
  EXPECT_GT(seen.size(), 3000u);
  EXPECT_LT(seen.size(), kPlaces) << "not all forms have a place";
  P = buffer<uint64_t>(512);
  Args args;
  args.add(P).add(P).add(P).add(P);
  LaunchConfig config;
  config.block = {70, 1, 1};
  config.options.threads = 1;
  config.options.waveBudget = 50;
  config = withArgs(config, args);
  uint64_t first = kernel.entryAddress;
  size_t executed = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    kernel.entryAddress = first + 4 * kPlace * i;
    Status status = launch(*Code, kernel, config, &Count);
    EXPECT_EQ(status.ok(), status.message().empty());
    executed += status.ok();
  }
  EXPECT_GT(executed, seen.size() / 4);
}

} // namespace
