//===- WaitCheckTest.cpp - Uses of registers before they are loaded -------===//
//
// Expected waits are those of the chapter on data dependency resolution in
// AMD's CDNA3 ISA document: vector memory and LDS each complete in order, scalar
// memory in any.
//
//===----------------------------------------------------------------------===//
#include "CheckTest.h"
#include "RdnaAsm.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class WaitCheck : public CheckTest {
protected:
  std::string go(const std::string &instructions) {
    return body("waitcnt", instructions);
  }
};

TEST_F(WaitCheck, VectorMemory) {
  const std::string two = "global_load_dword v10, v1, s[8:9]\n"
                          "global_load_dwordx2 v[12:13], v1, s[8:9]\n";
  std::string text = go(two + "v_mov_b32 v14, v10\n");
  EXPECT_EQ(Code_, ErrorCode::CheckFailed);
  EXPECT_TRUE(hasAll(text, {"v_mov_b32_e32 v14, v10", "check 'waitcnt'",
                            "v10 is read while `global_load_dword v10",
                            "at pc +0x", "vmcnt(1)"}));
  EXPECT_TRUE(hasAll(go(two + "s_waitcnt vmcnt(1)\nv_mov_b32 v14, v13\n"),
                     {"v13 is read", "vmcnt(0)"}));
  EXPECT_EQ(go(two + "s_waitcnt vmcnt(1)\nv_mov_b32 v14, v10\n"), "");
  EXPECT_EQ(go(two + "s_waitcnt vmcnt(0)\nv_mov_b32 v14, v13\n"), "");
  EXPECT_TRUE(hasAll(go(two + "s_waitcnt lgkmcnt(0)\nv_mov_b32 v14, v10\n"),
                     {"v10 is read"}));
  // Stores count too on this chip.
  EXPECT_EQ(go(two + "global_store_dword v1, v4, s[12:13]\n"
                     "s_waitcnt vmcnt(2)\nv_mov_b32 v14, v10\n"), "");
}

TEST_F(WaitCheck, Overwriting) {
  const std::string load = "global_load_dword v10, v1, s[8:9]\n";
  EXPECT_TRUE(hasAll(go(load + "v_mov_b32 v10, v2\n"), {"v10 is written"}));
  // Loads into one register complete in order; halves of a register too.
  EXPECT_EQ(go(load + load + "s_waitcnt vmcnt(0)\nv_mov_b32 v11, v10\n"), "");
  EXPECT_EQ(go("v_mov_b32 v10, 0\n"
               "global_load_short_d16 v10, v1, s[8:9]\n"
               "global_load_short_d16_hi v10, v1, s[8:9]\n"
               "s_waitcnt vmcnt(0)\nv_mov_b32 v11, v10\n"), "");
  EXPECT_TRUE(hasAll(go(load + load + "s_waitcnt vmcnt(1)\nv_mov_b32 v11, v10\n"),
                     {"v10 is read", "vmcnt(0)"}));
  EXPECT_TRUE(hasAll(go(load + "v_lshlrev_b32 v11, 2, v0\nds_read_b32 v10, v11\n"),
                     {"v10 is written"}));
  // The address of a load is read when it is issued.
  EXPECT_EQ(go("v_mov_b32 v11, v1\nglobal_load_dword v10, v11, s[8:9]\n"
               "v_mov_b32 v11, 0\n"), "");
}

TEST_F(WaitCheck, ScalarMemory) {
  const std::string two = "s_load_dword s30, s[8:9], 0x0\n"
                          "s_load_dword s31, s[8:9], 0x4\n";
  EXPECT_TRUE(hasAll(go(two + "s_waitcnt lgkmcnt(1)\ns_mov_b32 s32, s30\n"),
                     {"s30 is read", "lgkmcnt(0)"}));
  EXPECT_TRUE(hasAll(go(two + "v_mov_b32 v10, s31\n"), {"s31 is read"}));
  EXPECT_EQ(go(two + "s_waitcnt lgkmcnt(0)\ns_mov_b32 s32, s30\n"), "");
  EXPECT_TRUE(hasAll(go("s_load_dwordx2 vcc, s[8:9], 0x0\n"
                        "v_cndmask_b32 v10, v2, v4, vcc\n"),
                     {"vcc_lo is read"}));
}

TEST_F(WaitCheck, Lds) {
  const std::string read = "v_lshlrev_b32 v11, 2, v0\n"
                           "ds_read_b32 v10, v11\n"
                           "ds_read2_b32 v[12:13], v11 offset0:1 offset1:2\n";
  EXPECT_EQ(go(read + "s_waitcnt lgkmcnt(1)\nv_mov_b32 v14, v10\n"), "");
  EXPECT_TRUE(hasAll(go(read + "s_waitcnt lgkmcnt(1)\nv_mov_b32 v14, v13\n"),
                     {"v13 is read", "ds_read2_b32", "lgkmcnt(0)"}));
  // With scalar memory among them a count of 1 leaves any one of it, and of LDS
  // the last.
  EXPECT_EQ(go(read + "s_load_dword s30, s[8:9], 0x0\n"
                      "s_waitcnt lgkmcnt(1)\nv_mov_b32 v14, v10\n"), "");
  EXPECT_TRUE(hasAll(go(read + "s_load_dword s30, s[8:9], 0x0\n"
                               "s_waitcnt lgkmcnt(1)\ns_mov_b32 s31, s30\n"),
                     {"s30 is read", "lgkmcnt(0)"}));
}

TEST_F(WaitCheck, MoreThanACounterCounts) {
  // A scalar load stays in flight under more LDS operations than can be counted.
  std::string many = "v_lshlrev_b32 v11, 2, v0\ns_load_dword s30, s[8:9], 0x0\n";
  for (int i = 0; i < 80; ++i)
    many += "ds_write_b32 v11, v0\n";
  EXPECT_EQ(go(many + "s_waitcnt lgkmcnt(0)\n"
                      "ds_read_b32 v10, v11\nds_read_b32 v12, v11\n"
                      "s_waitcnt lgkmcnt(1)\nv_mov_b32 v14, v10\n"), "");
}

TEST_F(WaitCheck, Flat) {
  const std::string flat = "v_mov_b32 v10, s8\nv_mov_b32 v11, s9\n"
                           "flat_load_dword v12, v[10:11]\n";
  EXPECT_EQ(go(flat + "s_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32 v13, v12\n"), "");
  EXPECT_EQ(go(flat + "s_waitcnt vmcnt(0)\nv_mov_b32 v13, v12\n"), "");
  EXPECT_TRUE(hasAll(go(flat + "s_waitcnt lgkmcnt(0)\nv_mov_b32 v13, v12\n"),
                     {"v12 is read", "vmcnt(0)"}));
}

TEST_F(WaitCheck, LoadsToLds) {
  const std::string load = "s_mov_b32 m0, 0x100\n"
                           "v_lshlrev_b32 v11, 2, v0\n"
                           "global_load_lds_dword v11, s[8:9]\n";
  EXPECT_TRUE(hasAll(go(load + "ds_read_b32 v12, v11 offset:128\n"),
                     {"lanes 32-63", "4 bytes at LDS offset 0x100",
                      "`global_load_lds_dword v11", "vmcnt(0)"}));
  EXPECT_EQ(go(load + "ds_read_b32 v12, v11 offset:512\n"), "");
  EXPECT_EQ(go(load + "s_waitcnt vmcnt(0)\nds_read_b32 v12, v11 offset:256\n"), "");
}

TEST_F(WaitCheck, FlatOutOfOrder) {
  // CDNA3 ISA, 10.2.2: after FLAT only a wait for 0 makes sense.
  const std::string flat = "v_mov_b32 v10, s8\nv_mov_b32 v11, s9\n"
                           "global_load_dword v13, v1, s[8:9]\n"
                           "flat_load_dword v12, v[10:11]\n";
  EXPECT_EQ(go(flat + "s_waitcnt vmcnt(0)\nv_mov_b32 v14, v13\n"), "");
  EXPECT_TRUE(hasAll(go(flat + "s_waitcnt vmcnt(1)\nv_mov_b32 v14, v13\n"),
                     {"v13 is read"}));
  EXPECT_TRUE(hasAll(go(flat + "global_load_dword v13, v1, s[8:9]\n"
                               "s_waitcnt vmcnt(1)\nv_mov_b32 v14, v12\n"),
                     {"v12 is read", "vmcnt(0)"}));
  EXPECT_TRUE(
      hasAll(go(flat + "flat_load_dword v12, v[10:11]\n"), {"v12 is written"}));
  // GFX12 keeps the order, but not of the parts of FLAT (RDNA4 ISA, 5.7.1.3).
  use("gfx1201");
  auto rdna = [&](const std::string &instructions) {
    RdnaTarget target{"gfx1201", 32};
    load(assembleRdna(target, {{"k", rdnaVectorBody(target, instructions)}}));
    Args args;
    for (int i = 0; i < 4; ++i)
      args.add(buffer<uint32_t>(std::vector<uint32_t>(512, 0)));
    return report("waitcnt", 32, 1, args);
  };
  const std::string fresh = "v_mov_b32 v2, s8\n  v_mov_b32 v3, s9\n"
                            "  global_load_b32 v5, v1, s[8:9]\n"
                            "  flat_load_b32 v4, v[2:3]\n";
  EXPECT_EQ(rdna(fresh + "  s_wait_loadcnt 0x1\n  v_mov_b32 v6, v5\n"), "");
  EXPECT_TRUE(
      hasAll(rdna(fresh + "  flat_load_b32 v4, v[2:3]\n"), {"v4 is written"}));
  EXPECT_TRUE(
      hasAll(rdna("s_get_barrier_state s20, -1\n  s_mov_b32 s21, s20\n"),
             {"s20 is read", "kmcnt(0)"}));
  EXPECT_EQ(rdna("s_get_barrier_state s20, -1\n  s_wait_kmcnt 0x0\n"
                 "  s_mov_b32 s21, s20\n"),
            "");
}

} // namespace
