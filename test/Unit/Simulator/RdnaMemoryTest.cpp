//===- RdnaMemoryTest.cpp - Memory instructions of GFX11 and GFX12 --------===//
//
// Atomics that are new, exchanges through LDS, typed buffers with unified
// formats, range checks that the resource selects, and transposing loads.
//
//===----------------------------------------------------------------------===//
#include "KernelTest.h"
#include "RdnaAsm.h"

#include <numeric>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class RdnaMemory : public KernelTest,
                   public ::testing::WithParamInterface<RdnaTarget> {
protected:
  void SetUp() override {
    ASSERT_TRUE(Device::create(GetParam().chip, Dev).ok());
  }
  /// Runs \p instructions on v[8:15] = a and v[24:31] = c; v[24:31] to out.
  void execute(const std::string &instructions) {
    load(assembleRdna(GetParam(),
                      {{"k", rdnaVectorBody(GetParam(), instructions), 1024}}));
    ASSERT_TRUE(Code);
    EXPECT_EQ(Code->unsupportedInstructions(), std::vector<std::string>());
    Status status =
        run("k", 1, GetParam().lanes, Args().add(A).add(B).add(C).add(Out));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::string ds() const {
    return GetParam().gfx12() ? "  s_wait_dscnt 0x0\n"
                              : "  s_waitcnt lgkmcnt(0)\n";
  }
  void fill() {
    std::vector<uint32_t> words(512);
    std::iota(words.begin(), words.end(), 1000);
    A = buffer(words);
    B = buffer(words);
    C = buffer(words);
    Out = buffer<uint32_t>(512);
  }
  uint32_t *A = nullptr, *B = nullptr, *C = nullptr, *Out = nullptr;
};

TEST_P(RdnaMemory, AtomicsOnMemory) {
  fill();
  std::string wait = rdnaWait(GetParam());
  // Every lane on a word of its own: 1000 + lane.
  execute(GetParam().gfx12()
              ? "v_mov_b32 v2, 1010\n  global_atomic_cond_sub_u32 v24, v1, v2, "
                "s[10:11] "
                "th:TH_ATOMIC_RETURN\n" +
                    wait
              : "v_mov_b32 v2, 1010\n  global_atomic_csub_u32 v24, v1, v2, "
                "s[10:11] glc\n" +
                    wait);
  for (uint32_t l = 0; l < GetParam().lanes; ++l) {
    uint32_t old = 1000 + l;
    EXPECT_EQ(Out[l], old);
    EXPECT_EQ(B[l], old >= 1010 ? old - 1010 : GetParam().gfx12() ? old : 0);
  }
}

TEST_P(RdnaMemory, BufferAtomicsReturn) {
  fill();
  const std::string returns =
      GetParam().gfx12() ? " th:TH_ATOMIC_RETURN" : " glc";
  execute("s_mov_b32 s20, s10\n  s_mov_b32 s21, s11\n"
          "  s_movk_i32 s22, 0x100\n  s_mov_b32 s23, 0x31027000\n"
          "  v_mov_b32 v24, 5\n  v_mov_b32 v25, 6\n"
          "  buffer_atomic_add_u32 v24, v1, s[20:23], null offen" +
          returns +
          "\n  buffer_atomic_add_u32 v25, v1, s[20:23], null offen\n" +
          rdnaWait(GetParam()));
  for (uint32_t l = 0; l < GetParam().lanes; ++l) {
    EXPECT_EQ(Out[l], 1000 + l);
    EXPECT_EQ(Out[64 + l], 6u);
    EXPECT_EQ(B[l], 1011 + l);
  }
}

TEST_P(RdnaMemory, CompareStoreTakesTheValueFirst) {
  fill();
  // Where LDS holds 1000 + lane and lane 3 compares with 1003.
  execute("ds_store_b32 v1, v8\n" + ds() +
          "  v_mov_b32 v2, 7\n  v_mov_b32 v3, 1003\n"
          "  ds_cmpstore_rtn_b32 v24, v1, v2, v3\n" +
          ds() + "  ds_load_b32 v25, v1\n" + ds());
  for (uint32_t l = 0; l < GetParam().lanes; ++l) {
    EXPECT_EQ(Out[l], 1000 + l);
    EXPECT_EQ(Out[64 + l], l == 3 ? 7 : 1000 + l);
  }
}

TEST_P(RdnaMemory, PermutesStayWithinTheirLanes) {
  fill();
  // Each lane asks for the one 33 further on.
  execute("v_add_nc_u32 v2, 33, v0\n  v_lshlrev_b32 v2, 2, v2\n"
          "  ds_bpermute_b32 v24, v2, v8\n" +
          ds());
  // GFX11 permutes within 32 lanes, also in waves of 64.
  uint32_t lanes = GetParam().gfx12() ? GetParam().lanes : 32;
  for (uint32_t l = 0; l < GetParam().lanes; ++l)
    EXPECT_EQ(Out[l], 1000 + (l / lanes * lanes) + (l + 33) % lanes) << l;
}

TEST_P(RdnaMemory, TypedBuffersAndRangeChecks) {
  fill();
  B[0] = 0x40302010;
  // A resource on b of 8 bytes; word 3 swizzles to {x, y, z, w}.
  auto resource = [&](unsigned select) {
    char word[128];
    std::snprintf(
        word, sizeof word,
        "  s_mov_b32 s20, s10\n  s_mov_b32 s21, s11\n  s_mov_b32 s22, 8\n"
        "  s_mov_b32 s23, 0x%x\n",
        0xfacu | select << 28);
    return std::string(word);
  };
  std::string wait = rdnaWait(GetParam());
  execute(resource(3) +
          "  tbuffer_load_format_xyzw v[24:27], off, s[20:23], null "
          "format:[BUF_FMT_8_8_8_8_UINT]\n"
          "  buffer_load_b32 v28, v1, s[20:23], null offen\n" +
          wait + resource(2) +
          "  buffer_load_b32 v29, v1, s[20:23], null offen\n" + wait);
  for (uint32_t l = 0; l < GetParam().lanes; ++l) {
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(Out[64 * i + l], 0x10 * (i + 1));
    EXPECT_EQ(Out[64 * 4 + l], l < 2 ? B[l] : 0) << l;
    EXPECT_EQ(Out[64 * 5 + l], B[l]) << l; // not checked
  }
}

/// What a resource of \p records and \p stride bytes gives, by OOB_SELECT.
TEST_P(RdnaMemory, ResourcesSelectTheirRangeCheck) {
  const std::string wait = rdnaWait(GetParam());
  constexpr uint32_t kRecords = 20, kStride = 8;
  for (uint32_t select = 0; select < 4; ++select)
    for (uint32_t swizzle : {0u, 1u}) {
      fill();
      char setup[512];
      std::snprintf(setup, sizeof setup,
                    "  s_mov_b32 s20, s10\n  s_or_b32 s21, s11, 0x%x\n"
                    "  s_mov_b32 s22, %u\n  s_mov_b32 s23, 0x%x\n"
                    // Offsets of 0, 4, 8, 12 beside the index.
                    "  v_mov_b32 v2, v0\n  v_and_b32 v3, 3, v0\n"
                    "  v_lshlrev_b32 v3, 2, v3\n  s_mov_b32 s24, 4\n",
                    kStride << 16 | swizzle << 30, kRecords,
                    0x14facu | select << 28);
      execute(std::string(setup) +
              "  buffer_load_b64 v[24:25], v1, s[20:23], s24 offen\n"
              "  buffer_load_b32 v26, v[2:3], s[20:23], null idxen offen\n"
              "  tbuffer_load_format_x v27, v[2:3], s[20:23], null "
              "format:[BUF_FMT_32_UINT] idxen offen\n" +
              wait);
      const bool raw = select == 3 && !swizzle;
      auto in = [&](uint64_t index, uint64_t end, uint32_t soffset) {
        if (select == 2)
          return true;
        if (raw)
          return end <= kRecords - soffset;
        return index < kRecords && (select == 1 || end <= kStride);
      };
      for (uint32_t l = 0; l < GetParam().lanes; ++l) {
        SCOPED_TRACE("select " + std::to_string(select) + " swizzle " +
                     std::to_string(swizzle) + " lane " + std::to_string(l));
        if (!swizzle)
          for (uint32_t word = 0; word < 2; ++word)
            EXPECT_EQ(Out[64 * word + l],
                      in(0, 4 * l + 4 * word + 4, 4) ? B[l + word + 1] : 0);
        uint32_t offset = 4 * (l & 3);
        // Swizzled: words of eight records lie side by side.
        uint32_t at = swizzle ? l / 8 * 2 * 8 + offset / 4 * 8 + l % 8
                              : 2 * l + offset / 4;
        EXPECT_EQ(Out[128 + l], in(l, offset + 4, 0) ? B[at] : 0);
        EXPECT_EQ(Out[192 + l], in(l, offset + 4, 0) ? B[at] : 0);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, RdnaMemory,
                         ::testing::Values(RdnaTarget{"gfx1100", 32},
                                           RdnaTarget{"gfx1151", 64},
                                           RdnaTarget{"gfx1200", 64},
                                           RdnaTarget{"gfx1201", 32}),
                         [](const auto &info) { return info.param.name(); });

/// Groups of eight lanes transpose eight halves each.
class Gfx12Transpose : public RdnaMemory {};
TEST_P(Gfx12Transpose, LoadsOfHalves) {
  fill();
  auto *halves = reinterpret_cast<uint16_t *>(B);
  std::iota(halves, halves + 512, static_cast<uint16_t>(0));
  execute("v_lshlrev_b32 v2, 4, v0\n  global_load_tr_b128 v[24:27], v2, "
          "s[10:11]\n" +
          rdnaWait(GetParam()));
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t e = 0; e < 8; ++e)
      EXPECT_EQ((Out[64 * (e / 2) + l] >> (16 * (e % 2))) & 0xffff,
                8 * (8 * (l / 8) + e) + l % 8);
}
INSTANTIATE_TEST_SUITE_P(Targets, Gfx12Transpose,
                         ::testing::Values(RdnaTarget{"gfx1201", 32}));

} // namespace
