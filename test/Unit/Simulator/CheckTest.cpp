//===- CheckTest.cpp - Names of checks, alignment, barriers, lines --------===//
//
// What all checkers share, and the small ones.
//
//===----------------------------------------------------------------------===//
#include "CheckTest.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

TEST(CheckNames, AreReadAndRefused) {
  uint32_t checks = 0;
  ASSERT_TRUE(parseChecks("none", checks).ok());
  EXPECT_EQ(checks, kAlwaysChecked);
  ASSERT_TRUE(parseChecks("waitcnt,race-lds", checks).ok());
  EXPECT_EQ(checks, kAlwaysChecked | kCheckWaitcnt | kCheckRaceLds);
  ASSERT_TRUE(parseChecks("all,-barrier", checks).ok());
  EXPECT_EQ(checks, kAllChecks & ~uint32_t(kCheckBarrier));
  ASSERT_TRUE(parseChecks("all,align-natural", checks).ok());
  EXPECT_EQ(checks, kAllChecks | kCheckAlignNatural);
  ASSERT_TRUE(parseChecks("all,-bounds", checks).ok());
  EXPECT_EQ(checks, kAllChecks) << "bounds are always checked";
  for (const char *bad : {"", "everything", "waitcnt,", "waitcnt race-lds", "-none"}) {
    Status status = parseChecks(bad, checks);
    EXPECT_EQ(status.code(), ErrorCode::InvalidArgument) << bad;
    for (const CheckInfo &row : knownChecks())
      EXPECT_TRUE(hasAll(status.message(), {std::string(row.name)}));
  }
}

class Align : public CheckTest {};

TEST_F(Align, WordsAtOddAddresses) {
  // Lanes 5 and up load from one byte further.
  const std::string odd = "v_lshlrev_b32 v10, 2, v0\n"
                          "v_cmp_lt_u32 vcc, 4, v0\n"
                          "v_addc_co_u32 v10, vcc, v10, 0, vcc\n";
  std::string text = body("align-natural", odd + "global_load_dword v11, v10, s[8:9]\n");
  EXPECT_EQ(Code_, ErrorCode::CheckFailed);
  EXPECT_TRUE(hasAll(text, {"kernel 'k'", "global_load_dword v11", "lanes 5-63",
                            "check 'align-natural'", "4 bytes", "no multiple of 4",
                            "byte 21 of allocation #"}));
  EXPECT_TRUE(hasAll(body("align-natural", odd + "ds_read_b32 v11, v10\n"),
                     {"LDS offset 0x15", "no multiple of 4"}));
  EXPECT_TRUE(hasAll(body("align-natural", odd + "global_load_ushort v11, v10, s[8:9]\n"),
                     {"no multiple of 2"}));
  EXPECT_EQ(body("align-natural", odd + "global_load_ubyte v11, v10, s[8:9]\n"), "");
  EXPECT_EQ(body("all", odd + "global_load_dword v11, v10, s[8:9]\n"), "");
  EXPECT_EQ(body("align-natural", "v_lshlrev_b32 v10, 2, v0\n"
                          "global_load_dwordx4 v[12:15], v10, s[8:9]\n"), "");
}

TEST_F(Align, ScalarLoads) {
  EXPECT_TRUE(hasAll(body("align", "s_add_u32 s8, s8, 2\n"
                                   "s_load_dword s30, s[8:9], 0x0\n"),
                     {"s_load_dword", "ends in 2 of 4 bytes"}));
  EXPECT_EQ(body("align", "s_load_dword s30, s[8:9], 0x4\n"), "");
}

TEST_F(Align, PairsInLds) {
  const std::string pair = "v_lshl_add_u32 v10, v0, 3, 4\n"
                           "ds_write2_b32 v10, v2, v3 offset1:1\n"
                           "ds_write2_b64 v10, v[2:3], v[2:3] offset1:1\n";
  EXPECT_TRUE(hasAll(body("align", pair), {"ds_write2_b64", "LDS offset 0x4",
                                           "no multiple of 8", "lanes 0-63"}));
  EXPECT_EQ(body("align", "v_lshlrev_b32 v10, 3, v0\n"
                          "ds_write2_b64 v10, v[2:3], v[2:3] offset1:1\n"), "");
}

class Barrier : public CheckTest {
protected:
  std::string source(const char *condition, const char *rest) {
    return std::string("__kernel void k(__global int *o) {\n"
                       "  int i = LID;\n"
                       "  if (") + condition + ") {\n"
           "    o[i] = 1;\n"
           "    __builtin_amdgcn_s_barrier();\n"
           "    o[i] += 2;\n"
           "  }\n  " + rest + "\n}\n";
  }
  std::string go(const std::string &source, const char *flags = "-O1") {
    return kernel("barrier", source, 256, 1, Args().add(buffer<int>(1024)), flags);
  }
};

TEST_F(Barrier, LanesThatSitOut) {
  std::string text = go(source("i % 64 < 40", "o[i + 256] = i;"), "-O1 -g");
  EXPECT_EQ(Code_, ErrorCode::CheckFailed);
  EXPECT_TRUE(hasAll(text, {"s_barrier", "lanes 40-63", "check 'barrier'",
                            "did not take part", ".cl:17"}));
  EXPECT_EQ(go(source("i % 64 < 64", "o[i + 256] = i;")), "");
}

TEST_F(Barrier, LanesThatHaveEnded) {
  for (const char *flags : {"-O0", "-O2"}) {
    EXPECT_EQ(go(source("i % 64 < 40", ""), flags), "") << flags;
    EXPECT_EQ(go(source("i < 128", ""), flags), "") << flags;
  }
}

TEST_F(Barrier, WavesAtDifferentBarriers) {
  const std::string two = "v_readfirstlane_b32 s30, v0\n"
                          "s_cmp_lt_u32 s30, 64\n"
                          "s_cbranch_scc1 .Lother\n"
                          "s_barrier\n"
                          "s_branch .Ldone\n"
                          ".Lother:\n"
                          "s_nop 0\n"
                          "s_barrier\n"
                          ".Ldone:\n";
  std::string text = body("barrier", two, 128);
  EXPECT_TRUE(hasAll(text, {"wave 1", "check 'barrier'",
                            "wave 0 of the workgroup waits at another barrier",
                            "`s_barrier` at pc +0x"}));
  EXPECT_EQ(body("barrier", two, 64), "");
  EXPECT_EQ(body("barrier", "s_barrier\n", 128), "");
}

class SourceLine : public CheckTest {};

TEST_F(SourceLine, IsInEveryReport) {
  const std::string code = "__kernel void k(__global int *o) {\n"
                           "  int i = LID;\n"
                           "  if (i == 7)\n"
                           "    o[i + 4096] = i;\n"
                           "}\n";
  Args args;
  args.add(buffer<int>(64));
  // 12 lines of the prelude come before.
  EXPECT_TRUE(hasAll(kernel("none", code, 64, 1, args, "-O2 -g"),
                     {"source ", ".cl:16, ", "lane 7", "past the end of"}));
  EXPECT_EQ(kernel("none", code, 64, 1, args, "-O2").find("source"),
            std::string::npos);
}

} // namespace
