//===- SchedulingTest.cpp - Waves of a workgroup side by side -------------===//
//
// Hand-written kernels may rely on waves advancing at about one speed between
// barriers: a wave reads LDS right after a barrier, another overwrites it after
// much more work. Whichever wave comes first, the read must see the old value.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class Scheduling : public KernelTest {};

/// Two waves; all of LDS is 7. After a barrier the writing wave puts 9 there
/// after 160 instructions, the other reads it after 100.
std::string body(bool firstWrites) {
  return std::string(R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_and_b32_e32 v1, 63, v0
  v_lshlrev_b32_e32 v1, 2, v1
  v_mov_b32_e32 v2, 7
  ds_write_b32 v1, v2
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_readfirstlane_b32 s6, v0
  s_cmp_lt_u32 s6, 64
  )") + (firstWrites ? "s_cbranch_scc0" : "s_cbranch_scc1") +
         R"( .Lread
  .rept 160
  s_nop 0
  .endr
  v_mov_b32_e32 v2, 9
  ds_write_b32 v1, v2
  s_branch .Lend
.Lread:
  .rept 100
  s_nop 0
  .endr
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
.Lend:
)";
}

TEST_F(Scheduling, WavesAdvanceTogether) {
  for (bool firstWrites : {false, true}) {
    load(assemble(asmModule({{"k", body(firstWrites), 256}})));
    ASSERT_TRUE(Code);
    auto *out = buffer<uint32_t>(64);
    LaunchConfig config;
    config.block = {128, 1, 1};
    config.options.threads = 1;
    Status status = run("k", config, Args().add(out));
    ASSERT_TRUE(status.ok()) << status.message();
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out[i], 7u) << "lane " << i << ", first writes: " << firstWrites;
  }
}

} // namespace
