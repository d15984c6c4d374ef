//===- ScalarInstTest.cpp - Single scalar instructions --------------------===//
//
// As VectorInstTest, for the scalar ALU: result and SCC.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"

#include <algorithm>
#include <functional>
#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using i32 = int32_t;
using i64 = int64_t;
u32 lo(u64 x) { return static_cast<u32>(x); }
i32 s(u64 x) { return static_cast<i32>(x); }

struct Result {
  u64 value; ///< of s[22:23]
  bool scc;
};
/// SCC before is whether c's low word is not 0.
struct Case {
  const char *inst;
  std::function<Result(u64 a, u64 b, u64 c, u64 old)> want;
};

Result word(u64 old, u32 x, bool scc) {
  return {(old & 0xffffffff00000000u) | x, scc};
}
template <class T>
bool addOverflows(T a, T b) {
  T r;
  return __builtin_add_overflow(a, b, &r);
}
template <class T>
bool subOverflows(T a, T b) {
  T r;
  return __builtin_sub_overflow(a, b, &r);
}

#define FN(...) [](u64 a, u64 b, u64 c, u64 old) -> Result {                   \
    (void)a; (void)b; (void)c; (void)old; bool scc = lo(c) != 0; (void)scc;    \
    __VA_ARGS__ }
#define W(VALUE, SCC) FN(return word(old, VALUE, bool(SCC));)
#define Q(VALUE, SCC) FN(return {u64(VALUE), bool(SCC)};)

const Case kCases[] = {
    {"s_add_u32 s22, s16, s18", W(lo(a + b), (u64(lo(a)) + lo(b)) >> 32)},
    {"s_add_u32 s22, s16, s18\n  s_addc_u32 s23, s17, s19", Q(a + b, a + b < a)},
    {"s_sub_u32 s22, s16, s18\n  s_subb_u32 s23, s17, s19", Q(a - b, a < b)},
    {"s_add_i32 s22, s16, s18", W(lo(a + b), addOverflows(s(a), s(b)))},
    {"s_sub_i32 s22, s16, s18", W(lo(a - b), subOverflows(s(a), s(b)))},
    {"s_mul_i32 s22, s16, s18", W(lo(a) * lo(b), scc)},
    {"s_mul_hi_u32 s22, s16, s18", W(lo((u64(lo(a)) * lo(b)) >> 32), scc)},
    {"s_mul_hi_i32 s22, s16, s18", W(lo(static_cast<u64>((i64(s(a)) * s(b)) >> 32)), scc)},
    {"s_min_i32 s22, s16, s18", W(static_cast<u32>(std::min(s(a), s(b))), s(a) < s(b))},
    {"s_max_u32 s22, s16, s18", W(std::max(lo(a), lo(b)), lo(a) > lo(b))},
    {"s_abs_i32 s22, s16", W(s(a) < 0 ? 0u - lo(a) : lo(a), lo(a) != 0)},
    {"s_lshl2_add_u32 s22, s16, s18", W(lo((a << 2) + b), (((u64(lo(a)) << 2) + lo(b)) >> 32) != 0)},
    {"s_and_b32 s22, s16, s18", W(lo(a & b), lo(a & b) != 0)},
    {"s_and_b64 s[22:23], s[16:17], s[18:19]", Q(a & b, (a & b) != 0)},
    {"s_or_b64 s[22:23], s[16:17], s[18:19]", Q(a | b, (a | b) != 0)},
    {"s_xor_b32 s22, s16, s18", W(lo(a ^ b), lo(a ^ b) != 0)},
    {"s_andn2_b64 s[22:23], s[16:17], s[18:19]", Q(a & ~b, (a & ~b) != 0)},
    {"s_orn2_b32 s22, s16, s18", W(lo(a | ~b), lo(a | ~b) != 0)},
    {"s_nand_b32 s22, s16, s18", W(lo(~(a & b)), lo(~(a & b)) != 0)},
    {"s_nor_b64 s[22:23], s[16:17], s[18:19]", Q(~(a | b), ~(a | b) != 0)},
    {"s_xnor_b32 s22, s16, s18", W(lo(~(a ^ b)), lo(~(a ^ b)) != 0)},
    {"s_not_b64 s[22:23], s[16:17]", Q(~a, ~a != 0)},
    {"s_lshl_b32 s22, s16, s18", W(lo(a) << (b & 31), (lo(a) << (b & 31)) != 0)},
    {"s_lshr_b64 s[22:23], s[16:17], s18", Q(a >> (b & 63), (a >> (b & 63)) != 0)},
    {"s_ashr_i32 s22, s16, s18", W(lo(static_cast<u64>(s(a) >> (b & 31))), (s(a) >> (b & 31)) != 0)},
    {"s_ashr_i64 s[22:23], s[16:17], s18", Q(static_cast<u64>(static_cast<i64>(a) >> (b & 63)), (static_cast<i64>(a) >> (b & 63)) != 0)},
    {"s_bfm_b32 s22, s16, s18", W(((1u << (a & 31)) - 1) << (b & 31), scc)},
    {"s_bfe_u32 s22, s16, 0x80004", W((lo(a) >> 4) & 0xff, ((lo(a) >> 4) & 0xff) != 0)},
    {"s_bfe_i32 s22, s16, 0x80004", W(static_cast<u32>(static_cast<int8_t>(lo(a) >> 4)), ((lo(a) >> 4) & 0xff) != 0)},
    {"s_bfe_u64 s[22:23], s[16:17], 0x100008", Q((a >> 8) & 0xffff, ((a >> 8) & 0xffff) != 0)},
    {"s_bfe_i64 s[22:23], s[16:17], 0x200010", Q(static_cast<u64>(static_cast<i64>(static_cast<i32>(a >> 16))), lo(a >> 16) != 0)},
    {"s_mov_b64 s[22:23], s[16:17]", Q(a, scc)},
    {"s_mov_b64 s[22:23], -5", Q(~u64(4), scc)},
    {"s_mov_b64 s[22:23], 0x80000000", Q(u64(0x80000000), scc)},
    {"s_mov_b64 s[22:23], 1.0", Q(u64(0x3ff0000000000000), scc)},
    {"s_mov_b32 s22, 1.0", W(0x3f800000u, scc)},
    {"s_movk_i32 s22, 0xfffe", W(0xfffffffeu, scc)},
    {"s_addk_i32 s22, 0xfff0", FN(u32 x = lo(old) - 16; return word(old, x, addOverflows(s(old), -16));)},
    {"s_mulk_i32 s22, 0x7", W(lo(old) * 7, scc)},
    {"s_cselect_b32 s22, s16, s18", W(scc ? lo(a) : lo(b), scc)},
    {"s_cselect_b64 s[22:23], s[16:17], s[18:19]", Q(scc ? a : b, scc)},
    {"s_cmov_b32 s22, s16", W(scc ? lo(a) : lo(old), scc)},
    {"s_brev_b32 s22, s16", FN(u32 r = 0; for (int i = 0; i < 32; ++i) r |= ((a >> i) & 1) << (31 - i); return word(old, r, scc);)},
    {"s_bcnt1_i32_b64 s22, s[16:17]", W(static_cast<u32>(__builtin_popcountll(a)), a != 0)},
    {"s_bcnt0_i32_b32 s22, s16", W(static_cast<u32>(__builtin_popcount(~lo(a))), ~lo(a) != 0)},
    {"s_ff1_i32_b32 s22, s16", W(lo(a) ? static_cast<u32>(__builtin_ctz(lo(a))) : ~0u, scc)},
    {"s_ff1_i32_b64 s22, s[16:17]", W(a ? static_cast<u32>(__builtin_ctzll(a)) : ~0u, scc)},
    {"s_flbit_i32_b32 s22, s16", W(lo(a) ? static_cast<u32>(__builtin_clz(lo(a))) : ~0u, scc)},
    {"s_flbit_i32 s22, s16", FN(u32 x = s(a) < 0 ? ~lo(a) : lo(a); return word(old, x ? static_cast<u32>(__builtin_clz(x)) : ~0u, scc);)},
    {"s_sext_i32_i8 s22, s16", W(static_cast<u32>(static_cast<int8_t>(a)), scc)},
    {"s_sext_i32_i16 s22, s16", W(static_cast<u32>(static_cast<int16_t>(a)), scc)},
    {"s_bitset1_b32 s22, s16", W(lo(old) | 1u << (a & 31), scc)},
    {"s_bitset0_b64 s[22:23], s16", Q(old & ~(u64(1) << (a & 63)), scc)},
    {"s_pack_ll_b32_b16 s22, s16, s18", W((lo(a) & 0xffff) | lo(b) << 16, scc)},
    {"s_pack_hh_b32_b16 s22, s16, s18", W(lo(a) >> 16 | (lo(b) & 0xffff0000), scc)},
    {"s_cmp_lt_i32 s16, s18", Q(old, s(a) < s(b))},
    {"s_cmp_ge_u32 s16, s18", Q(old, lo(a) >= lo(b))},
    {"s_cmp_eq_u64 s[16:17], s[18:19]", Q(old, a == b)},
    {"s_cmpk_gt_i32 s16, 0xfff0", Q(old, s(a) > -16)},
    {"s_cmpk_gt_u32 s16, 0xfff0", Q(old, lo(a) > 0xfff0u)},
    {"s_bitcmp1_b32 s16, s18", Q(old, ((a >> (b & 31)) & 1) != 0)},
    {"s_quadmask_b32 s22, s16", FN(u32 r = 0; for (int i = 0; i < 8; ++i) r |= u32(((a >> (4 * i)) & 15) != 0) << i; return word(old, r, r != 0);)},
    {"s_wqm_b64 s[22:23], s[16:17]", FN(u64 r = 0; for (int i = 0; i < 16; ++i) if ((a >> (4 * i)) & 15) r |= u64(15) << (4 * i); return {r, r != 0};)},
    {"s_and_saveexec_b64 s[22:23], s[16:17]\n  s_mov_b64 exec, -1", Q(~u64(0), a != 0)},
    {"s_mov_b64 exec, s[18:19]\n  s_andn2_saveexec_b64 s[22:23], s[16:17]\n  s_mov_b64 exec, -1", Q(b, (a & ~b) != 0)},
    {"s_cbranch_scc1 .Lt1\n  s_mov_b32 s22, 1\n.Lt1:", W(scc ? lo(old) : 1u, scc)},
    {"s_getpc_b64 s[22:23]\n  s_add_u32 s22, s22, 20\n  s_addc_u32 s23, s23, 0\n  s_setpc_b64 s[22:23]\n  s_trap 2\n  s_trap 2\n  s_mov_b64 s[22:23], s[16:17]\n  s_cmp_eq_u32 s16, s16", Q(a, true)},
    {"v_mov_b32 v7, s16\n  v_readfirstlane_b32 s22, v7", W(lo(a), scc)},
    {"v_mov_b32 v7, 3\n  v_writelane_b32 v7, s16, 63\n  v_readlane_b32 s22, v7, 63\n  v_readlane_b32 s23, v7, 62", Q(u64(lo(a)) | u64(3) << 32, scc)},
    {"s_mov_b32 m0, s16\n  s_mov_b32 s22, m0", W(lo(a), scc)},
    {"s_mov_b32 vcc_lo, s16\n  s_mov_b32 vcc_hi, s17\n  s_mov_b64 s[22:23], vcc", Q(a, scc)},
};

class ScalarInst : public KernelTest {};

TEST_F(ScalarInst, AgreeWithTheHost) {
  std::vector<AsmKernel> kernels;
  for (size_t i = 0; i < std::size(kCases); ++i)
    kernels.push_back({"k" + std::to_string(i), scalarBody(kCases[i].inst)});
  load(assemble(asmModule(kernels)));
  ASSERT_TRUE(Code);
  std::mt19937_64 rng(3);
  u64 *p[4];
  for (u64 *&x : p)
    x = buffer<u64>(64);
  auto sample = [&]() -> u64 {
    static const u64 special[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, ~u64(0),
                                  u64(1) << 63, 0x7fffffffffffffff};
    unsigned pick = rng() % 4;
    return pick == 0 ? special[rng() % 8] : pick == 1 ? rng() % 64 : rng();
  };
  for (size_t i = 0; i < std::size(kCases); ++i)
    for (int round = 0; round < 60; ++round) {
      u64 a = sample(), b = sample(), c = sample(), old = sample();
      if (round % 2)
        c &= ~u64(0xffffffff);
      p[0][0] = a;
      p[1][0] = b;
      p[2][0] = c;
      p[3][0] = old;
      Status status = run("k" + std::to_string(i), 1, 64,
                          Args().add(p[0]).add(p[1]).add(p[2]).add(p[3]));
      ASSERT_TRUE(status.ok()) << status.message();
      Result want = kCases[i].want(a, b, c, old);
      if (p[3][0] == want.value && p[3][1] == u64(want.scc))
        continue;
      ADD_FAILURE() << kCases[i].inst << std::hex << "\n a " << a << " b " << b
                    << " c " << c << " old " << old << "\n got  " << p[3][0]
                    << " scc " << p[3][1] << "\n want " << want.value << " scc "
                    << want.scc;
      break;
    }
}

} // namespace
