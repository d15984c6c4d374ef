//===- Rules.cpp - How undefined values pass through instructions ---------===//
//
// By the row's form where that says enough, else by name.
//
//===----------------------------------------------------------------------===//
#include "check/Shadow.h"
#include "isa/Row.h"

namespace fovea::sim {

namespace {
struct Named {
  const char *prefix;
  ShadowRule rule;
};
using R = ShadowRule;
// The first prefix that fits counts.
constexpr Named kVector[] = {
    {"v_mov_b", R::Words},
    {"v_accvgpr_", R::Words},
    {"v_pk_mov_b32", R::PackedMove},
    {"v_readlane_", R::ReadLane},
    {"v_readfirstlane_", R::ReadLane},
    {"v_writelane_", R::WriteLane},
    {"v_swap_b", R::Swap},
    {"v_permlane", R::Probe},
    {"ds_bpermute_", R::Probe},
    {"ds_permute_", R::Probe},
    {"ds_swizzle_", R::Probe},
    {"v_movrel", R::Forget},
    {"v_swaprel", R::Forget},
    {"v_cndmask_", R::Select},
    {"v_mad_u64_u32", R::Low},
    {"v_mad_i64_i32", R::Low},
    {"v_mad_co_u64_u32", R::Low},
    {"v_mad_co_i64_i32", R::Low},
    {"v_lshlrev_b64", R::Low},
    {"v_lshl_add_u64", R::Low},
    {"v_and_", R::Merge},
    {"v_or_", R::Merge},
    {"v_or3_", R::Merge},
    {"v_and_or_", R::Merge},
    {"v_lshl_or_", R::Merge},
    {"v_bfi_", R::Merge},
    {"v_perm_", R::Merge},
    {"v_align", R::Merge},
    {"v_pack_", R::Merge},
    {"v_cvt_pk", R::Merge},
    {"v_cvt_scalef32_pk", R::Merge},
    {"v_bitop3_", R::Merge},
    {"v_mfma_", R::Matrix},
    {"v_smfmac_", R::Matrix},
    {"v_wmma_", R::Matrix},
    {"v_swmmac_", R::Matrix},
    {"v_nop", R::None},
};
constexpr Named kScalar[] = {
    {"s_mov_b", R::ScalarMove},      {"s_not_b", R::ScalarMove},
    {"s_cselect_", R::ScalarSelect}, {"s_cmov_", R::ScalarSelect},
    {"s_pack_", R::ScalarPack},      {"s_lshl_b", R::ScalarShift},
    {"s_lshr_b", R::ScalarShift},    {"s_ashr_i", R::ScalarShift},
    {"s_bitcmp", R::BitCompare},     {"s_setpc_", R::Jump},
    {"s_swappc_", R::Jump},          {"s_set_gpr_idx_on", R::Forget},
    {"s_movrel", R::Forget},         {"s_cbranch_", R::Branch},
};
constexpr const char *kLogic[] = {"s_and_",   "s_or_",   "s_xor_",   "s_nand_",
                                  "s_nor_",   "s_xnor_", "s_andn2_", "s_orn2_",
                                  "s_andn1_", "s_orn1_"};

bool starts(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}
} // namespace

ShadowRule shadowRule(const MicroOp &op, const std::string &mnemonic) {
  if (!op.row)
    return R::None;
  const Row &row = *op.row;
  std::string name(row.mnemonic.empty() ? std::string_view(mnemonic)
                                        : row.mnemonic);
  switch (row.form) {
  case Form::Compare:
    return R::Compare;
  case Form::Mfma:
  case Form::Smfmac:
  case Form::MfmaSmall:
    return R::Matrix;
  case Form::Smem:
    return R::ScalarLoad;
  case Form::Flat:
  case Form::Buffer:
    return R::Memory;
  case Form::Ds:
    for (const Named &named : kVector)
      if (starts(name, named.prefix))
        return named.rule;
    return R::Memory;
  case Form::Vector:
  case Form::Custom:
  case Form::Convert:
    for (const Named &named : kVector)
      if (starts(name, named.prefix))
        return named.rule;
    return row.flags & kDual ? R::Packed : R::Any;
  case Form::Scalar:
  case Form::ScalarNoDst:
  case Form::Branch:
    if (name.find("saveexec") != name.npos || name.find("wrexec") != name.npos)
      return R::SaveExec;
    for (const Named &named : kScalar)
      if (starts(name, named.prefix))
        return named.rule;
    for (const char *prefix : kLogic)
      if (starts(name, prefix))
        return R::ScalarLogic;
    return R::ScalarAny;
  case Form::Nop:
    return R::None;
  }
  return R::None;
}

} // namespace fovea::sim
