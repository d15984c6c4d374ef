//===- ShadowTest.cpp - Registers, LDS and memory never written -----------===//
//
// Uses that matter are reported; what compilers do with undefined values is not.
//
//===----------------------------------------------------------------------===//
#include "CheckTest.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class UninitRegisters : public CheckTest {
protected:
  std::string go(const std::string &instructions) {
    return body("uninit-reg", instructions);
  }
};

TEST_F(UninitRegisters, Stores) {
  std::string text = go("v_mov_b32 v8, v40\nv_mov_b32 v9, v41\n");
  EXPECT_EQ(Code_, ErrorCode::CheckFailed);
  EXPECT_TRUE(hasAll(text, {"kernel 'k'", "global_store_dwordx2 v1, v[8:9]",
                            "lanes 0-63", "check 'uninit-reg'",
                            "what is stored depends on v4", "never written"}));
  EXPECT_EQ(go("v_mov_b32 v8, 0\nv_mov_b32 v9, v41\n"), "") << "padding";
  EXPECT_TRUE(hasAll(go("v_add_f32 v8, v2, v40\nv_fma_f32 v9, v2, v8, v3\n"),
                     {"v40, never written"}));
  EXPECT_TRUE(hasAll(go("v_mov_b32 v8, s40\nv_mov_b32 v9, s40\n"),
                     {"s40, never written"}));
  EXPECT_TRUE(hasAll(go("v_accvgpr_read_b32 v8, a3\nv_mov_b32 v9, v8\n"),
                     {"a3, never written"}));
}

TEST_F(UninitRegisters, AddressesBranchesAndExec) {
  EXPECT_TRUE(hasAll(go("global_load_dword v10, v40, s[8:9]\n"),
                     {"global_load_dword", "the address depends on v40"}));
  EXPECT_TRUE(hasAll(go("v_add_u32 v10, v40, v1\nds_read_b32 v11, v10\n"),
                     {"ds_read_b32", "the address depends on v40"}));
  EXPECT_TRUE(hasAll(go("s_load_dword s30, s[40:41], 0x0\n"),
                     {"the address depends on s4"}));
  EXPECT_TRUE(hasAll(go("s_cmp_eq_u32 s40, 0\ns_cbranch_scc1 .L1\n.L1:\n"),
                     {"s_cbranch_scc1", "the way that the branch takes",
                      "s40, never written"}));
  EXPECT_TRUE(hasAll(go("v_cmp_eq_u32 vcc, v40, v2\ns_cbranch_vccnz .L1\n.L1:\n"),
                     {"s_cbranch_vccnz", "v40"}));
  EXPECT_TRUE(hasAll(go("v_cmp_eq_u32 vcc, v40, v2\n"
                        "s_and_saveexec_b64 s[30:31], vcc\n"),
                     {"s_and_saveexec_b64", "which lanes are active", "v40"}));
  EXPECT_TRUE(hasAll(go("v_mov_b32 v10, 0\nglobal_atomic_add v10, v40, s[8:9]\n"),
                     {"operand of the atomic"}));
}

TEST_F(UninitRegisters, LanesForThemselves) {
  // Only the lanes that were written are used.
  const std::string half = "s_mov_b64 exec, 0xffff\n"
                           "v_mov_b32 v10, 0\n";
  EXPECT_EQ(go(half + "global_load_dword v11, v10, s[8:9]\ns_mov_b64 exec, -1\n"), "");
  EXPECT_TRUE(hasAll(go(half + "s_mov_b64 exec, -1\n"
                               "global_load_dword v11, v10, s[8:9]\n"),
                     {"lanes 16-63", "v10"}));
  EXPECT_EQ(go(half + "v_readlane_b32 s30, v10, 3\ns_mov_b64 exec, -1\n"
                      "v_mov_b32 v8, s30\n"), "");
  EXPECT_TRUE(hasAll(go(half + "v_readlane_b32 s30, v10, 33\n"
                               "s_mov_b64 exec, -1\nv_mov_b32 v8, s30\n"
                               "v_mov_b32 v9, s30\n"), {"what is stored"}));
}

TEST_F(UninitRegisters, WhatCompilersDo) {
  // A mask of which only the active lanes' bits were ever set.
  EXPECT_EQ(go("v_cmp_eq_u32 vcc, v2, v2\n"
               "s_andn2_b64 s[40:41], s[40:41], exec\n"
               "s_and_b64 s[42:43], vcc, exec\n"
               "s_or_b64 s[40:41], s[40:41], s[42:43]\n"
               "s_and_saveexec_b64 s[44:45], s[40:41]\n"), "");
  // The half that is not selected.
  EXPECT_EQ(go("s_mov_b64 vcc, -1\nv_cndmask_b32 v8, v40, v2, vcc\n"
               "v_mov_b32 v9, v8\n"), "");
  EXPECT_TRUE(hasAll(go("s_mov_b64 vcc, 1\nv_cndmask_b32 v8, v40, v2, vcc\n"
                        "v_mov_b32 v9, v8\n"), {"lanes 1-63"}));
  EXPECT_EQ(go("s_cmp_eq_u32 s8, s8\ns_cselect_b32 s30, s8, s40\n"
               "v_mov_b32 v8, s30\n"), "");
  // Halves of a register, one after the other.
  EXPECT_EQ(go("v_lshl_or_b32 v8, v40, 16, v2\n"), "");
  // The lower half of a product does not depend on the upper addend.
  EXPECT_EQ(go("v_mov_b32 v10, 0\nv_mad_u64_u32 v[8:9], vcc, v2, v4, v[10:11]\n"), "");
  // A spilled scalar, and a callee's register.
  EXPECT_EQ(go("v_writelane_b32 v40, s8, 5\nv_readlane_b32 s30, v40, 5\n"
               "v_mov_b32 v8, s30\n"), "");
}

TEST_F(UninitRegisters, BetweenLanes) {
  const std::string start = "s_mov_b64 exec, 0x0f\nv_mov_b32 v10, 1\n"
                            "s_mov_b64 exec, -1\n";
  // Lane l reads lane l % 4 of its quad and not beyond the first quad.
  EXPECT_TRUE(hasAll(go(start + "v_mov_b32_dpp v8, v10 quad_perm:[1,0,3,2]"
                                " row_mask:0xf bank_mask:0xf\n"
                                "v_mov_b32 v9, v8\n"), {"lanes 4-63"}));
  EXPECT_TRUE(hasAll(go(start + "v_add_f32_dpp v8, v10, v2 row_ror:4"
                                " row_mask:0xf bank_mask:0xf\n"
                                "v_mov_b32 v9, v8\n"), {"lanes 0-3, 8-63"}));
  EXPECT_EQ(go(start + "v_mov_b32 v11, 0\n"
                       "ds_bpermute_b32 v8, v11, v10\n"
                       "s_waitcnt lgkmcnt(0)\nv_mov_b32 v9, v8\n"), "");
  EXPECT_TRUE(hasAll(go(start + "v_mov_b32 v11, 16\n"
                                "ds_bpermute_b32 v8, v11, v10\n"
                                "s_waitcnt lgkmcnt(0)\nv_mov_b32 v9, v8\n"),
                     {"what is stored", "v10"}));
}

TEST_F(UninitRegisters, MatrixCores) {
  auto product = [&](const std::string &setUp) {
    std::string zero;
    for (int i = 12; i < 20; ++i)
      zero += "v_mov_b32 v" + std::to_string(i) + ", 0\n";
    return go(zero + setUp + "v_mfma_f32_16x16x16_f16 v[16:19], v[12:13], "
                             "v[14:15], v[16:19]\ns_nop 15\n"
                             "v_mov_b32 v8, v16\nv_mov_b32 v9, v17\n");
  };
  EXPECT_EQ(product(""), "");
  EXPECT_TRUE(hasAll(product("v_mov_b32 v12, v40\n"), {"lanes 0-63", "v40"}));
  // Row 3 of A is in lanes 3, 19, 35 and 51, and goes to element 3 of D in the
  // first 16 lanes; column 3 of B goes to the same lanes of all of D.
  const std::string lane3 = "s_mov_b64 exec, 8\nv_mov_b32 %, v40\n"
                            "s_mov_b64 exec, -1\n";
  auto in = [&](const char *reg) {
    std::string text = lane3;
    return text.replace(text.find('%'), 1, reg);
  };
  EXPECT_EQ(product(in("v12")), "");
  EXPECT_TRUE(hasAll(product(in("v14")), {"lanes 3, 19, 35, 51", "v40"}));
}

TEST_F(UninitRegisters, Scratch) {
  const char *source = "__kernel void k(__global int *o, int n) {\n"
                       "  volatile int x[8];\n"
                       "  for (int i = 0; i < n; ++i) x[i] = i;\n"
                       "  o[LID] = x[(LID + n) & 7]; }\n";
  for (const char *flags : {"-O0", "-O2"}) {
    Args all, some;
    all.add(buffer<int>(64)).add(8);
    some.add(buffer<int>(64)).add(5);
    EXPECT_EQ(kernel("uninit-reg", source, 64, 1, all, flags), "") << flags;
    EXPECT_TRUE(hasAll(kernel("uninit-reg", source, 64, 1, some, flags),
                       {"never written scratch, read by `", "lanes 0-2, 8-10"}))
        << flags;
  }
}

class UninitLds : public CheckTest {};

TEST_F(UninitLds, ReadsThatMatter) {
  const std::string read = "v_lshlrev_b32 v10, 3, v0\n"
                           "ds_read_b64 v[8:9], v10\ns_waitcnt lgkmcnt(0)\n";
  std::string text = body("uninit-lds", read);
  EXPECT_EQ(Code_, ErrorCode::CheckFailed);
  EXPECT_TRUE(hasAll(text, {"global_store_dwordx2", "lanes 0-63",
                            "check 'uninit-lds'",
                            "never written LDS, read by `ds_read_b64 v[8:9], v10`"}));
  EXPECT_EQ(body("uninit-reg", read), "");
  EXPECT_EQ(body("uninit-lds", "v_lshlrev_b32 v10, 3, v0\n"
                               "ds_write_b64 v10, v[2:3]\n" + read), "");
  // Read, but not used.
  EXPECT_EQ(body("uninit-lds", read + "v_mov_b32 v8, 0\n"), "");
  EXPECT_TRUE(hasAll(body("uninit-lds", "v_lshlrev_b32 v10, 3, v0\n"
                                        "s_mov_b64 exec, 0xff\n"
                                        "ds_write_b64 v10, v[2:3]\n"
                                        "s_mov_b64 exec, -1\n" + read),
                     {"lanes 8-63"}));
  EXPECT_TRUE(hasAll(body("uninit-lds", "v_mov_b32 v10, 64\n"
                                        "ds_read_b32 v11, v10\n"
                                        "s_waitcnt lgkmcnt(0)\n"
                                        "global_load_dword v12, v11, s[8:9]\n"),
                     {"the address depends on never written LDS"}));
}

class UninitMemory : public CheckTest {};

TEST_F(UninitMemory, OfAnAllocation) {
  const char *source = "__kernel void k(__global int *a, __global int *b) {\n"
                       "  b[LID] = a[LID] + 1; }\n";
  int *a = buffer<int>(64), *b = buffer<int>(64);
  WrittenMap &written = Dev->memory().written();
  written.follow(reinterpret_cast<uint64_t>(a), 256);
  written.write(reinterpret_cast<uint64_t>(a), 160);
  Args args;
  args.add(a).add(b);
  std::string text = kernel("uninit-mem", source, 64, 1, args);
  EXPECT_TRUE(hasAll(text, {"store", "lanes 40-63", "check 'uninit-mem'",
                            "never written device memory, read by `"}));
  written.write(reinterpret_cast<uint64_t>(a) + 160, 96);
  EXPECT_EQ(kernel("uninit-mem", source, 64, 1, args), "");
  // Kernels write too.
  written.follow(reinterpret_cast<uint64_t>(b), 256);
  EXPECT_EQ(kernel("uninit-mem", source, 64, 1, args), "");
  EXPECT_EQ(kernel("uninit-mem", source, 64, 1, Args().add(b).add(a)), "");
  // A launch that nobody watches may have written anything.
  written.follow(reinterpret_cast<uint64_t>(a), 256);
  EXPECT_EQ(kernel("none", source, 64, 1, args), "");
  EXPECT_EQ(kernel("uninit-mem", source, 64, 1, args), "");
}

} // namespace
