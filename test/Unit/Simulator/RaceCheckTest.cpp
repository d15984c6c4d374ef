//===- RaceCheckTest.cpp - Races between waves and workgroups -------------===//
//
// Each racy kernel beside its correct twin.
//
//===----------------------------------------------------------------------===//
#include "CheckTest.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class LdsRaces : public CheckTest {
protected:
  /// Each wave writes its quarter, and reads the next wave's after \p between.
  std::string exchange(const std::string &between, const std::string &names) {
    return body(names,
                "v_lshlrev_b32 v10, 2, v0\n"
                "v_xor_b32 v11, 0x100, v10\n"
                "ds_write_b32 v10, v0\n" + between +
                "ds_read_b32 v12, v11\n"
                "s_waitcnt lgkmcnt(0)\n", 256);
  }
  std::string exchange(const std::string &between) {
    std::string text = exchange(between, "race-lds");
    EXPECT_EQ(exchange(between, "race-lds,waitcnt"), text);
    return text;
  }
};

TEST_F(LdsRaces, WriteThenRead) {
  std::string text = exchange("s_waitcnt lgkmcnt(0)\n");
  EXPECT_EQ(Code_, ErrorCode::CheckFailed);
  // Which of the two comes first depends on the order of waves.
  EXPECT_TRUE(hasAll(text, {"kernel 'k'", "`ds_write_b32 v10, v0`",
                            "`ds_read_b32 v12, v11`", "wave 0", "wave 1",
                            "check 'race-lds'", "LDS offset 0x", "no barrier"}));
  EXPECT_EQ(exchange("s_waitcnt lgkmcnt(0)\ns_barrier\n"), "");
}

TEST_F(LdsRaces, WriteStillOnItsWayAtTheBarrier) {
  EXPECT_TRUE(hasAll(exchange("s_barrier\n"), {"check 'race-lds'", "wait"}));
  // A wait after the barrier is too late; the one of a write before is not.
  EXPECT_TRUE(hasAll(exchange("s_barrier\ns_waitcnt lgkmcnt(0)\n"), {"race-lds"}));
  EXPECT_EQ(exchange("s_waitcnt lgkmcnt(0)\nds_write_b32 v10, v0 offset:1024\n"
                     "s_barrier\n"), "");
  EXPECT_EQ(exchange("s_barrier\ns_waitcnt lgkmcnt(0)\ns_barrier\n"), "");
}

TEST_F(LdsRaces, ReadThenWrite) {
  const std::string start = "v_lshlrev_b32 v10, 2, v0\n"
                            "v_xor_b32 v11, 0x100, v10\n"
                            "ds_read_b32 v12, v11\n"
                            "s_waitcnt lgkmcnt(0)\n";
  EXPECT_TRUE(hasAll(body("race-lds", start + "ds_write_b32 v10, v0\n", 256),
                     {"`ds_read_b32", "`ds_write_b32", "check 'race-lds'"}));
  EXPECT_EQ(body("race-lds", start + "s_barrier\nds_write_b32 v10, v0\n", 256), "");
}

TEST_F(LdsRaces, ReadStillOnItsWayAtTheBarrier) {
  // Each wave reads the next one's words and writes its own behind a barrier.
  auto check = [&](const std::string &reads, const std::string &between,
                   const std::string &write = "ds_write_b32 v10, v0\n") {
    return body("race-lds",
                "v_lshlrev_b32 v10, 2, v0\n"
                "v_xor_b32 v11, 0x100, v10\n" +
                    reads + between + write + "s_waitcnt lgkmcnt(0)\n",
                256);
  };
  const std::string one = "ds_read_b32 v12, v11\n",
                    wait = "s_waitcnt lgkmcnt(0)\n", barrier = "s_barrier\n";
  EXPECT_TRUE(
      hasAll(check(one, barrier),
             {"check 'race-lds'", "`ds_write_b32 v10, v0`", "reads it with",
              "`ds_read_b32 v12, v11`", "no barrier after that read's wait"}));
  EXPECT_EQ(check(one, wait + barrier), "");
  // A wait behind the barrier is too late, unless another barrier follows.
  EXPECT_NE(check(one, barrier + wait), "");
  EXPECT_NE(check(one, barrier + barrier), "");
  EXPECT_EQ(check(one, barrier + wait + barrier), "");
  // Of two reads the first is done; places of one instruction are two reads.
  const std::string first = "s_waitcnt lgkmcnt(1)\n" + barrier,
                    other = "ds_write_b32 v10, v0 offset:1024\n",
                    next = "ds_read_b32 v13, v11 offset:1024\n",
                    both = "ds_read2st64_b32 v[14:15], v11 offset1:4\n";
  EXPECT_EQ(check(one + next, first), "");
  EXPECT_NE(check(one + next, first, other), "");
  EXPECT_NE(check(both, barrier), "");
  EXPECT_NE(check(both, barrier, other), "");
  EXPECT_EQ(check(both + next, first), "");
  // Words and bytes of blocks that are read as a whole.
  for (const char *write :
       {"ds_write_b128 v10, v[0:3]\n", "ds_write_b8 v10, v0\n"})
    for (const std::string &late : {wait, std::string()})
      EXPECT_EQ(check("v_lshlrev_b32 v10, 4, v0\nv_xor_b32 v11, 0x400, v10\n"
                      "ds_read_b128 v[12:15], v11\n",
                      late + barrier, write)
                    .empty(),
                !late.empty())
          << write;
}

TEST_F(LdsRaces, BlocksAndWords) {
  // Blocks of 16 bytes against their words, in all combinations.
  for (const char *write : {"ds_write_b128 v10, v[2:5]\n",
                            "ds_write_b32 v10, v2 offset:12\n",
                            "ds_write_b64 v10, v[4:5] offset:8\n"})
    for (const char *read : {"ds_read_b128 v[12:15], v11\n",
                             "ds_read_b32 v12, v11 offset:12\n"})
      for (const char *barrier : {"", "s_barrier\n"}) {
        std::string text = body("race-lds",
                                "v_lshlrev_b32 v10, 4, v0\n"
                                "v_xor_b32 v11, 0x400, v10\n"
                                "v_add_u32 v5, 1, v0\n" +
                                    std::string(write) +
                                    "s_waitcnt lgkmcnt(0)\n" + barrier + read +
                                    "s_waitcnt lgkmcnt(0)\n",
                                128);
        EXPECT_EQ(text.empty(), *barrier != 0) << write << read << text;
      }
}

TEST_F(LdsRaces, WriteThenWrite) {
  const std::string write = "v_mov_b32 v10, 0\nds_write_b32 v10, v0\n";
  EXPECT_TRUE(hasAll(body("race-lds", write, 128), {"wave 1", "wave 0", "writes it with `ds_write_b32"}));
  EXPECT_EQ(body("race-lds", write, 64), "");
  // The same value from all waves does no harm.
  EXPECT_EQ(body("race-lds", "v_mov_b32 v10, 0\nds_write_b32 v10, v10\n", 128), "");
}

TEST_F(LdsRaces, PartsOfAWord) {
  // Two waves write and read the bytes of the same words, but not the same bytes.
  const std::string bytes = "v_lshrrev_b32 v10, 6, v0\n" // wave
                            "v_and_b32 v11, 63, v0\n"
                            "v_lshl_add_u32 v11, v11, 2, v10\n"
                            "ds_write_b8 v11, v0\n"
                            "ds_read_u8 v12, v11\n"
                            "s_waitcnt lgkmcnt(0)\n"
                            "ds_write_b8 v11, v12\n";
  EXPECT_EQ(body("race-lds", bytes, 256), "");
  EXPECT_TRUE(hasAll(body("race-lds", bytes + "v_and_b32 v11, -4, v11\n"
                                              "ds_read_b32 v12, v11\n", 256),
                     {"ds_read_b32"}));
}

TEST_F(LdsRaces, Atomics) {
  const std::string add = "v_mov_b32 v10, 0\nv_mov_b32 v11, 1\n"
                          "ds_add_rtn_u32 v12, v10, v11\n"
                          "s_waitcnt lgkmcnt(0)\n";
  EXPECT_EQ(body("race-lds", add, 256), "");
  EXPECT_TRUE(hasAll(body("race-lds", add + "ds_write_b32 v10, v0\n", 256),
                     {"race-lds"}));
  // Data handed over by an atomic: the second wave comes after the first.
  const std::string hand = "v_lshlrev_b32 v13, 2, v0\n"
                           "v_xor_b32 v14, 0x100, v13\n"
                           "ds_write_b32 v13, v0 offset:64\n"
                           "s_waitcnt lgkmcnt(0)\n";
  const std::string readIfLast = "v_readfirstlane_b32 s30, v12\n"
                                 "s_cmp_lg_u32 s30, 64\n" // wave 0 got 0
                                 "s_cbranch_scc1 .Lskip\n"
                                 "ds_read_b32 v15, v14 offset:64\n"
                                 ".Lskip:\n";
  EXPECT_EQ(body("race-lds", hand + add + readIfLast, 128), "");
}

TEST_F(LdsRaces, LoadsToLds) {
  const std::string load = "v_lshrrev_b32 v10, 6, v0\n"
                           "v_readfirstlane_b32 s30, v10\n"
                           "s_lshl_b32 m0, s30, 8\n"
                           "v_lshlrev_b32 v10, 2, v0\n"
                           "v_xor_b32 v11, 0x100, v10\n"
                           "global_load_lds_dword v10, s[8:9]\n";
  // What arrives differs from what is there.
  EXPECT_TRUE(hasAll(body("race-lds", load + "s_barrier\nds_read_b32 v12, v11\n", 256),
                     {"it with `", "`global_load_lds_dword", "`ds_read_b32"}));
  EXPECT_EQ(body("race-lds", load + "s_waitcnt vmcnt(0)\ns_barrier\n"
                                    "ds_read_b32 v12, v11\n", 256), "");
  // A wait may cover the first of two loads alone.
  const std::string two = load + "s_add_u32 m0, m0, 0x400\n"
                                 "global_load_lds_dword v10, s[8:9]\n"
                                 "s_waitcnt vmcnt(1)\ns_barrier\n";
  EXPECT_EQ(body("race-lds", two + "ds_read_b32 v12, v11\n", 256), "");
  EXPECT_TRUE(hasAll(body("race-lds", two + "ds_read_b32 v12, v11 offset:1024\n", 256),
                     {"`global_load_lds_dword", "`ds_read_b32"}));
}

class GlobalRaces : public CheckTest {
protected:
  std::string go(const std::string &source, unsigned groups, unsigned block,
                 const char *names = "race-global") {
    std::vector<int> numbers(4096);
    for (int i = 0; i < 4096; ++i)
      numbers[size_t(i)] = -i;
    return kernel(names, source, block, groups,
                  Args().add(buffer(numbers)).add(buffer<int>(4096)));
  }
};

TEST_F(GlobalRaces, BetweenWorkgroups) {
  for (unsigned threads : {1u, 3u}) {
    Threads = threads;
    std::string text = go("__kernel void k(__global int *a, __global int *b) {\n"
                          "  b[0] = GID; }", 4, 64);
    EXPECT_EQ(Code_, ErrorCode::CheckFailed);
    EXPECT_TRUE(hasAll(text, {"kernel 'k'", "store", "check 'race-global'",
                              "allocation #", "workgroup (", "nothing orders"}));
    // Reads of what the next workgroup writes.
    EXPECT_NE(go("__kernel void k(__global int *a, __global int *b) {\n"
                 "  a[GID] = a[GID + 64]; }", 4, 64), "");
    EXPECT_EQ(go("__kernel void k(__global int *a, __global int *b) {\n"
                 "  b[GID] = a[GID + 64] + a[0]; a[GID + 2048] = 1; }", 4, 64), "");
    // All store what is there.
    EXPECT_EQ(go("__kernel void k(__global int *a, __global int *b) {\n"
                 "  b[0] = 7; }", 1, 64), "");
  }
}

TEST_F(GlobalRaces, SameValue) {
  EXPECT_EQ(go("__kernel void k(__global int *a, __global int *b) {\n"
               "  b[0] = 7; }", 4, 64), "");
}

TEST_F(GlobalRaces, HalvesOfAWord) {
  // Workgroups of 63 items share words at their borders.
  EXPECT_EQ(go("__kernel void k(__global short *a, __global short *b) {\n"
               "  a[GID] += b[GID]; b[GID] = a[GID]; }", 8, 63), "");
}

TEST_F(GlobalRaces, BetweenWaves) {
  auto source = [](const char *between) {
    return std::string("__kernel void k(__global int *a, __global int *b) {\n"
                       "  b[LID] = a[LID];\n  ") + between +
           "\n  a[LID] = b[LID ^ 64]; }";
  };
  std::string text = go(source(""), 1, 128);
  EXPECT_TRUE(hasAll(text, {"wave 1", "wave 0", "check 'race-global'",
                            "no barrier between"}));
  EXPECT_EQ(go(source("BARRIER();"), 1, 128), "");
}

TEST_F(GlobalRaces, LastOneAdds) {
  // Partial results, and the workgroup that finishes last reads all of them.
  auto source = [](const char *count) {
    return std::string("__kernel void k(__global int *a, __global int *b) {\n"
      "  __local int last;\n"
      "  b[64 + GID] = a[GID];\n"
      "  __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"agent\");\n"
      "  BARRIER();\n"
      "  if (LID == 0) last = ") + count + ";\n"
      "  BARRIER();\n"
      "  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"agent\");\n"
      "  if (last == 3) { int s = 0;\n"
      "    for (int i = 0; i < 4; ++i) s += b[64 + 128 * i + LID];\n"
      "    b[1024 + LID] = s; } }";
  };
  EXPECT_EQ(go(source("__atomic_fetch_add(&b[0], 1, __ATOMIC_ACQ_REL)"), 4, 128), "");
  EXPECT_NE(go(source("b[0]++"), 4, 128), "");
}

TEST_F(GlobalRaces, Atomics) {
  // The compiler starts its compare-and-swap loop with a plain load.
  EXPECT_EQ(go("__kernel void k(__global int *a, __global int *b) {\n"
               "  int old = b[3];\n"
               "  while (!__atomic_compare_exchange_n(&b[3], &old, old + LID, 0,"
               " __ATOMIC_RELAXED, __ATOMIC_RELAXED)); }", 4, 128), "");
  EXPECT_EQ(go("__kernel void k(__global int *a, __global int *b) {\n"
               "  __atomic_fetch_add(&b[a[GID] & 15], 1, __ATOMIC_RELAXED); }",
               4, 128), "");
  EXPECT_NE(go("__kernel void k(__global int *a, __global int *b) {\n"
               "  __atomic_fetch_add(&b[0], 1, __ATOMIC_RELAXED);\n"
               "  if (GID == 300) b[0] = 5; }", 4, 128), "");
}

} // namespace
