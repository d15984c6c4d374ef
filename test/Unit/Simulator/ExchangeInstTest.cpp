//===- ExchangeInstTest.cpp - Data that moves between lanes and memory ----===//
//
// Formatted buffers, LDS transposes and loads to LDS, swaps of halves of waves,
// scalar stores and atomics, and the LDS instructions that compilers seldom
// emit; expectations from the ISA documents of the chips that have them.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "HostBits.h"
#include "KernelTest.h"

#include <cmath>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

class ExchangeInst : public KernelTest {
protected:
  void start(const std::string &target, std::vector<AsmKernel> kernels) {
    use(target);
    load(assemble(asmModule(kernels, 64, target), target));
    ASSERT_TRUE(Code);
    EXPECT_TRUE(Code->unsupportedInstructions().empty());
    for (u64 *&x : P) {
      x = buffer<u64>(256);
      std::memset(x, 0, 2048);
    }
  }
  void go(const std::string &name, unsigned lanes = 64) {
    Status status =
        run(name, 1, lanes, Args().add(P[0]).add(P[1]).add(P[2]).add(P[3]));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  u64 *P[4];
};

/// A resource of b's memory in s[4:7]: 128 bytes, destination swizzle x, y, z,
/// w.
std::string resource(u32 data, u32 number, const std::string &instructions) {
  u32 word3 = 4 | 5 << 3 | 6 << 6 | 7 << 9 | number << 12 | data << 15;
  return vectorBody("s_mov_b32 s4, s10\n  s_mov_b32 s5, s11\n"
                    "  s_mov_b32 s6, 0x80\n  s_mov_b32 s7, " +
                    std::to_string(word3) + "\n  v_lshlrev_b32 v10, 2, v0\n  " +
                    instructions + "\n  s_waitcnt vmcnt(0)");
}

TEST_F(ExchangeInst, FormattedBuffers) {
  for (const char *target : {"gfx908", "gfx90a", "gfx942", "gfx950"}) {
    auto typed = [](const char *op, const char *format) {
      return resource(
          0, 0, std::string(op) + " s[4:7], 0 format:[" + format + "] offen");
    };
    start(
        target,
        {{"unorm",
          resource(10, 0,
                   "buffer_load_format_xy v[8:9], v10, s[4:7], 0 offen")},
         {"unormzw",
          resource(
              10, 0,
              "buffer_load_format_xyzw v[20:23], v10, s[4:7], 0 offen\n  "
              "s_waitcnt vmcnt(0)\n  v_mov_b32 v8, v22\n  v_mov_b32 v9, v23")},
         {"missing",
          resource(
              4, 5,
              "buffer_load_format_xyzw v[20:23], v10, s[4:7], 0 offen\n  "
              "s_waitcnt vmcnt(0)\n  v_mov_b32 v8, v20\n  v_mov_b32 v9, v23")},
         {"halfs",
          resource(5, 7, "buffer_load_format_xy v[8:9], v10, s[4:7], 0 offen")},
         {"d16",
          resource(5, 1, "buffer_load_format_d16_xy v8, v10, s[4:7], 0 offen")},
         {"typed", typed("tbuffer_load_format_xy v[8:9], v10,",
                         "BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_SINT")},
         {"store",
          resource(
              0, 0,
              "tbuffer_store_format_xy v[2:3], v10, s[4:7], 0 "
              "format:[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_FLOAT] offen")},
         {"store8",
          resource(10, 0,
                   "v_mov_b32 v4, v2\n  v_mov_b32 v5, v3\n  "
                   "buffer_store_format_xyzw v[2:5], v10, s[4:7], 0 offen")}});
    auto *words = reinterpret_cast<u32 *>(P[1]);
    for (u32 i = 0; i < 64; ++i)
      words[i] = 0x9e3779b9u * (i + 1);
    auto low = [&](int l) { return static_cast<u32>(P[3][l]); };
    auto high = [&](int l) { return static_cast<u32>(P[3][l] >> 32); };
    auto byte = [&](int l, int i) {
      return asWord(float(words[l] >> (8 * i) & 0xff) / 255.0f);
    };
    go("unorm");
    for (int l = 0; l < 64; ++l) { // beyond 128 bytes: zeros
      EXPECT_EQ(low(l), l < 32 ? byte(l, 0) : 0) << target << " " << l;
      EXPECT_EQ(high(l), l < 32 ? byte(l, 1) : 0);
    }
    go("unormzw");
    for (int l = 0; l < 32; ++l) {
      EXPECT_EQ(low(l), byte(l, 2));
      EXPECT_EQ(high(l), byte(l, 3));
    }
    go("missing"); // one component of 32 bits; the fourth is 1
    EXPECT_EQ(low(3), words[3]);
    EXPECT_EQ(high(3), 1u);
    for (u32 i = 0; i < 32; ++i)
      words[i] = toHalf(0.25f * float(i)) | toHalf(-1.5f * float(i)) << 16;
    go("halfs");
    EXPECT_EQ(low(5), asWord(1.25f));
    EXPECT_EQ(high(5), asWord(-7.5f));
    words[7] = 0x80017fff; // -1 (the lowest number too) and 1
    go("d16");
    EXPECT_EQ(low(7), toHalf(1.0f) | toHalf(-1.0f) << 16);
    go("typed");
    EXPECT_EQ(low(7), 0x7fffu);
    EXPECT_EQ(high(7), 0xffff8001u);
    P[0][2] = asWord(0.5f) | u64(asWord(3.0f)) << 32;
    go("store");
    EXPECT_EQ(words[2], toHalf(0.5f) | toHalf(3.0f) << 16);
    P[0][2] = asWord(2.0f) | u64(asWord(0.5f)) << 32;
    go("store8"); // clamped to 1; 127.5 rounds to the even 128
    EXPECT_EQ(words[2], 0x80ff80ffu);
  }
}

TEST_F(ExchangeInst, ScalarStoresAndAtomics) {
  start("gfx908",
        {{"store", scalarBody("s_store_dwordx2 s[16:17], s[14:15], 0x20\n"
                              "  s_dcache_wb\n  s_waitcnt lgkmcnt(0)")},
         {"add",
          scalarBody(
              "s_mov_b32 s30, s16\n  s_atomic_add s30, s[14:15], 0x40 glc\n"
              "  s_waitcnt lgkmcnt(0)\n  s_mov_b32 s22, s30")},
         {"swap", scalarBody("s_mov_b64 s[28:29], s[16:17]\n"
                             "  s_atomic_cmpswap s[28:29], s[14:15], 0x40 glc\n"
                             "  s_waitcnt lgkmcnt(0)\n  s_mov_b32 s22, s28")}});
  auto *words = reinterpret_cast<u32 *>(P[3]);
  P[0][0] = 0x1122334455667788;
  go("store");
  EXPECT_EQ(P[3][4], P[0][0]);
  words[16] = 5;
  go("add", 1);
  EXPECT_EQ(words[16], 5 + 0x55667788u);
  EXPECT_EQ(words[0], 5u);
  words[16] = 0x11223344; // the second word is the comparand
  go("swap", 1);
  EXPECT_EQ(words[16], 0x55667788u);
  EXPECT_EQ(words[0], 0x11223344u);
  go("swap", 1);
  EXPECT_EQ(words[16], 0x55667788u);
  EXPECT_EQ(words[0], 0x55667788u);
}

TEST_F(ExchangeInst, SeldomLdsInstructions) {
  const std::string init =
      "v_lshlrev_b32 v10, 3, v0\n  ds_write_b64 v10, v[2:3]\n"
      "  s_mov_b32 m0, 64\n  s_waitcnt lgkmcnt(0)\n  s_barrier\n  ";
  for (const char *target : {"gfx90a", "gfx942", "gfx950"}) {
    start(
        target,
        {{"append",
          vectorBody(init +
                     "v_cmpx_gt_u32 vcc, 40, v0\n  ds_append v8 offset:8\n"
                     "  s_waitcnt lgkmcnt(0)\n  s_mov_b64 exec, -1\n"
                     "  v_mov_b32 v11, 0\n  ds_read_b32 v9, v11 offset:72\n"
                     "  s_waitcnt lgkmcnt(0)"),
          2048},
         {"consume",
          vectorBody(init +
                     "ds_consume v8 offset:8\n  v_mov_b32 v11, 0\n"
                     "  ds_read_b32 v9, v11 offset:72\n  s_waitcnt lgkmcnt(0)"),
          2048},
         {"addtid",
          vectorBody(init +
                     "ds_read_addtid_b32 v8 offset:4\n  s_waitcnt lgkmcnt(0)"),
          2048},
         {"exchange",
          vectorBody(
              init +
              "ds_wrxchg2_rtn_b32 v[8:9], v10, v4, v5 offset0:0 offset1:1\n"
              "  s_waitcnt lgkmcnt(0)\n  ds_read_b64 v[12:13], v10\n"
              "  s_waitcnt lgkmcnt(0)\n  v_add_u32 v8, v8, v12\n  v_add_u32 "
              "v9, v9, v13"),
          2048},
         {"wrap",
          vectorBody(init +
                     "ds_wrap_rtn_b32 v8, v10, v4, v6\n  s_waitcnt lgkmcnt(0)\n"
                     "  ds_read_b32 v9, v10\n  s_waitcnt lgkmcnt(0)"),
          2048}});
    for (int l = 0; l < 64; ++l) {
      P[0][l] = (1000u + unsigned(l)) | u64(7 * l) << 32;
      P[1][l] = (900u + 3 * unsigned(l)) | u64(11 * l) << 32;
      P[2][l] = 50;
    }
    go("append"); // word 18 of LDS: lane 9's first
    EXPECT_EQ(static_cast<u32>(P[3][0]), 1009u) << target;
    EXPECT_EQ(static_cast<u32>(P[3][39]), 1009u);
    EXPECT_EQ(P[3][5] >> 32, 1049u);
    go("consume");
    EXPECT_EQ(static_cast<u32>(P[3][63]), 1009u);
    EXPECT_EQ(P[3][5] >> 32, 945u);
    go("addtid"); // byte 64 + 4 + 4 * lane
    for (int l = 0; l < 64; ++l) {
      int word = 17 + l;
      EXPECT_EQ(static_cast<u32>(P[3][l]),
                static_cast<u32>(P[0][word / 2] >> (word % 2 ? 32 : 0)));
    }
    go("exchange"); // what was there plus what is there now
    for (int l = 0; l < 64; ++l) {
      EXPECT_EQ(static_cast<u32>(P[3][l]),
                static_cast<u32>(P[0][l]) + static_cast<u32>(P[1][l]));
      EXPECT_EQ(P[3][l] >> 32, (P[0][l] >> 32) + (P[1][l] >> 32));
    }
    go("wrap");
    for (int l = 0; l < 64; ++l) {
      u32 old = 1000u + unsigned(l), x = 900u + 3 * unsigned(l);
      EXPECT_EQ(static_cast<u32>(P[3][l]), old);
      EXPECT_EQ(P[3][l] >> 32, old >= x ? old - x : old + 50);
    }
  }
}

TEST_F(ExchangeInst, LdsTransposes) {
  // Each 16 lanes hold a tile row by row: element (row, column) is a number of
  // its own; every lane wants column lane % 16.
  const std::string write =
      "v_lshlrev_b32 v10, 4, v0\n  ds_write_b64 v10, v[2:3]\n"
      "  ds_write_b32 v10, v4 offset:8\n  s_waitcnt lgkmcnt(0)\n";
  start(
      "gfx950",
      {{"b16",
        vectorBody(write +
                   "  ds_read_b64_tr_b16 v[8:9], v10\n  s_waitcnt lgkmcnt(0)"),
        2048},
       {"b8",
        vectorBody(write +
                   "  ds_read_b64_tr_b8 v[8:9], v10\n  s_waitcnt lgkmcnt(0)"),
        2048},
       {"b4",
        vectorBody(write +
                   "  ds_read_b64_tr_b4 v[8:9], v10\n  s_waitcnt lgkmcnt(0)"),
        2048},
       {"b6",
        vectorBody(write +
                   "  ds_read_b96_tr_b6 v[20:22], v10\n  s_waitcnt lgkmcnt(0)\n"
                   "  v_mov_b32 v8, v20\n  v_mov_b32 v9, v22"),
        2048}});
  auto check = [&](const char *name, int bits, int n, auto want) {
    int perRow = 16 / n; // lanes
    auto number = [&](int tile, int row, int column) {
      return static_cast<u64>(row * 16 + column + 37 * tile) &
             ((u64(1) << bits) - 1);
    };
    for (int l = 0; l < 64; ++l) {
      unsigned __int128 x = 0;
      for (int e = 0; e < n; ++e)
        x |= static_cast<unsigned __int128>(
                 number(l / 16, l % 16 / perRow, l % perRow * n + e))
             << (e * bits);
      P[0][l] = static_cast<u64>(x);
      P[1][l] = static_cast<u64>(x >> 64);
    }
    go(name);
    for (int l = 0; l < 64; ++l) {
      unsigned __int128 x = 0;
      for (int e = 0; e < n; ++e)
        x |= static_cast<unsigned __int128>(number(l / 16, e, l % 16))
             << (e * bits);
      EXPECT_EQ(P[3][l], want(x)) << name << " lane " << l;
    }
  };
  auto low = [](unsigned __int128 x) { return static_cast<u64>(x); };
  check("b16", 16, 4, low);
  check("b8", 8, 8, low);
  check("b4", 4, 16, low);
  check("b6", 6, 16, [](unsigned __int128 x) {
    return static_cast<u64>(static_cast<u32>(x)) |
           static_cast<u64>(static_cast<u32>(x >> 64)) << 32;
  });
}

TEST_F(ExchangeInst, LoadsToLds) {
  // Lane l's words go to M0 + offset + l * their size, in the large LDS of
  // gfx950.
  auto body = [](int words, const char *base) {
    std::string width = "dwordx" + std::to_string(words);
    return "  s_load_dwordx8 s[8:15], s[0:1], 0x0\n  v_lshlrev_b32 v1, 4, v0\n"
           "  s_mov_b32 m0, " +
           std::string(base) +
           "\n  s_waitcnt lgkmcnt(0)\n"
           "  global_load_lds_" +
           width +
           " v1, s[8:9] offset:16\n  s_waitcnt vmcnt(0)\n"
           "  v_mul_u32_u24 v2, " +
           std::to_string(4 * words) +
           ", v0\n  v_add_u32 v2, m0, v2\n"
           "  ds_read_b32 v4, v2 offset:16\n  ds_read_b32 v5, v2 offset:" +
           std::to_string(16 + 4 * words - 4) +
           "\n  v_lshlrev_b32 v1, 3, v0\n"
           "  s_waitcnt lgkmcnt(0)\n  global_store_dwordx2 v1, v[4:5], "
           "s[14:15]\n";
  };
  start("gfx950",
        {{"x3", body(3, "0x400"), 8192}, {"x4", body(4, "0x27000"), 163840}});
  auto *words = reinterpret_cast<u32 *>(P[0]);
  for (u32 i = 0; i < 512; ++i)
    words[i] = i * 3;
  for (int n : {3, 4}) {
    go("x" + std::to_string(n));
    for (u32 l = 0; l < 64; ++l) {
      EXPECT_EQ(static_cast<u32>(P[3][l]), 3 * (4 * l + 4))
          << n << " lane " << l;
      EXPECT_EQ(P[3][l] >> 32, 3 * (4 * l + 3 + unsigned(n)));
    }
  }
}

TEST_F(ExchangeInst, SwapsOfHalves) {
  start("gfx950", {{"p16", vectorBody("v_mov_b32 v8, v2\n  v_mov_b32 v9, v4\n  "
                                      "v_permlane16_swap_b32 v8, v9")},
                   {"p32", vectorBody("v_mov_b32 v8, v2\n  v_mov_b32 v9, v4\n  "
                                      "v_permlane32_swap_b32 v8, v9")}});
  for (u32 l = 0; l < 64; ++l) {
    P[0][l] = 100 + l;
    P[1][l] = 200 + l;
  }
  for (unsigned n : {16u, 32u}) {
    go("p" + std::to_string(n));
    for (u32 l = 0; l < 64; ++l) {
      bool upper = l & n;
      EXPECT_EQ(static_cast<u32>(P[3][l]), upper ? 200 + l - n : 100 + l)
          << n << " " << l;
      EXPECT_EQ(P[3][l] >> 32, upper ? 200 + l : 100 + l + n) << n << " " << l;
    }
  }
}

} // namespace
