//===- MemoryInstTest.cpp - Buffers, LDS, DPP, and accesses that fail -----===//
//
// Range checks of buffer resources to the byte, all widths of LDS accesses,
// lane exchanges, atomics, and that accesses outside of memory end the launch
// with everything the user needs to find them.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "HostBits.h"
#include "KernelTest.h"

#include <functional>
#include <numeric>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

using u64 = uint64_t;
using u32 = uint32_t;

class MemoryInst : public KernelTest {
protected:
  /// Runs vectorBody kernels on four arrays of 64 x 8 bytes.
  void SetUp() override {
    KernelTest::SetUp();
    for (u64 *&x : P) {
      x = buffer<u64>(64);
      std::memset(x, 0, 512);
    }
  }
  Status go(const std::string &name, unsigned block = 64) {
    return run(name, 1, block, Args().add(P[0]).add(P[1]).add(P[2]).add(P[3]));
  }
  u64 *P[4];
};

/// A kernel with a buffer resource of base a, \p records and \p stride, and v2
/// the lane's offset.
std::string bufferBody(const std::string &instructions, unsigned stride = 0) {
  return vectorBody(
      "v_mov_b32 v10, v2\n  v_mov_b32 v11, v3\n"
      "  v_readfirstlane_b32 s20, v6\n"  // num_records: c
      "  v_readfirstlane_b32 s21, v7\n"  // soffset: c, upper half
      "  s_mov_b32 s4, s10\n  s_or_b32 s5, s11, 0x" +
      [&] {
        char text[16];
        std::snprintf(text, sizeof text, "%x", stride << 16);
        return std::string(text);
      }() +
      "\n  s_mov_b32 s6, s20\n  s_mov_b32 s7, 0x20000\n  " + instructions +
      "\n  s_waitcnt vmcnt(0)");
}

TEST_F(MemoryInst, RawBufferRangeChecks) {
  load(assemble(asmModule(
      {{"x1", bufferBody("buffer_load_dword v8, v10, s[4:7], 0 offen")},
       {"soff", bufferBody("buffer_load_dword v8, v10, s[4:7], s21 offen offset:8")},
       {"x2", bufferBody("buffer_load_dwordx2 v[8:9], v10, s[4:7], 0 offen")},
       {"ushort", bufferBody("buffer_load_ushort v8, v10, s[4:7], 0 offen")},
       {"sbyte", bufferBody("buffer_load_sbyte v8, v10, s[4:7], 0 offen")},
       {"hi", bufferBody("buffer_load_short_d16_hi v8, v10, s[4:7], 0 offen")},
       {"st", bufferBody("buffer_store_dwordx2 v[8:9], v10, s[4:7], 0 offen")},
       {"idx", bufferBody("buffer_load_dword v8, v10, s[4:7], 0 idxen offset:4", 12)},
       {"idxoff", bufferBody("buffer_load_dword v8, v[10:11], s[4:7], 0 idxen offen", 12)},
       {"add", bufferBody("buffer_atomic_add v8, v10, s[4:7], 0 offen sc0")}})));
  auto *bytes = reinterpret_cast<uint8_t *>(P[1]);
  auto fresh = [&] {
    for (int i = 0; i < 512; ++i)
      bytes[i] = static_cast<uint8_t>(i * 37 + 11);
    for (int l = 0; l < 64; ++l)
      P[3][l] = 0x1122334455667788;
  };
  auto at32 = [&](u64 i) {
    u32 x;
    std::memcpy(&x, bytes + i, 4);
    return x;
  };
  for (u32 records : {0u, 3u, 4u, 15u, 16u, 99u, 100u, 101u, 102u, 256u}) {
    fresh();
    for (int l = 0; l < 64; ++l) {
      P[0][l] = static_cast<u32>(l * 3); // odd offsets too
      P[2][l] = records;
    }
    P[0][63] = 0xfffffffcu; // wraps in 32 bits, must not
    ASSERT_TRUE(go("x1").ok());
    for (u64 l = 0; l < 64; ++l) {
      u64 offset = static_cast<u32>(P[0][l]);
      EXPECT_EQ(static_cast<u32>(P[3][l]), offset + 4 <= records ? at32(offset) : 0)
          << records << " lane " << l;
    }
    fresh();
    ASSERT_TRUE(go("x2").ok());
    for (u64 l = 0; l < 64; ++l) { // each word is checked for itself
      u64 offset = static_cast<u32>(P[0][l]);
      EXPECT_EQ(static_cast<u32>(P[3][l]), offset + 4 <= records ? at32(offset) : 0);
      EXPECT_EQ(static_cast<u32>(P[3][l] >> 32), offset + 8 <= records ? at32(offset + 4) : 0);
    }
    fresh();
    ASSERT_TRUE(go("ushort").ok());
    for (u64 l = 0; l < 63; ++l)
      EXPECT_EQ(static_cast<u32>(P[3][l]), 3 * l + 2 <= records ? at32(3 * l) & 0xffff : 0);
    fresh();
    ASSERT_TRUE(go("sbyte").ok());
    for (u64 l = 0; l < 63; ++l)
      EXPECT_EQ(static_cast<u32>(P[3][l]),
                3 * l + 1 <= records ? static_cast<u32>(static_cast<int8_t>(bytes[3 * l])) : 0);
    fresh();
    ASSERT_TRUE(go("hi").ok());
    for (u64 l = 0; l < 63; ++l)
      EXPECT_EQ(static_cast<u32>(P[3][l]),
                3 * l + 2 <= records ? at32(3 * l) << 16 : 0);
    fresh();
    for (int l = 0; l < 64; ++l)
      P[2][l] = records | u64(20) << 32;
    ASSERT_TRUE(go("soff").ok());
    for (u64 l = 0; l < 63; ++l) { // the scalar offset does not count
      u64 offset = 3 * l + 8;
      EXPECT_EQ(static_cast<u32>(P[3][l]),
                offset + 4 <= records ? at32(offset + 20) : 0);
    }
    // Stores beyond the range are dropped, word by word.
    fresh();
    for (int l = 0; l < 64; ++l) {
      P[0][l] = static_cast<u32>(l * 8 + 4);
      P[2][l] = records;
    }
    ASSERT_TRUE(go("st").ok());
    for (u64 l = 0; l < 62; ++l) {
      u64 offset = l * 8 + 4;
      auto old = [&](u64 i) {
        u32 x = 0;
        for (int k = 3; k >= 0; --k)
          x = x << 8 | static_cast<uint8_t>((i + static_cast<u64>(k)) * 37 + 11);
        return x;
      };
      EXPECT_EQ(at32(offset), offset + 4 <= records ? 0x55667788 : old(offset));
      EXPECT_EQ(at32(offset + 4), offset + 8 <= records ? 0x11223344 : old(offset + 4));
    }
  }
  // Structured: records are elements of `stride` bytes.
  fresh();
  for (u64 l = 0; l < 64; ++l) {
    P[0][l] = l | u64(8) << 32;
    P[2][l] = 20;
  }
  ASSERT_TRUE(go("idx").ok());
  for (u64 l = 0; l < 64; ++l)
    EXPECT_EQ(static_cast<u32>(P[3][l]), l < 20 ? at32(12 * l + 4) : 0);
  ASSERT_TRUE(go("idxoff").ok());
  for (u64 l = 0; l < 64; ++l)
    EXPECT_EQ(static_cast<u32>(P[3][l]), l < 20 ? at32(12 * l + 8) : 0);
  // Atomics: all lanes on one word, in lane order.
  std::memset(bytes, 0, 512);
  for (u64 l = 0; l < 64; ++l) {
    P[0][l] = 16;
    P[2][l] = 20;
    P[3][l] = l;
  }
  ASSERT_TRUE(go("add").ok());
  EXPECT_EQ(at32(16), 64u * 63 / 2);
  EXPECT_EQ(static_cast<u32>(P[3][10]), 45u);
}

/// LDS cases: v2 = 8 * lane, data in v[4:7]; expectation on v[8:9].
struct LdsCase {
  const char *inst;
  std::function<u64(u64 l, const u64 *b, const u64 *c)> want;
};
u64 pair(u64 low, u64 high) { return (low & 0xffffffff) | high << 32; }
const LdsCase kLds[] = {
    {"ds_write_b64 v2, v[4:5]\n  ds_read_b64 v[8:9], v2", [](u64 l, const u64 *b, const u64 *) { return b[l]; }},
    {"ds_write_b32 v2, v4 offset:4\n  ds_write_b32 v2, v5\n  ds_read_b64 v[8:9], v2", [](u64 l, const u64 *b, const u64 *) { return b[l] << 32 | b[l] >> 32; }},
    {"ds_write_b64 v2, v[4:5]\n  ds_write_b8 v2, v6 offset:2\n  ds_write_b16_d16_hi v2, v6 offset:4\n  ds_read_b64 v[8:9], v2", [](u64 l, const u64 *b, const u64 *c) { return (b[l] & 0xffff0000ff00ffff) | (c[l] & 0xff) << 16 | ((c[l] >> 16) & 0xffff) << 32; }},
    {"ds_write2_b32 v2, v4, v5 offset0:1 offset1:0\n  ds_read2_b32 v[8:9], v2 offset0:1 offset1:0", [](u64 l, const u64 *b, const u64 *) { return b[l]; }},
    {"ds_write2st64_b32 v2, v4, v5 offset1:2\n  ds_read2st64_b32 v[8:9], v2 offset0:2", [](u64 l, const u64 *b, const u64 *) { return b[l] << 32 | b[l] >> 32; }},
    {"ds_write_b128 v2, v[4:7]\n  ds_write_b64 v2, v[4:5]\n  s_mov_b64 exec, 1\n  ds_read_b128 v[12:15], v2\n  s_mov_b64 exec, -1\n  v_readfirstlane_b32 s20, v14\n  v_mov_b32 v8, s20\n  v_mov_b32 v9, 0", [](u64, const u64 *b, const u64 *) { return b[1] & 0xffffffff; }},
    {"ds_write_b64 v2, v[4:5]\n  ds_read_u8 v8, v2 offset:3\n  ds_read_i16 v9, v2 offset:6", [](u64 l, const u64 *b, const u64 *) { return pair((b[l] >> 24) & 0xff, static_cast<u32>(static_cast<int16_t>(b[l] >> 48))); }},
    {"v_mov_b32 v8, -1\n  v_mov_b32 v9, -1\n  ds_write_b64 v2, v[4:5]\n  ds_read_u8_d16 v8, v2\n  ds_read_u16_d16_hi v9, v2", [](u64 l, const u64 *b, const u64 *) { return pair(b[l] & 0xff, (b[l] & 0xffff) << 16); }},
    {"v_lshlrev_b32 v10, 2, v0\n  v_xor_b32 v10, 0x1c, v10\n  ds_bpermute_b32 v8, v10, v4\n  v_mov_b32 v9, 0", [](u64 l, const u64 *b, const u64 *) { return b[l ^ 7] & 0xffffffff; }},
    {"v_add_u32 v10, 5, v0\n  v_lshlrev_b32 v10, 2, v10\n  ds_permute_b32 v8, v10, v4\n  v_mov_b32 v9, 0", [](u64 l, const u64 *b, const u64 *) { return b[(l + 59) % 64] & 0xffffffff; }},
    {"ds_swizzle_b32 v8, v4 offset:swizzle(QUAD_PERM,3,2,1,0)\n  ds_swizzle_b32 v9, v4 offset:swizzle(SWAP,16)", [](u64 l, const u64 *b, const u64 *) { return pair(b[l ^ 3], b[l ^ 16]); }},
    {"ds_swizzle_b32 v8, v4 offset:swizzle(BROADCAST,8,3)\n  ds_swizzle_b32 v9, v4 offset:swizzle(REVERSE,32)", [](u64 l, const u64 *b, const u64 *) { return pair(b[(l & ~u64(7)) + 3], b[l ^ 31]); }},
    {"v_mov_b32 v10, 0\n  v_mov_b32 v11, 0\n  ds_write_b32 v10, v11\n  v_mov_b32 v12, 3\n  ds_add_u32 v10, v12\n  ds_add_rtn_u32 v8, v10, v12\n  ds_read_b32 v9, v10", [](u64 l, const u64 *, const u64 *) { return pair(192 + 3 * l, 384); }},
    {"ds_write_b64 v2, v[4:5]\n  ds_max_u64 v2, v[6:7]\n  ds_read_b64 v[8:9], v2", [](u64 l, const u64 *b, const u64 *c) { return b[l] > c[l] ? b[l] : c[l]; }},
    {"ds_write_b64 v2, v[4:5]\n  ds_cmpst_rtn_b32 v8, v2, v4, v6\n  ds_read_b32 v9, v2", [](u64 l, const u64 *b, const u64 *c) { return pair(b[l], c[l]); }},
    // FFT: bits 0 to 4 of the lane's number are turned round, those in the mask stay.
    {"ds_swizzle_b32 v8, v4 offset:swizzle(FFT,0)\n  ds_swizzle_b32 v9, v4 offset:swizzle(FFT,16)", [](u64 l, const u64 *b, const u64 *) {
       u64 r = 0;
       for (int i = 0; i < 5; ++i)
         r |= ((l >> i) & 1) << (4 - i);
       return pair(b[(l & 32) | r], b[(l & 32) | r >> 1 | (l & 16)]); }},
    // One place: the first data alone.
    {"ds_write2_b32 v2, v4, v5 offset0:1 offset1:1\n  ds_write2_b32 v2, v6, v6 offset0:0 offset1:0\n  ds_read_b64 v[8:9], v2", [](u64 l, const u64 *b, const u64 *c) { return pair(c[l], b[l]); }},
    // DPP.
    {"v_mov_b32_dpp v8, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf\n  v_mov_b32_dpp v9, v4 row_ror:4 row_mask:0xf bank_mask:0xf", [](u64 l, const u64 *b, const u64 *) { return pair(b[l ^ 1], b[(l & ~u64(15)) + (l + 12) % 16]); }},
    {"v_mov_b32_dpp v8, v4 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\n  v_mov_b32 v9, 77\n  v_mov_b32_dpp v9, v4 row_shl:3 row_mask:0xf bank_mask:0xf", [](u64 l, const u64 *b, const u64 *) { return pair(l % 16 ? b[l - 1] : 0, l % 16 + 3 < 16 ? b[l + 3] : 77); }},
    {"v_mov_b32_dpp v8, v4 row_mirror row_mask:0xf bank_mask:0xf\n  v_mov_b32_dpp v9, v4 row_half_mirror row_mask:0xf bank_mask:0xf", [](u64 l, const u64 *b, const u64 *) { return pair(b[l ^ 15], b[l ^ 7]); }},
    {"v_mov_b32 v8, 5\n  v_mov_b32_dpp v8, v4 row_bcast:15 row_mask:0xa bank_mask:0xf\n  v_mov_b32 v9, 6\n  v_mov_b32_dpp v9, v4 row_bcast:31 row_mask:0xc bank_mask:0xf", [](u64 l, const u64 *b, const u64 *) { return pair((l / 16) % 2 ? b[(l & ~u64(15)) - 1] : 5, l >= 32 ? b[31] : 6); }},
    {"v_add_u32_dpp v8, v4, v6 wave_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\n  v_mov_b32_dpp v9, v4 row_newbcast:6 row_mask:0xf bank_mask:0xf", [](u64 l, const u64 *b, const u64 *c) { return pair((l ? b[l - 1] : 0) + c[l], b[(l & ~u64(15)) + 6]); }},
    {"v_mov_b32 v8, 9\n  v_mov_b32 v9, 0\n  v_sub_f32_dpp v8, -v4, |v6| quad_perm:[0,0,2,2] row_mask:0xf bank_mask:0x5", [](u64 l, const u64 *b, const u64 *c) {
       if ((l / 4) % 2) return u64(9);
       float x = asFloat(static_cast<u32>(b[l & ~u64(1)])), y = asFloat(static_cast<u32>(c[l]));
       return u64(asWord(-x - (y < 0 ? -y : y))); }},
    // Addresses are added in 32 bits: a negative one with an offset is inside.
    {"v_add_u32 v12, 0xffffffc0, v2\n  ds_write_b64 v12, v[4:5] offset:64\n  "
     "s_waitcnt lgkmcnt(0)\n  ds_read2_b32 v[8:9], v12 offset0:16 offset1:17",
     [](u64 l, const u64 *b, const u64 *) { return b[l]; }},
};

TEST_F(MemoryInst, LdsAndLaneExchanges) {
  std::vector<AsmKernel> kernels;
  for (size_t i = 0; i < std::size(kLds); ++i)
    kernels.push_back({"k" + std::to_string(i), vectorBody(kLds[i].inst), 2048});
  load(assemble(asmModule(kernels)));
  for (size_t i = 0; i < std::size(kLds); ++i) {
    u64 b[64], c[64];
    for (u64 l = 0; l < 64; ++l) {
      P[0][l] = 8 * l;
      // Values that are ordinary floats in their low words.
      P[1][l] = b[l] = 0x3f80000012345678 * (l + 1) % 0xfffffffffffffff1 & 0xffffffffbfffffff;
      P[2][l] = c[l] = (0xc000000087654321 + l * 0x100000001234567) & 0xffffffffbfffffff;
    }
    Status status = go("k" + std::to_string(i));
    ASSERT_TRUE(status.ok()) << status.message();
    for (u64 l = 0; l < 64; ++l)
      ASSERT_EQ(P[3][l], kLds[i].want(l, b, c)) << kLds[i].inst << " lane " << l;
  }
}

TEST_F(MemoryInst, AccessesOutsideMemoryAreNamed) {
  load(assemble(asmModule({
      {"load", vectorBody("v_lshlrev_b32 v10, 6, v0\n  global_load_dword v8, v10, s[8:9]")},
      {"store", vectorBody("global_store_dwordx4 v1, v[4:7], s[10:11] offset:-8")},
      {"null", vectorBody("v_mov_b32 v10, 0\n  v_mov_b32 v11, 0\n  global_load_dword v8, v[10:11], off")},
      {"scalar", vectorBody("s_load_dwordx2 s[20:21], s[8:9], 0x1fc")},
      {"lds", vectorBody("ds_read_b64 v[8:9], v2"), 256},
      {"buffer", bufferBody("buffer_load_dword v8, v10, s[4:7], 0 offen")},
      {"illegal", vectorBody(".long 0xffffffff")},
      {"trap", vectorBody("s_trap 2")},
      {"jump", vectorBody("s_mov_b64 s[20:21], 64\n  s_setpc_b64 s[20:21]")},
      {"loop", vectorBody(".Lx: s_branch .Lx")},
      {"end", "  s_nop 0\n.p2align 8\n"},
      {"divergent", vectorBody("v_cmp_gt_u32 vcc, 9, v0\n  s_and_b64 exec, exec, vcc\n  v_lshlrev_b32 v10, 6, v0\n  global_load_dword v8, v10, s[8:9]")},
  })));
  auto message = [&](const std::string &name, ErrorCode code) {
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.options.waveBudget = 100000;
    Status status = run(name, config, Args().add(P[0]).add(P[1]).add(P[2]).add(P[3]));
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
    return status.message();
  };
  auto has = [](const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\n misses: " << part;
  };
  std::string text = message("load", ErrorCode::IllegalAddress);
  has(text, "kernel 'load', pc +0x");
  has(text, "`global_load_dword v8, v10, s[8:9]`");
  has(text, "workgroup (0, 0, 0), wave 0, lane 8: load of 4 bytes at 0x");
  has(text, "0 bytes past the end of allocation");
  has(message("store", ErrorCode::IllegalAddress), "lane 0: store of 16 bytes");
  has(message("null", ErrorCode::IllegalAddress), "a null pointer");
  has(message("scalar", ErrorCode::IllegalAddress), "scalar load of 8 bytes");
  for (u64 l = 0; l < 64; ++l)
    P[0][l] = 4 * l;
  has(message("lds", ErrorCode::IllegalAddress),
      "lane 63: 8 bytes at LDS offset 252: the workgroup has 256 bytes");
  P[2][0] = 4096; // a resource that is larger than its allocation
  P[0][5] = 1000;
  has(message("buffer", ErrorCode::IllegalAddress), "lane 5: load of 4 bytes");
  has(message("illegal", ErrorCode::IllegalInstruction), "is no instruction");
  has(message("trap", ErrorCode::Trap), "s_trap 2");
  has(message("jump", ErrorCode::IllegalAddress), "jump to 0x40");
  has(message("loop", ErrorCode::BudgetExceeded), "endless loop");
  has(message("divergent", ErrorCode::IllegalAddress), "lane 8: load of 4 bytes");
  EXPECT_EQ(message("end", ErrorCode::None), "");
  // A freed allocation, by name.
  uint64_t gone = reinterpret_cast<uint64_t>(P[1]);
  ASSERT_TRUE(Dev->memory().free(gone).ok());
  has(message("store", ErrorCode::IllegalAddress), "which was freed");
  EXPECT_EQ(Dev->memory().free(gone).code(), ErrorCode::InvalidArgument);
}

/// SRAM-ECC clears the half of a register that D16 loads do not write.
TEST_F(MemoryInst, HalvesThatLoadsLeave) {
  for (bool sramecc : {true, false}) {
    std::string target = std::string("gfx942:sramecc") + (sramecc ? "+" : "-");
    use(target);
    for (u64 *&x : P)
      x = buffer(std::vector<u64>(64, 0x11112222'33334444));
    load(assemble(
        asmModule({{"k", vectorBody("global_load_short_d16 v8, v1, s[8:9]\n  "
                                    "global_load_short_d16_hi v9, v1, s[8:9]\n"
                                    "  s_waitcnt vmcnt(0)")}})));
    for (int l = 0; l < 64; ++l)
      P[3][l] = 0x5555666677778888;
    ASSERT_TRUE(go("k").ok());
    EXPECT_EQ(P[3][5], sramecc ? 0x44440000'00004444 : 0x44446666'77774444);
  }
}

} // namespace
